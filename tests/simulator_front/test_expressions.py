"""Expressions: one vertex type for all their operations, and the values of each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator import poplar
from simulator.codelets.elementwise.fused import fused
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import BOOL, FLOAT, HALF, INT
from simulator.poplibs import popops, poputil
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import Cast, Const, ConstHalf, Select, _1, _2, _3

SEPARATE = {"enableGenerateCodelet": False}


def run(expression: Any, *arrays: Any, options: Any = None) -> tuple[Any, list[str]]:
    """Return the values of an expression and the names of the vertex types that computed it."""
    values = Values()
    kinds = {"f": FLOAT, "i": INT, "b": BOOL}
    tensors = [
        values.tensor(a, dtype=HALF if a.itemsize == 2 else kinds[a.dtype.kind]) for a in arrays
    ]
    out = popops.map(values.graph, expression, tensors, values.program, "net", options)
    found = values.run().read(out)
    assert len(values.graph.compute_sets) == len(values.program.children)
    return found, [group.codelet.name for group in values.graph.vertex_groups()]


def test_an_expression_is_one_compute_set_with_one_vertex_type() -> None:
    a, b = numbers(7, 30), numbers(30, seed=1)
    found, names = run(_1 + expr.Tanh(_2) * Const(2), a, b)
    tangents = np.tanh(b.astype(float)).astype(np.float32)  # rounded once
    np.testing.assert_array_equal(found, a + tangents * np.float32(2))
    assert names == ["popops::Fused1DSupervisor<Add(in1,Multiply(Tanh(in2),2)),float>"]


def test_one_operation_has_its_own_vertices() -> None:
    a = numbers(30)
    found, names = run(_1 * 3, a)
    np.testing.assert_array_equal(found, a * 3)
    assert names == [
        "popops::BroadcastScalar1DSupervisor<popops::expr::BinaryOpType::MULTIPLY,float>"
    ]


# Trees over three floats; every operation takes floats and gives floats.
LEAVES = st.sampled_from([_1, _2, _3, Const(2.0), Const(-0.5), Const(1.25)])
UNARY = [expr.Neg, expr.Abs, expr.Tanh, expr.Sigmoid, expr.Square, expr.Floor, expr.Relu, expr.Cos]
BINARY = [expr.Add, expr.Sub, expr.Mul, expr.Max, expr.Min, expr.Atan2]


def _grown(children: Any) -> Any:
    one = st.builds(lambda f, a: f(a), st.sampled_from(UNARY), children)
    two = st.builds(lambda f, a, b: f(a, b), st.sampled_from(BINARY), children, children)
    chosen = st.builds(lambda a, b, c: Select(a, b, c > a), children, children, children)
    bounded = st.builds(lambda a: expr.Clamp(a, -1.0, Const(1.0)), children)
    rounded = st.builds(lambda a: Cast(Cast(a + _1, HALF), FLOAT), children)
    return one | two | chosen | bounded | rounded


TREES = st.recursive(LEAVES, _grown, max_leaves=8)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_fused_and_separate_operations_give_the_same_values(tree: Any) -> None:
    arrays = [numbers(4, 5), numbers(5, seed=1), numbers(4, 1, seed=2)]
    tree = tree + _1 * _2 - _3
    together, names = run(tree, *arrays)
    apart, _ = run(tree, *arrays, options=SEPARATE)
    np.testing.assert_array_equal(together, apart)
    assert len(names) == 1


def test_a_part_that_stands_twice_is_computed_once() -> None:
    a = numbers(20)
    part = expr.Exp(_1)
    found, _ = run(part + part * part, a)
    np.testing.assert_array_equal(found, np.exp(a) + np.exp(a) * np.exp(a))


@pytest.mark.parametrize("options", [None, SEPARATE])
def test_comparisons_give_truth_values_and_casts_change_types(options: Any) -> None:
    a, i = numbers(12), np.arange(12, dtype=np.int32)
    within, _ = run(expr.And(_1 > -1, expr.Not(_1 >= 1)), a, options=options)
    np.testing.assert_array_equal(within, (a > -1) & (a < 1))
    mixed, _ = run(Cast(_2, FLOAT) / 2 + _1, a, i, options=options)
    np.testing.assert_array_equal(mixed, i.astype(np.float32) / 2 + a)
    cast, _ = run(Cast(_1, INT), a, options=options)
    assert cast.tolist() == [int(v) for v in a]


def test_constants_take_the_type_of_what_they_meet() -> None:
    half = numbers(9).astype(np.float16)
    found, _ = run(1.0 - _1 * ConstHalf(0.1) + 3, half)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.float16(1) - half * np.float16(0.1) + np.float16(3))


def test_zero_and_minus_zero_are_different_constants() -> None:
    ones = np.ones(3, np.float32)
    assert run(expr.Abs(_1) / 0.0, ones)[0].tolist() == [np.inf] * 3
    assert run(expr.Abs(_1) / -0.0, ones)[0].tolist() == [-np.inf] * 3


def test_pythons_operators_make_those_of_the_library() -> None:
    made = [_1 - 2, 2 - _1, -_1, ~_1, _1 % _2, 1 << _1, _1 >> 1, _1 & 3, 3 | _1, _1 ^ _2, _1 == 2]
    made += [_1 != 2, abs(_1), 2**_1, 1 / _1, _1 > 2]
    assert [repr(e) for e in made] == [
        "Subtract(_1,2)",
        "Subtract(2,_1)",
        "Negate(_1)",
        "BitwiseNot(_1)",
        "Remainder(_1,_2)",
        "ShiftLeft(1,_1)",
        "ShiftRight(_1,1)",
        "BitwiseAnd(_1,3)",
        "BitwiseOr(3,_1)",
        "BitwiseXor(_1,_2)",
        "Equal(_1,2)",
        "NotEqual(_1,2)",
        "Absolute(_1)",
        "Power(2,_1)",
        "Divide(1,_1)",
        "GreaterThan(_1,2)",
    ]


def test_in_place_reaches_the_variable_of_a_view() -> None:
    values = Values()
    data, other = numbers(8, 6), numbers(3, 8, seed=1)
    tensor = values.tensor(data)
    view = tensor.slice(1, 4, 1).transpose()
    second = values.tensor(other)
    popops.mapInPlace(values.graph, _2 - _1 * 2, [view, second], values.program)
    popops.mapInPlace(values.graph, _2 - _1, [view, second], values.program)
    expected = data.copy()
    expected[:, 1:4] = (other - (other - data[:, 1:4].T * 2)).T
    np.testing.assert_array_equal(values.run().read(tensor), expected)


def test_an_output_and_a_tensor_that_only_gives_its_shape() -> None:
    values = Values()
    tensor, out = values.tensor(numbers(5, 3)), values.tensor(np.zeros((5, 3)))
    popops.mapWithOutput(values.graph, Const(2) + 1, [tensor], out, values.program)
    popops.mapInPlace(values.graph, Const(7), [tensor], values.program)
    storage = values.run()
    assert storage.read(out).tolist() == [[3] * 3] * 5
    assert storage.read(tensor).tolist() == [[7] * 3] * 5


def test_cycles_are_the_frame_one_loop_and_every_operations_table_row() -> None:
    # 120 floats, 20 a worker: 10 vectors of 5, add 10 * 1, tanh 10 * 12: 6 * (29 + 180) + 11.
    values = Values("mk1")
    tensors = [values.tensor(numbers(120)) for _ in range(2)]
    for tensor in tensors:
        values.graph.setTileMapping(tensor, 3)
    popops.map(values.graph, _1 + expr.Tanh(_2), tensors, values.program)
    (group,) = values.graph.vertex_groups()
    assert group.cycles.tolist() == [6 * (29 + 180) + 11]


def test_the_same_expression_is_the_same_vertex_type() -> None:
    values = Values()
    tensor = values.tensor(numbers(8))
    for _ in range(2):
        popops.map(values.graph, _1 * 2 + 1, [tensor], values.program)
    first, second = values.graph.vertex_groups()
    assert first.codelet is second.codelet
    assert fused.cache_info().hits > 0
    assert TARGETS["mk1"].workers == 6


@pytest.mark.parametrize("replicated", [False, True])
def test_virtual_and_replicated_graphs_compute_expressions(replicated: bool) -> None:
    device = poplar.IPUModel("tiny", numIPUs=2).createDevice()
    graph = poplar.Graph(device.getTarget())
    part = graph.createReplicatedGraph(2) if replicated else graph.createVirtualGraph(1, 3)
    data = np.arange(6, dtype=np.float32)
    tensor = part.addVariable(FLOAT, [6], "t")
    poputil.mapTensorLinearly(part, tensor)
    prog = poplar.program.Sequence()
    out = popops.map(part, (_1 + 1) * _1, [tensor], prog, "net")
    seen = graph.getNonReplicatedTensor(out) if replicated else out
    source = graph.getNonReplicatedTensor(tensor) if replicated else tensor
    graph.createHostWrite("in", source)
    graph.createHostRead("out", seen)
    engine = poplar.Engine(graph, prog)
    engine.load(device)
    copies = 2 if replicated else 1
    engine.writeTensor("in", np.tile(data, copies))
    engine.run(0)
    result = np.zeros(6 * copies, np.float32)
    engine.readTensor("out", result)
    np.testing.assert_array_equal(result, np.tile((data + 1) * data, copies))


REFUSED: list[tuple[Any, str]] = [
    (_1 + _2 * 2, "net/Op/Map: Add of float and int in Add"),
    (_1 + _3 * 2, "net/Op/Map: expression has _3; 2 tensors"),
    (expr.Sqrt(_1 > 1) + 1, "net/Op/Map: SQRT of bool; known for float, half, int"),
    (Select(_1, _1 * 2, _1), r"net/Op/Map: Select by float in Select\(_1,Multiply\(_1,2\),_1\)"),
    (_2 * 2 + 0.5, "net/Op/Map: value 0.5 at element 0; int holds whole numbers"),
]


@pytest.mark.parametrize(("expression", "said"), REFUSED, ids=[said[12:30] for _, said in REFUSED])
def test_expressions_that_do_not_fit_name_the_operation(expression: Any, said: str) -> None:
    values = Values()
    tensors = [values.tensor(numbers(4)), values.tensor([1, 2, 3, 4], dtype=INT)]
    with pytest.raises(poputil.poplibs_error, match=said):
        popops.map(values.graph, expression, tensors, values.program, "net")


def test_shapes_options_and_truth_of_an_expression_are_checked() -> None:
    values = Values()
    a, b = values.tensor(numbers(4)), values.tensor(numbers(3))
    with pytest.raises(poputil.poplibs_error, match="Op/Map: .* do not broadcast to one shape"):
        popops.map(values.graph, _1 * 2 + _2, [a, b], values.program)
    with pytest.raises(poputil.poplibs_error, match="Op/Map: no tensors are given"):
        popops.map(values.graph, Const(1) + 2, [], values.program)
    with pytest.raises(poplar.invalid_option, match="enableGenerateCodelet"):
        popops.map(values.graph, _1 * 2, [a], values.program, "x", {"enableGenerateCode": 1})
    with pytest.raises(poputil.poplibs_error, match="has no truth value"):
        bool(_1 < 2)
    with pytest.raises(poputil.poplibs_error, match="result is bool"):
        popops.mapInPlace(values.graph, expr.Abs(_1) > 2, [a], values.program)
