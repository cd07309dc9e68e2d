"""Plans of the passes of fully connected layers: what they pay for, and single samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from value_program import Values, numbers

from simulator import poplin
from simulator.codelets.products.convolution_cycles import outer_product
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs.poplin.planning.joint_plan import PASSES, plan_of
from simulator.poplibs.poplin.planning.plan import Method, Plan
from simulator.poplibs.poplin.planning.planner import Settings
from simulator.poplibs.poplin.planning.problem import Axis, Problem
from simulator.poplibs.poplin.planning.rearrange_cost import rearranging_cycles

MK1 = TARGETS["mk1"]
PRODUCT = Problem(1, 16, 64, 32, (), FLOAT, FLOAT)  # [16, 64] by [64, 32]


def n(*values: int) -> Any:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("purpose", "swapped", "joint", "cycles"),
    [
        # On 64 tiles: 3,072 elements of both operands are 192 B a tile, copied at 4 B a cycle and a
        # quarter more, and exchanged: 60 + 48; 512 of the result are 32 B: 10 + 8.
        ("NONE_MATMUL", False, False, 108 + 18),
        ("NONE_MATMUL", True, False, 0),
        # The 2,048 of the operand that streams by are 128 B: 40 + 32.
        ("FC_TRAINING_WU", True, False, 72 + 18),
        ("FC_TRAINING_WU", True, True, 72),
        ("FC_TRAINING_BWD", True, False, 72),
        ("FC_TRAINING_BWD", True, True, 0),
        # Convolutions: the operands of the update lie otherwise, its result as one that is swapped.
        ("TRAINING_FWD", False, False, 0),
        ("TRAINING_FWD", True, False, 108 + 18),
        ("TRAINING_WU", False, False, 108 + 18),
        ("TRAINING_WU", True, False, 108),
        ("INFERENCE_FWD", True, False, 0),
    ],
)
def test_products_pay_for_operands_that_lie_otherwise(
    purpose: str, swapped: bool, joint: bool, cycles: int
) -> None:
    method = Method("AMP", FLOAT, 8, 8, swapped=swapped)
    assert rearranging_cycles(MK1, PRODUCT, method, purpose, n(64), joint=joint) == cycles


@pytest.mark.parametrize(
    ("purpose", "group", "cycles"),
    [
        # Of 64 tiles each has 8 floats of the result, 32 B, and 64 B of the weights, which are
        # copied at 8 B a cycle and a quarter more.
        ("TRAINING_FWD", 8, 5 + 10),
        ("TRAINING_BWD", 8, 5),
        ("TRAINING_FWD", 16, 0),
    ],
)
def test_outputs_in_smaller_groups_than_the_next_layer_reads_are_paid_for(
    purpose: str, group: int, cycles: int
) -> None:
    problem = Problem(1, 16, 64, 32, (), HALF, HALF)
    method = Method("AMP", FLOAT, 16, group, units=8)
    assert rearranging_cycles(MK1, problem, method, purpose, n(64)) == cycles


def test_combined_groups_pay_for_operands_and_result() -> None:
    method = Method("AMP", FLOAT, 8, 8)
    cycles = rearranging_cycles(MK1, PRODUCT, method, "TRAINING_BWD", n(64), combined=True)
    assert cycles == 108 + 18
    swapped = rearranging_cycles(MK1, PRODUCT, method, "TRAINING_WU", n(64), swap=True)
    assert swapped == 108


def test_the_field_and_the_kernel_count_in_what_is_rearranged() -> None:
    # 8 channels of 10 inputs, 8 x 8 weights of 3 taps and 8 results, floats, on 4 tiles.
    problem = Problem(1, 1, 8, 8, (Axis(10, 3, 8),), FLOAT, FLOAT)
    method = Method("AMP", FLOAT, 8, 8)
    operands, result = 4 * (80 + 192) // 4, 4 * 64 // 4
    cycles = operands * 5 // 16 + operands // 4 + result * 5 // 16 + result // 4
    assert rearranging_cycles(MK1, problem, method, "TRAINING_WU", n(4)) == cycles
    expanded = Method("AMP", FLOAT, 8, 8, expanded=True)
    assert rearranging_cycles(MK1, problem, expanded, "TRAINING_WU", n(4)) == 0


def test_channels_that_fill_no_group_are_paid_for() -> None:
    # 60 inputs are 64 in groups of 8 or 16; 60 * 16 are whole vectors of 4 halves, at 2 B a cycle.
    problem = Problem(1, 16, 60, 32, (), HALF, HALF)
    method = Method("AMP", FLOAT, 16, 16, swapped=True)
    bytes_ = 64 * (32 + 16) // 64 * 2
    found = rearranging_cycles(MK1, problem, method, "FC_TRAINING_FWD", n(64))
    assert found == bytes_ * 5 // 8 + bytes_ // 4


def test_products_of_single_channels() -> None:
    # Two groups of 8 floats, 5 numbers each: 6 and one for two floats beyond 6. Halves in groups
    # of 4 are too few for the unrolled loop: 10 and 5 for each two.
    assert outer_product(n(5), n(16), 8, FLOAT).tolist() == [25 + 2 * (11 + 5 * 7)]
    assert outer_product(n(5), n(16), 4, HALF).tolist() == [25 + 4 * (10 + 5 * 20)]


def test_workers_share_what_streams_by_where_each_has_a_vertex() -> None:
    problem = Problem(1, 16, 1, 9, (), FLOAT, FLOAT)
    method = Method("OuterProduct", FLOAT, 1, 8, swapped=True)
    plan = Plan(problem, method, (1, 2, 2, 1), (), 0, 0, workers=6)
    low, high = plan.shares
    # Outputs of 4 and 5 are cut into as many parts of 1, for each of 2 groups of the batch.
    assert plan.pieces.tolist() == [0] * 4 + [1] * 5 + [2] * 4 + [3] * 5
    assert (high - low)[:, 2].tolist() == [1] * 18
    assert low[:9, 2].tolist() == [*range(9)]


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_the_passes_of_one_sample_go_without_the_matrix_units(dtype: Type) -> None:
    forward = Problem(1, 1, 1000, 1000, (), dtype, dtype)
    update = Problem(1, 1000, 1, 1000, (), dtype, dtype)
    made = {}
    for name, problem in (("FWD", forward), ("BWD", forward), ("WU", update)):
        settings = Settings(MK1.tiles_per_ipu, fully_connected=f"TRAINING_{name}", is_joint=True)
        made[name] = plan_of(MK1, problem, settings).method
    # Groups of 40 channels: 25 by 25 parts of the weights.
    assert [(m.vertex, m.in_group) for m in made.values()] == [
        ("HMAC", 40),
        ("HMAC", 40),
        ("OuterProduct", 1),
    ]
    assert made["WU"].out_group == 40


@pytest.mark.parametrize("batch", [1, 4])
def test_passes_that_are_planned_jointly_give_what_numpy_gives(batch: int) -> None:
    values = Values("mk1")
    graph, program = values.graph, values.program
    options = {
        name: {"fullyConnectedPass": name, "planConstraints": {"isJointPlan": True}}
        for name in PASSES
    }
    first, shapes = options["TRAINING_FWD"], ([batch, 40], [40, 24])
    kinds = (graph, FLOAT, FLOAT, *shapes)
    x = poplin.createMatMulInputLHS(*kinds, "x", first)
    w = poplin.createMatMulInputRHS(*kinds, "w", first)
    g = graph.addVariable(FLOAT, [batch, 24], "g")
    graph.setTileMapping(g, 0)
    terms = {
        "FWD": (x, w),
        "BWD": (g, w.transpose()),
        "WU": (x.transpose(), g),
    }
    made = {
        name: poplin.matMul(graph, *pair, program, name, options=options[f"TRAINING_{name}"])
        for name, pair in terms.items()
    }
    data = [np.rint(2 * numbers(*t.shape, seed=i)) for i, t in enumerate((x, w, g))]
    values._initial += list(zip((x, w, g), data, strict=True))
    found = values.run()
    a, b, c = data
    for name, expected in (("FWD", a @ b), ("BWD", c @ b.T), ("WU", a.T @ c)):
        assert (found.read(made[name]) == expected).all()
    assert any("weightTranspose" in c.name for c in graph.compute_sets)
