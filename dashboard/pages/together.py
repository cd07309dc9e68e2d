"""What did the device do while the host waited, and the reverse? Both on one axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import Dash, dcc, html

from dashboard import controls, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.details.objects import AT
from dashboard.elements import components
from dashboard.elements.components import Element, section
from dashboard.pages.canvas import canvas, follow
from dashboard.pages.headlines import counted
from dashboard.store import Store
from dashboard.timeline.endpoint import alignment, axis_of, host
from pva import units
from pva.analysis.host.alignment import CALLBACK, PHASES, RUN, Alignment, Waits, gaps, waits
from pva.analysis.host.events import label_figures
from pva.errors import PvaError
from pva.plot.lanes import Timeline
from pva.plot.theme import Theme

PATH, TITLE = "/together", "Device and host"
QUESTION = "What did the device do while the host waited, and the reverse?"

AXES = (("device", "As on the device"), ("simulated", "As simulated"))
AXIS_NOTES = {
    "device": "from the model's first run on: each run takes its cycles / clock, later host events "
    "move up, and the simulator's own phases are hidden; X switches",
    "simulated": "the wall clock: the steps of a run are stretched over the time that it was "
    "simulated for, so that their lengths are not those of the device; X switches",
}
MAX_GAPS, MAX_BEFORE = 5, 10


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    objects={"at": {"": AT}},
    docked="at",
    order=140,
    letter="b",
    icon="M2.5 3.5h6v3h-6zm5 6h6v3h-6zm-2-3v4.5h2",
    subject="report and trace",
    controls={
        "axis": (
            "Axis",
            (
                "As on the device, where a run takes its cycles, or as "
                "simulated, where it takes the time of the simulation"
            ),
        ),
    },
    laws=("execution", "steps", "runs"),
    chapter="""\
**What did the device do while the host waited, and the reverse?** Both are on one axis. *As on
the device* begins with the model's first run, gives each run the cycles that it takes, moves
later events of the host up, and leaves out what the simulator does for itself: what you would see
on hardware. *As simulated* is the wall clock of the simulation.

Below: who waited for whom, and the longest gaps between runs with what the host did meanwhile.
What came before the first run, such as building and compiling, is folded at the end.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether runs of the report are in its host trace."""
    if not store.has_report(report) or store.trace(report) is None:
        return False
    try:
        return bool(len(alignment(store, report).run))
    except PvaError:
        return False


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    aligned_runs = alignment(store, state.report)
    timeline = host(store, state.report).timeline
    result = waits(store.report(state.report), aligned_runs, timeline.tracks, timeline.labels)
    return html.Div(
        [
            components.title(QUESTION),
            components.headline(
                sentence(aligned_runs, result), more=delay_sentence(store, state, aligned_runs)
            ),
            section(
                "Device and host",
                view.panel("together-axis", PATH, ("axis",)),
                canvas("together", "Device and host on one axis"),
                note=counted(len(aligned_runs.run) - aligned_runs.first, "run") + " in the trace",
                tools=controls.choice("axis", AXES, state, label="Axis"),
            ),
            findings(aligned_runs, result),
            section(
                "Longest gaps between runs",
                gap_list(store, state, aligned_runs, result.total),
                note="on the axis of the device, with what the host did by itself meanwhile",
            ),
            before_first_run(store, state, aligned_runs, result),
        ]
    )


def sentence(aligned_runs: Alignment, result: Waits) -> str:
    """Return how the time is shared between device and host."""
    total = max(result.total, 1)
    count = len(aligned_runs.run) - aligned_runs.first
    runs = counted(count, "run")
    between = f", {units.share(result.between / total)} of it between runs" if count > 1 else ""
    return (
        f"From the first run on, {units.duration(result.total / 1e9)}: the device runs for "
        f"{units.duration(result.device / 1e9)} ({units.share(result.device / total)}) in {runs} "
        f"and waits for the host for the rest{between}."
    )


def delay_sentence(store: Store, state: Address, aligned_runs: Alignment) -> str:
    """Name what the host did longest by itself between runs."""
    begin, end = int(aligned_runs.begin[aligned_runs.first]), int(aligned_runs.end[-1])
    pairs = _by_itself(host(store, state.report).timeline, begin, end)
    pairs = [pair for pair in pairs if pair[0] != RUN and not pair[0].startswith(CALLBACK)]
    if not pairs:
        return ""
    name, time = pairs[0]
    return f"What delays it most is {name}: {units.duration(time / 1e9)} between runs."


def axis_words(_store: Store, state: Address, _theme: Theme) -> Element:
    """Return what the axis shows."""
    return html.P(AXIS_NOTES[axis_of(state.text("axis"))], className="note")


def findings(aligned_runs: Alignment, result: Waits) -> Element:
    """List who waited for whom, with shares of the time on the axis of the device."""
    total = max(result.total, 1)
    rows = [
        ("The device runs", result.device, "the host waits in Engine.run"),
        ("Host between runs", result.between, "the device waits"),
        ("Host after the last run", result.after, "the device is done"),
    ]
    body = [
        html.Tr(
            [
                html.Th([words, html.Span(f", {meaning}", className="quiet")], scope="row"),
                html.Td(units.duration(time / 1e9), className="number"),
                html.Td(units.share(time / total), className="number"),
            ]
        )
        for words, time, meaning in rows
    ]
    mean = result.callback_time / max(result.callbacks, 1)
    spent, copied = (
        f"{units.duration(time / 1e9)} ({units.share(time / total)} of the time)"
        for time in (result.callback_time, result.stream_copies)
    )
    callbacks = (
        f"{counted(result.callbacks, 'stream callback')} of the host took {spent} inside runs, "
        f"{units.duration(mean / 1e9)} each; the stream copies of the recorded runs take {copied} "
        f"on the device."
        if result.callbacks
        else "No stream callback of the host is in the trace."
    )
    return section(
        "Who waits for whom",
        html.Table(html.Tbody(body), className="facts top-steps"),
        html.P(callbacks, className="note"),
        note="as on the device",
    )


def gap_list(store: Store, state: Address, aligned_runs: Alignment, total: int) -> Element:
    """List the longest gaps, what the host did in them, and the way there."""
    frame = gaps(aligned_runs).head(MAX_GAPS)
    if not len(frame):
        return components.message("There is one run, and no gap between runs.")
    rows = []
    for gap in frame.to_dict("records"):
        window = f"{max(int(gap['begin']), 0)}-{int(gap['begin'] + gap['length']) + 1}"
        link = (
            f"{PATH}?report={state.report}&range={window}"
            if state.report
            else f"{PATH}?range={window}"
        )
        rows.append(
            html.Tr(
                [
                    html.Th(dcc.Link(_before(gap), href=link), scope="row"),
                    html.Td(units.duration(gap["length"] / 1e9), className="number"),
                    html.Td(units.share(gap["length"] / max(total, 1)), className="number"),
                    html.Td(_did(store, state, int(gap["wall_begin"]), int(gap["wall_end"]))),
                ]
            )
        )
    return html.Table(html.Tbody(rows), className="facts top-steps")


def _before(gap: Mapping[Any, Any]) -> str:
    """Name the run that follows a gap."""
    return f"Before run {gap['run']}" if gap["run"] >= 0 else f"Before {gap['name']}"


def _did(store: Store, state: Address, begin: int, end: int) -> str:
    """Return what took the most of a stretch of the host's time by itself."""
    timeline = host(store, state.report).timeline
    pairs = _by_itself(timeline, begin, end)[:3]
    parts = [f"{name} {units.duration(time / 1e9)}" for name, time in pairs]
    return components.prose(", ".join(parts)) or "nothing traced"


def _by_itself(timeline: Timeline, begin: int, end: int) -> list[tuple[str, int]]:
    """List what the host did in a stretch of time, without the simulator's own phases."""
    figures = label_figures(timeline.tracks, timeline.threads, begin, max(end, begin + 1)).arrays
    pairs = zip(figures["label"].tolist(), figures["self_time"].tolist(), strict=True)
    named = ((timeline.labels[label], time) for label, time in pairs if time > 0)
    return [(name, time) for name, time in named if name not in PHASES]


def before_first_run(
    store: Store, state: Address, aligned_runs: Alignment, result: Waits
) -> Element:
    """Fold what the host did before the model's first run: it stands on no axis of the device."""
    timeline = host(store, state.report).timeline
    pairs = _by_itself(timeline, timeline.extent[0], int(aligned_runs.begin[aligned_runs.first]))[
        :MAX_BEFORE
    ]
    rows = [
        html.Tr(
            [
                html.Th(components.prose(name), scope="row"),
                html.Td(units.duration(time / 1e9), className="number"),
            ]
        )
        for name, time in pairs
    ]
    took = units.duration(max(result.before, 0) / 1e9)
    words = f"Before the first run: {took} of building, compiling and set-up"
    body = html.Table(html.Tbody(rows), className="facts top-steps")
    return html.Details([html.Summary(words), body], className="section folded")


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.fill(app, store, "together-axis", axis_words)
    follow(app, "together")
