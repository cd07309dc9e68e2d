"""Use the dashboard in headless Chromium on the large report; print goal and figure of each wait.

Starts `tilescope serve` on three reports of `benchmarks.large_report`, opens every page, switches
between all pages, and hovers, chooses and filters, each as a reader does it. A wait ends when the
page shows the answer, no request is under way and the plots are drawn. Each is the least of several
times by the browser's clock, so that little of what else the machine does is in it. `--keep DIR`
keeps the reports. Linux.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
REPORTS = ("large-1", "large-2", "large-3")
REPEATS = 4
BROWSER_STARTS = 5000  # milliseconds
CHROMIUM = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

# Counts the requests under way, and tells how long after the next input the page was at rest.
RECORDER = """(() => {
  const seen = { busy: 0 };
  const fetched = window.fetch;
  window.fetch = (...request) => {
    seen.busy += 1;
    return fetched(...request).finally(() => setTimeout(() => (seen.busy -= 1), 0));
  };
  const drawn = () =>
    [...document.querySelectorAll("#page .js-plotly-plot")].every((plot) => plot._fullLayout);
  window.rests = (ready) =>
    new Promise((resolve) => {
      let begin = null, last = null;
      const start = (event) => { begin = begin ?? event.timeStamp; };
      for (const kind of ["pointerdown", "pointermove", "keydown"]) {
        window.addEventListener(kind, start, { capture: true, once: true });
      }
      const look = (now) => {
        const rest = begin !== null && seen.busy === 0 && drawn() && ready();
        if (!rest) last = null;
        else if (last === null) last = { at: performance.now(), frames: 0 };
        else if (++last.frames > 4) return resolve(last.at - begin);
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
})()"""


# The milliseconds from the request of a page until it shows its answer in words and as a plot.
FIRST = """() => new Promise((resolve) => {
  const wanted = ["#page .headline", "#memory-plot .scatterlayer .js-line"];
  const look = () => {
    if (wanted.every((selector) => document.querySelector(selector))) resolve(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""


@dataclass
class Session:
    """A page of the browser with what it fetched: the bytes of each answer, of rows, too."""

    page: Any
    url: str
    payloads: dict[str, int] = field(default_factory=dict)

    def fetched(self, response: Any) -> None:
        """Note the size of the answer to a callback or to a table."""
        if response.status != 200:
            return
        if "_dash-update-component" in response.url:
            name = json.loads(response.request.post_data)["output"]
        elif "/rows/" in response.url:
            name = response.url.rpartition("/")[2]
        else:
            return
        size = int(response.headers.get("content-length", 0))
        self.payloads[name] = max(self.payloads.get(name, 0), size)

    def open(self, link: str) -> None:
        """Open a link and wait until it is at rest."""
        self.page.goto(self.url + link)
        self.page.wait_for_selector("#page .headline")
        self.page.wait_for_load_state("networkidle")
        self.page.wait_for_timeout(300)

    def wait(self, act: Callable[[], object], ready: str = "true") -> float:
        """Act, and give the milliseconds until `ready` (JavaScript) holds and all is at rest."""
        self.page.evaluate(f"void (window.waited = window.rests(() => {ready}))")
        act()
        return float(self.page.evaluate("window.waited"))


@contextmanager
def served(paths: list[Path], root: Path = ROOT) -> Iterator[tuple[Any, str]]:
    """Serve reports in a process of their own, by a checkout; give it and the URL."""
    command = [sys.executable, "-m", "cli.main", "serve", *map(str, paths), "--port", "0"]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = None
        while found is None:
            found = re.search(r"http://\S+", server.stdout.readline())
        try:
            yield server, found[0].rstrip("/")
        finally:
            server.terminate()


@contextmanager
def opened(playwright: Any, url: str) -> Iterator[Session]:
    """Start a browser that has nothing of the dashboard; give a page of it."""
    program = shutil.which("chromium")
    browser = playwright.chromium.launch(executable_path=program, args=list(CHROMIUM))
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.add_init_script(RECORDER)
    session = Session(page, url)
    page.on("response", session.fetched)
    page.set_default_timeout(120_000)
    try:
        yield session
    finally:
        browser.close()


def held(process: int) -> float:
    """Return the memory that a process holds, in MB; Linux."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024 / 1e6


def first_page(session: Session) -> float:
    """Return how long the Memory page takes when nothing is open and nothing cached.

    The browser is there by then, as a reader's is: in its first seconds Chromium loads and compiles
    some 150 scripts of its own.
    """
    session.page.goto("about:blank")
    session.page.wait_for_timeout(BROWSER_STARTS)
    session.page.goto(session.url + "/memory", wait_until="commit")
    return float(session.page.evaluate(FIRST))


def switches(session: Session) -> dict[str, float]:
    """Return how long a click in the menu takes, by page; each page was open before."""
    session.open("/memory")
    titles = session.page.locator(".nav-link").all_inner_texts()
    times: dict[str, list[float]] = {title: [] for title in titles}
    for _ in range(REPEATS + 1):
        for title in titles:
            times[title].append(switch(session, title))
    return {title: min(found[1:]) for title, found in times.items()}


def switch(session: Session, title: str) -> float:
    """Click a page in the menu; return the milliseconds until it is at rest."""
    link = session.page.locator(f".nav-link:text-is('{title}')")
    ready = f"document.querySelector('.nav-link.active')?.textContent === {title!r}"
    return session.wait(link.click, f"{ready} && document.querySelector('#page h1')")


def hover(session: Session) -> float:
    """Return how long it is from moving over the plot of memory to the words beside the pointer."""
    session.open("/memory")
    box = session.page.locator("#memory-plot .nsewdrag").first.bounding_box()
    times = []
    for repeat in range(REPEATS):
        session.page.mouse.move(5, 5)
        session.page.wait_for_timeout(100)
        x = box["x"] + (0.2 + 0.1 * repeat) * box["width"]
        ready = "document.querySelector('#memory-plot .hoverlayer').childElementCount"
        move = lambda x=x: session.page.mouse.move(x, box["y"] + 150)  # noqa: E731
        times.append(session.wait(move, ready))
    return min(times)


def select(session: Session) -> float:
    """Return how long it is from a click on a tile to its details."""
    session.open("/memory")
    return min(choose(session, 0.2 + 0.1 * repeat) for repeat in range(REPEATS))


def choose(session: Session, share: float) -> float:
    """Click the tile at a share of the plot; return the milliseconds until its details show."""
    box = session.page.locator("#memory-plot .nsewdrag").first.bounding_box()
    for apart in (3, 0):  # the words of a plot that has just been drawn come at the second move
        session.page.mouse.move(box["x"] + share * box["width"] + apart, box["y"] + 100)
        session.page.wait_for_timeout(300)
    before = session.page.locator("#memory-details h2").inner_text()
    ready = f"document.querySelector('#memory-details h2')?.textContent !== {before!r}"
    return session.wait(lambda: (session.page.mouse.down(), session.page.mouse.up()), ready)


def filter_rows(session: Session) -> float:
    """Return how long it is from Enter in the filter to the rows, of 40,000 variables."""
    session.open("/memory?tab=variables")
    box = session.page.get_by_label("Filter variables")
    times = []
    for repeat in range(REPEATS):
        session.page.wait_for_selector("#memory-rows .ag-cell >> text=/./")
        box.fill(str(repeat + 1))
        session.page.wait_for_timeout(600)
        names = "[...document.querySelectorAll('#memory-rows .ag-cell[col-id=name]')]"
        wanted = f"each.textContent.includes('{repeat + 1}')"
        ready = f"{names}.length && {names}.every((each) => {wanted})"
        times.append(session.wait(lambda: box.press("Enter"), ready))
    return min(times)


def visit_all(session: Session) -> None:
    """Open every page of every report, with the tabs of the Memory page."""
    for report in REPORTS:
        session.open(f"/memory?report={report}")
        for link in session.page.locator(".nav-link").all():
            link.click()
            session.page.wait_for_load_state("networkidle")
            session.page.wait_for_timeout(200)
    for search in ("breakdown=category", "graph=map", "graph=variables", "tab=variables&tile=3",
                   "tab=variables&lies=address&tile=3", "tab=exchanges&tile=1,2,3"):  # fmt: skip
        session.open(f"/memory?{search}")


def reports(folder: Path) -> list[Path]:
    """Make the large report three times, each in a directory of its own."""
    paths = [folder / name for name in REPORTS]
    for path in paths:
        path.mkdir(parents=True, exist_ok=True)
        if (path / "profile.pop").exists():
            continue
        made = paths[0] / "profile.pop"
        if path == paths[0]:
            command = [sys.executable, "-m", "benchmarks.large_report", str(made)]
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        else:
            shutil.copy(made, path / "profile.pop")
    return paths


def row(figure: str, found: float, goal: float, unit: str = "ms") -> str:
    """Write a line of the table."""
    verdict = "pass" if found <= goal else "MISS"
    return f"| {figure} | {found:,.0f} {unit} | <= {goal:,.0f} {unit} | {verdict} |"


def measure(folder: Path) -> Iterator[str]:
    """Measure everything; give the lines of the table."""
    from playwright.sync_api import sync_playwright

    yield "| figure | measured | goal | |\n| --- | ---: | ---: | --- |"
    with sync_playwright() as playwright:
        firsts = []
        for _ in range(REPEATS):
            with served(reports(folder)) as (_, url), opened(playwright, url) as session:
                firsts.append(first_page(session))
        yield row("first page, after the server is up", min(firsts), 700)
        yield f"| the slowest of the {REPEATS} | {max(firsts):,.0f} ms |  |  |"
        with served(reports(folder)) as (server, url), opened(playwright, url) as session:
            yield from used(session, server)


def used(session: Session, server: Any) -> Iterator[str]:
    """Measure what is done with pages that were open before."""
    for title, took in switches(session).items():
        yield row(f"switch to {title}", took, 120)
    yield row("hover over the plot of memory", hover(session), 100)
    yield row("choose a tile", select(session), 100)
    yield row("filter 40,000 variables", filter_rows(session), 100)
    visit_all(session)
    largest = max(session.payloads, key=session.payloads.__getitem__)
    words = largest.strip(".").split("...")[0]
    size = session.payloads[largest] / 1e3
    yield row(f"largest answer ({words})", size, 300, "kB")
    yield row("memory of the server, three reports", held(server.pid), 500, "MB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="a directory that keeps the reports")
    folder = parser.parse_args().keep
    with tempfile.TemporaryDirectory() as temporary:
        for line in measure(folder or Path(temporary)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
