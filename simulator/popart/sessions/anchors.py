"""The tensors that a session gives back: they are there, or an error says why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simulator.graph.tensors.tensor import Tensor
from simulator.popart.backpropagation.gradients import PREFIX
from simulator.popart.errors import popart_exception
from simulator.popart.lowering import Lowering
from simulator.popart.representation.ir import Ir
from simulator.popart.settings.names import reservedAccumPrefix


def anchor_tensor(lowering: Lowering, gradients: Mapping[str, Tensor], name: str) -> Tensor:
    """Return the tensor of an anchor; raises popart_exception for a gradient without a loss."""
    if name.startswith(PREFIX) and name not in gradients:
        raise popart_exception(
            f"Anchor tensor `{name}' not in Ir Tensors. No loss has a gradient of that tensor"
        )
    if name.startswith(reservedAccumPrefix()) and name not in gradients:
        raise popart_exception(f"anchor {name!r}: no gradients are added up there")
    return gradients[name] if name in gradients else lowering.tensor(name)


def check_anchors(subject: str, anchors: Iterable[str], ir: Ir, *, training: bool) -> None:
    """Raise popart_exception for an anchor that the model lacks, or if none needs a node."""
    names = list(anchors)
    if not training and not names:
        raise popart_exception("User must specify an anchor tensor when doing inference.")
    if not training and {*names} <= {*ir.inputs, *ir.weights}:
        raise popart_exception("All operations in the main graph were pruned, nothing to compute")
    unknown = [name for name in names if name not in ir.infos]
    if unknown:
        raise popart_exception(
            f"Anchor tensor `{unknown[0]}' not in Ir Tensors. {subject} has no tensor of that name"
        )
