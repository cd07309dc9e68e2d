"""What the figures of two reports are called, and which way they are better."""

from __future__ import annotations

FIGURE_WORDS = {
    "largest_tile": "Fullest tile, with gaps",
    "total_memory": "All tiles, without gaps",
    "tiles_out_of_memory": "Tiles out of memory",
    "always_live": "Always live",
    "max_live": "Live at the peak",
    "recorded_runs": "Recorded runs",
    "steps": "Executed steps",
    "total_cycles": "Cycles of the recorded runs",
    "tile_balance": "Tiles computing, on average",
    "run_cycles": "Cycles of all runs of the model",
    "items_per_second": "Items a second",
    "steady_items_per_second": "Items a second, pipeline full",
    "latency": "Latency of an item",
    "setup_cycles": "Cycles of set-up, not in the runs",
}
# Whether more of a figure is better (1), worse (-1) or neither.
BETTER = {
    "tile_balance": 1,
    "items_per_second": 1,
    "steady_items_per_second": 1,
    "recorded_runs": 0,
    "steps": 0,
}
