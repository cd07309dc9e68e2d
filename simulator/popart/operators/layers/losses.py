"""Losses of ai.graphcore: what they are and what their gradients are."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT, element_count
from simulator.popart.operators.call import Call
from simulator.popart.operators.elements.reductions import reduced
from simulator.popart.representation.ir import Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.poplibs import popnn, popops
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr, _1, _2, _3

REDUCTIONS = ("Sum", "Mean", "NoReduction")
Share = Tensor | float
LEAST = {"float": 1.17549435e-38, "half": 1.532e-5}  # the least whose reciprocal is finite


def lacks(node: Node, ir: Ir) -> str:
    """Return what of a loss does not fit."""
    first = ir.infos[node.inputs[0]]
    reduction = node.attributes.get("reduction", "Mean")
    summed = node.operator == "IdentityLoss" and (reduction != "Mean" or first.nelms() == 1)
    if first.device.numpy.kind != "f" and not (summed and first.device == INT):
        return f"{node.inputs[0]!r} is {first}; floats are needed"
    if reduction not in REDUCTIONS:
        return f"reduction {reduction!r}; known are {', '.join(REDUCTIONS)}"
    if node.operator == "Nll":
        labels = ir.infos[node.inputs[1]]
        if labels.device not in (INT, UNSIGNED_INT) or labels.dims != first.dims[:-1]:
            dims = list(first.dims[:-1])
            return f"labels are {labels}; integers {dims} are needed for {first}"
    return ""


def inferred(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Return the type and shape of a loss."""
    is_unreduced = node.attributes.get("reduction", "Mean") != "NoReduction"
    dims = infos[0].dims[:-1] if node.operator == "Nll" else infos[0].dims
    return [TensorInfo(infos[0].type, [] if is_unreduced else dims)]


def _is_one(call: Call) -> bool:
    """Return whether the losses of samples become one."""
    return str(call.attribute("reduction", "Mean")) != "NoReduction"


def _share(call: Call, count: int) -> float:
    mean = call.attribute("reduction", "Mean") == "Mean"
    return 1 / max(count, 1) if mean else 1.0


def _sum(call: Call, tensor: Tensor) -> Tensor:
    if not tensor.rank():
        return tensor
    return reduced(call, tensor, list(range(tensor.rank())), Operation.ADD)


def _times(one: Expr, factor: float) -> Expr:
    return one if factor == 1 else one * factor


# Likelihood
def likelihood(call: Call) -> Tensor:
    """Return minus the logarithm of what each sample's label has; of its logarithm, minus that.

    popnn gives the gradient through a softmax with it: p - 1 at the label, p elsewhere.
    """
    data, labels = call[0], call[1].flatten()
    samples = element_count(data.shape[:-1])
    rows = data.reshape((samples, data.shape[-1]))
    mask, ignored, share = None, call.attribute("ignoreIndex"), _share(call, samples)
    if ignored is not None:
        counted = call.map(expr.NotEqual(_1, expr.Const(int(ignored), labels.dtype)), labels)
        mask = call.cast(counted, data.dtype)
        nothing = -1 if labels.dtype == INT else popnn.MASKED_LABEL_CODE
        masked = expr.Select(_1, expr.Const(nothing, labels.dtype), _2)
        labels = call.map(masked, labels, counted)
    marks = call.graph.clone(rows, f"{call.name}/deltas")
    if call.attribute("inputIsLogProbability", 0):
        popops.encodeOneHot(call.graph, labels, marks, call.prog, f"{call.name}/OneHot")
        losses = reduced(call, call.map(-_1 * _2, rows, marks), [1], Operation.ADD)
    else:
        losses = call.variable(data.dtype, [samples], "losses")
        kind = popnn.CROSS_ENTROPY_LOSS
        call.prog.add(popnn.calcLoss(call.graph, rows, labels, losses, marks, kind, call.name))
    factor: Share = share
    if mask is not None and call.attribute("reduction", "Mean") == "Mean":
        count = _sum(call, mask)
        factor = call.map(1.0 / expr.Max(_1, expr.Const(1.0)), count)
    if call.training:
        call.saved = (marks, mask, factor)
    if not _is_one(call):
        return losses.reshape(data.shape[:-1])
    total = _sum(call, losses)
    if isinstance(factor, Tensor):
        return call.map(_1 * _2, total, factor.reshape([])).reshape([])
    return (total if factor == 1 else call.map(_1 * factor, total)).reshape([])


def _reached(call: Call, grad: Tensor, share: Share) -> tuple[Tensor, float]:
    """Return the gradient of each sample's loss, as a column or one for all, and a factor."""
    if not _is_one(call):
        return grad.reshape((grad.numElements(), 1)), 1.0
    one = grad.reshape([1, 1])
    if isinstance(share, Tensor):
        return call.map(_1 * _2, one, share.reshape([1, 1])), 1.0
    return one, share


def of_likelihood(
    call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    """Return the gradient of the probabilities, or of their logarithms.

    A probability of 0 divides nothing: the gradient of another class is 0, that of the label large.
    """
    marks, mask, share = call.saved
    up, factor = _reached(call, grads[0], share)
    rows = call[0].reshape(marks.shape)
    if call.attribute("inputIsLogProbability", 0):
        gradient = call.map(_times(-_1 * _2, factor), marks, up)
        return [gradient.reshape(call[0].shape), None]
    derivative = (_1 - _2) / expr.Max(_2, expr.Const(LEAST[rows.dtype.name], rows.dtype))
    if mask is None:
        gradient = call.map(_times(derivative * _3, factor), marks, rows, up)
    else:
        valid = mask.reshape((marks.shape[0], 1))
        _4 = expr.PlaceHolder(4)
        gradient = call.map(_times(derivative * _3 * _4, factor), marks, rows, up, valid)
    return [gradient.reshape(call[0].shape), None]


def through_softmax(call: Call, grad: Tensor) -> Tensor:
    """Return the gradient of what a softmax made the probabilities of: nothing is divided."""
    marks, _, share = call.saved
    up, factor = _reached(call, grad, share)
    return call.map(_times(_1 * _2, factor), marks, up).reshape(call[0].shape)


# Others
def absolute(call: Call) -> Tensor:
    """Return `lambda` times the absolute values."""
    data, scale = call[0], float(call.attribute("lambda", 1.0))
    values = call.map(_times(expr.Abs(_1), scale * _share(call, data.numElements())), data)
    return _sum(call, values).reshape([]) if _is_one(call) else values


def of_absolute(
    call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    """Return the gradient of absolute values: their sign."""
    data = call[0]
    factor = float(call.attribute("lambda", 1.0)) * _share(call, data.numElements())
    grad = grads[0].reshape([1] * data.rank()) if _is_one(call) else grads[0]
    return [call.map(_times(expr.Signum(_1) * _2, factor), data, grad)]


def identity(call: Call) -> Tensor:
    """Return the sum or the mean of what is a loss already."""
    data = call[0]
    if not _is_one(call):
        return data
    share, total = _share(call, data.numElements()), _sum(call, data)
    return (total if share == 1 else call.map(_1 * share, total)).reshape([])


def of_identity(
    call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor | None]:
    """Spread the gradient of the loss over what it was made of."""
    data, grad = call[0], grads[0]
    if not _is_one(call):
        return [grad]
    share = _share(call, data.numElements())
    one = grad if share == 1 else call.map(_1 * share, grad)
    return [one.reshape([1]).broadcast(data.numElements(), 0).reshape(data.shape)]
