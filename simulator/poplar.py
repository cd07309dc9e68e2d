"""Poplar's names.

graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
"""

from __future__ import annotations

from simulator.device import Device, IPUModel
from simulator.engine import Engine
from simulator.graph import program
from simulator.graph.errors import (
    GraphConnectionError,
    HostAccessError,
    PoplarError,
    TileMappingError,
)
from simulator.graph.graph import ComputeSet, Function, Graph
from simulator.graph.intervals import Interval
from simulator.graph.streams import DataStream, RemoteBuffer, ReplicatedStreamMode, Stream
from simulator.graph.target import Target
from simulator.graph.tensor import Tensor, UpsampleMethod, append, concat
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
)
from simulator.graph.vertex import (
    InOut,
    Input,
    MultiVertex,
    Output,
    SupervisorVertex,
    Vector,
    VectorList,
    Vertex,
)
from simulator.graph.views import replication_factor
from simulator.runtime.callbacks import StreamCallback

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
    "Device",
    "Engine",
    "Function",
    "Graph",
    "GraphConnectionError",
    "HostAccessError",
    "IPUModel",
    "InOut",
    "Input",
    "Interval",
    "MultiVertex",
    "Output",
    "PoplarError",
    "RemoteBuffer",
    "ReplicatedStreamMode",
    "Stream",
    "StreamCallback",
    "SupervisorVertex",
    "Target",
    "Tensor",
    "TileMappingError",
    "Type",
    "UpsampleMethod",
    "Vector",
    "VectorList",
    "Vertex",
    "append",
    "concat",
    "program",
    "replication_factor",
]
