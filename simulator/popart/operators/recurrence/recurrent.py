"""The LSTM of ONNX, by popnn's layer; what that lacks is computed step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import INT, UNSIGNED_INT, Type
from simulator.popart.errors import popart_exception
from simulator.popart.operators.call import Call, broadcast
from simulator.poplibs import poplin, popops
from simulator.poplibs.popnn import lstm
from simulator.poplibs.popnn.lstm import BasicLstmCellUnit, LstmParams, LstmState, LstmWeights
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr, _1, _2, _3, _4

# The order of ONNX's gates: input, output, forget, cell.
CELL_ORDER = [
    BasicLstmCellUnit.BASIC_LSTM_CELL_INPUT_GATE,
    BasicLstmCellUnit.BASIC_LSTM_CELL_OUTPUT_GATE,
    BasicLstmCellUnit.BASIC_LSTM_CELL_FORGET_GATE,
    BasicLstmCellUnit.BASIC_LSTM_CELL_CANDIDATE,
]
GATES = len(CELL_ORDER)
USUAL = ["Sigmoid", "Tanh", "Tanh"]

Activation = Callable[[Expr, float, float], Expr]
# ONNX's activations with the defaults of alpha and beta (operator LSTM, version 7).
ACTIVATIONS: dict[str, tuple[Activation, float, float]] = {
    "Relu": (lambda x, a, b: expr.Relu(x), 0, 0),
    "Tanh": (lambda x, a, b: expr.Tanh(x), 0, 0),
    "Sigmoid": (lambda x, a, b: expr.Sigmoid(x), 0, 0),
    "Affine": (lambda x, a, b: x * a + b, 1, 0),
    "LeakyRelu": (lambda x, a, b: expr.Select(x, x * a, x >= 0), 0.01, 0),
    "ThresholdedRelu": (lambda x, a, b: expr.Select(x, x * 0, x >= a), 1, 0),
    "ScaledTanh": (lambda x, a, b: expr.Tanh(x * b) * a, 1, 1),
    "HardSigmoid": (lambda x, a, b: expr.Max(expr.Min(x * a + b, 1), 0), 0.2, 0.5),
    "Elu": (lambda x, a, b: expr.Select(x, expr.Expm1(x) * a, x >= 0), 1, 0),
    "Softsign": (lambda x, a, b: x / (expr.Abs(x) + 1), 0, 0),
    "Softplus": (lambda x, a, b: expr.Max(x, 0.0) + expr.Log1p(expr.Exp(-expr.Abs(x))), 0, 0),
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One direction: time first, [gates, rows, columns] of weights, [gates, size] of biases."""

    inputs: Tensor
    weights: Tensor
    recurrent: Tensor
    biases: Tensor
    output: Tensor
    cell: Tensor

    @property
    def size(self) -> int:
        return self.recurrent.shape[1]


class Step(NamedTuple):
    """What a step leaves for its gradient: sums of gates, states before it, and the cell after."""

    gates: Tensor
    output: Tensor
    cell: Tensor
    now: Tensor


def directions(call: Call) -> list[bool]:
    """Return, for each direction, whether time runs backward."""
    kind = call.attribute("direction", "forward")
    return {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[kind]


def lengths_of(call: Call, steps: int) -> Tensor | None:
    """Return the steps of each sequence [batch], None where all have all of them."""
    if not call.has(4):
        return None
    fixed = call.value(4)
    if fixed is None:
        return call.cast(call[4], INT)
    return None if (fixed == steps).all() else call.constant(fixed.astype(np.int32), INT, "lengths")


def last_of(call: Call, outputs: Tensor, lengths: Tensor | None, first: Tensor) -> Tensor:
    """Return the last output of each sequence, [batch, size]; `first` where there is no step."""
    steps = outputs.shape[0]
    if lengths is None:
        return outputs[steps - 1]
    numbers = call.constant(np.arange(1, steps + 1, dtype=np.int32)[:, None, None], INT, "steps")
    ends = call.map(expr.Equal(_1, _2), numbers, lengths.expand([0, 1]))
    chosen = call.map(expr.Select(_1, _1 * 0, _2), outputs, broadcast(ends, outputs.shape))
    last = popops.reduce(call.graph, chosen, [0], Operation.ADD, call.prog, f"{call.name}/last")
    some = broadcast(call.map(_1 > 0, lengths).expand([1]), last.shape)
    return call.map(expr.Select(_1, _2, _3), last, first, some)


def onnx_lstm(call: Call) -> list[Tensor]:
    """Run each direction; give all outputs, the last output and the last cell."""
    by_batch = bool(call.attribute("layout", 0))
    inputs = call[0].dimShufflePartial([0], [1]) if by_batch else call[0]
    results = []
    for place, backward in enumerate(directions(call)):
        direction_inputs = inputs.reverse(0) if backward else inputs
        layer = _layer(call, direction_inputs, place, by_batch)
        outputs, last, cell = _run(call, layer, place, backward)
        results.append((outputs.reverse(0) if backward else outputs, last, cell))
    outputs = concat([direction[0].expand([1]) for direction in results], 1)
    last, cell = (
        concat([direction[which].expand([0]) for direction in results], 0) for which in (1, 2)
    )
    if by_batch:  # [batch, time, direction, size] and [batch, direction, size]
        outputs = outputs.dimShuffle([2, 0, 1, 3])
        last, cell = (state.dimShuffle([1, 0, 2]) for state in (last, cell))
    return [outputs, last, cell]


def _layer(call: Call, inputs: Tensor, place: int, by_batch: bool) -> Layer:
    """Take the weights, biases and states of one direction."""
    size = call.info(2).dims[-1]
    batch, dtype = inputs.shape[1], inputs.dtype
    weights, recurrent = (
        call[which][place].reshape((GATES, size, call.info(which).dims[-1])).dimShuffle([0, 2, 1])
        for which in (1, 2)
    )
    if call.has(3):
        both = call[3][place].reshape((2, GATES, size))
        biases = call.map(_1 + _2, both[0], both[1])
    else:
        biases = call.constant(np.zeros((GATES, size), dtype.numpy), dtype, "biases")
    states = []
    for which in (5, 6):
        if not call.has(which):
            states.append(call.constant(np.zeros((batch, size), dtype.numpy), dtype, "state"))
        else:
            states.append(call[which][:, place] if by_batch else call[which][place])
    return Layer(inputs, weights, recurrent, biases, states[0], states[1])


def _run(call: Call, layer: Layer, place: int, backward: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return all outputs, the last one and the last cell of a direction."""
    names = (call.attribute("activations") or USUAL * 2)[3 * place : 3 * place + 3]
    steps = layer.inputs.shape[0]
    lengths = lengths_of(call, steps)
    full_length = lengths is None
    plain = [name.capitalize() for name in names] == USUAL and not call.has(7)
    plain = plain and not call.attribute("clip") and not call.attribute("input_forget", 0)
    if plain and not call.training and (full_length or not backward):
        return _by_layer(call, layer, lengths)
    if call.training and not (plain and full_length):
        raise popart_exception(f"{call.node}: only its plain form has a gradient")
    if backward and not full_length:
        raise popart_exception(f"{call.node}: sequences of several lengths backward in time")
    return _by_step(call, layer, place, names, full_length)


def lstm_params(dtype: Type, steps: int, batch: int, sizes: tuple[int, int]) -> LstmParams:
    """Return popnn's parameters of a layer whose gates are in ONNX's order."""
    return LstmParams(dtype, batch, steps, list(sizes), cellOrder=CELL_ORDER)


def _by_layer(call: Call, layer: Layer, lengths: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Use popnn's layer, whose cells keep what they hold behind a sequence's end."""
    steps, batch, inputs = layer.inputs.shape
    params = lstm_params(layer.inputs.dtype, steps, batch, (inputs, layer.size))
    if lengths is not None:
        params.varTimeSteps, params.preserveFinalState = call.cast(lengths, UNSIGNED_INT), True
    outputs, cell = lstm.lstmFwd(
        call.graph, params, LstmState(layer.output, layer.cell), layer.inputs,
        LstmWeights(layer.weights, layer.recurrent, layer.biases), None, call.prog, call.name,
        {"inferenceOnly": not call.training},
    )  # fmt: skip
    return outputs, last_of(call, outputs, lengths, layer.output), cell


# Step by step
def _by_step(
    call: Call, layer: Layer, place: int, names: list[str], full_length: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Unroll the steps: with peepholes, clipping, other activations, lengths by sequence."""
    sums = _sums(call, layer, full_length)
    output, cell, outputs = layer.output, layer.cell, []
    kept_steps: list[Step] = []
    peepholes = call[7][place].reshape((3, layer.size)) if call.has(7) else None
    for step in range(layer.inputs.shape[0]):
        gates = sums(step, output)
        now = _cell(call, gates, cell, peepholes, _activations(call, names, place))
        kept_steps.append(Step(gates, output, cell, now[1]))
        shown = now[0]
        if not full_length:
            now, shown = _masked(call, now, (output, cell), step)
        output, cell = now
        outputs.append(shown.expand([0]))
    call.saved = (*call.saved, (layer, kept_steps))
    together = concat(outputs, 0)
    stored = call.variable(together.dtype, together.shape, "outputs")
    call.prog.add(Copy(together, stored, name=f"{call.name}/outputs"))
    return stored, output, cell


def _sums(call: Call, layer: Layer, full_length: bool) -> Callable[[int, Tensor], Tensor]:
    """Return what gives the sums of the gates of a step [batch, gates * size], by the output.

    The products of all inputs come first. With lengths by sequence each step has one product with
    inputs and output together, as PopLibs' layer has.
    """
    steps, batch, inputs = layer.inputs.shape
    matrices = matrix_of(layer.weights), matrix_of(layer.recurrent)
    flat_biases = layer.biases.reshape((1, GATES * layer.size))
    if not full_length:
        both = concat(list(matrices), 0)

        def together(step: int, output: Tensor) -> Tensor:
            operand = concat([layer.inputs[step], output], 1)
            product = poplin.matMul(
                call.graph, operand, both, call.prog, debugContext=f"{call.name}/Weight"
            )
            return call.map(_1 + _2, product, broadcast(flat_biases, product.shape))

        return together
    flat = layer.inputs.reshape((steps * batch, inputs))
    sums = poplin.matMul(
        call.graph, flat, matrices[0], call.prog, debugContext=f"{call.name}/Inputs"
    )
    biases = broadcast(flat_biases, sums.shape)
    popops.addInPlace(call.graph, sums, biases, call.prog, f"{call.name}/Biases")

    def apart(step: int, output: Tensor) -> Tensor:
        product = poplin.matMul(
            call.graph, output, matrices[1], call.prog, debugContext=f"{call.name}/Recurrent"
        )
        return call.map(_1 + _2, sums.slice(step * batch, (step + 1) * batch, 0), product)

    return apart


def matrix_of(weights: Tensor) -> Tensor:
    """View [gates, rows, columns] as [rows, gates * columns]."""
    gates, rows, columns = weights.shape
    return weights.dimShuffle([1, 0, 2]).reshape((rows, gates * columns))


def _activations(call: Call, names: list[str], place: int) -> list[Callable[[Expr], Expr]]:
    """Return the functions of gates, cell and output, each after what clips it."""
    parameters: dict[str, list[float]] = {
        name: list(call.attribute(f"activation_{name}") or ()) for name in ("alpha", "beta")
    }
    limit = float(call.attribute("clip", 0.0))
    table = {name.lower(): row for name, row in ACTIVATIONS.items()}

    def made(function: Activation, alpha: float, beta: float) -> Callable[[Expr], Expr]:
        def activate(x: Expr) -> Expr:
            inner = expr.Max(expr.Min(x, limit), -limit) if limit else x
            return function(inner, alpha, beta)

        return activate

    functions = []
    for number, name in enumerate(names, 3 * place):
        function, *defaults = table[name.lower()]
        numbers = [
            values[number] if number < len(values) else default
            for values, default in zip(parameters.values(), defaults, strict=True)
        ]
        functions.append(made(function, *numbers))
    return functions


def _cell(
    call: Call,
    gates: Tensor,
    cell: Tensor,
    peepholes: Tensor | None,
    functions: list[Callable[[Expr], Expr]],
) -> tuple[Tensor, Tensor]:
    """Return output and cell after a step; peepholes are those of input, output and forget gate."""
    size, (gate, candidate, shown) = cell.shape[1], functions
    i, o, f, c = (gates.slice(place * size, (place + 1) * size, 1) for place in range(GATES))

    def seen(part: Tensor, place: int, state: Tensor) -> Tensor:
        if peepholes is None:
            return call.map(gate(_1), part)
        weights = broadcast(peepholes[place].expand([0]), part.shape)
        return call.map(gate(_1 + _2 * _3), part, weights, state)

    input_gate = seen(i, 0, cell)
    if call.attribute("input_forget", 0):
        forget_gate = call.map(expr.Sub(1, _1), input_gate)
    else:
        forget_gate = seen(f, 2, cell)
    now = call.map(_1 * _2 + _3 * candidate(_4), forget_gate, cell, input_gate, c)
    return call.map(_1 * shown(_2), seen(o, 1, now), now), now


def _masked(
    call: Call, now: tuple[Tensor, Tensor], before: tuple[Tensor, Tensor], step: int
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Keep the states of sequences that have ended; their outputs are 0."""
    lengths = call.value(4)
    tensor = call[4] if lengths is None else call.constant(lengths.astype(np.int32), INT, "lengths")
    goes_on = call.map(_1 > step, call.cast(tensor, INT))
    mask = broadcast(goes_on.expand([1]), now[0].shape)
    output, cell = (
        call.map(expr.Select(_1, _2, _3), new, old, mask)
        for new, old in zip(now, before, strict=True)
    )
    return (output, cell), call.map(expr.Select(_1, _1 * 0, _2), now[0], mask)


def graphcore_lstm(call: Call) -> list[Tensor]:
    """Run popnn's layer with its own order of gates (ai.graphcore).

    Inputs [time, batch, size], weights [4, inputs + outputs, outputs], biases, and the states
    [2, batch, outputs].
    """
    steps, batch, inputs = call[0].shape
    size, dtype = call.info(1).dims[-1], call[0].dtype
    full = bool(call.attribute("output_full_sequence", 1))
    params = LstmParams(dtype, batch, steps, [inputs, size], outputFullSequence=full)
    zeros = np.zeros((2, batch, size), dtype.numpy)
    states = call[3] if call.has(3) else call.constant(zeros, dtype, "state")
    biases = call[2] if call.has(2) else call.constant(
        np.zeros((GATES, size), dtype.numpy), dtype, "biases"
    )  # fmt: skip
    weights = LstmWeights(call[1].slice(0, inputs, 1), call[1].slice(inputs, inputs + size, 1),
                          biases)  # fmt: skip
    outputs, cell = lstm.lstmFwd(
        call.graph, params, LstmState(states[0], states[1]), call[0], weights, None, call.prog,
        call.name, {"inferenceOnly": not call.training},
    )  # fmt: skip
    return [outputs, cell]
