"""Spans, begun and ended: what `_accelerator.c` does in C, in Python, with the same names.

Only what every event passes through stands here. `pvti.implementation` chooses between the two.
"""

from __future__ import annotations

import contextlib
import sys
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from operator import call, sub
from time import perf_counter_ns
from typing import Any

from pvti.schema import (
    CHUNK_RECORDS,
    DURATION_LIMIT,
    LABEL_BITS,
    LABEL_MASK,
    OVERLAPPING,
    little_endian,
)

_modules = sys.modules  # looked into with each event: a task is an event's owner, not its thread
_LOW, _HIGH = (0, 1) if sys.byteorder == "little" else (1, 0)
NEVER_DUE = (1 << 63) - 1
_NEVER = -1  # no span has this key
REASON_LENGTH = 200
_told = False  # of an event that was lost
_losses: list[str] = []  # why, one an event, until the writer takes them
_SHARED: Any = object()  # in place of a track: of a span that several have entered


Packed = tuple[int, int, int, bytes]  # ended events: their number, first begin, last end, records
LongEvent = tuple[int, int, int, int]  # begin, duration, kind, label


class Channel:
    """Where the begins and ends of a channel go, and the keys of its labels."""

    __slots__ = ("begins", "ends", "keys")

    begins: Any  # pvti.buffers.Buffers; None where nothing is recorded
    ends: Any
    keys: dict[str, int]


class Spans:
    """What is open and what has ended in one thread or task; the writer takes what has ended.

    A key is a label's number. Only the owner begins and ends; the owner and the writer may pack at
    any moment, and others may drop, since each list is changed by one call of the interpreter,
    which no other thread comes between.
    An end after `due` calls `hurry`: the writer did not come.
    """

    __slots__ = ("open", "words", "due", "chunks", "long_events", "_packings")

    def __init__(self) -> None:
        self.open: list[tuple[int, int]] = []  # key and begin, the innermost last
        self.words: list[int] = []  # three a record: begin, end, kind << 28 | label
        self.due = NEVER_DUE
        self.chunks: list[Packed] = []
        self.long_events: list[LongEvent] = []  # those whose duration takes more than 32 bits
        self._packings = [0]  # how often words have been packed

    def push(self, key: int, begin: int) -> None:
        """Begin a span."""
        self.open.append((key, begin))

    def end(self, key: int, end: int, begin: int = -1) -> int | None:
        """End the innermost span of this key (and begin); give its begin, None without one."""
        for span in reversed(self.open):  # however many are open, most often the last
            if span[0] == key and begin in (-1, span[1]):
                break
        else:
            return None
        kind, began = 0, span[1]
        if self.open[-1] is span:
            self.open.pop()
        else:
            kind = OVERLAPPING << LABEL_BITS
            self.drop(key, began)
        self.words.extend((began, end, key | kind))
        return began

    def drop(self, key: int, begin: int) -> bool:
        """Take a span off the list, in any thread; False where it is not there."""
        try:
            self.open.remove((key, begin))
        except ValueError:
            return False
        return True

    def spans(self) -> list[tuple[int, int]]:
        """Copy what is open."""
        return self.open.copy()

    def pack(self) -> None:
        """Move what has ended to `chunks` and `long_events`."""
        packing = self._packings[0]
        words = self.words.copy()
        chunks: list[Packed] = []
        long: list[LongEvent] = []
        for first in range(0, len(words), 3 * CHUNK_RECORDS):
            _pack(words[first : first + 3 * CHUNK_RECORDS], chunks, long)
        with contextlib.suppress(ValueError):  # others have packed them meanwhile
            do_at_once(
                partial(self._packings.index, packing),
                partial(self.words.__delitem__, slice(len(words))),
                partial(self._packings.__setitem__, 0, packing + 1),
                partial(self.chunks.extend, chunks),
                partial(self.long_events.extend, long),
            )


def do_at_once(*steps: Callable[[], object]) -> None:
    """Do calls of the interpreter's own, one after the other, until one raises.

    No signal handler comes between two of them, as all is one call of the interpreter.
    """
    deque(map(call, steps), 0)


def checksums(all_data: Iterable[bytes]) -> list[int]:
    """Return the CRC-32 of each."""
    return list(map(zlib.crc32, all_data))


def _pack(words: list[int], chunks: list[Packed], long: list[LongEvent]) -> None:
    begins, ends, keys = words[0::3], words[1::3], words[2::3]
    try:
        durations = array("I", map(sub, ends, begins))
    except OverflowError:
        short: list[int] = []
        for begin, end, key in zip(begins, ends, keys, strict=True):
            if 0 <= end - begin < DURATION_LIMIT:
                short += (begin, end, key)
            else:
                long.append((begin, end - begin, key >> LABEL_BITS, key & LABEL_MASK))
        if short:
            _pack(short, chunks, long)
        return
    halves = array("I", bytes(8 * len(begins)))
    halves[_LOW::2] = durations
    halves[_HIGH::2] = array("I", keys)
    records = array("Q", bytes(16 * len(begins)))
    records[0::2] = array("Q", begins)
    records[1::2] = array("Q", halves.tobytes())
    # A finalizer or handler may record between another event's clock and its record.
    chunks.append((len(begins), min(begins), max(ends), little_endian(records)))


class Span:
    """A block of a channel and label: `with` begins and ends a span.

    What is frequent stands in the methods themselves: a call of a function costs a tenth of a
    block. To find the track costs as much, so that a span remembers the first that entered it; at
    its end it is that one again, unless another has entered, too.
    """

    __slots__ = ("channel", "label", "metadata", "_key", "_plain", "_track")

    def __init__(self, channel: Channel, label: str, metadata: object = None) -> None:
        self.channel = channel
        self.label = label
        self.metadata = metadata
        self._track = None
        # Labels are kept for good: of a program that is not traced, none is.
        if channel.begins is None or metadata is not None:
            self._key = 0
            self._plain = _NEVER  # the key, where to end a span is no more than to record it
        else:
            try:
                self._key = self._plain = channel.keys[label]
            except Exception as error:  # no key of a dictionary
                raise_if_signalled(error)
                self._key = self._plain = find_key(channel, label)

    def _find_key(self) -> int:
        self._key = find_key(self.channel, self.label)
        if self.metadata is None:
            self._plain = self._key
        return self._key

    def __enter__(self) -> Any:
        buffers = self.channel.begins
        if buffers is None:
            return self
        try:
            track = buffers.track
            if "asyncio" in _modules and (loop := running_loop()) is not None:
                track = buffers.tasks.of(loop)
            if track is not self._track:
                self._track = track if self._track is None else _SHARED
            track.open.append((self._key or self._find_key(), perf_counter_ns()))
        except Exception as error:
            lost(error)
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        buffers = self.channel.ends
        if buffers is None:
            return
        end = perf_counter_ns()
        try:
            track = self._track
            if track is None or track is _SHARED:
                loop = running_loop() if "asyncio" in _modules else None
                track = buffers.track if loop is None else buffers.tasks.of(loop)
            if end > track.due:
                track.hurry(end)
            key, begin = track.open.pop()
            if key == self._plain:
                track.words.extend((begin, end, key))
                return
            track.open.append((key, begin))
        except IndexError:  # nothing is open
            pass
        except Exception as error:
            lost(error)
        _finish(buffers, self._key, end, self.metadata)

    @staticmethod
    def begin(channel: Channel, label: str) -> None:
        """Begin an event that `end` ends, in the same thread."""
        buffers = channel.begins
        if buffers is None:
            return
        try:
            track = buffers.track
            if "asyncio" in _modules and (loop := running_loop()) is not None:
                track = buffers.tasks.of(loop)
            track.open.append((channel.keys[label], perf_counter_ns()))
        except Exception as error:
            _begin(buffers, channel, label, error)

    @staticmethod
    def end(channel: Channel, label: str) -> None:
        """End the innermost open event of this channel and label; without one, count that."""
        buffers = channel.ends
        if buffers is None:
            return
        end = perf_counter_ns()
        try:
            track = buffers.track
            if "asyncio" in _modules and (loop := running_loop()) is not None:
                track = buffers.tasks.of(loop)
            if end > track.due:
                track.hurry(end)
            key = channel.keys[label]
            open_key, begin = track.open.pop()
            if open_key == key:
                track.words.extend((begin, end, key))
                return
            track.open.append((open_key, begin))
        except IndexError:  # nothing is open
            pass
        except Exception as error:
            if type(label) is str:
                lost(error)
            else:  # it may be no key of a dictionary
                raise_if_signalled(error)
        # While a channel is disabled its begins are dropped, and so their ends are no mistake.
        _finish(buffers, find_key(channel, label), end, None, channel.begins is not None)


def _begin(buffers: Any, channel: Channel, label: object, error: Exception) -> None:
    """Begin an event whose label is no key of a dictionary; any other fault has lost it."""
    raise_if_signalled(error)
    try:
        if type(label) is str:
            raise error
        buffers.current.push(find_key(channel, label), perf_counter_ns())
    except Exception as fault:
        lost(fault)


def _finish(buffers: Any, key: int, end: int, metadata: Any, count: bool = False) -> None:
    try:
        buffers.current.finish(key, end, metadata, count)
    except Exception as error:
        lost(error)


def lost(error: Exception) -> None:
    """Warn of a fault that cost an event: the traced program must not meet it."""
    global _told
    raise_if_signalled(error)
    reason = type(error).__name__
    with contextlib.suppress(MemoryError):
        reason = f"{reason}: {writable(error)}"[:REASON_LENGTH]
    with contextlib.suppress(MemoryError):
        _losses.append(reason)
        if not _told:
            _told = True
            warn(f"an event was lost: {reason}")


def move_losses(rows: list[Any], now: int) -> None:
    """Add a row of how many events were lost, and why the first was, and count anew."""
    count = len(_losses)
    if count:
        row = ("lost_events", (now, count, _losses[0]))
        do_at_once(partial(rows.append, row), partial(_losses.__delitem__, slice(count)))


def forget_losses() -> None:
    """Count lost events anew."""
    _losses.clear()


def raise_if_signalled(error: Exception) -> None:
    """Raise on what a signal handler of the program raised in the middle of tracing.

    It is told from faults by the frame of the handler in its traceback, wherever it was raised.
    """
    signal = _modules.get("signal")
    traceback = error.__traceback__ and error.__traceback__.tb_next  # the first is pvti's own
    if traceback is None or signal is None:
        return
    codes = {
        getattr(called, "__code__", None)
        for handler in map(signal.getsignal, signal.valid_signals())
        for called in (handler, getattr(handler, "__func__", None), type(handler).__call__)
    } - {None}
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            raise error
        traceback = traceback.tb_next


def warn(text: str) -> None:
    """Print a line to where warnings go, if there is such a place."""
    with contextlib.suppress(Exception):  # closed, or of a kind that cannot hold the text
        if sys.stderr is not None:
            print(f"pvti: {text}", file=sys.stderr)


def find_key(channel: Channel, label: object) -> int:
    """Return the number of a label; what is no text goes by its text."""
    if isinstance(label, str):
        try:
            return channel.keys[label]
        except Exception as error:  # the program's own __hash__ or __eq__
            raise_if_signalled(error)
    return channel.keys[writable(label)]


def writable(text: object) -> str:
    """Return the text of anything, and spell out what UTF-8 cannot hold (lone surrogates)."""
    try:
        return str(text).encode("utf-8", "backslashreplace").decode("utf-8")
    except MemoryError:  # another label is none
        raise
    except Exception as error:  # one in the program's own __str__ is no reason to break it
        raise_if_signalled(error)
        return f"<{type(text).__name__}>"


def _find_loop() -> object:
    """Return the loop that runs in this thread; from then on, ask asyncio directly."""
    global running_loop
    # Missing while asyncio itself is being imported.
    getter = getattr(_modules.get("asyncio"), "_get_running_loop", None)
    if getter is None:
        return None
    running_loop = getter
    return getter()


running_loop: Callable[[], Any] = _find_loop
