"""Fragments of a copy that are counted, not listed, make the same exchange."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simulator import poplar
from simulator.compiler.compile import compile_graph
from simulator.compiler.lowering.copy import fragments
from simulator.compiler.lowering.state import Building
from simulator.graph import kernels
from simulator.graph.geometry import strides
from simulator.graph.geometry.strides import stepped
from simulator.graph.graph import Graph
from simulator.poplar import HALF, program

pytestmark = pytest.mark.skipif(kernels.compiled is None, reason="not built: all are listed")
TILES = 8


def drawn(seed: int, alias: bool = False) -> tuple[Graph, Any, Any]:
    """Draw a copy between views of variables that are anywhere on two IPUs."""
    rng = np.random.default_rng(seed)
    target = poplar.IPUModel("tiny", numIPUs=2).createDevice().getTarget()
    graph, rows = poplar.Graph(target), int(rng.integers(1, 7))
    shape = rows, int(rng.integers(1, 9))
    sides = []
    for name in ("from", "to"):
        parts = [graph.addVariable(HALF, [shape[0] * shape[1]], f"{name}{n}") for n in range(2)]
        for part in parts:
            tiles, number = rng.integers(0, TILES, shape[0] * shape[1]), np.arange(part.dim(0))
            tiles = tiles if rng.random() < 0.5 else np.sort(tiles)
            graph.map_ranges(part, number, number + 1, tiles)
        both = poplar.concat([part.reshape(shape) for part in parts], int(rng.integers(0, 2)))
        sides.append(both.transpose() if rng.random() < 0.5 else both)
    source = sides[0].flatten()
    if alias:
        source = source.taken(rng.integers(0, source.dim(0), source.dim(0)), 0)
    return graph, source, sides[1].flatten()


def costs(graph: Graph, source: Any, end: Any) -> list[list[Any]]:
    lowered = compile_graph(graph, [program.Copy(source, end)]).lowered
    exchanges = [*lowered.exchanges, *lowered.global_exchanges]
    cells = [[e.sent.tolist(), e.received.tolist(), e.cycles.tolist()] for e in exchanges]
    codes = [[np.asarray(e.code).tolist(), list(e.instructions)] for e in exchanges]
    copies = [g for g in lowered.groups if g.codelet.kind == "copy"]
    return [*cells, *codes, *([g.tile.tolist(), g.cycles.tolist()] for g in copies)]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1 << 32), alias=st.booleans())
def test_what_is_counted_costs_what_each_fragment_does(seed: int, alias: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "compiled", None)
        listed = costs(*drawn(seed, alias))
    assert costs(*drawn(seed, alias)) == listed


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1 << 32))
def test_bytes_and_fragments_are_those_of_the_elements(seed: int) -> None:
    graph, source, end = drawn(seed)
    moved = fragments(Building.start(graph), source, end)
    mapping, rows, before = graph.mapping_table(), Counter[Any](), None
    numbers: Counter[Any] = Counter()
    for pair in zip(source.elements().tolist(), end.elements().tolist(), strict=True):
        at = tuple(int(np.flatnonzero(mapping.begin <= 2 * e)[-1]) for e in pair)
        way = tuple(int(mapping.tile[place]) for place in at)
        follows = before == (pair[0] - 1, pair[1] - 1, *at)
        rows[way] += 2
        numbers[way] += not follows
        before = (*pair, *at)
    summed: Counter[Any] = Counter()
    counted: Counter[Any] = Counter()
    assert moved.count is not None
    columns = (moved.from_tile, moved.to_tile, moved.size, moved.count)
    for one, other, size, count in zip(*(c.tolist() for c in columns), strict=True):
        summed[one, other] += size
        counted[one, other] += count
    assert summed == rows
    assert counted == numbers


def test_without_a_place_nothing_is_counted() -> None:
    one, none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    sides = [one, one + 4, none, none] * 2
    assert kernels.columns("flows", *sides, one + 1, one, one + 3) == ()
    found = kernels.columns("flows", *sides, one + 1, one, one + 4)
    assert [int(part[0]) for part in found] == [0, 0, 0, 4, 1]
    with pytest.raises(ValueError, match="one size"):
        kernels.columns("flows", *sides, one, one, one)


@settings(deadline=None, max_examples=100)
@given(loops=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40)), max_size=5))
@example(loops=[(2, 1), (2, 0)])  # each element twice
def test_loops_around_intervals_lead_to_all_of_them(loops: list[tuple[int, int]]) -> None:
    places = stepped(200, loops)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strides, "FEW", 2)
        begins, lengths, times, steps = places.nested()
    shifts = sum(
        np.arange(n).reshape([-1 if k == axis else 1 for k in range(len(times))]) * step
        for axis, (n, step) in enumerate(zip(times.tolist(), steps.tolist(), strict=True))
    ) + np.zeros(times, dtype=np.int64)
    nested = (shifts.reshape(-1, 1) + begins).reshape(-1), np.tile(lengths, shifts.size)
    # Elements, as what repeats an element may be cut into other intervals.
    listed, expected = (
        np.concatenate(
            [np.arange(begin, begin + length) for begin, length in zip(*rows, strict=True)]
        )
        for rows in (nested, places.intervals())
    )
    np.testing.assert_array_equal(listed, expected)
