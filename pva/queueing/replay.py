"""A served model without a clock: arrivals and the time of a batch in, each request's way out.

Discrete events with integer nanoseconds: exact, and the same each time. A model has instances with
a device each. A batch of requests goes to the instance that has been idle longest (of equals the
lowest number), which cuts it into the rows that the program was compiled for and fills up the last
piece. All requests of one instant are in the queue before a batch is made at that instant.

* A synchronous instance takes its next batch when the device is done with the last one. An
  incomplete piece waits `flush_ns` before it is filled up, though no other rows can come.
* An asynchronous one hands its rows over at once. The device joins rows of several batches. When it
  is idle and has some rows, it waits `flush_ns` for a full piece, then fills up what there is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace

import numpy as np

from pva.array_types import Integers
from pva.errors import PvaError
from pva.queueing.rules import Rules, batch_of
from pva.queueing.waiting import NEVER, Request, Waiting

DONE, REJECTED, REFUSED = 0, 1, 2  # ways a request leaves: answered, timed out, queue full
MAX_ROWS = 50_000_000  # of all requests that an asynchronous device takes one by one


@dataclass(frozen=True, slots=True)
class Device:
    """What runs batches: `rows` and time of a compiled batch, and how instances use it.

    `wait_ns` is what an instance waits before a batch, by instance (`execute_delay_ms`); those
    beyond it do not wait.
    """

    batch_ns: int
    rows: int = 1
    instances: int = 1
    flush_ns: int = 0
    synchronous: bool = True
    wait_ns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.batch_ns < 1 or self.rows < 1 or self.instances < 1 or self.flush_ns < 0:
            remedy = "a time, rows and instances from 1 on"
            raise PvaError("device", "a number that is too small", remedy)

    def pieces(self, rows: int) -> int:
        """Return how many compiled batches so many rows take."""
        return -(-rows // self.rows)

    def busy_ns(self, rows: int) -> int:
        """Return how long a synchronous instance takes for a batch, without its `wait_ns`."""
        full, incomplete = divmod(rows, self.rows)
        return full * self.batch_ns + (self.flush_ns + self.batch_ns if incomplete else 0)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When requests arrive, in order, and their rows; levels and timeouts where they have any."""

    at_ns: Integers
    rows: Integers
    level: Integers | None = None
    timeout_ns: Integers | None = None

    def __post_init__(self) -> None:
        if len(self.at_ns) and (np.diff(self.at_ns) < 0).any():
            raise PvaError("arrivals", "times that go back", "arrivals in order of time")
        if (self.rows < 1).any():
            place = f"request {int(np.argmax(self.rows < 1))}"
            raise PvaError("arrivals", "no rows", "rows from 1 on", place=place)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Each request: how it left, its batch (-1: none), when it was sent, ran and was answered.

    Each batch: its instance, rows, requests, when it was sent and done. Each piece, which is a
    compiled batch on a device: instance, rows that are real, when it ran. Times in nanoseconds.
    """

    arrivals: Arrivals
    device: Device
    how: Integers
    batch: Integers
    sent_ns: Integers
    run_ns: Integers
    answered_ns: Integers
    batch_instance: Integers
    batch_rows: Integers
    batch_requests: Integers
    batch_sent_ns: Integers
    piece_instance: Integers
    piece_rows: Integers
    piece_begin_ns: Integers


@dataclass(frozen=True, slots=True)
class Sent:
    """Batches in the order in which they were sent; `order` has the requests, batch by batch."""

    instance: list[int]
    count: list[int]
    at: list[int]
    order: Integers | None = None
    how: Integers | None = None
    left_ns: Integers | None = None


def replay(arrivals: Arrivals, rules: Rules, device: Device) -> Outcome:
    """Replay arrivals against the rules of a batcher and a device; raises PvaError."""
    most = rules.most_rows if rules.dynamic else max(rules.most_rows, 1)
    if len(arrivals.rows) and (worst := int(arrivals.rows.max())) > most:
        place = f"request {int(np.argmax(arrivals.rows > most))}"
        raise PvaError("arrivals", f"{worst} rows", f"at most max_batch_size, {most}", place=place)
    waits = (*device.wait_ns, *(0,) * device.instances)

    def busy(instance: int, rows: int) -> int:
        return waits[instance] + (device.busy_ns(rows) if device.synchronous else 0)

    plain = rules.is_plain and arrivals.level is None and arrivals.timeout_ns is None
    send = _send if plain else _send_by_events
    return _outcome(arrivals, device, rules, send(arrivals, rules, device.instances, busy), waits)


def _send(
    arrivals: Arrivals,
    rules: Rules,
    instances: int,
    busy: Callable[[int, int], int],
    from_idle: bool = False,
) -> Sent:
    """Send all requests in their order: from batch to batch, not from event to event.

    With `from_idle` a delay counts from when a batch could be sent, not from its oldest request.
    """
    at = arrivals.at_ns.tolist()
    totals = np.cumsum(arrivals.rows).tolist()
    sizes = (rules.most_rows, *rules.preferred)
    idle = [(-1, instance) for instance in range(instances)]
    heapify(idle)
    sent = Sent([], [], [])
    first = last = base = now = 0
    while first < len(at):
        since, instance = idle[0]
        now = max(now, since, at[first])
        last = bisect_right(at, now, max(last, first + 1))
        count, is_full = batch_of(totals, rules, first, last, base)
        due = (now if from_idle else at[first]) + rules.delay_ns
        if not is_full and now < due:
            now = _completed(at, totals, sizes, last, base, due)
            last = bisect_right(at, now, last)
            count, _ = batch_of(totals, rules, first, last, base)
        first += count
        rows = totals[first - 1] - base
        base += rows
        heapreplace(idle, (now + busy(instance, rows), instance))
        sent.instance.append(instance)
        sent.count.append(count)
        sent.at.append(now)
    return sent


def _completed(
    at: list[int], totals: list[int], sizes: tuple[int, ...], last: int, base: int, due: int
) -> int:
    """Return when an arrival completes a held batch, or when it is due if none does before."""
    moment = due
    for number, size in enumerate(sizes):
        place = bisect_left(totals, base + size, last)
        if place < len(at) and (number == 0 or totals[place] == base + size):
            moment = min(moment, at[place])
    return moment


def _send_by_events(
    arrivals: Arrivals, rules: Rules, instances: int, busy: Callable[[int, int], int]
) -> Sent:
    """Send requests with levels, limits and timeouts: from event to event, as a server does."""
    waiting, count = Waiting(rules), len(arrivals.at_ns)
    idle = [(-1, instance) for instance in range(instances)]
    how, left_ns = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    sent, order = Sent([], [], [], how=how, left_ns=left_ns), []
    requests = _requests(arrivals)
    upcoming, now, due = 0, 0, NEVER
    while upcoming < count or waiting.count:
        coming = requests[upcoming].arrived_ns if upcoming < count else NEVER
        now = max(now, min(coming, max(due, idle[0][0])))
        for request in waiting.expire(now):
            how[request.content], left_ns[request.content] = REJECTED, request.expires_ns
        while upcoming < count and requests[upcoming].arrived_ns <= now:
            if not waiting.add(requests[upcoming]):
                how[upcoming], left_ns[upcoming] = REFUSED, now
            upcoming += 1
        due = NEVER if not waiting.count else now
        while idle[0][0] <= now and waiting.count:
            group, due = waiting.take(now)
            if not group:
                break
            instance = idle[0][1]
            rows = sum(request.rows for request in group)
            heapreplace(idle, (now + busy(instance, rows), instance))
            sent.instance.append(instance)
            sent.count.append(len(group))
            sent.at.append(now)
            order += [request.content for request in group]
    return replace(sent, order=np.array(order, np.int64))


def _requests(arrivals: Arrivals) -> list[Request]:
    zeros = np.zeros_like(arrivals.at_ns)
    level = zeros if arrivals.level is None else arrivals.level
    timeout = zeros if arrivals.timeout_ns is None else arrivals.timeout_ns
    columns = (arrivals.rows, arrivals.at_ns, level, timeout)
    rows_of = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Request(rows, at, level, wait, number)
        for number, (rows, at, level, wait) in enumerate(rows_of)
    ]


def _outcome(
    arrivals: Arrivals, device: Device, rules: Rules, sent: Sent, waits: tuple[int, ...]
) -> Outcome:
    """Put together what batches and devices did, by request."""
    count = len(arrivals.at_ns)
    counts = np.array(sent.count, np.int64)
    order = np.arange(int(counts.sum())) if sent.order is None else sent.order
    how = np.zeros(count, np.int64) if sent.how is None else sent.how
    batch, sent_ns = np.full(count, -1, np.int64), np.array(arrivals.at_ns)
    left_ns = sent.left_ns if sent.left_ns is not None else sent_ns
    sent_ns[how != DONE] = left_ns[how != DONE]
    batch[order] = np.repeat(np.arange(len(counts)), counts)
    batch_sent = np.array(sent.at, np.int64)
    sent_ns[order] = np.repeat(batch_sent, counts)
    ends = np.cumsum(arrivals.rows[order])
    bounds = np.cumsum(counts)
    batch_rows = np.diff(ends[bounds - 1], prepend=0) if len(counts) else bounds
    instance = np.array(sent.instance, np.int64)
    begins = batch_sent + np.array(waits, np.int64)[instance]
    run = _synchronous if device.synchronous else _asynchronous
    rows_of = (arrivals.rows[order], counts)
    run_begin, run_end, pieces = run(device, instance, begins, batch_rows, *rows_of)
    run_ns, answered = sent_ns.copy(), sent_ns.copy()
    run_ns[order], answered[order] = run_begin, run_end
    if rules.in_order and len(order):
        in_order = np.sort(order)
        answered[in_order] = np.maximum.accumulate(answered[in_order])
    return Outcome(arrivals, device, how, batch, sent_ns, run_ns, answered, instance, batch_rows,
                   counts, batch_sent, *pieces)  # fmt: skip


Run = tuple[Integers, Integers, tuple[Integers, Integers, Integers]]


def _synchronous(
    device: Device, instance: Integers, begins: Integers, batch_rows: Integers, rows: Integers,
    counts: Integers,
) -> Run:  # fmt: skip
    """Run each batch by itself; its requests are answered together, when its last piece is done."""
    pieces = -(-batch_rows // device.rows)
    incomplete = batch_rows % device.rows
    full = (batch_rows // device.rows) * device.batch_ns
    last = begins + np.where(incomplete > 0, full + device.flush_ns, full)
    ends = last + np.where(incomplete > 0, device.batch_ns, 0)
    first = np.where(pieces > 1, begins, ends - device.batch_ns)
    owner = np.repeat(np.arange(len(pieces)), pieces)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    piece_rows = np.minimum(batch_rows[owner] - number * device.rows, device.rows)
    piece_begin = begins[owner] + number * device.batch_ns
    piece_begin = np.where(piece_rows < device.rows, last[owner], piece_begin)
    return (np.repeat(first, counts), np.repeat(ends, counts),
            (instance[owner], piece_rows, piece_begin))  # fmt: skip


def _asynchronous(
    device: Device, instance: Integers, begins: Integers, batch_rows: Integers, rows: Integers,
    counts: Integers,
) -> Run:  # fmt: skip
    """Run rows of an instance in their order, joined over batches; each request by its own rows."""
    if rows.sum() > MAX_ROWS:
        raise PvaError("arrivals", f"{int(rows.sum()):,} rows", f"at most {MAX_ROWS:,} at once")
    first, end = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    by_request = np.repeat(instance, counts)
    arrived = np.repeat(begins, counts)
    pieces: list[tuple[Integers, Integers, Integers]] = []
    rules = Rules(device.rows, True, (), device.flush_ns)
    for one in range(device.instances):
        mine = np.flatnonzero(by_request == one)
        single = np.repeat(arrived[mine], rows[mine])
        sent = _send(Arrivals(single, np.ones_like(single)), rules, 1,
                     lambda _instance, _rows: device.batch_ns, from_idle=True)  # fmt: skip
        piece_rows, piece_begin = np.array(sent.count, np.int64), np.array(sent.at, np.int64)
        piece = np.repeat(np.arange(len(piece_rows)), piece_rows)
        ends = np.cumsum(rows[mine])
        first[mine] = piece_begin[piece[ends - rows[mine]]] if len(mine) else 0
        end[mine] = piece_begin[piece[ends - 1]] + device.batch_ns if len(mine) else 0
        pieces.append((np.full(len(piece_rows), one), piece_rows, piece_begin))
    joined = [np.concatenate(column) for column in zip(*pieces, strict=True)]
    return first, end, (joined[0], joined[1], joined[2])


def queue_lengths(outcome: Outcome) -> tuple[Integers, Integers]:
    """Return how many requests wait, as steps: times, and the number from each of them on."""
    queued = outcome.how != REFUSED
    times = np.concatenate([outcome.arrivals.at_ns[queued], outcome.sent_ns[queued]])
    change = np.repeat([1, -1], int(queued.sum()))
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(change[order])
