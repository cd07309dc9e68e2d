"""Vertices that draw random numbers, and the generator of each worker."""
