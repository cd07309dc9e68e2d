"""PopTorch's names: modules of PyTorch on the simulator.

report = poptorch.report(module, example_input)
model = poptorch.trainingModel(module, poptorch.Options(), poptorch.optim.SGD(...))
"""

from __future__ import annotations

from simulator.graph.errors import MissingPackageError

try:
    import onnxscript as _onnxscript  # noqa: F401 - asked for first: the error says what to install
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        f"poptorch needs torch and onnxscript ({error.name} is missing):"
        " pip install 'tilescope[torch]'"
    ) from None

from simulator.poptorch import optim, profiling
from simulator.poptorch.data import AsynchronousDataAccessor, DataLoader
from simulator.poptorch.enums import (
    AnchorMode,
    AutoStage,
    Compiler,
    ConnectionType,
    DataLoaderMode,
    HalfFloatCastingBehavior,
    MatMulSerializationMode,
    MeanReductionStrategy,
    OutputMode,
    OverlapMode,
    ReductionType,
    SyncPattern,
)
from simulator.poptorch.errors import Error
from simulator.poptorch.executor import PoplarExecutor, inferenceModel, load, trainingModel
from simulator.poptorch.log import setLogLevel
from simulator.poptorch.ops import (
    CPU,
    MultiConv,
    NameScope,
    cond,
    custom_op,
    dynamic_slice,
    for_loop,
    identity_loss,
    ipu_print_tensor,
    ipuHardwareIsAvailable,
    ipuHardwareVersion,
    isRunningOnIpu,
    nop,
    recomputationCheckpoint,
    serializedMatMul,
    set_available_memory,
)
from simulator.poptorch.optim import VariableAttributes
from simulator.poptorch.options import Options, TensorLocationSettings
from simulator.poptorch.placement import (
    BeginBlock,
    Block,
    BlockFunction,
    ParallelPhasedExecution,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
    removeBlocks,
)
from simulator.poptorch.reporting import report

RecoverableError = UnrecoverableError = Error

__all__ = [
    "CPU",
    "AnchorMode",
    "AsynchronousDataAccessor",
    "AutoStage",
    "BeginBlock",
    "Block",
    "BlockFunction",
    "Compiler",
    "ConnectionType",
    "DataLoader",
    "DataLoaderMode",
    "Error",
    "HalfFloatCastingBehavior",
    "MatMulSerializationMode",
    "MeanReductionStrategy",
    "MultiConv",
    "NameScope",
    "Options",
    "OutputMode",
    "OverlapMode",
    "ParallelPhasedExecution",
    "PipelinedExecution",
    "PoplarExecutor",
    "RecoverableError",
    "ReductionType",
    "SerialPhasedExecution",
    "ShardedExecution",
    "Stage",
    "SyncPattern",
    "TensorLocationSettings",
    "UnrecoverableError",
    "VariableAttributes",
    "cond",
    "custom_op",
    "dynamic_slice",
    "for_loop",
    "identity_loss",
    "inferenceModel",
    "ipuHardwareIsAvailable",
    "ipuHardwareVersion",
    "ipu_print_tensor",
    "isRunningOnIpu",
    "load",
    "nop",
    "optim",
    "profiling",
    "recomputationCheckpoint",
    "removeBlocks",
    "report",
    "serializedMatMul",
    "setLogLevel",
    "set_available_memory",
    "trainingModel",
]
