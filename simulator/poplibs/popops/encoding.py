"""One-hot encoding of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.indexing.cycles import one_hot_2019, one_hot_levels
from simulator.codelets.layers.classification import one_hot_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT
from simulator.graph.vertices.vertex import VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import debug_name

LEAST_GRAINS = 4  # a vertex; fewer would not pay for it


@library_call("POPOPS")
def encodeOneHot(
    graph: Graph, indices: Tensor, encoded: Tensor, prog: Sequence, *arguments: Any, **named: Any
) -> None:
    """Write a one into row i of `encoded` at class `indices[i]`, and zeros elsewhere.

    With tensors of one element `on` and `off` it has their values there and elsewhere.

    Indices are [rows] of integers, `encoded` is [rows, classes] and mapped already; an index
    outside the classes leaves its row zero.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> labels, encoded = trial.tensor([1, 0]), trial.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> popops.encodeOneHot(trial.graph, labels, encoded, trial.prog)
    >>> trial.values(encoded)
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    form: dict[str, object] = {"debugContext": ""}
    if "on" in named or (arguments and isinstance(arguments[0], Tensor)):
        form = {"on": NEEDED, "off": NEEDED, **form}
    call_args = arguments_of("encodeOneHot", form, arguments, named)
    name = debug_name(call_args["debugContext"], "OneHot")
    levels: dict[str, Tensor] = {key: call_args[key] for key in ("on", "off") if key in form}
    for key, level in levels.items():
        if level.numElements() != 1 or level.dtype != encoded.dtype:
            raise poplibs_error(f"{name}: {key} {level!r}; one {encoded.dtype} is needed")
    if encoded.rank() != 2 or indices.shape != encoded.shape[:1]:
        raise poplibs_error(f"{name}: {indices!r} does not label the rows of {encoded!r}")
    if indices.dtype not in (INT, UNSIGNED_INT):
        raise poplibs_error(
            f"{name}: indices of type {indices.dtype}; int or unsigned int is needed"
        )
    with graph.debug_scope(name, "popops"):
        if encoded.numElements():
            context = call_args["debugContext"]
            _add_vertices(graph, indices, encoded, levels, prog, context)


def _add_vertices(
    graph: Graph,
    indices: Tensor,
    encoded: Tensor,
    levels: Mapping[str, Tensor],
    prog: Sequence,
    context: str,
) -> None:
    """Map the next few elements to each tile, row by row, from tile 0 on.

    PopLibs lib/popops/Encoding.cpp of 2019: whole grains of a vector, at least four of them.
    """
    rows, classes = encoded.shape
    target, size = graph.target, encoded.numElements()
    grain = target.getVectorWidth(encoded.dtype)
    grains = max(ceil_div(ceil_div(classes, grain) * rows, target.num_tiles), LEAST_GRAINS)
    low = np.arange(0, size, grains * grain, dtype=np.int64)
    # A slice is a part of one row: it begins with a vertex or with a row.
    start = np.union1d(low, np.arange(0, size, classes, dtype=np.int64))
    row = start // classes
    slices = np.diff(np.append(np.searchsorted(start, low), len(start)))
    tables = {
        "offsets": ("offset", start % classes),
        "sliceLength": ("sliceLen", np.diff(start, append=size)),
    }
    first = offsets_of(slices)
    fields = {
        "indices": cut_ranges("indices", "input", indices, row, row + 1, slices),
        "out": cut_field("out", "output", encoded, low, np.append(low[1:], size)),
    }
    for field, (word, values) in tables.items():
        label = debug_name(context, word)  # as the guide's sample names it
        constant = graph.addConstant(UNSIGNED_INT, [len(start)], values, label)
        graph.setTileMapping(constant, 0)
        fields[field] = cut_field(field, "input", constant, first[:-1], first[1:])
    none = np.zeros_like(low)
    for key, level in levels.items():
        fields[key] = cut_field(key, "input", level.flatten(), none, none + 1)
    compute_set = graph.addComputeSet(debug_name(context, "OneHot/OneHotEncode"))
    outputs = np.diff(np.append(low, size))
    cycles = one_hot_2019(slices, outputs, encoded.dtype, target)
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=one_hot_codelet(indices.dtype, encoded.dtype, levels=bool(levels)),
            tile=np.arange(len(low), dtype=np.int64) % target.num_tiles,
            fields=fields,
            parameters={},
            cycles=one_hot_levels(slices) if levels else cycles,
        )
    )
    prog.add(Execute(compute_set))
