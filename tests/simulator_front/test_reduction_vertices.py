"""Vertices that reduce: their values, and each form of their cycles worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simulator.codelets.products import reduction
from simulator.codelets.products.reduction import reduce_add_codelet, reduce_codelet
from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import BOOL, FLOAT, HALF, INT, Type
from simulator.graph.vertices.vertex import Operands

MK1 = TARGETS["mk1"]


def one(cycles: Any) -> int:
    """Return the cycles of the only vertex, which are whole."""
    (number,) = cycles.tolist()
    assert isinstance(number, int)
    return number


def n(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(
    ("values", "dtype", "out", "operation", "cycles"),
    [
        (11, FLOAT, None, "ADD", 17 + 5 + 3),
        (11, FLOAT, HALF, "ADD", 17 + 5 + 3 + 5),
        (19, HALF, None, "ADD", 17 + 4 + 3),
        (7, FLOAT, None, "MAX", 17 + 3 + 1),
        (7, HALF, HALF, "MAX", 17 + 1 + 3 + 5),
        (5, INT, None, "ADD", 17 + 5 + 1),
    ],
)
def test_reductions_to_one_number(
    values: int, dtype: Type, out: Type | None, operation: str, cycles: int
) -> None:
    assert one(reduction.scalar_reduce_cycles(n(values), dtype, out, operation=operation)) == cycles
    if operation == "ADD":
        assert one(reduction.scalar_reduce_cycles(n(values), dtype, out)) == cycles


@pytest.mark.parametrize(
    ("values", "dtype", "out", "cycles"),
    [(5, FLOAT, FLOAT, 32), (6, FLOAT, FLOAT, 26 + 2 + 2), (9, FLOAT, FLOAT, 26 + 4 + 1),
     (19, HALF, FLOAT, 26 + 4 + 3), (19, HALF, HALF, 26 + 4 + 3 + 5)],
)  # fmt: skip
def test_reductions_to_one_number_in_2019(values: int, dtype: Type, out: Type, cycles: int) -> None:
    assert one(reduction.scalar_reduce_2019(n(values), dtype, out)) == cycles
    if out == FLOAT:
        assert one(reduction.scalar_reduce_2019(n(values), dtype)) == cycles


@pytest.mark.parametrize(
    ("dtype", "out", "operation", "cycles", "updated"),
    [  # five outputs of four partials: three vectors of floats, two of halves
        (FLOAT, None, "ADD", 16 + 3 * 14, 16 + 3 * 17),
        (FLOAT, HALF, "ADD", 16 + 3 * 14, 16 + 3 * 16),
        (FLOAT, None, "MAX", 16 + 3 * 13, 16 + 3 * 16),
        (HALF, None, "ADD", 16 + 2 * 17, 16 + 2 * 19),
        (HALF, FLOAT, "ADD", 16 + 2 * 16, 16 + 2 * 21),
        (HALF, None, "MAX", 16 + 2 * 17, 16 + 2 * 20),
        (HALF, FLOAT, "MAX", 16 + 2 * 17, 16 + 2 * 20),
        (INT, None, "ADD", 16 + 5 * 14, 16 + 5 * 17),
        (FLOAT, None, "LOG_ADD", 16 + 3 * (10 + 69), 16 + 3 * (13 + 69)),
        (HALF, None, "LOG_ADD", 16 + 2 * (14 + 39), 16 + 2 * (17 + 39)),
    ],
)
def test_strided_reductions(
    dtype: Type, out: Type | None, operation: str, cycles: int, updated: int
) -> None:
    form = {"out_type": out, "operation": operation}
    assert one(reduction.strided_reduce_cycles(n(5), n(4), dtype, **form)) == cycles
    assert one(reduction.strided_reduce_cycles(n(5), n(4), dtype, update=True, **form)) == updated
    if operation == "ADD":
        assert one(reduction.strided_reduce_cycles(n(5), n(4), dtype, out)) == cycles


@pytest.mark.parametrize(
    ("outs", "dtype", "out", "operation", "cycles", "updated"),
    [  # five partials of two regions
        (7, FLOAT, None, "ADD", 28 + 76 + 57 + 59, 28 + 78 + 58 + 61),
        (6, FLOAT, None, "ADD", 28 + 76 + 59, 28 + 78 + 61),
        (15, HALF, None, "ADD", 30 + 80 + 57 + 59 + 63, 30 + 84 + 58 + 61 + 67),
        (15, HALF, FLOAT, "ADD", 30 + 76 + 57 + 59 + 59, 30 + 78 + 58 + 61 + 61),
        (7, FLOAT, None, "MAX", 26 + 3 * 58 + 54, 26 + 3 * 60 + 55),
        (7, INT, None, "ADD", 24 + 7 * 69, 24 + 7 * 70),
        (3, BOOL, None, "LOGICAL_AND", 8 + 44 + 25 * 15, 8 + 44 + 25 * 15),
        (3, BOOL, INT, "LOGICAL_OR", 8 + 44 + 26 * 15, 8 + 44 + 26 * 15),
        (3, FLOAT, None, "LOG_ADD", 8 + 44 + 36 * 15, 8 + 44 + 36 * 15),
    ],
)
def test_general_reductions(
    outs: int, dtype: Type, out: Type | None, operation: str, cycles: int, updated: int
) -> None:
    sizes, form = (n(outs), n(2), n(5), dtype), {"operation": operation, "out_type": out}
    assert one(reduction.general_reduce_cycles(*sizes, **form)) == cycles
    assert one(reduction.general_reduce_cycles(*sizes, True, **form)) == updated
    if operation == "ADD":
        assert one(reduction.general_reduce_cycles(*sizes, out_type=out)) == cycles


def test_a_general_reduction_adds_up_the_regions_of_each_vertex() -> None:
    # The first vertex has regions of 7 and 6 outputs, the second one of 7.
    found = reduction.general_reduce(n(7, 6, 7), n(2, 2, 2), n(5, 5, 5), n(2, 1), FLOAT)
    assert found.tolist() == [33 + 220 + 163, 33 + 220]


@pytest.mark.parametrize(
    ("partials", "dtype", "cycles"),
    [(5, FLOAT, 17 + 3 * 14 + 2), (4, FLOAT, 17 + 3 * 14), (9, HALF, 17 + 3 * 14 + 2)],
)
def test_continuous_reductions(partials: int, dtype: Type, cycles: int) -> None:
    assert one(reduction.continuous_reduce(n(3), n(partials), dtype)) == cycles
    assert one(reduction.continuous_reduce(n(3), n(partials), dtype, True)) == cycles + 1


@pytest.mark.parametrize(
    ("outs", "dtype", "out", "cycles"),
    [  # four partials; a loop of floats to floats takes 19 cycles, of halves to halves 20
        (48, FLOAT, FLOAT, 6 * (32 + 2 * 19)), (50, FLOAT, FLOAT, 6 * (32 + 2 * 19 + 21)),
        (52, FLOAT, FLOAT, 6 * (32 + 3 * 19)), (71, FLOAT, FLOAT, 6 * (32 + 3 * 19 + 21)),
        (24, FLOAT, HALF, 6 * (32 + 18)), (47, HALF, HALF, 6 * (32 + 20 + 19)),
        (52, HALF, HALF, 6 * (32 + 20 + 19)), (41, HALF, HALF, 6 * (32 + 20)),
        (42, HALF, HALF, 6 * (32 + 20)), (44, HALF, HALF, 6 * (32 + 20)),
        (43, HALF, FLOAT, 6 * (32 + 21 + 19)),
    ],
)  # fmt: skip
def test_sums_of_partial_results(outs: int, dtype: Type, out: Type, cycles: int) -> None:
    assert one(reduction.reduce_add(n(outs), n(4), dtype, MK1, out)) == cycles
    if out == FLOAT:
        assert one(reduction.reduce_add(n(outs), n(4), dtype, MK1)) == cycles


@pytest.mark.parametrize(
    ("outs", "dtype", "step", "out", "cycles"),
    [(48, FLOAT, 2, FLOAT, 33 + 6 * (20 + 2 * 16)), (28, FLOAT, 2, FLOAT, 33 + 6 * (20 + 2 * 16)),
     (24, FLOAT, 2, FLOAT, 33 + 6 * (20 + 16)), (24, FLOAT, 2, HALF, 33 + 6 * (20 + 15)),
     (48, HALF, 1, HALF, 33 + 6 * (20 + 13)), (48, HALF, 1, FLOAT, 33 + 6 * (20 + 14))],
)  # fmt: skip
def test_sums_of_one_input(outs: int, dtype: Type, step: int, out: Type, cycles: int) -> None:
    sizes = n(outs), n(4), dtype, MK1
    assert one(reduction.reduce_add_single_input(*sizes, step, out)) == cycles
    if (step, out) == (2, FLOAT):
        assert one(reduction.reduce_add_single_input(*sizes)) == cycles


def test_vectors_are_of_floating_point_alone() -> None:
    assert [reduction.lanes(dtype) for dtype in (FLOAT, HALF, INT, BOOL)] == [2, 4, 1, 1]
    sums = [reduction.accumulator(dtype) for dtype in (FLOAT, HALF, INT)]
    assert sums == [np.float32, np.float32, np.int32]


# Two vertices. The first has two regions: outputs 0 and 1 of values 0, 2 and 1, 3, and one of
# value 4; the second has one output, of values 3, 1 and 0 with a stride of -1 or so.
PARAMETERS = {
    "first": n(0, 4, 0), "outs": n(2, 1, 1), "rows": n(2, 1, 2), "stride": n(2, 1, 3),
    "regions": n(2, 1),
}  # fmt: skip
PARTIALS = [1, 2, 3, 4, 5, 6, 7, 8, 9]


def operands(dtype: Any, **arrays: Any) -> Operands:
    group: Any = SimpleNamespace(parameters=PARAMETERS)
    counts = {"partials": n(5, 4), "out": n(3, 1)}
    return Operands(group, {"partials": np.array(PARTIALS, dtype=dtype), **arrays}, counts)


def computed(codelet: Any, given: Operands) -> Any:
    """Return what a codelet computes, twice alike: the second time from what it prepared."""
    first, second = (codelet.compute(given)["out"] for _ in range(2))
    assert first.tolist() == second.tolist()
    return first


@pytest.mark.parametrize(
    ("operation", "values"),
    [("ADD", [4, 6, 5, 15]), ("MUL", [3, 8, 5, 54]), ("MAX", [3, 4, 5, 9]), ("MIN", [1, 2, 5, 6]),
     ("SQUARE_ADD", [10, 20, 25, 117])],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT])
def test_each_output_is_made_of_its_values(operation: str, values: list[int], dtype: Type) -> None:
    codelet = reduce_codelet(operation, dtype, 0)
    out = computed(codelet, operands(dtype.numpy))
    assert (out.tolist(), out.dtype) == (values, dtype.numpy)
    kind = reduction.REDUCTIONS[operation].short
    assert codelet.name == f"popops::Reduce<popops::Reduce{kind},{dtype},{dtype},false,0>"


def test_a_reduction_may_scale_its_result_and_add_to_what_is_there() -> None:
    given = operands(
        HALF.numpy, scale=np.array([2, 0.5], dtype=np.float32),
        out=np.array([1, 1, 1, 0.5], dtype=np.float32),
    )  # fmt: skip
    scaled = reduce_codelet("ADD", HALF, 1, FLOAT, scaled=True)
    assert scaled.name == "popops::ScaledReduce<popops::ReduceAdd,half,float,false,1>"
    assert computed(scaled, given).tolist() == [8, 12, 10, 7.5]
    updated = reduce_codelet("ADD", HALF, 1, FLOAT, update=True)
    assert updated.name == "popops::Reduce<popops::ReduceAdd,half,float,true,1>"
    assert computed(updated, given).tolist() == [5, 7, 6, 15.5]
    both = reduce_codelet("ADD", HALF, 1, FLOAT, update=True, scaled=True)
    assert computed(both, given).tolist() == [9, 13, 11, 8]
    assert computed(both, given).dtype == np.float32


def test_sums_of_halves_are_rounded_once_and_the_largest_not_at_all() -> None:
    values = np.array([2048, 1, 1, 0, 0, 0, 0, 0, 0])
    wide = operands(HALF.numpy)
    wide.arrays["partials"] = values.astype(HALF.numpy)
    wide.group.parameters = PARAMETERS | {"first": n(0), "outs": n(1), "rows": n(3),
                                          "stride": n(1), "regions": n(1, 0)}  # fmt: skip
    assert computed(reduce_codelet("ADD", HALF, 0), wide).tolist() == [2050]
    assert reduce_codelet("MAX", HALF, 0).compute(wide)["out"].dtype == HALF.numpy


def one_output(dtype: Any, *values: float, **arrays: float) -> Operands:
    """Return the operands of one vertex that makes one output of these values."""
    parameters = {"first": n(0), "outs": n(1), "rows": n(len(values)), "stride": n(1)}
    group: Any = SimpleNamespace(parameters=parameters | {"regions": n(1)})
    more = {name: np.array([value], dtype=np.float32) for name, value in arrays.items()}
    partials = {"partials": np.array(values, dtype=dtype)}
    return Operands(group, partials | more, {"partials": n(len(values)), "out": n(1)})


def test_floats_are_added_as_floats_and_products_of_halves_too() -> None:
    floats = one_output(np.float32, 1, 2.0**-24, 2.0**-50)  # 1 in any order, the sum is above it
    assert computed(reduce_codelet("ADD", FLOAT, 0), floats).tolist() == [1]
    halves = one_output(np.float16, 40000, 4, 0.25)  # 160,000 is no half
    assert computed(reduce_codelet("MUL", HALF, 0), halves).tolist() == [40000]
    squared = one_output(np.float16, 256, scale=0.5)  # 65,536 is none either
    codelet = reduce_codelet("SQUARE_ADD", HALF, 0, scaled=True)
    assert computed(codelet, squared).tolist() == [32768]


def test_a_scaled_result_is_rounded_before_it_is_added() -> None:
    near = 1 + 2.0**-12  # its square is 1 + 2^-11 and half of the last digit, which is lost
    given = one_output(np.float32, near, scale=near, out=-1 - 2.0**-11)
    both = reduce_codelet("ADD", FLOAT, 1, update=True, scaled=True)
    assert computed(both, given).tolist() == [0]


def test_a_sum_that_is_added_to_a_half_is_rounded_to_a_float_first() -> None:
    given = one_output(np.float16, 2.0**-11, 2.0**-24, out=1)
    given.arrays["out"] = given.arrays["out"].astype(np.float16)
    updated = reduce_codelet("ADD", HALF, 1, update=True)
    assert computed(updated, given).tolist() == [1]  # 1 + 2^-11 + 2^-24 is nearer to 1 + 2^-10


def test_an_operation_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(PoplarError) as refused:
        reduce_codelet("MEAN", FLOAT, 0)
    assert str(refused.value) == (
        "reduce: operation MEAN; known are ADD, MUL, MAX, MIN, LOGICAL_AND, LOGICAL_OR, "
        "SQUARE_ADD, LOG_ADD"
    )


def test_a_reduction_has_an_operation_for_each_value_but_the_first_of_an_output() -> None:
    class Counted:
        def __init__(self, *counts: int) -> None:
            self.counts = lambda: n(*counts)

    group: Any = SimpleNamespace(fields={"partials": Counted(9, 1, 0), "out": Counted(3, 1, 2)})
    assert reduce_codelet("ADD", FLOAT, 0).flops(group).tolist() == [6, 0, 0]
    assert reduce_add_codelet(FLOAT).flops(group).tolist() == [6, 0, 0]


@pytest.mark.parametrize(("dtype", "out"), [(HALF, None), (HALF, FLOAT), (FLOAT, HALF)])
def test_rows_of_partial_results_are_added_up(dtype: Type, out: Type | None) -> None:
    # Two vertices of two outputs and one of three, with two rows of partials each.
    group: Any = SimpleNamespace(parameters={"splits": n(2, 2, 2)})
    values = np.array([1, 2, 10, 20, 3, 4, 30, 40, 5, 6, 7, 50, 60, 70], dtype=dtype.numpy)
    given = Operands(group, {"partials": values}, {"out": n(2, 2, 3)})
    codelet = reduce_add_codelet(dtype, out)
    found = computed(codelet, given)
    assert found.tolist() == [11, 22, 33, 44, 55, 66, 77]
    assert found.dtype == (out or dtype).numpy
    assert codelet.name == f"poplin::ReduceAdd<{out or dtype},{dtype}>"
    given.arrays["partials"] = np.array([2048, 0, 1, 0] + [0] * 10, dtype=dtype.numpy)
    if out == FLOAT:
        assert computed(codelet, given).tolist()[0] == 2049
