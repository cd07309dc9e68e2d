"""Trace what a program does on the host."""
