"""The model against published figures of the same programs: what is exact, how near the rest is.

The matrix-vector tutorial splits 10,000 x 1,000 into five segments over 1,216 tiles; its cycles are
4,410 + 96 of compute, and 5,071 in all with a model without sync delays. The matrix chain is
800x500, 500x400, 400x200 on Mk2: 34,655 cycles.
"""

import numpy as np
import pytest

from simulator.compiler.compile import compile_graph
from simulator.compiler.executable import Executable
from simulator.examples import matmul_chain
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.target import make_target
from simulator.graph.types import FLOAT
from simulator.graph.vertex import Codelet, VertexGroup, cut_field
from simulator.runtime.run import Runner

ROWS, COLUMNS, TILES, SPLIT = 10_000, 1_000, 1_216, 5


class NoValues:
    def run(self, action):
        """Compute nothing: these tests are about cycles."""


def codelet(name):
    return Codelet(name, lambda operands: {}, state_bytes=12)


def multiply(graph):
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


def sum_segments(graph, partials):
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


@pytest.fixture(scope="module")
def tutorial() -> Executable:
    no_delay = np.zeros(TILES, dtype=np.int64)
    graph = Graph(make_target("mk1", min_sync_delay=0, relative_sync_delay=no_delay))
    first, partials = multiply(graph)
    return compile_graph(graph, [Sequence(first, sum_segments(graph, partials))])


def user_cycles(executable: Executable) -> int:
    """Give the cycles of a run from the end of the control programs before the user's."""
    record = Runner(executable, NoValues()).run(0, "run", record=True)
    begin = np.flatnonzero(record.steps > executable.lowered.user_programs[0])[0]
    return int(record.replay.cycles_to[-1] - record.replay.cycles_from[begin])


def test_compute_cycles_of_the_matrix_vector_tutorial_are_exact(tutorial):
    assert tutorial.costs.cycles.max(axis=1).tolist() == [4410, 96]
    assert tutorial.costs.active_by_type.tolist() == [[50_000 * 105, 0], [0, 10_000 * 8]]


def test_bytes_of_the_matrix_vector_tutorial_are_those_of_its_own_estimate(tutorial):
    # 200 columns for a tile of one segment, 400 for a tile of two; five partials for nine rows.
    first, second = tutorial.lowered.exchanges[1:]
    assert set(np.unique(first.received).tolist()) == {800, 1600}
    assert second.received.max() == 9 * SPLIT * 4


def test_the_matrix_vector_tutorial_copies_nothing_on_a_tile(tutorial):
    assert [vertex_type.kind for vertex_type in tutorial.vertex_types] == ["library", "library"]


def test_the_matrix_vector_tutorial_is_within_3_percent_of_its_5071_cycles(tutorial):
    assert user_cycles(tutorial) == pytest.approx(5071, rel=0.03)


def test_the_matrix_chain_is_within_5_percent_of_its_34655_cycles():
    graph = Graph(make_target("mk2"))
    program = matmul_chain.build(graph, matmul_chain.SHAPES)
    assert user_cycles(compile_graph(graph, [program])) == pytest.approx(34_655, rel=0.05)


def test_a_later_run_takes_as_long_as_a_recorded_one(tutorial):
    runner = Runner(tutorial, NoValues())
    recorded = runner.run(0, "first", record=True)
    later = runner.run(0, "second", record=False)
    again = runner.run(0, "third", record=True)
    assert recorded.cycles == later.cycles == again.cycles
    assert later.cycles_from == recorded.cycles
    assert (again.replay.end - recorded.replay.end == 2 * recorded.cycles).all()
