"""What does this mean, and how is it done? Chapters at the left, or what a search finds in them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import groupby
from urllib.parse import unquote

from dash import Dash, dcc, html

from dashboard import address, controls, view
from dashboard.address import Address
from dashboard.declared import Declaration, declared
from dashboard.elements import components
from dashboard.elements.components import Element
from dashboard.elements.static_elements import Node, StaticElements
from dashboard.manual import markup
from dashboard.manual.chapters import (
    Chapter,
    Section,
    common_chapters,
    name_of,
    page_chapter,
    place_of,
)
from dashboard.manual.search import Hit, search, words_of
from dashboard.pages.headlines import counted
from dashboard.store import Store
from pva.plot.theme import Theme

PATH, TITLE = "/documentation", "Documentation"
QUESTION = "What does this mean, and how is it done?"
PLACE = ("chapter", "section")  # the keys of the address that say where
MAX_HITS = 60  # that are listed; the others are reached one after the other


@cache
def chapters() -> tuple[Chapter, ...]:
    """Return all chapters, in their order."""
    pages = declared()
    return (*map(page_chapter, pages), *common_chapters(pages))


PAGE = Declaration(
    PATH,
    TITLE,
    QUESTION,
    order=180,
    letter="d",
    icon=(
        "M8 4C6.5 3 4.5 2.8 2.5 3v9.5c2-.2 4 0 5.5 1 1.5-1 3.5-1.2 5.5-1V3c-2-.2-4 0-5.5 1zm0 0v9.5"
    ),
    subject="anything",
    controls={
        "find": (
            "Search",
            "Enter searches, then goes to the next section found; Shift Enter to the previous",
        ),
    },
    chapter="""\
**What does this mean, and how is it done?** The chapters at the left are a page each, what all
pages have in common, and the reference of the project. *Help* at the top of a page leads to its
chapter.

A search finds the sections that have all words, in any case; Enter goes on to the next one, Shift
Enter to the previous, `n` and `p` do the same outside of the box. All of it is on this machine.
""",
)


def available(store: Store, report: str) -> bool:
    """Return whether this page needs no report."""
    return True


def help_link(state: Address) -> Element:
    """Lead from a page to its chapter."""
    link = Address(PATH, state.report, options=(("chapter", name_of(state.path)),))
    words = "What this page shows, its controls and its columns (h)"
    return dcc.Link("Help", href=address.write(link), className="page-help", title=words)


def layout(store: Store, state: Address) -> Element:
    """Lay the page out."""
    del store
    search_box = controls.box("find", "Search the documentation", state, width=256)
    return html.Div(
        [
            components.title(QUESTION),
            html.Div(
                [
                    html.Nav(
                        [search_box, view.panel("documentation-side", PATH, ("find", *PLACE))],
                        className="manual-side",
                        **{"aria-label": "Chapters"},
                    ),
                    view.panel("documentation-text", PATH, ("find", *PLACE), name="manual-text"),
                ],
                className="manual",
            ),
        ]
    )


def chapter_of(state: Address) -> Chapter:
    """Return the chapter in the address; raises AddressError."""
    by_name = {chapter.name: chapter for chapter in chapters()}
    return by_name[state.option("chapter", list(by_name))]


def section_of(state: Address, chapter: Chapter) -> int:
    """Return the section in the address, the first when there is none of this name."""
    names = [section.name for section in chapter.sections]
    section_name = state.text("section")
    return names.index(section_name) if section_name in names else 0


def link_to(state: Address, chapter: Chapter, section: str = "") -> str:
    """Write the link to a section; what is searched for stays."""
    place = {"find": state.text("find"), "chapter": chapter.name, "section": section}
    options = tuple((key, text) for key, text in sorted(place.items()) if text)
    return address.write(replace(state, path=PATH, options=options))


def side(store: Store, state: Address, theme: Theme) -> Element:
    """List the chapters, or what was found in them."""
    del store, theme
    if words_of(state.text("find")):
        return _found(state)
    now = chapter_of(state)
    groups = groupby(chapters(), key=lambda chapter: chapter.group)
    return html.Div(
        [
            html.Div(
                [html.H2(group), html.Ul([_entry(state, chapter, now) for chapter in members])]
            )
            for group, members in groups
        ]
    )


def _entry(state: Address, chapter: Chapter, now: Chapter) -> Element:
    """Show a chapter of the list; the one that is read with its sections."""
    name = "active" if chapter is now else ""
    link = dcc.Link(chapter.title, href=link_to(state, chapter), className=name)
    if chapter is not now or len(chapter.sections) < 2:
        return html.Li(link)
    at = section_of(state, chapter)
    parts = [
        html.Li(
            dcc.Link(
                section.title,
                href=link_to(state, chapter, section.name),
                className="active" if n == at and state.text("section") else "",
            )
        )
        for n, section in enumerate(chapter.sections)
        if section.level == 2
    ]
    return html.Li([link, html.Ul(parts)])


def _found(state: Address) -> Element:
    """List what was found, each with the words around it, and lead to the next and previous."""
    hits = search(chapters(), state.text("find"))
    if not hits:
        return components.message("No section has all of these words.", hint="Try fewer.")
    chapter = chapter_of(state)
    place = (chapter.name, state.text("section"))
    at = next(
        (n for n, hit in enumerate(hits) if (hit.chapter.name, hit.section.name) == place), -1
    )
    count = f"{at + 1:,} of {len(hits):,}" if at >= 0 else counted(len(hits), "section")
    steps = (
        ("↑", "previous", hits[at - 1 if at >= 0 else -1], "Previous (p, Shift Enter)"),
        ("↓", "next", hits[(at + 1) % len(hits)], "Next (n, Enter)"),
    )
    buttons = [
        dcc.Link(words, href=_hit_link(state, hit), className=f"button small {name}", title=title)
        for words, name, hit, title in steps
    ]
    head = html.Div(
        [html.Span(count, className="note"), *buttons], className="tools-row manual-count"
    )
    words = words_of(state.text("find"))
    listed = [_hit(state, hit, words, n == at) for n, hit in enumerate(hits[:MAX_HITS])]
    note = f"{len(hits) - MAX_HITS:,} more; add a word" if len(hits) > MAX_HITS else ""
    return html.Div(
        [head, html.Ol(listed, className="manual-hits"), html.P(note, className="note")],
        role="status",
    )


def _hit_link(state: Address, hit: Hit) -> str:
    return link_to(state, hit.chapter, hit.section.name)


def _hit(state: Address, hit: Hit, words: tuple[str, ...], now: bool) -> Element:
    has_title = hit.section.title != hit.chapter.title
    title = f"{hit.chapter.title}: {hit.section.title}" if has_title else hit.chapter.title
    context = StaticElements([["p", {}, *markup.marked(hit.context, markup.pattern(words))]])
    link = dcc.Link(title, href=_hit_link(state, hit), className="active" if now else "")
    return html.Li([link, context])


def text(store: Store, state: Address, theme: Theme) -> Element:
    """Show the chapter, or the section of a long one."""
    del store, theme
    chapter = chapter_of(state)
    at = section_of(state, chapter)
    shown = chapter.sections[at : at + 1] if chapter.is_long else chapter.sections
    nodes: list[Node] = [["h2", {}, chapter.title]]
    for section in shown:
        nodes += _section(state, chapter, section)
    parts: list[Element] = [StaticElements([["article", {}, *nodes]])]
    if chapter.path and chapter.path != PATH:
        parts.append(
            dcc.Link(f"Open {chapter.title}", href=_page(state, chapter), className="button")
        )
    return html.Div([*parts, _around(state, chapter, at) if chapter.is_long else None])


def _page(state: Address, chapter: Chapter) -> str:
    return address.write(Address(chapter.path, state.report, state.against, state.tiles))


def _section(state: Address, chapter: Chapter, section: Section) -> list[Node]:
    words = words_of(state.text("find"))
    inside = markup.nodes(section.text, words, lambda target: _linked(state, chapter, target))
    head: list[Node] = []
    if section.level > 1:
        title = markup.marked(section.title, markup.pattern(words))
        head = [[f"h{section.level + 1}", {}, *title]]
    place = {"data-section": f"{chapter.name}/{section.name}"}
    return [["section", place, *head, *inside]]


def _linked(state: Address, chapter: Chapter, target: str) -> str:
    """Write where a link of a text leads; empty for what is not in this documentation."""
    place = place_of(unquote(target), chapter.name)
    if place is None:
        return ""
    by_name = {chapter.name: chapter for chapter in chapters()}
    return link_to(state, by_name[place[0]], place[1])


def _around(state: Address, chapter: Chapter, at: int) -> Element:
    """Lead to the sections before and after this one."""
    parts = chapter.sections
    near = [
        (words, parts[n]) for words, n in (("← ", at - 1), ("→ ", at + 1)) if 0 <= n < len(parts)
    ]
    links = [
        dcc.Link(words + part.title, href=link_to(state, chapter, part.name), className="button")
        for words, part in near
    ]
    return html.Div(links, className="tools-row manual-around")


def register(app: Dash, store: Store) -> None:
    """Add the callbacks of the page."""
    for identifier, make in (("documentation-side", side), ("documentation-text", text)):
        view.fill(app, store, identifier, make, keep=False)  # it asks for no report
