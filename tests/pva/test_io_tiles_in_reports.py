"""Reports of programs with I/O tiles: what readers make of clocks that go apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pva
from pva.analysis.execution import tile_activity
from pva.check import check
from pva.data.dataset import Dataset
from pva.formats import registry
from pva.formats.documents.replay import replay
from pva.model.sync_cycles import sync_cycles
from tests.io_tiles import clocks, report_of


@pytest.fixture(scope="module", params=[1, 2])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a program with I/O tiles on one IPU and on two."""
    path = tmp_path_factory.mktemp("io")
    report_of(path, work=3, ipus=request.param)
    return path


def test_steps_are_from_the_clocks_of_the_tiles_that_they_join(folder: Path) -> None:
    data = registry.read(folder)
    begin, end = clocks(data)
    assert np.array_equal(data.column("steps", "cycles_from"), begin.max(axis=1))
    assert np.array_equal(data.column("steps", "cycles_to"), end.max(axis=1))


def test_a_document_without_the_clocks_is_replayed_to_the_same(folder: Path) -> None:
    data = registry.read(folder)
    found = replay(data)
    assert np.array_equal(found.begin, data.column("steps", "cycles_from"))
    assert np.array_equal(found.end, data.column("steps", "cycles_to"))


def test_a_sync_takes_the_tiles_that_it_joins_until_it_lets_them_go(folder: Path) -> None:
    data = registry.read(folder)
    begin, end = clocks(data)
    for step in np.flatnonzero(data.texts("steps", "type") == "Sync").tolist():
        assert np.array_equal(sync_cycles(data, step), (end - begin)[step])


def test_each_step_is_placed_on_each_tile_where_it_ran(folder: Path) -> None:
    report = pva.openReport(str(folder))
    begin, _ = clocks(report.dataset)
    steps, tiles = slice(0, len(begin)), slice(0, begin.shape[1])
    cost, _ = tile_activity._costs(report, steps, tiles)
    nothing = np.zeros(begin.shape[1], dtype=np.int64)
    found = tile_activity._begins(report, steps, tiles, nothing, cost)
    assert np.array_equal(np.where(cost > 0, found, 0), np.where(cost > 0, begin, 0))


@pytest.mark.parametrize("name", ["graph.json", "graph.cbor"])
def test_documents_keep_the_sets_of_tiles(folder: Path, tmp_path: Path, name: str) -> None:
    data = registry.read(folder)
    registry.write(data, tmp_path / name)
    kept = registry.read(tmp_path / name)
    for table, column in (("io_tiles", "tile"), ("programs", "tile_set")):
        assert np.array_equal(kept.column(table, column), data.column(table, column))


def test_work_of_the_others_on_an_io_tile_breaks_a_law(folder: Path) -> None:
    data = registry.read(folder)
    cycles = data.array("compute_set_cycles_by_tile").copy()
    cycles[0, data.column("io_tiles", "tile")[0]] = 7
    changed = Dataset.of({}, {"compute_set_cycles_by_tile": cycles})
    broken = {found.law for found in check(Dataset.joined((changed, data)))}
    assert "tile_sets_do_what_is_theirs" in broken
