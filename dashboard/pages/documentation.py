"""What does this mean, and how is it done? Chapters at the left, or what a search finds in them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import groupby
from urllib.parse import unquote

from dash import Dash, dcc, html

from dashboard import address, components, controls, view
from dashboard.address import Address
from dashboard.components import Column, Element
from dashboard.manual import markup
from dashboard.manual.chapters import (
    Chapter,
    Section,
    Table,
    common_chapters,
    name_of,
    page_chapter,
    place_of,
)
from dashboard.manual.search import Hit, search, words_of
from dashboard.pages import (
    compare,
    compare_tables,
    exchange,
    execution,
    execution_ipus,
    explore,
    flames,
    graph,
    insights,
    instances,
    liveness,
    liveness_tabs,
    memory,
    memory_tabs,
    operation_details,
    operations,
    program_details,
    programs,
    run_list,
    serving,
    start,
    summary,
    together,
    trace,
    trace_tables,
)
from dashboard.pages.words import counted
from dashboard.still import Node, Still
from dashboard.store import Store
from pva.plot.theme import Theme

PATH, TITLE = "/documentation", "Documentation"
QUESTION = "What does this mean, and how is it done?"
PLACE = ("chapter", "section")  # the keys of the address that say where
MAX_HITS = 60  # that are listed; the others are reached one after the other
_M = memory_tabs
# The pages in the order of the menu, and the columns of their tables.
SUBJECTS: tuple[tuple[str, str, tuple[tuple[str, tuple[Column, ...]], ...]], ...] = (
    (start.PATH, start.TITLE, (
        ("Cards", tuple(Column("", title, note=note) for title, note in run_list.PARTS.items())),
    )),
    (summary.PATH, summary.TITLE, ()),
    (insights.PATH, insights.TITLE, (
        ("Columns: variables at the peak", insights.VARIABLE_COLUMNS),
        ("Columns: vertices", insights.VERTEX_COLUMNS),
        ("Columns: exchanges", insights.EXCHANGE_COLUMNS),
    )),
    (memory.PATH, memory.TITLE, (
        ("Columns: compute sets", _M.COLUMNS[_M.COMPUTE_SETS]),
        ("Columns: vertices", _M.COLUMNS[_M.VERTICES]),
        ("Columns: exchanges", _M.COLUMNS[_M.EXCHANGES]),
        ("Columns: variables", _M.COLUMNS[_M.VARIABLES]),
        ("Columns: variables by address", _M.ADDRESS_COLUMNS),
    )),
    (liveness.PATH, liveness.TITLE, (
        ("Columns: always live", liveness_tabs.ALWAYS_COLUMNS),
        ("Columns: lifetimes", liveness_tabs.LIFETIME_COLUMNS),
        ("Columns: over tiles", liveness_tabs.TILE_COLUMNS),
        ("Columns: cycle estimates", liveness_tabs.CYCLE_COLUMNS),
        ("Columns: steps", liveness_tabs.STEP_COLUMNS),
    )),
    (programs.PATH, programs.TITLE, (
        ("Columns: the tree", tuple(column for column in programs.SENT if column.note)),
        ("Columns: vertices", program_details.VERTEX_COLUMNS),
        ("Columns: variables", program_details.VARIABLE_COLUMNS),
        ("Columns: debug", program_details.CONTEXT_COLUMNS),
    )),
    (operations.PATH, operations.TITLE, (
        ("Columns: operations", tuple(column for column in operations.COLUMNS if column.note)),
        ("Columns: compute sets of an operation", operation_details.COMPUTE_SET_COLUMNS),
        ("Columns: arithmetic of an operation", operation_details.FLOPS_COLUMNS),
    )),
    (graph.PATH, graph.TITLE, (
        ("Columns: nodes", graph.NODE_COLUMNS),
        ("Columns: neighbours", graph.NEIGHBOUR_COLUMNS),
    )),
    (execution.PATH, execution.TITLE, (
        ("Columns: why the IPUs do not compute", execution_ipus.IDLE_COLUMNS),
        ("Columns: programs by cycles", execution.PROGRAM_COLUMNS),
        ("Columns: critical path", execution.PATH_COLUMNS),
        ("Columns: waits", execution.WAIT_COLUMNS),
        ("Columns: blocks", execution.BLOCK_COLUMNS),
    )),
    (exchange.PATH, exchange.TITLE, (
        ("Columns: exchanges", exchange.EXCHANGE_COLUMNS),
    )),
    (flames.PATH, flames.TITLE, (("Columns: what is inside", flames.COLUMNS),)),
    (compare.PATH, compare.TITLE, (("Columns", compare_tables.columns("bytes")),)),
    (trace.PATH, trace.TITLE, (("Columns: by label", trace_tables.LABEL_COLUMNS),)),
    (together.PATH, together.TITLE, ()),
    (instances.PATH, instances.TITLE, (("Columns: instances", instances.COLUMNS),)),
    (serving.PATH, serving.TITLE,
     (("Columns: parts of latency", serving.PART_COLUMNS),
      ("Columns: batchings", serving.CHOICE_COLUMNS),
      ("Columns: batches", serving.BATCH_COLUMNS))),
    (explore.PATH, explore.TITLE, (("Columns: points", explore.COLUMNS),)),
    (PATH, TITLE, ()),
)  # fmt: skip


@cache
def chapters() -> tuple[Chapter, ...]:
    """Return all chapters, in their order."""
    pages = (page_chapter(path, title, _tables(tables)) for path, title, tables in SUBJECTS)
    return (*pages, *common_chapters([(path, title) for path, title, _ in SUBJECTS]))


def _tables(tables: tuple[tuple[str, tuple[Column, ...]], ...]) -> list[Table]:
    return [
        (heading, [(column.title or "(first)", column.note) for column in columns])
        for heading, columns in tables
    ]


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
    known = {chapter.name: chapter for chapter in chapters()}
    return known[state.option("chapter", list(known))]


def section_of(state: Address, chapter: Chapter) -> int:
    """Return the section in the address, the first when there is none of this name."""
    names = [section.name for section in chapter.sections]
    wanted = state.text("section")
    return names.index(wanted) if wanted in names else 0


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
            html.Div([html.H2(group), html.Ul([_entry(state, each, now) for each in several])])
            for group, several in groups
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
    more = f"{len(hits) - MAX_HITS:,} more; add a word" if len(hits) > MAX_HITS else ""
    return html.Div(
        [head, html.Ol(listed, className="manual-hits"), html.P(more, className="note")],
        role="status",
    )


def _hit_link(state: Address, hit: Hit) -> str:
    return link_to(state, hit.chapter, hit.section.name)


def _hit(state: Address, hit: Hit, words: tuple[str, ...], now: bool) -> Element:
    own = hit.section.title != hit.chapter.title
    title = f"{hit.chapter.title}: {hit.section.title}" if own else hit.chapter.title
    context = Still([["p", {}, *markup.marked(hit.context, markup.pattern(words))]])
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
    parts: list[Element] = [Still([["article", {}, *nodes]])]
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
    known = {each.name: each for each in chapters()}
    return link_to(state, known[place[0]], place[1])


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
