"""Other shapes for a pooling that cost less: fewer dimensions, longer rows, more channels.

PopLibs lib/popnn/Pooling.cpp and PoolPlan.cpp. Inside, tensors are [sample][field...][channel].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.graph.tensors.tensor import Tensor
from simulator.poplibs.popnn.pools.windows import PoolShape, Window


@dataclass(frozen=True, slots=True)
class Form:
    """A shape that a pooling takes inside.

    `gathered`: samples went into the channels; `tiled`: windows tile the field, so that its rows
    went into one, which goes over `groups` groups of channels one after another.
    """

    shape: PoolShape
    gathered: bool = False
    tiled: bool = False
    groups: int = 1


def inside(tensor: Tensor) -> Tensor:
    """View [sample][channel][field...] as [sample][field...][channel]."""
    return tensor.dimRoll(1, tensor.rank() - 1)


def outside(tensor: Tensor) -> Tensor:
    """View [sample][field...][channel] as [sample][channel][field...]."""
    return tensor.dimRoll(tensor.rank() - 1, 1)


def forward_form(shape: PoolShape, group: int) -> Form:
    """Take samples as channels, and, where windows tile the field, rows and channels into one row.

    A row then goes over groups of `group` channels, if they divide evenly.
    """
    channels = shape.batch * shape.channels
    if not all(map(_tiles_the_field, shape.windows)):
        return Form(PoolShape(1, channels, shape.windows), gathered=True)
    groups = 1 if channels % group else channels // group
    windows = list(shape.windows)
    if len(windows) > 1:
        height, width = windows[-2:]
        rows = height.inputs // height.stride
        windows[-2:] = [_resized(height, height.stride), _resized(width, width.inputs * rows)]
    windows[-1] = _resized(windows[-1], windows[-1].inputs * groups)
    return Form(PoolShape(1, channels // groups, tuple(windows)), True, True, groups)


def gather(tensor: Tensor, form: Form) -> Tensor:
    """Bring [sample][field...][channel] into a form."""
    if not form.gathered:
        return tensor
    last = tensor.rank() - 1
    view = tensor.dimRoll(0, last - 1).flatten(last - 1, last + 1).expand([0])
    if form.tiled and last > 2:
        stride = form.shape.windows[-2].inputs
        view = view.reshapePartial(last - 2, last - 1, [view.dim(last - 2) // stride, stride])
        view = view.dimRoll(last - 2, last - 1).flatten(last - 1, last + 1)
    if form.groups > 1:
        view = view.reshapePartial(last, last + 1, [form.groups, form.shape.channels])
        view = view.dimRoll(last, last - 1).flatten(last - 1, last + 1)
    return view


def ungather(result: Tensor, shape: PoolShape, form: Form) -> Tensor:
    """Bring the result of a form back to [sample][field...][channel]."""
    if not form.gathered:
        return result
    last, field = result.rank() - 1, shape.outputs
    if form.groups > 1:
        result = result.reshapePartial(
            last - 1, last, [form.groups, result.dim(last - 1) // form.groups]
        )
        result = result.dimRoll(last - 1, last).flatten(last, last + 2)
    result = result.reshape([*field, shape.batch, shape.channels])
    return result.dimRoll(len(field), 0)


def first_row(tensor: Tensor, form: Form) -> Tensor:
    """Return the channels of the first place of a form, without making all of it."""
    field = (0,) * (tensor.rank() - 2)
    row = tensor[(slice(None), *field)] if form.gathered else tensor[(0, *field)]
    return row.flatten().slice(0, form.shape.channels)


def _tiles_the_field(window: Window) -> bool:
    """Return whether windows lie side by side and nothing is left over or added."""
    return (
        window.padding == 0
        and window.stride >= window.kernel
        and window.outputs * window.stride == window.inputs
    )


def _resized(window: Window, inputs: int) -> Window:
    return replace(window, inputs=inputs, outputs=inputs // window.stride)


def flatten_shape(shape: PoolShape, factors: list[tuple[int, int]]) -> PoolShape:
    """Take parts of dimensions (0 is the batch) into the channels."""
    for dimension, factor in factors:
        shape = _flattened(shape, dimension, factor)
    return shape


def flatten_tensor(tensor: Tensor, factors: list[tuple[int, int]]) -> Tensor:
    """Take parts of the dimensions of a tensor into its channels."""
    last = tensor.rank() - 1
    for dimension, factor in factors:
        size, channels = tensor.dim(dimension), tensor.dim(last)
        rolled = tensor.dimRoll(dimension, last - 1)
        rolled = rolled.reshapePartial(last - 1, last + 1, [size // factor, factor * channels])
        tensor = rolled.dimRoll(last - 1, dimension)
    return tensor


def unflatten_tensor(tensor: Tensor, factors: list[tuple[int, int]]) -> Tensor:
    """Take parts of the channels back into the dimensions that they came from."""
    last = tensor.rank() - 1
    for dimension, factor in reversed(factors):
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
