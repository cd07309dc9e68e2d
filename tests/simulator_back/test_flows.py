"""Who sends how much to whom, against each element of a copy by itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pva
from pva.analysis import exchange_flows, exchange_matrix
from pva.check import check
from pva.report import Report
from simulator import poplar
from simulator.compiler.flows import MAX_GROUPS, group_borders
from simulator.poplar import FLOAT, program

ELEMENTS = 300


def copied(folder: Path, machine: str, ipus: int) -> tuple[Report, np.ndarray]:
    """Run a copy between two variables that lie anywhere; give its report, and both tiles."""
    device = poplar.IPUModel(machine, numIPUs=ipus).createDevice()
    graph, rng = poplar.Graph(device.getTarget()), np.random.default_rng(7)
    tiles = rng.integers(0, device.getTarget().num_tiles, (2, ELEMENTS))
    sides = [graph.addVariable(FLOAT, [ELEMENTS], name) for name in ("source", "end")]
    for side, on in zip(sides, tiles, strict=True):
        graph.map_ranges(side, np.arange(ELEMENTS), np.arange(1, ELEMENTS + 1), on)
    options = {"autoReport.directory": str(folder), "autoReport.all": "true"}
    engine = poplar.Engine(graph, program.Copy(*sides), options)
    engine.load(device)
    engine.run(0)
    return pva.openReport(str(folder)), tiles


def report_borders(report: Report) -> list[int]:
    """Return where the groups of a report begin: at most 16 on each of two IPUs."""
    each = int(report.dataset.value("target", "tiles_per_ipu"))
    groups = min(16, each)
    return [ipu * each + group * each // groups for ipu in range(2) for group in range(groups)]


@pytest.fixture(scope="module", params=[("tiny", 2), ("mk1", 2)])
def one(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    return copied(tmp_path_factory.mktemp("copy"), *request.param)


def test_the_flows_are_those_of_each_element(one: tuple[Report, np.ndarray]) -> None:
    report, tiles = one
    # Of each kind the first exchange tells all tiles which program runs, the second is the copy.
    frame = pd.concat(
        exchange_flows(report, groups=MAX_GROUPS, kind=kind, exchange=1)
        for kind in ("internal", "between IPUs")
    )
    borders = report_borders(report)
    wanted: Counter[tuple[int, int]] = Counter()
    for source, end in tiles.T.tolist():
        if source != end:
            wanted[tuple(max(first for first in borders if first <= t) for t in (source, end))] += 4
    ends = zip(frame["from_tile"], frame["to_tile"], strict=True)
    assert dict(zip(ends, frame["bytes"], strict=True)) == wanted
    assert frame["exact"].all()
    assert not check(report.dataset)


def test_ipu_by_ipu_is_exact_as_well(one: tuple[Report, np.ndarray]) -> None:
    report, tiles = one
    each = int(report.dataset.value("target", "tiles_per_ipu"))
    wanted = {
        (0, 0): 4 * (each - 1),
        (0, 1): 4 * each,
        (1, 0): 0,
        (1, 1): 0,
    }  # the program's number
    for source, end in (tiles[:, tiles[0] != tiles[1]] // each).T.tolist():
        wanted[source, end] += 4
    matrix = exchange_matrix(report).set_index(["from_ipu", "to_ipu"])
    assert matrix["exact"].all()
    assert matrix["bytes_at_most"].to_dict() == wanted


@pytest.mark.parametrize(
    ("machine", "ipus", "groups"),
    [("tiny", 1, 4), ("mk2", 1, 32), ("mk2", 4, 32), ("mk2", 64, 64)],
)
def test_groups_are_whole_tiles_of_one_ipu(machine: str, ipus: int, groups: int) -> None:
    target = poplar.IPUModel(machine, numIPUs=ipus).createDevice().getTarget()
    borders = group_borders(target)
    assert len(borders) == groups + 1 and borders[-1] == target.num_tiles
    assert set(range(0, target.num_tiles + 1, target.tiles_per_ipu)) <= set(borders.tolist())
    assert np.ptp(np.diff(borders)) <= 1
