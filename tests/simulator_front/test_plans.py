"""How convolutions are cut: the cheapest way, one plan for three passes, sums by stages."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.errors import PoplarError
from simulator.graph.machine.target import TARGETS, Target
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs import poplin, popops
from simulator.poplibs.poplin.convolutions.combine import grain_of, shares_of
from simulator.poplibs.poplin.planning.joint_plan import PASSES, plan_of
from simulator.poplibs.poplin.planning.plan import Method, Plan
from simulator.poplibs.poplin.planning.plan_cost import Part, Split, estimate
from simulator.poplibs.poplin.planning.planner import Settings, methods_of, plan_convolution
from simulator.poplibs.poplin.planning.problem import Axis, Problem
from simulator.poplibs.poplin.planning.reduce_stages import depths, received_bytes, reduction_cost

MK1 = TARGETS["mk1"]


def cost(problem: Problem, parts: tuple[int, ...], limit: int) -> int:
    """Return the least cycles of a cut of a product, by all methods; huge if none fits."""
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
        part = Part(groups, batch, (), outputs, (), inputs)
        split = Split(*(np.array([parts[dimension]]) for dimension in (3, 2, 1)))
        priced = estimate(MK1, problem, method, part, split, (), shared=True)
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


@pytest.mark.parametrize("target", [MK1, TARGETS["mk2"]])
@pytest.mark.parametrize(("parts", "rate"), [(1, 4), (2, 8), (3, 4), (4, 8)])
def test_inputs_that_even_parts_of_the_outputs_share_arrive_twice_as_fast(
    target: Target, parts: int, rate: int
) -> None:
    # 64 inputs of 32 rows are 8,192 B, of which each of `parts` tiles holds its share; the weights
    # of a tile are its own, as one part has all rows.
    problem = Problem(1, 32, 64, 8 * parts, (), FLOAT, FLOAT)
    sizes = [np.array([size]) for size in (1, 32, 8, 64)]
    part, one = Part(*sizes[:2], (), sizes[2], (), sizes[3]), np.array([1])
    split = Split(one, np.array([parts]), one)
    method = Method("AMP", FLOAT, 8, 8)
    cycles = estimate(target, problem, method, part, split, (), shared=True).cycles
    assert cycles["exchange"] == -(-(8192 - 8192 // parts) // rate)
    swapped = Method("AMP", FLOAT, 8, 8, swapped=True)
    cycles = estimate(target, problem, swapped, part, split, (), shared=True).cycles
    assert cycles["exchange"] == -(-(8192 - 8192 // parts) // 4)


def test_tiles_are_numbered_with_the_channel_innermost_that_shares_inputs() -> None:
    axis = Axis(8, 1, 8)
    problem = Problem(2, 4, 16, 16, (axis,), FLOAT, FLOAT)
    parts = (2, 1, 4, 2, 1, 2)  # groups, batch, field, outputs, kernel, inputs

    def tiles(method: Method) -> list[int]:
        return Plan(problem, method, parts, (), 0, 0).tiles.tolist()

    # Part [g][f][o][i] is on tile ((g * 2 + i) * 4 + f) * 2 + o; swapped, o and f change places.
    places = [*product(range(2), range(4), range(2), range(2))]
    method = Method("AMP", FLOAT, 8, 8)
    assert tiles(method) == [((g * 2 + i) * 4 + f) * 2 + o for g, f, o, i in places]
    swapped = Method("AMP", FLOAT, 8, 8, expanded=True, swapped=True)
    assert tiles(swapped) == [((g * 2 + i) * 2 + o) * 4 + f for g, f, o, i in places]


def test_a_row_of_an_odd_number_of_parts_leaves_a_tile_free_behind_it() -> None:
    problem = Problem(1, 2, 8, 24, (), FLOAT, FLOAT)
    plan = Plan(problem, Method("AMP", FLOAT, 8, 8), (1, 2, 3, 1), (), 0, 0, row=4)
    assert plan.tiles.tolist() == [0, 1, 2, 4, 5, 6]
    # 581 rows on Mk2: each of 11 parts of a row receives the same 5 rows of 18 floats, 360 B but
    # for its share, at 8 B a cycle, as each of 12 does.
    of_eleven, of_twelve = (
        plan_convolution(
            TARGETS["mk2"],
            Problem(1, 581, 18, outputs, (), FLOAT, FLOAT),
            Settings(TARGETS["mk2"].tiles_per_ipu),
        )
        for outputs in (11, 12)
    )
    assert (of_eleven.parts, of_eleven.row) == ((1, 117, 11, 1), 12)
    assert (of_twelve.parts, of_twelve.row) == ((1, 117, 12, 1), 0)
    assert of_eleven.tiles.max() < TARGETS["mk2"].tiles_per_ipu
    weights = -(-(72 - 72 // 117) // 4)
    assert dict(of_eleven.cycles)["exchange"] == -(-(360 - 360 // 11) // 8) + weights
    assert dict(of_twelve.cycles)["exchange"] == -(-(360 - 360 // 12) // 8) + weights


def test_sums_are_filled_up_to_whole_vectors_where_that_is_cheaper() -> None:
    # A dot product of 7 floats takes 7 + 2 * 7 cycles, of 8 floats 7 + 8.
    axes = Axis(31, 5, 16, stride=2, padding=4), Axis(15, 1, 15)
    of_seven, of_eight = (
        plan_convolution(
            TARGETS["mk2"], Problem(1, 1, inputs, 6, axes, FLOAT, FLOAT), Settings(1472)
        )
        for inputs in (7, 8)
    )
    assert (of_seven.method.vertex, of_seven.method.dot) == ("HMAC", 8)
    assert of_seven.total_cycles <= of_eight.total_cycles


def test_what_does_not_fit_is_planned_with_twice_the_memory_until_it_fits() -> None:
    problem = Problem(1, 128, 128, 128, (), FLOAT, FLOAT)
    nothing, tight, *wide = (
        plan_convolution(MK1, problem, Settings(16, memory_proportion=part))
        for part in (0.0, *(2**power for power in range(-8, 0)))
    )
    assert tight.temporary_bytes > tight.limit
    fitting = next(plan for plan in wide if plan.temporary_bytes <= plan.limit)
    assert (tight.parts, tight.cycles) == (fitting.parts, fitting.cycles)
    assert nothing.parts == fitting.parts


def test_a_sum_of_16_parts_is_priced_as_two_stages_without_a_sync() -> None:
    # 100 floats of a part: exchanged once, 4 rows of ceil(112 / 4) = 28 added; of these 28, which
    # are exchanged, 4 rows of 7. ReduceAdd: 6 * (32 + (3 rows + 7) * loops + left over).
    made = np.array([100])
    exchange, work = reduction_cost(MK1, FLOAT, made, parts := np.array([16]), FLOAT)
    assert exchange == 100 + 25
    first = 6 * (32 + (3 * 4 + 7) * 1 + (3 * 4 + 7))  # 28 floats: 7 loops of 4, one a worker
    second = 6 * (32 + 2 * 4 + 13)  # 7 floats: one loop of 4, and parts of 2 and 1
    assert work == first + second
    assert received_bytes(MK1, FLOAT, made, parts) == 4 * 28 * 4
    alone = reduction_cost(MK1, FLOAT, made, np.array([1]), FLOAT)
    assert [value.item() for value in alone] == [100, 0]
    assert received_bytes(MK1, FLOAT, made, np.array([1])) == 0


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


@pytest.mark.parametrize(
    ("outputs", "parts", "left", "shares"),
    [
        (40, 4, 1, [(0, 8), (8, 16), (24, 16)]),  # 5 groups: 2 at most on a tile, so 3 tiles
        (64, 4, 1, [(0, 16), (16, 16), (32, 16), (48, 16)]),
        (16, 4, 1, [(0, 8), (8, 8)]),
        (40, 4, 2, [(0, 16), (16, 24), (0, 16), (16, 24)]),
    ],
)
def test_no_more_tiles_add_than_the_largest_share_needs(
    outputs: int, parts: int, left: int, shares: list[tuple[int, int]]
) -> None:
    problem = Problem(1, 1, 32, outputs, (), FLOAT, FLOAT)
    plan = Plan(problem, Method("AMP", FLOAT, 8, 8), (1, 1, 1, parts), (), 0, 0)
    found = shares_of(plan, np.array([outputs]), parts, left, grain_of(plan, 2))
    expected = sorted((begin, begin + size) for begin, size in shares)
    assert sorted(zip(found.first.tolist(), found.end.tolist(), strict=True)) == expected


@pytest.mark.parametrize(("group", "width", "grain"), [(8, 2, 8), (1, 2, 2), (1, 4, 4), (6, 4, 8)])
def test_what_is_added_on_a_tile_comes_in_groups_and_vectors(
    group: int, width: int, grain: int
) -> None:
    problem = Problem(1, 1, 32, 40, (), FLOAT, FLOAT)
    plan = Plan(problem, Method("HMAC", FLOAT, 2, group), (1, 1, 1, 4), (), 0, 0)
    assert grain_of(plan, width) == grain


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


@pytest.mark.parametrize(("batch", "partials"), [(12, HALF), (16, HALF), (17, FLOAT)])
def test_a_joint_update_of_one_step_makes_halves_at_once(batch: int, partials: Type) -> None:
    settings_ = Settings(MK1.tiles_per_ipu, fully_connected="TRAINING_WU", is_joint=True)
    plan = plan_of(MK1, Problem(1, 512, batch, 1024, (), HALF, HALF), settings_)
    assert (plan.method.vertex, plan.method.partials) == ("AMP", partials)
    assert plan.parts[-1] == 1
    assert bool(dict(plan.cycles)["cast"]) == (partials == FLOAT)


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
