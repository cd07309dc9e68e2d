"""Vertices that cast to and from number formats of any size."""
