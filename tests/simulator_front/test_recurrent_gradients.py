"""Backward passes of LSTM and GRU against differences of their equations in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from value_program import Values, numbers

from simulator.graph.types import FLOAT
from simulator.poplibs.popnn import gru, lstm
from simulator.poplibs.popnn.gru_backward import gruBwdWithWU
from simulator.poplibs.popnn.lstm_backward import lstmBwdWithWU

STEPS, BATCH, INPUTS, OUTPUTS = 3, 2, 5, 4
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_outputs(data: Any, output: Any, cell: Any, inner: Any, outer: Any, bias: Any) -> Any:
    """Return all outputs; units are forget, input, candidate, output."""
    outputs = []
    for step in data:
        f, i, c, o = (step @ inner[u] + output @ outer[u] + bias[u] for u in range(4))
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
        output = sigmoid(o) * np.tanh(cell)
        outputs.append(output)
    return np.array(outputs)


def gru_outputs(data: Any, output: Any, inner: Any, outer: Any, bias: Any) -> Any:
    """Return all outputs; units are reset, update, candidate."""
    outputs = []
    for step in data:
        r, u = (sigmoid(step @ inner[k] + output @ outer[k] + bias[k]) for k in range(2))
        c = np.tanh(step @ inner[2] + (r * output) @ outer[2] + bias[2])
        output = u * output + (1 - u) * c
        outputs.append(output)
    return np.array(outputs)


def differences(function: Any, parts: list[Any], weight: Any) -> list[Any]:
    """Return the gradients of the weighted sum of outputs by central differences."""
    made, step = [], 1e-5
    for part in parts:
        gradient = np.zeros_like(part)
        for place in np.ndindex(*part.shape):
            kept, sums = part[place], []
            for sign in (1, -1):
                part[place] = kept + sign * step
                sums.append((weight * function(*parts)).sum())
            part[place] = kept
            gradient[place] = (sums[0] - sums[1]) / (2 * step)
        made.append(gradient)
    return made


def draw(units: int, states: int) -> tuple[list[Any], Any]:
    """Draw the inputs, the first states, the weights and biases; and the outputs' gradients."""
    shapes = [(STEPS, BATCH, INPUTS), *[(BATCH, OUTPUTS)] * states]
    shapes += [(units, INPUTS, OUTPUTS), (units, OUTPUTS, OUTPUTS), (units, OUTPUTS)]
    parts = [numbers(*shape, seed=seed).astype(float) / 2 for seed, shape in enumerate(shapes)]
    return parts, numbers(STEPS, BATCH, OUTPUTS, seed=9).astype(float)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 3, 0, 2)])
@pytest.mark.parametrize("with_inputs", [True, False])
def test_lstm_gradients_are_those_of_its_equations(order: Any, with_inputs: bool) -> None:
    parts, weight = draw(4, 2)
    expected = differences(lstm_outputs, parts, weight)
    values = Values()
    units = [lstm.BasicLstmCellUnit(unit) for unit in order]
    params = lstm.LstmParams(FLOAT, BATCH, STEPS, [INPUTS, OUTPUTS], cellOrder=units)
    data, output, cell = (values.tensor(part) for part in parts[:3])
    weights = lstm.LstmWeights(*(values.tensor(part[list(order)]) for part in parts[3:]))
    state, kept, of_inputs = lstm.LstmState(output, cell), [], [] if with_inputs else None
    out, _ = lstm.lstmFwd(values.graph, params, state, data, weights, kept, values.program)
    grads, made = lstmBwdWithWU(
        values.graph, params, values.program, state, kept[0], weights, data, out,
        values.tensor(weight), None, of_inputs,
    )  # fmt: skip
    storage = values.run()
    for tensor, part in zip(made, expected[3:], strict=True):
        np.testing.assert_allclose(storage.read(tensor), part[list(order)], **CLOSE)
    for tensor, part in zip(grads, expected[1:3], strict=True):
        np.testing.assert_allclose(storage.read(tensor), part, **CLOSE)
    for tensor in of_inputs or ():
        np.testing.assert_allclose(storage.read(tensor), expected[0], **CLOSE)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
@pytest.mark.parametrize("with_inputs", [True, False])
def test_gru_gradients_are_those_of_its_equations(order: Any, with_inputs: bool) -> None:
    parts, weight = draw(3, 1)
    expected = differences(gru_outputs, parts, weight)
    values = Values()
    units = [gru.BasicGruCellUnit(unit) for unit in order]
    params = gru.GruParams(FLOAT, BATCH, STEPS, [INPUTS, OUTPUTS], cellOrder=units)
    data, state = (values.tensor(part) for part in parts[:2])
    weights = gru.GruWeights(*(values.tensor(part[list(order)]) for part in parts[2:]))
    kept, of_inputs = [], [] if with_inputs else None
    out = gru.gruFwd(values.graph, params, state, data, weights, kept, values.program)
    first, made = gruBwdWithWU(
        values.graph, params, values.program, state, kept[0], weights, data, out,
        values.tensor(weight), of_inputs,
    )  # fmt: skip
    storage = values.run()
    for tensor, part in zip(made, expected[2:], strict=True):
        np.testing.assert_allclose(storage.read(tensor), part[list(order)], **CLOSE)
    np.testing.assert_allclose(storage.read(first), expected[1], **CLOSE)
    for tensor in of_inputs or ():
        np.testing.assert_allclose(storage.read(tensor), expected[0], **CLOSE)
