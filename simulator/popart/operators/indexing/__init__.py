"""Operators that address elements by indices, and their gradients."""
