"""Vertices of Poplar's run-time library: copies, counters of loops, clocks, registers."""
