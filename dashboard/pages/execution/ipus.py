"""What each IPU did in a part of the execution, a row each, and why they do not compute."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from dash import html

from dashboard.address import Address, Filter, Range
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Element, Frame
from dashboard.store import Store
from dashboard.timeline.endpoint import timeline
from pva import units
from pva.analysis.execution import ranges
from pva.analysis.filters import texts_matching
from pva.analysis.waiting import causes
from pva.plot.lanes import Timeline
from pva.plot.theme import Theme

MOVED = (
    ("stream", "Streams"), ("remote", "Remote buffers"), ("global", "Between IPUs"),
)  # fmt: skip
# The columns of `why_idle`: what tiles that do not compute do or wait for.
REASONS = {
    "imbalance": "the slowest tile of its compute sets",
    "bubble": "an IPU that computes",
    "exchange": "exchange on an IPU",
    "global_exchange": "exchange between IPUs",
    "host": "the host",
    "sync": "syncs, and the way there and back",
}
IDLE_COLUMNS = declared_columns(
    causes.why_idle,
    "ipu@60 IPU",
    "compute@96 Computes",
    "waits_for/text@92 Waits for",
    "imbalance@96 Imbalance",
    "bubble@88 Bubble",
    "exchange@96 Exchange",
    "global_exchange@124 Between IPUs",
    "host@80 Host",
    "sync@80 Sync",
    "meanwhile/name@120 It then runs",
)


def idle(store: Store, state: Address, _theme: Theme) -> Element:
    """Return why each IPU does not compute, in all recorded runs; raises PvaError."""
    report = store.report(state.report)
    frame = store.derived(state.report, "why idle", lambda: causes.why_idle(report).frame())
    note = html.P(components.prose(sentence(frame)), className="note")
    path = store.derived(
        state.report, "path by program", lambda: causes.critical_path(report).frame()
    )
    path_note = html.P(components.prose(path_sentence(path)), className="note")
    names = np.where(frame["waits_for"] >= 0, "IPU " + frame["waits_for"].astype(str), "–")
    names = np.where(frame["waits_for"] == frame["ipu"], "its own tiles", names)
    frame = frame.assign(waits_for=names)
    table = components.table("execution-idle", frame, IDLE_COLUMNS, picks=("ipu", "ipu"))
    return html.Div([note, table, path_note])


def sentence(frame: Frame) -> str:
    """Return which IPU computes least, and what keeps it from that."""
    if not len(frame):
        return ""
    worst = frame.iloc[int(frame["compute"].to_numpy().argmin())]
    reason = max(REASONS, key=lambda name: float(worst[name]))
    who = "It" if len(frame) == 1 else f"IPU {worst['ipu']}"
    text = (
        f"{who} computes {units.share(worst['compute'])} of the time; what keeps it longest is "
        f"{REASONS[reason]}, {units.share(worst[reason])}."
    )
    if worst["waits_for"] in (worst["ipu"], -1):
        return text
    return f"{text} It waits for IPU {worst['waits_for']} most, which runs {worst['meanwhile']}."


def path_sentence(path: Frame) -> str:
    """Write through which IPU the critical path goes, and which program is longest on it."""
    steps = path[path["type"] != causes.SYNC]
    if not len(steps):
        return ""
    most = causes.path_share(path)
    through = f" goes through IPU {most.ipu} for {units.share(most.share)} of its length, and"
    where = through if most.ipus > 1 else ""
    longest = steps.iloc[0]
    return (
        f"The critical path{where} is longest in {longest['name']}, "
        f"{units.share(longest['share'])}. The switch above draws it."
    )


def table_of(
    store: Store, keys: list[str], window: Range, by: Filter | None, run_timeline: Timeline
) -> Element:
    """Return a row for each IPU of each report: shares as a bar and in figures, balances, bytes."""
    rows = [row for key in keys for row in _rows(store, key, window, by, named=len(keys) > 1)]
    used = [
        (number, token, words)
        for number, (token, words) in enumerate(run_timeline.colours)
        if any(row["spent"][number] for row in rows)
    ]
    moved = [
        (name, words)
        for name, words in MOVED
        if any(row[f"{name}_bytes_{way}"] for row in rows for way in ("in", "out"))
    ]
    cycles = window.end - window.begin
    swatches = [_headed(token, words) for _, token, words in used]
    extra_heads = ["Other steps"] if by else []
    of = " of all steps" if by else ""
    heads = [
        "IPU",
        "Its steps",
        *swatches,
        *extra_heads,
        "Idle",
        f"Efficiency{of}",
        f"Tile balance{of}",
    ]
    heads += [words for _, words in moved]
    head = html.Tr([html.Th(text, scope="col", title=_note(text)) for text in heads])
    body = [_row(row, used, moved, cycles, filtered=by is not None) for row in rows]
    table = html.Table([html.Thead(head), html.Tbody(body)], className="facts ipu-rows")
    return html.Div(table, className="ipu-table", tabIndex="0", role="region",
                    **{"aria-label": "What each IPU did"})  # fmt: skip


def _note(head: Element) -> str | None:
    return next((words for begin, words in NOTES.items() if str(head).startswith(begin)), None)


NOTES = {
    "Idle": "Between its steps",
    "Efficiency": "Cycles in which its tiles do not wait, of all their cycles",
    "Tile balance": "Mean tile / busiest tile of what was run, weighted by cycles",
    "Streams": "In and out",
    "Remote buffers": "In and out",
    "Between IPUs": "In and out",
}


def _headed(token: str, words: str) -> Element:
    swatch = html.Span(className="swatch", style={"background": f"var(--{token})"})
    return html.Span([swatch, words], className="swatched")


def _rows(
    store: Store, key: str, window: Range, by: Filter | None, *, named: bool
) -> list[dict[str, Any]]:
    """Return the figures of the IPUs of a report: of steps that a filter lets through, if any."""
    report, run_timeline = store.report(key), timeline(store, "device", key)
    hits = texts_matching(run_timeline.labels, by) if by else None
    is_whole = (window.begin, window.end) == run_timeline.extent
    make = partial(ranges.range_by_ipu, report, begin=window.begin, end=window.end)
    frame = store.derived(key, "all by IPU", make) if is_whole else make()
    return [
        {
            "name": f"{key}, {lane.name}" if named else lane.name,
            "spent": run_timeline.spent(lane.overview, window.begin, window.end, hits).tolist(),
            "every": run_timeline.spent_in_all(lane.overview, window.begin, window.end),
            **{str(name): value for name, value in row.items()},
        }
        for lane, row in zip(run_timeline.lanes, frame.to_dict("records"), strict=False)
    ]


def _row(
    row: dict[str, Any],
    used: list[tuple[int, str, str]],
    moved: list[tuple[str, str]],
    cycles: int,
    *,
    filtered: bool,
) -> Element:
    spent = [(token, words, row["spent"][number]) for number, token, words in used]
    remainder = row["every"] - sum(amount for _, _, amount in spent)
    idle = max(cycles - row["every"], 0)
    tail = [("line", "Other steps", remainder), ("idle", "Idle", idle)]
    parts = [*sorted(spent, key=lambda part: -part[2]), *tail]
    bar = [
        html.Span(
            className="bar-part",
            title=f"{words} {units.share(amount / max(cycles, 1))}",
            style={
                "width": f"{100 * amount / max(cycles, 1):.4f}%",
                "background": f"var(--{token})",
            },
        )
        for token, words, amount in parts
        if amount > 0
    ]
    shares = [units.share(amount / max(cycles, 1)) if amount else "–" for _, _, amount in spent]
    balance = row["tile_balance"]
    texts = [
        *shares,
        *([units.share(remainder / max(cycles, 1))] if filtered else []),
        units.share(idle / max(cycles, 1)),
        units.share(row["parallel_efficiency"]),
        units.share(balance) if balance == balance else "–",
        *(
            f"{units.size(row[f'{name}_bytes_in'])}, {units.size(row[f'{name}_bytes_out'])}"
            for name, _ in moved
        ),
    ]
    cells = [html.Td(text, className="number") for text in texts]
    bars = html.Td(html.Div(bar, className="bar"), className="ipu-bar")
    return html.Tr([html.Th(row["name"], scope="row"), bars, *cells])
