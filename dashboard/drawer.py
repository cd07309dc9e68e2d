"""The drawer beside a page: all that is known of the variable that the address chooses."""

from __future__ import annotations

from dataclasses import replace

from dash import Dash, dcc, html

from dashboard import address, components, view
from dashboard.address import Address
from dashboard.components import Element, facts
from dashboard.store import Store
from dashboard.theme import Theme
from pva import units
from pva.analysis.memory import category_label
from pva.analysis.one_variable import VariableFigures, variable_figures

PANEL, KEY = "drawer", "variable"
# Pages on which a variable can be chosen.
PATHS = ("/insights", "/memory", "/liveness")
SHOWN_IN = (("Memory", "/memory", ()), ("Liveness", "/liveness", (("tab", "lifetimes"),)))


def place(chosen: Address) -> list[Element]:
    """Make room for the drawer on a page of a report."""
    return [view.panel(PANEL, chosen.path, (KEY,))] if chosen.path in PATHS else []


def drawer(store: Store, chosen: Address, _theme: Theme) -> Element:
    """Show the variable that was chosen last; nothing where none is. Raises PvaError."""
    numbers = chosen.numbers(KEY)
    report = store.report(chosen.report)
    if not numbers or not report.dataset.has("variables"):
        return None
    figures = variable_figures(report, variable=numbers[-1])
    rest = tuple(pair for pair in chosen.options if pair[0] != KEY)
    close = dcc.Link(
        "Close", href=address.write(replace(chosen, options=rest)), className="button drawer-close"
    )
    return html.Aside(
        [
            html.Div([html.H2("Variable"), close], className="drawer-head"),
            html.P(components.prose(figures.name), className="subject", title=figures.name),
            facts(_figures(figures)),
            _links(chosen, figures),
        ],
        className="drawer",
        **{"aria-label": f"Variable {figures.name}"},
    )


def _figures(found: VariableFigures) -> list[tuple[str, str]]:
    at = f"{found.file}:{found.line}" if found.file else "not recorded"
    inside = f" in {found.function}" if found.function not in ("", "<module>") else ""
    return [
        ("Created at", f"{at}{inside}"),
        ("Part of", found.operation or "–"),
        ("Category", category_label(found.category)),
        ("Type and shape", f"{found.type} {found.shape}"),
        ("Bytes", units.size(found.bytes)),
        *_lies(found),
        ("Live", _life(found)),
        ("At the peak", "yes" if found.at_peak else "no"),
        *_uses("Written by", found.writers, found.last_writer),
        *_uses("Read by", found.readers, found.last_reader),
    ]


def _lies(found: VariableFigures) -> list[tuple[str, str]]:
    if found.fullest_tile < 0:
        return []
    tiles = "1 tile" if found.tiles == 1 else f"{units.count(found.tiles)} tiles"
    most = f"{units.size(found.most_bytes)} on tile {found.fullest_tile:,}"
    return [("Lies on", f"{tiles}, at most {most}")]


def _life(found: VariableFigures) -> str:
    if found.always_live:
        return "always"
    if found.first_step < 0:
        return "not recorded"
    ends = [
        f"step {step:,}{f' ({name})' if name else ''}"
        for step, name in (
            (found.first_step, found.first_name), (found.last_step, found.last_name)
        )
    ]  # fmt: skip
    return components.prose(" to ".join(ends))


def _uses(words: str, count: int, last: str) -> list[tuple[str, str]]:
    if count < 0:
        return []
    programs = "1 program" if count == 1 else f"{units.count(count)} programs"
    return [(words, components.prose(f"{programs}, last {last}" if count else "no program"))]


def _links(chosen: Address, found: VariableFigures) -> Element:
    """Lead to the other pages that show the variable."""
    kept = ((KEY, str(found.variable)),)
    links = [
        dcc.Link(
            f"Show in {words}",
            href=address.write(Address(path, chosen.report, options=tuple(sorted((*more, *kept))))),
            className="step-link",
        )
        for words, path, more in SHOWN_IN
        if path != chosen.path
    ]
    return html.P(links, className="step-links")


def register(app: Dash, store: Store) -> None:
    """Add the callback of the drawer."""
    view.fill(app, store, PANEL, drawer)
