"""Matrix products: values, and what the plan promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF, INT
from simulator.poplibs import poplin
from simulator.poplibs.poplin.planning.planner import Settings, plan_convolution
from simulator.poplibs.poplin.planning.problem import Problem

SIZES = st.integers(1, 40)


@settings(max_examples=25, deadline=None)
@given(SIZES, SIZES, SIZES, st.sampled_from(["tiny", "mk1", "mk2"]))
def test_products_equal_numpys(m: int, k: int, n: int, target: str) -> None:
    values = Values(target)
    left, right = numbers(m, k), numbers(k, n, seed=1)
    out = poplin.matMul(
        values.graph, values.tensor(left), values.tensor(right), values.program, "product"
    )
    np.testing.assert_allclose(values.run().read(out), left @ right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(4, 0, 4), (0, 2, 3), (2, 3, 0)])
def test_a_product_of_nothing_is_zero(shape: tuple[int, int, int]) -> None:
    values, (m, k, n) = Values("tiny"), shape
    left, right = (values.tensor(np.ones(size, np.float32)) for size in ((m, k), (k, n)))
    out = poplin.matMul(values.graph, left, right, values.program)
    assert values.run().read(out).tolist() == np.zeros((m, n)).tolist()
    with pytest.raises(PoplarError, match=rf"left: an empty dimension in \[{m}, {k}\] by"):
        poplin.createMatMulInputLHS(values.graph, FLOAT, FLOAT, (m, k), (k, n), "left")


def test_a_chain_multiplies_views_of_products() -> None:
    values = Values("mk2")
    parts = [numbers(30, 50), numbers(50, 20, seed=1), numbers(20, 35, seed=2)]
    tensors = [values.tensor(part) for part in parts]
    first = poplin.matMul(values.graph, tensors[0], tensors[1], values.program)
    out = poplin.matMul(values.graph, first, tensors[2], values.program)
    expected = parts[0] @ parts[1] @ parts[2]
    np.testing.assert_allclose(values.run().read(out), expected, rtol=1e-3, atol=1e-3)


def test_operands_made_for_a_product_lie_where_they_are_read() -> None:
    values = Values("mk1")
    graph, shapes = values.graph, ((12, 64), (64, 24))
    left = poplin.createMatMulInputLHS(graph, FLOAT, FLOAT, *shapes, "left")
    right = poplin.createMatMulInputRHS(graph, FLOAT, FLOAT, *shapes, "right")
    poplin.matMul(graph, left, right, values.program)
    group = next(g for g in graph.vertex_groups() if "ConvPartial" in g.codelet.name)
    mapping = graph.mapping_table()
    for name, tensor in (("in", left), ("weights", right)):
        field = group.fields[name]
        sizes = field.lengths * 4
        source, low, high, tile = mapping.pieces(field.begins * 4, field.begins * 4 + sizes)
        vertex = np.searchsorted(field.starts, source, side="right") - 1
        local = (high - low)[tile == group.tile[vertex]].sum()
        assert local == tensor.numElements() * 4


def test_the_operands_made_for_a_product_hold_their_values() -> None:
    values = Values("mk2")
    left = poplin.createMatMulInputLHS(values.graph, FLOAT, FLOAT, (9, 20), (20, 31), "left")
    right = poplin.createMatMulInputRHS(values.graph, FLOAT, FLOAT, (9, 20), (20, 31), "right")
    out = poplin.matMul(values.graph, left, right, values.program)
    a, b = numbers(9, 20), numbers(20, 31, seed=1)
    values._initial += [(left, a), (right, b)]
    np.testing.assert_allclose(values.run().read(out), a @ b, rtol=1e-4, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 900), st.integers(1, 900), st.integers(1, 900))
def test_plans_fit_the_target_and_cover_the_product(m: int, k: int, n: int) -> None:
    target = TARGETS["mk1"]
    problem = Problem(1, m, k, n, (), FLOAT, FLOAT)
    plan = plan_convolution(target, problem, Settings(target.tiles_per_ipu))
    assert 1 <= plan.vertices <= target.num_tiles
    for dimension, size in enumerate(problem.sizes()):
        bounds = plan.bounds(dimension)
        assert bounds[[0, -1]].tolist() == [0, size] and (np.diff(bounds) > 0).all()
    low, high = plan.cells
    assert np.prod(high - low, axis=1).sum() == m * k * n


def test_a_split_sum_is_reduced_in_a_compute_set_of_its_own() -> None:
    values = Values("mk1")
    tensors = values.tensor(numbers(16, 784)), values.tensor(numbers(784, 30))
    poplin.matMul(values.graph, *tensors, values.program, "Layer1/Fwd")
    names = [compute_set.name.partition("Conv_1/")[2] for compute_set in values.graph.compute_sets]
    # 98 parts of each sum are added in two stages; weights that lie by rows are transposed before.
    assert names == ["Transpose", "Convolve", "Reduce/Stage0", "Reduce/Stage1"]


def test_both_operands_are_transposed_in_one_compute_set() -> None:
    values, (left, right) = Values("mk2"), (numbers(96, 64), numbers(64, 80, seed=1))
    by_columns = values.tensor(left.T).transpose()
    out = poplin.matMul(values.graph, by_columns, values.tensor(right), values.program)
    groups = [g for g in values.graph.vertex_groups() if "Transpose" in g.codelet.name]
    assert len(groups) == 2 and len({group.compute_set for group in groups}) == 1
    np.testing.assert_allclose(values.run().read(out), left @ right, rtol=1e-4, atol=1e-4)


def test_partial_results_ask_for_interleaved_memory() -> None:
    values = Values()
    tensors = values.tensor(numbers(16, 64)), values.tensor(numbers(64, 30))
    poplin.matMul(values.graph, *tensors, values.program)
    fields = [field for group in values.graph.vertex_groups() for field in group.fields.values()]
    assert [f.name for f in fields if f.interleaved] == ["out"]


def test_options_follow_the_debug_context_as_in_poplibs() -> None:
    values = Values()
    a, b = values.tensor(numbers(2, 3)), values.tensor(numbers(3, 4))
    call: Any = poplin.matMul
    with pytest.raises(PoplarError, match="first/Conv_1: no option 'partialsTyp'"):
        call(values.graph, a, b, values.program, "first", {"partialsTyp": "half"})
    with pytest.raises(PoplarError, match="first: outputType is 'half'"):
        call(values.graph, a, b, values.program, "half", "first")


def test_operands_that_cannot_be_multiplied_are_refused() -> None:
    values = Values()
    graph, program = values.graph, values.program
    a, b = graph.addVariable(FLOAT, [2, 3], "a"), graph.addVariable(FLOAT, [4, 2], "b")
    with pytest.raises(PoplarError, match=r"first/Conv_1: cannot multiply \[2, 3\] by \[4, 2\]"):
        poplin.matMul(graph, a, b, program, "first")
    with pytest.raises(PoplarError, match="operands of types float and half"):
        poplin.matMul(graph, a, graph.addVariable(HALF, [3, 2], "c"), program)
    whole = graph.addVariable(INT, [3, 3], "whole")
    with pytest.raises(PoplarError, match="both float or half"):
        poplin.matMul(graph, whole, whole, program)
