"""Vertices that look up, slice, sort, count and sum up as they go."""
