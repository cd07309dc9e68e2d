"""Slices and sums of slices at offsets that are known when the program is made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT
from simulator.poplibs import poputil
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.elementwise.scaled_add import scaledAddTo
from simulator.poplibs.popops.reduction.reduce import (
    Operation,
    ReduceParams,
    SingleReduceOp,
    reduceMany,
)


def _rows(name: str, t: Tensor, offsets: Sequence[int], dim: int) -> list[Tensor]:
    """Return one slice for each offset; raises poplibs_error for what is not in the tensor."""
    if not 0 <= dim < t.rank():
        raise poplibs_error(f"{name}: dimension {dim} of {t!r}")
    wrong = [offset for offset in offsets if not 0 <= offset < t.dim(dim)]
    if wrong:
        raise poplibs_error(f"{name}: offset {wrong[0]} in dimension {dim} of {t!r}")
    return t.slices([(int(offset), int(offset) + 1) for offset in offsets], dim)


def static_slice(
    graph: Graph, t: Tensor, offsets: Sequence[int], dim: int, prog: program.Sequence, name: str
) -> Tensor:
    """Return a copy of the slices [offset][shape with 1 in place of `dim`]."""
    rows = _rows(name, t, offsets, dim)
    if not rows:
        return graph.addVariable(t.dtype, [0, *t.shape[:dim], 1, *t.shape[dim + 1 :]], name)
    return poputil.duplicate(graph, concat([row.expand([0]) for row in rows]), prog, name)


def static_update_add(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Sequence[int],
    scale: Tensor,
    dim: int,
    prog: program.Sequence,
    name: str,
) -> None:
    """Add `scale` times slices to a tensor; those of an offset that comes twice are reduced."""
    rows = _rows(name, t, offsets, dim)
    slices_shape = (len(rows), *t.shape[:dim], 1, *t.shape[dim + 1 :])
    if s.shape != slices_shape or s.dtype != t.dtype:
        raise poplibs_error(f"{name}: slices {s!r}; {t.dtype}{list(slices_shape)} is needed")
    if not s.numElements():
        return
    _, first, which, counts = np.unique(
        np.asarray(offsets), return_index=True, return_inverse=True, return_counts=True
    )
    single = [int(place) for place in np.flatnonzero(counts[which] == 1)]
    if single:
        into = concat([rows[place].expand([0]) for place in single])
        new = concat([s.slice(place, place + 1, 0) for place in single])
        scaledAddTo(graph, into, new, scale, prog, name)
    repeats = np.flatnonzero(counts > 1).tolist()
    if repeats and scale.dtype != FLOAT:  # a reduction scales by a float
        scale = cast(graph, scale, FLOAT, prog, f"{name}/CastScale")
    reductions, outputs = [], []
    for offset in repeats:
        places = np.flatnonzero(which == offset).tolist()
        repeated = concat([s.slice(place, place + 1, 0) for place in places])
        params = ReduceParams(Operation.ADD, True, scale)
        reductions.append(SingleReduceOp(repeated, [0], params))
        outputs.append(rows[int(first[offset])])
    if reductions:
        reduceMany(graph, reductions, outputs, prog, name)
