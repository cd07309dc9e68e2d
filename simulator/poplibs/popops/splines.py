"""B-splines of graph networks (popops/SplineBasis.hpp and SplineWeighting.hpp)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.layers import splines as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import spread
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.tensors.variables import VariableMappingMethod
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_CHAR, IntArray
from simulator.graph.vertices.vertex import Codelet, VertexGroup, cut_field
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name


@library_call("POPOPS")
def splineBasis(
    graph: Graph,
    pseudo: Tensor,
    kernelSize: Tensor,
    isOpenSpline: Tensor,
    basis: Tensor,
    weightIndex: Tensor,
    degree: int,
    prog: Sequence,
    debugContext: str = "",
) -> None:
    """Write the coefficients of B-splines [edges, splines] of coordinates [edges, dims].

    There are (degree + 1)^dims of an edge; `weightIndex` gets the weight that each belongs to, of a
    grid of `kernelSize` [dims], open or closed by dimension.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> place, size = trial.tensor([[0.25]]), trial.tensor([3])
    >>> is_open = trial.tensor([1], poplar.UNSIGNED_CHAR)
    >>> basis, weight = trial.tensor([[0.0, 0.0]]), trial.tensor([[0, 0]])
    >>> popops.splineBasis(trial.graph, place, size, is_open, basis, weight, 1, trial.prog)
    >>> trial.values(basis, weight)  # in the middle between weights 0 and 1
    [[[0.5, 0.5]], [[0, 1]]]
    """
    name = debug_name(debugContext, "SplineBasis")
    if pseudo.rank() != 2 or pseudo.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: pseudo {pseudo!r}; float or half [edges, dims] is needed")
    if degree not in (1, 2, 3):
        raise poplibs_error(f"{name}: degree is {degree}; 1, 2 or 3 is needed")
    edges, dims = pseudo.shape
    splines = (degree + 1) ** dims
    for tensor, dtype in ((kernelSize, INT), (isOpenSpline, UNSIGNED_CHAR)):
        if tensor.shape != (dims,) or tensor.dtype != dtype:
            raise poplibs_error(f"{name}: {tensor!r}; {dtype}[{dims}] is needed")
    for tensor, dtype in ((basis, pseudo.dtype), (weightIndex, INT)):
        if tensor.shape != (edges, splines) or tensor.dtype != dtype:
            raise poplibs_error(f"{name}: {tensor!r}; {dtype}[{edges}, {splines}] is needed")
    codelet = vertices.spline_basis_codelet(pseudo.dtype, degree, dims)
    with graph.debug_scope(name, "popops"):
        _add_vertices(
            graph, name, prog, codelet, {"basis": basis, "weightIndex": weightIndex},
            {"pseudo": pseudo}, {"kernelSize": kernelSize, "isOpenSpline": isOpenSpline},
            lambda outputs: vertices.spline_basis(outputs, pseudo.dtype),
        )  # fmt: skip


@library_call("POPOPS")
def splineWeighting(
    graph: Graph,
    input: Tensor,
    weight: Tensor,
    basis: Tensor,
    weightIndex: Tensor,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Return [edges, outputs]: features [edges, inputs] times weights [all, inputs, outputs].

    The weights of an edge are those of `weightIndex` [edges, splines], each times its coefficient
    in `basis`.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> features, weights = trial.tensor([[2.0]]), trial.tensor([[[10.0]], [[30.0]]])
    >>> basis, index = trial.tensor([[0.5, 0.5]]), trial.tensor([[0, 1]])
    >>> operands = features, weights, basis, index
    >>> trial.values(popops.splineWeighting(trial.graph, *operands, trial.prog))
    [[40.0]]
    """
    name, dtype = debug_name(debugContext, "SplineWeighting"), input.dtype
    fits = input.rank() == 2 and weight.rank() == 3 and basis.rank() == 2
    if not fits or dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: {input!r}, {weight!r}, {basis!r}; matrices are needed")
    edges, channels = input.shape
    _, inputs, outputs = weight.shape
    alike = basis.dim(0) == edges and weightIndex.shape == basis.shape and inputs == channels
    if not alike or {weight.dtype, basis.dtype} != {dtype} or weightIndex.dtype != INT:
        raise poplibs_error(
            f"{name}: {weight!r}, {basis!r} and {weightIndex!r} do not fit {input!r}"
        )
    splines = basis.dim(1)
    codelet = vertices.spline_weighting_codelet(dtype, channels, outputs, splines)
    with graph.debug_scope(name, "popops"):
        out = graph.addVariable(
            dtype, [edges, outputs], VariableMappingMethod.LINEAR, f"{name}/output"
        )
        by_row = {"input": input, "basis": basis, "weightIndex": weightIndex}
        _add_vertices(
            graph, name, prog, codelet, {"output": out}, by_row, {"weight": weight},
            lambda count: vertices.spline_weighting(count, channels, splines, dtype),
        )  # fmt: skip
    return out


def _add_vertices(
    graph: Graph,
    name: str,
    prog: Sequence,
    codelet: Codelet,
    outputs: dict[str, Tensor],
    by_row: dict[str, Tensor],
    whole: dict[str, Tensor],
    cycles: Callable[[IntArray], IntArray],
) -> None:
    """Add workers for the elements of the outputs, where the first of them lies.

    Each has the rows of `by_row` that its elements belong to.
    """
    out = next(iter(outputs.values()))
    low, high, tile = _shares(graph, out)
    width = max(out.dim(1), 1)
    first, last = low // width, ceil_div(high, width)
    none = np.zeros_like(low)
    fields = {
        field: cut_field(field, "output", tensor.flatten(), low, high)
        for field, tensor in outputs.items()
    }
    for field, tensor in by_row.items():
        columns = tensor.dim(1)
        fields[field] = cut_field(field, "input", tensor.flatten(), first * columns, last * columns)
    for field, tensor in whole.items():
        fields[field] = cut_field(
            field, "input", tensor.flatten(), none, none + tensor.numElements()
        )
    columns = next(iter(by_row.values())).dim(1)
    parameters = {"first": low, "columns": np.full_like(low, columns)}
    compute_set = graph.addComputeSet(name)
    counts = cycles(high - low)
    graph.add_vertices(VertexGroup(compute_set.id, codelet, tile, fields, parameters, counts))
    prog.add(Execute(compute_set))


def _shares(graph: Graph, out: Tensor) -> tuple[IntArray, IntArray, IntArray]:
    """Return parts [low, high) of an output and their tiles: two grains or more for a worker."""
    low, high, tile = graph.tile_ranges(out.flatten())
    grain = max(graph.target.getVectorWidth(out.dtype), 1)
    size = high - low
    parts = np.clip(size // (2 * grain), 1, graph.target.workers)
    number = spread(np.zeros_like(parts), parts)
    grains = np.repeat(ceil_div(size, grain), parts)
    share, end, begin = np.repeat(parts, parts), np.repeat(high, parts), np.repeat(low, parts)
    lows = begin + number * grains // share * grain
    highs = np.minimum(begin + (number + 1) * grains // share * grain, end)
    return lows, highs, np.repeat(tile, parts)
