"""Tensors of different shapes, made alike by NumPy's rules of broadcasting.

PopLibs changes its arguments; here the views are given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.tensors.tensor import Tensor, broadcast_to
from simulator.graph.types import checked_shape
from simulator.logging import library_call


@library_call("POPUTIL")
def expandToMatchRanks(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return two tensors with as many dimensions; the new ones are of size 1 and come first.

    >>> from simulator import poputil
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([[1.0, 2.0]]), trial.tensor([3.0, 4.0])
    >>> [tensor.shape for tensor in poputil.expandToMatchRanks(a, b)]
    [(1, 2), (1, 2)]
    """
    rank = max(a.rank(), b.rank())
    return a.expand([0] * (rank - a.rank())), b.expand([0] * (rank - b.rank()))


@overload
def broadcastToMatch(a: Tensor, b: Sequence[int], /) -> Tensor: ...
@overload
def broadcastToMatch(a: Tensor, b: Tensor, /) -> tuple[Tensor, Tensor]: ...
@overload
def broadcastToMatch(a: Tensor, b: Tensor, c: Tensor, /) -> tuple[Tensor, Tensor, Tensor]: ...
@library_call("POPUTIL")
def broadcastToMatch(
    a: Tensor, b: Tensor | Sequence[int], c: Tensor | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Return a tensor in a shape, or two or three tensors in the shape that they have together.

    >>> from simulator import poputil
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([[1.0], [2.0]]), trial.tensor([3.0, 4.0])
    >>> trial.values(*poputil.broadcastToMatch(a, b))
    [[[1.0, 1.0], [2.0, 2.0]], [[3.0, 4.0], [3.0, 4.0]]]
    """
    if not isinstance(b, Tensor):
        shape = checked_shape(b, "broadcastToMatch")
        if _common(a.shape, shape) != shape:
            raise poplibs_error(f"broadcastToMatch: {a!r} does not broadcast to {list(shape)}")
        return broadcast_to(a, shape)
    tensors = (a, b) if c is None else (a, b, c)
    common = _common(*(tensor.shape for tensor in tensors))
    if common is None:
        shapes = " and ".join(map(repr, tensors))
        raise poplibs_error(f"broadcastToMatch: {shapes} do not broadcast to one shape")
    return tuple(broadcast_to(tensor, common) for tensor in tensors)


@library_call("POPUTIL")
def canBroadcastToMatch(a: Tensor, b: Tensor) -> bool:
    """Return whether `broadcastToMatch` takes two tensors.

    >>> from simulator import poputil
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b, c = (trial.tensor([0.0] * size) for size in (1, 2, 3))
    >>> poputil.canBroadcastToMatch(a, b), poputil.canBroadcastToMatch(b, c)
    (True, False)
    """
    return _common(a.shape, b.shape) is not None


def _common(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None
