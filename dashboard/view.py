"""How a part of a page follows the address: only when what it depends on changes.

A part is a plot or a panel made by `plot` or `panel`, which say on which keys of the address it
depends (`report`, `against` and the state of the files always count). The page fills it:

    layout:    view.plot("memory-plot", PATH, ("breakdown", "order"), height=400, picks="tile")
               view.panel("memory-details", PATH, ("tab", "tile", "filter"))
    register:  view.draw(app, store, "memory-plot", figure)      # figure(store, state, theme)
               view.fill(app, store, "memory-details", details)  # details(store, state, theme)

`object!` stands for `object` unless a key of the page itself chooses it, as a tile on Memory.

So choosing another tile draws the details again and leaves the plot alone. What raises is shown as
one line in the part's place. With `picks="tile"` (or "step", "ipu"): a click on the plot puts the
number into the address, Shift adds to what is chosen, dragging chooses a range, the left and right
keys move; what is chosen is marked on the plot without asking the server. Where x is not the number
itself, `figure.layout.meta = {"picks": [number at x = 0, at x = 1, ...]}` tells it.

A plot inside a panel is drawn when the panel is: it takes the panel's address and theme as
`inside=(chosen, theme)`, and the panel depends on its keys.

What points of a plot with `objects` are (details/objects.py) stands in `ids` of its traces; a
click opens the drawer.

With `zooms` the window that a reader zooms to stands in the address as `range` (whole numbers, the
end not included): depend on `range`, and draw no more points than are seen there.

In the browser assets/views.js does this: it writes the part of the address that a view depends on
into the view's `dcc.Store`, and leaves it as it is when that did not change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from dash.exceptions import PreventUpdate
from werkzeug.exceptions import BadRequest

from dashboard import address, preferences
from dashboard.address import Address
from dashboard.elements import components, static_elements
from dashboard.elements.components import PICKED_BY_KEYS, PLOT_CONFIG, Element
from dashboard.store import Store
from pva.plot.theme import THEMES, Theme

Make = Callable[[Store, Address, Theme], Any]
Value = TypeVar("Value")
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
    objects: bool = False,
    inside: Inside | None = None,
) -> Element:
    """Make room for a figure that follows these keys of the address; `draw` draws it."""
    graph = dcc.Graph(id=identifier, config=PLOT_CONFIG, responsive=True, className="plot-inner")
    data = {"data-picks": picks, "tabIndex": "0", **PICKED_BY_KEYS} if picks else {}
    data |= {"data-picks": ":"} if objects else {}
    data |= {"data-zooms": ""} if zooms else {}
    place = html.Div(id=f"{identifier}-fault", className="plot-fault")
    return html.Div(
        [place, graph, _watched(identifier, path, keys, themed=True, inside=inside)],
        className="plot",
        style={"height": f"{height}px"} if height else None,
        **data,
    )


def panel(
    identifier: str,
    path: str,
    keys: Sequence[str],
    *,
    themed: bool = False,
    name: str = "",
    inner: bool = False,
) -> Element:
    """Make room for what follows these keys of the address; `fill` makes it.

    With `themed` it is made again when light and dark change, for what holds colours of its own.
    One that is `inner` lies in another panel, which need not depend on its keys.
    """
    return html.Div(
        [html.Div(id=identifier, className=name), _watched(identifier, path, keys, themed=themed)],
        **({"data-inner": identifier} if inner else {}),
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
        state, theme = inside
        data |= {"search": address.write(state).partition("?")[2], "theme": theme, "fixed": True}
    return dcc.Store(id={"view": identifier}, data=data)


def fill(app: Dash, store: Store, identifier: str, make: Make, *, keep: bool = True) -> None:
    """Register a panel that is made from the part of the address on which it depends.

    It is kept for the same address, files and units unless it shows more than these tell.
    """

    def settled(store: Store, state: Address, theme: Theme) -> object:
        return or_empty(make(store, state, theme))

    maker: Make = settled
    if keep:
        maker = makers(app)[identifier] = kept(identifier, settled)
    app.callback(Output(identifier, "children"), Input({"view": identifier}, "data"))(
        components.or_fault(following(store, maker))
    )


def makers(app: Dash) -> dict[str, Make]:
    """Return what makes the views of an application that are kept."""
    registry: dict[str, Make] = app.server.extensions.setdefault("tilescope views", {})
    return registry


def kept(identifier: str, make: Make) -> Make:
    """Make a part again only where address, theme, files or units are others."""

    def answer(store: Store, state: Address, theme: Theme) -> Any:
        return remembered(store, state, (identifier, theme), lambda: make(store, state, theme))

    return answer


def remembered(
    store: Store, state: Address, name: Hashable, make: Callable[[], Value], *, about: str = ""
) -> Value:
    """Return what was made under a name for this address, files and units, or make it.

    `about` tells what else it depends on.
    """
    return store.answer(_entry(store, state, name, about), make)


def is_kept(store: Store, state: Address, name: Hashable, *, about: str = "") -> bool:
    """Return whether `remembered` has a result under this name; raises PvaError."""
    return store.is_answered(_entry(store, state, name, about))


def _entry(store: Store, state: Address, name: Hashable, about: str) -> Hashable:
    keys = (state.report, *([state.against] if state.against else []))
    stamps = tuple(store.shown(key) for key in keys)
    return name, address.write(state), stamps, about, preferences.chosen_units()


def or_empty(content: object) -> object:
    """Return what a panel shows; None is an empty place, as null breaks later updates of Dash."""
    return static_elements.with_static_parts(html.Div() if content is None else content)


def draw(app: Dash, store: Store, identifier: str, make: Make) -> None:
    """Register a plot that is drawn from the part of the address on which it depends."""
    maker = makers(app)[identifier] = kept(identifier, make)
    app.callback(
        Output(identifier, "figure"),
        Output(f"{identifier}-fault", "children"),
        Input({"view": identifier}, "data"),
    )(components.or_else(following(store, maker, leniently=True), _drawn, _not_drawn))


def _drawn(figure: object) -> tuple[object, object]:
    return figure, None


def _not_drawn(text: str) -> tuple[object, object]:
    return no_update, components.fault(text)


def following(
    store: Store, make: Make, *, leniently: bool = False
) -> Callable[[dict[str, Any] | None], Any]:
    """Return the callback: from what the browser says of a view to what is shown there.

    A wrong value of a key raises AddressError; what is made `leniently` passes over the key.
    """
    read = (lambda *of: address.parse_leniently(*of)[0]) if leniently else address.parse

    def answer(view: dict[str, Any] | None) -> Any:
        if not view:
            raise PreventUpdate
        if not isinstance(view, dict):
            raise BadRequest
        components.check_texts(*(view.get(key) for key in ("path", "search", "theme")))
        if "path" not in view or "search" not in view:
            raise PreventUpdate
        state = read(view["path"], view["search"])
        preferences.clocked(store, state.report)
        return make(store, state, seen_theme(view))

    return answer


def seen_theme(view: dict[str, object]) -> Theme:
    """Return the theme in which a view is shown."""
    return next((name for name in THEMES if name == view.get("theme")), THEMES[0])


def register(app: Dash) -> None:
    """Register the callback that sends a new address to router, views and controls.

    A new address of the same page goes to views and controls from the callback of the router
    (`tell` in assets/views.js); those of their own run when more of them come. Each kind has one:
    one of several would not run when a panel brings new controls (Dash 4.4).
    """
    path, search, shown = (
        State("address", "pathname"),
        State("address", "search"),
        State("shown", "data"),
    )
    views: Any = {"view": ALL}
    app.clientside_callback(
        ClientsideFunction("tilescope", "place"), Output("place", "data"),
        Input("address", "pathname"), Input("address", "search"), State("theme", "data"), shown,
        State("place", "data"),
    )  # fmt: skip
    # The state of the router is no input: Dash would wait for it. A page that it lays out brings
    # views of its own, for which this runs anyhow.
    # A page that follows its files sets `stamped` (assets/timeline.js).
    app.clientside_callback(
        ClientsideFunction("tilescope", "follow"), Output(views, "data"),
        Input("theme", "data"), Input("stamped", "data"), path, search, shown,
        State(views, "data"), State(views, "id"),
    )  # fmt: skip
    for function, kind, value in (
        ("showChoices", {"address": ALL, "default": ALL, "page": ALL}, "value"),
        ("showSwitches", {"switch": ALL, "default": ALL, "page": ALL}, "checked"),
        ("showBoxes", {"box": ALL, "column": ALL, "page": ALL}, "value"),
    ):
        app.clientside_callback(
            ClientsideFunction("tilescope", function),
            Output(kind, value), Input("address", "id"), State(kind, value), State(kind, "id"),
        )  # fmt: skip
