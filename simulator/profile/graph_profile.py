"""What the compiler found out, as the tables and arrays of the graph profile (pva.schema)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pva import schema
from pva.version import VERSION
from simulator.compiler.control_code import control_stretches
from simulator.compiler.executable import Exchange, Executable
from simulator.compiler.flows import group_borders
from simulator.graph.machine.target import Target, told_differences
from simulator.graph.types import Array, IntArray
from simulator.options import as_texts
from simulator.profile.debug_info import program_contexts
from simulator.profile.measured import Measured
from simulator.profile.optimization_info import optimization_info
from simulator.profile.provenance import provenance
from simulator.profile.written import written_tables

# The options by which blocks are recorded.
BLOCK_FILTERS = ("profiler.blocks.filter", "profiler.programs.filter")
MEASURED = [a for a in schema.ARRAYS if a.option in (schema.COMPUTE_OPTION, schema.EXCHANGE_OPTION)]
# A CPU runs values alone: it has the graph and the programs, no memory and no cycles.
CPU_HAS = {
    "report", "target", "relative_sync_delay", "physical_tile", "optimization_info", "graph",
    "vertex_types", "compute_sets", "compute_set_vertices", "programs", "program_children",
    "control_programs", "function_programs", "written_programs", "written_results", "variables",
    "access", "engine_options", "provenance", "debug_contexts", "execution", "runs",
    "other_runs",
}  # fmt: skip
Columns = dict[str, Any]


def code(table: str, column: str, text: str) -> int:
    """Return the code that stands for a text in a column of codes."""
    return schema.TABLE[table].column(column).values.index(text)


def graph_tables(
    executable: Executable, options: Mapping[str, bool | int | str]
) -> dict[str, Columns]:
    """Make the tables of the graph profile."""
    absent = not_recorded(executable, options)
    tables = _tables(executable, options)
    tables["provenance"] = provenance(
        executable.vertex_types,
        executable.graph.device_target,
        absent,
        executable.graph.unplanned,
    )
    return {name: columns for name, columns in tables.items() if name not in absent}


def not_recorded(executable: Executable, options: Mapping[str, bool | int | str]) -> set[str]:
    """Name the tables and arrays that a report of this program does not have."""
    measured = {array.name for array in MEASURED} - Measured(executable).start().keys()
    absent = measured if any(options.get(name) for name in BLOCK_FILTERS) else measured | {"blocks"}
    if options[schema.GRAPH_OPTION] and not options.get(schema.LOWERED_OPTION, True):
        absent.add("variable_pieces")
    if executable.graph.target.target_type == "CPU":
        absent |= (schema.TABLE.keys() | schema.ARRAY.keys()) - CPU_HAS
    return absent


def _tables(executable: Executable, options: Mapping[str, bool | int | str]) -> dict[str, Columns]:
    memory, liveness = executable.memory, executable.liveness
    metrics = optimization_info(executable)
    return {
        "report": _report(executable),
        "target": _target(executable),
        "io_tiles": {"tile": _io_tiles(executable)},
        "optimization_info": {"name": list(metrics), "value": list(metrics.values())},
        "graph": _graph(executable),
        "vertex_types": {
            "name": [codelet.name for codelet in executable.vertex_types],
            "size": [codelet.state_bytes for codelet in executable.vertex_types],
        },
        "compute_sets": {
            "name": list(executable.lowered.compute_sets),
            "flops": executable.costs.flops,
        },
        "compute_set_vertices": _vertices(executable),
        "programs": program_table(executable),
        "program_children": _children(executable),
        "control_code": _control_code(executable),
        "exchange_instructions": _instructions(executable),
        "exchange_flows": _flows(executable.graph.target, executable.lowered.exchanges),
        "external_exchange_flows": _flows(
            executable.graph.target, executable.lowered.global_exchanges
        ),
        "control_programs": {"program": [0]},
        "function_programs": {"program": np.array(executable.lowered.functions, np.int64)},
        **written_tables(executable.lowered),
        "memory_by_tile": dict(memory.by_tile),
        "always_live_variables": {
            "name": [name for name, _ in memory.always_live_items],
            "bytes": [size for _, size in memory.always_live_items],
        },
        "liveness": {"max_bytes": [int(liveness.bytes.max(initial=0))]},
        "liveness_steps": {
            "program": liveness.program,
            "parent": liveness.parent,
            "bytes": liveness.bytes,
        },
        "variables": _variables(executable),
        "variable_pieces": _pieces(executable),
        "variable_intervals": {
            "variable": liveness.variable,
            "begin": liveness.begin,
            "end": liveness.end,
        },
        "access": {
            "program": executable.lowered.access.program,
            "variable": executable.lowered.access.variable,
            "write": executable.lowered.access.write,
        },
        "engine_options": options_table(options),
    }


def graph_arrays(executable: Executable) -> dict[str, Array]:
    """Make the arrays of the graph profile; of a CPU's, those of its target."""
    arrays = _arrays(executable)
    if executable.graph.target.target_type == "CPU":
        return {name: values for name, values in arrays.items() if name in CPU_HAS}
    return arrays


def _arrays(executable: Executable) -> dict[str, Array]:
    target, costs, memory = executable.graph.target, executable.costs, executable.memory
    lowered = executable.lowered
    return {
        "relative_sync_delay": target.relative_sync_delay,
        "physical_tile": target.physical_tile()[: target.tiles_per_ipu],
        "compute_set_active_cycles_by_tile": costs.active_cycles,
        "compute_set_active_cycles_by_vertex_type": costs.active_by_type,
        "compute_set_cycles_by_tile": costs.cycles,
        "vertex_count_by_tile": _vertex_counts(executable),
        **_exchange_arrays("exchange", lowered.exchanges, target),
        **_exchange_arrays("external_exchange", lowered.global_exchanges, target),
        **_exchange_arrays("host_exchange", lowered.host_exchanges, target),
        "memory_by_category": memory.by_category,
        **{f"memory_by_compute_set_{part}": v for part, v in memory.by_compute_set.items()},
        **{f"memory_by_vertex_type_{part}": v for part, v in memory.by_vertex_type.items()},
        "always_live_bytes": memory.always_live,
        "not_always_live_max_bytes": executable.liveness.max_bytes_by_tile,
        "liveness_bytes_by_ipu": executable.liveness.bytes_by_ipu,
    }


def _report(executable: Executable) -> Columns:
    major, minor, point = map(int, VERSION.split("."))
    moment = datetime.fromtimestamp(executable.created, UTC)
    return {
        "version": [VERSION],
        "major": [major],
        "minor": [minor],
        "point": [point],
        "package_hash": [""],
        "created": [moment.strftime("%Y-%m-%dT%H:%M:%SZ")],
    }


def _target(executable: Executable) -> Columns:
    """Describe the machine, which has the IPUs of all replicas."""
    target = executable.graph.device_target
    row = {
        "type": code("target", "type", target.target_type),
        "architecture": target.architecture,
        "num_ipus": target.num_ipus,
        "tiles_per_ipu": target.tiles_per_ipu,
        "num_tiles": target.num_tiles,
        "bytes_per_tile": target.bytes_per_tile,
        "bytes_per_ipu": target.bytes_per_tile * target.tiles_per_ipu,
        "total_memory": target.getMemoryBytes(),
        "clock_frequency": float(target.clock_frequency),
        "min_sync_delay": target.min_sync_delay,
        "global_sync_cycles": target.sync_cycles_between_ipus,
        "num_replicas": executable.graph.replication,
        "interleaved_base": target.interleaved_base,
        "machine": target.name,
        "differences": told_differences(target),
    }
    return {name: [value] for name, value in row.items()}


def _io_tiles(executable: Executable) -> IntArray:
    """List the I/O tiles, which are the same of each IPU."""
    tiles = np.flatnonzero(executable.lowered.io_tiles)
    return tiles[tiles < executable.graph.target.tiles_per_ipu]


def _graph(executable: Executable) -> Columns:
    return {
        "num_compute_sets": [len(executable.lowered.compute_sets)],
        "num_edges": [executable.edges],
        "num_vars": [len(executable.pieces.variable)],
        "num_vertices": [sum(map(len, executable.lowered.groups))],
    }


def _vertices(executable: Executable) -> Columns:
    """Count vertices by compute set and vertex type."""
    kinds, counts = _vertex_kinds(executable), _vertex_counts(executable)
    return {
        "compute_set": kinds[:, 0],
        "vertex_type": kinds[:, 1],
        "count": counts.sum(axis=1),
    }


def _vertex_kinds(executable: Executable) -> IntArray:
    """List the pairs of compute set and vertex type that there are, in order."""
    compute_sets = [group.compute_set for group in executable.lowered.groups]
    pairs = np.stack((np.array(compute_sets, np.int64), executable.type_of_group), axis=1)
    return np.unique(pairs, axis=0)


def _vertex_counts(executable: Executable) -> IntArray:
    """Count vertices by [row of compute_set_vertices][tile]."""
    rows = {tuple(pair): row for row, pair in enumerate(_vertex_kinds(executable).tolist())}
    counts = np.zeros((len(rows), executable.graph.target.num_tiles), dtype=np.int64)
    types = executable.type_of_group.tolist()
    for group, vertex_type in zip(executable.lowered.groups, types, strict=True):
        np.add.at(counts[rows[group.compute_set, vertex_type]], group.tile, 1)
    return counts


def _control_code(executable: Executable) -> Columns:
    """Return the control code of programs; there is none without code for the IPU."""
    target = executable.graph.target
    if target.compile_ipu_code:
        return dict(control_stretches(target, executable.lowered, executable.instrumentation))
    return {column.name: [] for column in schema.TABLE["control_code"].columns}


def _flows(target: Target, exchanges: Sequence[Exchange]) -> Columns:
    """List who sends to whom in each exchange, by groups of tiles that do."""
    borders = group_borders(target)
    count = len(borders) - 1
    none = np.zeros((count, count), dtype=np.int64)
    every = [none if exchange.flows is None else exchange.flows for exchange in exchanges]
    moved = np.array(every, dtype=np.int64).reshape(-1, count, count)
    exchange, source, to = np.nonzero(moved)
    return {
        "exchange": exchange,
        "from_tile": borders[source],
        "from_end": borders[source + 1],
        "to_tile": borders[to],
        "to_end": borders[to + 1],
        "bytes": moved[exchange, source, to],
    }


def program_table(executable: Executable) -> Columns:
    """List all programs."""
    programs = executable.lowered.programs
    return {
        "type": [code("programs", "type", program.type) for program in programs],
        "name": [program.name for program in programs],
        "compute_set": [program.compute_set for program in programs],
        "exchange": [program.exchange for program in programs],
        "target": [program.target for program in programs],
        "count": [program.count for program in programs],
        "sync_type": [code("programs", "sync_type", program.sync_type) for program in programs],
        "debug_context": program_contexts(executable),
        "tile_set": [code("programs", "tile_set", program.tile_set) for program in programs],
    }


def _children(executable: Executable) -> Columns:
    children = [program.children for program in executable.lowered.programs]
    counts = np.array([len(below) for below in children], dtype=np.int64)
    flat = [child for below in children for child in below]
    return {
        "program": np.repeat(np.arange(len(children)), counts),
        "child": np.array(flat, dtype=np.int64),
    }


def _instructions(executable: Executable) -> Columns:
    """Return the code of each internal exchange by kind of instruction."""
    lowered = executable.lowered
    rows = [
        (row, *lowered.exchanges[program.exchange].instructions)
        for row, program in enumerate(lowered.programs)
        if program.type == "DoExchange"
    ]
    names = ["program", *map(schema.snake, schema.EXCHANGE_INSTRUCTIONS)]
    return {name: np.array([row[i] for row in rows], np.int64) for i, name in enumerate(names)}


def _variables(executable: Executable) -> Columns:
    """List the graph's variables and then the compiler's."""
    user_variables, compiler_variables = executable.graph.variables, executable.lowered.variables
    count, pieces = len(user_variables) + len(compiler_variables), executable.pieces
    placed = np.bincount(pieces.variable, weights=pieces.bytes, minlength=count + 1)[:count]
    full = np.array(
        [v.bytes for v in user_variables] + [int(v.bytes.sum()) for v in compiler_variables],
        dtype=np.int64,
    )
    numbers = {name: index for index, name in enumerate(schema.CATEGORIES)}
    category = [numbers["constant" if v.constant else "variable"] for v in user_variables]
    return {
        "name": executable.variable_names(),
        "type": [v.dtype.name for v in user_variables]
        + ["" if v.source < 0 else user_variables[v.source].dtype.name for v in compiler_variables],
        "shape": ["x".join(map(str, v.shape)) for v in user_variables]
        + [""] * len(compiler_variables),
        "category": category + [numbers[v.category] for v in compiler_variables],
        "bytes": np.where(placed > 0, placed.astype(np.int64), full),
        "always_live": executable.liveness.always_live,
        "lowered_from": [-1] * len(user_variables) + [v.source for v in compiler_variables],
        "debug_context": [v.debug_context for v in user_variables]
        + [
            -1 if v.source < 0 else user_variables[v.source].debug_context
            for v in compiler_variables
        ],
    }


def _pieces(executable: Executable) -> Columns:
    """List where variables lie; the fixed data of tiles is no variable."""
    pieces, allocation = executable.pieces, executable.allocation
    named = pieces.variable < len(executable.graph.variables) + len(executable.lowered.variables)
    return {
        "variable": pieces.variable[named],
        "tile": pieces.tile[named],
        "address": allocation.address[named],
        "region": allocation.region[named],
        "bytes": pieces.bytes[named],
    }


def options_table(options: Mapping[str, bool | int | str]) -> Columns:
    """Return the table of an engine's options."""
    texts = as_texts(options)
    return {"name": list(texts), "value": list(texts.values())}


def _exchange_arrays(
    table: str, exchanges: Sequence[Exchange], target: Target
) -> dict[str, IntArray]:
    none = np.zeros(target.num_tiles, dtype=np.int64)

    def stacked(rows: list[IntArray]) -> IntArray:
        return np.stack(rows) if rows else np.zeros((0, len(none)), dtype=np.int64)

    def code_of(exchange: Exchange) -> IntArray:
        return exchange.code if target.compile_ipu_code and exchange.code is not None else none

    return {
        f"{table}_bytes_received": stacked([e.received for e in exchanges]),
        f"{table}_bytes_sent": stacked([e.sent for e in exchanges]),
        f"{table}_code_bytes": stacked([code_of(e) for e in exchanges]),
        f"{table}_cycles": stacked([e.cycles for e in exchanges]),
    }
