"""Copies of sequences of rows whose places the device reads (popops/SequenceSlice.hpp)."""

from __future__ import annotations

import numpy as np

from simulator.codelets.indexing.sequences import sequence_slice, sequence_slice_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, element_count
from simulator.graph.vertices.vertex import VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.fill import zero
from simulator.poplibs.popops.regions import debug_name, regions_of
from simulator.poplibs.popops.slicing.dynamic_slice import in_column_order
from simulator.poplibs.popops.slicing.planned.block_fields import column_blocks
from simulator.poplibs.popops.slicing.sliceable import add_sliceable

PLACES = ("srcOffsetT", "dstOffsetT", "nElementsT")


@library_call("POPOPS")
def sequenceSlice(
    graph: Graph,
    tIn: Tensor,
    tOut: Tensor,
    tN: Tensor,
    tInOffset: Tensor,
    tOutOffset: Tensor,
    zeroUnused: bool,
    prog: Sequence,
    debugContext: str = "",
) -> None:
    """Copy tIn[from:from + n] to tOut[to:to + n] for each entry of `tInOffset`, `tOutOffset`, `tN`.

    With `zeroUnused` all other rows of `tOut` become zero.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows, out = trial.tensor([[1.0], [2.0], [3.0], [4.0]]), trial.tensor([[0.0], [0.0], [0.0]])
    >>> count, begin, to = (trial.tensor([number], poplar.UNSIGNED_INT) for number in (2, 1, 1))
    >>> popops.sequenceSlice(trial.graph, rows, out, count, begin, to, False, trial.prog)
    >>> trial.values(out)
    [[0.0], [2.0], [3.0]]
    """
    name = debug_name(debugContext, "SequenceSlice")
    _check(name, tIn, tOut, (tN, tInOffset, tOutOffset))
    columns = element_count(tIn.shape[1:])
    if not tIn.numElements() or not tOut.numElements():
        return
    with graph.debug_scope(name, "popops"):
        source, out = tIn.reshape([tIn.dim(0), columns]), tOut.reshape([tOut.dim(0), columns])
        # A tile copies the columns that it has of the first row: both lie alike by columns.
        work = add_sliceable(graph, tOut.dtype, out.shape, [0], f"{name}/out")
        if zeroUnused:
            zero(graph, work, prog, f"{name}/zero")
        else:
            prog.add(Copy(out, work, name=f"{name}/out"))
        _add_copies(graph, source, work, (tInOffset, tOutOffset, tN), prog, name)
        prog.add(Copy(work, out, name=f"{name}/out"))


def _add_copies(
    graph: Graph, source: Tensor, out: Tensor, places: tuple[Tensor, Tensor, Tensor],
    prog: Sequence, name: str,
) -> None:  # fmt: skip
    """Add a vertex a tile, which copies the columns that it has of the rows of all sequences."""
    used, sub = in_column_order(out, source)
    regions = regions_of(graph, used[0])
    first = np.flatnonzero(np.diff(regions.tile, prepend=-1))
    counts = np.diff(np.append(first, len(regions.tile)))
    length = np.add.reduceat(regions.high - regions.low, first)
    ends = (regions.low, regions.high, counts)
    begin = np.zeros_like(first)
    fields = {
        "srcT": column_blocks(sub, *ends).field("srcT", "input"),
        "dstT": column_blocks(used, *ends).field("dstT", "inout"),
    } | {
        key: cut_field(key, "input", tensor, begin, begin + tensor.numElements())
        for key, tensor in zip(PLACES, places, strict=True)
    }
    rows = min(source.dim(0), out.dim(0))
    cycles = sequence_slice(length, rows, places[0].numElements(), out.dtype, graph.target)
    compute_set = graph.addComputeSet(name)
    graph.add_vertices(
        VertexGroup(
            compute_set.id,
            sequence_slice_codelet(out.dtype),
            regions.tile[first],
            fields,
            {"length": length},
            cycles,
        )
    )
    prog.add(Execute(compute_set))


def _check(name: str, source: Tensor, out: Tensor, places: tuple[Tensor, ...]) -> None:
    alike = element_count(source.shape[1:]) == element_count(out.shape[1:])
    if min(source.rank(), out.rank()) < 2 or not alike or source.dtype != out.dtype:
        raise poplibs_error(f"{name}: {source!r} into {out!r}; rows of as many elements are needed")
    for tensor in places:
        if tensor.shape != places[0].shape or tensor.rank() != 1 or tensor.dtype != UNSIGNED_INT:
            sizes = ", ".join(map(repr, places))
            raise poplibs_error(f"{name}: {sizes}; three lists of as many unsigned ints are needed")
