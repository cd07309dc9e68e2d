"""PopTorch's names for choices; those that PopART has, too, are its."""

from __future__ import annotations

from enum import Enum, IntEnum

from simulator.popart.backpropagation.losses import ReductionType
from simulator.popart.settings.names import DeviceConnectionType as ConnectionType
from simulator.popart.settings.names import MeanReductionStrategy, SyncPattern

__all__ = [
    "AnchorMode",
    "AutoStage",
    "Compiler",
    "ConnectionType",
    "DataLoaderMode",
    "HalfFloatCastingBehavior",
    "MatMulSerializationMode",
    "MeanReductionStrategy",
    "OutputMode",
    "OverlapMode",
    "ReductionType",
    "SyncPattern",
]


class OutputMode(IntEnum):
    """Which micro-batches of a call give outputs back; Default is All, in training Final."""

    Final = 0
    EveryN = 1
    All = 2
    Sum = 3
    Default = 4


AnchorMode = OutputMode


class DataLoaderMode(IntEnum):
    """Where a DataLoader prepares the next batches."""

    Sync = 0
    Async = 1
    AsyncRebatched = 2


class AutoStage(IntEnum):
    """Which stage a block is that no strategy names."""

    SameAsIpu = 0
    AutoIncrement = 1


class HalfFloatCastingBehavior(IntEnum):
    """What becomes of operations on halves and floats."""

    FloatDowncastToHalf = 0
    HalfUpcastToFloat = 1
    Default = 2


class MatMulSerializationMode(Enum):
    """Which dimension a serialised product is cut along."""

    InputChannels = "input_channels"
    ReducingDim = "reducing_dim"
    OutputChannels = "output_channels"
    Disabled = "none"


class OverlapMode(Enum):
    """When an input or output is exchanged with the host."""

    NoOverlap = "no_overlap"
    OverlapAccumulationLoop = "overlap_accumulation_loop"
    OverlapDeviceIterationLoop = "overlap_device_iteration_loop"


class Compiler(IntEnum):
    """What stands behind a front end."""

    PopART = 0
    Poplar = 1
