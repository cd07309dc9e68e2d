"""A served report and a real Chromium; each page of a test must stay without errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.names import LABEL, PROGRAM, VARIABLE, Opener
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
TIMEOUT = 15_000  # milliseconds
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


def _absent(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"the browser tests cannot run: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Start Chromium once; skip without it, and fail where CI=true."""
    program = shutil.which("chromium")
    if program is None:
        _absent("no chromium on the path; on Debian: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _absent("no playwright; pip install playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report with names like markup and a host trace, a damaged one, and the demo's."""
    folder = tmp_path_factory.mktemp("reports")
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


@pytest.fixture(scope="module")
def address(reports: Path) -> Iterator[str]:
    """Serve the reports in a process of their own; give the URL."""
    command = [sys.executable, "-c", SERVE, *(str(reports / name) for name in SERVED)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip().rstrip("/")
        server.terminate()


@pytest.fixture(scope="module")
def contexts(chromium: Any) -> dict[str, Any]:
    """Make a browser context a theme; pages of one share what they have fetched."""
    made = {theme: chromium.new_context(color_scheme=theme) for theme in ("light", "dark")}
    for context in made.values():
        context.set_default_timeout(TIMEOUT)
    return made


@pytest.fixture
def open_page(contexts: dict[str, Any], address: str) -> Iterator[Opener]:
    """Give a function that opens a link; at the end nothing may have gone wrong on any page."""
    wrong: list[str] = []
    pages = []

    def open_link(link: str, *, theme: str = "light", width: int = WIDTH) -> Any:
        page = contexts[theme].new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": HEIGHT})
        page.on("console", lambda m: wrong.append(m.text) if m.type in {"error", "warning"} else 0)
        page.add_init_script(POLICY)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: None if _own(r.url, address) else wrong.append(r.url))
        page.goto(address + link)
        page.wait_for_selector("#page > *")
        return page

    yield open_link
    for page in pages:
        page.close()
    for context in contexts.values():
        context.clear_cookies()
    assert wrong == []


def _own(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))
