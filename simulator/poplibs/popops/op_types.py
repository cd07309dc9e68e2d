"""PopLibs' enumerations of operators (popops/ExprOp.hpp); a member's value is its name."""

from __future__ import annotations

from enum import Enum


class UnaryOpType(Enum):
    """Operators with one operand."""

    ABSOLUTE = "ABSOLUTE"
    ASIN = "ASIN"
    BITWISE_NOT = "BITWISE_NOT"
    CBRT = "CBRT"
    CEIL = "CEIL"
    COS = "COS"
    COUNT_LEADING_ZEROS = "COUNT_LEADING_ZEROS"
    ERF = "ERF"
    EXPONENT = "EXPONENT"
    EXPONENT_MINUS_ONE = "EXPONENT_MINUS_ONE"
    FLOOR = "FLOOR"
    GELU_ERF = "GELU_ERF"
    INVERSE = "INVERSE"
    IS_FINITE = "IS_FINITE"
    IS_INF = "IS_INF"
    IS_NAN = "IS_NAN"
    LOGARITHM = "LOGARITHM"
    LOGARITHM_ONE_PLUS = "LOGARITHM_ONE_PLUS"
    LOGICAL_NOT = "LOGICAL_NOT"
    NEARBY_INT = "NEARBY_INT"
    NEGATE = "NEGATE"
    POPCOUNT = "POPCOUNT"
    RELU = "RELU"
    ROUND = "ROUND"
    RSQRT = "RSQRT"
    SIGMOID = "SIGMOID"
    SIGNUM = "SIGNUM"
    SIN = "SIN"
    SQRT = "SQRT"
    SQUARE = "SQUARE"
    TAN = "TAN"
    TANH = "TANH"
    TRUNC = "TRUNC"


class BinaryOpType(Enum):
    """Operators with two operands."""

    ADD = "ADD"
    ATAN2 = "ATAN2"
    BITWISE_AND = "BITWISE_AND"
    BITWISE_OR = "BITWISE_OR"
    BITWISE_XNOR = "BITWISE_XNOR"
    BITWISE_XOR = "BITWISE_XOR"
    DIVIDE = "DIVIDE"
    EQUAL = "EQUAL"
    GREATER_THAN = "GREATER_THAN"
    GREATER_THAN_EQUAL = "GREATER_THAN_EQUAL"
    INV_STD_DEV_TO_VARIANCE = "INV_STD_DEV_TO_VARIANCE"
    LESS_THAN = "LESS_THAN"
    LESS_THAN_EQUAL = "LESS_THAN_EQUAL"
    LOGICAL_AND = "LOGICAL_AND"
    LOGICAL_OR = "LOGICAL_OR"
    MAXIMUM = "MAXIMUM"
    MINIMUM = "MINIMUM"
    MULTIPLY = "MULTIPLY"
    NOT_EQUAL = "NOT_EQUAL"
    POWER = "POWER"
    REMAINDER = "REMAINDER"
    SHIFT_LEFT = "SHIFT_LEFT"
    SHIFT_RIGHT = "SHIFT_RIGHT"
    SHIFT_RIGHT_SIGN_EXTEND = "SHIFT_RIGHT_SIGN_EXTEND"
    SUBTRACT = "SUBTRACT"
    VARIANCE_TO_INV_STD_DEV = "VARIANCE_TO_INV_STD_DEV"


class TernaryOpType(Enum):
    """Operators with three operands."""

    CLAMP = "CLAMP"
    SELECT = "SELECT"


OpType = UnaryOpType | BinaryOpType | TernaryOpType
OPERANDS: dict[type, int] = {UnaryOpType: 1, BinaryOpType: 2, TernaryOpType: 3}
