"""A session's three reports, and what they are when nothing is profiled."""

from __future__ import annotations

import io
import json
from pathlib import Path

import cbor2
import numpy as np
import pytest
from models import model, node, prepared, tiny

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
    report = openReport(tmp_path)
    assert [run.name for run in report.execution.runs] == ["run"]
    assert report.check()["holds"].fillna(True).all()


def test_reports_need_a_prepared_device() -> None:
    session = popart.InferenceSession(DOUBLE, popart.DataFlow(1, ["c"]), tiny())
    with pytest.raises(popart.popart_exception, match="getGraphReport: call prepareDevice first"):
        session.getGraphReport()


def test_a_session_opens_its_report(tmp_path: Path) -> None:
    engine = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    found = ran(**engine).getReport()
    assert isinstance(found, Report) and len(found.compilation.tiles) == 4
