"""The one table of element-wise operators: a row is all that an operator is.

From it follow the functions of popops, the expressions of popops::expr, PopLibs' enumerations and
the vertices. Source of the steps: PopLibs lib/popops/popopsCycleEstimators.hpp (unaryOpPerfInfo,
binaryOpPerfInfo, broadcastOpPerfInfo). PopLibs measured them on average operands; those of sine,
logarithm of one plus, power, remainder and integer division depend much on the data. Rows marked
ESTIMATE are ours: of operators whose cycles are not public.
"""

from __future__ import annotations

import numpy as np

from simulator.codelets.elementwise import operator_values as values
from simulator.codelets.elementwise.operation import (
    Operation,
    Step,
    Table,
    compare,
    floats,
    ints,
    longs,
    scalar,
    shorts,
    signs,
    table,
    vector,
    whole,
)
from simulator.codelets.elementwise.operator_values import as_float

_TWO = floats(vector(2), vector(2))

UNARY: Table = table(
    Operation(
        "ABSOLUTE",
        "abs",
        "Abs",
        np.abs,
        floats(scalar(1), scalar(1)) | {"int": scalar(2), "long long": scalar(10)},
        in_place=floats(vector(1), vector(1)) | {"int": scalar(2), "long long": scalar(10)},
    ),
    Operation("ASIN", "asin", "Asin", np.arcsin, floats(scalar(102), scalar(102))),
    Operation(
        "BITWISE_NOT",
        "bitwiseNot",
        "BitwiseNot",
        np.invert,
        ints(vector(1)) | longs(vector(3)) | shorts(Step(2, 4)),
    ),
    Operation("CBRT", "cbrt", "Cbrt", as_float(np.cbrt), floats(vector(27), vector(17))),
    Operation("CEIL", "ceil", "Ceil", np.ceil, _TWO),
    Operation("COS", "cos", "Cos", np.cos, floats(scalar(2300), Step(25, 1))),
    Operation(
        "COUNT_LEADING_ZEROS",
        "countLeadingZeros",
        "CountLeadingZeros",
        values.leading_zeros,
        ints(scalar(1)),
    ),
    Operation("ERF", "erf", "Erf", values.erf, floats(Step(41, 1), Step(16, 1))),
    Operation("EXPONENT", "exp", "Exp", np.exp, floats(Step(6, 2), Step(4, 4)), start=33),
    Operation("EXPONENT2", "exp2", "Exp2", np.exp2, floats(Step(6, 2), Step(4, 4)), start=33),
    Operation("EXPONENT_MINUS_ONE", "expm1", "Expm1", np.expm1, floats(scalar(4), vector(5))),
    Operation("FLOOR", "floor", "Floor", np.floor, _TWO),
    Operation("GELU_ERF", "geluErf", "GeluErf", values.gelu, floats(Step(22, 1), Step(16, 1))),
    Operation("INVERSE", "inv", "Inv", np.reciprocal, floats(Step(6, 2), Step(15, 4))),
    Operation(
        "IS_FINITE", "isFinite", "IsFinite", np.isfinite, floats(vector(5), vector(5)), boolean=True
    ),
    Operation("IS_INF", "isInf", "IsInf", np.isinf, floats(vector(3), vector(5)), boolean=True),
    Operation("IS_NAN", "isNaN", "IsNaN", np.isnan, floats(vector(3), vector(3)), boolean=True),
    Operation(
        "LOGARITHM",
        "log",
        "Log",
        np.log,
        floats(Step(12, 2), Step(4, 4)),
        in_place=floats(Step(14, 2), Step(6, 4)),
    ),
    Operation("LOGARITHM_ONE_PLUS", "log1p", "Log1p", np.log1p, floats(vector(180), vector(180))),
    Operation(
        "LOGICAL_NOT",
        "logicalNot",
        "Not",
        np.logical_not,
        {"bool": scalar(17)},
        in_place={"bool": vector(17)},
        boolean=True,
    ),
    Operation("NEARBY_INT", "nearbyint", "NearbyInt", np.rint, _TWO),
    Operation(
        "NEGATE",
        "neg",
        "Neg",
        np.negative,
        floats(Step(2, 2), Step(2, 4)) | {"int": scalar(2), "long long": scalar(5)},
        in_place=floats(Step(3, 2), Step(3, 4)) | {"int": scalar(2), "long long": scalar(5)},
    ),
    Operation("POPCOUNT", "popcount", "Popcount", values.ones_in, ints(scalar(1))),
    Operation(
        "RELU",
        "relu",
        "Relu",
        values.relu,
        floats(Step(3, 2), Step(3, 4)),
        in_place=floats(Step(2, 2), Step(2, 4)),
    ),
    Operation("ROUND", "round", "Round", values.round_away, _TWO),
    Operation(
        "RSQRT", "rsqrt", "Rsqrt", as_float(values.inverse_root), floats(Step(8, 2), Step(19, 4))
    ),
    Operation(
        "SIGMOID",
        "sigmoid",
        "Sigmoid",
        as_float(values.sigmoid),
        floats(Step(12, 2), Step(6, 4)),
        in_place=floats(Step(10, 2), Step(4, 4)),
    ),
    Operation(
        "SIGNUM", "signum", "Signum", values.sign, floats(vector(5), vector(5)) | {"int": scalar(5)}
    ),
    Operation("SIN", "sin", "Sin", np.sin, floats(scalar(2300), Step(25, 1))),
    Operation(
        "SQRT", "sqrt", "Sqrt", values.root, floats(Step(10, 2), Step(23, 4)) | {"int": scalar(110)}
    ),
    Operation(
        "SQUARE",
        "square",
        "Square",
        values.square,
        floats(Step(2, 2), Step(2, 4)) | ints(vector(1)),
    ),
    Operation("TAN", "tan", "Tan", np.tan, floats(Step(5100, 1), Step(5700, 1))),
    Operation(
        "TANH",
        "tanh",
        "Tanh",
        values.tanh,
        floats(Step(12, 2), Step(4, 4)),
        in_place=floats(Step(10, 2), Step(2, 4)),
    ),
    # ESTIMATE: as ROUND
    Operation("TRUNC", "trunc", "Trunc", np.trunc, _TWO),
)

_SUM = floats(vector(1), vector(1)) | whole(7, 11)
_LARGEST = floats(Step(3, 2), Step(4, 4)) | signs((7, 8), (15, 13))
_BOTH = whole(7, 9) | shorts(Step(3, 4))
_SUM_WITH = floats(vector(1), vector(1)) | whole(6, 9)
_BOTH_WITH = whole(6, 7) | shorts(Step(2, 4))
_XOR_WITH = whole(6, 7) | shorts(Step(4, 2))
_LARGEST_WITH = floats(Step(3, 2), Step(3, 4))

BINARY: Table = table(
    Operation("ADD", "add", "Add", np.add, _SUM, with_number=_SUM_WITH, assembly=True),
    Operation(
        "ATAN2",
        "atan2",
        "Atan2",
        np.arctan2,
        floats(Step(272, 2), Step(578, 4)),
        with_number=floats(Step(272, 2), Step(578, 4)),
    ),
    Operation(
        "BITWISE_AND", "bitwiseAnd", "BitwiseAnd", np.bitwise_and, _BOTH, with_number=_BOTH_WITH
    ),
    Operation("BITWISE_OR", "bitwiseOr", "BitwiseOr", np.bitwise_or, _BOTH, with_number=_BOTH_WITH),
    Operation(
        "BITWISE_XNOR",
        "bitwiseXnor",
        "BitwiseXnor",
        values.xnor,
        whole(7, 9) | shorts(Step(6, 2)),
        with_number=_XOR_WITH,
    ),
    Operation(
        "BITWISE_XOR",
        "bitwiseXor",
        "BitwiseXor",
        np.bitwise_xor,
        whole(7, 9) | shorts(Step(5, 2)),
        with_number=_XOR_WITH,
    ),
    Operation(
        "DIVIDE",
        "div",
        "Divide",
        values.divide,
        floats(Step(10, 2), Step(21, 4)) | signs((277, 265), (130, 115)),
        with_number=floats(Step(6, 2), Step(8, 2)) | signs((277, 260), (103, 148)),
    ),
    Operation(
        "EQUAL",
        "eq",
        "Equal",
        np.equal,
        compare(14, 9, 22, 48, 6) | shorts(Step(22, 4)),
        with_number=compare(12, 8, 16, 32, 14) | shorts(Step(16, 4)),
        boolean=True,
    ),
    Operation(
        "GREATER_THAN",
        "gt",
        "Gt",
        np.greater,
        compare(14, 9, 22, 56, 31),
        with_number=compare(12, 8, 16, 38, 12),
        boolean=True,
    ),
    Operation(
        "GREATER_THAN_EQUAL",
        "gteq",
        "Gte",
        np.greater_equal,
        compare(14, 9, 26, 62, 28),
        with_number=compare(12, 8, 20, 50, 12),
        boolean=True,
    ),
    # ESTIMATE: one load more
    Operation(
        "INV_STD_DEV_TO_VARIANCE",
        "invStdDevToVariance",
        "InvStdDevToVariance",
        as_float(values.inverse_deviation_to_variance),
        floats(Step(12, 2), Step(11, 2)),
        with_number=floats(Step(11, 2), Step(10, 2)),
    ),
    Operation(
        "LESS_THAN",
        "lt",
        "Lt",
        np.less,
        compare(14, 9, 22, 56, 28),
        with_number=compare(12, 8, 16, 38, 16),
        boolean=True,
    ),
    Operation(
        "LESS_THAN_EQUAL",
        "lteq",
        "Lte",
        np.less_equal,
        compare(14, 9, 26, 62, 28),
        with_number=compare(12, 8, 20, 50, 16),
        boolean=True,
    ),
    Operation(
        "LOGICAL_AND",
        "logicalAnd",
        "And",
        np.logical_and,
        {"bool": Step(5, 4)},
        with_number={"bool": Step(4, 4)},
        boolean=True,
    ),
    Operation(
        "LOGICAL_OR",
        "logicalOr",
        "Or",
        np.logical_or,
        {"bool": Step(5, 4)},
        with_number={"bool": Step(4, 4)},
        boolean=True,
    ),
    Operation(
        "MAXIMUM",
        "max",
        "Max",
        np.maximum,
        _LARGEST,
        with_number=_LARGEST_WITH | signs((6, 7), (14, 11)),
    ),
    Operation(
        "MINIMUM",
        "min",
        "Min",
        np.minimum,
        _LARGEST,
        with_number=_LARGEST_WITH | signs((6, 8), (14, 13)),
    ),
    Operation(
        "MULTIPLY",
        "mul",
        "Mul",
        np.multiply,
        floats(vector(1), vector(1)) | whole(7, 30),
        with_number=floats(vector(1), vector(1)) | whole(6, 26),
        assembly=True,
    ),
    Operation(
        "NOT_EQUAL",
        "neq",
        "NotEqual",
        np.not_equal,
        compare(20, 11, 22, 48, 5) | shorts(Step(22, 4)),
        with_number=compare(18, 10, 16, 32, 4) | shorts(Step(16, 4)),
        boolean=True,
    ),
    Operation(
        "POWER",
        "pow",
        "Pow",
        np.power,
        floats(Step(312, 1), Step(325, 1)),
        with_number=floats(Step(312, 1), Step(325, 1)),
    ),
    Operation(
        "REMAINDER",
        "rem",
        "Rem",
        np.fmod,
        floats(Step(133, 2), Step(300, 4)) | signs((292, 282), (166, 149)),
        with_number=floats(Step(93, 2), Step(225, 4)) | signs((280, 267), (137, 178)),
    ),
    Operation(
        "SHIFT_LEFT", "shiftLeft", "Shl", np.left_shift, whole(7, 18), with_number=whole(6, 16)
    ),
    Operation(
        "SHIFT_RIGHT", "shiftRight", "Shr", values.shift_right, whole(7, 6), with_number=whole(6, 5)
    ),
    Operation(
        "SHIFT_RIGHT_SIGN_EXTEND",
        "shiftRightSignExtend",
        "ShrSE",
        np.right_shift,
        {"int": Step(7, 1), "long long": Step(19, 1)},
        with_number={"int": Step(6, 1), "long long": Step(17, 1)},
    ),
    Operation("SUBTRACT", "sub", "Sub", np.subtract, _SUM, with_number=_SUM_WITH, assembly=True),
    # ESTIMATE: one load more
    Operation(
        "VARIANCE_TO_INV_STD_DEV",
        "varianceToInvStdDev",
        "VarianceToInvStdDev",
        as_float(values.variance_to_inverse_deviation),
        floats(Step(13, 2), Step(25, 4)),
        with_number=floats(Step(12, 2), Step(24, 4)),
    ),
)

# PopLibs lib/popops/popopsCycleEstimators.cpp, clampCycles and selectCycles; the vertices add a
# call and 6 cycles a region.
TERNARY: Table = table(
    Operation(
        "CLAMP",
        "clamp",
        "Clamp",
        values.clamp,
        {"float": Step(2, 0), "half": Step(2, 0), "int": Step(7, 1)},
        flops=2,
    ),
    Operation(
        "SELECT",
        "select",
        "Select",
        values.select,
        floats(Step(5, 1), Step(5, 1)) | whole(5, 5) | {"bool": Step(5, 1)},
        predicate=True,
        flops=0,
    ),
)


BY_OPERANDS: dict[int, Table] = {1: UNARY, 2: BINARY, 3: TERNARY}
