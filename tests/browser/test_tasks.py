"""Ten tasks of a user on real reports: so many clicks at most, and the answer on the screen.

The reports: SqueezeNet in a pipeline over four IPUs, which a loader feeds, ResNet-50, ZFNet on an
IPU that is too small for it, and AlexNet as PyTorch's profiler recorded it. The models are those
that onnx ships.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import onnx.backend.test
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HEIGHT, WIDTH, serving
from tests.browser.names import Opener
from tests.browser.reports import ROOT
from tests.browser.waiting import settled

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

LIGHT = Path(onnx.backend.test.__file__).parent / "data" / "light"
PIPELINE = ROOT / "tests" / "browser" / "squeezenet_pipeline.py"
PROGRAMS = {
    "pipeline": ("--sdk", PIPELINE),
    "resnet": (LIGHT / "light_resnet50.onnx", "--no-values"),
    "tight": (LIGHT / "light_zfnet512.onnx", "--no-values", "--target", "mk1"),
}
TRACE = "alexnet.pt.trace.json.gz"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Return what serves the real reports, once they are asked for, and gives the URL."""
    folder = tmp_path_factory.mktemp("real")
    running = ExitStack()
    known: list[str] = []

    def serve() -> str:
        if not known:
            for name, arguments in PROGRAMS.items():
                _simulate(*arguments, "--out", folder / name)
            paths = [*(folder / name for name in PROGRAMS), ROOT / "tests" / "traces" / TRACE]
            known.append(running.enter_context(serving(*paths)))
        return known[0]

    with running:
        yield serve


def _simulate(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "cli.main", "simulate", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr  # 1: it does not fit


class Task:
    """A page on which clicks are counted."""

    def __init__(self, page: Any, most: int) -> None:
        self.page, self._left = settled(page), most

    def click(self, place: Any) -> None:
        """Click, where there are clicks left."""
        assert self._left > 0
        self._left -= 1
        place.click()
        settled(self.page)

    def menu(self, words: str) -> None:
        """Click an entry of the menu."""
        self.click(self.page.locator("#navigation").get_by_role("link", name=words, exact=True))

    def row(self, table: str) -> Any:
        """Return the first cell of the first row of a table, once it is filled."""
        cell = self.page.locator(f"#{table} .ag-center-cols-container .ag-row .ag-cell").first
        expect(cell).to_have_text(re.compile(r"\w"))
        return cell

    def first_text(self, table: str) -> str:
        """Return the text of a table's first cell: read in the moment that it holds one."""
        cell = f"#{table} .ag-center-cols-container .ag-row .ag-cell"
        text = "cell => document.querySelector(cell)?.innerText.trim() || null"
        return str(self.page.wait_for_function(text, arg=cell).json_value())

    def shows(self, place: str, answer: str) -> None:
        """Hold that a part of the page says what the task asked for."""
        expect(self.page.locator(place)).to_contain_text(re.compile(answer, re.DOTALL))


@pytest.fixture
def begin(contexts: dict[str, Any], served: Callable[[], str]) -> Iterator[Callable[..., Task]]:
    """Return what begins a task on a real report, with so many clicks."""
    pages: list[Any] = []

    def open_report(report: str, most: int, path: str = "/summary") -> Task:
        page = contexts["light"].new_page()
        pages.append(page)
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
        page.goto(f"{served()}{path}?report={report}" if report else f"{served()}{path}")
        return Task(page, most)

    yield open_report
    for page in pages:
        page.close()


def _share(text: str) -> float:
    """Return a share of the text of a cell in percent, 0 for other cells."""
    found = re.fullmatch(r"([\d.]+)\s%", text)
    return float(found[1]) if found else 0.0


def test_which_variable_is_the_largest_at_the_peak_and_where_was_it_created(
    begin: Callable[..., Task],
) -> None:
    task = begin("pipeline", 2)
    task.menu("Liveness")
    cell = task.row("liveness-variables")
    name = task.first_text("liveness-variables")
    task.click(cell)
    expect(task.page.locator(".drawer .subject")).to_have_text(name)
    line = next(n for n, text in enumerate(PIPELINE.read_text().splitlines(), 1)
                if "prepareDevice()" in text)  # fmt: skip
    task.shows(".drawer", rf"Created at\s*{PIPELINE.name}:{line} in build")


def test_which_three_layers_are_most_expensive_and_why(begin: Callable[..., Task]) -> None:
    task = begin("resnet", 2)
    task.menu("Operations")
    share = r"[\d.]+\s%"
    one = rf"[\w/]+ {share} \({share} [\w ]+(?:, {share} [\w ]+)?\)"
    task.shows(".headlines .more", rf"Most cycles: {one}, {one} and {one}\.")
    task.shows(".headlines .more", r"\(\d[\d.]+\s% host exchange\)")  # the image comes first


def test_why_is_ipu_1_idle(begin: Callable[..., Task]) -> None:
    task = begin("pipeline", 1)
    task.menu("Execution")
    idle = task.page.locator("#execution-idle .ag-center-cols-container .ag-row")
    row = idle.filter(has=task.page.locator("[col-id=ipu]", has_text=re.compile(r"^IPU 1$|^1$")))
    expect(row).to_have_count(1)
    expect(row.locator("[col-id=waits_for]")).to_have_text("IPU 0")
    expect(row.locator("[col-id=meanwhile]")).to_have_text("input/data_0")
    shares = [_share(text) for text in row.locator(".ag-cell").all_inner_texts()]
    assert sum(shares) == pytest.approx(100, abs=0.4)  # its causes and what it computes
    assert 25 < max(shares) < 50  # the largest of them, exchange between IPUs


def test_what_changed_between_two_reports(begin: Callable[..., Task]) -> None:
    task = begin("pipeline", 3)
    task.menu("Compare")
    task.click(task.page.get_by_label("Report to compare with").first)
    task.click(task.page.get_by_role("option", name="resnet", exact=True))
    task.shows("#compare-answer", r"resnet takes [\d,]+ cycles less")
    task.page.locator("#compare-way-plot .plot-container").wait_for()
    task.shows("#compare-rows", r"The rows add up to it")


def test_which_host_function_delays_the_device(begin: Callable[..., Task]) -> None:
    task = begin("pipeline", 1)
    task.menu("Device and host")
    task.shows(".headlines", r"What delays it most is loader: decode images")


def test_does_it_fit_and_what_lacks_where(begin: Callable[..., Task]) -> None:
    task = begin("tight", 1)
    task.menu("Insights")
    task.shows(".headline", r"Does not fit: [\d,]+ tiles out of memory; the fullest tile \(tile \d")
    task.shows("#insights-findings", r"[\d.]+\skB must go from tile \d+; the findings save at most")


def test_who_reads_this_variable_last(begin: Callable[..., Task]) -> None:
    task = begin("resnet", 2)
    task.menu("Liveness")
    task.click(task.row("liveness-variables"))
    task.shows(".drawer", r"Read by\s*\d+ programs?, last .*\w")


def test_which_exchange_moves_most_and_between_whom(begin: Callable[..., Task]) -> None:
    task = begin("pipeline", 2)
    task.menu("Exchange")
    task.shows(
        "#exchange-answer",
        r"/ExchangePre moves most: [\d.]+\sMB in an execution, on IPU \d: [\d,]+ tiles send",
    )
    task.shows("#exchange-answer", r"between IPUs, most from IPU 0 to IPU 1 \([\d.]+\s%\)")
    task.click(task.page.get_by_text("IPU by IPU"))
    cells = task.page.locator("#exchange-matrix .annotation")
    expect(cells.nth(6)).to_contain_text("B")  # of four IPUs, and three pairs of neighbours


def test_where_is_the_critical_path(begin: Callable[..., Task]) -> None:
    task = begin("pipeline", 1)
    task.menu("Execution")
    task.shows(
        "#execution-reasons",
        r"The critical path goes through IPU 0 for [\d.]+\s% .* and is longest in input/data_0",
    )


def test_what_does_this_trace_spend_its_time_in(begin: Callable[..., Task]) -> None:
    task = begin("", 1, "/")  # a trace alone is opened from Start
    task.click(task.page.get_by_role("link", name=TRACE, exact=True))
    task.shows(".headlines", r"cudaDeviceGetStreamPriorityRange took the most by itself: 29\.9\ss")
    expect(task.row("trace-label-table")).to_have_text("cudaDeviceGetStreamPriorityRange")


def test_the_drawer_is_in_the_address_and_is_closed_by_the_keyboard(open_page: Opener) -> None:
    page = settled(open_page("/liveness?report=demo&variable=3"))
    close = page.locator(".drawer").get_by_role("link", name="Close")
    close.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".drawer")).to_have_count(0)
    assert "variable=" not in page.url


def test_which_findings_are_worth_most(begin: Callable[..., Task]) -> None:
    task = begin("pipeline", 1)
    task.menu("Insights")
    first = task.page.locator(".first-findings > li")
    expect(first).to_have_count(3)
    expect(first.first).to_contain_text("at most")


@pytest.mark.parametrize(
    ("link", "table"),
    [
        ("/operations?report=demo", "operations-table"),
        ("/exchange?report=demo", "exchange-rows"),
        ("/compare?report=demo&against=demo-even&tab=operations", "compare-cycles"),
        ("/compare?report=demo&against=demo-even&by=variables", "compare-bytes"),
    ],
)
def test_a_row_opens_the_drawer_and_is_marked(open_page: Opener, link: str, table: str) -> None:
    task = Task(open_page(link), 1)
    task.click(task.row(table))
    expect(task.page.locator(".drawer .subject")).to_have_count(1)
    expect(task.page.locator(f"#{table} .ag-center-cols-container .ag-row.chosen")).to_have_count(1)
