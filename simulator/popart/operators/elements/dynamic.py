"""Slices at offsets that are known when the program runs: taken, written, added, set to zero.

Operators of ai.graphcore, by popops' dynamicSlice and dynamicUpdate, with their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT
from simulator.popart.operators.backward import zeros
from simulator.popart.operators.call import Call
from simulator.popart.representation.ir import Node
from simulator.popart.representation.tensor_info import TensorInfo, type_name
from simulator.poplibs import popops

Grads = list[Tensor | None]
ZERO = 1  # PopART's InitType: what a tensor holds at first


def _region(call: Call) -> tuple[list[int], list[int]]:
    """Return the axes that a slice is cut along, and its sizes there."""
    axes = [call.place_of(int(axis)) for axis in call.attribute("axes", ())]
    return axes, [int(size) for size in call.attribute("sizes", ())]


def _offsets(call: Call) -> Tensor:
    return call.cast(call[1], UNSIGNED_INT).flatten()


def _shape(call: Call) -> list[int]:
    """Return the shape of a slice, with all axes."""
    shape = list(call.info().dims)
    for axis, size in zip(*_region(call), strict=True):
        shape[axis] = size
    return shape


def _taken(call: Call, tensor: Tensor, label: str = "slice") -> Tensor:
    name = f"{call.name}/{label}"
    return popops.dynamicSlice(call.graph, tensor, _offsets(call), *_region(call), call.prog, name)


def _written(call: Call, tensor: Tensor, part: Tensor, label: str = "update") -> Tensor:
    """Write a slice into a copy of a tensor."""
    out = call.copy(tensor, label)
    part, name = part.reshape(_shape(call)), f"{call.name}/{label}"
    popops.dynamicUpdate(call.graph, out, part, _offsets(call), *_region(call), call.prog, name)
    return out


def _nothing(call: Call, tensor: Tensor) -> Tensor:
    """Return zeros of the shape of a slice."""
    return call.constant(np.zeros(_shape(call), tensor.dtype.numpy), tensor.dtype, "zeros")


def inferred_slice(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Return type and shape of a slice; a tensor that it is written to may leave out axes of 1."""
    if len(infos) > 2:
        return [infos[2]]
    dims = list(infos[0].dims)
    for axis, size in zip(node.attributes["axes"], node.attributes["sizes"], strict=True):
        if not 1 <= size <= dims[axis]:
            raise ValueError(f"size {size} of axis {axis}")
        dims[axis] = size
    return [TensorInfo(infos[0].type, dims)]


def inferred_init(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Return the type and shape that a tensor is made with."""
    kind = type_name(int(node.attributes["data_type"]), "data_type")
    return [TensorInfo(kind, node.attributes.get("shape", ()))]


def init(call: Call) -> Tensor:
    """Make a tensor, of zeros if that is asked for."""
    info = call.outputs[0]
    out = call.variable(info.device, info.dims, "init")
    if int(call.attribute("init_type", ZERO)) == ZERO:
        popops.zero(call.graph, out, call.prog, f"{call.name}/init")
    return out


def dynamic_slice(call: Call) -> Tensor:
    """Take a slice."""
    return _taken(call, call[0]).reshape(call.outputs[0].dims)


def sliceable(call: Call) -> Tensor:
    """Add a tensor of which each tile has all of the axes that are cut."""
    axes, sizes = _region(call)
    info = call.info()
    return popops.createSliceableTensor(
        call.graph, info.device, info.dims, axes, sizes, 0, call.name
    )  # fmt: skip


def dynamic_update(call: Call) -> Tensor:
    """Write a slice."""
    return _written(call, call[0], call[2])


def dynamic_add(call: Call) -> Tensor:
    """Add to a slice."""
    before = _taken(call, call[0])
    added = popops.add(
        call.graph, before, call[2].reshape(before.shape), call.prog, f"{call.name}/add"
    )
    return _written(call, call[0], added)


def dynamic_zero(call: Call) -> Tensor:
    """Set a slice to zero."""
    return _written(call, call[0], _nothing(call, call[0]))


# Gradients
def of_slice(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Grads:
    """Put the gradient where the slice was taken from, among zeros."""
    zeroed = zeros(call, call[0], "SliceGrad")
    gradients: Grads = [_written(call, zeroed, grads[0], "SliceGrad/update")]
    return [*gradients, *[None] * (len(call.inputs) - 1)]


def of_update(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Grads:
    """Return the gradient around the slice, and that of the slice."""
    around = _written(call, grads[0], _nothing(call, grads[0]), "UpdateGrad")
    return [around, None, _taken(call, grads[0], "SliceGrad").reshape(call.info(2).dims)]


def of_add(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Grads:
    """Return the gradient, and its slice."""
    return [grads[0], None, _taken(call, grads[0], "SliceGrad").reshape(call.info(2).dims)]


def of_zero(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Grads:
    """Return the gradient around the slice."""
    return [_written(call, grads[0], _nothing(call, grads[0]), "ZeroGrad"), None]
