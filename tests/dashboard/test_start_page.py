"""The Start page and the tabs of the Summary page: what they list, open, compare and filter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from dash import dcc, no_update
from dash.exceptions import PreventUpdate

from dashboard import demo as demo_module
from dashboard.address import Address, parse
from dashboard.app import show
from dashboard.demo import Demo
from dashboard.pages.documents import dotted, leaves, tree
from dashboard.pages.start import page as start
from dashboard.pages.start import run_list
from dashboard.pages.summary import page as summary
from dashboard.store import Store
from pva.errors import NotFoundError
from pva.summary import profile_summary
from tests.builders import report_without_code, small_report, write_report
from tests.dashboard.layouts import parts as parts_of
from tests.dashboard.layouts import words


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store of two reports, a damaged one, and one that does not fit."""
    write_report(tmp_path / "good")
    target = dict(small_report().table("target")) | {"bytes_per_tile": [600]}
    write_report(tmp_path / "tight", small_report(target=target))
    write_report(tmp_path / "codeless", report_without_code())
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "profile.pop").write_bytes(b"no report")
    return Store([tmp_path])


def links_of(element: Any) -> list[Any]:
    return [part for part in parts_of(element) if isinstance(part, dcc.Link)]


def rows(store: Store, search: str = "") -> str:
    return words(run_list.cards(store, parse("/", search), "light"))


def test_every_report_is_listed_with_what_is_known_of_it(store: Store) -> None:
    shown = rows(store)
    assert "good IPU Model, tiny, 2 IPUs, 10 tiles" in shown
    assert "1.0\u00a0kB (50.8\u00a0%)" in shown
    assert "1,024 cycles (1.0\u00a0µs)" in shown
    assert "memory, liveness, execution" in shown
    assert "Does not fit: 2 tiles out of memory" in shown
    assert shown.count("1.0\u00a0kB (50.8\u00a0%), without code") == 1
    assert "torn profile.pop" in shown or "torn" in shown.split("profile.pop")[0]


def test_reports_are_filtered_by_name(store: Store) -> None:
    assert "tight" not in rows(store, "find=GOOD")
    assert rows(store, "find=nothing") == "No report fits the filter."


def test_newest_stands_first_and_others_by_what_is_chosen(store: Store) -> None:
    os.utime(store.path("codeless") / "profile.pop", (2e9, 2e9))
    assert run_list.wanted(store, parse("/", ""))[0] == "codeless"
    assert run_list.wanted(store, parse("/", "order=name")) == ["codeless", "good", "tight", "torn"]
    assert run_list.wanted(store, parse("/", "order=fullest"))[0] == "tight"  # of 600 bytes a tile


@pytest.mark.parametrize(
    ("kind", "shown"), [("fits", ["codeless", "good"]), ("full", ["tight"]), ("traces", [])]
)
def test_runs_are_chosen_by_whether_they_fit(store: Store, kind: str, shown: list[str]) -> None:
    assert run_list.wanted(store, parse("/", f"kind={kind}&order=name")) == shown


def test_list_of_reports_is_given_as_a_table(store: Store) -> None:
    frame = run_list.reports_frame(store, parse("/", "find=t&order=name")).set_index("report")
    assert frame.index.tolist() == ["tight", "torn"]
    tight = frame.loc["tight"]
    assert (tight["tiles"], tight["bytes_per_tile"], tight["cycles"]) == (10, 600, 1024)
    assert tight["recorded"].startswith("memory, liveness, execution") and tight["files"] > 0
    assert frame["tiles"].isna()["torn"] and "profile.pop" in frame["problem"]["torn"]
    assert len(run_list.reports_frame(store, parse("/", "find=nothing"))) == 0


def test_start_page_needs_no_report() -> None:
    page, links, *_ = show(Store([]), "/", "", None)
    assert "0 reports under the paths given." in words(page)
    assert words(links) == "Start Documentation"


def test_two_are_picked_for_comparison(store: Store) -> None:
    link = start.comparison(store, parse("/", "before=tight&after=good"), "light")
    assert link.href == "/compare?report=tight&against=good"
    assert "differ" in words(start.comparison(store, parse("/", "before=good&after=good"), "light"))


def test_path_below_those_given_opens_the_summary(store: Store) -> None:
    assert start.opened(store, "good") == (None, "/summary", "?report=good")
    for text in ("..", "/etc", ""):
        with pytest.raises(NotFoundError, match="no report there"):
            start.opened(store, text)


def test_path_opens_as_it_was_typed_on_the_command_line(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path.parent / "other").mkdir()
    monkeypatch.chdir(tmp_path.parent)
    assert start.opened(store, f"{tmp_path.name}/good")[2] == "?report=good"
    assert start.go_on(store, f"{tmp_path.name}/g")[0] == [f"{tmp_path.name}/good/"]
    with pytest.raises(NotFoundError, match="no report there"):
        start.opened(store, "other")


def test_path_that_only_begins_is_told_how_it_goes_on(store: Store) -> None:
    said, *nowhere = start.open_path(store, None, 1, "g")
    assert (words(said), nowhere) == ("Go on: good/", [no_update, no_update])
    assert start.go_on(store, "t") == (["tight/", "torn/"], None)
    with pytest.raises(NotFoundError, match="no report there"):
        start.open_path(store, None, 1, "x")


def test_sections_of_the_summary_fold_by_names_of_their_own(store: Store) -> None:
    found = summary.details(store, parse("/summary", "report=good"), "light")
    parts = [part for part in parts_of(found) if type(part).__name__ == "Details"]
    names = [vars(part)["data-kept"] for part in parts]
    assert names == ["target", "written", "graph", "files", "recorded", "trust"]
    assert all(part.open for part in parts)


def test_options_and_documents_are_tables_to_save(store: Store) -> None:
    chosen = parse("/summary", "report=good")
    options = summary.options_frame(store, chosen)
    assert options.to_dict("records") == [{"name": "autoReport.all", "value": "true"}]
    found = summary.documents_frame(store, chosen)
    assert [tuple(row) for row in found.to_numpy()] == [
        ("app.json", "name", "small"),
        ("framework.json", "framework", "none"),
    ]


def test_reports_opened_last_are_listed_while_they_are_there(store: Store) -> None:
    shown = words(start.recent(store, ["tight", "gone", ["good", "tight"], ["good", "gone"]]))
    acts = "Copy link Remove"
    assert shown == f"tight {acts} Compare good and tight {acts}"
    assert "listed here" in words(start.recent(store, None))


def test_demo_is_made_once_and_opened(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "import sys, shutil; shutil.copytree(sys.argv[1], sys.argv[2])"
    made = tmp_path / "good"
    monkeypatch.setattr(demo_module, "COMMAND", ("-c", script, str(made)))
    demo = Demo(store)
    assert start.demo_state(demo, asked=False)[1] is True
    start.demo_state(demo, asked=True)
    demo.wait()
    shown, stop = start.demo_state(demo, asked=True)
    assert [link.href for link in links_of(shown)] == ["/summary?report=demo-report"]
    assert stop is True
    assert store.report("demo-report").path.name == "demo-report"


def test_demo_is_compared_with_the_report_beside_it(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import sys, shutil\n"
        "for end in ('', '-even'): shutil.copytree(sys.argv[1], sys.argv[2] + end)"
    )
    monkeypatch.setattr(demo_module, "COMMAND", ("-c", script, str(tmp_path / "good")))
    demo = Demo(store)
    demo.start()
    demo.wait()
    links = links_of(start.demo_state(demo, asked=False)[0])
    assert links[-1].href == "/compare?report=demo-report&against=demo-report-even"
    assert store.report("demo-report-even").path.name == "demo-report-even"


def test_demo_that_fails_says_what_to_do(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "COMMAND", ("-c", "raise SystemExit(3)"))
    demo = Demo(store)
    demo.start()
    demo.wait()
    assert "run tilescope demo in a terminal" in words(start.demo_state(demo, asked=False)[0])


def test_engine_options_are_a_tree_that_is_filtered(store: Store) -> None:
    pairs = [("debug.instrument", "true"), ("a.b", "no"), ("plain", "x")]
    shown = words(tree(dotted(pairs), Address(), name="o"))
    assert " ".join(shown.split()) == "Name Value a b no debug instrument true plain x"
    wanted = words(tree(dotted([("a.b", "no"), ("c.d", "1")]), Address(), name="o", wanted="A.B"))
    assert " ".join(wanted.split()) == "Name Value a b no"


def test_documents_are_walked_however_deep() -> None:
    deep: Any = "end"
    for _ in range(3000):
        deep = {"x": deep}
    (names, value), *more = leaves(deep)
    assert (len(names), value, more) == (3000, "end", [])


@pytest.mark.parametrize(
    ("tab", "shown"),
    [("overview", "Compute sets 3"), ("options", "autoReport"), ("documents", "Application")],
)
def test_tab_of_the_summary_is_filled(store: Store, tab: str, shown: str) -> None:
    found = summary.details(store, parse("/summary", f"report=good&tab={tab}"), "light")
    assert shown in words(found)


def test_profile_summary_is_shown_as_it_is_printed(store: Store) -> None:
    found = summary.details(store, parse("/summary", "report=good&tab=text"), "light")
    assert profile_summary(store.report("good")) in words(found)


def test_opening_nothing_changes_nothing(store: Store) -> None:
    with pytest.raises(PreventUpdate):
        start.open_path(store, None, None, None)
