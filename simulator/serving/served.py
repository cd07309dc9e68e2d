"""A version of a model that is served: its queue, its instances, what they do with a batch.

Requests wait in `pva.queueing.waiting`, whose rules replays step through, too. An instance has a
program of its own and a thread, which takes a batch, joins its inputs, runs them and hands the
outputs out. A synchronous instance waits for its program; another hands the batch over and takes
the next one.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Event, Thread

import numpy as np

from pva.queueing.waiting import NEVER, Request, Waiting
from simulator.graph.types import Array
from simulator.model_runtime.memory import OutputMemory
from simulator.model_runtime.spans import event, is_recorded, span
from simulator.serving.model_config import Settings
from simulator.serving.program import Answer, Program, load_program
from simulator.serving.repository import Model, Version
from simulator.serving.statistics import Statistics

NS = 1e9
LONGEST_WAIT = 3600.0  # seconds
numbers = itertools.count(1)  # of batches


class RequestError(Exception):
    """A request that cannot be answered: why, by which of Triton's reasons, and HTTP's status.

    The text is one line, whatever of a client's is in it.
    """

    def __init__(self, text: str, reason: str = "OTHER", status: int = 400) -> None:
        super().__init__(" ".join(text.split()))
        self.reason, self.status = reason, status


@dataclass(frozen=True, slots=True)
class Result:
    """The outputs of a request, the batch that it was in, and when what happened (ns).

    `cycles` are those of the device for the steps that the request was part of.
    """

    outputs: Mapping[str, Array]
    rows: int
    cycles: int
    batch: int
    batch_rows: int
    padding: int
    instance: int
    queue_begin: int
    compute_begin: int
    input_end: int
    output_begin: int
    compute_end: int

    @property
    def parts(self) -> tuple[int, int, int, int]:
        """Return the times of queue, input, run and output."""
        return (
            self.compute_begin - self.queue_begin, self.input_end - self.compute_begin,
            self.output_begin - self.input_end, self.compute_end - self.output_begin,
        )  # fmt: skip


@dataclass(slots=True)
class Pending:
    """A request that waits: its inputs, and the future of its result."""

    inputs: Mapping[str, Array]
    future: Future[Result] = field(default_factory=Future)
    begun: Event | None = None  # set when its batch begins; only where that is recorded


Outcome = Result | RequestError


def _set(request: Request, outcome: Outcome) -> None:
    future = request.content.future
    if request.content.begun is not None:
        request.content.begun.set()
    if isinstance(outcome, RequestError):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


class Served:
    """A version with its instances. `close` answers what waits, then ends.

    The first instance writes what its device does to the directory `report`, if there is one.
    """

    def __init__(self, model: Model, version: Version, report: Path | None = None) -> None:
        self.settings: Settings = model.settings
        self.version = version
        self.name, self.number = self.settings.name, str(version.number)
        self.statistics = Statistics()
        self.waiting = Waiting(self.settings.rules)
        self.running = 0
        self._changed = Condition()  # may be taken again by its thread
        self._closed = False
        self._order: deque[Request] | None = deque() if self.settings.rules.in_order else None
        self._outcomes: dict[int, Outcome] = {}  # of requests that earlier ones hold back
        self.programs: list[Program] = []
        self._threads: list[Thread] = []
        try:
            for number in range(self.settings.instances):
                place = None if number else report
                self.programs.append(load_program(self.settings, version, place))
        except BaseException:
            for program in self.programs:
                program.close()
            raise

    @property
    def clock(self) -> float:
        """Return the clock of the devices, in hertz."""
        return self.programs[0].runner.clock_frequency

    def start(self) -> None:
        """Let the instances take requests."""
        rules = self.settings.rules
        event("model", {
            "model": self.name, "version": self.number, "max_batch_size": rules.most_rows,
            "dynamic": rules.dynamic, "preferred": sorted(rules.preferred),
            "delay_ns": rules.delay_ns, "instances": self.settings.instances,
            "compiled_rows": self.programs[0].rows, "clock": self.clock,
            "timeout_ns": self.settings.timeout_ns, "synchronous": self.settings.synchronous,
        })  # fmt: skip
        for number, program in enumerate(self.programs):
            wait = self.settings.wait_ns[number] / NS
            name = f"{self.name} {self.number} instance {number}"
            thread = Thread(target=self._serve, args=(number, program, wait), name=name,
                            daemon=True)  # fmt: skip
            self._threads.append(thread)
            thread.start()

    def submit(self, pending: Pending, rows: int, level: int, timeout_ns: int) -> Request:
        """Take a request in; raises RequestError where the queue is full or the model leaves."""
        with self._changed:
            if self._closed:
                raise RequestError(f"model {self.name!r} is being unloaded", status=503)
            request = Request(rows, time.perf_counter_ns(), level, timeout_ns, pending)
            pending.begun = Event() if is_recorded() else None
            self._expire(request.arrived_ns)
            if not self.waiting.add(request):
                text = f"model {self.name!r}: its queue is full (max_queue_size)"
                raise RequestError(text, "REJECTED", 503)
            if self._order is not None:
                self._order.append(request)
            self._changed.notify()
        return request

    def withdraw(self, request: Request) -> bool:
        """Take out a request that nobody waits for; return whether it was still in the queue."""
        with self._changed:
            removed = self.waiting.remove(request)
        if removed:
            self.deliver(request, RequestError("the request was cancelled", "CANCELED", 499))
        return removed

    def deliver(self, request: Request, outcome: Outcome) -> None:
        """Answer a request; where answers keep the order of arrival, once those before it are."""
        if self._order is None:
            _set(request, outcome)
            return
        with self._changed:
            self._outcomes[id(request)] = outcome
            while self._order and id(self._order[0]) in self._outcomes:
                first = self._order.popleft()
                _set(first, self._outcomes.pop(id(first)))

    def close(self) -> None:
        """Answer what waits, then end the instances."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        for program in self.programs:
            program.close()

    def _serve(self, instance: int, program: Program, wait: float) -> None:
        while (group := self._next()) is not None:
            if wait:
                time.sleep(wait)
            self._run(instance, program, group)

    def _next(self) -> list[Request] | None:
        """Wait for the next batch; None once the model is closed and nothing waits."""
        with self._changed:
            while True:
                now = time.perf_counter_ns()
                self._expire(now)
                group, due = self.waiting.take(now)
                if group:
                    self.running += len(group)
                    return group
                if self._closed and not self.waiting.count:
                    return None
                seconds = (due - now) / NS if due < NEVER else LONGEST_WAIT
                self._changed.wait(min(max(seconds, 0), LONGEST_WAIT))

    def _expire(self, now: int) -> None:
        for request in self.waiting.expire(now):
            text = f"model {self.name!r}: the request waited longer than its timeout"
            self.deliver(request, RequestError(text, "REJECTED", 503))

    def _run(self, instance: int, program: Program, group: Sequence[Request]) -> None:
        """Run a batch and hand its outputs out; a failure is that of each of its requests."""
        batch = Batch(self, next(numbers), group, instance)
        tags = {"model": self.name, "version": self.number, "batch": batch.number,
                "rows": batch.rows, "requests": len(group)}  # fmt: skip
        with span("batch", tags):
            self._run_batch(program, batch)

    def _run_batch(self, program: Program, batch: Batch) -> None:
        try:
            inputs = batch.joined()
            if self.settings.synchronous or not program.batched:
                batch.finish(program.run(inputs))
            else:
                future = program.start(inputs)
                future.add_done_callback(batch.when_done(program))
        except Exception as error:
            batch.fail(error)


class Batch:
    """Requests that run together."""

    def __init__(
        self, served: Served, number: int, group: Sequence[Request], instance: int
    ) -> None:
        self.served, self.number, self.group, self.instance = served, number, group, instance
        self.rows = sum(request.rows for request in group)
        self.begin = self.input_end = time.perf_counter_ns()
        for request in group:
            if request.content.begun is not None:
                request.content.begun.set()

    def joined(self) -> dict[str, Array]:
        """Return the inputs of all requests, one behind the other."""
        parts = [request.content.inputs for request in self.group]
        first = parts[0]
        inputs = (
            dict(first)
            if len(parts) == 1
            else {name: np.concatenate([part[name] for part in parts]) for name in first}
        )
        self.input_end = time.perf_counter_ns()
        return inputs

    def when_done(self, program: Program) -> Callable[[Future[OutputMemory]], None]:
        """Return what takes the future of a program."""

        def done(future: Future[OutputMemory]) -> None:
            try:
                self.finish(program.answer(future.result()))
            except Exception as error:
                self.fail(error)

        return done

    def finish(self, answer: Answer) -> None:
        """Cut the outputs by request, and answer each."""
        output_begin = time.perf_counter_ns()
        place, outputs = 0, [answer.outputs]
        if len(self.group) > 1:
            outputs = []
            for request in self.group:
                end = place + request.rows
                outputs.append({n: v[place:end] for n, v in answer.outputs.items()})
                place = end
        end_ns = time.perf_counter_ns()
        times = (self.input_end - self.begin, output_begin - self.input_end, end_ns - output_begin)
        self.served.statistics.executed(self.rows, times, answer.cycles)
        with self.served._changed:
            self.served.running -= len(self.group)
        for request, mine in zip(self.group, outputs, strict=True):
            result = Result(
                mine, request.rows, answer.cycles, self.number, self.rows, answer.padding,
                self.instance, request.arrived_ns,
                self.begin, self.input_end, output_begin, end_ns,
            )  # fmt: skip
            self.served.deliver(request, result)

    def fail(self, error: Exception) -> None:
        """Answer all requests by an error."""
        with self.served._changed:
            self.served.running -= len(self.group)
        for request in self.group:
            text = f"model {self.served.name!r}: {' '.join(str(error).split())}"
            self.served.deliver(request, RequestError(text, "BACKEND", 500))
