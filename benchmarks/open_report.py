"""Open `profile.pop` of a large machine and read from it, in a warm process; prints a table.

The report is made here: 1,472 tiles, 200 compute sets, 200 exchanges, 100,000 executed steps.
Goal: open and read one by-tile array in under 50 ms.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pva import schema
from pva.dataset import Dataset
from pva.formats import pop
from pva.report import openReport

TILES, COMPUTE_SETS, VERTEX_TYPES, STEPS = 1472, 200, 30, 100_000
REPEATS = 9


def large_report() -> Dataset:
    """Make a report of random figures."""
    numbers = np.random.default_rng(0)
    lengths = {"tile": TILES, "tile_of_ipu": TILES, "ipu": 1, "liveness_step": 500}
    lengths |= {"compute_set": COMPUTE_SETS, "vertex_type": VERTEX_TYPES, "snapshot": 98}
    lengths |= {name: size for name, size in schema.DIMENSIONS.items() if isinstance(size, int)}
    rows = {"compute_sets": COMPUTE_SETS, "vertex_types": VERTEX_TYPES, "programs": 800}
    rows |= {"steps": STEPS, "steps_by_ipu": STEPS, "liveness_steps": 500, "memory_by_tile": TILES}
    rows |= {"variables": 2000, "variable_pieces": 200_000, "variable_intervals": 2000}
    tables = {
        table.name: {
            c.name: ["text"] * rows[table.name] if c.kind == "text" else np.zeros(rows[table.name])
            for c in table.columns
        }
        for table in schema.TABLES
        if table.name in rows
    }
    target: dict[str, list[object]] = {
        c.name: ["ipu2" if c.kind == "text" else 0] for c in schema.TABLE["target"].columns
    }
    tables["target"] = target | {"num_tiles": [TILES], "tiles_per_ipu": [TILES], "num_ipus": [1]}
    arrays = {
        array.name: numbers.integers(0, 4000, [lengths.get(axis, 200) for axis in array.index])
        for array in schema.ARRAYS
    }
    return Dataset.of(tables, arrays)


def best(action: Callable[[], object]) -> float:
    """Give the least of several times, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "profile.pop"
        report = large_report()
        begin = time.perf_counter()
        pop.write(report, path)
        written = (time.perf_counter() - begin) * 1e3
        jobs: dict[str, Callable[[], object]] = {
            "open": lambda: openReport(path),
            "open, memory by tile": lambda: openReport(path).dataset.column(
                "memory_by_tile", "total"
            ),
            "open, one row of 200 compute sets": lambda: openReport(path).dataset.rows(
                "compute_set_cycles_by_tile", 100, 101
            ),
            "open, cycles of all compute sets by tile": lambda: openReport(path).dataset.array(
                "compute_set_cycles_by_tile"
            ),
            "open, memory by category": lambda: openReport(path).dataset.array(
                "memory_by_category"
            ),
            "open, cycles of 100,000 steps": lambda: openReport(path).dataset.column(
                "steps", "cycles"
            ),
        }
        print(f"profile.pop: {path.stat().st_size / 2**20:.1f} MB, written in {written:.0f} ms")
        for name, job in jobs.items():
            print(f"{name:44s} {best(job):8.1f} ms")


if __name__ == "__main__":
    main()
