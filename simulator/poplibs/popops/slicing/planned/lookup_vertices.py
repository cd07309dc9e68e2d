"""Vertices that slice or update many rows of a matrix: one a tile, for its part of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.indexing.slicing import (
    UpdateKind,
    multi_slice_codelet,
    multi_update_codelet,
)
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.machine.target import Target
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray, Type
from simulator.graph.vertices.vertex import Field, VertexGroup, cut_field
from simulator.poplibs.popops.slicing.planned.block_fields import Pieces, cut_blocks

Kind = Literal["SLICE"] | UpdateKind


@dataclass(frozen=True, slots=True, eq=False)
class Lookups:
    """Vertices by tile: the offsets of each, and its blocks of the matrix and of the slices.

    `length` are the elements of a row of a vertex, `first` is the first row that it holds.
    """

    tile: IntArray
    offsets: Pieces
    base: Pieces
    sub: Pieces
    length: IntArray
    first: IntArray

    def chosen(self, vertices: IntArray) -> Lookups:
        """Return some of the vertices."""
        return Lookups(
            self.tile[vertices],
            self.offsets.chosen(vertices),
            self.base.chosen(vertices),
            self.sub.chosen(vertices),
            self.length[vertices],
            self.first[vertices],
        )

    def counts(self) -> IntArray:
        """Count the offsets of each vertex."""
        return np.diff(offsets_of(self.offsets.lengths)[self.offsets.starts])


def cut_rows(
    tensor: Tensor, first: IntArray, rows: IntArray, stride: int, width: IntArray
) -> Pieces:
    """Return block b `rows[b]` rows of `width[b]` elements of a flat tensor, `stride` apart."""
    low = spread(np.zeros_like(rows), rows) * stride + np.repeat(first, rows)
    return cut_blocks(tensor, low, low + np.repeat(width, rows), rows)


def add_lookups(
    graph: Graph, compute_set: ComputeSet, kind: Kind, lookups: Lookups, scale: Tensor | None = None
) -> None:
    """Add the vertices; those that write parts of words are of a type of their own."""
    dtype = lookups.base.dtype
    odd = np.zeros(len(lookups.tile), dtype=bool)
    if kind in ("ADD", "MAX", "MUL"):
        odd = lookups.length % _word(dtype, graph.target) != 0
    for parts_of_words in (False, True):
        vertices = np.flatnonzero(odd == parts_of_words)
        if len(vertices):
            part = lookups if len(vertices) == len(odd) else lookups.chosen(vertices)
            _add_group(graph, compute_set, kind, part, scale, parts_of_words)


def _add_group(
    graph: Graph,
    compute_set: ComputeSet,
    kind: Kind,
    lookups: Lookups,
    scale: Tensor | None,
    odd: bool,
) -> None:
    dtype = lookups.base.dtype
    if kind == "SLICE":
        codelet = multi_slice_codelet(dtype)
    else:
        codelet = multi_update_codelet(dtype, scale.dtype if scale is not None else None, kind, odd)
    fields: dict[str, Field] = {
        "offsets": lookups.offsets.field("offsets", "input"),
        "baseT": lookups.base.field("baseT", "input" if kind == "SLICE" else "inout"),
        "subT": lookups.sub.field("subT", "output" if kind == "SLICE" else "input"),
    }
    if scale is not None:
        zero = np.zeros_like(lookups.tile)
        fields["scale"] = cut_field("scale", "input", scale.flatten(), zero, zero + 1)
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=codelet,
            tile=lookups.tile,
            fields=fields,
            parameters={"length": lookups.length, "first": lookups.first},
            cycles=lookup_cycles(kind, lookups.counts(), lookups.length, dtype, graph.target),
        )
    )


def lookup_cycles(
    kind: Kind, offsets: IntArray, length: IntArray, dtype: Type, target: Target
) -> IntArray:
    """Return the cycles of a tile, as PopLibs estimates them: every offset hits.

    Workers share the offsets of a slice, in whole words; one of them does an update. Where there is
    one offset, they share the row of a slice instead.
    """
    if kind in ("ADD", "MAX", "MUL"):
        return indexing_cycles.multi_update_add(offsets, length, dtype, target)
    if kind != "SLICE":
        return indexing_cycles.multi_update(offsets, length, dtype, target)
    word = _word(dtype, target)
    share = ceil_div(ceil_div(length, word), target.workers) * word
    width = np.where((offsets == 1) & (length % word == 0), share, length)
    hits = ceil_div(ceil_div(offsets, word), target.workers) * word
    return indexing_cycles.multi_slice(np.minimum(hits, offsets), width, dtype, target)


def _word(dtype: Type, target: Target) -> int:
    """Return the elements of the smallest part of memory that is written at once."""
    return max(target.getAtomicStoreGranularity() // dtype.size, 1)
