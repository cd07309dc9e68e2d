"""Timelines of any length in few rectangles: levels of detail, and windows of them."""
