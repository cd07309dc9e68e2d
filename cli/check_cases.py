"""What `tilescope check` looked at, as JUnit's test cases and as SARIF's results.

Laws and budgets pass, fail or are skipped. Findings of `insights` come along: they fail nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cli.bisect_step import git
from cli.shared.output import printable
from pva.errors import PvaError
from pva.lazy import pandas as pd
from pva.version import VERSION

if TYPE_CHECKING:
    from pva.report import Report

JUNIT, SARIF = "junit", "sarif"
LAWS, BUDGETS, INSIGHTS = "laws", "budgets", "insights"
ERROR = "error"
LEVELS = {"problem": ERROR, "cost": "warning", "note": "note"}  # SARIF's of a severity
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
SARIF_VERSION = "2.1.0"


@dataclass(frozen=True, slots=True)
class Result:
    """Something to tell of a report, and the line of the program that it is about, if known."""

    level: str
    text: str
    about: str = ""  # what tells it from others of its rule, in one report after another
    file: str = ""
    line: int = 0
    function: str = ""


# A law, its meaning, whether it holds, and, where not, the first place, the value there, the right
# one, and how many such places there are.
Verdict = tuple[str, str, bool | None, str, object, object, int]


@dataclass(frozen=True, slots=True)
class Case:
    """A law, a budget or a rule of `insights`; `skipped` says why it was not checked."""

    suite: str
    rule: str
    meaning: str
    results: tuple[Result, ...] = ()
    skipped: str = ""


def cases(
    report: Report, verdicts: Sequence[Verdict], budgets: pd.DataFrame | None,
    over: Iterable[Sequence[Any]], causes: Iterable[Sequence[Any]],
) -> list[Case]:  # fmt: skip
    """Return all that was checked: rows of laws, budgets, those broken, their causes."""
    why: dict[str, list[str]] = {}
    for name, cause, change, share in causes:
        why.setdefault(name, []).append(f"{cause} {change:+,} ({share})")
    broken = {name: (value, limit) for _, name, value, limit, _ in over}
    names = [] if budgets is None else budgets["budget"].tolist()
    return [*_laws(verdicts), *(_budget(name, broken, why) for name in names), *_insights(report)]


def _laws(verdicts: Sequence[Verdict]) -> Iterator[Case]:
    meanings = {name: meaning for name, meaning, *_ in verdicts}
    for law, meaning in meanings.items():
        rows = [row[2:] for row in verdicts if row[0] == law]
        results = tuple(
            Result(ERROR, f"{place}: found {value}, wanted {limit}; {count:,} such places", place)
            for holds, place, value, limit, count in rows
            if holds is False
        )
        skipped = next((str(reason) for holds, _, reason, *_ in rows if holds is None), "")
        yield Case(LAWS, law, meaning, results, skipped)


def _budget(name: str, broken: dict[str, tuple[str, str]], why: dict[str, list[str]]) -> Case:
    results: tuple[Result, ...] = ()
    if name in broken:
        value, limit = broken[name]
        causes = f"; causes: {', '.join(why[name])}" if name in why else ""
        results = (Result(ERROR, f"{name} is {value}; {limit}{causes}"),)
    return Case(BUDGETS, name, f"{name} keeps its limit", results)


def _insights(report: Report) -> Iterator[Case]:
    from pva.analysis.execution.steady import STEADY, counted
    from pva.analysis.insight_rules import RULES, examination

    findings, unchecked = examination(counted(report, STEADY))
    why = {row["rule"]: str(row["why"]) for row in unchecked}
    for rule in (rule for rules in RULES.values() for rule in rules):
        name, meaning = rule.__name__, " ".join((rule.__doc__ or "").split())
        results = tuple(_result(report, row) for row in findings if row["rule"] == name)
        yield Case(INSIGHTS, name, meaning, results, why.get(name, ""))


def _result(report: Report, row: Mapping[str, Any]) -> Result:
    from pva.analysis.debug_contexts import finding_source

    file, line, function = finding_source(report, row["variable"], row["name"])
    parts = (str(row[name]).rstrip(".") for name in ("what", "where", "advice"))
    text = f"{'. '.join(part for part in parts if part)}."
    about = row["name"] or f"{row['variable']} {row['tile']}"
    return Result(LEVELS[row["severity"]], text, about, file, line, function)


def junit(path: str, checked: Sequence[Case]) -> str:
    """Write the cases as JUnit's XML: suites of laws, of budgets and of findings, which pass."""
    top = Element("testsuites", name=f"tilescope check {_text(path)}")
    for suite in (LAWS, BUDGETS, INSIGHTS):
        cases = [case for case in checked if case.suite == suite]
        failed = 0 if suite == INSIGHTS else sum(bool(case.results) for case in cases)
        counts = {"tests": len(cases), "failures": failed, "errors": 0,
                  "skipped": sum(bool(case.skipped) for case in cases)}  # fmt: skip
        texts = {name: str(count) for name, count in counts.items()}
        group = SubElement(top, "testsuite", {"name": suite, **texts})
        for case in cases:
            _junit_case(group, case)
    indent(top)
    return tostring(top, encoding="unicode", xml_declaration=True)


def _junit_case(group: Element, case: Case) -> None:
    entry = SubElement(group, "testcase", classname=case.suite, name=_text(case.rule))
    texts = "\n".join(_text(result.text) for result in case.results)
    if case.skipped:
        SubElement(entry, "skipped", message=_text(case.skipped))
    elif case.results and case.suite != INSIGHTS:
        head = _text(case.results[0].text)
        SubElement(entry, "failure", message=head, type=case.suite).text = texts
    elif case.results:
        SubElement(entry, "system-out").text = texts


def sarif(path: str, checked: Sequence[Case]) -> dict[str, object]:
    """Return the cases as a log of SARIF 2.1.0 (OASIS standard, section 3): rules and results."""
    failed = [case for case in checked if case.results]
    rules = [
        {"id": _rule(case), "shortDescription": {"text": _message(case.meaning or case.rule)},
         "defaultConfiguration": {"level": case.results[0].level}}
        for case in failed
    ]  # fmt: skip
    results = [
        {
            "ruleId": _rule(case),
            "ruleIndex": at,
            "level": result.level,
            "message": {"text": _message(result.text)},
            "locations": [_location(path, result)],
            "partialFingerprints": {"tilescope/v1": f"{_rule(case)} {_text(result.about)}".strip()},
        }
        for at, case in enumerate(failed)
        for result in case.results
    ]
    driver = {"name": "tilescope", "version": VERSION, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION, "runs": [run]}


def _rule(case: Case) -> str:
    return f"{case.suite}/{_text(case.rule)}"


def _location(path: str, result: Result) -> dict[str, object]:
    """Return the line of the program, or the file of the report where none is known."""
    source = _source(result)
    file = Path(source or _report_file(path)).as_posix()
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(file)}}
    if source and result.line > 0:
        place["region"] = {"startLine": result.line}
    return {"physicalLocation": place}


def _source(result: Result) -> str:
    """Look up a file of the program among git's files, as reports hold no folders.

    Of several with its name it is the one that has the function before the line.
    """
    name = result.file
    if not name or Path(name).is_absolute() or ".." in Path(name).parts:
        return ""
    if Path(name).is_file():
        return name
    with suppress(PvaError, OSError, UnicodeDecodeError):
        files = git(Path.cwd(), "ls-files", "--", f":(glob)**/{name}").splitlines()
        matching = files if len(files) == 1 else [file for file in files if _has(file, result)]
        return matching[0] if len(matching) == 1 else ""
    return ""


def _has(file: str, result: Result) -> bool:
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    before = lines[: max(result.line, 0)]
    return len(before) == result.line and any(f"def {result.function}(" in one for one in before)


def _report_file(path: str) -> str:
    with suppress(ValueError):  # on another drive
        path = os.path.relpath(path)
    file = Path(path, "profile.pop")
    return str(file) if file.is_file() else path


def _text(text: str) -> str:
    """Spell out what XML has no letters for, and what steers terminals."""
    return printable(str(text))


def _message(text: str) -> str:
    """Write a text as a message in which no name is a link or a place to fill."""
    plain = _text(text).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return plain.replace("{", "{{").replace("}", "}}")
