"""Operators on fields of channels: convolutions, poolings, samples, other sizes."""
