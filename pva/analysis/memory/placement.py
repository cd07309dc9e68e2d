"""Where variables lie: the largest, how they are spread over the tiles, what lies on one tile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import executions, labels, layer_of, owners, summed
from pva.analysis.columns import analysis
from pva.analysis.selection import chosen, program_texts, tile_count
from pva.analysis.table import Columns, largest_first, rows_of
from pva.array_types import Integers, Truths

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 60  # of its analyses in the catalogue


@analysis(
    "variable name type shape category bytes:bytes share:fraction always_live at_peak",
    type="type of the elements",
)
def largest_variables(report: Report) -> Columns:
    """Return which variables take the most bytes on all tiles, the compiler's included.

    `variable` is the row of the table of variables; `share` is of the bytes of all of them, which
    is more than the memory in use, as variables not live together share it. `at_peak` ones are
    live where liveness peaks. Raises NotRecordedError.
    """
    data = report.dataset
    sizes = data.column("variables", "bytes")
    columns = {
        "variable": np.arange(len(sizes)),
        "name": data.column("variables", "name"),
        "type": data.column("variables", "type"),
        "shape": data.column("variables", "shape"),
        "category": data.texts("variables", "category"),
        "bytes": sizes,
        "share": sizes / max(int(sizes.sum()), 1),
        "always_live": data.column("variables", "always_live"),
        "at_peak": live_at_peak_truths(report),
    }
    return largest_first(columns, "bytes")


def live_at_peak_truths(report: Report) -> Truths:
    """Return which variables are live at the program step where liveness peaks."""
    data = report.dataset
    live: Truths = data.column("variables", "always_live").copy()
    if data.length("liveness_steps") and data.has("variable_intervals"):
        peak = int(data.column("liveness_steps", "bytes").argmax())
        begin, end = (data.column("variable_intervals", name) for name in ("begin", "end"))
        live[data.column("variable_intervals", "variable")[(begin <= peak) & (peak < end)]] = True
    return live


@analysis(
    "type variables bytes:bytes always_live_bytes:bytes peak_bytes:bytes",
    type="type of the elements",
)
def memory_by_type(report: Report) -> Columns:
    """Return the bytes of the variables of each element type, the largest first.

    `variables` of the type, their `bytes`, those of them that are `always_live_bytes`, and
    `peak_bytes`, live where liveness peaks (the always live among them). Raises NotRecordedError.
    """
    types, place = np.unique(
        report.dataset.column("variables", "type").astype(str), return_inverse=True
    )
    columns = {"type": types.astype(object), **_sums(report, place, len(types))}
    return largest_first(columns, "bytes")


@analysis("layer variables bytes:bytes always_live_bytes:bytes peak_bytes:bytes share:fraction")
def memory_by_layer(report: Report) -> Columns:
    """Return what the variables of each layer take where liveness peaks, and in all, most first.

    A layer is the outermost scope of the path of a variable or of its debug context. `bytes` of all
    its `variables`, `always_live_bytes` of those always live, and `peak_bytes` live where liveness
    peaks (the always live among them), of which `share` is a part. Raises NotRecordedError.
    """
    data = report.dataset
    names, contexts = (data.column("variables", name) for name in ("name", "debug_context"))
    layers = [layer_of(name) for name in owners(report, names, contexts).tolist()]
    words, place = np.unique(np.array(layers, dtype=str), return_inverse=True)
    columns = {"layer": words.astype(object), **_sums(report, place, len(words))}
    columns["share"] = columns["peak_bytes"] / max(int(columns["peak_bytes"].sum()), 1)
    return largest_first(columns, "peak_bytes", "bytes")


def _sums(report: Report, place: Integers, count: int) -> dict[str, Integers]:
    """Sum up variables by group: how many, bytes in all, always live, live at the peak."""
    data = report.dataset
    sizes = data.column("variables", "bytes")
    return {
        "variables": np.bincount(place, minlength=count),
        "bytes": summed(place, sizes, count),
        "always_live_bytes": summed(place, sizes * data.column("variables", "always_live"), count),
        "peak_bytes": summed(place, sizes * live_at_peak_truths(report), count),
    }


@analysis(
    "variable name category bytes:bytes tiles fullest_tile most_bytes:bytes balance:fraction "
    "excess_bytes:bytes"
)
def variable_spread(report: Report) -> Columns:
    """List the variables that are uneven over the tiles: what a better mapping would save.

    On `tiles` of them, `most_bytes` on tile `fullest_tile`; `balance` is mean / most over the tiles
    that it lies on, and `excess_bytes` what the fullest holds above an even share of all tiles, the
    most first. Raises NotRecordedError without the pieces of variables.
    """
    data = report.dataset
    tiles = tile_count(report)
    count = len(data.column("variables", "name"))
    names = ("variable", "tile", "bytes")
    rows, places, sizes = (data.column("variable_pieces", name) for name in names)
    keys, group = np.unique(rows * tiles + places, return_inverse=True)
    on_tile = summed(group, sizes, len(keys))
    owner, tile = np.divmod(keys, tiles)
    order = np.lexsort((tile, -on_tile, owner))
    owners, first = np.unique(owner[order], return_index=True)
    most, fullest = np.zeros(count, dtype=np.int64), np.full(count, -1)
    most[owners], fullest[owners] = on_tile[order][first], tile[order][first]
    lies_on = np.bincount(owner, minlength=count)
    total = summed(owner, on_tile, count)
    columns = {
        "variable": np.arange(count),
        "name": data.column("variables", "name"),
        "category": data.texts("variables", "category"),
        "bytes": total,
        "tiles": lies_on,
        "fullest_tile": fullest,
        "most_bytes": most,
        "balance": total / np.maximum(lies_on * most, 1),
        "excess_bytes": most - total // max(tiles, 1),
    }
    return largest_first(rows_of(columns, lies_on > 0), "excess_bytes")


@analysis("tile ipu bytes:bytes pieces address:bytes")
def variable_by_tile(report: Report, *, variable: int) -> Columns:
    """List the tiles on which a variable lies, by its row in `largest_variables`, most bytes first.

    `pieces` are contiguous; with their `bytes`, and the `address` of the first. Raises
    SelectionError, NotRecordedError.
    """
    data = report.dataset
    variable = chosen("variable", variable, len(data.column("variables", "name")))
    piece_rows = data.rows_where("variable_pieces", "variable", variable)
    tiles, sizes, addresses = (
        data.column("variable_pieces", name)[piece_rows] for name in ("tile", "bytes", "address")
    )
    lies_on, place, pieces = np.unique(tiles, return_inverse=True, return_counts=True)
    lowest = np.full(len(lies_on), np.iinfo(np.int64).max)
    np.minimum.at(lowest, place, addresses)
    columns = {
        "tile": lies_on,
        "ipu": lies_on // max(int(data.value("target", "tiles_per_ipu")), 1),
        "bytes": summed(place, sizes, len(lies_on)),
        "pieces": pieces,
        "address": lowest,
    }
    return largest_first(columns, "bytes")


@analysis("program type name reads writes executions")
def variable_uses(report: Report, *, variable: int) -> Columns:
    """Return which programs read and write a variable, by its row in `largest_variables`.

    In the order of the programs; `executions` in the recorded runs, -1 where no steps were
    recorded. What is written by one and read by none could go. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    variable = chosen("variable", variable, len(data.column("variables", "name")))
    accesses = data.rows_where("access", "variable", variable)
    writes = data.column("access", "write")[accesses]
    programs, place = np.unique(data.column("access", "program")[accesses], return_inverse=True)
    types, _ = program_texts(report, programs)
    counts = executions(report)[programs] if data.has("steps") else np.full(len(programs), -1)
    return {
        "program": programs,
        "type": types,
        "name": labels(report, programs),
        "reads": np.bincount(place[~writes], minlength=len(programs)) > 0,
        "writes": np.bincount(place[writes], minlength=len(programs)) > 0,
        "executions": counts,
    }


@analysis("tile address:bytes end:bytes bytes:bytes region name category first_step last_step")
def memory_map(report: Report, *, tile: int | None = None) -> Columns:
    """Lay out what lies on a tile by address, or on the tile that needs the most memory.

    Pieces of variables from `address` to `end`, with their region; those that overlap are not live
    together: `first_step` and `last_step` are the program steps at which each is (-1 and -1 when
    that is always). Code and vertex state have no addresses here. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    if tile is None:
        tile = int(data.column("memory_by_tile", "total_including_gaps").argmax())
    tile = chosen("tile", tile, tile_count(report))
    pieces = data.rows_where("variable_pieces", "tile", tile)
    rows, addresses, sizes = (
        data.column("variable_pieces", name)[pieces] for name in ("variable", "address", "bytes")
    )
    first, last = _lifetime(report)
    columns = {
        "tile": np.full(len(pieces), tile),
        "address": addresses,
        "end": addresses + sizes,
        "bytes": sizes,
        "region": data.texts("variable_pieces", "region")[pieces],
        "name": data.column("variables", "name")[rows],
        "category": data.texts("variables", "category")[rows],
        "first_step": first[rows],
        "last_step": last[rows],
    }
    return rows_of(columns, np.lexsort((addresses + sizes, addresses)))


def _lifetime(report: Report) -> tuple[Integers, Integers]:
    """Return the first and the last program step at which each variable is live; -1 for always."""
    data = report.dataset
    count = len(data.column("variables", "name"))
    never = data.length("liveness_steps")
    first, last = np.full(count, never), np.full(count, -1)
    if data.has("variable_intervals"):
        rows = data.column("variable_intervals", "variable")
        np.minimum.at(first, rows, data.column("variable_intervals", "begin"))
        np.maximum.at(last, rows, data.column("variable_intervals", "end") - 1)
    return np.where(last < 0, -1, first), last
