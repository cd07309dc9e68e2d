"""Analyses of runs of several instances: their clocks, pace, totals and stragglers."""
