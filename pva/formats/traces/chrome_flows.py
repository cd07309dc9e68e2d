"""The flows of Chrome trace JSON: arrows from the points of events to those that they lead to.

A flow is what has one category, name and identity. It starts (`s`), passes (`t`) and ends (`f`);
each pass and end is led to by the start or pass before it, so that a launch of many kernels has an
arrow to each. A clock of a device may be behind: what stands before all starts of its flow is led
to by the first of them. Source: "Trace Event Format", the document of the Catapult project.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers
from pva.formats.builders import Codes, Growing

# Of the table `flows`: which column refers to rows of which other table.
REFERENCES = {"label": "labels", "thread": "threads", "to_thread": "threads"}


@dataclass
class FlowPoints:
    """Where flows start, pass and end, in the order of the file. Times in nanoseconds."""

    phase: Growing = field(default_factory=lambda: Growing(np.uint8))
    time: Growing = field(default_factory=lambda: Growing(np.int64))
    lane: Growing = field(default_factory=lambda: Growing(np.int32))
    label: Growing = field(default_factory=lambda: Growing(np.int32))
    identity: Growing = field(default_factory=lambda: Growing(np.int64))


class Arrows(NamedTuple):
    """Arrows in the order of their begin, and how many points have none."""

    label: Codes
    lane: Codes
    time: Integers
    to_lane: Codes
    to_time: Integers
    alone: int  # passes and ends without a start


def arrows(points: FlowPoints, start: int, end: int) -> Arrows:
    """Return the arrows of all flows, and let go of the points; `start`, `end` are phases."""
    phase, time = points.phase.taken(), points.time.taken()
    lane, label, identity = (
        column.taken() for column in (points.lane, points.label, points.identity)
    )
    order = np.lexsort((phase, time, identity, label))
    phase, label, identity = phase[order], label[order], identity[order]
    count = len(order)
    first_of_flow = np.ones(count, np.bool_)
    first_of_flow[1:] = (label[1:] != label[:-1]) | (identity[1:] != identity[:-1])
    flow = np.cumsum(first_of_flow) - 1
    leads = phase != end
    origin = _origins(leads, flow)
    led = np.flatnonzero((phase != start) & (origin >= 0))
    alone = int(np.count_nonzero(phase != start)) - len(led)
    led = led[np.argsort(time[order[origin[led]]], kind="stable")]
    begins, ends = order[origin[led]], order[led]
    return Arrows(label[led], lane[begins], time[begins], lane[ends], time[ends], alone)


def _origins(leads: npt.NDArray[np.bool_], flow: Integers) -> Integers:
    """Return for each point that which leads to it, -1 where none does; flows stand together."""
    place = np.arange(len(leads))
    before = np.maximum.accumulate(np.where(leads, place, -1))
    before = np.concatenate(([-1], before[:-1])) if len(leads) else before
    first = np.full(int(flow[-1]) + 1 if len(flow) else 0, -1)
    origins = place[leads][::-1]
    first[flow[origins]] = origins  # the first of each flow is put last
    same = (before >= 0) & (flow[before] == flow)
    later = np.where(first[flow] > place, first[flow], -1)
    return np.where(same, before, later)
