"""Expressions on the elements of tensors (popops::expr).

`_1 + Tanh(_2) * 3` is an expression: `_1` stands for the first tensor that `popops.map` is given.
Numbers become constants of the type of what they are combined with. C++'s `&&`, `||` and `!` are
`And`, `Or` and `Not` here.
"""

from __future__ import annotations

from simulator.codelets.elementwise.operations import BY_OPERANDS
from simulator.poplibs.popops.elementwise.expression import BinaryOp as BinaryOp
from simulator.poplibs.popops.elementwise.expression import Cast as Cast
from simulator.poplibs.popops.elementwise.expression import Const as Const
from simulator.poplibs.popops.elementwise.expression import ConstBool as ConstBool
from simulator.poplibs.popops.elementwise.expression import ConstFloat as ConstFloat
from simulator.poplibs.popops.elementwise.expression import ConstHalf as ConstHalf
from simulator.poplibs.popops.elementwise.expression import ConstInt as ConstInt
from simulator.poplibs.popops.elementwise.expression import ConstUnsignedInt as ConstUnsignedInt
from simulator.poplibs.popops.elementwise.expression import Expr as Expr
from simulator.poplibs.popops.elementwise.expression import Operator as Operator
from simulator.poplibs.popops.elementwise.expression import PlaceHolder as PlaceHolder
from simulator.poplibs.popops.elementwise.expression import Term as Term
from simulator.poplibs.popops.elementwise.expression import TernaryOp as TernaryOp
from simulator.poplibs.popops.elementwise.expression import UnaryOp as UnaryOp
from simulator.poplibs.popops.elementwise.expression import function_of
from simulator.poplibs.popops.elementwise.expression import operator as operator
from simulator.poplibs.popops.elementwise.expression import term as term
from simulator.poplibs.popops.op_types import BinaryOpType as BinaryOpType
from simulator.poplibs.popops.op_types import TernaryOpType as TernaryOpType
from simulator.poplibs.popops.op_types import UnaryOpType as UnaryOpType

# Abs, Add, Select, ...: one function for each operator. `expr.pyi` lists them (`make documents`).
globals().update(
    (entry.expression, function_of(entry, operands))
    for operands, operations in BY_OPERANDS.items()
    for entry in operations.values()
)

_1, _2, _3, _4, _5 = (PlaceHolder(index) for index in range(1, 6))
_6, _7, _8, _9, _10 = (PlaceHolder(index) for index in range(6, 11))
_11, _12, _13, _14, _15 = (PlaceHolder(index) for index in range(11, 16))
_16, _17, _18, _19, _20 = (PlaceHolder(index) for index in range(16, 21))
