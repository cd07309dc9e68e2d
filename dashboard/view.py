"""How a part of a page follows the address: only when what it depends on changes.

A part is a plot or a panel made by `plot` or `panel`, which say on which keys of the address it
depends (`report`, `against` and the state of the files always count). The page fills it:

    layout:    view.plot("memory-plot", PATH, ("breakdown", "order"), height=400, picks="tile")
               view.panel("memory-details", PATH, ("tab", "tile", "filter"))
    register:  view.draw(app, store, "memory-plot", figure)      # figure(store, chosen, theme)
               view.fill(app, store, "memory-details", details)  # details(store, chosen, theme)

So choosing another tile draws the details again and leaves the plot alone. What raises is shown as
one line in the part's place. With `picks="tile"` (or "step", "ipu"): a click on the plot puts the
number into the address, Shift adds to what is chosen, dragging chooses a range, the left and right
keys move; what is chosen is marked on the plot without asking the server. Where x is not the number
itself, `figure.layout.meta = {"picks": [number at x = 0, at x = 1, ...]}` tells it.

A plot inside a panel is drawn when the panel is: it takes the panel's address and theme as
`inside=(chosen, theme)`, and the panel depends on its keys.

With `zooms` the window that a reader zooms to stands in the address as `range` (whole numbers, the
end not included): depend on `range`, and draw no more points than are seen there.

In the browser assets/views.js does this: it writes the part of the address that a view depends on
into the view's `dcc.Store`, and leaves it as it is when that did not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate

from dashboard import address, components, preferences
from dashboard.address import Address
from dashboard.components import PLOT_CONFIG, Element
from dashboard.store import Store
from dashboard.theme import THEMES, Theme

Make = Callable[[Store, Address, Theme], Any]
Inside = tuple[Address, Theme]
ALWAYS = ("report", "against")


def plot(
    identifier: str,
    path: str,
    keys: Sequence[str],
    *,
    height: int = 340,
    picks: str = "",
    zooms: bool = False,
    inside: Inside | None = None,
) -> Element:
    """Make room for a figure that follows these keys of the address; `draw` draws it."""
    graph = dcc.Graph(id=identifier, config=PLOT_CONFIG, responsive=True, className="plot-inner")
    data = {"data-picks": picks, "tabIndex": "0"} if picks else {}
    data |= {"data-zooms": ""} if zooms else {}
    place = html.Div(id=f"{identifier}-fault", className="plot-fault")
    return html.Div(
        [place, graph, _watched(identifier, path, keys, themed=True, inside=inside)],
        className="plot",
        style={"height": f"{height}px"} if height else None,
        **data,
    )


def panel(
    identifier: str, path: str, keys: Sequence[str], *, themed: bool = False, name: str = ""
) -> Element:
    """Make room for what follows these keys of the address; `fill` makes it.

    With `themed` it is made again when light and dark change, for what holds colours of its own.
    """
    return html.Div(
        [html.Div(id=identifier, className=name), _watched(identifier, path, keys, themed=themed)]
    )


def _watched(
    identifier: str,
    path: str,
    keys: Sequence[str],
    *,
    themed: bool,
    inside: Inside | None = None,
) -> Element:
    data: dict[str, Any] = {"path": path, "keys": [*ALWAYS, *keys], "themed": themed}
    if inside:
        chosen, theme = inside
        data |= {"search": address.write(chosen).partition("?")[2], "theme": theme, "fixed": True}
    return dcc.Store(id={"view": identifier}, data=data)


def fill(app: Dash, store: Store, identifier: str, make: Make) -> None:
    """Have a panel made from the part of the address on which it depends."""
    app.callback(Output(identifier, "children"), Input({"view": identifier}, "data"))(
        components.or_else(following(store, make), or_empty, components.fault)
    )


def or_empty(made: Any) -> Any:
    """Give an empty place for nothing: null in it breaks later updates of Dash (4.4)."""
    return html.Div() if made is None else made


def draw(app: Dash, store: Store, identifier: str, make: Make) -> None:
    """Have a plot drawn from the part of the address on which it depends."""
    app.callback(
        Output(identifier, "figure"),
        Output(f"{identifier}-fault", "children"),
        Input({"view": identifier}, "data"),
    )(components.or_else(following(store, make), _drawn, _not_drawn))


def _drawn(figure: Any) -> tuple[Any, Any]:
    return figure, None


def _not_drawn(text: str) -> tuple[Any, Any]:
    return no_update, components.fault(text)


def following(store: Store, make: Make) -> Callable[[dict[str, Any] | None], Any]:
    """Give the callback: from what the browser says of a view to what is shown there."""

    def answer(view: dict[str, Any] | None) -> Any:
        if not view or "search" not in view:
            raise PreventUpdate
        chosen = address.parse(view["path"], view["search"])
        preferences.clocked(store, chosen.report)
        return make(store, chosen, seen_theme(view))

    return answer


def seen_theme(view: dict[str, Any]) -> Theme:
    """Give the theme in which a view is shown."""
    return next((name for name in THEMES if name == view.get("theme")), THEMES[0])


def register(app: Dash) -> None:
    """Have the browser tell every view when its part of the address changed."""
    app.clientside_callback(
        ClientsideFunction("tilescope", "follow"),
        Output({"view": ALL}, "data"),
        Input("address", "pathname"),
        Input("address", "search"),
        Input("theme", "data"),
        Input("stamped", "data"),  # set by a page that follows its files (assets/timeline.js)
        # No input: Dash would wait for the router, which answers every address. A page that the
        # router lays out brings views of its own, for which this runs anyhow.
        State("shown", "data"),
        State({"view": ALL}, "data"),
    )
