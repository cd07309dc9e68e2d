"""The router lays a page out when path, report or files change, and not otherwise."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from dash import no_update
from dash.exceptions import PreventUpdate
from plotly.io.json import to_json_plotly

from dashboard.address import Address
from dashboard.app import show
from dashboard.elements import components
from dashboard.pages import PAGES, provenance
from dashboard.pages.execution import page as execution
from dashboard.pages.execution import step_details
from dashboard.pages.memory import page as memory
from dashboard.pages.memory import tabs as memory_tabs
from dashboard.pages.summary import page as summary
from dashboard.store import Store
from dashboard.timeline.endpoint import host
from pva import schema
from pva.analysis.selection import SelectionError
from pva.analysis.whole_report.provenance import figure_quality
from pva.formats import registry
from tests.builders import small_report, write_report
from tests.dashboard.layouts import parts, words
from tests.dashboard.test_bad_timelines import write
from tests.fuzz.seeds import write_trace


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store of the small report."""
    return Store([write_report(tmp_path / "small")])


def menu(*lacking: str) -> str:
    """Return the titles of the pages of one report, without those that this one lacks."""
    subjects = ("anything", "report")
    pages = [page for page in PAGES if page.PAGE.subject in subjects and page.PATH not in lacking]
    return " ".join(page.TITLE for page in pages)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_files_whose_names_are_no_text_are_on_every_page(tmp_path: Path) -> None:
    folder = write_report(tmp_path / os.fsdecode(b"small\xff"))
    write_trace(folder / os.fsdecode(b"run\xfe.pvti"))
    store = Store([tmp_path])
    assert store.keys == [r"small\xff"] and store.completions("sm") == []
    for page in PAGES:
        assert to_json_plotly(show(store, page.PATH, "", None)[0], engine="orjson")
    assert host(store, "").timeline.lanes[0].path[0] == r"run\xfe.pvti"


def test_first_visit_lays_the_page_out(store: Store) -> None:
    page, links, name, target, sound, _, shown = show(store, "/summary", "", None)
    assert sound
    assert "Does it fit" in words(page)
    assert words(links) == menu()
    assert (name, target) == ("small", "IPU Model, tiny, 2 IPUs, 10 tiles")
    assert shown["report"] == "small"


def test_chosen_tile_changes_the_links_alone(store: Store) -> None:
    shown = show(store, "/memory", "", None)[-1]
    page, links, *_ = show(store, "/memory", "?tile=3&step=9", shown)
    assert page is no_update
    assert "/liveness?tile=3" in [link.href for link in links]


def test_watch_changes_nothing_while_the_files_stay(store: Store) -> None:
    shown = show(store, "/summary", "", None)[-1]
    with pytest.raises(PreventUpdate):
        show(store, "/summary", "", shown, "watch")


def test_watch_lays_the_page_out_when_a_file_changed(store: Store) -> None:
    shown = show(store, "/summary", "", None)[-1]
    os.utime(store.path() / "profile.pop", ns=(1, 1))
    page, *_, note, after = show(store, "/summary", "", shown, "watch")
    assert note == "The files of small have changed; this page shows them as they are now."
    assert "Does it fit" in words(page)
    assert after != shown


def test_a_page_on_its_way_is_no_change_of_its_files(store: Store) -> None:
    assert show(store, "/summary", "", None, "watch")[-2] is None  # the first is not there yet
    before = show(store, "/memory", "", None)[-1]
    other = before | {"report": "other", "stamp": "other"}
    page, *_, note, _after = show(store, "/summary", "", other, "watch")
    assert "Does it fit" in words(page) and note is None


def test_page_that_its_slot_holds_stays_and_the_header_follows(store: Store) -> None:
    held = show(store, "/memory", "", None)[-1]
    now = show(store, "/summary", "", None)[-1]
    page, links, name, *_, after = show(store, "/memory", "?tile=3", now, held=held)
    assert page is no_update and after == held
    assert name == "small" and "tile=3" in str(links)
    assert "Memory" in words(show(store, "/memory", "", now, "reload", held=held)[1])
    assert show(store, "/memory", "", now, "reload", held=held)[0] is not no_update


def test_list_of_reports_follows_their_files_and_is_laid_out_anew_for_another_one(
    tmp_path: Path,
) -> None:
    path = write_report(tmp_path / "one")
    store = Store([tmp_path])
    held = show(store, "/", "", None)[-1]
    os.utime(path / "profile.pop", ns=(1, 1))
    page, *_, after = show(store, "/", "", held, "watch")
    assert page is no_update and after["stamp"] != held["stamp"]
    write_report(tmp_path / "two")
    assert "2 reports" in words(show(store, "/", "", held, "watch")[0])


def test_page_that_its_slot_holds_of_older_files_is_laid_out_anew(store: Store) -> None:
    held = show(store, "/memory", "", None)[-1]
    os.utime(store.path() / "profile.pop", ns=(1, 1))
    now = show(store, "/summary", "", None)[-1]
    assert show(store, "/memory", "", now, held=held)[0] is not no_update


@pytest.mark.parametrize(
    ("path", "search", "kept"),
    [("/memory", "", True), ("/documentation", "", True), ("/", "", True), ("/nowhere", "", False),
     ("/programs", "?stage=zz", False)],
)  # fmt: skip
def test_pages_with_a_fault_are_not_kept(store: Store, path: str, search: str, kept: bool) -> None:
    *_, sound, _note, _now = show(store, path, search, None)
    assert sound is kept


def test_execution_is_laid_out_before_its_timeline(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "timeline", None)
    page = show(store, "/execution", "", None)[0]
    assert "Device timeline" in words(page)
    assert "'execution-legend'" in str(page)


def test_page_of_a_trace_follows_it_without_being_laid_out_anew(tmp_path: Path) -> None:
    store = Store([write(tmp_path / "t.pvti", [(0, 1, 2, 0)], ["x"])])
    shown = show(store, "/trace", "", None)[-1]
    write(tmp_path / "t.pvti", [(0, 1, 2, 0), (0, 3, 4, 0)], ["x"])
    page, *_, note, after = show(store, "/trace", "", shown, "watch")
    assert page is no_update and note is None
    assert after["stamp"] != shown["stamp"]


def test_page_without_its_tables_is_not_in_the_menu(tmp_path: Path) -> None:
    path = write_report(
        tmp_path / "compiled", small_report(steps=None, steps_by_ipu=None, runs=None)
    )
    store = Store([path])
    links = show(store, "/memory", "", None)[1]
    assert words(links) == menu("/execution")
    assert "autoReport.outputExecutionProfile" in words(show(store, "/execution", "", None)[0])


def test_summary_of_a_cpu_says_what_it_is_and_why_there_is_no_more(tmp_path: Path) -> None:
    target = small_report().table("target")
    cpu = target | {"type": [schema.TABLE["target"].column("type").values.index("CPU")]}
    gone = dict.fromkeys(("memory_by_tile", "tile_cycles", "steps", "steps_by_ipu"))
    store = Store([write_report(tmp_path / "cpu", small_report(target=cpu, **gone))])
    page, _, _, target_shown, *_ = show(store, "/summary", "", None)
    assert target_shown == "CPU"
    assert "Memory not known: a CPU runs values without a model" in words(page)
    assert "Execution not known: a CPU runs values" in words(page)
    shown = words(summary.details(store, Address(), "light"))
    assert "Compute sets 3" in shown
    assert "Execution not recorded autoReport.outputExecutionProfile" in shown


def test_summary_without_a_graph_profile_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "profile.pop"
    registry.write(small_report().select("execution"), path)
    store = Store([path])
    page = words(show(store, "/summary", "", None)[0])
    assert "Memory not known: run the program with the engine option" in page
    assert "profile.pop" in words(summary.details(store, Address(), "light"))


def test_summary_tells_how_long_runs_took_whose_steps_were_not_recorded(tmp_path: Path) -> None:
    execution = {"profiler_mode": [0], "cycles": [-1]}
    gone = dict.fromkeys(("tile_cycles", "steps", "steps_by_ipu", "tile_clock"))
    data = small_report(execution=execution, **gone)
    page = words(show(Store([write_report(tmp_path / "runs", data)]), "/summary", "", None)[0])
    assert "2 runs took 1,024 cycles (1.0\u00a0µs). Execution not known: no run was rec" in page


def test_report_without_a_run_says_that_none_has_ended(tmp_path: Path) -> None:
    data = small_report()
    empty = {name: {column: values[:0] for column, values in data.table(name).items()}
             for name in ("runs", "steps", "steps_by_ipu", "blocks")}  # fmt: skip
    store = Store([write_report(tmp_path / "early", small_report(**empty, tile_clock=None))])
    assert "No run has ended." in words(show(store, "/summary", "", None)[0])
    page = words(show(store, "/execution", "", None)[0])
    assert page == "Help Where do the cycles go? No run has ended."


def test_page_that_fails_says_so_without_a_traceback(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("inside")

    monkeypatch.setattr(memory, "layout", fail)
    said = words(show(store, "/memory", "", None)[0])
    assert said.startswith(f"{memory.TITLE} {components.FAILED}")


def test_details_of_what_is_not_there_are_refused(store: Store) -> None:
    report = store.report()
    with pytest.raises(SelectionError, match="tile 10: not there; the report has tiles 0 to 9"):
        memory_tabs.details_tree(report, Address(tiles=(10,)))
    with pytest.raises(SelectionError, match="step 24: not there"):
        step_details.details(store, Address(steps=(24,)), "light")


def test_step_shows_its_cycles_with_the_time_beside(store: Store) -> None:
    shown = words(step_details.details(store, Address(steps=(2,)), "light"))
    assert "Cycles of its longest tile 49 (49 ns)" in shown  # of the exchange, at 1 GHz


def test_step_that_is_hidden_in_part_says_what_its_clocks_are(store: Store) -> None:
    # The sync lasts 190 cycles on its longest tile, 156 of them behind the step before.
    shown = words(step_details.details(store, Address(steps=(8,)), "light"))
    assert "Cycles of its longest tile 190 (190 ns)" in shown
    assert "Latest clock of any tile 413 before, 447 after" in shown
    assert "Hidden behind earlier steps 156" in shown


def test_shares_in_view_add_up_to_the_window(store: Store) -> None:
    shown = execution.range_details(store, Address("/execution"), "light")
    bars = [part for part in parts(shown) if getattr(part, "className", "") == "bar"]
    assert len(bars) == 2
    for bar in bars:
        widths = [float(part.style["width"].removesuffix("%")) for part in bar.children]
        assert sum(widths) == pytest.approx(100, abs=0.01)


def test_provenance_is_shown_in_words(store: Store) -> None:
    report = store.report()
    assert words(provenance.badge(report, "memory_by_tile")) == "estimated"
    assert provenance.badge(report, "steps") is None
    assert "code is modelled" in words(summary.details(store, Address(), "light"))


def test_provenance_of_what_the_report_lacks_is_not_shown(tmp_path: Path) -> None:
    data = small_report(memory_by_tile=None)
    report = Store([write_report(tmp_path / "small", data)]).report()
    assert figure_quality(report) == []
    assert provenance.trust_section(report) == []


@pytest.mark.parametrize("wrong", ["tile=abc", "tile=5-2", "step=abc", "range=9-1", "filter=x"])
def test_a_page_stays_where_a_value_of_its_link_is_wrong(store: Store, wrong: str) -> None:
    for page in PAGES:
        plain = words(show(store, page.PATH, "", None)[0])
        assert words(show(store, page.PATH, f"?{wrong}", None)[0]) == plain, page.PATH


def test_a_page_stays_where_its_files_change_beside_a_wrong_value(store: Store) -> None:
    shown = show(store, "/memory", "", None)[-1]
    os.utime(store.path() / "profile.pop", ns=(1, 1))
    page = show(store, "/memory", "?tile=abc", shown, "watch")[0]
    assert words(page) == words(show(store, "/memory", "", None)[0])


@pytest.mark.parametrize(
    ("page", "wrong", "told"),
    [("/programs", "stage=zz", "stage=zz: "), ("/operations", "layer=zz", "layer zz: ")],
)
def test_a_page_that_cannot_take_an_option_says_so_above_it(
    store: Store, page: str, wrong: str, told: str
) -> None:
    plain, odd = (show(store, page, search, None)[0] for search in ("", f"?{wrong}"))
    assert words(odd).startswith(told)
    assert words(odd).endswith(words(plain))
    # In a list inside a list of children Dash knows no component, and the browser shows nothing.
    parts = odd if isinstance(odd, list) else odd.children
    assert not any(isinstance(part, list) for part in parts)
