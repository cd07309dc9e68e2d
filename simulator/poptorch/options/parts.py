"""The groups within the options, as Options.Training and Options.Precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from simulator.popart.sessions.options import OPTIONS
from simulator.popart.settings.names import Choice
from simulator.poptorch.enums import ReductionType
from simulator.poptorch.errors import Error
from simulator.poptorch.options.part import Part


class Training(Part):
    """How a call trains."""

    LABEL = "Options.Training"
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "gradientAccumulation": 1, "reduction": ReductionType.Mean,
    }  # fmt: skip
    TAKEN = ("setMeanAccumulationAndReplicationReductionStrategy", "setConvolutionDithering")
    REFUSED: ClassVar[Mapping[str, str]] = {
        "setAutomaticLossScaling": "losses are scaled by the optimiser's loss_scaling alone"
    }

    def gradientAccumulation(self, gradient_accumulation: int) -> Self:
        """Set how many micro-batches make one change of the weights."""
        number = self._count("gradientAccumulation", gradient_accumulation)
        return self._set(gradientAccumulation=number)

    def accumulationAndReplicationReductionType(self, reduction_type: ReductionType) -> Self:
        """Set whether gradients of micro-batches and replicas are added up or averaged."""
        if reduction_type not in (ReductionType.Mean, ReductionType.Sum):
            raise Error(
                f"{self.LABEL}.accumulationAndReplicationReductionType: {reduction_type!r};"
                " ReductionType.Mean or Sum is needed"
            )
        return self._set(reduction=ReductionType(reduction_type))


class Precision(Part):
    """How exactly the device computes."""

    LABEL = "Options.Precision"
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"partials": ""}
    TAKEN = ("autocastEnabled", "autocastPolicy", "halfFloatCasting", "runningVarianceAlwaysFloat",
             "runningStatisticsAlwaysFloat")  # fmt: skip
    REFUSED: ClassVar[Mapping[str, str]] = {
        "enableStochasticRounding": "numbers are rounded to the nearest; leave it out",
        "enableFloatingPointExceptions": "the device raises none here; leave it out",
    }

    def setPartialsType(self, dtype: object) -> Self:
        """Set the type of the parts of products' sums: torch.half or torch.float."""
        name = str(dtype).removeprefix("torch.")
        types = {"half": "half", "float16": "half", "float": "float", "float32": "float"}
        if name not in types:
            raise Error(f"{self.LABEL}.setPartialsType: {dtype}; torch.half or torch.float")
        return self._set(partials=types[name])


class Jit(Part):
    """How a module is exported."""

    LABEL = "Options.Jit"
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"trace": False}

    def traceModel(self, trace_model: bool) -> Self:
        """Set whether TorchScript traces the module; otherwise torch.export takes it."""
        return self._set(trace=bool(trace_model))


class TensorLocations(Part):
    """Where tensors lie: on the device, all of them."""

    LABEL = "Options.TensorLocations"
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"ioTiles": 0}

    def numIOTiles(self, num_tiles: int) -> Self:
        """Set how many tiles of each IPU exchange with the host while the others compute."""
        return self._set(ioTiles=self._count("numIOTiles", num_tiles))

    def _on_chip(self, setter: str, location: object) -> Self:
        if not getattr(location, "on_chip", True):
            raise Error(f"{self.LABEL}.{setter}: off-chip memory; tensors stay on the device here")
        return self

    def setWeightLocation(self, location: object) -> Self:
        """Take a location of weights, which has to be on the device."""
        return self._on_chip("setWeightLocation", location)

    def setOptimizerLocation(self, location: object) -> Self:
        """Take a location of what the optimiser keeps, which has to be on the device."""
        return self._on_chip("setOptimizerLocation", location)

    def setAccumulatorLocation(self, location: object) -> Self:
        """Take a location of summed gradients, which has to be on the device."""
        return self._on_chip("setAccumulatorLocation", location)

    def setActivationLocation(self, location: object) -> Self:
        """Take a location of activations, which has to be on the device."""
        return self._on_chip("setActivationLocation", location)


class TensorLocationSettings:
    """Where a kind of tensors lies: on the chip unless `useOnChipStorage(False)`."""

    def __init__(self) -> None:
        self.on_chip = True

    def useOnChipStorage(self, use: bool = True) -> Self:
        """Set whether tensors stay on the device."""
        self.on_chip = bool(use)
        return self

    def _unchanged(self, *_: object) -> Self:
        return self

    minElementsForOffChip = minElementsForReplicatedTensorSharding = _unchanged
    useReplicatedTensorSharding = useIOTilesToLoad = useIOTilesToStore = _unchanged


class Distributed(Part):
    """Several processes, of which there is one here."""

    LABEL = "Options.Distributed"
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"processId": 0, "numProcesses": 1}
    TAKEN: ClassVar[tuple[str, ...]] = ("disable", "IPUoFConfigFiles", "setEnvVarNames")

    def configureProcessId(self, process_id: int, num_processes: int) -> Self:
        """Take the number of this process of several, which has to be the only one."""
        if num_processes != 1:
            raise Error(
                f"{self.LABEL}.configureProcessId: {num_processes} processes; start them"
                " by poprun, and use popdist.poptorch.Options"
            )
        return self._set(processId=process_id, numProcesses=num_processes)

    @property
    def processId(self) -> int:
        return int(self.value("processId"))

    @property
    def numProcesses(self) -> int:
        return int(self.value("numProcesses"))


class Popart(Part):
    """Options of PopART's sessions by their name: set("enableOutlining", False)."""

    LABEL = "Options._Popart"
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"options": {}, "patterns": {}}

    def set(self, key: str, value: object) -> Self:
        """Set an option of PopART's sessions; names of a group have a dot."""
        kind = type(OPTIONS.get(key))
        if issubclass(kind, Choice) and isinstance(value, int):  # programs give its number
            value = list(kind)[value]
        self._values["options"][key] = value
        return self

    def setPatterns(self, patterns: Mapping[str, bool], level: int = 2) -> Self:
        """Set which of PopART's patterns are used."""
        del level
        self._values["patterns"].update(patterns)
        return self
