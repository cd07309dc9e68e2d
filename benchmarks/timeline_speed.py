"""Measure the timelines: ten million host events on 64 threads, a million steps on 4 IPUs.

    python -m benchmarks.timeline_speed [--events 10000000] [--steps 1000000] [--plotly]

A server is started for each, and headless Chromium pans and zooms by a script. Goals: first paint
under 1 s after the page opens, by the browser's clock, once the server has the timeline, and a
sketch of the host's when it has read nothing; p95 of a
frame's script at most 16 ms; p95 of the server at most 5 ms a viewport, and 100 kB and 4,000
rectangles; memory above the idle server at most 48 bytes an event and 200 bytes a step. A name is
typed into the search of the events, and a pan with at least 1,000 matches framed has no task of
more than 50 ms and at most 16 ms of script a frame. The steps are filtered by a name. `--plotly`
draws what one viewport holds, and 10,000 events, as a Plotly bar chart of the same data beside it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_report import large_report
from benchmarks.synthetic.size import Size
from pva.formats import registry
from pvti import schema

THREADS, NAMES, DEPTH = 64, 500, 6
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SERVE = """
import sys
from dashboard import warm_up
from dashboard.server import serve
warm_up.MAX_BYTES *= int(sys.argv[1])
serve(sys.argv[2:], port=0)
"""
MOVES = 120
SEARCHED = "operation"  # in the name of every event
MANY = 1000  # matches framed
TALL = 2600  # pixels, so that there is room for as many
FILTERS = ("name~17", "name~1")  # of the steps: some, many
LONG_TASKS = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((e) => e.duration)))
    .observe({ type: "longtask" });
}"""
FRAMED = """([text, many]) => {
  const { searched, hits, framed } = document.querySelector(".timeline").timeline;
  return searched === text && hits && hits.row.length >= many && framed >= many;
}"""
WHOLE = """() => { const { layout, data } = document.querySelector(".timeline").timeline;
  return layout && !layout.sketch && data; }"""
PATIENCE = 300_000  # milliseconds
OPENED = 3  # times that a page is opened anew
FIRST = """() => new Promise((resolve) => {
  const look = () => {
    if (document.querySelector(".timeline[data-drawn]")) resolve(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""


def made_trace(path: Path, events: int, seed: int = 0) -> None:
    """Write a `.pvti` of nested events: each outer event holds a few of each depth below."""
    random = np.random.default_rng(seed)
    file = sqlite3.connect(path)
    for statement in schema.create_statements():
        file.execute(statement)
    file.execute(schema.insert_statement("channels"), (1, "made"))
    labels = [(n + 1, 1, f"layer{n % 50}/operation{n}") for n in range(NAMES)]
    file.executemany(schema.insert_statement("labels"), labels)
    last, chunk = 0, 0
    each = events // THREADS
    for thread in range(THREADS):
        file.execute(
            schema.insert_statement("threads"), (thread + 1, 1, 100 + thread, f"worker {thread}")
        )
        begin, end, label = _nested(random, each)
        order = np.lexsort((-begin, end))
        begin, end, label = begin[order], end[order], label[order]
        last = max(last, int(end[-1]))
        for first in range(0, each, schema.CHUNK_RECORDS):
            part = slice(first, first + schema.CHUNK_RECORDS)
            records = np.zeros(len(begin[part]), dtype="<u8,<u4,<u4")
            records["f0"], records["f1"] = begin[part], (end - begin)[part]
            records["f2"] = label[part]
            data, chunk = records.tobytes(), chunk + 1
            row = (chunk, thread + 1, len(records), int(begin[part].min()), int(end[part].max()),
                   zlib.crc32(data), data)  # fmt: skip
            file.execute(schema.insert_statement("event_chunks"), row)
    file.execute(schema.insert_statement("processes"), (1, 1, "made.py", 0, 10**18, last, 1, 0))
    file.commit()
    file.close()


def _nested(random: Any, count: int) -> tuple[Any, Any, Any]:
    """Return events of DEPTH depths, each depth within the one around it, about as many of each."""
    size = count // DEPTH
    length = random.integers(2_000, 40_000, size)
    end = np.cumsum(length + random.integers(100, 20_000, size))
    begins, ends = [end - length], [end]
    for _ in range(1, DEPTH):
        around, until = begins[-1], ends[-1]
        room = until - around
        begins.append(around + (room * random.uniform(0.02, 0.3, size)).astype(np.int64))
        ends.append(until - (room * random.uniform(0.02, 0.3, size)).astype(np.int64))
    more = count - DEPTH * size
    begins.append(ends[0][:more])
    ends.append(ends[0][:more] + 50)
    begin, end = np.concatenate(begins), np.concatenate(ends)
    return begin, end, random.integers(1, NAMES + 1, len(begin))


@contextmanager
def served(path: Path, *, early: bool) -> Iterator[tuple[str, int]]:
    """Serve a report or trace, its pages made ready or not; give the URL and the process."""
    command = [sys.executable, "-c", SERVE, str(int(early)), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip().rstrip("/"), server.pid
        finally:
            server.terminate()


def memory(process: int) -> int:
    """Return the resident bytes of a process."""
    pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096


def processor_seconds(process: int) -> float:
    """Return how long a process was run."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def prepared(url: str, source: str, process: int) -> tuple[float, float, int]:
    """Request a timeline; return seconds, processor seconds of the server, bytes above idle."""
    from urllib.request import urlopen

    urlopen(f"{url}/").read()
    idle = memory(process)
    begin, run = time.perf_counter(), processor_seconds(process)
    urlopen(f"{url}/timeline/{source}/layout").read()
    spent = processor_seconds(process) - run
    return time.perf_counter() - begin, spent, memory(process) - idle


def viewports(
    url: str, source: str, count: int = 300, more: str = ""
) -> tuple[list[float], int, int]:
    """Ask for random windows of 40 rows, with `more` options.

    Give milliseconds of the server's processor by its own header, and most bytes and rectangles.
    """
    import json
    from http.client import HTTPConnection

    from dashboard.timeline.packing import unpack

    connection = HTTPConnection(url.removeprefix("http://"))

    def asked(link: str) -> tuple[bytes, float]:
        connection.request("GET", link)
        response = connection.getresponse()
        spent = response.headers.get("Server-Timing", "dur=0").partition("dur=")[2]
        return response.read(), float(spent)

    layout = json.loads(asked(f"/timeline/{source}/layout?{more}")[0])
    (begin, end), rows = layout["extent"], max(lane["stop"] for lane in layout["lanes"])
    random = np.random.default_rng(3)
    times, most, rectangles = [], 0, 0
    for _ in range(count):
        span = (end - begin) * 4.0 ** -random.uniform(0, 10)
        first = random.uniform(begin, end - span)
        row = int(random.integers(0, max(rows - 40, 1)))
        window = f"begin={first}&end={first + span}&pixels=2000&rows={row}-{row + 40}"
        body, spent = asked(f"/timeline/{source}?{window}&{more}")
        times.append(spent)
        most, rectangles = max(most, len(body)), max(rectangles, unpack(body)[0]["n"])
    return times, most, rectangles


def first_paint(page: Any, url: str, path: str) -> float:
    """Open a page of the dashboard after another; give seconds to the first paint."""
    page.goto(f"{url}/")
    page.wait_for_load_state("networkidle")
    page.goto(f"{url}{path}", wait_until="commit")
    return float(page.evaluate(FIRST)) / 1e3


def unread(browser: Any, url: str) -> tuple[float, float]:
    """Open the host timeline before its events are read; give seconds to a sketch, and to all."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(PATIENCE)
    seconds = first_paint(page, url, "/trace")
    page.wait_for_function(WHOLE)
    complete = float(page.evaluate("performance.now()")) / 1e3
    page.close()
    return seconds, complete


def searched(page: Any) -> tuple[float, list[float], list[float], tuple[int, int]]:
    """Search in an open page, and pan with the matches framed.

    Give seconds from the last letter to the frame with MANY matches, milliseconds of the tasks of
    more than 50, milliseconds a frame, and how many matches there are and are framed.
    """
    page.set_viewport_size({"width": 1440, "height": TALL})
    page.evaluate("() => { const t = document.querySelector('.timeline').timeline;"
                  " const [begin, end] = t.layout.extent, middle = (begin + end) / 2;"
                  " t.show(middle - 250_000, middle + 250_000); }")  # fmt: skip
    page.wait_for_timeout(2000)
    page.evaluate(LONG_TASKS)
    page.locator(".timeline-search").press_sequentially(SEARCHED[:-1])
    page.wait_for_timeout(1000)
    begin = time.perf_counter()
    page.locator(".timeline-search").press(SEARCHED[-1])
    page.wait_for_function(FRAMED, arg=[SEARCHED, MANY])
    waited = time.perf_counter() - begin
    timeline = "document.querySelector('.timeline').timeline"
    matches = page.evaluate(f"[{timeline}.hits.total, {timeline}.framed]")
    spent = frames(page, moves=((30, 0), (-30, 0)))
    return waited, page.evaluate("longTasks"), spent, tuple(matches)


ZOOM_AND_PAN = (*16 * [(0, -240)], *10 * [(60, 0)], *14 * [(0, 240)])


def frames(page: Any, moves: Sequence[tuple[int, int]] = ZOOM_AND_PAN) -> list[float]:
    """Turn the wheel over an open page; give milliseconds a frame."""
    page.wait_for_timeout(500)
    page.evaluate("document.querySelector('.timeline').timeline.frames.length = 0")
    box = page.locator(".timeline-canvas").bounding_box()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 100)
    for move in range(MOVES):
        page.mouse.wheel(*moves[move % len(moves)])
        page.wait_for_timeout(30)
    spent: list[float] = page.evaluate("document.querySelector('.timeline').timeline.frames")
    return spent


def plotly_bars(page: Any, count: int) -> tuple[float, float]:
    """Draw bars with Plotly; give milliseconds to draw and to pan."""
    import plotly.graph_objects as go
    from plotly.offline import get_plotlyjs

    random = np.random.default_rng(0)
    end = np.cumsum(random.integers(1, 1000, count))
    bars = go.Bar(base=end, x=random.integers(1, 500, count), y=end % 40, orientation="h")
    figure = go.Figure(bars).to_json()
    page.set_content(
        f"<div id=g style='width:1400px;height:800px'></div><script>{get_plotlyjs()}</script>"
    )
    script = """async (text) => {
      const figure = JSON.parse(text), frame = () => new Promise(requestAnimationFrame);
      let begin = performance.now();
      await Plotly.newPlot('g', figure.data, figure.layout); await frame(); await frame();
      const drawn = performance.now() - begin;
      begin = performance.now();
      await Plotly.relayout('g', {'xaxis.range': [0, 1e5]}); await frame(); await frame();
      return [drawn, performance.now() - begin];
    }"""
    drawn, panned = page.evaluate(script, figure)
    return drawn, panned


def followed(path: Path, more: int = 60) -> None:
    """Print what it takes to lay out a trace that is still written, and again when it grew."""
    from dashboard.timeline.host_growth import grown_timeline
    from pva.trace import openTrace

    former, spent = None, []
    with closing(sqlite3.connect(path)) as file:
        (last,) = file.execute("SELECT last_ns + 3000000000 FROM processes").fetchone()
        (chunk,) = file.execute("SELECT max(id) FROM event_chunks").fetchone()
        for _ in range(3):
            file.execute("UPDATE processes SET finished = 0, last_ns = ?", (last,))
            file.commit()
            begin = time.process_time()
            former = grown_timeline(openTrace(path), former)
            spent.append(time.process_time() - begin)
            records = np.zeros(more, dtype="<u8,<u4,<u4")
            records["f0"] = last + np.arange(more) * 1_000_000_000 // more
            records["f1"], records["f2"] = 1000, 1
            data, last = records.tobytes(), last + 1_000_000_000
            ends = int(records["f0"][0]), int(records["f0"][-1]) + 1000
            for thread in range(THREADS):
                chunk += 1
                row = (chunk, thread + 1, more, *ends, zlib.crc32(data), data)
                file.execute(schema.insert_statement("event_chunks"), row)
    print(f"  laid out while it is written {spent[0]:7.2f} s of the processor, and")
    print(f"  again, {more * THREADS:,} events later  {spent[-1]:7.2f} s")


def both(values: list[float]) -> str:
    """Write the median and the 95th percentile."""
    return f"{np.median(values):8.2f} {np.percentile(values, 95):.2f}"


def measured(browser: Any, path: Path, source: str, page_path: str, size: int) -> None:
    """Print the line of one timeline."""
    with served(path, early=False) as (url, process):
        seconds, run, held = prepared(url, source, process)
        times, most, rectangles = viewports(url, source)
    if source == "host":
        with served(path, early=False) as (url, _):
            print(
                "  nothing read: a sketch after {:.2f} s, all {:.2f} s".format(
                    *unread(browser, url)
                )
            )
    with served(path, early=True) as (url, process):
        prepared(url, source, process)
        firsts = []
        for _ in range(OPENED):  # each with nothing that another has fetched
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            firsts.append(first_paint(page, url, page_path))
            spent = frames(page)
            found = searched(page) if source == "host" and len(firsts) == OPENED else None
            page.close()
        unit = "event" if source == "host" else "step"
        print(f"{size:,} {unit}s ({source})")
        print(f"  prepared by the server in   {seconds:8.2f} s, {run:.2f} s of its processor, once")
        print(f"  memory                      {held / size:8.1f} bytes a {unit}")
        print(f"  a viewport, p50 and p95     {both(times)} ms of the server's processor")
        print(f"  largest answer              {most / 1e3:8.1f} kB, {rectangles:,} rectangles")
        print(f"  first paint, least and most {min(firsts):8.2f} {max(firsts):.2f} s of {OPENED}")
        print(f"  script a frame, p50 and p95 {both(spent)} ms, {len(spent)} frames")
        if found:
            print_searched(*found)
        for text in FILTERS if source == "device" else ():
            print_filtered(url, text, process)


def print_searched(
    waited: float, tasks: list[float], spent: list[float], matches: tuple[int, int]
) -> None:
    """Print what a search took, and panning with its matches framed."""
    total, framed = matches
    longest = f"the longest {max(tasks):.0f} ms" if tasks else "none above 50 ms"
    print(f"  searched, last letter to {framed:,} of {total:,} matches framed {waited:8.2f} s")
    print(f"  tasks meanwhile and in a pan  {longest}; goal none above 50 ms")
    print(f"  script a frame of that pan, p50 and p95 {both(spent)} ms; goal 16")


def print_filtered(url: str, text: str, process: int) -> None:
    """Print what the filtered timeline takes."""
    import json
    from urllib.request import urlopen

    held, begin, run = memory(process), time.perf_counter(), processor_seconds(process)
    layout = json.loads(urlopen(f"{url}/timeline/device/layout?filter={text}").read())
    seconds, run = time.perf_counter() - begin, processor_seconds(process) - run
    kept, of = layout["found"]
    more = (memory(process) - held) / 1e6
    times, most, rectangles = viewports(url, "device", more=f"filter={text}")
    print(f"  filter {text}: {kept:,} of {of:,} left, made in {seconds:.2f} s ({run:.2f} s of the")
    print(f"    processor), once; {more:.0f} MB more; a viewport, p50 and p95 {both(times)} ms,")
    print(f"    {most / 1e3:.1f} kB, {rectangles:,} rectangles")


def main() -> None:
    """Make the data, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--plotly", action="store_true")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        if arguments.events:
            made_trace(Path(folder) / "made.pvti", arguments.events)
            measured(browser, Path(folder) / "made.pvti", "host", "/trace", arguments.events)
            followed(Path(folder) / "made.pvti")
        if arguments.steps:
            (Path(folder) / "large").mkdir()
            report = Path(folder) / "large" / "profile.pop"
            registry.write(large_report(Size(steps=arguments.steps)), report)
            measured(browser, report.parent, "device", "/execution", arguments.steps)
        if arguments.plotly:
            page = browser.new_page()
            for count in (3_000, 10_000):
                drawn, panned = plotly_bars(page, count)
                print(f"Plotly, {count:,} bars: {drawn:,.0f} ms to draw, {panned:,.0f} ms to pan")
        browser.close()


if __name__ == "__main__":
    main()
