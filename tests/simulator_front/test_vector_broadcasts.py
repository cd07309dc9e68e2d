"""Operations with a vector that repeats along their other operand: vertices, values, cycles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values

from simulator.codelets.elementwise import broadcast_cycles
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs import popops

MK2 = TARGETS["mk2"]
COMPUTE = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def computed(
    name: str, left: Any, right: Any, dtype: Type = HALF, tiles: int = 4, **how: Any
) -> tuple[Any, list[tuple[str, int, int]]]:
    """Return the result, and of each kind of vertex its name, how many, and the elements of B."""
    case = Values(tiles_per_ipu=tiles)
    a, b = (case.tensor(values, dtype=dtype) for values in (left, right))
    out = a
    if how.pop("in_place", False):
        getattr(popops, f"{name}InPlace")(case.graph, a, b, case.program, "op", **how)
    else:
        out = getattr(popops, name)(case.graph, a, b, case.program, "op", **how)
    kinds = [
        (
            group.codelet.name.partition("::")[2].partition("<")[0],
            len(group),
            int(sum(f.counts().sum() for n, f in group.fields.items() if n in ("B", "in2"))),
        )
        for group in case.graph.vertex_groups()
    ]
    return case.run().read(out), sorted(kinds)


def numbers(*shape: int) -> Any:
    return (np.arange(np.prod(shape)) % 13 + 1).reshape(shape)


def test_a_vector_along_the_data_is_taken_once_a_tile() -> None:
    left, right = numbers(64, 8), numbers(8)
    result, kinds = computed("add", left, right)
    assert kinds == [("BroadcastVectorInner1D", 4, 4 * 8)]
    assert np.array_equal(result, (left + right).astype(np.float16))


def test_an_element_of_each_row_is_taken_once_a_row() -> None:
    left, right = numbers(64, 6), numbers(64, 1)
    result, kinds = computed("sub", left, right, FLOAT, in_place=True)
    assert kinds == [("BroadcastVectorOuterByRow1DInPlace", 4, 64)]
    assert np.array_equal(result, left - right)


def test_rows_that_have_a_vector_for_each_worker_go_by_column() -> None:
    _, kinds = computed("mul", numbers(32, 12), numbers(32, 1), FLOAT)
    assert kinds == [("BroadcastVectorOuterByColumn1D", 4, 32)]
    _, kinds = computed("mul", numbers(32, 11), numbers(32, 1), FLOAT)
    assert kinds != [("BroadcastVectorOuterByColumn1D", 4, 32)]


def test_vectors_of_floats_along_the_data_are_repeated_but_for_a_division() -> None:
    assert computed("add", numbers(64, 8), numbers(8), FLOAT)[1] == [
        ("BinaryOp1DSupervisor", 4, 512)
    ]
    result, kinds = computed("div", numbers(64, 8), numbers(8), FLOAT)
    assert kinds == [("BroadcastVectorInner1D", 4, 32)]
    assert np.array_equal(result, np.float32(numbers(64, 8)) / np.float32(numbers(8)))


def test_halves_that_are_no_whole_vectors_are_repeated() -> None:
    assert computed("add", numbers(64, 6), numbers(6))[1][0][0] == "BinaryOp1DSupervisor"


def test_the_first_operand_may_be_the_vector_of_a_sum_but_not_of_a_difference() -> None:
    assert computed("add", numbers(8), numbers(64, 8))[1] == [("BroadcastVectorInner1D", 4, 32)]
    assert computed("sub", numbers(8), numbers(64, 8))[1] == [("BinaryOp1DSupervisor", 4, 512)]


def test_two_vectors_of_a_tile_are_slices_of_one_vertex() -> None:
    left, right = numbers(2, 4, 8), numbers(2, 1, 8)
    result, kinds = computed("mul", left, right, tiles=1)
    assert kinds == [("BroadcastVectorInner1D", 1, 16)]
    assert np.array_equal(result, left * right)


def test_the_option_switches_vectors_off() -> None:
    off = {"enableVectorBroadcastOptimisations": "false"}
    assert computed("add", numbers(8, 8), numbers(8), options=off)[1][0][0] != (
        "BroadcastVectorInner1D"
    )


@given(
    name=st.sampled_from(sorted(COMPUTE)),
    shape=st.lists(st.sampled_from([1, 2, 3, 4, 8, 12]), min_size=1, max_size=4),
    repeated=st.integers(0, 15),
    order=st.randoms(use_true_random=False),
    dtype=st.sampled_from([HALF, FLOAT]),
    tiles=st.integers(1, 5),
    in_place=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_values_are_those_of_numpy_in_any_layout(
    name: str, shape: list[int], repeated: int, order: Any, dtype: Type, tiles: int, in_place: bool
) -> None:
    axes = order.sample(range(len(shape)), len(shape))
    case = Values(tiles_per_ipu=tiles)
    left = numbers(*shape).astype(dtype.numpy)
    right = numbers(*(1 if repeated >> k & 1 else n for k, n in enumerate(shape)))
    right = right.astype(dtype.numpy)
    a = case.tensor(left.transpose(axes), dtype=dtype).dimShuffle(np.argsort(axes).tolist())
    b, out = case.tensor(right, dtype=dtype), a
    if in_place:
        getattr(popops, f"{name}InPlace")(case.graph, a, b, case.program, "op")
    else:
        out = getattr(popops, name)(case.graph, a, b, case.program, "op")
    expected = COMPUTE[name](left, right)
    np.testing.assert_allclose(case.run().read(out), expected, rtol=2e-3)
    covered = [group.fields["out"].elements() for group in case.graph.vertex_groups()]
    assert np.array_equal(np.sort(np.concatenate(covered)), np.sort(out.flatten().elements()))


def cycles_1d(length: int, slices: int, blocks: int, kind: str, in_place: bool) -> int:
    columns = (np.array([value]) for value in (length, slices, blocks))
    return int(broadcast_cycles.inner_1d(*columns, kind, HALF, MK2, in_place)[0])


# By hand from PopLibs' formulas: 6 workers, 13 cycles of the supervisor.
@pytest.mark.parametrize(
    ("length", "slices", "blocks", "kind", "in_place", "cycles"),
    [
        # A worker has 4 blocks of two vectors: 5 to get there, 2 + 4, then 8 + 2 * 3 + 7, 1.
        (8, 1, 24, "ADD", True, 13 + 6 * (19 + 2 + 5 + 2 + 4 + 21 + 1)),
        # Two vectors: each has 17 more.
        (8, 2, 24, "ADD", True, 13 + 6 * (19 + 2 + 2 * (17 + 5 + 2 + 4 + 21 + 1))),
        # One vector of 4 halves, 2 blocks: 9, 5, 7 + 0 + 1 + 0 + 5, 1.
        (4, 1, 12, "SUBTRACT", False, 13 + 6 + 6 * (19 + 3 + 9 + 5 + 13 + 1)),
        # Reads and writes at once: 9, 3, twice 6 + 4 + 3, 1.
        (8, 1, 24, "MULTIPLY", False, 13 + 6 * (24 + 19 + 2 + 9 + 3 + 2 * 13 + 1)),
        # In place not: 5, 3, twice 4 + 8 + 3, 1.
        (8, 1, 24, "MULTIPLY", True, 13 + 6 + 6 * (24 + 19 + 3 + 5 + 3 + 2 * 15 + 1)),
    ],
)
def test_cycles_of_a_vector_along_the_data(
    length: int, slices: int, blocks: int, kind: str, in_place: bool, cycles: int
) -> None:
    assert cycles_1d(length, slices, blocks, kind, in_place) == cycles


@pytest.mark.parametrize(
    ("columns", "rows", "cycles"),
    [
        (12, 5, 6 * (15 + 5 * (7 + 2 * 3 // 2)) + 11),  # a vector of each row for each worker
        (10, 7, 6 * (15 + 2 * (7 + 2 * 11 // 2)) + 11),  # two rows for a worker, of five vectors
        (9, 7, 6 * (15 + 2 * (25 + 2 * 10 // 2)) + 11),  # of nine elements
    ],
)
def test_cycles_of_rows_with_an_element_each(columns: int, rows: int, cycles: int) -> None:
    arrays = np.array([columns]), np.array([rows])
    assert broadcast_cycles.outer_1d(*arrays, "ADD", FLOAT, MK2).tolist() == [cycles]
