"""What a figure of a report means, and what it is made of: the meanings behind `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MEMORY, TIME, PROGRAM = (
    "memory_by_tile",
    "steps",
    "programs",
)  # tables whose provenance is that of the figure


@dataclass(frozen=True, slots=True)
class Meaning:
    """A sentence, the analysis whose rows make up the figure, and the table that it rests on."""

    text: str
    parts: str
    rests_on: str
    options: Mapping[str, Any] = field(default_factory=dict)


# The columns of these analyses that explain a figure; of the others all do.
COLUMNS = {
    "operation_costs": ("operation", "cycles", "share"),
    "cycles_by_program": ("name", "executions", "cycles", "share"),
    "tile_balance": ("name", "cycles", "tile_balance", "lost_cycles"),
    "runs": ("run", "name", "cycles", "items"),
}
MEANINGS = {
    "largest_tile": Meaning(
        "Bytes that the fullest tile needs, with the gaps between its variables. A program fits"
        " where this is at most the memory of a tile.", "fullest_tiles", MEMORY, {"count": 10}),
    "total_memory": Meaning(
        "Bytes of all tiles together, without gaps.", "memory_by_category", MEMORY),
    "tiles_out_of_memory": Meaning(
        "Tiles that need more bytes than they have, gaps included; 0 where the program fits.",
        "fullest_tiles", MEMORY, {"count": 10}),
    "always_live": Meaning(
        "Bytes that are held during the whole program: code, weights, stacks, what is copied"
        " from and to the host.", "always_live_variables",
        "always_live_variables"),
    "max_live": Meaning(
        "Most bytes live at the same time on all tiles: always live, and what is live at the"
        " program step where liveness peaks.", "live_at_peak", "liveness_steps"),
    "recorded_runs": Meaning(
        "Runs that were recorded step by step.", "runs", PROGRAM),
    "steps": Meaning(
        "Program steps that the recorded runs executed.", "cycles_by_program", PROGRAM),
    "total_cycles": Meaning(
        "Cycles of the runs recorded step by step, from the first step to the end of the last.",
        "operation_costs", TIME),
    "tile_balance": Meaning(
        "Share of all tile cycles in which tiles compute; 1 where none ever waits.",
        "tile_balance", TIME),
    "run_cycles": Meaning(
        "Cycles of all runs of the model, without set-up such as loading weights.",
        "operation_costs", TIME),
    "items_per_second": Meaning(
        "Items, such as images, that the model's runs take in a second of the device.",
        "operation_costs", TIME),
    "steady_items_per_second": Meaning(
        "The same of a pipeline that is full, without filling and draining it.",
        "operation_costs", TIME),
    "latency": Meaning(
        "Cycles from the beginning of an item to its result.", "operation_costs", TIME),
    "setup_cycles": Meaning(
        "Cycles of runs that ran once while the model ran more often.", "runs", TIME),
}  # fmt: skip
