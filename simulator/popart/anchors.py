"""The tensors that a session gives back: they are there, or an error says why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simulator.graph.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.gradients import PREFIX
from simulator.popart.lowering import Lowering
from simulator.popart.names import reservedAccumPrefix
from simulator.popart.tensor_info import TensorInfo


def anchor_tensor(lowering: Lowering, more: Mapping[str, Tensor], name: str) -> Tensor:
    """Return the tensor of an anchor; raises popart_exception for a gradient without a loss."""
    if name.startswith(PREFIX) and name not in more:
        raise popart_exception(f"anchor {name!r}: no loss has a gradient of that tensor")
    if name.startswith(reservedAccumPrefix()) and name not in more:
        raise popart_exception(f"anchor {name!r}: no gradients are added up there")
    return more[name] if name in more else lowering.tensor(name)


def check_anchors(what: str, anchors: Iterable[str], infos: dict[str, TensorInfo]) -> None:
    """Raise popart_exception for an anchor that the model does not have."""
    unknown = [name for name in anchors if name not in infos]
    if unknown:
        raise popart_exception(f"{what}: anchor {unknown[0]!r} is no tensor of the model")
