"""The list of runs on Start: a card each, with what is worth knowing before one is opened."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from dash import dcc, html

from dashboard import address
from dashboard.address import Address
from dashboard.elements import components
from dashboard.elements.components import Element, Frame
from dashboard.elements.static_elements import StaticElements
from dashboard.figures.sketch import sketch
from dashboard.pages.headlines import counted
from dashboard.pages.targets import ARCHITECTURES, KINDS
from dashboard.store import Store
from pva import units
from pva.analysis.whole_report.overview import (
    ReportOverview,
    recorded_parts,
    report_overview,
    report_sketch,
)
from pva.errors import PvaError
from pva.lazy import pandas as pd
from pva.plot.theme import Theme

FIELDS = tuple(field.name for field in fields(ReportOverview))
MAX_LISTED = 60  # runs that are opened to say what is in them
ALWAYS_RECORDED = ("programs", "code")  # parts that are not worth a word of their own
NEWEST, BY_NAME, FULLEST, LONGEST = "newest", "name", "fullest", "longest"
ORDERS = (
    (NEWEST, "Newest first"),
    (BY_NAME, "By name"),
    (FULLEST, "Fullest tile first"),
    (LONGEST, "Longest run first"),
)
ALL, FITTING, FULL, TRACES = "all", "fits", "full", "traces"
KINDS_SHOWN = (
    (ALL, "All runs"),
    (FITTING, "That fit"),
    (FULL, "That do not fit"),
    (TRACES, "Host traces"),
)


# The parts of a card and what they show.
PARTS = {
    "Verdict": "Whether the program fits, what its fullest tile uses, how long its runs took",
    "Tiles": "What each tile needs, gaps included; the dashed line is the memory of a tile",
    "Cycles": "How compute, exchange, host exchange and sync share the cycles of the recorded runs",
    "Liveness": "What is live at each program step, the always-live included",
    "Recorded": "The parts that a page can show",
}


@dataclass(frozen=True, slots=True)
class Glance:
    """A run at a glance: its figures, the words for the parts recorded, its pictures."""

    found: ReportOverview
    recorded: tuple[str, ...]
    pictures: list[Any]


def wanted(store: Store, state: Address) -> list[str]:
    """Return the runs that the filters let through, in the chosen order."""
    text = state.text("find").lower()
    keys = [key for key in store.keys if text in key.lower()]
    kind = state.option("kind", [value for value, _ in KINDS_SHOWN])
    if kind != ALL:
        keys = [key for key in keys if _is_of(store, key, kind)]
    order = state.option("order", [value for value, _ in ORDERS])
    if order == BY_NAME:
        return sorted(keys)
    rank = {NEWEST: _changed, FULLEST: _fullness, LONGEST: _seconds}[order]
    return sorted(keys, key=lambda key: -rank(store, key))


def _is_of(store: Store, key: str, kind: str) -> bool:
    try:
        if not store.has_report(key):
            return kind == TRACES
        out = at_a_glance(store, key).found.tiles_out_of_memory
    except PvaError:
        return False
    return out == 0 if kind == FITTING else out > 0 if kind == FULL else False


def _changed(store: Store, key: str) -> float:
    """Return when the files of a run were written last, in nanoseconds."""
    try:
        return float(max((when for *_, when in store.stamp(key)), default=0))
    except PvaError:
        return 0.0


def _fullness(store: Store, key: str) -> float:
    overview = _found(store, key)
    return overview.fullest_bytes / max(overview.bytes_per_tile, 1) if overview else -1.0


def _seconds(store: Store, key: str) -> float:
    overview = _found(store, key)
    return overview.seconds if overview else -1.0


def _found(store: Store, key: str) -> ReportOverview | None:
    try:
        return at_a_glance(store, key).found if store.has_report(key) else None
    except PvaError:
        return None


def at_a_glance(store: Store, key: str) -> Glance:
    """Look into a report, once while its files do not change; raises PvaError."""
    entry = ("at a glance", key, store.stamp(key), units.manner())
    return store.answer(entry, lambda: _glance(store, key))


def _glance(store: Store, key: str) -> Glance:
    """Look into a report without keeping it open: the other reports stay as they are."""
    report = store.report_anew(key)
    parts = recorded_parts(report).frame()
    names = parts["part"][parts["recorded"] & ~parts["part"].isin(ALWAYS_RECORDED)].tolist()
    names += ["host trace"] if store.has_trace(key) else []
    return Glance(report_overview(report), tuple(names), sketch(report_sketch(report).frame()))


def reports_frame(store: Store, state: Address) -> Frame:
    """Return a row for each run of the list, empty where something was not recorded."""
    rows = [_of_report(store, key) for key in wanted(store, state)]
    frame = pd.DataFrame(rows, columns=["report", "files", *FIELDS, "recorded", "problem"])
    return frame.replace(-1, None).convert_dtypes()


def _of_report(store: Store, key: str) -> dict[str, object]:
    try:
        row: dict[str, Any] = {"report": key, "files": store.size(key)}
        if not store.has_report(key):
            return row | {"recorded": "host trace"}
        seen = at_a_glance(store, key)
        return row | asdict(seen.found) | {"recorded": ", ".join(seen.recorded)}
    except PvaError as problem:
        return {"report": key, "problem": str(problem)}


def cards(store: Store, state: Address, theme: Theme) -> Element:
    """Show a card for each run."""
    del theme
    keys = wanted(store, state)
    if not keys:
        text = "No report fits the filter." if store.keys else "No report found."
        return components.message(text)
    shown = html.Ul([_card(store, key) for key in keys[:MAX_LISTED]], className="runs")
    if len(keys) <= MAX_LISTED:
        return shown
    note = f"{len(keys) - MAX_LISTED:,} more; filter to see them."
    return html.Div([shown, html.P(note, className="note")])


def _card(store: Store, key: str) -> Element:
    try:
        if not store.has_report(key):
            link = address.write(Address("/trace", key))
            return _framed(key, link, _when(store, key), "Host trace", "")
        seen = at_a_glance(store, key)
    except PvaError as problem:
        return _framed(key, summary_link(key), "", str(problem), "bad")
    target = _target(seen.found)
    verdict, tone = _verdict(seen.found)
    parts = [
        html.Div(StaticElements(seen.pictures) if seen.pictures else None, className="sketches"),
        html.P(f"Recorded: {', '.join(seen.recorded)}", className="note"),
    ]
    moment = seen.found.created.replace("T", " ").replace("Z", "") or _when(store, key)
    return _framed(key, summary_link(key), f"{target} · {moment}", verdict, tone, *parts)


def _framed(key: str, link: str, about: str, verdict: str, tone: str, *parts: Element) -> Element:
    return html.Li(
        [
            html.H3(dcc.Link(key, href=link, className="run-link")),
            html.P(about, className="note"),
            html.P(verdict, className=f"verdict {tone}".strip()),
            *parts,
        ],
        className="run",
    )


def summary_link(key: str) -> str:
    """Return the link to the first page of a report."""
    return address.write(Address("/summary", key))


def _when(store: Store, key: str) -> str:
    moment = datetime.fromtimestamp(_changed(store, key) / 1e9, UTC)
    return f"{moment:%Y-%m-%d %H:%M}, {components.unbroken(units.size(store.size(key)))}"


def _target(overview: ReportOverview) -> str:
    tiles = counted(overview.tiles, "tile") if overview.tiles >= 0 else ""
    ipus = counted(overview.ipus, "IPU") if overview.ipus > 1 else ""
    kind = KINDS.get(overview.type, overview.type)
    name = ARCHITECTURES.get(overview.architecture, overview.architecture)
    return components.prose(", ".join(part for part in (kind, name, ipus, tiles) if part))


def _verdict(overview: ReportOverview) -> tuple[str, str]:
    """Return whether a run fits, how full it is and how long it took, and with which tone."""
    fit, tone = _fit(overview)
    return f"{fit}. {_runs(overview)}.", tone


def _fit(overview: ReportOverview) -> tuple[str, str]:
    if overview.fullest_bytes < 0:
        return "Memory was not recorded", ""
    share = overview.fullest_bytes / max(overview.bytes_per_tile, 1)
    used = components.unbroken(f"{units.size(overview.fullest_bytes)} ({units.share(share)})")
    without = "" if overview.code_counted else ", without code"
    if overview.tiles_out_of_memory:
        tiles = counted(overview.tiles_out_of_memory, "tile")
        return f"Does not fit: {tiles} out of memory, the fullest needs {used}{without}", "bad"
    return f"Fits: the fullest tile uses {used}{without}", "good" if overview.code_counted else ""


def _runs(overview: ReportOverview) -> str:
    if overview.runs < 0:
        out = overview.tiles_out_of_memory > 0
        return "Never run: the program does not fit" if out else "No run was recorded"
    if not overview.runs:
        return "Never run"
    words = f"{units.count(overview.cycles)} cycles ({units.duration(overview.seconds)})"
    return f"{counted(overview.runs, 'recorded run')}: {components.unbroken(words)}"
