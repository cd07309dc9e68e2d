"""Make a large report: `python -m benchmarks.large_report OUT`, in the format of OUT's suffix.

Four Mk2 IPUs, 500 compute sets, 20,000 programs, 40,000 variables, 3,500 steps, 23 million
integers by tile; `--steps 1000000` repeats the body of the program. `--size machine` is 64 IPUs,
94,208 tiles, with 10,000 programs and 100 compute sets. The same seed gives the same bytes, and the
figures keep every law of `pva.check`. Left out is what would make it larger still:
memory by compute set, code by program and exchange, vertices by tile.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.synthetic import execution, graph, memory
from benchmarks.synthetic.size import Columns, Size, Values
from pva.data.dataset import Dataset
from pva.formats import registry

POINTER = 4  # bytes of one to an edge
SIZES = {
    "large": Size(),
    "machine": Size(ipus=64, programs=10_000, compute_sets=100, exchanges=140, body_segments=100),
}


def large_report(size: Size, seed: int = 0) -> Dataset:
    """Make a report of a size."""
    numbers = np.random.default_rng(seed)
    tables = graph.tables(size, numbers)
    arrays = graph.arrays(size, numbers)
    for more_tables, more_arrays in (
        memory.contents(size, numbers),
        execution.contents(size, arrays),
    ):
        tables |= more_tables
        arrays |= more_arrays
    tables["liveness_steps"] = {**tables["liveness_steps"], "parent": _parents(tables)}
    tables["access"] = _live_accesses(tables)
    pointers = int(np.asarray(arrays["memory_by_vertex_type_edge_pointers"]).sum())
    tables["graph"] = {**tables["graph"], "num_edges": [pointers // POINTER]}
    return Dataset.of(tables, arrays)


def _live_accesses(tables: dict[str, Columns]) -> Columns:
    """Let programs use an always-live variable in place of one that is not live at their step.

    The first program that uses a variable writes it.
    """
    program, variable = (np.asarray(tables["access"][name]) for name in ("program", "variable"))
    always = np.asarray(tables["variables"]["always_live"])
    lives = tables["variable_intervals"]
    begin, end = np.zeros((2, len(always)), dtype=np.int64)
    begin[lives["variable"]], end[lives["variable"]] = lives["begin"], lives["end"]
    live = always[variable] | ((begin[variable] <= program) & (program < end[variable]))
    others = np.flatnonzero(always)
    used = np.where(live, variable, others[variable % len(others)])
    write = np.array(tables["access"]["write"])
    write[np.unique(used, return_index=True)[1]] = True
    return {"program": program, "variable": used, "write": write}


def _parents(tables: dict[str, Columns]) -> Values:
    """Return the program around each, for there is a liveness step for each program."""
    parents = np.full(len(np.asarray(tables["programs"]["type"])), -1)
    tree = tables["program_children"]
    parents[np.asarray(tree["child"])] = tree["program"]
    return parents


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="a .pop, .json or .cbor file")
    parser.add_argument("--size", choices=SIZES, default="large")
    parser.add_argument("--steps", type=int, default=Size().steps, help="executed steps, at least")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    size = replace(SIZES[arguments.size], steps=arguments.steps)
    registry.write(large_report(size, arguments.seed), arguments.out)


if __name__ == "__main__":
    main()
