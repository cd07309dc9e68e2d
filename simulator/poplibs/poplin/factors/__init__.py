"""Factors of square matrices, and systems of equations."""
