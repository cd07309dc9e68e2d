"""The gradient of ONNX's GRU: back through its steps, then one product for all of them.

The gates of all steps are computed anew, at once, from the outputs of the steps before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulator.graph.tensors.tensor import Tensor, concat
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.recurrence.recurrent import lengths_of
from simulator.popart.operators.recurrence.recurrent_directions import of_directions
from simulator.popart.representation.ir import Node
from simulator.poplibs import poplin, popops
from simulator.poplibs.popops import Operation
from simulator.poplibs.popops.expr import Select, Sigmoid, Tanh, _1, _2, _3, _4

Tensors = Sequence[Tensor]
UPDATE, RESET, CANDIDATE = range(3)  # ONNX's gates in their order


def lacks_gradient(node: Node) -> str:
    """Return what of a GRU has no gradient."""
    names = [name.lower() for name in node.attributes.get("activations") or ()]
    wrong = [name for name in names if name not in ("sigmoid", "tanh")]
    if wrong or names != ["sigmoid", "tanh"] * (len(names) // 2):
        return f"activations {names} have none; Sigmoid and Tanh have"
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Direction:
    """One direction: what its steps read and gave, and its gates [time, batch, size]."""

    call: Call
    place: int
    inputs: Tensor
    before: Tensor
    update: Tensor
    reset: Tensor
    candidate: Tensor
    state_sum: Tensor  # of the candidate, which the reset multiplies behind the product
    after: bool

    def recurrent(self, gate: int) -> Tensor:
        """Return the weights of the state for a gate, [size, size]."""
        size = self.call.info(2).dims[-1]
        return self.call[2][self.place].slice(gate * size, (gate + 1) * size)

    def back(self, step: int, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of the sums of inputs and of states [batch, 3H], and of the state.

        With the reset before the product the third part of the second is that of the product.
        """
        call = self.call
        update, reset, candidate, before, state_sum = (
            tensor[step]
            for tensor in (self.update, self.reset, self.candidate, self.before, self.state_sum)
        )
        slope = _1 * (1.0 - _2) * (1.0 - _3 * _3)
        to_candidate = call.map(slope, grad, update, candidate)
        to_update = call.map(_1 * (_2 - _3) * _4 * (1.0 - _4), grad, before, candidate, update)
        if self.after:
            to_product = call.map(_1 * _2, to_candidate, reset)
            to_reset = call.map(_1 * _2 * _3 * (1.0 - _3), to_candidate, state_sum, reset)
            through = _product(call, to_product, self.recurrent(CANDIDATE), "Recurrent")
        else:
            to_product = to_candidate
            scaled = _product(call, to_candidate, self.recurrent(CANDIDATE), "Recurrent")
            to_reset = call.map(_1 * _2 * _3 * (1.0 - _3), scaled, before, reset)
            through = call.map(_1 * _2, scaled, reset)
        gates = concat([to_update, to_reset], 1)
        size = self.call.info(2).dims[-1]
        both = call[2][self.place].slice(0, 2 * size)
        beside = _product(call, gates, both, "Recurrent")
        state = call.map(_1 * _2 + _3 + _4, grad, update, through, beside)
        return concat([gates, to_candidate], 1), concat([gates, to_product], 1), state


def of_gru(call: Call, outputs: Tensors, grads: Tensors) -> list[Tensor | None]:
    """Return the gradients of inputs, weights, biases and the first state of all directions."""
    return of_directions(
        call, grads, lambda place, shown, last: _of_direction(_prepared(call, place), shown, last)
    )


def _prepared(call: Call, place: int) -> _Direction:
    """Compute the gates of all steps of a direction."""
    inputs, first, outputs = call.saved[place]
    steps, batch, size = outputs.shape
    after = bool(call.attribute("linear_before_reset", 0))
    before = concat([first.expand([0]), outputs.slice(0, steps - 1)], 0)
    rows = [part.reshape((steps * batch, part.shape[2])) for part in (inputs, before)]
    sums = [
        _product(call, part, call[which][place].transpose(), "Gates")
        for which, part in enumerate(rows, 1)
    ]
    if call.has(3):
        both = call[3][place].reshape((2, 3 * size))
        sums = [
            call.map(_1 + _2, total, bias.expand([0]))
            for total, bias in zip(sums, (both[0], both[1]), strict=True)
        ]
    shown, of_state = (
        [total.slice(gate * size, (gate + 1) * size, 1) for gate in range(3)] for total in sums
    )
    update, reset = (
        call.map(Sigmoid(_1 + _2), shown[gate], of_state[gate]) for gate in (UPDATE, RESET)
    )
    state_sum = of_state[CANDIDATE]
    if not after:
        scaled = call.map(_1 * _2, rows[1], reset)
        kernel = call[2][place].slice(CANDIDATE * size, (CANDIDATE + 1) * size)
        state_sum = _product(call, scaled, kernel.transpose(), "Gates")
        if call.has(3):
            bias = call[3][place].slice((3 + CANDIDATE) * size, 6 * size)
            state_sum = call.map(_1 + _2, state_sum, bias.expand([0]))
    factor = _3 * _2 if after else _2
    operands = (shown[CANDIDATE], state_sum, reset) if after else (shown[CANDIDATE], state_sum)
    candidate = call.map(Tanh(_1 + factor), *operands)
    gates = [part.reshape(outputs.shape) for part in (update, reset, candidate, state_sum)]
    return _Direction(
        call, place, inputs, before, gates[0], gates[1], gates[2], gates[3], after
    )  # fmt: skip


def _of_direction(layer: _Direction, shown: Tensor | None, last: Tensor | None) -> list[Tensor]:
    """Return those of the inputs, of both weights, the biases and the first state."""
    call, (steps, batch, size) = layer.call, layer.before.shape
    of_inputs: list[Tensor] = []
    of_states: list[Tensor] = []
    reached, lengths = last, lengths_of(call, steps)
    for step in range(steps - 1, -1, -1):
        parts = [part for part in (None if shown is None else shown[step], reached)
                 if part is not None]  # fmt: skip
        grad = call.map(_1 + _2, *parts) if len(parts) > 1 else parts[0]
        goes_on = None
        if lengths is not None:  # what has ended by now hands on what reached it
            goes_on = broadcast(call.map(_1 > step, lengths).expand([1]), (batch, size))
            grad = call.map(Select(_1, _1 * 0.0, _2), grad, goes_on)
        inputs_grad, states_grad, before = layer.back(step, grad)
        if goes_on is not None and reached is not None:
            before = call.map(Select(_1, _2, _3), before, reached, goes_on)
        reached = before
        of_inputs.insert(0, inputs_grad)
        of_states.insert(0, states_grad)
    sums = [concat(rows, 0) for rows in (of_inputs, of_states)]
    flat = [part.reshape((steps * batch, part.shape[2])) for part in (layer.inputs, layer.before)]
    weights = _product(call, sums[0].transpose(), flat[0], "Weights")
    if layer.after:
        recurrent = _product(call, sums[1].transpose(), flat[1], "Weights")
    else:  # the candidate reads the state times the reset
        scaled = call.map(_1 * _2, flat[1], layer.reset.reshape(flat[1].shape))
        gates = sums[1].slice(0, 2 * size, 1)
        candidate = sums[1].slice(2 * size, 3 * size, 1)
        products = [
            _product(call, part.transpose(), rows, "Weights")
            for part, rows in ((gates, flat[1]), (candidate, scaled))
        ]
        recurrent = concat(products, 0)
    inputs = _product(call, sums[0], call[1][layer.place], "Inputs").reshape(layer.inputs.shape)
    biases = [
        popops.reduce(call.graph, total, [0], Operation.ADD, call.prog, f"{call.name}/Biases")
        for total in sums
    ]
    state = call.map(_1 * 1.0, reached) if reached is not None else biases[0]
    return [inputs, weights, recurrent, concat(biases, 0), state]


def _product(call: Call, a: Tensor, b: Tensor, label: str) -> Tensor:
    name = f"{call.name}/{label}"
    return poplin.matMul(call.graph, a, b, call.prog, debugContext=name, options=call.options)
