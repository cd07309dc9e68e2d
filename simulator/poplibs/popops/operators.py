"""The operators under PopLibs' names: a new result, in place of the first operand, to an output.

Operands are broadcast by NumPy's rules; all but one of them may be numbers. There are three
functions for each operator of `simulator.codelets.elementwise.operations`; `operators.pyi` lists
them (`make documents`).
"""

from __future__ import annotations

from simulator.codelets.elementwise.operations import BINARY as _BINARY
from simulator.codelets.elementwise.operations import TERNARY as _TERNARY
from simulator.codelets.elementwise.operations import UNARY as _UNARY
from simulator.poplibs.popops.elementwise.operator_functions import binary as _binary
from simulator.poplibs.popops.elementwise.operator_functions import ternary as _ternary
from simulator.poplibs.popops.elementwise.operator_functions import unary as _unary

for _make, _operations in ((_unary, _UNARY), (_binary, _BINARY), (_ternary, _TERNARY)):
    for _operation in _operations.values():
        globals().update(_make(_operation))

absolute = globals()["abs"]  # where Python's own would be hidden
