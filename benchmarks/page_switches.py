"""Switch between all pages of the large report in several checkouts, in turn: which is faster?

Each checkout serves the same reports to a browser of its own; a page of one is followed by the same
page of the next, so that what else the machine does meets all of them. For each page the least and
the median of the waits by the browser's clock, and of the processor's time of the browser's main
thread, which counts less of what others do (Chromium's `Performance.getMetrics` in thread ticks).
`--tiles` chooses tiles on the Memory page, one after the other, in place of switching.

    python -m benchmarks.page_switches BEFORE AFTER --keep DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.dashboard_speed import Session, choose, opened, reports, served, switch

REPEATS = 4
TILES = 16
Act = Callable[[Session], float]


def busy(client: Any) -> float:
    """Return the milliseconds of the processor that the main thread of a page took."""
    metrics = client.send("Performance.getMetrics")["metrics"]
    return float(1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def acts(titles: list[str], *, tiles: bool) -> list[tuple[str, Act]]:
    """List what is done in turn, each by the name of its line: first what is not counted."""
    if tiles:
        shares = [0.15, *(0.2 + 0.5 * n / TILES for n in range(TILES))]
        return [("a tile", partial(choose, share=share)) for share in shares]
    return (REPEATS + 1) * [(title, partial(switch, title=title)) for title in titles]


def measure(checkouts: list[Path], folder: Path, *, tiles: bool) -> Iterator[str]:
    """Switch in turn, or choose tiles; return the lines of the table."""
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        sessions: list[tuple[Session, Any]] = []
        for root in checkouts:
            _, url = stack.enter_context(served(reports(folder), root))
            session = stack.enter_context(opened(playwright, url))
            session.open("/memory")
            client = session.page.context.new_cdp_session(session.page)
            client.send("Performance.enable", {"timeDomain": "threadTicks"})
            sessions.append((session, client))
        titles = sessions[0][0].page.locator(".nav-link").all_inner_texts()
        found: dict[tuple[str, int], list[tuple[float, float]]] = {}
        for title, act in acts(titles, tiles=tiles):
            for number, (session, client) in enumerate(sessions):
                session.page.bring_to_front()
                before = busy(client)
                took = act(session)
                found.setdefault((title, number), []).append((took, busy(client) - before))
        yield "| to | checkout | least, ms | median, ms | processor, least | median |"
        yield "| --- | --- | ---: | ---: | ---: | ---: |"
        for title in dict(acts(titles, tiles=tiles)):
            for number, root in enumerate(checkouts):
                waits, spent = zip(*found[title, number][1:], strict=True)
                figures = (min(waits), median(waits), min(spent), median(spent))
                cells = " | ".join(f"{figure:,.0f}" for figure in figures)
                yield f"| {title} | {root.name} | {cells} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", type=Path, nargs="+", help="directories with this project")
    parser.add_argument("--keep", type=Path, required=True, help="a directory that keeps reports")
    parser.add_argument("--tiles", action="store_true", help="choose tiles in place of pages")
    arguments = parser.parse_args()
    for line in measure(arguments.checkouts, arguments.keep, tiles=arguments.tiles):
        print(line, flush=True)


if __name__ == "__main__":
    main()
