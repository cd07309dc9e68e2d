"""Read the events of Chrome trace JSON into columns, some at a time.

An event is an object with its phase `ph`, its time `ts` in microseconds, and who, what and where.
Times, names and threads become arrays of numbers as they are read; no object of an event outlives
the piece of text that it stands in. What is of another type than it should be is counted.
Source: "Trace Event Format", the document of the Catapult project.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from pva.formats.files import collector_paused
from pva.formats.json_pieces import Array, Piece

Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

COMPLETE, BEGIN, END, INSTANT, ASYNC_BEGIN, ASYNC_END, ASYNC_INSTANT, COUNTER, METADATA = range(9)
# Phases and what becomes of them; those of asynchronous events also in their older letters.
PHASES = {
    "X": COMPLETE, "B": BEGIN, "E": END, "i": INSTANT, "I": INSTANT, "R": INSTANT,
    "b": ASYNC_BEGIN, "S": ASYNC_BEGIN, "e": ASYNC_END, "F": ASYNC_END,
    "n": ASYNC_INSTANT, "T": ASYNC_INSTANT, "p": ASYNC_INSTANT, "C": COUNTER, "M": METADATA,
}  # fmt: skip
# Phases that are counted and not shown.
NOT_SHOWN = {
    "s": "flow", "t": "flow", "f": "flow", "N": "object", "O": "object", "D": "object",
    "v": "memory dump", "V": "memory dump", "P": "sample", "c": "clock", "(": "context",
    ")": "context", "=": "link",
}  # fmt: skip
PHASES |= {letter: number for number, letter in enumerate(NOT_SHOWN, METADATA + 1)}
OF_IDENTITIES = (ASYNC_BEGIN, ASYNC_END, ASYNC_INSTANT)
NANOSECONDS = 1000.0  # of a microsecond
TIME_LIMIT = float(1 << 61)  # nanoseconds
UNKNOWN_LIMIT = 1 << 19  # events; each takes as long as many others
NO_CATEGORY = "no category"
_EMPTY = b"{}"
_SIMPLE = (str, int, float, bool, type(None))
_FAULTS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, OverflowError)


class TooManyUnknownError(Exception):
    """What is read is no trace."""


class Event(msgspec.Struct, gc=False):
    """The fields of an event that are looked at; each may be of any type."""

    ph: Any = None
    ts: Any = None
    dur: Any = None
    pid: Any = 0
    tid: Any = 0
    name: Any = ""
    cat: Any = NO_CATEGORY
    args: msgspec.Raw = msgspec.Raw()
    id: Any = None
    id2: Any = None
    scope: Any = None


_DECODER = msgspec.json.Decoder(list[Event])
_ONE = msgspec.json.Decoder(Event)


class Numbers(dict[Any, int]):
    """Things -> their number, in the order in which they were first seen."""

    def __missing__(self, thing: Any) -> int:
        number = self[thing] = len(self)
        return number

    def of(self, things: Iterable[Any], count: int) -> Codes:
        """Number many things."""
        return np.fromiter(map(self.__getitem__, things), np.int32, count)


class Texts(Sequence[str]):
    """Texts in one run of bytes; takes rows as an array does."""

    __slots__ = ("_data", "_first", "_stop")

    def __init__(self, data: bytes, first: Integers, stop: Integers) -> None:
        self._data = data
        self._first = first
        self._stop = stop

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> Texts:
        """Keep some texts."""
        stop = np.cumsum([len(part) for part in parts], dtype=np.int64)
        return cls(b"".join(parts), stop - np.diff(stop, prepend=0), stop)

    def without(self, head: bytes) -> Texts:
        """Leave out a wrapping: this begin and the last byte, where a text begins so."""
        begins = np.array([self._data.startswith(head, at) for at in self._first.tolist()], bool)
        return Texts(self._data, self._first + begins * len(head), self._stop - begins)

    @classmethod
    def joined(cls, parts: Sequence[Texts]) -> Texts:
        """Put texts after each other."""
        if not parts:
            return cls(b"", np.zeros(0, np.int64), np.zeros(0, np.int64))
        before = np.cumsum([0, *(len(part._data) for part in parts)])
        first, stop = (
            np.concatenate([getattr(p, name) + b for p, b in zip(parts, before, strict=False)])
            for name in ("_first", "_stop")
        )
        return cls(b"".join(part._data for part in parts), first, stop)

    def __len__(self) -> int:
        return len(self._first)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice | np.ndarray):
            return Texts(self._data, self._first[place], self._stop[place])
        return self._data[self._first[place] : self._stop[place]].decode(errors="replace")


@dataclass
class Columns:
    """Events of one piece, in the order of the file. Times in nanoseconds, not yet moved."""

    phase: npt.NDArray[np.uint8]
    time: npt.NDArray[np.float64]
    duration: npt.NDArray[np.float64]
    lane: Codes  # number of process and thread
    label: Codes  # number of category and name


Points = tuple["array[float]", "array[float]"]  # times and values


@dataclass
class Read:
    """All that the events of a file tell."""

    lanes: Numbers = field(default_factory=Numbers)  # (pid, tid)
    labels: Numbers = field(default_factory=Numbers)  # (category, name)
    identities: Numbers = field(default_factory=Numbers)  # of asynchronous events
    columns: list[Columns] = field(default_factory=list)
    identity: list[Codes] = field(default_factory=list)  # of asynchronous events, in order
    arguments: list[tuple[Integers, Texts]] = field(default_factory=list)  # rows of events
    points: dict[tuple[Any, str, str], Points] = field(default_factory=dict)
    names: dict[tuple[str, Any], str] = field(default_factory=dict)  # of processes and threads
    problems: Counter[str] = field(default_factory=Counter)
    count: int = 0  # of kept rows
    unknown: int = 0  # events of no phase that is known


def read(source: Array) -> Read:
    """Read all events of an array."""
    found = Read()
    with collector_paused():
        for piece in source:
            for events in _events(piece, found):
                _add(found, events)
    return found


def _events(piece: Piece, found: Read) -> Iterator[list[Event]]:
    """Decode the events of a piece: all at once, or, where one is wrong, one by one."""
    try:
        yield _DECODER.decode(piece.as_array())
    except _FAULTS:
        events = [_event(text) for text in piece.elements()]
        whole = [event for event in events if event is not None]
        found.problems["are no JSON objects"] += len(events) - len(whole)
        yield whole


def _event(text: bytes) -> Event | None:
    try:
        return _ONE.decode(text)
    except _FAULTS:
        return _lenient(text)


def _lenient(text: bytes) -> Event | None:
    """Decode what is not quite JSON: numbers that are none, halves of characters."""
    try:
        told = json.loads(text.decode(errors="surrogateescape"))
        if not isinstance(told, dict):
            return None
        known = {name: told[name] for name in Event.__struct_fields__ if name in told}
        known = {name: _spelled(value) for name, value in known.items()}
        if "args" in known:
            arguments = json.dumps(told["args"]).encode()
            known["args"] = msgspec.Raw(arguments)
        return Event(**known)
    except (ValueError, RecursionError):
        return None


def _spelled(value: Any) -> Any:
    """Spell out what UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _add(found: Read, events: list[Event]) -> None:
    """Take in some events."""
    phases = [event.ph for event in events]
    if set(map(type, phases)) != {str} or not set(phases) <= PHASES.keys():
        events = _known(found, events)
        phases = [event.ph for event in events]
    if not events:
        return
    fields = zip(*map(msgspec.structs.astuple, events), strict=True)
    _, ts, dur, pid, tid, name, cat, args, *_ = fields
    phase = np.fromiter(map(PHASES.__getitem__, phases), np.uint8, len(events))
    _count_not_shown(found, phase)
    time = _times(found, ts, phase < METADATA, "have no time that can be")
    duration = _durations(found, dur, phase)
    timed = np.isfinite(time)
    rows = np.flatnonzero(timed & (phase < COUNTER))
    lane = found.lanes.of(_pairs(pid, tid, rows, text=False), len(rows))
    label = found.labels.of(_pairs(cat, name, rows, text=True), len(rows))
    _arguments(found, args, rows)
    _identities(found, events, rows[np.isin(phase[rows], OF_IDENTITIES)])
    _counters(found, events, time, np.flatnonzero((phase == COUNTER) & timed))
    _named(found, events, np.flatnonzero(phase == METADATA))
    found.columns.append(Columns(phase[rows], time[rows], duration[rows], lane, label))
    found.count += len(rows)


def _pairs(
    first: Sequence[Any], second: Sequence[Any], rows: Integers, *, text: bool
) -> Iterator[tuple[Any, Any]]:
    """Give two fields of these rows, as what can be looked up."""
    both = [_simple(column) for column in (first, second)]
    if text and set(map(type, both[0])) | set(map(type, both[1])) != {str}:
        both = [[value if isinstance(value, str) else str(value) for value in c] for c in both]
    pairs = zip(*both, strict=True)
    if len(rows) == len(first):
        return pairs
    chosen = np.zeros(len(first), np.bool_)
    chosen[rows] = True
    return compress(pairs, chosen.tolist())


def _count_not_shown(found: Read, phase: npt.NDArray[np.uint8]) -> None:
    counts = np.bincount(phase, minlength=len(PHASES) + 1)[METADATA + 1 :]
    for (letter, what), count in zip(NOT_SHOWN.items(), counts.tolist(), strict=False):
        if count:
            found.problems[f"are of phase {letter}, {what}, which is not shown"] += count


def _known(found: Read, events: list[Event]) -> list[Event]:
    """Count the events of phases that are not shown, and leave them out."""
    known = [event for event in events if isinstance(event.ph, str) and event.ph in PHASES]
    found.unknown += len(events) - len(known)
    if found.unknown > UNKNOWN_LIMIT:
        raise TooManyUnknownError
    for event in events:
        if not isinstance(event.ph, str):
            found.problems["have no phase"] += 1
        elif event.ph not in PHASES:
            found.problems[f"are of phase {event.ph[:20]!r}, which is not known"] += 1
    return known


def _times(
    found: Read, values: Sequence[Any], wanted: npt.NDArray[np.bool_], problem: str
) -> npt.NDArray[np.float64]:
    """Give times in nanoseconds; NaN, and counted where wanted, for what is none."""
    try:
        times = np.array(values, np.float64)
        if times.ndim != 1:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        times = np.array([_number(value) for value in values])
    with np.errstate(over="ignore"):  # what is too large is beyond the limit all the more
        times *= NANOSECONDS
    bad = ~(np.abs(times) < TIME_LIMIT)
    times[bad] = np.nan
    missed = int(np.count_nonzero(bad & wanted))
    if missed:
        found.problems[problem] += missed
    return np.rint(times, out=times)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _durations(
    found: Read, values: Sequence[Any], phase: npt.NDArray[np.uint8]
) -> npt.NDArray[np.float64]:
    complete = phase == COMPLETE
    if not complete.any():
        return np.zeros(len(phase))
    missing = "have no duration that can be, and are shown with none"
    durations = _times(found, values, complete, missing)
    negative = int(np.count_nonzero(durations[complete] < 0))
    if negative:
        found.problems["have a negative duration, and are shown with none"] += negative
    return np.where(durations > 0, durations, 0.0)


def _simple(values: Sequence[Any]) -> Sequence[Any]:
    """Give values that can be looked up; lists and objects as their text."""
    if set(map(type, values)) <= {str, int, float, bool, type(None)}:
        return values
    return [value if isinstance(value, _SIMPLE) else json.dumps(value) for value in values]


def _arguments(found: Read, args: Sequence[msgspec.Raw], rows: Integers) -> None:
    """Keep what events have beside their times, as text."""
    lengths = np.fromiter(map(len, args), np.int64, len(args))[rows]
    places = np.flatnonzero(lengths > len(_EMPTY))
    if len(places):
        texts = [bytes(args[row]) for row in rows[places].tolist()]
        found.arguments.append((places + found.count, Texts.of(texts)))


def _identities(found: Read, events: Sequence[Event], rows: Integers) -> None:
    """Number what belongs together of asynchronous events."""
    if not len(rows):
        return
    some = [events[row] for row in rows.tolist()]
    keys = [
        (event.cat, event.scope, event.id, event.id2,
         event.pid if isinstance(event.id2, dict) and "local" in event.id2 else None)
        for event in some
    ]  # fmt: skip
    texts = (json.dumps(key) for key in keys)
    found.identity.append(found.identities.of(texts, len(keys)))


def _counters(
    found: Read, events: Sequence[Event], time: npt.NDArray[np.float64], rows: Integers
) -> None:
    for row in rows.tolist():
        event, now = events[row], time[row]
        values = _object(event.args)
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                found.problems["have a value of a counter that is no number"] += 1
                continue
            key = (_simple([event.pid])[0], str(event.name), name)
            times, numbers = found.points.setdefault(key, (array("d"), array("d")))
            times.append(now)
            numbers.append(_number(value))


def _named(found: Read, events: Sequence[Event], rows: Integers) -> None:
    """Take in the names of processes and threads."""
    for row in rows.tolist():
        event = events[row]
        if event.name in ("process_name", "thread_name"):
            told = _object(event.args).get("name")
            pid, tid = _simple([event.pid, event.tid])
            key = pid if event.name == "process_name" else (pid, tid)
            found.names[event.name, key] = _spelled(str(told))


def _object(text: msgspec.Raw) -> dict[str, Any]:
    try:
        told = msgspec.json.decode(bytes(text) or b"{}")
    except _FAULTS:
        return {}
    return told if isinstance(told, dict) else {}
