"""Which instance of a run holds the others up, when, and why?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dash import Dash, dcc, html

from dashboard import address, controls, downloads, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Column, Element, Frame, section
from dashboard.figures import instances as figures
from dashboard.pages.headlines import counted
from dashboard.store import Store
from pva import units
from pva.analysis.distributed.clocks import clock_residual
from pva.analysis.distributed.pace import instance_pace, instance_utilisation, pace_of_instances
from pva.analysis.distributed.stragglers import CAUSES, stragglers
from pva.analysis.distributed.totals import equal_graphs, instances
from pva.analysis.table import Table
from pva.errors import NotRecordedError
from pva.plot.axes import Figure
from pva.plot.theme import Theme

PATH, TITLE = "/instances", "Instances"
QUESTION = "Which instance holds the others up, when, and why?"
NS = 1e9
CHOSEN = "instance"
KINDS = (("run", "In runs"), ("callback", "In callbacks"), ("collective", "In collectives"))
SAID = {"run": "inside runs of programs", "callback": "inside callbacks of streams",
        "collective": "inside collectives"}  # fmt: skip
PACES = (("late_ns", "Late"), ("duration_ns", "Length of runs"), ("period_ns", "From run to run"))
LEADS = (("/summary", "Summary"), ("/execution", "Execution"), ("/trace", "Host trace"),
         ("/together", "Host and device"))  # fmt: skip
MAX_PROBLEMS = 6  # that are listed; the others are counted
COLUMNS = (
    Column("name", "Instance", "name", note="Its number, and the host that it ran on", least=150),
    Column("is_straggler", "Straggler", "text", 100,
           "The others wait for it 5 % of the time or more, and it is later than they vary"),
    *declared_columns(
        stragglers,
        "cause/text@190 Cause", "wait_ns@110 Wait", "wait_share@110 Of the time",
        "last@90 Last in", "steps@90 Steps", "worst_step@110 Worst step",
    ),
)  # fmt: skip


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=150,
    letter="n",
    icon="M2.5 2.5h11v3h-11zm0 4h7v3h-7zm0 4h9v3h-9z",
    subject="run",
    controls={
        "in": (
            "Colour",
            "Colours the map by the part of the time in runs, callbacks or collectives",
        ),
        "pace": (
            "Draw",
            (
                "Draws how late each instance is, how long its runs are, or"
                " how far one is from the next"
            ),
        ),
    },
    tables=(("Columns: instances", COLUMNS),),
    chapter="""\
**Which instance holds the others up, when, and why?** Where `poprun` started several instances,
`tilescope serve run/` shows all of them. The map has an instance in each row and the time of the
run across; its colour is the part of the time that the instance spends in runs of programs, in
callbacks of streams, or in collectives, in which instances wait for each other. A click on a row
leads to the pages of its instance.

## Who is waited for

Step k of an instance is its kth `Engine::run` and the time of the host before it. Where the
traces have collectives, who comes last waits least; where they have none, the time between runs
and in callbacks shows who comes late, and the waits are what the others would wait in lockstep. A
straggler makes the median of the others wait 5 % of the time or more, and is later than they are
by more than their steps vary. Its cause is named only when it explains 80 % of the wait: a late
start at `Engine::run`, the callbacks of streams, or the run itself.

## Clocks

Instances of one host lie by its wall clock. Clocks of several hosts are corrected by collectives,
which end for all at one moment; how far these ends scatter is said above the map, and nothing
finer is drawn. Instances whose clocks cannot be compared are named and left out of the map.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether the report is of an instance of a run."""
    return store.run(report) is not None


def _asked(store: Store, state: Address, analysis: Callable[..., Table]) -> Frame:
    """Return the answer of an analysis on the run, made once; raises PvaError."""
    run = store.run(state.report)
    if run is None:
        name = store.path(state.report).name
        hint = "start tilescope serve with the directory that poprun wrote"
        raise NotRecordedError(name, "not of a run of several instances", hint)
    name = f"run: {analysis.__name__}"
    return store.derived(state.report, name, lambda: analysis(run).frame())


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    _asked(store, state, instances)
    run = store.run(state.report)
    problems = list(run.problems) if run else []
    remainder = len(problems) - MAX_PROBLEMS
    lines = [*problems[:MAX_PROBLEMS], *([f"and {remainder} more"] if remainder > 0 else [])]
    return html.Div(
        [
            components.title(QUESTION),
            view.panel("instances-answer", PATH, ()),
            *(html.P(components.prose(f"Left out: {line}"), className="note") for line in lines),
            section(
                "Instances over time",
                view.panel("instances-clocks", PATH, ()),
                view.plot("instances-map", PATH, ("in",), height=_height(store, state),
                          picks=CHOSEN),
                view.panel("instances-chosen", PATH, (CHOSEN,)),
                note="click a row to open the pages of its instance",
                tools=controls.row(
                    [controls.choice("in", _kinds(store, state), state, label="Colour"),
                     controls.exports("instance-utilisation", "instances-map")]
                ),
            ),
            section(
                "Pace",
                view.plot("instances-pace", PATH, ("pace", CHOSEN), height=300),
                note="the nth run of each instance",
                tools=controls.row(
                    [controls.choice("pace", PACES, state, label="Draw"),
                     controls.exports("instance-pace", "instances-pace")]
                ),
            ),
            section(
                "Spread over the instances",
                view.plot("instances-spread", PATH, (), height=300),
                note="a point an instance, each row from its least to its most",
            ),
            section(
                "Who is waited for",
                view.panel("instances-table", PATH, ()),
                tools=controls.exports("instance-stragglers"),
            ),
        ]
    )  # fmt: skip


def _height(store: Store, state: Address) -> int:
    return min(max(len(_asked(store, state, instances)) * 18 + 90, 200), 640)


def _names(frame: Frame) -> dict[int, str]:
    """Name instances by their number and host."""
    return {
        int(one): f"{one} on {host}" if host else str(one)
        for one, host in zip(frame["instance"], frame["host"], strict=True)
    }


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Name the instance that holds the others up, when and why, or say that none does."""
    frame = _asked(store, state, stragglers)
    detail = _more(store, state)
    if not len(frame):
        words = "No two instances have a host trace with runs, so nothing shows who waits for whom."
        return components.headline(words, more=detail)
    guilty = frame[frame["straggler"]]
    basis = "" if frame["basis"].iloc[0] == "collectives" else " would"
    if not len(guilty):
        most = frame.iloc[0]
        words = (
            f"No instance holds the others up: the most that they{basis} wait for one is "
            f"{units.share(most['wait_share'])} of the time."
        )
        return components.headline(words, "good", more=detail)
    first = guilty.iloc[0]
    name = _names(frame)[int(first["instance"])]
    holds = "would hold" if basis else "holds"
    why = (
        f"by {first['cause']}" if first["cause"]
        else f"and no cause explains 80 % of it (the most: {units.share(first['explained'])})"
    )  # fmt: skip
    words = (
        f"Instance {name} {holds} the others up for {units.duration(first['wait_ns'] / NS)} "
        f"({units.share(first['wait_share'])} of the time), {why}; "
        f"most at step {first['worst_step']:,}."
    )
    remainder = len(guilty) - 1
    also = f"{counted(remainder, 'more instance')} does so, too. " if remainder else ""
    return components.headline(words, "bad", more=f"{also}{detail}")


def _more(store: Store, state: Address) -> str:
    """Return how many instances there are, and whether they compiled one graph."""
    frame, graphs = (_asked(store, state, one) for one in (instances, equal_graphs))
    differs = graphs[graphs["differs"]]["instance"].tolist()
    text = f"{counted(len(frame), 'instance')} on {counted(frame['host'].nunique(), 'host')}"
    if differs:
        named = ", ".join(map(str, differs[:5])) + ("" if len(differs) <= 5 else ", …")
        return f"{text}; instance {named} compiled another graph than most."
    return f"{text}; {counted(len(graphs), 'report')} of one graph." if len(graphs) else f"{text}."


def clocks(store: Store, state: Address, _theme: Theme) -> Element:
    """Return how far times of two instances can be trusted, and who is not compared."""
    frame = _asked(store, state, clock_residual)
    parts = []
    residual = frame["residual_ns"].max() if frame["residual_ns"].notna().any() else 0
    if (frame["method"] == "matched collectives").any():
        parts.append(
            f"Clocks of hosts are corrected by their collectives, to {_time(residual)}: "
            "nothing finer is drawn."
        )
    refused = frame[frame["problem"] != ""]
    parts += [
        f"Instance {one}: {problem}."
        for one, problem in zip(refused["instance"][:3], refused["problem"][:3], strict=True)
    ]
    parts += [f"So are {len(refused) - 3} more."] if len(refused) > 3 else []
    return html.P(components.unbroken(" ".join(parts)), className="note") if parts else None


def _time(nanoseconds: float) -> str:
    return units.duration(float(nanoseconds) / NS)


def _kinds(store: Store, state: Address) -> list[tuple[str, str]]:
    """Return what the map may show, first what shows who is waited for."""
    waits = _asked(store, state, stragglers)
    first = "run"
    if len(waits):
        callbacks = waits["cause"].iloc[0] == CAUSES["callback"]
        collectives = waits["basis"].iloc[0] == "collectives"
        first = "callback" if callbacks else "collective" if collectives else "run"
    return sorted(KINDS, key=lambda kind: kind[0] != first)


def heat_map(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw what each instance does when."""
    kind = state.option("in", [value for value, _ in _kinds(store, state)])
    frame = _asked(store, state, instance_utilisation)
    names = list(_names(frame.drop_duplicates("instance")).values())
    return figures.utilisation_map(frame, kind, SAID[kind], names, theme)


def pace(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw the pace of the instances: the chosen one, and the one that is waited for most."""
    column = state.option("pace", [value for value, _ in PACES])
    frame, waits = _asked(store, state, instance_pace), _asked(store, state, stragglers)
    names = _names(frame.drop_duplicates("instance"))
    picks = list(state.numbers(CHOSEN))[:2]
    worst = waits["instance"].tolist()[:1]
    shown = {one: f"instance {names[one]}" for one in dict.fromkeys(worst + picks) if one in names}
    return figures.pace(frame, column, shown, theme)


def spread(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw how instances are spread in what they take and how late they are."""
    totals = _asked(store, state, instances).set_index("instance")
    pace = pace_of_instances(_asked(store, state, instance_pace))
    waits = _asked(store, state, stragglers).set_index("instance")
    rows = {
        "Others wait": waits["wait_ns"] / NS,
        "Median run": pace["duration_ns"] / NS,
        "Mean lateness": pace["late_ns"] / NS,
        "Process": totals["seconds"],
    }
    return figures.spread({name: one for name, one in rows.items() if one.notna().any()}, theme)


def chosen(store: Store, state: Address, _theme: Theme) -> Element:
    """Lead to the pages of the chosen instance."""
    numbers = state.numbers(CHOSEN)
    if not numbers:
        return None
    one = numbers[-1]
    key = store.of_instance(state.report, one)
    if not key:
        return components.message(f"Instance {one} has nothing that can be shown.")
    links = [
        dcc.Link(words, href=address.write(Address(path, key)), className="button")
        for path, words in LEADS
    ]
    return html.P([html.Strong(f"Instance {one}: "), *links], className="tools-row")


def rows(store: Store, state: Address) -> Frame:
    """Return the instances with what the others wait for each."""
    frame = _asked(store, state, stragglers)
    names = list(_names(frame).values())
    marked = frame["straggler"].map({True: "yes", False: ""})
    return frame.assign(name=names, is_straggler=marked)


def table(store: Store, state: Address, _theme: Theme) -> Element:
    """List the instances."""
    frame = rows(store, state)
    if not len(frame):
        return components.message("No two instances have a host trace with runs.")
    return components.table("instances-rows", frame, COLUMNS, picks=(CHOSEN, CHOSEN))


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    for identifier, draw in (
        ("instances-map", heat_map), ("instances-pace", pace), ("instances-spread", spread),
    ):  # fmt: skip
        view.draw(app, store, identifier, draw)
    for identifier, make in (
        ("instances-answer", answer), ("instances-clocks", clocks),
        ("instances-chosen", chosen), ("instances-table", table),
    ):  # fmt: skip
        view.fill(app, store, identifier, make)
    for name, analysis in (
        ("instance-utilisation", instance_utilisation), ("instance-pace", instance_pace),
        ("instance-stragglers", stragglers),
    ):  # fmt: skip
        downloads.offer(app, name, partial(_asked, analysis=analysis))
