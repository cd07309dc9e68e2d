"""Vertices that work element by element, and the operators that they compute."""
