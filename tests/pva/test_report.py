"""libpva's objects show what the small report has."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pva
from pva.errors import NotRecordedError, PvaError
from pva.formats.database import pop
from pva.report import Report, openReport
from tests import builders
from tests.builders import small_report, write_report


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def report(directory: Path) -> Report:
    return openReport(str(directory))


def test_graph_and_target(report: Report) -> None:
    graph, target = report.compilation.graph, report.compilation.target
    assert (graph.numComputeSets, graph.numVertices, graph.numEdges, graph.numVars) == (
        3,
        18,
        34,
        44,
    )
    assert target.type is pva.Target.Type.IpuModel
    assert (target.numIPUs, target.tilesPerIpu, target.numTiles) == (2, 5, 10)
    assert (target.bytesPerTile, target.bytesPerIPU, target.totalMemory) == (2048, 10240, 20480)
    assert target.clockFrequency == 1e9
    assert (target.numReplicas, target.ipusPerReplica, target.tilesPerReplica) == (1, 2, 10)


def test_memory_of_a_tile(report: Report) -> None:
    memory = report.compilation.tiles[0].memory
    assert (memory.total.includingGaps, memory.total.excludingGaps) == (1040, 474)
    assert memory.interleaved.excludingGaps == 16
    assert memory.overflowed.includingGaps == 0
    assert memory.category.message.total == 4
    assert memory.category.message.nonInterleaved.overlapped == 4
    assert memory.category.controlCode.nonInterleaved.nonOverlapped == 72
    assert [(v.type.name, v.codeBytes) for v in report.compilation.tiles[1].memory.vertices] == [
        ("popops::Multiply<float>", 50)
    ]


def test_a_category_that_does_not_exist_is_an_attribute_error(report: Report) -> None:
    memory = report.compilation.tiles[0].memory
    assert not hasattr(memory.category, "foo")
    assert not hasattr(memory, "used")


def test_tiles_of_an_ipu_are_those_of_the_device(report: Report) -> None:
    assert [tile.id for tile in report.compilation.ipus[1].tiles] == [5, 6, 7, 8, 9]
    assert report.compilation.ipus[1].tiles[0] == report.compilation.tiles[5]


def test_compute_sets_and_their_vertices(report: Report) -> None:
    reduce = report.compilation.computeSets[1]
    assert reduce.name == "reduce"
    assert [(v.type.name, v.type.size, v.count) for v in reduce.vertices] == [
        ("popops::Add<float>", 8, 1),
        ("popops::Reduce<float,float>", 16, 2),
    ]
    assert list(reduce.estimatedCyclesByTile) == [48, 0, 0, 0, 0, 36, 0, 0, 0, 0]


def test_programs_are_of_the_class_of_their_type(report: Report) -> None:
    programs = report.compilation.programs
    assert [type(programs[row]).__name__ for row in (1, 2, 5, 6)] == [
        "Program", "StreamCopyMidProgram", "DoExchangeProgram", "OnTileExecuteProgram",
    ]  # fmt: skip
    assert programs[2].type is pva.Program.Type.StreamCopyMid
    assert "External" in programs[1].name
    assert [child._id for child in programs[4].children] == [5, 6, 7]
    assert programs[6].computeset.name == "multiply"
    assert programs[3].count == 2


def test_type_of_a_type_is_that_of_every_member(report: Report) -> None:
    found = report.compilation.programs[0].type
    assert all(type(found) is type(member) for member in pva.Program.Type)


def test_programs_are_equal_and_one_key_however_they_were_reached(report: Report) -> None:
    reached = report.execution.steps[3].program
    listed = report.compilation.programs[6]
    assert reached == listed
    assert len({reached, listed}) == 1
    assert listed != report.compilation.programs[9]


class Collector(pva.ProgramVisitor):
    def __init__(self) -> None:
        self.seen: list[str] = []
        super().__init__()

    def visitDoExchange(self, program: pva.DoExchangeProgram) -> None:
        self.seen.append(program.name)

    def visitStreamCopyMid(self, program: Any) -> None:
        self.seen.append(program.name)


class WithoutInit(pva.ProgramVisitor):
    """Defines nothing at all."""


def test_visitors_are_called_by_type(report: Report) -> None:
    visitor = Collector()
    for step in report.execution.steps[:4]:
        step.program.accept(visitor)
        step.program.accept(WithoutInit())
    assert visitor.seen == ["x/StreamCopy", "multiply/ExchangePre"]


def test_steps_and_what_each_ipu_did(report: Report) -> None:
    steps = report.execution.steps
    assert len(steps) == 24
    assert [ipu.cycles for ipu in steps[3].ipus] == [84, 114]
    assert [ipu.dataIn for ipu in steps[2].ipus] == [20, 20]
    assert list(steps[3].cyclesByTile) == [60 + 6 * tile for tile in range(10)]
    assert list(steps[0].cyclesByTile) == [28, 30, 32, 34, 36] * 2
    assert [(c.name, c.cyclesByTile[9]) for c in steps[3].computeSets] == [("multiply", 114)]
    active = steps[1].ipus[0].activeCycles
    assert (active.cyclesFrom.min, active.cyclesFrom.max, active.cyclesTo.max) == (28, 36, 43)


def test_runs_and_totals(report: Report) -> None:
    run = report.execution.runs[1]
    assert (run.name, len(run.steps), run.cycles) == ("main", 12, 512)
    assert run.microseconds.end - run.microseconds.start == 500
    assert report.execution.totalCycles.total == 1024


def test_total_cycles_are_0_without_an_execution(tmp_path: Path) -> None:
    pop.write(small_report().select("graph"), tmp_path / "profile.pop")
    execution = openReport(tmp_path).execution
    assert (execution.totalCycles.total, list(execution.steps), list(execution.runs)) == (0, [], [])


def test_liveness_by_step_tile_and_ipu(report: Report) -> None:
    step = report.compilation.livenessProgramSteps[6]
    assert step.program.name == "multiply"
    assert step.notAlwaysLiveMemory.bytes == 200
    assert {(v.name, v.size) for v in step.notAlwaysLiveMemory.variables} == {
        ("x", 80), ("product", 80), ("message", 40),
    }  # fmt: skip
    assert step.notAlwaysLiveMemoryForTile(3).bytes == 20
    assert step.notAlwaysLiveMemoryForIpu(1).bytes == 100
    with pytest.raises(IndexError, match="tiles are 0 to 9"):
        step.notAlwaysLiveMemoryForTile(10)


def test_places_that_were_not_recorded_are_said_with_their_own_option() -> None:
    step = Report.of(small_report(variable_pieces=None)).compilation.livenessProgramSteps[6]
    with pytest.raises(NotRecordedError, match=r"option autoReport\.outputLoweredVars$"):
        step.notAlwaysLiveMemoryForTile(0)


@pytest.mark.parametrize("tile", range(builders.TILES))
def test_variables_of_a_tile_sum_to_its_live_bytes(report: Report, tile: int) -> None:
    memory = report.compilation.tiles[tile].memory
    always = report.compilation.alwaysLiveVariablesForTile(tile)
    live = report.compilation.livenessProgramSteps[6].notAlwaysLiveMemoryForTile(tile)
    assert sum(v.size for v in always) == memory.alwaysLiveBytes
    assert sum(v.size for v in live.variables) == live.bytes


def test_always_live_variables_name_categories_too(report: Report) -> None:
    always = {v.name: v.size for v in report.compilation.alwaysLiveVariables}
    assert (always["w"], always["stack"]) == (80, 960)
    assert len(set(report.compilation.alwaysLiveVariables)) == 8


def test_variables_of_a_program_are_told_tile_by_tile(report: Report) -> None:
    variables = report.compilation.programs[8].vars
    assert [(v.name, v.bytes, v.alwaysLive) for v in variables] == [
        *[("product", 8, False)] * 10, *[("partials", 16, False)] * 2,
    ]  # fmt: skip
    on_tile = report.compilation.loweredVariables.forTile(9)
    assert [v.name for v in on_tile] == ["x", "w", "product", "message"]
    assert sum(v.bytes for v in on_tile) == 28


def test_lists_are_sequences(report: Report) -> None:
    steps, cycles = report.execution.steps, report.execution.steps[3].cyclesByTile
    assert steps[-1] == steps[23]
    assert [s.program._id for s in steps[1:4]] == [2, 5, 6]
    assert len(steps[::6]) == 4
    assert (sum(cycles), max(cycles), cycles[2:4]) == (870, 114, [72, 78])
    assert np.array(cycles, dtype=np.uint64).sum() == 870
    assert json.dumps(cycles[0]) == "60"
    with pytest.raises(IndexError):
        steps[24]
    assert repr(cycles) == "[60, 66, 72, 78, 84, 90, 96, 102, 108, 114]"
    assert repr(steps).endswith("... 24 in all]")


def test_version_of_what_wrote_it(report: Report) -> None:
    version = report.poplarVersion
    assert (version.major, version.minor, version.point) == (1, 2, 3)
    assert (version.string, version.packageHash) == ("1.2.3", "abc")
    assert report.version.major == 1


@pytest.mark.parametrize(
    ("options", "compute", "external"),
    [
        ({}, "Off", "Off"),
        ({"debug.instrument": "true"}, "Tile", "Tile"),
        ({"debug.instrument": "true", "debug.instrumentCompute": "false"}, "Off", "Tile"),
        (
            {"debug.instrumentCompute": "true", "debug.computeInstrumentationLevel": "vertex"},
            "Vertex",
            "Off",
        ),
    ],
)
def test_instrumentation_comes_from_the_engine_options(
    tmp_path: Path, options: dict[str, str], compute: str, external: str
) -> None:
    table = {"name": list(options), "value": list(options.values())}
    pop.write(small_report(engine_options=table), tmp_path / "profile.pop")
    settings = openReport(tmp_path).instrumentationSettings
    assert (settings.compute.name, settings.externalExchange.name) == (compute, external)
    assert settings.Off is settings.ExternalExchangeInstrumentationLevel.Off


def test_lists_show_as_many_items_as_they_were_told(report: Report) -> None:
    report.listPrintLength(2)
    assert repr(report.execution.steps[3].cyclesByTile) == "[60, 66, ... 10 in all]"
    report.listPrintLength(10)


def test_files_beside_the_profile(report: Report, directory: Path) -> None:
    assert set(report.files) == {"profile", "debug", "app", "framework"}
    assert report.app == {"name": "small"}
    assert report.trace_path is None
    assert report.path == directory


def test_debug_information_may_be_given_apart(directory: Path) -> None:
    report = openReport(str(directory / "profile.pop"), str(directory / "debug.cbor"))
    assert report.dataset.column("debug_contexts", "name")[2] == "multiply"


def test_names_are_those_of_the_extension_module() -> None:
    from pva import pva_core

    assert pva_core.Report is pva.Report
    assert pva_core.Program.Type is pva.Program.Type
    with pytest.raises(AttributeError):
        _ = pva_core.foo


def test_every_public_name_is_there() -> None:
    assert [name for name in pva.__all__ if getattr(pva, name, None) is None] == []
    assert {"openReport", "openTrace", "ProgramVisitor", "Report", "Event"} <= set(pva.__all__)


def test_reload_sees_the_runs_that_ended_since(tmp_path: Path) -> None:
    whole = small_report()
    writer = pop.ReportWriter(tmp_path / "profile.pop", whole.select("graph"))
    report = openReport(tmp_path)
    writer.append_run({"runs": whole.table("runs"), "steps": whole.table("steps")})
    writer.close()
    assert len(report.execution.steps) == 0
    assert (report.reload(), report.reload()) == (True, False)
    assert len(report.execution.steps) == 24


def test_a_report_may_be_read_from_several_threads(directory: Path) -> None:
    report = openReport(directory)
    names = [*report.dataset.arrays] * 3
    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(lambda name: int(report.dataset.array(name).sum()), names))
    assert sums == [int(small_report().array(name).sum()) for name in names]


def test_reading_changes_no_file(tmp_path: Path) -> None:
    path = write_report(tmp_path) / "profile.pop"
    before = hashlib.sha256(path.read_bytes()).digest()
    list(openReport(tmp_path).execution.steps)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "app.json", "debug.cbor", "framework.json", "profile.pop",
    ]  # fmt: skip


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Report.of(small_report()).to_json("~/report.json")
    assert openReport("~/report.json").path == tmp_path / "report.json"
    assert openReport("~/report.json", Path("~/report.json")).dataset.has("debug_contexts")
    with pytest.raises(PvaError, match=f"^{tmp_path}/none.pvti: no such file"):
        pva.openTrace("~/none.pvti")
    assert not (tmp_path / "~").exists()
