"""The Memory page: its figures against the frames that went in, its callbacks as functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard import address
from dashboard.address import AddressError
from dashboard.pages.memory import page as memory
from dashboard.pages.memory import tabs as memory_tabs
from dashboard.store import Store
from dashboard.tables import rows_asked
from pva import schema
from pva.analysis.memory.tile_series import address_map, floor_plan
from pva.analysis.memory.totals import memory_by_tile
from pva.analysis.whole_report.tile_contents import compute_sets_on_tiles
from pva.plot import floor
from pva.plot.memory import Limit, Series, add_ipu_borders, over_tiles
from pva.plot.theme import THEMES, Theme
from tests.builders import small_report, write_report
from tests.dashboard.layouts import parts, words

LIMIT = Limit(3000, "A tile")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store([write_report(tmp_path / "small")])


def at(search: str) -> address.Address:
    return address.parse("/memory", search)


def drawn(frame: pd.DataFrame, **options: Any) -> Any:
    series = [Series(name, name, "#111111", "#eeeeee") for name in frame.columns[1:]]
    given = {"axis": "Tile", "limit": LIMIT, "theme": "light"}
    return over_tiles(frame, series, **(given | options))


def plain(values: list[int]) -> pd.DataFrame:
    return pd.DataFrame({"tile": range(len(values)), "total": values})


def test_each_tile_is_a_step_of_its_bytes() -> None:
    trace = drawn(plain([2048, 900, 700])).data[0]
    assert (trace.y * 1024).tolist() == [2048, 2048, 900, 700, 700]
    assert [round(float(x)) for x in trace.x] == [0, 0, 1, 2, 2]
    assert list(trace.customdata) == ["2.0 kB", "2.0 kB", "900 B", "700 B", "700 B"]


def test_limit_in_reach_is_a_line_and_one_far_above_a_note() -> None:
    near, far = drawn(plain([2048])), drawn(plain([2048]), limit=Limit(638976, "A tile"))
    assert [shape.y0 for shape in near.layout.shapes] == [3000 / 1024]
    assert near.layout.yaxis.range[1] > 3000 / 1024
    assert not far.layout.shapes
    assert far.layout.annotations[0].text == "A tile has 624.0 kB, 312 times the fullest"


def test_limit_that_is_asked_for_is_drawn_far_above() -> None:
    figure = drawn(plain([2048]), limit=Limit(638976, "A tile", shown=True))
    assert figure.layout.shapes[0].y0 == 624


def test_columns_are_stacked_in_the_order_given() -> None:
    frame = pd.DataFrame({"tile": [0, 1], "stack": [90, 90], "vertexCode": [300, 100]})
    figure = drawn(frame)
    assert [trace.name for trace in figure.data] == ["stack", "vertexCode"]
    assert {trace.stackgroup for trace in figure.data} == {"memory"}


def test_window_shows_every_tile_in_it() -> None:
    values = np.arange(6000)[::-1].copy()
    whole, part = drawn(plain(values.tolist())), drawn(plain(values.tolist()), window=(100, 400))
    assert len(whole.data[0].x) <= 1502
    assert np.rint(part.data[0].x[1:-1]).tolist() == list(range(100, 400))
    assert part.layout.xaxis.range == (99.5, 399.5)


def test_tiles_out_of_memory_are_marked() -> None:
    figure = drawn(plain([2048, 4000, 1]), lacking=np.array([1]))
    assert figure.data[-1].name == "Out of memory"
    assert figure.data[-1].x.tolist() == [1]


def test_names_that_look_like_markup_stay_names() -> None:
    series = [Series("total", "<b>x</b>", "#111111", "#eeeeee")]
    figure = over_tiles(plain([1]), series, axis="Tile", limit=LIMIT, theme="dark")
    assert figure.data[0].name == "&lt;b&gt;x&lt;/b&gt;"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    "search",
    ["", "breakdown=region", "breakdown=category&gaps=on", "breakdown=liveness&per=ipu",
     "order=physical&limit=on", "graph=variables&variable=1,3", "graph=map",
     "graph=map&category=variable&scale=heat&limit=on", "range=2-5"],
)  # fmt: skip
def test_every_view_is_drawn_in_both_themes(store: Store, search: str, theme: Theme) -> None:
    figure = memory.figure(store, at(search), theme)
    assert json.loads(figure.to_json())["layout"]["font"]["color"].startswith("#")


def test_memory_begins_by_category_and_without_gaps(store: Store) -> None:
    frame = memory.frame_of(store, at(""))
    assert "stack" in frame and "gaps" not in frame
    assert (frame.iloc[:, 1:].sum(axis=1) == memory_by_tile(store.report())["total"]).all()
    assert "gaps" in memory.frame_of(store, at("gaps=on"))
    notes = [memory.figure(store, at(search), "light").layout.annotations[0].text
             for search in ("", "gaps=on")]  # fmt: skip
    # a tile has 2,048 B; the fullest data are 474 B, and the fullest tile needs 1,040 B
    assert notes == ["A tile has 2.0 kB, 4.3 times the fullest without gaps",
                     "A tile has 2.0 kB, 2.0 times the fullest"]  # fmt: skip


def test_axis_of_several_ipus_shows_where_each_begins(store: Store) -> None:
    figure = memory.figure(store, at(""), "light")
    assert [(line.x0, line.x1) for line in figure.layout.shapes if line.x0 == line.x1] == [
        (4.5, 4.5)
    ]
    assert [name.text for name in figure.layout.annotations if "IPU " in name.text] == [
        "IPU 0", "IPU 1",
    ]  # fmt: skip
    for search in ("order=physical", "per=ipu"):
        assert not memory.figure(store, at(search), "light").layout.shapes


def test_names_of_ipus_stand_only_where_they_have_room() -> None:
    for ipus, names in ((16, 16), (17, 0)):
        figure = go.Figure()
        add_ipu_borders(figure, ipus * 3, 3, "light")
        assert (len(figure.layout.shapes), len(figure.layout.annotations)) == (ipus - 1, names)


def test_plot_by_region_holds_the_bytes_of_the_frame(store: Store) -> None:
    figure = memory.figure(store, at("breakdown=region"), "light")
    frame = memory_by_tile(store.report())
    together = sum(np.asarray(trace.y, dtype=float)[1:-1] for trace in figure.data)
    assert (together * _unit(figure)).tolist() == frame["total"].tolist()


def _unit(figure: Any) -> int:
    return {"kB": 1024, "B": 1}[figure.layout.yaxis.ticksuffix.strip()]


def test_click_on_an_ipu_chooses_its_tiles(store: Store) -> None:
    figure = memory.figure(store, at("per=ipu"), "light")
    assert figure.layout.meta["picks"] == ["0-4", "5-9"]


def test_map_has_a_cell_for_each_tile(store: Store) -> None:
    figure = memory.figure(store, at("graph=map"), "light")
    cells, colours = np.array(figure.data[0].customdata), np.array(figure.data[0].z)
    plan = floor_plan(store.report())
    assert sorted(cells[cells >= 0].tolist()) == plan["tile"].tolist()
    assert np.isnan(colours[cells < 0]).all()
    for tile, size in zip(plan["tile"], plan["bytes"], strict=True):
        assert colours[cells == tile] * 1024 == pytest.approx(size)


def test_64_ipus_lie_eight_by_eight_with_room_for_their_names() -> None:
    tile = np.arange(64 * 6)  # each IPU three tiles wide, two high
    plan = pd.DataFrame({"tile": tile, "ipu": tile // 6, "row": tile % 3, "column": tile // 3 % 2,
                         "bytes": tile, "free": tile})  # fmt: skip
    figure = floor.tile_map(plan, words="", scale="blue", top=1024, theme="light")
    names, cells = figure.layout.annotations, np.array(figure.data[0].customdata)
    assert len({name.x for name in names}) == len({name.y for name in names}) == 8
    (row,), (column,) = np.nonzero(cells == 63 * 6)
    assert (names[63].text, names[63].x, names[63].y) == ("IPU 63", column - 0.5, row - 0.5)
    low, high = figure.layout.yaxis.range  # each name has a line of 14 of 350 pixels above it
    assert (names[8].y - names[0].y - 2) / (low - high) > 14 / 350


def test_the_map_frames_the_tiles_of_the_chosen_variable(store: Store) -> None:
    data = store.report().dataset
    pieces = data.column("variable_pieces", "variable")
    for variable in np.unique(pieces).tolist():
        tiles = np.unique(data.column("variable_pieces", "tile")[pieces == variable])
        figure = memory.figure(store, at(f"graph=map&object=variable:{variable}"), "light")
        cells, framed = np.array(figure.data[0].customdata), figure.data[-1]
        x, y = (np.array(values).reshape(-1, 6)[:, :4] for values in (framed.x, framed.y))
        inside = [
            cells[row, column]
            for left, right, low, high in zip(x.min(1), x.max(1), y.min(1), y.max(1), strict=True)
            for row in range(int(low + 0.5), int(high + 0.5))
            for column in range(int(left + 0.5), int(right + 0.5))
        ]
        assert sorted(inside) == tiles.tolist()
        assert framed.name == data.column("variables", "name")[variable]


def test_map_crosses_out_tiles_out_of_memory(store: Store) -> None:
    plan = floor_plan(store.report()).assign(free=lambda frame: frame["free"] - 10**6)
    figure = floor.tile_map(plan, words="", scale="blue", top=1024, theme="light")
    assert len(figure.data[1].x) == 10


def test_address_map_draws_a_box_for_each_piece(store: Store) -> None:
    frame = address_map(store.report(), tile=0)
    figure = floor.address_map(frame, steps=14, theme="light", label=str)
    boxes = [trace for trace in figure.data if trace.fill == "toself"]
    assert sum(len(trace.x) // 6 for trace in boxes) == len(frame)
    hovers = [text for trace in figure.data if trace.text is not None for text in trace.text]
    assert len(hovers) == len(frame)


@pytest.mark.parametrize("tab", [value for value, _ in memory_tabs.TABS])
@pytest.mark.parametrize("tiles", ["", "&tile=3", "&tile=0,3,7"])
def test_every_tab_is_filled(store: Store, tab: str, tiles: str) -> None:
    chosen = at(f"tab={tab}{tiles}")
    shown = words(memory_tabs.details(store, chosen, "light"))
    assert memory_tabs.subject(chosen) in shown
    assert len(memory_tabs.rows(store, chosen)) > 0


def test_details_have_a_column_for_each_chosen_tile(store: Store) -> None:
    shown = words(memory_tabs.details(store, at("tile=3,7"), "light"))
    assert "Tile 3 Tile 7" in shown
    assert "3 of IPU 0 4 of IPU 1" in shown
    folded = words(memory_tabs.details(store, at("tile=3,7&folded=total"), "light"))
    assert "By region" in shown
    assert "By region" not in folded


def test_rows_are_sorted_cut_and_written(store: Store) -> None:
    frame = compute_sets_on_tiles(store.report())
    columns = memory_tabs.COLUMNS["compute-sets"]
    asked = {"startRow": 0, "endRow": 2, "sortModel": [{"colId": "name", "sort": "desc"}]}
    answer = rows_asked(frame, columns, asked)
    assert answer["rowCount"] == len(frame)
    assert [row["name"] for row in answer["rowData"]] == sorted(frame["name"])[::-1][:2]
    assert all(row["state_text"].endswith("B") for row in answer["rowData"])


@pytest.mark.parametrize(
    "asked", [{"startRow": -5, "endRow": 10**9}, {"sortModel": [{"colId": "__class__"}]}, {}]
)
def test_rows_asked_for_in_a_wrong_way_do_no_harm(store: Store, asked: dict[str, Any]) -> None:
    frame = compute_sets_on_tiles(store.report())
    answer = rows_asked(frame, memory_tabs.COLUMNS["compute-sets"], asked)
    assert len(answer["rowData"]) <= 1000


def test_filter_keeps_rows_and_download_alike(store: Store) -> None:
    chosen = at("tab=variables&filter=name~prod")
    names = set(memory_tabs.rows(store, chosen)["name"])
    assert names
    assert all("prod" in name for name in names)


@pytest.mark.parametrize(
    ("search", "words_of_it"),
    [
        ("graph=x", "graph=x: not there; known: total, variables, map"),
        ("tab=x", "tab=x: not there"),
        ("graph=map&category=globalMessage", "globalMessage: not there; known: all, stack, "),
        ("variable=x&graph=variables", "variable=x: no variable"),
    ],
)
def test_wrong_option_is_named(store: Store, search: str, words_of_it: str) -> None:
    with pytest.raises(AddressError, match=words_of_it):
        memory.frame_of(store, at(search)), memory_tabs.rows(store, at(search))


def test_out_of_memory_report_says_by_how_much_and_marks_the_tiles(tmp_path: Path) -> None:
    target = dict(small_report().table("target"))
    assert schema.TABLE["target"].column("bytes_per_tile")
    target["bytes_per_tile"] = [600]
    store = Store([write_report(tmp_path / "full", small_report(target=target))])
    assert "Does not fit" in words(memory.layout(store, at("")))
    figure = memory.figure(store, at(""), "light")
    labels = [getattr(part, "label", "") for part in parts(memory.tools(store, at(""), "light"))]
    assert "Gaps" in labels and "Maximum" not in labels
    assert figure.layout.shapes[0].y0 == 600
    tree = memory_tabs.details_tree(store.report(), address.Address(tiles=(0,)))
    assert "Memory including gaps 1.0 kB Free −440 B" in words(tree)  # 600 - 1,040
    free = memory_by_tile(store.report())["free"]
    assert figure.data[-1].x.tolist() == [tile for tile, left in enumerate(free) if left < 0]


def test_many_tiles_share_cells_of_a_map_which_show_the_fullest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(floor, "MAX_CELLS", 4)
    tiles = pd.DataFrame({"tile": range(16), "ipu": 0, "column": np.arange(16) // 4,
                          "row": np.arange(16) % 4, "bytes": np.arange(16) * 7 % 16,
                          "free": 1})  # fmt: skip
    drawn = floor.tile_map(tiles, words="", scale="blue", top=16, theme="light")
    assert drawn.data[0].z.tolist() == [[12, 14], [15, 13]]
    assert drawn.data[0].customdata.tolist() == [[4, 2], [9, 11]]
    assert drawn.layout.annotations[0].text == "A cell is the fullest of 2 × 2 tiles"
