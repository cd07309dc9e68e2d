"""Where the time of the host goes: the labels, the call tree and the callers of a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from dash import html

from dashboard import address, controls, tables
from dashboard.address import Address, Range
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Element, Frame
from dashboard.store import Align, Store
from dashboard.timeline.endpoint import align_of, host_trace, unmerged
from pva import units
from pva.analysis.host.events import CallTree, call_tree, callers, label_figures
from pva.analysis.host.labels import label_statistics
from pva.analysis.host.profilers import wrappers_last
from pva.analysis.selection import SelectionError
from pva.lazy import pandas as pd
from pva.plot.lanes import Timeline
from pva.plot.theme import Theme

LABEL_COLUMNS = (
    *declared_columns(label_statistics, "label/name Label", "channel/text@140 Channel"),
    *declared_columns(
        label_figures,
        "count@90 Events", "total@100 Total", "self_time@100 Self", "mean@100 Mean",
        "p50@100 Median", "p95@100 95 %", "longest@100 Longest",
    ),
)  # fmt: skip
TABS = (("labels", "By label"), ("calls", "Call tree"), ("callers", "Bottom up"))
PICKS = ("event", "event")  # of a label its longest event
MAX_EVENTS = 2_000_000  # that tables are made of while somebody waits
GROWN = 1.1  # times the events by which all labels of a trace that grows are counted anew
MAX_NODES = 400  # of a tree; those with less time are left out


def aligned(state: Address) -> Align:
    """Return how several files lie: by the wall clock, or all from their begin."""
    return align_of(state.text("align"))


def window_of(timeline: Timeline, state: Address) -> tuple[Range, str]:
    """Return the part of the trace that is chosen, or in view, and what to call it."""
    selection = state.text("selection")
    if selection:
        return address.parse_range(selection, "selection"), "In the chosen range"
    return (state.range, "In view") if state.range else (Range(*timeline.extent), "In all")


def events_touching(timeline: Timeline, window: Range) -> int:
    """Count the events of threads in a window."""
    rows = (row for first, stop in timeline.threads for row in range(first, stop))
    spans = (timeline.tracks.touching(row, window.begin, window.end) for row in rows)
    return sum(stop - first for first, stop in spans)


def _is_much(timeline: Timeline, window: Range) -> bool:
    """Return whether a window of more events than are summed up at once is all of the trace."""
    begin, end = timeline.extent
    if window.begin > begin or window.end < end:
        return False
    return events_touching(timeline, window) > MAX_EVENTS


@dataclass(frozen=True, slots=True)
class _Counted:
    """The labels of a whole trace, when it had so many events."""

    begun_ns: int
    events: int
    frame: Any


def _whole_labels(store: Store, state: Address) -> _Counted:
    """Return the labels of a whole trace; of one that grows they are counted anew now and then."""
    trace = host_trace(store, state.report, aligned(state))
    begun, events = trace.anchor.wall_ns, sum(thread.count for thread in trace.threads)

    def make(former: _Counted | None) -> _Counted:
        grows = not trace.is_finished and former is not None and former.begun_ns == begun
        if former and grows and former.events <= events < GROWN * former.events:
            return former
        return _Counted(begun, events, label_statistics(trace).frame())

    return store.continued(state.report, "label statistics", make)


def _whole_frame(store: Store, state: Address) -> Frame:
    """Return the labels of a whole trace, without the 95 % that these figures lack."""
    frame: Frame = _whole_labels(store, state).frame
    names = {"total_ns": "total", "self_ns": "self_time", "mean_ns": "mean", "p50_ns": "p50",
             "max_ns": "longest"}  # fmt: skip
    return frame.rename(columns=names).assign(p95=np.nan)


def label_frame(store: Store, state: Address) -> Frame:
    """Return the labels of a part of the trace, filtered."""
    timeline = unmerged(store, state.report, aligned(state))
    window, _ = window_of(timeline, state)
    trace = host_trace(store, state.report, aligned(state))
    if _is_much(timeline, window):
        frame = wrappers_last(_whole_frame(store, state), trace)
        return components.filtered(frame, state.filter)
    frame = label_figures(timeline.tracks, timeline.threads, window.begin, window.end).frame()
    numbers = frame["label"].tolist()
    frame = frame.assign(
        label=[timeline.labels[number] for number in numbers],
        channel=[timeline.colours[int(timeline.tracks.kind[number])][1] for number in numbers],
    )
    return components.filtered(wrappers_last(frame, trace), state.filter)


def time_tables(store: Store, state: Address, _theme: Theme) -> Element:
    """Show the labels, the call tree or the callers of a part of the trace."""
    timeline = unmerged(store, state.report, aligned(state))
    window, words = window_of(timeline, state)
    length = units.duration((window.end - window.begin) / 1e9)
    tab = state.option("tab", [value for value, _ in TABS])
    events = events_touching(timeline, window)
    if events > MAX_EVENTS and not (tab == "labels" and _is_much(timeline, window)):
        hint = f"Zoom in, or choose a range with Shift, to at most {MAX_EVENTS:,} events."
        return components.message(
            f"{events:,} events are {words[0].lower()}{words[1:]}.", hint=hint
        )
    only = ""
    if tab == "labels" and _is_much(timeline, window):
        first = _whole_labels(store, state).events
        only = f"; of the first {first:,} events" if first < events else ""
    note = html.P(
        f"{words}, {length}; what an event takes by itself is its self time{only}",
        className="note",
    )
    save = html.Div(controls.exports(f"trace-{tab}"), className="tools")
    head = html.Div([note, save], className="tabs-row")
    if tab == "labels":
        return html.Div([head, tables.paged("trace-label-table", LABEL_COLUMNS, picks=PICKS)])
    nodes, every = _tree(timeline, window, tab)
    needle = state.filter.value if state.filter else ""
    rows = tree_rows(nodes, timeline.labels, needle.casefold(), every)
    headings: tuple[str, ...] = ("Label", "Events", "With what is inside", "Self", "Share of all")
    if tab == "callers":  # all that a node has is self time
        rows = [replace(row, cells=(row.cells[0], *row.cells[2:])) for row in rows]
        headings = ("Label", "Events", "Self", "Share of all")
    return html.Div([head, tables.tree(headings, rows, state)])


def _tree(timeline: Timeline, window: Range, tab: str) -> tuple[CallTree, int]:
    """Return the tree of a tab, and the time in which threads were inside events."""
    nodes = call_tree(timeline.tracks, timeline.threads, window.begin, window.end)
    return callers(nodes) if tab == "callers" else nodes, nodes.whole_time()


def frame_of(store: Store, state: Address) -> Frame:
    """Return the rows of the tab for a file: of a tree all nodes, each behind its parent."""
    tab = state.option("tab", [value for value, _ in TABS])
    if tab == "labels":
        return label_frame(store, state)
    timeline = unmerged(store, state.report, aligned(state))
    window, words = window_of(timeline, state)
    events = events_touching(timeline, window)
    if events > MAX_EVENTS:
        raise SelectionError(words, f"{events:,} events", f"choose at most {MAX_EVENTS:,}")
    nodes, every = _tree(timeline, window, tab)
    times = {"total": nodes.total, "self_time": nodes.self_time}
    frame = pd.DataFrame(
        {
            "node": np.arange(len(nodes.label)),
            "parent": nodes.parent,
            "label": [timeline.labels[number] for number in nodes.label.tolist()],
            "count": nodes.count,
            **(times if tab == "calls" else {"self_time": nodes.total}),
            "share": nodes.total / max(every, 1),
        }
    )
    return components.filtered(frame, state.filter)


def tree_rows(nodes: CallTree, labels: Sequence[str], needle: str, every: int) -> list[tables.Row]:
    """List the nodes of a tree, those with the most time first, below what they lie in.

    Shares are of `every`, the time in which threads were inside events.
    """
    largest = set(np.argsort(-nodes.total, kind="stable")[:MAX_NODES].tolist())
    below: dict[int, list[int]] = {}
    for node in largest:
        below.setdefault(int(nodes.parent[node]), []).append(node)
    rows: list[tables.Row] = []
    todo = [(node, "") for node in _by_time(nodes, below.get(-1, []))]
    while todo:
        node, path = todo.pop()
        name = labels[int(nodes.label[node])]
        place = f"{path}/{node}" if path else str(node)
        cells = (
            f"{int(nodes.count[node]):,}",
            units.duration(int(nodes.total[node]) / 1e9),
            units.duration(int(nodes.self_time[node]) / 1e9),
            units.share(int(nodes.total[node]) / max(every, 1)),
        )
        if not needle or needle in name.casefold():
            picks = ("event", str(int(nodes.event[node])))
            rows.append(tables.Row(place if not needle else str(node), name, cells, picks=picks))
        todo += [(child, place) for child in _by_time(nodes, below.get(node, []))]
    return rows


def _by_time(nodes: CallTree, among: list[int]) -> list[int]:
    """Sort nodes so that the last has the most time."""
    return sorted(among, key=lambda node: int(nodes.total[node]))
