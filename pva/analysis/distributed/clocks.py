"""One clock for the instances of a run, and how far it can be trusted.

Instances of one host lie by its wall clock. Between hosts clocks differ: what instances do together
(collectives) ends for all at one moment, so the median difference of these ends is the difference
of two clocks, and how far they scatter around it is the residual. Nothing finer than it is real.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.distributed.events import (
    COLLECTIVE,
    Events,
    SeveralInstances,
    host_events,
)
from pva.analysis.table import Columns, whole_numbers
from pva.array_types import Integers

ORDER = 450  # of its analyses in the catalogue
FEWEST = 3  # collectives that show how two clocks differ
MOST = 0.9  # of the differences lie within the residual
SAME = 10**9  # ns by which a wall clock may move while instances of its host begin
NO_ANCHOR = "its trace tells no wall clock, so its times are not compared"
NO_EVENTS = (
    "no {} collectives that it ends together with instance {}, so its times are not compared"
)


@dataclass(frozen=True, slots=True)
class Clock:
    """How the times of an instance come to those of the run: `begin_ns` is added to them.

    `begin_ns` is None where they cannot be compared, and `problem` says why.
    """

    instance: int
    host: str
    method: str
    offset_ns: int = 0
    residual_ns: int = 0
    events: int = 0
    problem: str = ""
    begin_ns: int | None = None


@analysis(
    "instance host method offset_ns:ns residual_ns:ns events problem",
    events="collectives that were matched",
)
def clock_residual(run: SeveralInstances) -> Columns:
    """Return how the clocks of instances were compared, and how far off they may be.

    A row for each instance with a host trace. `method`: reference, wall clock (of the same host),
    matched collectives (of another one), or none. `offset_ns` was added to its wall clock,
    `events` were matched; nine of ten of them end within `residual_ns`, on one host it is how far
    its wall clock moved. Nothing finer than the residual is real. `problem` says why there is none.
    """
    clocks = compared(host_events(run))
    is_compared = [clock.begin_ns is not None for clock in clocks]
    offsets, residuals = (
        whole_numbers(getattr(clock, name) if shown else None
                      for clock, shown in zip(clocks, is_compared, strict=True))
        for name in ("offset_ns", "residual_ns")
    )  # fmt: skip
    return {
        "instance": np.array([clock.instance for clock in clocks], np.int64),
        "host": [clock.host for clock in clocks],
        "method": [clock.method for clock in clocks],
        "offset_ns": offsets,
        "residual_ns": residuals,
        "events": np.array([clock.events for clock in clocks], np.int64),
        "problem": [clock.problem for clock in clocks],
    }


def compared(events: Sequence[Events]) -> list[Clock]:
    """Compare the clocks of instances; times of a run count from its first trace."""
    timed = [one for one in events if one.wall_ns]
    groups = _hosts(timed)
    clocks: dict[int, Clock] = {
        one.instance: Clock(one.instance, one.host, "none", problem=NO_ANCHOR) for one in events
    }
    ends = {one.instance: one.wall_ns + np.sort(one.of(COLLECTIVE)[1]) for one in timed}
    for number, group in enumerate(groups):
        clocks |= _of_host(group, groups[0] if number else [], ends)
    placed = {one.instance: one.wall_ns + clocks[one.instance].offset_ns for one in timed
              if not clocks[one.instance].problem}  # fmt: skip
    base = min(placed.values(), default=0)
    return [_placed(clocks[one.instance], placed.get(one.instance), base) for one in events]


def residual_ns(clocks: Iterable[Clock]) -> int:
    """Return how far apart two moments on different instances must be to be told apart."""
    return max((one.residual_ns for one in clocks if one.begin_ns is not None), default=0)


def _placed(clock: Clock, begin: int | None, base: int) -> Clock:
    at = None if begin is None else begin - base
    return Clock(clock.instance, clock.host, clock.method, clock.offset_ns, clock.residual_ns,
                 clock.events, clock.problem, at)  # fmt: skip


def _hosts(events: Iterable[Events]) -> list[list[Events]]:
    """Group instances that share a clock: one host, whose wall clock was not set between them."""
    groups: list[list[Events]] = []
    for one in events:
        for group in groups:
            if group[0].host == one.host and abs(_moved(group[0], one)) < SAME:
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _moved(first: Events, second: Events) -> int:
    """Return by how much the wall clock of a host moved between the begins of two traces."""
    if not (first.clock_ns and second.clock_ns):
        return 0
    return (second.wall_ns - second.clock_ns) - (first.wall_ns - first.clock_ns)


def _of_host(
    group: list[Events], reference: list[Events], ends: dict[int, Integers]
) -> dict[int, Clock]:
    moved = {one.instance: abs(_moved(group[0], one)) for one in group}
    if not reference:
        first = group[0].instance
        words = {one.instance: "reference" if one.instance == first else "wall clock"
                 for one in group}  # fmt: skip
        return {one.instance: Clock(one.instance, one.host, words[one.instance],
                                    residual_ns=moved[one.instance]) for one in group}  # fmt: skip
    reference_ends = [ends[one.instance] for one in reference]
    differences = [_differences(ends[one.instance], reference_ends) for one in group]
    every = np.concatenate(differences)
    if len(every) < FEWEST:
        problem = NO_EVENTS.format(FEWEST, reference[0].instance)
        return {one.instance: Clock(one.instance, one.host, "none", problem=problem)
                for one in group}  # fmt: skip
    offset = -round(float(np.median(every)))
    residual = round(float(np.quantile(np.abs(every + offset), MOST)))
    return {
        one.instance: Clock(one.instance, one.host, "matched collectives", offset,
                            max(residual, moved[one.instance]), len(ends_ns))
        for one, ends_ns in zip(group, differences, strict=True)
    }  # fmt: skip


def _differences(ends: Integers, reference: list[Integers]) -> Integers:
    """Return by how much the nth collective ends later than on the reference, for each n."""
    count = min(len(ends), max(map(len, reference), default=0))
    references = [one[:count] for one in reference if len(one) >= count]
    if not count:
        return np.zeros(0, np.int64)
    first = references[0]  # whole numbers: wall clocks are too large for floats
    offsets = np.median(np.stack([one - first for one in references]), axis=0)
    difference: Integers = ends[:count] - first - offsets.astype(np.int64)
    return difference
