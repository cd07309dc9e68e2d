"""Every table and every array of a report, declared once.

Writers, readers, frames, `docs/report-format.md` and the messages "which option records it" come from here.
Names of keys, nesting and index orders are those of the chapter "Profiling" of the Poplar and PopLibs user guide;
what that chapter leaves open is ours and additive. A new column is one line here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FORMAT_VERSION = 1

Kind = Literal["int", "float", "bool", "text", "code"]
Document = Literal["graph", "execution", "debug"]
Layout = Literal["object", "columns", "records", "map", "list"]

GRAPH_OPTION = "autoReport.outputGraphProfile"
EXECUTION_OPTION = "autoReport.outputExecutionProfile"
DEBUG_OPTION = "autoReport.outputDebugInfo"

TARGET_TYPES = ("CPU", "IPU", "IPU_MODEL")
REGIONS = ("nonInterleaved", "interleaved", "overflowed")
OVERLAPS = ("nonOverlapped", "overlapped")
CATEGORIES = (
    "constant", "controlCode", "controlId", "controlTable", "copyDescriptor", "globalExchangeCode",
    "globalExchangePacketHeader", "globalMessage", "hostExchangeCode", "hostExchangePacketHeader",
    "hostMessage", "instrumentationResults", "internalExchangeCode", "message", "multiple", "outputEdge",
    "rearrangement", "sharedCodeStorage", "sharedDataStorage", "stack", "variable",
    "vectorListDescriptor", "vertexCode", "vertexFieldData", "vertexInstanceState",
)  # fmt: skip
PROGRAM_TYPES = (
    "OnTileExecute", "DoExchange", "GlobalExchange", "StreamCopy", "CopySharedStructure", "Sync",
    "Sequence", "Repeat", "RepeatWhileTrue", "RepeatWhileFalse", "RepeatWhile", "If", "IfElse",
    "SetLocalConsensusFromVar", "Switch", "WriteUndef", "Call", "StreamCopyBegin", "StreamCopyEnd",
    "SyncAns", "Sans", "OnEveryTileSwitch",
)  # fmt: skip
STEP_TYPES = (
    "OnTileExecute", "StreamCopy", "CopySharedStructure", "Sync", "DoExchange", "GlobalExchange",
    "StreamCopyBegin", "StreamCopyEnd", "SyncAns", "Sans",
)  # fmt: skip
SYNC_TYPES = ("None", "Internal", "External")
PROFILER_MODES = (
    "NONE", "CPU", "IPU_MODEL", "COMPUTE_SETS", "SINGLE_TILE_COMPUTE_SETS", "VERTICES",
    "EXTERNAL_EXCHANGES", "HOST_EXCHANGES",
)  # fmt: skip
EXCHANGE_INSTRUCTIONS = (
    "delay", "exchange", "other", "receiveAddress", "receiveFormat", "receiveMux", "send",
    "sendWithPutAddress", "sendWithPutFormat", "sendWithPutMux", "total",
)  # fmt: skip
VERTEX_MEMORY_PARTS = (
    ("code", "codeBytes", "code; shared between compute sets, so that rows cannot be added"),
    ("copy_pointers", "copyPtrBytes", "pointers of copy vertices"),
    ("descriptors", "descriptorBytes", "descriptors of vector lists and copies"),
    ("edge_pointers", "edgePtrBytes", "pointers to edges"),
    ("padding", "paddingBytes", "padding between vertices"),
    ("vertex_data", "vertexDataBytes", "members of the vertices that are not pointers"),
    ("total", "totalBytes", "all parts; contains code, so that rows cannot be added"),
)

# What a column holds where the document has no such key.
MISSING: dict[str, object] = {
    "int": -1,
    "code": 0,
    "float": float("nan"),
    "bool": False,
    "text": "",
}


def camel(name: str) -> str:
    """Turn `num_tiles` into `numTiles`."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def snake(key: str) -> str:
    """Turn `receiveMux` into `receive_mux`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name in dataset, frames and SQL, and its key (a dotted path) in the documents."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    key: str = ""
    optional: bool = False
    values: tuple[str, ...] = ()

    @property
    def document_key(self) -> str:
        """Give the key in the documents."""
        return self.key or camel(self.name)


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `wide`: its length depends on tiles, steps or events, so profile.pop keeps it as arrays.

    Layouts at `place`: `object` one row, keys are columns; `columns` one list a column; `records` a list of objects;
    `map` name to value; `list` a plain list of the only column. Readers take `columns` and `records` alike.
    """

    name: str
    document: Document
    place: str
    layout: Layout
    columns: tuple[Column, ...]
    meaning: str
    option: str = GRAPH_OPTION
    wide: bool = False

    def column(self, name: str) -> Column:
        """Find a column by name; raises KeyError."""
        return {column.name: column for column in self.columns}[name]


@dataclass(frozen=True, slots=True)
class Array:
    """One array, index order outermost first, as in the user guide: [compute set][tile]."""

    name: str
    document: Document
    place: str
    index: tuple[str, ...]
    unit: str
    meaning: str
    option: str = GRAPH_OPTION
    kind: Kind = "int"


def _int(name: str, unit: str, meaning: str, key: str = "", *, optional: bool = False) -> Column:
    return Column(name, "int", unit, meaning, key, optional)


def _float(name: str, unit: str, meaning: str, key: str = "", *, optional: bool = False) -> Column:
    return Column(name, "float", unit, meaning, key, optional)


def _text(name: str, meaning: str, key: str = "", *, optional: bool = False) -> Column:
    return Column(name, "text", "", meaning, key, optional)


def _code(name: str, values: tuple[str, ...], meaning: str, *, optional: bool = False) -> Column:
    return Column(name, "code", "", meaning, "", optional, values)


_BALANCES = (
    _float("tile_balance", "fraction", "cycles of all tiles / (cycles * tiles)"),
    _float("active_tile_balance", "fraction", "the same over the active tiles alone"),
)

TABLES: tuple[Table, ...] = (
    Table("report", "graph", "", "object", (
        _text("version", "version of the toolkit that wrote the report", "version.string"),
        _int("major", "", "its first number", "version.major"),
        _int("minor", "", "its second number", "version.minor"),
        _int("point", "", "its third number", "version.point"),
        _text("package_hash", "source revision, when known", "version.packageHash"),
        _text("created", "time at which compilation began, ISO 8601, UTC"),
    ), "who wrote the report, and when"),
    Table("target", "graph", "target", "object", (
        _code("type", TARGET_TYPES, "kind of target"),
        _text("architecture", "ipu1, ipu2 or tiny"),
        _int("num_ipus", "", "IPUs in the system", "numIPUs"),
        _int("tiles_per_ipu", "", "tiles on each IPU", "tilesPerIPU"),
        _int("num_tiles", "", "all tiles"),
        _int("bytes_per_tile", "bytes", "memory of a tile"),
        _int("bytes_per_ipu", "bytes", "memory of an IPU", "bytesPerIPU"),
        _int("total_memory", "bytes", "memory of all tiles"),
        _float("clock_frequency", "Hz", "tile clock"),
        _int("min_sync_delay", "cycles", "least sync delay of any tile"),
        _int("num_replicas", "", "replicas of the graph"),
        _int("interleaved_base", "bytes", "first address of the interleaved region of a tile"),
    ), "the machine that the program was compiled for"),
    Table("optimization_info", "graph", "optimizationInfo", "map", (
        _text("name", "metric of the compilation"), _float("value", "", "its value"),
    ), "figures of the compiler about its own work"),
    Table("graph", "graph", "graph", "object", (
        _int("num_compute_sets", "", "compute sets, the compiler's included"),
        _int("num_edges", "", "edges between vertices and variables"),
        _int("num_vars", "", "lowered variables: contiguous pieces on one tile"),
        _int("num_vertices", "", "vertices, the compiler's included"),
    ), "how large the graph is"),
    Table("vertex_types", "graph", "vertexTypes", "columns", (
        _text("name", "codelet with its template arguments", "names"),
        _int("size", "bytes", "state of one vertex", "sizes"),
    ), "the vertex types that are in use"),
    Table("compute_sets", "graph", "computeSets", "columns", (
        _text("name", "debug name, not always unique", "names"),
        _int("flops", "", "floating-point operations of one execution", optional=True),
    ), "compute sets, the compiler's included"),
    Table("compute_set_vertices", "graph", "computeSets.vertices", "columns", (
        _int("compute_set", "", "row of compute_sets"), _int("vertex_type", "", "row of vertex_types"),
        _int("count", "", "vertices of this type in this compute set"),
    ), "vertices by compute set and type; in the documents the chapter's vertexCounts and vertexTypes"),
    Table("programs", "graph", "programs", "records", (
        _code("type", PROGRAM_TYPES, "program type tag"),
        _text("name", "debug name", optional=True),
        _int("compute_set", "", "row of compute_sets", optional=True),
        _int("exchange", "", "row of the exchange list of its type", optional=True),
        _int("target", "", "function called: an index into function_programs", optional=True),
        _int("count", "", "times that a Repeat runs its body", optional=True),
        Column("sync_type", "code", "", "External or Internal", optional=True, values=SYNC_TYPES),
        _int("debug_context", "", "id in debug_contexts", optional=True),
    ), "all programs, flat"),
    Table("program_children", "graph", "programs.children", "columns", (
        _int("program", "", "row of programs"), _int("child", "", "row of programs"),
    ), "the tree: children in order; in the documents programs[].children"),
    Table("exchange_instructions", "graph", "programs.memoryByInstruction", "columns", (
        _int("program", "", "row of programs"),
        *(_int(snake(key), "bytes", f"{key} instructions", key) for key in EXCHANGE_INSTRUCTIONS),
    ), "exchange code by kind of instruction; in the documents programs[].memoryByInstruction"),
    Table("control_programs", "graph", "controlPrograms", "list", (
        _int("program", "", "row of programs"),
    ), "programs that the user gave"),
    Table("function_programs", "graph", "functionPrograms", "list", (
        _int("program", "", "row of programs"),
    ), "programs made by the compiler to share code"),
    Table("memory_by_tile", "graph", "memory.byTile", "columns", (
        _int("interleaved", "bytes", "data in the interleaved region"),
        _int("interleaved_including_gaps", "bytes", "the same with its gaps"),
        _int("non_interleaved", "bytes", "data in the non-interleaved region"),
        _int("non_interleaved_including_gaps", "bytes", "the same with its gaps"),
        _int("overflowed", "bytes", "data that does not fit"),
        _int("overflowed_including_gaps", "bytes", "the same with its gaps"),
        _int("total", "bytes", "data of all regions, without gaps"),
        _int("total_including_gaps", "bytes", "what the tile needs"),
    ), "memory of each tile", wide=True),
    Table("always_live_variables", "graph", "memory.liveness.alwaysLive.variables", "records", (
        _text("name", "variable, or category of data that is always live"),
        _int("bytes", "bytes", "on all tiles"),
    ), "what is never dead"),
    Table("liveness", "graph", "memory.liveness.notAlwaysLive", "object", (
        _int("max_bytes", "bytes", "most that is live at a step beside the always-live"),
    ), "the peak of liveness"),
    Table("liveness_steps", "graph", "memory.liveness.notAlwaysLive.steps", "records", (
        _int("program", "", "row of programs"), _int("parent", "", "liveness step around it, -1 for the outermost"),
        _int("bytes", "bytes", "live beside the always-live, on all tiles"),
    ), "program steps in depth-first order", wide=True),
    Table("variables", "graph", "variables", "columns", (
        _text("name", "debug name"),
        _text("type", "element type"),
        _text("shape", "as in 16x64"),
        Column("category", "code", "", "what the memory is used for", values=CATEGORIES),
        _int("bytes", "bytes", "on all tiles"),
        Column("always_live", "bool", "", "never dead"),
        _int("lowered_from", "", "variable that it is a copy or part of", optional=True),
        _int("debug_context", "", "id in debug_contexts", optional=True),
    ), "variables, the compiler's included"),
    Table("variable_pieces", "graph", "variables.pieces", "columns", (
        _int("variable", "", "row of variables"), _int("tile", "", "tile"),
        _int("address", "bytes", "first byte in the tile's memory, from 0"),
        Column("region", "code", "", "region of memory", values=REGIONS), _int("bytes", "bytes", "length"),
    ), "where each variable lies: contiguous pieces", wide=True),
    Table("variable_intervals", "graph", "variables.intervals", "columns", (
        _int("variable", "", "row of variables"),
        _int("begin", "liveness step", "first step at which it is live"),
        _int("end", "liveness step", "first step at which it is not"),
    ), "when each not-always-live variable is live: half-open intervals", wide=True),
    Table("access", "graph", "access", "columns", (
        _int("program", "", "row of programs"), _int("variable", "", "row of variables"),
        Column("write", "bool", "", "written; otherwise read"),
    ), "the computation graph: which program reads and writes which variable"),
    Table("engine_options", "graph", "engineOptions", "map", (
        _text("name", "option"), _text("value", "its value"),
    ), "options given to the engine, with the defaults"),
    Table("provenance", "graph", "provenance", "records", (
        _text("item", "table or array"), _text("quality", "exact, estimate or measured"),
        _text("reason", "why"),
    ), "how far each figure can be trusted"),
    Table("debug_contexts", "debug", "contexts", "records", (
        _int("id", "", "id"), _int("parent", "", "id of the context around it", "parentId", optional=True),
        _text("name", "debug name"), _text("layer", "software layer"),
        _text("file", "source file", "location.fileName", optional=True),
        _text("function", "function", "location.functionName", optional=True),
        _int("line", "", "line", "location.lineNumber", optional=True),
        _text("json", "further keys of the layer, as a JSON object", optional=True),
    ), "where things come from, by software layer", DEBUG_OPTION),
    Table("execution", "execution", "", "object", (
        _code("profiler_mode", PROFILER_MODES, "how cycles were found"),
        _int("cycles", "cycles", "from the first to the last cycle of all recorded runs", "simulation.cycles"),
    ), "the execution as a whole", EXECUTION_OPTION),
    Table("tile_cycles", "execution", "simulation.tileCycles", "object", (
        _int("active_compute", "tile cycles", "compute, idle threads excluded"),
        _int("compute", "tile cycles", "compute, idle threads included"),
        _int("copy_shared_structure", "tile cycles", "copies of shared structures"),
        _int("do_exchange", "tile cycles", "internal exchange"),
        _int("global_exchange", "tile cycles", "exchange between IPUs"),
        _int("stream_copy", "tile cycles", "exchange with the host"),
        _int("sync", "tile cycles", "waiting for and in syncs"),
        _int("idle_at_end", "tile cycles", "from a tile's last step to the end of the run"),
    ), "cycles by activity, tiles counted one by one", EXECUTION_OPTION),
    Table("runs", "execution", "runs", "records", (
        _text("name", "name of the run"),
        _int("program", "", "control program that was run: 0, 1, ..."),
        _int("first_step", "", "row of steps of its first step"),
        _int("end_step", "", "row after its last step; equal to first_step when the run was not recorded in full"),
        _int("cycles_from", "cycles", "clock at its begin"),
        _int("cycles", "cycles", "how long it took on the device"),
        _float("start_microseconds", "µs", "begin on the host, since the epoch", "microseconds.start"),
        _float("end_microseconds", "µs", "end on the host, since the epoch", "microseconds.end"),
        _int("trace_begin", "ns", "begin on the clock of the host trace, -1 without a trace", optional=True),
        _int("trace_end", "ns", "end on the clock of the host trace, -1 without a trace", optional=True),
    ), "calls of Engine.run", EXECUTION_OPTION),
    Table("steps", "execution", "simulation.steps", "records", (
        _code("type", STEP_TYPES, "what was done"),
        Column("sync_type", "code", "", "kind of sync", optional=True, values=SYNC_TYPES),
        _int("program", "", "row of programs"),
        _int("run", "", "row of runs"),
        _int("cycles", "cycles", "of the longest running tile", optional=True),
        _int("cycles_from", "cycles", "latest clock of any tile before the step", optional=True),
        _int("cycles_to", "cycles", "latest clock of any tile after the step", optional=True),
        _int("cycles_overlapped", "cycles", "of `cycles`, hidden behind earlier steps", optional=True),
        _int("active_tiles", "", "tiles that did something", optional=True),
        _float("tile_balance", "fraction", _BALANCES[0].meaning, optional=True),
        _float("active_tile_balance", "fraction", _BALANCES[1].meaning, optional=True),
        _float("thread_balance", "fraction", "how well the threads of the tiles were used", optional=True),
        _int("total_data", "bytes", "half of what all tiles sent and received", optional=True),
        _float("data_balance", "fraction", "mean / most of the bytes sent and received by a tile", optional=True),
    ), "executed steps of the runs that were recorded in full", EXECUTION_OPTION, wide=True),
    Table("steps_by_ipu", "execution", "simulation.stepsByIpu", "columns", (
        _int("step", "", "row of steps"), _int("ipu", "", "IPU"),
        _int("cycles", "cycles", "of the longest running tile of the IPU"),
        _int("from_min", "cycles", "earliest begin on an active tile"),
        _int("from_max", "cycles", "latest begin on an active tile"),
        _int("to_min", "cycles", "earliest end on an active tile"),
        _int("to_max", "cycles", "latest end on an active tile"),
        *_BALANCES,
        _int("bytes_in", "bytes", "received by the tiles of the IPU"),
        _int("bytes_out", "bytes", "sent by the tiles of the IPU"),
    ), "the same steps on each IPU", EXECUTION_OPTION, wide=True),
)  # fmt: skip


def _exchange_arrays(table: str, place: str, cycles_key: str, what: str) -> tuple[Array, ...]:
    index = (table, "tile")
    return (
        Array(f"{table}_bytes_received", "graph", f"{place}.bytesReceivedByTile", index, "bytes", f"received in {what}"),
        Array(f"{table}_bytes_sent", "graph", f"{place}.bytesSentByTile", index, "bytes", f"sent in {what}"),
        Array(f"{table}_cycles", "graph", f"{place}.{cycles_key}", index, "cycles", f"time of {what}"),
    )  # fmt: skip


def _vertex_memory(owner: str, place: str) -> tuple[Array, ...]:
    return tuple(
        Array(f"memory_by_{owner}_{part}", "graph", f"memory.{place}.{key}", (owner, "tile"), "bytes", meaning)
        for part, key, meaning in VERTEX_MEMORY_PARTS
    )  # fmt: skip


ARRAYS: tuple[Array, ...] = (
    Array("relative_sync_delay", "graph", "target.relativeSyncDelayByTile", ("tile_of_ipu",), "cycles",
          "sync delay of a tile above min_sync_delay, the same on each IPU"),
    Array("physical_tile", "graph", "target.physicalTile", ("tile_of_ipu",), "", "place of a tile in hardware order"),
    Array("compute_set_active_cycles_by_tile", "graph", "computeSets.cycleEstimates.activeCyclesByTile",
          ("compute_set", "tile"), "cycles", "cycles in which a vertex was being run"),
    Array("compute_set_active_cycles_by_vertex_type", "graph",
          "computeSets.cycleEstimates.activeCyclesByVertexType", ("compute_set", "vertex_type"), "cycles",
          "the same by vertex type, over all tiles"),
    Array("compute_set_cycles_by_tile", "graph", "computeSets.cycleEstimates.cyclesByTile",
          ("compute_set", "tile"), "cycles", "time on the tile, idle threads included"),
    *_exchange_arrays("exchange", "exchanges", "cyclesByTile", "an internal exchange"),
    *_exchange_arrays("external_exchange", "externalExchanges", "estimatedCyclesByTile", "an exchange between IPUs"),
    *_exchange_arrays("host_exchange", "hostExchanges", "estimatedCyclesByTile", "an exchange with the host"),
    Array("memory_by_category", "graph", "memory.byCategory", ("category", "region", "overlap", "tile"), "bytes",
          "memory by use, region, and whether it shares its place with something that is not live at the same time"),
    *_vertex_memory("compute_set", "byComputeSet"),
    *_vertex_memory("vertex_type", "byVertexType"),
    Array("always_live_bytes", "graph", "memory.liveness.alwaysLive.bytesByTile", ("tile",), "bytes", "never dead"),
    Array("not_always_live_max_bytes", "graph", "memory.liveness.notAlwaysLive.maxBytesByTile", ("tile",), "bytes",
          "most that is live at a step beside the always-live"),
    Array("liveness_bytes_by_ipu", "graph", "memory.liveness.notAlwaysLive.bytesByIpu", ("liveness_step", "ipu"),
          "bytes", "live beside the always-live; in the documents steps[].bytesByIpu"),
    Array("tile_clock", "execution", "simulation.tileClock", ("snapshot", "tile"), "cycles",
          "clock of each tile before steps 0, 1024, 2048, ...", EXECUTION_OPTION),
)  # fmt: skip

# Every so many steps the clock of each tile is kept, so that any window is replayed from the nearest one.
CLOCK_INTERVAL = 1024

TABLE = {table.name: table for table in TABLES}
ARRAY = {array.name: array for array in ARRAYS}

# How long each index of an array is: the table whose rows it counts, or a fixed list.
DIMENSIONS: dict[str, str | int] = {
    "compute_set": "compute_sets",
    "vertex_type": "vertex_types",
    "liveness_step": "liveness_steps",
    "category": len(CATEGORIES),
    "region": len(REGIONS),
    "overlap": len(OVERLAPS),
}
