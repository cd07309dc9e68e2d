"""What a session can be told: options of its own, and those that are handed on."""

from __future__ import annotations

import difflib
import os
from enum import Enum
from pathlib import Path
from typing import Any

from simulator import options as engine_options
from simulator.popart.errors import popart_exception, unknown_option
from simulator.popart.logging import log
from simulator.popart.settings.choices import (
    GradientTensorTrackingMethod,
    TensorLocationSettings,
    checked_location,
)
from simulator.popart.settings.names import (
    DotCheck,
    Instrumentation,
    RecomputationType,
    SyntheticDataMode,
    VirtualGraphMode,
)
from simulator.popef.cache import ENVIRONMENT

# Name -> default; its type is that of the values that it takes.
OPTIONS: dict[str, Any] = {
    "accumulationAndReplicationReductionType": "Sum",  # of gradients: Sum or Mean
    "accumulationFactor": 1,  # micro-batches whose gradients make one change of the weights
    "autoRecomputation": RecomputationType.NoRecompute,  # what the way back makes again
    "cachePath": "session_cache",  # folder of compiled models, where they are kept
    "compileEngine": True,  # without it prepareDevice builds the graph alone
    "constantWeights": True,  # an inference loads its weights by itself, when it first runs
    "defaultPrefetchBufferingDepth": 1,  # buffers of an input that the host fills ahead
    "dotChecks": [],  # stages of which DOT files are written: FWD0, FWD1, BWD0, PREALIAS, FINAL
    "enableEngineCaching": False,  # keep compiled models, and take them from there
    "enableFloatingPointChecks": False,  # write the registers; the model never traps
    "enableStochasticRounding": False,  # write the registers; the model rounds to the nearest
    "enableOutlining": True,  # equal nodes become a function, whose code is there once
    "enableOutliningCopyCostPruning": True,  # of what is outlined, leave out where copies cost more
    "enableGradientAccumulation": False,  # without it the accumulationFactor has no effect
    "enableReplicatedGraphs": False,  # without it the replicatedGraphCount has no effect
    "instrumentWithHardwareCycleCounter": False,  # measure what a run takes: getCycleCount
    "hardwareInstrumentations": [],  # what is measured: Outer, a run; Inner, a batch
    "replicatedGraphCount": 1,  # copies of the model, on as many parts of the device
    "enablePipelining": False,  # overlap batches: each IPU that has nodes is a stage
    "enableDistributedReplicatedGraphs": False,  # replicas of other instances take part, too
    "globalReplicationFactor": 1,  # the replicas of all instances
    "globalReplicaOffset": 0,  # the number of the first replica of this instance
    "engineOptions": {},  # of the Engine
    "enableLoadAndOffloadRNGState": False,  # move states of generators: getRNGState, setRNGState
    "logDir": "",  # where DOT files are written; the current folder
    "reportOptions": {},  # of the summary report: showExecutionSteps, showVarStorage, ...
    "autoVirtualGraph": False,  # balance nodes over the IPUs, instead of the builder's notes
    "convolutionOptions": {},  # of poplin's convolutions and products
    "maxPoolGradient": "All",  # which of equal maxima have it: All, as PopART, or the First (torch)
    "updatableNamedBuffers": [],  # weights that may be loaded apart; here all go together
    "outlineThreshold": 1.0,  # what a function has to be worth above those that it calls
    "numIOTiles": 0,  # of each IPU: they exchange with the host while the others compute
    "matmulOptions": {},  # of poplin's products, before those of convolutions
    "partialsTypeMatMuls": "",  # type of the parts of products: half or float
    "syntheticDataMode": SyntheticDataMode.Off,  # inputs that are on the device already
    "virtualGraphMode": VirtualGraphMode.Manual,  # whose word places nodes on IPUs
}
# Options of what the host does with a program, which is the same one whatever they are.
OF_THE_HOST = ("cachePath", "enableEngineCaching", "constantWeights", "dotChecks", "logDir",
               "reportOptions", "updatableNamedBuffers")  # fmt: skip
_WANTED = {"dict": "a dictionary", "list": "a list", "str": "a text", "bool": "True or False",
           "float": "a number", "int": "a whole number of at least 1"}  # fmt: skip
# What these take is one of few.
CHOICES: dict[str, tuple[str, ...]] = {
    "accumulationAndReplicationReductionType": ("Sum", "Mean"),
    "maxPoolGradient": ("All", "First"),
    "partialsTypeMatMuls": ("", "half", "float"),
}
# Options of PopART that say how its compiler works or checks itself; here there is no such step.
WITHOUT_EFFECT = (
    "aliasZeroCopy", "decomposeGradSum",
    "delayVarUpdates", "disableGradAccumulationTensorStreams",
    "enableExplicitMainLoops", "enableFullyConnectedPass", "enableGroupedMatmuls",
    "_enableRngStateManagement", "enableMergeExchange", "enablePrefetchDatastreams",
    "enableStableNorm", "enableVirtualGraphs",
    "explicitRecomputation", "exportPoplarComputationGraph", "exportPoplarVertexGraph",
    "finalDotOp", "firstDotOp", "dotOpNames", "gclOptions", "groupHostSync", "kahnTieBreaker",
    "lstmOptions", "meanAccumulationAndReplicationReductionStrategy", "mergeVarUpdate",
    "mergeVarUpdateMemThreshold", "opxAliasChecking", "opxModifyChecking",
    "outlineSequenceBreakCost", "prefetchBufferingDepthMap",
    "rearrangeAnchorsOnHost", "rearrangeStreamsOnHost",
    "scheduleNonWeightUpdateGradientConsumersEarly",
    "separateCallOpPdfs", "strictOpVersions", "subgraphCopyingStrategy", "swapLimitScheduler",
    "timeLimitScheduler", "transitiveClosureOptimizationThreshold", "useHostCopyOps",
    "bufferingDepthMap", "createHostTransferableTensorWithOffset",
    "createImplicitPipeliningFwdOnlyProgram", "customCodeletCompileFlags",
    "defaultBufferingDepth", "enableInplaceAmbiguityChecking", "enableVariablesCaching",
    "ensureFp32LossScaleTensor", "explicitPipelining", "groupNormStridedChannelGrouping",
    "stashAllTensorsInferencePipeline", "useLoopCandidateCreator", "virtualGraphSplitRatios",
)  # fmt: skip
# Options of PopART that would change what is computed or where it lies: only off, as it is here.
NOT_HERE = (
    "customCodelets",
    "enableNonStableSoftmax", "enableSupportedDataTypeCasting", "hostAllReduce",
    "hostAllReduceRemoteBuffer", "hostWeightUpdate",
)  # fmt: skip
# Where the tensors of a kind lie, from a size on.
LOCATIONS = (
    "accumulatorTensorLocationSettings", "activationTensorLocationSettings",
    "optimizerStateTensorLocationSettings", "tensorLocationSettingsOverride",
    "weightTensorLocationSettings",
)  # fmt: skip
# Groups of options: what is off of each, as it is here; None stands for whatever is asked for.
GROUPS: dict[str, dict[str, Any]] = {
    "accumulateOuterFragmentSettings": {"schedule": None, "excludedVirtualGraphs": None},
    "automaticLossScalingSettings": {},
    "autodiffSettings": {"stitchStrategy": None},
    "batchSerializationSettings": dict.fromkeys(
        (
            "factor",
            "method",
            "transformContext",
            "batchSchedule",
            "concatOnVirtualGraphChange",
            "concatOnExecutionPhaseChange",
            "concatOnPipelineStageChange",
        )
    ),  # a batch is one part
    "developerSettings": {},
    "experimentalSettings": dict.fromkeys(
        ("customTransformApplierSettings", "createHostTransferableTensorWithOffset")
    ),
    "executionPhaseSettings": dict.fromkeys(
        (
            "phases",
            "stages",
            "weightIOSchedule",
            "activationIOSchedule",
            "optimizerStateIOSchedule",
            "accumulatorIOSchedule",
            "schedule",
        )
    ),
    "replicatedCollectivesSettings": dict.fromkeys(
        (
            "prepareScheduleForMergingCollectives",
            "mergeAllReduceCollectives",
            "mergeReduceScatterCollectives",
            "mergeAllGatherCollectives",
        )
    ),
}
# What an option of a group is before it is set, where PopART's programs read it.
OF_GROUPS: dict[str, dict[str, Any]] = {
    "automaticLossScalingSettings": {
        "enabled": False,
        "binEdgeLocation": 0.125,  # of the largest half: the size from which a gradient is large
        "thresholdUpperCountProportion": 1e-7,  # of large gradients, beyond which the scale halves
        "toTrackTensors": None,
        "updatePeriod": 1,  # changes of the weights from one change of the scale to the next
        "gradientTensorTrackingMethod": (
            GradientTensorTrackingMethod.AllNonViewChangingGradientTensors
        ),
    },
    "experimentalSettings": {
        "customTransformApplierSettings": {},
        "createHostTransferableTensorWithOffset": False,
    },
}
# Older names of options, and the names that took their place; both have one value.
DEPRECATED = {
    "prefetchBufferingDepthMap": "bufferingDepthMap", "defaultPrefetchBufferingDepth":
    "defaultBufferingDepth",
}  # fmt: skip
NAMESAKES = {**DEPRECATED, **{new: old for old, new in DEPRECATED.items()}}
CACHES = (ENVIRONMENT, "POPART_CACHE_DIR", "POPXL_CACHE_DIR")  # variables of the environment
WITH_EFFECT = ("automaticLossScalingSettings",)  # groups whose options a program depends on
_OFF = ("None", "Off", "", "0", "False", "[]", "{}")


class Settings:
    """A group of options: opts.batchSerializationSettings.factor = 1."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)
        for option, default in OF_GROUPS.get(name, {}).items():
            object.__setattr__(self, option, _own(default))

    def __setattr__(self, name: str, value: Any) -> None:
        group = self.__dict__["_name"]
        off = GROUPS[group].get(name, (None, False, 0))
        if group in WITH_EFFECT and name in OF_GROUPS[group]:
            object.__setattr__(self, name, _of_group(group, name, value))
            return
        if off is not None and value not in (off if isinstance(off, tuple) else (off,)):
            raise popart_exception(
                f"SessionOptions: {group}.{name} is {value}; it cannot be done here, leave it out"
            )
        if off is None:
            log("session", "INFO", f"SessionOptions: {group}.{name} has no effect here")
        object.__setattr__(self, name, value)


def _of_group(group: str, name: str, value: Any) -> Any:
    """Return an option of a group as it is held; raises popart_exception for another type."""
    default = OF_GROUPS[group][name]
    converted = float(value) if isinstance(default, float) and isinstance(value, int) else value
    kind = list if default is None else type(default)
    fits = isinstance(converted, kind) and isinstance(converted, bool) == (kind is bool)
    fits = fits and (kind is not int or converted >= 1)
    if not fits and not (default is None and value is None):
        needed = _WANTED.get(kind.__name__, f"a {kind.__name__}")
        raise popart_exception(f"SessionOptions: {group}.{name} is {value!r}; {needed} is needed")
    return _own(converted)


class SessionOptions:
    """Options by name: opts.engineOptions = {"debug.instrument": "true"}.

    >>> options = SessionOptions(enableReplicatedGraphs=True)
    >>> options.replicatedGraphCount = 2
    >>> options.replicas
    2
    """

    def __init__(self, **options: Any) -> None:
        object.__setattr__(self, "_named", set())
        for name, default in OPTIONS.items():
            object.__setattr__(self, name, _own(default))
        for name in GROUPS:
            object.__setattr__(self, name, Settings(name))
        for name in LOCATIONS:
            is_mapping = name.endswith("Override")
            object.__setattr__(self, name, {} if is_mapping else TensorLocationSettings())
        for name, value in options.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in DEPRECATED:
            log(
                "session", "WARN", f"SessionOptions: {name} has been deprecated; {DEPRECATED[name]}"
            )
        if name in NAMESAKES:
            object.__setattr__(self, NAMESAKES[name], value)
        if name in LOCATIONS:
            object.__setattr__(self, name, checked_location(name, value))
        elif name in WITHOUT_EFFECT:
            log("session", "INFO", f"SessionOptions: {name} has no effect here")
            object.__setattr__(self, name, value)
        elif name in NOT_HERE:
            shown = value.name if isinstance(value, Enum) else str(value)
            if shown not in _OFF:
                raise popart_exception(
                    f"SessionOptions: {name} is {shown}; it cannot be done here, leave it out"
                )
            object.__setattr__(self, name, value)
        else:
            object.__setattr__(self, name, _checked(name, value))
            self.__dict__["_named"].add(name)

    @property
    def replicas(self) -> int:
        """Count the copies of the model in this instance.

        >>> SessionOptions(enableReplicatedGraphs=True, replicatedGraphCount=4).replicas
        4
        """
        return int(self.replicatedGraphCount) if self.enableReplicatedGraphs else 1

    @property
    def total_replicas(self) -> int:
        """Count the copies of the model in all instances.

        >>> options = SessionOptions(enableDistributedReplicatedGraphs=True)
        >>> options.globalReplicationFactor = 8
        >>> options.total_replicas
        8
        """
        of_all = self.enableDistributedReplicatedGraphs
        return int(self.globalReplicationFactor) if of_all else self.replicas

    @property
    def factor(self) -> int:
        """Count the micro-batches of a change of the weights.

        >>> SessionOptions(enableGradientAccumulation=True, accumulationFactor=4).factor
        4
        """
        return int(self.accumulationFactor) if self.enableGradientAccumulation else 1

    @property
    def share(self) -> float:
        """Return how much a sum of gradients counts: all, or what makes it their mean.

        >>> options = SessionOptions(enableGradientAccumulation=True, accumulationFactor=4)
        >>> options.accumulationAndReplicationReductionType = "Mean"
        >>> options.share
        0.25
        """
        mean = self.accumulationAndReplicationReductionType == "Mean"
        return 1 / (self.factor * self.total_replicas) if mean else 1.0

    @property
    def synthetic(self) -> bool:
        """Return whether inputs are on the device already.

        >>> SessionOptions(syntheticDataMode=SyntheticDataMode.Zeros).synthetic
        True
        """
        return self.syntheticDataMode is not SyntheticDataMode.Off

    def uses_virtual_graphs(self, ipus: int) -> bool:
        """Return whether the builder's notes place nodes.

        PopART's programs note IPUs and leave the mode out, which then is Off: so it is here on a
        device of one IPU.

        >>> SessionOptions().uses_virtual_graphs(1), SessionOptions().uses_virtual_graphs(2)
        (False, True)
        """
        named = "virtualGraphMode" in self.__dict__["_named"]
        off = self.virtualGraphMode is VirtualGraphMode.Off
        return not off and (ipus > 1 or named)

    @property
    def phased(self) -> bool:
        """Return whether the phases of nodes place them, and load what they read.

        >>> SessionOptions(virtualGraphMode=VirtualGraphMode.ExecutionPhases).phased
        True
        """
        return self.virtualGraphMode is VirtualGraphMode.ExecutionPhases

    @property
    def balances(self) -> bool:
        """Return whether nodes are balanced over the IPUs.

        >>> SessionOptions(autoVirtualGraph=True).balances
        True
        """
        return bool(self.autoVirtualGraph) or self.virtualGraphMode is VirtualGraphMode.Auto

    @property
    def cache(self) -> Path | None:
        """Return the folder of compiled models, None where they are not kept.

        >>> SessionOptions(enableEngineCaching=True, cachePath="models").cache.name
        'models'
        """
        folder = next((os.environ[name] for name in CACHES if os.environ.get(name)), "")
        if self.enableEngineCaching:
            folder = str(self.cachePath)
        return Path(folder) if folder else None

    @property
    def io_tiles(self) -> int:
        """Count the I/O tiles of each IPU; raises popart_exception without virtual graphs.

        >>> SessionOptions(numIOTiles=32).io_tiles
        32
        """
        count = int(self.numIOTiles)
        if count and self.virtualGraphMode is VirtualGraphMode.Off:
            raise popart_exception(
                "SessionOptions: I/O tiles need virtual graphs; set virtualGraphMode to Manual"
            )
        return count

    def compiled(self) -> dict[str, Any]:
        """Return what of the options a compiled program may depend on.

        >>> SessionOptions(numIOTiles=32).compiled()["numIOTiles"]
        32
        """
        engine_settings = engine_options.resolve(self.engineOptions)
        left_out = ("_named", *WITHOUT_EFFECT, *OF_THE_HOST)
        values = {name: value for name, value in vars(self).items() if name not in left_out}
        values["usesVirtualGraphs"] = self.uses_virtual_graphs(1)
        values["engineOptions"] = engine_options.that_compile(engine_settings)
        return dict(sorted(values.items()))

    def enableExplicitIR(self, enable: bool) -> None:
        """Take note: loops and copies with the host are explicit here in any case.

        >>> options = SessionOptions()
        >>> options.enableExplicitIR(True)
        >>> options.useHostCopyOps
        True
        """
        self.enableExplicitMainLoops = self.useHostCopyOps = enable

    @property
    def of_products(self) -> dict[str, Any]:
        """Return the options of poplin's products.

        >>> SessionOptions(partialsTypeMatMuls="half").of_products
        {'partialsType': 'half'}
        """
        partials = self.partialsTypeMatMuls
        partials_option = {"partialsType": partials} if partials else {}
        return {**self.convolutionOptions, **partials_option, **self.matmulOptions}

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"SessionOptions has no option {name!r}; known: {', '.join(OPTIONS)}")


def _checked(name: str, value: Any) -> Any:
    """Return an option's value as it is held; raises popart_exception."""
    if name not in OPTIONS:
        near = difflib.get_close_matches(name, (*OPTIONS, *WITHOUT_EFFECT), n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(OPTIONS)}"
        raise unknown_option(f"SessionOptions: no option {name!r}; {hint}")
    kind = type(OPTIONS[name])
    converted = list(value) if kind is list and isinstance(value, set | tuple) else value
    if kind is list:
        converted = [item.value if isinstance(item, DotCheck) else item for item in converted]
    elif kind is float and isinstance(value, int) and not isinstance(value, bool):
        converted = float(value)
    elif kind is str and isinstance(value, Enum):
        converted = value.value
    least = min(OPTIONS[name], 1) if kind is int else 0
    below = kind is int and (
        isinstance(converted, bool) or (isinstance(converted, int) and converted < least)
    )
    if not isinstance(converted, kind) or below:
        expected = _WANTED.get(kind.__name__, f"a {kind.__name__}")
        raise popart_exception(f"SessionOptions: {name} is {value!r}; {expected} is needed")
    if name == "hardwareInstrumentations" and not all(
        isinstance(one, Instrumentation) for one in converted
    ):
        raise popart_exception(f"SessionOptions: {name} is {value}; Outer and Inner are known")
    if name in CHOICES and converted not in CHOICES[name]:
        choices = ", ".join(filter(None, CHOICES[name]))
        raise popart_exception(f"SessionOptions: {name} is {value!r}; known are {choices}")
    return _own(converted)


def _own(value: Any) -> Any:
    """Return a copy of a dictionary or list."""
    return value.copy() if isinstance(value, dict | list) else value
