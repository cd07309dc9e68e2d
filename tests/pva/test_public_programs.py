"""What public programs ask of `pva`, call by call, against figures of the documents.

Each row: what is asked, how programs ask it, and the same found from tables and arrays.
"""

from __future__ import annotations

import csv
import fnmatch
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pva
from pva import schema
from pva.data.dataset import Dataset

SAMPLES = Path(__file__).parents[2] / "sample_reports"
NAMES = ("mlp_digits_tiny", "newton_pipeline_replicas", "matmul_chain_mk2")
Type = pva.Program.Type
SYNCS = (Type.Sync, Type.SyncAns, Type.Sans)
COSTS = {"OnTileExecute": ("compute_set", "compute_set_cycles_by_tile"),
         "DoExchange": ("exchange", "exchange_cycles"),
         "GlobalExchange": ("exchange", "external_exchange_cycles"),
         "StreamCopy": ("exchange", "host_exchange_cycles")}  # fmt: skip


def types(data: Dataset) -> Any:
    return data.texts("programs", "type")


def cycles_by_type(report: pva.Report) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for step in report.execution.steps:
        found[step.program.type.name] += sum(step.cyclesByTile)
    return {name: size for name, size in found.items() if size}


def told_by_type(data: Dataset) -> dict[str, int]:
    told = {name: int(values[0]) for name, values in data.table("tile_cycles").items()}
    names = {"OnTileExecute": "compute", "DoExchange": "do_exchange", "Sync": "sync",
             "GlobalExchange": "global_exchange", "StreamCopyMid": "stream_copy"}  # fmt: skip
    return {name: told[figure] for name, figure in names.items() if told[figure]}


def tile_totals(report: pva.Report) -> list[int]:
    """Add up each tile's cycles of a run by index, as test suites do."""
    steps = report.execution.runs[0].steps
    tiles = range(min(len(steps[0].cyclesByTile), 40))
    return [sum(step.cyclesByTile[tile] for step in steps) for tile in tiles]


def replayed_totals(data: Dataset) -> list[int]:
    """Run the clocks of the tiles through the first run, step after step."""
    ipus, tiles = data.of_replica("num_ipus"), data.of_replica("num_tiles")
    delay = int(data.value("target", "min_sync_delay"))
    delays = np.tile(delay + data.array("relative_sync_delay"), ipus).reshape(ipus, -1)
    clock = np.zeros((ipus, tiles // ipus), dtype=np.int64)
    for step in range(int(data.column("runs", "end_step")[0])):
        program = int(data.column("steps", "program")[step])
        tag = types(data)[program]
        if tag in ("StreamCopyBegin", "StreamCopyEnd"):  # the host is ready
            continue
        if tag != "Sync":
            column, array = COSTS[tag]
            row = data.column("programs", column)[program]
            clock += data.array(array)[row].reshape(ipus, -1)
            continue
        arrived = (clock + (delays + 1) // 2).max(axis=1, keepdims=True)
        if data.texts("steps", "sync_type")[step] == "External":
            arrived[:] = arrived.max() + max(int(data.value("target", "global_sync_cycles")), 0)
        clock = arrived + delays // 2
    return clock.reshape(-1).tolist()[:40]  # type: ignore[no-any-return]


def compute_sets(report: pva.Report) -> dict[str, list[int]]:
    """Cycles by compute set and tile, the first list taken as it comes and others added to it."""
    found: dict[str, Any] = {}
    for step in report.execution.runs[0].steps:
        for one in step.computeSets:
            given = found.get(one.name) or [0] * len(one.cyclesByTile)
            found[one.name] = [sum(pair) for pair in zip(given, one.cyclesByTile, strict=True)]
    return found


def told_compute_sets(data: Dataset) -> dict[str, list[int]]:
    first, end = (int(data.column("runs", name)[0]) for name in ("first_step", "end_step"))
    rows = data.column("programs", "compute_set")[data.column("steps", "program")[first:end]]
    found: dict[str, Any] = defaultdict(int)
    for row, times in Counter(rows[rows >= 0].tolist()).items():
        by_tile = data.array("compute_set_cycles_by_tile")[row] * times
        found[data.column("compute_sets", "name")[row]] += by_tile
    return {name: values.tolist() for name, values in found.items()}


def vertices_of_steps(report: pva.Report) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for step in report.execution.steps[:200]:
        for one in step.computeSets:
            for vertex in one.vertices:
                found[vertex.type.name] += sum(vertex.countByTile)
            assert one.estimatedCyclesByTile == one.cyclesByTile == step.cyclesByTile
    return found


def told_vertices(data: Dataset) -> dict[str, int]:
    sets = data.column("programs", "compute_set")[data.column("steps", "program")[:200]]
    table, found = data.table("compute_set_vertices"), defaultdict[str, int](int)
    names = data.column("vertex_types", "name")[table["vertex_type"]]
    for row in sets[sets >= 0].tolist():
        here = table["compute_set"] == row
        for name, count in zip(names[here], table["count"][here].tolist(), strict=True):
            found[name] += count
    return {name: count for name, count in found.items() if count}


def left_for_parameters(report: pva.Report) -> list[int]:
    names = ("vertexCode", "internalExchangeCode", "vertexInstanceState", "controlCode")
    return [
        sum(
            tile.memory.alwaysLiveBytes
            - sum(getattr(tile.memory.category, name).total for name in names)
            for tile in ipu.tiles
        )
        for ipu in report.compilation.ipus
    ]


def told_parameters(data: Dataset) -> list[int]:
    names = ("vertexCode", "internalExchangeCode", "vertexInstanceState", "controlCode")
    rows = [schema.CATEGORIES.index(name) for name in names]
    code = data.array("memory_by_category")[rows].sum(axis=(0, 1, 2))
    left = (data.array("always_live_bytes") - code).reshape(data.of_replica("num_ipus"), -1)
    sizes: list[int] = left.sum(axis=1).tolist()
    assert min(sizes) > 0
    return sizes * int(data.value("target", "num_replicas"))


def estimates(report: pva.Report) -> int:
    found = 0
    for step in report.compilation.livenessProgramSteps:
        if step.program.type == Type.DoExchange:
            found += max(step.program.estimatedCyclesByTile)
        if step.program.type == Type.OnTileExecute:
            found += max(step.program.computeset.estimatedCyclesByTile)
    return found


def told_estimates(data: Dataset) -> int:
    programs = data.column("liveness_steps", "program")
    found = 0
    for tag in ("DoExchange", "OnTileExecute"):
        column, array = COSTS[tag]
        rows = data.column("programs", column)[programs[types(data)[programs] == tag]]
        found += int(data.array(array)[rows].max(axis=1, initial=0).sum())
    return found


def names_by_prefix(report: pva.Report) -> dict[str, list[int]]:
    """Group the cycles of steps by name, syncs and global exchanges left out by a set of types."""
    found = defaultdict(list)
    for step in report.execution.runs[0].steps:
        name = step.program.name
        if step.program.type not in {Type.Sync, Type.GlobalExchange} and name:
            found[name].append(sum([ipu.cycles for ipu in step.ipus]))
    return dict(found)


def told_names(data: Dataset) -> dict[str, list[int]]:
    end = int(data.column("runs", "end_step")[0])
    by_ipu = np.bincount(data.column("steps_by_ipu", "step"), data.column("steps_by_ipu", "cycles"))
    found = defaultdict(list)
    for step, row in enumerate(data.column("steps", "program")[:end].tolist()):
        name = data.column("programs", "name")[row]
        if name and types(data)[row] not in ("Sync", "GlobalExchange"):
            found[name].append(int(by_ipu[step]))
    return dict(found)


def external_syncs(report: pva.Report) -> list[int]:
    return [
        place
        for place, step in enumerate(report.execution.steps)
        if step.program.type == Type.Sync and step.program.name == "External"
    ]


def moved(report: pva.Report, kind: pva.Program.Type) -> int:
    steps = report.execution.runs[0].steps
    return sum(
        sum(ipu.dataIn + ipu.dataOut for ipu in step.ipus)
        for step in steps
        if step.program.type == kind
    )


def told_moved(data: Dataset, tag: str, lists: str) -> int:
    end = int(data.column("runs", "end_step")[0])
    programs = data.column("steps", "program")[:end]
    rows = data.column("programs", "exchange")[programs[types(data)[programs] == tag]]
    names = (f"{lists}_bytes_sent", f"{lists}_bytes_received")
    return sum(int(data.array(name)[rows].sum()) for name in names if data.has(name))


def program_places(report: pva.Report) -> list[int]:
    wanted = [p for p in report.compilation.programs if p.type == Type.OnTileExecute]
    steps = report.compilation.livenessProgramSteps
    return [next(i for i, step in enumerate(steps) if step.program == p) for p in wanted]


def told_places(data: Dataset) -> list[int]:
    steps = data.column("liveness_steps", "program").tolist()
    return [steps.index(row) for row in np.flatnonzero(types(data) == "OnTileExecute").tolist()]


CALLS: dict[str, tuple[Callable[[pva.Report], Any], Callable[[Dataset], Any]]] = {
    "tile cycles by type of program": (cycles_by_type, told_by_type),
    "each tile's cycles of a run": (tile_totals, replayed_totals),
    "cycles by compute set and tile": (compute_sets, told_compute_sets),
    "vertices of executed compute sets": (vertices_of_steps, told_vertices),
    "always-live bytes without code": (left_for_parameters, told_parameters),
    "estimated cycles of program steps": (estimates, told_estimates),
    "cycles of steps by name": (names_by_prefix, told_names),
    "external syncs by their name": (
        external_syncs,
        lambda data: np.flatnonzero(data.texts("steps", "sync_type") == "External").tolist(),
    ),
    "bytes of host exchanges": (
        lambda report: moved(report, Type.StreamCopyMid),
        lambda data: told_moved(data, "StreamCopy", "host_exchange"),
    ),
    "bytes of global exchanges": (
        lambda report: moved(report, Type.GlobalExchange),
        lambda data: told_moved(data, "GlobalExchange", "external_exchange"),
    ),
    "the step with most bytes on an IPU": (
        lambda report: max(
            report.compilation.livenessProgramSteps,
            key=lambda step: step.notAlwaysLiveMemoryForIpu(0).bytes,
        ).notAlwaysLiveMemoryForIpu(0).bytes,
        lambda data: data.array("liveness_bytes_by_ipu")[:, 0].max(),
    ),
    "always-live and not-always-live bytes as an array": (
        lambda report: (
            np.array(sum(v.size for v in report.compilation.alwaysLiveVariables))
            + [step.notAlwaysLiveMemory.bytes for step in report.compilation.livenessProgramSteps]
        ).tolist(),
        lambda data: (
            data.column("liveness_steps", "bytes")
            + data.column("always_live_variables", "bytes").sum()
        ).tolist(),
    ),
    "names of compute sets that match a pattern": (
        lambda report: sum(
            fnmatch.fnmatch(one.name, "*Conv*") for one in report.compilation.computeSets
        ),
        lambda data: sum("Conv" in name for name in data.column("compute_sets", "name")),
    ),
    "a program found among the program steps": (program_places, told_places),
}  # fmt: skip


@pytest.fixture(params=NAMES, scope="module")
def report(request: pytest.FixtureRequest) -> pva.Report:
    return pva.openReport(str(SAMPLES / request.param / "profile.pop"))


def as_json(value: Any) -> Any:
    """Return what a reader of JSON gets: tuples as lists, keys as texts."""
    if isinstance(value, dict):
        return {str(key): as_json(part) for key, part in value.items()}
    return [as_json(part) for part in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("asked", CALLS)
def test_a_program_gets_the_figures_of_the_documents(report: pva.Report, asked: str) -> None:
    by_program, by_document = CALLS[asked]
    found = by_program(report)
    assert found == by_document(report.dataset)
    assert json.loads(json.dumps(found)) == as_json(found)


def test_each_step_has_the_cycles_of_each_tile(report: pva.Report) -> None:
    tiles = report.compilation.target.tilesPerReplica
    steps = report.execution.steps[:100]
    assert {len(step.cyclesByTile) for step in steps} == {tiles}
    assert min(min(step.cyclesByTile) for step in steps if step.program.type in SYNCS) > 0


def test_clocks_of_tiles_are_the_cycles_of_the_steps_before(report: pva.Report) -> None:
    data = report.dataset
    begins = dict(zip(data.column("runs", "first_step").tolist(),
                      data.column("runs", "cycles_from").tolist(), strict=True))  # fmt: skip
    clock = np.zeros(data.of_replica("num_tiles"), dtype=np.int64)
    for place, step in enumerate(report.execution.steps):
        if place in begins:
            clock[:] = begins[place]
        if place % schema.CLOCK_INTERVAL == 0:
            assert (clock == data.row("tile_clock", place // schema.CLOCK_INTERVAL)).all()
        clock += step.cyclesByTile


def by_tile(report: pva.Report) -> dict[str, Any]:
    """Every list by tile that there is, under the name of its attribute."""
    compilation = report.compilation
    step = next(step for step in report.execution.steps if len(step.computeSets))
    exchange = next(p for p in compilation.programs if p.type == Type.DoExchange)
    return {
        "step.cyclesByTile": step.cyclesByTile,
        "step.computeSets[0].cyclesByTile": step.computeSets[0].cyclesByTile,
        "sync.cyclesByTile": report.execution.steps[0].cyclesByTile,
        "program.controlCodeByTile": compilation.programs[0].controlCodeByTile,
        "program.codeBytesByTile": exchange.codeBytesByTile,
        "program.estimatedCyclesByTile": exchange.estimatedCyclesByTile,
        "computeSet.estimatedCyclesByTile": compilation.computeSets[0].estimatedCyclesByTile,
        "vertex.countByTile": compilation.computeSets[0].vertices[0].countByTile,
    }


def test_lists_by_tile_are_lists(report: pva.Report) -> None:
    for name, values in by_tile(report).items():
        plain = [int(value) for value in values]
        assert isinstance(values, list) and values == plain and len(plain) > 1, name
        assert json.loads(json.dumps({"a": [values]}, indent=1)) == {"a": [plain]}
        assert np.array(values, dtype=np.uint64).tolist() == plain
        assert pd.DataFrame({"tile": values})["tile"].tolist() == plain
        assert (values[-1], values[:2], [0] + values) == (plain[-1], plain[:2], [0, *plain])
        assert sorted(values, reverse=True)[0] == values[values.index(max(values))]
        line = io.StringIO()
        csv.writer(line).writerow(values)
        assert line.getvalue().strip() == ",".join(map(str, plain))


def test_what_a_caller_does_to_a_list_is_done_to_no_other(report: pva.Report) -> None:
    for name, values in by_tile(report).items():
        before = list(values)
        values.sort()
        values.append(-1)
        assert by_tile(report)[name] == before


def test_lists_of_a_report_are_sized_true_when_full_and_counted_from_both_ends() -> None:
    report = pva.openReport(SAMPLES / NAMES[0])
    runs = report.execution.runs
    assert isinstance(runs, Sized) and bool(runs) and runs[-1] == list(runs)[len(runs) - 1]
    without = pva.Report.of(report.dataset.select("graph"))
    assert not without.execution.runs and not without.execution.steps


def test_code_is_among_what_is_always_live_on_a_tile() -> None:
    compilation = pva.openReport(SAMPLES / NAMES[0]).compilation
    for tile in range(compilation.target.numTiles):
        sizes = {v.name: v.size for v in compilation.alwaysLiveVariablesForTile(tile)}
        category = compilation.tiles[tile].memory.category
        for name in ("vertexCode", "internalExchangeCode", "controlCode", "hostExchangeCode"):
            assert sizes[name] == getattr(category, name).total > 0


def test_every_attribute_that_an_object_lists_can_be_read_and_written_out(
    report: pva.Report,
) -> None:
    step = next(step for step in report.execution.steps if len(step.computeSets))
    shown = (
        report, report.compilation, report.execution, report.execution.runs[0], step, step.ipus[0],
        step.program, step.computeSets[0], report.execution.steps[0], report.compilation.tiles[0],
        report.compilation.tiles[0].memory, report.compilation.livenessProgramSteps[0],
    )  # fmt: skip
    for item in shown:
        for name in sorted(name for name in dir(item) if not name.startswith("_")):
            assert f"{name} = {getattr(item, name)}"


def test_a_sync_is_called_by_its_kind() -> None:
    report = pva.openReport(SAMPLES / NAMES[0])
    names = Counter(p.name for p in report.compilation.programs if p.type == Type.Sync)
    kinds = report.dataset.texts("programs", "sync_type")
    assert names == Counter(kinds[types(report.dataset) == "Sync"].tolist())
    assert names.keys() == {"Internal", "External"}
