"""The connectionist temporal classification loss (popnn/CTCLoss.hpp)."""

from __future__ import annotations

import numpy as np

from simulator.codelets.layers import ctc_loss as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, Type
from simulator.graph.vertex import Direction, Field, VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.regions import debug_name


@library_call("POPNN")
def calcCTCLossLogProbabilities(
    graph: Graph,
    outType: Type,
    logProbs: Tensor,
    labels: Tensor,
    probLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    debugContext: str = "",
) -> Tensor:
    """Return minus the log probability [batch] of labels [batch, longest].

    `logProbs` are [steps, batch, classes], of which each sample has `probLengths` steps and
    `labelLengths` labels. Without a plan: beyond PopLibs, each sample is computed on one tile.
    """
    operands = (logProbs, labels, probLengths, labelLengths)
    return _added(graph, outType, operands, prog, blankClass, debugContext, gradient=False)[0]


@library_call("POPNN")
def calcLossAndGradientLogProbabilities(
    graph: Graph,
    outType: Type,
    logProbs: Tensor,
    labels: Tensor,
    probLengths: Tensor,
    labelLengths: Tensor,
    prog: Sequence,
    blankClass: int,
    debugContext: str = "",
) -> tuple[Tensor, Tensor]:
    """Return the losses [batch], and their gradient by the log probabilities.

    Where labels cannot come out of so many steps, a loss is infinite and its gradient zero.
    """
    results = (logProbs, labels, probLengths, labelLengths)
    outputs = _added(graph, outType, results, prog, blankClass, debugContext, gradient=True)
    return outputs[0], outputs[1].dimShuffle([1, 0, 2])


def _added(
    graph: Graph,
    dtype: Type,
    operands: tuple[Tensor, ...],
    prog: Sequence,
    blank: int,
    context: str,
    *,
    gradient: bool,
) -> list[Tensor]:
    """Add a vertex for each sample, the samples spread over the tiles."""
    name = debug_name(context, "CTCLoss")
    probs, labels = operands[:2]
    _check(name, dtype, operands, blank)
    steps, batch, classes = probs.shape
    with graph.debug_scope(name, "popnn"):
        rows = cast(graph, probs, dtype, prog, name) if probs.dtype != dtype else probs
        # The data of each sample come to the tile that computes it.
        tiles = np.arange(batch) % graph.target.num_tiles
        results = {"loss": graph.addVariable(dtype, [batch], f"{name}/loss")}
        if gradient:
            results["grad"] = graph.addVariable(dtype, [batch, steps, classes], f"{name}/grad")
        for tensor in results.values():
            per_sample = tensor.numElements() // max(batch, 1)
            starts = np.arange(batch) * per_sample
            graph.map_ranges(tensor, starts, starts + per_sample, tiles)
        compute_set = graph.addComputeSet(name)
        begin = np.arange(batch)

        def field(label: str, direction: Direction, tensor: Tensor) -> Field:
            size = tensor.numElements() // max(batch, 1)
            return cut_field(label, direction, tensor.flatten(), begin * size, (begin + 1) * size)

        read = {"logProbs": rows.dimShuffle([1, 0, 2]), "labels": labels, "validTime": operands[2],
                "validLabel": operands[3]}  # fmt: skip
        fields = {label: field(label, "input", tensor) for label, tensor in read.items()}
        fields |= {label: field(label, "output", tensor) for label, tensor in results.items()}
        sizes = np.full(batch, steps), np.full(batch, labels.shape[1])
        cycles = vertices.cycles(*sizes, gradient=gradient)
        kind_of = vertices.codelet(classes, blank, gradient=gradient)
        graph.add_vertices(VertexGroup(compute_set.id, kind_of, tiles, fields, {}, cycles))
        prog.add(Execute(compute_set, name))
    return list(results.values())


def _check(name: str, dtype: Type, operands: tuple[Tensor, ...], blank: int) -> None:
    """Raise poplibs_error for types and shapes that do not fit."""
    probs, labels, times, lengths = operands
    integers = (INT, UNSIGNED_INT)
    if probs.rank() != 3 or probs.dtype not in (FLOAT, HALF) or dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: {probs!r}; float or half [steps, batch, classes] is needed")
    _, batch, classes = probs.shape
    if labels.rank() != 2 or labels.shape[0] != batch or labels.dtype not in integers:
        raise poplibs_error(f"{name}: labels {labels!r}; integers [{batch}, longest] are needed")
    for tensor in (times, lengths):
        if tensor.shape != (batch,) or tensor.dtype not in integers:
            raise poplibs_error(f"{name}: lengths {tensor!r}; integers [{batch}] are needed")
    if not 0 <= blank < classes:
        raise poplibs_error(f"{name}: blank class {blank}; there are {classes}")
