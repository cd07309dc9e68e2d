"""Vertices: groups of them as arrays, those that a program adds, and codelets of users."""
