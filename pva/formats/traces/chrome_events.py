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
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import compress, islice
from sys import getsizeof
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from pva.array_types import Integers
from pva.formats.builders import Codes, Growing, GrowingTexts, Numbers, Once
from pva.formats.memory_limit import Budget
from pva.formats.traces.chrome_flows import FlowPoints
from pva.formats.traces.json_pieces import Piece

COMPLETE, BEGIN, END, INSTANT, ASYNC_BEGIN, ASYNC_END, ASYNC_INSTANT, COUNTER, METADATA = range(9)
FLOWS = FLOW_START, FLOW_STEP, FLOW_END = range(METADATA + 1, METADATA + 4)
# Phases and what becomes of them; those of asynchronous events also in their older letters.
PHASES = {
    "X": COMPLETE, "B": BEGIN, "E": END, "i": INSTANT, "I": INSTANT, "R": INSTANT,
    "b": ASYNC_BEGIN, "S": ASYNC_BEGIN, "e": ASYNC_END, "F": ASYNC_END,
    "n": ASYNC_INSTANT, "T": ASYNC_INSTANT, "p": ASYNC_INSTANT, "C": COUNTER, "M": METADATA,
    "s": FLOW_START, "t": FLOW_STEP, "f": FLOW_END,
}  # fmt: skip
# Phases that are counted and not shown.
NOT_SHOWN = {
    "N": "object", "O": "object", "D": "object", "v": "memory dump",
    "V": "memory dump", "P": "sample", "c": "clock", "(": "context", ")": "context", "=": "link",
}  # fmt: skip
PHASES |= {letter: number for number, letter in enumerate(NOT_SHOWN, FLOW_END + 1)}
OF_IDENTITIES = (ASYNC_BEGIN, ASYNC_END, ASYNC_INSTANT)
NANOSECONDS = 1000  # of a microsecond
TIME_LIMIT = (1 << 61) / NANOSECONDS  # microseconds
UNKNOWN_LIMIT = 1 << 19  # events; each takes as long as many others
NO_CATEGORY = "no category"
KEY = "traceEvents"
PROBLEMS = 1000  # kinds of them that are told apart
# Bytes that an event takes while columns are made of it, by phase; and beside its text each
# argument, label, thread, identity, point and line of a counter, and name of a thread.
BYTES = np.array([41, 100, 100, 80, 130, 130, 110], np.int64)
ARGUMENTS, LABEL, LANE, IDENTITY, POINT, LINE, NAME = 40, 100, 1500, 250, 64, 1000, 250
POINT_OF_FLOW = 100
IDENTITY_LIMIT = 1 << 61
_EMPTY = b"{}"
_SIMPLE = (str, int, float, bool, type(None))
FAULTS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, OverflowError)


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


DECODER = msgspec.json.Decoder(list[Event])
_ONE = msgspec.json.Decoder(Event)


Points = tuple["array[int]", "array[float]"]  # times and values


@dataclass
class Read:
    """All that the events of a file tell, in the order of the file. Times in nanoseconds."""

    budget: Budget
    lanes: Numbers = field(default_factory=Numbers)  # (pid, tid)
    labels: Numbers = field(default_factory=Numbers)  # (category, name)
    identities: Numbers = field(default_factory=Numbers)  # of asynchronous events
    flow_names: Numbers = field(default_factory=Numbers)  # of flows that a text tells apart
    phase: Growing = field(default_factory=lambda: Growing(np.uint8))
    time: Growing = field(default_factory=lambda: Growing(np.int64))
    lane: Growing = field(default_factory=lambda: Growing(np.int32))
    label: Growing = field(default_factory=lambda: Growing(np.int32))
    duration: Growing = field(default_factory=lambda: Growing(np.int64))  # of complete events
    identity: Growing = field(default_factory=lambda: Growing(np.int32))  # of asynchronous events
    told: Growing = field(default_factory=lambda: Growing(np.int64))  # events with arguments
    texts: GrowingTexts = field(default_factory=GrowingTexts)  # of these, their arguments
    flows: FlowPoints = field(default_factory=FlowPoints)
    points: dict[tuple[Any, str, str], Points] = field(default_factory=dict)
    names: dict[tuple[str, Any], str] = field(default_factory=dict)  # of processes and threads
    problems: Counter[str] = field(default_factory=Counter)
    unknown: int = 0  # events of no phase that is known, and what is no event
    categories: Once = field(default_factory=Once)


def add(content: Read, piece: Piece) -> None:
    """Take in the events of a piece; raises DamagedFileError for more than fit into the memory."""
    for events in _events(piece, content):
        _add(content, events)


def _events(piece: Piece, content: Read) -> Iterator[list[Event]]:
    """Decode the events of a piece: all at once, or, where one is wrong, one by one."""
    try:
        yield DECODER.decode(piece.as_array())
    except FAULTS:
        events = [_event(text, content) for text in piece.elements()]
        objects = [event for event in events if event is not None]
        content.problems["without a JSON object, left out"] += len(events) - len(objects)
        yield objects


def _event(text: bytes, content: Read) -> Event | None:
    try:
        return _ONE.decode(text)
    except FAULTS:
        _count_unknown(content, 1, "elements that are no objects of JSON")
        return _lenient(text)


def _count_unknown(content: Read, count: int, kind: str) -> None:
    content.unknown += count
    if content.unknown > UNKNOWN_LIMIT:
        raise TooManyUnknownError(f"more than {UNKNOWN_LIMIT} {kind}")


def _lenient(text: bytes) -> Event | None:
    """Decode what is not quite JSON: numbers that are none, halves of characters."""
    try:
        fields = json.loads(text.decode(errors="surrogateescape"))
        if not isinstance(fields, dict):
            return None
        event_fields = {name: fields[name] for name in Event.__struct_fields__ if name in fields}
        event_fields = {name: _spelled(value) for name, value in event_fields.items()}
        if "args" in event_fields:
            arguments = json.dumps(fields["args"]).encode()
            event_fields["args"] = msgspec.Raw(arguments)
        return Event(**event_fields)
    except (ValueError, RecursionError):
        return None


def _spelled(value: object) -> Any:
    """Spell out what UTF-8 cannot hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _add(content: Read, events: list[Event]) -> None:
    """Take in some events."""
    phases = [event.ph for event in events]
    if set(map(type, phases)) != {str} or not set(phases) <= PHASES.keys():
        events = _of_shown_phases(content, events)
        phases = [event.ph for event in events]
    phase = np.fromiter(map(PHASES.__getitem__, phases), np.uint8, len(events))
    _count_not_shown(content, phase)
    shown = phase <= METADATA
    if shown.any():
        some = events if shown.all() else list(compress(events, shown.tolist()))
        _columns(content, some, phase[shown])
    _flows(content, events, phase)


def _columns(content: Read, events: list[Event], phase: npt.NDArray[np.uint8]) -> None:
    """Take in the events that have a place in columns, and names."""
    fields = zip(*map(msgspec.structs.astuple, events), strict=True)
    _, ts, dur, pid, tid, name, cat, args, *_ = fields
    time, timed = _times(content, ts, phase < METADATA, "without a time that can be, left out")
    rows = np.flatnonzero(timed & (phase < COUNTER))
    phase_of_row = phase[rows]
    content.budget.spend(int(BYTES[phase_of_row].sum()), KEY)
    _arguments(content, args, rows)
    content.duration.extend(_durations(content, dur, phase)[rows[phase_of_row == COMPLETE]])
    content.phase.extend(phase_of_row)
    content.time.extend(time[rows])
    lane = _pairs(content, pid, tid, rows, text=False)
    content.lane.extend(numbered(content, content.lanes, lane, len(rows), LANE))
    label = _pairs(content, cat, name, rows, text=True)
    content.label.extend(numbered(content, content.labels, label, len(rows), LABEL))
    identified = np.zeros(len(phase), np.bool_)
    identified[rows] = np.isin(phase_of_row, OF_IDENTITIES)
    _beside(content, events, phase, time, (identified, (phase == COUNTER) & timed))


def add_others(content: Read, events: Sequence[Event]) -> None:
    """Take in what events tell beside their columns: the ones of other phases, and identities.

    All have a phase that is known, and a time where one is needed.
    """
    phase = np.fromiter((PHASES[event.ph] for event in events), np.uint8, len(events))
    _count_not_shown(content, phase)
    _flows(content, events, phase)
    time = np.zeros(len(events), np.int64)
    counted = phase == COUNTER
    rows = np.flatnonzero(counted).tolist()
    time[counted] = _times(content, [events[row].ts for row in rows], counted[counted], "")[0]
    _beside(content, events, phase, time, (np.isin(phase, OF_IDENTITIES), counted))


def _beside(
    content: Read,
    events: Sequence[Event],
    phase: npt.NDArray[np.uint8],
    time: Integers,
    masks: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]],
) -> None:
    """Take in what is told of asynchronous events, of counters, both chosen, and of names."""
    identified, counted = masks
    _identities(content, events, np.flatnonzero(identified))
    _counters(content, events, time, np.flatnonzero(counted))
    _named(content, events, np.flatnonzero(phase == METADATA))


def numbered(
    content: Read, numbers: Numbers, things: Iterable[object], count: int, item_bytes: int
) -> Codes:
    """Number things, and count the memory that new ones take."""
    before = len(numbers)
    codes = numbers.of(things, count)
    new = len(numbers) - before
    if new:
        content.budget.spend(
            item_bytes * new + sum(map(_size, islice(reversed(numbers), new))), KEY
        )
    return codes


def _size(thing: object) -> int:
    """Return the bytes of a thing, and of what is in it."""
    inside = thing if isinstance(thing, tuple) else ()
    return getsizeof(thing) + sum(map(getsizeof, inside))


def _pairs(
    content: Read, first: Sequence[Any], second: Sequence[Any], rows: Integers, *, text: bool
) -> Iterator[tuple[object, object]]:
    """Return two fields of these rows, as what can be looked up."""
    both = [_simple(column) for column in (first, second)]
    if text and set(map(type, both[0])) | set(map(type, both[1])) != {str}:
        both = [["" if value is None else str(value) for value in column] for column in both]
    if text:
        both[0] = [content.categories[category or NO_CATEGORY] for category in both[0]]
    pairs = zip(*both, strict=True)
    if len(rows) == len(first):
        return pairs
    mask = np.zeros(len(first), np.bool_)
    mask[rows] = True
    return compress(pairs, mask.tolist())


def _count_not_shown(content: Read, phase: npt.NDArray[np.uint8]) -> None:
    counts = np.bincount(phase, minlength=len(PHASES) + 1)[FLOW_END + 1 :]
    for (letter, description), count in zip(NOT_SHOWN.items(), counts.tolist(), strict=False):
        if count:
            content.problems[f"of phase {letter}, {description}, not shown"] += count


def _of_shown_phases(content: Read, events: list[Event]) -> list[Event]:
    """Count the events of phases that are not shown, and leave them out."""
    shown = [event for event in events if isinstance(event.ph, str) and event.ph in PHASES]
    _count_unknown(content, len(events) - len(shown), "events of no phase that is known")
    for event in events:
        if not isinstance(event.ph, str):
            content.problems["without a phase, left out"] += 1
        elif event.ph not in PHASES:
            problem = f"of the unknown phase {event.ph[:20]!r}, left out"
            has_room = problem in content.problems or len(content.problems) < PROBLEMS
            content.problems[problem if has_room else "of other unknown phases, left out"] += 1
    return shown


def _times(
    content: Read, values: Sequence[object], counted: npt.NDArray[np.bool_], problem: str
) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return times in nanoseconds, and which can be; the others are 0, and counted where wanted."""
    try:
        times = np.array(values, np.float64)
        if times.ndim != 1:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        times = np.array([_number(value) for value in values])
    good = np.abs(times) < TIME_LIMIT
    missed = int(np.count_nonzero(counted & ~good))
    if missed:
        content.problems[problem] += missed
    times[~good] = 0
    # Apart from the whole ones: no double holds the nanoseconds since 1970.
    whole_seconds = np.floor(times)
    fractions = np.rint((times - whole_seconds) * NANOSECONDS).astype(np.int64)
    return whole_seconds.astype(np.int64) * NANOSECONDS + fractions, good


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def _durations(content: Read, values: Sequence[object], phase: npt.NDArray[np.uint8]) -> Integers:
    complete = phase == COMPLETE
    if not complete.any():
        return np.zeros(len(phase), np.int64)
    missing = "without a duration that can be, shown with none"
    durations, _ = _times(content, values, complete, missing)
    negative = int(np.count_nonzero(durations[complete] < 0))
    if negative:
        content.problems["of negative duration, shown with none"] += negative
    return np.maximum(durations, 0)


def _simple(values: Sequence[object]) -> Sequence[Any]:
    """Return values that can be looked up; lists and objects as their text."""
    if set(map(type, values)) <= {str, int, float, bool, type(None)}:
        return values
    return [value if isinstance(value, _SIMPLE) else json.dumps(value) for value in values]


def _arguments(content: Read, args: Sequence[msgspec.Raw], rows: Integers) -> None:
    """Keep what events have beside their times, as text."""
    lengths = np.fromiter(map(len, args), np.int64, len(args))[rows]
    places = np.flatnonzero(lengths > len(_EMPTY))
    if len(places):
        texts = [bytes(args[row]) for row in rows[places].tolist()]
        content.budget.spend(ARGUMENTS * len(texts) + 5 * int(lengths.sum()) // 4, f"{KEY}.args")
        content.told.extend(places + len(content.phase))
        content.texts.extend(texts)


def _identities(content: Read, events: Sequence[Event], rows: Integers) -> None:
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
    content.identity.extend(numbered(content, content.identities, texts, len(keys), IDENTITY))


def _flows(content: Read, events: Sequence[Event], phase: npt.NDArray[np.uint8]) -> None:
    """Take in the points of flows: where they start, pass and end."""
    rows = np.flatnonzero(np.isin(phase, FLOWS))
    if not len(rows):
        return
    some = [events[row] for row in rows.tolist()]
    problem, needed = "of a flow without a time that can be, left out", np.ones(len(some), np.bool_)
    time, timed = _times(content, [event.ts for event in some], needed, problem)
    some, kept = list(compress(some, timed.tolist())), rows[timed]
    if not some:
        return
    content.budget.spend(POINT_OF_FLOW * len(some), KEY)
    _, _, _, pids, tids, names, cats, _, ids, *_ = zip(
        *map(msgspec.structs.astuple, some), strict=True
    )
    every = np.arange(len(some))
    lane = _pairs(content, pids, tids, every, text=False)
    label = _pairs(content, cats, names, every, text=True)
    points = content.flows
    points.phase.extend(phase[kept])
    points.time.extend(time[timed])
    points.lane.extend(numbered(content, content.lanes, lane, len(some), LANE))
    points.label.extend(numbered(content, content.labels, label, len(some), LABEL))
    points.identity.extend(_flow_identities(content, ids))


def _flow_identities(content: Read, values: Sequence[Any]) -> Integers:
    """Number identities: whole ones as they are, times two; others by their first place."""
    whole = [type(value) is int and abs(value) < IDENTITY_LIMIT for value in values]
    others = [value for value, is_whole in zip(values, whole, strict=True) if not is_whole]
    texts = [value if isinstance(value, str) else json.dumps(value) for value in others]
    numbers = iter(numbered(content, content.flow_names, texts, len(texts), IDENTITY).tolist())
    pairs = zip(values, whole, strict=True)
    codes = (2 * value if is_whole else 2 * next(numbers) + 1 for value, is_whole in pairs)
    return np.fromiter(codes, np.int64, len(values))


def _counters(content: Read, events: Sequence[Event], time: Integers, rows: Integers) -> None:
    some = [events[row] for row in rows.tolist()]
    pids = _simple([event.pid for event in some])
    # With an identity, name and identity together name a counter.
    names = [event.name if event.id is None else f"{event.name} [{event.id}]" for event in some]
    names = [str(name) for name in _simple(names)]
    objects = _objects(some)
    without = sum(not values for values in objects)
    if without:
        content.problems["of a counter without values, left out"] += without
    content.budget.spend(POINT * sum(map(len, objects)), KEY)
    for now, pid, name, values in zip(time[rows].tolist(), pids, names, objects, strict=True):
        for key, value in values.items():
            if type(value) is not float and type(value) is not int:
                content.problems["of a counter with a value that is no number, left out"] += 1
                continue
            line = content.points.get((pid, name, key)) or _line(content, (pid, name, key))
            line[0].append(now)
            line[1].append(_number(value))


def _line(content: Read, key: tuple[object, str, str]) -> Points:
    """Begin a line of a counter."""
    content.budget.spend(LINE + _size(key), KEY)
    line = content.points[key] = array("q"), array("d")
    return line


def _named(content: Read, events: Sequence[Event], rows: Integers) -> None:
    """Take in the names of processes and threads."""
    some = [event for event in map(events.__getitem__, rows.tolist())
            if event.name in ("process_name", "thread_name")]  # fmt: skip
    pids, tids = (_simple([getattr(event, of) for event in some]) for of in ("pid", "tid"))
    for event, pid, tid, values in zip(some, pids, tids, _objects(some), strict=True):
        name = str(values.get("name"))
        key = (event.name, pid if event.name == "process_name" else (pid, tid))
        present = content.names.get(key)
        if present is None or len(name) > len(present):
            content.budget.spend(NAME + _size(key) + getsizeof(name), KEY)
        if name != present:
            content.names[key] = _spelled(name)


def _objects(events: Sequence[Event]) -> list[dict[str, object]]:
    """Decode the arguments of events: all at once, or, where one is wrong, one by one."""
    texts = [bytes(event.args) or _EMPTY for event in events]
    try:
        objects = msgspec.json.decode(b"[" + b",".join(texts) + b"]")
    except FAULTS:
        objects = [object_of(text) for text in texts]
    return [values if isinstance(values, dict) else {} for values in objects]


def object_of(text: bytes) -> Any:
    """Decode arguments; as Python writes them, NaN is a number."""
    for decode in (msgspec.json.decode, json.loads):
        with suppress(*FAULTS):
            return decode(text)
    return {}
