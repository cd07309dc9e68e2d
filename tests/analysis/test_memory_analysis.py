"""Analyses of memory, on the ten tiles of the hand-made report."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva import schema
from pva.analysis.execution.exchanges import largest_exchanges
from pva.analysis.memory import totals as memory
from pva.analysis.operations.costs import operation_costs
from pva.analysis.programs.details import program_figures
from pva.analysis.selection import SelectionError
from pva.analysis.whole_report.overview import recorded_parts
from pva.errors import PvaError
from tests.analysis.samples import WITHOUT_CODE, every_report, opened, small
from tests.builders import TILES, replicated_report, small_report


def report(**changes: Any) -> Any:
    return SimpleNamespace(dataset=small_report(**changes))


def test_labels_stand_in_the_order_of_the_schema() -> None:
    assert tuple(memory.CATEGORY_LABELS) == schema.CATEGORIES


def test_a_tile_has_free_what_its_data_and_gaps_leave() -> None:
    frame = memory.memory_by_tile(report())
    assert frame["ipu"].tolist() == [0] * 5 + [1] * 5
    # Tiles 0 and 5 hold partials in the interleaved region, which begins at 1,024.
    assert frame["free"].tolist()[:2] == [2048 - 1040, 2048 - 540]


def test_a_tile_that_needs_too_much_is_out_of_memory() -> None:
    small = report().dataset
    columns = {name: values.copy() for name, values in small.table("memory_by_tile").items()}
    columns["total_including_gaps"][7] = 3000
    full = report(memory_by_tile=columns)
    overview = memory.memory_overview(full)
    assert (overview.fullest_tile, overview.tiles_out_of_memory) == (7, 1)
    assert memory.fullest_tiles(full)["free"].iloc[0] == 2048 - 3000


def test_categories_are_given_largest_first_and_without_empty_ones() -> None:
    frame = memory.memory_by_category(report())
    assert frame["label"].tolist()[:3] == ["Stack", "Vertex Code", "Control Code"]
    assert frame["total"].tolist()[:3] == [960, 850, 648]
    assert (frame["total"] > 0).all()


def test_categories_of_a_tile_are_those_of_that_tile() -> None:
    frame = memory.memory_by_category(report(), tile=0).set_index("category")
    # x, w and product have 8 bytes each on tile 0; y shares its 4 bytes with the message.
    assert frame.loc["variable"].tolist() == ["Variables", 24, 4, 28]
    assert frame.loc["stack", "total"] == 96


@pytest.mark.parametrize("tile", [-1, 10])
def test_a_tile_that_is_not_there_is_refused(tile: int) -> None:
    with pytest.raises(SelectionError, match="tiles 0 to 9") as caught:
        memory.memory_by_category(report(), tile=tile)
    assert isinstance(caught.value, PvaError)


def test_categories_of_a_tile_add_up_to_its_total() -> None:
    frame = memory.category_by_tile(report())
    by_tile = memory.memory_by_tile(report())
    assert frame.sum(axis=1).tolist() == by_tile["total"].tolist()
    assert frame["overlapped"].tolist() == [4] + [0] * 9


def test_usage_of_the_ipus_adds_up_to_that_of_all() -> None:
    whole = memory.memory_usage(report())
    parts = [memory.memory_usage(report(), ipu=ipu) for ipu in (0, 1)]
    assert whole.total == sum(part.total for part in parts) == 3614
    assert whole.not_overlapped + whole.after_overlapping == whole.total
    assert whole.non_interleaved + whole.interleaved + whole.overflowed == whole.total


@pytest.mark.parametrize("replica", [None, 0, 1])
def test_usage_of_any_replica_is_that_of_the_one_that_is_held(replica: int | None) -> None:
    replicated: Any = SimpleNamespace(dataset=replicated_report(2))
    assert memory.memory_usage(replicated, replica=replica) == memory.memory_usage(report())


def test_a_replica_that_is_not_there_is_refused() -> None:
    replicated: Any = SimpleNamespace(dataset=replicated_report(2))
    with pytest.raises(SelectionError, match="replicas 0 to 1"):
        memory.memory_usage(replicated, replica=2)


def test_vertex_types_are_given_with_the_parts_of_their_memory() -> None:
    frame = memory.memory_by_vertex_type(report()).set_index("vertex_type")
    row = frame.loc["popops::Multiply<float>"]
    # Ten tiles, one vertex each: 50 bytes of code, 12 of state of which 4 are an edge pointer.
    assert row[["code", "vertex_data", "edge_pointers", "total"]].tolist() == [500, 80, 40, 620]


def test_overview_tells_the_fullest_tile_with_and_without_gaps() -> None:
    overview = memory.memory_overview(report())
    assert (overview.fullest_tile, overview.fullest_bytes) == (0, 1040)
    assert (overview.fullest_tile_excluding_gaps, overview.fullest_bytes_excluding_gaps) == (0, 474)
    assert overview.fullest_share == 1040 / 2048
    assert (overview.largest_category, overview.largest_category_bytes) == ("stack", 960)


def totals(values: list[int]) -> Any:
    """Make a report whose tiles hold `values` bytes."""
    columns = {
        name: np.zeros(TILES, dtype=np.int64) for name in report().dataset.table("memory_by_tile")
    }
    return report(memory_by_tile=columns | {"total": values})


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 10**9), min_size=TILES, max_size=TILES))
def test_histogram_counts_each_tile_once(values: list[int]) -> None:
    frame = memory.memory_histogram(totals(values))
    assert frame["tiles"].sum() == TILES
    assert len(frame) <= 4097
    assert (frame["low_kb"].to_numpy()[1:] == frame["high_kb"].to_numpy()[:-1]).all()
    first, last = frame["low_kb"].iloc[0] * 1024, frame["high_kb"].iloc[-1] * 1024
    assert first <= min(values) and max(values) < last


def test_histogram_has_a_row_a_kilobyte_from_the_least_to_the_most() -> None:
    frame = memory.memory_histogram(totals([3000] * 8 + [5119, 5120]))
    assert frame.to_numpy().tolist() == [[2, 3, 8], [3, 4, 0], [4, 5, 1], [5, 6, 1]]


def test_largest_category_never_counts_a_byte_twice() -> None:
    data = small_report()
    by_category = data.array("memory_by_category").copy()
    # 4 kB a tile of messages, all of them in the place of one another: no more memory for it.
    by_category[schema.CATEGORIES.index("message"), 0, 1] += 4096
    overview = memory.memory_overview(report(memory_by_category=by_category))
    assert overview.largest_category_bytes <= overview.total


def test_vertices_of_a_compute_set_take_their_state_and_shared_code() -> None:
    frame = memory.memory_by_compute_set(report())
    # multiply: 10 vertices of 12 bytes; reduce, on 2 tiles: 16; add, on 5: 8. Code 50 a tile.
    columns = ["name", "vertices", "state", "edge_pointers", "code"]
    assert frame[columns].to_numpy().tolist() == [
        ["multiply", 10, 120, 40, 500], ["add", 5, 40, 20, 250], ["reduce", 3, 32, 8, 100],
    ]  # fmt: skip


@every_report
def test_state_and_code_of_a_compute_set_are_its_total(name: str) -> None:
    total = opened(name).dataset.array("memory_by_compute_set_total").sum(axis=1).tolist()
    frame = memory.memory_by_compute_set(opened(name)).sort_values("compute_set")
    if name in WITHOUT_CODE:
        assert set(frame["code"]) == {-1}
        frame["code"] = 0
    assert (frame["state"] + frame["code"]).tolist() == total


def test_a_report_without_any_code_says_that_it_was_not_counted() -> None:
    codes = [schema.CATEGORIES.index(name) for name in schema.CATEGORIES if name.endswith("Code")]
    categories = small_report().array("memory_by_category").copy()
    assert len(codes) == 5 and categories[codes].any()
    assert memory.memory_overview(small()).code_counted and memory.counts_code(small())
    categories[codes] = 0
    without = small(memory_by_category=categories)
    assert not memory.memory_overview(without).code_counted
    assert set(memory.memory_by_vertex_type(without)["code"]) == {-1}
    found = largest_exchanges(without)["code_bytes"], operation_costs(without)["code"]
    assert [set(column) for column in found] == [{-1}, {-1}]
    assert (program_figures(without, program=6).control_code, recorded(without)) == (-1, False)
    categories[codes[0], 0, 0, 3] = 4  # a byte on a tile is enough
    assert memory.counts_code(small(memory_by_category=categories))


def recorded(report: Any) -> bool:
    """Return whether the table of what was recorded has code."""
    return bool(recorded_parts(report).set_index("part")["recorded"]["code"])
