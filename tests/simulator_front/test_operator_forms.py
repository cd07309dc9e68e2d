"""The other forms of PopLibs' functions: operators by name, fills of compute sets, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram

from simulator import popops
from simulator.codelets.elementwise.operations import BINARY, TERNARY, UNARY
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.program import Execute
from simulator.graph.types import BOOL, FLOAT, INT
from simulator.poplibs.popops.expr import (
    BinaryOp,
    BinaryOpType,
    TernaryOp,
    TernaryOpType,
    UnaryOp,
    UnaryOpType,
    _1,
    _2,
)


def test_every_operator_is_a_member_of_its_enumeration() -> None:
    for enumeration, table in (
        (UnaryOpType, UNARY),
        (BinaryOpType, BINARY),
        (TernaryOpType, TERNARY),
    ):
        assert {item.value for item in enumeration} == {*table}
        assert all(item.name == item.value for item in enumeration)


def test_map_takes_operators_by_name() -> None:
    run = DeviceProgram()
    a, b = np.arange(1, 13, dtype=np.float32), np.arange(12, 0, -1, dtype=np.float32)
    left, right = run.tensor(a), run.tensor(b)
    chosen = run.tensor(a > 6, BOOL)
    root = popops.map(run.graph, UnaryOpType.SQRT, left, run.program, "root")
    most = popops.map(run.graph, BinaryOpType.MAXIMUM, left, right, run.program)
    pick = popops.map(run.graph, TernaryOpType.SELECT, left, right, chosen, run.program)
    popops.mapInPlace(run.graph, BinaryOpType.SUBTRACT, left, right, run.program)
    roots, larger, picked, less = run.run(root, most, pick, left)
    np.testing.assert_allclose(roots, np.sqrt(a), rtol=1e-6)
    np.testing.assert_array_equal(larger, np.maximum(a, b))
    np.testing.assert_array_equal(picked, np.where(a > 6, a, b))
    np.testing.assert_array_equal(less, a - b)


def test_operators_by_name_are_parts_of_expressions() -> None:
    run, a = DeviceProgram(), np.arange(8, dtype=np.float32)
    expression = BinaryOp(BinaryOpType.ADD, UnaryOp(UnaryOpType.SQUARE, _1), 3)
    expression = TernaryOp(TernaryOpType.CLAMP, expression, 5, _2)
    most = run.tensor(np.full(8, 30.0))
    out = popops.map(run.graph, expression, [run.tensor(a), most], run.program)
    (found,) = run.run(out)
    np.testing.assert_array_equal(found, np.clip(a * a + 3, 5, 30))


def test_an_operator_with_other_operands_is_refused() -> None:
    run = DeviceProgram()
    tensor = run.tensor(np.zeros(4))
    operator: Any = BinaryOpType.ADD
    with pytest.raises(poplibs_error, match="ADD.*: it is none with 1 operands"):
        UnaryOp(operator, _1)
    with pytest.raises(PoplarError, match="map: takes a, b, prog"):
        popops.map(run.graph, operator, tensor, run.program)


@pytest.mark.parametrize(("on", "off"), [(1.5, -2.0), (0.0, 7.0)])
def test_select_chooses_between_tensors_and_numbers(on: float, off: float) -> None:
    run = DeviceProgram()
    mask = np.random.default_rng(0).random((5, 7)) < 0.5
    values = np.random.default_rng(1).standard_normal((5, 7)).astype(np.float32)
    which, tensor = run.tensor(mask, BOOL), run.tensor(values)
    numbers = popops.select(run.graph, on, off, which, run.program)
    mixed = popops.select(run.graph, tensor, off, which, run.program)
    rows = popops.select(run.graph, tensor, numbers, which[:, :1], run.program)
    popops.selectInPlace(run.graph, tensor, numbers, which, run.program)
    found = run.run(numbers, mixed, rows, tensor)
    expected = [np.where(mask, on, off), np.where(mask, values, off)]
    expected += [np.where(mask[:, :1], values, expected[0]), np.where(mask, values, expected[0])]
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, wanted.astype(np.float32))


def test_fills_go_to_a_given_compute_set() -> None:
    run = DeviceProgram(4)
    first, second, third = (run.tensor(np.arange(128.0) + 1, name=name) for name in "abc")
    compute_set = run.graph.addComputeSet("fills")
    popops.fill(run.graph, first, run.graph.getTileMapping(first), compute_set, 2.5)
    popops.zero(run.graph, second, 1, compute_set)
    popops.fill(run.graph, third, [(3, 5), (40, 44)], 2, compute_set, -1)
    popops.zero(run.graph, third, [(100, 101)], 3, compute_set)
    run.program.add(Execute(compute_set))
    mapping = run.graph.getTileMapping(second)[1]
    found = run.run(first, second, third)
    expected = [np.arange(128.0) + 1 for _ in range(3)]
    expected[0][:] = 2.5
    for low, high in mapping:
        expected[1][low:high] = 0
    expected[2][3:5] = expected[2][40:44] = -1
    expected[2][100] = 0
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, wanted)
    assert [c.name for c in run.graph.compute_sets] == ["fills"]


def test_what_a_fill_cannot_hold_is_refused_by_the_name_of_its_compute_set() -> None:
    run = DeviceProgram()
    tensor = run.tensor(np.zeros(4), INT)
    compute_set = run.graph.addComputeSet("fills")
    with pytest.raises(poplibs_error, match="fills: value 0.5"):
        popops.fill(run.graph, tensor, 0, compute_set, 0.5)
    wrong: Any = run.program
    with pytest.raises(PoplarError, match="a compute set is needed"):
        popops.zero(run.graph, tensor, 0, wrong)
    assert tensor.dtype == INT != FLOAT
