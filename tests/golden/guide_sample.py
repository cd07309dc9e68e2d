"""The pair of profiles whose summary the Poplar user guide prints: `... guide_sample DIR`.

Writes graph.json and execution.json with the keys of the guide's chapter "Profiling" and the
figures of the sample at its end, those of `benchmarks/sample_published.csv` where they stand there.
What the sample does not tell (how bytes lie on the tiles, in which compute set a vertex is, the
liveness step that needs the most) is made up so that the figures and the laws of memory hold.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Value = dict[str, Any]
Ints = npt.NDArray[np.int64]

PUBLISHED = Path(__file__).parents[2] / "benchmarks" / "sample_published.csv"
TILES, COMPUTE_SETS, KILOBYTE = 1216, 43, 1024
# Tiles by the kB that they hold: the sample's histogram, tile 0 first, idle tiles last.
HISTOGRAM = ((19, 1), (16, 3), (15, 2), (14, 2), (11, 16), (10, 30), (9, 126), (8, 44), (7, 168))
IDLE_TILES, IDLE_BYTES, IDLE_BYTES_WITH_GAPS, FIRST_TILE_BYTES = 824, 3_896, 19_596, 20_294
BUSY = TILES - IDLE_TILES
INTERLEAVED_BASE = 131_072
CONVOLVE = "Layer1/Fwd/Conv_1/Convolve"
CATEGORIES = {
    "Variables": "variable",
    "Internal Exchange Message Buffers": "message",
    "Data Rearrangement Buffers": "rearrangement",
    "Host Exchange Packet Headers": "hostExchangePacketHeader",
    "Stack": "stack",
    "Vertex Instances": "vertexInstanceState",
    "Copy Descriptors": "copyDescriptor",
    "VectorList Descriptors": "vectorListDescriptor",
    "Vertex Field Data": "vertexFieldData",
    "Control Code": "controlCode",
    "Vertex Code": "vertexCode",
    "Internal Exchange Code": "internalExchangeCode",
    "Host Exchange Code": "hostExchangeCode",
}
VERTEX_PARTS = {
    "Internal vertex state": "vertexDataBytes",
    "Edge pointers": "edgePtrBytes",
    "Copy pointers": "copyPtrBytes",
    "Padding": "paddingBytes",
    "Descriptors": "descriptorBytes",
}
TOTALS = ("Total", "Total After Overlapping")
# The programs that the sample shows: type, name, children.
PROGRAMS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("Sequence", "", (1, 2, 3, 4)),
    ("StreamCopy", "", ()),
    ("StreamCopy", "", ()),
    ("DoExchange", "switchControlBroadcast13/ExchangePre", ()),
    ("Switch", "", (5,)),
    ("Sequence", "", (6, 7, 8, 9, 10, 11)),
    ("DoExchange", "init/setMasterSeed/ExchangePre", ()),
    ("OnTileExecute", "init/setMasterSeed", ()),
    ("StreamCopy", "", ()),
    ("StreamCopy", "", ()),
    ("DoExchange", f"{CONVOLVE}/ExchangePre", ()),
    ("OnTileExecute", CONVOLVE, ()),
)
# name ("" for none), category, bytes, and the liveness steps where it is live. The last step stands
# for those that the sample leaves out: it is the peak, by a variable that is made up.
VARIABLES: tuple[tuple[str, str, int, tuple[int, ...]], ...] = (
    ("", "variable", 8, (1, 2, 3, 4, 6, 7)),
    ("", "variable", 4, (1, 2)),
    ("Layer1/Fwd/biases", "variable", 120, (1, 2, 3, 4, 6, 7, 8)),
    ("Layer1/Fwd/weights", "variable", 94_080, (1, 2, 3, 4, 6, 7, 8)),
    ("Layer3/Fwd/biases", "variable", 40, (1, 2, 3, 4, 6, 7, 8)),
    ("Layer3/Fwd/weights", "variable", 1_200, (1, 2, 3, 4, 6, 7, 8)),
    ("programId", "variable", 4, (2, 3, 4)),
    ("broadcastProgramId", "variable", 4_860, (3, 4)),
    ("", "message", 9_720, (6, 7)),
    (f"{CONVOLVE}/partials", "variable", 484_872, (8,)),
)
# Liveness steps, depth first: program and step around it.
LIVENESS = ((0, -1), (1, 0), (2, 0), (3, 0), (4, 0), (5, 4), (6, 5), (7, 5), (11, 5))
INTERNAL, EXTERNAL = ({"type": "sync", "syncType": kind} for kind in ("Internal", "External"))


def published(part: str) -> dict[str, int]:
    """Return the whole numbers of one part of the sample by their labels."""
    with PUBLISHED.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["part"] == part]
    return {row["label"]: int(row["value"]) for row in rows if row["value"].isdecimal()}


def spread(rows: Ints, columns: Ints) -> Ints:
    """Fill a table with these sums of rows and of columns, from its first corner to its last."""
    ends = [np.concatenate(([0], np.cumsum(sums))) for sums in (rows, columns)]
    (low, high), (left, right) = ((end[:-1], end[1:]) for end in ends)
    shared: Ints = np.minimum.outer(high, right) - np.maximum.outer(low, left)
    return shared.clip(min=0)


def evenly(total: int, count: int) -> Ints:
    """Share a number out, as evenly as whole numbers can be."""
    return np.diff(total * np.arange(count + 1) // count)


def _memory_by_tile() -> dict[str, Ints]:
    memory = published("memory")
    kilobytes = np.repeat(*np.array(HISTOGRAM).T)
    busy = KILOBYTE * kilobytes
    busy[0] = FIRST_TILE_BYTES
    rest = memory["Total"] - IDLE_BYTES * IDLE_TILES - busy.sum()
    busy[1:] += evenly(rest, BUSY - 1)
    each = memory["Interleaved"] // BUSY
    interleaved = np.full(BUSY, each - each % 8)
    interleaved[: (memory["Interleaved"] - interleaved.sum()) // 32] += 32
    idle = np.zeros(IDLE_TILES, dtype=np.int64)
    total = np.concatenate((busy, idle + IDLE_BYTES))
    interleaved = np.concatenate((interleaved, idle))
    gaps = np.where(interleaved > 0, INTERLEAVED_BASE + interleaved, IDLE_BYTES_WITH_GAPS)
    return {
        "interleaved": interleaved,
        "interleavedIncludingGaps": interleaved,
        "nonInterleaved": total - interleaved,
        "nonInterleavedIncludingGaps": np.where(interleaved > 0, 65_568, IDLE_BYTES_WITH_GAPS),
        "overflowed": 0 * total,
        "overflowedIncludingGaps": 0 * total,
        "total": total,
        "totalIncludingGaps": gaps,
    }


def _memory_by_category(by_tile: dict[str, Ints]) -> Value:
    alone, shared = published("not overlapped"), published("overlapped")
    together = np.concatenate((evenly(shared[TOTALS[1]], BUSY), np.zeros(IDLE_TILES, dtype=int)))
    shared_by_tile = np.concatenate((evenly(shared["Total"], BUSY), np.zeros(IDLE_TILES, int)))
    names = [label for label in alone if label not in TOTALS]
    own = spread(np.array([alone[name] for name in names]), by_tile["total"] - together)
    twice = np.array([shared.get(name, 0) for name in names])
    twice[names.index("Variables")] -= by_tile["interleaved"].sum()
    overlapped = spread(twice, shared_by_tile - by_tile["interleaved"])
    nothing = np.zeros(TILES, dtype=np.int64)
    found = {}
    for row, name in enumerate(names):
        region = {"nonOverlapped": own[row], "overlapped": overlapped[row]}
        found[CATEGORIES[name]] = {"nonInterleaved": region}
    interleaved = {"nonOverlapped": nothing, "overlapped": by_tile["interleaved"]}
    found["variable"]["interleaved"] = interleaved
    return found


def _memory_by_vertex_type() -> Value:
    """Return each part of each type, evenly on all tiles: [vertex type][tile]."""
    totals, parts = published("bytes by type"), published("vertex data")
    sizes = np.array([totals[name] for name in published("instances")])
    data = np.array([parts[label] for label in VERTEX_PARTS])
    table = spread(sizes, np.array([sizes.sum() - data.sum(), *data]))
    keys = ("codeBytes", *VERTEX_PARTS.values())
    found = {
        key: np.array([evenly(size, TILES) for size in column.tolist()])
        for key, column in zip(keys, table.T, strict=True)
    }
    return found | {"totalBytes": sum(found.values())}


def _compute_sets() -> Value:
    """Put the convolution that the sample shows first, the other vertices in the sets after it."""
    instances, cycles = published("instances"), published("cycles by type")
    first = {"poplin::ConvPartial1x1Out<float,float,true,false>": (BUSY, 384_944)}
    active = np.zeros((COMPUTE_SETS, len(instances)), dtype=np.int64)
    types: list[list[int]] = [[] for _ in range(COMPUTE_SETS)]
    counts: list[list[int]] = [[] for _ in range(COMPUTE_SETS)]
    for row, (name, count) in enumerate(instances.items()):
        here, spent = first.get(name, (0, 0))
        for at, number, time in ((0, here, spent), (1 + row, count - here, cycles[name] - spent)):
            if number:
                types[at].append(row)
                counts[at].append(number)
                active[at, row] = time
    names = [CONVOLVE, *(f"set{number}" for number in range(1, COMPUTE_SETS))]
    return {
        "names": names,
        "vertexTypes": types,
        "vertexCounts": counts,
        "cycleEstimates": {"activeCyclesByVertexType": active},
    }


def _programs() -> list[Value]:
    rows: list[Value] = []
    for type_, name, children in PROGRAMS:
        row: Value = {"type": type_} | ({"name": name} if name else {})
        row |= {"children": list(children)} if children else {}
        row |= {"computeSet": 0} if name == CONVOLVE else {}
        rows.append(row)
    return rows


def _liveness() -> Value:
    live = [[row for row, v in enumerate(VARIABLES) if step in v[3]] for step in range(9)]
    always = published("always live")
    most = always.pop("Maximum live bytes (including always-live)")
    total = published("liveness")["Always-live bytes"]
    return {
        "alwaysLive": {
            "bytesByTile": evenly(total, TILES),
            "variables": [{"name": name, "bytes": size} for name, size in always.items()],
        },
        "notAlwaysLive": {
            "maxBytes": most - total,
            "steps": [
                {"program": program, "parent": parent, "variables": rows}
                for (program, parent), rows in zip(LIVENESS, live, strict=True)
            ],
        },
    }


def graph_profile() -> Value:
    """Return the graph profile; arrays are NumPy's."""
    graph, by_tile = published("graph"), _memory_by_tile()
    types = list(published("instances"))
    return {
        "target": {
            "type": "IPU_MODEL", "bytesPerIPU": 256 * KILOBYTE * TILES,
            "bytesPerTile": 256 * KILOBYTE, "clockFrequency": 1.6e9, "numIPUs": 1,
            "tilesPerIPU": TILES, "numTiles": TILES, "totalMemory": 256 * KILOBYTE * TILES,
        },
        "graph": {
            "numComputeSets": graph["Number of compute sets"],
            "numEdges": graph["Number of edges"],
            "numVars": graph["Number of variables"],
            "numVertices": graph["Number of vertices"],
        },
        "vertexTypes": {"names": types, "sizes": [0] * len(types)},
        "computeSets": _compute_sets(),
        "programs": _programs(),
        "controlPrograms": [0],
        "functionPrograms": [],
        "variables": {
            key: [variable[at] for variable in VARIABLES]
            for at, key in enumerate(("name", "category", "bytes"))
        },
        "memory": {
            "byTile": by_tile,
            "byCategory": _memory_by_category(by_tile),
            "byVertexType": _memory_by_vertex_type(),
            "liveness": _liveness(),
        },
    }  # fmt: skip


def _step(program: int, clock: tuple[int, int], cycles: int, active: int, **more: float) -> Value:
    balance = more.pop("activeTileBalance", 1.0)
    type_, name, _ = PROGRAMS[program]
    row: Value = {"type": type_} | ({"name": name} if name else {})
    row |= {"program": program, "cyclesFrom": clock[0], "cyclesTo": clock[1], "cycles": cycles}
    row |= {"activeTiles": active, "tileBalance": balance * active / TILES}
    return row | {"activeTileBalance": balance} | more


def execution_profile() -> Value:
    """Return the execution profile: the steps of the sample, the totals of the whole run."""
    spent, one = published("execution"), 1 / TILES
    host, bus, exchange, convolve = 1, 3, 10, 11
    steps = [
        EXTERNAL,
        _step(host, (118, 118), 7, 1, totalData=2, dataBalance=one),
        INTERNAL, INTERNAL, EXTERNAL,
        _step(2, (472, 472), 9, 1, totalData=4, dataBalance=one),
        INTERNAL, INTERNAL, INTERNAL,
        _step(bus, (826, 946), 120, TILES, activeTileBalance=103.95 / 120, totalData=2_432,
              dataBalance=1.0, cyclesOverlapped=0),
        EXTERNAL,
        _step(8, (1_064, 1_064), 7, 1, totalData=2, dataBalance=one),
        INTERNAL, INTERNAL, EXTERNAL,
        _step(9, (1_418, 12_098), 10_700, BUSY, totalData=25_122, dataBalance=50_244 / TILES / 196),
        INTERNAL, INTERNAL, INTERNAL,
        _step(exchange, (12_432, 12_581), 169, BUSY, activeTileBalance=146.4 / 169,
              totalData=125_440, dataBalance=BUSY / TILES, cyclesOverlapped=20),
        _step(convolve, (12_581, 13_580), 999, BUSY, threadBalance=1.0, cyclesOverlapped=0,
              activeTileBalance=384_944 / 999 / BUSY),
    ]  # fmt: skip
    activities = {
        "activeCompute": "Total compute cycles (excluding idle threads)",
        "compute": "Total compute cycles (including idle threads)",
        "copySharedStructure": "Total shared structure copy cycles",
        "doExchange": "Total IPU exchange cycles",
        "globalExchange": "Total global exchange cycles",
        "streamCopy": "Total host exchange cycles",
        "sync": "Total sync cycles",
    }
    return {
        "profilerMode": "IPU_MODEL",
        "simulation": {
            "cycles": spent["Total cycles"],
            "tileCycles": {key: spent[label] for key, label in activities.items()},
            "steps": steps,
        },
    }


def write(directory: Path) -> tuple[Path, Path]:
    """Write the pair as JSON; give the two files."""
    files = (directory / "graph.json", directory / "execution.json")
    for file, profile in zip(files, (graph_profile(), execution_profile()), strict=True):
        file.write_text(json.dumps(profile, default=np.ndarray.tolist), encoding="utf-8")
    return files


if __name__ == "__main__":
    write(Path(sys.argv[1]))
