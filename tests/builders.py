"""Tiny reports in one expression, for the tests of every layer.

`small_report()` is two IPUs of five tiles that ran a program of five operations twice: copy in,
multiply, add, reduce, copy out. Every table and array is filled; sizes and durations are set by
hand, clocks and sums follow from them here, by other means than in the code under test.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.data.dataset import Dataset
from pvti.schema import create_statements, insert_statement

Values = npt.NDArray[Any]
Columns = dict[str, Any]
Row = dict[str, Any]

IPUS, TILES_PER_IPU, TILES = 2, 5, 10
BYTES_PER_TILE, INTERLEAVED_BASE = 2048, 1024
CODE_END = 512  # where code, stack and vertex state end on each tile
RUNS = 2
TILE = np.arange(TILES)
HEADS = (TILE == 0) | (TILE == 5)
EVEN = TILE % 2 == 0

# program: (type, name, more columns)
PROGRAMS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Sequence", "", {}),
    ("Sync", "", {"sync_type": "External"}),
    ("StreamCopy", "x/StreamCopy", {"exchange": 0, "debug_context": 2}),
    ("Repeat", "", {"count": 2}),
    ("Sequence", "", {}),
    ("DoExchange", "multiply/ExchangePre", {"exchange": 0, "debug_context": 3}),
    ("OnTileExecute", "multiply", {"compute_set": 0, "debug_context": 3}),
    ("Call", "", {"target": 0}),
    ("GlobalExchange", "reduce/GlobalPre/GlobalExchange", {"exchange": 0, "debug_context": 5}),
    ("OnTileExecute", "reduce", {"compute_set": 1, "debug_context": 5}),
    ("StreamCopy", "y/StreamCopy", {"exchange": 1, "debug_context": 6}),
    ("Sequence", "", {}),
    ("OnTileExecute", "add", {"compute_set": 2, "debug_context": 4}),
    ("Sync", "", {"sync_type": "Internal"}),
)
CHILDREN = {0: (1, 2, 3, 13, 8, 9, 10), 3: (4,), 4: (5, 6, 7), 11: (12,)}
FUNCTION = 11
TRACE = (1, 2, 5, 6, 12, 5, 6, 12, 13, 8, 9, 10)  # the programs of one run, worked out by hand
LIVENESS = (  # (program, liveness step around it), depth first, through the call
    (0, -1), (1, 0), (2, 0), (3, 0), (4, 3), (5, 4), (6, 4), (7, 4), (11, 7), (12, 8), (13, 0),
    (8, 0), (9, 0), (10, 0),
)  # fmt: skip

# The programs as written: (type, name, around, programs it became, more columns)
WRITTEN: tuple[tuple[str, str, int, tuple[int, ...], dict[str, Any]], ...] = (
    ("Sequence", "", -1, (0,), {}),
    ("Copy", "", 0, (1, 2), {"source": "stream x", "destination": "x", "bytes": 80}),
    ("Repeat", "", 0, (3,), {"count": 2}),
    ("Sequence", "", 2, (4,), {}),
    ("Execute", "multiply", 3, (5, 6), {"compute_set": 0}),
    ("Call", "", 3, (7,), {"target": 0}),
    ("Execute", "reduce", 0, (13, 8, 9), {"compute_set": 1}),
    ("Copy", "y/StreamCopy", 0, (10,), {"source": "y", "destination": "stream y", "bytes": 4}),
    ("Sequence", "", -1, (11,), {}),
    ("Execute", "add", 8, (12,), {"compute_set": 2}),
)

# variable: (name, type, shape, category, always live, tiles, address, bytes on each, region)
VARIABLES: tuple[tuple[str, str, str, str, bool, tuple[int, ...], int, int, str], ...] = (
    ("x", "float", "4x5", "variable", False, tuple(range(10)), 520, 8, "nonInterleaved"),
    ("w", "float", "4x5", "variable", True, tuple(range(10)), 512, 8, "nonInterleaved"),
    ("product", "float", "4x5", "variable", False, tuple(range(10)), 528, 8, "nonInterleaved"),
    ("message", "float", "10", "message", False, tuple(range(10)), 536, 4, "nonInterleaved"),
    ("partials", "float", "2x4", "rearrangement", False, (0, 5), 1024, 16, "interleaved"),
    ("y", "float", "", "variable", False, (0,), 536, 4, "nonInterleaved"),
    ("step", "float", "", "constant", True, (0,), 544, 4, "nonInterleaved"),
)  # fmt: skip
INTERVALS = ((0, 2, 10), (2, 6, 12), (3, 5, 7), (4, 11, 13), (5, 12, 14))
ACCESS = ((2, 0, True), (5, 0, False), (5, 3, True), (6, 0, False), (6, 1, False), (6, 3, False),
          (6, 2, True), (12, 2, True), (12, 6, False), (8, 2, False), (8, 4, True), (9, 4, False),
          (9, 5, True), (10, 5, False))  # fmt: skip

# bytes of each tile that belong to no variable, all always live, in addresses 0 to CODE_END
CODE = {
    "controlCode": 64 + 8 * (TILE == 0),
    "internalExchangeCode": np.full(TILES, 40),
    "hostExchangeCode": np.full(TILES, 24),
    "vertexCode": 50 + 50 * EVEN + 50 * HEADS,
    "vertexInstanceState": 12 + 8 * EVEN + 16 * HEADS + 8 * (TILE == 0),
    "stack": np.full(TILES, 96),
}

# program, first tile, tile after the last, bytes: the controlCode above
CONTROL_CODE = ((0, 0, 10, 16), (1, 0, 10, 8), (2, 0, 10, 8), (3, 0, 10, 8), (5, 0, 10, 8),
                (6, 0, 10, 8), (10, 0, 1, 8), (13, 0, 10, 8))  # fmt: skip

COMPUTE_SETS = ("multiply", "reduce", "add")
# run, IPU, tile, program, kind, clock at begin and end
BLOCKS = (
    (0, 0, 4, 6, schema.BLOCK_KINDS.index("common"), 90, 180),
    (0, 0, 4, 2, schema.BLOCK_KINDS.index("streamCopy"), 36, 44),
    (1, 1, 9, 10, schema.BLOCK_KINDS.index("blockFlush"), 600, 610),
    (1, 1, 9, 6, schema.BLOCK_KINDS.index("common"), 700, 814),
    (1, 1, 9, -1, schema.BLOCK_KINDS.index("overflow"), 900, 900),
)
VERTEX_TYPES = (
    ("popops::Multiply<float>", 12),
    ("popops::Add<float>", 8),
    ("popops::Reduce<float,float>", 16),
)
ACTIVE_BY_TILE = np.array([10 + TILE, 12 * (TILE == 0) + 6 * (TILE == 5), 5 * EVEN])
ACTIVE_BY_TYPE = np.array([[145, 0, 0], [0, 4, 14], [0, 25, 0]])
COMPUTE_CYCLES = np.array([60 + 6 * TILE, 48 * (TILE == 0) + 36 * (TILE == 5), 30 * EVEN])
FLOW = "exchange from_tile from_end to_tile to_end bytes"
EXCHANGE = {"received": [4 + 0 * TILE], "sent": [4 + 0 * TILE], "cycles": [40 + TILE],
            "code": [4 + 0 * TILE]}  # fmt: skip
EXTERNAL = {"received": [8 * HEADS], "sent": [8 * HEADS], "cycles": [20 * HEADS],
            "code": [0 * TILE]}  # fmt: skip
HOST = {
    "received": [8 + 0 * TILE, 0 * TILE],
    "sent": [0 * TILE, 4 * (TILE == 0)],
    "cycles": [7 + 0 * TILE, 5 * (TILE == 0)],
    "code": [2 + 0 * TILE, 4 * (TILE == 0)],
}
MIN_SYNC_DELAY, RELATIVE_SYNC_DELAY = 20, np.array([0, 4, 8, 12, 16])


def code(table: str, column: str, text: str) -> int:
    """Return the code that stands for a text in a column of codes."""
    return schema.TABLE[table].column(column).values.index(text)


def small_report(**changes: Any) -> Dataset:
    """Make the report; `changes` replaces tables (dict of columns) and arrays, None drops one."""
    tables = _graph_tables() | _memory_tables() | _execution_tables()
    arrays = _graph_arrays() | _memory_arrays() | _execution_arrays()
    for name, value in changes.items():
        kind: dict[str, Any] = tables if name in schema.TABLE else arrays
        kind[name] = value
    return Dataset.of(
        {name: columns for name, columns in tables.items() if columns is not None},
        {name: values for name, values in arrays.items() if values is not None},
    )


def replicated_report(replicas: int) -> Dataset:
    """Make the same report of a graph with replicas: tables and arrays are those of one."""
    target = small_report().table("target")
    columns = ("num_ipus", "num_tiles", "total_memory")
    more = {name: replicas * target[name] for name in columns}
    return small_report(target=target | more | {"num_replicas": [replicas]})


def write_trace_rows(path: Path, rows: dict[str, list[tuple[object, ...]]]) -> None:
    """Write a trace file of rows by table, as `pvti.schema` declares them."""
    connection = sqlite3.connect(path)
    with connection:
        for statement in create_statements():
            connection.execute(statement)
        for table, values in rows.items():
            connection.executemany(insert_statement(table), values)
    connection.close()


def write_report(directory: Path, dataset: Dataset | None = None) -> Path:
    """Write a report directory: profile.pop, debug.cbor, app.json, framework.json."""
    from pva.formats import registry

    directory.mkdir(parents=True, exist_ok=True)
    data = dataset or small_report()
    registry.write(data.select("graph", "execution"), directory / "profile.pop")
    registry.write(data, directory / "debug.cbor")
    (directory / "app.json").write_text('{"name":"small"}')
    (directory / "framework.json").write_text('{"framework":"none"}')
    return directory


def report_without_code() -> Dataset:
    """Make the hand-made report as a device without compileIPUCode leaves it."""
    categories = small_report().array("memory_by_category").copy()
    for place, name in enumerate(schema.CATEGORIES):
        categories[place] *= not name.endswith("Code")
    return small_report(memory_by_category=categories)


def _of_rows(names: str, rows: Any) -> Columns:
    return dict(zip(names.split(), map(list, zip(*rows, strict=True)), strict=True))


def _graph_tables() -> dict[str, Columns]:
    children = [(program, child) for program, below in CHILDREN.items() for child in below]
    vertices = [(0, 0, 10), (1, 1, 1), (1, 2, 2), (2, 1, 5)]
    counts = {"exchange": [8], "send": [4], "receive_mux": [28], "total": [40]}
    zero = {c.name: [0] for c in schema.TABLE["exchange_instructions"].columns}
    return {
        "report": {"version": ["1.2.3"], "major": [1], "minor": [2], "point": [3],
                   "package_hash": ["abc"], "created": ["2020-01-01T00:00:00Z"]},
        "target": {
            "type": [code("target", "type", "IPU_MODEL")], "architecture": ["tiny"],
            "num_ipus": [IPUS], "tiles_per_ipu": [TILES_PER_IPU], "num_tiles": [TILES],
            "bytes_per_tile": [BYTES_PER_TILE], "bytes_per_ipu": [BYTES_PER_TILE * TILES_PER_IPU],
            "total_memory": [BYTES_PER_TILE * TILES], "clock_frequency": [1e9],
            "min_sync_delay": [MIN_SYNC_DELAY], "global_sync_cycles": [0], "num_replicas": [1],
            "interleaved_base": [INTERLEAVED_BASE],
        },
        "optimization_info": {"name": ["exchanges.merged"], "value": [3.0]},
        "graph": {"num_compute_sets": [3], "num_edges": [34], "num_vars": [44],
                  "num_vertices": [18]},
        "vertex_types": _of_rows("name size", VERTEX_TYPES),
        "compute_sets": {"name": list(COMPUTE_SETS), "flops": [20, 8, 10]},
        "compute_set_vertices": _of_rows("compute_set vertex_type count", vertices),
        "programs": _programs(),
        "program_children": _of_rows("program child", children),
        "control_code": _of_rows("program tile end_tile bytes", CONTROL_CODE),
        "exchange_instructions": zero | counts | {"program": [5]},
        "exchange_flows": _of_rows(FLOW, [(0, 0, 5, 0, 5, 20), (0, 5, 10, 5, 10, 20)]),
        "external_exchange_flows": _of_rows(FLOW, [(0, 0, 5, 5, 10, 8), (0, 5, 10, 0, 5, 8)]),
        "control_programs": {"program": [0]},
        "io_tiles": {"tile": []},
        "function_programs": {"program": [FUNCTION]},
        "written_programs": _written(),
        "written_results": _of_rows("written program", [
            (row, program) for row, (*_, became, _more) in enumerate(WRITTEN) for program in became
        ]),
        "access": _of_rows("program variable write", ACCESS),
        "engine_options": {"name": ["autoReport.all"], "value": ["true"]},
        "provenance": {"item": ["memory_by_tile"], "quality": ["estimate"],
                       "reason": ["code is modelled"]},
        "debug_contexts": _debug_contexts(),
    }  # fmt: skip


def _programs() -> Columns:
    columns: Columns = {"type": [code("programs", "type", kind) for kind, _, _ in PROGRAMS],
                        "name": [name for _, name, _ in PROGRAMS]}  # fmt: skip
    for name in ("compute_set", "exchange", "target", "count", "debug_context"):
        columns[name] = [more.get(name, -1) for _, _, more in PROGRAMS]
    syncs = [more.get("sync_type", "None") for _, _, more in PROGRAMS]
    columns["sync_type"] = [code("programs", "sync_type", sync) for sync in syncs]
    return columns


def _written() -> Columns:
    columns: Columns = {
        "type": [code("written_programs", "type", kind) for kind, *_ in WRITTEN],
        "name": [name for _, name, *_ in WRITTEN],
        "parent": [around for _, _, around, *_ in WRITTEN],
        "role": [""] * len(WRITTEN),
    }
    for name in ("compute_set", "target", "count", "bytes"):
        columns[name] = [more.get(name, -1) for *_, more in WRITTEN]
    for name in ("source", "destination"):
        columns[name] = [more.get(name, "") for *_, more in WRITTEN]
    return columns


def _debug_contexts() -> Columns:
    names = ("model", "x", "multiply", "add", "reduce", "y")
    return {
        "id": list(range(1, 7)),
        "parent": [-1, 1, 1, 1, 1, 1],
        "name": list(names),
        "layer": ["poplar", "poplar", "popops", "popops", "popops", "poplar"],
        "file": ["model.py"] * 6,
        "function": ["build"] * 6,
        "line": [10, 11, 12, 13, 14, 15],
        "json": ["", "", '{"op":"multiply"}', "", "", ""],
    }


def _live_at() -> Values:
    """Return which variables are live at which step: [liveness step][variable]."""
    live = np.zeros((len(LIVENESS), len(VARIABLES)), dtype=bool)
    for variable, begin, end in INTERVALS:
        live[begin:end, variable] = True
    return live


def _bytes_on_tiles() -> Values:
    """Return the bytes of variables on tiles: [variable][tile]."""
    sizes = np.zeros((len(VARIABLES), TILES), dtype=np.int64)
    for row, (*_, tiles, _address, length, _region) in enumerate(VARIABLES):
        sizes[row, list(tiles)] = length
    return sizes


def _always_live() -> Values:
    """Return the bytes that are always live on each tile."""
    always = np.array([variable[4] for variable in VARIABLES])
    return sum(CODE.values()) + _bytes_on_tiles()[always].sum(axis=0)


def _memory_tables() -> dict[str, Columns]:
    sizes = _bytes_on_tiles()
    steps = (_live_at() @ sizes).sum(axis=1)
    pieces = [
        (row, tile, variable[6], schema.REGIONS.index(variable[8]), variable[7])
        for row, variable in enumerate(VARIABLES) for tile in variable[5]
    ]  # fmt: skip
    always = [(name, int(values.sum())) for name, values in CODE.items()]
    always += [
        (variable[0], int(sizes[row].sum()))
        for row, variable in enumerate(VARIABLES)
        if variable[4]
    ]
    return {
        "memory_by_tile": _memory_by_tile(),
        "always_live_variables": _of_rows("name bytes", always),
        "liveness": {"max_bytes": [int(steps.max())]},
        "liveness_steps": _of_rows("program parent", LIVENESS) | {"bytes": steps},
        "variables": {
            "name": [v[0] for v in VARIABLES], "type": [v[1] for v in VARIABLES],
            "shape": [v[2] for v in VARIABLES],
            "category": [schema.CATEGORIES.index(v[3]) for v in VARIABLES],
            "bytes": sizes.sum(axis=1), "always_live": [v[4] for v in VARIABLES],
            "lowered_from": [-1, -1, -1, 0, 2, -1, -1], "debug_context": [2, 2, 3, 3, 5, 6, 4],
        },
        "variable_pieces": _of_rows("variable tile address region bytes", pieces),
        "variable_intervals": _of_rows("variable begin end", INTERVALS),
    }  # fmt: skip


def _memory_by_tile() -> Columns:
    """Return the memory of each tile, worked out by hand from VARIABLES and CODE.

    Each tile has its code, then w, x, product (8 bytes each) and the message (4, on tile 0 in the
    same place as y); tile 0 has the constant after a gap; tiles 0 and 5 the partials.
    """
    used = sum(CODE.values()) + 28 + 4 * (TILE == 0)
    end = np.where(TILE == 0, 548, 540)
    return {
        "interleaved": 16 * HEADS,
        "interleaved_including_gaps": 16 * HEADS,
        "non_interleaved": used,
        "non_interleaved_including_gaps": end,
        "overflowed": 0 * TILE,
        "overflowed_including_gaps": 0 * TILE,
        "total": used + 16 * HEADS,
        "total_including_gaps": np.where(HEADS, INTERLEAVED_BASE + 16, end),
    }


def _memory_arrays() -> dict[str, Values]:
    sizes, live = _bytes_on_tiles(), _live_at()
    by_tile = live @ sizes
    by_ipu = by_tile.reshape(len(LIVENESS), IPUS, TILES_PER_IPU).sum(axis=2)
    return {
        "memory_by_category": _memory_by_category(),
        "always_live_bytes": _always_live(),
        "not_always_live_max_bytes": by_tile.max(axis=0),
        "liveness_bytes_by_ipu": by_ipu,
        **_vertex_memory("compute_set", (0, 2, 1)),
        **_vertex_memory("vertex_type", (0, 1, 2)),
    }


def _memory_by_category() -> Values:
    sizes = np.zeros((len(schema.CATEGORIES), 3, 2, TILES), dtype=np.int64)
    for name, values in CODE.items():
        sizes[schema.CATEGORIES.index(name), 0, 0] = values
    for row, variable in enumerate(VARIABLES):
        category, region = schema.CATEGORIES.index(variable[3]), schema.REGIONS.index(variable[8])
        shared = (TILE == 0) & (row in (3, 5))  # the message and y have one address on tile 0
        sizes[category, region, shared.astype(int), TILE] += _bytes_on_tiles()[row]
    return sizes


def _vertex_memory(owner: str, types: tuple[int, ...]) -> dict[str, Values]:
    """Return the vertex memory of owners with vertices of `types`; one vertex where it runs."""
    runs = np.array([np.ones(TILES, dtype=int), EVEN, HEADS])[list(types)]
    state = np.array([size for _, size in VERTEX_TYPES])[list(types)]
    parts = {
        part: np.zeros((len(types), TILES), dtype=np.int64)
        for part, _, _ in schema.VERTEX_MEMORY_PARTS
    }
    parts["code"] = 50 * runs
    parts["vertex_data"] = (state[:, None] - 4) * runs
    parts["edge_pointers"] = 4 * runs
    parts["total"] = parts["code"] + parts["vertex_data"] + parts["edge_pointers"]
    return {f"memory_by_{owner}_{part}": values for part, values in parts.items()}


def _graph_arrays() -> dict[str, Values]:
    arrays = {
        "relative_sync_delay": RELATIVE_SYNC_DELAY,
        "physical_tile": np.array([0, 2, 4, 3, 1]),
        "compute_set_active_cycles_by_tile": ACTIVE_BY_TILE,
        "compute_set_active_cycles_by_vertex_type": ACTIVE_BY_TYPE,
        "compute_set_cycles_by_tile": COMPUTE_CYCLES,
        "vertex_count_by_tile": np.array([0 * TILE + 1, TILE == 0, HEADS, EVEN], dtype=np.int64),
    }
    for name, rows in (
        ("exchange", EXCHANGE),
        ("external_exchange", EXTERNAL),
        ("host_exchange", HOST),
    ):
        arrays |= {f"{name}_bytes_{way}": np.array(rows[way]) for way in ("received", "sent")}
        arrays[f"{name}_code_bytes"] = np.array(rows["code"])
        arrays[f"{name}_cycles"] = np.array(rows["cycles"])
    return arrays


def _phase(program: int, clock: Values) -> tuple[Values, Values, Values]:
    """Return each tile's duration in a step, and the bytes it receives and sends."""
    kind, _, more = PROGRAMS[program]
    nothing = np.zeros(TILES, dtype=np.int64)
    if kind == "OnTileExecute":
        return COMPUTE_CYCLES[more["compute_set"]], nothing, nothing
    if kind == "Sync":
        delay = np.tile((MIN_SYNC_DELAY + RELATIVE_SYNC_DELAY) // 2, IPUS)
        return (clock + delay).max() + delay - clock, nothing, nothing
    rows = {"DoExchange": EXCHANGE, "GlobalExchange": EXTERNAL, "StreamCopy": HOST}[kind]
    at = more["exchange"]
    return np.array(rows["cycles"][at]), np.array(rows["received"][at]), np.array(rows["sent"][at])


def _step(program: int, run: int, clock: Values) -> tuple[Row, list[Row], Values]:
    """Execute one program on the clocks of the tiles; give its rows and the clocks after it."""
    kind, _, more = PROGRAMS[program]
    duration, received, sent = _phase(program, clock)
    after, data = clock + duration, received + sent
    row = {
        "type": code("steps", "type", kind), "program": program, "run": run,
        "sync_type": code("steps", "sync_type", more.get("sync_type", "None")),
        "cycles": duration.max(), "cycles_from": clock.max(), "cycles_to": after.max(),
        "cycles_overlapped": duration.max() - (after.max() - clock.max()),
        "active_tiles": (duration > 0).sum(), "tile_balance": duration.mean() / duration.max(),
        "active_tile_balance": duration[duration > 0].mean() / duration.max(),
        "thread_balance": np.nan, "total_data": -1, "data_balance": np.nan,
    }  # fmt: skip
    if kind == "OnTileExecute":
        row["thread_balance"] = ACTIVE_BY_TILE[more["compute_set"]].sum() / duration.sum()
    elif kind != "Sync":
        row |= {"total_data": data.sum() // 2, "data_balance": data.mean() / data.max()}
    groups = np.split(np.arange(TILES), IPUS)
    by_ipu = [
        _on_ipu(ipu, *(values[tiles] for values in (clock, after, received, sent)))
        for ipu, tiles in enumerate(groups)
    ]
    return row, by_ipu, after


def _on_ipu(ipu: int, before: Values, after: Values, received: Values, sent: Values) -> Row:
    duration = after - before
    active = duration > 0 if duration.any() else duration == 0
    longest = max(duration.max(), 1)
    return {
        "ipu": ipu, "cycles": duration.max(), "from_min": before[active].min(),
        "from_max": before[active].max(), "to_min": after[active].min(),
        "to_max": after[active].max(), "all_to_min": after.min(), "all_to_max": after.max(),
        "tile_balance": duration.mean() / longest,
        "active_tile_balance": duration[active].mean() / longest,
        "bytes_in": received.sum(), "bytes_out": sent.sum(),
    }  # fmt: skip


def _execution_tables() -> dict[str, Columns]:
    clock = np.zeros(TILES, dtype=np.int64)
    steps: list[dict[str, Any]] = []
    by_ipu: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    spent = dict.fromkeys((c.name for c in schema.TABLE["tile_cycles"].columns), 0)
    for run in range(RUNS):
        begin, first = int(clock.max()), len(steps)
        for program in TRACE:
            row, rows, after = _step(program, run, clock)
            by_ipu += [{"step": len(steps)} | more for more in rows]
            steps.append(row)
            _spend(spent, program, int((after - clock).sum()))
            clock = after
        spent["idle_at_end"] += int((clock.max() - clock).sum())
        clock = np.full(TILES, clock.max())
        runs.append(_run(run, first, len(steps), begin, int(clock.max())))
    return {
        "execution": {"profiler_mode": [code("execution", "profiler_mode", "IPU_MODEL")],
                      "cycles": [int(clock.max())]},
        "tile_cycles": {name: [value] for name, value in spent.items()},
        "runs": _columns(runs),
        "other_runs": {c.name: [] for c in schema.TABLE["other_runs"].columns},
        "steps": _columns(steps),
        "steps_by_ipu": _columns(by_ipu),
        "blocks": _of_rows("run ipu tile program kind cycles_from cycles_to", BLOCKS),
    }  # fmt: skip


def _execution_arrays() -> dict[str, Values]:
    """Return the clocks, and what instrumentation of every kind would have measured."""
    types = [row for row, count in ((0, 10), (1, 1), (2, 2), (1, 5)) for _ in range(count)]
    return {
        "tile_clock": np.zeros((1, TILES), dtype=np.int64),
        "measured_compute_set_cycles_by_tile": COMPUTE_CYCLES,
        "measured_compute_set_cycles": COMPUTE_CYCLES.max(axis=1),
        "measured_compute_set_cycles_by_ipu": COMPUTE_CYCLES.reshape(3, IPUS, TILES_PER_IPU).max(2),
        "measured_vertex_cycles": np.array([*(60 + 6 * TILE), 24, 48, 36, *[30] * 5]),
        "vertex_compute_set": np.repeat([0, 1, 2], [10, 3, 5]),
        "vertex_vertex_type": np.array(types),
        "measured_external_exchange_cycles": np.array(EXTERNAL["cycles"]),
        "measured_host_exchange_cycles": np.array(HOST["cycles"]),
    }


def _spend(spent: dict[str, int], program: int, cycles: int) -> None:
    kind, _, more = PROGRAMS[program]
    spent[{"OnTileExecute": "compute"}.get(kind, schema.snake(kind)[1:])] += cycles
    if kind == "OnTileExecute":
        spent["active_compute"] += int(ACTIVE_BY_TILE[more["compute_set"]].sum())


def _run(run: int, first: int, end: int, begin: int, stop: int) -> dict[str, Any]:
    start = 1_577_836_800e6 + 1000 * run
    return {
        "name": "main", "program": 0, "first_step": first, "end_step": end, "cycles_from": begin,
        "cycles": stop - begin, "start_microseconds": start, "end_microseconds": start + 500,
        "trace_begin": 1_000_000 * (run + 1), "trace_end": 1_000_000 * (run + 1) + 500_000,
        "items": 4, "batches": 1, "stages": 1,
    }  # fmt: skip


def _columns(rows: list[dict[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in rows[0]}
