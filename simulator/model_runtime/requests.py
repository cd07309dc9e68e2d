"""Requests that wait for a program, and how they are cut and filled into its batches."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.model_runtime.memory import DataDesc, OutputMemory
from simulator.model_runtime.spans import span


@dataclass(slots=True, eq=False)
class Request:
    """Inputs of so many rows, and the arrays that get those of the outputs.

    `answer` has the same outputs as the user gets them. `taken` rows are under way.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    rows: int
    answer: OutputMemory
    future: Future[OutputMemory] = field(default_factory=Future)
    taken: int = 0
    left: int = 0  # rows whose step has not ended


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a request in a batch: from `begin` of the request, at `place` of the batch."""

    request: Request
    begin: int
    place: int
    count: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What goes to the device at once: pieces of requests, its other rows filled with zeros."""

    pieces: Sequence[Piece]
    rows: int

    @property
    def padding(self) -> int:
        """Count the rows that nobody asked for."""
        return self.rows - sum(piece.count for piece in self.pieces)

    def input(self, name: str, row: DataDesc) -> Array:
        """Return the values of an input, whose rows are of this shape and type."""
        if len(self.pieces) == 1 and self.pieces[0].count == self.rows:
            (piece,) = self.pieces
            return piece.request.inputs[name][piece.begin : piece.begin + self.rows]
        with span("pad"):
            values = np.zeros((self.rows, *row.shape), row.dtype)
            for piece in self.pieces:
                part = piece.request.inputs[name][piece.begin : piece.begin + piece.count]
                values[piece.place : piece.place + piece.count] = part
            return values

    def output(self, name: str, values: Array) -> None:
        """Hand the values of an output to the requests."""
        for piece in self.pieces:
            part = values[piece.place : piece.place + piece.count]
            piece.request.outputs[name][piece.begin : piece.begin + piece.count] = part

    def end(self, cycles: int) -> None:
        """Take note that the step has ended; requests without more rows are answered."""
        for piece in self.pieces:
            request = piece.request
            request.left -= piece.count
            request.answer.cycles += cycles
            request.answer.padding = self.padding
            if not request.left and not request.future.done():
                request.future.set_result(request.answer)

    def fail(self, error: BaseException) -> None:
        """Answer the requests by an error."""
        for piece in self.pieces:
            if not piece.request.future.done():
                piece.request.future.set_exception(error)


class Requests:
    """The queue of a runner. Several threads put requests in and take batches out.

    `capacity` requests wait at most: who puts another one in waits, too.
    """

    def __init__(self, rows: int, capacity: int) -> None:
        self._rows, self._capacity = rows, capacity
        self._waiting: deque[Request] = deque()
        self._changed = Condition()
        self._closed = False

    def put(self, request: Request) -> None:
        """Let a request wait for its turn; raises PoplarError when the runner is closed."""
        request.left = request.rows
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < self._capacity or self._closed)
            if self._closed:
                raise PoplarError("ModelRunner: it is closed")
            self._waiting.append(request)
            self._changed.notify_all()

    def first(self, timeout_ns: int) -> Batch | None:
        """Wait for a request, then for a full batch as long as told; None once it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return self._batch(timeout_ns)

    def next(self, timeout_ns: int) -> Batch | None:
        """Return the next batch of a step that goes on; None when no request came in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, timeout_ns / 1e9)
            return self._batch(timeout_ns)

    def close(self) -> list[Request]:
        """Take no more requests; return those that wait."""
        with self._changed:
            self._closed = True
            waiting = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
        return waiting

    def _batch(self, timeout_ns: int) -> Batch | None:
        end = time.monotonic() + timeout_ns / 1e9
        pieces: list[Piece] = []
        place = 0
        while place < self._rows:
            if not self._waiting:
                seconds = end - time.monotonic()
                if not pieces or seconds <= 0 or self._closed:
                    break
                self._changed.wait_for(lambda: self._waiting or self._closed, seconds)
                continue
            request = self._waiting[0]
            count = min(request.rows - request.taken, self._rows - place)
            pieces.append(Piece(request, request.taken, place, count))
            request.taken += count
            place += count
            if request.taken == request.rows:
                self._waiting.popleft()
                self._changed.notify_all()
        return Batch(pieces, self._rows) if pieces else None


def failed(requests: Iterable[Request], error: BaseException) -> None:
    """Answer requests by an error."""
    for request in requests:
        if not request.future.done():
            request.future.set_exception(error)
