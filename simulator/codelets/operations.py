"""The element-wise operators: what each computes, on which types, and what comes out.

The types are those of which the inner loop's cycles are known (`operation_cycles`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulator.codelets import operation_cycles, operator_values
from simulator.codelets.operation_cycles import Step, Table
from simulator.codelets.operator_values import as_float
from simulator.graph.errors import poplibs_error
from simulator.graph.types import BOOL, Array, Type


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator by its name in PopLibs' enumerations; `boolean` ones give truth values."""

    name: str
    compute: Callable[..., Array]
    types: tuple[str, ...]
    boolean: bool = False

    def result_type(self, dtype: Type, name: str) -> Type:
        """Return the type of what comes of operands of a type; raises poplibs_error with a name."""
        if dtype.name not in self.types:
            known = ", ".join(self.types)
            raise poplibs_error(f"{name}: {self.name} of {dtype}; known for {known}")
        return BOOL if self.boolean else dtype

    @property
    def debug_name(self) -> str:
        """Return PopLibs' name of the operator in compute sets: LESS_THAN is LessThan."""
        joined = "".join(word.capitalize() for word in self.name.split("_"))
        return {"IsNan": "IsNaN"}.get(joined, joined)


# Cycles of operators with three operands; their vertices add a call and 6 cycles a region.
# PopLibs lib/popops/popopsCycleEstimators.cpp, clampCycles and selectCycles.
TERNARY_STEPS: Table = {
    "CLAMP": {"float": Step(2, 0), "half": Step(2, 0), "int": Step(7, 1)},
    "SELECT": dict.fromkeys(
        ("float", "half", "int", "unsigned int", "long long", "unsigned long long", "bool"),
        Step(5, 1),
    ),
}

_UNARY: dict[str, Callable[..., Array]] = {
    "ABSOLUTE": np.abs,
    "ASIN": np.arcsin,
    "BITWISE_NOT": np.invert,
    "CBRT": as_float(np.cbrt),
    "CEIL": np.ceil,
    "COS": np.cos,
    "COUNT_LEADING_ZEROS": operator_values.leading_zeros,
    "ERF": operator_values.erf,
    "EXPONENT": np.exp,
    "EXPONENT_MINUS_ONE": np.expm1,
    "FLOOR": np.floor,
    "GELU_ERF": operator_values.gelu,
    "INVERSE": np.reciprocal,
    "IS_FINITE": np.isfinite,
    "IS_INF": np.isinf,
    "IS_NAN": np.isnan,
    "LOGARITHM": np.log,
    "LOGARITHM_ONE_PLUS": np.log1p,
    "LOGICAL_NOT": np.logical_not,
    "NEARBY_INT": np.rint,
    "NEGATE": np.negative,
    "POPCOUNT": operator_values.ones_in,
    "RELU": operator_values.relu,
    "ROUND": operator_values.round_away,
    "RSQRT": as_float(operator_values.inverse_root),
    "SIGMOID": as_float(operator_values.sigmoid),
    "SIGNUM": operator_values.sign,
    "SIN": np.sin,
    "SQRT": operator_values.root,
    "SQUARE": operator_values.square,
    "TAN": np.tan,
    "TANH": np.tanh,
    "TRUNC": np.trunc,
}

_BINARY: dict[str, Callable[..., Array]] = {
    "ADD": np.add,
    "ATAN2": np.arctan2,
    "BITWISE_AND": np.bitwise_and,
    "BITWISE_OR": np.bitwise_or,
    "BITWISE_XOR": np.bitwise_xor,
    "BITWISE_XNOR": operator_values.xnor,
    "DIVIDE": operator_values.divide,
    "EQUAL": np.equal,
    "GREATER_THAN_EQUAL": np.greater_equal,
    "GREATER_THAN": np.greater,
    "INV_STD_DEV_TO_VARIANCE": as_float(operator_values.inverse_deviation_to_variance),
    "LESS_THAN_EQUAL": np.less_equal,
    "LOGICAL_AND": np.logical_and,
    "LOGICAL_OR": np.logical_or,
    "LESS_THAN": np.less,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MULTIPLY": np.multiply,
    "NOT_EQUAL": np.not_equal,
    "POWER": np.power,
    "REMAINDER": np.fmod,
    "SHIFT_LEFT": np.left_shift,
    "SHIFT_RIGHT": operator_values.shift_right,
    "SHIFT_RIGHT_SIGN_EXTEND": np.right_shift,
    "SUBTRACT": np.subtract,
    "VARIANCE_TO_INV_STD_DEV": as_float(operator_values.variance_to_inverse_deviation),
}

_TERNARY: dict[str, Callable[..., Array]] = {
    "CLAMP": operator_values.clamp,
    "SELECT": operator_values.select,
}

_BOOLEAN = (
    "EQUAL",
    "GREATER_THAN",
    "GREATER_THAN_EQUAL",
    "IS_FINITE",
    "IS_INF",
    "IS_NAN",
    "LESS_THAN",
    "LESS_THAN_EQUAL",
    "LOGICAL_AND",
    "LOGICAL_NOT",
    "LOGICAL_OR",
    "NOT_EQUAL",
)


def _operations(functions: dict[str, Callable[..., Array]], steps: Table) -> dict[str, Operation]:
    return {
        name: Operation(name, compute, tuple(steps[name]), name in _BOOLEAN)
        for name, compute in functions.items()
    }


UNARY = _operations(_UNARY, operation_cycles.UNARY)
BINARY = _operations(_BINARY, operation_cycles.BINARY)
TERNARY = _operations(_TERNARY, TERNARY_STEPS)
