"""Why runs take their time: who IPUs wait for, and the chain of steps that a run is long by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import labels, summed
from pva.analysis.columns import analysis
from pva.analysis.operations.layers import OUTSIDE, STAGE, owners_in
from pva.analysis.selection import rows_wanted
from pva.analysis.table import Arrays, Columns, groups_of, largest_first, rows_of
from pva.analysis.waiting.chains import Chain, Clocks, Items, clocks_of, items_of, walk
from pva.analysis.waiting.segments import NEVER, recorded_runs
from pva.array_types import Integers, Values
from pva.data.tile_sets import tiles_of_sets
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 270  # of its analyses in the catalogue
SYNC, END = "Sync", "end of the run"
# What an IPU does that neither computes nor waits, and the column of `why_idle` that it counts in,
# as do waits for tiles that do it.
MOVING = {
    "DoExchange": "exchange",
    "GlobalExchange": "global_exchange",
    "StreamCopy": "host",
    SYNC: SYNC.lower(),
}
REASONS = ("imbalance", "bubble", *MOVING.values())
ROWS = 25_000  # of chains that are laid beside waits at once
KEYS = ("ipu", "for_ipu", "for_tile", "program", "is_way")


@analysis(
    "ipu type name steps first_step cycles:cycles share:fraction",
    name="what the tile runs that the others wait for",
    ipu="IPU through which the path goes",
    steps="how often the path goes through it",
    cycles="cycles of the path; all rows are as long as the runs",
    share="part of the cycles of the recorded runs",
)
def critical_path(report: Report) -> Columns:
    """Return which steps and syncs the recorded runs are as long as, the most cycles first.

    Back from the end of a run: the tile that ended last, what it ran since its last sync, the tile
    that arrived last at that sync, and so on to the begin. To make another step shorter makes the
    run no shorter. `ipu` is where the path goes through the program, `steps` how often, and
    `first_step` the first step that runs it (-1 for the end of a run). A Sync is
    the way of a tile to a sync and of the next one from it. `cycles` add up to those of all
    recorded runs, and `share` to 1. Raises NotRecordedError.
    """
    return report.dataset.kept("critical path", lambda _: _critical_path(report))


@dataclass(frozen=True, slots=True)
class PathShare:
    """The IPU through which most of a critical path goes, its share, and over how many it goes."""

    ipu: int
    share: float
    ipus: int


def path_share(path: pd.DataFrame) -> PathShare:
    """Sum up a critical path by IPU; it has a row at least."""
    rows = path[["ipu", "cycles"]].groupby("ipu", as_index=False).sum()
    most = rows.nlargest(1, "cycles").iloc[0]
    share = float(most["cycles"]) / max(int(rows["cycles"].sum()), 1)
    return PathShare(int(most["ipu"]), share, len(rows))


def _critical_path(report: Report) -> Arrays:
    """Work out `critical_path`."""
    clocks = clocks_of(report)
    chain = _path(clocks)
    parts = []
    for first in range(0, max(len(chain.join), 1), ROWS):
        some = slice(first, first + ROWS)
        items = _path_items(clocks, chain, some)
        keys = [chain.ipu[some][items.visit], _programs(report, items), items.is_way]
        cycles = items.end - items.begin
        parts.append(_summed([(keys, np.stack([cycles, cycles != 0], axis=1))]))
    (ipu, program, is_way), sums = _summed(parts)
    named = _named(report, program, is_way > 0)
    different, group = groups_of({"ipu": ipu, **named})
    order, rank = _by_appearance(group)
    group = rank[group]
    first_steps = np.full(len(order), np.iinfo(np.int64).max)
    np.minimum.at(first_steps, group, _first_steps(report, program))
    cycles = summed(group, sums[:, 0], len(order))
    columns = {
        **rows_of(different, order),
        "steps": summed(group, sums[:, 1], len(order)),
        "first_step": first_steps,
        "cycles": cycles,
        "share": cycles / max(int(cycles.sum()), 1),
    }
    return largest_first(rows_of(columns, cycles != 0), "cycles")


def _by_appearance(group: Integers) -> tuple[Integers, Integers]:
    """Return the groups in the order of their first rows, and the place of each group in it."""
    _, first = np.unique(group, return_index=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return order, rank


@analysis("run step ipu tile type name cycles_from:cycles cycles_to:cycles cycles:cycles")
def path_steps(report: Report, *, count: int = 1000) -> Columns:
    """Return the critical path of the recorded runs step by step, in order.

    `tile` is the one that was waited for, from `cycles_from` to `cycles_to`, and a Sync its way to
    a sync and that of the next tile from it; step -1 is the end of a run. The first `count` rows
    (default 1000). Raises SelectionError, NotRecordedError.
    """
    clocks = clocks_of(report)
    chain = _path(clocks)
    items = _path_items(clocks, chain, slice(None))
    order = np.flatnonzero(items.end != items.begin)
    order = order[np.argsort(items.begin[order], kind="stable")][: rows_wanted(count)]
    visit, step = items.visit[order], items.step[order]
    table = _named(report, _programs(report, items)[order], items.is_way[order])
    kind = clocks.segments.kind[chain.segment[visit]]
    return {
        "run": clocks.joins.run[chain.join[visit]],
        "step": step,
        "ipu": chain.ipu[visit],
        "tile": clocks.kinds.last[kind, chain.ipu[visit]],
        **table,
        "cycles_from": items.begin[order],
        "cycles_to": items.end[order],
        "cycles": items.end[order] - items.begin[order],
    }


@analysis(
    "ipu for_ipu for_tile type name stage first_step tile_cycles:tile-cycles cycles:cycles "
    "share:fraction",
    ipu="IPU whose tiles wait",
    for_ipu="IPU of the tile that arrives last",
    name="what that tile runs meanwhile",
    cycles="cycles of the mean tile of the IPU that waits",
    share="part of the cycles of the recorded runs",
)
def waits(report: Report) -> Columns:
    """Return who the tiles of each IPU wait for, and what that one does meanwhile, longest first.

    At every sync, and at the end of a run, tiles wait for the one that arrives last: `for_tile` on
    `for_ipu`, which runs the program `name` meanwhile, of a `stage` of a pipeline, for the first
    time in `first_step`. A StreamCopy is a wait for the host, by the name of the stream; a Sync is
    the way there and back, and the tile the IPU's own. `tile_cycles` count every waiting tile of
    the IPU; `cycles` are those of its mean tile, `share` is of the cycles of the recorded runs.
    With what `cycles_by_tile` calls busy, they make up all cycles. Raises NotRecordedError.
    """
    return _kept_waits(report, None)


def _kept_waits(report: Report, clocks: Clocks | None) -> Arrays:
    """Return `waits`, worked out once; not to be changed."""
    return report.dataset.kept("waits", lambda _: _waits(report, clocks or clocks_of(report)))


def _waits(report: Report, clocks: Clocks) -> Arrays:
    """Return `waits` of replayed clocks."""
    data = report.dataset
    keys, spent = _summed([_in_sets(report, clocks), *_between(report, clocks)])
    per_ipu = max(data.of_replica("num_tiles") // max(data.of_replica("num_ipus"), 1), 1)
    names = dict(zip(KEYS, keys, strict=True))
    stage = owners_in(report, STAGE)[names["program"]]
    columns = {
        "ipu": names["ipu"],
        "for_ipu": names["for_ipu"],
        "for_tile": names["for_tile"],
        **_named(report, names["program"], names["is_way"] > 0),
        "stage": np.where(stage == OUTSIDE, "", stage),
        "first_step": _first_steps(report, names["program"]),
        "tile_cycles": spent,
        "cycles": spent / per_ipu,
        "share": spent / per_ipu / max(_all_cycles(report), 1),
    }
    return largest_first(columns, "tile_cycles")


@analysis(
    "ipu compute:fraction imbalance:fraction bubble:fraction exchange:fraction "
    "global_exchange:fraction host:fraction sync:fraction waits_for meanwhile",
    exchange="part of the tile cycles in exchange on an IPU, or waiting for it",
    global_exchange="part of the tile cycles in exchange between IPUs, or waiting for it",
    host="part of the tile cycles in exchange with the host, or waiting for it",
    sync="part of the tile cycles on the way to syncs and back",
)
def why_idle(report: Report) -> Columns:
    """Return of each IPU why it does not compute, and which IPU and program it waits for most.

    Shares of the cycles of the recorded runs on all tiles of the IPU, which add up to 1 with
    `compute`. `imbalance`: waiting for the slowest tile of the IPU in a compute set; `bubble`: for
    another IPU that computes; `exchange`, `global_exchange` and `host`: exchanging, or waiting for
    a tile that does; `sync`: the way to syncs and back. `waits_for` is the IPU that it waits for
    longest (itself, -1 for none) and `meanwhile` what that one runs longest then. Raises
    NotRecordedError.
    """
    data = report.dataset
    clocks = clocks_of(report)
    ipus = data.of_replica("num_ipus")
    waited = _kept_waits(report, clocks)
    per_ipu = data.of_replica("num_tiles") // max(ipus, 1)
    total = max(_all_cycles(report) * per_ipu, 1)
    reason = np.where(waited["ipu"] == waited["for_ipu"], "imbalance", "bubble").astype(object)
    for tag, column in MOVING.items():
        reason[waited["type"] == tag] = column
    busy = _busy(report, clocks)
    nothing = np.zeros(ipus, dtype=np.int64)
    spent = {
        name: summed(waited["ipu"][reason == name], waited["tile_cycles"][reason == name], ipus)
        for name in REASONS
    }
    for tag, column in MOVING.items():
        spent[column] = spent[column] + busy.get(tag, nothing)
    others = rows_of(waited, waited["type"] != SYNC)
    longest = _longest(others, "for_ipu", ipus, -1)
    names = _longest(rows_of(others, longest[others["ipu"]] == others["for_ipu"]), "name", ipus, "")
    return {
        "ipu": np.arange(ipus),
        "compute": busy.get("OnTileExecute", nothing) / total,
        **{name: cycles / total for name, cycles in spent.items()},
        "waits_for": longest,
        "meanwhile": names,
    }


def _longest(waited: Arrays, column: str, ipus: int, otherwise: int | str) -> Values:
    """Return the value of a column that each IPU waits for longest, `otherwise` if for none."""
    keys, group = groups_of({"ipu": waited["ipu"], column: waited[column]})
    spent = summed(group, waited["tile_cycles"], len(keys["ipu"]))
    first = largest_first({**keys, "spent": spent}, "spent")
    on, places = np.unique(first["ipu"], return_index=True)
    values = np.full(ipus, otherwise, dtype=first[column].dtype)
    values[on] = first[column][places]
    return values


def _path(clocks: Clocks) -> Chain:
    """Follow the runs from their end to their begin."""
    ends = np.flatnonzero(clocks.joins.step < 0)
    return walk(clocks, ends, np.zeros_like(ends), np.full_like(ends, NEVER))


def _path_items(clocks: Clocks, chain: Chain, some: slice) -> Items:
    """Spell some visits of the critical path out."""
    return items_of(clocks, chain, clocks.joins.end[chain.join, 0], some)


def _programs(report: Report, items: Items) -> Integers:
    """Return the program of each item, -1 for the end of a run."""
    programs: Integers = np.append(report.dataset.column("steps", "program"), -1)[items.step]
    return programs


def _first_steps(report: Report, programs: Integers) -> Integers:
    """Return the first step that runs each program, -1 where none does."""
    of_step = report.dataset.column("steps", "program")
    count = max(int(of_step.max(initial=-1)), int(programs.max(initial=-1))) + 1
    first = np.full(count + 1, -1, dtype=np.int64)
    first[of_step[::-1]] = np.arange(len(of_step))[::-1]  # the first step is the last to be set
    first[-1] = -1
    steps: Integers = first[programs]
    return steps


def _all_cycles(report: Report) -> int:
    """Add up the cycles of the runs that were recorded step by step."""
    rows, _, _ = recorded_runs(report)
    return int(report.dataset.column("runs", "cycles")[rows].sum())


def _named(report: Report, programs: Integers, is_way: npt.NDArray[np.bool_]) -> dict[str, object]:
    """Return type and name of what was waited for."""
    types = np.append(report.dataset.texts("programs", "type"), END)[programs]
    names = np.where(programs >= 0, labels(report, programs), f"({END})")
    return {"type": np.where(is_way, SYNC, types).astype(object), "name": names}


def _summed(parts: list[tuple[list[Any], Integers]]) -> tuple[list[Integers], Integers]:
    """Add up cycles by what they are for, keys of at least -1; without those that come to none."""
    keys = [np.concatenate(column) for column in zip(*(keys for keys, _ in parts), strict=True)]
    spent = np.concatenate([values for _, values in parts])
    sizes = [int(key.max(initial=0)) + 2 for key in keys]
    codes = np.zeros(len(spent), dtype=np.int64)
    for key, size in zip(keys, sizes, strict=True):
        codes = codes * size + key + 1
    _, example, place = np.unique(codes, return_index=True, return_inverse=True)
    sums = np.zeros((len(example), *spent.shape[1:]), dtype=np.int64)
    np.add.at(sums, place, spent)
    nonzero = sums.reshape(len(sums), -1).any(axis=1) if len(sums) else np.zeros(0, dtype=np.bool_)
    return [key[example[nonzero]] for key in keys], sums[nonzero]


def _in_sets(report: Report, clocks: Clocks) -> tuple[list[Integers], Integers]:
    """Add up what tiles wait for the last one of their own IPU and set, and their ways to syncs."""
    data = report.dataset
    kinds, segments = clocks.kinds, clocks.segments
    program = np.append(data.column("steps", "program"), -1)
    _, example = np.unique(segments.kind, return_index=True)
    of_item = np.repeat(np.arange(len(example)), kinds.stop_item - kinds.first_item)
    at_item = program[segments.first[example][of_item] + kinds.place]
    item, ipu = (kinds.waited > 0).nonzero()
    row = of_item[item]
    steps = [ipu, ipu, kinds.last[row, ipu], at_item[item], np.zeros_like(ipu)]
    sums = _ways_to_joins(report, clocks, program)
    number, of_ipu = (sums != 0).nonzero()
    ways = [of_ipu, of_ipu, np.full_like(of_ipu, -1), number - 1, np.ones_like(of_ipu)]
    keys = [np.concatenate(both) for both in zip(steps, ways, strict=True)]
    waited = kinds.waited[item, ipu] * kinds.count[row]
    return keys, np.concatenate([waited, sums[number, of_ipu]])


def _ways_to_joins(report: Report, clocks: Clocks, program: Integers) -> Integers:
    """Add up tile cycles on the ways to joins and from them, by [program + 1][IPU].

    What a join lasts behind the latest arrival, all of its tiles have.
    """
    kinds, segments, joins = clocks.kinds, clocks.segments, clocks.joins
    set_tiles = _tiles_of_set(report, clocks)
    sums = np.zeros((int(program.max()) + 2, joins.end.shape[1]), dtype=np.int64)
    for first in range(0, len(segments.kind), ROWS):
        some = slice(first, first + ROWS)
        ends, begins, kind = (of[some] for of in (segments.ends, segments.begins, segments.kind))
        to_join = (joins.end[ends] - clocks.latest[ends]) * set_tiles[segments.tile_set[some], None]
        to_join += (kinds.asked + kinds.delay)[kind]
        np.add.at(sums, program[joins.step[ends]] + 1, to_join)
        later = begins >= 0
        np.add.at(sums, program[joins.step[begins[later]]] + 1, kinds.released[kind[later]])
    return sums


def _tiles_of_set(report: Report, clocks: Clocks) -> Integers:
    """Count the tiles of each tile set on an IPU."""
    sets = tiles_of_sets(report.dataset)
    count: Integers = sets.sum(axis=1) // max(clocks.latest.shape[1], 1)
    return count


def _between(report: Report, clocks: Clocks) -> list[tuple[list[Integers], Integers]]:
    """Add up what IPUs, and sets of tiles of one, wait for each other."""
    joined = (clocks.ending >= 0)[:, :, None]
    late = clocks.latest[:, None] > clocks.arrival
    heads, ipus = np.nonzero((late & joined).any(axis=1))
    alike = clocks.joins.external[heads] & np.append(False, heads[1:] == heads[:-1])[: len(heads)]
    heads, ipus = heads[~alike], ipus[~alike]  # those of an external sync wait for one chain
    parts = []
    for begin in range(0, max(len(heads), 1), ROWS):
        some, on = heads[begin : begin + ROWS], ipus[begin : begin + ROWS]
        first = np.where(joined[some], clocks.arrival[some], np.iinfo(np.int64).max).min(axis=1)
        own_first = first[np.arange(len(on)), on]
        until = np.where(clocks.joins.external[some], first.min(axis=1), own_first)
        chain = walk(clocks, some, on, until)
        items = items_of(clocks, chain, clocks.latest[chain.join, chain.ipu], slice(None))
        parts.append(_laid_beside(report, clocks, chain, items))
    return parts


def _laid_beside(
    report: Report, clocks: Clocks, chain: Chain, items: Items
) -> tuple[list[Integers], Integers]:
    """Add up what waits have in common with the chains of what they wait for."""
    join, on = chain.join[items.visit], chain.ipu[items.visit]
    program = _programs(report, items)
    kind = clocks.segments.kind[chain.segment[items.visit]]
    tile = clocks.kinds.last[kind, on]
    set_tiles = _tiles_of_set(report, clocks)
    parts = []
    for place in range(clocks.ending.shape[1]):
        segment = clocks.ending[join, place]
        tiles = np.where(segment >= 0, set_tiles[clocks.segments.tile_set[segment]], 0)
        for ipu in range(clocks.latest.shape[1]):
            together = clocks.joins.external[join] | (on == ipu)
            until = np.minimum(items.end, clocks.latest[join, ipu])
            common = until - np.maximum(items.begin, clocks.arrival[join, place, ipu])
            mine = np.flatnonzero((common > 0) & (tiles > 0) & together)
            keys = [
                np.full(len(mine), ipu),
                on[mine],
                tile[mine],
                program[mine],
                items.is_way[mine],
            ]
            parts.append(_summed([(keys, (common * tiles)[mine])]))
    return _summed(parts)


def _busy(report: Report, clocks: Clocks) -> dict[str, Integers]:
    """Add up the tile cycles of each IPU by type of program."""
    data = report.dataset
    _, example = np.unique(clocks.segments.kind, return_index=True)
    kinds = clocks.kinds
    of_item = np.repeat(np.arange(len(example)), kinds.stop_item - kinds.first_item)
    steps = clocks.segments.first[example][of_item] + kinds.place
    types = np.append(data.texts("programs", "type"), "")[data.column("steps", "program")[steps]]
    spent = kinds.busy * kinds.count[of_item, None]
    return {tag: spent[types == tag].sum(axis=0) for tag in {*types.tolist()}}
