"""The classification loss with a plan: values, gradients by differences, options."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram

from simulator import popnn
from simulator.graph.errors import InvalidOptionError, poplibs_error
from simulator.graph.types import FLOAT, UNSIGNED_INT
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


def called(function: str, values: Any, options: Any = None, times: Any = TIMES) -> Any:
    run = DeviceProgram()
    plan = ctc.plan(run.graph, FLOAT, FLOAT, 2, 4, 2, 3)
    data = run.give(ctc.createDataInput(run.graph, FLOAT, 2, 4, 3, plan), values)
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
