"""The loss of a connectionist temporal classification (ai.graphcore), and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements.reductions import reduced
from simulator.popart.operators.layers.losses import REDUCTIONS
from simulator.popart.representation.ir import Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo, type_name
from simulator.poplibs.popnn import ctc, ctc_infer
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import _1, _2, _3

UNDEFINED = ("", "UNDEFINED", "0")  # types of the loss that stand for that of its input


def lacks(node: Node, ir: Ir) -> str:
    """Return what of the inputs does not fit."""
    reduction = node.attributes.get("reduction", "Mean")
    if reduction not in REDUCTIONS:
        return f"reduction {reduction!r}; known are {', '.join(REDUCTIONS)}"
    probs, labels, *lengths = (ir.infos[name] for name in node.inputs)
    if len(probs.dims) != 3 or probs.device.numpy.kind != "f":
        return f"log probabilities are {probs}; floats [steps, batch, classes] are needed"
    batch = probs.dims[1]
    if len(labels.dims) != 2 or labels.dims[0] != batch:
        return f"labels are {labels}; integers [{batch}, longest] are needed"
    for info in (labels, *lengths):
        if info.device not in (INT, UNSIGNED_INT) or info.dims[0] != batch:
            return f"labels or lengths are {info}; integers of {batch} samples are needed"
    return ""


def inferred(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Return type and shape of the loss: a scalar, or one for each sample."""
    kind = str(node.attributes.get("outDataType", ""))
    dtype = infos[0].type if kind in UNDEFINED else kind
    dtype = type_name(int(dtype), "outDataType") if dtype.isdecimal() else dtype
    per_sample = node.attributes.get("reduction", "Mean") == "NoReduction"
    return [TensorInfo(dtype, infos[0].dims[1:2] if per_sample else [])]


def loss(call: Call) -> Tensor:
    """Return minus the log probability of the labels; a mean counts each label alike."""
    info, blank = call.outputs[0], int(call.attribute("blank", 0))
    arguments: tuple[Any, ...] = (
        call.graph,
        info.device,
        *(call[place] for place in range(4)),
        call.prog,
        blank,
    )
    gradient: Tensor | None = None
    if call.training:
        losses, gradient = ctc.calcLossAndGradientLogProbabilities(*arguments)
    else:
        losses = ctc.calcCTCLossLogProbabilities(*arguments)
    if call.attribute("zeroInfinity", 0):
        infinite = expr.Gt(_1, expr.Const(_LARGEST[info.device.name], info.device))
        losses = call.map(expr.Select(expr.Const(0.0, info.device), _1, infinite), losses)
    share = None
    if call.attribute("reduction", "Mean") == "Mean":
        lengths = call.cast(call[3], info.device)
        share = call.map(1.0 / (expr.Max(_1, 1.0) * float(losses.numElements())), lengths)
        losses = call.map(_1 * _2, losses, share)
    call.saved = (gradient, share)
    if call.attribute("reduction", "Mean") == "NoReduction":
        return losses
    return reduced(call, losses, [0], Operation.ADD).reshape([])


def decoder_lacks(node: Node, ir: Ir) -> str:
    """Return what of the inputs of a decoder does not fit."""
    probs, lengths = (ir.infos[name] for name in node.inputs)
    if len(probs.dims) != 3 or probs.device.numpy.kind != "f":
        return f"log probabilities are {probs}; floats [steps, batch, classes] are needed"
    if lengths.device is not UNSIGNED_INT or lengths.dims != probs.dims[1:2]:
        return f"lengths are {lengths}; UINT32 of {probs.dims[1]} samples are needed"
    return ""


def _beams(node: Node) -> tuple[int, int, int]:
    """Return blank class, beam width and how many texts are wanted."""
    defaults = {"blank": 0, "beam_width": 100, "top_paths": 1}
    blank, width, paths = (int(node.attributes.get(k, n)) for k, n in defaults.items())
    return blank, width, paths


def decoder_inferred(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Return type and shape of the texts' log probabilities, their lengths, and the texts."""
    steps, batch = infos[0].dims[:2]
    shape = [batch, _beams(node)[2]]
    return [
        TensorInfo(infos[0].type, shape),
        TensorInfo("UINT32", shape),
        TensorInfo("UINT32", [*shape, steps]),
    ]


def decoded(call: Call) -> list[Tensor]:
    """Return the best texts of a beam search, with their log probabilities and lengths."""
    probs, (blank, width, paths) = call[0], _beams(call.node)
    steps, batch, classes = probs.shape
    plan = ctc_infer.plan(call.graph, probs.dtype, batch, steps, classes, width)
    return list(
        ctc_infer.beamSearchDecoderLogProbabilities(
            call.graph, probs, call[1], call.prog, blank, width, paths, plan, call.name
        )
    )


_LARGEST = {"float": 3.4e38, "half": 65504.0}


def of_loss(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> list[Tensor | None]:
    """Return the gradient of the log probabilities; labels and lengths have none."""
    gradient, share = call.saved
    shape = gradient.shape
    samples = (1, shape[1], 1)
    up = grads[0].reshape(samples if grads[0].rank() else [1] * 3)
    operands = [gradient, broadcast(up, shape)]
    if share is not None:
        operands.append(broadcast(share.reshape(samples), shape))
    product = _1 * _2 * _3 if share is not None else _1 * _2
    return [call.cast(call.map(product, *operands), call[0].dtype), None, None, None]
