"""A report that contradicts itself: the pages whose figures are concerned carry a mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.address import Address
from dashboard.declared import declared
from dashboard.pages import PAGES, broken_laws
from dashboard.store import Store
from pva.check import LAWS
from tests.builders import small_report, write_report
from tests.dashboard.layouts import parts, words

SUBJECTS = {page.path: page.laws for page in declared() if page.laws}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store of a report whose execution counts a cycle too many, and of a whole one."""
    data = small_report()
    execution: Any = dict(data.table("execution"))
    execution["cycles"] = [execution["cycles"][0] + 1]
    changed = small_report(execution=execution)
    return Store([write_report(tmp_path / "broken", changed), write_report(tmp_path / "whole")])


def marked(store: Store, path: str, report: str) -> str:
    shown = broken_laws.mark(store, Address(path, report), "light")
    return words(shown) if shown else ""


def test_page_names_the_law_that_its_figures_break(store: Store) -> None:
    text = marked(store, "/execution", "broken")
    total = int(small_report().value("execution", "cycles"))
    assert text.startswith("Figures of this page contradict others of the report: 1 law is broken.")
    assert "The cycles of the execution are the sum of the runs" in text
    assert f"{total + 1}" in text and f"{total}" in text


def test_pages_without_the_figure_and_whole_reports_have_no_mark(store: Store) -> None:
    concerned = [path for path in SUBJECTS if marked(store, path, "broken")]
    assert concerned == [
        "/summary", "/insights", "/operations", "/execution", "/compare", "/together",
    ]  # fmt: skip
    assert not any(marked(store, path, "whole") for path in SUBJECTS)


def test_every_page_with_figures_has_room_for_the_mark_until_it_is_known(store: Store) -> None:
    pages = [page for page in PAGES if page.PAGE.laws and page.available(store, "broken")]
    assert len(pages) == 10  # all but /together, which needs a trace, too
    for page in pages:
        places = parts(broken_laws.place(store, Address(page.PATH, "broken")))
        assert [getattr(part, "id", None) for part in places].count("broken-laws") == 1
    broken_laws.breaches(store, "broken")
    assert "1 law is broken" in words(broken_laws.place(store, Address("/execution", "broken")))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_every_law_is_about_a_page_beside_those_that_show_all(law: Any) -> None:
    special = [path for path, tables in SUBJECTS.items() if "" not in tables]
    of_summary = set(law.needs) <= {"report", "provenance"}  # who wrote it, and how sure it is
    assert any(broken_laws.concerns(law, path) for path in special) != of_summary


def test_laws_are_checked_after_the_page_and_once(store: Store) -> None:
    chosen = Address("/execution", "broken")
    waiting = broken_laws.mark_or_wait(store, chosen, "light")
    assert waiting.interval == broken_laws.SOON and not words(waiting)
    assert marked(store, "/execution", "broken")
    assert "1 law is broken" in words(broken_laws.mark_or_wait(store, chosen, "light"))
