"""Poplar's names.

graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from simulator.device import (
    Device,
    DeviceManager,
    IPUExchangeType,
    IPUModel,
    RelativeSyncDelayType,
)
from simulator.engine import Engine
from simulator.executable import Executable, compileGraph
from simulator.graph import program
from simulator.graph.debug import DebugInfo
from simulator.graph.debug import DebugName as DebugContext
from simulator.graph.errors import (
    GraphConnectionError,
    HostAccessError,
    InvalidOptionError,
    PoplarError,
    TileMappingError,
    application_runtime_error,
    graph_memory_allocation_error,
)
from simulator.graph.geometry.intervals import Interval
from simulator.graph.graph import ComputeSet, Function, Graph
from simulator.graph.host.host_functions import HostFunction, HostFunctionArgument
from simulator.graph.host.streams import DataStream, RemoteBuffer, ReplicatedStreamMode, Stream
from simulator.graph.machine.constants import (
    GlobalExchangeConstraint,
    GlobalExchangeFlow,
    IpuLinkConfiguration,
    IpuLinkTopology,
    TargetType,
)
from simulator.graph.machine.target import Target
from simulator.graph.option_table import OptionFlags
from simulator.graph.program import SyncType
from simulator.graph.tensors.tensor import Tensor, UpsampleMethod, append, concat
from simulator.graph.tensors.variables import TensorCloneMethod, VariableMappingMethod
from simulator.graph.tensors.views import replication_factor
from simulator.graph.types import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG,
    LONGLONG,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONG,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    Type,
    equivalent_device_type,
)
from simulator.graph.vertices.vertex import (
    InOut,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    Vector,
    VectorList,
    Vertex,
)
from simulator.runtime.callbacks import StreamCallback
from simulator.runtime.half_conversion import (
    copyDeviceHalfToDouble,
    copyDeviceHalfToFloat,
    copyDoubleToDeviceHalf,
    copyFloatToDeviceHalf,
)
from simulator.runtime.time_stamps import TimerTimePoint
from simulator.runtime.work import Work

if TYPE_CHECKING:
    from simulator.engine_report import printExecutionSummary as printExecutionSummary
    from simulator.engine_report import printGraphSummary as printGraphSummary
    from simulator.engine_report import printProfileSummary as printProfileSummary
    from simulator.poplibs.float_control import FloatingPointBehaviour as FloatingPointBehaviour
    from simulator.poplibs.float_control import (
        setFloatingPointBehaviour as setFloatingPointBehaviour,
    )
    from simulator.poplibs.float_control import setStochasticRounding as setStochasticRounding
    from simulator.poplibs.poprand import getHwSeeds as getHwSeeds
    from simulator.poplibs.poprand import setHwSeeds as setHwSeeds
    from simulator.poplibs.popsys import cycleCount as cycleCount
    from simulator.poplibs.popsys import cycleStamp as cycleStamp
    from simulator.profile.serialize import serializeToCBOR as serializeToCBOR
    from simulator.profile.serialize import serializeToJSON as serializeToJSON

DebugNameAndId = DebugContext
# Poplar's own names of the errors.
poplar_error = PoplarError
graph_connection_error = GraphConnectionError
invalid_option = InvalidOptionError
invalid_tile_mapping = TileMappingError
stream_connection_error = HostAccessError

# What loads the libraries, the formats or the viewers, from where when it is asked for.
_LAZY = {
    "FloatingPointBehaviour": "simulator.poplibs.float_control",
    "cycleCount": "simulator.poplibs.popsys",
    "cycleStamp": "simulator.poplibs.popsys",
    "getHwSeeds": "simulator.poplibs.poprand",
    "printExecutionSummary": "simulator.engine_report",
    "printGraphSummary": "simulator.engine_report",
    "printProfileSummary": "simulator.engine_report",
    "serializeToCBOR": "simulator.profile.serialize",
    "serializeToJSON": "simulator.profile.serialize",
    "setFloatingPointBehaviour": "simulator.poplibs.float_control",
    "setHwSeeds": "simulator.poplibs.poprand",
    "setStochasticRounding": "simulator.poplibs.float_control",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'simulator.poplar' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "BOOL",
    "CHAR",
    "DOUBLE",
    "FLOAT",
    "HALF",
    "INT",
    "LONG",
    "LONGLONG",
    "SHORT",
    "SIGNED_CHAR",
    "UNSIGNED_CHAR",
    "UNSIGNED_INT",
    "UNSIGNED_LONG",
    "UNSIGNED_LONGLONG",
    "UNSIGNED_SHORT",
    "ComputeSet",
    "DataStream",
    "DebugContext",
    "DebugInfo",
    "DebugNameAndId",
    "Device",
    "DeviceManager",
    "Engine",
    "Executable",
    "FloatingPointBehaviour",
    "Function",
    "GlobalExchangeConstraint",
    "GlobalExchangeFlow",
    "Graph",
    "GraphConnectionError",
    "HostAccessError",
    "HostFunction",
    "HostFunctionArgument",
    "IPUExchangeType",
    "IPUModel",
    "InOut",
    "Input",
    "Interval",
    "InvalidOptionError",
    "IpuLinkConfiguration",
    "IpuLinkTopology",
    "MultiVertex",
    "OptionFlags",
    "Output",
    "PoplarError",
    "RelativeSyncDelayType",
    "RemoteBuffer",
    "ReplicatedStreamMode",
    "Stream",
    "StreamCallback",
    "SupervisorVertex",
    "SyncType",
    "Target",
    "TargetType",
    "Tensor",
    "TensorCloneMethod",
    "TileMappingError",
    "TimerTimePoint",
    "Type",
    "UpsampleMethod",
    "VariableMappingMethod",
    "Vector",
    "VectorList",
    "Vertex",
    "Work",
    "append",
    "application_runtime_error",
    "compileGraph",
    "concat",
    "copyDeviceHalfToDouble",
    "copyDeviceHalfToFloat",
    "copyDoubleToDeviceHalf",
    "copyFloatToDeviceHalf",
    "cycleCount",
    "cycleStamp",
    "equivalent_device_type",
    "getHwSeeds",
    "graph_connection_error",
    "graph_memory_allocation_error",
    "invalid_option",
    "invalid_tile_mapping",
    "poplar_error",
    "printExecutionSummary",
    "printGraphSummary",
    "printProfileSummary",
    "program",
    "replication_factor",
    "serializeToCBOR",
    "serializeToJSON",
    "setFloatingPointBehaviour",
    "setHwSeeds",
    "setStochasticRounding",
    "stream_connection_error",
]
