"""The classification loss with a plan: values, gradients by differences, options."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram

from simulator import popnn
from simulator.codelets.layers import ctc_labels
from simulator.codelets.layers import ctc_loss as vertices
from simulator.graph.errors import InvalidOptionError, poplibs_error
from simulator.graph.types import FLOAT, UNSIGNED_INT
from simulator.poplar import Tensor, program
from simulator.poplibs.popnn import ctc

TIMES, LABELS, LENGTHS = [4, 3], [[1, 2], [1, 1]], [2, 1]
LOGITS = np.random.default_rng(4).normal(size=(4, 2, 3))


def log_softmax(values: Any) -> Any:
    return values - np.log(np.exp(values).sum(-1, keepdims=True))


def losses_of(logits: Any) -> Any:
    """Sum the chances of all paths that show the labels; class 0 is blank."""
    probs, losses = log_softmax(logits), []
    for sample, (time, label) in enumerate(zip(TIMES, LABELS, strict=True)):
        wanted, total = label[: LENGTHS[sample]], 0.0
        for path in product(range(3), repeat=time):
            shown = [s for i, s in enumerate(path) if s and (i == 0 or s != path[i - 1])]
            if shown == wanted:
                total += float(np.exp(sum(probs[i, sample, s] for i, s in enumerate(path))))
        losses.append(-np.log(total))
    return np.array(losses)


def by_differences() -> Any:
    slopes, step = np.zeros_like(LOGITS), 1e-5
    for place in np.ndindex(*LOGITS.shape):
        ends = []
        for sign in (1, -1):
            moved = LOGITS.copy()
            moved[place] += sign * step
            ends.append(losses_of(moved).sum())
        slopes[place] = (ends[0] - ends[1]) / (2 * step)
    return slopes


def called(
    function: str, values: Any, options: Any = None, times: Any = TIMES, **planned: Any
) -> Any:
    run, classes = DeviceProgram(), values.shape[2]
    plan = ctc.plan(run.graph, FLOAT, FLOAT, 2, 4, 2, classes, planned)
    data = run.give(ctc.createDataInput(run.graph, FLOAT, 2, 4, classes, plan), values)
    labels = run.give(ctc.createLabelsInput(run.graph, UNSIGNED_INT, 2, 2, plan), LABELS)
    lengths = [run.tensor(column, UNSIGNED_INT) for column in (times, LENGTHS)]
    outs = getattr(popnn.ctc, function)(
        run.graph, FLOAT, data, labels, *lengths, run.program, 0, plan, "loss", options
    )
    return run.run(*(outs if isinstance(outs, tuple) else [outs]))


@pytest.mark.parametrize("kind", ["LogProbabilities", "Logits"])
def test_losses_are_those_of_all_paths_and_gradients_those_of_logits(kind: str) -> None:
    values = LOGITS if kind == "Logits" else log_softmax(LOGITS)
    (loss,) = called(f"calcCTCLoss{kind}", values)
    again, gradient = called(f"calcLossAndGradient{kind}", values)
    np.testing.assert_allclose(loss, losses_of(LOGITS), rtol=1e-5)
    np.testing.assert_allclose(again, loss)
    np.testing.assert_allclose(gradient, by_differences(), atol=2e-5)


def test_without_the_softmax_the_gradient_is_that_of_log_probabilities() -> None:
    probs = log_softmax(LOGITS)
    options = {"includeSoftmaxGradient": "false"}
    _, gradient = called("calcLossAndGradientLogProbabilities", probs, options)
    live = np.arange(4)[:, None, None] < np.array(TIMES)[None, :, None]
    np.testing.assert_allclose(gradient + np.exp(probs) * live, by_differences(), atol=2e-5)


@pytest.mark.parametrize("softmax", ["true", "false"])
def test_classes_that_no_label_has_need_not_be_computed(softmax: str) -> None:
    # 7 classes, of which labels have two; the second sample has one of them twice
    logits = np.random.default_rng(5).normal(size=(4, 2, 7))
    call = ("calcLossAndGradientLogProbabilities", log_softmax(logits))
    options = {"includeSoftmaxGradient": softmax}
    every = called(*call, options)
    reduced = called(*call, options, enableReducedClassesInLabel=True)
    for one, other in zip(reduced, every, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    (loss,) = called("calcCTCLossLogits", logits, enableReducedClassesInLabel=True)
    np.testing.assert_allclose(loss, every[0], rtol=1e-5)


def test_a_plan_of_fewer_classes_has_the_blank_and_the_labels() -> None:
    graph = DeviceProgram().graph
    plan = ctc.plan(graph, FLOAT, FLOAT, 2, 4, 2, 50, {"enableReducedClassesInLabel": "true"})
    assert (plan.numClasses, plan.reducedClasses) == (3, True)


def test_the_cycles_of_a_label_are_those_of_its_comparisons() -> None:
    assert ctc_labels.remap_cycles(np.array([0, 4])).tolist() == [24, 40]


def test_infinite_losses_are_zero_by_an_option() -> None:
    call = ("calcLossAndGradientLogits", LOGITS)
    loss, _ = called(*call, times=[1, 3])
    assert np.isinf(loss[0]) and np.isfinite(loss[1])
    loss, gradient = called(*call, {"zeroInfinity": True}, times=[1, 3])
    assert loss[0] == 0 and not gradient[:, 0].any() and gradient[:, 1].any()


def test_what_a_plan_is_not_for_is_refused() -> None:
    run = DeviceProgram()
    plan = ctc.plan(run.graph, FLOAT, FLOAT, 2, 3, 2, 3, {"partialsType": "half"})
    data = run.tensor(np.zeros((4, 2, 3)))
    numbers = [run.tensor(column, UNSIGNED_INT) for column in (LABELS, TIMES, LENGTHS)]
    with pytest.raises(poplibs_error, match="the plan is for 3 steps, 2 samples, 3 classes, 2 l"):
        ctc.calcCTCLossLogits(run.graph, FLOAT, data, *numbers, run.program, 0, plan)
    with pytest.raises(poplibs_error, match="batch 0, time 3, labels 2, classes 3; at least 1"):
        ctc.plan(run.graph, FLOAT, FLOAT, 0, 3, 2, 3)
    with pytest.raises(InvalidOptionError, match="no option 'zeroInfinities'; did you mean zeroI"):
        ctc.calcCTCLossLogits(
            run.graph, FLOAT, data, *numbers, run.program, 0, plan, "", {"zeroInfinities": "1"}
        )


CUTS = list(product((1, 2), (1, 2, 4), (1, 2), (False, True)))


@pytest.mark.parametrize(("batch", "time", "label", "apart"), CUTS)
def test_a_loss_is_the_same_however_it_is_cut(
    batch: int, time: int, label: int, apart: bool
) -> None:
    run, probs = DeviceProgram(tiles=64), log_softmax(LOGITS)
    cuts = {"batch": batch, "time": time, "label": label, "lastBlankOnSeparateTile": int(apart)}
    options = {"planConstraints": {"parallel": cuts}}
    plan = ctc.plan(run.graph, FLOAT, FLOAT, 2, 4, 2, 3, options)
    assert plan.tiles == batch * time * (label + apart)
    data = run.give(ctc.createDataInput(run.graph, FLOAT, 2, 4, 3, plan), probs)
    labels = run.give(ctc.createLabelsInput(run.graph, UNSIGNED_INT, 2, 2, plan), LABELS)
    lengths = [run.tensor(column, UNSIGNED_INT) for column in (TIMES, LENGTHS)]
    call = (run.graph, FLOAT, data, labels, *lengths, run.program, 0, plan)
    loss, gradient = ctc.calcLossAndGradientLogProbabilities(*call)
    alone, loss_, gradient_ = run.run(ctc.calcCTCLossLogProbabilities(*call), loss, gradient)
    np.testing.assert_allclose(loss_, losses_of(LOGITS), rtol=1e-5)
    np.testing.assert_allclose(alone, loss_, rtol=1e-6)
    np.testing.assert_allclose(gradient_, by_differences(), atol=2e-5)


def test_a_plan_has_the_fewest_cycles_that_fit() -> None:
    graph = DeviceProgram(tiles=64).graph
    sizes = (graph, FLOAT, FLOAT, 10, 40, 10, 4)
    plan = ctc.plan(*sizes, {"availableMemoryProportion": "0.9"})
    assert plan.tiles <= 64
    # one sample of 4 tiles: even parts of the steps take half of an odd one less
    cut = {"planConstraints": {"parallel": {"batch": 10, "time": 1}}}
    assert (ctc.plan(*sizes, cut).batch, ctc.plan(*sizes, cut).time) == (10, 1)
    for options, message in (
        ({"availableMemoryProportion": "0.0"}, "no plan of"),
        ({"planConstraints": {"parallel": {"batch": 0}}}, "no plan of"),
        ({"planConstraints": {"parallel": {"xyz": 0}}}, "constraint parallel.xyz"),
    ):
        with pytest.raises(poplibs_error, match=message):
            ctc.plan(*sizes, options)


def test_a_plan_of_another_kind_is_refused() -> None:
    graph = DeviceProgram().graph
    other: Any = popnn.ctc_infer.plan(graph, FLOAT, 1, 10, 5, 5)
    with pytest.raises(poplibs_error, match="createDataInput: plan is"):
        ctc.createDataInput(graph, FLOAT, 1, 10, 5, other)
    with pytest.raises(poplibs_error, match="createLabelsInput: plan is"):
        ctc.createLabelsInput(graph, UNSIGNED_INT, 1, 10, other)
    none, prog = Tensor(), program.Sequence()
    for function in (ctc.calcLossAndGradientLogits, ctc.calcLossAndGradientLogProbabilities):
        with pytest.raises(poplibs_error, match="CTCLoss: plan is"):
            function(graph, FLOAT, none, none, none, none, prog, 0, other)


def test_the_cycles_of_a_step_are_poplibs() -> None:
    # 2 * (1 + 3) + 2 * (16 + 1) + 2 a label
    assert vertices.step(np.array([3])) == (8 + 34 + 2) * 3
    assert vertices.step_with_gradient(np.array([3])) == (44 + 2 * 3 + 2 * 17) * 3
