"""Write host traces as the JSON of the Trace Event Format, for chrome://tracing and its like.

Events that hold each other are complete events (`X`), those that lie across another's end are
asynchronous pairs (`b`, `e`), instants are `i`, flows `s` and `f`, series are counters (`C`). Times
are microseconds since the trace began; `otherData` tells when that was. Heatmaps are counters too,
with a value for each bin.
Source: "Trace Event Format", the document of the Catapult project.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, repeat
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import orjson

from pva.array_types import Integers
from pva.formats.traces.identifiers import identifiers
from pva.formats.traces.writable import Columns, Trace
from pva.progress import WRITING, part_of

Known = tuple[int, int]  # identifiers of process and thread
Track = tuple[Known, dict[int, bytes]]  # these, and ends of events that have one of their own

BATCH = 1 << 16  # events that are written at once
_END = b"},\n"


def write(trace: Trace, out: BinaryIO) -> None:
    """Write a `pva.trace.Trace` to a stream of bytes."""
    other_data = {
        "wall_clock_ns": trace.anchor.wall_ns,
        "duration_ns": trace.duration_ns,
        "finished": trace.is_finished,
    }
    out.write(b'{"displayTimeUnit":"ns","otherData":' + orjson.dumps(other_data))
    out.write(b',"traceEvents":[\n')
    pids, threads = identifiers(trace)
    for process, pid in zip(trace.processes, pids, strict=True):
        out.write(_named("process_name", (pid, 0), process.name))
    *before, events = accumulate((thread.count for thread in trace.threads), initial=0)
    with part_of(WRITING, events) as tell_done:
        for thread, track, first in zip(trace.threads, threads, before, strict=True):
            out.write(_named("thread_name", track, thread.name))
            for rows, parts in _events(trace, thread.columns, track):
                tell_done(first + rows)
                out.writelines(parts)
    out.writelines(_instants(trace, threads))
    out.writelines(_flows(trace, threads))
    out.writelines(_counters(trace, pids))
    # What ends the list takes no comma: something that every viewer knows and nobody sees.
    last = {"ph": "M", "pid": pids[0] if pids else 0, "tid": 0, "name": "process_sort_index"}
    out.write(orjson.dumps({**last, "args": {"sort_index": 0}}) + b"\n]}\n")


def _named(kind: str, identifiers: Known, name: str) -> bytes:
    event = {
        "ph": "M",
        "pid": identifiers[0],
        "tid": identifiers[1],
        "name": kind,
        "args": {"name": name},
    }
    return _encoded(event) + b",\n"


def _events(
    trace: Trace, columns: Columns, identifiers: Known
) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Return the events some at a time, and how many were before."""
    ends = _ends(columns)
    across = columns.overlapping
    for first in range(0, len(columns), BATCH):
        rows = np.arange(first, min(first + BATCH, len(columns)))
        complete = _complete(trace, columns, rows[~across[rows]], (identifiers, ends))
        yield (
            first,
            chain([complete], _pairs(trace, columns, rows[across[rows]], (identifiers, ends))),
        )


def _complete(trace: Trace, columns: Columns, rows: Integers, track: Track) -> bytes:
    (pid, tid), ends = track
    heads = _heads(trace, columns.label[rows], f'{{"ph":"X","pid":{pid},"tid":{tid}')
    begin, took = _microseconds(columns.begin_ns[rows]), _microseconds(columns.duration_ns[rows])
    tails = [ends.get(row, _END) for row in rows.tolist()] if ends else repeat(_END)
    parts = zip(heads, begin, repeat(b',"dur":'), took, tails, strict=False)
    return b"".join(chain.from_iterable(parts))


def _pairs(trace: Trace, columns: Columns, rows: Integers, track: Track) -> Iterator[bytes]:
    (pid, tid), ends = track
    for phase, times in (("b", columns.begin_ns), ("e", columns.end_ns)):
        start = f'{{"ph":"{phase}","pid":{pid},"tid":{tid}'
        heads = _heads(trace, columns.label[rows], start)
        numbers = (b',"id":"%d.%d.%d"' % (pid, tid, row) for row in rows.tolist())
        tails = (ends.get(row, _END) if phase == "b" else _END for row in rows.tolist())
        parts = zip(heads, _microseconds(times[rows]), numbers, tails, strict=True)
        yield b"".join(chain.from_iterable(parts))


def _heads(trace: Trace, labels: npt.NDArray[np.int32], start: str) -> Iterable[bytes]:
    """Return what each event begins with, up to its time; made once a label."""
    used, place = np.unique(labels, return_inverse=True)
    texts = np.empty(len(used), dtype=object)
    channels = trace.label_channels
    for at, label in enumerate(used.tolist()):
        name = _encoded(trace.labels[label])
        channel = _encoded(trace.channels[channels[label]])
        texts[at] = start.encode() + b',"name":' + name + b',"cat":' + channel + b',"ts":'
    heads: list[bytes] = texts[place].tolist()
    return heads


def _microseconds(nanoseconds: Integers) -> Sequence[bytes]:
    """Write times as numbers with up to three decimals."""
    if not len(nanoseconds):
        return []
    return orjson.dumps(nanoseconds / 1000, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")


def _ends(columns: Columns) -> dict[int, bytes]:
    """Return the ends of those events that have metadata or were open, by row."""
    metadata = zip(columns.metadata.rows.tolist(), columns.metadata.texts, strict=True)
    arguments: dict[int, dict[str, object]] = {row: {"open": True} for row in columns.open_rows}
    for row, text in metadata:
        arguments[row] = arguments.get(row, {}) | {"metadata": plain(text)}
    return {row: b',"args":' + _encoded(args) + _END for row, args in arguments.items()}


def plain(text: str) -> object:
    """Return what metadata says, or its text where that is no JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _instants(trace: Trace, threads: list[Known]) -> Iterator[bytes]:
    instants = trace.instants
    columns = (instants.time_ns, instants.label, instants.channel, instants.thread)
    rows = zip(*(column.tolist() for column in columns), instants.metadata.tolist(), strict=True)
    for time, label, channel, thread, metadata in rows:
        pid, tid = threads[thread]
        event = {
            "ph": "i", "s": "t", "pid": pid, "tid": tid, "name": trace.labels[label],
            "cat": trace.channels[channel], "ts": time / 1000,
        }  # fmt: skip
        if metadata is not None:
            event["args"] = {"metadata": plain(metadata)}
        yield _encoded(event) + b",\n"


def _flows(trace: Trace, threads: list[Known]) -> Iterator[bytes]:
    """Write each flow from one event to another as a start and an end of its own."""
    flows = trace.flows
    columns = (flows.label, flows.thread, flows.time_ns, flows.to_thread, flows.to_time_ns)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for number, (label, thread, time, to_thread, to_time) in enumerate(rows):
        named = {"name": trace.labels[label], "cat": trace.channels[trace.label_channels[label]]}
        for phase, of, now in (("s", thread, time), ("f", to_thread, to_time)):
            pid, tid = threads[of]
            event = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": now / 1000, **named}
            yield _encoded(event | ({"bp": "e"} if phase == "f" else {})) + b",\n"


def _counters(trace: Trace, pids: list[int]) -> Iterator[bytes]:
    for series in trace.series:
        finite = np.isfinite(series.value)
        head = _counter(series.graph, series.unit, pids[series.process])
        middle = b',"args":{' + _encoded(series.name) + b":"
        values = orjson.dumps(series.value[finite], option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
        times = _microseconds(series.time_ns[finite])
        parts = zip(repeat(head), times, repeat(middle), values.split(b","), repeat(b"}},\n"),
                    strict=False)  # fmt: skip
        yield b"".join(chain.from_iterable(parts))
    for heatmap in trace.heatmaps:
        head = _counter(heatmap.name, "", pids[heatmap.process])
        names, counts = zip(*heatmap.bins(), strict=True)
        columns = zip(*(count.tolist() for count in counts), strict=True)
        for time, column in zip(_microseconds(heatmap.time_ns), columns, strict=True):
            cells = _encoded(dict(zip(names, column, strict=True)))
            yield head + time + b',"args":' + cells + b"},\n"


def _counter(name: str, unit: str, pid: int) -> bytes:
    named = _encoded(f"{name} ({unit})" if unit else name)
    return b'{"ph":"C","pid":%d,"tid":0,"name":%b,"ts":' % (pid, named)


def _encoded(value: object) -> bytes:
    """Encode a value; of texts that UTF-8 cannot hold, spell out what it cannot."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()
