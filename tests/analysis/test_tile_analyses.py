"""Memory on chosen tiles, over the tiles, and on the floor plan, against the arrays themselves."""

from __future__ import annotations

import numpy as np
import pytest

from pva.analysis.memory.tile_series import (
    BREAKDOWNS,
    address_map,
    floor_plan,
    hardware_order,
    memory_series,
    variables_by_tile,
)
from pva.analysis.memory.totals import memory_by_tile
from pva.analysis.selection import SelectionError
from pva.analysis.whole_report.tile_contents import (
    compute_sets_on_tiles,
    exchanges_on_tiles,
    own_columns,
    tile_details,
    variables_on_tiles,
    vertices_on_tiles,
)
from pva.report import Report
from tests.builders import small_report

REPORT = Report.of(small_report())
DATA = REPORT.dataset


def test_details_of_tiles_add_up_to_those_of_all() -> None:
    tiles = tile_details(REPORT, tiles=tuple(range(10))).set_index("path")
    whole = tile_details(REPORT).set_index("path")
    for path in ("including_gaps", "free", "total", "total/by_region/interleaved"):
        assert tiles.loc[path].iloc[1:].sum() == whole.loc[path, "all_tiles"]


def test_parts_of_the_details_add_up() -> None:
    frame = tile_details(REPORT, tiles=(3,)).set_index("path")["tile_3"]
    used = DATA.column("memory_by_tile", "total")[3]
    by_use = "total/by_use"
    categories = [p for p in frame.index if p.startswith(f"{by_use}/alone/")]
    assert frame[categories].sum() == frame[f"{by_use}/alone"]
    assert frame[f"{by_use}/alone"] + frame[f"{by_use}/shared/after_overlapping"] == used
    assert frame["live/always"] + frame["live/moving"] == frame["live"]


def test_parents_of_the_details_stand_before_what_is_in_them() -> None:
    seen: set[str] = {""}
    for path in tile_details(REPORT)["path"]:
        assert path.rpartition("/")[0] in seen
        seen.add(path)


@pytest.mark.parametrize("breakdown", BREAKDOWNS)
@pytest.mark.parametrize("gaps", ["included", "excluded"])
def test_breakdown_adds_up_to_what_the_tile_needs(breakdown: str, gaps: str) -> None:
    series = memory_series(REPORT, breakdown=breakdown, gaps=gaps).set_index("tile")
    name = "total_including_gaps" if gaps == "included" else "total"
    expected = DATA.column("memory_by_tile", name)
    if breakdown == "liveness":
        expected = DATA.array("always_live_bytes") + DATA.array("not_always_live_max_bytes")
    assert series.sum(axis=1).tolist() == expected.tolist()


def test_ipus_are_the_sums_of_their_tiles() -> None:
    series = memory_series(REPORT, per="ipu")
    needed = memory_by_tile(REPORT)["total_including_gaps"].to_numpy()
    assert series["total"].tolist() == [needed[:5].sum(), needed[5:].sum()]


def test_physical_order_follows_the_hardware_within_each_ipu() -> None:
    swapped = Report.of(small_report(physical_tile=np.array([4, 3, 2, 1, 0])))
    assert hardware_order(swapped).tolist() == [4, 3, 2, 1, 0, 9, 8, 7, 6, 5]
    series = memory_series(swapped, order="physical")
    needed = swapped.dataset.column("memory_by_tile", "total_including_gaps")
    assert series["total"].tolist() == needed[series["tile"]].tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"breakdown": "x"}, "breakdown x: not there; known: none, region"), ({"per": "y"}, "per y")],
)
def test_option_that_is_not_known_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(SelectionError, match=words):
        memory_series(REPORT, **options)


def test_every_tile_has_a_place_of_its_own_on_the_floor_plan() -> None:
    plan = floor_plan(REPORT)
    assert not plan.duplicated(["ipu", "column", "row"]).any()
    assert plan["bytes"].sum() == DATA.column("memory_by_tile", "total_including_gaps").sum()
    assert ((plan["free"] + plan["bytes"]) == DATA.value("target", "bytes_per_tile")).all()


def test_categories_of_the_floor_plan_are_those_of_the_array() -> None:
    array = DATA.array("memory_by_category").sum(axis=(1, 2))
    plan = floor_plan(REPORT, category="variable")
    assert plan["bytes"].tolist() == array[20].tolist()
    with pytest.raises(SelectionError, match="category x: not there; known: constant"):
        floor_plan(REPORT, category="x")


@pytest.mark.parametrize("tiles", [(), (3,), (0, 3, 7)])
def test_vertex_types_add_up_on_chosen_tiles(tiles: tuple[int, ...]) -> None:
    frame = vertices_on_tiles(REPORT, tiles=tiles)
    rows = list(tiles) or slice(None)
    assert frame["total"].sum() == DATA.array("memory_by_vertex_type_total")[:, rows].sum()
    assert (frame["code"] + frame["state"] == frame["total"]).all()
    assert frame["vertices"].sum() == DATA.array("vertex_count_by_tile")[:, rows].sum()
    for name in own_columns(tiles):
        tile = int(name.removeprefix("tile_"))
        assert frame[name].sum() == DATA.array("memory_by_vertex_type_total")[:, tile].sum()


def test_compute_sets_add_up_on_chosen_tiles() -> None:
    one, two = (compute_sets_on_tiles(REPORT, tiles=(tile,)) for tile in (0, 5))
    both = compute_sets_on_tiles(REPORT, tiles=(0, 5))
    assert both["state"].sum() == one["state"].sum() + two["state"].sum()
    assert (both["tile_0"] + both["tile_5"] == both["state"]).all()
    assert compute_sets_on_tiles(REPORT)["instances"].sum() > 0


def test_exchanges_on_tiles_are_those_of_the_arrays() -> None:
    frame = exchanges_on_tiles(REPORT, tiles=(2,))
    internal = frame[frame["kind"] == "internal"].set_index("exchange")
    for row, values in enumerate(DATA.array("exchange_code_bytes")[:, 2].tolist()):
        if values > 0:
            assert internal.loc[row, "code_bytes"] == values


def test_variables_on_a_tile_are_the_pieces_that_lie_there() -> None:
    owners, tiles, sizes = (
        DATA.column("variable_pieces", name) for name in ("variable", "tile", "bytes")
    )
    frame = variables_on_tiles(REPORT, tiles=(1, 4)).set_index("variable")
    assert frame["tile_4"].sum() == sizes[tiles == 4].sum()
    for variable, row in frame.iterrows():
        here = (owners == variable) & np.isin(tiles, (1, 4))
        assert row["bytes"] == sizes[here].sum()


def test_more_tiles_than_columns_still_add_up() -> None:
    frame = variables_on_tiles(REPORT, tiles=tuple(range(10)))
    assert frame["bytes"].sum() == DATA.column("variable_pieces", "bytes").sum()


def test_chosen_variables_are_given_by_tile() -> None:
    owners, sizes = (DATA.column("variable_pieces", name) for name in ("variable", "bytes"))
    frame = variables_by_tile(REPORT, variables=(1, 0))
    assert list(frame.columns) == ["tile", "variable_1", "variable_0"]
    assert frame["variable_1"].sum() == sizes[owners == 1].sum()
    assert len(variables_by_tile(REPORT).columns) == 5
    with pytest.raises(SelectionError, match="variable 999"):
        variables_by_tile(REPORT, variables=(999,))


def test_address_map_holds_pieces_gaps_and_what_shares_its_place() -> None:
    for tile in range(10):
        frame = address_map(REPORT, tile=tile)
        pieces, gaps = (frame[frame["kind"] == kind] for kind in ("piece", "gap"))
        taken = np.zeros(4096, dtype=int)
        for begin, end in zip(pieces["address"], pieces["end"], strict=True):
            taken[begin:end] += 1
        for begin, end in zip(gaps["address"], gaps["end"], strict=True):
            assert not taken[begin:end].any()
        assert (taken[: frame["end"].max()] == 0).sum() == gaps["bytes"].sum()
        for row in pieces.itertuples():
            others = (pieces["address"] < row.end) & (pieces["end"] > row.address)
            assert row.shares == others.sum() - 1


@pytest.mark.parametrize(
    "ask", [tile_details, vertices_on_tiles, compute_sets_on_tiles, exchanges_on_tiles,
            variables_on_tiles],
)  # fmt: skip
def test_tile_that_is_not_there_is_named(ask: object) -> None:
    with pytest.raises(SelectionError, match="tile 10: not there; the report has tiles 0 to 9"):
        ask(REPORT, tiles=(3, 10))  # type: ignore[operator]
