"""The plain recurrent layer: its names, states and gradients (PopLibs tools/rnn_layer.cpp)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from value_program import Values, numbers

from simulator import popnn
from simulator.graph.types import FLOAT, HALF
from simulator.poplibs import poputil

STEPS, BATCH, INPUTS, OUTPUTS = 3, 2, 5, 4
TANH = popnn.NonLinearityType.TANH
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def draw() -> list[Any]:
    """Draw inputs, the first state, weights of inputs and states, biases, and output gradients."""
    shapes = [(STEPS, BATCH, INPUTS), (BATCH, OUTPUTS), (INPUTS, OUTPUTS), (OUTPUTS, OUTPUTS)]
    shapes += [(OUTPUTS,), (STEPS, BATCH, OUTPUTS)]
    return [numbers(*shape, seed=seed).astype(float) / 2 for seed, shape in enumerate(shapes)]


def states(data: Any, state: Any, inner: Any, outer: Any, bias: Any) -> Any:
    """Return tanh(x W + h U + b) of all steps."""
    every = []
    for step in data:
        state = np.tanh(step @ inner + state @ outer + bias)
        every.append(state)
    return np.array(every)


def gradients(parts: list[Any], weight: Any) -> list[Any]:
    """Return the gradients of the weighted sum of states, by its differences."""
    results, step = [], 1e-5
    for part in parts:
        gradient = np.zeros_like(part)
        for place in np.ndindex(*part.shape):
            value, sums = part[place], []
            for sign in (1, -1):
                part[place] = value + sign * step
                sums.append((weight * states(*parts)).sum())
            part[place] = value
            gradient[place] = (sums[0] - sums[1]) / (2 * step)
        results.append(gradient)
    return results


def test_steps_one_by_one_forward_and_back() -> None:
    # the order of calls of PopLibs' tool, which adds each step by itself
    *parts, weight = draw()
    values, rnn = Values(), popnn.rnn
    graph, prog = values.graph, values.program
    data, first, inner, outer, bias, grads = map(values.tensor, (*parts, weight))
    fed = rnn.forwardWeightInput(graph, data, inner, prog, FLOAT, False, "fed")
    out = rnn.forwardIterate(graph, fed, first, outer, bias, prog, TANH, FLOAT)
    behind = rnn.createBwdState(graph, FLOAT, BATCH, OUTPUTS, prog)
    totals = [values.tensor(0 * part) for part in parts[2:]]
    of_inputs = []
    for step in reversed(range(STEPS)):
        of_input, behind = rnn.backwardGradientStep(
            graph, grads[step], behind, out[step], inner, outer, prog, TANH
        )
        of_inputs.insert(0, of_input)
        before = out[step - 1] if step else first
        rnn.paramDeltaUpdate(graph, behind, data[step], before, *totals, prog)
    storage, expected = values.run(), gradients(parts, weight)
    shown = rnn.getOutputFromFwdState(out)
    np.testing.assert_allclose(storage.read(shown), states(*parts), **CLOSE)
    stacked = [storage.read(of_input) for of_input in of_inputs]
    np.testing.assert_allclose(stacked, expected[0], **CLOSE)
    for total, part in zip(totals, expected[2:], strict=True):
        np.testing.assert_allclose(storage.read(total), part, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("with_inputs", [False, True])
def test_a_loop_of_steps_forward_and_back(weighted: bool, update: bool, with_inputs: bool) -> None:
    *parts, weight = draw()
    values, rnn = Values(), popnn.rnn
    graph, prog = values.graph, values.program
    data, first, inner, outer, bias = map(values.tensor, parts)
    fed = rnn.forwardWeightInput(graph, data, inner, prog) if weighted else None
    out = rnn.rnnFwdSequence(
        graph, prog, first, fed, bias, inner, outer, data, TANH, FLOAT, False, "layer"
    )
    results = rnn.rnnBwdSequence(
        graph, update, not with_inputs, prog, first, out, bias, inner, outer,
        values.tensor(weight.swapaxes(0, 1)), data, TANH, FLOAT, "layer",
    )  # fmt: skip
    storage, expected = values.run(), gradients(parts, weight)
    np.testing.assert_allclose(storage.read(out), states(*parts), **CLOSE)
    wanted = [with_inputs, update, update, update]
    assert [result is not None for result in results] == wanted
    for result, part in zip(results, [expected[0], *expected[2:]], strict=True):
        if result is not None:
            np.testing.assert_allclose(storage.read(result), part, **CLOSE)


def test_the_gradient_of_a_sum_alone_needs_no_weights_of_inputs() -> None:
    *parts, weight = draw()
    values, rnn = Values(), popnn.rnn
    *_, inner, outer, _, grads = map(values.tensor, (*parts, weight))
    both = [
        rnn.backwardGradientStep(
            values.graph, grads[0], grads[1], grads[2], *weights, values.program, TANH
        )
        for weights in ((inner, outer), (outer,))
    ]
    storage = values.run()
    np.testing.assert_array_equal(storage.read(both[0][1]), storage.read(both[1]))


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_tensors_that_the_layer_adds(tmp_path: Any, dtype: Any) -> None:
    run, rnn, (*parts, _) = DeviceProgram(), popnn.rnn, draw()
    graph, sizes = run.graph, (STEPS, BATCH, INPUTS, OUTPUTS)
    tensors = [
        rnn.createInput(graph, *sizes, dtype, FLOAT, True, "layer"),
        rnn.createFwdState(graph, dtype, BATCH, OUTPUTS, run.program, False, True, "layer"),
        rnn.createWeightsInput(graph, *sizes, dtype, FLOAT, True, "layer"),
        rnn.createWeightsFeedback(graph, BATCH, OUTPUTS, dtype, FLOAT, True, "layer"),
        graph.addVariable(dtype, [OUTPUTS], "bias"),
    ]
    poputil.mapTensorLinearly(graph, tensors[-1])
    data, first, inner, outer, bias = map(run.give, tensors, parts)
    out = rnn.rnnFwdSequence(
        graph, run.program, first, None, bias, inner, outer, data, TANH, FLOAT, True, "layer"
    )
    (values,) = run.run(out, report=tmp_path)
    tolerance = CLOSE if dtype is FLOAT else {"rtol": 1e-2, "atol": 1e-2}
    np.testing.assert_allclose(values, states(*parts), **tolerance)


def test_operations_are_counted_as_poplibs_does() -> None:
    # 3 steps of 2 samples, 5 inputs, 4 outputs: 4 (2 * 4 - 1) + 4 (2 * 5 - 1) a sample, 8 a step
    sizes = (STEPS, BATCH, INPUTS, OUTPUTS)
    assert popnn.rnn.getFwdFlops(*sizes) == 6 * (28 + 36) + 3 * 8
    assert popnn.rnn.getFwdFlops(*sizes, False) == 6 * 28 + 3 * 8
    assert popnn.rnn.getBwdFlops(*sizes) == 6 * (28 + 36)
    assert popnn.rnn.getBwdFlops(*sizes, False) == 6 * 28
    # products of 9 values, the sums of 6 samples with the bias's, an update of 10 rows
    assert popnn.rnn.getWuFlops(*sizes) == 6 * 4 * 9 + 5 * 4 * 10 + 4 * 10


def test_the_products_that_may_be_planned_ahead() -> None:
    sizes = (STEPS, BATCH, INPUTS, OUTPUTS)
    training = popnn.rnn.getMatMulPrePlanParameters(*sizes, FLOAT)
    assert [tuple(map(tuple, (p.aShape, p.bShape))) for p, _ in training] == [
        ((1, 2, 10), (1, 10, 4)), ((1, 2, 4), (1, 4, 10)), ((1, 10, 2), (1, 2, 4)),
        ((1, 2, 4), (1, 4, 4)), ((1, 2, 4), (1, 4, 4)), ((1, 4, 2), (1, 2, 4)),
    ]  # fmt: skip
    alone = popnn.rnn.getMatMulPrePlanParameters(*sizes, FLOAT, FLOAT, True, False)
    assert [options["fullyConnectedPass"] for _, options in alone] == ["INFERENCE_FWD"]


def test_a_name_that_the_layer_has_not_is_refused() -> None:
    with pytest.raises(AttributeError, match="rnnSequence"):
        _ = popnn.rnn.rnnSequence
