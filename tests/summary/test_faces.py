"""One figure, several faces: the summary's text, the analyses, libpva's objects must agree.

Each fact is read off the printed text and worked out twice more, over the hand-made report and
every report in `sample_reports/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pva.analysis.execution import totals as execution
from pva.analysis.memory import liveness
from pva.analysis.memory import totals as memory
from pva.report import Report, openReport
from pva.summary import profile_summary
from tests.builders import write_report

SAMPLES = Path(__file__).parents[2] / "sample_reports"
REPORTS = ["hand-made", *sorted({file.parent.name for file in SAMPLES.glob("*/profile.pop")})]


@pytest.fixture(scope="module", params=REPORTS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    if request.param == "hand-made":
        return openReport(write_report(tmp_path_factory.mktemp("reports") / "hand-made"))
    return openReport(SAMPLES / request.param)


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return profile_summary(report, show_var_storage=True, show_execution_steps=True)


def printed(text: str, label: str, after: str = "") -> int:
    """Read the whole number behind a label off the summary, from where `after` stands."""
    found = re.search(rf"{re.escape(label)}:? +([\d,]+)", text[text.index(after) :])
    assert found, f"{label} is not in the summary"
    return int(found[1].replace(",", ""))


def by_objects(report: Report, figure: Callable[..., int]) -> int:
    """Add up the tiles of one replica: the summary shows one, the objects are of all."""
    one = report.compilation.target.tilesPerReplica
    tiles = report.compilation.tiles
    assert sum(figure(t.memory) for t in tiles) * one == len(tiles) * sum(
        figure(tiles[number].memory) for number in range(one)
    )
    return sum(figure(tiles[number].memory) for number in range(one))


def test_target(report: Report, text: str) -> None:
    target = report.compilation.target
    assert printed(text, "Number of IPUs") == target.numIPUs
    assert printed(text, "Tiles per IPU") == target.tilesPerIpu
    assert printed(text, "Total Tiles") == target.numTiles == len(report.compilation.tiles)
    assert printed(text, "Tiles per Replica") == target.tilesPerReplica


def test_graph(report: Report, text: str) -> None:
    graph = report.compilation.graph
    assert printed(text, "Number of vertices") == graph.numVertices
    assert printed(text, "Number of edges") == graph.numEdges
    assert printed(text, "Number of variables") == graph.numVars
    assert printed(text, "Number of compute sets") == graph.numComputeSets
    assert graph.numComputeSets == len(report.compilation.computeSets)
    frame = execution.cycles_by_vertex_type(report)
    assert frame["instances"].sum() == graph.numVertices


def test_memory(report: Report, text: str) -> None:
    overview, frame = memory.memory_overview(report), memory.memory_by_tile(report)
    including = by_objects(report, lambda m: m.total.includingGaps)
    excluding = by_objects(report, lambda m: m.total.excludingGaps)
    assert printed(text, "Including Gaps") == overview.total_including_gaps == including
    assert printed(text, "Total", after="Overflowed") == overview.total == excluding
    assert frame["total"].sum() == excluding
    for label, column, attribute in (
        ("Non-interleaved", "non_interleaved", "nonInterleaved"),
        ("Interleaved", "interleaved", "interleaved"),
        ("Overflowed", "overflowed", "overflowed"),
    ):
        objects = by_objects(report, lambda m, name=attribute: getattr(m, name).excludingGaps)
        assert printed(text, f"        {label}") == frame[column].sum() == objects


def test_memory_by_category(report: Report, text: str) -> None:
    frame = memory.memory_by_category(report)
    alone, shared = text.index("        Not Overlapped"), text.index("        Overlapped")
    for row in frame.itertuples():
        objects = by_objects(report, lambda m, name=row.category: getattr(m.category, name).total)
        assert row.total == objects
        if row.not_overlapped:
            assert printed(text[alone:shared], f"            {row.label}") == row.not_overlapped
        if row.overlapped:
            assert printed(text[shared:], f"            {row.label}") == row.overlapped
    tile_sums = memory.category_by_tile(report).sum(axis=1)
    assert tile_sums.sum() == memory.memory_overview(report).total


def test_fullest_tile(report: Report, text: str) -> None:
    overview = memory.memory_overview(report)
    sizes = [tile.memory.total.includingGaps for tile in report.compilation.tiles]
    assert printed(text, "Maximum (Including Gaps)") == overview.fullest_bytes == max(sizes)
    assert f"on tile {sizes.index(max(sizes))}\n" in text
    assert overview.fullest_tile == sizes.index(max(sizes))


def test_tiles_of_the_histogram(report: Report, text: str) -> None:
    rows = re.findall(r"^ +\d+ - +\d+ \** +([\d,]+)$", text, re.MULTILINE)
    tiles = report.compilation.target.tilesPerReplica
    assert sum(int(count.replace(",", "")) for count in rows) == tiles


def test_liveness(report: Report, text: str) -> None:
    overview, curve = liveness.liveness_overview(report), liveness.liveness_curve(report)
    steps = report.compilation.livenessProgramSteps
    always = by_objects(report, lambda m: m.alwaysLiveBytes)
    assert printed(text, "Always-live bytes") == overview.always_live == always
    assert sum(variable.size for variable in report.compilation.alwaysLiveVariables) == always
    peak = max((step.notAlwaysLiveMemory.bytes for step in steps), default=0)
    most = printed(text, "Maximum live bytes (including always-live)")
    assert most == overview.max_live == always + peak == curve["total"].max()


def test_live_bytes_of_every_step(report: Report, text: str) -> None:
    curve = liveness.liveness_curve(report)
    shown = re.findall(r"Live Bytes \(excluding always-live\): ([\d,]+)", text)
    loud = curve[curve["type"] != "Sequence"]
    assert [int(size.replace(",", "")) for size in shown] == loud["not_always_live"].tolist()
    objects = [s.notAlwaysLiveMemory.bytes for s in report.compilation.livenessProgramSteps]
    assert objects == curve["not_always_live"].tolist()


def test_cycles(report: Report, text: str) -> None:
    overview = execution.execution_overview(report)
    assert printed(text, "Total cycles") == overview.cycles == report.execution.totalCycles.total
    for label, activity in (
        ("Total compute cycles (including idle threads)", "compute"),
        ("Total compute cycles (excluding idle threads)", "active_compute"),
        ("Total IPU exchange cycles", "do_exchange"),
        ("Total host exchange cycles", "stream_copy"),
        ("Total sync cycles", "sync"),
    ):
        assert printed(text, label) == overview.tile_cycles[activity]


def test_cycles_by_vertex_type(report: Report, text: str) -> None:
    frame = execution.cycles_by_vertex_type(report)
    shown = text[text.index("  Cycles by vertex type:") : text.index("\nSteps\n")].splitlines()[1:]
    cycles = [int(line.rsplit(":", 1)[1].replace(",", "")) for line in shown]
    assert cycles == sorted(frame["cycles_once"], reverse=True)
    assert (
        frame["cycles"].sum() == execution.execution_overview(report).tile_cycles["active_compute"]
    )


def test_steps(report: Report, text: str) -> None:
    frame, steps = execution.steps(report), report.execution.steps
    assert len(frame) == len(steps) == execution.execution_overview(report).steps
    working = frame[~frame["type"].isin(["Sync", "SyncAns", "Sans"])]
    shown = re.findall(r"^  \w+ \(cycles ([\d,]+) - ([\d,]+)\)(?:: (.*))?$", text, re.MULTILINE)
    assert [(int(a.replace(",", "")), int(b.replace(",", "")), name) for a, b, name in shown] == (
        list(zip(working["cycles_from"], working["cycles_to"], working["name"], strict=True))
    )
    assert text.count("\n  --- ") == len(frame) - len(working)
    for number in range(0, len(steps), max(len(steps) // 50, 1)):
        step, row = steps[number], frame.iloc[number]
        assert step.cycles == row["cycles"]
        assert step.program.name == (row["name"] or step.program.name)


def test_runs(report: Report) -> None:
    frame, runs = execution.runs(report), report.execution.runs
    assert [run.name for run in runs] == frame["name"].tolist()
    assert [run.cycles for run in runs] == frame["cycles"].tolist()
    assert [len(run.steps) for run in runs] == frame["steps"].tolist()
