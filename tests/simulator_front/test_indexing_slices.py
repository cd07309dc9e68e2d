"""Slices and updates at offsets that are read at run time: NumPy's values, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import popops
from simulator.graph.errors import InvalidOptionError, poplibs_error
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, CHAR, FLOAT, HALF, INT, UNSIGNED_INT, Type

TYPES = [FLOAT, HALF, INT, CHAR, BOOL]


def numbers(dtype: Type, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Draw numbers that every type of a size holds exactly."""
    drawn = np.random.default_rng(seed).integers(0, 100, shape)
    return drawn.astype(dtype.numpy)


def indexes(shape: tuple[int, ...], dims: list[int], sizes: list[int], offsets: list[int]) -> Any:
    """Return NumPy's index of a slice that goes on at the begin when it comes to the end."""
    rows = [np.arange(size) for size in shape]
    for dim, size, offset in zip(dims, sizes, offsets, strict=True):
        rows[dim] = (offset + np.arange(size)) % shape[dim]
    return np.ix_(*rows)


def drawn_base(
    data: st.DataObject, run: DeviceProgram, array: Any, dtype: Type, dims: Any
) -> Tensor:
    """Map a tensor for slices of its dimensions, in order, turned round, or in uneven pieces."""
    match data.draw(st.sampled_from(["sliceable", "linear", "turned", "uneven"])):
        case "sliceable":
            base = popops.createSliceableTensor(
                run.graph, dtype, array.shape, dims, [1] * len(dims), data.draw(st.integers(0, 4))
            )
            return run.give(base, array)
        case "turned":
            return run.tensor(array.T, dtype).transpose()
        case "uneven":
            base, source = run.tensor(array, dtype), np.random.default_rng(array.size)
            bounds = np.unique([0, array.size, *source.integers(0, array.size + 1, 5)])
            tiles = source.integers(0, run.graph.target.num_tiles, len(bounds) - 1)
            run.graph.map_ranges(base, bounds[:-1], bounds[1:], tiles)
            return base
    return run.tensor(array, dtype)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_slices_and_updates_equal_numpys(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    dims = data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))]
    sizes = [data.draw(st.integers(0 if dims[0] else 1, shape[dim])) for dim in dims]
    offsets = [data.draw(st.integers(0, 9)) for _ in dims]
    dtype = data.draw(st.sampled_from(TYPES))
    run = DeviceProgram(data.draw(st.sampled_from([1, 3, 16])))
    array = numbers(dtype, shape)
    base = drawn_base(data, run, array, dtype, dims)
    offset = run.tensor(offsets, UNSIGNED_INT)
    found = popops.dynamicSlice(run.graph, base, offset, dims, sizes, run.program)
    index = indexes(shape, dims, sizes, offsets)
    new = numbers(dtype, array[index].shape, seed=1)
    update = run.tensor(new, dtype)
    popops.dynamicUpdate(run.graph, base, update, offset, dims, sizes, run.program)
    part, whole = run.run(found, base)
    np.testing.assert_array_equal(part, array[index])
    array[index] = new
    np.testing.assert_array_equal(whole, array)


def test_a_slice_goes_to_a_given_tensor() -> None:
    run, array = DeviceProgram(), numbers(FLOAT, (6, 5, 4))
    base, offset = run.tensor(array), run.tensor([4, 1], UNSIGNED_INT)
    out = run.tensor(np.zeros((3, 5, 2)))
    popops.dynamicSliceWithOutput(run.graph, out, base, offset, [0, 2], [3, 2], run.program)
    (found,) = run.run(out)
    np.testing.assert_array_equal(found, array[[4, 5, 0]][:, :, 1:3])


def test_a_tensor_for_a_slice_lies_where_the_slice_would() -> None:
    run, array = DeviceProgram(8), numbers(FLOAT, (6, 5, 4))
    base, offset = run.tensor(array), run.tensor([4, 1], UNSIGNED_INT)
    out = popops.createDynamicSliceOutput(run.graph, base, offset, [0, 2], [3, 2])
    made = popops.dynamicSlice(run.graph, base, offset, [0, 2], [3, 2], run.program)
    popops.dynamicSliceWithOutput(run.graph, out, base, offset, [0, 2], [3, 2], run.program)
    assert run.graph.getTileMapping(out) == run.graph.getTileMapping(made)
    np.testing.assert_array_equal(*run.run(out, made))
    with pytest.raises(InvalidOptionError, match="rows"):
        popops.createDynamicSliceOutput(run.graph, base, offset, [0], [3], "", {"rows": "1"})


def test_a_report_of_slices_breaks_no_law(tmp_path: Path) -> None:
    run, array = DeviceProgram(16), numbers(FLOAT, (20, 30))
    base = run.give(popops.createSliceableTensor(run.graph, FLOAT, [20, 30], [0], [1]), array)
    linear, offset = run.tensor(array), run.tensor([7], UNSIGNED_INT)
    row = popops.dynamicSlice(run.graph, base, offset, [0], [1], run.program, "row")
    popops.dynamicUpdate(run.graph, linear, row, offset, [0], [1], run.program, "row")
    (found,) = run.run(row, report=tmp_path)
    np.testing.assert_array_equal(found, array[7:8])


def test_a_sliceable_tensor_has_all_rows_of_its_columns_on_one_tile() -> None:
    run = DeviceProgram(16)
    base = popops.createSliceableTensor(run.graph, FLOAT, [9, 30], [0], [1])
    mapping = [run.graph.getTileMapping(base[row]) for row in range(9)]
    assert mapping[0][:2] == [[(0, 2)], [(2, 4)]]
    assert mapping == [mapping[0]] * 9
    assert popops.getSliceMapping(run.graph, base, [0], [1]) == mapping[0]


def test_a_grain_is_kept_together_in_whole_words() -> None:
    run = DeviceProgram(16)
    base = popops.createSliceableTensor(run.graph, HALF, [9, 30], [0], [1], 7)
    parts = [end - begin for tile in run.graph.getTileMapping(base[0]) for begin, end in tile]
    assert parts == [8, 8, 8, 6]


def test_a_row_of_a_sliceable_tensor_takes_no_exchange_of_its_values() -> None:
    run = DeviceProgram(16)
    base = popops.createSliceableTensor(run.graph, FLOAT, [9, 32], [0], [1])
    offset = run.tensor([3], UNSIGNED_INT)
    popops.dynamicSlice(run.graph, base, offset, [0], [1], run.program, "row")
    (group,) = run.graph.vertex_groups()
    assert group.codelet.name == "popops::DynamicSlice1D<float>"
    # 2 columns of a row on each tile: 25 + W * (39 + (24 + 2 * 0) * 1).
    assert group.cycles.tolist() == [25 + 6 * (39 + 24)] * 16
    assert [c.name for c in run.graph.compute_sets] == ["row/dynamicSlice_d0/slice"]


def test_rows_that_lie_apart_are_taken_by_workers() -> None:
    run = DeviceProgram(1)
    base, offset = run.tensor(numbers(FLOAT, (9, 32))), run.tensor([3], UNSIGNED_INT)
    popops.dynamicSlice(run.graph, base, offset, [1], [2], run.program, "columns")
    (group,) = run.graph.vertex_groups()
    assert group.codelet.name == "popops::DynamicSlice2D<float>"
    # 9 rows of one element, each a region; workers share whole grains of 2 elements, 4 and 5.
    assert int(group.fields["baseT"].counts().sum()) == 9 * 32
    assert max(group.cycles.tolist()) == 27 + 5 * ((29 + 1) * 2 + 13)


def test_a_tensor_is_made_from_one_of_its_slices() -> None:
    run = DeviceProgram(16)
    slice_ = run.tensor(numbers(FLOAT, (1, 40, 2)))
    base = popops.createSliceableTensorFromSlice(run.graph, slice_, [0, 2], [5, 3])
    assert base.shape == (5, 40, 6)
    one = run.graph.getTileMapping(slice_)
    assert [
        run.graph.getTileMapping(base[r : r + 1, :, c : c + 2]) for r, c in ((0, 0), (4, 4))
    ] == [
        one,
        one,
    ]
    array = numbers(FLOAT, (5, 40, 6))
    run.give(base, array)
    (found,) = run.run(base)
    np.testing.assert_array_equal(found, array)


def test_one_vertex_puts_all_that_a_tile_has_of_a_slice() -> None:
    run = DeviceProgram(2)
    slice_ = run.graph.addVariable(FLOAT, [1, 4, 6], "slice")
    for row in range(4):  # rows 0 and 2 on tile 0, 1 and 3 on tile 1
        run.graph.setTileMapping(slice_[0, row], row % 2)
    base = popops.createSliceableTensorFromSlice(run.graph, slice_, [0], [3])
    offset = run.tensor([1], UNSIGNED_INT)
    popops.dynamicUpdate(run.graph, base, slice_, offset, [0], [1], run.program, "update")
    (group,) = run.graph.vertex_groups()
    assert group.codelet.name == "popops::DynamicUpdateSlice1D<float>"
    assert group.tile.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("dims", "sizes", "shape", "said"),
    [
        ([0, 0], [1, 1], [2], r"dims \[0, 0\] of shape \[4, 5\]; different ones"),
        ([2], [1], [1], r"dims \[2\] of shape"),
        ([0], [5], [1], "slice of 5 in dimension 0 .* at most 4 is possible"),
        ([0], [1, 1], [1], ".* differ in length"),
        ([0], [1], [2], r"offsets .*; unsigned int\[1\] is needed"),
    ],
)
def test_slices_that_do_not_fit_are_refused_by_name(
    dims: list[int], sizes: list[int], shape: list[int], said: str
) -> None:
    run = DeviceProgram()
    base, offset = run.tensor(np.zeros((4, 5))), run.tensor(np.zeros(shape), UNSIGNED_INT)
    with pytest.raises(poplibs_error, match=f"row/dynamicSlice: {said}"):
        popops.dynamicSlice(run.graph, base, offset, dims, sizes, run.program, "row")


def test_an_update_of_another_shape_is_refused_by_name() -> None:
    run = DeviceProgram()
    base, offset = run.tensor(np.zeros((4, 5))), run.tensor([1], UNSIGNED_INT)
    with pytest.raises(poplibs_error, match=r"row/dynamicUpdate: .* float\[1, 5\] is needed"):
        popops.dynamicUpdate(run.graph, base, base, offset, [0], [1], run.program, "row")
