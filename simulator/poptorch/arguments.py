"""What a call gives and what it returns: micro-batches of tensors, and outputs as the module's."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as trees

from simulator.graph.types import Array
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting.export import to_numpy
from simulator.poptorch.exporting.exported import Constant, Exported


def bound(
    module: torch.nn.Module, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call of forward, those by name in their places where they have one.

    Raises Error for a call that forward does not take.
    """
    try:
        call = inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise Error(f"{type(module).__name__}.forward: {error}") from None
    return call.args, call.kwargs


def micro_batch(leaves: Sequence[object], count: int, label: str) -> list[object]:
    """Return the arguments of one of `count` micro-batches; raises Error where they do not fit."""
    return [
        leaf if not isinstance(leaf, torch.Tensor) or count == 1 else _cut(leaf, count, label)[0]
        for leaf in leaves
    ]


def _cut(tensor: torch.Tensor, count: int, label: str) -> torch.Tensor:
    """View a tensor as [micro-batches, size of one, ...]; a scalar goes to all of them."""
    if not tensor.dim():
        return tensor.expand(count)
    size = tensor.shape[0]
    if size % count:
        raise Error(
            f"{label}: a batch of {size} samples; a multiple of {count} is needed, which is"
            " deviceIterations x replicationFactor x gradientAccumulation"
        )
    return tensor.reshape(count, size // count, *tensor.shape[1:])


def fed(
    exported: Exported, leaves: Sequence[Any], like: Sequence[Any], count: int, label: str
) -> dict[str, Array]:
    """Return the arrays of a step by input; `like` are the arguments it was compiled for.

    Raises Error for other shapes or types.
    """
    arrays = {}
    for name, place in exported.inputs.items():
        tensor = leaves[place] if place < len(leaves) else None
        if not isinstance(tensor, torch.Tensor):
            raise Error(f"{label}: argument {place} is {type(tensor).__name__}; a tensor is needed")
        cut = _cut(tensor, count, label) if count > 1 else tensor[None]
        example = like[place]
        if cut.shape[1:] != example.shape or tensor.dtype != example.dtype:
            raise Error(
                f"{label}: argument {place} is {_shown(tensor.dtype, cut.shape[1:])} a micro-batch;"
                f" it was compiled for {_shown(example.dtype, example.shape)}"
            )
        arrays[name] = to_numpy(cut)
    for place, leaf in enumerate(leaves):
        fixed = like[place] if place < len(like) else None
        if not isinstance(leaf, torch.Tensor) and leaf is not fixed and leaf != fixed:
            raise Error(f"{label}: argument {place} is {leaf!r}; it was compiled for {fixed!r}")
    return arrays


def _shown(dtype: torch.dtype, shape: Sequence[int]) -> str:
    return f"{str(dtype).removeprefix('torch.')} {list(shape)}"


def returned(
    exported: Exported, anchors: Mapping[str, Array], dims: Mapping[str, tuple[int, ...]]
) -> object:
    """Return what the module returns: of several micro-batches one behind the other."""
    leaves = [
        output.value if isinstance(output, Constant) else joined(anchors[output], dims[output])
        for output in exported.outputs
    ]
    return trees.tree_unflatten(leaves, exported.returned)


def joined(values: Array, dims: tuple[int, ...]) -> torch.Tensor:
    """Return an anchor of micro-batches as a tensor: one behind the other along the first size."""
    shape = (-1, *dims[1:]) if dims and values.size else dims
    if not dims and values.size > 1:
        shape = (-1,)
    return torch.from_numpy(np.array(values).reshape(shape))
