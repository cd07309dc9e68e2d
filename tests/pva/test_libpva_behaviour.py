"""What existing scripts force beside names, and figures of the small report worked out by hand."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pva
from pva.errors import NotRecordedError
from pva.report import Report
from tests import builders
from tests.builders import small_report
from tests.pva.test_libpva_names import FOLDERS, PROGRAM_TYPES


@pytest.fixture(scope="module")
def report() -> Report:
    return Report.of(small_report())


def run(script: str) -> str:
    """Run a script in a fresh process."""
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


# Names


def test_annotations_need_nothing_but_the_import() -> None:
    script = """
import pva

def f(r: pva.Report, e: pva.Event, p: pva.Program.Type, t: pva.Target.Type) -> pva.IPU.Architecture:
    pass

print(f.__annotations__['p'].__name__, pva.pva_core.Program.Type is pva.Program.Type)
print(pva.pva_core.ExecutionStep.__name__)
"""
    assert run(script).split() == ["Type", "True", "ExecutionStep"]


def test_names_are_imported_one_by_one_and_all_at_once() -> None:
    assert run("from pva import openReport, OperationAnalysis, ProgramVisitor; print(1)") == "1"
    assert run("from pva import *; print(Program.Type.Sync.name)") == "Sync"


def test_both_forms_of_opening_take_their_names() -> None:
    folder = next(f for f in FOLDERS if f.name == "matmul_chain_tiny")
    profile, debug = str(folder / "profile.pop"), str(folder / "debug.cbor")
    by_name = pva.openReport(profileFilename=profile, debugInfoFilename=debug)
    assert len(pva.OperationAnalysis(by_name).operations) == 2
    assert len(pva.OperationAnalysis(pva.openReport(profile, debug)).operations) == 2
    assert isinstance(pva.openReport(filename=profile), pva.Report)


def test_a_path_that_is_not_there_raises() -> None:
    with pytest.raises(Exception, match="nowhere"):
        pva.openReport("/nowhere/profile.pop")


def test_operations_need_debug_information(report: Report) -> None:
    without = Report.of(small_report(debug_contexts=None))
    with pytest.raises(NotRecordedError, match=r"autoReport\.outputDebugInfo"):
        _ = pva.OperationAnalysis(without).operations
    assert without.compilation.programs[6].debugContext is None


# Enums and visitors


def test_the_type_of_a_type_is_that_of_each_member(report: Report) -> None:
    for program in report.compilation.programs:
        assert type(program.type) is type(pva.Program.Type.DoExchange)
        assert program.type in list(pva.Program.Type.__members__.values())
        assert {program.type: program.name}[pva.Program.Type[program.type.name]] == program.name


def test_members_of_both_levels_are_exported_and_the_latter_wins() -> None:
    settings = pva.InstrumentationSettings
    assert repr(settings.Device) == "<ComputeInstrumentationLevel.Device: 4>"
    external = settings.ExternalExchangeInstrumentationLevel
    assert (settings.Off, settings.Tile, settings.Unknown) == tuple(external)


def test_members_are_shown_and_kept_as_members_of_their_class() -> None:
    for member in (pva.Program.Type.Sync, pva.Target.Type.IpuModel, pva.IPU.Architecture.Ipu2):
        assert pickle.loads(pickle.dumps(member)) is member
    assert str(pva.Program.Type.Sync) == "Type.Sync"
    assert repr(pva.Target.Type.Cpu).startswith("<Type.Cpu: ")


class WithoutSuper(pva.ProgramVisitor):
    def __init__(self) -> None:
        self.syncs = 0

    def visitSync(self, sync: Any) -> None:
        self.syncs += 1


def test_a_visitor_need_not_call_the_one_it_derives_from(report: Report) -> None:
    visitor = WithoutSuper()
    for program in report.compilation.programs:
        program.accept(visitor)
    assert visitor.syncs == 2


class NoInit(pva.ProgramVisitor):
    def visitOnTileExecute(self, onTileExecute: Any) -> None:
        self.seen = onTileExecute


class OwnFirst(pva.ProgramVisitor):
    def __init__(self, kinds: tuple[str, ...]) -> None:
        self.calls = []  # before super().__init__()
        for kind in kinds:
            setattr(self, f"visit{kind}", lambda p, kind=kind: self.calls.append((kind, p._id)))
        super().__init__()


def program_of_each_type() -> Report:
    codes = list(range(len(builders.schema.PROGRAM_TYPES)))
    tables = {"type": codes, "name": [f"p{code}" for code in codes], "target": [0] * len(codes),
              "compute_set": [0] * len(codes), "exchange": [0] * len(codes)}  # fmt: skip
    return Report.of(small_report(programs=tables))


def test_a_program_of_each_type_calls_its_own_method() -> None:
    visitor, types = OwnFirst(PROGRAM_TYPES), builders.schema.PROGRAM_TYPES
    for program in program_of_each_type().compilation.programs:
        program.accept(visitor)
        program.accept(NoInit())
    names = ["StreamCopyMid" if name == "StreamCopy" else name for name in types]
    assert visitor.calls == [(name, row) for row, name in enumerate(names)]


def test_classes_are_named_after_types_and_syncs_are_plain() -> None:
    programs = program_of_each_type().compilation.programs
    syncs = {"Sync", "SyncAns", "Sans"}
    for program in programs:
        plain = program.type.name in syncs
        wanted = "Program" if plain else f"{program.type.name}Program"
        assert type(program).__name__ == wanted
        assert type(program) is getattr(pva, wanted)
        assert isinstance(program, pva.Program)


def test_a_call_names_what_it_calls(report: Report) -> None:
    call = report.compilation.programs[7]
    assert isinstance(call, pva.CallProgram)
    assert (call.target._id, len(call.children)) == (builders.FUNCTION, 0)


# Code and vertices


def test_control_code_includes_that_of_children(report: Report) -> None:
    # Program 3 (8 bytes on each tile) has 4 (none), which has 5 (8), 6 (8) and 7 (none).
    programs = report.compilation.programs
    assert list(programs[6].controlCodeByTile) == [8] * 10
    assert list(programs[4].controlCodeByTile) == [16] * 10
    assert list(programs[3].controlCodeByTile) == [24] * 10
    assert list(programs[10].controlCodeByTile) == [8] + [0] * 9
    total = [tile.memory.category.controlCode.total for tile in report.compilation.tiles]
    assert list(programs[0].controlCodeByTile) == total == [72] + [64] * 9


def test_a_program_below_two_others_is_counted_once() -> None:
    rows = {"program": [0, 0, 1, 2, 3], "child": [1, 2, 3, 3, 5]}
    programs = Report.of(small_report(program_children=rows)).compilation.programs
    assert list(programs[0].controlCodeByTile)[1:] == [16 + 8 + 8 + 8 + 8] * 9


def test_code_of_an_exchange_by_tile(report: Report) -> None:
    exchange = report.compilation.programs[5]
    assert isinstance(exchange, pva.DoExchangeProgram)
    assert np.array(exchange.codeBytesByTile, dtype=np.uint64).tolist() == [4] * 10
    assert exchange.estimatedCyclesByTile[9] == 49


def test_a_program_that_does_not_tell_what_it_works_on_is_no_other() -> None:
    tables = small_report().table("programs")
    blank = {name: [-1] * 14 for name in ("compute_set", "exchange", "target")}
    programs = Report.of(small_report(programs=tables | blank)).compilation.programs
    for row, name in ((6, "computeset"), (5, "codeBytesByTile"), (7, "target")):
        with pytest.raises(NotRecordedError, match=f"program {row} "):
            getattr(programs[row], name)


def test_vertices_by_tile(report: Report) -> None:
    reduce = report.compilation.computeSets[1]
    assert [list(v.countByTile) for v in reduce.vertices] == [
        [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 1, 0, 0, 0, 0],
    ]
    assert [sum(v.countByTile) for v in reduce.vertices] == [v.count for v in reduce.vertices]


@pytest.mark.parametrize(
    ("absent", "ask"),
    [
        ("control_code", lambda c: c.programs[0].controlCodeByTile),
        ("exchange_code_bytes", lambda c: c.programs[5].codeBytesByTile),
        ("vertex_count_by_tile", lambda c: c.computeSets[0].vertices[0].countByTile),
    ],
)
def test_a_report_without_a_figure_opens_and_says_which_option_records_it(
    absent: str, ask: Any
) -> None:
    old = Report.of(small_report(**{absent: None}))
    with pytest.raises(NotRecordedError, match=rf"{absent}.*autoReport\.outputGraphProfile"):
        ask(old.compilation)


# Variables


def test_brief_variables_have_a_tile_bytes_and_half_open_steps(report: Report) -> None:
    found = report.compilation.loweredVariables.allBriefVars
    assert len(found) == 44  # 10 of x, w, product and message, 2 of partials, 1 of y and step
    product = found[23]
    assert (product.id, product.bytes, product.tileId) == (23, 8, 3)
    assert [(i.start, i.end) for i in product.equivalenceClass.steps] == [(6, 12)]
    always = found[10].equivalenceClass
    assert [tuple(interval) for interval in always.steps] == [(0, 14)]
    assert found[43].equivalenceClass == always  # the constant, always live like w


def test_variables_of_one_liveness_are_of_one_class() -> None:
    lives = {"variable": [0, 0, 2, 3, 3], "begin": [7, 2, 1, 2, 7], "end": [9, 4, 5, 4, 9]}
    report = Report.of(small_report(variable_intervals=lives))
    classes = [v.equivalenceClass for v in report.compilation.loweredVariables.allBriefVars]
    x, product, message = classes[0], classes[20], classes[30]
    assert [tuple(interval) for interval in x.steps] == [(2, 4), (7, 9)]
    assert (x.id == message.id, x.id == product.id) == (True, False)


def test_ids_of_brief_and_full_variables_are_the_same(report: Report) -> None:
    variables = report.compilation.loweredVariables
    brief = {v.id: (v.bytes, v.tileId) for v in variables.allBriefVars}
    for tile in range(builders.TILES):
        for variable in variables.forTile(tile):
            assert brief[variable._id] == (variable.bytes, tile)


def test_a_graphs_variable_is_found_among_what_is_live(report: Report) -> None:
    step = report.compilation.livenessProgramSteps[6]
    live = {v: v for v in step.notAlwaysLiveMemoryForTile(3).variables}
    lowered = {v.name: v for v in report.compilation.loweredVariables.forTile(3)}
    product, message = lowered["product"], lowered["message"]
    assert live[product.unloweredVar].size == product.bytes == 8
    assert (product.hasUnloweredVar, message.hasUnloweredVar) == (True, False)
    assert message.unloweredVar is None


def test_without_places_of_variables_lists_are_empty() -> None:
    compilation = Report.of(small_report(variable_pieces=None)).compilation
    assert len(compilation.loweredVariables.allBriefVars) == 0
    assert len(compilation.loweredVariables.forTile(0)) == len(compilation.programs[6].vars) == 0
    assert len(compilation.tilesWithLivenessInfo) == 0


def test_places_of_variables_that_are_not_told_say_so() -> None:
    compilation = Report.of(small_report(variables=None)).compilation
    with pytest.raises(NotRecordedError, match="variables not recorded"):
        compilation.livenessProgramSteps[6].notAlwaysLiveMemoryForTile(3)
    with pytest.raises(NotRecordedError, match="variables not recorded"):
        _ = compilation.loweredVariables.allBriefVars


def test_tiles_with_liveness_are_all_of_them(report: Report) -> None:
    compilation = report.compilation
    assert list(compilation.tilesWithLivenessInfo) == list(compilation.tiles)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_live_on_a_tile_is_what_its_variables_are(folder: Path) -> None:
    compilation = pva.openReport(folder).compilation
    tiles, steps = compilation.tiles, compilation.livenessProgramSteps
    for tile in {0, 1, len(tiles) // 2, len(tiles) - 1}:
        always = compilation.alwaysLiveVariablesForTile(tile)
        for step in steps:
            live = step.notAlwaysLiveMemoryForTile(tile)
            variables = sum(v.size for v in always) + sum(v.size for v in live.variables)
            assert variables == tiles[tile].memory.alwaysLiveBytes + live.bytes


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_graph_variables_of_a_tile_are_among_what_is_live_there(folder: Path) -> None:
    compilation = pva.openReport(folder).compilation
    sizes = {v: v.size for v in compilation.alwaysLiveVariablesForTile(0)}
    for step in compilation.livenessProgramSteps:
        sizes |= {v: v.size for v in step.notAlwaysLiveMemoryForTile(0).variables}
    of_graph = [v for v in compilation.loweredVariables.forTile(0) if v.hasUnloweredVar]
    assert [sizes[v.unloweredVar] for v in of_graph] == [v.bytes for v in of_graph]
    assert len(of_graph) >= 2


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_brief_variables_make_up_what_is_live_at_each_step(folder: Path) -> None:
    compilation = pva.openReport(folder).compilation
    steps = compilation.livenessProgramSteps
    sizes = np.zeros(len(steps), dtype=np.int64)
    always = {v._id for t in range(compilation.target.tilesPerReplica)
              for v in compilation.loweredVariables.forTile(t) if v.alwaysLive}  # fmt: skip
    for variable in compilation.loweredVariables.allBriefVars:
        for interval in variable.equivalenceClass.steps if variable.id not in always else ():
            sizes[interval.start : interval.end] += variable.bytes
    assert sizes.tolist() == [step.notAlwaysLiveMemory.bytes for step in steps]


# Operations


def test_operations_are_the_outermost_calls_of_libraries(report: Report) -> None:
    # Contexts: 1 model, 2 x, 3 multiply (popops), 4 add (popops), 5 reduce (popops), 6 y.
    operations = pva.OperationAnalysis(report).operations
    assert [
        (o.name, [p._id for p in o.programs()], o.firstStepIndex, o.lastStepIndex)
        for o in operations
    ] == [
        ("x", [2], 2, 2), ("multiply", [5, 6], 5, 6), ("add", [12], 9, 9),
        ("reduce", [8, 9], 11, 12), ("y", [10], 13, 13),
    ]  # fmt: skip


def test_variables_of_an_operation_are_those_of_its_programs_once(report: Report) -> None:
    multiply = pva.OperationAnalysis(report).operations[1]
    names = [v.name for v in multiply.vars]
    assert {name: names.count(name) for name in names} == {
        "x": 10, "w": 10, "product": 10, "message": 10,
    }  # fmt: skip


def test_a_debug_context_has_json_parents_and_a_place(report: Report) -> None:
    context = pva.OperationAnalysis(report).operations[1].debugContext
    assert (context.id, json.loads(context.json), json.loads(context.layer)) == (
        3, {"op": "multiply"}, {"layer": "popops"},
    )  # fmt: skip
    assert (context.location.fileName, context.location.lineNumber) == ("model.py", 12)
    (parent,) = context.parents
    assert (parent.name, parent.parents, parent.json) == ("model", [], "{}")
    assert context == report.compilation.programs[6].debugContext


def contexts(*rows: tuple[int, int, str, str]) -> dict[str, Any]:
    columns = dict(zip(("id", "parent", "name", "layer"), zip(*rows, strict=True), strict=True))
    blank = [""] * len(rows)
    return {name: list(values) for name, values in columns.items()} | {
        "file": blank, "function": blank, "line": [0] * len(rows), "json": blank,
    }  # fmt: skip


def test_an_operation_of_a_framework_is_that_of_its_graph() -> None:
    chain = contexts((9, -1, "relu", "poptorch"), (7, 9, "Relu:0", "popart"),
                     (2, 7, "Nonlinearity", "popnn"), (3, 2, "vertices", "poplar"))  # fmt: skip
    found = Report.of(small_report(debug_contexts=chain))
    (relu,) = pva.OperationAnalysis(found).operations
    assert (relu.name, [p._id for p in relu.programs()]) == ("Relu:0", [2, 5, 6])
    assert [parent.name for parent in relu.debugContext.parents] == ["relu"]


def test_circles_of_contexts_end() -> None:
    circle = contexts((2, 3, "a", "popops"), (3, 2, "b", "popops"))
    found = Report.of(small_report(debug_contexts=circle))
    assert sorted(o.name for o in pva.OperationAnalysis(found).operations) == ["a", "b"]


# Execution


def test_without_an_execution_profile_there_are_no_cycles() -> None:
    execution = Report.of(small_report().select("graph")).execution
    assert (execution.totalCycles.total, len(execution.steps), len(execution.runs)) == (0, 0, 0)
    assert len(execution.blocks(0)) == 0


def test_balance_and_data_of_a_step(report: Report) -> None:
    # Step 3 multiplies: tiles 0 to 4 take 60 to 84 cycles. Step 2 sends 4 bytes to each of 5 tiles.
    first = report.execution.steps[3].ipus[0]
    assert first.tileBalance == first.activeTileBalance == pytest.approx(72 / 84)
    assert report.execution.steps[2].ipus[0].dataOut == 20
    assert report.execution.steps[3].ipus[0].dataIn == 0


def test_a_step_that_does_not_tell_its_program_is_of_no_other() -> None:
    steps, programs = (small_report().table(name) for name in ("steps", "programs"))
    report = Report.of(small_report(steps=steps | {"program": [-1] * 24}))
    with pytest.raises(NotRecordedError, match="a step without a program"):
        _ = report.execution.steps[3].program
    report = Report.of(small_report(programs=programs | {"exchange": [-1] * 14}))
    assert len(report.execution.steps[1].cyclesByTile) == 0


@pytest.mark.parametrize("tile", [-1, 10])
def test_blocks_of_a_tile_that_is_not_there_are_refused(report: Report, tile: int) -> None:
    with pytest.raises(IndexError, match=f"tile {tile} is not there; tiles are 0 to 9"):
        report.execution.blocks(tile)


def test_blocks_of_a_tile(report: Report) -> None:
    multiply, copy = report.execution.blocks(4)
    assert (multiply.program.name, multiply.cyclesFrom, multiply.cyclesTo) == ("multiply", 90, 180)
    assert (multiply.isCommon, copy.isStreamCopy, copy.isOverflow, copy.tile) == (
        True, True, False, 4,
    )  # fmt: skip
    overflow = report.execution.blocks(9)[-1]
    assert (overflow.isOverflow, overflow.isBlockFlush, overflow.program) == (True, False, None)


def test_types_of_annotations_resolve() -> None:
    def example(report: pva.Report, step: pva.ExecutionStep) -> pva.Program.Type:
        return step.program.type

    assert typing.get_type_hints(example)["step"] is pva.ExecutionStep


# Clocks of tiles


def bounds(cycles: Any) -> list[int]:
    return [getattr(at, which) for at in (cycles.cyclesFrom, cycles.cyclesTo)
            for which in ("min", "max")]  # fmt: skip


def test_all_cycles_are_of_idle_tiles_too(report: Report) -> None:
    # Step 4 runs a vertex on two tiles of IPU 1; the clock of an idle one stays at 170.
    of_step, of_next = (report.execution.steps[step].ipus[1] for step in (4, 5))
    assert bounds(of_step.activeCycles) == [179, 197, 209, 227]
    assert bounds(of_step.allCycles) == [170, 206, 170, 227]
    assert bounds(of_next.allCycles)[:2] == [170, 227]


def test_a_run_begins_on_all_tiles_at_once(report: Report) -> None:
    assert bounds(report.execution.steps[12].ipus[0].allCycles)[:2] == [512, 512]


def test_an_ipu_without_a_part_in_a_step_keeps_its_clocks() -> None:
    rows = small_report().table("steps_by_ipu")
    kept = (rows["step"] != 4) | (rows["ipu"] != 1)
    fewer = Report.of(small_report(steps_by_ipu={name: v[kept] for name, v in rows.items()}))
    assert bounds(fewer.execution.steps[4].ipus[1].allCycles) == [170, 206, 170, 206]


def test_reports_without_clocks_of_all_tiles_give_those_of_active_ones() -> None:
    rows = small_report().table("steps_by_ipu")
    told = {name: values for name, values in rows.items() if not name.startswith("all_to")}
    older = Report.of(small_report(steps_by_ipu=told)).execution.steps[4].ipus[1]
    assert older.allCycles == older.activeCycles
