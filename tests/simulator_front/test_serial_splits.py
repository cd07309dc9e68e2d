"""Slices that a loop convolves: which there are, what they cost, and that they add up."""

from __future__ import annotations

import numpy as np
import pytest
from value_program import Values, numbers

from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT
from simulator.poplibs import poplin
from simulator.poplibs.poplin import planner
from simulator.poplibs.poplin.plan import Method
from simulator.poplibs.poplin.problem import Problem
from simulator.poplibs.poplin.serial import serial_cost, serial_splits
from simulator.poplibs.poplin.serial_split import SerialSplit

MK1 = TARGETS["mk1"]
AMP = Method("AMP", FLOAT, 8, 4)


def test_slices_divide_the_channels_that_are_held_or_summed() -> None:
    splits = list(serial_splits(Problem(1, 7, 8, 30, (), FLOAT, FLOAT), AMP))
    assert splits[0] == SerialSplit()
    counts = {
        name: [s.count for s in splits if s.dimension == name] for name in ("outputs", "inputs")
    }
    assert counts == {"outputs": [2, 3, 5, 6, 10, 15, 30], "inputs": [2, 4, 8]}
    assert len(splits) == 11


def test_a_slice_pays_for_taking_its_weights_and_putting_its_results() -> None:
    # 96 x 64 weights on 4 tiles are 1,536 each, 768 a slice: 128 a worker, 64 vectors of floats.
    # 200 results are put as halves of themselves: 100, 17 a worker, 8 whole vectors.
    problem, tiles, results = (
        Problem(1, 5, 96, 64, (), FLOAT, FLOAT),
        np.array([4]),
        np.array([200]),
    )
    split = SerialSplit("outputs", 2)
    cost = serial_cost(MK1, problem, AMP, split, tiles, results, of_layer=False)
    slice_cycles, update_cycles = 25 + 6 * (39 + 24 + 2 * 64), 25 + 6 * (39 + 24 + 2 * 8)
    assert {name: int(cycles[0]) for name, cycles in cost.by_slice.items()} == {
        "slice": slice_cycles,
        "update": update_cycles,
    }
    assert (cost.once, int(cost.bytes[0])) == ({}, 0)


@pytest.mark.parametrize(
    ("way", "kind", "shape"),
    [
        ("AMP swapped", "batch", (128, 64, 61)),
        ("AMP", "outputs", (61, 64, 128)),
        ("AMP", "inputs", (61, 256, 61)),
    ],
)
def test_slices_of_a_product_make_what_the_whole_does(
    way: str, kind: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = planner.methods_of
    monkeypatch.setattr(
        planner,
        "methods_of",
        lambda *arguments: [m for m in every(*arguments) if m.describe() == way],
    )
    planner.plan_convolution.cache_clear()
    rows, inner, columns = shape
    values, options = Values("tiny"), {"availableMemoryProportion": "0.03"}
    left, right = (np.rint(3 * numbers(*s)) for s in ((rows, inner), (inner, columns)))
    tensors = values.tensor(left), values.tensor(right)
    plan = poplin.matMulReportPlan(
        values.graph, FLOAT, FLOAT, [rows, inner], [inner, columns], options
    )
    assert f"slices of the {kind}; " in plan
    out = poplin.matMul(values.graph, *tensors, values.program, FLOAT, "product", options)
    assert (values.run().read(out) == left @ right).all()
    planner.plan_convolution.cache_clear()
