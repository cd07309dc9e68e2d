"""A report of a replicated graph: the target counts all replicas, all else is of one of them.

Two replicas of the hand-made report: 2 IPUs of 5 tiles each, 4 IPUs and 20 tiles in all.
"""

from pathlib import Path

import numpy as np
import pytest

from pva.check import check
from pva.data.dataset import Dataset
from pva.errors import InconsistentDataError
from pva.formats import registry
from pva.report import Report, openReport
from tests.builders import replicated_report, small_report, write_report


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return openReport(str(write_report(tmp_path_factory.mktemp("two"), replicated_report(2))))


def test_a_report_of_two_replicas_breaks_no_law(report: Report) -> None:
    assert check(report.dataset) == []


def test_target_counts_all_replicas_and_one(report: Report) -> None:
    target = report.compilation.target
    assert (target.numReplicas, target.numIPUs, target.numTiles) == (2, 4, 20)
    assert (target.ipusPerReplica, target.tilesPerReplica) == (2, 10)
    assert target.totalMemory == 2 * target.memoryPerReplica == 20 * 2048


def test_a_tile_of_the_second_replica_has_the_memory_of_that_of_the_first(report: Report) -> None:
    tiles = report.compilation.tiles
    assert [tile.id for tile in report.compilation.ipus[3].tiles] == [15, 16, 17, 18, 19]
    assert len(tiles) == 20
    for tile in (0, 3, 9):
        first, second = tiles[tile].memory, tiles[tile + 10].memory
        assert first.total == second.total
        assert first.category.variable == second.category.variable


def test_liveness_of_a_tile_or_ipu_is_that_of_its_place_in_the_replica(report: Report) -> None:
    compilation = report.compilation
    step = compilation.livenessProgramSteps[6]
    assert step.notAlwaysLiveMemoryForTile(15) == step.notAlwaysLiveMemoryForTile(5)
    assert step.notAlwaysLiveMemoryForIpu(3) == step.notAlwaysLiveMemoryForIpu(1)
    on_all = sum(step.notAlwaysLiveMemoryForIpu(ipu).bytes for ipu in range(4))
    assert on_all == 2 * step.notAlwaysLiveMemory.bytes
    assert compilation.alwaysLiveVariablesForTile(19) == compilation.alwaysLiveVariablesForTile(9)
    names = [[v.name for v in compilation.loweredVariables.forTile(t)] for t in (5, 15)]
    assert names[0] == names[1] != []


def test_steps_are_of_the_profiled_replica(report: Report) -> None:
    step = report.execution.steps[2]
    assert (len(step.ipus), len(step.cyclesByTile)) == (2, 10)
    assert report.execution.totalCycles.total == small_report().value("execution", "cycles")


@pytest.mark.parametrize("suffix", [".json", ".cbor"])
def test_documents_keep_the_arrays_of_one_replica(tmp_path: Path, suffix: str) -> None:
    whole = replicated_report(2)
    file = tmp_path / f"graph{suffix}"
    registry.write(whole.select("graph"), file)
    read = registry.read(file)
    assert read.value("target", "num_tiles") == 20
    np.testing.assert_array_equal(read.array("always_live_bytes"), whole.array("always_live_bytes"))


def test_arrays_of_all_replicas_are_refused() -> None:
    twice = np.tile(small_report().array("always_live_bytes"), 2)
    tables = {"target": replicated_report(2).table("target")}
    with pytest.raises(InconsistentDataError, match="always_live_bytes is of shape"):
        Dataset.of(tables, {"always_live_bytes": twice})


def test_replicas_that_do_not_share_out_the_ipus_break_a_law() -> None:
    target = dict(small_report().table("target")) | {"num_replicas": [3]}
    broken = [str(v) for v in check(Dataset.of({"target": target}))]
    assert broken == [
        "machine_is_its_tiles: num_ipus left over by num_replicas: found 2; 0",
    ]
