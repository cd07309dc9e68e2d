"""The host events of the instances of a run: runs of programs, callbacks, and collectives.

A collective is what instances do together, so that all end it at one moment: labels that begin with
`Collective`, and what PyTorch and NCCL call theirs. Times in nanoseconds since each trace began.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report
    from pva.trace import Trace


RUN, CALLBACK, COLLECTIVE = "run", "callback", "collective"
KINDS = {
    RUN: re.compile(r"Engine::run"),
    CALLBACK: re.compile(r"StreamCallback\b.*"),
    COLLECTIVE: re.compile(
        r"Collective\b.*|.*(all_?reduce|all_?gather|reduce_?scatter|barrier)\b.*", re.IGNORECASE
    ),
}


class Instance(Protocol):
    """One instance of a run, as `pva.openRun` has it."""

    @property
    def index(self) -> int:
        """Its number."""

    @property
    def host(self) -> str:
        """The host that it ran on, empty where nothing says so."""

    @property
    def file(self) -> Any:
        """What it says about itself, or None."""

    @property
    def reports(self) -> Sequence[Report]:
        """Its reports."""

    @property
    def trace(self) -> Trace | None:
        """Its host trace."""

    @property
    def problems(self) -> Sequence[str]:
        """What could not be read."""


@runtime_checkable
class SeveralInstances(Protocol):
    """The instances of a run, as `pva.openRun` gives them."""

    @property
    def instances(self) -> Sequence[Instance]:
        """All of them, by number."""


@dataclass(frozen=True, slots=True)
class Events:
    """Some events of an instance, sorted by begin; `wall_ns` is when its trace began, 0 if unknown.

    `clock_ns` is the same moment on the monotonic clock of its host, 0 if unknown.
    """

    instance: int
    host: str
    wall_ns: int
    clock_ns: int
    spans: dict[str, tuple[Integers, Integers]]  # begin and end of the events of each kind

    def of(self, kind: str) -> tuple[Integers, Integers]:
        """Return begin and end of the events of a kind."""
        return self.spans[kind]


def host_events(run: SeveralInstances, kinds: dict[str, re.Pattern[str]] = KINDS) -> list[Events]:
    """Return the events whose whole labels are of these kinds, of each instance with a trace.

    Of callbacks those on a thread that runs programs: others go on beside them.
    """
    return [_events(one, one.trace, kinds) for one in run.instances if one.trace is not None]


def _events(one: Instance, trace: Trace, kinds: dict[str, re.Pattern[str]]) -> Events:
    names = tuple(kinds)
    code = np.array([_kind(label, kinds) for label in trace.labels], np.int8)
    parts: dict[str, list[tuple[Integers, Integers]]] = {name: [] for name in names}
    for thread in trace.read_threads():
        kind = code[thread.label] if len(thread) else np.zeros(0, np.int8)
        for number, name in enumerate(names):
            rows = np.flatnonzero(kind == number)
            runs = RUN not in names or (kind == names.index(RUN)).any()
            if len(rows) and (name != CALLBACK or runs):
                parts[name].append((thread.begin_ns[rows], thread.end_ns[rows]))
    wall, clock = _anchor(one, trace)
    return Events(one.index, one.host, wall, clock, {n: _sorted(part) for n, part in parts.items()})


def _kind(label: str, kinds: dict[str, re.Pattern[str]]) -> int:
    for number, pattern in enumerate(kinds.values()):
        if pattern.fullmatch(label):
            return number
    return -1


def _sorted(parts: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    begin, end = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(begin, kind="stable")
    return begin[order], end[order]


def _anchor(one: Instance, trace: Trace) -> tuple[int, int]:
    """Return when a trace began on both clocks: as it says, else as its instance wrote."""
    wall, clock = trace.anchor.wall_ns, trace.anchor.clock_ns
    if wall <= 0 < clock and one.file is not None:
        wall = one.file.begin.wall_ns + clock - one.file.begin.clock_ns
    return max(wall, 0), max(clock, 0)
