"""PopLibs' enumerations of operators (popops/ExprOp.hpp); a member's value is its name.

They have the operators of `simulator.codelets.elementwise.operations`. `op_types.pyi` lists them
(`make documents`).
"""

from __future__ import annotations

from enum import Enum

from simulator.codelets.elementwise.operation import Table
from simulator.codelets.elementwise.operations import BINARY, TERNARY, UNARY


def _enumeration(name: str, operations: Table, does: str) -> type[Enum]:
    """Return an enumeration of operators."""
    members = Enum(name, {kind: kind for kind in operations}, module=__name__)  # type: ignore[misc]
    members.__doc__ = does
    return members


UnaryOpType = _enumeration("UnaryOpType", UNARY, "Operators with one operand.")
BinaryOpType = _enumeration("BinaryOpType", BINARY, "Operators with two operands.")
TernaryOpType = _enumeration("TernaryOpType", TERNARY, "Operators with three operands.")

OpType = UnaryOpType | BinaryOpType | TernaryOpType
OPERANDS: dict[type, int] = {UnaryOpType: 1, BinaryOpType: 2, TernaryOpType: 3}
