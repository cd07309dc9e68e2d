"""`docs/objects.md`, made from the classes of a report: `python -m pva.document`.

A test compares the file with what this gives, and the page with what the objects have.
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pva
from pva import schema
from pva.model import execution, memory, programs

HEAD = """# The objects of a report and of a trace

Programs written for Graphcore's `pva` (libpva) run unchanged: what it has is here by its names, in
its units. Lists have a length, are indexed, sliced and iterated. Enumerations are compared with
their members: `program.type == pva.Program.Type.OnTileExecute`. What was not recorded is a
`pva.PvaError`, which names the option that records it. A visitor of programs derives from
`pva.ProgramVisitor` and has methods as `visitOnTileExecute(self, program)`.

The DataFrames of `report.frames` and `trace.frames` have the same for many rows at a time. This
file is made from the docstrings by `make documents`.
"""
# Attributes that have no docstring: their names, type and meaning.
Fields = tuple[tuple[str, str, str], ...]
PATH = ("path", "Path", "The file or directory that was opened.")
VERSION = ("major, minor, point", "int", "The parts of the version.")
REGION = "Bytes of each region."
# How one gets to an object, its class, and its fields.
SECTIONS: tuple[tuple[str, type, Fields], ...] = (
    ("report = pva.openReport(path)", pva.Report, (PATH,)),
    ("report.poplarVersion", pva.PoplarVersion, (
        VERSION, ("packageHash, string", "str", "The package, and the version as one text."))),
    ("report.version", pva.ProfileReportVersion, (
        VERSION, ("isUnstableFormat", "bool", "Whether the format may still change."))),
    ("report.instrumentationSettings", pva.InstrumentationSettings, (
        ("compute", "ComputeInstrumentationLevel", "Of what compute was measured."),
        ("externalExchange", "ExternalExchangeInstrumentationLevel", "The same of exchanges."))),
    ("report.compilation", pva.CompilationReport, ()),
    ("report.compilation.graph", pva.Graph, (
        ("numComputeSets, numEdges, numVars, numVertices", "int", "How many there are."),)),
    ("report.compilation.target", pva.Target, (
        ("type", "Target.Type", "Kind of target."),
        ("architecture", "IPU.Architecture", "Generation of IPU."),
        ("numIPUs, numTiles, numReplicas", "int", "How many there are."),
        ("tilesPerIpu, ipusPerReplica, tilesPerReplica", "int", "How many there are in each."),
        ("bytesPerTile, bytesPerIPU, memoryPerReplica, totalMemory", "int", "Bytes of memory."),
        ("clockFrequency", "float", "Clock, Hz."),
        ("minSyncDelay", "int", "Least cycles that a sync takes."))),
    ("report.compilation.ipus[0]", pva.IPU, ()),
    ("report.compilation.tiles[0]", pva.Tile, ()),
    ("report.compilation.tiles[0].memory", pva.TileMemory, ()),
    ("report.compilation.tiles[0].memory.total", memory.Gaps, (
        ("includingGaps, excludingGaps", "int", "Bytes with the gaps, and without."),)),
    ("report.compilation.tiles[0].memory.category", memory.Categories, (
        (", ".join(schema.CATEGORIES), "CategoryMemory", "Each category."),)),
    ("report.compilation.tiles[0].memory.category.variable", memory.CategoryMemory, (
        ("nonInterleaved, interleaved, overflowed", "Overlaps", REGION),)),
    ("report.compilation.tiles[0].memory.category.variable.interleaved", memory.Overlaps, (
        ("nonOverlapped, overlapped", "int", "Bytes that lie alone, and that share their place."),
    )),
    ("report.compilation.tiles[0].memory.vertices[0]", memory.TileVertexType, ()),
    ("report.compilation.computeSets[0]", pva.ComputeSet, ()),
    ("report.compilation.computeSets[0].vertices[0]", pva.VertexInstances, ()),
    ("report.compilation.computeSets[0].vertices[0].type", pva.VertexType, ()),
    ("program = report.compilation.programs[0]", pva.Program, (
        ("_id", "int", "Its place in `programs`."),)),
    ("program, of type OnTileExecute", pva.OnTileExecuteProgram, ()),
    ("program, of type DoExchange, GlobalExchange or StreamCopyMid", programs.ExchangeProgram, ()),
    ("program, of type Call", pva.CallProgram, ()),
    ("report.compilation.livenessProgramSteps[0]", pva.LivenessProgramStep, ()),
    ("report.compilation.livenessProgramSteps[0].notAlwaysLiveMemory", pva.LiveMemory, (
        ("bytes", "int", "How much is live."),)),
    ("report.compilation.alwaysLiveVariables[0]", pva.VariableSize, (
        ("name", "str", "Debug name, or the category of other data."),
        ("size", "int", "Bytes."))),
    ("report.compilation.loweredVariables", pva.LoweredVariables, ()),
    ("report.compilation.loweredVariables.forTile(0)[0]", pva.LoweredVariable, (
        ("_id", "int", "The `id` of the same among `allBriefVars`."),)),
    ("brief = report.compilation.loweredVariables.allBriefVars[0]", pva.BriefVariable, (
        ("equivalenceClass", "EquivalenceClass", "When it is live."),)),
    ("brief.equivalenceClass", pva.EquivalenceClass, (
        ("id", "int", "Number of the class."), ("steps", "list[Interval]", "When it is live."))),
    ("brief.equivalenceClass.steps[0]", pva.Interval, (
        ("start, end", "int", "Indexes into `livenessProgramSteps`."),)),
    ("report.execution", pva.ExecutionReport, ()),
    ("report.execution.totalCycles", execution.TotalCycles, (("total", "int", "Their sum."),)),
    ("report.execution.otherRuns[0]", pva.OtherRun, ()),
    ("report.execution.runs[0]", pva.Run, ()),
    ("report.execution.runs[0].microseconds", execution.Microseconds, (
        ("start, end", "float", "Begin and end."),)),
    ("report.execution.steps[0]", pva.ExecutionStep, ()),
    ("report.execution.steps[0].computeSets[0]", execution.ComputeSetStep, ()),
    ("report.execution.steps[0].ipus[0]", pva.IpuStep, ()),
    ("report.execution.steps[0].ipus[0].allCycles", execution.CycleRange, (
        ("cyclesFrom, cyclesTo", "Extremes", "Clocks at the begin and at the end."),)),
    ("report.execution.steps[0].ipus[0].allCycles.cyclesFrom", execution.Extremes, (
        ("min, max", "int", "Clock of the first tile and of the last, cycles."),)),
    ("report.execution.blocks(tile)[0]", pva.Block, ()),
    ("pva.OperationAnalysis(report)", pva.OperationAnalysis, ()),
    ("operation = pva.OperationAnalysis(report).operations[0]", pva.Operation, (
        ("firstStepIndex, lastStepIndex", "int", "Its first and its last step."),)),
    ("operation.debugContext", pva.DebugContext, ()),
    ("operation.debugContext.location", pva.SourceLocation, (
        ("fileName, functionName", "str", "File and function."),
        ("lineNumber", "int", "Line; the first of a file is 1."))),
    ("trace = pva.openTrace(path)", pva.Trace, (
        PATH, ("paths", "tuple[Path, ...]", "Each of the files."))),
    ("trace.processes[0]", pva.Process, (
        ("pid", "int", "Identifier."), ("name", "str", "Name."),
        ("threads", "list[Thread]", "Its threads."))),
    ("thread = trace.processes[0].threads[0]", pva.Thread, (
        ("pid, tid", "int", "Identifiers of its process and its own."),
        ("name", "str", "Name."),
        ("names", "Names", "Texts of labels and channels."),
        ("count", "int", "How many events it has, inner ones too."))),
    ("thread.events[0]", pva.Event, ()),
)  # fmt: skip

LISTS = re.compile(r"(?:Items|Sequence|list|tuple)\[([\w.]+)(?:, \.\.\.)?\]")
WORDS = {"Numbers": "list of int", "Events": "list of Event", "ProgramType": "Program.Type"}


class Attribute(NamedTuple):
    """One row of a section: names that are alike, their type and meaning."""

    names: str
    type: str
    meaning: str


def markdown() -> str:
    """Write the page."""
    return "\n".join([HEAD, *(_section(*section) for section in SECTIONS)])


def attributes(kind: type, fields: Fields) -> list[Attribute]:
    """Return what the objects of a class have beside what a class above it on the page has."""
    inherited = {name for base in _above(kind) for name in dir(base)}
    documented = [
        attribute
        for name in dir(kind)
        if not name.startswith("_") and name not in inherited
        for attribute in _documented(name, inspect.getattr_static(kind, name))
    ]
    return sorted([*documented, *(Attribute(*field) for field in fields)])


def _above(kind: type) -> list[type]:
    return [
        section_kind
        for _, section_kind, _ in SECTIONS
        if section_kind is not kind and issubclass(kind, section_kind)
    ]


def _documented(name: str, member: object) -> Iterator[Attribute]:
    if isinstance(member, enum.EnumType):
        members = ", ".join(f"`{member}`" for member in member.__members__)
        yield Attribute(name, "enumeration", f"{members}.")
        return
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    if not inspect.isfunction(function):
        return
    parameters = list(inspect.signature(function).parameters)[1:]
    shown = f"{name}({', '.join(parameters)})" if function is member else name
    yield Attribute(shown, function.__annotations__["return"], _first_line(function))


def _first_line(item: object) -> str:
    return " ".join((inspect.getdoc(item) or "").partition("\n\n")[0].split())


def _section(path: str, kind: type, fields: Fields) -> str:
    above = [base.__name__ for base in _above(kind)]
    lines = [
        inspect.getdoc(kind) or "",
        *(f"It has the attributes of a {name}, too." for name in above),
    ]
    rows = [
        f"| {_code(names)} | {_type(type_)} | {meaning} |"
        for names, type_, meaning in attributes(kind, fields)
    ]
    head = [f"## {kind.__name__}", "", f"    {path}", "", *lines, ""]
    return "\n".join([*head, "| attribute | type | what it is |", "| --- | --- | --- |", *rows, ""])


def _code(names: str) -> str:
    """Mark names as code; a method's arguments stay with it."""
    parts = [names] if "(" in names else names.split(", ")
    return ", ".join(f"`{name}`" for name in parts)


def _type(annotation: str) -> str:
    """Write an annotation in words."""
    text = LISTS.sub(r"list of \1", annotation).replace(" | ", " or ")
    return re.sub(r"\w+", lambda word: WORDS.get(word[0], word[0]), text)


if __name__ == "__main__":
    sys.stdout.write(markdown())
