"""Operators on elements, computed one by one, joined or moved; and their gradients."""
