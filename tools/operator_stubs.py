"""Write the stubs of what is made from the table of operators: `python -m tools.operator_stubs`.

Type checkers and editors read them; a test compares them with this.
"""

from __future__ import annotations

from pathlib import Path

from simulator.codelets.elementwise.operations import BY_OPERANDS

FOLDER = Path(__file__).parents[1] / "simulator/poplibs/popops"
POPOPS = "simulator.poplibs.popops"
# Of enumerations and of functions, by the number of operands.
ENUMERATIONS = {1: "UnaryOpType", 2: "BinaryOpType", 3: "TernaryOpType"}
PROTOCOLS = {1: "Unary", 2: "Binary", 3: "Ternary"}
EXPRESSIONS = (
    *("BinaryOp", "Cast", "Const", "ConstBool", "ConstFloat", "ConstHalf", "ConstInt"),
    *("ConstUnsignedInt", "Expr", "Operator", "PlaceHolder", "Term", "TernaryOp", "UnaryOp"),
    *("operator", "term"),
)


def op_types() -> str:
    """Return the stub of the enumerations."""
    lines = ["from enum import Enum", ""]
    for operands, name in ENUMERATIONS.items():
        lines += [f"class {name}(Enum):"]
        lines += [f'    {kind} = "{kind}"' for kind in BY_OPERANDS[operands]] + [""]
    lines += [f"OpType = {' | '.join(ENUMERATIONS.values())}", "OPERANDS: dict[type, int]"]
    return _page(lines)


def expr() -> str:
    """Return the stub of the expressions."""
    lines = [
        f"from {POPOPS}.elementwise.expression import {name} as {name}" for name in EXPRESSIONS
    ]
    lines += [
        f"from {POPOPS}.op_types import {name} as {name}" for name in sorted(ENUMERATIONS.values())
    ] + [""]
    for operands, operations in BY_OPERANDS.items():
        arguments = ", ".join(f"{name}: Term" for name in "abc"[:operands])
        lines += [f"def {e.expression}({arguments}) -> Operator: ..." for e in operations.values()]
    return _page([*lines, "", *(f"_{index}: PlaceHolder" for index in range(1, 21))])


def operators() -> str:
    """Return the stub of the functions."""
    names = sorted([*PROTOCOLS.values(), *(f"{name}To" for name in PROTOCOLS.values())])
    lines = [
        "from simulator.graph.tensors.tensor import Tensor",
        f"from {POPOPS}.elementwise.operator_functions import (",
        *(f"    {name}," for name in names),
        ")",
        "",
    ]
    for operands, operations in BY_OPERANDS.items():
        protocol = PROTOCOLS[operands]
        for entry in operations.values():
            name = entry.function
            lines += [f"{name}: {protocol}[Tensor]"]
            lines += [f"{name}InPlace: {protocol}[None]"] if entry.replaces else []
            lines += [f"{name}WithOutput: {protocol}To"]
    return _page([*lines, "absolute: Unary[Tensor]"])


def _page(lines: list[str]) -> str:
    return (
        "\n".join(
            [
                "# Written by `make documents` from simulator/codelets/elementwise/operations.py.",
                *lines,
            ]
        )
        + "\n"
    )


STUBS = {"expr.pyi": expr, "op_types.pyi": op_types, "operators.pyi": operators}

if __name__ == "__main__":
    for file, stub in STUBS.items():
        (FOLDER / file).write_text(stub(), encoding="utf-8")
