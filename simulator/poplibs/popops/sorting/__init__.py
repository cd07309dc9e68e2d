"""Sorting and the best k elements, by a network over all tiles."""
