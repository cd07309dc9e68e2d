"""The model against published figures of the same programs: what is exact, how near the rest is.

The matrix chain is 800x500, 500x400, 400x200 on Mk2: 34,655 cycles. For the matrix-vector tutorial
see tests/matrix_vector.py; docs/accuracy.md has all figures.
"""

import numpy as np
import pytest

from simulator.compiler.compile import compile_graph
from simulator.examples import matmul_chain
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.runtime.run import Runner
from tests import matrix_vector
from tests.matrix_vector import SPLIT, NoValues, user_cycles


@pytest.fixture(scope="module")
def tutorial():
    return matrix_vector.tutorial()


def test_compute_cycles_of_the_matrix_vector_tutorial_are_exact(tutorial):
    assert tutorial.costs.cycles.max(axis=1).tolist() == [4410, 96]
    assert tutorial.costs.active_by_type.tolist() == [[50_000 * 105, 0], [0, 10_000 * 8]]
    # With idle threads; 5,513,152 are published, of which 63 * 72 * 6 are copies of the streams.
    assert tutorial.costs.cycles.sum() == 5_479_296


def test_bytes_of_the_matrix_vector_tutorial_are_those_of_its_own_estimate(tutorial):
    # 200 columns for a tile of one segment, 400 for a tile of two; five partials for nine rows.
    first, second = tutorial.lowered.exchanges[1:]
    assert set(np.unique(first.received).tolist()) == {800, 1600}
    assert second.received.max() == 9 * SPLIT * 4


def test_the_matrix_vector_tutorial_copies_nothing_on_a_tile(tutorial):
    assert [vertex_type.kind for vertex_type in tutorial.vertex_types] == ["library", "library"]


def test_the_matrix_vector_tutorial_takes_its_5071_cycles(tutorial):
    assert user_cycles(tutorial) == 5071


@pytest.fixture(scope="module")
def chain():
    graph = Graph(make_target("mk2"))
    return compile_graph(graph, [matmul_chain.build(graph, matmul_chain.SHAPES)])


def test_the_matrix_chain_is_within_2_percent_of_its_34655_cycles(chain):
    # The axis of the published screenshot has the control programs before the user's, too.
    cycles = Runner(chain, NoValues()).run(0, "run", record=True).cycles
    assert cycles == pytest.approx(34_655, rel=0.02)


def test_the_matrix_chain_has_the_published_bytes(chain):
    by_tile = {name: values.sum() for name, values in chain.memory.by_tile.items()}
    assert by_tile["interleaved"] == 8_960_000
    assert by_tile["total_including_gaps"] == pytest.approx(307_309_104, rel=0.002)
    assert by_tile["total"] == pytest.approx(59_894_241, rel=0.02)


def test_a_later_run_takes_as_long_as_a_recorded_one(tutorial):
    runner = Runner(tutorial, NoValues())
    recorded = runner.run(0, "first", record=True)
    later = runner.run(0, "second", record=False)
    again = runner.run(0, "third", record=True)
    assert recorded.cycles == later.cycles == again.cycles
    assert later.cycles_from == recorded.cycles
    assert (again.replay.end - recorded.replay.end == 2 * recorded.cycles).all()
