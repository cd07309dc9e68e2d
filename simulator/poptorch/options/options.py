"""Options: how often, on how many replicas, with which outputs a module runs."""

from __future__ import annotations

import ast
import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from simulator.poptorch import enums
from simulator.poptorch.enums import OutputMode
from simulator.poptorch.errors import Error
from simulator.poptorch.log import logger
from simulator.poptorch.options.part import Part
from simulator.poptorch.options.parts import (
    Distributed,
    Jit,
    Popart,
    Precision,
    TensorLocations,
    Training,
)

# Of useOfflineIpuTarget and POPTORCH_IPU_MODEL_VERSION.
VERSIONS = {1: "mk1", 2: "mk2", 21: "ipu21"}
MODEL_VERSION, SMALL_MODEL = "POPTORCH_IPU_MODEL_VERSION", "POPTORCH_SMALL_IPU_MODEL"
ENGINE, CACHE = "POPLAR_ENGINE_OPTIONS", "POPTORCH_CACHE_DIR"
GROUPS = {
    "Training": Training, "Precision": Precision, "Jit": Jit, "Distributed": Distributed,
    "TensorLocations": TensorLocations, "_Popart": Popart,
}  # fmt: skip


class Options(Part):
    """Options of a module: Options().deviceIterations(4).Training.gradientAccumulation(2)."""

    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "deviceIterations": 1, "replicationFactor": 1, "outputMode": OutputMode.Default,
        "totalReplicas": 0, "firstReplica": 0, "period": 1, "randomSeed": None,
        "memory": {}, "synthetic": False, "anchors": {},
        "target": "", "ipus": 1, "profile": None, "logCycleCount": False, "modelName": None,
        "logDir": ".", "strategy": None, "buffers": (), "cache": "",
    }  # fmt: skip
    TAKEN: ClassVar[tuple[str, ...]] = (
        "autoRoundNumIPUs", "connectionType", "syncPattern", "useIpuModel", "useIpuId",
        "showCompilationProgressBar", "sourceLocationExcludes", "appendToLocationExcludes",
        "relaxOptimizerAttributesChecks", "broadcastBuffers", "enableStableNorm", "maxRepeatLogs",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        for name, group in GROUPS.items():
            setattr(self, name, group())
        self._set(cache=os.environ.get(CACHE, ""))

    Training: Training
    Precision: Precision
    Jit: Jit
    Distributed: Distributed
    TensorLocations: TensorLocations
    _Popart: Popart

    def deviceIterations(self, device_iterations: int) -> Self:
        """Set how many batches the device takes in one call."""
        return self._set(deviceIterations=self._count("deviceIterations", device_iterations))

    def replicationFactor(self, replication_factor: int) -> Self:
        """Set how many copies of the module share the batches."""
        return self._set(replicationFactor=self._count("replicationFactor", replication_factor))

    def setExecutionStrategy(self, strategy: object) -> Self:
        """Set how blocks become stages: PipelinedExecution or ShardedExecution."""
        return self._set(strategy=strategy)

    def outputMode(self, output_mode: OutputMode, output_return_period: int | None = None) -> Self:
        """Set which micro-batches give outputs back; EveryN needs a period."""
        if output_mode not in list(OutputMode):
            raise Error(f"Options.outputMode: {output_mode!r}; an OutputMode is needed")
        if (output_mode == OutputMode.EveryN) != (output_return_period is not None):
            raise Error("Options.outputMode: a period goes with EveryN, and with it alone")
        period = self._count("outputMode", output_return_period or 1)
        return self._set(outputMode=OutputMode(output_mode), period=period)

    anchorMode = outputMode

    def randomSeed(self, random_seed: int) -> Self:
        """Set the seed of random numbers on the device."""
        if isinstance(random_seed, bool) or not isinstance(random_seed, int) or random_seed < 0:
            raise Error(f"Options.randomSeed: {random_seed!r}; a whole number is needed")
        return self._set(randomSeed=random_seed)

    def setAvailableMemoryProportion(
        self, available_memory_proportion: Mapping[str, float]
    ) -> Self:
        """Set the share of a tile's memory that products may take, by IPU: {"IPU0": 0.5}."""
        for ipu, share in available_memory_proportion.items():
            if not (ipu.startswith("IPU") and ipu[3:].isdigit() and 0 < share <= 1):
                raise Error(
                    f"Options.setAvailableMemoryProportion: {ipu!r}: {share!r}; as in"
                    ' {"IPU0": 0.5}, more than 0 and at most 1'
                )
        shares = {int(ipu[3:]): float(v) for ipu, v in available_memory_proportion.items()}
        return self._set(memory=shares)

    def enableSyntheticData(self, enabled: bool) -> Self:
        """Set whether inputs are on the device already, so that the host moves none."""
        return self._set(synthetic=bool(enabled))

    def anchorTensor(
        self, short_name: str, long_name: str, output_mode: OutputMode | None = None,
        output_return_period: int = 1,
    ) -> Self:  # fmt: skip
        """Anchor a tensor of the model, which getAnchoredTensor(short_name) then returns."""
        row = (long_name, output_mode, self._count("anchorTensor", output_return_period))
        return self._set(anchors={**self.value("anchors"), short_name: row})

    def useOfflineIpuTarget(self, ipu_version: int = 2) -> Self:
        """Set the machine by its version: 1, 2 or 21."""
        if ipu_version not in VERSIONS:
            versions = ", ".join(map(str, VERSIONS))
            raise Error(f"Options.useOfflineIpuTarget: {ipu_version!r}; known are {versions}")
        return self._set(target=VERSIONS[ipu_version])

    def setTarget(self, target: str, ipus: int = 1) -> Self:
        """Set the machine, as mk2, bow or tiny, and over how many IPUs nodes are balanced.

        A name of tilescope: PopTorch takes what there is. Blocks say themselves how many IPUs.
        """
        return self._set(target=target, ipus=self._count("setTarget", ipus))

    def enableProfiling(self, profile_dir: str | os.PathLike[str] | None = None) -> Self:
        """Write reports to a directory; POPLAR_ENGINE_OPTIONS takes precedence."""
        if "autoReport.directory" in os.environ.get(ENGINE, ""):
            logger.warning(
                f"Options.enableProfiling: {ENGINE} names a directory of its own, which is used"
            )
        return self._set(profile=str(Path(profile_dir or ".")))

    def disableProfiling(self) -> Self:
        """Write no reports."""
        return self._set(profile=None)

    def logCycleCount(self, log_cycle_count: bool) -> Self:
        """Set whether the cycles of each call are logged."""
        return self._set(logCycleCount=bool(log_cycle_count))

    def modelName(self, name: str) -> Self:
        """Set the name of the report's folder: inference or training unless told otherwise."""
        return self._set(modelName=str(name))

    def logDir(self, log_dir: str) -> Self:
        """Set where DOT files are written."""
        return self._set(logDir=str(log_dir))

    def enableExecutableCaching(self, path: str | os.PathLike[str] | None) -> Self:
        """Set the directory where compiled modules are kept, and taken from; None keeps none.

        It is that of POPTORCH_CACHE_DIR before.
        """
        return self._set(cache=os.fspath(path or ""))

    def updatableNamedBuffers(self, buffers: list[str]) -> Self:
        """Name the buffers that copyNamedBuffersToDevice copies."""
        return self._set(buffers=tuple(buffers))

    def loadFromFile(self, filepath: str) -> Self:
        """Run the lines of a file of options, such as deviceIterations(4) or a comment."""
        try:
            lines = Path(filepath).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise Error(f"Options.loadFromFile: {filepath}: {error.strerror}") from None
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.strip().startswith("#"):
                _apply(self, line.strip(), f"{filepath}:{number}")
        return self

    def clone(self) -> Options:
        """Return a copy that can be changed by itself."""
        return copy.deepcopy(self)

    def toDict(self) -> dict[str, object]:
        """Return all values by name, those of the groups too."""
        groups = {name: getattr(self, name).toDict() for name in GROUPS}
        return {**super().toDict(), **groups}

    # What the numbers come to
    @property
    def device_iterations(self) -> int:
        return int(self.value("deviceIterations"))

    @property
    def replication_factor(self) -> int:
        return int(self.value("replicationFactor"))

    @property
    def accumulation(self) -> int:
        """Count the micro-batches of a change of the weights."""
        return int(self.Training.value("gradientAccumulation"))

    def micro_batches(self, *, training: bool) -> int:
        """Count the micro-batches of a call."""
        factor = self.accumulation if training else 1
        return self.device_iterations * self.replication_factor * factor

    def part(self) -> str:
        """Return the machine: as set, by the variables of PopTorch, "" for the default."""
        target = str(self.value("target"))
        if target:
            return target
        if os.environ.get(SMALL_MODEL, "0") not in ("0", ""):
            return "tiny"
        version = os.environ.get(MODEL_VERSION, "").removeprefix("ipu")
        return VERSIONS[int(version)] if version.isdigit() and int(version) in VERSIONS else ""


def _apply(options: Options, line: str, where: str) -> None:
    """Call the setter that a line of a file names, with constants as its arguments."""
    try:
        call = ast.parse(line, mode="eval").body
        assert isinstance(call, ast.Call)
        *path, setter = ast.unparse(call.func).split(".")
        owner: Any = options
        for name in path:
            owner = getattr(owner, name)
        arguments = [_constant(argument) for argument in call.args]
        getattr(owner, setter)(*arguments)
    except (SyntaxError, AssertionError, AttributeError, ValueError) as error:
        raise Error(f"{where}: {line!r}: {error or 'a call of a setter is needed'}") from None


def _constant(node: ast.expr) -> object:
    if isinstance(node, ast.Attribute):
        group, _, member = ast.unparse(node).removeprefix("poptorch.").partition(".")
        return getattr(getattr(enums, group), member)
    return ast.literal_eval(node)
