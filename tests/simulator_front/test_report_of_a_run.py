"""The report that an engine leaves, read back."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.check import check
from pva.data.dataset import Dataset
from pva.formats import registry
from pva.version import VERSION
from simulator import poplar
from simulator.examples import matmul_chain, mlp_digits
from simulator.poplar import FLOAT, PoplarError, program

EPOCHS = 3


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reports") / "digits"
    mlp_digits.train(out, target="tiny", epochs=EPOCHS)
    return out


@pytest.fixture(scope="module")
def data(report: Path) -> Dataset:
    return registry.read(report)


def test_the_report_breaks_no_law(data: Dataset) -> None:
    assert [str(violation) for violation in check(data)] == []


@pytest.mark.parametrize("target", ["mk1", "mk2"])
def test_reports_of_real_parts_break_no_law(tmp_path: Path, target: str) -> None:
    matmul_chain.run([(60, 90), (90, 40), (40, 70)], target=target, out=tmp_path)
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


def test_the_first_two_runs_are_recorded_step_by_step(data: Dataset) -> None:
    first, end = data.column("runs", "first_step"), data.column("runs", "end_step")
    assert (end > first).tolist() == [True, True, False, False]
    assert data.column("runs", "name").tolist() == ["epoch 1", "epoch 2", "epoch 3", "evaluate"]
    assert data.column("runs", "program").tolist() == [0, 0, 0, 1]
    assert len(data.column("steps", "type")) == end[-1]


def test_every_epoch_takes_as_long(data: Dataset) -> None:
    cycles, begin = data.column("runs", "cycles"), data.column("runs", "cycles_from")
    assert len(set(cycles[:EPOCHS].tolist())) == 1
    np.testing.assert_array_equal(begin, np.cumsum(cycles) - cycles)


def test_every_part_of_the_training_step_has_its_layers_name(data: Dataset) -> None:
    names = set(data.column("compute_sets", "name"))
    assert {
        "Layer1/Fwd/Conv_1/Convolve",
        "Layer2/Fwd/Nonlinearity",
        "Layer3/Bwd/Conv_1/Convolve",
        "Layer5/Bwd/LossSumSquared/on_tile_transform",
        "Layer1/Wu/AddTo",
    } <= names


def test_variables_lead_to_the_line_that_made_them(data: Dataset) -> None:
    row = data.column("variables", "name").tolist().index("Layer1/Fwd/biases")
    context = data.column("variables", "debug_context")[row]
    place = data.column("debug_contexts", "id").tolist().index(context)
    assert data.column("debug_contexts", "file")[place] == "mlp_digits.py"
    assert data.column("debug_contexts", "function")[place] == "_add_layer"


def test_no_path_of_the_machine_is_kept(report: Path, data: Dataset) -> None:
    options = dict(zip(*data.table("engine_options").values(), strict=True))
    assert options["autoReport.directory"] == "digits"
    contents = b"".join(file.read_bytes() for file in sorted(report.iterdir()))
    assert str(report.parent).encode() not in contents


def test_the_same_program_leaves_the_same_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")
    for name in ("one", "two"):
        out = tmp_path / name / "report"
        matmul_chain.run([(20, 30), (30, 10)], target="tiny", out=out)
    one, two = (registry.read(tmp_path / name / "report") for name in ("one", "two"))
    assert one == two
    assert one.value("report", "created") == "2020-09-13T12:26:40Z"


def test_the_version_is_the_projects(report: Path, data: Dataset) -> None:
    assert data.value("report", "version") == VERSION
    assert json.loads((report / "framework.json").read_text())["version"] == VERSION


def test_the_program_says_what_it_is(report: Path) -> None:
    facts = json.loads((report / "app.json").read_text(encoding="utf-8"))
    assert facts["application"] == "mlp_digits"
    assert facts["epochs"] == EPOCHS
    assert facts["testAccuracy"] > 0.9


def made(options: dict[str, Any], name: str = "") -> poplar.Engine:
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    x, y = graph.addVariable(FLOAT, [4], "x"), graph.addVariable(FLOAT, [4], "y")
    graph.setTileMapping(x, 0)
    graph.setTileMapping(y, 3)
    engine = poplar.Engine(graph, program.Sequence(program.Copy(x, y)), options, name=name)
    engine.load(device)
    return engine


def test_nothing_is_written_without_being_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = made({})
    engine.run()
    assert len(engine.getReport().execution.runs) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["debug.instrument", "autoReport.outputGraphProfile"])
def test_an_engine_has_the_report_that_another_would_write(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    monkeypatch.chdir(tmp_path)
    engines = [made({option: True}), made({option: True, "autoReport.all": True}, "written")]
    for engine in engines:
        engine.disableExecutionProfiling()
        engine.run(debugName="weights")
        engine.enableExecutionProfiling()
        for _ in range(3):
            engine.run()
    held, kept = (engine.getReport().dataset for engine in engines)
    assert (held.tables, held.arrays) == (kept.tables, kept.arrays)
    for table in set(held.tables) - {"engine_options", "provenance"}:
        for name, column in held.columns(table):
            np.testing.assert_array_equal(column, kept.column(table, name), f"{table}.{name}")
    for array in held.arrays:
        np.testing.assert_array_equal(held.array(array), kept.array(array), array)


def test_a_report_in_memory_obeys_the_laws_and_begins_anew_after_a_reset() -> None:
    engine = made({"debug.instrument": True})
    engine.run()
    engine.resetExecutionProfile()
    engine.run(debugName="second")
    report = engine.getReport()
    assert [run.name for run in report.execution.runs] == ["second"]
    assert report.check()["holds"].fillna(True).all()
    assert report.execution.totalCycles.total == report.execution.runs[0].cycles > 0
    compiled = engine.getReport(reportExecution=False)
    assert len(compiled.compilation.tiles) > 0 == len(compiled.execution.runs)


def test_an_engines_name_is_a_folder_of_its_own(tmp_path: Path) -> None:
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    assert made(options, "training").reportDirectory == tmp_path / "training"
    assert (tmp_path / "training" / "profile.pop").exists()


def test_the_execution_can_be_left_out(tmp_path: Path) -> None:
    options = {
        "autoReport.all": "true",
        "autoReport.outputExecutionProfile": "false",
        "autoReport.directory": str(tmp_path),
    }
    made(options).run()
    found = registry.read(tmp_path)
    assert found.has("memory_by_tile")
    assert not found.has("steps")


def test_a_report_can_be_read_between_runs(tmp_path: Path) -> None:
    engine = made({"autoReport.all": True, "autoReport.directory": str(tmp_path)})
    engine.run()
    report = engine.getReport()
    assert report.dataset.length("runs") == 1
    engine.run()
    assert report.reload()
    assert report.dataset.length("runs") == 2


def test_the_clock_of_a_report_goes_on_when_the_program_is_loaded_again(tmp_path: Path) -> None:
    device = poplar.IPUModel("tiny").createDevice()
    engine = made({"autoReport.all": True, "autoReport.directory": str(tmp_path)})
    engine.run()
    engine.load(device)
    engine.run()
    data = registry.read(tmp_path)
    first, second = data.column("runs", "cycles_from").tolist()
    assert (first, second) == (0, data.column("runs", "cycles")[0])
    assert check(data) == []


def test_the_summary_of_an_engine_is_printed(tmp_path: Path) -> None:
    engine = made({"autoReport.all": True, "autoReport.directory": str(tmp_path)})
    engine.run()
    text = io.StringIO()
    engine.printProfileSummary(text, {"showExecutionSteps": "true"})
    assert "Number of IPUs:         1" in text.getvalue()
    assert "--- External Sync ---" in text.getvalue()
    with pytest.raises(PoplarError, match="no option 'showSteps'; known are showVarStorage"):
        engine.printProfileSummary(text, {"showSteps": "true"})


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path / "file" / "report")}
    with pytest.raises(PoplarError, match="autoReport.directory: cannot make .*report: Not a dir"):
        made(options)


def test_a_directory_whose_name_is_no_text_is_refused_in_one_line(tmp_path: Path) -> None:
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path / "report\udcff")}
    with pytest.raises(PoplarError, match=r"^autoReport.directory: '.*report.udcff' is no UTF-8$"):
        made(options)


@pytest.mark.parametrize("name", ["profile.pop", "debug.cbor", "framework.json", "app.json"])
def test_a_file_of_the_users_is_kept_and_its_engine_refused(name: str, tmp_path: Path) -> None:
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    (tmp_path / "mine.py").write_text("")
    made(options)
    (tmp_path / name).write_bytes(b"mine")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(PoplarError, match=f"^autoReport.directory: .*{name}: changed since it was"):
        made(options)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_engine_replaces_the_report_of_an_earlier_one(tmp_path: Path) -> None:
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    made(options).run()
    made(options | {"autoReport.outputDebugInfo": False, "autoReport.app": '{"a": 1}'})
    assert registry.read(tmp_path).length("runs") == 0
    assert (tmp_path / "app.json").read_text() == '{\n  "a": 1\n}\n'
    assert not (tmp_path / "debug.cbor").exists()


def test_runs_that_cannot_be_written_at_the_end_are_told_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {"autoReport.all": True, "autoReport.streamAtEachRun": False}
    engine = made(options | {"autoReport.directory": str(tmp_path)})
    engine.run()
    (tmp_path / "profile.pop").unlink()
    del engine
    assert re.fullmatch(
        r"autoReport: 1 run\(s\) not written: .*profile.pop: taken away .*\n",
        capfd.readouterr().err,
    )
