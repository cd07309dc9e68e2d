"""Rules about time: what the recorded runs wait for, and what would make them shorter.

Each takes a report and gives findings, none when there is nothing to say. Raises NotRecordedError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pva.analysis.attribution import PHASES, SYNC, elapsed, phases
from pva.analysis.execution.balance import sync_waits, thread_balance, tile_balance
from pva.analysis.execution.exchanges import stream_bandwidth
from pva.analysis.execution.flops import flop_utilisation, flops_by_compute_set
from pva.analysis.execution.hidden_io import io_tiles_wanted
from pva.analysis.insight_rules.finding import NOWHERE, RECORDED_RUNS, Finding, part
from pva.analysis.operations.cycle_breakdown import cycles_by_phase
from pva.array_types import Integers, Truths
from pva.data.tile_sets import has_io_tiles
from pva.units import count, cycles_in_words, share

if TYPE_CHECKING:
    from pva.report import Report

WORTH_A_LOOK = 0.05  # of the cycles of the recorded runs
SYNC_BOUND, EXCHANGE_BOUND, HOST_BOUND = 0.15, 0.3, 0.1  # of the cycles of the recorded runs
ONE_THREAD = 0.35  # of what six threads could do: two busy ones are 0.33
FEW_OF_THE_PEAK = 0.25
MATRIX_VERTICES = ("poplin::ConvPartial",)  # codelets of PopLibs that have the matrix units' loops
EXCHANGES = ("DoExchange", "GlobalExchange")


def _finding(total: int, saving: float, **fields: Any) -> Finding:
    """Make a finding about cycles; a saving is never more than there is."""
    most = float(min(max(saving, 0), total))
    return Finding(severity="cost", of=RECORDED_RUNS, whole=total, saving=most, **fields)


def _cycles(report: Report) -> int:
    return int(elapsed(report).sum())


def uneven_work(report: Report) -> list[Finding]:
    """Report that tiles wait for others that have more to compute."""
    total = _cycles(report)
    table = tile_balance(report).frame()
    table = table[table["type"] == "OnTileExecute"]
    lost = int(table["lost_cycles"].sum())
    if lost <= WORTH_A_LOOK * total:
        return []
    worst = table.iloc[0]
    return [
        _finding(
            total,
            lost,
            what=f"Unbalanced: tiles wait {share(min(part(lost, total), 1))} of the time "
            "for the slowest of a compute set",
            where=f"most in {worst['name']}: {count(worst['active_tiles'])} of "
            f"{count(worst['tiles'])} tiles work, the mean "
            f"{cycles_in_words(worst['mean_cycles'])} of the slowest's "
            f"{cycles_in_words(worst['cycles'])}",
            amount=min(lost, total),
            advice="Spread its vertices over all tiles, in pieces of equal size.",
            show="tile_balance",
            name=str(worst["name"]),
        )
    ]


def bound_by_sync(report: Report) -> list[Finding]:
    """Report that syncs take a large part of the time."""
    total, spent = _cycles(report), _of_phase(report, SYNC)
    waits = sync_waits(report).frame()
    if spent <= SYNC_BOUND * total or not len(waits):
        return []
    syncs = int(waits["syncs"].sum())
    after = waits.iloc[0]
    return [
        _finding(
            total,
            spent / 2,
            what=f"Bound by syncs: they take {share(part(spent, total))} of the time",
            where=f"{count(syncs)} syncs of {cycles_in_words(part(spent, syncs))} each on average, "
            f"most after {after['after']}",
            amount=spent,
            advice="Merge compute sets that do not need each other's results: the saving is that "
            "of half as many syncs.",
            show="sync_waits",
        )
    ]


def bound_by_exchange(report: Report) -> list[Finding]:
    """Report that data that moves between tiles takes a large part of the time."""
    total, spent = _cycles(report), _of_phase(report, "exchange")
    table = tile_balance(report).frame()
    table = table[table["type"].isin(EXCHANGES)]
    if spent <= EXCHANGE_BOUND * total or not len(table):
        return []
    lost = int(table["lost_cycles"].sum())
    worst = table.iloc[int((table["executions"] * table["cycles"]).to_numpy().argmax())]
    return [
        _finding(
            total,
            min(lost, spent),
            what=f"Bound by exchange: moving data takes {share(part(spent, total))} of the time",
            where=f"most in {worst['name']}, {cycles_in_words(worst['cycles'])} each time",
            amount=spent,
            advice="Let operations read their operands where they lie; the saving is that of "
            "exchanges in which every tile moves as much as the mean.",
            show="tile_balance",
            name=str(worst["name"]),
        )
    ]


def bound_by_host(report: Report) -> list[Finding]:
    """Report that the tiles wait for the host."""
    total, spent = _cycles(report), _of_phase(report, "host exchange")
    if spent <= HOST_BOUND * total:
        return []
    streams = stream_bandwidth(report)
    worst = int(streams["exposed_cycles"].to_numpy().argmax())
    name = str(streams["name"][worst])
    hidden = min(spent, _of_phase(report, "compute"))
    return [
        _finding(
            total,
            hidden,
            what=f"Bound by the host: the runs wait for it {share(part(spent, total))} of the time",
            where=f"most in {name}, {cycles_in_words(streams['exposed_cycles'][worst])}",
            amount=spent,
            advice=_advice_on_io(report),
            show="overlap_io",
            name=name,
        )
    ]


def _advice_on_io(report: Report) -> str:
    """Return what could hide the exchange with the host."""
    if has_io_tiles(report.dataset):
        return (
            "The I/O tiles exchange longer than the others compute: move less, as in fewer bits, "
            "or more batches in a step, as the first and the last are never hidden."
        )
    tiles = io_tiles_wanted(report)
    if not tiles:
        return "Copy more at a time, or in fewer bits."
    return (
        f"With {count(tiles)} I/O tiles (numIOTiles, simulate --io-tiles {tiles}) the host "
        "exchanges the next batch while this one is computed: at most what compute can hide is "
        "saved, in steps of many batches, as the first exchange of a step and its last stay."
    )


def one_thread_busy(report: Report) -> list[Finding]:
    """Report compute sets that keep one or two of the six worker threads of a tile busy."""
    total = _cycles(report)
    threads = thread_balance(report).frame()
    longest = report.dataset.row_maxima("compute_set_cycles_by_tile")
    of_set = longest[threads["compute_set"].to_numpy()] * threads["executions"].to_numpy()
    idle = (threads["thread_balance"].to_numpy() <= ONE_THREAD) & (
        threads["vertices_per_tile"].to_numpy() < 6
    )
    spent = np.where(idle, of_set, 0)
    saving = spent * (1 - threads["thread_balance"].to_numpy())
    if not len(spent) or saving.sum() <= WORTH_A_LOOK * total:
        return []
    worst = threads.iloc[int(saving.argmax())]
    sets = "1 compute set leaves" if idle.sum() == 1 else f"{idle.sum()} compute sets leave"
    return [
        _finding(
            total,
            float(np.rint(saving.sum())),
            what=f"{sets} most worker threads idle",
            where=f"most in {worst['name']}: {worst['vertices_per_tile']:,.1f} vertices a tile "
            f"keep it {share(worst['thread_balance'])} busy",
            amount=min(int(spent.sum()), total),
            advice="Split the work of each tile into six vertices, one for each worker.",
            show="thread_balance",
        )
    ]


def poor_use_of_matrix_units(report: Report) -> list[Finding]:
    """Report convolutions and matrix products far below the peak of the matrix units."""
    total = _cycles(report)
    table = flops_by_compute_set(report).frame()
    table = table[table["compute_set"].isin(_matrix_sets(report)) & (table["flops"] > 0)]
    per_cycle = flop_utilisation(report).float_peak / max(
        float(report.dataset.value("target", "clock_frequency")), 1.0
    )
    if per_cycle < 1:
        return []
    spent = (table["executions"] * table["cycles"]).to_numpy()
    least = (table["executions"] * table["flops"] / per_cycle).to_numpy()
    slow = table["float_peak_share"].to_numpy() < FEW_OF_THE_PEAK
    saving = np.where(slow, spent - least, 0.0)
    if saving.sum() <= WORTH_A_LOOK * total:
        return []
    worst = table.iloc[int(saving.argmax())]
    reached = part(float((least * slow).sum()), float((spent * slow).sum()))
    return [
        _finding(
            total,
            float(np.rint(saving.sum())),
            what=f"Matrix products reach {share(reached)} of what the matrix units can do in float",
            where=f"most in {worst['name']}: {count(worst['flops'])} operations in "
            f"{cycles_in_words(worst['cycles'])}, {share(worst['float_peak_share'])}",
            amount=min(int(spent[slow].sum()), total),
            advice="Larger products, or more of them at once, in sizes that fill the units.",
            show="flops_by_compute_set",
        )
    ]


def _matrix_sets(report: Report) -> Integers:
    """Return the compute sets whose vertices run on the matrix units."""
    data = report.dataset
    names = data.column("vertex_types", "name").tolist()
    matrix = np.array([any(word in name for word in MATRIX_VERTICES) for name in names], dtype=bool)
    rows, types = (data.column("compute_set_vertices", c) for c in ("compute_set", "vertex_type"))
    return np.unique(rows[matrix[types]]) if len(names) else np.zeros(0, dtype=np.int64)


def many_tiny_steps(report: Report) -> list[Finding]:
    """Report that most compute steps take less time than a sync."""
    total, phase, spent = _cycles(report), phases(report), elapsed(report)
    syncs, computes = phase == PHASES.index(SYNC), phase == PHASES.index("compute")
    mean = part(float(spent[syncs].sum()), float(syncs.sum()))
    tiny = computes & (spent < mean)
    saving = min(
        tiny.sum() / 2 * mean, float(spent[syncs & _between(report, tiny, computes)].sum())
    )
    if 2 * tiny.sum() <= computes.sum() or saving <= WORTH_A_LOOK * total:
        return []
    return [
        _finding(
            total,
            float(np.rint(saving)),
            what=f"{count(tiny.sum())} of {count(computes.sum())} compute steps take less time "
            f"than a sync ({cycles_in_words(mean)})",
            where=f"the first is step {int(np.flatnonzero(tiny)[0]):,}; together they take "
            f"{cycles_in_words(spent[tiny].sum())}",
            amount=float(spent[tiny].sum()),
            advice="Do more in each: merge two steps into one and a sync is saved; the saving is "
            "that of one for every two.",
            show="longest_steps",
            step=int(np.flatnonzero(tiny)[0]) if tiny.any() else NOWHERE,
        )
    ]


def _between(report: Report, mask: Truths, members: Truths) -> Truths:
    """Return which others are next to one of `mask` on both sides, among `members` of their run."""
    run = report.dataset.column("steps", "run")
    places, steps = np.flatnonzero(members), np.arange(len(members))
    after = places.searchsorted(steps)
    inside = (after > 0) & (after < len(places))
    enclosed = np.zeros(len(members), dtype=bool)
    before, behind = places[after[inside] - 1], places[after[inside]]
    enclosed[inside] = mask[before] & mask[behind] & (run[before] == run[behind])
    return enclosed


def _of_phase(report: Report, phase: str) -> int:
    frame = cycles_by_phase(report).frame()
    return int(frame["cycles"][frame["phase"] == phase].sum())
