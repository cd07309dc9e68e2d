"""Expressions on the elements of tensors (popops::expr).

`_1 + Tanh(_2) * 3` is an expression: `_1` stands for the first tensor that `popops.map` is given.
Numbers become constants of the type of what they are combined with. C++'s `&&`, `||` and `!` are
`And`, `Or` and `Not` here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import index as whole_number

import numpy as np

from simulator.codelets.operation import Operation
from simulator.codelets.operations import BINARY, TERNARY, UNARY
from simulator.graph.errors import poplibs_error
from simulator.graph.types import (
    BOOL,
    FLOAT,
    HALF,
    INT,
    UNSIGNED_INT,
    Type,
    checked_type,
    checked_values,
)
from simulator.poplibs.popops.op_types import BinaryOpType as BinaryOpType
from simulator.poplibs.popops.op_types import OpType
from simulator.poplibs.popops.op_types import TernaryOpType as TernaryOpType
from simulator.poplibs.popops.op_types import UnaryOpType as UnaryOpType


class Expr:
    """An expression; Python's operators on it make larger ones."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise poplibs_error(f"expression {self} has no truth value; And, Or and Not combine them")

    def __neg__(self) -> Expr:
        return Neg(self)

    def __invert__(self) -> Expr:
        return BitwiseNot(self)

    def __abs__(self) -> Expr:
        return Abs(self)

    def __add__(self, other: Term) -> Expr:
        return Add(self, other)

    def __radd__(self, other: Term) -> Expr:
        return Add(other, self)

    def __sub__(self, other: Term) -> Expr:
        return Sub(self, other)

    def __rsub__(self, other: Term) -> Expr:
        return Sub(other, self)

    def __mul__(self, other: Term) -> Expr:
        return Mul(self, other)

    def __rmul__(self, other: Term) -> Expr:
        return Mul(other, self)

    def __truediv__(self, other: Term) -> Expr:
        return Divide(self, other)

    def __rtruediv__(self, other: Term) -> Expr:
        return Divide(other, self)

    def __mod__(self, other: Term) -> Expr:
        return Rem(self, other)

    def __rmod__(self, other: Term) -> Expr:
        return Rem(other, self)

    def __pow__(self, other: Term) -> Expr:
        return Pow(self, other)

    def __rpow__(self, other: Term) -> Expr:
        return Pow(other, self)

    def __and__(self, other: Term) -> Expr:
        return BitwiseAnd(self, other)

    def __rand__(self, other: Term) -> Expr:
        return BitwiseAnd(other, self)

    def __or__(self, other: Term) -> Expr:
        return BitwiseOr(self, other)

    def __ror__(self, other: Term) -> Expr:
        return BitwiseOr(other, self)

    def __xor__(self, other: Term) -> Expr:
        return BitwiseXor(self, other)

    def __rxor__(self, other: Term) -> Expr:
        return BitwiseXor(other, self)

    def __lshift__(self, other: Term) -> Expr:
        return Shl(self, other)

    def __rlshift__(self, other: Term) -> Expr:
        return Shl(other, self)

    def __rshift__(self, other: Term) -> Expr:
        return Shr(self, other)

    def __rrshift__(self, other: Term) -> Expr:
        return Shr(other, self)

    def __lt__(self, other: Term) -> Expr:
        return Lt(self, other)

    def __le__(self, other: Term) -> Expr:
        return Lte(self, other)

    def __gt__(self, other: Term) -> Expr:
        return Gt(self, other)

    def __ge__(self, other: Term) -> Expr:
        return Gte(self, other)

    def __eq__(self, other: Term) -> Expr:  # type: ignore[override]
        return Equal(self, other)

    def __ne__(self, other: Term) -> Expr:  # type: ignore[override]
        return NotEqual(self, other)

    __hash__ = object.__hash__


Term = Expr | float | int | bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(Expr):
    """A number; it takes the type of what it is combined with, else its own."""

    value: float | int | bool
    dtype: Type | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.value, int | float | np.number | np.bool_):
            raise poplibs_error(f"Const: value is {self.value!r}; a number is needed")
        checked_values(self.value, self.own_type, "Const", poplibs_error)

    @property
    def own_type(self) -> Type:
        """Return the type that was given, or C++'s of such a number."""
        if self.dtype is not None:
            return self.dtype
        whole = isinstance(self.value, int | np.integer)
        return BOOL if isinstance(self.value, bool | np.bool_) else INT if whole else FLOAT

    def __repr__(self) -> str:
        return f"{self.value:g}" if isinstance(self.value, float) else str(self.value)


def ConstHalf(value: float) -> Const:
    """Make a constant of type half."""
    return Const(value, HALF)


def ConstFloat(value: float) -> Const:
    """Make a constant of type float."""
    return Const(value, FLOAT)


def ConstInt(value: int) -> Const:
    """Make a constant of type int."""
    return Const(value, INT)


def ConstUnsignedInt(value: int) -> Const:
    """Make a constant of type unsigned int."""
    return Const(value, UNSIGNED_INT)


def ConstBool(value: bool) -> Const:
    """Make a constant truth value."""
    return Const(value, BOOL)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlaceHolder(Expr):
    """The element of a tensor, the first of which is number 1."""

    index: int

    def __post_init__(self) -> None:
        if whole_number(self.index) < 1:
            raise poplibs_error(f"PlaceHolder: index is {self.index}; the first tensor is 1")

    def __repr__(self) -> str:
        return f"_{self.index}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cast(Expr):
    """An expression's value in another type."""

    argument: Expr
    dtype: Type

    def __post_init__(self) -> None:
        checked_type(self.dtype, "Cast")
        object.__setattr__(self, "argument", term(self.argument))

    def __repr__(self) -> str:
        return f"Cast({self.argument!r},{self.dtype})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Operator(Expr):
    """An operator with its operands."""

    operation: Operation
    arguments: tuple[Expr, ...]

    def __repr__(self) -> str:
        return f"{self.operation.debug_name}({','.join(map(repr, self.arguments))})"


def term(value: Term) -> Expr:
    """Return an expression as it is, a number as a constant."""
    return value if isinstance(value, Expr) else Const(value)


def _unary(kind: str) -> Callable[[Term], Operator]:
    return lambda a: Operator(UNARY[kind], (term(a),))


def _binary(kind: str) -> Callable[[Term, Term], Operator]:
    return lambda a, b: Operator(BINARY[kind], (term(a), term(b)))


def _ternary(kind: str) -> Callable[[Term, Term, Term], Operator]:
    return lambda a, b, c: Operator(TERNARY[kind], (term(a), term(b), term(c)))


def UnaryOp(op: UnaryOpType, a: Term) -> Operator:
    """Make an operator with one operand by its name in PopLibs' enumeration."""
    return operator(op, a)


def BinaryOp(op: BinaryOpType, a: Term, b: Term) -> Operator:
    """Make an operator with two operands by its name in PopLibs' enumeration."""
    return operator(op, a, b)


def TernaryOp(op: TernaryOpType, a: Term, b: Term, c: Term) -> Operator:
    """Make an operator with three operands by its name in PopLibs' enumeration."""
    return operator(op, a, b, c)


def operator(op: OpType, *operands: Term) -> Operator:
    """Make an operator by its name; raises poplibs_error when it has not so many operands."""
    table = {1: UNARY, 2: BINARY, 3: TERNARY}[len(operands)]
    if not isinstance(op, OpType) or op.value not in table:
        raise poplibs_error(f"operator {op!r}: it is none with {len(operands)} operands")
    return Operator(table[op.value], tuple(map(term, operands)))


Abs = _unary("ABSOLUTE")
Asin = _unary("ASIN")
BitwiseNot = _unary("BITWISE_NOT")
Cbrt = _unary("CBRT")
Ceil = _unary("CEIL")
Cos = _unary("COS")
CountLeadingZeros = _unary("COUNT_LEADING_ZEROS")
Erf = _unary("ERF")
Exp = _unary("EXPONENT")
Expm1 = _unary("EXPONENT_MINUS_ONE")
Floor = _unary("FLOOR")
GeluErf = _unary("GELU_ERF")
Inv = _unary("INVERSE")
IsFinite = _unary("IS_FINITE")
IsInf = _unary("IS_INF")
IsNaN = _unary("IS_NAN")
Log = _unary("LOGARITHM")
Log1p = _unary("LOGARITHM_ONE_PLUS")
NearbyInt = _unary("NEARBY_INT")
Neg = _unary("NEGATE")
Not = _unary("LOGICAL_NOT")
Popcount = _unary("POPCOUNT")
Relu = _unary("RELU")
Round = _unary("ROUND")
Rsqrt = _unary("RSQRT")
Sigmoid = _unary("SIGMOID")
Signum = _unary("SIGNUM")
Sin = _unary("SIN")
Sqrt = _unary("SQRT")
Square = _unary("SQUARE")
Tan = _unary("TAN")
Tanh = _unary("TANH")
Trunc = _unary("TRUNC")

Add = _binary("ADD")
And = _binary("LOGICAL_AND")
Atan2 = _binary("ATAN2")
BitwiseAnd = _binary("BITWISE_AND")
BitwiseOr = _binary("BITWISE_OR")
BitwiseXnor = _binary("BITWISE_XNOR")
BitwiseXor = _binary("BITWISE_XOR")
Divide = _binary("DIVIDE")
Equal = _binary("EQUAL")
Gt = _binary("GREATER_THAN")
Gte = _binary("GREATER_THAN_EQUAL")
InvStdDevToVariance = _binary("INV_STD_DEV_TO_VARIANCE")
Lt = _binary("LESS_THAN")
Lte = _binary("LESS_THAN_EQUAL")
Max = _binary("MAXIMUM")
Min = _binary("MINIMUM")
Mul = _binary("MULTIPLY")
NotEqual = _binary("NOT_EQUAL")
Or = _binary("LOGICAL_OR")
Pow = _binary("POWER")
Rem = _binary("REMAINDER")
Shl = _binary("SHIFT_LEFT")
Shr = _binary("SHIFT_RIGHT")
ShrSE = _binary("SHIFT_RIGHT_SIGN_EXTEND")
Sub = _binary("SUBTRACT")
VarianceToInvStdDev = _binary("VARIANCE_TO_INV_STD_DEV")

Clamp = _ternary("CLAMP")
Select = _ternary("SELECT")

_1, _2, _3, _4, _5 = (PlaceHolder(index) for index in range(1, 6))
_6, _7, _8, _9, _10 = (PlaceHolder(index) for index in range(6, 11))
_11, _12, _13, _14, _15 = (PlaceHolder(index) for index in range(11, 16))
_16, _17, _18, _19, _20 = (PlaceHolder(index) for index in range(16, 21))
