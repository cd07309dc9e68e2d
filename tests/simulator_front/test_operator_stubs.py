"""What type checkers read of the operators is what the table makes."""

from __future__ import annotations

import ast

import pytest

from simulator.poplibs.popops import expr, operators
from tools.operator_stubs import FOLDER, STUBS


@pytest.mark.parametrize("stub", STUBS)
def test_a_stub_is_what_the_table_says(stub: str) -> None:
    written = (FOLDER / stub).read_text(encoding="utf-8")
    assert written == STUBS[stub](), "write it again: make documents"


def names_in(stub: str) -> set[str]:
    """Return the names that a stub declares or hands on."""
    names: set[str] = set()
    for node in ast.parse(STUBS[stub]()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
    return names


@pytest.mark.parametrize(("stub", "module"), [("expr.pyi", expr), ("operators.pyi", operators)])
def test_a_stub_has_the_names_of_its_module_and_no_others(stub: str, module: object) -> None:
    public = {name for name in vars(module) if not name.startswith("_") or name[1:].isdigit()}
    internal = {"annotations", "BY_OPERANDS", "function_of", "entry", "operands", "operations"}
    assert names_in(stub) == public - internal


def test_what_gives_truth_values_of_numbers_is_not_in_place() -> None:
    assert hasattr(operators, "isNaN") and not hasattr(operators, "isNaNInPlace")
    assert hasattr(operators, "eqInPlace") and hasattr(operators, "logicalNotInPlace")
