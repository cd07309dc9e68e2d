"""The RNN of ONNX, step by step: one product for all inputs, one a step for the state."""

from __future__ import annotations

import numpy as np

from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import INT
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.recurrence.recurrent import ACTIVATIONS, Activation, directions
from simulator.popart.representation.ir import Ir, Node
from simulator.poplibs import poplin, popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import Expr, Select, _1, _2, _3


def onnx_rnn(call: Call) -> list[Tensor]:
    """Run each direction; give all outputs and the last one."""
    by_batch = bool(call.attribute("layout", 0))
    inputs = call[0].dimShufflePartial([0], [1]) if by_batch else call[0]
    every, last = [], []
    for place, backward in enumerate(directions(call)):
        direction_inputs = inputs.reverse(0) if backward else inputs
        outputs, state = _run(call, direction_inputs, place, by_batch)
        last.append(state.expand([0]))
        every.append((outputs.reverse(0) if backward else outputs).expand([1]))
    outputs, state = concat(every, 1), concat(last, 0)
    if by_batch:  # [batch, time, direction, size] and [batch, direction, size]
        outputs, state = outputs.dimShuffle([2, 0, 1, 3]), state.dimShuffle([1, 0, 2])
    return [outputs, state]


def lacks(node: Node, ir: Ir) -> str:
    """Return what of an RNN cannot be done: an activation, or sequences of several lengths."""
    activations = {name.lower() for name in ACTIVATIONS}
    unknown = [n for n in node.attributes.get("activations") or () if n.lower() not in activations]
    if unknown:
        return f"activation {unknown[0]!r} is not supported; known are {', '.join(ACTIVATIONS)}"
    if misfit := _misfit(node, ir):
        return misfit
    if len(node.inputs) > 4 and node.inputs[4]:
        lengths = ir.known(node.inputs[4])
        steps = ir.infos[node.inputs[0]].dims[1 if node.attributes.get("layout", 0) else 0]
        full_length = lengths is not None and bool((lengths == steps).all())
        if not full_length and node.attributes.get("direction", "forward") != "forward":
            return (
                f"input 4 ({node.inputs[4]!r}): backward in time all sequences are of {steps} steps"
            )
    return ""


def _misfit(node: Node, ir: Ir) -> str:
    """Return what an RNN's attributes say that its weights are not."""
    name, weights = node.inputs[2], ir.infos[node.inputs[2]]
    direction = str(node.attributes.get("direction", "forward"))
    count = 2 if direction == "bidirectional" else 1
    if weights.dims[0] != count:
        return (
            f"direction {direction!r}: the weights {name!r} are {weights}, of "
            f"{weights.dims[0]} directions; one only supports forward or reverse"
        )
    size = node.attributes.get("hidden_size", weights.dims[-1])
    if size != weights.dims[-1]:
        return f"hidden_size {size} does not match the weights {name!r}, {weights}"
    activations = node.attributes.get("activations")
    if activations is not None and len(activations) != count:
        directions = "direction" if count == 1 else "directions"
        return (
            f"{len(activations)} activations; an RNN of {count} {directions} only supports "
            f"{count} activation{'s' * (count > 1)}"
        )
    return ""


def _run(call: Call, inputs: Tensor, place: int, by_batch: bool) -> tuple[Tensor, Tensor]:
    """Return the outputs of a direction [time, batch, size], and its last state."""
    steps, batch, features = inputs.shape
    size, dtype, name = call.info(2).dims[-1], inputs.dtype, call.name
    flat = inputs.reshape((steps * batch, features))
    kernels = [call[which][place].transpose() for which in (1, 2)]
    sums = poplin.matMul(call.graph, flat, kernels[0], call.prog, debugContext=f"{name}/Inputs")
    if call.has(3):
        both = call[3][place].reshape((2, size))
        biases = call.map(_1 + _2, both[0], both[1]).expand([0])
        wide = broadcast(biases, sums.shape)
        popops.addInPlace(call.graph, sums, wide, call.prog, f"{name}/Biases")
    if call.has(5):
        state = call[5][:, place] if by_batch else call[5][place]
    else:
        state = call.constant(np.zeros((batch, size), dtype.numpy), dtype, "state")
    outputs, first, within = [], state, _within(call, steps, (batch, size))
    for step in range(steps):
        product = poplin.matMul(
            call.graph, state, kernels[1], call.prog, debugContext=f"{name}/Recurrent"
        )
        input_sums = sums.slice(step * batch, (step + 1) * batch, 0)
        activated = call.map(_activated(call, place, _1 + _2), input_sums, product)
        state = (
            call.map(Select(_1, _2, _3), activated, state, within[step]) if within else activated
        )
        outputs.append(state.expand([0]))
    stored = call.variable(dtype, [steps, batch, size], "outputs")
    call.prog.add(Copy(concat(outputs, 0), stored, name=f"{name}/outputs"))
    call.saved = (*call.saved, (inputs, first, stored, within))
    if not within:
        return stored, state
    mask = concat([part.expand([0]) for part in within], 0)
    return call.map(Select(_1, _1 * 0.0, _2), stored, mask), state


def _within(call: Call, steps: int, shape: tuple[int, int]) -> list[Tensor]:
    """Return, for each step, which states of [batch, size] change: none where all of them do.

    Behind its end a sequence keeps its state and gives zeros (ONNX, operator RNN).
    """
    if len(call.node.inputs) < 5 or not call.node.inputs[4]:
        return []
    lengths_value = call.value(4)
    if lengths_value is not None and bool((lengths_value == steps).all()):
        return []
    lengths = call[4] if lengths_value is None else call.constant(lengths_value, INT, "lengths")
    wide = broadcast(lengths.expand([1]), shape)
    return [call.map(_1 > expr.Const(step, lengths.dtype), wide) for step in range(steps)]


def _activated(call: Call, place: int, inner: Expr) -> Expr:
    """Return the activation of a direction of a sum, which is clipped first where that is asked."""
    names = call.attribute("activations") or ["Tanh"] * (place + 1)
    table: dict[str, tuple[Activation, float, float]] = {
        name.lower(): row for name, row in ACTIVATIONS.items()
    }
    function, *defaults = table[names[place].lower()]
    alpha, beta = (
        values[place] if place < len(values := call.attribute(f"activation_{name}") or ())
        else default for name, default in zip(("alpha", "beta"), defaults, strict=True)
    )  # fmt: skip
    limit = float(call.attribute("clip", 0.0))
    bounded = expr.Max(expr.Min(inner, limit), -limit) if limit else inner
    return function(bounded, alpha, beta)
