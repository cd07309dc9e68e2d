"""Rows of a sparse matrix, and updates of them (popsparse/Embedding.hpp)."""

from __future__ import annotations

import numpy as np

from simulator.codelets.products import sparse as vertices
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, UNSIGNED_INT, IntArray, Type
from simulator.graph.vertices.vertex import Direction, VertexGroup, cut_ranges
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popsparse.params import FullyConnectedParams
from simulator.poplibs.popsparse.plan import Options, SparsePlan, sparse_plan
from simulator.poplibs.popsparse.tensors import SparseTensor, from_columns, grid
from simulator.poplibs.poputil import mapTensorLinearly

# Of each field: its way, its tensor, and where each vertex has it.
Cuts = dict[str, tuple[Direction, Tensor, IntArray, IntArray]]


@library_call("POPSPARSE")
def createIndicesTensor(
    graph: Graph,
    params: FullyConnectedParams,
    numIndices: int,
    options: Options = None,
    debugContext: str = "",
) -> Tensor:
    """Add the numbers of rows that are to be sliced or updated.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> dynamic.createIndicesTensor(trial.graph, params, 3).shape
    (3,)
    """
    name = debug_name(debugContext, "indices")
    indices = graph.addVariable(UNSIGNED_INT, [numIndices], name)
    mapTensorLinearly(graph, indices)
    return indices


@library_call("POPSPARSE")
def createSliceTensor(
    graph: Graph,
    dataType: Type,
    params: FullyConnectedParams,
    numIndices: int,
    debugContext: str = "",
    options: Options = None,
    cache: object = None,
) -> Tensor:
    """Add slices [indices, inputs], whose columns lie on the tiles of their part.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> dynamic.createSliceTensor(trial.graph, poplar.FLOAT, params, 3).shape
    (3, 2)
    """
    name = debug_name(debugContext, "slices")
    plan = sparse_plan(graph.target, params, dataType, options, name)
    return _slices(graph, plan, dataType, numIndices, name)


def _slices(graph: Graph, plan: SparsePlan, dtype: Type, count: int, name: str) -> Tensor:
    """Add slices, the indices of each part of columns shared out among the tiles of its rows."""
    ends = plan.bounds("y") * plan.block
    memory = graph.addVariable(dtype, [count * int(ends[-1])], name)
    y, x = grid(plan.y, plan.x)
    widths = np.diff(ends)[y]
    low, high = (ends[y] * count + count * (x + step) // plan.x * widths for step in (0, 1))
    graph.map_ranges(memory, low, high, plan.tile(x, y, x * 0))
    return from_columns(memory, count, ends)


@library_call("POPSPARSE")
def embeddingSlice(
    graph: Graph,
    t: SparseTensor,
    indices: Tensor,
    prog: Sequence,
    params: FullyConnectedParams,
    debugContext: str = "",
    options: Options = None,
    cache: object = None,
) -> Tensor:
    """Return rows of a sparse [outputs, inputs] by their numbers, dense: [indices, inputs].

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> weights = dynamic.createFullyConnectedWeights(trial.graph, poplar.FLOAT, params)
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> partitioner = dynamic.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)
    >>> _ = trial.write(weights.getMetaInfoTensor(), data.metaInfo)
    >>> _ = trial.write(weights.getNzValuesTensor(), data.nzValues)
    >>> rows = trial.tensor([1, 0], poplar.UNSIGNED_INT)
    >>> trial.values(dynamic.embeddingSlice(trial.graph, weights, rows, trial.prog, params))
    [[0.0, 4.0], [3.0, 0.0]]
    """
    name = debug_name(debugContext, "embeddingSlice")
    plan = _planned(t, params, indices, name)
    count = indices.numElements()
    with graph.debug_scope(name, "popsparse"):
        ends = plan.bounds("y") * plan.block
        size = count * int(ends[-1])
        out = graph.addVariable(plan.dtype, [plan.x, size], f"{name}/partials")
        x, y = grid(plan.x, plan.y)
        places = x * size + ends[y] * count, x * size + ends[y + 1] * count
        graph.map_ranges(out, *places, plan.tile(x, y, x * 0))
        cuts: Cuts = {"subT": ("output", out.flatten(), *places)}
        _add(graph, plan, t, indices, cuts, prog, name, update=False)
        total = out[0]
        if plan.x > 1:
            add = popops.ReduceParams(popops.Operation.ADD)
            total = popops.reduce(graph, out, plan.dtype, [0], add, prog, f"{name}/Reduce")
        return from_columns(total, count, ends)


@library_call("POPSPARSE")
def embeddingUpdateAdd(
    graph: Graph,
    t: SparseTensor,
    slices: Tensor,
    indices: Tensor,
    scale: Tensor,
    prog: Sequence,
    params: FullyConnectedParams,
    debugContext: str = "",
    options: Options = None,
    cache: object = None,
) -> None:
    """Add `scale` times slices [indices, inputs] to the non-zeros of rows; zeros stay zero.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> weights = dynamic.createFullyConnectedWeights(trial.graph, poplar.FLOAT, params)
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> partitioner = dynamic.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)
    >>> _ = trial.write(weights.getMetaInfoTensor(), data.metaInfo)
    >>> _ = trial.write(weights.getNzValuesTensor(), data.nzValues)
    >>> rows, scale = trial.tensor([1], poplar.UNSIGNED_INT), trial.tensor([2.0])
    >>> operands = weights, trial.tensor([[5.0, 5.0]]), rows, scale, trial.prog, params
    >>> dynamic.embeddingUpdateAdd(trial.graph, *operands)
    >>> after = dynamic.SparsityDataImpl(data.metaInfo, trial.values(weights.getNzValuesTensor()))
    >>> partitioner.sparsityDataImplToCSRMatrix(after).nzValues.tolist()  # 4 + 2 * 5
    [3.0, 14.0]
    """
    name = debug_name(debugContext, "embeddingUpdateAdd")
    plan = _planned(t, params, indices, name)
    count = indices.numElements()
    if slices.shape != (count, params.inner) or slices.dtype != plan.dtype:
        needed = f"{plan.dtype}[{count}, {params.inner}]"
        raise poplibs_error(f"{name}: slices {slices!r}; {needed} is needed")
    if scale.numElements() != 1 or scale.dtype not in (FLOAT, plan.dtype):
        raise poplibs_error(f"{name}: scale {scale!r}; one {plan.dtype} is needed")
    with graph.debug_scope(name, "popsparse"):
        ends = plan.bounds("y") * plan.block
        work = graph.addVariable(plan.dtype, [count * int(ends[-1])], f"{name}/slices")
        y, x = grid(plan.y, plan.x)
        widths = np.diff(ends)[y]
        low, high = (ends[y] * count + count * (x + step) // plan.x * widths for step in (0, 1))
        graph.map_ranges(work, low, high, plan.tile(x, y, x * 0))
        prog.add(Copy(slices, from_columns(work, count, ends), name=name))
        x, y = grid(plan.x, plan.y)
        cuts: Cuts = {
            "subT": ("input", work, ends[y] * count, ends[y + 1] * count),
            "scale": ("input", scale.flatten(), x * 0, x * 0 + 1),
        }
        _add(graph, plan, t, indices, cuts, prog, name, update=True)


def _planned(
    t: SparseTensor, params: FullyConnectedParams, indices: Tensor, name: str
) -> SparsePlan:
    plan = t.plan(name)
    if plan.params != params:
        raise poplibs_error(f"{name}: a tensor of another layer: {plan.params}, not {params}")
    if indices.rank() != 1 or indices.dtype != UNSIGNED_INT or not indices.numElements():
        raise poplibs_error(f"{name}: indices {indices!r}; a list of unsigned ints is needed")
    return plan


def _add(
    graph: Graph,
    plan: SparsePlan,
    t: SparseTensor,
    indices: Tensor,
    cuts: Cuts,
    prog: Sequence,
    name: str,
    *,
    update: bool,
) -> None:
    """Add a vertex for each bucket, which reads all indices; a group for each width of parts."""
    x, y = grid(plan.x, plan.y)
    tiles, bucket, block = plan.tile(x, y, x * 0), x * plan.y + y, plan.block
    length, size = 1 + 2 * plan.room, plan.room * block**2
    rows, widths = plan.bounds("x") * block, np.diff(plan.bounds("y"))[y]
    count = indices.numElements()
    way: Direction = "inout" if update else "input"
    cuts = cuts | {
        "metaInfo": ("input", t.metaInfo, bucket * length, (bucket + 1) * length),
        "baseNZ": (way, t.nzValues, bucket * size, (bucket + 1) * size),
        "offsets": ("input", indices, x * 0, x * 0 + count),
    }
    compute_set = graph.addComputeSet(name)
    for width in np.unique(widths).tolist():
        pick = np.flatnonzero(widths == width)
        ones = np.ones(len(pick), np.int64)
        fields = {
            label: cut_ranges(label, way, tensor, low[pick], high[pick], ones)
            for label, (way, tensor, low, high) in cuts.items()
        }
        kind = vertices.update_codelet if update else vertices.slice_codelet
        nonzeros = ones * plan.nonzeros * block**2
        cycles = vertices.rows_taken(ones * count, nonzeros, ones * width, graph.target)
        parameters = {"first": rows[x[pick]], "rows": np.diff(rows)[x[pick]]}
        codelet = kind(plan.dtype, block, width)
        graph.add_vertices(
            VertexGroup(compute_set.id, codelet, tiles[pick], fields, parameters, cycles)
        )
    prog.add(Execute(compute_set))
