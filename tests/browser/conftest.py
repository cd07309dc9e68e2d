"""A served report and a real Chromium; each page of a test must stay without errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.names import Opener
from tests.browser.reports import ROOT, SERVED, write_all
from tests.browser.waiting import TIMEOUT, settled

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
SLOWDOWN = float(os.environ.get("BROWSER_SLOWDOWN", "1"))  # 6: as on a machine 6 times slower
SERVE = "import sys; from dashboard.server import serve; serve(sys.argv[1:], port=0)"
POLICY = "addEventListener('securitypolicyviolation', e => console.error(e.violatedDirective))"

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
    """Start a Chromium for each theme; it keeps what it fetched and compiled for the next page."""
    program = shutil.which("chromium")
    if program is None:
        _absent("no chromium on the path; on Debian: apt-get install chromium")
    _running.callback(_contexts.cache_clear)
    playwright = _running.enter_context(sync_playwright())
    contexts: dict[str, Any] = {}
    for theme in ("light", "dark"):
        # Only a profile on disk keeps compiled scripts, which are half of opening a page.
        profile = _running.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
        contexts[theme] = playwright.chromium.launch_persistent_context(
            profile, executable_path=program, args=ARGUMENTS, color_scheme=theme
        )
        contexts[theme].set_default_timeout(TIMEOUT)
        _running.callback(contexts[theme].close)
    return contexts


@contextmanager
def serving(*paths: Path) -> Iterator[str]:
    """Serve reports in a process of their own; give the URL."""
    command = [sys.executable, "-c", SERVE, *map(str, paths)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip().rstrip("/")
        finally:
            server.terminate()


@cache
def _address(folder: Path) -> str:
    _running.callback(_address.cache_clear)
    return _running.enter_context(serving(*(_reports(folder) / name for name in SERVED)))


@cache
def _reports(folder: Path) -> Path:
    write_all(folder)
    return folder


@pytest.fixture
def contexts() -> dict[str, Any]:
    """Return the browser's contexts; skip without Chromium, and fail where CI=true."""
    return _contexts()


@pytest.fixture(scope="session")
def reports_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def address(reports_folder: Path) -> str:
    """Return the URL at which the reports are served."""
    return _address(reports_folder)


@pytest.fixture
def open_page(contexts: dict[str, Any], address: str) -> Iterator[Opener]:
    """Return a function that opens a link; at the end nothing may have gone wrong on any page."""
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
        # What the browser keeps of one test (heights, open parts) is not there for the next one.
        if page.url.startswith(address):
            page.evaluate("localStorage.clear()")
        page.close()
    for context in contexts.values():
        context.clear_cookies()
    assert wrong == []


def _own(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))
