"""Read reports, traces, runs, explorations: `openReport(path)`, `openTrace`, `openRun` and so on.

Names are loaded when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pva.errors import PvaError as PvaError
    from pva.many.exploration import openExploration as openExploration
    from pva.many.fleet import openFleet as openFleet
    from pva.many.run import openRun as openRun
    from pva.model.blocks import Block as Block
    from pva.model.compilation import CompilationReport as CompilationReport
    from pva.model.debug import DebugContext as DebugContext
    from pva.model.debug import SourceLocation as SourceLocation
    from pva.model.execution import ExecutionReport as ExecutionReport
    from pva.model.execution import ExecutionStep as ExecutionStep
    from pva.model.execution import IpuStep as IpuStep
    from pva.model.execution import OtherRun as OtherRun
    from pva.model.execution import Run as Run
    from pva.model.graph import ComputeSet as ComputeSet
    from pva.model.graph import Graph as Graph
    from pva.model.graph import VertexInstances as VertexInstances
    from pva.model.graph import VertexType as VertexType
    from pva.model.host_trace.events import Event as Event
    from pva.model.host_trace.events import Process as Process
    from pva.model.host_trace.events import Thread as Thread
    from pva.model.instrumentation import InstrumentationSettings as InstrumentationSettings
    from pva.model.liveness import LiveMemory as LiveMemory
    from pva.model.liveness import LivenessProgramStep as LivenessProgramStep
    from pva.model.memory import TileMemory as TileMemory
    from pva.model.operations import Operation as Operation
    from pva.model.operations import OperationAnalysis as OperationAnalysis
    from pva.model.programs import CallProgram as CallProgram
    from pva.model.programs import CopySharedStructureProgram as CopySharedStructureProgram
    from pva.model.programs import DoExchangeProgram as DoExchangeProgram
    from pva.model.programs import GlobalExchangeProgram as GlobalExchangeProgram
    from pva.model.programs import IfElseProgram as IfElseProgram
    from pva.model.programs import IfProgram as IfProgram
    from pva.model.programs import OnEveryTileSwitchProgram as OnEveryTileSwitchProgram
    from pva.model.programs import OnTileExecuteProgram as OnTileExecuteProgram
    from pva.model.programs import Program as Program
    from pva.model.programs import ProgramVisitor as ProgramVisitor
    from pva.model.programs import RepeatProgram as RepeatProgram
    from pva.model.programs import RepeatWhileFalseProgram as RepeatWhileFalseProgram
    from pva.model.programs import RepeatWhileProgram as RepeatWhileProgram
    from pva.model.programs import RepeatWhileTrueProgram as RepeatWhileTrueProgram
    from pva.model.programs import SequenceProgram as SequenceProgram
    from pva.model.programs import (
        SetLocalConsensusFromVarProgram as SetLocalConsensusFromVarProgram,
    )
    from pva.model.programs import StreamCopyBeginProgram as StreamCopyBeginProgram
    from pva.model.programs import StreamCopyEndProgram as StreamCopyEndProgram
    from pva.model.programs import StreamCopyMidProgram as StreamCopyMidProgram
    from pva.model.programs import SwitchProgram as SwitchProgram
    from pva.model.programs import WriteUndefProgram as WriteUndefProgram
    from pva.model.target import IPU as IPU
    from pva.model.target import Target as Target
    from pva.model.target import Tile as Tile
    from pva.model.variables import BriefVariable as BriefVariable
    from pva.model.variables import EquivalenceClass as EquivalenceClass
    from pva.model.variables import Interval as Interval
    from pva.model.variables import LoweredVariable as LoweredVariable
    from pva.model.variables import LoweredVariables as LoweredVariables
    from pva.model.variables import VariableSize as VariableSize
    from pva.report import PoplarVersion as PoplarVersion
    from pva.report import ProfileReportVersion as ProfileReportVersion
    from pva.report import ProfileVersionReport as ProfileVersionReport
    from pva.report import Report as Report
    from pva.report import openReport as openReport
    from pva.summary.printing import printExecutionSummary as printExecutionSummary
    from pva.summary.printing import printGraphSummary as printGraphSummary
    from pva.summary.printing import printProfileSummary as printProfileSummary
    from pva.trace import Trace as Trace
    from pva.trace import openTrace as openTrace

# In which module each public name is.
_HOME = {
    "errors": "PvaError",
    "many.exploration": "openExploration",
    "many.fleet": "openFleet",
    "many.run": "openRun",
    "model.blocks": "Block",
    "model.compilation": "CompilationReport",
    "model.debug": "DebugContext SourceLocation",
    "model.host_trace.events": "Event Process Thread",
    "model.execution": "ExecutionReport ExecutionStep IpuStep OtherRun Run",
    "model.graph": "ComputeSet Graph VertexInstances VertexType",
    "model.instrumentation": "InstrumentationSettings",
    "model.liveness": "LiveMemory LivenessProgramStep",
    "model.memory": "TileMemory",
    "model.operations": "Operation OperationAnalysis",
    "model.programs": (
        "CallProgram CopySharedStructureProgram DoExchangeProgram GlobalExchangeProgram "
        "IfElseProgram IfProgram OnEveryTileSwitchProgram OnTileExecuteProgram Program "
        "ProgramVisitor RepeatProgram RepeatWhileFalseProgram RepeatWhileProgram "
        "RepeatWhileTrueProgram SequenceProgram SetLocalConsensusFromVarProgram "
        "StreamCopyBeginProgram StreamCopyEndProgram StreamCopyMidProgram SwitchProgram "
        "WriteUndefProgram"
    ),
    "model.target": "IPU Target Tile",
    "model.variables": (
        "BriefVariable EquivalenceClass Interval LoweredVariable LoweredVariables VariableSize"
    ),
    "report": "PoplarVersion ProfileReportVersion ProfileVersionReport Report openReport",
    "summary.printing": "printExecutionSummary printGraphSummary printProfileSummary",
    "trace": "Trace openTrace",
}
_MODULES = {name: module for module, names in _HOME.items() for name in names.split()}
# What is named without being imported: libpva's extension module, the analyses, the errors.
_SUBMODULES = ("pva_core", "analysis", "errors")

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    member = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return member


def __dir__() -> list[str]:
    return [*__all__, *_SUBMODULES, *(name for name in globals() if name.startswith("__"))]
