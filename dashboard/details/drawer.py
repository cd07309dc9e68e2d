"""The drawer beside a page: all that is known of the object that the address chooses.

`object=kind:which` chooses one (objects.py); `variable=3` alone opens that variable, too.
Where two reports are compared, `object=after:kind:which` is one of the second.
A click anywhere chooses one (assets/drawer.js): a row of a table that has an `object`, and whatever
sets a key of the address of which the page declares that it is an object (`Declaration.objects`).
One of these may open the drawer by itself (`Declaration.docked`), as in a link to a step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from dash import Dash, dcc, html

from dashboard import address, view
from dashboard.address import Address
from dashboard.declared import Declaration, page_at
from dashboard.details.objects import AT, KEY, VARIABLE, Subject, describe, object_of, prose_of
from dashboard.elements import components
from dashboard.elements.components import Element, facts
from dashboard.store import Store
from pva.errors import PvaError
from pva.plot.theme import THEMES, Theme

PANEL, DETAILS, FINDINGS = "drawer", "drawer-details", "drawer-findings"
COMPARE, AFTER = "/compare", "after:"  # begins an object of the report that is compared with


def place(state: Address) -> list[Element]:
    """Make room for the drawer on a page of a report."""
    page = page_at(state.path)
    if page is None or not page.has_objects:
        return []
    kinds = {"data-objects": json.dumps({key: dict(of) for key, of in page.objects.items()})}
    kinds |= {"data-docked": page.docked} if page.docked else {}
    return [html.Div(view.panel(PANEL, state.path, _keys(page)), **kinds)]


def _keys(page: Declaration) -> tuple[str, ...]:
    return (KEY, VARIABLE, *page.objects)


def _value(state: Address, key: str) -> str:
    """Read the last value of a key of the address as text, empty without one."""
    of_fields = {"step": state.steps[-1:], "tile": state.tiles[-1:], "event": (state.event,)}
    if key not in of_fields:
        return state.text(key).rpartition(",")[2]
    return "".join(str(value) for value in of_fields[key] if value is not None)


def shown_object(state: Address) -> str:
    """Return the object that the drawer shows: that of the address, or of the key docked to it."""
    page = page_at(state.path)
    value = _value(state, page.docked) if page and page.docked else ""
    docked = f"{page.objects[page.docked]['']}:{value}" if page and value else ""
    return object_of(state) or docked


def of_report(state: Address, text: str) -> tuple[Address, str]:
    """Return the address with the report that an object is of, and the object in it."""
    if not (text.startswith(AFTER) and state.against):
        return state, text
    return replace(state, report=state.against, against=""), text.removeprefix(AFTER)


def drawer(store: Store, state: Address, _theme: Theme) -> Element:
    """Show the chosen object; nothing where none is. Raises PvaError, AddressError."""
    text = shown_object(state)
    of, alone = of_report(state, text)
    if not text or (
        alone.startswith(VARIABLE) and not store.report(of.report).dataset.has("variables")
    ):
        return None
    subject = described(store, of, alone)
    close = dcc.Link(
        "Close", href=address.write(_closed(state)), className="button drawer-close",
        title="Escape",
    )  # fmt: skip
    page = page_at(state.path)
    inner_keys = _keys(page) if page else (KEY, VARIABLE)
    return html.Aside(
        [
            html.Div([html.H2(subject.kind), close], className="drawer-head"),
            _sides(store, state, text),
            html.P(components.prose(subject.name), className="subject", title=subject.name),
            facts([*prose_of(subject.figures), *_related(state, subject, text)]),
            _links(state, subject, alone),
            *_inner(store, state, inner_keys),
        ],
        className="drawer",
        **{"aria-label": f"{subject.kind} {subject.name}",
           "data-shows": "\n".join((text, *subject.same))},
    )  # fmt: skip


def _sides(store: Store, state: Address, text: str) -> Element:
    """Name the report that the object is of where two are compared; lead to the other's tile."""
    if state.path != COMPARE or not state.against:
        return None
    of, alone = of_report(state, text)
    before, after = state.report or store.keys[0], state.against
    is_after = of is not state
    words = f"after: {after}" if is_after else f"before: {before}"
    other = f"before: {before}" if is_after else f"after: {after}"
    pick = html.Button(
        other, className="pick", title=f"The same tile in {other}",
        **{"data-key": KEY, "data-value": alone if is_after else f"{AFTER}{alone}"},
    )  # fmt: skip
    tools = [pick] if alone.startswith("tile:") else []
    return html.Div([html.Span(words, className="note"), *tools], className="related")


def _closed(state: Address) -> Address:
    """Return the address without an object."""
    page = page_at(state.path)
    docked = page.docked if page else ""
    kept = tuple(pair for pair in state.options if pair[0] not in (KEY, VARIABLE, docked))
    steps = () if docked == "step" else state.steps
    event = None if docked == "event" else state.event
    return replace(state, options=kept, steps=steps, event=event)


def described(store: Store, state: Address, text: str) -> Subject:
    """Return what is said of an object, once for an address; raises PvaError, AddressError."""
    make = partial(describe, store, state, text)
    return view.remembered(store, state, "subject of the drawer", make)


def _inner(store: Store, state: Address, keys: tuple[str, ...]) -> list[Element]:
    """Show details of a step, and findings: at once where all rules were asked before."""
    from dashboard.pages.insights import is_examined

    panels: list[Element] = []
    if _step(state) >= 0:
        panels.append(view.panel(DETAILS, state.path, keys, themed=True, inner=True))
    of, _ = of_report(state, shown_object(state))
    if store.has_report(of.report) and is_examined(store, of):
        return [*panels, findings(store, state, THEMES[0])]
    return [*panels, view.panel(FINDINGS, state.path, keys, inner=True)]


def _step(state: Address) -> int:
    """Return the executed step that the drawer shows, -1 where it shows none."""
    kind, _, which = shown_object(state).partition(":")
    number = int(which) if which.isascii() and which.isdigit() and len(which) < 19 else -1
    if (
        kind == AT and number % 2
    ):  # a step on the axis of device and host (dashboard/details/objects.py)
        return number // 2
    return number if kind == "step" else -1


def details(store: Store, state: Address, theme: Theme) -> Element:
    """Show what one execution of a step took, and where; nothing for other objects."""
    from dashboard.pages.execution import step_details

    number = _step(state)
    if number < 0:
        return None
    return step_details.details(store, replace(state, steps=(number,)), theme)


def _related(state: Address, subject: Subject, shown: str) -> Iterator[tuple[str, Element]]:
    """Name objects related to the shown one, each chosen by a click."""
    page = page_at(state.path)
    side = AFTER if of_report(state, shown)[0] is not state else ""
    keys = {of.get(""): key for key, of in page.objects.items()} if page else {}
    for words, others in subject.related:
        named = []
        for name, text in others:
            kind, _, which = text.partition(":")
            key, value = (keys[kind], which) if kind in keys else (KEY, f"{side}{text}")
            data = {"data-key": key, "data-value": value}
            named.append(html.Button(components.prose(name), className="pick", title=name, **data))
        yield words, html.Div(named, className="related")


def _links(state: Address, subject: Subject, text: str) -> Element:
    """Lead to the other pages that show the object; it stays chosen there."""
    links = [
        dcc.Link(
            f"Show in {words}",
            href=address.write(replace(to, options=_kept(to, text))),
            className="step-link",
        )
        for words, to in subject.shown_in
        if to.path != state.path
    ]
    return html.P(links, className="step-links")


def _kept(to: Address, text: str) -> tuple[tuple[str, str], ...]:
    """Keep the object in an address that does not choose it by a key of its own."""
    has_key = text.startswith(VARIABLE) and VARIABLE in dict(to.options)
    return tuple(sorted(to.options if has_key else (*to.options, (KEY, text))))


def findings(store: Store, state: Address, _theme: Theme) -> Element:
    """List what Insights says of the chosen object; nothing where it says nothing."""
    from dashboard.pages.insights import untried

    of, text = of_report(state, shown_object(state))
    if not text or text.startswith("event"):
        return None
    about = set(described(store, of, text).about)
    try:
        frame, _ = untried(store, of)
    except PvaError:
        return None
    rows = [
        html.Li([html.Strong(components.prose(str(row["what"]))), " ", row["advice"]])
        for row in frame.to_dict("records")
        if any((name, row[name]) in about and row[name] not in ("", -1)
               for name in ("variable", "step", "tile", "name"))
    ]  # fmt: skip
    if not rows:
        return None
    return html.Div([html.H3("Findings"), html.Ul(rows, className="drawer-findings")])


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the drawer."""
    view.fill(app, store, PANEL, drawer)
    view.fill(app, store, DETAILS, details)
    view.fill(app, store, FINDINGS, findings)
