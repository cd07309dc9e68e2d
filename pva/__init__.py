"""Read reports and host traces: `openReport(path)` and `openTrace(path)`.

Names are loaded when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pva.errors import PvaError as PvaError
    from pva.model.compilation import CompilationReport as CompilationReport
    from pva.model.events import Event as Event
    from pva.model.execution import ExecutionReport as ExecutionReport
    from pva.model.execution import ExecutionStep as ExecutionStep
    from pva.model.execution import IpuStep as IpuStep
    from pva.model.execution import Run as Run
    from pva.model.graph import ComputeSet as ComputeSet
    from pva.model.graph import Graph as Graph
    from pva.model.instrumentation import InstrumentationSettings as InstrumentationSettings
    from pva.model.liveness import LivenessProgramStep as LivenessProgramStep
    from pva.model.memory import TileMemory as TileMemory
    from pva.model.programs import DoExchangeProgram as DoExchangeProgram
    from pva.model.programs import GlobalExchangeProgram as GlobalExchangeProgram
    from pva.model.programs import OnTileExecuteProgram as OnTileExecuteProgram
    from pva.model.programs import Program as Program
    from pva.model.programs import ProgramVisitor as ProgramVisitor
    from pva.model.programs import StreamCopyBeginProgram as StreamCopyBeginProgram
    from pva.model.programs import StreamCopyEndProgram as StreamCopyEndProgram
    from pva.model.programs import StreamCopyMidProgram as StreamCopyMidProgram
    from pva.model.target import IPU as IPU
    from pva.model.target import Target as Target
    from pva.model.target import Tile as Tile
    from pva.model.variables import LoweredVariable as LoweredVariable
    from pva.model.variables import VariableSize as VariableSize
    from pva.report import PoplarVersion as PoplarVersion
    from pva.report import ProfileReportVersion as ProfileReportVersion
    from pva.report import Report as Report
    from pva.report import openReport as openReport
    from pva.trace import Trace as Trace
    from pva.trace import openTrace as openTrace

# In which module each public name is.
_HOME = {
    "errors": ("PvaError",),
    "model.compilation": ("CompilationReport",),
    "model.events": ("Event",),
    "model.execution": ("ExecutionReport", "ExecutionStep", "IpuStep", "Run"),
    "model.graph": ("ComputeSet", "Graph"),
    "model.instrumentation": ("InstrumentationSettings",),
    "model.liveness": ("LivenessProgramStep",),
    "model.memory": ("TileMemory",),
    "model.programs": (
        "DoExchangeProgram", "GlobalExchangeProgram", "OnTileExecuteProgram", "Program",
        "ProgramVisitor", "StreamCopyBeginProgram", "StreamCopyEndProgram", "StreamCopyMidProgram",
    ),
    "model.target": ("IPU", "Target", "Tile"),
    "model.variables": ("LoweredVariable", "VariableSize"),
    "report": ("PoplarVersion", "ProfileReportVersion", "Report", "openReport"),
    "trace": ("Trace", "openTrace"),
}  # fmt: skip
_MODULES = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
