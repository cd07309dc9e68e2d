"""Rearranging tensors in memory by transposing small matrices on all tiles (popops::rearrange).

As in PopLibs (lib/popops/Rearrange.cpp): what lies in groups of one dimension is made to lie in
groups of another, by copies that bring matrices of both groups to tiles, and transposes there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from zlib import crc32

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.convolution import transpose_codelet
from simulator.codelets.products.transpose_cycles import transpose, transpose_2d
from simulator.codelets.products.transposing import transpose_worker_codelet
from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.geometry.intervals import spread
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.machine.target import Target
from simulator.graph.program import Copy, Execute
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import (
    FLOAT,
    HALF,
    INT,
    SHORT,
    UNSIGNED_INT,
    UNSIGNED_SHORT,
    Array,
    IntArray,
    Type,
)
from simulator.graph.vertices.vertex import Direction, VertexGroup, cut_ranges
from simulator.logging import library_call
from simulator.poplibs import poputil
from simulator.poplibs.popops.regions import debug_name, share_among_workers
from simulator.poplibs.poputil.structure import GroupingInfo

__all__ = [
    "addTransposeVertices",
    "canUseFastTranspose",
    "getMinimumRegroupGrainSize",
    "partialTranspose",
    "regroupIfBeneficial",
    "regroupIfPossible",
    "regroupTensor",
]

TYPES = (HALF, FLOAT, UNSIGNED_SHORT, UNSIGNED_INT, SHORT, INT)
_MOST = 0xFFFF  # what a vertex's 16-bit fields hold
_SIDE = 4  # of the matrices that the fast vertices turn at once


@library_call("POPOPS")
def canUseFastTranspose(
    target: Target, type: Type, numRows: int, numColumns: int, numTranspositions: int
) -> bool:
    """Return whether matrices can be transposed by the vertices in assembly: of 2-byte elements.

    >>> from simulator.graph.types import FLOAT, HALF
    >>> target = Target.createIPUTarget(1)
    >>> [canUseFastTranspose(target, dtype, 4, 8, 1) for dtype in (HALF, FLOAT)]
    [True, False]
    """
    return _is_fast(target, type, numRows, numColumns, numTranspositions)


def _is_fast(target: Target, dtype: Type, rows: int, columns: int, count: int) -> bool:
    if dtype not in (HALF, UNSIGNED_SHORT, SHORT) or count > _MOST:
        return False
    if rows % _SIDE or columns % _SIDE or not rows or not columns:
        return False
    repeats, stride = target.getRptCountMax(), 1 << (target.getNumStrideBits() - 1)
    if rows == columns == _SIDE:
        return count - 2 <= repeats
    longer = rows if columns == _SIDE else columns
    fits = longer // _SIDE - 2 <= repeats and longer // _SIDE * 3 - 1 <= stride
    return fits and (columns == _SIDE or rows // _SIDE < stride)


@library_call("POPOPS")
def getMinimumRegroupGrainSize(type: Type) -> int:
    """Return the smallest group that is transposed well: 4 of 2 bytes, 2 of 4 bytes.

    >>> getMinimumRegroupGrainSize(HALF), getMinimumRegroupGrainSize(FLOAT)
    (4, 2)
    """
    return _grain(type)


def _grain(dtype: Type) -> int:
    return 8 // dtype.size if dtype in TYPES else 1


@library_call("POPOPS")
def addTransposeVertices(
    graph: Graph,
    cs: ComputeSet,
    dType: Type,
    rows: int,
    cols: int,
    mapping: Sequence[Sequence[tuple[int, int]]],
    getInOut: Callable[[int], tuple[Tensor, Tensor]],
) -> None:
    """Transpose matrices: for each tile a list of those that it does, and a function that gives
    a matrix before and after by its number, flat. What comes after is mapped to the tile.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([1.0, 2.0, 3.0, 4.0])
    >>> out = trial.graph.addVariable(FLOAT, [4], "out")
    >>> cs = trial.graph.addComputeSet("transposes")
    >>> addTransposeVertices(trial.graph, cs, FLOAT, 2, 2, [[(0, 1)]], lambda matrix: (x, out))
    >>> trial.prog.add(Execute(cs))
    >>> trial.values(out)  # [[1, 2], [3, 4]] becomes [[1, 3], [2, 4]]
    [1.0, 3.0, 2.0, 4.0]
    """
    parts = [(low, high, tile) for tile, intervals in enumerate(mapping) for low, high in intervals]
    table = np.array(parts, dtype=np.int64).reshape(-1, 3)
    numbers = spread(table[:, 0], table[:, 1] - table[:, 0])
    if not len(numbers):
        return
    pairs = [getInOut(int(number)) for number in numbers]
    tiles = np.repeat(table[:, 2], table[:, 1] - table[:, 0])
    source, out = (concat([pair[side].flatten() for pair in pairs]) for side in (0, 1))
    if source.numElements() != len(pairs) * rows * cols or out.shape != source.shape:
        raise poplibs_error(f"{cs.name}: matrices are not all of {rows} rows by {cols} columns")
    _map_matrices(graph, out, rows * cols, tiles)
    _add_transposes(graph, cs, (source, out), (rows, cols), tiles)


@library_call("POPOPS")
def partialTranspose(graph: Graph, t: Tensor, cs: ComputeSet, debugContext: str = "") -> Tensor:
    """Transpose the last two dimensions into a new variable, each matrix where it begins.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x = trial.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cs = trial.graph.addComputeSet("transposes")
    >>> out = partialTranspose(trial.graph, x, cs)
    >>> trial.prog.add(Execute(cs))
    >>> trial.values(out)
    [[1.0, 3.0], [2.0, 4.0]]
    """
    return _partial_transpose(graph, t, cs, debug_name(debugContext, "partialTranspose"))


def _partial_transpose(
    graph: Graph, tensor: Tensor, cs: ComputeSet, name: str, into: Tensor | None = None
) -> Tensor:
    """Transpose matrices on the tiles where they begin, into a variable of that order or `into`."""
    if tensor.rank() < 2:
        raise poplibs_error(f"{name}: {tensor!r}; at least two dimensions are needed")
    *outer, rows, columns = tensor.shape
    out = graph.addVariable(tensor.dtype, (*outer, columns, rows), name) if into is None else into
    if not tensor.numElements():
        return out
    size = rows * columns
    matrices = tensor.reshape((tensor.numElements() // size, size))
    low, high, tile = graph.tile_ranges(matrices.slice(0, 1, 1).flatten())
    if int((high - low).sum()) != matrices.dim(0):
        raise poplibs_error(f"{name}: {tensor!r} is not wholly mapped to tiles")
    tiles = np.repeat(tile, high - low)
    if into is None:
        _map_matrices(graph, out, size, tiles)
    _add_transposes(graph, cs, (tensor, out), (rows, columns), tiles)
    return out


def _map_matrices(graph: Graph, matrices: Tensor, size: int, tiles: IntArray) -> None:
    """Map matrices of `size` elements, which follow one another, to their tiles."""
    number = np.arange(len(tiles), dtype=np.int64)
    graph.map_ranges(matrices, number * size, (number + 1) * size, tiles)


def _add_transposes(
    graph: Graph,
    cs: ComputeSet,
    tensors: tuple[Tensor, Tensor],
    shape: tuple[int, int],
    tiles: IntArray,
) -> None:
    """Add vertices that transpose the matrices of a flat tensor into another, on these tiles."""
    source, out = tensors
    if source.dtype not in TYPES or max(shape) > _MOST:
        type_names = ", ".join(map(str, TYPES))
        raise poplibs_error(
            f"{cs.name}: matrices of {source.dtype}{list(shape)}; known for "
            f"{type_names} up to {_MOST}"
        )
    order = np.argsort(tiles, kind="stable")
    used, counts = np.unique(tiles, return_counts=True)
    fast = _fast_tiles(graph.target, source.dtype, shape, counts)
    for supervisor in (True, False):
        matrices = order[np.repeat(fast == supervisor, counts)]
        tiles_of_kind, ranges = used[fast == supervisor], counts[fast == supervisor]
        if not supervisor:
            tiles_of_kind, ranges = share_among_workers(tiles[matrices], graph.target.workers)
        _add_group(
            graph, cs, tensors, shape, (matrices, tiles_of_kind, ranges), supervisor=supervisor
        )


def _fast_tiles(target: Target, dtype: Type, shape: tuple[int, int], counts: IntArray) -> Array:
    """Return of each tile whether one vertex of all its workers does its matrices."""
    distinct, which = np.unique(counts, return_inverse=True)
    fast = [_is_fast(target, dtype, *shape, count) for count in distinct.tolist()]
    return np.array(fast, dtype=bool)[which]


def _add_group(
    graph: Graph,
    cs: ComputeSet,
    tensors: tuple[Tensor, Tensor],
    shape: tuple[int, int],
    work: tuple[IntArray, IntArray, IntArray],
    *,
    supervisor: bool,
) -> None:
    """Add vertices on `tiles` that do the next `ranges[v]` of the matrices."""
    matrices, tiles, ranges = work
    (rows, columns), (source, out) = shape, tensors
    size = np.int64(rows * columns)
    low, high = matrices * size, (matrices + 1) * size
    ways: tuple[tuple[Direction, Tensor], ...] = (("input", source), ("output", out))
    fields = {
        name: cut_ranges(name, way, tensor, low, high, ranges, as_rows=not supervisor)
        for name, (way, tensor) in zip(("in", "out"), ways, strict=True)
    }
    sizes = np.full_like(ranges, rows), np.full_like(ranges, columns)
    if supervisor:
        codelet = transpose_codelet(source.dtype, rows, columns)
        cycles = transpose(ranges, *sizes, source.dtype, graph.target)
    else:
        codelet = transpose_worker_codelet(source.dtype, rows, columns)
        cycles = transpose_2d(ranges, *sizes, source.dtype, graph.target)
    graph.add_vertices(VertexGroup(cs.id, codelet, tiles, fields, {}, cycles))


# Groups
@library_call("POPOPS")
def regroupTensor(
    graph: Graph,
    t: Tensor,
    copies: program.Sequence,
    transposeCS: ComputeSet,
    fromGrouping: GroupingInfo,
    toGrouping: GroupingInfo,
    debugContext: str = "",
) -> Tensor:
    """Return a tensor that lies in groups of one dimension in a copy with groups of another.

    A grouping is a dimension and the size of its groups. The copies are added to a program, the
    transposes to a compute set that is to run after them. A tensor of one dimension stays as it is.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.graph.addVariable(HALF, [4, 4], "x")
    >>> trial.graph.setTileMapping(rows, 0)
    >>> x = rows.transpose()  # lies in groups of 4 rows
    >>> cs = trial.graph.addComputeSet("transposes")
    >>> out = regroupTensor(trial.graph, x, trial.prog, cs, (0, 4), (1, 4))
    >>> poputil.detectDimGroupings(trial.graph, out)[0]
    (1, 4)
    """
    name = debug_name(debugContext, "regroup")
    return _regroup(graph, t, (copies, transposeCS), fromGrouping, toGrouping, name)


@library_call("POPOPS")
def regroupIfPossible(
    graph: Graph,
    t: Tensor,
    prog: program.Sequence,
    toGrouping: GroupingInfo,
    debugContext: str = "",
) -> Tensor:
    """Regroup a tensor that lies in groups of another dimension that can be transposed well.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.graph.addVariable(HALF, [4, 4], "x")
    >>> trial.graph.setTileMapping(rows, 0)
    >>> x = rows.transpose()  # lies in groups of 4 rows
    >>> out = regroupIfPossible(trial.graph, x, trial.prog, (1, 4))
    >>> poputil.detectDimGroupings(trial.graph, out)[0]
    (1, 4)
    """
    name = debug_name(debugContext, "regroup")
    axis, size = toGrouping
    if t.rank() < 2 or not 0 <= axis < t.rank() or size < 1 or t.dim(axis) % size:
        return t
    return _regroup_in_program(graph, t, toGrouping, prog, name)


@library_call("POPOPS")
def regroupIfBeneficial(
    graph: Graph,
    t: Tensor,
    ref: Tensor | int,
    prog: program.Sequence,
    debugContext: str = "",
) -> Tensor:
    """Regroup a tensor to lie as a reference does, or in groups of so many of its last dimension.

    It is done where both groupings are known, of different dimensions, and of whole grains.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> rows = trial.graph.addVariable(HALF, [4, 4], "x")
    >>> trial.graph.setTileMapping(rows, 0)
    >>> x = rows.transpose()  # lies in groups of 4 rows
    >>> out = regroupIfBeneficial(trial.graph, x, 4, trial.prog)
    >>> poputil.detectDimGroupings(trial.graph, out)[0]
    (1, 4)
    >>> regroupIfBeneficial(trial.graph, rows, 4, trial.prog) is rows  # as it is
    True
    """
    name = debug_name(debugContext, "regroup")
    if t.rank() < 2 or t.dtype not in TYPES:
        return t
    if isinstance(ref, Tensor):
        if ref.shape != t.shape:
            raise poplibs_error(f"{name}: {t!r} and reference {ref!r} differ in shape")
        groupings = poputil.detectDimGroupings(graph, ref)
        if not groupings:
            return t
        grouping = groupings[0]
    else:
        grouping = (t.rank() - 1, ref)
        if ref < 1 or t.dim(grouping[0]) % ref:
            raise poplibs_error(f"{name}: groups of {ref} of the last dimension of {t!r}")
    if grouping[1] % _grain(t.dtype):
        return t
    return _regroup_in_program(graph, t, grouping, prog, name)


def _regroup_in_program(
    graph: Graph, tensor: Tensor, grouping: GroupingInfo, prog: program.Sequence, name: str
) -> Tensor:
    """Regroup a tensor, or give it as it is where its own grouping does not allow it."""
    lying = poputil.detectDimGroupings(graph, tensor)
    if not lying or lying[0][0] == grouping[0] or lying[0][1] % _grain(tensor.dtype):
        return tensor
    if tensor.dtype not in TYPES:
        return tensor
    transpose_set = graph.addComputeSet(f"{name}/Transpose")
    regrouped = _regroup(graph, tensor, (prog, transpose_set), lying[0], grouping, name)
    prog.add(Execute(transpose_set))
    return regrouped


def _regroup(
    graph: Graph,
    tensor: Tensor,
    steps: tuple[program.Sequence, ComputeSet],
    lying: GroupingInfo,
    grouping: GroupingInfo,
    name: str,
) -> Tensor:
    if tensor.rank() < 2:
        return tensor
    for axis, group in (lying, grouping):
        if not 0 <= axis < tensor.rank() or group < 1 or tensor.dim(axis) % group:
            raise poplibs_error(f"{name}: groups of {group} of dimension {axis} of {tensor!r}")
    with graph.debug_scope(name, "popops"):
        lying, grouping = _split_further(graph, tensor, lying, grouping)
        grouped = _grouped(_grouped(tensor, grouping), lying)
        matrices = graph.addVariable(tensor.dtype, grouped.shape, f"{name}/preRegroup")
        size = grouping[1] * lying[1]
        tiles = _balanced_tiles(graph, grouped, size, crc32(repr((lying, grouping)).encode()))
        number = np.arange(len(tiles), dtype=np.int64)
        graph.map_ranges(matrices, number * size, (number + 1) * size, tiles)
        steps[0].add(Copy(grouped, matrices, name=name))
        transposed = _partial_transpose(graph, matrices, steps[1], f"{name}/partialTranspose")
    outer_last = transposed.dimRoll(transposed.rank() - 2, transposed.rank() - 1)
    return _ungrouped(_ungrouped(outer_last, lying), grouping)


def regroup_where_it_lies(
    graph: Graph,
    tensor: Tensor,
    transposes: ComputeSet,
    lying: GroupingInfo,
    grouping: GroupingInfo,
    into: Tensor,
    name: str,
) -> None:
    """Regroup a tensor `into` another, by matrices that are transposed where they begin."""
    with graph.debug_scope(name, "popops"):
        grouped = _grouped(_grouped(tensor, grouping), lying)
        results = _grouped(_grouped(into, lying), grouping)
        _partial_transpose(graph, grouped, transposes, name, results)


def _grouped(tensor: Tensor, grouping: GroupingInfo) -> Tensor:
    """Cut a dimension into groups, whose elements become the last dimension."""
    axis, group = grouping
    split = tensor.reshapePartial(axis, axis + 1, [tensor.dim(axis) // group, group])
    return split.dimRoll(axis + 1, split.rank() - 1)


def _ungrouped(tensor: Tensor, grouping: GroupingInfo) -> Tensor:
    """Undo `_grouped`."""
    axis = grouping[0]
    return tensor.dimRoll(tensor.rank() - 1, axis + 1).flatten(axis, axis + 2)


def _split_further(
    graph: Graph, tensor: Tensor, lying: GroupingInfo, grouping: GroupingInfo
) -> tuple[GroupingInfo, GroupingInfo]:
    """Make the matrices smaller where that keeps more tiles and workers busy."""
    grain, target = _grain(tensor.dtype), graph.target
    if lying[1] % grain or grouping[1] % grain:
        return lying, grouping
    size, tiles = lying[1] * grouping[1], target.tiles_per_ipu
    most = ceil_div(tensor.numElements(), target.num_ipus * size)  # matrices of an IPU
    further = size // (grain * grain)
    factors = [n for n in range(1, further + 1) if further % n == 0 and most * n <= tiles]

    def cost(factor: int) -> int:
        share = ceil_div(ceil_div(most * factor, tiles), target.workers)
        return further // factor * share

    factor = min(factors, key=cost, default=1)
    of_lying = gcd(factor, lying[1] // grain)
    of_wanted = gcd(factor // of_lying, grouping[1] // grain)
    return (lying[0], lying[1] // of_lying), (grouping[0], grouping[1] // of_wanted)


def _balanced_tiles(graph: Graph, grouped: Tensor, size: int, seed: int) -> IntArray:
    """Assign each matrix a tile of the IPU that it begins on, as many to each tile."""
    first = grouped.reshape((grouped.numElements() // size, size)).slice(0, 1, 1).flatten()
    low, high, tile = graph.tile_ranges(first)
    tiles_per_ipu = graph.target.tiles_per_ipu
    ipu = np.zeros(first.numElements(), dtype=np.int64)
    ipu[spread(low, high - low)] = np.repeat(tile // tiles_per_ipu, high - low)
    counts = np.bincount(ipu)
    rank = np.empty_like(ipu)
    rank[np.argsort(ipu, kind="stable")] = spread(np.zeros_like(counts), counts)
    share = ceil_div(counts, tiles_per_ipu)
    # It begins anywhere, so that what is regrouped does not always lie on the first tiles.
    return ipu * tiles_per_ipu + (rank // share[ipu] + seed % tiles_per_ipu) % tiles_per_ipu
