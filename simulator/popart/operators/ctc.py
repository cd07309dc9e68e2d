"""The loss of a connectionist temporal classification (ai.graphcore), and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.graph.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT
from simulator.popart.ir import Ir, Node
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.losses import REDUCTIONS
from simulator.popart.operators.reductions import reduced
from simulator.popart.tensor_info import TensorInfo, type_name
from simulator.poplibs.popnn import ctc
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
