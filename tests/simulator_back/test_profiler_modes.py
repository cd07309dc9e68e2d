"""Profiler modes: the fields of each, and what the instrumentation behind them costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva import schema
from pva.check import check
from pva.data.dataset import Dataset
from pva.formats import registry
from pva.model.instrumentation import InstrumentationSettings
from pva.report import openReport
from pva.summary import profile_summary
from simulator import poplar
from simulator.device import Device
from simulator.graph.machine.target import make_target
from simulator.poplar import FLOAT, Graph, Input, Output, Vector, Vertex, program
from tests.every_program import engine

COMPUTE = {"debug.instrumentCompute": True}
EXCHANGE = {"debug.instrumentExternalExchange": True}
SETS, ONE_TILE = {"computeSetCyclesByTile"}, {"computeSetCycles"}
VERTICES = {"vertexCycles", "vertexComputeSet", "vertexType"}
EXTERNAL, HOST = {"externalExchangeCycles"}, {"hostExchangeCycles"}
FIELDS = SETS | ONE_TILE | {"computeSetCyclesByIpu"} | VERTICES | EXTERNAL | HOST


def level(name: str) -> dict[str, Any]:
    return COMPUTE | {"debug.computeInstrumentationLevel": name}


# IPUs, options; profiler mode, the fields of modes that must be there: all others must not.
MODES: dict[str, tuple[int, dict[str, Any], str, set[str]]] = {
    "a model without instrumentation": (2, {}, "IPU_MODEL", set()),
    "tile": (2, level("tile"), "COMPUTE_SETS", SETS),
    "vertex": (2, level("vertex"), "VERTICES", VERTICES),
    "device": (2, level("device"), "SINGLE_TILE_COMPUTE_SETS", ONE_TILE),
    "ipu": (2, level("ipu"), "SINGLE_TILE_COMPUTE_SETS", ONE_TILE | {"computeSetCyclesByIpu"}),
    "exchanges of two IPUs": (2, EXCHANGE, "EXTERNAL_EXCHANGES", EXTERNAL | HOST),
    "exchanges of one IPU": (1, EXCHANGE, "HOST_EXCHANGES", HOST),
    "host": (2, {"debug.instrumentHostExchange": True}, "HOST_EXCHANGES", HOST),
    "all": (2, {"debug.instrument": True}, "COMPUTE_SETS", SETS | EXTERNAL | HOST),
    "both": (2, level("vertex") | EXCHANGE, "VERTICES", VERTICES | EXTERNAL | HOST),
}  # fmt: skip
TRACED = {"profilerMode", "programTrace", "simulation", "runs", "otherRuns", "formatVersion"}


def reported(path: Path, ipus: int, options: dict[str, Any], runs: int = 1) -> Dataset:
    report = {"autoReport.all": True, "autoReport.directory": str(path)}
    found = engine(report | options, ipus)
    for _ in range(runs):
        found.run()
    return registry.read(path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return reported(tmp_path_factory.mktemp("plain"), 2, {})


@pytest.mark.parametrize("name", MODES)
def test_a_mode_has_its_fields_and_no_others(tmp_path: Path, name: str) -> None:
    ipus, options, mode, fields = MODES[name]
    data = reported(tmp_path, ipus, options, runs=3)
    document = registry.value_of(data, "execution")
    assert document["profilerMode"] == mode
    assert set(document) == TRACED | fields
    assert set(document) & FIELDS == fields
    assert [str(violation) for violation in check(data)] == []


def test_a_cpu_has_no_trace_and_no_cycles(tmp_path: Path) -> None:
    device = Device.createCPUDevice()
    graph = Graph(device.getTarget())
    values = graph.addVariable(FLOAT, [4], "values")
    graph.setTileMapping(values, 0)
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    found = poplar.Engine(graph, program.WriteUndef(values), options)
    found.load(device)
    found.run()
    data = registry.read(tmp_path)
    execution, compiled = (registry.value_of(data, name) for name in ("execution", "graph"))
    assert (execution["profilerMode"], compiled["target"]["type"]) == ("CPU", "CPU")
    assert set(execution) == {"formatVersion", "profilerMode", "runs", "otherRuns"}
    assert not {"cycles", "cyclesFrom"} & set(execution["runs"][0])
    assert not {"memory", "exchanges", "hostExchanges", "externalExchanges"} & set(compiled)
    assert "cycleEstimates" not in compiled["computeSets"]
    assert check(data) == []
    report = openReport(tmp_path)
    assert report.execution.totalCycles.total == 0
    assert "Memory on all IPUs: not profiled on a CPU" in profile_summary(report)
    assert set(data.column("provenance", "item")) <= {*data.tables, *data.arrays}


def test_when_no_run_is_recorded_the_mode_is_none(tmp_path: Path) -> None:
    options = {"autoReport.executionProfileProgramRunCount": 0, "debug.instrument": True}
    data = reported(tmp_path, 2, options)
    document = registry.value_of(data, "execution")
    assert document["profilerMode"] == "NONE"
    assert set(document) == {"formatVersion", "profilerMode", "runs", "otherRuns"}
    assert document["runs"][0]["cycles"] > 0
    assert check(data) == []
    summary = profile_summary(openReport(tmp_path))
    assert "Execution profiling not enabled" in summary


@pytest.mark.parametrize("name", ["tile", "vertex", "device", "ipu"])
def test_the_settings_tell_the_level(tmp_path: Path, name: str) -> None:
    settings = InstrumentationSettings(reported(tmp_path, 1, level(name)))
    assert settings.compute.name == name.capitalize()
    assert settings.externalExchange is InstrumentationSettings.Off


def test_counters_have_the_index_orders_of_the_chapter(tmp_path: Path) -> None:
    data = reported(tmp_path, 2, level("tile") | EXCHANGE)
    sets, tiles = data.length("compute_sets"), 8
    assert data.array("measured_compute_set_cycles_by_tile").shape == (sets, tiles)
    for kind in ("external", "host"):
        exchanges = len(data.array(f"{kind}_exchange_cycles"))
        assert data.array(f"measured_{kind}_exchange_cycles").shape == (exchanges, tiles)
    row = data.column("compute_sets", "name").tolist().index("count")  # on tile 1 alone
    assert registry.value_of(data, "execution")["computeSetCyclesByTile"][row] == [
        0, 6 * 7 + CYCLES, 0, 0, 0, 0, 0, 0,
    ]  # fmt: skip


def test_counters_of_one_index_have_a_value_for_each_row(tmp_path: Path) -> None:
    single = reported(tmp_path / "ipu", 2, level("ipu"))
    sets = single.length("compute_sets")
    assert single.array("measured_compute_set_cycles").shape == (sets,)
    assert single.array("measured_compute_set_cycles_by_ipu").shape == (sets, 2)
    vertices = reported(tmp_path / "vertex", 2, level("vertex"))
    count = vertices.value("graph", "num_vertices")
    for name in ("measured_vertex_cycles", "vertex_compute_set", "vertex_vertex_type"):
        assert vertices.array(name).shape == (count,)


def test_what_never_ran_was_not_measured(tmp_path: Path) -> None:
    data = reported(tmp_path, 2, {"debug.instrument": True})
    ran = set(data.column("steps", "program").tolist())
    types, rows = data.texts("programs", "type"), data.column("programs", "exchange")
    used = {rows[p] for p in ran if types[p] == "StreamCopy"}
    never = set(range(len(data.array("host_exchange_cycles")))) - used
    assert never  # the ErrorProgram's
    measured = data.array("measured_host_exchange_cycles").any(axis=1)
    assert set(np.flatnonzero(~measured)) == never


# What it costs, worked out by hand for one vertex on tile 0 that reads from tile 1 and takes 20
# cycles of its thread; two copies with the host of 4 and 8 bytes on tile 0 find the program.
class Once(Vertex):
    """Copy a vector."""

    values = Input(Vector(FLOAT))
    out = Output(Vector(FLOAT))

    def compute(self) -> None:
        self.out[...] = self.values


def small(path: Path, options: dict[str, Any], ipus: int = 1) -> Dataset:
    device = Device(make_target("tiny", num_ipus=ipus, compile_ipu_code=True))
    graph = Graph(device.getTarget())
    values, out = (graph.addVariable(FLOAT, [4], name) for name in ("values", "out"))
    graph.setTileMapping(values, 1)
    graph.setTileMapping(out, 0)
    once = graph.addComputeSet("once")
    vertex = graph.addVertex(once, Once, {"values": values, "out": out}, tile=0)
    graph.setPerfEstimate(vertex, 20)
    report = {"autoReport.all": True, "autoReport.directory": str(path)}
    found = poplar.Engine(graph, program.Execute(once), report | options)
    found.load(device)
    found.run()
    return registry.read(path)


def by_category(data: Dataset, name: str) -> list[int]:
    sizes = data.array("memory_by_category")[schema.CATEGORIES.index(name)]
    return [int(size) for size in sizes.sum(axis=(0, 1))]


WORD, CODE, CYCLES = 4, 20, 5  # of a counter
# options: words of results and counters in code by tile, and cycles that the step takes longer
COSTS: dict[str, tuple[dict[str, Any], list[int], list[int], int]] = {
    "tile": (level("tile"), [1, 0, 0, 0], [1, 0, 0, 0], CYCLES),
    # a cycle of a thread is six of the tile
    "vertex": (level("vertex"), [1, 0, 0, 0], [1, 0, 0, 0], 6 * CYCLES),
    # a result on the one tile, and on each the time at which it was ready
    "device": (level("device"), [2, 1, 1, 1], [1, 0, 0, 0], CYCLES),
    "ipu": (level("ipu"), [1, 0, 0, 0], [1, 0, 0, 0], CYCLES),
    # the two copies of the number of the program
    "host": (EXCHANGE, [2, 0, 0, 0], [2, 0, 0, 0], 0),
}


@pytest.mark.parametrize("name", COSTS)
def test_what_a_counter_costs(tmp_path: Path, name: str) -> None:
    options, words, counters, longer = COSTS[name]
    before, after = small(tmp_path / "off", {}), small(tmp_path / "on", options)
    assert by_category(before, "instrumentationResults") == [0, 0, 0, 0]
    assert by_category(after, "instrumentationResults") == [WORD * count for count in words]
    syncs = 2 * 8 if name in ("device", "ipu") else 0  # control code of a sync: 8 bytes a tile
    more = np.array(by_category(after, "controlCode")) - by_category(before, "controlCode")
    assert more.tolist() == [CODE * count + syncs for count in counters]
    computing = [data.texts("steps", "type") == "OnTileExecute" for data in (before, after)]
    took = [
        int(data.column("steps", "cycles")[step].sum())
        for data, step in zip((before, after), computing, strict=True)
    ]
    assert took == [120, 120 + longer]
    assert sum(by_category(after, "instrumentationResults")) == WORD * sum(words)


def test_counting_an_exchange_with_the_host_takes_five_cycles_of_its_tile(tmp_path: Path) -> None:
    before, after = small(tmp_path / "off", {}), small(tmp_path / "on", EXCHANGE)
    more = after.array("host_exchange_cycles") - before.array("host_exchange_cycles")
    assert more.tolist() == [[CYCLES, 0, 0, 0], [CYCLES, 0, 0, 0]]
    measured = after.array("measured_host_exchange_cycles")
    np.testing.assert_array_equal(measured, after.array("host_exchange_cycles"))


@pytest.mark.parametrize(
    ("name", "ipus", "kind"),
    [("device", 1, "Internal"), ("ipu", 2, "Internal"), ("device", 2, "External")],
)
def test_one_tile_that_measures_stands_between_two_syncs(
    tmp_path: Path, name: str, ipus: int, kind: str
) -> None:
    data = small(tmp_path, level(name), ipus)
    types, syncs = data.texts("steps", "type").tolist(), data.texts("steps", "sync_type")
    step = types.index("OnTileExecute")
    assert [types[step - 1], types[step + 1]] == ["Sync", "Sync"]
    assert [syncs[step - 1], syncs[step + 1]] == [kind, kind]


def test_syncs_around_a_compute_set_take_their_time(tmp_path: Path) -> None:
    data = small(tmp_path, level("device"))
    ends = data.column("steps", "cycles_to")[-5:]  # sync, exchange, sync, compute, sync
    away = np.array([30, 41, 52, 63])  # half the round trips of tiny: 60, 82, 104, 126
    sent = ends[0] - 63  # when the last request for the first of the syncs arrived
    free = sent + away + data.array("exchange_cycles")[-1]
    second = int((free + away).max())
    # Tile 0 begins 30 cycles after the second, computes 125, and is 30 from the third's request.
    third = second + max(30 + 125 + 30, 2 * 63)
    assert ends[2:].tolist() == [second + 63, second + 30 + 125, third + 63]
    assert data.value("execution", "cycles") == third + 63


def test_a_vertex_that_counts_itself_shows_the_cycles_of_its_tile(tmp_path: Path) -> None:
    data = small(tmp_path, level("vertex"))
    assert data.array("measured_vertex_cycles").tolist() == [6 * (20 + CYCLES)]
    assert data.array("vertex_compute_set").tolist() == [0]
    assert data.array("vertex_vertex_type").tolist() == [0]


def test_a_supervisor_vertex_counts_cycles_of_its_tile(tmp_path: Path) -> None:
    class Whole(poplar.SupervisorVertex):
        out = Output(Vector(FLOAT))

        def compute(self) -> None:
            self.out[...] = 1

    device = Device(make_target("tiny"))
    graph = Graph(device.getTarget())
    out = graph.addVariable(FLOAT, [2], "out")
    graph.setTileMapping(out, 3)
    whole = graph.addComputeSet("whole")
    for index in range(2):
        fields = {"out": out[index : index + 1]}
        graph.setPerfEstimate(graph.addVertex(whole, Whole, fields, tile=3), 30 + index)
    report = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    found = poplar.Engine(graph, program.Execute(whole), report | level("vertex"))
    found.load(device)
    found.run()
    data = registry.read(tmp_path)
    assert data.array("measured_vertex_cycles").tolist() == [30 + CYCLES, 31 + CYCLES]
    assert data.column("steps", "cycles")[-1] == 30 + 31 + 2 * CYCLES  # one after the other


def test_without_code_for_the_ipu_counters_have_results_and_no_code(tmp_path: Path) -> None:
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path), **level("tile")}
    engine(options, 1, code=False)
    data = registry.read(tmp_path)
    assert sum(by_category(data, "instrumentationResults")) > 0
    assert sum(by_category(data, "controlCode")) == 0


def test_instrumentation_changes_no_value_and_no_byte_that_is_exchanged(
    tmp_path: Path, plain: Dataset
) -> None:
    data = reported(tmp_path, 2, {"debug.instrument": True})
    for name in ("exchange_bytes_sent", "external_exchange_bytes_sent", "host_exchange_bytes_sent"):
        np.testing.assert_array_equal(data.array(name), plain.array(name))
    assert data.length("steps") == plain.length("steps")
