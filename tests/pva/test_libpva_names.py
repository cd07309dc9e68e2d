"""Every name of libpva's Python API is there, of its type, on every report.

The table follows `pva` as public documentation and public scripts use it: object, attribute, type.
A type is one of: a class, a tuple (list of the class), or `method`.
"""

from __future__ import annotations

import enum
import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import pva
from tests.builders import replicated_report, small_report

SAMPLES = Path(__file__).parents[2] / "sample_reports"
FOLDERS = sorted(file.parent for file in SAMPLES.glob("*/profile.pop"))
TRACE = next(SAMPLES.glob("*/*.pvti"))


class ListOf:
    """A list of items of a type: has a length, is indexed and iterated."""

    def __init__(self, item: Any) -> None:
        self.item = item


METHOD = Callable
INTEGERS = ListOf(int)

OBJECTS: dict[str, Callable[[pva.Report], Any]] = {
    "Report": lambda report: report,
    "PoplarVersion": lambda report: report.poplarVersion,
    "ProfileReportVersion": lambda report: report.version,
    "InstrumentationSettings": lambda report: report.instrumentationSettings,
    "CompilationReport": lambda report: report.compilation,
    "Graph": lambda report: report.compilation.graph,
    "Target": lambda report: report.compilation.target,
    "IPU": lambda report: report.compilation.ipus[0],
    "Tile": lambda report: report.compilation.tiles[0],
    "TileMemory": lambda report: report.compilation.tiles[0].memory,
    "Gaps": lambda report: report.compilation.tiles[0].memory.total,
    "TileVertex": lambda report: report.compilation.tiles[0].memory.vertices[0],
    "Category": lambda report: report.compilation.tiles[0].memory.category.variable,
    "Region": lambda report: report.compilation.tiles[0].memory.category.variable.interleaved,
    "ComputeSet": lambda report: report.compilation.computeSets[0],
    "VertexInstances": lambda report: report.compilation.computeSets[0].vertices[0],
    "VertexType": lambda report: report.compilation.computeSets[0].vertices[0].type,
    "Program": lambda report: report.compilation.programs[0],
    "OnTileExecuteProgram": lambda report: program_of(report, "OnTileExecute"),
    "DoExchangeProgram": lambda report: program_of(report, "DoExchange"),
    "LivenessProgramStep": lambda report: report.compilation.livenessProgramSteps[-1],
    "LiveMemory": lambda report: report.compilation.livenessProgramSteps[-1].notAlwaysLiveMemory,
    "VariableSize": lambda report: report.compilation.alwaysLiveVariables[0],
    "LoweredVariables": lambda report: report.compilation.loweredVariables,
    "LoweredVariable": lambda report: report.compilation.loweredVariables.forTile(0)[0],
    "BriefVariable": lambda report: report.compilation.loweredVariables.allBriefVars[0],
    "EquivalenceClass": lambda report: (
        report.compilation.loweredVariables.allBriefVars[0].equivalenceClass
    ),
    "Interval": lambda report: next(
        v.equivalenceClass.steps[0]
        for v in report.compilation.loweredVariables.allBriefVars
        if v.equivalenceClass.steps
    ),
    "OperationAnalysis": pva.OperationAnalysis,
    "Operation": lambda report: pva.OperationAnalysis(report).operations[0],
    "DebugContext": lambda report: pva.OperationAnalysis(report).operations[0].debugContext,
    "SourceLocation": lambda report: (
        pva.OperationAnalysis(report).operations[0].debugContext.location
    ),
    "ExecutionReport": lambda report: report.execution,
    "TotalCycles": lambda report: report.execution.totalCycles,
    "Run": lambda report: report.execution.runs[0],
    "Microseconds": lambda report: report.execution.runs[0].microseconds,
    "ExecutionStep": lambda report: compute_step(report),
    "ComputeSetStep": lambda report: compute_step(report).computeSets[0],
    "IpuStep": lambda report: report.execution.steps[0].ipus[0],
    "CycleRange": lambda report: report.execution.steps[0].ipus[0].activeCycles,
    "Extremes": lambda report: report.execution.steps[0].ipus[0].allCycles.cyclesFrom,
}
NAMES: dict[str, dict[str, Any]] = {
    "Report": {
        "compilation": pva.CompilationReport, "execution": pva.ExecutionReport,
        "instrumentationSettings": pva.InstrumentationSettings, "poplarVersion": pva.PoplarVersion,
        "version": pva.ProfileReportVersion, "listPrintLength": METHOD,
    },
    "PoplarVersion": {"major": int, "minor": int, "point": int, "packageHash": str, "string": str},
    "ProfileReportVersion": {"major": int, "minor": int, "point": int, "isUnstableFormat": bool},
    "InstrumentationSettings": {
        "compute": pva.InstrumentationSettings.ComputeInstrumentationLevel,
        "externalExchange": pva.InstrumentationSettings.ExternalExchangeInstrumentationLevel,
    },
    "CompilationReport": {
        "graph": pva.Graph, "target": pva.Target, "tiles": ListOf(pva.Tile),
        "ipus": ListOf(pva.IPU), "computeSets": ListOf(pva.ComputeSet),
        "programs": ListOf(pva.Program), "livenessProgramSteps": ListOf(pva.LivenessProgramStep),
        "alwaysLiveVariables": ListOf(pva.VariableSize), "alwaysLiveVariablesForTile": METHOD,
        "tilesWithLivenessInfo": ListOf(pva.Tile), "loweredVariables": pva.LoweredVariables,
    },
    "Graph": {"numComputeSets": int, "numVertices": int, "numEdges": int, "numVars": int},
    "Target": {
        "type": pva.Target.Type, "architecture": pva.IPU.Architecture, "numIPUs": int,
        "tilesPerIpu": int, "numTiles": int, "bytesPerTile": int, "bytesPerIPU": int,
        "totalMemory": int, "clockFrequency": float, "numReplicas": int, "ipusPerReplica": int,
        "tilesPerReplica": int, "memoryPerReplica": int,
    },
    "IPU": {"tiles": ListOf(pva.Tile)},
    "Tile": {"memory": pva.TileMemory},
    "TileMemory": {
        "total": object, "overflowed": object, "nonInterleaved": object, "interleaved": object,
        "alwaysLiveBytes": int, "notAlwaysLiveBytes": int, "vertices": ListOf(object),
        "category": object,
    },
    "Gaps": {"includingGaps": int, "excludingGaps": int},
    "TileVertex": {"type": pva.VertexType, "codeBytes": int},
    "Category": {"total": int, "nonInterleaved": object, "interleaved": object,
                 "overflowed": object},
    "Region": {"nonOverlapped": int, "overlapped": int},
    "ComputeSet": {"name": str, "vertices": ListOf(pva.VertexInstances),
                   "estimatedCyclesByTile": INTEGERS},
    "VertexInstances": {"type": pva.VertexType, "countByTile": INTEGERS},
    "VertexType": {"name": str, "size": int},
    "Program": {
        "_id": int, "name": str, "type": pva.Program.Type, "children": ListOf(pva.Program),
        "vars": ListOf(pva.LoweredVariable), "controlCodeByTile": INTEGERS, "accept": METHOD,
    },
    "OnTileExecuteProgram": {"computeset": pva.ComputeSet},
    "DoExchangeProgram": {"codeBytesByTile": INTEGERS, "estimatedCyclesByTile": INTEGERS},
    "LivenessProgramStep": {
        "program": pva.Program, "notAlwaysLiveMemory": pva.LiveMemory,
        "notAlwaysLiveMemoryForTile": METHOD, "notAlwaysLiveMemoryForIpu": METHOD,
    },
    "LiveMemory": {"bytes": int, "variables": ListOf(pva.VariableSize)},
    "VariableSize": {"name": str, "size": int},
    "LoweredVariables": {"allBriefVars": ListOf(pva.BriefVariable), "forTile": METHOD},
    "LoweredVariable": {
        "_id": int, "name": str, "bytes": int, "alwaysLive": bool, "hasUnloweredVar": bool,
        "unloweredVar": pva.VariableSize | None,
    },
    "BriefVariable": {"id": int, "bytes": int, "tileId": int,
                      "equivalenceClass": pva.EquivalenceClass},
    "EquivalenceClass": {"id": int, "steps": ListOf(pva.Interval)},
    "Interval": {"start": int, "end": int},
    "OperationAnalysis": {"operations": ListOf(pva.Operation)},
    "Operation": {
        "name": str, "programs": METHOD, "vars": ListOf(pva.LoweredVariable),
        "firstStepIndex": int, "lastStepIndex": int, "debugContext": pva.DebugContext,
        "replacedDebugContext": ListOf(pva.DebugContext),
    },
    "DebugContext": {
        "id": int, "json": str, "layer": str, "parents": ListOf(pva.DebugContext),
        "location": object,
    },
    "SourceLocation": {"fileName": str, "lineNumber": int},
    "ExecutionReport": {
        "steps": ListOf(pva.ExecutionStep), "runs": ListOf(pva.Run), "totalCycles": object,
        "blocks": METHOD,
    },
    "TotalCycles": {"total": int},
    "Run": {"name": str, "steps": ListOf(pva.ExecutionStep), "microseconds": object},
    "Microseconds": {"start": float, "end": float},
    "ExecutionStep": {
        "program": pva.Program, "ipus": ListOf(pva.IpuStep), "computeSets": ListOf(object),
        "cyclesByTile": INTEGERS,
    },
    "ComputeSetStep": {
        "name": str, "cyclesByTile": INTEGERS, "vertices": ListOf(pva.VertexInstances),
        "estimatedCyclesByTile": INTEGERS,
    },
    "IpuStep": {
        "cycles": int, "activeCycles": object, "allCycles": object, "tileBalance": float,
        "activeTileBalance": float, "dataIn": int, "dataOut": int,
    },
    "CycleRange": {"cyclesFrom": object, "cyclesTo": object},
    "Extremes": {"min": int, "max": int},
}  # fmt: skip
CATEGORIES = (
    "constant", "controlCode", "controlId", "controlTable", "copyDescriptor", "globalExchangeCode",
    "globalExchangePacketHeader", "hostExchangeCode", "hostExchangePacketHeader",
    "instrumentationResults", "internalExchangeCode", "message", "sharedCodeStorage",
    "sharedDataStorage", "stack", "variable", "vectorListDescriptor", "vertexCode",
    "vertexFieldData", "vertexInstanceState",
)  # fmt: skip
PROGRAM_TYPES = (
    "Call", "CopySharedStructure", "DoExchange", "GlobalExchange", "If", "IfElse",
    "OnEveryTileSwitch", "OnTileExecute", "Repeat", "RepeatWhile", "RepeatWhileFalse",
    "RepeatWhileTrue", "Sans", "Sequence", "SetLocalConsensusFromVar", "StreamCopyBegin",
    "StreamCopyEnd", "StreamCopyMid", "Switch", "Sync", "SyncAns", "WriteUndef",
)  # fmt: skip
ENUMS: dict[Any, dict[str, int | None]] = {
    pva.InstrumentationSettings.ComputeInstrumentationLevel: {
        "Off": 0, "Vertex": 1, "Tile": 2, "Ipu": 3, "Device": 4, "Unknown": 5},
    pva.InstrumentationSettings.ExternalExchangeInstrumentationLevel: {
        "Off": 0, "Tile": 1, "Unknown": 2},
    pva.Target.Type: dict.fromkeys(("Ipu", "IpuModel", "Cpu", "Unknown")),
    pva.IPU.Architecture: dict.fromkeys(("Ipu2",)),
    pva.Program.Type: dict.fromkeys((*PROGRAM_TYPES, "Copy", "Execute")),
}  # fmt: skip
PUBLIC = [
    "Block", "BriefVariable", "CallProgram", "CompilationReport", "ComputeSet",
    "CopySharedStructureProgram", "DebugContext", "DoExchangeProgram", "EquivalenceClass", "Event",
    "ExecutionReport", "ExecutionStep", "GlobalExchangeProgram", "Graph", "IPU", "IfElseProgram",
    "IfProgram", "InstrumentationSettings", "Interval", "IpuStep", "LiveMemory",
    "LivenessProgramStep", "LoweredVariable", "LoweredVariables", "OnEveryTileSwitchProgram",
    "OnTileExecuteProgram", "Operation", "OperationAnalysis", "OtherRun", "PoplarVersion",
    "Process", "ProfileReportVersion", "ProfileVersionReport", "Program", "ProgramVisitor",
    "PvaError", "RepeatProgram", "RepeatWhileFalseProgram", "RepeatWhileProgram",
    "RepeatWhileTrueProgram", "Report", "Run", "SequenceProgram", "SetLocalConsensusFromVarProgram",
    "SourceLocation", "StreamCopyBeginProgram", "StreamCopyEndProgram", "StreamCopyMidProgram",
    "SwitchProgram", "Target", "Thread", "Tile", "TileMemory", "Trace", "VariableSize",
    "VertexInstances", "VertexType", "WriteUndefProgram", "openExploration", "openFleet",
    "openReport", "openRun", "openTrace",
    "printExecutionSummary", "printGraphSummary", "printProfileSummary",
]  # fmt: skip


def program_of(report: pva.Report, kind: str) -> pva.Program:
    """Return the first program of a type."""
    wanted = pva.Program.Type[kind]
    return next(program for program in report.compilation.programs if program.type == wanted)


def compute_step(report: pva.Report) -> pva.ExecutionStep:
    """Return the first step that ran a compute set."""
    return next(step for step in report.execution.steps if len(step.computeSets))


def reports() -> dict[str, Callable[[], pva.Report]]:
    made = {folder.name: lambda folder=folder: pva.openReport(str(folder)) for folder in FOLDERS}
    made["small"] = lambda: pva.Report.of(small_report())
    made["small, two replicas"] = lambda: pva.Report.of(replicated_report(2))
    return made


@pytest.fixture(params=reports().values(), ids=reports().keys(), scope="module")
def report(request: pytest.FixtureRequest) -> pva.Report:
    found: pva.Report = request.param()
    return found


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names]
)
def test_attribute_is_of_its_type(report: pva.Report, kind: str, name: str) -> None:
    found, wanted = getattr(OBJECTS[kind](report), name), NAMES[kind][name]
    if wanted is METHOD:
        assert callable(found)
    elif isinstance(wanted, ListOf):
        assert isinstance(found, Sequence) and not isinstance(found, str)
        items = [found[place] for place in range(len(found))]
        assert items == list(found)
        assert all(isinstance(item, wanted.item) for item in items)
    else:
        assert isinstance(found, wanted)
        assert not isinstance(found, bool) or wanted is bool


VIEWS = {
    "Report", "CompilationReport", "ExecutionReport", "InstrumentationSettings", "Graph", "Target",
    "LoweredVariables", "OperationAnalysis", "ComputeSetStep", "LiveMemory",
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(NAMES.keys() - VIEWS))
def test_what_is_asked_for_twice_is_equal_and_one_key(kind: str) -> None:
    report = pva.openReport(FOLDERS[0])
    first, second = OBJECTS[kind](report), OBJECTS[kind](report)
    assert first == second
    assert len({first, second}) == 1


def test_memory_has_every_category_in_every_region(report: pva.Report) -> None:
    for tile in report.compilation.tiles[:2]:
        for name in CATEGORIES:
            category = getattr(tile.memory.category, name)
            regions = (category.nonInterleaved, category.interleaved, category.overflowed)
            assert sum(r.nonOverlapped + r.overlapped for r in regions) == category.total
    assert not hasattr(report.compilation.tiles[0].memory, "used")
    assert not hasattr(report.compilation.computeSets[0].vertices[0], "estimatedCycles")
    assert not hasattr(report.execution.runs[0], "cyclesByIpu")


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__qualname__)
def test_enums_have_their_members(kind: Any) -> None:
    assert issubclass(kind, enum.Enum)
    assert [name for name in ENUMS[kind] if name not in kind.__members__] == []
    values = {name: value for name, value in ENUMS[kind].items() if value is not None}
    assert {name: kind[name].value for name in values} == values
    assert len({member: member.name for member in kind}) == len(kind.__members__)


@pytest.mark.parametrize("kind", pva.Program.Type.__members__)
def test_a_visitor_has_a_method_for_every_type(kind: str) -> None:
    assert getattr(pva.ProgramVisitor(), f"visit{kind}")(None) is None


def test_public_names_are_these() -> None:
    assert pva.__all__ == PUBLIC
    assert [name for name in PUBLIC if getattr(pva, name, None) is None] == []


@pytest.mark.parametrize("package", ["pvti", "libpvti", "simulator", "simulator.poplar"])
def test_only_public_names_are_completed(package: str) -> None:
    module = importlib.import_module(package)
    assert dir(module) == sorted(module.__all__)


def test_a_fresh_process_completes_public_names_alone() -> None:
    script = (
        "import pva; print(*(name for name in dir(pva) if name[0] != '_')); pva.errors.PvaError"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )
    assert sorted(done.stdout.split()) == sorted([*pva.__all__, "analysis", "errors", "pva_core"])


def test_names_of_the_trace_are_there() -> None:
    trace = pva.openTrace(str(TRACE))
    process = trace.processes[0]
    thread = process.threads[0]
    event = thread.events[0]
    assert trace.process(process.pid) == process
    assert process.thread(thread.tid) is thread
    assert isinstance(event, pva.Event)
    types = {"label": str, "channel": str, "timestamp": int, "duration": int}
    assert {name: type(getattr(event, name)) for name in types} == types
    assert all(isinstance(child, pva.Event) for child in event.children())
