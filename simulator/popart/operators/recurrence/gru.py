"""The GRU of ONNX, by popnn's layer."""

from __future__ import annotations

import numpy as np

from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import UNSIGNED_INT
from simulator.popart.operators.call import Call
from simulator.popart.operators.recurrence.recurrent import directions, last_of, lengths_of
from simulator.popart.representation.ir import Ir, Node
from simulator.poplibs import popnn
from simulator.poplibs.popnn import NonLinearityType
from simulator.poplibs.popnn.gru import BasicGruCellUnit, GruParams, GruWeights
from simulator.poplibs.popops.expr import _1, _2

# The order of ONNX's gates: update, reset, candidate.
CELL_ORDER = [
    BasicGruCellUnit.BASIC_GRU_CELL_UPDATE_GATE,
    BasicGruCellUnit.BASIC_GRU_CELL_RESET_GATE,
    BasicGruCellUnit.BASIC_GRU_CELL_CANDIDATE,
]
GATES = len(CELL_ORDER)
ACTIVATIONS = {
    "relu": NonLinearityType.RELU,
    "sigmoid": NonLinearityType.SIGMOID,
    "tanh": NonLinearityType.TANH,
}


def onnx_gru(call: Call) -> list[Tensor]:
    """Run each direction; give all outputs and the last one."""
    by_batch = bool(call.attribute("layout", 0))
    inputs = call[0].dimShufflePartial([0], [1]) if by_batch else call[0]
    lengths = lengths_of(call, inputs.shape[0])
    every, last = [], []
    for place, backward in enumerate(directions(call)):
        direction_inputs = inputs.reverse(0) if backward else inputs
        outputs, first = _run(call, direction_inputs, place, by_batch, lengths)
        last.append(last_of(call, outputs, lengths, first).expand([0]))
        every.append((outputs.reverse(0) if backward else outputs).expand([1]))
    outputs, state = concat(every, 1), concat(last, 0)
    if by_batch:  # [batch, time, direction, size] and [batch, direction, size]
        outputs, state = outputs.dimShuffle([2, 0, 1, 3]), state.dimShuffle([1, 0, 2])
    return [outputs, state]


def _run(
    call: Call, inputs: Tensor, place: int, by_batch: bool, lengths: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the outputs of a direction, [time, batch, size], and the state before the first.

    Behind the end of a sequence there are zeros.
    """
    steps, batch, features = inputs.shape
    size, dtype = call.info(2).dims[-1], inputs.dtype
    names = (call.attribute("activations") or [])[2 * place : 2 * place + 2]
    gate, candidate = (ACTIVATIONS[name.lower()] for name in names or ("Sigmoid", "Tanh"))
    after = bool(call.attribute("linear_before_reset", 0))
    params = GruParams(dtype, batch, steps, [features, size], candidate, gate,
                       cellOrder=CELL_ORDER, resetAfter=after)  # fmt: skip
    if lengths is not None:
        params.varTimeSteps = call.cast(lengths, UNSIGNED_INT)
    kernels = [
        call[which][place].reshape((GATES, size, call.info(which).dims[-1])).dimShuffle([0, 2, 1])
        for which in (1, 2)
    ]
    weights = GruWeights(kernels[0], kernels[1], _biases(call, place, size, after))
    if call.has(5):
        state = call[5][:, place] if by_batch else call[5][place]
    else:
        state = call.constant(np.zeros((batch, size), dtype.numpy), dtype, "state")
    options = {"inferenceOnly": not call.training}
    outputs = popnn.gru.gruFwd(
        call.graph, params, state, inputs, weights, None, call.prog, call.name, options
    )
    call.saved = (*call.saved, (inputs, state, outputs))
    return outputs, state


def _biases(call: Call, place: int, size: int, after: bool) -> Tensor:
    """Return the biases of each gate: of input and state apart with `after`, else their sum."""
    dtype = call[0].dtype
    if not call.has(3):
        shape = (GATES, 2, size) if after else (GATES, size)
        return call.constant(np.zeros(shape, dtype.numpy), dtype, "biases")
    both = call[3][place].reshape((2, GATES, size))
    return both.dimShuffle([1, 0, 2]) if after else call.map(_1 + _2, both[0], both[1])


def lacks(node: Node, ir: Ir) -> str:
    """Return what of a GRU the layer does not have."""
    names = [name.lower() for name in node.attributes.get("activations") or ()]
    unknown = [name for name in names if name not in ACTIVATIONS]
    if unknown:
        return f"activation {unknown[0]!r}; known are {', '.join(ACTIVATIONS)}"
    ways = ir.infos[node.inputs[1]].dims[0]
    if names and len(names) != 2 * ways:
        return f"{len(names)} activations; two for each of {ways} directions would be needed"
    if node.attributes.get("clip"):
        return "attribute 'clip'; sums of any size would be needed"
    if len(node.inputs) > 4 and node.inputs[4]:
        lengths = ir.known(node.inputs[4])
        axis = 1 if node.attributes.get("layout", 0) else 0
        steps = ir.infos[node.inputs[0]].dims[axis]
        are_full = lengths is not None and bool((lengths == steps).all())
        if not are_full and node.attributes.get("direction", "forward") != "forward":
            return (
                f"input 4 ({node.inputs[4]!r}): backward in time sequences of {steps} steps would "
                "be needed"
            )
        if lengths is not None and not bool(((lengths > 0) & (lengths <= steps)).all()):
            return f"input 4 ({node.inputs[4]!r}): 1 to {steps} steps would be needed"
    return ""
