"""Reductions give NumPy's values, however the tensor lies; and what their stages cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.errors import PoplarError
from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, Type
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation, ReduceParams, SingleReduceOp

FUNCTIONS: dict[str, Any] = {
    "ADD": np.sum,
    "MUL": np.prod,
    "MIN": np.min,
    "MAX": np.max,
    "SQUARE_ADD": lambda x, axis: np.sum(np.square(x), axis=axis),
    "LOG_ADD": lambda x, axis: np.logaddexp.reduce(x, axis=axis),
    "LOGICAL_AND": np.all,
    "LOGICAL_OR": np.any,
}
TYPES = {"LOGICAL_AND": [BOOL], "LOGICAL_OR": [BOOL], "LOG_ADD": [FLOAT, HALF]}
ALL_TYPES = [FLOAT, HALF, INT, UNSIGNED_INT]


def drawn_values(dtype: Type, shape: list[int], seed: int) -> Any:
    """Draw small numbers: whole ones for integers, near one for products not to vanish."""
    source = np.random.default_rng(seed)
    if dtype == BOOL:
        return source.random(shape) < 0.8
    if dtype in (FLOAT, HALF):
        return (source.random(shape) * 0.4 + 0.8).astype(dtype.numpy)
    return source.integers(0, 4, shape).astype(dtype.numpy)


def drawn_view(data: st.DataObject, tensor: Tensor, array: Any) -> tuple[Tensor, Any]:
    """Turn a tensor round, repeat it or take a part of it; and its values likewise."""
    match data.draw(st.sampled_from(["same", "transposed", "repeated", "part", "reversed"])):
        case "transposed":
            return tensor.transpose(), array.transpose()
        case "repeated":
            return tensor.broadcast(3, 0), np.concatenate([array] * 3)
        case "part" if tensor.dim(0) > 1:
            return tensor[1:], array[1:]
        case "reversed":
            return tensor.reverse(0), array[::-1]
    return tensor, array


def map_anyhow(data: st.DataObject, values: Values, tensor: Tensor) -> None:
    """Leave a tensor as it is, or put it on one tile, or in uneven pieces on some tiles."""
    tiles = values.graph.target.num_tiles
    match data.draw(st.sampled_from(["linear", "one", "uneven"])):
        case "one":
            values.graph.setTileMapping(tensor, data.draw(st.integers(0, tiles - 1)))
        case "uneven":
            source = np.random.default_rng(data.draw(st.integers(0, 99)))
            inner = source.integers(0, tensor.numElements() + 1, data.draw(st.integers(1, 20)))
            bounds = np.unique([0, tensor.numElements(), *inner])
            where = source.integers(0, tiles, len(bounds) - 1)
            values.graph.map_ranges(tensor, bounds[:-1], bounds[1:], where)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_reductions_equal_numpys_however_the_tensor_lies(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*FUNCTIONS]))
    dtype = data.draw(st.sampled_from(TYPES.get(kind, ALL_TYPES)))
    shape = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    values = Values(tiles_per_ipu=data.draw(st.sampled_from([1, 3, 16])))
    array = drawn_values(dtype, shape, data.draw(st.integers(0, 99)))
    whole = values.tensor(array, dtype=dtype)
    map_anyhow(data, values, whole)
    tensor, array = drawn_view(data, whole, array)
    dims = data.draw(st.permutations(range(tensor.rank())))[: data.draw(st.integers(0, 4))]
    out = popops.reduce(values.graph, tensor, dims, Operation(kind), values.program)
    wide = array.astype(np.float64) if dtype in (FLOAT, HALF) else array
    expected = np.asarray(FUNCTIONS[kind](wide, axis=tuple(dims)), dtype.numpy)
    tolerance = 2e-3 if dtype == HALF else 1e-5
    found = values.run().read(out)
    assert found.dtype == dtype.numpy
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_scaled_sums_are_added_to_what_the_output_holds(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 9))
    values, array = Values(tiles_per_ipu=5), numbers(rows, columns)
    tensor = values.tensor(array)
    map_anyhow(data, values, tensor)
    held = numbers(columns, 2, seed=1)
    out = values.tensor(held, "out")
    map_anyhow(data, values, out)
    scale = data.draw(st.sampled_from([2.5, values.tensor([2.5], "scale")]))
    update = data.draw(st.booleans())
    params = ReduceParams(Operation.ADD, update, scale)
    popops.reduceWithOutput(values.graph, tensor, out[:, 1], [0], params, values.program)
    expected = held.copy()
    expected[:, 1] = 2.5 * array.sum(axis=0) + (held[:, 1] if update else 0)
    np.testing.assert_allclose(values.run().read(out), expected, rtol=1e-5, atol=1e-5)


def test_a_sum_of_halves_may_be_a_float() -> None:
    values = Values()
    ones = values.tensor(np.full((64, 50), 0.1), dtype=HALF)
    out = popops.reduce(values.graph, ones, FLOAT, [0, 1], Operation.ADD, values.program)
    expected = 3200 * np.float32(np.float16(0.1))
    np.testing.assert_allclose(values.run().read(out), expected, rtol=1e-6)


def test_sums_of_halves_are_rounded_once_however_many_stages_there_are() -> None:
    # 2048 and 1,024 ones on other tiles: halves from 2048 on are 2 apart.
    values = Values(tiles_per_ipu=16)
    tensor = values.tensor([2048] + [1] * 1024, dtype=HALF)
    sums = [
        popops.reduce(values.graph, tensor, [0], Operation.ADD, values.program, "", options)
        for options in ({}, {"accumType.interTile": "half"})
    ]
    storage = values.run()
    assert storage.read(sums[0]).tolist() == 3072
    partials = [v.dtype for v in values.graph.variables if "partials" in v.name]
    assert set(partials) == {FLOAT, HALF}


@pytest.mark.parametrize(
    ("kind", "dtype", "left"),
    [
        ("ADD", FLOAT, 0),
        ("MUL", HALF, 1),
        ("MAX", FLOAT, -np.inf),
        ("MIN", INT, 2**31 - 1),
        ("LOGICAL_AND", BOOL, True),
    ],
)
def test_no_values_leave_what_changes_nothing(kind: str, dtype: Type, left: Any) -> None:
    values = Values()
    empty = values.graph.addVariable(dtype, [3, 0, 2], "empty")
    out = popops.reduce(values.graph, empty, [1], Operation(kind), values.program)
    nothing = popops.reduce(values.graph, empty, [0, 2], Operation(kind), values.program)
    storage = values.run()
    assert storage.read(out).tolist() == [[left] * 2] * 3
    assert nothing.shape == (0,)


def test_many_reductions_share_their_compute_sets() -> None:
    values = Values(tiles_per_ipu=16)
    arrays = [numbers(64, 8), numbers(5, 300, seed=1), numbers(7, seed=2)]
    tensors = [values.tensor(array) for array in arrays]
    reductions = [
        SingleReduceOp(tensors[0], [0], Operation.ADD),
        SingleReduceOp(tensors[1], [1], ReduceParams(Operation.MAX), debugName="largest"),
        SingleReduceOp(tensors[2], [0], ReduceParams(Operation.SQUARE_ADD, scale=0.5)),
    ]
    outputs: list[Tensor] = []
    popops.reduceMany(values.graph, reductions, outputs, values.program)
    # One stage where the values are, and one where the output of the first is.
    assert len(values.graph.compute_sets) == 2
    storage = values.run()
    expected = [arrays[0].sum(0), arrays[1].max(1), 0.5 * np.square(arrays[2]).sum()]
    for out, wanted in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(storage.read(out), wanted, rtol=1e-5, atol=1e-5)


def test_an_output_takes_the_shape_of_the_kept_dimensions() -> None:
    values = Values()
    out = values.tensor(np.zeros((3, 2)))
    with pytest.raises(PoplarError, match=r"sums/Reduce: output .* shape \[2, 3\] is needed"):
        popops.reduceWithOutput(
            values.graph,
            values.tensor(numbers(2, 3, 4)),
            out,
            [2],
            Operation.ADD,
            values.program,
            "sums",
        )


@pytest.mark.parametrize(
    ("dtype", "dims", "params", "said"),
    [
        (FLOAT, [0, 3], Operation.ADD, r"dimensions \[0, 3\] of .* of its 3 dimensions"),
        (FLOAT, [-1], Operation.ADD, r"dimensions \[-1\] of"),
        (BOOL, [0], Operation.ADD, "ADD of .*: bool.* it takes float, half, int, unsigned int"),
        (FLOAT, [0], Operation.LOGICAL_OR, "LOGICAL_OR of .* it takes bool"),
        (FLOAT, [0], ReduceParams(Operation.MAX, True), "MAX; only sums take a scale or an update"),
        (
            INT,
            [0],
            ReduceParams(Operation.ADD, scale=2),
            "scale for .*; only float and half are scaled",
        ),
    ],
)
def test_what_cannot_be_reduced_is_refused_by_name(
    dtype: Type, dims: list[int], params: Any, said: str
) -> None:
    values = Values()
    tensor = values.tensor(np.zeros((2, 3, 4)), dtype=dtype)
    with pytest.raises(PoplarError, match=f"loss/Reduce: {said}") as caught:
        popops.reduce(values.graph, tensor, dims, params, values.program, "loss")
    assert "\n" not in str(caught.value)


def test_an_output_that_is_on_no_tile_is_refused_by_name() -> None:
    values = Values()
    out = values.graph.addVariable(FLOAT, [3], "sums")
    with pytest.raises(PoplarError, match="variable 'sums': is not wholly mapped to tiles"):
        popops.reduceWithOutput(
            values.graph, values.tensor(numbers(2, 3)), out, [0], Operation.ADD, values.program
        )


def test_outputs_must_be_as_many_as_reductions() -> None:
    values = Values()
    tensor = values.tensor(numbers(4))
    with pytest.raises(PoplarError, match="ReduceMany: 2 outputs of 1 reductions"):
        popops.reduceMany(
            values.graph,
            [SingleReduceOp(tensor, [0], Operation.ADD)],
            [tensor, tensor],
            values.program,
        )


def test_the_output_is_reduced_where_all_its_values_are() -> None:
    # Rows of 32 floats, one on each of 16 tiles: no stage and no exchange but the one on the tile.
    values = Values(tiles_per_ipu=16)
    tensor = values.tensor(numbers(16, 32))
    out = popops.reduce(values.graph, tensor, [1], Operation.ADD, values.program)
    assert values.graph.getTileMapping(out) == [[(tile, tile + 1)] for tile in range(16)]
    names = [compute_set.name for compute_set in values.graph.compute_sets]
    assert {name.split("/")[2] for name in names} == {"InToOutputNoExchange"}


def test_partial_results_of_many_tiles_go_through_tiles_in_between() -> None:
    # One float on each of 1,216 tiles; the output is on tile 0.
    values = Values("mk1")
    tensor = values.tensor(np.ones(1216))
    positions = np.arange(1216)
    values.graph.map_ranges(tensor, positions, positions + 1, positions)
    out = popops.reduce(values.graph, tensor, [0], Operation.ADD, values.program)
    assert values.run().read(out) == 1216
    stages = [compute_set.name.split("/")[1] for compute_set in values.graph.compute_sets]
    assert list(dict.fromkeys(stages)) == ["ReduceStage0", "ReduceFinalStage"]


def vertices(values: Values) -> list[tuple[str, list[int], list[int]]]:
    """List type, tiles and cycles of each group of vertices."""
    return [
        (group.codelet.name, group.tile.tolist(), group.cycles.tolist())
        for group in values.graph.vertex_groups()
    ]


def test_rows_of_a_matrix_on_a_tile_are_one_strided_input_of_each_worker() -> None:
    # 12 columns of 5 rows: two vectors, 4 columns, for each of three workers, as PopLibs keeps two
    # vectors of a sum together; 16 + 2 * (3 + 5 + 3 + 4) cycles.
    values = Values(tiles_per_ipu=1)
    array = numbers(5, 12)
    out = popops.reduce(values.graph, values.tensor(array), [0], Operation.ADD, values.program)
    name = "popops::Reduce<popops::ReduceAdd,float,float,false,3>"
    assert vertices(values) == [(name, [0] * 3, [46] * 3)]
    np.testing.assert_allclose(values.run().read(out), array.sum(axis=0), rtol=1e-5)
    field = values.graph.vertex_groups()[0].fields["partials"]
    assert field.lengths.tolist() == [4 * 12 + 4] * 3  # from its first row to the end of its last


def test_one_output_on_a_tile_is_cut_into_a_part_for_each_worker() -> None:
    # 600 floats: 100 for each of six workers, 17 + 50 cycles, then 17 + 3 + 2 for the six.
    values = Values(tiles_per_ipu=1)
    popops.reduce(values.graph, values.tensor(numbers(600)), [0], Operation.ADD, values.program)
    name = "popops::Reduce<popops::ReduceAdd,float,float,false,2>"
    assert vertices(values) == [(name, [0] * 6, [67] * 6), (name, [0], [22])]


def test_nothing_is_added_to_what_an_output_holds_when_there_are_no_values() -> None:
    values = Values()
    empty = values.graph.addVariable(FLOAT, [0, 4], "empty")
    out = values.tensor(numbers(4))
    popops.reduceWithOutput(
        values.graph, empty, out, [0], ReduceParams(Operation.ADD, True), values.program
    )
    assert not any(isinstance(child, Copy) for child in values.program.children)
