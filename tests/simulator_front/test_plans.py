"""How convolutions are cut: the cheapest way, one plan for three passes, sums by stages."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.errors import PoplarError
from simulator.graph.target import TARGETS
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs import poplin, popops
from simulator.poplibs.poplin.joint_plan import PASSES, plan_of
from simulator.poplibs.poplin.plan_cost import Part, estimate
from simulator.poplibs.poplin.planner import Settings, methods_of, plan_convolution
from simulator.poplibs.poplin.problem import Problem
from simulator.poplibs.poplin.reduce_stages import depths

MK1 = TARGETS["mk1"]


def cost(problem: Problem, parts: tuple[int, ...], limit: int) -> int:
    """Give the fewest cycles of a cut of a product, by all methods; a huge number if none fits."""
    found = [1 << 60]
    for method in methods_of(MK1, problem, Settings(MK1.tiles_per_ipu)):
        grains, sizes = method.grains(problem), problem.sizes()
        steps = [-(-size // grain) for size, grain in zip(sizes, grains, strict=True)]
        if any(part > step for part, step in zip(parts, steps, strict=True)):
            continue
        largest = [
            np.array([min(-(-step // part) * grain, size)])
            for step, part, grain, size in zip(steps, parts, grains, sizes, strict=True)
        ]
        groups, batch, outputs, inputs = largest
        part = Part(groups, batch, (), outputs, (), inputs, np.array([parts[-1]]))
        priced = estimate(MK1, problem, method, part, ())
        if priced.bytes[0] <= limit:
            found.append(int(sum(cycles[0] for cycles in priced.cycles.values())))
    return min(found)


@pytest.mark.parametrize(("m", "k", "n"), [(16, 64, 24), (9, 100, 8), (40, 16, 40)])
def test_no_other_cut_is_cheaper(m: int, k: int, n: int) -> None:
    problem = Problem(1, m, k, n, (), FLOAT, FLOAT)
    plan = plan_convolution(MK1, problem, Settings(MK1.tiles_per_ipu))
    cuts = product([1], range(1, m + 1), range(1, n + 1), range(1, k + 1))
    every = [c for c in cuts if np.prod(c) <= MK1.tiles_per_ipu and c[3] <= 16]
    assert plan.total_cycles <= min(cost(problem, cut, plan.limit) for cut in every)


@pytest.mark.parametrize(("inputs", "partials"), [(3, HALF), (16, HALF), (17, FLOAT)])
def test_sums_of_one_step_of_the_matrix_units_are_halves_at_once(
    inputs: int, partials: Type
) -> None:
    problem = Problem(1, 64, inputs, 24, (), HALF, HALF)
    plan = plan_convolution(MK1, problem, Settings(MK1.tiles_per_ipu))
    assert (plan.method.vertex, plan.method.partials) == ("AMP", partials)
    assert bool(dict(plan.cycles)["cast"]) == (partials == FLOAT and plan.sums == 1)


@pytest.mark.parametrize(
    ("parts", "left"),
    [(1, []), (2, [1]), (15, [1]), (16, [4, 1]), (98, [10, 1]), (125, [25, 5, 1])],
)
def test_parts_of_sums_are_added_by_stages(parts: int, left: list[int]) -> None:
    assert depths(parts) == left


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 400))
def test_sums_of_many_parts_are_whole(inner: int) -> None:
    values = Values("mk1")
    left, right = np.rint(numbers(3, inner)), np.rint(numbers(inner, 5, seed=1))
    out = poplin.matMul(values.graph, values.tensor(left), values.tensor(right), values.program)
    assert (values.run().read(out) == left @ right).all()


def passes(values: Values, dtype: object = FLOAT) -> dict[str, object]:
    """Add the three passes of a layer of [16, 64] by [64, 24]."""
    graph, program = values.graph, values.program
    shapes = [16, 64], [64, 24]
    options = {name: {"fullyConnectedPass": name} for name in PASSES}
    first = options["TRAINING_FWD"]
    x = poplin.createMatMulInputLHS(graph, dtype, dtype, *shapes, "x", first)
    w = poplin.createMatMulInputRHS(graph, dtype, dtype, *shapes, "w", first)
    g = poplin.createMatMulInputLHS(
        graph, dtype, dtype, [16, 24], [24, 64], "g", options["TRAINING_BWD"]
    )
    made = {
        "fwd": poplin.matMul(graph, x, w, program, "fwd", options=first),
        "bwd": poplin.matMul(
            graph, g, w.transpose(), program, "bwd", options=options["TRAINING_BWD"]
        ),
        "wu": poplin.matMul(graph, x.transpose(), g, program, "wu", options=options["TRAINING_WU"]),
    }
    return {"x": x, "w": w, "g": g, **made}


def test_the_passes_of_a_layer_give_what_numpy_gives() -> None:
    values = Values("mk1")
    made = passes(values)
    x, w, g = (np.rint(2 * numbers(*made[n].shape, seed=i)) for i, n in enumerate("xwg"))
    values._initial += [(made["x"], x), (made["w"], w), (made["g"], g)]
    found = values.run()
    for name, expected in (("fwd", x @ w), ("bwd", g @ w.T), ("wu", x.T @ g)):
        assert (found.read(made[name]) == expected).all()


def test_a_joint_plan_can_be_asked_for() -> None:
    graph, shapes = Values("mk1").graph, ([16, 784], [784, 30])
    kinds = (graph, FLOAT, FLOAT, *shapes)
    options = {"fullyConnectedPass": "TRAINING_FWD"}
    joint = poplin.matMulReportPlan(*kinds, options | {"planConstraints": {"isJointPlan": True}})
    assert "392 tiles: outputs 4, inputs 98" in joint.replace("batch 1, ", "")
    apart = poplin.matMulReportPlan(*kinds, options | {"planConstraints": {"isJointPlan": False}})
    assert apart == poplin.matMulReportPlan(*kinds)
    with pytest.raises(PoplarError, match="isJointPlan is 3; true or false"):
        poplin.matMulReportPlan(*kinds, {"planConstraints": {"isJointPlan": 3}})


def test_a_joint_plan_keeps_each_block_of_the_weights_on_its_tile() -> None:
    m, k, n = 16, 784, 30
    problems = {"TRAINING_FWD": (m, k, n), "TRAINING_BWD": (m, n, k), "TRAINING_WU": (k, m, n)}
    blocks = {}
    for name, (batch, inputs, outputs) in problems.items():
        settings_ = Settings(MK1.tiles_per_ipu, fully_connected=name, is_joint=True)
        plan = plan_of(MK1, Problem(1, batch, inputs, outputs, (), FLOAT, FLOAT), settings_)
        low, high = plan.cells
        k_dim, n_dim = {"TRAINING_FWD": (3, 2), "TRAINING_BWD": (2, 3), "TRAINING_WU": (1, 2)}[name]
        columns = [low[:, k_dim], high[:, k_dim], low[:, n_dim], high[:, n_dim]]
        blocks[name] = np.column_stack(columns)[np.argsort(plan.tiles)]
    assert (blocks["TRAINING_FWD"] == blocks["TRAINING_BWD"]).all()
    assert (blocks["TRAINING_FWD"] == blocks["TRAINING_WU"]).all()


def test_what_is_added_is_regrouped_to_lie_as_what_it_is_added_to() -> None:
    values = Values("mk1")
    graph = values.graph
    rows = graph.addVariable(HALF, [64, 64], "rows")
    columns = graph.addVariable(HALF, [64, 64], "columns").transpose()
    for tensor in (rows, columns):
        graph.setTileMapping(tensor, 0)
    a, b = np.rint(numbers(64, 64)), np.rint(numbers(64, 64, seed=1))
    values._initial += [(rows, a), (columns, b)]
    popops.scaledAddTo(graph, rows, columns, 2.0, values.program, "sum")
    assert any("Transpose" in c.name for c in graph.compute_sets)
    assert (values.run().read(rows) == a + 2 * b).all()
