"""Other shapes for a pooling that cost less: fewer dimensions, longer rows, more channels.

PopLibs lib/popnn/Pooling.cpp and PoolPlan.cpp. Inside, tensors are [sample][field...][channel].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.graph.tensor import Tensor
from simulator.poplibs.popnn.pool_windows import PoolShape, Window


@dataclass(frozen=True, slots=True)
class Gathered:
    """The input of a forward pass, and its shape; `groups` of channels went into the rows."""

    tensor: Tensor
    shape: PoolShape
    groups: int = 1


def inside(tensor: Tensor) -> Tensor:
    """View [sample][channel][field...] as [sample][field...][channel]."""
    return tensor.dimRoll(1, tensor.rank() - 1)


def outside(tensor: Tensor) -> Tensor:
    """View [sample][field...][channel] as [sample][channel][field...]."""
    return tensor.dimRoll(tensor.rank() - 1, 1)


def gather(tensor: Tensor, shape: PoolShape, group: int) -> Gathered:
    """Take samples as channels, and, where windows tile the field, rows and channels into one row.

    A row then goes over groups of `group` channels.
    """
    channels = shape.batch * shape.channels
    view = outside(tensor).reshapePartial(0, 2, [1, channels])
    whole = PoolShape(1, channels, shape.windows)
    if not all(map(_tiles_the_field, shape.windows)):
        return Gathered(inside(view), whole)
    windows = list(shape.windows)
    last = view.rank() - 1
    if len(windows) > 1:
        height, width = windows[-2:]
        rows = height.inputs // height.stride
        view = view.reshapePartial(last - 1, last, [rows, height.stride]).dimRoll(last - 1, last)
        view = view.flatten(last, last + 2)
        windows[-2:] = [_resized(height, height.stride), _resized(width, width.inputs * rows)]
    if channels % group:
        return Gathered(inside(view), PoolShape(1, channels, tuple(windows)))
    groups = channels // group
    view = view.reshapePartial(1, 2, [groups, group]).dimRoll(1, last)
    view = view.flatten(last, last + 2)
    windows[-1] = _resized(windows[-1], windows[-1].inputs * groups)
    return Gathered(inside(view), PoolShape(1, group, tuple(windows)), groups)


def ungather(result: Tensor, shape: PoolShape, groups: int) -> Tensor:
    """Give the result [1][channel][field...] of a gathered pooling its shape, seen from outside."""
    last = result.rank() - 1
    if groups > 1:
        width = result.dim(last) // groups
        result = result.reshapePartial(last, last + 1, [groups, width]).dimRoll(last, 1)
    return result.reshape([shape.batch, shape.channels, *shape.outputs])


def _tiles_the_field(window: Window) -> bool:
    """Tell whether windows lie side by side and nothing is left over or added."""
    return (
        window.padding == 0
        and window.stride >= window.kernel
        and window.outputs * window.stride == window.inputs
    )


def _resized(window: Window, inputs: int) -> Window:
    return replace(window, inputs=inputs, outputs=inputs // window.stride)


def flatten_dimensions(
    tensor: Tensor, shape: PoolShape, chosen: list[tuple[int, int]]
) -> tuple[Tensor, PoolShape]:
    """Take parts of dimensions (0 is the batch) into the channels."""
    for dimension, factor in chosen:
        shape = _flattened(shape, dimension, factor)
    return flatten_tensor(tensor, chosen), shape


def flatten_tensor(tensor: Tensor, chosen: list[tuple[int, int]]) -> Tensor:
    """Take parts of the dimensions of a tensor into its channels."""
    last = tensor.rank() - 1
    for dimension, factor in chosen:
        size, channels = tensor.dim(dimension), tensor.dim(last)
        rolled = tensor.dimRoll(dimension, last - 1)
        rolled = rolled.reshapePartial(last - 1, last + 1, [size // factor, factor * channels])
        tensor = rolled.dimRoll(last - 1, dimension)
    return tensor


def unflatten_tensor(tensor: Tensor, chosen: list[tuple[int, int]]) -> Tensor:
    """Take parts of the channels back into the dimensions that they came from."""
    last = tensor.rank() - 1
    for dimension, factor in reversed(chosen):
        size, channels = tensor.dim(dimension), tensor.dim(last)
        rolled = tensor.dimRoll(dimension, last - 1)
        rolled = rolled.reshapePartial(last - 1, last + 1, [size * factor, channels // factor])
        tensor = rolled.dimRoll(last - 1, dimension)
    return tensor


def _flattened(shape: PoolShape, dimension: int, factor: int) -> PoolShape:
    channels = shape.channels * factor
    if dimension == 0:
        return PoolShape(shape.batch // factor, channels, shape.windows)
    windows = list(shape.windows)
    size = windows[dimension - 1].inputs // factor
    windows[dimension - 1] = replace(windows[dimension - 1], inputs=size, outputs=size)
    return PoolShape(shape.batch, channels, tuple(windows))


def into_groups(tensor: Tensor, channels: int) -> Tensor:
    """View [sample][field...][channel] as [group][sample][field...][channel of the group]."""
    last = tensor.rank() - 1
    groups = tensor.dim(last) // channels
    return tensor.reshapePartial(last, last + 1, [groups, channels]).dimRoll(last, 0)


def out_of_groups(tensor: Tensor) -> Tensor:
    """View [group][sample][field...][channel of the group] as [sample][field...][channel]."""
    last = tensor.rank() - 1
    return tensor.dimRoll(0, last - 1).flatten(last - 1, last + 1)
