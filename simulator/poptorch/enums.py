"""PopTorch's names for choices."""

from __future__ import annotations

from enum import Enum, IntEnum


class OutputMode(IntEnum):
    """Which micro-batches of a call give outputs back; Default is All, in training Final."""

    Final = 0
    EveryN = 1
    All = 2
    Sum = 3
    Default = 4


AnchorMode = OutputMode


class ReductionType(IntEnum):
    """How values of several samples, micro-batches or replicas become one."""

    Mean = 0
    Sum = 1
    NoReduction = 2


class DataLoaderMode(IntEnum):
    """Where a DataLoader prepares the next batches."""

    Sync = 0
    Async = 1
    AsyncRebatched = 2


class ConnectionType(IntEnum):
    """When a device is attached."""

    Always = 0
    OnDemand = 1
    Never = 2


class SyncPattern(IntEnum):
    """Which IPUs wait for each other."""

    Full = 0
    SinglePipeline = 1
    ReplicaAndLadder = 2


class MeanReductionStrategy(IntEnum):
    """When a sum becomes a mean."""

    Running = 0
    Post = 1


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
