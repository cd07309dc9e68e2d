"""Sorting and the best k elements give NumPy's values, by workers of a tile or a network of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.codelets.indexing.sorting import Step
from simulator.codelets.indexing.sorting_cycles import compare_and_swap, heap_sort_key_value
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF, INT, SHORT, UNSIGNED_INT
from simulator.poplibs import popops, poputil
from simulator.poplibs.popops import SortOrder, TopKParams
from simulator.poplibs.popops.sorting.network import kept_rows, layout_of, steps

MK1 = TARGETS["mk1"]


def shuffled(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Return whole numbers of which some are equal."""
    count = int(np.prod(shape))
    draw = np.random.default_rng(seed).integers(0, max(count, 2), shape)
    return (draw if dtype == UNSIGNED_INT else draw - count // 2).astype(dtype.numpy)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_sorts_equal_numpys_along_any_dimension(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    dim = data.draw(st.integers(0, len(shape) - 1))
    dtype = data.draw(st.sampled_from([FLOAT, HALF, INT, SHORT]))
    values, array = Values(tiles_per_ipu=data.draw(st.integers(1, 8))), shuffled(shape, dtype)
    tensor = values.tensor(array, dtype=dtype)
    out = popops.sort(values.graph, tensor, dim, values.program)
    popops.sortInPlace(values.graph, tensor.transpose(), len(shape) - 1 - dim, values.program)
    storage = values.run()
    np.testing.assert_array_equal(storage.read(out), np.sort(array, axis=dim))
    np.testing.assert_array_equal(storage.read(tensor), np.sort(array, axis=dim))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_values_move_with_their_keys(data: st.DataObject) -> None:
    shape = (data.draw(st.integers(1, 9)), data.draw(st.integers(1, 60)))
    dim = data.draw(st.integers(0, 1))
    values = Values(tiles_per_ipu=data.draw(st.integers(1, 8)))
    keys = np.random.default_rng(1).permutation(shape[0] * shape[1]).reshape(shape)
    array = numbers(*shape)
    key, value = values.tensor(keys, dtype=INT), values.tensor(array)
    out = popops.sortKeyValue(values.graph, key, value, dim, values.program)
    popops.sortKeyValueInPlace(values.graph, key, value, dim, values.program)
    storage = values.run()
    expected = np.take_along_axis(array, np.argsort(keys, axis=dim), dim)
    np.testing.assert_array_equal(storage.read(out), expected)
    np.testing.assert_array_equal(storage.read(value), expected)
    np.testing.assert_array_equal(storage.read(key), np.sort(keys, axis=dim))


def names(values: Values) -> list[str]:
    return [group.codelet.name for group in values.graph.vertex_groups()]


def test_a_row_on_one_tile_is_sorted_there_by_one_worker() -> None:
    values = Values()
    tensor = values.graph.addVariable(FLOAT, [3, 10], "t")
    values.graph.setTileMapping(tensor, 2)
    popops.sortInPlace(values.graph, tensor, 1, values.program, "net")
    (group,) = values.graph.vertex_groups()
    assert group.codelet.name == "popops::HeapSortVertex<float>"
    assert group.tile.tolist() == [2, 2, 2]
    assert group.cycles.tolist() == [8 * (19 * 10 * 3 + 6 * 10 + 2)] * 3
    assert values.graph.compute_sets[0].name == "net/sort/sortCS"


def test_rows_on_several_tiles_are_sorted_by_all_or_move_to_one() -> None:
    values = Values()
    popops.sort(
        values.graph, values.tensor(shuffled((9, 30), SHORT), dtype=SHORT), 1, values.program
    )
    assert names(values) == ["popops::HeapSortVertex<short>"]
    values = Values()
    popops.sort(values.graph, values.tensor(numbers(1024)), 0, values.program)
    assert names(values) == ["popops::CompareAndSwapAtDistance<float>"] * 55


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_best_k_equal_numpys(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=2)))
    rows = data.draw(st.integers(1, 70))
    k = data.draw(st.integers(0, rows))
    params = TopKParams(k, data.draw(st.booleans()), data.draw(st.sampled_from(SortOrder)))
    dtype = data.draw(st.sampled_from([FLOAT, HALF, INT, UNSIGNED_INT]))
    values, array = Values(), shuffled((*shape, rows), dtype)
    out = popops.topK(values.graph, values.program, values.tensor(array, dtype=dtype), params)
    if k:
        found = values.run().read(out)
        ascending = np.sort(array, axis=-1)
        best = ascending[..., rows - k :] if params.largest else ascending[..., :k]
        if params.sortOrder is SortOrder.NONE:
            found = np.sort(found, axis=-1)
        elif params.sortOrder is SortOrder.DESCENDING:
            best = best[..., ::-1]
        np.testing.assert_array_equal(found, best)
    assert out.dtype == dtype
    assert out.shape == (*shape, k)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_indices_lead_to_the_best_k_and_are_the_first_when_stable(data: st.DataObject) -> None:
    batch, rows = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 40))
    k, largest = data.draw(st.integers(1, rows)), data.draw(st.booleans())
    order = SortOrder.DESCENDING if largest else SortOrder.ASCENDING
    stable = data.draw(st.booleans())
    params = TopKParams(k, largest, order, stable)
    values, array = Values(), shuffled((batch, rows), INT) // 4
    tensor = values.tensor(array, dtype=INT)
    best, index = popops.topKWithPermutation(values.graph, values.program, tensor, params)
    storage = values.run()
    expected = np.argsort(-array if largest else array, axis=1, kind="stable")[:, :k]
    found = storage.read(index)
    np.testing.assert_array_equal(storage.read(best), np.take_along_axis(array, expected, 1))
    np.testing.assert_array_equal(np.take_along_axis(array, found, 1), storage.read(best))
    if stable:
        np.testing.assert_array_equal(found, expected)
    assert all(len(set(row)) == k for row in found.tolist())


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT], ids=str)
def test_values_are_those_of_the_best_keys(dtype: Any, stable: bool) -> None:
    values, keys = Values(), shuffled((3, 21), FLOAT) if stable else numbers(3, 21)
    beside = shuffled((3, 21), dtype, seed=1)
    params = TopKParams(5, True, SortOrder.DESCENDING, stable)
    best, value = popops.topKKeyValue(
        values.graph,
        values.program,
        values.tensor(keys),
        values.tensor(beside, dtype=dtype),
        params,
    )
    storage = values.run()
    order = np.argsort(-keys, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(storage.read(best), np.take_along_axis(keys, order, 1))
    np.testing.assert_array_equal(storage.read(value), np.take_along_axis(beside, order, 1))


def test_an_input_made_for_it_needs_no_exchange_at_first() -> None:
    values = Values()
    params = TopKParams(4, True, SortOrder.NONE)
    made = popops.createTopKInput(values.graph, FLOAT, [2, 50], params)
    popops.topK(values.graph, values.program, made, params)
    first = next(v for v in values.graph.variables if v.name.endswith("Step0/keys"))
    tiles = [tile for tile, parts in enumerate(values.graph.getTileMapping(made)) for _ in parts]
    assert made.shape == (2, 50)
    assert first.elements == 100
    assert set(tiles) == {0, 1, 2, 3}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 4), st.booleans(), st.integers(1, 9))
def test_each_element_of_a_step_lies_on_one_tile(
    rows: int, batch: int, size: int, mirrored: bool, tiles: int
) -> None:
    step = Step(1 << size, mirrored, rows, batch)
    layout = layout_of(step, tiles)
    first, second = step.pairs()
    assert sorted(layout.order.tolist()) == list(range(rows * batch))
    assert layout.idle[-1] == rows * batch
    tile = np.searchsorted(layout.bounds, np.arange(layout.bounds[-1]), side="right")
    where = dict(zip(layout.order.tolist(), tile.tolist(), strict=False))
    assert all(where[a] == where[b] for a, b in zip(first.tolist(), second.tolist(), strict=True))
    assert len(where) == 2 * len(first)


def test_a_network_has_the_steps_of_a_bitonic_one() -> None:
    # 16 rows sorted: 4 merges of 1, 2, 3, 4 steps. The best 4 of 16: 3 steps, then twice 1 + 2.
    assert len(list(steps(16, 16, 1, in_order=True))) == 10
    best = list(steps(16, 4, 1, in_order=True))
    assert [step for step in best if isinstance(step, int)] == [4, 4]
    assert len(best) == 3 + 2 * (1 + 1 + 2)
    assert kept_rows(11, 4) == 4 + 3


def test_cycles_are_those_of_the_public_formulas() -> None:
    n = np.array([12, 13])
    ones = np.ones_like(n)
    # 40 + 17 + 13 + 13 * (share - 1) + 3, of shares of 2 and 3
    assert compare_and_swap(n, ones, "none", FLOAT, MK1).tolist() == [
        19 + 6 * (40 + 17 + 13 + 13 + 3),
        19 + 6 * (40 + 17 + 13 + 26 + 3),
    ]
    assert compare_and_swap(n, ones * 2, "moved", INT, MK1)[0] == 19 + 6 * (
        43 + 30 + 17 * 2 + 5 + 22
    )
    assert heap_sort_key_value(np.array([8])).tolist() == [16 * (19 * 8 * 3 + 6 * 8 + 2)]


P = TopKParams(3, True, SortOrder.NONE)
REFUSED: list[tuple[Any, str]] = [
    (lambda g, t, h, p: popops.sort(g, t, 2, p, "net"), "net/sort: dimension 2 of Tensor"),
    (
        lambda g, t, h, p: popops.sortKeyValue(g, t, h, 0, p, "net"),
        "net/sortKeyValue: keys .* differ in shape",
    ),
    (
        lambda g, t, h, p: popops.topK(g, p, t, TopKParams(9, True, SortOrder.NONE), "net"),
        "net/topK: k is 9; .* has 4 elements a row",
    ),
    (lambda g, t, h, p: popops.topK(g, p, h, P), "topK: .*short.*; known for float, half, int"),
    (lambda g, t, h, p: popops.topK(g, p, t[0][0], P), "topK: .*at least one dimension"),
    (lambda g, t, h, p: popops.topK(g, p, t, 3), "topK: params are 3; TopKParams are needed"),
    (
        lambda g, t, h, p: popops.topKKeyValue(g, p, t, t[0], P, "net"),
        "net/topKKeyValue: .* differ in shape",
    ),
    (
        lambda g, t, h, p: popops.createTopKInput(g, FLOAT, [], P),
        "topKInput: shape is",
    ),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said[:16] for _, said in REFUSED])
def test_what_does_not_fit_names_the_operation(call: Any, said: str) -> None:
    values = Values()
    tensor, shorts = values.tensor(numbers(3, 4)), values.tensor([1, 2], dtype=SHORT)
    with pytest.raises(poputil.poplibs_error, match=said):
        call(values.graph, tensor, shorts, values.program)
