"""The execution cut at its syncs: what tiles did in between, and which of them arrives last.

A segment is what the tiles of a set (those that compute, or the I/O tiles) do from one sync that
joins them to the next, or to an end of the run. How the tiles of an IPU compare in it depends on
its programs alone, so that segments of the same programs are worked out once. A join is the end of
segments: a sync, or the end of a run. All times are in cycles, those of arrivals with the way of a
tile's request to the sync in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import OPERANDS
from pva.analysis.execution.tile_activity import SYNCS, ends_by_ipu, sync_delays
from pva.array_types import Integers, Truths
from pva.data.tile_sets import ALL, COMPUTE, IO, has_io_tiles, sets_of_steps, tiles_of_sets
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report

Halves = npt.NDArray[np.int32]
NONE = -1
NEVER = np.iinfo(np.int64).min // 4
LATER = -NEVER  # than any time
CELLS = 1 << 18  # items times tiles that are worked out at once


@dataclass(frozen=True, slots=True, eq=False)
class Joins:
    """The syncs and ends of runs.

    step       step of the sync, -1 for the end of a run
    run        row of `runs`
    end        [IPU] when its tiles go on, less the release of each
    external   whether it joins the IPUs
    """

    step: Integers
    run: Integers
    end: Integers
    external: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """What the tiles of a set did between two joins.

    tile_set, first, stop   its tiles; its steps, the last one excluded
    begins, ends            its joins; `begins` is -1 where a run does
    begin                   [IPU] when it began, less the release of each tile
    kind                    row of Kinds
    """

    tile_set: Integers
    first: Integers
    stop: Integers
    begins: Integers
    ends: Integers
    begin: Integers
    kind: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """Segments of the same programs, each once; times count from `Segments.begin`.

    count                segments of the kind
    last, starts         [IPU] the tile that arrives last, and when it starts
    arrival              [IPU] when it arrives
    delay                [IPU] tile cycles that the others wait for its way to and from syncs
    asked, released      [IPU] tile cycles on the way to the join that ends, from that it begins at
    first_item, stop_item   its items: a row for each step that takes cycles on any tile
    place                of an item: the place of its step in the segment
    own                  [item][IPU] cycles on the tile that arrives last
    waited               [item][IPU] tile cycles that others of its IPU and set wait meanwhile
    busy                 [item][IPU] cycles on all tiles
    """

    count: Integers
    last: Integers
    starts: Integers
    arrival: Integers
    delay: Integers
    asked: Integers
    released: Integers
    first_item: Integers
    stop_item: Integers
    place: Integers
    own: Integers
    waited: Integers
    busy: Integers


def used_sets(report: Report) -> list[int]:
    """List the sets of tiles that have clocks of their own."""
    return [COMPUTE, IO] if has_io_tiles(report.dataset) else [ALL]


def joins_of(report: Report) -> Joins:
    """List the joins in order; raises NotRecordedError."""
    data = report.dataset
    of_code = np.isin(data.words("steps", "type"), SYNCS)
    run, _, stop = recorded_runs(report)
    _require_clocks(report, data.passed("steps_by_ipu", "to_max")[:1])
    step = np.flatnonzero(of_code[data.stored("steps", "type")])
    internal = are_internal(report, step)
    _, release, _ = sync_delays(report)
    sets, of_step = tiles_of_sets(data), sets_of_steps(data)
    ipus = data.of_replica("num_ipus")
    furthest = np.array(
        [np.where(of_set, release, 0).reshape(ipus, -1).max(axis=1) for of_set in sets]
    )
    ends = ends_by_ipu(report, step) - furthest[of_step[step]]
    over = data.column("runs", "cycles_from")[run] + data.column("runs", "cycles")[run]
    order = np.argsort(np.append(step, stop - 0.5), kind="stable")
    return Joins(
        np.append(step, np.full(len(run), NONE))[order],
        np.append(data.stored("steps", "run")[step], run)[order],
        np.vstack([ends, np.repeat(over[:, None], ipus, axis=1)])[order],
        np.append(~internal, np.ones(len(run), dtype=np.bool_))[order],
    )


def are_internal(report: Report, syncs: Integers) -> npt.NDArray[np.bool_]:
    """Return which of some steps that are syncs join the tiles of each IPU alone."""
    data = report.dataset
    kinds = np.array(data.words("steps", "sync_type"))[data.stored("steps", "sync_type")[syncs]]
    programs = np.append(data.texts("programs", "sync_type"), "")
    program_kinds = programs[data.column("steps", "program")[syncs]]
    return np.asarray(np.where(np.isin(kinds, ("", "None")), program_kinds, kinds) == "Internal")


def recorded_runs(report: Report) -> tuple[Integers, Integers, Integers]:
    """Return the runs that were recorded step by step: row, first step, step after the last.

    Raises NotRecordedError where the clocks are not told.
    """
    data = report.dataset
    first, stop = (data.column("runs", name) for name in ("first_step", "end_step"))
    rows = np.flatnonzero(stop > first)
    for name in ("cycles_from", "cycles"):
        _require_clocks(report, data.column("runs", name)[rows])
    return rows, first[rows], stop[rows]


def _require_clocks(report: Report, clocks: Integers) -> None:
    if (clocks < 0).any():
        why = "the clocks of the runs; autoReport.outputExecutionProfile records them"
        raise NotRecordedError(report.dataset.name, "cycles of the runs not recorded", why)


def segments_of(report: Report, joins: Joins) -> Segments:
    """Cut the execution; raises NotRecordedError."""
    data = report.dataset
    run, first_step, end_step = recorded_runs(report)
    of_join = np.append(sets_of_steps(data), ALL)[joins.step]
    parts = []
    for tile_set in used_sets(report):
        ends = np.flatnonzero((of_join == tile_set) | (of_join == ALL))
        begins = np.append(NONE, ends[:-1])
        place = np.searchsorted(run, joins.run[ends])
        fresh = np.append(True, joins.run[ends][1:] != joins.run[ends][:-1])[: len(ends)]
        begins = np.where(fresh, NONE, begins[: len(ends)])
        is_sync = joins.step[ends] >= 0
        stop = np.where(is_sync, joins.step[ends], end_step[place])
        first = np.where(fresh, first_step[place], joins.step[begins] + 1)
        start = data.column("runs", "cycles_from")[joins.run[ends]][:, None]
        begin = np.where(fresh[:, None], start, joins.end[begins])
        parts.append((np.full(len(ends), tile_set), first, stop, begins, ends, begin))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    to_end = joins.step[columns[4]] < 0
    marks = columns[0] * 4 + (columns[3] < 0) * 2 + to_end
    return Segments(
        columns[0], columns[1], columns[2], columns[3], columns[4], columns[5],
        _kinds(report, columns[1], columns[2], marks),
    )  # fmt: skip


def _kinds(report: Report, first: Integers, stop: Integers, marks: Integers) -> Integers:
    """Number segments such that those of the same programs in the same order have one number.

    They are compared by a sum of 64 bits in which each program at each place weighs differently.
    """
    program = report.dataset.column("steps", "program")
    weights = np.random.default_rng(26).integers(
        0, 1 << 64, (2, int(program.max(initial=0)) + 2), dtype=np.uint64
    )
    at = np.append(np.uint64(0), weights[1][program])
    base = np.cumsum(at)  # one of these as long as the execution at a time
    total = (base[first] - base[stop]) * first.astype(np.uint64)
    np.multiply(at[1:], np.arange(len(program), dtype=np.uint64), out=base[1:])
    np.cumsum(base, out=base)
    total += base[stop] - base[first]
    at[1:] = weights[0][program]
    np.cumsum(at, out=at)
    total += at[stop] - at[first]
    total += marks.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    kinds: Integers = np.unique(total, return_inverse=True)[1].reshape(-1)
    return kinds


def kinds_of(report: Report, segments: Segments, joins: Joins) -> Kinds:
    """Work out the segments of each kind; raises NotRecordedError."""
    data = report.dataset
    _, example, count = np.unique(segments.kind, return_index=True, return_counts=True)
    first, stop = segments.first[example], segments.stop[example]
    lengths = stop - first
    kind = np.repeat(np.arange(len(example)), lengths)
    place = np.arange(len(kind)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    program = data.column("steps", "program")[first[kind] + place]
    types = np.append(data.texts("programs", "type"), "")[program]
    is_work = np.isin(types, list(OPERANDS))
    kind, place, program = kind[is_work], place[is_work], program[is_work]
    bounds = np.searchsorted(kind, np.arange(len(example) + 1))
    release, request, members = _ways(report, segments, joins, example)
    tiles = max(data.of_replica("num_tiles"), 1)
    parts: list[list[Integers]] = []
    finished = 0
    while finished < len(example) or not parts:
        room = bounds[finished] + max(CELLS // tiles, 1)
        until = max(int(np.searchsorted(bounds, room, side="right")) - 1, finished + 1)
        until = min(until, finished + max(CELLS // tiles, 1), len(example))
        items = slice(int(bounds[finished]), int(bounds[until]))
        costs = costs_of(report, program[items])
        starts = bounds[finished : until + 1] - bounds[finished]
        ipus = data.of_replica("num_ipus")
        ways = release[finished:until], request[finished:until], members[finished:until]
        parts.append(_compared(costs, starts, ways, ipus))
        finished = until
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    last, starting, arrival, delay, requested, released, own_cycles, waited, busy = joined
    return Kinds(
        count, last, starting, arrival, delay, requested, released, bounds[:-1], bounds[1:], place,
        own_cycles, waited, busy,
    )  # fmt: skip


def _ways(
    report: Report, segments: Segments, joins: Joins, example: Integers
) -> tuple[Halves, Halves, Truths]:
    """Return for each example [tile]: its release, its request, and whether it is of the set."""
    request, release, _ = sync_delays(report)
    sets = tiles_of_sets(report.dataset)
    released = np.where(segments.begins[example, None] >= 0, release.astype(np.int32), 0)
    requested = np.where(joins.step[segments.ends[example], None] >= 0, request.astype(np.int32), 0)
    return released, requested, sets[segments.tile_set[example]]


def costs_of(report: Report, programs: Integers) -> Integers:
    """Return the cycles of programs, [program][tile]; raises NotRecordedError."""
    data = report.dataset
    table = np.zeros((len(programs), data.of_replica("num_tiles")), dtype=np.int64)
    types = np.append(data.texts("programs", "type"), "")[programs]
    for tag, (column, name) in OPERANDS.items():
        array = f"{name}_cycles_by_tile" if tag == "OnTileExecute" else f"{name}_cycles"
        mine = np.flatnonzero(types == tag)
        rows = data.column("programs", column)[programs[mine]]
        if (rows >= 0).any():
            table[mine[rows >= 0]] = data.chosen(array, rows[rows >= 0])
    return table


def _compared(
    costs: Integers, bounds: Integers, ways: tuple[Halves, Halves, Truths], ipus: int
) -> list[Integers]:
    """Return the tile that arrives last, and its work while the others wait, for some kinds."""
    released, requested, of_set = ways
    tiles = costs.shape[1]
    per_ipu = tiles // ipus
    kinds, kind = len(bounds) - 1, np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    if not of_set.all():
        costs = np.where(of_set[kind], costs, 0)
    has_items = np.diff(bounds) > 0
    arrivals = (released + requested).astype(np.int64)
    if has_items.any():
        arrivals[has_items] += np.add.reduceat(costs, bounds[:-1][has_items], axis=0)
    arrivals_by_ipu = np.where(of_set, arrivals, NEVER).reshape(kinds, ipus, per_ipu)
    last = arrivals_by_ipu.argmax(axis=2) + np.arange(ipus) * per_ipu
    arrival = arrivals_by_ipu.max(axis=2)
    starts = np.take_along_axis(released, last, axis=1).astype(np.int64)
    ahead = starts + np.take_along_axis(requested, last, axis=1)
    own_cycles = np.take_along_axis(costs, last[kind], axis=1)
    run = np.vstack([np.zeros((1, ipus), dtype=np.int64), np.cumsum(own_cycles, axis=0)])
    after = ahead[kind] + run[1:] - run[bounds[:-1]][kind]
    arrivals = np.where(of_set, arrivals, LATER).reshape(kinds, ipus, per_ipu)
    waited = _waits_until(after, arrivals[kind])
    before = _waits_until(ahead, arrivals)
    previous = np.vstack([before[:1], waited])[: len(waited)]
    previous[bounds[:-1][has_items]] = before[has_items]
    ways_of = [
        np.where(of_set, way, 0).reshape(kinds, ipus, per_ipu).sum(axis=2)
        for way in (requested, released)
    ]
    busy = costs.reshape(len(costs), ipus, per_ipu).sum(axis=2)
    return [last, starts, arrival, before, *ways_of, own_cycles, waited - previous, busy]


def _waits_until(times: Integers, arrivals: Integers) -> Integers:
    """Add up how long tiles have waited by some times, [row][IPU]; `arrivals` are overwritten."""
    np.subtract(times[:, :, None], arrivals, out=arrivals)
    np.maximum(arrivals, 0, out=arrivals)
    waits: Integers = arrivals.sum(axis=2)
    return waits
