"""A served report and a real Chromium; each page of a test must stay without errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from tests.browser.names import LABEL, PROGRAM, VARIABLE, Opener
from tests.browser.waiting import TIMEOUT, settled
from tests.builders import small_report, write_report

ROOT = Path(__file__).parents[2]
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTH, HEIGHT = 1280, 860
SERVED = ("small", "torn", "trace.pvti", "demo")
SLOWDOWN = float(os.environ.get("BROWSER_SLOWDOWN", "1"))  # 6: as on a machine 6 times slower
SERVE = "import sys; from dashboard.server import serve; serve(sys.argv[1:], port=0)"
POLICY = "addEventListener('securitypolicyviolation', e => console.error(e.violatedDirective))"
TRACE = f"""
import pvti
channel = pvti.createTraceChannel("<anon>")
for number in range(20):
    with pvti.Tracepoint(channel, "batch"):
        with pvti.Tracepoint(channel, {LABEL!r}):
            sum(range(20000))
"""


# Started once for all browser tests, and stopped before any other test: a running Playwright counts
# as an event loop, beside which no test could run one of its own.
_running = ExitStack()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop browser and server after the last browser test."""
    yield
    if nextitem is None or nextitem.get_closest_marker("browser") is None:
        _running.close()


def pytest_sessionfinish() -> None:
    """Stop them, too, when the tests end early."""
    _running.close()


def _absent(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"the browser tests cannot run: {reason}")
    pytest.skip(reason)


@cache
def _contexts() -> dict[str, Any]:
    """Start Chromium with a context a theme; the pages of one share what they have fetched."""
    program = shutil.which("chromium")
    if program is None:
        _absent("no chromium on the path; on Debian: apt-get install chromium")
    _running.callback(_contexts.cache_clear)
    playwright = _running.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
    _running.callback(browser.close)
    made = {theme: browser.new_context(color_scheme=theme) for theme in ("light", "dark")}
    for context in made.values():
        context.set_default_timeout(TIMEOUT)
    return made


@cache
def _address(folder: Path) -> str:
    """Serve the reports in a process of their own."""
    command = [sys.executable, "-c", SERVE, *(str(_reports(folder) / name) for name in SERVED)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    _running.enter_context(server)
    _running.callback(server.terminate)
    _running.callback(_address.cache_clear)
    assert server.stdout is not None
    return server.stdout.readline().strip().rstrip("/")


@cache
def _reports(folder: Path) -> Path:
    """Write a report with names like markup and a host trace, a damaged one, and the demo's."""
    data = small_report()
    names = data.column("variables", "name").copy()
    names[np.flatnonzero(names == "product")] = VARIABLE
    programs = data.column("programs", "name").copy()
    programs[np.flatnonzero(programs == "y/StreamCopy")] = PROGRAM
    report = write_report(
        folder / "small",
        small_report(
            variables=data.table("variables") | {"name": names},
            programs=data.table("programs") | {"name": programs},
        ),
    )
    environment = os.environ | {
        "PVTI_OPTIONS": f'{{"enable":"true","directory":"{report}"}}',
        "PYTHONPATH": str(ROOT),
    }
    subprocess.run([sys.executable, "-c", TRACE], env=environment, check=True)
    shutil.copy(next(report.glob("*.pvti")), folder / "trace.pvti")
    command = [sys.executable, "-m", "cli.main", "demo", "--no-serve", "--out", "demo"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    (folder / "torn").mkdir()
    (folder / "torn" / "profile.pop").write_bytes((report / "profile.pop").read_bytes()[:5000])
    return folder


@pytest.fixture
def contexts() -> dict[str, Any]:
    """Give the browser's contexts; skip without Chromium, and fail where CI=true."""
    return _contexts()


@pytest.fixture(scope="session")
def reports_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def address(reports_folder: Path) -> str:
    """Give the URL at which the reports are served."""
    return _address(reports_folder)


@pytest.fixture
def open_page(contexts: dict[str, Any], address: str) -> Iterator[Opener]:
    """Give a function that opens a link; at the end nothing may have gone wrong on any page."""
    wrong: list[str] = []
    pages: list[Any] = []

    def open_link(link: str, *, theme: str = "light", width: int = WIDTH) -> Any:
        page = contexts[theme].new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.on("console", lambda m: wrong.append(m.text) if m.type in {"error", "warning"} else 0)
        page.add_init_script(POLICY)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: None if _own(r.url, address) else wrong.append(r.url))
        if SLOWDOWN > 1:
            session = contexts[theme].new_cdp_session(page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
        page.goto(address + link)
        return settled(page)

    yield open_link
    for page in pages:
        page.close()
    for context in contexts.values():
        context.clear_cookies()
    assert wrong == []


def _own(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))
