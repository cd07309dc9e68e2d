"""Chains of what was waited for: from a join back through the tiles that arrived last.

Before a join stands the tile that arrived last, before it what that tile ran since the join where
it began, and before that one the tile that arrived last there. The chain from the end of a run to
its begin is the critical path: it is as long as the run.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.waiting.segments import (
    NEVER,
    NONE,
    Joins,
    Kinds,
    Segments,
    joins_of,
    kinds_of,
    segments_of,
    used_sets,
)
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report

KEPT_STEPS = 100_000  # whose clocks take 15 MB


@dataclass(frozen=True, slots=True, eq=False)
class Clocks:
    """The replayed execution.

    ending        [join][tile set] its segment, -1 where it does not join the set
    arrival       [join][tile set][IPU] when the last tile of these arrives
    winner        [join][IPU] the place among (tile set, IPU) of what the IPU goes on with
    latest        [join][IPU] when the last tile arrives that the IPU waits for
    """

    joins: Joins
    segments: Segments
    kinds: Kinds
    ending: Integers
    arrival: Integers
    winner: Integers
    latest: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Segments on their IPU, later ones first; which chain it is, and the join that it ends in."""

    number: Integers
    join: Integers
    segment: Integers
    ipu: Integers


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """The parts of chains in time: a step on the tile that arrives last, or its way to a join.

    visit            place in the chain
    step             row of `steps`; that of the sync for the way to it, -1 for the end of a run
    is_way           whether it is the way to a join and back
    begin, end       on that tile
    """

    visit: Integers
    step: Integers
    is_way: npt.NDArray[np.bool_]
    begin: Integers
    end: Integers


def clocks_of(report: Report) -> Clocks:
    """Replay the recorded runs, once where they are short; raises NotRecordedError."""
    if report.dataset.length("steps") > KEPT_STEPS:
        return _replayed(report)
    return report.dataset.kept("clocks at joins", lambda _: _replayed(report))


def _replayed(report: Report) -> Clocks:
    joins = joins_of(report)
    segments = segments_of(report, joins)
    kinds = kinds_of(report, segments, joins)
    sets = used_sets(report)
    ipus = report.dataset.of_replica("num_ipus")
    ending = np.full((len(joins.step), len(sets)), NONE)
    arrival = np.full((len(joins.step), len(sets), ipus), NEVER)
    place = np.searchsorted(sets, segments.tile_set)
    ending[segments.ends, place] = np.arange(len(place))
    arrival[segments.ends, place] = segments.begin + kinds.arrival[segments.kind]
    winner = (arrival.argmax(axis=1) * ipus + np.arange(ipus)).astype(np.int32)
    latest = arrival.max(axis=1)
    flat = arrival.reshape(len(arrival), len(sets) * ipus)
    outside = joins.external
    winner[outside] = flat[outside].argmax(axis=1)[:, None]
    latest[outside] = flat[outside].max(axis=1)[:, None]
    return Clocks(joins, segments, kinds, ending, arrival, winner, latest)


def walk(clocks: Clocks, joins: Integers, ipus: Integers, until: Integers) -> Chain:
    """Follow chains back from joins, each on an IPU, until some time or the begin of the run."""
    count = clocks.latest.shape[1]
    starts = clocks.segments.begin + clocks.kinds.starts[clocks.segments.kind]
    begins = clocks.segments.begins
    visits = array("q")  # three numbers for each
    for number, (join, ipu) in enumerate(zip(joins.tolist(), ipus.tolist(), strict=True)):
        time = int(until[number])
        while join >= 0:
            tile_set, ipu = divmod(clocks.winner.item(join, ipu), count)
            segment = clocks.ending.item(join, tile_set)
            visits.extend((number, segment, ipu))
            join = begins.item(segment) if starts.item(segment, ipu) > time else NONE
    table = np.array(visits, dtype=np.int64).reshape(-1, 3)
    return Chain(table[:, 0], joins[table[:, 0]], table[:, 1], table[:, 2])


def items_of(clocks: Clocks, chain: Chain, heads: Integers, some: slice) -> Items:
    """Spell out in time `some` visits of chains; `heads` is when each chain ends, by visit."""
    segments, kinds = clocks.segments, clocks.kinds
    start = segments.begin[chain.segment, chain.ipu]
    start = start + kinds.starts[segments.kind[chain.segment], chain.ipu]
    later = np.append(False, chain.number[1:] == chain.number[:-1])[: len(start)]
    goes_on = np.where(later, np.append(0, start[:-1])[: len(start)], heads)[some]
    segment, ipu, start = chain.segment[some], chain.ipu[some], start[some]
    kind = segments.kind[segment]
    counts = kinds.stop_item[kind] - kinds.first_item[kind] + 1  # and the way to the join
    visit = np.repeat(np.arange(len(kind)), counts)
    number = np.arange(len(visit)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_way = number == counts[visit] - 1
    steps = np.flatnonzero(~is_way)
    item, at = (kinds.first_item[kind[visit]] + number)[steps], visit[steps]
    spent = np.zeros(len(visit), dtype=np.int64)
    spent[steps] = kinds.own[item, ipu[at]]
    step = clocks.joins.step[segments.ends[segment]][visit]
    step[steps] = segments.first[segment[at]] + kinds.place[item]
    run = np.cumsum(spent) - spent
    begin = start[visit] + run - run[np.cumsum(counts) - counts][visit]
    end = np.where(is_way, goes_on[visit], begin + spent)
    return Items(visit, step, is_way, begin, end)
