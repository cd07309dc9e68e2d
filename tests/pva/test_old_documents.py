"""Documents with the keys of the chapter "Profiling" alone open, and the rest is worked out."""

import json
from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import pytest

import pva
from pva import schema
from pva.check import check
from pva.data.dataset import Dataset
from pva.formats import registry
from pva.summary.profile_summary import profile_summary
from tests.analysis.samples import SAMPLES
from tests.builders import small_report
from tests.pva import chapter

# Steps before the first internal sync, which the builder lets join both IPUs.
FIRST = 8
TOLD = ("vertex_types", "compute_sets", "program_children", "memory_by_tile", "control_programs")
BY_HAND = {"steps": FIRST, "steps_by_ipu": 2 * FIRST}


def opened(directory: Path, graph: Any, execution: Any) -> Dataset:
    for name, document in (("graph", graph), ("execution", execution)):
        (directory / f"{name}.json").write_text(json.dumps(document))
    return registry.read(directory)


@pytest.fixture
def old(tmp_path: Path) -> Dataset:
    data = small_report()
    return opened(tmp_path, chapter.graph_profile(data), chapter.execution_profile(data))


@pytest.mark.parametrize("table", TOLD)
def test_what_the_chapter_tells_is_read(old: Dataset, table: str) -> None:
    for column in schema.TABLE[table].columns:
        if column.name != "flops":
            found, wanted = (
                old.column(table, column.name),
                small_report().column(table, column.name),
            )
            assert found.tolist() == wanted.tolist()


def test_every_array_of_the_chapter_is_read(old: Dataset) -> None:
    assert {name for name in old.arrays if schema.ARRAY[name].document == "graph"} == {
        "relative_sync_delay", "compute_set_active_cycles_by_tile",
        "compute_set_active_cycles_by_vertex_type", "compute_set_cycles_by_tile",
        "memory_by_category",
        *(f"{way}exchange_{what}" for way in ("", "external_", "host_")
          for what in ("bytes_received", "bytes_sent", "cycles")),
        *(f"memory_by_{owner}_{part}" for owner in ("compute_set", "vertex_type")
          for part, _, _ in schema.VERTEX_MEMORY_PARTS),
    }  # fmt: skip


@pytest.mark.parametrize("table", BY_HAND)
def test_syncs_and_ipus_are_worked_out(old: Dataset, table: str) -> None:
    rows = BY_HAND[table]
    for column in schema.TABLE[table].columns:
        found, wanted = (data.column(table, column.name)[:rows] for data in (old, small_report()))
        np.testing.assert_allclose(found, wanted, equal_nan=True, err_msg=column.name)


def test_totals_are_worked_out(old: Dataset) -> None:
    assert old.value("target", "num_replicas") == 1
    assert old.column("runs", "end_step").tolist() == [24]
    assert old.column("runs", "cycles").tolist() == [1024]
    wanted = small_report().value("tile_cycles", "idle_at_end")
    assert old.value("tile_cycles", "idle_at_end") == wanted
    assert old.array("tile_clock").tolist() == [10 * [0]]


def test_it_keeps_every_law_and_can_be_summarised(old: Dataset) -> None:
    assert check(old) == []
    report = pva.Report.of(old)
    assert report.execution.totalCycles.total == 1024
    assert report.execution.steps[1].ipus[1].cycles == 7
    assert "Execution" in profile_summary(report)
    assert len(report.frames.steps_by_ipu()) > 0


def test_a_trace_without_simulation_is_simulated(tmp_path: Path) -> None:
    data = small_report()
    execution = chapter.execution_profile(data)
    del execution["simulation"]
    old = opened(tmp_path, chapter.graph_profile(data), execution)
    for name in ("type", "cycles", "cycles_from", "cycles_to", "tile_balance", "total_data"):
        found, wanted = (each.column("steps", name)[:FIRST] for each in (old, data))
        np.testing.assert_allclose(found, wanted, err_msg=name)
    assert old.value("execution", "cycles") == old.column("steps", "cycles_to")[-1]
    assert old.has("steps_by_ipu")


def test_steps_on_hardware_take_what_was_measured(tmp_path: Path) -> None:
    graph = chapter.graph_profile(small_report())
    measured = [[100 + tile for tile in range(10)], 10 * [5], 10 * [6]]
    execution = {
        "profilerMode": "COMPUTE_SETS",
        "computeSetCyclesByTile": measured,
        "programTrace": [6, 6],
    }
    old = opened(tmp_path, graph, execution)
    assert old.column("steps", "cycles").tolist() == [109, 109]
    assert old.column("steps_by_ipu", "cycles").tolist() == [104, 109, 104, 109]
    assert old.column("steps_by_ipu", "from_min").tolist() == [0, 0, 100, 105]


def test_a_mere_trace_has_the_kinds_of_its_syncs_from_the_programs() -> None:
    graph = registry.value_of(small_report(), "graph")
    del graph["formatVersion"]
    old = registry.of_values(
        graph=graph, execution={"profilerMode": "IPU_MODEL", "programTrace": [6, 13]}
    )
    assert old.texts("steps", "sync_type").tolist() == ["None", "Internal"]
    # The compute set ends on tile 4 at 84 and on tile 9 at 114; both are 18 from the syncs.
    assert old.column("steps_by_ipu", "to_max")[2:].tolist() == [84 + 36, 114 + 36]


@pytest.mark.parametrize("sample", ["matmul_chain_tiny", "newton_pipeline_replicas"])
def test_a_mere_trace_takes_as_long_as_the_simulator_said(sample: str) -> None:
    data = registry.read(SAMPLES / sample)
    graph = registry.value_of(data, "graph")
    del graph["formatVersion"]
    trace = data.column("steps", "program")[: data.column("runs", "end_step")[0]]
    old = registry.of_values(
        graph=graph, execution={"profilerMode": "IPU_MODEL", "programTrace": trace.tolist()}
    )
    assert old.value("execution", "cycles") == data.column("runs", "cycles")[0]


def test_redundant_figures_of_the_target_may_be_left_out() -> None:
    target = {"type": "IPU", "numIPUs": 2, "tilesPerIPU": 3, "bytesPerTile": 100}
    old = registry.of_values(graph={"target": target})
    names = ("num_tiles", "bytes_per_ipu", "total_memory")
    assert [old.value("target", name) for name in names] == [6, 300, 600]


def test_the_peak_of_liveness_is_that_of_its_steps() -> None:
    steps = [{"program": 0, "parent": -1, "variables": live} for live in ([0], [0, 1], [1])]
    graph = {
        "target": {"type": "IPU", "numIPUs": 1, "numTiles": 4, "bytesPerTile": 100},
        "programs": [{"type": "Sequence"}],
        "variables": {"name": ["a", "b"], "bytes": [8, 4]},
        "memory": {"liveness": {"notAlwaysLive": {"steps": steps}}},
    }
    old = registry.of_values(graph=graph)
    assert old.column("liveness_steps", "bytes").tolist() == [8, 12, 4]
    assert old.value("liveness", "max_bytes") == 12
    assert old.column("variable_intervals", "end").tolist() == [2, 3]


def test_one_file_may_hold_both_profiles_in_any_encoding(tmp_path: Path) -> None:
    data = small_report()
    both = {
        "graphProfile": chapter.graph_profile(data),
        "executionProfile": chapter.execution_profile(data),
    }
    (tmp_path / "profile.cbor").write_bytes(cbor2.dumps(both))
    assert registry.read(tmp_path / "profile.cbor").has("steps_by_ipu")


def test_nothing_is_added_to_documents_of_our_own(tmp_path: Path) -> None:
    data = small_report(steps_by_ipu=None, tile_clock=None, runs=None)
    registry.write(data, tmp_path / "profile.json")
    assert registry.read(tmp_path / "profile.json") == data


def test_documents_without_exchanges_of_some_kind_tell_the_bytes_of_each_ipu(
    tmp_path: Path,
) -> None:
    data = registry.read(SAMPLES / "matmul_chain_tiny")
    old = opened(tmp_path, chapter.graph_profile(data), chapter.execution_profile(data))
    for column in ("bytes_in", "bytes_out"):
        found = old.column("steps_by_ipu", column)
        assert found.tolist() == data.column("steps_by_ipu", column).tolist()


@pytest.mark.parametrize(
    "target",
    [
        {"numIPUs": 3, "tilesPerIPU": 5, "numTiles": 10},
        {"numIPUs": 2, "tilesPerIPU": 5, "numTiles": 10**12},
        {"numIPUs": 0, "tilesPerIPU": 0, "numTiles": 0},
        {},
    ],
)
def test_a_machine_that_cannot_be_is_no_reason_to_fail_otherwise(
    tmp_path: Path, target: dict[str, int]
) -> None:
    data = small_report()
    graph = chapter.graph_profile(data) | {"target": {"type": "IPU"} | target}
    execution = chapter.execution_profile(data)
    try:
        old = opened(tmp_path, graph, execution)
        for table in old.tables:
            old.table(table)
    except pva.PvaError as error:
        assert "\n" not in str(error)


def test_a_trace_without_programs_is_nothing() -> None:
    old = registry.of_values(execution={"profilerMode": "IPU_MODEL", "programTrace": [0, 1]})
    assert old.tables == ("execution",)


def test_steps_of_no_program_took_no_time_that_is_known(tmp_path: Path) -> None:
    data = small_report()
    execution = {"profilerMode": "IPU_MODEL", "programTrace": [6, -1, 6]}
    old = opened(tmp_path, chapter.graph_profile(data), execution)
    assert old.column("steps", "cycles").tolist() == [114, 0, 114]
    old.table("tile_cycles"), old.table("steps_by_ipu"), old.table("steps")
