"""Slices that a loop convolves: which there are, what they cost, and that they add up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from device_program import DeviceProgram
from value_program import Values, numbers

from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF
from simulator.poplar import PoplarError, program
from simulator.poplibs import poplin
from simulator.poplibs.poplin.planning import planner
from simulator.poplibs.poplin.planning.plan import Method
from simulator.poplibs.poplin.planning.problem import Problem
from simulator.poplibs.poplin.planning.serial import serial_cost, serial_splits
from simulator.poplibs.poplin.planning.serial_split import SerialSplit

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


def test_weights_of_slices_that_are_asked_for_lie_alike() -> None:
    # PopLibs tests/poplin/ConvTest.cpp, MappingSplitOutChansSerially
    graph = DeviceProgram(tiles=16).graph
    params = poplin.ConvParams(HALF, 4, [8, 8], [3, 3], 16, 16, 1)
    options = {"planConstraints": '{"0":{"partition":{"outChanSplit":{"serial":4}}}}'}
    weights = poplin.createWeights(graph, params, "weights", options)
    slices = [weights.slice(first, first + 4, 1) for first in range(0, 16, 4)]
    first, *others = (graph.getTileMapping(part) for part in slices)
    assert all(mapping == first for mapping in others)


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ('{"0":{"partition":{"inChanSplit":{"serial":0}}}}', "inChanSplit.serial is 0"),
        ('{"0":{"partition":{"outChanSplit":{"serial":3}}}}', "no plan"),
    ],
)
def test_slices_that_cannot_be_are_refused(constraint: str, words: str) -> None:
    graph = DeviceProgram(tiles=16).graph
    params = poplin.ConvParams(HALF, 4, [8, 8], [3, 3], 16, 16, 1)
    with pytest.raises(PoplarError, match=words):
        poplin.createWeights(graph, params, "weights", {"planConstraints": constraint})


@pytest.mark.parametrize("split", ["outChanSplit", "inChanSplit"])
def test_a_convolution_of_slices_that_are_asked_for(split: str) -> None:
    run, rng = DeviceProgram(tiles=16), np.random.default_rng(2)
    params = poplin.ConvParams(FLOAT, 2, [6, 6], [3, 3], 8, 8, 1)
    options = {"planConstraints": f'{{"0":{{"partition":{{"{split}":{{"serial":4}}}}}}}}'}
    left, right = rng.normal(size=(2, 8, 6, 6)), rng.normal(size=(1, 8, 8, 3, 3))
    data = run.give(poplin.createInput(run.graph, params, "data", options), left)
    weights = run.give(poplin.createWeights(run.graph, params, "weights", options), right)
    out = poplin.convolution(run.graph, data, weights, params, False, run.program, "conv", options)
    assert any(isinstance(part, program.Repeat) for part in _parts(run.program))
    windows = np.lib.stride_tricks.sliding_window_view(left, (3, 3), axis=(2, 3))
    expected = np.einsum("nchwij,ocij->nohw", windows, right[0])
    np.testing.assert_allclose(run.run(out)[0], expected, rtol=1e-4, atol=1e-4)


def _parts(sequence: program.Sequence) -> Iterator[program.Program]:
    """Yield the programs of a sequence, those of sequences in it too."""
    for part in sequence.children:
        yield part
        if isinstance(part, program.Sequence):
            yield from _parts(part)
