"""Rules about memory: does it fit, what is in the way, what could be smaller.

Each takes a report and gives findings, none when there is nothing to say. Raises NotRecordedError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.attribution import OPERANDS
from pva.analysis.execution.exchanges import KINDS, largest_exchanges
from pva.analysis.insight_rules.finding import (
    ALL_KINDS,
    ALL_TILES,
    EXCHANGE_CODE,
    FULLEST_TILE,
    GAPS,
    VARIABLES,
    VERTEX_STATE,
    Finding,
    part,
)
from pva.analysis.memory.placement import variable_spread
from pva.analysis.memory.totals import (
    CODE_CATEGORIES,
    COUNT_CODE,
    VERTEX_PARTS,
    check_code,
    memory_by_compute_set,
    memory_by_tile,
    memory_overview,
    memory_usage,
)
from pva.data.tile_sets import IO, has_io_tiles, tiles_of_sets
from pva.lazy import pandas as pd
from pva.units import count, share, size

if TYPE_CHECKING:
    from pva.report import Report

NEARLY_FULL = 0.9  # of a tile's memory
EVEN_ENOUGH = 0.75  # mean tile / fullest tile
MATTERS = 0.5  # of a tile's memory: a fullest tile below it has room anyway
WORTH_A_LOOK = 0.05  # of what a saving is a part of
WORKERS = 6  # threads of a tile that run vertices


def does_it_fit(report: Report) -> list[Finding]:
    """Report whether every tile has enough memory, and what is spare or lacking on the fullest."""
    memory = memory_overview(report)
    spare = memory.bytes_per_tile - memory.fullest_bytes
    tile = f"tile {memory.fullest_tile:,}"
    of = f"{size(memory.fullest_bytes)} of {size(memory.bytes_per_tile)}"
    base: dict[str, Any] = {
        "of": FULLEST_TILE, "whole": memory.fullest_bytes, "show": "fullest_tiles",
        "tile": memory.fullest_tile,
    }  # fmt: skip
    if memory.tiles_out_of_memory:
        even = int(memory.fullest_bytes - memory.mean_bytes)
        fits = memory.mean_bytes <= memory.bytes_per_tile
        advice = (
            "Spread the data: the mean tile would fit."
            if fits
            else "Use more IPUs, a smaller batch or half precision: the mean tile does not fit."
        )
        words = f"Out of memory: {_tiles(memory.tiles_out_of_memory)} too little"
        return [Finding(severity="problem", what=words, where=f"{tile} needs {of}", amount=-spare,
                        advice=advice, saving=even if fits else 0, **base)]  # fmt: skip
    full = memory.fullest_share > NEARLY_FULL
    spare_words = f"with {share(part(spare, memory.bytes_per_tile))} spare on the fullest tile"
    words = f"Fits, {spare_words}" if memory.code_counted else f"Fits, without code, {spare_words}"
    advice = "" if memory.code_counted else f"To count code, {COUNT_CODE}."
    return [Finding(severity="cost" if full else "note", what=words, where=f"{tile} uses {of}",
                    amount=spare, advice=advice, **base)]  # fmt: skip


def _tiles(number: int) -> str:
    return "1 tile has" if number == 1 else f"{count(number)} tiles have"


def uneven_tiles(report: Report) -> list[Finding]:
    """Report that the fullest tile needs far more than the mean one."""
    memory = memory_overview(report)
    if memory.mean_bytes >= EVEN_ENOUGH * memory.fullest_bytes:
        return []
    over = memory.fullest_bytes - int(memory.mean_bytes)
    return [
        Finding(
            severity="cost" if memory.fullest_share > MATTERS else "note",
            what=f"Uneven: the fullest tile needs {memory.fullest_bytes / memory.mean_bytes:.1f} "
            "times what the mean tile does",
            where=f"tile {memory.fullest_tile:,}, {size(memory.fullest_bytes)}; the mean is "
            f"{size(memory.mean_bytes)}",
            amount=over,
            of=FULLEST_TILE,
            whole=memory.fullest_bytes,
            advice="Map its variables and vertices to more tiles.",
            saving=over,
            on_fullest=over,
            holds=ALL_KINDS,
            show="memory_by_tile",
            tile=memory.fullest_tile,
        )
    ]


def gaps_on_fullest_tile(report: Report) -> list[Finding]:
    """Report the part of the fullest tile that gaps take."""
    memory = memory_overview(report)
    row = memory_by_tile(report).frame().iloc[memory.fullest_tile]
    gaps = int(row["total_including_gaps"] - row["total"])
    if gaps <= WORTH_A_LOOK * memory.bytes_per_tile:
        return []
    return [
        Finding(
            severity="cost" if memory.fullest_share > MATTERS else "note",
            what=f"Gaps take {share(part(gaps, memory.fullest_bytes))} of the fullest tile",
            where=f"tile {memory.fullest_tile:,}: {size(gaps)} of {size(memory.fullest_bytes)}",
            amount=gaps,
            of=FULLEST_TILE,
            whole=memory.fullest_bytes,
            advice="Fewer variables that must lie interleaved, or of smaller alignment, leave "
            "smaller gaps.",
            saving=gaps,
            on_fullest=gaps,
            holds=GAPS,
            show="fragmentation",
            tile=memory.fullest_tile,
        )
    ]


def variable_on_few_tiles(report: Report) -> list[Finding]:
    """Report the variable that fills one tile far above an even share.

    What lies on I/O tiles has to lie on few.
    """
    data = report.dataset
    capacity = int(data.value("target", "bytes_per_tile"))
    spread = variable_spread(report).frame()
    if has_io_tiles(data):
        spread = spread[~tiles_of_sets(data)[IO][spread["fullest_tile"].to_numpy()]]
    if not len(spread) or spread["excess_bytes"].iloc[0] <= WORTH_A_LOOK * capacity:
        return []
    row = spread.iloc[0]
    tile = int(row["fullest_tile"])
    needed = int(memory_by_tile(report).frame()["total_including_gaps"].iloc[tile])
    return [
        Finding(
            severity="cost",
            what=f"{row['name']} lies on {count(row['tiles'])} tiles only"
            if row["tiles"] > 1
            else f"{row['name']} lies on one tile",
            where=f"tile {tile:,} holds {size(row['most_bytes'])} of it",
            amount=int(row["most_bytes"]),
            of=FULLEST_TILE,
            whole=max(needed, int(row["most_bytes"])),
            advice="Map it evenly over all tiles.",
            saving=int(row["excess_bytes"]),
            on_fullest=int(row["excess_bytes"])
            if tile == memory_overview(report).fullest_tile
            else 0,
            holds=VARIABLES,
            show="variable_spread",
            tile=tile,
            variable=int(row["variable"]),
        )
    ]


def code_of_exchanges(report: Report) -> list[Finding]:
    """Report the part of memory that the code of exchanges takes."""
    check_code(report)
    usage = memory_usage(report)
    by_category = usage.not_overlapped_by_category
    code = sum(by_category.get(category, 0) for category in CODE_CATEGORIES["exchange_code"])
    if code <= 2 * WORTH_A_LOOK * usage.total:
        return []
    table = (
        largest_exchanges(report).frame().sort_values("code_bytes", ascending=False, kind="stable")
    )
    recorded = len(table) and table["code_bytes"].iloc[0] > 0
    row = table.iloc[0] if recorded else None
    return [
        Finding(
            severity="cost",
            what=f"Exchange code takes {share(part(code, usage.total))} of memory",
            where=f"most in {row['name'] or 'an exchange without a name'}, "
            f"{size(row['code_bytes'])}"
            if row is not None
            else "on all tiles",
            amount=code,
            of=ALL_TILES,
            whole=usage.total,
            advice="Lay the operands of that operation out the way it reads them, so that it moves "
            "fewer, longer pieces."
            if row is not None
            else "Move fewer, longer pieces.",
            saving=int(row["code_bytes"]) if row is not None else 0,
            on_fullest=_code_on_fullest(report, row) if row is not None else 0,
            holds=EXCHANGE_CODE,
            show="largest_exchanges",
        )
    ]


def many_vertices(report: Report) -> list[Finding]:
    """Report the compute set whose many small vertices take memory by their state."""
    total = memory_overview(report).total
    table = memory_by_compute_set(report).frame()
    tiles = (report.dataset.array("compute_set_cycles_by_tile") > 0).sum(axis=1)
    per_tile = table["vertices"].to_numpy() / np.maximum(tiles[table["compute_set"].to_numpy()], 1)
    state = table["state"].to_numpy()
    saving = np.where(per_tile > WORKERS, state * (1 - WORKERS / np.maximum(per_tile, 1)), 0)
    if not len(saving) or saving.max() <= WORTH_A_LOOK * total:
        return []
    worst = int(saving.argmax())
    return [
        Finding(
            severity="cost",
            what=f"{table['name'].iloc[worst]} has {count(table['vertices'].iloc[worst])} vertices "
            f"of {size(state[worst])} state, {per_tile[worst]:,.1f} a tile",
            where=f"{share(part(state[worst], total))} of memory",
            amount=int(state[worst]),
            of=ALL_TILES,
            whole=total,
            advice=f"Fewer, larger vertices do: {WORKERS} a tile keep its workers busy.",
            saving=int(saving[worst]),
            on_fullest=_state_on_fullest(report, int(table["compute_set"].iloc[worst]))
            * (1 - WORKERS / max(float(per_tile[worst]), 1)),
            holds=VERTEX_STATE,
            show="memory_by_compute_set",
        )
    ]


def _code_on_fullest(report: Report, exchange: pd.Series) -> int:
    """Return the code of an exchange on the fullest tile."""
    (tag,) = (tag for tag, kind in KINDS.items() if kind == exchange["kind"])
    array = f"{OPERANDS[tag][1]}_code_bytes"
    if not report.dataset.has(array):
        return 0
    row = report.dataset.row(array, int(exchange["exchange"]))
    return max(int(row[memory_overview(report).fullest_tile]), 0)


def _state_on_fullest(report: Report, compute_set: int) -> int:
    """Return the state of the vertices of a compute set on the fullest tile."""
    tile = memory_overview(report).fullest_tile
    arrays = (f"memory_by_compute_set_{part}" for part in VERTEX_PARTS)
    return sum(int(report.dataset.row(name, compute_set)[tile]) for name in arrays)
