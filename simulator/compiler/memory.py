"""Memory of every tile by region, category, compute set and vertex type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pva import schema
from simulator.compiler.allocate import Allocation, shares_its_place, union_bytes
from simulator.compiler.executable import Liveness, Lowered, MemoryUse, Pieces
from simulator.compiler.fixed_data import CODE_CATEGORIES, types_on_tiles, vertex_bytes
from simulator.graph.geometry.intervals import among, present
from simulator.graph.graph import Graph
from simulator.graph.types import BoolArray, IntArray
from simulator.graph.vertices.vertex import Codelet, VertexGroup

PARTS = ("copy_pointers", "descriptors", "edge_pointers", "padding", "vertex_data")
BYTES: Any = np.int32  # of what one compute set or type has on a tile; there are many such numbers
ByTile = dict[str, IntArray]


def measure_memory(
    graph: Graph,
    lowered: Lowered,
    vertex_types: Sequence[Codelet],
    type_of_group: IntArray,
    liveness: Liveness,
    pieces: Pieces,
    allocation: Allocation,
    fixed: ByTile,
) -> MemoryUse:
    """Measure the memory of a compiled program.

    Pieces whose variable is neither the graph's nor the compiler's are the fixed data and the code,
    one each a tile; `fixed` says what they are made of, in bytes by category and tile.
    """
    tiles = graph.target.num_tiles
    names = [*(v.name for v in graph.variables), *(v.name for v in lowered.variables)]
    is_fixed = pieces.variable >= len(names)
    always_live, items = _always_live(names, liveness, pieces, is_fixed, fixed, tiles)
    rows = np.array([group.compute_set for group in lowered.groups], dtype=np.int64)
    by_set, by_type = _vertex_parts(
        lowered.groups,
        [(rows, len(lowered.compute_sets)), (type_of_group, len(vertex_types))],
        tiles,
        graph.target.scaled_pointer_bytes,
    )
    if graph.target.compile_ipu_code:
        used = types_on_tiles(tiles, lowered.groups, len(vertex_types), type_of_group)
        sizes = np.array([codelet.code_bytes for codelet in vertex_types], dtype=np.int64)
        by_type["code"] = used * sizes[:, None]
        by_set["code"] = _code_by_compute_set(lowered, type_of_group, sizes, tiles)
    for table in (by_set, by_type):
        table["total"] = sum(table.values(), np.zeros_like(table["code"]))
    return MemoryUse(
        by_tile=_by_tile(graph, lowered, pieces, allocation),
        by_category=_by_category(graph, lowered, pieces, allocation, is_fixed, fixed),
        by_compute_set=by_set,
        by_vertex_type=by_type,
        always_live=always_live,
        always_live_items=items,
    )


def _by_tile(graph: Graph, lowered: Lowered, pieces: Pieces, allocation: Allocation) -> ByTile:
    """Count bytes of each region without and with gaps; gaps run from the region's base.

    A gap follows what vertices read, as they may read past its end.
    """
    target = graph.target
    bases = (0, target.interleaved_base, target.bytes_per_tile)
    limits = (*bases[1:], np.iinfo(np.int64).max)
    result: ByTile = {}
    last = np.zeros(target.num_tiles, dtype=np.int64)
    past = target.read_past_bytes * among(pieces.variable, _operands(lowered))
    for region, (name, base, limit) in enumerate(zip(schema.REGIONS, bases, limits, strict=True)):
        in_region = allocation.region == region
        tile, address, length = (
            pieces.tile[in_region],
            allocation.address[in_region],
            pieces.bytes[in_region],
        )
        column = schema.snake(name)
        result[column] = union_bytes(tile, address, length, target.num_tiles)
        end = np.full(target.num_tiles, base, dtype=np.int64)
        np.maximum.at(end, tile, np.minimum(address + length + past[in_region], limit))
        result[f"{column}_including_gaps"] = end - base
        last = np.where(end > base, end, last)
    result["total"] = sum((result[schema.snake(name)] for name in schema.REGIONS), last * 0)
    result["total_including_gaps"] = last
    return result


def _operands(lowered: Lowered) -> IntArray:
    """List the variables that vertices read."""
    executes = np.array([p.type == "OnTileExecute" for p in lowered.programs], dtype=bool)
    access = lowered.access
    return present(access.variable[executes[access.program] & ~access.write])


def _by_category(
    graph: Graph,
    lowered: Lowered,
    pieces: Pieces,
    allocation: Allocation,
    is_fixed: BoolArray,
    fixed: ByTile,
) -> IntArray:
    """Add up pieces by category, region, overlap and tile."""
    tiles = graph.target.num_tiles
    shape = (len(schema.CATEGORIES), len(schema.REGIONS), len(schema.OVERLAPS), tiles)
    number = {name: index for index, name in enumerate(schema.CATEGORIES)}
    named = ["constant" if v.constant else "variable" for v in graph.variables]
    named += [variable.category for variable in lowered.variables]
    category = np.array([number[name] for name in named], dtype=np.int64)
    overlap = shares_its_place(pieces.tile, allocation.address, pieces.bytes).astype(np.int64)
    mine = ~is_fixed
    place = (
        category[pieces.variable[mine]],
        allocation.region[mine],
        overlap[mine],
        pieces.tile[mine],
    )
    flat = np.ravel_multi_index(place, shape)
    sums = np.bincount(flat, weights=pieces.bytes[mine], minlength=int(np.prod(shape)))
    result = sums.astype(np.int64).reshape(shape)
    regions = np.zeros((2, tiles), dtype=np.int64)  # of the fixed data and of the code
    part = pieces.variable[is_fixed] - len(category)
    regions[part, pieces.tile[is_fixed]] = allocation.region[is_fixed]
    for name, sizes in fixed.items():
        region = regions[int(name in CODE_CATEGORIES)]
        result[number[name], region, 0, np.arange(tiles)] += sizes
    return result


def _always_live(
    names: list[str],
    liveness: Liveness,
    pieces: Pieces,
    is_fixed: BoolArray,
    fixed: ByTile,
    tiles: int,
) -> tuple[IntArray, list[tuple[str, int]]]:
    """Add up what is always live: by tile, and by name."""
    mine = np.flatnonzero(~is_fixed)
    live_pieces = mine[liveness.always_live[pieces.variable[mine]]]
    by_tile = sum(fixed.values(), np.zeros(tiles, dtype=np.int64))
    by_tile += np.bincount(
        pieces.tile[live_pieces], weights=pieces.bytes[live_pieces], minlength=tiles
    ).astype(np.int64)
    sizes = np.bincount(
        pieces.variable[live_pieces], weights=pieces.bytes[live_pieces], minlength=len(names)
    )
    items: dict[str, int] = {}
    for variable in np.flatnonzero(sizes).tolist():
        items[names[variable]] = items.get(names[variable], 0) + int(sizes[variable])
    for name, data in fixed.items():
        items[name] = items.get(name, 0) + int(data.sum())
    return by_tile, sorted((name, size) for name, size in items.items() if size)


def _vertex_parts(
    groups: Sequence[VertexGroup],
    tables: Sequence[tuple[IntArray, int]],
    tiles: int,
    scaled_bytes: int,
) -> list[ByTile]:
    """Add up the parts of vertices by row and tile, for each table.

    A table is the row of each group (its compute set or vertex type), and how many rows there are.
    """
    result: list[ByTile] = [
        {part: np.zeros((count, tiles), dtype=BYTES) for part in (*PARTS, "code")}
        for _, count in tables
    ]
    for place, group in enumerate(groups):
        sizes = vertex_bytes(group, scaled_bytes)
        for part in PARTS:
            sizes_of_part = getattr(sizes, part)
            if not sizes_of_part.any():
                continue
            by_tile = np.bincount(group.tile, weights=sizes_of_part, minlength=tiles)
            for table, (rows, _) in zip(result, tables, strict=True):
                table[part][rows[place]] += by_tile.astype(BYTES)
    return result


def _code_by_compute_set(
    lowered: Lowered, type_of_group: IntArray, sizes: IntArray, tiles: int
) -> IntArray:
    """Count on each tile the code of every vertex type that a compute set uses there."""
    code: IntArray = np.zeros((len(lowered.compute_sets), tiles), dtype=BYTES)
    together: dict[tuple[int, int], list[IntArray]] = {}
    for group, vertex_type in zip(lowered.groups, type_of_group.tolist(), strict=True):
        together.setdefault((group.compute_set, vertex_type), []).append(group.tile)
    for (compute_set, vertex_type), parts in together.items():
        code[compute_set, present(np.concatenate(parts))] += sizes[vertex_type]
    return code
