"""Which configuration should I run, and what do I pay for it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from dash import Dash, dcc, html

from dashboard import address, controls, downloads, tables, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.elements import components
from dashboard.elements.components import Column, Element, Frame, Kind, section
from dashboard.figures import explore as figures
from dashboard.figures.explore import Axis
from dashboard.pages.headlines import counted
from dashboard.store import Store
from pva import units
from pva.errors import NotRecordedError
from pva.many.exploration import Exploration
from pva.many.points import FIGURES, pareto, ranked
from pva.plot.axes import Figure, escaped
from pva.plot.theme import Theme

PATH, TITLE = "/explore", "Explore"
QUESTION = "Which configuration should I run, and what do I pay for it?"
POINT = "point"  # the key of the address: points that are chosen
SPEED, MEMORY = "samples_per_second", "fullest_tile"
AXES = {
    SPEED: "Samples a second", MEMORY: "Fullest tile", "latency": "Latency (s)",
    "cycles_per_sample": "Cycles a sample", "always_live": "Always-live", "peak": "Most live",
    "compute_share": "Share of compute", "sync_share": "Share of syncs",
    "exchange_share": "Share of exchange", "host_share": "Share of host exchange",
    "over": "Lacks on the fullest tile",
}  # fmt: skip
BYTES = {MEMORY, "always_live", "peak", "over"}
NO_COLOUR = "none"
RESULTS = {
    "fits": ("fits", "fit"), "does not fit": ("does not", "do not"),
    "no figures": ("has no figures", "have no figures"),
}  # fmt: skip
MAX_CHOSEN = 2
SHOWN_ROWS = 14


def _figure(name: str, title: str, kind: Kind, width: int) -> Column:
    """Return the column of a figure of a point, which says what it means."""
    meaning = FIGURES[name][0]
    return Column(name, title, kind, width, meaning[:1].upper() + meaning[1:])


COLUMNS = (
    Column("configuration", "Configuration", "name", note="The levers that vary, and their values",
           least=330),
    Column("result", "Result", "text", 150,
           "Whether every tile has the memory that it needs, or why there are no figures"),
    Column("is_best", "Best", "text", 80,
           "No other point that was run is better on both axes of the plot"),
    _figure(SPEED, "Samples a second", "rate", 150),
    Column("slower", "Against the fastest", "share", 150, "Its speed as a part of the fastest"),
    _figure(MEMORY, "Fullest tile", "bytes", 120),
    _figure("over", "Lacks", "bytes", 110),
    _figure("always_live", "Always-live", "bytes", 120),
    _figure("peak", "Most live", "bytes", 120),
    Column("latency_ns", "Latency", "nanoseconds", 110, "From the input of an item to its output"),
    _figure("compute_share", "Compute", "share", 110),
    _figure("exchange_share", "Exchange", "share", 110),
    _figure("sync_share", "Sync", "share", 110),
)  # fmt: skip


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=170,
    letter="w",
    icon="M2.5 2.5v11h11M5.2 11h.1M6.6 7.7h.1m3.1-.4h.1M12 4.2h.1M9.3 10.6h.1",
    subject="exploration",
    controls={
        "x": ("Across", "Puts a figure or a lever on the horizontal axis"),
        "y": ("Up", "Puts a figure or a lever on the vertical axis"),
        "colour": ("Colour", "Colours the points by the value of a lever"),
        "filter": (
            "Filter configurations",
            (
                "Shows only points whose levers contain this text, in the "
                "plot, the table and what is saved"
            ),
        ),
    },
    tables=(("Columns: points", COLUMNS),),
    chapter="""\
**Which configuration should I run, and what do I pay for it?** `tilescope explore` compiles and
simulates every combination of some levers and keeps a row of each; `tilescope serve space/` shows
them. The sentence on top names the fastest configuration that fits, and what the one of least
memory would give up.

## The plot

Each point is one configuration. Two figures or levers of your choice stand on the axes; a lever
colours the points. A circle fits, a cross does not fit, a triangle has no figures: its
compilation failed, took too long or too much memory. The dotted line joins the points that fit
and that no other point is better than on both axes; they have a ring. Points without a value on
an axis stand at its edge. An axis that spans more than 50 times its least value is logarithmic.
The dashed line is the memory of a tile, where all points have the same.

## Choosing points

A click on a point or a row shows it and leads to its report; Shift-click on a second point, or a
click on a second row, leads to the comparison of both. Chosen points have a ring in the plot and a
coloured row in the table. The reports of the best points are kept.
For another one the page shows the command that writes its report: the server runs nothing.

## The table

The best points come first, then those that do not fit, the nearest first, then those without
figures. The filter leaves the same points in the plot, the table and what is saved.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether the report is of a point of an exploration."""
    return store.exploration(report) is not None


def _exploration(store: Store, state: Address) -> Exploration:
    """Return the exploration that the report is of; raises PvaError."""
    exploration = store.exploration(state.report)
    if exploration is None:
        name = store.path(state.report).name
        hint = "start tilescope serve with the directory that tilescope explore wrote"
        raise NotRecordedError(name, "not of an exploration", hint)
    return exploration


def _levers(exploration: Exploration) -> list[str]:
    """Name the levers that vary; all of them where none does."""
    levers = [name for name in exploration.levers if name in exploration.frame]
    return [name for name in levers if exploration.frame[name].nunique() > 1] or levers


def _points(store: Store, state: Address) -> Frame:
    """Return all points with their words, the best first; worked out once."""
    exploration = _exploration(store, state)
    return store.derived(state.report, "points", lambda: _described(exploration))


def _described(exploration: Exploration) -> Frame:
    frame = exploration.frame
    records = components.rows_of(frame.reset_index())
    order = [row["index"] for row in ranked(records, SPEED)]
    frame = frame.loc[order].reset_index(drop=True)
    levers = _levers(exploration)
    words = [
        ", ".join(f"{name} {_value(row[name])}" for name in levers if row[name] == row[name])
        for row in frame[levers].to_dict("records")
    ]
    fits = frame["fits"].fillna(False).to_numpy(bool)
    error = frame["error"].fillna("")
    fastest = frame[SPEED][fits].max() if fits.any() else np.nan
    return frame.assign(
        error=error,
        configuration=words or [],
        result=np.where(fits, "fits", np.where(error != "", "no figures", "does not fit")),
        slower=frame[SPEED] / fastest,
        latency_ns=frame["latency"] * 1e9,
    )


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def axes(store: Store, state: Address) -> tuple[Axis, Axis]:
    """Return what the address puts on the axes."""
    names = dict(_axes(store, state))
    x = state.option("x", [MEMORY, *names])
    y = state.option("y", [SPEED, *names])
    across, up = (Axis(name, names[name], name in BYTES, name not in AXES) for name in (x, y))
    return across, up


def _axes(store: Store, state: Address) -> list[tuple[str, str]]:
    """Return what may stand on an axis: figures that some point has, and the levers."""
    exploration = _exploration(store, state)
    measured = [
        (name, words) for name, words in AXES.items() if exploration.frame[name].notna().any()
    ]
    usual = [(name, AXES[name]) for name in (SPEED, MEMORY) if (name, AXES[name]) not in measured]
    return [*measured, *usual, *((name, name) for name in _levers(exploration))]


def _first(choices: Sequence[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    return sorted(choices, key=lambda choice: choice[0] != name)


def _colours(store: Store, state: Address) -> list[tuple[str, str]]:
    levers = _levers(_exploration(store, state))
    return [*((name, f"By {name}") for name in levers), (NO_COLOUR, "One colour")]


def shown(store: Store, state: Address) -> Frame:
    """Return the points that the filter leaves, each with whether it is among the best."""
    frame = _points(store, state)
    signed = [axis.field for axis in axes(store, state) if FIGURES.get(axis.field, ("", 0))[1]]
    best = pareto(frame, signed or [SPEED, MEMORY]) if len(frame) else np.zeros(0, dtype=bool)
    frame = frame.assign(best=best, is_best=np.where(best, "yes", ""))
    return components.filtered(frame, state.filter)


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    choices = _axes(store, state)
    return html.Div(
        [
            components.title(QUESTION),
            view.panel("explore-answer", PATH, ()),
            section(
                "Points",
                view.plot("explore-plot", PATH, ("x", "y", "colour", "filter", POINT), height=430,
                          picks=POINT),
                view.panel("explore-chosen", PATH, (POINT,)),
                note="click a point; Shift-click a second one to compare both",
                tools=controls.row(
                    [controls.select("y", _first(choices, SPEED), state, label="Up", width=180),
                     controls.select("x", _first(choices, MEMORY), state, label="Across",
                                     width=180),
                     controls.select("colour", _colours(store, state), state, label="Colour"),
                     controls.filter_box("configuration", "Filter configurations", state),
                     controls.exports("explore-points", "explore-plot")]
                ),
            ),
            section("All points", view.panel("explore-table", PATH, ("x", "y")),
                    note="click a row; a second one to compare both"),
        ]
    )  # fmt: skip


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Name the configuration to run, and what the most frugal one would cost."""
    exploration, frame = _exploration(store, state), _points(store, state)
    fits = frame[frame["result"] == "fits"]
    detail = f"{counted(len(frame), 'point')} of {exploration.space:,} were run: {_results(frame)}."
    if not len(fits):
        return components.headline(_nearest(frame), "bad", more=detail)
    fast = fits[fits[SPEED].notna()]
    if not len(fast):
        words = f"{counted(len(fits), 'point')} fit; none of them was run, so none has a speed."
        return components.headline(words, more=detail)
    first = fast.iloc[0]
    words = (
        f"Run {first['configuration']}: {units.rate(first[SPEED])}, "
        f"its fullest tile {units.share(first[MEMORY] / first['bytes_per_tile'])} full."
    )
    return components.headline(words, "good", more=f"{_price(fast)}{detail}")


def _results(frame: Frame) -> str:
    """Return how many points fit, do not, and have no figures; those that there are."""
    counts = frame["result"].value_counts()
    return ", ".join(
        f"{counts[result]:,} {one if counts[result] == 1 else several}"
        for result, (one, several) in RESULTS.items()
        if result in counts
    )


def _price(fast: Frame) -> str:
    """Return what the point of least memory gives up against the fastest."""
    first, least = fast.iloc[0], fast.iloc[int(fast[MEMORY].argmin())]
    freed = first[MEMORY] - least[MEMORY]
    if freed <= 0:
        return "No point that fits needs less memory. "
    lost = units.share(1 - least[SPEED] / first[SPEED])
    return (
        f"{least['configuration']} frees {units.size(freed)} of the fullest tile "
        f"and is {lost} slower. "
    )


def _nearest(frame: Frame) -> str:
    misses = frame[frame["result"] == "does not fit"]
    if not len(misses):
        return "No point has figures: the table says why."
    nearest = misses.iloc[int(misses["over"].argmin())]
    return (
        f"No point fits: {nearest['configuration']} comes nearest and lacks "
        f"{units.size(nearest['over'])} on tile {nearest['tile']:.0f}."
    )


def plot(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw the points on the chosen axes."""
    colour = state.option("colour", [name for name, _ in _colours(store, state)])
    frame = shown(store, state)
    limits = frame["bytes_per_tile"].dropna().unique()
    limit = float(limits[0]) if len(limits) == 1 else 0.0
    words = [_hover(row) for row in components.rows_of(frame)]
    by = "" if colour == NO_COLOUR else colour
    frame = frame.assign(words=words)
    return figures.points(frame, axes(store, state), by, limit, theme, _chosen(state))


def _hover(row: dict[str, Any]) -> str:
    lines = [f"<b>{escaped(row['configuration'])}</b>", row["result"]]
    if row[SPEED] == row[SPEED]:
        lines.append(units.rate(row[SPEED]))
    if row[MEMORY] == row[MEMORY]:
        lines.append(f"{units.size(row[MEMORY])} on the fullest tile")
    if row["result"] == "does not fit":
        lines.append(f"lacks {units.size(row['over'])}")
    return "<br>".join(lines)


def chosen(store: Store, state: Address, _theme: Theme) -> Element:
    """Show the chosen points, lead to their reports and to the comparison of two."""
    keys = _chosen(state)
    if not keys:
        return None
    frame = _points(store, state).set_index("key")
    absent = [key for key in keys if key not in frame.index]
    if absent:
        return components.message(f"{POINT}={absent[0]}: no such point")
    reports = [store.of_point(state.report, key) for key in keys]
    parts = [
        _card(frame.loc[key], report) for key, report in zip(keys, reports, strict=True)
    ]  # fmt: skip
    if len(reports) == MAX_CHOSEN and all(reports):
        link = address.write(Address("/compare", reports[0], reports[1]))
        parts.append(dcc.Link("Compare both", href=link, className="button"))
    return html.Div(parts, className="tools-row")


def _chosen(state: Address) -> list[str]:
    """Return the keys of the points that are chosen, the last two of them."""
    return [key for key in state.text(POINT).split(",") if key][-MAX_CHOSEN:]


def _card(row: Any, report: str) -> Element:
    """Describe a point: its result, its report or the command that writes it."""
    name = components.prose(f"{row['configuration']}: ")
    parts: list[Any] = [html.Strong(name), components.prose(f"{row['result']}. {_reason(row)}")]
    if report:
        link = address.write(Address("/summary", report))
        parts.append(dcc.Link("Open its report", href=link, className="button"))
    else:
        parts += ["Its report was not kept; this writes it: ", html.Code(row["command"])]
    return html.P(parts, className="note")


def _reason(row: Any) -> str:
    """Return why a point does not fit or has no figures."""
    if row["result"] != "does not fit":
        return f"{row['error']}. " if row["error"] else ""
    lacks = f"Tile {row['tile']:.0f} lacks {units.size(row['over'])}"
    if not row["live"]:
        return f"{lacks}. "
    where = f"step {row['step']:.0f} ({row['step_name']})"
    return f"{lacks}; most is live at {where}: {row['live']}. "


def table(store: Store, state: Address, _theme: Theme) -> Element:
    """List the points, the best first."""
    shown_rows = min(max(len(_points(store, state)), 1), SHOWN_ROWS)
    return tables.paged("explore-rows", COLUMNS, rows=shown_rows, picks=(POINT, "key"), many=True,
                        follows="filter")  # fmt: skip


def rows(store: Store, state: Address) -> Frame:
    """Return the rows of the table, the best first."""
    return shown(store, state)[[*(column.field for column in COLUMNS), "key"]]


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.draw(app, store, "explore-plot", plot)
    view.fill(app, store, "explore-answer", answer)
    view.fill(app, store, "explore-chosen", chosen)
    view.fill(app, store, "explore-table", table)
    tables.serve(app, store, PATH, "explore-rows", COLUMNS, rows)
    downloads.offer(app, "explore-points", saved)


def saved(store: Store, state: Address) -> Frame:
    """Return the points that are shown with the columns of points.parquet, and which are best."""
    frame = shown(store, state)
    return frame[[*_exploration(store, state).frame.columns, "best"]]
