"""The losses that a session can add to a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from simulator.graph.types import INT
from simulator.popart.errors import popart_exception
from simulator.popart.operators.table import unsupported
from simulator.popart.representation.ir import GRAPHCORE, IPU_ATTRIBUTE, Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.popart.settings.names import Choice


class ReductionType(Choice):
    """How the losses of samples become one."""

    Mean = "Mean"
    Sum = "Sum"
    NoReduction = "NoReduction"


@dataclass(slots=True)
class NllLoss:
    """The negative logarithm of the probability of each sample's label.

    Samples whose label is `ignore_index` do not count.

    >>> NllLoss("probs", "labels", "loss").reduction.name
    'Sum'
    """

    probs: str
    labels: str
    name: str
    reduction: ReductionType = ReductionType.Sum
    ignore_index: int | None = None
    where: dict[str, int] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Name the tensors that the loss is computed of.

        >>> NllLoss("probs", "labels", "loss").inputs
        ('probs', 'labels')
        """
        return self.probs, self.labels

    def output(self, place: int) -> str:
        """Name the loss, to be an anchor.

        >>> NllLoss("probs", "labels", "loss").output(0)
        'loss'
        """
        return self.name

    def virtualGraph(self, ipu: int) -> None:
        """Place the loss on an IPU.

        >>> loss = NllLoss("probs", "labels", "loss")
        >>> loss.virtualGraph(1)
        >>> list(loss.where.values())
        [1]
        """
        self.where[IPU_ATTRIBUTE] = ipu


@dataclass(slots=True)
class L1Loss:
    """`scale` times the sum of absolute values; PopART calls the scale lambda.

    >>> L1Loss("x", "loss", 0.5).reduction.name
    'Sum'
    """

    input: str
    name: str
    scale: float = 1.0
    reduction: ReductionType = ReductionType.Sum
    where: dict[str, int] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Name the tensors that the loss is computed of.

        >>> L1Loss("x", "loss", 0.5).inputs
        ('x',)
        """
        return (self.input,)

    output, virtualGraph = NllLoss.output, NllLoss.virtualGraph


@dataclass(slots=True)
class IdentityLoss:
    """What the model has computed as a loss itself.

    >>> IdentityLoss("x", "loss").reduction.name
    'Sum'
    """

    input: str
    name: str
    reduction: ReductionType = ReductionType.Sum
    where: dict[str, int] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Name the tensors that the loss is computed of.

        >>> IdentityLoss("x", "loss").inputs
        ('x',)
        """
        return (self.input,)

    output, virtualGraph = NllLoss.output, NllLoss.virtualGraph


Loss = NllLoss | L1Loss | IdentityLoss
OPERATORS = {NllLoss: "Nll", L1Loss: "L1", IdentityLoss: "IdentityLoss"}


def losses_of(losses: Any, subject: str) -> list[Loss | str]:
    """Return the losses of a session, one or several: names of tensors, or what is to be added.

    Raises popart_exception for what is neither.
    """
    loss_list = list(losses) if isinstance(losses, list | tuple) else [losses]
    wrong = [loss for loss in loss_list if not isinstance(loss, str | Loss)]
    if wrong:
        raise popart_exception(
            f"{subject}: {wrong[0]!r} is no loss; the name of a tensor is, or an NllLoss, L1Loss, "
            "IdentityLoss"
        )
    return loss_list


def add_losses(
    ir: Ir, losses: Iterable[Loss | str], inputs: Mapping[str, TensorInfo], subject: str
) -> list[str]:
    """Add losses to a representation as nodes, and the inputs that only they read; name the losses.

    Raises popart_exception for tensors that are not there or do not fit.
    """
    finals = []
    for loss in losses:
        if not isinstance(loss, str):
            _add(ir, loss, inputs, subject)
        name = loss if isinstance(loss, str) else loss.name
        info = ir.infos.get(name)
        if info is None:
            raise popart_exception(f"{subject}: loss {name!r} is no tensor of the model")
        if info.nelms() != 1:
            raise popart_exception(
                f"{subject}: {name!r} is {info}. Loss tensor, {name!r}, must be a scalar tensor"
            )
        if info.device.numpy.kind != "f" and info.device != INT:
            raise popart_exception(f"{subject}: loss {name!r} is {info}; floats are needed")
        finals.append(name)
    return finals


def _add(ir: Ir, loss: Loss, inputs: Mapping[str, TensorInfo], subject: str) -> None:
    for name in loss.inputs:
        if name in ir.infos:
            continue
        if name not in inputs:
            raise popart_exception(
                f"{subject}: loss {loss.name!r} reads {name!r}, which is no tensor of the model; "
                "give an input's shape with InputShapeInfo"
            )
        ir.infos[name] = inputs[name]
        ir.inputs.append(name)
    if loss.name in ir.infos:
        raise popart_exception(f"{subject}: loss {loss.name!r} is called like a tensor")
    node_names = {node.name for node in ir.nodes}
    name = loss.name if loss.name not in node_names else f"{loss.name}/Loss"
    attributes: dict[str, Any] = {"reduction": loss.reduction.value, **loss.where}
    if isinstance(loss, L1Loss):
        attributes["lambda"] = loss.scale
    if isinstance(loss, NllLoss) and loss.ignore_index is not None:
        attributes["ignoreIndex"] = loss.ignore_index
    operator = OPERATORS[type(loss)]
    node = Node(name, GRAPHCORE, operator, 1, loss.inputs, (loss.name,), attributes)
    reason = unsupported(node, ir)
    if reason:
        raise popart_exception(f"{subject}: loss {loss.name!r}: {reason}")
    ir.nodes.append(node)
    ir.infos[loss.name] = TensorInfo(ir.infos[loss.inputs[0]].type, [])
