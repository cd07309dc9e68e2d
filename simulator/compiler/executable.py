"""A compiled program: arrays for values, clocks and profile, each usable without the others.

Variables are numbered through: the graph's own first, then those that the compiler added. Compute
sets likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from simulator.compiler.allocate import Allocation
from simulator.compiler.instrumentation import Instrumentation
from simulator.graph.deferred import DeferredFields
from simulator.graph.graph import Graph
from simulator.graph.program import Program
from simulator.graph.types import BoolArray, IntArray
from simulator.graph.vertices.vertex import Codelet, VertexGroup


@dataclass(slots=True, eq=False)
class LoweredProgram:
    """One program: the row of the table `programs`. Exchange rows are of the list of its type.

    `action` is the user's node whose values this program carries: each node is carried by exactly
    one program, syncs and exchanges of the compiler by none. `control` is the node by which a
    container chooses what to run. `target` of a Call is an index into the functions, `block` marks
    a Block of the user. `context` is a debug context, 0 none. `event` is what lightweight profiling
    does here: blockBegin, blockEnd (of the program above), copyBegin (of the next), copyEnd, flush.
    `tile_set` names the tiles that take part, a word of schema.TILE_SETS.
    """

    type: str
    name: str = ""
    children: list[int] = field(default_factory=list)
    compute_set: int = -1
    exchange: int = -1
    target: int = -1
    count: int = -1
    sync_type: str = "None"
    action: Program | None = None
    control: Program | None = None
    block: bool = False
    context: int = 0
    event: str = ""
    tile_set: str = "All"


@dataclass(frozen=True, slots=True, eq=False)
class WrittenProgram:
    """A program of the user at one place where it stands.

    `parent` is the row of the one around it, -1 for none; `role` says which branch of that it is.
    """

    node: Program
    parent: int
    role: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Exchange(DeferredFields):
    """One exchange, internal, between IPUs or with the host: bytes and cycles of every tile.

    `instructions` are bytes of code by kind, in the order of schema.EXCHANGE_INSTRUCTIONS; `flows`
    bytes received by [group that sends][group that receives], of simulator/compiler/flows.py.
    """

    sent: IntArray
    received: IntArray
    cycles: IntArray
    instructions: tuple[int, ...] = ()
    code: IntArray | None = None  # bytes of exchange code by tile
    flows: IntArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CompilerVariable(DeferredFields):
    """A variable that the compiler added: messages, rearranged data, program numbers.

    `tile` and `bytes` are its pieces, one a tile; `source` is the graph's variable that it holds a
    copy of, -1 for none.
    """

    name: str
    category: str
    tile: IntArray
    bytes: IntArray
    source: int = -1
    interleaved: bool = False
    always_live: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Which program reads and writes which variable; `whole` writes leave nothing of it."""

    program: IntArray
    variable: IntArray
    write: BoolArray
    whole: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Lowered:
    """The program in the machine's steps. Row 0 of `programs` is the control program.

    `user_programs` and `functions` are the rows of what was given to the engine and of the
    functions of the graph. `origins` says by program which row of `written` it was made of, -1 for
    what the compiler adds by itself. `io_tiles` tells by tile which ones only exchange.
    """

    programs: Sequence[LoweredProgram]
    user_programs: Sequence[int]
    functions: Sequence[int]
    compute_sets: Sequence[str]
    groups: Sequence[VertexGroup]
    exchanges: Sequence[Exchange]
    global_exchanges: Sequence[Exchange]
    host_exchanges: Sequence[Exchange]
    variables: Sequence[CompilerVariable]
    access: Access
    written: Sequence[WrittenProgram] = ()
    origins: Sequence[int] = ()
    io_tiles: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))


@dataclass(frozen=True, slots=True, eq=False)
class ComputeCosts:
    """Cycles of compute sets: [compute set][tile], and active cycles by [compute set][type]."""

    cycles: IntArray
    active_cycles: IntArray
    active_by_type: IntArray
    flops: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Liveness:
    """When variables are live. Steps are programs in depth-first order.

    program, parent          by step: row of programs, step around it (-1 for none)
    always_live              by variable
    variable, begin, end     half-open intervals of steps of the others, sorted by variable
    bytes, bytes_by_ipu      by step: not-always-live bytes, in all and on each IPU
    max_bytes_by_tile        by tile: most not-always-live bytes of any step
    """

    program: IntArray
    parent: IntArray
    always_live: BoolArray
    variable: IntArray
    begin: IntArray
    end: IntArray
    bytes: IntArray
    bytes_by_ipu: IntArray
    max_bytes_by_tile: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Pieces(DeferredFields):
    """Where variables lie: one piece for all that a variable has on one tile, by variable.

    A message that fits in no region has two where it is placed.
    """

    variable: IntArray
    tile: IntArray
    bytes: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class MemoryUse(DeferredFields):
    """Memory of tiles, in bytes.

    by_tile            column of the table memory_by_tile -> by tile
    by_category        [category][region][overlap][tile], orders of pva.schema
    by_compute_set     part (a name of schema.VERTEX_MEMORY_PARTS) -> [compute set][tile]
    by_vertex_type     the same -> [vertex type][tile]
    always_live        by tile
    always_live_items  name and bytes of what is always live, variables and categories
    """

    by_tile: dict[str, IntArray]
    by_category: IntArray
    by_compute_set: dict[str, IntArray]
    by_vertex_type: dict[str, IntArray]
    always_live: IntArray
    always_live_items: list[tuple[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Executable:
    """All that the compiler found out. `type_of_group` is the vertex type of each group.

    `costs` and the cycles of exchanges are with what `instrumentation` adds. `created` is when
    compilation began, in seconds since the epoch.
    """

    graph: Graph
    lowered: Lowered
    vertex_types: Sequence[Codelet]
    type_of_group: IntArray
    costs: ComputeCosts
    liveness: Liveness
    pieces: Pieces
    allocation: Allocation
    memory: MemoryUse
    edges: int
    instrumentation: Instrumentation
    created: int

    def variable_names(self) -> list[str]:
        """Name all variables, the graph's and then the compiler's."""
        graph_names = [variable.name for variable in self.graph.variables]
        return graph_names + [variable.name for variable in self.lowered.variables]
