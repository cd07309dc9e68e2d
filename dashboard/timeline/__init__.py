"""Timelines for the canvas: lanes of a report or trace, any viewport of them, packed into bytes."""
