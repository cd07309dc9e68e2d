"""Slices and updates by many offsets with a plan, which shares rows, columns and offsets out."""
