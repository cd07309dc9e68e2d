"""What expressions on the elements of tensors are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import index as whole_number

import numpy as np

from simulator.codelets.elementwise.operation import Operation
from simulator.codelets.elementwise.operations import BY_OPERANDS
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
from simulator.poplibs.popops.op_types import BinaryOpType, OpType, TernaryOpType, UnaryOpType


class Expr:
    """An expression; Python's operators on it make larger ones.

    >>> from simulator.poplibs.popops import expr
    >>> expr._1 + 2 * expr._2
    Add(_1,Multiply(2,_2))
    """

    __slots__ = ()

    def deepEquals(self, other: Expr) -> bool:
        """Return whether two expressions are the same, operand by operand.

        >>> from simulator.poplibs.popops import expr
        >>> (expr._1 + 1).deepEquals(expr._1 + 1), (expr._1 + 1).deepEquals(1 + expr._1)
        (True, False)
        """
        return type(self) is type(other) and self._key() == other._key()

    def _key(self) -> tuple[object, ...]:
        """Return what tells an expression from others of its kind."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise poplibs_error(f"expression {self} has no truth value; And, Or and Not combine them")

    def __neg__(self) -> Expr:
        return operate("NEGATE", self)

    def __invert__(self) -> Expr:
        return operate("BITWISE_NOT", self)

    def __abs__(self) -> Expr:
        return operate("ABSOLUTE", self)

    def __add__(self, operand: Term) -> Expr:
        return operate("ADD", self, operand)

    def __radd__(self, operand: Term) -> Expr:
        return operate("ADD", operand, self)

    def __sub__(self, operand: Term) -> Expr:
        return operate("SUBTRACT", self, operand)

    def __rsub__(self, operand: Term) -> Expr:
        return operate("SUBTRACT", operand, self)

    def __mul__(self, operand: Term) -> Expr:
        return operate("MULTIPLY", self, operand)

    def __rmul__(self, operand: Term) -> Expr:
        return operate("MULTIPLY", operand, self)

    def __truediv__(self, operand: Term) -> Expr:
        return operate("DIVIDE", self, operand)

    def __rtruediv__(self, operand: Term) -> Expr:
        return operate("DIVIDE", operand, self)

    def __mod__(self, operand: Term) -> Expr:
        return operate("REMAINDER", self, operand)

    def __rmod__(self, operand: Term) -> Expr:
        return operate("REMAINDER", operand, self)

    def __pow__(self, operand: Term) -> Expr:
        return operate("POWER", self, operand)

    def __rpow__(self, operand: Term) -> Expr:
        return operate("POWER", operand, self)

    def __and__(self, operand: Term) -> Expr:
        return operate("BITWISE_AND", self, operand)

    def __rand__(self, operand: Term) -> Expr:
        return operate("BITWISE_AND", operand, self)

    def __or__(self, operand: Term) -> Expr:
        return operate("BITWISE_OR", self, operand)

    def __ror__(self, operand: Term) -> Expr:
        return operate("BITWISE_OR", operand, self)

    def __xor__(self, operand: Term) -> Expr:
        return operate("BITWISE_XOR", self, operand)

    def __rxor__(self, operand: Term) -> Expr:
        return operate("BITWISE_XOR", operand, self)

    def __lshift__(self, operand: Term) -> Expr:
        return operate("SHIFT_LEFT", self, operand)

    def __rlshift__(self, operand: Term) -> Expr:
        return operate("SHIFT_LEFT", operand, self)

    def __rshift__(self, operand: Term) -> Expr:
        return operate("SHIFT_RIGHT", self, operand)

    def __rrshift__(self, operand: Term) -> Expr:
        return operate("SHIFT_RIGHT", operand, self)

    def __lt__(self, operand: Term) -> Expr:
        return operate("LESS_THAN", self, operand)

    def __le__(self, operand: Term) -> Expr:
        return operate("LESS_THAN_EQUAL", self, operand)

    def __gt__(self, operand: Term) -> Expr:
        return operate("GREATER_THAN", self, operand)

    def __ge__(self, operand: Term) -> Expr:
        return operate("GREATER_THAN_EQUAL", self, operand)

    def __eq__(self, operand: Term) -> Expr:  # type: ignore[override]
        return operate("EQUAL", self, operand)

    def __ne__(self, operand: Term) -> Expr:  # type: ignore[override]
        return operate("NOT_EQUAL", self, operand)

    __hash__ = object.__hash__


Term = Expr | float | int | bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(Expr):
    """A number; it takes the type of what it is combined with, else its own.

    >>> from simulator.poplibs.popops import expr
    >>> expr._1 * expr.Const(0.5)
    Multiply(_1,0.5)
    """

    value: float | int | bool
    dtype: Type | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.value, int | float | np.number | np.bool_):
            raise poplibs_error(f"Const: value is {self.value!r}; a number is needed")
        checked_values(self.value, self.own_type, "Const", poplibs_error)

    @property
    def own_type(self) -> Type:
        """Return the type that was given, or C++'s of such a number.

        >>> from simulator.poplibs.popops import expr
        >>> [expr.Const(value).own_type.name for value in (1, 1.0, True)]
        ['int', 'float', 'bool']
        """
        if self.dtype is not None:
            return self.dtype
        is_integer = isinstance(self.value, int | np.integer)
        return BOOL if isinstance(self.value, bool | np.bool_) else INT if is_integer else FLOAT

    def __repr__(self) -> str:
        return f"{self.value:g}" if isinstance(self.value, float) else str(self.value)

    def printValue(self) -> str:
        """Write the number in digits that lead back to it.

        >>> from simulator.poplibs.popops import expr
        >>> expr.Const(0.5).printValue(), expr.Const(True).printValue()
        ('0.5', 'true')
        """
        if self.own_type.numpy.kind == "f":
            return str(np.float32(self.value))
        return str(self.value).lower()

    def _key(self) -> tuple[object, ...]:
        return self.own_type, self.value


def ConstHalf(value: float) -> Const:
    """Make a constant of type half.

    >>> from simulator.poplibs.popops import expr
    >>> expr.ConstHalf(0.5).own_type.name
    'half'
    """
    return Const(value, HALF)


def ConstFloat(value: float) -> Const:
    """Make a constant of type float.

    >>> from simulator.poplibs.popops import expr
    >>> expr.ConstFloat(0.5).own_type.name
    'float'
    """
    return Const(value, FLOAT)


def ConstInt(value: int) -> Const:
    """Make a constant of type int.

    >>> from simulator.poplibs.popops import expr
    >>> expr.ConstInt(2).own_type.name
    'int'
    """
    return Const(value, INT)


def ConstUnsignedInt(value: int) -> Const:
    """Make a constant of type unsigned int.

    >>> from simulator.poplibs.popops import expr
    >>> expr.ConstUnsignedInt(2).own_type.name
    'unsigned int'
    """
    return Const(value, UNSIGNED_INT)


def ConstBool(value: bool) -> Const:
    """Make a constant truth value.

    >>> from simulator.poplibs.popops import expr
    >>> expr.ConstBool(True).own_type.name
    'bool'
    """
    return Const(value, BOOL)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlaceHolder(Expr):
    """The element of a tensor, the first of which is number 1.

    >>> from simulator.poplibs.popops import expr
    >>> expr.PlaceHolder(1) - expr.PlaceHolder(2)
    Subtract(_1,_2)
    """

    index: int

    def __post_init__(self) -> None:
        if whole_number(self.index) < 1:
            raise poplibs_error(f"PlaceHolder: index is {self.index}; the first tensor is 1")

    def __repr__(self) -> str:
        return f"_{self.index}"

    def _key(self) -> tuple[object, ...]:
        return (self.index,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cast(Expr):
    """An expression's value in another type.

    >>> from simulator.poplibs.popops import expr
    >>> from simulator.poplar import HALF
    >>> expr.Cast(expr._1, HALF)
    Cast(_1,half)
    """

    argument: Expr
    dtype: Type

    def __post_init__(self) -> None:
        checked_type(self.dtype, "Cast")
        object.__setattr__(self, "argument", term(self.argument))

    def __repr__(self) -> str:
        return f"Cast({self.argument!r},{self.dtype})"

    def _key(self) -> tuple[object, ...]:
        return self.dtype, type(self.argument), self.argument._key()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Operator(Expr):
    """An operator with its operands.

    >>> from simulator.poplibs.popops import expr
    >>> (expr._1 + 1).arguments
    (_1, 1)
    """

    operation: Operation
    arguments: tuple[Expr, ...]

    def __repr__(self) -> str:
        return f"{self.operation.debug_name}({','.join(map(repr, self.arguments))})"

    def _key(self) -> tuple[object, ...]:
        arguments = ((type(argument), argument._key()) for argument in self.arguments)
        return self.operation.name, *arguments


def term(value: Term) -> Expr:
    """Return an expression as it is, a number as a constant.

    >>> from simulator.poplibs.popops import expr
    >>> expr.term(3), expr.term(expr._1)
    (3, _1)
    """
    return value if isinstance(value, Expr) else Const(value)


# The example of a function: tensors of the operands that the row shows, and the row's result.
_EXAMPLE = """
    >>> from simulator import popops
    >>> from simulator.poplibs.popops import expr
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> operands = [{tensors}]
    >>> expression = expr.{name}({places})
    >>> trial.values(popops.map(trial.graph, expression, operands, trial.prog))
    {result}
    """


def _example(operation: Operation) -> str:
    *values, result = operation.example
    return _EXAMPLE.format(
        name=operation.expression,
        tensors=", ".join(f"trial.tensor({value})" for value in values),
        places=", ".join(f"expr._{number + 1}" for number in range(len(values))),
        result=result,
    )


def function_of(operation: Operation, operands: int) -> Callable[..., Operator]:
    """Return the function that makes an operator of operands."""

    def one(a: Term) -> Operator:
        return Operator(operation, (term(a),))

    def two(a: Term, b: Term) -> Operator:
        return Operator(operation, (term(a), term(b)))

    def three(a: Term, b: Term, c: Term) -> Operator:
        return Operator(operation, (term(a), term(b), term(c)))

    functions: tuple[Callable[..., Operator], ...] = (one, two, three)
    function = functions[operands - 1]
    function.__name__ = function.__qualname__ = operation.expression
    function.__doc__ = f"Make the operator {operation.debug_name}.\n{_example(operation)}"
    return function


def operate(kind: str, *operands: Term) -> Operator:
    """Return an operator on operands by its name in PopLibs' enumeration."""
    return Operator(BY_OPERANDS[len(operands)][kind], tuple(map(term, operands)))


def UnaryOp(op: UnaryOpType, a: Term) -> Operator:
    """Make an operator with one operand by its name in PopLibs' enumeration.

    >>> from simulator.poplibs.popops import expr
    >>> expr.UnaryOp(expr.UnaryOpType.SQRT, expr._1)
    Sqrt(_1)
    """
    return operator(op, a)


def BinaryOp(op: BinaryOpType, a: Term, b: Term) -> Operator:
    """Make an operator with two operands by its name in PopLibs' enumeration.

    >>> from simulator.poplibs.popops import expr
    >>> expr.BinaryOp(expr.BinaryOpType.MAXIMUM, expr._1, 0)
    Maximum(_1,0)
    """
    return operator(op, a, b)


def TernaryOp(op: TernaryOpType, a: Term, b: Term, c: Term) -> Operator:
    """Make an operator with three operands by its name in PopLibs' enumeration.

    >>> from simulator.poplibs.popops import expr
    >>> expr.TernaryOp(expr.TernaryOpType.CLAMP, expr._1, 0, 1)
    Clamp(_1,0,1)
    """
    return operator(op, a, b, c)


def operator(op: OpType, *operands: Term) -> Operator:
    """Make an operator by its name; raises poplibs_error when it has not so many operands.

    >>> from simulator.poplibs.popops import expr
    >>> expr.operator(expr.UnaryOpType.SQRT, expr._1)
    Sqrt(_1)
    """
    if not isinstance(op, OpType) or op.value not in BY_OPERANDS[len(operands)]:
        raise poplibs_error(f"operator {op!r}: it is none with {len(operands)} operands")
    return operate(op.value, *operands)
