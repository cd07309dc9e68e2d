"""Element types: widths, values that fit, and arithmetic in the declared type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values

from simulator.graph import types
from simulator.graph.errors import HostAccessError, PoplarError
from simulator.graph.types import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    Type,
    checked_values,
)
from simulator.poplibs import poplin, popops
from simulator.runtime.storage import Storage

# User guide "Programming with Poplar", 2.3.1: bits of each type, and whether it has a sign.
BITS = {
    "BOOL": (8, False),
    "CHAR": (8, True),
    "SIGNED_CHAR": (8, True),
    "UNSIGNED_CHAR": (8, False),
    "SHORT": (16, True),
    "UNSIGNED_SHORT": (16, False),
    "INT": (32, True),
    "UNSIGNED_INT": (32, False),
    "LONG": (32, True),
    "UNSIGNED_LONG": (32, False),
    "LONGLONG": (64, True),
    "UNSIGNED_LONGLONG": (64, False),
    "HALF": (16, True),
    "FLOAT": (32, True),
    "DOUBLE": (64, True),
}


@pytest.mark.parametrize("name", BITS)
def test_every_scalar_type_has_the_width_of_the_guide(name: str) -> None:
    dtype: Type = getattr(types, name)
    bits, signed = BITS[name]
    assert dtype.size * 8 == dtype.numpy.itemsize * 8 == bits
    assert (dtype.numpy.kind in "if") == signed
    assert str(dtype) == name.lower().replace("_", " ").replace("longlong", "long long")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([n for n in BITS if BITS[n][0] < 64]), st.integers(-(2**33), 2**33))
def test_an_integer_is_taken_exactly_when_the_type_holds_it(name: str, value: int) -> None:
    bits, signed = BITS[name]
    dtype: Type = getattr(types, name)
    if dtype.numpy.kind == "f":
        return
    most = 1 if name == "BOOL" else 2 ** (bits - signed) - 1
    least = -(2 ** (bits - 1)) if signed else 0
    if least <= value <= most:
        assert int(checked_values(value, dtype, "c")) == value
    else:
        with pytest.raises(PoplarError, match=f"^c: value {value} at element 0; {dtype} holds"):
            checked_values(value, dtype, "c")


@pytest.mark.parametrize(
    ("values", "dtype", "said"),
    [
        ([0, 300], CHAR, "value 300 at element 1; char holds whole numbers from -128 to 127"),
        ([1.5], INT, r"value 1\.5 at element 0; int holds whole numbers"),
        ([float("nan")], INT, "value nan at element 0"),
        ([2.0**63], LONGLONG, r"value 9.*e\+18 at element 0"),
        ([2**64], UNSIGNED_LONGLONG, "value 18446744073709551616 at element 0"),
        (np.float16([-1]), UNSIGNED_INT, r"value -1\.0 at element 0"),
        ([2], BOOL, "value 2 at element 0; bool holds whole numbers from 0 to 1"),
        (["a"], FLOAT, "values are of type <U1; numbers are needed"),
        ([[1], [1, 2]], FLOAT, "rows of values are not equally long"),
    ],
)
def test_what_a_type_cannot_hold_is_refused_by_name(values: Any, dtype: Type, said: str) -> None:
    with pytest.raises(PoplarError, match=f"constant 'c': {said}"):
        checked_values(values, dtype, "constant 'c'")


def test_floating_point_is_rounded_and_may_be_infinite() -> None:
    # Halves around 2049 are 2 apart; the largest is 65504.
    assert checked_values([2049, 1e6, -1e6], HALF, "c").tolist() == [2048, np.inf, -np.inf]
    assert checked_values([2**70], FLOAT, "c").tolist() == [2.0**70]


def test_a_host_write_that_does_not_fit_the_type_leaves_the_tensor_alone() -> None:
    values = Values()
    tensor = values.graph.addVariable(CHAR, [2], "bytes")
    storage = Storage(values.graph)
    storage.write(tensor, [1, 2], "host write 'b'")
    with pytest.raises(HostAccessError, match="host write 'b': value 128 at element 1"):
        storage.write(tensor, [0, 128], "host write 'b'")
    assert storage.read(tensor).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "said"),
    [([1, 300], "value 300 at element 1; char holds"), ([1, 2, 3], r"3 values for shape \[2\]")],
)
def test_a_constant_that_does_not_fit_is_refused_by_name(values: list[int], said: str) -> None:
    with pytest.raises(PoplarError, match=f"constant 'c': {said}"):
        Values().graph.addConstant(CHAR, [2], values, "c")


def test_half_sums_are_rounded_to_half() -> None:
    values = Values()
    a, b = (values.tensor(numbers, dtype=HALF) for numbers in ([2048, 0.1], [1, 0.2]))
    out = popops.add(values.graph, a, b, values.program)
    assert out.dtype == HALF
    # 2049 lies between 2048 and 2050 and goes to the even one; 0.1 and 0.2 are not exact.
    assert values.run().read(out).tolist() == [2048, float(np.float16(0.1) + np.float16(0.2))]


def test_what_is_too_large_becomes_infinite_without_a_warning() -> None:
    # The largest half is 65504.
    values = Values()
    large = values.tensor([60000, -60000], dtype=HALF)
    out = popops.add(values.graph, large, large, values.program)
    assert values.run().read(out).tolist() == [np.inf, -np.inf]


def test_a_vertex_that_reduces_halves_rounds_once() -> None:
    # One after another in half, 4096 ones would stay at 2048.
    values = Values(tiles_per_ipu=1)
    ones = values.tensor(np.ones(4096), dtype=HALF)
    out = popops.reduce(values.graph, ones, [0], popops.Operation.ADD, values.program)
    assert values.run().read(out).tolist() == 4096


def test_products_of_half_matrices_round_once() -> None:
    # 2048 + 1 + 1: halves from 2048 on are 2 apart, so that adding ones singly changes nothing.
    values = Values(tiles_per_ipu=1)
    left = values.tensor([[2048, 1, 1]], dtype=HALF)
    right = values.tensor([[1], [1], [1]], dtype=HALF)
    out = poplin.matMul(values.graph, left, right, values.program)
    assert values.run().read(out).tolist() == [[2050]]


@pytest.mark.parametrize(("dtype", "doubled"), [(INT, -2), (UNSIGNED_INT, 2**32 - 2)])
def test_integer_sums_wrap_around(dtype: Type, doubled: int) -> None:
    values = Values()
    tensor = values.tensor([np.iinfo(dtype.numpy).max, 1], dtype=dtype)
    out = popops.add(values.graph, tensor, tensor, values.program)
    assert values.run().read(out).tolist() == [doubled, 2]
