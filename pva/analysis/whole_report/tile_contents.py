"""Memory on chosen tiles: details, vertices, compute sets, exchanges and variables, in bytes.

`tiles` are those chosen; without them all tiles of a replica are summed up. Of more than one tile
each also has a column of its own, `tile_N`. Raises SelectionError for a tile that is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import EXCHANGES, OPERANDS, moved_bytes, summed
from pva.analysis.columns import analysis
from pva.analysis.execution.exchanges import KINDS, exchange_names
from pva.analysis.memory.regions import REGIONS
from pva.analysis.memory.totals import CATEGORY_LABELS, VERTEX_PARTS, code_if_counted, counts_code
from pva.analysis.selection import several, tile_count
from pva.analysis.table import Columns, joined, largest_first, rows_of
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 100  # of its analyses in the catalogue
Tiles = tuple[int, ...]
MAX_COLUMNS = 12  # tiles that get a column of their own


def _tiles_to_sum(report: Report, tiles: Tiles) -> tuple[Tiles, npt.NDArray[np.int64]]:
    """Return the tiles that were chosen, and those to add up: the same, or all."""
    count = tile_count(report)
    selected = tuple(several("tile", tiles, count))
    return selected, np.array(selected or range(count), dtype=np.int64)


def own_columns(tiles: Tiles) -> dict[str, int]:
    """Name the column of each tile that has one, with its place among the tiles."""
    distinct = tuple(dict.fromkeys(tiles))
    named = distinct[:MAX_COLUMNS] if len(distinct) > 1 else ()
    return {f"tile_{tile}": place for place, tile in enumerate(named)}


def _by_tile(values: Integers, tiles: Tiles) -> dict[str, Integers]:
    """Return the columns of single tiles from bytes by [row][chosen tile]."""
    return {name: values[:, place] for name, place in own_columns(tiles).items()}


@analysis("path label *:bytes", label="words for the row")
def tile_details(report: Report, *, tiles: Tiles = ()) -> Columns:
    """Sum up the memory of each chosen tile, or of all, by region, use and liveness: a tree.

    `path` is the place in the tree (`a/b` lies in `a`), then a column of bytes for each tile;
    `all_tiles` when none is chosen, `chosen_tiles` for more than twelve. Each overlapped item
    counts in full, so that `overlapped` is more than `after_overlapping`, which it takes
    together. Categories that hold nothing are left out. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    tiles, rows = _tiles_to_sum(report, tiles)
    single = 0 < len(tiles) <= MAX_COLUMNS
    column_name = "chosen_tiles" if tiles else "all_tiles"
    names = [f"tile_{tile}" for tile in tiles] if single else [column_name]

    def wanted(by_tile: Any) -> Any:
        values = by_tile[..., rows]
        return values if single else values.sum(axis=-1, keepdims=True)

    column = {
        name: wanted(data.column("memory_by_tile", name))
        for name in ("total", "total_including_gaps", *REGIONS)
    }
    categories = data.on_tiles("memory_by_category", rows).sum(axis=1)
    if not single:
        categories = categories.sum(axis=-1, keepdims=True)
    capacity = int(data.value("target", "bytes_per_tile")) * (1 if single else len(rows))
    alone, shared = categories[:, 0], categories[:, 1]
    base = "total/by_use"
    entries = [
        ("including_gaps", "Memory including gaps", column["total_including_gaps"]),
        ("free", "Free", capacity - column["total_including_gaps"]),
        ("total", "Memory excluding gaps", column["total"]),
        ("total/by_region", "By region", sum(column[name] for name in REGIONS)),
        *((f"total/by_region/{name}", _words(name), column[name]) for name in REGIONS),
        (base, "By use", column["total"]),
        (f"{base}/alone", "Not overlapped", alone.sum(axis=0)),
        *_used(f"{base}/alone", alone),
        (f"{base}/shared", "Overlapped", shared.sum(axis=0)),
        (f"{base}/shared/after_overlapping", "Taken together", column["total"] - alone.sum(axis=0)),
        *_used(f"{base}/shared", shared),
        *_live(report, wanted),
    ]
    table = np.array([values for _, _, values in entries])
    head = {"path": [entry[0] for entry in entries], "label": [entry[1] for entry in entries]}
    return head | {name: table[:, place] for place, name in enumerate(names)}


def _words(name: str) -> str:
    return name.replace("_", "-").capitalize()


def _used(path: str, values: Integers) -> list[tuple[str, str, Integers]]:
    """List the categories that hold something, the largest first."""
    names = list(CATEGORY_LABELS)
    order = np.argsort(-values.sum(axis=1), kind="stable").tolist()
    return [
        (f"{path}/{names[row]}", CATEGORY_LABELS[names[row]], values[row])
        for row in order
        if values[row].any()
    ]


def _live(report: Report, pick: Any) -> list[tuple[str, str, Integers]]:
    """List what is always live, and what at most beside it."""
    data = report.dataset
    if not (data.has("always_live_bytes") and data.has("not_always_live_max_bytes")):
        return []
    always, moving = (
        pick(data.array(name)) for name in ("always_live_bytes", "not_always_live_max_bytes")
    )
    return [
        ("live", "Live at most", always + moving),
        ("live/always", "Always live", always),
        ("live/moving", "Not always live, at its peak", moving),
    ]


@analysis(
    "name vertices code:bytes state:bytes total:bytes *:bytes",
    name="vertex type",
    vertices="vertices of all compute sets on these tiles; -1 where it was not recorded",
    state="bytes of the state of all its vertices",
    code="code, once a tile that has a vertex of it; -1 where it was not counted",
    total="bytes of state and code",
)
def vertices_on_tiles(report: Report, *, tiles: Tiles = ()) -> Columns:
    """Return what each vertex type takes on the chosen tiles, or on all, the most first.

    `vertices` in all compute sets (-1 where it was not recorded on which tiles they lie), `code`
    once a tile (-1 where it was not counted), `state` of all of them; `total` is the sum of both.
    Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    tiles, rows = _tiles_to_sum(report, tiles)
    name = "memory_by_vertex_type"
    code = data.array(f"{name}_code")[:, rows]
    total = data.array(f"{name}_total")[:, rows]
    columns = {
        "name": data.column("vertex_types", "name"),
        "vertices": _vertices(report, "vertex_type", len(total), rows),
        "code": code_if_counted(report, code.sum(axis=1)),
        "state": (total - code).sum(axis=1),
        "total": total.sum(axis=1),
        **_by_tile(total, tiles),
    }
    return largest_first(rows_of(columns, columns["total"] > 0), "total")


def _vertices(report: Report, owner: str, count: int, rows: npt.NDArray[np.int64]) -> Integers:
    """Count the vertices on these tiles by vertex type or by compute set; -1 is not recorded."""
    data = report.dataset
    owners = data.column("compute_set_vertices", owner)
    if len(rows) == tile_count(report):
        return summed(owners, data.column("compute_set_vertices", "count"), count)
    if not data.has("vertex_count_by_tile"):
        return np.full(count, -1)
    return summed(owners, data.array("vertex_count_by_tile")[:, rows].sum(axis=1), count)


@analysis(
    "compute_set name vertices instances state:bytes code:bytes *:bytes",
    name="debug name of the compute set",
    vertices="its vertices on these tiles; -1 where it was not recorded",
    instances="programs that run it",
    state="bytes of its vertices: fields and pointers",
    code="code of its vertex types, which others may have; -1 where it was not counted",
)
def compute_sets_on_tiles(report: Report, *, tiles: Tiles = ()) -> Columns:
    """Return what each compute set takes on the chosen tiles, or on all, the most first.

    `state` of its `vertices` (-1 where it was not recorded on which tiles they lie), and `code`,
    which other compute sets share (-1 where it was not counted); `instances` are the programs that
    run it. Raises SelectionError, NotRecordedError.
    """
    data = report.dataset
    tiles, rows = _tiles_to_sum(report, tiles)
    name = "memory_by_compute_set"
    parts = [data.array(f"{name}_{part}")[:, rows] for part in VERTEX_PARTS]
    state: Integers = np.sum(parts, axis=0)
    count = len(state)
    programs = data.texts("programs", "type") == "OnTileExecute"
    runs = data.column("programs", OPERANDS["OnTileExecute"][0])[programs]
    columns = {
        "compute_set": np.arange(count),
        "name": data.column("compute_sets", "name"),
        "vertices": _vertices(report, "compute_set", count, rows),
        "instances": np.bincount(runs[(runs >= 0) & (runs < count)], minlength=count),
        "state": state.sum(axis=1),
        "code": code_if_counted(report, data.array(f"{name}_code")[:, rows].sum(axis=1)),
        **_by_tile(state, tiles),
    }
    used = (columns["state"] > 0) | (columns["code"] > 0) | (columns["vertices"] > 0)
    return largest_first(rows_of(columns, used), "state", "code")


@analysis(
    "kind exchange name code_bytes:bytes bytes_received:bytes bytes_sent:bytes *:bytes",
    name="debug name of the exchange",
    kind="on an IPU, between IPUs, or with the host",
    code_bytes="code on these tiles, which exchanges may share; -1 where it is not known",
    bytes_received="bytes received in one execution",
    bytes_sent="bytes sent in one execution",
)
def exchanges_on_tiles(report: Report, *, tiles: Tiles = ()) -> Columns:
    """Return what the code of each exchange takes on the chosen tiles, or on all, the most first.

    Beside it what they receive and send in one execution. `kind` is internal, between IPUs, or
    host; exchanges may share code. `code_bytes` is -1 where it is not told by tile. Raises
    SelectionError, NotRecordedError.
    """
    tiles, rows = _tiles_to_sum(report, tiles)
    columns = joined(_exchanges(report, tag, rows, tiles) for tag in EXCHANGES)
    used = [columns[name] > 0 for name in ("code_bytes", "bytes_received", "bytes_sent")]
    return largest_first(rows_of(columns, np.any(used, axis=0)), "code_bytes", "bytes_received")


def _exchanges(report: Report, tag: str, rows: npt.NDArray[np.int64], tiles: Tiles) -> Columns:
    data = report.dataset
    received, sent = moved_bytes(report, tag)
    array = f"{OPERANDS[tag][1]}_code_bytes"
    recorded = data.has(array) and counts_code(report)
    code = (
        data.array(array)[: len(received), rows]
        if recorded
        else np.full((len(received), len(rows)), -1)
    )
    return {
        "kind": np.full(len(received), KINDS[tag], dtype=object),
        "exchange": np.arange(len(received)),
        "name": exchange_names(report, tag, len(received)),
        "code_bytes": code.sum(axis=1) if recorded else code.max(axis=1, initial=-1),
        "bytes_received": received[:, rows].sum(axis=1),
        "bytes_sent": sent[:, rows].sum(axis=1),
        **_by_tile(code, tiles),
    }


@analysis(
    "variable name category type shape always_live bytes:bytes *:bytes",
    name="debug name of the variable",
    type="type of its elements",
    shape="size of each dimension",
    bytes="bytes; variables that are never live together may overlap",
)
def variables_on_tiles(report: Report, *, tiles: Tiles = ()) -> Columns:
    """Return what each variable takes on the chosen tiles, or on all, the most first.

    `variable` is the row of the table of variables; those not live together may share their place.
    Raises SelectionError, NotRecordedError without the pieces of variables.
    """
    data = report.dataset
    tiles, rows = _tiles_to_sum(report, tiles)
    count = len(data.column("variables", "name"))
    if tiles:
        values = _pieces_on(report, rows, count)
        sizes, by_tile = values.sum(axis=1), _by_tile(values, tiles)
    else:
        sizes, by_tile = data.column("variables", "bytes"), {}
    columns = {
        "variable": np.arange(count),
        "name": data.column("variables", "name"),
        "category": data.texts("variables", "category"),
        "type": data.column("variables", "type"),
        "shape": data.column("variables", "shape"),
        "always_live": data.column("variables", "always_live"),
        "bytes": sizes,
        **by_tile,
    }
    return largest_first(rows_of(columns, columns["bytes"] > 0), "bytes")


def _pieces_on(report: Report, rows: npt.NDArray[np.int64], count: int) -> Integers:
    """Return the bytes of variables by [variable][chosen tile]; beyond the own columns in the last.

    Only the first MAX_COLUMNS tiles have columns, so that many tiles need little memory.
    """
    data = report.dataset
    width = min(len(rows), MAX_COLUMNS + 1)
    place = np.full(tile_count(report), -1)
    place[rows] = np.minimum(np.arange(len(rows)), width - 1)
    owners, tiles, sizes = (
        data.column("variable_pieces", name) for name in ("variable", "tile", "bytes")
    )
    columns = place[tiles]
    valid = columns >= 0
    flat = summed(owners[valid] * width + columns[valid], sizes[valid], count * width)
    by_place: Integers = flat.reshape(count, width)
    return by_place
