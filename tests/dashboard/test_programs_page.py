"""The program tree: its lines, its search and its details, called as functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from dash import Dash

from dashboard import tables
from dashboard.address import AddressError, parse
from dashboard.pages.programs import details as program_details
from dashboard.pages.programs import headlines, written_details
from dashboard.pages.programs import page as programs
from dashboard.store import Store
from pva.analysis.programs.hierarchy import program_tree
from pva.analysis.programs.outline import program_stages
from pva.analysis.selection import SelectionError
from tests.builders import small_report, write_report
from tests.dashboard.layouts import parts, words

MARKUP = "<script>alert('x')</script>"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store of the small report."""
    return Store([write_report(tmp_path / "small")])


def stages(**cycles: int) -> pd.DataFrame:
    """Make the stages of what takes 900 of 1,000 cycles."""
    names, taken = ["", "batch", *cycles], [1000, 900, *cycles.values()]
    return pd.DataFrame(
        {"role": ["around"] * 2 + ["part"] * len(cycles), "line": range(len(names)),
         "program": range(len(names)), "type": "Call", "name": names, "executions": 1,
         "cycles": taken, "share": [each / 1000 for each in taken]}
    )  # fmt: skip


def shown(store: Store, search: str) -> Any:
    return programs.shown_lines(store, parse(programs.PATH, search))


def test_bar_of_the_stages_tells_the_shares_of_the_sentence() -> None:
    found = stages(load=90, solve=810)
    sentence = headlines.stages_sentence(found, recorded=True)
    assert sentence == "batch takes 90.0 % of all 1,000 cycles: load 9.0 %, solve 81.0 %."
    bar = headlines.stage_shares(found, parse(programs.PATH, ""))
    assert words(bar).strip() == "load 9.0 % solve 81.0 %"
    assert find(bar, "title").title == "load: 9.0 % of all cycles"


def rows(element: Any) -> list[dict[str, Any]]:
    """Return the rows of the first table of a layout."""
    return find(element, "rowData").rowData


def find(element: Any, attribute: str) -> Any:
    """Return the first part of a layout that has an attribute."""
    if hasattr(element, attribute):
        return element
    children = getattr(element, "children", None)
    parts = children if isinstance(children, list | tuple) else [children]
    found = (find(part, attribute) for part in parts if part is not None)
    return next((part for part in found if part is not None), None)


def answer(store: Store, search: str = "") -> str:
    return words(programs.head(store, parse(programs.PATH, search), "light"))


def details(store: Store, search: str) -> Any:
    return program_details.details(store, parse(programs.PATH, search), "light")


def test_every_line_is_seen_at_first(store: Store) -> None:
    frame = shown(store, "")
    assert frame["program"].tolist() == program_tree(store.report())["program"].tolist()
    assert frame["words"].tolist()[:4] == [
        "Sequence", "Sync, external", "Stream copy", "Repeat 2 times",
    ]  # fmt: skip
    assert frame["words"][7] == "Call function 0"
    assert frame["fold"].tolist()[:4] == ["open", "", "", "open"]


def test_lines_follow_level_part_turned_and_syncs(store: Store) -> None:
    assert shown(store, "level=1")["program"].tolist() == [0, 11]
    assert shown(store, "level=1&turned=11")["program"].tolist() == [0, 11, 12]
    assert shown(store, "part=function-0")["program"].tolist() == [11, 12]
    assert shown(store, "syncs=off&turned=3")["program"].tolist() == [0, 2, 3, 8, 9, 10, 11, 12]
    # What was turned over at another level counts no more.
    assert shown(store, "level=1&turned=0:11")["program"].tolist() == [0, 11]
    with pytest.raises(AddressError, match="level=9: not there"):
        shown(store, "level=9")


def test_the_chosen_line_and_those_of_its_operation_are_marked(store: Store) -> None:
    marks = shown(store, "program=6").set_index("program")["mark"]
    assert marks[marks != ""].to_dict() == {6: "chosen", 5: "related"}


def test_the_place_of_the_chosen_line_is_among_those_that_are_seen(store: Store) -> None:
    def place(search: str) -> Any:
        return programs.place(store, parse(programs.PATH, search), "light").to_plotly_json()[
            "props"
        ]

    assert place("program=8&turned=3")["data-line"] == "5"
    assert place("program=6&turned=3")["data-line"] == "-1"
    assert place("turned=3")["children"] == "10 of 14 lines"


def test_search_goes_on_and_opens_what_the_step_lies_in(store: Store) -> None:
    def go(search: str, **options: bool) -> Any:
        chosen = parse(programs.PATH, search)
        return programs.go_on(store, chosen, "multiply", **{"backwards": False} | options)

    assert go("level=1") == {"find": "multiply", "program": "5", "turned": "1:0,3,4"}
    assert go("program=5")["program"] == "6"
    assert go("program=5", backwards=True)["program"] == "6"
    # Of another part, it leaves the choice of a part.
    assert go("part=function-0")["part"] == ""
    assert programs.go_on(store, parse(programs.PATH, ""), "no", backwards=False) == {"find": "no"}


def test_search_says_how_many_it_found(store: Store) -> None:
    def say(search: str) -> str:
        return programs.search_words(store, parse(programs.PATH, search), "light")

    assert [say(""), say("find=multiply"), say("find=multiply&program=6")] == [
        "", "2 found", "2 of 2",
    ]  # fmt: skip


def test_rows_sent_are_few(store: Store) -> None:
    frame = shown(store, "")
    sent = tables.rows_asked(frame, programs.SENT, {"startRow": 3, "endRow": 5})
    assert [row["program"] for row in sent["rowData"]] == [3, 4]
    assert sent["rowCount"] == 14
    assert sent["rowData"][0]["cycles_text"] == "740"


@pytest.mark.parametrize(
    ("program", "texts"),
    [
        (6, ("Compute", "multiply", "OnTileExecute", "444", "Floating-point operations", "120 B")),
        (5, ("Internal exchange", "Bytes received", "40 B", "Exchange code")),
        (2, ("Stream copy", "80 B from the host")),
        (10, ("4 B to the host",)),
        (1, ("Sync", "external: with the host or other IPUs")),
        (3, ("Repeat", "2 times", "740")),
        (12, ("function 0",)),
    ],
)
def test_details_are_those_of_the_kind_of_step(
    store: Store, program: int, texts: tuple[str, ...]
) -> None:
    found = words(details(store, f"program={program}"))
    assert all(text in found for text in texts), found


def test_links_lead_to_where_the_step_is_seen(store: Store) -> None:
    top = details(store, "program=6&tile=3").children[0].children[1].children
    assert [link.href for link in top] == [
        "/programs?tile=3&object=program%3A6&program=6",
        "/liveness?tile=3&step=6", "/execution?tile=3&step=3",
        "/operations?tile=3&operation=multiply", "/programs?tile=3&program=6&stage=written",
    ]  # fmt: skip


def test_tabs_show_vertices_variables_and_source(store: Store) -> None:
    assert [row["vertices"] for row in rows(details(store, "program=6&tab=vertices"))] == [10]
    names = [row["name"] for row in rows(details(store, "program=6&tab=variables"))]
    assert set(names) == {"x", "w", "product", "message"}
    sources = [row["place"] for row in rows(details(store, "program=6&tab=debug"))]
    assert sources == ["model.py:10", "model.py:12"]


def test_a_tab_that_says_nothing_of_a_step_gives_way_to_its_details(store: Store) -> None:
    assert "2 times" in words(details(store, "program=3&tab=vertices"))
    assert "The compiler put it in" in words(details(store, "program=3&tab=debug"))


@pytest.mark.parametrize("text", ["99", "9" * 30, "²", "-1", "x"])
def test_a_program_that_is_not_there_is_refused_in_one_line(store: Store, text: str) -> None:
    assert set(shown(store, f"program={text}")["mark"]) == {""}
    with pytest.raises(SelectionError, match="programs 0 to 13|write a row, as in program=12"):
        details(store, f"program={text}")


def test_a_part_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(SelectionError, match="part=x: not there"):
        shown(store, "part=x")


def test_nothing_chosen_says_what_to_do(store: Store) -> None:
    assert "Choose a step in the tree" in words(details(store, ""))


def test_names_like_markup_stay_texts(tmp_path: Path) -> None:
    table = dict(small_report().table("programs"))
    table["name"] = [MARKUP, *table["name"][1:]]
    store = Store([write_report(tmp_path / "small", small_report(programs=table))])
    frame = shown(store, "find=script&program=0")
    assert frame["name"][0] == MARKUP
    assert MARKUP in answer(store)


def test_without_execution_the_estimates_stand_in_the_sentence(tmp_path: Path) -> None:
    data = small_report(steps=None, steps_by_ipu=None, runs=None)
    store = Store([write_report(tmp_path / "compiled", data)])
    assert "an estimated 538 cycles for one execution" in answer(store)
    assert "No steps: " in answer(store)
    assert shown(store, "")["cycles"].isna().all()
    page = programs.layout(store, parse(programs.PATH, ""))
    fields = [each["field"] for each in find(page, "columnDefs").columnDefs]
    assert fields == ["name", "estimated_cycles"]


def test_without_cycles_the_sentence_tells_the_order(tmp_path: Path) -> None:
    arrays = ("compute_set_cycles_by_tile", "exchange_cycles", "external_exchange_cycles",
              "host_exchange_cycles", "relative_sync_delay")  # fmt: skip
    data = small_report(steps=None, steps_by_ipu=None, runs=None, **dict.fromkeys(arrays))
    store = Store([write_report(tmp_path / "cpu", data)])
    sentence = answer(store)
    assert "It does x/StreamCopy, reduce/GlobalPre/GlobalExchange, reduce, y/StreamCopy" in sentence


def test_the_sentence_names_what_takes_the_time_and_its_parts_in_order() -> None:
    sample = Path(__file__).parents[2] / "sample_reports" / "mlp_digits_tiny"
    store = Store([sample])
    stages = program_stages(store.report())
    share = stages.set_index("name")["share"]
    sentence = answer(store)
    assert sentence.startswith("epoch, run ")
    order = [sentence.index(word) for word in ("Fwd", "Bwd", "Wu", "syncs between them")]
    assert order == sorted(order)
    assert f"Fwd {100 * share['Fwd']:.1f}\u00a0%" in sentence


def test_a_stage_is_lines_under_the_numbers_of_the_compiled_programs(store: Store) -> None:
    frame = shown(store, "stage=written&program=9")
    # Each by the first program that it became; 13, 8 and 9 are of the one Execute.
    assert frame["program"].tolist() == [0, 1, 3, 4, 5, 7, 13, 10, 11, 12]
    assert frame["mark"].tolist()[6] == "chosen"
    assert frame["words"].tolist()[:5] == [
        "Sequence", "Copy", "Repeat 2 times", "Sequence", "Execute",
    ]  # fmt: skip
    assert frame["cycles"].tolist()[4] == 638
    assert shown(store, "stage=written&level=1&turned=1:0")["program"].tolist() == [
        0, 1, 3, 13, 10, 11,
    ]  # fmt: skip
    found = programs.go_on(store, parse("/", "stage=written"), "add", backwards=False)
    assert found["program"] == "12"


def test_a_written_program_tells_what_it_became_with_links(store: Store) -> None:
    found = details(store, "stage=written&program=9")
    text = words(found)
    assert "Execute reduce" in " ".join(text.split())
    assert "Became 3 programs" in text
    assert "Compute set reduce" in text
    rows = [part for part in parts(found) if getattr(part, "href", "").startswith("/programs?")]
    assert [link.href for link in rows] == [
        "/programs?program=13", "/programs?program=13", "/programs?program=8",
        "/programs?program=9",
    ]  # fmt: skip
    assert "From stream x To x Moves 80 B" in words(details(store, "stage=written&program=2"))
    assert written_details.offered(store, parse("/", "stage=written&program=2"))[
        "program"
    ].tolist() == [1, 2]


def test_the_headline_of_a_stage_says_what_became_of_it(store: Store) -> None:
    sentence = answer(store, "stage=written")
    assert "Of what was written, Execute multiply takes longest: 638 cycles (62.3" in sentence
    assert "10 programs as written became 14 (Sequence 3, Compute 3, Stream copy 2," in sentence
    assert "the compiler adds none of its own" in sentence


def test_what_nobody_wrote_and_what_became_nothing_is_said(tmp_path: Path) -> None:
    results = {"written": [0, 4], "program": [0, 6]}
    data = small_report(written_results=results)
    store = Store([write_report(tmp_path / "small", data)])
    assert "Added by the compiler" in words(details(store, "stage=written&program=8"))
    assert shown(store, "stage=written")["program"].tolist()[:3] == [0, 14 + 1, 14 + 2]
    assert "It became no program" in words(details(store, "stage=written&program=15"))
    with pytest.raises(SelectionError, match="program 24: not there"):
        details(store, "stage=written&program=24")


def test_a_report_of_one_stage_has_no_choice_of_stages(tmp_path: Path) -> None:
    data = small_report(written_programs=None, written_results=None)
    store = Store([write_report(tmp_path / "small", data)])
    page = programs.layout(store, parse(programs.PATH, ""))
    assert "As compiled" in words(page)
    assert "'address': 'stage'" not in str(page)
    assert "As written" not in words(details(store, "program=6"))
    assert shown(store, "stage=written").equals(shown(store, ""))  # as in a link of another report
    with pytest.raises(AddressError, match="stage=planned: not there; known: compiled, written"):
        shown(store, "stage=planned")


def test_callbacks_have_their_places(store: Store) -> None:
    app = Dash("test", suppress_callback_exceptions=True)
    programs.register(app, store)
    layout = programs.layout(store, parse(programs.PATH, ""))
    layout = str(layout)
    for output in ("programs-tree", "programs-place", "programs-found", "programs-details"):
        assert f"'{output}'" in layout
        assert any(output in key for key in [*app.callback_map, *tables.served(app.server)])
