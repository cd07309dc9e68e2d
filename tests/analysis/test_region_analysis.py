"""Regions, IPUs and gaps in memory, by hand on the small report and by loops on all."""

from __future__ import annotations

import pytest

from pva.analysis.memory import regions
from tests.analysis.samples import every_report, opened, rows, small


@every_report
def test_regions_are_those_of_a_loop_over_tiles(name: str) -> None:
    table = rows(opened(name), "memory_by_tile")
    for region in regions.memory_by_region(opened(name)).to_dict("records"):
        column = region["region"].replace("-", "_")
        assert region["bytes"] == sum(row[column] for row in table)
        gross = [row[f"{column}_including_gaps"] for row in table]
        assert region["gaps"] == sum(gross) - region["bytes"]
        assert region["fullest_bytes"] == max(gross)
        assert region["fullest_tile"] == (gross.index(max(gross)) if max(gross) else -1)


def test_regions_of_one_ipu_are_of_its_tiles_alone() -> None:
    frame = regions.memory_by_region(small(), ipu=1).set_index("region")
    # Tile 5 alone has partials on IPU 1.
    assert frame.loc["interleaved", ["bytes", "tiles", "fullest_tile"]].tolist() == [16, 1, 5]
    assert frame.loc["overflowed", ["bytes", "fullest_tile"]].tolist() == [0, -1]


@every_report
def test_ipus_are_those_of_a_loop_over_tiles(name: str) -> None:
    data = opened(name).dataset
    each, capacity = (data.value("target", c) for c in ("tiles_per_ipu", "bytes_per_tile"))
    table = rows(opened(name), "memory_by_tile")
    frame = regions.memory_by_ipu(opened(name)).set_index("ipu")
    assert len(frame) == len(table) // each
    for ipu, row in frame.iterrows():
        gross = [tile["total_including_gaps"] for tile in table[ipu * each : (ipu + 1) * each]]
        assert row["bytes_including_gaps"] == sum(gross)
        assert row["share"] == pytest.approx(sum(gross) / (each * capacity))
        assert row["fullest_tile"] == ipu * each + gross.index(max(gross))
        assert row["free"] == capacity - max(gross)
    assert frame["bytes"].sum() == sum(tile["total"] for tile in table)


def test_gaps_are_told_by_where_they_are() -> None:
    row = regions.fragmentation(small()).set_index("tile").loc[0]
    # Tile 0 holds 474 bytes: 458 below address 548, then 16 from 1024 on.
    assert row[["bytes", "gaps", "non_interleaved_gaps"]].tolist() == [474, 1040 - 474, 548 - 458]
    assert (row["between_regions"], row["free"]) == (1024 - 548, 2048 - 1040)


@every_report
def test_gaps_are_those_of_a_loop_over_tiles(name: str) -> None:
    frame = regions.fragmentation(opened(name)).sort_values("tile")
    table = rows(opened(name), "memory_by_tile")
    assert frame["gaps"].tolist() == [row["total_including_gaps"] - row["total"] for row in table]
    parts = [column for column in frame if column.endswith("_gaps")]
    assert (frame[[*parts, "between_regions"]].sum(axis=1) == frame["gaps"]).all()
    assert (frame[[*parts, "between_regions"]] >= 0).all(axis=None)
