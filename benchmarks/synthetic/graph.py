"""The compiled program of a made report: compute sets, exchanges and the tree of programs.

A program is rows in depth-first order: groups of `GROUP` leaves, behind each its row. The leaves
come in segments that begin with a sync: sync, exchange, compute; the first has a stream copy too.
"""

from __future__ import annotations

import numpy as np

from benchmarks.synthetic.size import (
    BYTES_PER_TILE,
    CLOCK,
    INTERLEAVED_BASE,
    Columns,
    Size,
    Values,
    names,
    used_tiles,
)
from pva import schema

GROUP = 21
TYPE = {tag: code for code, tag in enumerate(schema.PROGRAM_TYPES)}
FIRST_SEGMENT = ("Sync", "StreamCopy", "DoExchange", "OnTileExecute")
SEGMENT = ("Sync", "DoExchange", "OnTileExecute")
EVERY_GLOBAL = 20  # of so many segments one exchanges between IPUs
CODELETS = ("poplin::ConvPartial1x4SLIC", "popops::Reduce", "poplar_rt::LongMemcpy", "popnn::Gelu")
BODY_ROW = 3  # behind the control program, its Repeat and the body


def tables(size: Size, numbers: np.random.Generator) -> dict[str, Columns]:
    """Return the tables of the graph but for memory."""
    vertices = _vertices(size, numbers)
    count = int(np.sum(vertices["count"]))
    codelets = [
        f"{CODELETS[row % len(CODELETS)]}<half,float,{row}>" for row in range(size.vertex_types)
    ]
    sizes = 4 * numbers.integers(1, 40, size.vertex_types)
    return {
        "report": {"version": ["1.0.0"], "major": [1], "minor": [0], "point": [0],
                   "package_hash": [""], "created": ["2026-01-01T00:00:00Z"]},
        "target": _target(size),
        "optimization_info": {"name": ["exchanges.merged"], "value": [float(size.exchanges)]},
        "graph": {"num_compute_sets": [size.compute_sets], "num_edges": [3 * count],
                  "num_vars": [size.variables * size.pieces_per_variable],
                  "num_vertices": [count]},
        "vertex_types": {"name": codelets, "size": sizes},
        "compute_sets": {"name": names("Convolve", size.compute_sets),
                         "flops": numbers.integers(10**6, 10**9, size.compute_sets)},
        "compute_set_vertices": vertices,
        "engine_options": {"name": ["autoReport.all"], "value": ["true"]},
        "provenance": {"item": ["steps"], "quality": ["estimate"], "reason": ["made up"]},
        "debug_contexts": _debug_contexts(size),
        **programs(size, numbers),
    }  # fmt: skip


def _target(size: Size) -> Columns:
    return {
        "type": [schema.TARGET_TYPES.index("IPU_MODEL")], "architecture": ["ipu2"],
        "num_ipus": [size.ipus], "tiles_per_ipu": [size.tiles_per_ipu], "num_tiles": [size.tiles],
        "bytes_per_tile": [BYTES_PER_TILE],
        "bytes_per_ipu": [BYTES_PER_TILE * size.tiles_per_ipu],
        "total_memory": [BYTES_PER_TILE * size.tiles], "clock_frequency": [CLOCK],
        "min_sync_delay": [78], "num_replicas": [1], "interleaved_base": [INTERLEAVED_BASE],
    }  # fmt: skip


def _vertices(size: Size, numbers: np.random.Generator) -> Columns:
    """Assign each compute set four neighbouring vertex types."""
    compute_set = np.repeat(np.arange(size.compute_sets), 4)
    vertex_type = (compute_set + np.tile(np.arange(4), size.compute_sets)) % size.vertex_types
    counts = numbers.integers(1, 6, len(compute_set)) * size.tiles_per_ipu
    return {"compute_set": compute_set, "vertex_type": vertex_type, "count": counts}


def _debug_contexts(size: Size) -> Columns:
    ids = np.arange(1, size.debug_contexts + 1)
    return {
        "id": ids, "parent": np.where(ids > 1, ids // 8, -1).clip(-1),
        "name": names("context", size.debug_contexts), "layer": ["poplibs"] * size.debug_contexts,
        "file": ["model.py"] * size.debug_contexts, "line": ids % 900 + 1,
    }  # fmt: skip


def leaf_types(count: int) -> Values:
    """Return the types of the first leaves, as codes."""
    segments = -(-count // len(SEGMENT))
    kinds = np.tile([TYPE[tag] for tag in SEGMENT], (segments, 1))
    kinds[EVERY_GLOBAL - 1 :: EVERY_GLOBAL, 1] = TYPE["GlobalExchange"]
    first = [TYPE[tag] for tag in FIRST_SEGMENT]
    return np.concatenate((first, kinds.reshape(-1)[len(SEGMENT) :]))[:count]


def operands(types: Values, size: Size, first: int = 0) -> tuple[Values, Values]:
    """Return compute sets and exchanges of leaves, -1 for none, all in turn, from `first` on."""
    segment = np.cumsum(types == TYPE["Sync"]) - 1 + first
    compute_set = np.where(types == TYPE["OnTileExecute"], segment % size.compute_sets, -1)
    exchange = np.full(len(types), -1)
    for tag, count in (
        ("DoExchange", size.exchanges),
        ("GlobalExchange", size.external_exchanges),
        ("StreamCopy", size.host_exchanges),
    ):
        here = types == TYPE[tag]
        exchange[here] = segment[here] % count
    return compute_set, exchange


def body_leaves(size: Size) -> Values:
    """Return the rows of the programs that one pass through the body runs, in order."""
    leaf = np.arange(size.body_steps)
    return BODY_ROW + leaf + leaf // GROUP + 1


def programs(size: Size, numbers: np.random.Generator) -> dict[str, Columns]:
    """Find the tree: a control program to train, one to evaluate, and a function that it calls."""
    types = np.full(size.programs, TYPE["Sequence"])
    parent = np.full(size.programs, -1)
    types[1], parent[1:BODY_ROW] = TYPE["Repeat"], (0, 1)
    leaves = [body_leaves(size)]
    evaluate = _grow(types, parent, leaves[0], BODY_ROW - 1)
    function = size.programs - 1 - len(SEGMENT)
    call = function - 1
    rest = call - evaluate - 1
    kept = np.arange(max(rest * GROUP // (GROUP + 1), 1))
    leaves += [evaluate + 2 + kept + kept // GROUP, np.arange(function + 1, size.programs)]
    end = _grow(types, parent, leaves[1], evaluate)
    types[end:call], parent[end:call] = TYPE["WriteUndef"], evaluate
    types[call], parent[call] = TYPE["Call"], evaluate
    types[leaves[2]], parent[leaves[2]] = [TYPE[tag] for tag in SEGMENT], function
    return _program_tables(size, numbers, types, parent, leaves, (evaluate, function, call))


def _grow(types: Values, parent: Values, leaves: Values, above: int) -> int:
    """Set leaves and the groups around them; give the row behind the last."""
    groups = leaves[::GROUP] - 1
    types[leaves] = leaf_types(len(leaves))
    parent[leaves] = np.repeat(groups, GROUP)[: len(leaves)]
    parent[groups] = above
    return int(leaves[-1]) + 1


def _program_tables(
    size: Size,
    numbers: np.random.Generator,
    types: Values,
    parent: Values,
    leaves: list[Values],
    roots: tuple[int, int, int],
) -> dict[str, Columns]:
    evaluate, function, call = roots
    compute_set, exchange = (np.full(size.programs, -1) for _ in range(2))
    for number, rows in enumerate(leaves):
        compute_set[rows], exchange[rows] = operands(types[rows], size, number * 1000)
    count, target = (np.full(size.programs, -1) for _ in range(2))
    count[1], target[call] = size.iterations, 0
    sets = np.array(names("Convolve", size.compute_sets))[compute_set]
    called = np.where(compute_set >= 0, sets, names("Program", size.programs)).tolist()
    child = np.flatnonzero(parent >= 0)
    order = np.lexsort((child, parent[child]))
    exchanging = np.flatnonzero(types == TYPE["DoExchange"])
    return {
        "programs": {
            "type": types, "name": called, "compute_set": compute_set,
            "exchange": exchange, "target": target, "count": count,
            "sync_type": np.where(types == TYPE["Sync"], schema.SYNC_TYPES.index("External"), 0),
            "debug_context": np.arange(size.programs) % size.debug_contexts + 1,
        },
        "program_children": {"program": parent[child][order], "child": child[order]},
        "control_programs": {"program": [0, evaluate]},
        "function_programs": {"program": [function]},
        "exchange_instructions": _instructions(exchanging, exchange, numbers, size),
        "access": _access(np.flatnonzero(compute_set >= 0), compute_set, size),
        **_written(types, parent, compute_set, called, {"count": count, "target": target}),
    }  # fmt: skip


def _written(
    types: Values, parent: Values, compute_set: Values, called: list[str], more: Columns
) -> dict[str, Columns]:
    """Return the programs as written: what follows a sync in a group became of one Execute.

    What computes nothing became of a Copy.
    """
    leaf = np.isin(types, [TYPE[tag] for tag in (*FIRST_SEGMENT, "GlobalExchange")])
    goes_on = leaf & (types != TYPE["Sync"]) & (parent == np.append(-1, parent[:-1]))
    origin = np.cumsum(~goes_on) - 1
    first = np.flatnonzero(~goes_on)
    codes = [
        schema.WRITTEN_TYPES.index(tag if tag in schema.WRITTEN_TYPES else "Execute")
        for tag in schema.PROGRAM_TYPES
    ]
    own, last = (np.full(len(first), -1) for _ in range(2))
    np.maximum.at(own, origin, compute_set)
    np.maximum.at(last, origin, np.arange(len(types)))
    execute, copy = map(schema.WRITTEN_TYPES.index, ("Execute", "Copy"))
    leaves = np.where(own >= 0, execute, copy)
    kinds = np.where(leaf[first], leaves, np.array(codes)[types[first]])
    texts = np.where(own >= 0, np.array(called)[last], names("Program", len(first))).tolist()
    around = np.where(parent[first] >= 0, origin[parent[first]], -1)
    written = {
        "type": kinds, "parent": around, "name": texts, "compute_set": own,
        **{name: values[first] for name, values in more.items()},
    }  # fmt: skip
    return {
        "written_programs": written,
        "written_results": {"written": origin, "program": np.arange(len(types))},
    }


def _instructions(
    rows: Values, exchange: Values, numbers: np.random.Generator, size: Size
) -> Columns:
    kinds = schema.EXCHANGE_INSTRUCTIONS[:-1]
    drawn = 4 * numbers.integers(0, 2000, (size.exchanges, len(kinds)))
    columns = dict(zip(map(schema.snake, kinds), drawn[exchange[rows]].T, strict=True))
    return {"program": rows, **columns, "total": sum(columns.values())}


def _access(rows: Values, compute_set: Values, size: Size) -> Columns:
    """Let each program read two variables and write one."""
    variable = (3 * compute_set[rows][:, None] + np.arange(3)) % size.variables
    write = np.tile([False, False, True], len(rows))
    return {"program": np.repeat(rows, 3), "variable": variable.reshape(-1), "write": write}


def arrays(size: Size, numbers: np.random.Generator) -> dict[str, Values]:
    """Return the arrays of the graph but for memory."""
    used = used_tiles(numbers, size.compute_sets, size)
    base = numbers.integers(2000, 20_000, size.compute_sets)[:, None]
    cycles = np.where(used, base + numbers.integers(0, base, used.shape), 0)
    active = cycles * numbers.integers(50, 96, used.shape) // 100
    place = numbers.permutation(size.tiles_per_ipu)
    return {
        "relative_sync_delay": place % 40,
        "physical_tile": place,
        "compute_set_cycles_by_tile": cycles,
        "compute_set_active_cycles_by_tile": active,
        "compute_set_active_cycles_by_vertex_type": _by_type(active.sum(axis=1), size),
        **_exchange("exchange", size.exchanges, size, numbers),
        **_exchange("external_exchange", size.external_exchanges, size, numbers),
        **_exchange("host_exchange", size.host_exchanges, size, numbers),
    }


def _by_type(active: Values, size: Size) -> Values:
    """Share the active cycles of a compute set among its four vertex types."""
    found = np.zeros((size.compute_sets, size.vertex_types), dtype=np.int64)
    rows = np.arange(size.compute_sets)
    shares = [active // 2, active // 4, active // 8]
    shares.append(active - sum(shares))
    for way, share in enumerate(shares):
        found[rows, (rows + way) % size.vertex_types] += share
    return found


def _exchange(name: str, rows: int, size: Size, numbers: np.random.Generator) -> dict[str, Values]:
    """Let each tile send to another one, four bytes a cycle."""
    used = used_tiles(numbers, rows, size)
    sent = np.where(used, 4 * numbers.integers(20, 8000, used.shape), 0)
    received = np.roll(sent, size.tiles_per_ipu // 3 + 1, axis=1)
    cycles = np.where(sent + received > 0, 40 + (sent + received) // 4, 0)
    return {
        f"{name}_bytes_sent": sent,
        f"{name}_bytes_received": received,
        f"{name}_cycles": cycles,
    }
