"""The page Compare: one sentence, signed changes, rows that add up, both curves in a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dashboard import downloads, view
from dashboard.address import Address, parse
from dashboard.app import create_app
from dashboard.elements import components
from dashboard.pages.compare import page as compare
from dashboard.pages.compare import plots as compare_plots
from dashboard.pages.compare import tables as compare_tables
from dashboard.store import Store
from pva.analysis import COMPARISONS
from pva.plot import compare as figures
from pva.plot.compare import Curve
from pva.units import Writing, write_as
from tests.analysis.samples import never_run
from tests.builders import report_without_code, small_report, write_report
from tests.dashboard.layouts import grid, parts, words

DATA = small_report()
DATA_NEEDED = DATA.column("memory_by_tile", "total_including_gaps")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store of the small report, one in which w is smaller, and one that was not run."""
    folder = tmp_path_factory.mktemp("reports")
    variables = dict(DATA.table("variables"))
    names, sizes = variables["name"].copy(), variables["bytes"].copy()
    sizes[names == "w"] -= 30
    names[names == "message"] = "<letter>"
    tiles = dict(DATA.table("memory_by_tile"))
    needed = tiles["total_including_gaps"].copy()
    needed[0], needed[3] = 990, 640
    fast = dict(DATA.table("target")) | {"clock_frequency": [2e9]}
    gone: dict[str, Any] = dict.fromkeys(("steps", "steps_by_ipu", "runs", "tile_cycles"))
    changed = small_report(
        variables=variables | {"name": names, "bytes": sizes},
        memory_by_tile=tiles | {"total_including_gaps": needed},
    )
    return Store(
        [
            write_report(folder / "first"),
            write_report(folder / "second", changed),
            write_report(folder / "compiled", small_report(**gone)),
            write_report(folder / "never", never_run().dataset),
            write_report(folder / "fast", small_report(target=fast)),
        ]
    )


def chosen(search: str = "", against: str = "second") -> Address:
    return parse("/compare", f"?report=first&against={against}{search}")


def text(element: Any) -> str:
    return words(element).replace("\u00a0", " ")


def test_answer_says_what_changed_most(store: Store) -> None:
    # the second needs 1,040 bytes on tile 5, as the first on tiles 0 and 5
    assert text(compare.answer(store, chosen(), "light")).strip() == (
        "second has the same cycles, memory on its fullest tile and peak of liveness."
    )
    frame = pd.DataFrame(
        {
            "figure": ["largest_tile", "total_cycles", "max_live"],
            "unit": ["bytes", "cycles", "bytes"],
            "before": [4096.0, 1000.0, 10.0],
            "after": [3072.0, 1500.0, 10.0],
            "change": [-1024.0, 500.0, 0.0],
        }
    )
    assert compare.sentence(frame, "b") == (
        "b takes 500 cycles more (+50.0 %) and needs 1.0 kB less on its fullest tile (−25.0 %)."
    )


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(100, 150, "+50.0 %"), (100, 75, "−25.0 %"), (0, 5, "new"), (5, 0, "gone"), (7, 7, ""),
     (10, 4000, "400×")],
)  # fmt: skip
def test_part_of_a_change_is_told_in_words(before: int, after: int, told: str) -> None:
    assert compare_tables.percent(before, after) == told


def test_growth_and_shrinkage_have_signs_and_arrows(store: Store) -> None:
    table = chosen("&by=variables")
    frame = compare_tables.frame_of(store, table)
    rows = frame.set_index("name")[["before", "after", "change", "percent", "where"]]
    assert rows.loc["w"].tolist() == [80, 50, -30, "−37.5 %", "both"]
    assert rows.loc["message"].tolist() == [40, 0, -40, "gone", "only before"]
    assert rows.loc["<letter>"].tolist() == [0, 40, 40, "new", "only after"]
    assert len(rows) == 3
    panel = compare.rows_of_tab(store, table, "light")
    total = grid(panel, "compare-bytes").dashGridOptions["pinnedTopRowData"][0]
    assert (total["before"], total["after"], total["change_text"]) == (320, 290, "▼ −30 B")
    assert "320 B before, 290 B after, ▼ −30 B" in text(panel)
    assert "1 grew ▲, 2 shrank ▼, 5 are the same" in text(panel)


@pytest.mark.parametrize(("search", "column"),
                         [("", "total"), ("&gaps=on", "total_including_gaps")])  # fmt: skip
def test_curves_of_memory_count_gaps_when_asked(store: Store, search: str, column: str) -> None:
    figure = compare_plots.memory_figure(store, chosen(search), "light")
    for line, name in zip(figure.data, ("first", "second"), strict=True):
        expected = store.report(name).dataset.column("memory_by_tile", column)
        assert np.asarray(line.y)[1:-1].tolist() == expected.tolist()
    change = compare_plots.memory_figure(store, chosen(f"{search}&show=change"), "light")
    assert [shape.x0 for shape in change.layout.shapes] == [4.5]  # two IPUs of five tiles
    grown = np.asarray(change.data[0].y).max()
    assert grown == {"total": 0, "total_including_gaps": 640 - DATA_NEEDED[3]}[column]


def test_rows_that_are_the_same_are_shown_when_asked(store: Store) -> None:
    assert len(compare_tables.frame_of(store, chosen("&by=variables&same=on"))) == 8
    found = compare_tables.frame_of(store, chosen("&by=variables&filter=name~letter"))
    assert found["name"].tolist() == ["<letter>"]


@pytest.mark.parametrize(
    ("tab", "by"), [(tab, by) for tab, tables in compare_tables.TABLES.items() for by in tables]
)
def test_rows_of_every_table_add_up_to_its_total(store: Store, tab: str, by: str) -> None:
    asked = chosen(f"&tab={tab}&by={by}&same=on")
    frame = compare_tables.frame_of(store, asked)
    panel = compare.rows_of_tab(store, asked, "light")
    unit = compare_tables.table_of(asked).unit
    total = grid(panel, f"compare-{unit}").dashGridOptions["pinnedTopRowData"][0]
    for column in ("before", "after", "change"):
        assert frame[column].sum() == total[column]
    assert total["change"] == total["after"] - total["before"]
    assert frame["name"].map(bool).all()


# The cards above the tables, the tab of settings, and the page of two traces.
OTHERS = {"compare_figures", "compare_settings", "compare_labels"}


def test_every_comparison_of_the_tables_is_known() -> None:
    tables = [table for tables in compare_tables.TABLES.values() for table in tables.values()]
    assert {table.name for table in tables} == {*COMPARISONS} - OTHERS


def test_what_one_report_lacks_is_greyed_with_the_reason(store: Store) -> None:
    assert "autoReport.outputExecutionProfile" in compare_tables.why_not(
        store, chosen(against="compiled"), "execution"
    )
    assert compare_tables.why_not(store, chosen(against="compiled"), "memory") == ""
    shown = text(compare.rows_of_tab(store, chosen("&tab=execution", "compiled"), "light"))
    assert "compiled: steps not recorded" in shown


def test_cycles_of_a_program_that_never_ran_are_not_compared(store: Store) -> None:
    asked = chosen("&tab=execution", "never")
    assert text(compare.answer(store, asked, "light")).strip() == (
        "never has the same memory on its fullest tile and peak of liveness."
    )
    assert "never: no run was recorded" in text(compare.rows_of_tab(store, asked, "light"))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(0, 1, "has 1 tile more out of memory"), (3, 1, "has 2 tiles fewer out of memory (−66.7 %)")],
)
def test_tiles_out_of_memory_are_told_in_number(before: int, after: int, told: str) -> None:
    row = {"figure": "tiles_out_of_memory", "unit": "", "before": before, "after": after}
    frame = pd.DataFrame([row | {"change": after - before}])
    assert compare.sentence(frame, "b") == f"b {told}."


@pytest.mark.parametrize(
    ("rate", "more"), [(50.0, ""), (75.0, " and passes 25 fewer items a second (−25.0 %)")]
)
def test_items_a_second_are_told_where_runs_take_other_items(rate: float, more: str) -> None:
    frame = pd.DataFrame(
        {
            "figure": ["total_cycles", "run_cycles", "items_per_second"],
            "unit": ["cycles", "cycles", "items/s"],
            "before": [1000.0, 1000.0, 100.0],
            "after": [2000.0, 2000.0, rate],
            "change": [1000.0, 1000.0, rate - 100.0],
        }
    )
    assert compare.sentence(frame, "b") == f"b takes 1,000 cycles more (+100.0 %){more}."


def test_runs_that_differ_in_number_are_told_with_the_cycles() -> None:
    frame = pd.DataFrame(
        {
            "figure": ["recorded_runs", "total_cycles"],
            "unit": ["", "cycles"],
            "before": [1.0, 1000.0],
            "after": [2.0, 2000.0],
            "change": [1.0, 1000.0],
        }
    )
    told = "b takes 1,000 cycles more (+100.0 %) in 2 recorded runs instead of 1."
    assert compare.sentence(frame, "b") == told


def test_cycles_of_two_clocks_are_not_told_as_times_of_one(store: Store) -> None:
    shown = {}
    for against in ("second", "fast"):
        write_as(Writing(clock=1e9))
        shown[against] = text(compare.figures_of_both(store, chosen(against=against), "light"))
        write_as(Writing())
    assert "Cycles of the recorded runs 1.0 µs 1.0 µs" in shown["second"]
    assert "Cycles of the recorded runs 1,024 1,024" in shown["fast"]
    assert "Their clocks differ, 1,000.0 MHz before and 2,000.0 MHz after" in shown["fast"]


def test_settings_that_differ_are_listed(store: Store) -> None:
    same = text(compare.rows_of_tab(store, chosen("&tab=settings"), "light"))
    assert "Target, graph and options are the same." in same
    shown = text(compare.rows_of_tab(store, chosen("&tab=settings&same=on"), "light"))
    assert "bytes per tile 2,048 2,048" in shown


def test_both_curves_are_in_one_figure(store: Store) -> None:
    figure = compare_plots.memory_figure(store, chosen("&gaps=on"), "light")
    first, second = figure.data
    assert first.y.tolist() == [1040, 1040, *[540] * 4, 1040, *[540] * 4, 540]
    assert second.y.tolist() == [990, 990, 540, 540, 640, 540, 1040, *[540] * 4, 540]
    assert (first.line.dash, second.line.dash) == ("dash", "solid")
    assert [trace.name for trace in figure.data] == ["before: first", "after: second"]
    apart = compare_plots.memory_figure(store, chosen("&show=separate"), "light")
    assert [trace.yaxis for trace in apart.data] == ["y", "y2"]


def test_change_of_each_tile_is_drawn_above_and_below_the_line(store: Store) -> None:
    grew, shrank = compare_plots.memory_figure(store, chosen("&show=change&gaps=on"), "dark").data
    assert grew.y.tolist() == [0, 0, 0, 0, 100, *[0] * 7]
    assert shrank.y.tolist() == [-50, -50, *[0] * 10]


def test_numbers_stand_at_the_right_of_their_columns() -> None:
    defined = map(components.column_definition, compare_tables.columns("bytes"))
    right = [each["headerName"] for each in defined if each.get("type") == "rightAligned"]
    assert right == ["Before", "After", "Change", "Relative"]


def test_names_of_reports_and_steps_are_no_markup() -> None:
    curves = (Curve("<b>", np.array([1, 2]), ["<i>", "a&b"]), Curve("b", np.array([3])))
    figure = figures.two_curves(curves, axis="Program step", theme="light")
    assert figure.data[0].name == "&lt;b&gt;"
    assert list(figure.data[0].customdata[1:3]) == ["1 B<br>&lt;i&gt;", "2 B<br>a&amp;b"]


def test_ticks_of_a_change_have_signs() -> None:
    axis = figures.signed_axis(-2048, 1024)
    assert axis["ticktext"][0].startswith("−") and axis["ticktext"][-1].startswith("+")
    assert 0 in axis["tickvals"] and axis["tickvals"] == sorted(axis["tickvals"])


def test_page_says_what_to_do_without_a_second_report(store: Store) -> None:
    assert "Choose the report to compare with." in text(compare.layout(store, Address()))
    swap = compare.layout(store, chosen("&tab=liveness"))
    links = [part.href for part in parts(swap) if hasattr(part, "href")]
    assert "/compare?report=second&against=first&tab=liveness" in links


def test_data_of_every_view_can_be_downloaded(store: Store) -> None:
    made = downloads.offered(create_app([store.path("first"), store.path("second")]).server)
    for name in ("compare-bytes", "compare-figures", "compare-settings", "compare-memory-curves",
                 "compare-liveness-curves"):  # fmt: skip
        assert len(made[name](store, chosen("&same=on")))
    assert len(made["compare-cycles"](store, chosen("&tab=execution&same=on"))) == 7


def test_panel_is_never_filled_with_nothing(store: Store) -> None:
    assert compare_plots.plot_of_tab(store, chosen("&tab=operations"), "light") is None
    assert view.or_empty(None).nodes == [["div", {}]] and view.or_empty("x") == "x"


def test_the_report_without_code_is_named(tmp_path: Path) -> None:
    paths = write_report(tmp_path / "a", report_without_code()), write_report(tmp_path / "b")
    answer = compare.answer(Store([*paths]), parse("/compare", "?report=a&against=b"), "light")
    assert "a is without code, b has it: memory differs by it, too." in text(answer)


def test_the_waterfall_is_drawn_from_total_to_total(store: Store) -> None:
    frame = compare_plots.way_of(store, chosen("&tab=memory&by=variables"))
    assert sorted(frame["change"]) == [-40, -30, 40]  # message became <letter>, w is smaller
    figure = figures.waterfall(
        frame, total=(1000, 970), unit="bytes", names=("a", "b"), theme="light"
    )
    (bars,) = figure.data
    assert (bars.y[0], bars.y[-1]) == (1000, 970)
    assert list(bars.y[1:-1]) == [abs(change) for change in frame["change"]]
    assert [text[0] for text in bars.text[1:-1]] == [
        "+" if change > 0 else "−" for change in frame["change"]
    ]


def test_bars_and_curves_open_the_drawer(store: Store) -> None:
    state = chosen("&tab=memory&by=variables")
    frame = compare_plots.way_of(store, state)
    made = compare_plots.way(store, state, "light")
    figure = grid(made, "compare-way-plot").figure
    names = store.report("first").dataset.column("variables", "name").tolist()
    expected = [f"variable:{names.index(n)}" if n in names else "" for n in frame["name"]]
    ids = list(figure.data[0].ids)
    assert [one.partition(" ")[2] for one in ids] == ["", *expected, ""]
    assert len(set(ids)) == len(ids)  # Plotly draws points of one id as one
    for tab, kind in (("memory", "tile:"), ("liveness", "program-step:")):
        plot = compare_plots.plot_of_tab(store, chosen(f"&tab={tab}"), "light")
        kinds = [getattr(part, "data-picks", None) for part in parts(plot)]
        assert [one for one in kinds if one] == [kind]


def test_the_waterfall_names_what_changed(store: Store) -> None:
    shown = compare_plots.way(store, chosen("&tab=memory&by=variables"), "light")
    assert "From before to after, by variable" in words(shown)
    assert compare_plots.way(store, chosen("&tab=settings"), "light") is None
