"""Which layers take the cycles, the code, the memory, and which calls the time of the host?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from dash import Dash, dcc, html

from dashboard import controls, flames, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.elements import components
from dashboard.elements.components import OBJECT, Column, Element, section
from dashboard.flames import KEY, Flame
from dashboard.store import Report, Store
from dashboard.timeline.endpoint import host, host_trace
from pva import units
from pva.analysis.attribution import layer_of, operations
from pva.analysis.host.events import call_tree
from pva.analysis.host.profilers import is_wrapper
from pva.analysis.memory.totals import counts_code
from pva.analysis.operations import name_tree
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd
from pva.plot.lanes import Timeline
from pva.plot.theme import Theme

PATH, TITLE = "/flames", "Flame graphs"
QUESTION = "Which layers take the cycles, the code and the memory?"

ROWS = 50  # of the table of what is in a frame
HALF = 0.5  # a frame that takes less of the one around it is not followed further
COLUMNS = (
    Column("name", "Name", "name", note="What lies directly in the chosen frame"),
    Column("text", "Takes", "figure", 190, "Cycles, bytes or time, with what is in it"),
    Column("of_parent", "Of parent", "share", 110, "As a part of the frame around it"),
    Column("of_all", "Of all", "share", 110, "As a part of the whole graph"),
)
WORDS = {
    "cycles": "Cycles by layer",
    "code": "Code by layer",
    "memory": "Memory by layer",
    "host": "Host time by call",
}


def _cycles(store: Store, report: str) -> Flame:
    return _by_name(store.report(report), name_tree.cycles_by_name, units.cycles_in_words)


def _code(store: Store, report: str) -> Flame:
    return _by_name(store.report(report), name_tree.code_by_name, units.size)


def _memory(store: Store, report: str) -> Flame:
    return _by_name(store.report(report), name_tree.memory_by_name, units.size)


def _by_name(report: Report, tree: Callable[[Report], Any], write: Callable[[float], str]) -> Flame:
    frame = tree(report)
    paths = frame["path"].tolist()
    names = [path.rpartition("/")[2] for path in paths]
    parents, total = frame["parent"].to_numpy(), frame["total"].to_numpy()
    return Flame(paths, names, parents, total, write, _objects(report, paths))


def _objects(report: Report, paths: Sequence[str]) -> list[str]:
    """Return the operations and layers that paths are, "" for the others."""
    owners = set(operations(report).tolist())
    layers = {layer_of(owner) for owner in owners}
    return [
        f"operation:{path}" if path in owners else f"layer:{path}" if path in layers else ""
        for path in paths
    ]


def _host(store: Store, report: str) -> Flame:
    timeline = host(store, report).timeline
    trace = host_trace(store, report)
    wraps = np.append(is_wrapper(trace), False)
    own = [pair for pair in timeline.threads if not _is_of_profiler(timeline, pair, wraps)]
    tree = call_tree(timeline.tracks, own or timeline.threads, *timeline.extent)
    names = [timeline.labels[label] for label in tree.label.tolist()]
    paths: list[str] = []
    for name, parent in zip(names, tree.parent.tolist(), strict=True):
        paths.append(f"{paths[parent]}>{name}" if parent >= 0 else name)
    total = tree.total.astype(np.int64)
    longest = [f"event:{event}" for event in tree.event.tolist()]
    return Flame(paths, names, tree.parent, total, _time, longest)


def _is_of_profiler(whole: Timeline, rows: tuple[int, int], wraps: npt.NDArray[np.bool_]) -> bool:
    """Return whether all events of a thread are spans of a profiler around what it recorded."""
    labels = whole.tracks.label[whole.tracks.offset[rows[0]] : whole.tracks.offset[rows[1]]]
    return bool(len(labels)) and bool(wraps[labels].all())


def _time(nanoseconds: float) -> str:
    return units.duration(nanoseconds / 1e9)


MAKERS = {"cycles": _cycles, "code": _code, "memory": _memory, "host": _host}


def choices(store: Store, report: str) -> list[tuple[str, str]]:
    """List the graphs that a report, or a host trace alone, can fill."""
    kinds = []
    if store.has_report(report):
        opened = store.report(report)
        has = {
            "cycles": opened.dataset.has("steps") and opened.dataset.length("steps") > 0,
            "code": opened.dataset.has("programs") and counts_code(opened),
            "memory": opened.dataset.has("variables"),
        }
        kinds = [kind for kind, is_recorded in has.items() if is_recorded]
    kinds += ["host"] if store.trace(report) is not None else []
    return [(kind, WORDS[kind]) for kind in kinds]


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=110,
    letter="f",
    icon="M2.5 2.5h11v2.6h-11zm0 4.2h7v2.6h-7zm0 4.2h3.5v2.6H2.5zm8.500-4.2h2.5v2.600h-2.5z",
    controls={
        "find": (
            "Search names",
            "Marks the frames whose name has these letters, and says what they take together",
        ),
    },
    tables=(("Columns: what is inside", COLUMNS),),
    chapter="""\
**Which layers take the cycles, the code, the memory, and which calls the time of the host?** A
frame is as wide as what it stands for, and what lies in it is below it, the largest at the left.
Layers are the parts of names between slashes; of the host, a call lies below the one that made
it, all threads together.

Click a frame to zoom to it, click it again to zoom out; the line above leads back, too. The drawer
says all about the operation or layer that a frame is, of the host about its longest call. The
frame's words say what it takes as a part of all and of the frame around it. *Search names* marks
the frames that have the text in their names, and says what they take together; a frame in another
one that is found counts once. The table lists what lies in the frame that is zoomed to: a row
zooms as a click does.

Cycles are those by which a program made the recorded runs longer. Code is control code and
exchange code; code of vertices belongs to no layer. Memory is that of the variables live where
liveness peaks. Frames narrower than two pixels are left out.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether there is anything to draw."""
    return bool(choices(store, report))


def flame_of(store: Store, state: Address) -> Flame:
    """Return the chosen graph, made once a state of its files; raises PvaError, AddressError."""
    kind = state.option("tab", [kind for kind, _ in choices(store, state.report)])
    return store.derived(
        state.report, f"flame graph of {kind}", lambda: MAKERS[kind](store, state.report)
    )


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    kinds = choices(store, state.report)
    if not kinds:
        name = store.path(state.report).name
        raise NotRecordedError(name, "no cycles, code, memory or host trace", "run the program")
    search = controls.box("find", "Search names", state, width=190)
    return html.Div(
        [
            components.title(QUESTION),
            view.panel("flames-answer", PATH, ("tab",)),
            section(
                "Flame graph",
                controls.tabs(kinds, state),
                view.panel("flames-graph", PATH, ("tab", KEY, "find")),
                tools=search,
                note="click a frame to zoom to it, again to zoom out",
            ),
            view.panel("flames-inside", PATH, ("tab", KEY)),
        ]
    )


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Return where most goes: follow the largest frame while it has half of the one around it."""
    flame = flame_of(store, state)
    frame = flames.NOWHERE
    while len(inner := flame.inside(frame)):
        if frame >= 0 and flame.total[inner[0]] < HALF * flame.total[frame]:
            break
        frame = int(inner[0])
    if frame < 0:
        return components.headline("Nothing was recorded.")
    path = " / ".join(flame.names[ancestor] for ancestor in flame.around(frame))
    size = flame.size(frame)
    share = units.share(size / max(flame.whole, 1))
    total = flame.write(flame.whole)
    return components.headline(f"{path} takes most: {flame.write(size)}, {share} of {total}.")


def graph(store: Store, state: Address, _theme: Theme) -> Element:
    """Draw the graph, and say what a search finds."""
    flame, text = flame_of(store, state), state.text("find")
    parts = [_trail(flame, state)]
    if text:
        frames = flames.matching(flame, text)
        spent = sum(flame.size(frame) for frame in flames.outermost(flame, frames))
        share = units.share(spent / max(flame.whole, 1))
        count = "1 frame" if len(frames) == 1 else f"{len(frames):,} frames"
        words = f"{count} named like “{text}”: {flame.write(spent)}, {share} of all."
        parts.append(html.P(components.prose(words), className="note", role="status"))
    return html.Div([*parts, flames.drawn(flame, state, text)])


def _trail(flame: Flame, state: Address) -> Element:
    """Lead from the frame that is zoomed to back to those around it."""
    root = flame.find(state.text(KEY))
    if root < 0:
        return html.P(f"All: {flame.write(flame.whole)}", className="note")
    links: list[Element] = [dcc.Link("All", href=flames.link_to(state, flame, flames.NOWHERE))]
    for frame in flame.around(root)[:-1]:
        link = flames.link_to(state, flame, frame)
        links += [" › ", dcc.Link(components.prose(flame.names[frame]), href=link)]
    links += [" › ", html.Strong(components.prose(flame.names[root]))]
    return html.P([*links, f": {flames.describe(flame, root)}"], className="note trail")


def inside(store: Store, state: Address, _theme: Theme) -> Element:
    """List what lies directly in the frame that is zoomed to."""
    flame = flame_of(store, state)
    root = flame.find(state.text(KEY))
    rows = flame.inside(root)[:ROWS]
    size, total = max(flame.size(root), 1), max(flame.whole, 1)
    frame = pd.DataFrame(
        {
            "name": [flame.names[row] for row in rows],
            "text": [flame.write(flame.size(row)) for row in rows],
            "of_parent": flame.total[rows] / size,
            "of_all": flame.total[rows] / total,
            KEY: [flame.paths[row] for row in rows],
            OBJECT: [flame.object_of(row) or None for row in rows.tolist()],
        }
    )
    name = flame.names[root] if root >= 0 else "All"
    body = components.message("Nothing lies inside it.")
    if len(frame):
        body = components.table("flames-rows", frame, COLUMNS, picks=(KEY, KEY))
    return section(f"Inside {components.prose(name)}", body)


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""

    view.fill(app, store, "flames-answer", answer)
    view.fill(app, store, "flames-graph", graph)
    view.fill(app, store, "flames-inside", inside)
