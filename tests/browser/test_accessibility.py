"""Someone who reads a page by ear, by keyboard or with weak eyes: axe-core finds no fault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from benchmarks.large_report import large_report
from benchmarks.synthetic.size import Size
from pva.formats import registry
from tests.browser.conftest import HEIGHT, WIDTH, serving
from tests.browser.reports import ROOT
from tests.browser.waiting import settled, whole

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LARGE = Size(ipus=4, tiles_per_ipu=64, compute_sets=50, exchanges=70, programs=2000,
             body_segments=58, variables=2000, debug_contexts=300, steps=700)  # fmt: skip
OF_REPORT = ("/summary", "/insights", "/memory", "/liveness", "/programs", "/operations", "/graph",
             "/exchange", "/execution")  # fmt: skip
REFUSED = ("/nowhere", "/summary?report=deleted")
# What is looked at of a report of each kind: the pages as they are at first, of one also what
# clicks bring, and those that are of no report.
KINDS = {
    "pipeline": (*OF_REPORT, "/", "/compare?against=full", "/trace", "/documentation",
                 "/memory?tile=0&tab=variables", "/memory?graph=map", "/liveness?step=3",
                 "/programs?program=6", "/execution?step=3", "/summary?tab=options",
                 "/insights?report=unrun", *REFUSED),
    "large": OF_REPORT,
    "full": (*OF_REPORT, "/compare?against=hostile"),
    "kineto.json": ("/summary", "/trace", "/trace?event=3"),
    "hostile": (*OF_REPORT, "/trace"),
}  # fmt: skip
GO = "link => { history.pushState(null, '', link); dispatchEvent(new PopStateEvent('popstate')); }"
IS_AT = "link => location.pathname + location.search === link"
ALL: dict[str, Any] = {"resultTypes": ["violations"]}
CONTRAST = ALL | {"runOnly": ["color-contrast"]}
BROKEN = """async options => (await axe.run(options)).violations.map(
  rule => [rule.id, rule.nodes[0].html.slice(0, 200)])"""
# The colours of a theme, of all but the plots, which the server draws anew.
COLOUR = "theme => { document.documentElement.dataset.mantineColorScheme = theme; }"

FITS = "() => document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, reports_folder: Path) -> Iterator[str]:
    """Return the URL of a server of a report of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    shutil.copytree(ROOT / "sample_reports" / "newton_pipeline_replicas", folder / "pipeline")
    (folder / "large").mkdir()
    registry.write(large_report(LARGE), folder / "large" / "profile.pop")
    (folder / "kineto.json").write_text(json.dumps(kineto()))
    own = [folder / name for name in KINDS if (folder / name).exists()]
    with serving(*own, *(reports_folder / name for name in ("full", "hostile", "unrun"))) as url:
        yield url


def kineto() -> dict[str, Any]:
    """Write a trace as PyTorch's profiler does: spans, flows, counters, names of threads."""
    names = {0: "python", 1: "thread 1 (python)", 2: "thread 2 (pt_autograd_0)"}
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": f"{'thread' if tid else 'process'}_name", "pid": 7, "tid": tid,
         "args": {"name": name}}
        for tid, name in names.items()
    ]  # fmt: skip
    for number in range(40):
        place = {"pid": 7, "tid": 1 + number % 2, "ts": 100.0 * number}
        events += [
            {"ph": "X", "cat": "cpu_op", "name": f"aten::conv{number % 4}", "dur": 90, **place},
            {"ph": "X", "cat": "python_function", "name": "step", "dur": 40, **place},
            {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": number, **place},
            {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": number, "bp": "e", **place},
            {"ph": "i", "s": "t", "name": "[memory]", "args": {"Bytes": 512}, **place},
        ]
    return {"schemaVersion": 1, "traceEvents": events}


def faults(page: Any, options: dict[str, Any]) -> list[list[str]]:
    """Return the rules that the page breaks, each with the first element that does."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    broken: list[list[str]] = page.evaluate(BROKEN, options)
    return broken


def check_page(page: Any) -> None:
    """Assert that the page has no fault, no faint colour in the dark, and fits 1,024 pixels."""
    assert faults(whole(page), ALL) == []
    page.evaluate(COLOUR, "dark")
    assert faults(settled(page), CONTRAST) == []
    page.set_viewport_size({"width": 1024, "height": HEIGHT})
    settled(page).wait_for_function(FITS)


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_no_fault_in_both_themes(
    contexts: dict[str, Any], address: str, served: str, kind: str
) -> None:
    del address  # it has the reports written
    page = contexts["light"].new_page()
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    page.emulate_media(reduced_motion="reduce")  # the colours of a theme are there at once
    page.goto(f"{served}/?report={kind}")
    found = {}
    for path in KINDS[kind]:
        link = path if "report=" in path else f"{path}{'&' if '?' in path else '?'}report={kind}"
        settled(page).evaluate(GO, link)
        page.wait_for_function(IS_AT, arg=link)
        found[f"{link}, light"] = faults(whole(page), ALL)
        assert page.locator(".fault").count() == (path in REFUSED)
        page.evaluate(COLOUR, "dark")
        found[f"{link}, dark"] = faults(settled(page), CONTRAST)
        page.evaluate(COLOUR, "light")
    page.close()
    assert {link: broken for link, broken in found.items() if broken} == {}
