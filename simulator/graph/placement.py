"""The tile mapping of a graph: set and asked in the tile numbers of a graph or of a view of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from simulator.graph.errors import TileMappingError
from simulator.graph.intervals import as_int64, cut
from simulator.graph.mapping import Mapping, MappingTable, listed_pieces
from simulator.graph.patterns import Shifted, recent, relative
from simulator.graph.regions import pieces_of, variables_of
from simulator.graph.tensor import Tensor
from simulator.graph.types import IntArray
from simulator.graph.views import everywhere

if TYPE_CHECKING:
    from simulator.graph.graph import Graph, TileIntervals
    from simulator.graph.user_vertices import VertexRef


def check_tiles(graph: Graph, tiles: IntArray, what: str) -> None:
    """Raise TileMappingError for the first tile that the graph does not have."""
    wrong = tiles[(tiles < 0) | (tiles >= graph.target.num_tiles)]
    if len(wrong):
        last = graph.target.num_tiles - 1
        raise TileMappingError(f"{what}: tile {wrong[0]}; the target has tiles 0 to {last}")


def place_vertex(graph: Graph, vertex: VertexRef, tile: int | TileIntervals) -> None:
    """Put a vertex on a tile; raises TileMappingError for anything else."""
    if not isinstance(tile, int | np.integer):
        raise TileMappingError(f"{vertex.batch.describe(vertex.index)}: needs one tile")
    if not 0 <= tile < graph.target.num_tiles:
        check_tiles(graph, as_int64(tile), vertex.batch.describe(vertex.index))
    vertex.batch.tiles[vertex.index] = int(graph.window.tiles[0, tile])


def map_tensor(graph: Graph, table: MappingTable, tensor: Tensor, tile: int) -> None:
    """Put a whole tensor on a tile, in each replica; called for every vertex that is added."""
    if not 0 <= tile < graph.target.num_tiles:
        check_tiles(graph, as_int64(tile), f"variable {tensor.describe()!r}")
    for replica, part in enumerate(_replicas(graph, tensor)):
        size, place = part.dtype.size, int(graph.window.tiles[replica, tile])
        if len(part.begins) == 1:
            begin = int(part.begins[0]) * size
            table.add_one(begin, begin + int(part.lengths[0]) * size, place)
        else:
            begins = part.begins * size
            ends = begins + part.lengths * size
            table.add(begins, ends, np.full(len(begins), place, dtype=np.int64))


def map_ranges(
    graph: Graph,
    table: MappingTable,
    tensor: Tensor,
    low: IntArray,
    high: IntArray,
    tiles: IntArray,
) -> None:
    """Put the positions [low, high) of a flattened tensor on the tiles, in each replica."""
    check_tiles(graph, tiles, f"variable {tensor.describe()!r}")
    outside = len(low) and (int(high.max()) > tensor.numElements() or int(low.min()) < 0)
    if outside or (low > high).any():
        raise TileMappingError(
            f"variable {tensor.describe()!r}: mapping of elements {int(low.min())} to "
            f"{int(high.max())}; it has {tensor.numElements()}"
        )
    size = tensor.dtype.size
    for replica, part in enumerate(_replicas(graph, tensor)):
        begins, lengths, starts = cut(part.begins, part.lengths, low, high)
        places = np.repeat(graph.window.tiles[replica, tiles], np.diff(starts))
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


def _check_held(graph: Graph, tensor: Tensor) -> None:
    """Raise TileMappingError for a tensor of another graph: its bytes are not the same ones."""
    if not graph.holds(tensor):
        raise TileMappingError(f"variable {tensor.describe()!r}: is not of this graph")


def _replicas(graph: Graph, tensor: Tensor) -> list[Tensor]:
    """Return a tensor in each replica; one without replicas takes any tensor of the whole graph."""
    _check_held(graph, tensor)
    if graph.window.replicas == 1:
        return [tensor]
    whole = everywhere(tensor)
    return [whole[replica] for replica in range(graph.window.replicas)]


def tile_ranges(
    graph: Graph, table: MappingTable, tensor: Tensor
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the positions [low, high) of a tensor that lie on one tile of the graph, in order.

    A view leaves out what lies on none of its tiles.
    """
    _check_held(graph, tensor)
    mapping = settled_mapping(graph, table, variables_of(tensor))
    if not isinstance(tensor.places, Shifted):
        return _ranges(graph, mapping, tensor)
    where = relative(tensor.places, mapping, tensor.dtype.size)
    return recent(("ranges", graph.window, where), lambda: _ranges(graph, mapping, tensor))


def _ranges(graph: Graph, mapping: Mapping, tensor: Tensor) -> tuple[IntArray, IntArray, IntArray]:
    begins, lengths = tensor.intervals()
    low, high, piece, _ = pieces_of(begins, lengths, mapping.begin, mapping.end, tensor.dtype.size)
    tiles = graph.window.inside(mapping.tile[piece])
    seen = tiles >= 0
    return (low, high, tiles) if seen.all() else (low[seen], high[seen], tiles[seen])


def listed_by_tile(
    graph: Graph, table: MappingTable, tensor: Tensor
) -> list[list[tuple[int, int]]]:
    """List, for each tile, the parts [begin, end) of the flattened tensor that it holds."""
    result: list[list[tuple[int, int]]] = [[] for _ in range(graph.target.num_tiles)]
    columns = (column.tolist() for column in tile_ranges(graph, table, tensor))
    for low, high, tile in zip(*columns, strict=True):
        parts = result[tile]
        if parts and parts[-1][1] == low:
            parts[-1] = (parts[-1][0], high)
        else:
            parts.append((low, high))
    return result


def settled_mapping(
    graph: Graph, table: MappingTable, variables: Iterable[int] | None = None
) -> Mapping:
    """Find the mapped bytes of variables (of all, when none are named), cut where the tile changes.

    On a CPU everything is on its one tile, mapped or not.
    """
    begins, ends = graph.variable_bounds()
    if graph.target.target_type != "CPU":
        return table.settled((begins, ends), variables)
    used = np.flatnonzero(ends > begins)
    return Mapping(begins[used], ends[used], np.zeros_like(used), used)
