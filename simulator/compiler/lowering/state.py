"""What lowering collects: programs with their accesses, the compiler's variables and sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from simulator.compiler.copies import WORD_BYTES, copy_vertices, short_copies
from simulator.compiler.edges import Layout, sum_pairs
from simulator.compiler.exchange import exchange_cost
from simulator.compiler.executable import (
    CompilerVariable,
    Exchange,
    LoweredProgram,
)
from simulator.compiler.global_exchange import GLOBAL_EXCHANGE, global_exchange_cost
from simulator.graph import kernels
from simulator.graph.geometry.intervals import crossings, heads_of, kinds, present
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BoolArray, IntArray
from simulator.graph.vertices.vertex import VertexGroup

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One lowered program, the variables that it reads and writes, and which writes are whole."""

    program: LoweredProgram
    reads: IntArray = field(default_factory=lambda: NONE)
    writes: IntArray = field(default_factory=lambda: NONE)
    whole: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))


@dataclass(slots=True, eq=False)
class Building:
    """What has been lowered so far."""

    graph: Graph
    layout: Layout
    compute_sets: list[str]
    groups: list[VertexGroup]
    exchanges: list[Exchange] = field(default_factory=list)
    global_exchanges: list[Exchange] = field(default_factory=list)
    host_exchanges: list[Exchange] = field(default_factory=list)
    variables: list[CompilerVariable] = field(default_factory=list)
    io_tiles: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    prefetch: bool = False

    @classmethod
    def start(
        cls, graph: Graph, io_tiles: BoolArray | None = None, *, prefetch: bool = False
    ) -> Building:
        """Begin with the user's compute sets and vertices, and the tiles that only exchange.

        `prefetch` tells whether the host fills buffers ahead.
        """
        names = [compute_set.name for compute_set in graph.compute_sets]
        none = np.zeros(graph.target.num_tiles, dtype=np.bool_)
        tiles = none if io_tiles is None else io_tiles
        layout, groups = Layout.of(graph), list(graph.vertex_groups())
        return cls(graph, layout, names, groups, io_tiles=tiles, prefetch=prefetch)

    def add_variable(self, variable: CompilerVariable) -> int:
        """Add a variable of the compiler; give its number."""
        self.variables.append(variable)
        return len(self.graph.variables) + len(self.variables) - 1

    def copies_of(
        self, variable: IntArray, tile: IntArray, size: IntArray, category: str, form: str
    ) -> IntArray:
        """Add a variable for the copy of each of the graph's variables; `form` holds its name."""
        variable, tile, size = sum_pairs(variable, tile, size)
        starts = np.flatnonzero(heads_of(variable))  # they are sorted
        sources, bounds = variable[starts], [*starts.tolist(), len(variable)]
        numbers = [
            self.add_variable(
                CompilerVariable(
                    form.format(self.graph.variables[source].name.strip("<>")),
                    category,
                    tile[low:high],
                    size[low:high],
                    source,
                )
            )
            for source, low, high in zip(sources.tolist(), bounds[:-1], bounds[1:], strict=True)
        ]
        return np.array(numbers, dtype=np.int64)

    def exchange(
        self,
        name: str,
        low: IntArray,
        high: IntArray,
        source: IntArray,
        destination: IntArray,
        *,
        reads: Sequence[IntArray] = (),
        writes: Sequence[IntArray] = (),
        whole: BoolArray | None = None,
        in_rows: bool = False,
        count: IntArray | None = None,
    ) -> list[Part]:
        """Exchange the bytes [low, high) of the arena, tile to tile, with the sync before it.

        `in_rows`: each tile receives all into a row. `count`: as of `exchange_cost`. What goes
        from one IPU to another follows in an exchange and a sync of its own.
        """
        parts: list[Part] = []
        for between, route in sides_of(self.crossing(source, destination)):
            fragments = None if count is None else count[route]
            inside = partial(exchange_cost, in_rows=in_rows, count=fragments)
            find = global_exchange_cost if between else inside
            add = self.between_ipus if between else self.inside_ipus
            size = (high - low)[route]
            cost = find(self.graph.target, source[route], destination[route], size, low[route])
            parts += add(name, cost, reads, writes, whole)
            # The first to write a variable begins its new life; the other one adds to it.
            whole = np.zeros(sum(map(len, writes)), dtype=bool)
        return parts

    def crossing(self, source: IntArray, destination: IntArray) -> BoolArray:
        """Return which pairs of tiles are of different IPUs."""
        tiles = self.graph.target.tiles_per_ipu
        if self.graph.target.num_ipus == 1:
            return np.zeros(len(source), dtype=bool)
        apart: BoolArray = source // tiles != destination // tiles
        return apart

    def inside_ipus(
        self,
        name: str,
        cost: Exchange,
        reads: Sequence[IntArray] = (),
        writes: Sequence[IntArray] = (),
        kills: BoolArray | None = None,
    ) -> list[Part]:
        """Add an exchange that each IPU makes by itself, with its sync."""
        self.exchanges.append(cost)
        program = LoweredProgram("DoExchange", name, exchange=len(self.exchanges) - 1)
        return [sync("Internal"), with_access(Part(program), reads, writes, kills)]

    def between_ipus(
        self,
        name: str,
        cost: Exchange,
        reads: Sequence[IntArray] = (),
        writes: Sequence[IntArray] = (),
        kills: BoolArray | None = None,
    ) -> list[Part]:
        """Add an exchange between IPUs, named after `name`, with its sync."""
        self.global_exchanges.append(cost)
        head, slash, last = name.rpartition("/")
        name = f"{head}{slash}{last.replace('Exchange', 'Global')}{GLOBAL_EXCHANGE}"
        program = LoweredProgram("GlobalExchange", name, exchange=len(self.global_exchanges) - 1)
        return [sync("External"), with_access(Part(program), reads, writes, kills)]

    def tile_copy(self, name: str, tile: IntArray, size: IntArray, rows: IntArray) -> Part:
        """Add a compute set that copies on tiles: `size` bytes in `rows` rows, several a tile.

        A piece that goes on in the row of the one before it has no rows of its own.
        """
        tiles, total, pieces, broken = _by_tile(tile, size, rows)
        self.compute_sets.append(name)
        number = len(self.compute_sets) - 1
        workers = self.graph.target.workers
        self.groups += copy_vertices(number, tiles, total, pieces, broken == 0, workers)
        return Part(LoweredProgram("OnTileExecute", name, compute_set=number))

    def packet_copy(self, name: str, tile: IntArray) -> Part:
        """Add a compute set with a short copy for each packet of the host, on its tile."""
        self.compute_sets.append(name)
        number = len(self.compute_sets) - 1
        self.groups.append(short_copies(number, tile))
        return Part(LoweredProgram("OnTileExecute", name, compute_set=number))

    def variables_at(self, low: IntArray) -> IntArray:
        """Return the graph's variable that holds each byte of the arena."""
        begins, _ = self.graph.variable_bounds()
        return np.searchsorted(begins, low, side="right") - 1

    def owners(self, low: IntArray, high: IntArray) -> tuple[IntArray, ...]:
        """Cut byte ranges where the tile changes; give the range, low, high and tile of pieces."""
        mapping = self.layout.mapping
        source, piece = crossings(low, high, mapping.begin, mapping.end)
        begin = np.maximum(low[source], mapping.begin[piece])
        end = np.minimum(high[source], mapping.end[piece])
        return source, begin, end, mapping.tile[piece]

    def whole(self, variable: IntArray, size: IntArray) -> tuple[IntArray, BoolArray]:
        """Return which variables are written, and which of them in all their bytes."""
        written, which = kinds(variable)
        total = np.bincount(which, weights=size, minlength=len(written))
        sizes = np.array([self.graph.variables[v].bytes for v in written.tolist()])
        return written, total >= sizes


def _by_tile(tile: IntArray, size: IntArray, rows: IntArray) -> Sequence[IntArray]:
    """Return the tiles, their bytes and rows, and their pieces that are no whole words in a row."""
    if kernels.compiled:
        columns = kernels.columns("by_tiles", tile, size, rows, np.array([WORD_BYTES]))
        if columns:
            return columns
    tiles, which = kinds(tile)
    broken = size % (WORD_BYTES * np.maximum(rows, 1)) > 0
    sums = [np.bincount(which, weights=weights) for weights in (size, rows, broken)]
    return [tiles, *(column.astype(np.int64) for column in sums)]


def sides_of(crossing: BoolArray) -> list[tuple[bool, slice | BoolArray]]:
    """Return which rows stay within IPUs (False) and which cross (True); none is left out."""
    if not crossing.any():
        return [(False, slice(None))] if len(crossing) else []
    return [(False, ~crossing), (True, crossing)] if not crossing.all() else [(True, slice(None))]


def sync(kind: str, tile_set: str = "All") -> Part:
    """Make a sync, Internal or External, of all tiles or of one set."""
    return Part(LoweredProgram("Sync", sync_type=kind, tile_set=tile_set))


def with_access(
    part: Part,
    reads: Sequence[IntArray] = (),
    writes: Sequence[IntArray] = (),
    kills: BoolArray | None = None,
) -> Part:
    """Return a part with its accesses; writes are whole unless told."""
    written = np.concatenate([NONE, *writes])
    kills = np.ones(len(written), dtype=bool) if kills is None else kills
    return Part(part.program, present(np.concatenate([NONE, *reads])), written, kills)


def consensus(building: Building, name: str, predicate: Tensor) -> list[Part]:
    """Let all tiles know whether the predicate, which one tile holds, is zero."""
    read = building.variables_at(predicate.begins * predicate.dtype.size)
    vote = with_access(Part(LoweredProgram("SetLocalConsensusFromVar", name)), [read])
    multi_ipu = building.graph.target.num_ipus > 1
    return [vote, sync("External" if multi_ipu else "Internal")]
