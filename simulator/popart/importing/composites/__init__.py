"""Operators that are computed by nodes of others, which are made for their shapes and constants."""
