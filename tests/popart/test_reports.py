"""A session's three reports, and what they are when nothing is profiled."""

from __future__ import annotations

import io
import json
from pathlib import Path

import cbor2
import numpy as np
import pytest
from click.testing import CliRunner
from models import model, node, prepared, tiny

from cli.main import tilescope
from pva.analysis import other_runs
from pva.report import Report, openReport
from simulator import popart

DOUBLE = model([node("Add", "a a", "c", name="twice")], {"a": [2]}, ["c"])
INSTRUMENT = {"debug.instrument": "true"}


def ran(**engine: object) -> popart.InferenceSession:
    """Run a batch."""
    session = prepared(DOUBLE, ["c"], **engine)
    session.run(popart.PyStepIO({"a": np.zeros(2)}, session.initAnchorArrays()))
    return session


def test_without_profiling_reports_say_so() -> None:
    session = ran()
    assert session.getExecutionReport() == '{"profilerMode":"NONE"}'
    assert session.getSummaryReport().endswith("Execution profiling not enabled\n")


def test_the_summary_is_that_of_both_profiles() -> None:
    text = ran(**INSTRUMENT).getSummaryReport()
    assert "Execution profiling not enabled" not in text
    assert "Memory Usage" in text and "Total cycles" in text


def test_report_options_reach_the_summary() -> None:
    options = popart.SessionOptions(engineOptions=INSTRUMENT)
    options.reportOptions = {"showExecutionSteps": "true"}
    session = popart.InferenceSession(
        DOUBLE, popart.DataFlow(1, ["c"]), tiny(), userOptions=options
    )
    session.prepareDevice()
    session.run(popart.PyStepIO({"a": np.zeros(2)}, session.initAnchorArrays()))
    assert ": twice/Op/Add\n" in session.getSummaryReport()


def test_json_and_cbor_hold_the_same() -> None:
    session = ran(**INSTRUMENT)
    graph = json.loads(session.getGraphReport())
    assert graph["target"]["numTiles"] == 4
    opened = Report.of_profiles(graph, json.loads(session.getExecutionReport(resetProfile=False)))
    assert [run.name for run in opened.execution.runs] == ["run"]
    packed = cbor2.load(io.BytesIO(session.getExecutionReport(useCbor=True)))  # type: ignore[arg-type]
    assert packed["profilerMode"] == "COMPUTE_SETS"


def test_an_execution_report_begins_after_the_last_one() -> None:
    session = ran(**INSTRUMENT)
    assert len(json.loads(session.getExecutionReport())["runs"]) == 1
    assert len(json.loads(session.getExecutionReport())["runs"]) == 0


def test_a_report_directory_is_written_where_options_say(tmp_path: Path) -> None:
    ran(**{"autoReport.all": True, "autoReport.directory": str(tmp_path)})
    report = openReport(tmp_path / "inference")
    assert [run.name for run in report.execution.runs] == ["run"]
    assert report.check()["holds"].fillna(True).all()


SCALED = model([node("Mul", "a w", "c", name="scaled")], {"a": [2]}, ["c"], {"w": np.ones(2, "f4")})


def scaled(folder: Path) -> Report:
    """Run a model with weights twice, loading them before each, and open its report."""
    written = {"autoReport.all": True, "autoReport.directory": str(folder)}
    session = prepared(SCALED, ["c"], **written)
    for _ in range(2):
        session.run(popart.PyStepIO({"a": np.zeros(2, "f4")}, session.initAnchorArrays()))
        session.weightsToHost()
    report = session.getReport()
    assert isinstance(report, Report)
    return report


def test_the_report_counts_runs_of_the_model_alone(tmp_path: Path) -> None:
    report = scaled(tmp_path)
    runs, others = report.execution.runs, report.execution.otherRuns
    assert [run.name for run in runs] == ["run", "run"]
    assert [run.name for run in others] == ["weightsFromHost", "weightsToHost", "weightsToHost"]
    assert report.execution.totalCycles.total == runs[0].cycles + runs[1].cycles
    names = {step.program.name for step in report.execution.steps}
    assert "input/a" in names and not any(name.startswith("weights") for name in names)
    # The device's clock goes on in the other runs.
    begins = report.frames.runs()["cycles_from"].tolist()
    assert begins[1] - begins[0] == runs[0].cycles + others[1].cycles
    assert report.check()["holds"].fillna(True).all()


def test_other_runs_are_told_by_name_and_reach_sql_and_documents(tmp_path: Path) -> None:
    report = scaled(tmp_path)
    told = other_runs(report)
    assert told["name"].tolist() == ["weightsFromHost", "weightsToHost"]
    assert told["runs"].tolist() == [1, 2]
    cycles = [run.cycles for run in report.execution.otherRuns]
    assert told["cycles"].tolist() == [cycles[0], cycles[1] + cycles[2]]
    assert report.sql("select cycles from other_runs")["cycles"].tolist() == cycles
    written = json.loads(report.to_json(tmp_path / "execution.json").read_text())
    assert [run["cycles"] for run in written["otherRuns"]] == cycles
    assert openReport(tmp_path / "execution.json").execution.otherRuns[0].cycles == cycles[0]


def test_summary_and_info_say_what_is_not_counted(tmp_path: Path) -> None:
    report = scaled(tmp_path)
    cycles = report.execution.otherRuns[0].cycles
    text = CliRunner().invoke(tilescope, ["info", str(tmp_path / "inference")]).output
    assert f"not counted in the run: weightsFromHost ({cycles:,} cycles)" in text
    text = CliRunner().invoke(tilescope, ["summary", str(tmp_path / "inference")]).output
    assert f"{cycles:,} (weightsFromHost), not counted" in text
    total = f"Total cycles: {report.execution.totalCycles.total:,} ("
    assert total in " ".join(text.split())
    text = CliRunner().invoke(tilescope, ["summary", "--json", str(tmp_path / "inference")]).stdout
    assert json.loads(text)["other_runs"][0]["cycles"] == cycles


def test_reports_need_a_prepared_device() -> None:
    session = popart.InferenceSession(DOUBLE, popart.DataFlow(1, ["c"]), tiny())
    with pytest.raises(
        popart.popart_exception, match="getGraphReport: Session must have been prepared"
    ):
        session.getGraphReport()


def test_a_session_has_a_report_that_it_does_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    execution = ran(**INSTRUMENT).getReport().execution
    assert [run.name for run in execution.runs] == ["run"]
    assert execution.totalCycles.total == execution.runs[0].cycles > 0
    assert not list(tmp_path.iterdir())


def test_a_session_opens_its_report(tmp_path: Path) -> None:
    engine = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    found = ran(**engine).getReport()
    assert isinstance(found, Report) and len(found.compilation.tiles) == 4


def written(folder: Path, **more: object) -> popart.InferenceSession:
    """Prepare a session that writes a report."""
    engine = {"autoReport.all": True, "autoReport.directory": str(folder)}
    options = popart.SessionOptions(engineOptions=engine)
    flow = popart.DataFlow(1, ["c"])
    session = popart.InferenceSession(DOUBLE, flow, tiny(), userOptions=options, **more)  # type: ignore[arg-type]
    session.prepareDevice()
    return session


def folders(of: Path) -> list[str]:
    return sorted(str(file.parent.relative_to(of)) for file in of.rglob("profile.pop"))


def test_a_session_writes_to_the_folder_of_its_name(tmp_path: Path) -> None:
    kept = [written(tmp_path), written(tmp_path, name="ivor"), written(tmp_path / "bare", name="")]
    assert folders(tmp_path) == ["bare", "inference", "ivor"]
    assert [session.getReport().path.name for session in kept] == ["inference", "ivor", "bare"]


def test_two_sessions_of_a_name_write_two_reports(tmp_path: Path) -> None:
    first, second = written(tmp_path), written(tmp_path)
    assert folders(tmp_path) == ["inference", "inference_2"]
    second.run(popart.PyStepIO({"a": np.zeros(2)}, second.initAnchorArrays()))
    assert [len(s.getReport().execution.runs) for s in (first, second)] == [0, 1]
    second.prepareDevice()  # the report of the same session is written anew
    assert folders(tmp_path) == ["inference", "inference_2"]


@pytest.mark.parametrize("name", ["../other", "/tmp/other", "a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(popart.popart_exception, match="a folder below autoReport.directory"):
        written(tmp_path, name=name)
    assert folders(tmp_path) == []
