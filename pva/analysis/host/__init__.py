"""Analyses of host traces: labels, calls, and what the device waits for."""
