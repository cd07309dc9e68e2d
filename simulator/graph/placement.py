"""The tile mapping of a graph: set and asked in the tile numbers of a graph or of a view of it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from simulator.graph.errors import TileMappingError
from simulator.graph.geometry.intervals import Interval, as_int64, cut
from simulator.graph.geometry.patterns import Shifted, recent, relative
from simulator.graph.mapping import Mapping, MappingTable, TileIntervals, listed_pieces
from simulator.graph.replicas import everywhere
from simulator.graph.tensors.arena import Arena
from simulator.graph.tensors.regions import pieces_of, variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray


def check_tiles(arena: Arena, tiles: IntArray, subject: str) -> None:
    """Raise TileMappingError for the first tile that the graph does not have."""
    wrong = tiles[(tiles < 0) | (tiles >= arena.target.num_tiles)]
    if len(wrong):
        last = arena.target.num_tiles - 1
        raise TileMappingError(f"{subject}: tile {wrong[0]}; the target has tiles 0 to {last}")


def map_tensor(arena: Arena, table: MappingTable, tensor: Tensor, tile: int) -> None:
    """Put a whole tensor on a tile, in each replica; called for every vertex that is added."""
    if not 0 <= tile < arena.target.num_tiles:
        check_tiles(arena, as_int64(tile), f"variable {tensor.describe()!r}")
    for replica, part in enumerate(_replicas(arena, tensor)):
        size, place = part.dtype.size, int(arena.window.tiles[replica, tile])
        if len(part.begins) == 1:
            begin = int(part.begins[0]) * size
            table.add_one(begin, begin + int(part.lengths[0]) * size, place)
        else:
            begins = part.begins * size
            ends = begins + part.lengths * size
            table.add(begins, ends, np.full(len(begins), place, dtype=np.int64))


def map_ranges(
    arena: Arena,
    table: MappingTable,
    tensor: Tensor,
    low: IntArray,
    high: IntArray,
    tiles: IntArray,
) -> None:
    """Put the positions [low, high) of a flattened tensor on the tiles, in each replica."""
    check_tiles(arena, tiles, f"variable {tensor.describe()!r}")
    outside = len(low) and (int(high.max()) > tensor.numElements() or int(low.min()) < 0)
    if outside or (low > high).any():
        raise TileMappingError(
            f"variable {tensor.describe()!r}: mapping of elements {int(low.min())} to "
            f"{int(high.max())}; it has {tensor.numElements()}"
        )
    size = tensor.dtype.size
    for replica, part in enumerate(_replicas(arena, tensor)):
        begins, lengths, starts = cut(part.begins, part.lengths, low, high)
        places = np.repeat(arena.window.tiles[replica, tiles], np.diff(starts))
        table.add(begins * size, (begins + lengths) * size, places)


def listed_ranges(tensor: Tensor, parts: TileIntervals) -> tuple[IntArray, IntArray, IntArray]:
    """Return the positions [low, high) and tiles of the parts that a list holds for each tile.

    Raises TileMappingError for anything else, and for a position that stands there twice.
    """
    try:
        low, high, tiles = listed_pieces(parts)
    except (TypeError, ValueError):
        raise TileMappingError(
            f"variable {tensor.describe()!r}: mapped to {parts!r}; a tile is needed, or for "
            "each tile a list of its parts [begin, end)"
        ) from None
    filled = np.flatnonzero(high > low)
    order = filled[np.argsort(low[filled])]
    clashes = np.flatnonzero(low[order][1:] < np.maximum.accumulate(high[order])[:-1])
    if len(clashes):
        element = low[order][clashes[0] + 1]
        raise TileMappingError(
            f"variable {tensor.describe()!r}: element {element} is mapped twice; each is on one "
            "tile"
        )
    return low, high, tiles


def _check_held(arena: Arena, tensor: Tensor) -> None:
    """Raise TileMappingError for a tensor of another graph: its bytes are not the same ones."""
    if tensor.graph.variables is not arena.variables:
        raise TileMappingError(f"variable {tensor.describe()!r}: is not of this graph")


def _replicas(arena: Arena, tensor: Tensor) -> list[Tensor]:
    """Return a tensor in each replica; one without replicas takes any tensor of the whole arena."""
    _check_held(arena, tensor)
    if arena.window.replicas == 1:
        return [tensor]
    replicated = everywhere(tensor)
    return [replicated[replica] for replica in range(arena.window.replicas)]


def tile_ranges(
    arena: Arena, table: MappingTable, tensor: Tensor
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the positions [low, high) of a tensor that lie on one tile of the arena, in order.

    A view leaves out what lies on none of its tiles.
    """
    _check_held(arena, tensor)
    mapping = settled_mapping(arena, table, variables_of(tensor))
    if not isinstance(tensor.places, Shifted):
        return _ranges(arena, mapping, tensor)
    where = relative(tensor.places, mapping, tensor.dtype.size)
    return recent(("ranges", arena.window, where), lambda: _ranges(arena, mapping, tensor))


def _ranges(arena: Arena, mapping: Mapping, tensor: Tensor) -> tuple[IntArray, IntArray, IntArray]:
    begins, lengths = tensor.intervals()
    low, high, piece, _ = pieces_of(begins, lengths, mapping.begin, mapping.end, tensor.dtype.size)
    tiles = arena.window.inside(mapping.tile[piece])
    seen = tiles >= 0
    return (low, high, tiles) if seen.all() else (low[seen], high[seen], tiles[seen])


def listed_by_tile(arena: Arena, table: MappingTable, tensor: Tensor) -> list[list[Interval]]:
    """List, for each tile, the parts [begin, end) of the flattened tensor that it holds."""
    result: list[list[Interval]] = [[] for _ in range(arena.target.num_tiles)]
    columns = (column.tolist() for column in tile_ranges(arena, table, tensor))
    for low, high, tile in zip(*columns, strict=True):
        parts = result[tile]
        if parts and parts[-1].end == low:
            parts[-1] = Interval(parts[-1].begin, high)
        else:
            parts.append(Interval(low, high))
    return result


def settled_mapping(
    arena: Arena, table: MappingTable, variables: Iterable[int] | None = None
) -> Mapping:
    """Return the mapped bytes of variables (by default of all), cut where the tile changes.

    On a CPU everything is on its one tile, mapped or not.
    """
    begins, ends = arena.variable_bounds()
    if arena.target.target_type != "CPU":
        return table.settled((begins, ends), variables)
    used = np.flatnonzero(ends > begins)
    return Mapping(begins[used], ends[used], np.zeros_like(used), used)
