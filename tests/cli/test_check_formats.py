"""`tilescope check` as JUnit and as SARIF: read back by parsers, held against what it says else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner

from cli.check_cases import Case, Result, junit, sarif
from cli.main import tilescope
from pva.analysis import insights
from pva.check import LAWS
from pva.report import openReport
from tests.builders import write_report
from tests.cli.golden_calls import BUDGETS

HOSTILE = "<a b='1'> [click](http://x) {0} \x1b[31m \ud800 \x00 ]]> &amp;"


def node(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


def many(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


# What sarif-schema-2.1.0.json requires of the objects that are written here.
TEXT, WHOLE = {"type": "string"}, {"type": "integer", "minimum": 1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = {**node(text=TEXT), "anyOf": [{"required": ["text"]}, {"required": ["id"]}]}
RULE = node(("id",), id=TEXT, shortDescription=node(("text",), text=TEXT))
PLACE = {
    **node(artifactLocation=node(uri=TEXT), region=node(startLine=WHOLE)),
    "anyOf": [{"required": ["address"]}, {"required": ["artifactLocation"]}],
}
RESULT = node(
    ("message",), message=MESSAGE, level=LEVEL, ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0}, locations=many(node(physicalLocation=PLACE)),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
)  # fmt: skip
RUN = node(
    ("tool",), tool=node(("driver",), driver=node(("name",), name=TEXT, rules=many(RULE))),
    results=many(RESULT), columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
)  # fmt: skip
LOG = node(("version", "runs"), version={"enum": ["2.1.0"]}, runs=many(RUN))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked")
    (folder / "budgets.toml").write_text(BUDGETS)
    return write_report(folder / "run")


def checked(report: Path, form: str, code: int) -> str:
    budgets = str(report.parent / "budgets.toml")
    call = ["check", str(report), "--budget", budgets, "--format", form]
    result = CliRunner().invoke(tilescope, call)
    assert result.exit_code == code, result.stderr
    return result.stdout


def test_junit_has_a_case_for_each_law_budget_and_rule(report: Path) -> None:
    top = ElementTree.fromstring(checked(report, "junit", 1))
    suites = {suite.attrib["name"]: suite for suite in top}
    assert int(suites["laws"].attrib["tests"]) == len(LAWS) == len(suites["laws"])
    # Of three budgets that of the largest tile is broken, as the golden file of `check` has it.
    assert {name: suite.attrib["failures"] for name, suite in suites.items()} == {
        "laws": "0", "budgets": "1", "insights": "0",
    }  # fmt: skip
    failed = [
        case.attrib["name"] for case in top.iter("testcase") if case.find("failure") is not None
    ]
    assert failed == ["largest_tile"]
    skipped = sum(case.find("skipped") is not None for case in suites["laws"])
    assert skipped == int(suites["laws"].attrib["skipped"])


def test_sarif_keeps_the_schema_and_has_each_finding(report: Path) -> None:
    log = json.loads(checked(report, "sarif", 1))
    jsonschema.validate(log, LOG)
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    found = [result["ruleId"].partition("/")[2] for result in run["results"]
             if result["ruleId"].startswith("insights/")]  # fmt: skip
    assert sorted(found) == sorted(insights(openReport(report))["rule"])
    assert [r["level"] for r in run["results"] if r["ruleId"] == "budgets/largest_tile"] == [
        "error"
    ]


def test_a_finding_is_at_the_line_of_the_program_where_git_has_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("src/deep").mkdir(parents=True)
    Path("other").mkdir()
    Path("src/deep/model.py").write_text("")
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "src"], check=True)
    for folder, text in (("src", "\n" * 4 + "def build():\n    pass\n"), ("other", "\n")):
        Path(folder, "twice.py").write_text(text)
    subprocess.run(["git", "add", "."], check=True)
    names = ("model.py", "nowhere.py", "twice.py")
    results = tuple(Result("note", "x", "", name, 6, "build") for name in names)
    found = sarif("run.pop", [Case("insights", "rule", "Find it.", results)])["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in found]
    line = {"artifactLocation": {"uri": "src/deep/model.py"}, "region": {"startLine": 6}}
    twice = {"artifactLocation": {"uri": "src/twice.py"}, "region": {"startLine": 6}}
    assert places == [line, {"artifactLocation": {"uri": "run.pop"}}, twice]


def test_names_of_reports_are_data_in_both() -> None:
    case = Case("laws", "law", "Keep it.", (Result("error", HOSTILE, HOSTILE),))
    top = ElementTree.fromstring(junit("run", [case]).encode())
    failure = top.find(".//failure")
    assert failure is not None and failure.text is not None
    assert failure.text.startswith("<a b='1'> [click](http://x) {0} ")
    log = sarif("run", [case])
    jsonschema.validate(log, LOG)
    message = log["runs"][0]["results"][0]["message"]["text"]
    assert "\\[click\\](http://x) {{0}}" in message and message.isprintable()


def test_a_report_that_keeps_everything_ends_with_0(report: Path) -> None:
    result = CliRunner().invoke(tilescope, ["check", str(report), "--format", "junit"])
    assert result.exit_code == 0
    assert not list(ElementTree.fromstring(result.stdout).iter("failure"))


def test_variables_lead_to_the_line_that_made_them() -> None:
    from pva.analysis.debug_contexts import finding_source, source_of

    report = openReport(Path(__file__).parents[2] / "sample_reports" / "mlp_digits_tiny")
    # In its debug contexts number 4 is "Layer1/Fwd/weights", made at line 127 of mlp_digits.py.
    contexts = report.dataset.column("variables", "debug_context")
    row = next(
        row for row, context in enumerate(contexts) if source_of(report, int(context))[1] == 127
    )
    assert finding_source(report, row, "") == ("mlp_digits.py", 127, "_add_layer")
    assert finding_source(report, -1, "") == ("", -1, "")
