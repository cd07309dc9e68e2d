"""The host timeline in a real browser: several files, a file that grows or goes, bad traces."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pvti import schema
from tests.browser.conftest import ROOT, SERVE
from tests.browser.names import Opener
from tests.browser.waiting import at, box_of, expect, hover, in_address, not_in_address
from tests.dashboard.test_bad_timelines import CASES, write

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

THREADS = [(thread, 10 * n, 10 * n + 8, n % 2) for thread in range(2) for n in range(100)]
VIEW = "document.querySelector('.timeline').timeline"
CALM = ("no event", "deep", "long labels")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two traces side by side, one that is to grow, and those that are bad."""
    folder = tmp_path_factory.mktemp("traces")
    for pid, name in enumerate(("one", "two", "grows", "goes", "graphs")):
        write(folder / f"{name}.pvti", THREADS, ["first", "second"], pid=pid + 1)
    write(folder / "long.pvti", [(0, 0, 10_000_000, 0)], ["long"], pid=9)
    for name in CALM:
        write(folder / f"{name.replace(' ', '-')}.pvti", *CASES[name])
    with closing(sqlite3.connect(folder / "graphs.pvti")) as file:
        for number, name in enumerate(("die", "board")):
            row = (number + 1, "Power", "W", name)
            file.execute(schema.insert_statement("series"), row)
            points = [(number + 1, time, time / 100 + number) for time in range(0, 1000, 100)]
            file.executemany(schema.insert_statement("series_points"), points)
        file.commit()
    return folder


@pytest.fixture(scope="module")
def address(traces: Path) -> Iterator[str]:
    """Serve the traces, the two first together."""
    paths = [traces / "one.pvti", traces / "two.pvti"]
    (traces / "more").mkdir()
    for path in sorted(traces.glob("*.pvti")):
        if path not in paths:
            (traces / "more" / path.stem).mkdir()
            path.rename(traces / "more" / path.stem / path.name)
    command = [sys.executable, "-c", SERVE, *map(str, paths), str(traces / "more")]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip().rstrip("/")
        server.terminate()


def drawn(page: Any) -> None:
    page.wait_for_selector(".timeline[data-drawn]", state="attached")


def heads(page: Any, *names: str) -> None:
    """Wait until these stand at the left, heads of files and names of lanes."""
    script = """([names]) => { const t = document.querySelector('.timeline').timeline;
      return t.placed && JSON.stringify(names) === JSON.stringify(t.placed.entries
        .filter((e) => e.kind === 'head' || e.first).map((e) => e.laneName || e.name)); }"""
    page.wait_for_function(script, arg=[list(names)])


def test_two_files_stand_below_each_other_and_are_folded_pinned_and_merged(
    open_page: Opener,
) -> None:
    page = open_page("/trace?closed=one.pvti,%25")  # of a link that was cut
    drawn(page)
    threads = ("thread 0", "thread 1")
    heads(page, "one.pvti", "two.pvti", "made.py 2", *threads)
    page.evaluate(f"{VIEW}.toggle('pinned', 'two.pvti/made.py 2/thread 1')")
    heads(page, "Pinned", "thread 1", "one.pvti", "two.pvti", "made.py 2", "thread 0")
    page.get_by_role("switch").click()
    heads(page, "one.pvti", "two.pvti", "made.py 2", "2 threads")
    page.locator("label", has_text="From their begin").click()
    in_address(page, "align=start")


def test_events_are_counted_of_the_rows_that_are_shown(open_page: Opener) -> None:
    page = open_page("/trace")  # four threads of 100 events
    expect(page.locator(".timeline-summary")).to_contain_text("400 events in these rows")
    page.evaluate(f"{VIEW}.toggle('closed', 'two.pvti')")
    expect(page.locator(".timeline-summary")).to_contain_text("200 events in these rows")


NAMES_DRAWN = """name => {
  const texts = [], { prototype } = CanvasRenderingContext2D, { fillText } = prototype;
  prototype.fillText = function (text, ...more) {
    texts.push(text);
    fillText.call(this, text, ...more);
  };
  const { timeline } = document.querySelector(".timeline");
  timeline.layout.lanes.forEach((lane) => { lane.path = [name]; });
  timeline.placed = null;
  timeline.paint();
  prototype.fillText = fillText;
  return texts;
}"""


NAME = "stage 3/python train.py of the first host/rank 12"


@pytest.mark.parametrize(
    ("name", "shown"), [(NAME, re.escape(NAME)), (5 * NAME, r"stage 3/.*….*/rank 12")]
)
def test_name_of_a_process_has_the_width_and_keeps_both_ends(
    open_page: Opener, name: str, shown: str
) -> None:
    page = open_page("/trace?report=one.pvti")
    drawn(page)
    texts = page.evaluate(NAMES_DRAWN, name)
    assert any(re.fullmatch(f"▾ {shown}", text) for text in texts)


def test_large_magnification_is_not_cut(open_page: Opener) -> None:
    page = open_page("/trace?report=long&range=0-9")
    drawn(page)
    box = page.locator(".timeline-percent")
    expect(box).to_have_value("111,000,000 %")  # 9 of 10,000,000 ns
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")


def test_a_trace_that_grows_keeps_window_and_selection(open_page: Opener, traces: Path) -> None:
    page = open_page("/trace?report=grows&range=200-400&event=125")
    drawn(page)
    page.wait_for_function(f"() => {VIEW}.data?.item.includes(125)")
    path = traces / "more" / "grows" / "grows.pvti"
    more = [(0, 10 * n, 10 * n + 8, 0) for n in range(100, 150)]
    write(traces / "grown", [*THREADS, *more], ["first", "second"], pid=3).replace(path)
    page.evaluate(f"{VIEW}.reload()")
    page.wait_for_function(f"() => {VIEW}.layout?.extent[1] === 1498")
    in_address(page, "event=175")
    page.wait_for_function(f"() => {VIEW}.view?.begin === 200 && {VIEW}.view?.end === 400")


def test_a_file_that_goes_away_is_told_below_what_was_drawn(
    contexts: dict[str, Any], address: str, traces: Path
) -> None:
    page = contexts["light"].new_page()  # where the answer 404 may stand on the console
    page.goto(f"{address}/trace?report=goes")
    drawn(page)
    (traces / "more" / "goes" / "goes.pvti").unlink()
    page.evaluate(f"{VIEW}.reload()")
    page.wait_for_selector(".timeline-note.seen >> text=no host trace")
    page.close()


@pytest.mark.parametrize("name", CALM)
def test_bad_traces_have_a_calm_screen(open_page: Opener, name: str) -> None:
    page = open_page(f"/trace?report={name.replace(' ', '-')}")
    page.wait_for_selector(".headline")
    if name == "no event":
        page.wait_for_selector(".timeline-note.seen >> text=Nothing was recorded.")
    else:
        drawn(page)
    page.wait_for_selector("#trace-tables .note")
    page.wait_for_function("() => ![...document.scripts].some((s) => s.text.includes('alert(1)'))")


def test_a_window_outside_of_the_trace_shows_its_end(open_page: Opener) -> None:
    page = open_page("/trace?report=one.pvti&range=5000-5100")
    drawn(page)
    page.wait_for_function(f"() => {VIEW}.view?.begin === 898 && {VIEW}.view?.end === 998")
    page.evaluate("tilescope.go({ range: '7000-7050' })")
    page.wait_for_function(f"() => {VIEW}.view?.begin === 948 && {VIEW}.view?.end === 998")


def test_the_table_of_the_view_lists_and_chooses(open_page: Opener) -> None:
    page = open_page("/trace?report=one.pvti&range=0-60")
    drawn(page)
    page.locator(".timeline .exports > summary").click()
    page.get_by_role("button", name="Table of what is in view").click()
    page.wait_for_selector(".timeline-list >> text=12 in view")
    page.locator(".timeline-list button").nth(1).click()
    in_address(page, "event=1")


def saved(page: Any, words: str) -> bytes:
    """Click on what saves the view, or the events chosen."""
    menu = page.locator(".timeline .exports")
    menu.evaluate("details => (details.open = true)")
    with page.expect_download() as found:
        menu.get_by_text(words, exact=True).click()
    return Path(found.value.path()).read_bytes()


def test_each_button_saves_what_is_chosen_or_in_view(open_page: Opener) -> None:
    page = open_page("/trace?report=one.pvti&range=0-60&selection=15-42")
    drawn(page)
    svg = saved(page, "View as SVG").decode()
    assert [svg.count(f">{name}</text>") for name in ("first", "second")] == [6, 6]
    assert ">Host timeline · one.pvti · time</text>" in svg  # what, of which, in which unit
    png = saved(page, "View as PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    size = [int.from_bytes(png[place : place + 4], "big") for place in (16, 20)]
    page.wait_for_function(
        f"([w, h]) => w === 2 * {VIEW}.width() && h === 2 * ({VIEW}.tall + 34)", arg=size
    )
    chosen = [event for event in THREADS if event[1] < 42 and event[2] > 15]
    lines = list(csv.DictReader(io.StringIO(saved(page, "Events as CSV").decode())))
    assert [
        (line["lane"], int(line["begin_ns"]), int(line["length_ns"]), line["label"])
        for line in lines
    ] == [
        (f"one.pvti/made.py 1/thread {thread}", begin, end - begin, ("first", "second")[label])
        for thread, begin, end, label in chosen
    ]
    told = json.loads(saved(page, "Events as Chrome JSON"))["traceEvents"]
    found = sorted((e["tid"], e["ts"], e["dur"], e["name"]) for e in told if e["ph"] == "X")
    assert [event[1:] for event in found] == [
        (begin / 1000, 0.008, ("first", "second")[label]) for _, begin, _, label in chosen
    ]
    trace = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    trace.ParseFromString(saved(page, "Events as Perfetto trace"))
    assert sum(packet.HasField("track_event") for packet in trace.packet) == 2 * len(chosen)


def test_fields_keys_and_the_strip_move_the_window(open_page: Opener) -> None:
    page = open_page("/trace?report=one.pvti")
    drawn(page)
    zoom = page.get_by_label("Magnification in percent")
    zoom.fill("400")
    zoom.press("Enter")
    in_address(page, "range=374-624")  # a quarter of 998 ns, in the middle
    page.locator(".timeline-canvas").focus()
    page.keyboard.press("m")
    in_address(page, "marks=499")
    page.get_by_placeholder("Search names").fill("second")
    bar = page.locator(".timeline-bar")
    expect(bar).to_contain_text("100")
    page.wait_for_function(f"() => {VIEW}.framed === 26")  # odd events 37 to 61 of both threads
    page.get_by_role("button", name="Next match").click()
    expect(bar).to_contain_text("1 of 100")
    in_address(page, "event=1")
    page.get_by_role("button", name="Previous match").click()
    expect(bar).to_contain_text("100 of 100")
    page.get_by_role("button", name="All", exact=True).click()
    not_in_address(page, "range=")
    box = box_of(page.locator(".timeline-overview"))
    right, middle = box["x"] + box["width"] - 1, box["y"] + box["height"] / 2
    page.mouse.move(right, middle)
    page.mouse.down()
    page.mouse.move(right - 200, middle, steps=4)
    page.mouse.up()
    in_address(page, "range=0-")


def test_two_fingers_zoom_at_their_middle_and_one_finger_pans(open_page: Opener) -> None:
    page = open_page("/trace?report=one.pvti&range=200-700")
    drawn(page)
    session = page.context.new_cdp_session(page)
    box = box_of(page.locator(".timeline-canvas"))
    width = box["width"] - page.evaluate("tilescope.paint.GUTTER")
    x, y = box["x"] + box["width"] - 0.6 * width, box["y"] + 60  # at 400 of 200 to 700

    def touch(kind: str, *fingers: float) -> None:
        points = [{"x": place, "y": y, "id": number} for number, place in enumerate(fingers)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", x - 40)
    touch("touchStart", x - 40, x + 40)
    for more in (10, 20, 30, 40):  # first the one moves, then the other
        touch("touchMove", x - 40 - more, x + 30 + more)
        touch("touchMove", x - 40 - more, x + 40 + more)
    touch("touchEnd")
    in_address(page, "range=300-550")  # half as much, and 400 is where it was
    touch("touchStart", x)
    for share in (0.1, 0.2):
        touch("touchMove", x + share * width)
    touch("touchEnd")
    in_address(page, "range=250-500")
    not_in_address(page, "event=")
    page.mouse.move(x, y)  # at 350
    page.keyboard.down("Control")  # a pinch on a trackpad comes as such a wheel
    page.mouse.wheel(0, -50)
    page.keyboard.up("Control")
    in_address(page, "range=289-441")  # 250 * 1.01 ** -50 = 152


def test_a_graph_of_two_series_has_a_legend_with_the_values_at_the_pointer(
    open_page: Opener,
) -> None:
    page = open_page("/trace?report=graphs")
    drawn(page)
    page.wait_for_function(f"() => {VIEW}.charts && {VIEW}.placed.entries.some((e) => e.legend)")
    written(page, "board", "W")
    canvas = page.locator(".timeline-canvas")
    box, gutter = box_of(canvas), page.evaluate("tilescope.paint.GUTTER")
    across = 1 - 0.45 * (box["width"] - gutter) / box["width"]  # at 549
    hover(page, at(canvas, across, 80 / box["height"]), ".tip-line >> text=board: 6 W")
    written(page, "die", "5 W", "board", "6 W")
    page.locator(".timeline .exports > summary").click()
    page.get_by_role("button", name="Table of what is in view").click()
    expect(page.locator(".timeline-list")).to_contain_text("PowerboardLine graph1 to 10 W")


def written(page: Any, *texts: str) -> None:
    """Wait until these stand on the canvas, as a drawing of it has them."""
    script = """([texts]) => { const t = document.querySelector('.timeline').timeline;
      const seen = [], context = t.canvas.getContext("2d"), draw = context.fillText;
      context.fillText = (text) => seen.push(text);
      tilescope.paint.drawInto(context, t, t.width(), t.tall, 0);
      context.fillText = draw;
      t.draw();
      return texts.every((text) => seen.includes(text)); }"""
    page.wait_for_function(script, arg=[list(texts)])


SLOW = """
import sys, time
from dashboard.server import serve
from dashboard.timeline import endpoint
endpoint.SKETCHED, grown = 100, endpoint.grown_timeline
endpoint.grown_timeline = lambda *given: (time.sleep(4), grown(*given))[1]
serve(sys.argv[1:], port=0)
"""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[str]:
    """Serve a trace that takes long to be read."""
    path = write(tmp_path / "slow.pvti", THREADS, ["first", "second"], pid=3)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", SLOW, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


def test_a_long_trace_is_sketched_until_it_is_read(slow: str, contexts: Any) -> None:
    page = contexts["light"].new_page()
    page.goto(f"{slow}trace")
    drawn(page)
    assert page.evaluate(f"{VIEW}.layout.sketch && {VIEW}.data.n") == 2
    expect(page.locator(".timeline-note")).to_have_text("Reading the events…")
    page.wait_for_function(f"() => !{VIEW}.layout.sketch && ({VIEW}.data || {{}}).n === 200")
    expect(page.locator(".timeline-note")).to_have_text("")
    page.close()
