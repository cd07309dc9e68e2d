"""The matrix-vector tutorial of the user guide, as a graph without values.

10,000 x 1,000 split into five segments over the 1,216 tiles of Mk1, with a model without sync
delays; published: 4,410 + 96 cycles of compute, 5,071 in all.
"""

from __future__ import annotations

import numpy as np

from simulator.compiler.compile import compile_graph
from simulator.compiler.executable import Executable
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.graph.program import Execute, Program, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT
from simulator.graph.vertices.vertex import Codelet, VertexGroup, cut_field
from simulator.runtime.run import Runner

ROWS, COLUMNS, TILES, SPLIT = 10_000, 1_000, 1_216, 5


class NoValues:
    """Stands in for values: this is about cycles."""

    def run(self, action: Program) -> None:
        """Compute nothing."""


def codelet(name: str) -> Codelet:
    """Make a vertex type that computes nothing."""
    return Codelet(name, lambda operands: {}, state_bytes=12)


def multiply(graph: Graph) -> tuple[Execute, Tensor]:
    """Add the tutorial's vertices that multiply a segment of a row."""
    row, segment = np.divmod(np.arange(ROWS * SPLIT), SPLIT)
    low, high = segment * COLUMNS // SPLIT, (segment + 1) * COLUMNS // SPLIT
    tile = (segment * ROWS + row) * TILES // (SPLIT * ROWS)
    vector = graph.addVariable(FLOAT, [COLUMNS], "in")
    matrix = graph.addVariable(FLOAT, [ROWS, COLUMNS], "matrix")
    partials = graph.addVariable(FLOAT, [ROWS, SPLIT], "partials")
    column = np.arange(COLUMNS)
    place = row * SPLIT + segment
    graph.map_ranges(vector, column, column + 1, column * TILES // COLUMNS)
    graph.map_ranges(matrix, row * COLUMNS + low, row * COLUMNS + high, tile)
    graph.map_ranges(partials, place, place + 1, tile)
    fields = {
        "a": cut_field("a", "input", matrix, row * COLUMNS + low, row * COLUMNS + high),
        "b": cut_field("b", "input", vector, low, high),
        "out": cut_field("out", "output", partials, place, place + 1),
    }
    compute_set = graph.addComputeSet("mul")
    cycles = 5 + (high - low + 1) // 2
    vertices = VertexGroup(compute_set.id, codelet("DotProduct"), tile, fields, {}, cycles)
    graph.add_vertices(vertices)
    return Execute(compute_set), partials


def sum_segments(graph: Graph, partials: Tensor) -> Execute:
    """Add the tutorial's vertices that sum a row's segments."""
    row = np.arange(ROWS)
    out = graph.addVariable(FLOAT, [ROWS], "out")
    graph.map_ranges(out, row, row + 1, row * TILES // ROWS)
    fields = {
        "partials": cut_field("partials", "input", partials, row * SPLIT, row * SPLIT + SPLIT),
        "out": cut_field("out", "output", out, row, row + 1),
    }
    compute_set = graph.addComputeSet("reduce")
    cycles = np.full(ROWS, 5 + (SPLIT + 1) // 2)
    tile = row * TILES // ROWS
    graph.add_vertices(VertexGroup(compute_set.id, codelet("Reduce"), tile, fields, {}, cycles))
    return Execute(compute_set)


def tutorial() -> Executable:
    """Compile the tutorial."""
    no_delay = np.zeros(TILES, dtype=np.int64)
    graph = Graph(make_target("mk1", min_sync_delay=0, relative_sync_delay=no_delay))
    first, partials = multiply(graph)
    return compile_graph(graph, [Sequence(first, sum_segments(graph, partials))])


def user_cycles(executable: Executable) -> int:
    """Return the cycles of a run from the end of the control programs before the user's."""
    record = Runner(executable, NoValues()).run(0, "run", record=True)
    begin = np.flatnonzero(record.steps > executable.lowered.user_programs[0])[0]
    return int(record.replay.cycles_to[-1] - record.replay.cycles_from[begin])
