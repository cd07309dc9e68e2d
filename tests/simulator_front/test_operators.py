"""Every operator gives NumPy's values in its type, for every type that PopLibs allows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.codelets.elementwise import operator_values
from simulator.codelets.elementwise.operations import BINARY, TERNARY, UNARY
from simulator.graph.types import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    Type,
)
from simulator.poplibs import popops, poputil

TYPES = {
    dtype.name: dtype
    for dtype in (
        FLOAT,
        HALF,
        INT,
        UNSIGNED_INT,
        LONGLONG,
        UNSIGNED_LONGLONG,
        SHORT,
        UNSIGNED_SHORT,
        BOOL,
    )
}


def _each(function: Any) -> Any:
    return lambda x: np.array([function(float(v)) for v in x.flat], np.float64).reshape(x.shape)


def _bits(x: Any) -> Any:
    return [format(int(v) & 0xFFFFFFFF, "032b") for v in x.flat]


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x.astype(np.float64)))


# Name in popops, in the table of operators, and what it gives.
UNARY_CASES: list[tuple[str, str, Any]] = [
    ("abs", "ABSOLUTE", np.abs),
    ("asin", "ASIN", np.arcsin),
    ("bitwiseNot", "BITWISE_NOT", np.invert),
    ("cbrt", "CBRT", np.cbrt),
    ("ceil", "CEIL", np.ceil),
    ("cos", "COS", np.cos),
    ("countLeadingZeros", "COUNT_LEADING_ZEROS", lambda x: [b.find("1") % 33 for b in _bits(x)]),
    ("erf", "ERF", _each(math.erf)),
    ("exp", "EXPONENT", np.exp),
    ("exp2", "EXPONENT2", np.exp2),
    ("expm1", "EXPONENT_MINUS_ONE", np.expm1),
    ("floor", "FLOOR", np.floor),
    ("geluErf", "GELU_ERF", _each(lambda v: v / 2 * (1 + math.erf(v / math.sqrt(2))))),
    ("inv", "INVERSE", np.reciprocal),
    ("isFinite", "IS_FINITE", np.isfinite),
    ("isInf", "IS_INF", np.isinf),
    ("isNaN", "IS_NAN", np.isnan),
    ("log", "LOGARITHM", np.log),
    ("log1p", "LOGARITHM_ONE_PLUS", np.log1p),
    ("logicalNot", "LOGICAL_NOT", np.logical_not),
    ("nearbyint", "NEARBY_INT", np.rint),
    ("neg", "NEGATE", np.negative),
    ("popcount", "POPCOUNT", lambda x: [b.count("1") for b in _bits(x)]),
    ("relu", "RELU", lambda x: np.where(x > 0, x, 0)),
    ("round", "ROUND", _each(lambda v: math.copysign(math.floor(abs(v) + 0.5), v))),
    ("rsqrt", "RSQRT", lambda x: x.astype(np.float64) ** -0.5),
    ("sigmoid", "SIGMOID", _sigmoid),
    ("signum", "SIGNUM", np.sign),
    ("sin", "SIN", np.sin),
    ("sqrt", "SQRT", lambda x: np.sqrt(x.astype(np.float64)).astype(x.dtype)),
    ("square", "SQUARE", np.square),
    ("tan", "TAN", np.tan),
    ("tanh", "TANH", np.tanh),
    ("trunc", "TRUNC", np.trunc),
]


def _towards_zero(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return a / b
    quotients = [
        abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
        for x, y in zip(a, b, strict=True)
    ]
    return np.array(quotients, a.dtype)


def _rest(a: Any, b: Any) -> Any:
    return np.fmod(a, b) if a.dtype.kind == "f" else a - _towards_zero(a, b) * b


def _logical_shift(a: Any, b: Any) -> Any:
    width = 8 * a.itemsize
    return np.array(
        [(int(x) % 2**width) >> int(y) for x, y in zip(a, b, strict=True)], f"u{a.itemsize}"
    )


BINARY_CASES: list[tuple[str, str, Any]] = [
    ("add", "ADD", np.add),
    ("atan2", "ATAN2", np.arctan2),
    ("bitwiseAnd", "BITWISE_AND", np.bitwise_and),
    ("bitwiseOr", "BITWISE_OR", np.bitwise_or),
    ("bitwiseXor", "BITWISE_XOR", np.bitwise_xor),
    ("bitwiseXnor", "BITWISE_XNOR", lambda a, b: np.invert(a ^ b)),
    ("div", "DIVIDE", _towards_zero),
    ("eq", "EQUAL", np.equal),
    ("gteq", "GREATER_THAN_EQUAL", np.greater_equal),
    ("gt", "GREATER_THAN", np.greater),
    ("invStdDevToVariance", "INV_STD_DEV_TO_VARIANCE", lambda a, b: 1.0 / a.astype(float) ** 2 - b),
    ("lteq", "LESS_THAN_EQUAL", np.less_equal),
    ("logicalAnd", "LOGICAL_AND", np.logical_and),
    ("logicalOr", "LOGICAL_OR", np.logical_or),
    ("lt", "LESS_THAN", np.less),
    ("max", "MAXIMUM", np.maximum),
    ("min", "MINIMUM", np.minimum),
    ("mul", "MULTIPLY", np.multiply),
    ("neq", "NOT_EQUAL", np.not_equal),
    ("pow", "POWER", np.power),
    ("rem", "REMAINDER", _rest),
    ("shiftLeft", "SHIFT_LEFT", np.left_shift),
    ("shiftRight", "SHIFT_RIGHT", _logical_shift),
    ("shiftRightSignExtend", "SHIFT_RIGHT_SIGN_EXTEND", np.right_shift),
    ("sub", "SUBTRACT", np.subtract),
    ("varianceToInvStdDev", "VARIANCE_TO_INV_STD_DEV", lambda a, b: (a + b) ** -0.5),
]
NOT_IN_PLACE = {"isFinite", "isInf", "isNaN"}
SHIFTS = {"shiftLeft", "shiftRight", "shiftRightSignExtend"}
# Where every number has a value, and none is lost by cancelling.
DOMAINS = {"ASIN": (-1, 1), "LOGARITHM": (0.01, 9), "SQRT": (0, 9), "RSQRT": (0.01, 9)}
DOMAINS |= {"POWER": (0.1, 3), "VARIANCE_TO_INV_STD_DEV": (0.1, 9), "LOGARITHM_ONE_PLUS": (0, 9)}
DOMAINS |= {"INV_STD_DEV_TO_VARIANCE": (0.5, 2), "GELU_ERF": (0, 4), "TAN": (-1, 1)}


def _values(dtype: Type, operator: str, seed: int, *, nonzero: bool = False) -> Any:
    """Draw 37 values of a type in the domain of an operator."""
    draw = np.random.default_rng(seed)
    kind = dtype.numpy.kind
    if kind == "b":
        return draw.integers(0, 2, 37).astype(bool)
    if kind == "f":
        low, high = DOMAINS.get(operator, (-6, 6))
        return draw.uniform(low, high, 37).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    low = 0 if operator == "SQRT" else limits.min
    found = draw.integers(low, limits.max, 37, dtype.numpy, endpoint=True)
    return np.where(found == 0, 1, found).astype(dtype.numpy) if nonzero else found


def _check(found: Any, expected: Any, dtype: Type) -> None:
    with np.errstate(all="ignore"):
        wanted = np.asarray(expected).astype(found.dtype)
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
    else:
        tolerance = 2e-3 if dtype == HALF else 1e-5
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance / 10)


def _unary_types() -> list[Any]:
    return [
        pytest.param(name, kind, TYPES[dtype], expected, id=f"{name}-{dtype}")
        for name, kind, expected in UNARY_CASES
        for dtype in UNARY[kind].types
    ]


def _binary_types() -> list[Any]:
    return [
        pytest.param(name, kind, TYPES[dtype], expected, id=f"{name}-{dtype}")
        for name, kind, expected in BINARY_CASES
        for dtype in BINARY[kind].types
    ]


def test_every_operator_of_the_tables_is_tested() -> None:
    assert {kind for _, kind, _ in UNARY_CASES} == set(UNARY)
    assert {kind for _, kind, _ in BINARY_CASES} == set(BINARY)
    assert set(TERNARY) == {"CLAMP", "SELECT"}


@pytest.mark.parametrize(("name", "kind", "dtype", "expected"), _unary_types())
def test_unary_operators_in_all_forms(name: str, kind: str, dtype: Type, expected: Any) -> None:
    values = Values()
    data = _values(dtype, kind, 1)
    a, there = values.tensor(data, dtype=dtype), values.tensor(data, dtype=dtype)
    new = getattr(popops, name)(values.graph, a, values.program)
    out = values.graph.clone(new, "given")
    getattr(popops, f"{name}WithOutput")(values.graph, a, out, values.program)
    if name not in NOT_IN_PLACE:
        getattr(popops, f"{name}InPlace")(values.graph, there, values.program)
    storage = values.run()
    for found in (new, out) if name in NOT_IN_PLACE else (new, out, there):
        _check(storage.read(found), expected(data), dtype)


@pytest.mark.parametrize(("name", "kind", "dtype", "expected"), _binary_types())
def test_binary_operators_in_all_forms(name: str, kind: str, dtype: Type, expected: Any) -> None:
    values = Values()
    left = _values(dtype, kind, 1)
    right = _values(dtype, kind, 2, nonzero=True)
    if name in SHIFTS:
        right = right % (8 * dtype.size)
    a, there = values.tensor(left, dtype=dtype), values.tensor(left, dtype=dtype)
    b = values.tensor(right, dtype=dtype)
    one = values.tensor(right[:1], dtype=dtype)
    new = getattr(popops, name)(values.graph, a, b, values.program)
    with_one = getattr(popops, name)(values.graph, a, one, values.program)
    out = values.graph.clone(new, "given")
    getattr(popops, f"{name}WithOutput")(values.graph, a, b, out, values.program)
    results = [new, out]
    if new.dtype == dtype:
        getattr(popops, f"{name}InPlace")(values.graph, there, b, values.program)
        results.append(there)
    storage = values.run()
    with np.errstate(all="ignore"):
        for found in results:
            _check(storage.read(found), expected(left, right), dtype)
        _check(storage.read(with_one), expected(left, np.repeat(right[:1], 37)), dtype)


def test_special_numbers_stay_what_they_are() -> None:
    values = Values()
    a = values.tensor([np.inf, -np.inf, np.nan, -0.5, 2.5])
    rounded = popops.round(values.graph, a, values.program)
    even = popops.nearbyint(values.graph, a, values.program)
    kinds = [
        f(values.graph, a, values.program) for f in (popops.isFinite, popops.isInf, popops.isNaN)
    ]
    sign = popops.signum(values.graph, a, values.program)
    storage = values.run()
    np.testing.assert_array_equal(storage.read(rounded), [np.inf, -np.inf, np.nan, -1, 3])
    np.testing.assert_array_equal(storage.read(even), [np.inf, -np.inf, np.nan, 0, 2])
    assert [storage.read(k).tolist() for k in kinds] == [
        [False, False, False, True, True],
        [True, True, False, False, False],
        [False, False, True, False, False],
    ]
    assert storage.read(sign).tolist() == [1, -1, 0, -1, 1]


def test_integers_divided_by_zero_give_zero_and_long_shifts_leave_nothing() -> None:
    values = Values()
    a, zero, many = (values.tensor(v, dtype=INT) for v in ([-7, 7], [0, 0], [32, 40]))
    operators = [popops.div, popops.rem, popops.shiftLeft, popops.shiftRight]
    seconds = [zero, zero, many, many]
    results = [
        f(values.graph, a, b, values.program) for f, b in zip(operators, seconds, strict=True)
    ]
    signs = popops.shiftRightSignExtend(values.graph, a, many, values.program)
    storage = values.run()
    assert all(storage.read(r).tolist() == [0, 0] for r in results)
    assert storage.read(signs).tolist() == [-1, 0]


def test_numbers_stand_for_tensors_on_either_side() -> None:
    values = Values()
    data = numbers(5, 8)
    a = values.tensor(data)
    half = popops.mul(values.graph, a, 0.5, values.program)
    turned = popops.sub(values.graph, 1, a, values.program)
    popops.addInPlace(values.graph, a, np.float32(2), values.program)
    storage = values.run()
    np.testing.assert_array_equal(storage.read(half), data * np.float32(0.5))
    np.testing.assert_array_equal(storage.read(turned), 1 - data)
    np.testing.assert_array_equal(storage.read(a), data + 2)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_selections_and_bounds_broadcast_like_numpy(data: st.DataObject) -> None:
    full = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))

    def shape() -> tuple[int, ...]:
        kept = [data.draw(st.sampled_from([1, size])) for size in full]
        return tuple(kept[data.draw(st.integers(0, len(kept))) :])

    arrays = [numbers(*full), numbers(*shape(), seed=1), numbers(*shape(), seed=2)]
    chosen = numbers(*shape(), seed=3) > 0
    values = Values()
    a, b, c = (values.tensor(array) for array in arrays)
    predicate = values.tensor(chosen, dtype=BOOL)
    selected = popops.select(values.graph, a, b, predicate, values.program)
    clamped = popops.clamp(values.graph, a, b, c, values.program)
    popops.selectInPlace(values.graph, a, b, predicate, values.program)
    storage = values.run()
    wanted = np.where(chosen, arrays[0], arrays[1])
    np.testing.assert_array_equal(storage.read(selected), wanted)
    np.testing.assert_array_equal(storage.read(a), wanted)
    lower = np.maximum(arrays[0], arrays[1])
    np.testing.assert_array_equal(storage.read(clamped), np.minimum(lower, arrays[2]))


def test_a_predicate_chooses_between_two_numbers() -> None:
    values = Values()
    predicate = values.tensor([True, False, True], dtype=BOOL)
    out = popops.select(values.graph, values.tensor([4.0]), -1, predicate, values.program)
    assert values.run().read(out).tolist() == [4, -1, 4]


def test_in_place_on_a_transposed_slice_reaches_the_variable() -> None:
    values = Values()
    data, other = numbers(6, 9), numbers(4, 6, seed=1)
    tensor = values.tensor(data)
    view = tensor.slice(2, 6, 1).transpose()
    popops.subInPlace(values.graph, view, values.tensor(other), values.program)
    popops.clampInPlace(values.graph, view, -0.5, 0.5, values.program)
    expected = data.copy()
    expected[:, 2:6] = np.clip(data[:, 2:6] - other.T, -0.5, 0.5)
    np.testing.assert_array_equal(values.run().read(tensor), expected)


def test_a_tensor_and_its_own_transpose_are_read_before_they_are_written() -> None:
    values = Values()
    data = numbers(12, 12)
    tensor = values.tensor(data)
    popops.addInPlace(values.graph, tensor, tensor.transpose(), values.program)
    np.testing.assert_array_equal(values.run().read(tensor), data + data.T)


REFUSED: list[tuple[Any, str]] = [
    (
        lambda v, a, b, i: popops.add(v.graph, a, b, v.program, "net"),
        "net/Op/Add: Tensor.*one shape",
    ),
    (
        lambda v, a, b, i: popops.mul(v.graph, a, i, v.program),
        "Op/Multiply: operands of types float",
    ),
    (
        lambda v, a, b, i: popops.pow(v.graph, i, i, v.program),
        "Op/Power: POWER of int; known for fl",
    ),
    (lambda v, a, b, i: popops.ltInPlace(v.graph, a, a, v.program), "Op/LessThan: result is bool"),
    (
        lambda v, a, b, i: popops.addWithOutput(v.graph, a, a, b, v.program),
        r"is float\[4\]; it does",
    ),
    (lambda v, a, b, i: popops.select(v.graph, a, a, a, v.program), "Op/Select: chooses by Tensor"),
    (
        lambda v, a, b, i: popops.addInPlace(v.graph, a[:1], a, v.program),
        r"Op/Add: result is float",
    ),
]


@pytest.mark.parametrize(("call", "said"), REFUSED, ids=[said[:20] for _, said in REFUSED])
def test_operands_that_do_not_fit_name_the_operation(call: Any, said: str) -> None:
    values = Values()
    a, b = values.tensor(numbers(4), "a"), values.tensor(numbers(3), "b")
    with pytest.raises(poputil.poplibs_error, match=said):
        call(values, a, b, values.tensor([1, 2, 3, 4], "i", INT))


def test_tangents_are_rounded_once() -> None:
    x = np.concatenate([np.linspace(-20, 20, 4001), [1e-7, -1e-7]]).astype(np.float32)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(operator_values.tanh(x), np.tanh(wide).astype(np.float32))
    assert operator_values.tanh(np.float32([-500, 500])).tolist() == [-1, 1]
