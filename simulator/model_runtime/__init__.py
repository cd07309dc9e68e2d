"""Model Runtime: programs of PopEF files, run request by request.

runner = model_runtime.ModelRunner("executable.popef")
outputs = runner.execute({"x": x})

Names that Graphcore's documentation shows are its own; docs/model-runtime.md tells the others.
"""

from __future__ import annotations

from simulator.model_runtime.config import (
    DeviceWaitConfig,
    DeviceWaitStrategy,
    ModelRunnerConfig,
    SessionConfig,
)
from simulator.model_runtime.devices import DeviceManager
from simulator.model_runtime.memory import (
    DataDesc,
    InputMemory,
    InputMemoryView,
    OutputMemory,
    OutputMemoryView,
)
from simulator.model_runtime.queues import InputQueue, OutputQueue, QueueManager
from simulator.model_runtime.runner import ModelRunner
from simulator.model_runtime.session import Session
from simulator.popef import load_model

__all__ = [
    "DataDesc",
    "DeviceManager",
    "DeviceWaitConfig",
    "DeviceWaitStrategy",
    "InputMemory",
    "InputMemoryView",
    "InputQueue",
    "ModelRunner",
    "ModelRunnerConfig",
    "OutputMemory",
    "OutputMemoryView",
    "OutputQueue",
    "QueueManager",
    "Session",
    "SessionConfig",
    "load_model",
]
