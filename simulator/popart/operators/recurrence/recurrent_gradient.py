"""The gradient of ONNX's LSTM: back through its steps, then one product for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from simulator.graph.tensors.tensor import Tensor, concat
from simulator.popart.operators.call import Call
from simulator.popart.operators.recurrence.recurrent import (
    GATES,
    Layer,
    Step,
    directions,
    matrix_of,
)
from simulator.popart.operators.recurrence.recurrent_directions import output_gradients
from simulator.poplibs import poplin, popops
from simulator.poplibs.popops import Operation
from simulator.poplibs.popops.expr import Expr, Sigmoid, Tanh, _1, _2, _3, _4

Tensors = Sequence[Tensor]


class Gradients(NamedTuple):
    """Those of one direction: [time, batch, inputs], [4H, inputs], [4H, H], [8H], the states."""

    inputs: Tensor
    weights: Tensor
    recurrent: Tensor
    biases: Tensor
    output: Tensor
    cell: Tensor


def _slope(gate: Expr) -> Expr:
    return Sigmoid(gate) * (1.0 - Sigmoid(gate))


def of_lstm(call: Call, outputs: Tensors, grads: Tensors) -> list[Tensor | None]:
    """Return the gradients of inputs, weights, biases and states of all directions."""
    by_batch = bool(call.attribute("layout", 0))
    output_grads = output_gradients(call, grads, 3)
    results = []
    for place, backward in enumerate(directions(call)):
        layer, steps = call.saved[place]
        sequence_grad = None if output_grads[0] is None else output_grads[0][:, place]
        if sequence_grad is not None and backward:
            sequence_grad = sequence_grad.reverse(0)
        last = [None if grad is None else grad[place] for grad in output_grads[1:]]
        gradients = _of_direction(call, layer, steps, sequence_grad, last)
        results.append(
            gradients._replace(inputs=gradients.inputs.reverse(0)) if backward else gradients
        )
    inputs = results[0].inputs
    for following in results[1:]:
        inputs = call.map(_1 + _2, inputs, following.inputs)
    states = [_stacked([direction[which] for direction in results]) for which in (4, 5)]
    if by_batch:
        inputs = inputs.dimShufflePartial([0], [1])
        states = [state.dimShufflePartial([0], [1]) for state in states]
    weights = [_stacked([direction[which] for direction in results]) for which in (1, 2, 3)]
    return [inputs, *weights, None, *states, None][: len(call.inputs)]


def _stacked(parts: Tensors) -> Tensor:
    return concat([part.expand([0]) for part in parts], 0)


def _of_direction(
    call: Call,
    layer: Layer,
    steps: Sequence[Step],
    sequence_grad: Tensor | None,
    last: Sequence[Tensor | None],
) -> Gradients:
    """Go back through the steps, from the gradients of all outputs and of the last states."""
    batch, size = layer.output.shape
    to_output, to_cell = last
    back = matrix_of(layer.recurrent).transpose()
    gates: list[Tensor] = []
    for place in range(len(steps) - 1, -1, -1):
        shown = None if sequence_grad is None else sequence_grad[place]
        to_output = _sum(call, shown, to_output, layer.output)
        gate, to_cell = _of_step(call, steps[place], to_output, to_cell, size)
        gates.insert(0, gate)
        to_output = _product(call, gate, back, "Recurrent")
    together = concat(gates, 0)
    inputs = layer.inputs.reshape((len(steps) * batch, layer.inputs.shape[2]))
    before = concat([step.output for step in steps], 0)
    weights = [_product(call, rows.transpose(), together, "Wu") for rows in (inputs, before)]
    input_grads = _product(call, together, matrix_of(layer.weights).transpose(), "Inputs")
    biases = popops.reduce(
        call.graph, together, [0], Operation.ADD, call.prog, f"{call.name}/Biases"
    )
    return Gradients(
        input_grads.reshape(layer.inputs.shape),
        weights[0].transpose(),
        weights[1].transpose(),
        concat([biases, biases], 0),
        _sum(call, None, to_output, layer.output),
        _sum(call, None, to_cell, layer.cell),
    )


def _sum(call: Call, first: Tensor | None, second: Tensor | None, like: Tensor) -> Tensor:
    """Add what there is; zeros when there is nothing."""
    if first is None or second is None:
        present = first if second is None else second
        return present if present is not None else call.map(_1 * 0.0, like)
    return call.map(_1 + _2, first, second)


def _product(call: Call, a: Tensor, b: Tensor, label: str) -> Tensor:
    name = f"{call.name}/{label}"
    return poplin.matMul(call.graph, a, b, call.prog, debugContext=name, options=call.options)


def _of_step(
    call: Call, step: Step, to_output: Tensor, to_cell: Tensor | None, size: int
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the gates' sums [batch, 4H], and of the cell before the step."""
    i, o, f, c = (step.gates.slice(p * size, (p + 1) * size, 1) for p in range(GATES))
    through = _1 * Sigmoid(_2) * (1.0 - Tanh(_3) * Tanh(_3))
    if to_cell is None:
        cell = call.map(through, to_output, o, step.now)
    else:
        cell = call.map(through + _4, to_output, o, step.now, to_cell)
    parts = [
        call.map(_1 * Tanh(_2) * _slope(_3), cell, c, i),
        call.map(_1 * Tanh(_2) * _slope(_3), to_output, step.now, o),
        call.map(_1 * _2 * _slope(_3), cell, step.cell, f),
        call.map(_1 * Sigmoid(_2) * (1.0 - Tanh(_3) * Tanh(_3)), cell, i, c),
    ]
    return concat(parts, 1), call.map(_1 * Sigmoid(_2), cell, f)
