"""What the report tells of the code of single programs, and of vertices on single tiles."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import pva
from pva.check import check
from simulator import poplar, popops

TILES = 4


def report_of(directory: Path, **options: str) -> pva.Report:
    """Add two vectors that are on tiles 0 to 2, then send the sum to tile 3."""
    target = poplar.IPUModel(numIPUs=1, tilesPerIPU=TILES, compileIPUCode=True).createDevice()
    graph = poplar.Graph(target.getTarget())
    vectors = [graph.addVariable(poplar.FLOAT, [12], name) for name in ("a", "b", "there")]
    for vector, tiles in zip(vectors, ([0, 1, 2], [0, 1, 2], [3]), strict=True):
        for place, tile in enumerate(tiles):
            size = 12 // len(tiles)
            graph.setTileMapping(vector.slice(place * size, (place + 1) * size), tile)
    program = poplar.program.Sequence()
    popops.addInPlace(graph, vectors[0], vectors[1], program, "sum")
    program.add(poplar.program.Copy(vectors[0], vectors[2]))
    all_options = {"autoReport.all": "true", "autoReport.directory": str(directory)} | options
    engine = poplar.Engine(graph, program, all_options)
    engine.load(target)
    engine.run(0)
    return pva.openReport(directory)


def control_code(report: pva.Report, program: int) -> npt.NDArray[np.int64]:
    """Spread out the stretches of one program."""
    sizes = np.zeros(TILES, dtype=np.int64)
    columns = [c.tolist() for c in report.dataset.table("control_code").values()]
    for owner, tile, end, size in zip(*columns, strict=True):
        if owner == program:
            sizes[tile:end] += size
    return sizes


def row_of(report: pva.Report, tag: str) -> int:
    """Return the last program of a type."""
    return int(np.flatnonzero(report.dataset.texts("programs", "type") == tag)[-1])


@pytest.mark.parametrize(
    ("level", "on_tiles"),
    [("", [8, 8, 8, 0]), ("tile", [28] * 3 + [0]), ("vertex", [28] * 3 + [0]),
     ("device", [28, 8, 8, 0])],
)  # fmt: skip
def test_tiles_keep_the_programs_they_take_part_in_and_what_counts_them(
    tmp_path: Path, level: str, on_tiles: list[int]
) -> None:
    options = {"debug.instrumentCompute": "true", "debug.computeInstrumentationLevel": level}
    report = report_of(tmp_path, **options if level else {})
    add = row_of(report, "OnTileExecute")
    assert control_code(report, add).tolist() == on_tiles
    assert control_code(report, 0).tolist() == [60 + 8] * TILES
    assert check(report.dataset) == []


def test_code_of_an_exchange_is_where_it_sends_and_receives(tmp_path: Path) -> None:
    # A fragment sent takes an instruction of 4 bytes, and one to wait. Each of three that a copy
    # receives takes 2, one of them its place; to wait for them and to select none take one each.
    data = report_of(tmp_path).dataset
    assert data.array("exchange_code_bytes")[-1].tolist() == [8, 8, 8, 4 * (3 * 2 + 2)]
    total = data.column("exchange_instructions", "total")
    assert data.array("exchange_code_bytes").sum(axis=1).tolist() == total.tolist()


def test_vertices_are_counted_on_their_tiles(tmp_path: Path) -> None:
    data = report_of(tmp_path).dataset
    assert data.array("vertex_count_by_tile").tolist() == [[1, 1, 1, 0]]


def test_programs_come_from_the_call_that_made_them(tmp_path: Path) -> None:
    data = report_of(tmp_path).dataset
    names = dict(
        zip(*(data.column("debug_contexts", c).tolist() for c in ("id", "name")), strict=True)
    )
    found = [names.get(c, "") for c in data.column("programs", "debug_context").tolist()]
    programs = data.column("programs", "name").tolist()
    add = row_of(report_of(tmp_path), "OnTileExecute")
    assert (programs[add], found[add]) == ("sum/Op/Add", "sum/Op/Add")
    assert set(found[:add]) == {""}


def test_an_operation_is_located_at_the_call_of_the_library(tmp_path: Path) -> None:
    (add, *_) = pva.OperationAnalysis(report_of(tmp_path)).operations
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    location = add.debugContext.location
    assert (add.name, location.fileName) == ("sum/Op/Add", Path(__file__).name)
    assert "popops.addInPlace(" in lines[location.lineNumber - 1]
