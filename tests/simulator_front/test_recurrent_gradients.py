"""Backward passes of LSTM and GRU against differences of their equations in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from value_program import Values, numbers

from simulator.codelets.elementwise import step_mask
from simulator.graph.errors import poplibs_error
from simulator.graph.machine.target import TARGETS
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT
from simulator.poplibs.popnn import gru, lstm
from simulator.poplibs.popnn.recurrence.gru_backward import gruBwdWithWU
from simulator.poplibs.popnn.recurrence.lstm_backward import lstmBwdWithWU

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


def gru_after_outputs(data: Any, output: Any, inner: Any, outer: Any, bias: Any) -> Any:
    """Return all outputs where the reset gate acts on the product of the state; two biases."""
    outputs = []
    for step in data:
        own, added = ([part[k] + b[k] for k in range(3)] for part, b in (
            (step @ inner, bias[:, 0]), (output @ outer, bias[:, 1])))  # fmt: skip
        r, u = (sigmoid(own[k] + added[k]) for k in range(2))
        c = np.tanh(own[2] + r * added[2])
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


def steps_of(values: Values, lengths: Any) -> Any:
    return values.tensor(np.uint32(lengths), dtype=UNSIGNED_INT)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
@pytest.mark.parametrize("with_inputs", [True, False])
@pytest.mark.parametrize("lengths", [None, (3, 1)])
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_gru_gradients_are_those_of_its_equations(
    order: Any, with_inputs: bool, lengths: Any, full: bool, after: bool
) -> None:
    parts, weight = draw(3, 1)
    weight = weight if full else weight[0]
    if after:
        parts[-1] = numbers(3, 2, OUTPUTS, seed=7).astype(float) / 2
    plain: Any = gru_after_outputs if after else gru_outputs
    outputs = ended(plain, lengths or (STEPS,) * BATCH, full)
    expected = differences(outputs, parts, weight)
    values = Values()
    units = [gru.BasicGruCellUnit(unit) for unit in order]
    params = gru.GruParams(
        FLOAT, BATCH, STEPS, [INPUTS, OUTPUTS], cellOrder=units, resetAfter=after,
        outputFullSequence=full,
        varTimeSteps=None if lengths is None else steps_of(values, lengths),
    )  # fmt: skip
    data, state = (values.tensor(part) for part in parts[:2])
    weights = gru.GruWeights(*(values.tensor(part[list(order)]) for part in parts[2:]))
    kept, of_inputs = [], [] if with_inputs else None
    out = gru.gruFwd(values.graph, params, state, data, weights, kept, values.program)
    first, made = gruBwdWithWU(
        values.graph, params, values.program, state, kept[0], weights, data, out,
        values.tensor(weight), of_inputs,
    )  # fmt: skip
    storage = values.run()
    np.testing.assert_allclose(storage.read(out), outputs(*parts), **CLOSE)
    for tensor, part in zip(made, expected[2:], strict=True):
        np.testing.assert_allclose(storage.read(tensor), part[list(order)], **CLOSE)
    np.testing.assert_allclose(storage.read(first), expected[1], **CLOSE)
    for tensor in of_inputs or ():
        np.testing.assert_allclose(storage.read(tensor), expected[0], **CLOSE)


def ended(function: Any, lengths: Any, full: bool) -> Any:
    """Return a layer's outputs of samples that end: zeros behind, or each sample's last alone."""

    def outputs(*parts: Any) -> Any:
        every = function(*parts)
        if not full:
            return every[np.asarray(lengths) - 1, np.arange(BATCH)]
        return every * (np.arange(STEPS)[:, None] < lengths)[..., None]

    return outputs


@pytest.mark.parametrize("lengths", [(2, 3), (1, 2), (3, 3), (2,)])
def test_samples_of_a_gru_end_at_their_real_time_steps(lengths: Any) -> None:
    parts, weight = draw(3, 1)
    outputs = ended(gru_outputs, lengths, True)
    values, kept, of_inputs = Values(), [], []
    params = gru.GruParams(FLOAT, BATCH, STEPS, [INPUTS, OUTPUTS])
    data, state = (values.tensor(part) for part in parts[:2])
    weights = gru.GruWeights(*map(values.tensor, parts[2:]))
    steps = values.tensor(lengths, dtype=UNSIGNED_INT)
    graph, prog = values.graph, values.program
    out = gru.gruFwd(graph, params, state, data, steps, weights, kept, prog)
    first, made = gruBwdWithWU(
        graph, params, prog, state, kept[0], weights, data, steps, out, values.tensor(weight),
        of_inputs,
    )  # fmt: skip
    storage = values.run()
    np.testing.assert_allclose(storage.read(out), outputs(*parts), **CLOSE)
    tensors = [*of_inputs, first, *made]
    for tensor, part in zip(tensors, differences(outputs, parts, weight), strict=True):
        np.testing.assert_allclose(storage.read(tensor), part, **CLOSE)


@pytest.mark.parametrize("lengths", [(2, 3), (1, 2), (3, 3), (2,)])
def test_samples_of_an_lstm_end_at_their_time_steps(lengths: Any) -> None:
    parts, weight = draw(4, 2)
    outputs = ended(lstm_outputs, lengths, True)
    values, kept, of_inputs = Values(), [], []
    steps = values.tensor(lengths, dtype=UNSIGNED_INT)
    params = lstm.LstmParams(FLOAT, BATCH, STEPS, steps, [INPUTS, OUTPUTS])
    data, output, cell = (values.tensor(part) for part in parts[:3])
    weights = lstm.LstmWeights(*map(values.tensor, parts[3:]))
    state, graph, prog = lstm.LstmState(output, cell), values.graph, values.program
    out, _ = lstm.lstmFwd(graph, params, state, data, weights, kept, prog)
    grads, made = lstmBwdWithWU(
        graph, params, prog, state, kept[0], weights, data, out, values.tensor(weight), None,
        of_inputs,
    )  # fmt: skip
    storage = values.run()
    np.testing.assert_allclose(storage.read(out), outputs(*parts), **CLOSE)
    tensors = [*of_inputs, *grads, *made]
    for tensor, part in zip(tensors, differences(outputs, parts, weight), strict=True):
        np.testing.assert_allclose(storage.read(tensor), part, **CLOSE)


@pytest.mark.parametrize("training", [False, True])
def test_the_output_of_a_gru_is_that_of_each_samples_last_step(training: bool) -> None:
    (parts, _), lengths = draw(3, 1), (1, 3)
    values = Values()
    steps = values.tensor(lengths, dtype=UNSIGNED_INT)
    params = gru.GruParams(FLOAT, BATCH, STEPS, steps, [INPUTS, OUTPUTS])
    params.outputFullSequence = False
    data, state = (values.tensor(part) for part in parts[:2])
    weights = gru.GruWeights(*map(values.tensor, parts[2:]))
    kept = [] if training else None
    out = gru.gruFwd(values.graph, params, state, data, weights, kept, values.program)
    expected = ended(gru_outputs, lengths, False)(*parts)
    np.testing.assert_allclose(values.run().read(out), expected, **CLOSE)


@pytest.mark.parametrize("preserve", [False, True])
def test_a_cell_keeps_its_state_behind_the_end_of_a_sample(preserve: bool) -> None:
    parts, _ = draw(4, 2)
    values = Values()
    ends = []
    for lengths in ((1, 3), (1, 1)):  # the first sample ends after a step, or both do
        steps = values.tensor(lengths, dtype=UNSIGNED_INT)
        params = lstm.LstmParams(FLOAT, BATCH, STEPS, steps, [INPUTS, OUTPUTS])
        params.preserveFinalState = preserve
        data, *first = (values.tensor(part) for part in parts[:3])
        weights = lstm.LstmWeights(*map(values.tensor, parts[3:]))
        state = lstm.LstmState(*first)
        _, cell = lstm.lstmFwd(values.graph, params, state, data, weights, None, values.program)
        ends.append(cell)
    storage = values.run()
    kept, alone = (storage.read(cell)[0] for cell in ends)
    np.testing.assert_allclose(kept, alone if preserve else 0 * alone, **CLOSE)
    assert np.abs(alone).min() > 1e-3


def test_lengths_are_one_or_one_a_sample_and_given_once() -> None:
    values = Values()
    graph, prog = values.graph, values.program
    data, state, *weights = (values.tensor(part) for part in draw(3, 1)[0])
    params = gru.GruParams(FLOAT, BATCH, STEPS, [INPUTS, OUTPUTS])
    for lengths, dtype in (((1, 2, 3), UNSIGNED_INT), ((1, 2), INT)):
        steps = values.tensor(lengths, dtype=dtype)
        with pytest.raises(poplibs_error, match=r"unsigned int\[2\] or \[1\]"):
            gru.gruFwd(graph, params, state, data, steps, gru.GruWeights(*weights), None, prog)
    steps = values.tensor((1, 2), dtype=UNSIGNED_INT)
    twice = gru.GruParams(FLOAT, BATCH, STEPS, steps, [INPUTS, OUTPUTS])
    with pytest.raises(poplibs_error, match="one is needed"):
        gru.gruFwd(graph, twice, state, data, steps, gru.GruWeights(*weights), None, prog)


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_a_report_of_samples_that_end_breaks_no_law(tmp_path: Any, dtype: Any) -> None:
    run, (parts, _) = DeviceProgram(), draw(3, 1)
    steps = run.tensor((1, 2), UNSIGNED_INT)
    params = gru.GruParams(dtype, BATCH, STEPS, steps, [INPUTS, OUTPUTS])
    data, state, *weights = (run.tensor(part, dtype) for part in parts)
    layer = gru.GruWeights(*weights)
    out = gru.gruFwd(run.graph, params, state, data, layer, None, run.program, "layer")
    (values,) = run.run(out, report=tmp_path)
    tolerance = CLOSE if dtype is FLOAT else {"rtol": 2e-2, "atol": 1e-2}
    expected = ended(gru_outputs, (1, 2), True)(*parts)
    np.testing.assert_allclose(values, expected, **tolerance)


def test_the_cycles_of_a_mask_of_samples() -> None:
    # 13 samples are 3 of a worker: 3 turns of one float, 2 of two halves
    samples, mk2 = np.array([13]), TARGETS["mk2"]
    call = step_mask.SUPERVISOR_CALL
    assert step_mask.mask_cycles(samples, mk2, FLOAT) == 6 * (20 + 15 + 3 * 8) + call
    assert step_mask.mask_cycles(samples, mk2, HALF) == 6 * (20 + 36 + 2 * 23) + call
