"""The op table: what the inner loop of each element-wise operation costs, by element type.

Source: PopLibs lib/popops/popopsCycleEstimators.hpp (unaryOpPerfInfo, binaryOpPerfInfo,
broadcastOpPerfInfo). PopLibs measured them on average operands; those of sine, logarithm of one
plus, power, remainder and integer division depend much on the data. Rows marked ESTIMATE are ours:
of operators whose cycles are not public.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from simulator.graph.errors import PoplarError
from simulator.graph.target import Target
from simulator.graph.types import Type


class Step(NamedTuple):
    """One step of an inner loop: its cycles, and its elements (0: one vector of the data path).

    With `overhead` the loop itself is not in the cycles: each kind of vertex adds its own.
    """

    cycles: int
    elements: int
    overhead: bool = False

    def width(self, dtype: Type, target: Target) -> int:
        """Return the elements of a step."""
        return self.elements or target.getVectorWidth(dtype)


Steps = dict[str, Step]
Table = Mapping[str, Mapping[str, Step]]


def _vector(cycles: int) -> Step:
    return Step(cycles, 0, True)


def _scalar(cycles: int) -> Step:
    return Step(cycles, 1, True)


def _floats(single: Step, half: Step) -> Steps:
    return {"float": single, "half": half}


def _ints(step: Step, unsigned: Step | None = None) -> Steps:
    return {"int": step, "unsigned int": unsigned or step}


def _longs(step: Step, unsigned: Step | None = None) -> Steps:
    return {"long long": step, "unsigned long long": unsigned or step}


def _shorts(step: Step) -> Steps:
    return {"short": step, "unsigned short": step}


def _whole(word: int, long: int) -> Steps:
    """Return integers of 4 and of 8 bytes, one by one."""
    return _ints(Step(word, 1)) | _longs(Step(long, 1))


def _signs(word: tuple[int, int], long: tuple[int, int]) -> Steps:
    """Return signed and unsigned integers of 4 and of 8 bytes, one by one."""
    (i, u), (q, v) = word, long
    return _ints(Step(i, 1), Step(u, 1)) | _longs(Step(q, 1), Step(v, 1))


_SAME_2 = _floats(_vector(2), _vector(2))

UNARY: Table = {
    "ABSOLUTE": _floats(_scalar(1), _scalar(1)) | {"int": _scalar(2), "long long": _scalar(10)},
    "ASIN": _floats(_scalar(102), _scalar(102)),
    "BITWISE_NOT": _ints(_vector(1)) | _longs(_vector(3)) | _shorts(Step(2, 4)),
    "CBRT": _floats(_vector(27), _vector(17)),
    "CEIL": _SAME_2,
    "COS": _floats(_scalar(2300), Step(25, 1)),
    "COUNT_LEADING_ZEROS": _ints(_scalar(1)),
    "ERF": _floats(Step(41, 1), Step(16, 1)),
    "EXPONENT": _floats(Step(6, 2), Step(4, 4)),
    "EXPONENT_MINUS_ONE": _floats(_scalar(4), _vector(5)),
    "FLOOR": _SAME_2,
    "GELU_ERF": _floats(Step(44, 1), Step(19, 1)),  # ESTIMATE: ERF, two products and a sum
    "INVERSE": _floats(Step(6, 2), Step(15, 4)),
    "IS_FINITE": _floats(_vector(5), _vector(5)),
    "IS_INF": _floats(_vector(3), _vector(5)),
    "IS_NAN": _floats(_vector(3), _vector(3)),
    "LOGARITHM": _floats(Step(12, 2), Step(4, 4)),
    "LOGARITHM_ONE_PLUS": _floats(_vector(180), _vector(180)),
    "LOGICAL_NOT": {"bool": _scalar(17)},
    "NEARBY_INT": _SAME_2,  # ESTIMATE: as ROUND
    "NEGATE": _floats(Step(2, 2), Step(2, 4)) | {"int": _scalar(2), "long long": _scalar(5)},
    "POPCOUNT": _ints(_scalar(1)),
    "RELU": _floats(Step(3, 2), Step(3, 4)),
    "ROUND": _SAME_2,
    "RSQRT": _floats(Step(8, 2), Step(19, 4)),
    "SIGMOID": _floats(Step(12, 2), Step(6, 4)),
    "SIGNUM": _floats(_vector(5), _vector(5)) | {"int": _scalar(5)},
    "SIN": _floats(_scalar(2300), Step(25, 1)),
    "SQRT": _floats(Step(10, 2), Step(23, 4)) | {"int": _scalar(110)},
    "SQUARE": _floats(Step(2, 2), Step(2, 4)) | _ints(_vector(1)),
    "TAN": _floats(Step(5100, 1), Step(5700, 1)),
    "TANH": _floats(Step(12, 2), Step(4, 4)),
    "TRUNC": _SAME_2,  # ESTIMATE: as ROUND
}

# In place an input is loaded and its output stored through one pointer: some loops differ.
UNARY_IN_PLACE: Table = {
    **UNARY,
    "ABSOLUTE": {**UNARY["ABSOLUTE"], **_floats(_vector(1), _vector(1))},
    "LOGARITHM": _floats(Step(14, 2), Step(6, 4)),
    "LOGICAL_NOT": {"bool": _vector(17)},
    "NEGATE": {**UNARY["NEGATE"], **_floats(Step(3, 2), Step(3, 4))},
    "RELU": _floats(Step(2, 2), Step(2, 4)),
    "SIGMOID": _floats(Step(10, 2), Step(4, 4)),
    "TANH": _floats(Step(10, 2), Step(2, 4)),
}


def _compare(single: int, half: int, word: int, long: int, boolean: int) -> Steps:
    """Return a comparison: four elements a step, of every type."""
    steps = _floats(Step(single, 4), Step(half, 4)) | {"bool": Step(boolean, 4)}
    return steps | _ints(Step(word, 4)) | _longs(Step(long, 4))


_SUM = _floats(_vector(1), _vector(1)) | _whole(7, 11)
_PRODUCT = _floats(_vector(1), _vector(1)) | _whole(7, 30)
_LARGEST = _floats(Step(3, 2), Step(4, 4)) | _signs((7, 8), (15, 13))
_BOTH = _whole(7, 9) | _shorts(Step(3, 4))

BINARY: Table = {
    "ADD": _SUM,
    "ATAN2": _floats(Step(272, 2), Step(578, 4)),
    "BITWISE_AND": _BOTH,
    "BITWISE_OR": _BOTH,
    "BITWISE_XNOR": _whole(7, 9) | _shorts(Step(6, 2)),
    "BITWISE_XOR": _whole(7, 9) | _shorts(Step(5, 2)),
    "DIVIDE": _floats(Step(10, 2), Step(21, 4)) | _signs((277, 265), (130, 115)),
    "EQUAL": _compare(14, 9, 22, 48, 6) | _shorts(Step(22, 4)),
    "GREATER_THAN": _compare(14, 9, 22, 56, 31),
    "GREATER_THAN_EQUAL": _compare(14, 9, 26, 62, 28),
    "INV_STD_DEV_TO_VARIANCE": _floats(Step(12, 2), Step(11, 2)),  # ESTIMATE: one load more
    "LESS_THAN": _compare(14, 9, 22, 56, 28),
    "LESS_THAN_EQUAL": _compare(14, 9, 26, 62, 28),
    "LOGICAL_AND": {"bool": Step(5, 4)},
    "LOGICAL_OR": {"bool": Step(5, 4)},
    "MAXIMUM": _LARGEST,
    "MINIMUM": _LARGEST,
    "MULTIPLY": _PRODUCT,
    "NOT_EQUAL": _compare(20, 11, 22, 48, 5) | _shorts(Step(22, 4)),
    "POWER": _floats(Step(312, 1), Step(325, 1)),
    "REMAINDER": _floats(Step(133, 2), Step(300, 4)) | _signs((292, 282), (166, 149)),
    "SHIFT_LEFT": _whole(7, 18),
    "SHIFT_RIGHT": _whole(7, 6),
    "SHIFT_RIGHT_SIGN_EXTEND": {"int": Step(7, 1), "long long": Step(19, 1)},
    "SUBTRACT": _SUM,
    "VARIANCE_TO_INV_STD_DEV": _floats(Step(13, 2), Step(25, 4)),  # ESTIMATE: one load more
}

_SUM_WITH = _floats(_vector(1), _vector(1)) | _whole(6, 9)
_BOTH_WITH = _whole(6, 7) | _shorts(Step(2, 4))
_XOR_WITH = _whole(6, 7) | _shorts(Step(4, 2))
_LARGEST_WITH = _floats(Step(3, 2), Step(3, 4))

# One operand is a number, which is loaded once.
BROADCAST: Table = {
    "ADD": _SUM_WITH,
    "ATAN2": BINARY["ATAN2"],
    "BITWISE_AND": _BOTH_WITH,
    "BITWISE_OR": _BOTH_WITH,
    "BITWISE_XNOR": _XOR_WITH,
    "BITWISE_XOR": _XOR_WITH,
    "DIVIDE": _floats(Step(6, 2), Step(8, 2)) | _signs((277, 260), (103, 148)),
    "EQUAL": _compare(12, 8, 16, 32, 14) | _shorts(Step(16, 4)),
    "GREATER_THAN": _compare(12, 8, 16, 38, 12),
    "GREATER_THAN_EQUAL": _compare(12, 8, 20, 50, 12),
    "INV_STD_DEV_TO_VARIANCE": _floats(Step(11, 2), Step(10, 2)),
    "LESS_THAN": _compare(12, 8, 16, 38, 16),
    "LESS_THAN_EQUAL": _compare(12, 8, 20, 50, 16),
    "LOGICAL_AND": {"bool": Step(4, 4)},
    "LOGICAL_OR": {"bool": Step(4, 4)},
    "MAXIMUM": _LARGEST_WITH | _signs((6, 7), (14, 11)),
    "MINIMUM": _LARGEST_WITH | _signs((6, 8), (14, 13)),
    "MULTIPLY": _floats(_vector(1), _vector(1)) | _whole(6, 26),
    "NOT_EQUAL": _compare(18, 10, 16, 32, 4) | _shorts(Step(16, 4)),
    "POWER": BINARY["POWER"],
    "REMAINDER": _floats(Step(93, 2), Step(225, 4)) | _signs((280, 267), (137, 178)),
    "SHIFT_LEFT": _whole(6, 16),
    "SHIFT_RIGHT": _whole(6, 5),
    "SHIFT_RIGHT_SIGN_EXTEND": {"int": Step(6, 1), "long long": Step(17, 1)},
    "SUBTRACT": _SUM_WITH,
    "VARIANCE_TO_INV_STD_DEV": _floats(Step(12, 2), Step(24, 4)),
}


def step_of(table: Table, operation: str, dtype: Type) -> Step:
    """Return the step of an operation on a type; raises PoplarError where there is none."""
    if operation not in table:
        raise PoplarError(f"operation {operation}: known are {', '.join(table)}")
    by_type = table[operation]
    if dtype.name not in by_type:
        raise PoplarError(f"operation {operation} on {dtype}: known for {', '.join(by_type)}")
    return by_type[dtype.name]
