"""A served model by brute force: each microsecond is looked at, with lists and nothing clever.

Independent of `pva.queueing`: the rules of Triton's batcher are written down a second time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Case:
    """A model, its device and arrivals; all times in microseconds."""

    most: int
    dynamic: bool
    preferred: list[int]
    delay: int
    levels: int
    limit: int
    timeout: int
    late: bool
    in_order: bool
    compiled: int
    batch: int
    instances: int
    flush: int
    synchronous: bool
    wait: int
    at: list[int]
    rows: list[int]
    level: list[int]


@dataclass
class One:
    """A request on its way."""

    number: int
    at: int
    rows: int
    level: int
    late_since: int = -1


@dataclass
class Instance:
    """An instance: until when it is not idle, and the rows at its device."""

    number: int
    free: int = -1
    device_free: int = 0
    rows: list[tuple[int, int]] = field(default_factory=list)  # (when it is there, request)


def simulate(case: Case) -> dict[int, tuple[int, int, int]]:
    """Return each request's way: how it left, when it was sent and when it left."""
    queue: list[One] = []
    instances = [Instance(number) for number in range(case.instances)]
    sent: dict[int, int] = {}
    left: dict[int, tuple[int, int, int]] = {}
    time = 0
    while len(left) < len(case.at):
        queue = expired(case, queue, time, left)
        for number, at in enumerate(case.at):
            if at == time:
                level = case.level[number] if case.levels else 0
                here = sum(1 for one in queue if one.level == level)
                if case.limit and here >= case.limit:
                    left[number] = (2, time, time)
                else:
                    queue.append(One(number, at, case.rows[number], level))
        while ready := [one for one in instances if one.free <= time]:
            instance = min(ready, key=lambda one: (one.free, one.number))
            batch = next_batch(case, queue, time)
            if not batch:
                break
            queue = [one for one in queue if one not in batch]
            send(case, instance, batch, time, sent, left)
        if not case.synchronous:
            for instance in instances:
                step_device(case, instance, time, sent, left)
        time += 1
    return answered_in_order(left) if case.in_order else left


def expired(case: Case, queue: list[One], time: int, left: dict) -> list[One]:
    """Reject or mark the requests that have waited as long as they may."""
    kept = []
    for one in queue:
        if case.timeout and time - one.at >= case.timeout and one.late_since < 0:
            if not case.late:
                left[one.number] = (1, one.at + case.timeout, one.at + case.timeout)
                continue
            one.late_since = time
        kept.append(one)
    return kept


def next_batch(case: Case, queue: list[One], time: int) -> list[One]:
    """Return the batch that is sent now, or none."""
    ordered = sorted(queue, key=lambda one: (one.level, one.late_since >= 0, one.at, one.number))
    if not case.dynamic or not ordered:
        return ordered[:1]
    groups = [ordered[:count] for count in range(1, len(ordered) + 1)]
    groups = [group for group in groups if sum(one.rows for one in group) <= case.most]
    liked = [group for group in groups if sum(one.rows for one in group) in case.preferred]
    if liked:
        return liked[-1]
    group = groups[-1]
    cannot_grow = len(group) < len(ordered) or sum(one.rows for one in group) == case.most
    if cannot_grow or any(time - one.at >= case.delay for one in group):
        return group
    return []


def send(case: Case, instance: Instance, batch: list[One], time: int, sent: dict, left: dict):
    """Send a batch: a synchronous instance is busy until the end of its last piece."""
    for one in batch:
        sent[one.number] = time
    instance.free = time + case.wait
    if not case.synchronous:
        instance.rows += [(instance.free, one.number) for one in batch for _ in range(one.rows)]
        return
    rows = sum(one.rows for one in batch)
    device = instance.free
    while rows >= case.compiled:
        device += case.batch
        rows -= case.compiled
    if rows:
        device += case.flush + case.batch
    instance.free = device
    for one in batch:
        left[one.number] = (0, time, device)


def step_device(case: Case, instance: Instance, time: int, sent: dict, left: dict) -> None:
    """Begin a piece where the device is free and one is full, or has waited."""
    while instance.device_free <= time:
        there = [row for row in instance.rows if row[0] <= time][: case.compiled]
        ready = max(there[0][0], instance.device_free) if there else 0
        if not there or (len(there) < case.compiled and time - ready < case.flush):
            return
        instance.rows = instance.rows[len(there) :]
        instance.device_free = time + case.batch
        waiting = {number for _, number in instance.rows}
        for _, number in there:
            if number not in waiting:
                left[number] = (0, sent[number], time + case.batch)


def answered_in_order(left: dict[int, tuple[int, int, int]]) -> dict[int, tuple[int, int, int]]:
    """Hold an answer back until those of earlier requests are out."""
    latest = -math.inf
    for number in sorted(left):
        how, sent, done = left[number]
        if how == 0:
            latest = max(latest, done)
            left[number] = (how, sent, int(latest))
    return left
