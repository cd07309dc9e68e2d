"""PopART's names for choices that say how its compiler works, and for where tensors lie.

Sources: popart `willow/include/popart`, the header of each name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum

from simulator.popart.errors import popart_exception
from simulator.popart.settings.input_settings import TileSet

AccumulateOuterFragmentSchedule = IntEnum(
    "AccumulateOuterFragmentSchedule",
    ["Scheduler", "Serial", "OverlapCycleOptimized", "OverlapMemoryOptimized"],
    start=0,
)
AutodiffStitchStrategy = IntEnum(
    "AutodiffStitchStrategy",
    ["RecomputeMinimal", "RecomputeAllNonInputs", "AddFwdOutputs", "SafeAddFwdOutputs"],
    start=0,
)
BatchSerializationBatchSchedule = IntEnum(
    "BatchSerializationBatchSchedule",
    ["Scheduler", "Isomorphic", "OverlapOnIo", "OverlapOnCompute"],
    start=0,
)
BatchSerializationMethod = IntEnum(
    "BatchSerializationMethod", ["UnrollDynamic", "UnrollStatic", "Loop"], start=0
)
BatchSerializationTransformContext = IntEnum(
    "BatchSerializationTransformContext", ["Fwd", "Bwd"], start=0
)
CollectiveOperator = IntEnum(
    "CollectiveOperator",
    ["Add", "Mean", "Mul", "Min", "Max", "LogicalAnd", "LogicalOr", "SquareAdd", "Local"],
    start=0,
)
# What follows the replicas that share is PopART's name, and Python's: None is a word of its own.
CommGroupType = IntEnum(
    "CommGroupType", {"All": 0, "Consecutive": 1, "Orthogonal": 2, "None": 3, "Ungrouped": 3}
)
DeviceType = IntEnum("DeviceType", ["IpuModel", "Cpu", "Ipu", "OfflineIpu", "Sim"], start=0)
ExecutionPhaseIOSchedule = IntEnum("ExecutionPhaseIOSchedule", ["Preload", "OnDemand"], start=0)
ExecutionPhaseSchedule = IntEnum(
    "ExecutionPhaseSchedule", ["Interleaving", "Batch", "BatchClusteredIO"], start=0
)
GradientTensorTrackingMethod = IntEnum(
    "GradientTensorTrackingMethod",
    [
        "AllNonViewChangingGradientTensors",
        "ConvAndMatmulGradients",
        "GradientsOfUserSpecifiedTensors",
    ],
    start=0,
)
IrSerializationFormat = IntEnum("IrSerializationFormat", ["JSON"], start=0)
ReplicatedStreamMode = IntEnum("ReplicatedStreamMode", ["Broadcast", "Replicate"], start=0)
ReplicatedTensorSharding = IntEnum("ReplicatedTensorSharding", ["Off", "On"], start=0)
SubgraphCopyingStrategy = IntEnum(
    "SubgraphCopyingStrategy", ["OnEnterAndExit", "JustInTime"], start=0
)
TensorRemapType = IntEnum("TensorRemapType", ["FwdBwdReverse", "FwdBwd", "Fwd"], start=0)
TensorStorage = IntEnum("TensorStorage", ["OnChip", "OffChip"], start=0)
VariableRetrievalMode = IntEnum(
    "VariableRetrievalMode", ["OnePerGroup", "AllReduceReplicas", "AllReplicas"], start=0
)


@dataclass(slots=True)
class CommGroup:
    """Which replicas belong together: all, so many that follow each other, or every n-th.

    >>> list(CommGroup(CommGroupType.Consecutive, 2))
    [1, 2]
    """

    type: CommGroupType = CommGroupType.All
    replicaGroupSize: int = 0

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers that a node notes."""
        return iter((int(self.type), self.replicaGroupSize))


@dataclass(slots=True)
class TensorLocation:
    """Where tensors lie: on the chip, or in remote buffers; sharded ones are whole here.

    >>> TensorLocation(TensorStorage.OffChip).storage.name
    'OffChip'
    """

    storage: TensorStorage = TensorStorage.OnChip
    loadTileSet: TileSet = TileSet.Compute
    storageTileSet: TileSet = TileSet.Compute
    replicatedTensorSharding: ReplicatedTensorSharding = ReplicatedTensorSharding.Off
    shardingDomain: CommGroup = field(default_factory=CommGroup)

    def __post_init__(self) -> None:
        storages, shardings = tuple(TensorStorage), tuple(ReplicatedTensorSharding)
        if self.storage not in storages or self.replicatedTensorSharding not in shardings:
            raise popart_exception(
                f"TensorLocation: {self.storage!r}, sharding {self.replicatedTensorSharding!r}; a "
                "TensorStorage and a ReplicatedTensorSharding are needed"
            )
        self.storage = TensorStorage(self.storage)
        self.replicatedTensorSharding = ReplicatedTensorSharding(self.replicatedTensorSharding)


class TensorLocationSettings:
    """Where the tensors of a kind lie, and from how many elements on.

    >>> settings = TensorLocationSettings(TensorStorage.OffChip, minElementsForOffChip=100)
    >>> settings.location.storage.name, settings.minElementsForOffChip
    ('OffChip', 100)
    """

    def __init__(
        self,
        location: TensorLocation | TensorStorage = TensorStorage.OnChip,
        minElementsForOffChip: int = 2,
        minElementsForReplicatedTensorSharding: int = 8192,
    ) -> None:
        full_location = (
            location if isinstance(location, TensorLocation) else TensorLocation(location)
        )
        self.location, self.minElementsForOffChip = full_location, minElementsForOffChip
        self.minElementsForReplicatedTensorSharding = minElementsForReplicatedTensorSharding


def checked_location(name: str, value: object) -> object:
    """Return where tensors lie; raises popart_exception for what is no location."""
    if isinstance(value, dict):
        return {key: checked_location(name, one) for key, one in value.items()}
    if isinstance(value, TensorLocation):
        return replace(value)  # which checks what was set after it was made
    if isinstance(value, TensorLocationSettings):
        return value
    raise popart_exception(f"SessionOptions: {name} is {value!r}; a TensorLocation is needed")
