"""The same number on every face: command line, notebook, browser page.

`FIGURES` says of each figure how a face gives it; all faces must agree, on the hand-made report and
on every sample report. A page that shows a new figure adds it here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli.main import tilescope
from dashboard.address import Address
from dashboard.pages import PAGES
from dashboard.store import Store
from pva import query, units
from pva.frames import Frames
from pva.report import Report, openReport
from tests.builders import write_report

SAMPLES = Path(__file__).parents[2] / "sample_reports"
REPORTS = ["hand-made", *sorted({file.parent.name for file in SAMPLES.glob("*/profile.pop")})]

COMPUTE = "OnTileExecute"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """One number. A face that is left out does not show it.

    `summary` is a pattern in the printed summary, `show` an analysis and how to take the number
    from its rows, `sql` a query with one value. `words` writes the number as `info` (the line that
    begins so) and pages (name in its path: label of the card, or "" for the headline) do.
    """

    objects: Callable[[Report], float]
    frames: Callable[[Frames], float]
    sql: str
    summary: str = ""
    show: tuple[str, Callable[[Rows], float]] | None = None
    words: Callable[[float], str] = units.count
    info: str = ""
    pages: tuple[tuple[str, str], ...] = ()


def needs(report: Report) -> list[int]:
    """Return what each tile of one replica needs, in bytes, gaps included."""
    one = report.compilation.target.tilesPerReplica
    return [tile.memory.total.includingGaps for tile in report.compilation.tiles[:one]]


def always_live(report: Report) -> int:
    one = report.compilation.target.tilesPerReplica
    return sum(tile.memory.alwaysLiveBytes for tile in report.compilation.tiles[:one])


def peak(report: Report) -> int:
    steps = report.compilation.livenessProgramSteps
    return max((step.notAlwaysLiveMemory.bytes for step in steps), default=0)


def compute_share(report: Report) -> float:
    """Return the share of all tile cycles in which a tile computed."""
    steps = [step for step in report.execution.steps if step.program.type.name == COMPUTE]
    spent = sum(sum(step.cyclesByTile) for step in steps)
    tiles = report.compilation.target.tilesPerReplica
    return spent / (report.execution.totalCycles.total * tiles)


def compute_share_of_frames(frames: Frames) -> float:
    tiles = len(frames.memory_by_tile())
    return frames.tile_cycles()["compute"][0] / (frames.execution()["cycles"][0] * tiles)


def elapsed(frames: Frames) -> dict[int, int]:
    """Return by how many cycles each program made the runs longer."""
    steps = frames.steps()
    spent = (steps["cycles_to"] - steps["cycles_from"]).groupby(steps["program"]).sum()
    return {int(program): int(cycles) for program, cycles in spent.items()}


def elapsed_of_objects(report: Report) -> dict[int, int]:
    """Return the same from when each step began and ended on any IPU."""
    spent: dict[int, int] = {}
    clock = 0
    for step in report.execution.steps:
        end = max((ipu.allCycles.cyclesTo.max for ipu in step.ipus), default=clock)
        spent[step.program._id] = spent.get(step.program._id, 0) + max(end - clock, 0)
        clock = max(clock, end)
    return spent


def of_written(spent: dict[int, int], frames: Frames) -> int:
    """Add up what was compiled from the programs as written."""
    return sum(spent.get(program, 0) for program in set(frames.written_results()["program"]))


def items_a_second(items: list[int], cycles: int, clock: float) -> float:
    """Return 0 where a run does not tell its items."""
    return sum(items) * clock / cycles if min(items) >= 0 else 0


FIGURES = {
    "total bytes": Figure(
        summary=r"Overflowed[\s\S]*?Total: +([\d,]+)",
        show=("memory_overview", lambda rows: rows[0]["total"]),
        objects=lambda r: sum(
            tile.memory.total.excludingGaps
            for tile in r.compilation.tiles[: r.compilation.target.tilesPerReplica]
        ),
        frames=lambda f: f.memory_by_tile()["total"].sum(),
        sql="select sum(total) as value from memory_by_tile",
        words=units.size,
        pages=(("summary", "All tiles"),),
    ),
    "total bytes with gaps": Figure(
        summary=r"Including Gaps: +([\d,]+)",
        show=("memory_by_tile", lambda rows: sum(row["total_including_gaps"] for row in rows)),
        objects=lambda r: sum(needs(r)),
        frames=lambda f: f.memory_by_tile()["total_including_gaps"].sum(),
        sql="select sum(total_including_gaps) as value from memory_by_tile",
        words=units.size,
        pages=(("summary", "All tiles"),),
    ),
    "bytes of the worst tile": Figure(
        summary=r"Maximum \(Including Gaps\): +([\d,]+)",
        show=("memory_overview", lambda rows: rows[0]["fullest_bytes"]),
        objects=lambda r: max(needs(r)),
        frames=lambda f: f.memory_by_tile()["total_including_gaps"].max(),
        sql="select max(total_including_gaps) as value from memory_by_tile",
        words=units.size,
        info="memory",
        pages=(("summary", "Fullest tile"), ("summary", ""), ("memory", "")),
    ),
    "worst tile": Figure(
        summary=r"Maximum \(Including Gaps\): .*on tile ([\d,]+)",
        show=("fullest_tiles", lambda rows: rows[0]["tile"]),
        objects=lambda r: needs(r).index(max(needs(r))),
        frames=lambda f: f.memory_by_tile()["total_including_gaps"].idxmax(),
        sql="select row as value from memory_by_tile order by total_including_gaps desc, row"
        " limit 1",
        words=lambda tile: f"tile {tile:,.0f}",
        pages=(("summary", "Fullest tile"), ("summary", ""), ("memory", "")),
    ),
    "always-live bytes": Figure(
        summary=r"Always-live bytes: +([\d,]+)",
        show=("liveness_overview", lambda rows: rows[0]["always_live"]),
        objects=always_live,
        frames=lambda f: f.always_live_bytes()["bytes"].sum(),
        sql="select sum(bytes) as value from always_live_bytes",
        words=units.size,
        info="liveness",
        pages=(("summary", "Live at the peak"), ("liveness", "")),
    ),
    "peak bytes": Figure(
        summary=r"Maximum live bytes \(including always-live\): +([\d,]+)",
        show=("liveness_curve", lambda rows: max(row["total"] for row in rows)),
        objects=lambda r: always_live(r) + peak(r),
        frames=lambda f: (
            f.always_live_bytes()["bytes"].sum() + f.liveness_steps()["bytes"].max()
        ),
        sql="select (select sum(bytes) from always_live_bytes)"
        " + (select max(bytes) from liveness_steps) as value",
        words=units.size,
        info="liveness",
        pages=(("summary", "Live at the peak"), ("liveness", "")),
    ),
    "cycles": Figure(
        summary=r"Total cycles: +([\d,]+)",
        show=("execution_overview", lambda rows: rows[0]["cycles"]),
        objects=lambda r: r.execution.totalCycles.total,
        frames=lambda f: f.execution()["cycles"][0],
        sql="select cycles as value from execution",
        words=lambda cycles: f"{units.count(cycles)} cycles",
        info="execution",
        pages=(("summary", "Recorded runs"), ("summary", ""), ("execution", "")),
    ),
    "executed steps": Figure(
        show=("execution_overview", lambda rows: rows[0]["steps"]),
        objects=lambda r: len(r.execution.steps),
        frames=lambda f: len(f.steps()),
        sql="select count(*) as value from steps",
        info="execution",
        pages=(("summary", "Executed steps"),),
    ),
    "cycles of all runs": Figure(
        show=("main_run", lambda rows: rows[0]["cycles"]),
        objects=lambda r: sum(run.cycles for run in r.execution.runs),
        frames=lambda f: f.runs()["cycles"].sum(),
        sql="select sum(cycles) as value from runs",
        words=lambda cycles: f"{units.count(cycles)} cycles",
        info="run",
        pages=(("summary", "Run time"), ("insights", "")),
    ),
    "items a second": Figure(
        show=("main_run", lambda rows: rows[0]["items_per_second"] or 0),
        objects=lambda r: items_a_second(
            [run.items for run in r.execution.runs], sum(run.cycles for run in r.execution.runs),
            r.compilation.target.clockFrequency,
        ),
        frames=lambda f: items_a_second(
            f.runs()["items"].tolist(), f.runs()["cycles"].sum(), f.target()["clock_frequency"][0]
        ),
        sql="select all_items * clock / cycles as value from (select"
        " case when min(items) < 0 then 0 else sum(items) end as all_items, sum(cycles) as cycles,"
        " max(clock_frequency) as clock from runs, target)",
        words=lambda rate: f"{rate:,.0f}" if rate else "–",
        info="items",
        pages=(("summary", "Items a second"),),
    ),
    "cycles of set-up": Figure(
        show=("main_run", lambda rows: rows[0]["setup_cycles"]),
        objects=lambda r: sum(run.cycles for run in r.execution.otherRuns),
        frames=lambda f: f.other_runs()["cycles"].sum(),
        sql="select coalesce(sum(cycles), 0) as value from other_runs",
    ),
    "runs": Figure(
        show=("runs", len),
        objects=lambda r: len(r.execution.runs),
        frames=lambda f: len(f.runs()),
        sql="select count(*) as value from runs",
        words=lambda runs: f"{runs:.0f} run",
        info="execution",
    ),
    "cycles of the costliest program": Figure(
        show=("cycles_by_program", lambda rows: rows[0]["cycles"]),
        objects=lambda r: max(elapsed_of_objects(r).values()),
        frames=lambda f: max(elapsed(f).values()),
        sql="select sum(cycles_to - cycles_from) as value from steps group by program"
        " order by 1 desc limit 1",
    ),
    "cycles of what was written": Figure(
        show=("compiled_types", lambda rows: sum(r["cycles"] for r in rows if r["written"])),
        objects=lambda r: of_written(elapsed_of_objects(r), r.frames),
        frames=lambda f: of_written(elapsed(f), f),
        sql="select sum(cycles_to - cycles_from) as value from steps"
        " where program in (select program from written_results)",
    ),
    "balance": Figure(
        show=("execution_overview", lambda rows: rows[0]["tile_balance"]),
        objects=compute_share,
        frames=compute_share_of_frames,
        sql="select t.compute / (e.cycles * 1.0 * (select count(*) from memory_by_tile)) as value"
        " from tile_cycles t, execution e",
        words=units.share,
        info="execution",
        pages=(("summary", "Tiles computing"), ("summary", ""), ("execution", "")),
    ),
    "balance of the compute steps, added up": Figure(
        show=("steps", lambda rows: sum(r["tile_balance"] for r in rows if r["type"] == COMPUTE)),
        objects=lambda r: sum(
            sum(step.cyclesByTile) / (step.cycles * len(step.cyclesByTile))
            for step in r.execution.steps
            if step.program.type.name == COMPUTE and step.cycles
        ),
        frames=lambda f: f.steps().query("type == @COMPUTE")["tile_balance"].sum(),
        sql=f"select sum(tile_balance) as value from steps where type = '{COMPUTE}'",
    ),
    "compute sets": Figure(
        show=("graph_nodes", lambda rows: sum(row["kind"] == COMPUTE for row in rows)),
        objects=lambda r: len(r.compilation.computeSets),
        frames=lambda f: len(f.compute_sets()),
        sql="select count(*) as value from compute_sets",
        words=lambda sets: f"{sets:,.0f} rows",
    ),
    "balance of each IPU in all steps": Figure(
        objects=lambda r: sum(ipu.tileBalance for step in r.execution.steps for ipu in step.ipus),
        frames=lambda f: f.steps_by_ipu()["tile_balance"].sum(),
        sql="select sum(tile_balance) as value from steps_by_ipu",
    ),
}  # fmt: skip


class Faces:
    """A report, and what its faces say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.report = openReport(path)
        self._texts: dict[str, list[tuple[str, str]]] = {}
        self._rows: dict[tuple[str, ...], Rows] = {}

    def command(self, *arguments: str) -> str:
        result = CliRunner().invoke(tilescope, [*arguments])
        assert result.exit_code == 0, result.stderr
        return result.stdout

    @cached_property
    def summary(self) -> str:
        return self.command("summary", str(self.path), "--liveness")

    @cached_property
    def info(self) -> dict[str, str]:
        rows = json.loads(self.command("info", str(self.path), "--format", "json"))
        return {row["fact"]: row["text"] for row in rows}

    def rows(self, *command: str) -> Rows:
        if command not in self._rows:
            found = json.loads(self.command(*command, "--format", "json"))
            self._rows[command] = found if isinstance(found, list) else [found]
        return self._rows[command]

    def numbers(self, figure: Figure) -> Iterator[tuple[str, float]]:
        """Return the number of each face that has it to the last digit."""
        if figure.summary:
            found = re.search(figure.summary, self.summary)
            assert found, f"{figure.summary} is not in the summary"
            yield "summary", float(found[1].replace(",", ""))
        if figure.show:
            name, take = figure.show
            yield "show", take(self.rows("show", name, str(self.path)))
        yield "sql on the command line", self.rows("sql", str(self.path), figure.sql)[0]["value"]
        yield "objects", figure.objects(self.report)
        yield "frames", figure.frames(self.report.frames)
        yield "SQL in a notebook", self.report.sql(figure.sql)["value"][0]
        yield "SQL by SQLite", query.by_sqlite(self.report.dataset, figure.sql)["value"][0]

    def page(self, name: str, label: str) -> str:
        """Read a card of a page, or its headline without a label."""
        if name not in self._texts:
            page: Any = {page.PATH: page for page in PAGES}[f"/{name}"]
            store = Store([self.path])
            chosen = Address(page.PATH, store.keys[0])
            parts = [*elements(page.layout(store, chosen))]
            if hasattr(page, "answer"):  # a headline that follows the address
                parts += elements(page.answer(store, chosen, "light"))
            self._texts[name] = [(class_of(part), text_of(part)) for part in parts]
        kind = "card" if label else "headlines"
        texts = [text for of, text in self._texts[name] if of == kind]
        return next(text for text in texts if text.startswith(label)).replace("\xa0", " ")


def elements(part: Any) -> Iterator[Any]:
    """Walk a page."""
    yield part
    children = getattr(part, "children", None)
    for child in children if isinstance(children, list | tuple) else [children]:
        if child is not None:
            yield from elements(child)


def class_of(part: Any) -> str:
    return str(getattr(part, "className", ""))


def text_of(part: Any) -> str:
    return " | ".join(piece for piece in elements(part) if isinstance(piece, str))


@pytest.fixture(scope="module", params=REPORTS)
def faces(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Faces:
    if request.param == "hand-made":
        return Faces(write_report(tmp_path_factory.mktemp("reports") / "hand-made"))
    return Faces(SAMPLES / request.param)


@pytest.mark.parametrize("name", FIGURES)
def test_every_face_gives_the_same_number(faces: Faces, name: str) -> None:
    numbers = {face: float(value) for face, value in faces.numbers(FIGURES[name])}
    expected = numbers["objects"]
    assert numbers == pytest.approx(dict.fromkeys(numbers, expected), rel=1e-12)


WORDS = [name for name, figure in FIGURES.items() if figure.info or figure.pages]


@pytest.mark.parametrize("name", WORDS)
def test_info_and_pages_write_the_number_in_the_same_words(faces: Faces, name: str) -> None:
    figure = FIGURES[name]
    words = figure.words(figure.frames(faces.report.frames))
    said = {page: faces.page(*page) for page in figure.pages}
    if figure.info:
        said["info", figure.info] = faces.info[figure.info]
    assert {place: text for place, text in said.items() if words not in text} == {}


EXCHANGES = ("internalExchange", "globalExchange", "hostExchange")
CODE = tuple(f"{part}Code" for part in ("control", "vertex", *EXCHANGES))


def test_every_face_says_whether_code_was_counted(faces: Faces) -> None:
    tiles = faces.report.compilation.tiles
    code = sum(getattr(tile.memory.category, name).total for tile in tiles for name in CODE)
    path = str(faces.path)
    fits = [row for row in faces.rows("show", "insights", path) if row["rule"] == "does_it_fit"]
    costs = [row["code"] for row in faces.rows("show", "operation_costs", path)]
    said = {
        "summary": "without code" in faces.summary,
        "info": "without code" in faces.info["memory"],
        "missing": "compileIPUCode" in faces.info["missing"],
        "overview": not faces.rows("show", "memory_overview", path)[0]["code_counted"],
        "insights": "without code" in fits[0]["what"] and "compileIPUCode" in fits[0]["advice"],
        "operations": set(costs) == {-1},
    }
    for page in ("summary", "insights", "memory", "operations"):
        said[f"page {page}"] = "compileIPUCode" in faces.page(page, "")
    assert said == dict.fromkeys(said, code == 0)


def test_a_table_has_a_dash_and_the_option_where_code_was_not_counted(faces: Faces) -> None:
    printed = faces.command("show", "operation_costs", str(faces.path))
    without = "code was not counted; run the program on a device with compileIPUCode"
    assert (without in printed) == (" –" in printed) == ("without code" in faces.info["memory"])
