"""Changes of type, filling, and sums with a scaled tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.codelets.elementwise import ternary
from simulator.codelets.elementwise.scaled_add import ScaledSum, scaled_sum
from simulator.codelets.elementwise.vertices import broadcast_scalar
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    Type,
)
from simulator.poplibs import popops, poputil

TYPES = [FLOAT, HALF, INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG, SHORT, UNSIGNED_SHORT]
TYPES += [CHAR, UNSIGNED_CHAR, BOOL]
MK1 = TARGETS["mk1"]


def n(*values: int) -> Any:
    return np.array(values, np.int64)


@pytest.mark.parametrize("source", TYPES, ids=str)
@pytest.mark.parametrize("destination", TYPES, ids=str)
def test_every_type_is_cast_to_every_type(source: Type, destination: Type) -> None:
    values = Values()
    data = np.arange(23).astype(source.numpy)
    tensor = values.tensor(data, dtype=source)
    new = popops.cast(values.graph, tensor, destination, values.program, "net")
    out = values.graph.clone(new, "given")
    values.program.add(popops.cast(values.graph, tensor, out, "net"))
    storage = values.run()
    assert new.dtype == destination
    for found in (new, out):
        np.testing.assert_array_equal(storage.read(found), data.astype(destination.numpy))


def test_casts_may_share_a_compute_set() -> None:
    values = Values()
    a, b = values.tensor(numbers(9)), values.tensor(numbers(5))
    halves = [values.graph.clone(t, "half", HALF) for t in (a, b)]
    together = values.graph.addComputeSet("casts")
    for tensor, half in zip((a, b), halves, strict=True):
        assert popops.cast(values.graph, tensor, half, together) is None
    assert {g.compute_set for g in values.graph.vertex_groups()} == {together.id}


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_fills_reach_only_the_view(data: st.DataObject) -> None:
    rows, columns = data.draw(st.integers(1, 9)), data.draw(st.integers(2, 70))
    first = data.draw(st.integers(0, columns - 1))
    end = data.draw(st.integers(first + 1, columns))
    dtype = data.draw(st.sampled_from([FLOAT, HALF, INT, LONGLONG, BOOL, UNSIGNED_CHAR]))
    values = Values()
    start = np.zeros((rows, columns), dtype.numpy)
    tensor = values.tensor(start, dtype=dtype)
    popops.fill(values.graph, tensor.slice(first, end, 1).transpose(), values.program, 1, "net")
    expected = start.copy()
    expected[:, first:end] = 1
    np.testing.assert_array_equal(values.run().read(tensor), expected)


def test_zero_uses_workers_and_a_single_float_a_copy() -> None:
    values = Values()
    many, one = values.tensor(numbers(100)), values.tensor(numbers(1))
    popops.zero(values.graph, many, values.program, "net")
    popops.zero(values.graph, one, values.program, "net")
    storage = values.run()
    assert not storage.read(many).any()
    assert not storage.read(one).any()
    assert [c.name for c in values.graph.compute_sets] == ["net/Zero"]
    (group,) = [g for g in values.graph.vertex_groups() if len(g)]
    assert group.codelet.name == "popops::Fill<float>"


def test_workers_share_a_region_by_whole_vectors() -> None:
    # 26 floats on one tile: 13 vectors, 3 at most for each of 6, so 5 workers, as even as can be.
    values = Values()
    tensor = values.tensor(numbers(26))
    values.graph.setTileMapping(tensor, 1)
    popops.fill(values.graph, tensor, values.program, 3.0)
    (group,) = [g for g in values.graph.vertex_groups() if len(g)]
    assert group.fields["out"].counts().tolist() == [4, 6, 4, 6, 6]
    # 23 cycles and one a vector.
    assert group.cycles.tolist() == [25, 26, 25, 26, 26]


SCALED: list[tuple[Any, Any]] = [
    (popops.scaledAddTo, np.add),
    (popops.scaledSubtractFrom, np.subtract),
]


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=str)
@pytest.mark.parametrize(("function", "expected"), SCALED)
@pytest.mark.parametrize("scale", ["number", "tensor"])
def test_scaled_sums(function: Any, expected: Any, dtype: Type, scale: str) -> None:
    values = Values()
    data, other = (numbers(6, 11, seed=s).astype(dtype.numpy) for s in (0, 1))
    a, b, both = (values.tensor(v, dtype=dtype) for v in (data, other, data))
    factor, weight = dtype.numpy.type(0.75), dtype.numpy.type(-1.5)
    scale_b: Any = float(factor) if scale == "number" else values.tensor([factor], dtype=dtype)
    scale_a: Any = float(weight) if scale == "number" else values.tensor([weight], dtype=dtype)
    function(values.graph, a, b, scale_b, values.program, "net")
    function(values.graph, both, scale_a, b, scale_b, values.program, "net")
    storage = values.run()
    np.testing.assert_array_equal(storage.read(a), expected(data, factor * other))
    np.testing.assert_array_equal(storage.read(both), expected(weight * data, factor * other))


def test_what_is_added_is_cast_to_the_type_of_the_sum() -> None:
    values = Values()
    data, other = numbers(8), np.arange(8, dtype=np.float16)
    a = values.tensor(data)
    popops.scaledAddTo(values.graph, a, values.tensor(other, dtype=HALF), 2.0, values.program)
    np.testing.assert_array_equal(values.run().read(a), data + 2 * other.astype(np.float32))


def test_cycles_of_the_forms_of_a_scaled_sum() -> None:
    # 48 floats as of 2019: a supervisor of 78 and 31 a worker, 1 more by a tensor. Other forms are
    # later: a supervisor of 57 and 34 a worker; 7 more to subtract, 12 for a second scale.
    usual = scaled_sum(ScaledSum(True), FLOAT, MK1).cycles_1d(n(48))
    subtracted = scaled_sum(ScaledSum(False, subtract=True), FLOAT, MK1).cycles_1d(n(48))
    both = scaled_sum(ScaledSum(True, both=True), FLOAT, MK1).cycles_1d(n(48))
    assert usual.tolist() == [78 + 6 * 31]
    assert scaled_sum(ScaledSum(False), FLOAT, MK1).cycles_1d(n(48)) - usual == 1
    assert subtracted == 57 + 6 * 34 + 7
    assert both == 57 + 6 * 34 + 12


def test_cycles_with_one_number_and_with_three_operands() -> None:
    # 120 floats: 20 a worker, 10 vectors of 1 + 1: 6 * (20 + 20) + 11; regions 28 more.
    vertices = broadcast_scalar("MULTIPLY", FLOAT, MK1, False)
    assert vertices.cycles_1d(n(120)).tolist() == [251]
    assert vertices.region_2d(n(20)).tolist() == [48]
    # A region of 20: 6 + 5 an element; to clamp 7 floats 6 + 2 * 8 // 2.
    choose = ternary.ternary("SELECT", FLOAT, MK1, False, (False, False, False))
    bound = ternary.ternary("CLAMP", FLOAT, MK1, True, (False, True, True))
    assert (choose.base_2d, choose.region_2d(n(20)).tolist()) == (5, [106])
    assert bound.region_2d(n(7)).tolist() == [14]
    assert bound.several.name == "popops::BroadcastClampInPlace<float>"


REFUSED: list[tuple[Any, str]] = [
    (
        lambda g, a, b, i, p: popops.scaledAddTo(g, a, b, 1.0, p, "net"),
        "net/AddTo: operands .* shape",
    ),
    (
        lambda g, a, b, i, p: popops.scaledAddTo(g, g.clone(SHORT, i), i, 1.0, p),
        "AddTo: Tensor.*known for float, ha",
    ),
    (
        lambda g, a, b, i, p: popops.scaledSubtractFrom(g, a, a, b, p),
        "SubtractFrom: scales by Tens",
    ),
    (lambda g, a, b, i, p: popops.scaledAddTo(g, a, 2.0, 1.0, p), "scaledAddTo: b is 2.0, prog is"),
    (
        lambda g, a, b, i, p: popops.fill(g, i, p, 0.5, "net"),
        "net/Fill: value 0.5 at element 0; int",
    ),
    (
        lambda g, a, b, i, p: popops.fill(g, i, p, [1, 2]),
        r"Fill: value has shape \[2\]; one number",
    ),
    (lambda g, a, b, i, p: popops.cast(g, a, b), r"Cast: result is float\[4\]; it does not fit"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said[:18] for _, said in REFUSED])
def test_what_does_not_fit_names_the_operation(call: Any, said: str) -> None:
    values = Values()
    a, b = values.tensor(numbers(4), "a"), values.tensor(numbers(3), "b")
    whole = values.tensor([1, 2, 3, 4], "i", INT)
    with pytest.raises(poputil.poplibs_error, match=said):
        call(values.graph, a, b, whole, values.program)
