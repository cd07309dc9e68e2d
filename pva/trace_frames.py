"""The tables of a host trace as DataFrames: names, columns and units stand in the schema.

`trace.frames.labels()` is a table with its columns in their types: int64, float64, bool, text, and
codes as categoricals. `trace.frames.schema()` tells what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from sys import getsizeof
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.array_types import Values
from pva.errors import nearest
from pva.frames import DTYPES
from pva.lazy import pandas as pd
from pva.model.host_trace.events import Names
from pva.model.host_trace.nesting import Nesting, nest
from pva.model.host_trace.series import Heatmap
from pva.model.host_trace.trace_content import TraceContent

NAMES = tuple(schema.TRACE_TABLE)
Columns = dict[str, Any]
_Coded = tuple[Values, "_Texts"]  # the code of each label, and the texts of the codes
_CODED: WeakKeyDictionary[TraceContent, tuple[Names, _Coded, _Coded]] = WeakKeyDictionary()

BLOCK = 1 << 16  # rows that are looked at at once
# Bytes that are taken for a frame while it is made: of an event in it, of one in a thread that
# nests, of an instant, a flow, a cell of a heatmap, and a text beside itself.
EVENT, NESTED, INSTANT, FLOW, CELL, DISTINCT = 56, 44, 40, 40, 44, 150
STEP = 1 << 20  # bytes of texts between two looks at what is left
_NESTED = ("depth", "parent", "self_ns")
_TIMES = ("begin_ns", "duration_ns", *_NESTED)


class TraceFrames:
    """Tables by name, each a function without arguments that gives a DataFrame."""

    def __init__(self, content: TraceContent) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Callable[[], pd.DataFrame]:
        if name not in NAMES:
            hint = "" if name.startswith("_") else nearest(name, NAMES, "frames.schema()")
            raise AttributeError(f"no table {name}; {hint}")

        def frame() -> pd.DataFrame:
            return frame_of(self._content, name)

        frame.__name__, frame.__doc__ = name, _described(name)
        return frame

    def arrays(self, name: str) -> dict[str, Values]:
        """Return a table as NumPy columns, texts as objects, None where there is none.

        Raises AttributeError for a table that there is not.
        """
        self.__getattr__(name)
        return arrays_of(self._content, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *NAMES]

    def __repr__(self) -> str:
        return f"<TraceFrames: {', '.join(NAMES)}; schema() lists their columns>"

    def _repr_html_(self) -> str:
        return str(self.schema().to_html(index=False))

    def schema(self) -> pd.DataFrame:
        """List every column of every table: name, column, dtype, unit, meaning."""
        rows = [
            (table.name, column.name, DTYPES[column.kind], column.unit, column.meaning)
            for table in schema.TRACE_TABLES
            for column in table.columns
        ]
        return pd.DataFrame(rows, columns=["name", "column", "dtype", "unit", "meaning"])


def frame_of(content: TraceContent, name: str) -> pd.DataFrame:
    """Return a table as a DataFrame, its columns as the schema declares them."""
    arrays = _TABLES[name](content)
    columns = {
        column.name: _typed(column.kind, arrays[column.name])
        for column in schema.TRACE_TABLE[name].columns
    }
    return pd.DataFrame(columns, copy=False)


def arrays_of(content: TraceContent, name: str) -> dict[str, Values]:
    """Return a table as NumPy columns, texts as objects, None where there is none."""
    arrays = _TABLES[name](content)
    columns = schema.TRACE_TABLE[name].columns
    return {column.name: _array(column.kind, arrays[column.name]) for column in columns}


def _array(kind: str, values: Any) -> Values:
    if kind == "code":
        codes, texts = values
        by_code = np.array([*texts, None], dtype=object)
        texts_of_rows: Values = by_code[codes]  # code -1 is the last, None
        return texts_of_rows
    return np.array(values, dtype=object if kind == "text" else DTYPES[kind])


def window(content: TraceContent, begin_ns: int, end_ns: int) -> pd.DataFrame:
    """Return the events that are open at some time of a window; reads no others."""
    lanes = content.lanes.window((begin_ns, end_ns), content.names)
    parts: dict[str, Sequence[Values]] = {
        "begin_ns": [lane.begin_ns for lane in lanes],
        "duration_ns": [lane.duration_ns for lane in lanes],
        "depth": [lane.depth for lane in lanes],
        "open": [lane.is_open for lane in lanes],
    }
    label = _joined([lane.label for lane in lanes], np.int32)
    columns: Columns = {"thread": np.repeat(np.arange(len(lanes)), [len(lane) for lane in lanes])}
    columns |= {name: _joined(part, np.int64) for name, part in parts.items()}
    columns |= _labelled(content, label) | {"open": columns["open"].astype(np.bool_)}
    kinds = {column.name: column.kind for column in schema.TRACE_TABLE["events"].columns}
    order = ("thread", "begin_ns", "duration_ns", "depth", "label", "channel", "open")
    return pd.DataFrame({name: _typed(kinds[name], columns[name]) for name in order}, copy=False)


def _described(name: str) -> str:
    declared = schema.TRACE_TABLE[name]
    lines = [f"Give {name} as a DataFrame: {declared.meaning}.", ""]
    for column in declared.columns:
        kind = ", ".join(filter(None, (DTYPES[column.kind], column.unit)))
        lines.append(f"{column.name} ({kind}): {column.meaning}")
    return "\n".join(lines)


def _typed(kind: str, values: Any) -> object:
    if kind == "code":
        codes, texts = values
        return pd.Categorical.from_codes(codes, dtype=texts.categories)
    if kind == "text":
        return pd.array(np.array(values, dtype=object), dtype="str")
    return np.asarray(values, dtype=DTYPES[kind])


class _Texts(list[str]):
    """Different texts, by their code."""

    @cached_property
    def categories(self) -> pd.CategoricalDtype:
        """The type of a column of their codes."""
        return pd.CategoricalDtype(pd.Index(self, dtype="str"))


def _joined(parts: Sequence[Values], dtype: Any) -> Values:
    """Put arrays after each other in one of a type."""
    joined = np.empty(sum(map(len, parts)), dtype)
    place = 0
    for part in parts:
        joined[place : place + len(part)] = part
        place += len(part)
    return joined


def _codes(texts: Iterable[str]) -> tuple[npt.NDArray[np.int32], _Texts]:
    """Number texts by their first place; a text that comes again has the number it had."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(text, len(numbers)) for text in texts]
    return np.array(codes, _code_type(len(numbers))), _Texts(numbers)


def _code_type(count: int) -> Any:
    """Return the type that pandas takes codes in, so that it makes no others."""
    return np.int8 if count < 127 else np.int16 if count < 32767 else np.int32


class _Distinct(dict[str, int]):
    """Texts -> the number of each, as long as they fit into the memory."""

    def __init__(self, content: TraceContent, place: str) -> None:
        self._content, self._place = content, place
        self._size = self._checked = 0

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        self._size += getsizeof(text) + DISTINCT
        if self._size > self._checked:
            self._checked = self._size + STEP
            self._content.check(self._checked, self._place)
        return number


def _labelled(content: TraceContent, label: npt.NDArray[np.int32]) -> Columns:
    """Return the columns label and channel; a text on two channels is one category."""
    coded = _CODED.get(content)
    if coded is None or coded[0] is not content.names:
        coded = _CODED[content] = (content.names, *_coded(content.names))
    _, (codes, texts), (channels, names) = coded
    return {"label": (_looked_up(codes, label), texts),
            "channel": (_looked_up(channels, label), names)}  # fmt: skip


def _coded(names: Names) -> tuple[_Coded, _Coded]:
    """Return the code of each label, of its text and of its channel, with their categories."""
    codes, texts = _codes(names.labels)
    channels, of_channels = _codes(names.channels)
    of_labels = channels[names.label_channels]
    return (codes, texts), (of_labels, of_channels)


def _looked_up(table: Values, places: Values) -> Values:
    """Return the value at each place, some at a time: NumPy makes places of eight bytes of them."""
    values = np.empty(len(places), table.dtype)
    for first in range(0, len(places), BLOCK):
        values[first : first + BLOCK] = table[places[first : first + BLOCK]]
    return values


def _codes_of_rows(numbers: _Distinct, places: Any, texts: Iterable[str], count: int) -> _Coded:
    """Return texts of some of `count` rows as codes, -1 where there is none."""
    codes = np.fromiter(map(numbers.__getitem__, map(str, texts)), np.int32, len(places))
    codes_of_rows = np.full(count, -1, _code_type(len(numbers)))
    codes_of_rows[places] = codes
    return codes_of_rows, _Texts(numbers)


def _processes(content: TraceContent) -> Columns:
    processes = content.processes
    return {
        "pid": [process.pid for process in processes],
        "name": [process.name for process in processes],
        "threads": [len(process.threads) for process in processes],
        "events": [sum(thread.count for thread in process.threads) for process in processes],
    }


def _threads(content: TraceContent) -> Columns:
    content.check(NESTED * int(content.lanes.counts.max(initial=0)), "threads")
    owners = {id(t): row for row, p in enumerate(content.processes) for t in p.threads}
    rows = []
    for thread, columns in zip(content.threads, content.lanes.look(content.threads), strict=True):
        begin = int(columns.begin_ns[0]) if len(columns) else 0
        end, deepest = int(columns.end_ns.max(initial=begin)), int(columns.depth.max(initial=-1))
        rows.append(
            (owners[id(thread)], thread.pid, thread.tid, thread.name, len(columns),
             deepest + 1, begin, end, int(columns.self_ns.sum()))
        )  # fmt: skip
    names = [column.name for column in schema.TRACE_TABLE["threads"].columns]
    return dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))


def _channels(content: TraceContent) -> Columns:
    sums, count = content.label_sums, len(content.names.channels)
    used = sums.count > 0
    channel = content.names.label_channels

    def summed(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, channel, values)
        return sums

    return {
        "channel": content.names.channels,
        "labels": summed(used.astype(np.int64)),
        "events": summed(sums.count),
        "total_ns": summed(sums.total),
        "self_ns": summed(sums.own),
    }


def _labels(content: TraceContent) -> Columns:
    sums = content.label_sums
    used = np.flatnonzero(sums.count)
    texts = [content.names.labels[label] for label in used.tolist()]
    by_text = np.argsort(np.array(texts, dtype=object), kind="stable") if texts else used
    rows = used[by_text]
    rows = rows[np.argsort(-sums.own[rows], kind="stable")]
    p50, p90, p99 = sums.quantiles[:, rows]
    return _labelled(content, rows.astype(np.int32)) | {
        "count": sums.count[rows],
        "total_ns": sums.total[rows],
        "self_ns": sums.own[rows],
        "mean_ns": sums.total[rows] / sums.count[rows],
        "min_ns": sums.shortest[rows],
        "p50_ns": p50,
        "p90_ns": p90,
        "p99_ns": p99,
        "max_ns": sums.longest[rows],
    }


def _events(content: TraceContent) -> Columns:
    count, start = int(content.lanes.counts.sum()), 0
    amount = EVENT * count
    content.check(amount, "events")

    def check(extra: int) -> None:
        content.check(amount + extra, "events")

    columns: Columns = {name: np.empty(count, np.int64) for name in _TIMES}
    label, is_open = np.empty(count, np.int32), np.zeros(count, np.bool_)
    metadata_rows, texts, sizes = [], [], []
    for thread, lane in zip(content.threads, content.lanes.look(content.threads), strict=True):
        rows = slice(start, start + len(lane))
        is_open[start + lane.open_rows] = True
        metadata_rows.append(start + lane.metadata.rows)
        sizes.append(len(lane))
        texts.append(lane.metadata.texts)
        # What nobody keeps is let go of as it is copied.
        is_held = "columns" in vars(thread)
        take = vars(lane).__getitem__ if is_held else vars(lane).pop
        nesting = Nesting(*(columns[name][rows] for name in _NESTED))
        if "nesting" in vars(lane):
            for column, recorded in zip(nesting, lane.nesting, strict=True):
                column[:] = recorded
        else:
            nest(lane.begin_ns, lane.end_ns, check, nesting)
        np.add(nesting.parent, start, out=nesting.parent, where=nesting.parent >= 0)
        label[rows] = take("label")
        np.subtract(lane.end_ns, lane.begin_ns, out=columns["duration_ns"][rows])
        take("end_ns")
        columns["begin_ns"][rows] = take("begin_ns")
        start = rows.stop
    if start < count:  # a damaged chunk has no events
        columns = {name: column[:start] for name, column in columns.items()}
        label, is_open = label[:start], is_open[:start]
    places, metadata = _joined(metadata_rows, np.int64), chain.from_iterable(texts)
    return {
        **columns,
        **_labelled(content, label),
        "open": is_open,
        "metadata": _codes_of_rows(_Distinct(content, "events"), places, metadata, start),
        "thread": np.repeat(np.arange(len(sizes)), sizes),
    }


def _instants(content: TraceContent) -> Columns:
    content.check(INSTANT * len(content.instants), "instants")
    instants = content.instants
    recorded = instants.metadata.there
    numbers = _Distinct(content, "instants")
    return {
        "time_ns": instants.time_ns,
        "thread": instants.thread,
        **_labelled(content, instants.label),
        "metadata": _codes_of_rows(numbers, recorded, instants.metadata[recorded], len(instants)),
    }


def _flows(content: TraceContent) -> Columns:
    flows = content.flows
    content.check(FLOW * len(flows), "flows")
    return {
        "time_ns": flows.time_ns,
        "thread": flows.thread,
        "to_time_ns": flows.to_time_ns,
        "to_thread": flows.to_thread,
        **_labelled(content, flows.label),
    }


def _lines(content: TraceContent) -> Columns:
    lines = content.series
    counts = [len(line.time_ns) for line in lines]

    def repeated(texts: Iterable[str]) -> tuple[npt.NDArray[np.int32], _Texts]:
        codes, distinct = _codes(texts)
        return np.repeat(codes, counts), distinct

    return {
        "pid": np.repeat([line.pid for line in lines], counts),
        "graph": repeated(line.graph for line in lines),
        "series": repeated(line.name for line in lines),
        "unit": repeated(line.unit for line in lines),
        "time_ns": _joined([line.time_ns for line in lines], np.int64),
        "value": _joined([line.value for line in lines], np.float64),
    }


def _heatmaps(content: TraceContent) -> Columns:
    maps = content.heatmaps
    counts = [sum(map(np.count_nonzero, (one.below, one.counts, one.above))) for one in maps]
    content.check(CELL * sum(counts), "heatmaps")
    kinds = {"time_ns": np.int64, "low": np.float64, "high": np.float64, "count": np.int64}
    columns = {name: np.empty(sum(counts), kind) for name, kind in kinds.items()}
    start = 0
    for part in chain.from_iterable(map(_cells, maps)):
        rows = slice(start, start + len(part[0]))
        for column, values in zip(columns.values(), part, strict=True):
            column[rows] = values
        start = rows.stop
    names, units = _codes(one.name for one in maps), _codes(one.unit for one in maps)
    return {
        "pid": np.repeat(np.array([one.pid for one in maps], np.int64), counts),
        "heatmap": (np.repeat(names[0], counts), names[1]),
        "unit": (np.repeat(units[0], counts), units[1]),
        **columns,
    }


def _cells(one: Heatmap) -> Iterator[tuple[Values, ...]]:
    """Return time, lower and upper edge, and count of the cells that hold a value."""
    edges = np.concatenate(([-np.inf], one.edges, [np.inf]))
    step = max(BLOCK // len(edges), 1)
    for first in range(0, len(one.time_ns), step):
        rows = slice(first, first + step)
        inside = one.counts[rows].astype(np.int64)
        counts = np.column_stack((one.below[rows], inside, one.above[rows]))
        column, cell = np.nonzero(counts)
        yield one.time_ns[rows][column], edges[cell], edges[cell + 1], counts[column, cell]


_TABLES: dict[str, Callable[[TraceContent], Columns]] = {
    "processes": _processes,
    "threads": _threads,
    "channels": _channels,
    "labels": _labels,
    "events": _events,
    "instants": _instants,
    "flows": _flows,
    "series": _lines,
    "heatmaps": _heatmaps,
}
