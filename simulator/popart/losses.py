"""The losses that a session can add to a model, and what their gradients begin with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from simulator.graph.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT, element_count
from simulator.popart.errors import popart_exception
from simulator.popart.ir import GRAPHCORE, Ir, Node
from simulator.popart.operators.call import Call
from simulator.popart.tensor_info import TensorInfo
from simulator.poplibs import popnn, popops
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import _1, _2


class ReductionType(Enum):
    """How the losses of samples become one."""

    Sum = "Sum"
    Mean = "Mean"


@dataclass(frozen=True, slots=True)
class NllLoss:
    """The negative logarithm of the probability of each sample's label."""

    probs: str
    labels: str
    name: str
    reduction: ReductionType = ReductionType.Sum

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.probs, self.labels


@dataclass(frozen=True, slots=True)
class L1Loss:
    """`scale` times the sum of absolute values; PopART calls the scale lambda."""

    input: str
    name: str
    scale: float = 1.0
    reduction: ReductionType = ReductionType.Sum

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class IdentityLoss:
    """What the model has computed as a loss itself."""

    input: str
    name: str
    reduction: ReductionType = ReductionType.Sum

    @property
    def inputs(self) -> tuple[str, ...]:
        return (self.input,)


Loss = NllLoss | L1Loss | IdentityLoss


def add_losses(ir: Ir, losses: Iterable[Loss], inputs: Mapping[str, TensorInfo], what: str) -> None:
    """Tell a representation the outputs of losses, and the inputs that only they read.

    Raises popart_exception for tensors that are not there or do not fit.
    """
    for loss in losses:
        if not isinstance(loss, Loss):
            raise popart_exception(
                f"{what}: {loss!r} is no loss; NllLoss, L1Loss, IdentityLoss are"
            )
        for name in loss.inputs:
            if name in ir.infos:
                continue
            if name not in inputs:
                raise popart_exception(
                    f"{what}: loss {loss.name!r} reads {name!r}, which is no tensor of the model; "
                    "give an input's shape with InputShapeInfo"
                )
            ir.infos[name] = inputs[name]
            ir.inputs.append(name)
        if loss.name in ir.infos:
            raise popart_exception(f"{what}: loss {loss.name!r} is called like a tensor")
        _check(loss, ir, what)
        ir.infos[loss.name] = TensorInfo(ir.infos[loss.inputs[0]].type, [])


def _check(loss: Loss, ir: Ir, what: str) -> None:
    first = ir.infos[loss.inputs[0]]
    if first.device.numpy.kind != "f":
        raise popart_exception(f"{what}: loss {loss.name!r} of {first}; floats are needed")
    if isinstance(loss, NllLoss):
        labels = ir.infos[loss.labels]
        if labels.device not in (INT, UNSIGNED_INT) or labels.dims != first.dims[:-1]:
            raise popart_exception(
                f"{what}: loss {loss.name!r}: labels are {labels}; integers "
                f"{list(first.dims[:-1])} are needed for {first}"
            )


def node_of(loss: Loss) -> Node:
    """Give the node that stands for a loss in debug contexts."""
    kind = type(loss).__name__
    return Node(loss.name, GRAPHCORE, kind, 1, loss.inputs, (loss.name,))


def lower_loss(call: Call, loss: Loss) -> tuple[Tensor, Tensor, Tensor | None]:
    """Give the loss, the gradient of its input, and that of what a softmax made the input of."""
    if isinstance(loss, NllLoss):
        return _likelihood(call, loss)
    data, share = call[0], _share(loss, call[0].numElements())
    if isinstance(loss, L1Loss):
        factor = loss.scale * share
        total = _sum(call, call.map(expr.Abs(_1) * factor, data))
        return total, call.map(expr.Signum(_1) * factor, data), None
    ones = call.constant(share, data.dtype, "one")
    total = call.map(_1 * share, _sum(call, data))
    return total, ones.reshape([1]).broadcast(data.numElements(), 0).reshape(data.shape), None


def _share(loss: Loss, count: int) -> float:
    return 1 / count if loss.reduction is ReductionType.Mean else 1.0


def _sum(call: Call, tensor: Tensor) -> Tensor:
    axes = list(range(tensor.rank()))
    if not axes:
        return tensor
    name = f"{call.name}/Sum"
    return popops.reduce(call.graph, tensor, axes, Operation.ADD, call.prog, name)


def _likelihood(call: Call, loss: NllLoss) -> tuple[Tensor, Tensor, Tensor]:
    """popnn gives the gradient through a softmax: p - 1 at the label, p elsewhere."""
    probs, labels = call[0], call[1]
    classes = probs.shape[-1]
    samples = element_count(probs.shape[:-1])
    rows = probs.reshape((samples, classes))
    each = call.variable(probs.dtype, [samples], "losses")
    deltas = call.graph.clone(rows, f"{call.name}/deltas")
    call.prog.add(
        popnn.calcLoss(
            call.graph, rows, labels.flatten(), each, deltas, popnn.CROSS_ENTROPY_LOSS, call.name
        )
    )
    share = _share(loss, samples)
    scaled = deltas if share == 1 else call.map(_1 * share, deltas)
    total = call.map(_1 * share, _sum(call, each))
    by_probability = call.map((_1 - _2) / _2 * share, deltas, rows)
    return total, by_probability.reshape(probs.shape), scaled.reshape(probs.shape)
