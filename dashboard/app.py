"""The Dash application: shell, router, and the one place where errors become messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, no_update
from dash.exceptions import PreventUpdate
from flask import request

from dashboard import access, address, components, theme
from dashboard.address import Address
from dashboard.figures.axes import warm
from dashboard.pages import PAGES
from dashboard.pages.targets import target_words
from dashboard.shell import navigation, shell
from dashboard.store import Store
from dashboard.timeline import endpoint
from pva.errors import PvaError

_INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
<link rel="icon" href="data:,">
<script src="assets/early.js"></script>
<style>[[tokens]]</style>
{%css%}
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>"""


def create_app(paths: Sequence[Path | str], *, loopback_only: bool = True) -> Dash:
    """Make the application for the reports at these paths; nothing is opened yet."""
    store = Store([Path(path) for path in paths])
    warm()
    app = Dash(
        "tilescope",
        assets_folder=str(Path(__file__).parent / "assets"),
        assets_ignore="early.js",
        title="tilescope",
        update_title=None,
        suppress_callback_exceptions=True,
        index_string=_INDEX.replace("[[tokens]]", theme.css()),
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        add_log_handler=False,
    )
    app.layout = lambda: shell(store, chosen_theme())
    _register(app, store)
    for page in PAGES:
        page.register(app, store)
    endpoint.register(app.server, store)
    access.protect(app.server, app.csp_hashes(), loopback_only=loopback_only)
    return app


def chosen_theme() -> theme.Theme:
    """Give the theme that the browser asks for; assets/early.js keeps it in a cookie."""
    wanted = request.cookies.get("tilescope-theme", "")
    return next((name for name in theme.THEMES if name == wanted), theme.THEMES[0])


def _register(app: Dash, store: Store) -> None:
    def route(path: str, search: str, _watch: int, shown: dict[str, Any] | None) -> Any:
        return show(store, path, search, shown, ctx.triggered_id)

    app.callback(
        Output("page", "children"),
        Output("navigation", "children"),
        Output("report-name", "children"),
        Output("target", "children"),
        Output("shown", "data"),
        Input("address", "pathname"),
        Input("address", "search"),
        Input("watch", "n_intervals"),
        State("shown", "data"),
    )(route)
    for function, output, inputs in (
        ("switchTheme", [Output("theme", "data"), Output("provider", "forceColorScheme")],
         [Input("theme-switch", "n_clicks")]),
        ("openReport", [], [Input("report-choice", "value")]),
        ("showReport", [Output("report-choice", "value")], [Input("shown", "data")]),
    ):  # fmt: skip
        app.clientside_callback(
            ClientsideFunction("tilescope", function), *output, *inputs, prevent_initial_call=True
        )


def show(
    store: Store, path: str, search: str, shown: dict[str, Any] | None, asked_by: str | None = None
) -> tuple[Any, ...]:
    """Give page, navigation, report name, target and what is now shown.

    The page stays as it is while path, report and files are the same: its own callbacks follow
    what else the address says.
    """
    try:
        chosen = address.parse(path, search)
        key = chosen.report or (store.keys or [""])[0]
        now = {"path": chosen.path, "report": key, "stamp": str(store.stamp(key))}
    except components.EXPECTED as problem:
        return components.fault(str(problem)), navigation(PAGES, store, Address(path)), "", "", None
    if shown == now and asked_by == "watch":
        raise PreventUpdate
    links = navigation(PAGES, store, chosen)
    if shown == now:
        return no_update, links, no_update, no_update, no_update
    return _page(store, chosen), links, key, _target(store, key), now


def _page(store: Store, chosen: Address) -> Any:
    """Lay out a page, or the message that takes its place."""
    page = next((page for page in PAGES if chosen.path == page.PATH), None)
    if page is None:
        return components.fault(f"{chosen.path}: no such page; choose one of the pages at the left")
    return components.or_fault(page.layout)(store, chosen)


def _target(store: Store, key: str) -> str:
    try:
        return target_words(store.report(key))
    except PvaError:
        return ""
