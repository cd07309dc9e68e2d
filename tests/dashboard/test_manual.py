"""The documentation on screen: Markdown without markup, the search, what its chapters hold."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from dashboard.address import Address
from dashboard.app import show
from dashboard.declared import Declaration, declared, register
from dashboard.manual import markup
from dashboard.manual.chapters import DOCUMENTS, REFERENCE, Chapter, Section, place_of, sections
from dashboard.manual.search import search
from dashboard.pages import PAGES, documentation
from dashboard.pages.execution import page as execution
from dashboard.pages.liveness import page as liveness
from dashboard.pages.memory import page as memory
from dashboard.pages.programs import page as programs
from dashboard.store import Store
from tests.builders import write_report
from tests.dashboard.layouts import parts, words

ROOT = Path(__file__).parents[2]
HOSTILE = """<script>alert(1)</script> and *this*: `<b>`

[away](https://example.org), [run](javascript:alert), [there](cli.md#Show), ![p](//x/y.png)

| a | b |
| --- | --- |
| <i>1 | `x` |
"""


def chosen(**options: str) -> Address:
    return Address(documentation.PATH, options=tuple(sorted(options.items())))


def linked(target: str) -> str:
    return "#".join(place_of(target, "here") or ())


def test_markup_in_a_text_stays_text_and_no_link_leads_outside() -> None:
    made = markup.nodes(HOSTILE, (), linked)
    assert made[0][2] == "<script>alert(1)</script> and "
    there = ["link", {"href": "cli#show"}, "there"]
    assert made[1][2:] == ["away", ", [run](javascript:alert), ", there, ", ", "p"]
    tags = {node[0] for node in walk(made)}
    assert tags == {"p", "em", "code", "link", "div", "table", "thead", "tbody", "tr", "th", "td"}


def walk(nodes: list[Any]) -> list[Any]:
    inside = [node for node in nodes if isinstance(node, list)]
    return inside + [each for node in inside for each in walk(node[2:])]


def test_words_of_a_search_are_marked_in_any_case() -> None:
    made = markup.nodes("Live, always `live`", ("live",), linked)
    mark = ["mark", {}, "Live"]
    assert made == [["p", {}, mark, ", always ", ["code", {}, ["mark", {}, "live"]]]]


def test_headings_in_code_cut_no_section() -> None:
    text = "Before\n## One\nx\n```\n## no\n```\n### `Two`\n## One\n"
    found = [(each.name, each.title, each.level) for each in sections(text, "All")]
    assert found == [("all", "All", 1), ("one", "One", 2), ("two", "Two", 3), ("one-2", "One", 2)]


def test_search_wants_all_words_and_puts_titles_first() -> None:
    long = "x " * 100 + "the gaps of tiles" + " y" * 100
    made = (Section("a", "First", 1, long), Section("b", "Gaps", 2, "of all TILES"),
            Section("c", "Third", 2, "gaps alone"))  # fmt: skip
    hits = search([Chapter("one", "One", "Pages", made)], "tiles GAPS")
    assert [hit.section.name for hit in hits] == ["b", "a"]
    assert "the gaps of tiles" in hits[1].context and hits[1].context.startswith("… x")
    assert len(hits[1].context) < 230 and search([], "x") == []


def test_every_page_has_a_chapter_a_letter_and_an_icon() -> None:
    known = [(chapter.path, chapter.title) for chapter in documentation.chapters() if chapter.path]
    assert known == [(page.PATH, page.TITLE) for page in PAGES]
    assert [page.PAGE for page in PAGES] == declared()
    assert all(page.PAGE.icon.startswith("M") and page.PAGE.chapter for page in PAGES)
    assert len({page.PAGE.letter for page in PAGES}) == len(PAGES)
    assert len({chapter.name for chapter in documentation.chapters()}) == len(known) + 11


@pytest.mark.parametrize("field", ["letter", "order"])
def test_a_page_cannot_take_the_letter_or_the_place_of_another(field: str) -> None:
    own: dict[str, Any] = {"letter": "z", "order": 5, "icon": "M0 0", "chapter": "Text"}
    with pytest.raises(ValueError, match=f"^/twin: its {field} is also that of /memory$"):
        register(Declaration("/twin", "Twin", "?", **own | {field: getattr(memory.PAGE, field)}))
    assert "/twin" not in {page.path for page in declared()}


def test_every_column_of_a_table_is_explained() -> None:
    columns = [column for page in declared() for _, several in page.tables for column in several]
    assert [column.field for column in columns if not column.note] == []


def test_links_between_documents_lead_to_sections_that_are_there() -> None:
    known = {each.name: {part.name for part in each.sections} for each in documentation.chapters()}
    for name in DOCUMENTS:
        text = (REFERENCE / DOCUMENTS[name][1]).read_text(encoding="utf-8")
        for node in markup.tree(text).walk():
            place = place_of(str(node.attrs["href"]), name) if node.type == "link" else None
            assert place is None or place[1] in known[place[0]] | {""}, (name, place)


def test_the_wheel_holds_the_documents() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    packed = set(built["targets"]["wheel"]["force-include"])
    assert {f"docs/{file}" for _, file in DOCUMENTS.values()} == packed


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store([write_report(tmp_path_factory.mktemp("manual") / "small")])


def test_every_control_says_what_it_does(store: Store) -> None:
    made: list[tuple[str, Any]] = [
        (page.PATH, page.layout(store, Address(page.PATH)))
        for page in PAGES
        if page.available(store, "")
    ]
    for graph, _ in memory.GRAPHS:
        of_graph = Address(memory.PATH, options=(("graph", graph),))
        made.append((memory.PATH, memory.tools(store, of_graph, "light")))
    assert {execution.PATH, liveness.PATH, programs.PATH} < {path for path, _ in made}
    controls = {page.path: page.controls for page in declared()}
    for path, element in made:
        for part in parts(element):
            key = control_of(part)
            assert key in (None, "tab") or key in controls[path], (path, key)


def control_of(part: Any) -> str | None:
    """Return the key of the address that a part sets."""
    known = part.id if isinstance(getattr(part, "id", None), dict) else {}
    return next((known[kind] for kind in ("address", "switch", "box") if kind in known), None)


def test_search_stands_in_the_address_and_leads_on(store: Store) -> None:
    wanted = {"find": "interleaved overflowed"}
    shown = documentation.side(store, chosen(**wanted), "light")
    previous, following = (part.href for part in parts(shown) if "button" in class_of(part))
    assert "find=interleaved+overflowed" in following and previous != following
    place = {key: text for key, text in parse_qsl(following.partition("?")[2]) if key != "find"}
    assert words(documentation.side(store, chosen(**wanted, **place), "light")).startswith("1 of ")
    nothing = documentation.side(store, chosen(find="neither nor zebra"), "light")
    assert "No section has all of these words." in words(nothing)


def class_of(part: Any) -> str:
    return str(getattr(part, "className", ""))


def test_documentation_is_there_without_a_report_or_with_a_wrong_one(store: Store) -> None:
    for known, asked in ((Store([]), ""), (store, "?report=other")):
        page, links, *_ = show(known, documentation.PATH, asked, None)
        assert words(page).startswith(documentation.QUESTION) and "Documentation" in words(links)


def test_long_chapter_shows_the_section_of_the_address(store: Store) -> None:
    shown = words(
        documentation.text(store, chosen(chapter="analyses", section="fragmentation"), "light")
    )
    assert shown.startswith(
        "Analyses fragmentation Return which tiles lose the most memory to gaps"
    )
    whole = words(documentation.text(store, chosen(chapter="memory"), "light"))
    assert "variables that are never live together may overlap" in whole and "Open Memory" in whole
