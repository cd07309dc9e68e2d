"""The page Liveness: its figures against the frames, its callbacks as functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard import address
from dashboard.address import Address
from dashboard.pages.liveness import page as liveness
from dashboard.pages.liveness import tabs as liveness_tabs
from dashboard.store import Store
from pva.analysis.selection import SelectionError
from pva.plot import liveness as figures
from tests.builders import small_report, write_report
from tests.dashboard.layouts import grid, words


def curve(names: list[str], moving: list[int], always: int = 100) -> pd.DataFrame:
    """Make a liveness curve."""
    steps = len(moving)
    return pd.DataFrame(
        {
            "step": range(steps),
            "type": ["OnTileExecute"] * steps,
            "name": names,
            "always_live": [always] * steps,
            "not_always_live": moving,
            "total": [always + each for each in moving],
        }
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store of the small report."""
    return Store([write_report(tmp_path_factory.mktemp("reports") / "small")])


def shown(store: Store, search: str) -> Any:
    """Return the panel below the curve."""
    return liveness.details(store, address.parse("/liveness", search), "light")


def test_peak_of_liveness_is_marked_at_its_step() -> None:
    figure = figures.liveness_curve(curve(["a", "b", "c"], [0, 924, 5]), theme="light")
    note = figure.layout.annotations[0]
    assert (note.x, note.y, note.text) == (1, 1024, "Peak 1.0 kB at step 1")


def test_steps_are_stacked_as_in_the_frame() -> None:
    figure = figures.liveness_curve(curve(["a", "b", "c"], [0, 924, 5]), theme="light")
    always, moving = figure.data
    assert always.y.tolist() == [100] * 5 and moving.y.tolist() == [0, 0, 924, 5, 5]
    assert [round(float(x)) for x in moving.x] == [0, 0, 1, 2, 2]
    assert {always.stackgroup, moving.stackgroup} == {"live"}


def test_names_cannot_be_read_as_markup_by_plotly() -> None:
    names = ["<b>x</b>", "poplin::Reduce<float,float>"]
    figure = figures.liveness_curve(curve(names, [1, 2]), theme="light")
    assert list(figure.data[1].customdata[1:3]) == [
        "1 B<br>&lt;b&gt;x&lt;/b&gt;", "2 B<br>poplin::Reduce&lt;float,float&gt;",
    ]  # fmt: skip


def test_empty_program_has_an_empty_curve() -> None:
    assert not figures.liveness_curve(curve([], []), theme="light").layout.annotations


def test_always_live_is_left_out_when_asked() -> None:
    frame = curve(["a", "b", "c"], [0, 512, 5])
    figure = figures.liveness_curve(frame, theme="light", always=False)
    assert [trace.name for trace in figure.data] == ["Not always live"]
    assert figure.layout.annotations[0].text == "Peak 512 B at step 1"


def test_found_steps_are_filled_up_to_the_curve() -> None:
    found = np.array([False, True, False])
    figure = figures.liveness_curve(curve(["a", "b", "c"], [0, 5, 9]), theme="light", matches=found)
    assert figure.data[2].y.tolist() == [0, 0, 105, 0, 0]


def test_found_step_of_a_long_curve_is_drawn_though_it_is_low() -> None:
    found = np.zeros(20_000, dtype=bool)
    found[7_777] = True
    moving = [1000 - number % 1000 for number in range(20_000)]
    figure = figures.liveness_curve(curve(["a"] * 20_000, moving), theme="light", matches=found)
    assert len(figure.data[2].x) < 3000 and 7_777 in figure.data[2].x
    assert (figure.data[2].y > 0).sum() == 1


def test_window_of_a_long_curve_is_drawn_in_full() -> None:
    moving = [number % 7 for number in range(20_000)]
    figure = figures.liveness_curve(curve(["a"] * 20_000, moving), theme="light", window=(700, 710))
    assert {*range(700, 710)} <= {round(float(x)) for x in figure.data[1].x}
    assert tuple(figure.layout.xaxis.range) == (699.5, 709.5)
    assert figure.layout.dragmode == "select"


def test_lifetimes_are_bars_from_the_first_to_the_last_step() -> None:
    intervals = pd.DataFrame(
        {"variable": [7, 7, 3], "name": ["<a>", "<a>", "b"], "bytes": [2048, 2048, 4],
         "begin": [0, 5, 2], "end": [2, 6, 9]}
    )  # fmt: skip
    figure = figures.lifetimes(intervals, steps=10, peak=5, theme="dark")
    bars = figure.data[0]
    assert list(bars.x) == [-0.5, 0.5, 1.5, None, 4.5, 5.0, 5.5, None, 1.5, 5.0, 8.5, None]
    assert list(bars.y) == [0, 0, 0, None, 0, 0, 0, None, 1, 1, 1, None]
    assert bars.customdata[0] == "&lt;a&gt;<br>2.0 kB, steps 0 to 1"
    assert list(figure.layout.yaxis.ticktext) == ["&lt;a&gt; ", "b "]
    assert figure.layout.shapes[0].x0 == 5


def test_curve_of_a_tile_is_drawn_when_a_tile_is_chosen(store: Store) -> None:
    figure = liveness.liveness_figure(store, address.parse("/liveness", "?tile=5"), "light")
    # Tile 5 has most at step 11: the product (8 bytes) and its part of the partials (16).
    assert figure.data[1].y.max() == 24 and figure.data[1].y[12] == 24


def test_answer_names_the_place_that_was_chosen(store: Store) -> None:
    whole = words(liveness.answer(store, Address(), "light"))
    assert "3.5 kB are live at once, at step 6 (multiply)" in whole.replace("\u00a0", " ")
    of_tile = words(liveness.answer(store, Address(tiles=(5,)), "light")).replace("\u00a0", " ")
    assert of_tile.startswith("Tile 5: at most 384 B are live at once, at step 11 (reduce/")
    assert "In the whole program 3.5 kB" in of_tile


def test_peak_is_shown_until_a_step_is_chosen(store: Store) -> None:
    assert "All tiles at step 6 (the peak)" in words(shown(store, ""))
    assert "Nothing but the always-live" in words(shown(store, "?step=0"))
    assert "No variable fits the filter." in words(shown(store, "?step=6&filter=name~zzz"))


def test_steps_stand_side_by_side_with_their_change(store: Store) -> None:
    panel = shown(store, "?step=5,12")
    table = grid(panel, "liveness-variables")
    assert [c["headerName"] for c in table.columnDefs] == [
        "Variable", "Category", "Step 5", "Step 12", "Change",
    ]  # fmt: skip
    row = next(row for row in table.rowData if row["name"] == "x")
    assert (row["step_5_text"], row["step_12_text"], row["change_text"]) == (
        "80 B",
        "0 B",
        "▼ −80 B",
    )
    total = table.dashGridOptions["pinnedTopRowData"][0]
    assert total["change_text"] == "▼ −84 B"  # 120 bytes, then 36


def test_of_many_steps_the_first_the_fullest_and_the_last_are_shown(store: Store) -> None:
    chosen = address.parse("/liveness", "?step=2-13")
    assert liveness_tabs.compared_steps(store, chosen) == [2, 6, 13]
    assert "12 steps chosen" in words(shown(store, "?step=2-13"))


@pytest.mark.parametrize(
    ("tab", "text"),
    [
        ("always", "Always live"),
        ("vertices", "All tiles at step 6"),
        ("cycles", "Estimated, once each; the longest takes 114 cycles."),
        ("steps", "14 steps; click one"),
    ],
)
def test_every_tab_says_what_it_shows(store: Store, tab: str, text: str) -> None:
    assert text in words(shown(store, f"?tab={tab}"))


@pytest.mark.parametrize(
    ("search", "text"), [("", "5 of 5 variables"), ("?variable=1,3", "2 chosen; click a row")]
)
def test_bars_say_which_variables_they_are_of(store: Store, search: str, text: str) -> None:
    assert text in words(liveness_tabs.bars(store, address.parse("/liveness", search), "light"))


def test_filter_of_steps_is_counted_and_lists_them(store: Store) -> None:
    assert "2 of 14 steps named like “MULT”" in words(shown(store, "?tab=steps&find=MULT"))
    chosen = address.parse("/liveness", "?find=MULT")
    frame = liveness_tabs.listed_steps(store, chosen)
    assert frame["name"].tolist() == ["multiply/ExchangePre", "multiply"]


def test_always_live_of_a_tile_is_listed_with_its_words(store: Store) -> None:
    frame = liveness_tabs.always_frame(store, Address(tiles=(5,)))
    assert frame.set_index("name")["bytes"]["Stack"] == 96
    assert frame["share"].sum() == pytest.approx(1)


def test_what_is_not_there_is_refused(store: Store) -> None:
    for search in ("?step=99", "?tile=10", "?ipu=2"):
        with pytest.raises(SelectionError):
            shown(store, search)


def test_tab_whose_data_is_missing_says_why(tmp_path: Path) -> None:
    data = small_report(variable_intervals=None, compute_set_vertices=None)
    report = Store([write_report(tmp_path / "bare", data)]).report()
    why = {choice[0]: choice[2] for choice in liveness_tabs.choices(report) if len(choice) == 3}
    assert set(why) == {"moving", "vertices", "lifetimes"}
    assert "autoReport.outputGraphProfile" in why["moving"]
