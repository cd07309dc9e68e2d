"""The Dash application: shell, router, and the one place where errors become messages."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate
from flask import request

from dashboard import address, controls, downloads, preferences, scripts, slots, tables, view
from dashboard.address import Address, AddressError
from dashboard.declared import page_at
from dashboard.details import drawer
from dashboard.elements import components, static_elements
from dashboard.elements.components import Element
from dashboard.pages import PAGES, broken_laws, documentation
from dashboard.pages.documentation import help_link
from dashboard.pages.headlines import counted as counted_words
from dashboard.pages.start import page as start
from dashboard.pages.targets import target_words
from dashboard.parts import Parts
from dashboard.prefetch import Prefetcher, prefetcher_of
from dashboard.requests import access
from dashboard.requests.under_way import UnderWay
from dashboard.requests.written import Written
from dashboard.scripts import Application
from dashboard.shell import Page, navigation, shell
from dashboard.store import Store
from dashboard.timeline import endpoint
from pva.analysis.execution.steady import counted, setup_runs
from pva.analysis.selection import SelectionError
from pva.errors import NotRecordedError, PvaError
from pva.plot import theme
from pva.plot.axes import warm

Shown = dict[str, Any] | None

_INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
<link rel="icon" href="data:,">
<script src="assets/early.js?m=[[early]]"></script>
<style>[[tokens]]</style>
{%css%}
</head>
<body>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>"""


def create_app(paths: Sequence[Path | str], *, host: str = "127.0.0.1", token: str = "") -> Dash:
    """Make the application for the reports at these paths; nothing is opened yet.

    A host that is not this machine needs a token; raises ValueError.
    """
    return application(Store([Path(path) for path in paths]), host=host, token=token)


def application(store: Store, *, host: str = "127.0.0.1", token: str = "") -> Dash:
    """Make the application for a store; raises ValueError as `create_app` does."""
    warm()
    early = f"{(scripts.ASSETS / 'early.js').stat().st_mtime:.0f}"  # its address changes with it
    app = Application(
        "tilescope",
        assets_folder=str(scripts.ASSETS),
        assets_ignore=".*",  # `scripts` sends them
        title="tilescope",
        update_title=None,
        suppress_callback_exceptions=True,
        index_string=_INDEX.replace("[[tokens]]", theme.css()).replace("[[early]]", early),
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        add_log_handler=False,
    )
    prefetcher = prefetcher_of(app, Prefetcher(store, UnderWay(app.server).rest))
    router = Router(app, store, prefetcher)
    app.layout = router.window
    preferences.follow(app.server)
    store.count_runs(preferences.runs, counted)
    app.server.before_request(store.look_once)
    app.server.teardown_request(lambda _: store.look_again())
    scripts.register(app)
    _register(app, router)
    _register_scripts(app)
    controls.register(app)
    view.register(app)
    for page in PAGES:
        page.register(app, store)
    broken_laws.register(app, store, prefetcher.awaits)
    drawer.register(app, store)
    endpoint.register(app.server, store)
    downloads.register(app.server, store)
    tables.register(app.server)
    access.only_callbacks(app.server, app.callback_map)
    access.protect(app.server, app.csp_hashes(), host=host, token=token)
    return app


# What answers to an address, in the order of `Router.answer`.
_ANSWERS = (
    ("page-above", "children"),
    ("page-aside", "children"),
    ("shown", "data"),
    *((slots.name_of(each), "children") for each in slots.paths()),
    ("navigation", "children"),
    ("report-name", "children"),
    ("target", "children"),
    ("notice", "children"),
    ("kept", "data"),
    ("report-choice", "data"),
)


@dataclass(frozen=True, slots=True)
class Router:
    """What answers to an address: the page there, and what stands around it."""

    app: Dash
    store: Store
    prefetcher: Prefetcher
    written: Written = field(default_factory=Written)

    def answer(
        self,
        asked_by: str | None,
        writing: object,
        path: str,
        search: str,
        shown: Shown = None,
        kept: dict[str, Shown] | None = None,
        keys: list[str] | None = None,
    ) -> tuple[object, ...]:
        """Return the values of `_ANSWERS`, given what the browser shows and keeps."""
        store = self.store
        components.check_texts(path, search)
        kept = kept if store.keys == keys and isinstance(kept, dict) else {}
        page, links, name, target, sound, note, now = show(
            store, path, search, shown, asked_by, writing, kept.get(path)
        )
        around: tuple[object, object] = no_update, no_update
        if isinstance(now, dict):
            self.prefetcher.show(now["report"])
            parts = Parts(store, view.makers(self.app), search, now["stamp"])
            if page is not no_update:
                page = _answered(page, path, parts, self.written, anew=asked_by == "reload")
            kept = kept | {path: now if sound else None}
            around = _around(store, path, search, parts)
        elif now is None:
            around = None, None
        slot = path if now is not None and path in slots.paths() else slots.ELSEWHERE
        pages = [page if each == slot else no_update for each in slots.paths()]
        new_keys = no_update if store.keys == keys else store.keys
        header = static_elements.with_static_parts(links), name, target, note
        return *around, now, *pages, *header, kept, new_keys

    def window(self) -> object:
        """Lay out the window, with the page of the address `at` where that is there at once.

        Otherwise the window comes first, and says that it waits.
        """
        laid: Any = shell(self.store, preferences.chosen_theme())
        path, mark, asked = request.args.get("at", "").partition("?")
        search = mark + asked
        if not _is_there(self.store, path, search):
            return laid
        values = self.answer(None, laid["writing"].data, path, search, keys=self.store.keys)
        for (name, value_of), value in zip(_ANSWERS, values, strict=True):
            if value is not no_update:
                setattr(laid[name], value_of, value)
        laid["place"].data = address.place(path, search)
        return laid


def _is_there(store: Store, path: str, search: str) -> bool:
    """Return whether the page of an address was laid out before."""
    try:
        state, faults = address.parse_leniently(path, search)
        return not faults and view.is_kept(store, state, path, about=str(store.keys))
    except components.EXPECTED:
        return False


def _register(app: Dash, router: Router) -> None:
    """Register what answers to an address that is not that of the first page, or was not there."""

    def route(
        _place: object,
        _watch: int,
        _reload: int,
        writing: object,
        path: str,
        search: str,
        shown: Shown,
        kept: dict[str, Shown],
        keys: list[str],
    ) -> tuple[object, ...]:
        return router.answer(ctx.triggered_id, writing, path, search, shown, kept, keys)

    app.callback(
        *(Output(name, value) for name, value in _ANSWERS),
        Input("place", "data"),
        Input("watch", "n_intervals"),
        Input("reload", "n_clicks"),
        Input("writing", "data"),
        State("address", "pathname"),
        State("address", "search"),
        State("shown", "data"),
        State("kept", "data"),
        State("report-choice", "data"),
        running=[(Output("busy", "className"), "busy", "idle")],
        prevent_initial_call=True,  # the window comes with its page, or `place` asks
    )(route)


def _register_scripts(app: Dash) -> None:
    """Register what the browser answers by itself, by functions of the scripts in assets."""
    for function, output, inputs in (
        ("showReport", [Output("report-choice", "value")], [Input("shown", "data")]),
        ("remember", [Output("recent", "data")],
         [Input("shown", "data"), State("recent", "data")]),
    ):  # fmt: skip
        app.clientside_callback(ClientsideFunction("tilescope", function), *output, *inputs)
    for function, output, inputs in (
        ("switchTheme", [Output("theme", "data"), Output("provider", "forceColorScheme")],
         [Input("theme-switch", "n_clicks")]),
        ("openReport", [], [Input("report-choice", "value")]),
        ("setWriting", [Output("writing", "data")],
         [Input("sizes-choice", "value"), Input("cycles-choice", "value"),
          Input("runs-choice", "value"), State("writing", "data")]),
    ):  # fmt: skip
        app.clientside_callback(
            ClientsideFunction("tilescope", function), *output, *inputs, prevent_initial_call=True
        )


def _answered(page: object, path: str, parts: Parts, written: Written, *, anew: bool) -> object:
    """Return a page with the parts that are kept; as it was written, where these are all."""
    entry = (path, parts.search, parts.stamp, preferences.chosen_theme(),
             preferences.chosen_units(), tuple(parts.store.keys))  # fmt: skip
    text = written.get(entry)
    if text is not None and not anew:
        return text
    filled = parts.filled(page)
    return filled if parts.lacking or path == start.PATH else written.keep(entry, filled)


def show(
    store: Store,
    path: str,
    search: str,
    shown: Shown,
    asked_by: str | None = None,
    writing: object = None,
    held: Shown = None,
) -> tuple[Any, ...]:
    """Return page, navigation, report name, target, whether to keep it, notice, what is now shown.

    The page stays as it is while path, report, files and units are the same, and so does the one
    that its slot holds: its own callbacks follow what else the address says.
    """
    try:
        state, _ = address.parse_leniently(
            path, search
        )  # the part that reads a key tells its fault
        key = state.report or (store.keys or [""])[0]
        now = {"path": state.path, "report": key, "asked": state.report,
               "against": state.against, "stamp": _stamps(store, state),
               "sources": _digest(store.keys) if state.path == start.PATH else "",
               "writing": writing}  # fmt: skip
    except components.EXPECTED as problem:
        links = _links(store, Address(path))
        return _faulty(path, str(problem)), links, "", "", False, None, None
    if shown == now and asked_by == "watch":
        raise PreventUpdate
    if asked_by == "reload":
        store.forget(state.report)
    links = _links(store, state)
    if shown == now and asked_by != "reload":
        return no_update, links, no_update, no_update, True, None, no_update
    if asked_by != "reload" and slots.is_kept(shown, now, follows=_follows(path)):
        return no_update, links, no_update, no_update, True, None, now
    if asked_by != "reload" and slots.is_kept(held, now, follows=_follows(path)):
        return no_update, links, key, _target(store, key), True, None, now
    # Where the watch asks while another page is on its way, the browser drops that answer for this.
    stays = slots.is_kept(shown, now, follows=True)
    note = _notice(key, asked_by, changed=stays and shown != now)
    page, sound = _page(store, state)
    return page, links, key, _target(store, key), sound, note, now


def _around(store: Store, path: str, search: str, parts: Parts) -> tuple[object, object]:
    """Lay out the marks above a page and its drawer, which are not kept with it."""
    state, _ = address.parse_leniently(path, search)
    laid = (broken_laws.place(store, state), drawer.place(state))
    above, aside = (parts.filled(static_elements.with_static_parts(each)) for each in laid)
    return above, aside


def _links(store: Store, state: Address) -> Element:
    """Lay out the menu, once for a page of a report and the tiles that are chosen."""

    def make() -> Element:
        return navigation(PAGES, store, state)

    bare = Address(state.path, state.report, state.against, tiles=state.tiles)
    try:
        return view.remembered(store, bare, "navigation", make, about=str(store.keys))
    except PvaError:  # the page says what is wrong
        return make()


def _follows(path: str) -> bool:
    """Return whether the parts of a page follow its files, so that it is not laid out anew."""
    page = page_at(path)
    return page is not None and page.follows


def _stamps(store: Store, state: Address) -> str:
    """Return what changes when a file of the report, or of the one it is compared with, does."""
    if state.path == start.PATH:
        store.scan()
        return _digest([_stamp(store, key) for key in store.keys])
    if state.path == documentation.PATH:
        return ""
    stamps = [store.shown(state.report)]
    stamps += [store.shown(state.against)] if state.against else []
    return str(stamps)


def _stamp(store: Store, key: str) -> object:
    """Return the stamp of a source; none where its files cannot be looked at."""
    try:
        return store.stamp(key)
    except PvaError:
        return None


def _digest(parts: Sequence[object]) -> str:
    """Write in few letters what changes with any of many parts."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _notice(key: str, asked_by: str | None, *, changed: bool) -> str | None:
    """Write that what is on the page was read again."""
    if asked_by == "watch" and changed:
        return f"The files of {key} have changed; this page shows them as they are now."
    if asked_by == "reload":
        return f"The files of {key} were reloaded{'; they have changed' if changed else ''}."
    return None


def _page(store: Store, state: Address) -> tuple[object, bool]:
    """Lay out a page, or the message that takes its place; and tell whether it may be kept."""
    page = next((page for page in PAGES if state.path == page.PATH), None)
    preferences.clocked(store, state.report)

    def instead(text: str) -> tuple[object, bool]:
        return _faulty(state.path, text), False

    if page is None:
        return instead(f"{state.path}: no such page; choose one of the pages in the menu")
    laid: tuple[object, bool] = components.or_else(_laid_out, _same, instead)(page, store, state)
    return laid


def _same(laid: object) -> object:
    return laid


def _faulty(path: str, text: str) -> object:
    """Write below the name of a page why it cannot be shown, and lead to what can be."""
    heading = next((page.TITLE for page in PAGES if path == page.PATH), "No such page")
    ways = {start.PATH: "All reports and traces", documentation.PATH: "Documentation"}
    links = [dcc.Link(words, href=way, className="button") for way, words in ways.items()]
    return html.Div(
        [components.title(heading), components.fault(text), html.P(links, className="tools-row")]
    )


def _laid_out(page: Page, store: Store, state: Address) -> tuple[object, bool]:
    """Lay a page out, or give it as it was laid out before; raises PvaError.

    Of what was not recorded it says so in its place, which is no fault. A page with a fault of the
    address is not to be kept.
    """

    def make() -> object:
        laid = page.layout(store, state)
        if page is documentation:
            return static_elements.with_static_parts(laid)
        return static_elements.with_static_parts([help_link(state), laid])

    try:
        if page in (start, documentation):
            return make(), True
        return view.remembered(store, state, page.PATH, make, about=str(store.keys)), True
    except (AddressError, SelectionError) as problem:
        bare = Address(state.path, state.report, state.against)
        if bare == state:
            raise
        laid, _ = _laid_out(page, store, bare)
        above = components.fault(str(problem))
        return [above, *(laid if isinstance(laid, list) else [laid])], False
    except NotRecordedError as problem:
        sentence, hint = (_sentence(text) for text in (problem.found, problem.wanted))
        parts = [help_link(state), components.title(page.TITLE)]
        return static_elements.with_static_parts(
            [*parts, components.message(sentence, hint=hint)]
        ), True


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _target(store: Store, key: str) -> object:
    """Write the machine of a report, and which of its runs are set-up, which shows the control."""
    try:
        report = store.whole_report(key)
        setup = len(setup_runs(report))
        number = report.dataset.length("runs")
        words = f"set-up: {setup:,} of {counted_words(number, 'run')}"
        apart = [html.Span(words, className="setup-apart")] if setup else []
        return [target_words(report), *apart] if apart else target_words(report)
    except PvaError:
        return ""
