"""Measure exported files of a million events and of a million steps on four IPUs.

Size, processor seconds of `tilescope export`, and the time of the browser's main thread until the
timeline is drawn, and of a step of a zoom, beside the time on the wall. The network is cut.
`python -m benchmarks.export_speed [--keep DIR]`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.large_report import large_report
from benchmarks.synthetic.size import Size
from benchmarks.trace_speed import make
from dashboard.export.write import html_of
from pva.formats import registry

EVENTS = STEPS = 1_000_000
DRAWN = "[...document.querySelectorAll('.timeline')].some((one) => one.dataset.drawn > 0)"
ZOOM = """async () => {
  const { timeline } = document.querySelector('.timeline');
  for (let k = 0; k < 10; k += 1) {
    timeline.zoom(0.6);
    await new Promise((done) => setTimeout(done, 60));
  }
}"""


def inputs(folder: Path) -> Iterator[tuple[str, Path, str]]:
    """Make the trace and the report, once; give name, file and the page to open."""
    trace, report = folder / "million.pvti", folder / "steps.pop"
    if not trace.exists():
        make(trace, EVENTS)
    if not report.exists():
        registry.write(large_report(Size(steps=STEPS)), report)
    yield "1 million events", trace, "/trace"
    yield "1 million steps", report, "/execution"


def spent(session: Any) -> float:
    """Return the seconds of the main thread so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def opened(browser: Any, file: Path, place: str) -> tuple[float, float, float, str]:
    """Open a file; give seconds until it is drawn, those of a zoom, and what the page says."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    begin = time.perf_counter()
    page.goto(f"{file.as_uri()}#{place}")
    while not page.evaluate(DRAWN):  # `wait_for_function` would break the policy of the file
        page.wait_for_timeout(10)
    wall, first = time.perf_counter() - begin, spent(session)
    page.evaluate(ZOOM)
    zoom = (spent(session) - first) / 10
    note = page.inner_text(".exported-limit")
    context.close()
    return first, wall, zoom, note


def main() -> None:
    """Print a line for each input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="where the files stay")
    folder = parser.parse_args().keep or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        sys.exit("no chromium on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, source, place in inputs(folder):
            begin = time.process_time()
            file = folder / f"{source.stem}.html"
            file.write_bytes(html_of([source]))
            made = time.process_time() - begin
            first, wall, zoom, note = opened(browser, file, place)
            size = file.stat().st_size / 1e6
            print(f"{name}: {size:.1f} MB (goal 10), made in {made:.1f} s of the processor")
            print(
                f"  drawn after {first:.2f} s of the main thread, {wall:.2f} s on the wall (goal 2)"
            )
            print(f"  a step of a zoom: {1e3 * zoom:.0f} ms\n  {note}")
        browser.close()


if __name__ == "__main__":
    main()
