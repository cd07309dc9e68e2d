"""Operators that run bodies, decide, or show something while the program runs."""
