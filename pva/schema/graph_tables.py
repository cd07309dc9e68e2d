"""The tables of the graph profile, and that of the debug information."""

from __future__ import annotations

from pva.schema.declaration import (
    ANY,
    COUNT,
    DEBUG_OPTION,
    LOWERED_OPTION,
    MEMORY,
    SIZES,
    TILES,
    Column,
    Range,
    Table,
    code,
    fraction,
    snake,
    text,
    whole,
)
from pva.schema.enums import (
    CATEGORIES,
    EXCHANGE_INSTRUCTIONS,
    PROGRAM_TYPES,
    REGIONS,
    SYNC_TYPES,
    TARGET_TYPES,
    TILE_SETS,
    WRITTEN_TYPES,
)


def _flows(table: str, place: str, exchanges: str) -> Table:
    return Table(f"{table}_flows", "graph", f"{place}.flows", "columns", (
        whole("exchange", "", f"row among the {exchanges}"),
        whole("from_tile", "", "first tile of a group that sends", within=TILES),
        whole("from_end", "", "tile after the last of it", within=TILES),
        whole("to_tile", "", "first tile of a group that receives", within=TILES),
        whole("to_end", "", "tile after the last of it", within=TILES),
        whole("bytes", "bytes", "received by the one group from the other; sent to several tiles, it counts for each"),
    ), f"who sends how much to whom in one of the {exchanges}, by groups of neighbouring tiles of an IPU", wide=True)  # fmt: skip


GRAPH_TABLES: tuple[Table, ...] = (
    Table("report", "graph", "", "object", (
        text("version", "version of the toolkit that wrote the report", "version.string"),
        whole("major", "", "its first number", "version.major"),
        whole("minor", "", "its second number", "version.minor"),
        whole("point", "", "its third number", "version.point"),
        text("package_hash", "source revision, when known", "version.packageHash"),
        text("created", "time at which compilation began, ISO 8601, UTC"),
    ), "who wrote the report, and when"),
    Table("target", "graph", "target", "object", (
        code("type", TARGET_TYPES, "kind of target"),
        text("architecture", "ipu1, ipu2 or tiny"),
        whole("num_ipus", "", "IPUs of all replicas", "numIPUs", within=COUNT),
        whole("tiles_per_ipu", "", "tiles on each IPU", "tilesPerIPU", within=COUNT),
        whole("num_tiles", "", "tiles of all replicas", within=COUNT),
        whole("bytes_per_tile", "bytes", "memory of a tile", within=MEMORY),
        whole("bytes_per_ipu", "bytes", "memory of an IPU", "bytesPerIPU"),
        whole("total_memory", "bytes", "memory of all tiles"),
        fraction("clock_frequency", "Hz", "tile clock"),
        whole("min_sync_delay", "cycles", "least sync delay of any tile"),
        whole("global_sync_cycles", "cycles", "what a sync of all IPUs takes beyond one of the tiles of an IPU", optional=True),
        whole("num_replicas", "", "replicas of the graph; all that is held by tile or IPU is of one", within=COUNT),
        whole("interleaved_base", "bytes", "first address of the interleaved region of a tile"),
        text("machine", "name of the machine: a part's, or that of a user's file", optional=True),
        text("differences", "constants of the machine that are not those of the part that it is like", optional=True),
    ), "the machine that the program was compiled for"),
    Table("io_tiles", "graph", "target.ioTiles", "list", (
        whole("tile", "", "tile of each IPU", within=TILES),
    ), "I/O tiles of each IPU: they only exchange"),
    Table("optimization_info", "graph", "optimizationInfo", "map", (
        text("name", "metric of the compilation"), fraction("value", "", "its value"),
    ), "figures of the compiler about its own work"),
    Table("graph", "graph", "graph", "object", (
        whole("num_compute_sets", "", "compute sets, the compiler's included"),
        whole("num_edges", "", "edges between vertices and variables"),
        whole("num_vars", "", "lowered variables: contiguous pieces on one tile"),
        whole("num_vertices", "", "vertices, the compiler's included"),
    ), "how large the graph is"),
    Table("vertex_types", "graph", "vertexTypes", "columns", (
        text("name", "codelet with its template arguments", "names"),
        whole("size", "bytes", "state of one vertex", "sizes"),
    ), "the vertex types that are in use"),
    Table("compute_sets", "graph", "computeSets", "columns", (
        text("name", "debug name, not always unique", "names"),
        whole("flops", "", "floating-point operations of one execution", optional=True, within=SIZES),
    ), "compute sets, the compiler's included"),
    Table("compute_set_vertices", "graph", "computeSets.vertices", "columns", (
        whole("compute_set", "", "row of compute_sets"), whole("vertex_type", "", "row of vertex_types"),
        whole("count", "", "vertices of this type in this compute set", within=SIZES),
    ), "vertices by compute set and type; in the documents the chapter's vertexCounts and vertexTypes"),
    Table("programs", "graph", "programs", "records", (
        code("type", PROGRAM_TYPES, "program type tag"),
        text("name", "debug name", optional=True),
        whole("compute_set", "", "row of compute_sets", optional=True),
        whole("exchange", "", "row of the exchange list of its type", optional=True),
        whole("target", "", "function called: an index into function_programs", optional=True, within=Range(rows="function_programs")),
        whole("count", "", "times that a Repeat runs its body", optional=True),
        Column("sync_type", "code", "", "External or Internal", optional=True, values=SYNC_TYPES),
        whole("debug_context", "", "id in debug_contexts", optional=True, within=ANY),
        Column("tile_set", "code", "", "tiles that take part: all, those that compute, or the I/O tiles, which only exchange", optional=True, values=TILE_SETS),
    ), "all programs, flat"),
    Table("program_children", "graph", "programs.children", "columns", (
        whole("program", "", "row of programs"), whole("child", "", "row of programs"),
    ), "the tree: children in order; in the documents programs[].children"),
    Table("control_code", "graph", "controlCode", "columns", (
        whole("program", "", "row of programs"),
        whole("tile", "", "first tile", within=TILES), whole("end_tile", "", "tile after the last", within=TILES),
        whole("bytes", "bytes", "control code of the program on each of the tiles, without its children's"),
    ), "control code by program: stretches of tiles with as much; elsewhere there is none", wide=True),
    Table("exchange_instructions", "graph", "programs.memoryByInstruction", "columns", (
        whole("program", "", "row of programs"),
        *(whole(snake(key), "bytes", f"{key} instructions", key) for key in EXCHANGE_INSTRUCTIONS),
    ), "exchange code by kind of instruction; in the documents programs[].memoryByInstruction"),
    _flows("exchange", "exchanges", "internal exchanges"),
    _flows("external_exchange", "externalExchanges", "exchanges between IPUs"),
    Table("control_programs", "graph", "controlPrograms", "list", (
        whole("program", "", "row of programs"),
    ), "programs that the user gave"),
    Table("function_programs", "graph", "functionPrograms", "list", (
        whole("program", "", "row of programs"),
    ), "programs made by the compiler to share code"),
    Table("written_programs", "graph", "writtenPrograms", "columns", (
        code("type", WRITTEN_TYPES, "class of the program"),
        whole("parent", "", "row of the program around it, -1 for the outermost", optional=True, within=Range(rows="written_programs")),
        text("role", "which branch of that it is: condition, body, true, false, case 3, default", optional=True),
        text("name", "debug name", optional=True),
        whole("compute_set", "", "row of compute_sets", optional=True),
        whole("target", "", "function called: an index into function_programs", optional=True, within=Range(rows="function_programs")),
        whole("count", "", "times that a Repeat runs its body", optional=True),
        text("source", "what it reads: variables, or a stream or remote buffer by its handle", optional=True),
        text("destination", "what it writes, told likewise", optional=True),
        whole("bytes", "bytes", "what a copy moves", optional=True),
    ), "the stage before compilation: programs as they were given to the engine, functions last; "
       "in order, depth first"),
    Table("written_results", "graph", "writtenPrograms.results", "columns", (
        whole("written", "", "row of written_programs"), whole("program", "", "row of programs"),
    ), "which programs each of them was compiled to, without its parts'; no row for what the compiler adds"),
    Table("memory_by_tile", "graph", "memory.byTile", "columns", (
        whole("interleaved", "bytes", "data in the interleaved region"),
        whole("interleaved_including_gaps", "bytes", "the same with its gaps"),
        whole("non_interleaved", "bytes", "data in the non-interleaved region"),
        whole("non_interleaved_including_gaps", "bytes", "the same with its gaps"),
        whole("overflowed", "bytes", "data that does not fit"),
        whole("overflowed_including_gaps", "bytes", "the same with its gaps"),
        whole("total", "bytes", "data of all regions, without gaps"),
        whole("total_including_gaps", "bytes", "what the tile needs"),
    ), "memory of each tile", wide=True),
    Table("always_live_variables", "graph", "memory.liveness.alwaysLive.variables", "records", (
        text("name", "variable, or category of data that is always live"),
        whole("bytes", "bytes", "on all tiles"),
    ), "what is always live"),
    Table("liveness", "graph", "memory.liveness.notAlwaysLive", "object", (
        whole("max_bytes", "bytes", "most that is live at a step beside the always-live"),
    ), "the peak of liveness"),
    Table("liveness_steps", "graph", "memory.liveness.notAlwaysLive.steps", "records", (
        whole("program", "", "row of programs"), whole("parent", "", "liveness step around it, -1 for the outermost", within=Range(rows="liveness_steps")),
        whole("bytes", "bytes", "live beside the always-live, on all tiles"),
    ), "program steps in depth-first order", wide=True),
    Table("variables", "graph", "variables", "columns", (
        text("name", "debug name"),
        text("type", "element type"),
        text("shape", "as in 16x64"),
        Column("category", "code", "", "what the memory is used for", values=CATEGORIES),
        whole("bytes", "bytes", "on all tiles"),
        Column("always_live", "bool", "", "live at every step"),
        whole("lowered_from", "", "variable that it is a copy or part of", optional=True, within=Range(rows="variables")),
        whole("debug_context", "", "id in debug_contexts", optional=True, within=ANY),
    ), "variables, the compiler's included"),
    Table("variable_pieces", "graph", "variables.pieces", "columns", (
        whole("variable", "", "row of variables"), whole("tile", "", "tile", within=Range(axis="tile")),
        whole("address", "bytes", "first byte in the tile's memory, from 0"),
        Column("region", "code", "", "region of memory", values=REGIONS), whole("bytes", "bytes", "length"),
    ), "where each variable lies: contiguous pieces", LOWERED_OPTION, wide=True),
    Table("variable_intervals", "graph", "variables.intervals", "columns", (
        whole("variable", "", "row of variables"),
        whole("begin", "liveness step", "first step at which it is live", within=Range(0, rows="liveness_steps", end=True)),
        whole("end", "liveness step", "first step at which it is not", within=Range(0, rows="liveness_steps", end=True)),
    ), "when each not-always-live variable is live: half-open intervals", wide=True),
    Table("access", "graph", "access", "columns", (
        whole("program", "", "row of programs"), whole("variable", "", "row of variables"),
        Column("write", "bool", "", "written; otherwise read"),
    ), "the computation graph: which program reads and writes which variable"),
    Table("engine_options", "graph", "engineOptions", "map", (
        text("name", "option"), text("value", "its value"),
    ), "options given to the engine, with the defaults"),
    Table("provenance", "graph", "provenance", "records", (
        text("item", "table or array"), text("quality", "exact, estimate or measured"),
        text("reason", "why"),
    ), "how far each figure can be trusted"),
    Table("debug_contexts", "debug", "contexts", "records", (
        whole("id", "", "id", within=ANY), whole("parent", "", "id of the context around it", "parentId", optional=True, within=ANY),
        text("name", "debug name"), text("layer", "software layer"),
        text("file", "source file", "location.fileName", optional=True),
        text("function", "function", "location.functionName", optional=True),
        whole("line", "", "line", "location.lineNumber", optional=True),
        text("json", "further keys of the layer, as a JSON object", optional=True),
    ), "where things come from, by software layer", DEBUG_OPTION),
)  # fmt: skip
