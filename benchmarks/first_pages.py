"""Open the first page in several checkouts, in turn, each by a new server and a new browser.

For each checkout the least and the median of the waits by the browser's clock, from the request of
the Memory page until it shows its answer in words and as a plot; of the same page again, when the
browser has its files; and of the processor's time of the renderer until the first one is there: of
its main thread, and of the others, which compile and optimise scripts. `--report PATH` opens that
report in place of the three large ones. Linux.

    python -m benchmarks.first_pages BEFORE AFTER --keep DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.dashboard_speed import BROWSER_STARTS, FIRST, opened, reports, served

REPEATS = 4
FIGURES = ("first page", "again", "main thread", "other threads")


def spent() -> tuple[float, float]:
    """Return the milliseconds that renderers took so far: of main threads, and of all others."""
    main = others = 0.0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"--type=renderer" not in (process / "cmdline").read_bytes():
                continue
            for thread in (process / "task").iterdir():
                took = int((thread / "schedstat").read_text(encoding="utf-8").split()[0]) / 1e6
                main += took if thread.name == process.name else 0
                others += 0 if thread.name == process.name else took
        except OSError:  # it has ended
            continue
    return main, others


def open_first(playwright: Any, root: Path, paths: list[Path]) -> tuple[float, ...]:
    """Return the `FIGURES` of a checkout."""
    with served(paths, root) as (_, url), opened(playwright, url) as session:
        session.page.goto("about:blank")
        session.page.wait_for_timeout(BROWSER_STARTS)
        before = spent()
        session.page.goto(f"{url}/memory", wait_until="commit")
        first = float(session.page.evaluate(FIRST))
        after = spent()
        session.page.wait_for_timeout(3000)
        session.page.goto(f"{url}/memory", wait_until="commit")
        again = float(session.page.evaluate(FIRST))
        return first, again, after[0] - before[0], after[1] - before[1]


def measure(checkouts: list[Path], paths: list[Path]) -> Iterator[str]:
    """Open in turn; return the lines of the table."""
    from playwright.sync_api import sync_playwright

    found: dict[Path, list[tuple[float, ...]]] = {root: [] for root in checkouts}
    with sync_playwright() as playwright:
        for _ in range(REPEATS):
            for root in checkouts:
                found[root].append(open_first(playwright, root, paths))
    yield "| figure, ms | checkout | least | median |\n| --- | --- | ---: | ---: |"
    for place, figure in enumerate(FIGURES):
        for root in checkouts:
            values = [row[place] for row in found[root]]
            yield f"| {figure} | {root.name} | {min(values):,.0f} | {median(values):,.0f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", type=Path, nargs="+", help="directories with this project")
    parser.add_argument("--keep", type=Path, required=True, help="a directory that keeps reports")
    parser.add_argument("--report", type=Path, help="a report to open in place of the large ones")
    arguments = parser.parse_args()
    paths = [arguments.report] if arguments.report else reports(arguments.keep)
    for line in measure(arguments.checkouts, paths):
        print(line, flush=True)


if __name__ == "__main__":
    main()
