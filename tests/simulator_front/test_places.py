"""Values gathered from the arena and scattered to it: NumPy's indexing, element by element."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.graph.geometry.intervals import spread
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.graph.program import Sequence
from simulator.graph.types import FLOAT
from simulator.poplibs import popops
from simulator.poplibs.poputil import mapTensorLinearly
from simulator.runtime.execute import ValueRunner
from simulator.runtime.host_streams import HostStreams
from simulator.runtime.places import places_of
from simulator.runtime.remote_buffers import RemoteBuffers
from simulator.runtime.storage import Storage

ARENA = np.arange(600, dtype=np.float32)  # intervals end at 583 at most


@st.composite
def intervals(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw disjoint intervals in any order, of lengths that often have a divisor in common."""
    unit, shift = draw(st.sampled_from([1, 2, 3, 8])), draw(st.integers(0, 7))
    sizes = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12))
    ends = np.cumsum([gap + size for gap, size in sizes], dtype=np.int64) * unit + shift
    lengths = np.array([size for _, size in sizes], dtype=np.int64) * unit
    order = np.array(draw(st.permutations(range(len(sizes)))), dtype=np.int64)
    return (ends - lengths)[order], lengths[order]


@given(intervals())
def test_what_is_gathered_and_scattered_is_numpys(
    where: tuple[np.ndarray, np.ndarray],
) -> None:
    arena, elements = ARENA.copy(), spread(*where)
    places = places_of(arena, *where)
    np.testing.assert_array_equal(places.load(), ARENA[elements])
    places.store(-1.0 - np.arange(len(elements)))  # doubles, which are rounded
    exact = ARENA.copy()
    exact[elements] = -1.0 - np.arange(len(elements))
    np.testing.assert_array_equal(arena, exact)


@pytest.mark.parametrize(
    ("begins", "lengths", "numbers"),
    [
        ([40, 8, 24], [8, 8, 8], 3),
        ([41, 9, 25], [8, 16, 8], 4),  # all begin one element behind a block
        ([40, 8, 23], [8, 8, 8], 24),  # no block of 2 or more leads to the last one
        ([8, 16, 24], [8, 8, 8], 0),  # one slice
    ],
)
def test_a_block_needs_one_number(begins: list[int], lengths: list[int], numbers: int) -> None:
    places = places_of(ARENA, np.array(begins), np.array(lengths))
    assert (0 if places.numbers is None else len(places.numbers)) == numbers


def test_one_value_is_stored_in_all_places() -> None:
    arena = np.zeros(12, dtype=np.float16)
    places_of(arena, np.array([6, 0]), np.array([2, 2])).store(1.5)
    assert arena.tolist() == [1.5, 1.5, 0, 0, 0, 0, 1.5, 1.5, 0, 0, 0, 0]


def test_operands_and_places_of_what_runs_once_are_not_kept() -> None:
    graph, program = Graph(make_target("tiny")), Sequence()
    square = graph.addVariable(FLOAT, [64, 64], "square")
    mapTensorLinearly(graph, square)
    pairs = square.reshape([64, 32, 2]).dimShuffle([1, 0, 2])  # a number for two elements
    for _ in range(20):
        popops.addInPlace(graph, square, pairs.reshape([64, 64]), program)
    runner = ValueRunner(graph, Storage(graph), HostStreams([]), RemoteBuffers([]))
    tracemalloc.start()
    for step in program.children:
        runner.run(step)
    held = tracemalloc.get_traced_memory()[0]
    for step in program.children:
        runner.run(step)
    again = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    operands = 20 * square.numElements() * 4
    assert held < operands // 2 < again  # what runs twice is likely to run many times
