"""Which exchange moves most, and between whom?"""

from __future__ import annotations

from typing import Any

import numpy as np
from dash import Dash, html

from dashboard import controls, downloads, view
from dashboard.address import Address
from dashboard.declared import Declaration
from dashboard.details.object_rows import exchange_objects
from dashboard.details.objects import KEY
from dashboard.elements import components
from dashboard.elements.columns import declared_columns
from dashboard.elements.components import Element, Frame, section
from dashboard.figures.exchange import exchange_matrix
from dashboard.pages.headlines import counted
from dashboard.store import Store
from pva import units
from pva.analysis.execution.exchanges import exchange_spread, largest_exchanges
from pva.analysis.execution.traffic import exchange_flows, flow_totals, groups_of
from pva.plot.axes import Figure
from pva.plot.theme import Theme

PATH, TITLE = "/exchange", "Exchange"
QUESTION = "Which exchange moves most, and between whom?"
HOST = "host"
TILES, IPUS = "tiles", "ipus"
BY = ((TILES, "Groups of tiles"), (IPUS, "IPU by IPU"))
MAX_GROUPS = 32
EXCHANGE_COLUMNS = declared_columns(
    largest_exchanges,
    "name/name Exchange",
    "kind/text Kind",
    "bytes_received@110 Received",
    "bytes_sent@110 Sent",
    "cycles@110 Cycles",
    "bytes_per_cycle@110 Bytes/cycle",
)


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=100,
    letter="x",
    icon="M2.5 2.5h11v11h-11zM2.5 6.2h11M2.5 9.8h11M6.2 2.5v11M9.8 2.5v11",
    controls={
        "by": (
            "Rows and columns",
            "Draws groups of neighbouring tiles, or one cell for each pair of IPUs",
        ),
        "filter": ("Filter exchanges", "Shows only rows whose name contains this text"),
    },
    tables=(("Columns: exchanges", EXCHANGE_COLUMNS),),
    laws=("exchange",),
    chapter="""\
**Which exchange moves most, and between whom?** The matrix has the senders at the left and the
receivers at the top: groups of neighbouring tiles, or IPUs. It counts the recorded runs, until an
exchange is chosen in the table below; then it counts one execution of that exchange. Bytes are as
received: a byte that is sent to several tiles counts for each.

## What is exact

A report tells of each exchange who sends how much to whom, by groups of neighbouring tiles, at most
32 of all tiles together: all of the matrix is exact. Reports that were written before that was
recorded hold how much each tile sends and receives alone. There a cell is exact where only one
group can have sent; elsewhere what a group receives is shared out among the groups that send in the
same exchange, in proportion to what they send, and the cell names the bounds between which it must
lie.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether exchanges were recorded."""
    data = store.report(report).dataset
    return any(data.has(f"{name}_bytes_received") for name in ("exchange", "external_exchange"))


def layout(store: Store, state: Address) -> Element:
    """Lay the page out; raises PvaError."""
    del store
    return html.Div(
        [
            components.title(QUESTION),
            view.panel("exchange-answer", PATH, ("moved",)),
            section(
                "From tiles to tiles",
                view.panel("exchange-note", PATH, ("moved", "by")),
                view.plot("exchange-matrix", PATH, ("moved", "by"), height=440),
                tools=controls.row(
                    [
                        controls.choice("by", BY, state, label="Rows and columns"),
                        controls.exports("exchange-flows", "exchange-matrix"),
                    ]
                ),
            ),
            section(
                "Exchanges, the largest first",
                view.panel("exchange-table", PATH, ("filter",)),
                note="choose one to see who sends to whom in it",
                tools=controls.row(
                    [
                        controls.filter_box("name", "Filter exchanges", state),
                        controls.exports("exchange-rows"),
                    ]
                ),
            ),
        ]
    )


def picked(store: Store, state: Address) -> dict[str, Any]:
    """Return the row of the chosen exchange; empty without one."""
    text = state.text("moved")
    frame = exchanges(store, state)
    matches = frame[frame["moved"] == text] if text else frame[:0]
    return dict(matches.iloc[0]) if len(matches) else {}


def exchanges(store: Store, state: Address) -> Frame:
    """Return all exchanges, the one that moves most first, with the word that chooses each."""

    def make() -> Frame:
        frame = largest_exchanges(store.report(state.report)).frame()
        word = frame["kind"].str.replace(" ", "-") + "-" + frame["exchange"].astype(str)
        frame = frame.assign(moved=word)
        frame[KEY] = exchange_objects(store.report(state.report), frame)
        return frame

    return store.derived(state.report, "exchanges", make)


def rows(store: Store, state: Address) -> Frame:
    """Return the exchanges that the filter lets through."""
    return components.filtered(exchanges(store, state), state.filter)


def flows(store: Store, state: Address) -> Frame:
    """Return who sends how much to whom, in all exchanges or in the chosen one."""
    report, one = store.report(state.report), picked(store, state)
    groups = 1 if state.option("by", [value for value, _ in BY]) == IPUS else MAX_GROUPS
    if one and one["kind"] == HOST:
        return exchange_flows(report, groups=groups).frame()[:0]
    filters = {"kind": one["kind"], "exchange": int(one["exchange"])} if one else {}
    return store.derived(
        state.report, f"flows {groups} {filters}",
        lambda: exchange_flows(report, groups=groups, **filters).frame(),
    )  # fmt: skip


def matrix(store: Store, state: Address, theme: Theme) -> Figure:
    """Draw who sends how much to whom."""
    by_ipu = state.option("by", [value for value, _ in BY]) == IPUS
    cut = groups_of(store.report(state.report), 1 if by_ipu else MAX_GROUPS)
    frame = flows(store, state)
    places = {"source": "from_tile", "target": "to_tile"}
    placed = frame.assign(
        **{name: np.searchsorted(cut.begin, frame[of]) for name, of in places.items()}
    )
    names = [
        f"IPU {ipu}" if by_ipu else _tiles(first, end - 1)
        for first, end, ipu in zip(cut.begin, cut.end, cut.ipu, strict=True)
    ]
    return exchange_matrix(placed, names=names, theme=theme)


def _tiles(first: int, last: int) -> str:
    return f"{first:,}–{last:,}" if last > first else f"{first:,}"


def answer(store: Store, state: Address, _theme: Theme) -> Element:
    """Name the exchange that moves most, or the chosen one, and who sends most to whom."""
    frame = exchanges(store, state)
    if not len(frame):
        return components.headline("No exchange moves any bytes.")
    one = picked(store, state)
    row = one or dict(frame.iloc[0])
    moved = units.size(max(int(row["bytes_received"]), int(row["bytes_sent"])))
    verb = "moves" if one else "moves most:"
    sentence = f"{row['name']} {verb} {moved} in an execution, {_between(store, state, row)}"
    return components.headline(f"{sentence}.", more=_all(store, state))


def _between(store: Store, state: Address, row: dict[str, object]) -> str:
    """Return the ends of an exchange in words: IPUs, how many tiles, and the busiest of them."""
    report = store.report(state.report)
    spread = exchange_spread(report).frame()
    is_row = (spread["kind"] == row["kind"]) & (spread["exchange"] == row["exchange"])
    record = spread[is_row].iloc[0]
    ends = ("sender", "send"), ("receiver", "receive")
    parts = [
        f"{counted(int(record[f'{end}s']), 'tile')} {verb}{'s' if record[f'{end}s'] == 1 else ''}, "
        f"tile {record[f'busiest_{end}']:,} most ({units.size(record[f'busiest_{end}_bytes'])})"
        for end, verb in ends
        if record[f"{end}s"]
    ]
    return f"{_ipus(store, state, row)}: {'; '.join(parts)}"


def _ipus(store: Store, state: Address, row: dict[str, Any]) -> str:
    if row["kind"] == HOST:
        return "to the host" if row["bytes_sent"] else "from the host"
    frame = exchange_flows(
        store.report(state.report), groups=1, kind=row["kind"], exchange=int(row["exchange"])
    ).frame()
    if not len(frame):
        return str(row["kind"])
    source, target = int(frame["from_ipu"][0]), int(frame["to_ipu"][0])
    most = "most " if len(frame) > 1 else ""
    return f"on IPU {source}" if source == target else f"{most}from IPU {source} to IPU {target}"


def _all(store: Store, state: Address) -> str:
    """Return what all exchanges of the recorded runs move, inside IPUs and between them."""
    frame = exchange_flows(store.report(state.report), groups=1).frame()
    totals = flow_totals(frame)
    if not totals.inside + totals.between:
        return "No exchange was run in the recorded runs."
    text = f"The recorded runs move {units.size(totals.inside)} inside IPUs"
    top = frame[frame["from_ipu"] != frame["to_ipu"]].head(1)
    if not len(top):
        return f"{text}."
    row = top.iloc[0]
    return (
        f"{text} and {units.size(totals.between)} between IPUs, most from IPU {row['from_ipu']} to "
        f"IPU {row['to_ipu']} ({units.share(row['bytes'] / max(totals.between, 1))})."
    )


def note(store: Store, state: Address, _theme: Theme) -> Element:
    """Return what the matrix counts, and how far it is known."""
    one, frame = picked(store, state), flows(store, state)
    if one and one["kind"] == HOST:
        return components.message("An exchange with the host has a tile at one end only.")
    subject = f"One execution of {one['name']}" if one else "All exchanges of the recorded runs"
    exact_share = flow_totals(frame).exact
    text = f"{subject}, bytes as received; {units.share(exact_share)} of them exact."
    if exact_share < 1:
        text += " Who sends to whom is not recorded: the others are estimates, by what tiles send."
    return html.P(components.unbroken(components.prose(text)), className="note")


def table(store: Store, state: Address, _theme: Theme) -> Element:
    """List the exchanges."""
    frame = rows(store, state)
    return components.table("exchange-rows", frame, EXCHANGE_COLUMNS, picks=("moved", "moved"))


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    view.draw(app, store, "exchange-matrix", matrix)
    for identifier, make in (
        ("exchange-answer", answer), ("exchange-note", note), ("exchange-table", table),
    ):  # fmt: skip
        view.fill(app, store, identifier, make)
    downloads.offer(app, "exchange-flows", flows)
    downloads.offer(app, "exchange-rows", rows)
