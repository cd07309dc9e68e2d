"""Runs of many instances with a culprit that is planted, as what analyses ask of a run.

Instances run in lockstep: nobody leaves step k before all came to its collective.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pva.formats.run_file import folder_name, write_instance
from tests.builders import write_trace_rows
from tests.many.runs import instance_file, write_instances

STEP = 10_000_000  # ns, of which a fifth each is between runs and in callbacks
HOUR = 3_600 * 10**9
LABELS = ("Engine::run", "StreamCallback images", "Collective AllReduce", "elsewhere")


@dataclass(frozen=True)
class Plan:
    """What to plant: by how many steps' length the culprit is late, in which of its phases."""

    instances: int = 16
    steps: int = 20
    culprit: int = -1
    phase: str = "between"
    late: float = 0.5
    share: float = 1.0  # of the steps in which it is late
    noise: float = 0.1
    collectives: bool = True
    hosts: int = 1
    apart: int = 0  # ns between the clocks of one host and the next


PHASES = ("between", "callback", "compute")
USUAL = {"between": 0.2, "callback": 0.2, "compute": 0.5}


def planted(plan: Plan, seed: int) -> Any:
    """Return a run of instances of this plan."""
    draw = np.random.default_rng(seed)
    size = (plan.instances, plan.steps)
    time = {name: STEP * USUAL[name] * (1 + plan.noise * np.abs(draw.standard_normal(size)))
            for name in PHASES}  # fmt: skip
    if plan.culprit >= 0:
        is_late = draw.random(plan.steps) < plan.share
        time[plan.phase][plan.culprit] += STEP * plan.late * is_late
    took = np.sum([time[name] for name in PHASES], axis=0)
    ends = np.cumsum(took.max(axis=0) + STEP * 0.05)  # all leave the collective together
    starts = np.concatenate([[0], ends[:-1]])
    begin = starts + time["between"]
    called = begin + time["callback"]
    arrived = called + time["compute"]
    whole = np.broadcast_to(ends, size)
    spans = [(begin, whole, 0), (begin, called, 1)]
    spans += [(arrived, whole, 2)] if plan.collectives else []
    hosts = [f"h{row * plan.hosts // plan.instances}" for row in range(plan.instances)]
    return SimpleNamespace(instances=[
        instance(row, hosts[row], [(b[row], e[row], label) for b, e, label in spans],
                 wall=10**18 + int(hosts[row][1:]) * plan.apart)
        for row in range(plan.instances)
    ])  # fmt: skip


def instance(row: int, host: str, spans: list[Any], wall: int, clock: int = 0) -> Any:
    """Return an instance with one thread of these events: begins, ends, number of the label."""
    begin = np.concatenate([one[0] for one in spans]).astype(np.int64)
    end = np.concatenate([one[1] for one in spans]).astype(np.int64)
    label = np.concatenate([np.full(len(one[0]), one[2], np.int32) for one in spans])
    order = np.argsort(begin, kind="stable")
    thread = Thread(begin[order], end[order], label[order])
    anchor = SimpleNamespace(wall_ns=wall, clock_ns=clock)
    trace = SimpleNamespace(
        labels=LABELS, anchor=anchor, read_threads=lambda: iter([thread]),
        duration_ns=int(end.max(initial=0)),
    )  # fmt: skip
    return SimpleNamespace(index=row, host=host, file=None, reports=[], trace=trace, problems=())


def write_planted(directory: Path, plan: Plan, seed: int = 0) -> Path:
    """Write such a run: the report of `tests.builders` and a trace in each directory."""
    write_instances(directory, plan.instances)
    for one in planted(plan, seed).instances:
        folder = directory / folder_name(one.index)
        thread, anchor = next(one.trace.read_threads()), one.trace.anchor
        write_instance(folder, replace(instance_file(one.index, 1), host=one.host))
        _write_trace(folder / f"Thu_Aug_27_{100 + one.index}.pvti", thread, anchor, one.index)
    return directory


def _write_trace(path: Path, thread: Any, anchor: Any, index: int) -> None:
    order = np.argsort(thread.end_ns, kind="stable")
    events = np.zeros(len(order), [("begin", "<u8"), ("took", "<u4"), ("label", "<u4")])
    events["begin"] = thread.begin_ns[order]
    events["took"] = (thread.end_ns - thread.begin_ns)[order]
    events["label"] = thread.label[order] + 1
    data, last = events.tobytes(), int(thread.end_ns.max())
    first = int(thread.begin_ns.min())
    rows: dict[str, list[tuple[object, ...]]] = {
        "processes": [(1, 100 + index, "train.py", 0, anchor.wall_ns, last, 1, 0)],
        "threads": [(1, 1, 8, "MainThread")],
        "channels": [(1, "Poplar")],
        "labels": [(number + 1, 1, label) for number, label in enumerate(LABELS)],
        "event_chunks": [(1, 1, len(order), first, last, zlib.crc32(data), data)],
    }
    write_trace_rows(path, rows)


@dataclass(frozen=True)
class Thread:
    """The columns of a thread."""

    begin_ns: Any
    end_ns: Any
    label: Any

    def __len__(self) -> int:
        return len(self.begin_ns)
