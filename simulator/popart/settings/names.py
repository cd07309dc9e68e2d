"""PopART's names for choices, and the prefixes of its tensors."""

from __future__ import annotations

from enum import Enum


class Choice(Enum):
    """One of a few; its number is its place, as in PopART: programs write int(SyncPattern.Full)."""

    def __int__(self) -> int:
        return list(type(self)).index(self)


class VirtualGraphMode(Choice):
    """Whose word places nodes on IPUs: nobody's, the builder's, or the balance's."""

    Off = "Off"
    Manual = "Manual"
    Auto = "Auto"
    ExecutionPhases = "ExecutionPhases"  # by the builder's notes, else a node's phase


class SyntheticDataMode(Choice):
    """What inputs are: the host's, or there already, so that nothing is moved to or from it."""

    Off = "Off"
    Zeros = "Zeros"
    RandomNormal = "RandomNormal"
    RandomUniform = "RandomUniform"


class RecomputeType(Choice):
    """Whether a node is computed again, or what it makes is kept."""

    Undefined = 0
    Checkpoint = 1
    Recompute = 2


class RecomputationType(Choice):
    """Which nodes are computed again."""

    NoRecompute = "None"
    Standard = "Standard"
    NormOnly = "NormOnly"
    Pipeline = "Pipeline"
    RecomputeAll = "RecomputeAll"


class Instrumentation(Choice):
    """What is measured of a run: all of it, or (not here) each IPU by itself."""

    Outer = "Outer"
    Inner = "Inner"


class InitType(Choice):
    """What a tensor holds that `init` makes: anything, or zeros."""

    NoInit = 0
    Zero = 1


class DotCheck(Choice):
    """A stage of which a DOT file is written."""

    Fwd0 = "FWD0"
    Fwd1 = "FWD1"
    Bwd0 = "BWD0"
    PreAlias = "PREALIAS"
    Final = "FINAL"


class MeanReductionStrategy(Choice):
    """When a sum becomes a mean: at the end, whichever is asked for."""

    Running = "Running"
    Post = "Post"
    PostAndLoss = "PostAndLoss"


class DeviceConnectionType(Choice):
    """When a device is attached: at once, whichever is asked for."""

    Always = "Always"
    OnDemand = "OnDemand"
    Never = "Never"


class DeviceSelectionCriterion(Choice):
    """Which of several devices is taken: the first, whichever is asked for."""

    First = "First"
    Random = "Random"


class SyncPattern(Choice):
    """Which IPUs wait for each other: all of a device, whichever is asked for."""

    Full = "Full"
    SinglePipeline = "SinglePipeline"
    ReplicaAndLadder = "ReplicaAndLadder"


class ScatterReduction(Choice):
    """How scattered elements that meet become one."""

    Sum = "sum"
    Max = "max"
    Min = "min"
    Mul = "mul"
    NoReduction = "none"


def reservedGradientPrefix() -> str:
    """Return what the names of gradients begin with.

    >>> from simulator import popart
    >>> popart.reservedGradientPrefix()
    'Gradient___'
    """
    return "Gradient___"


def reservedDefaultScaledLearningRate0Prefix() -> str:
    """Return what the name of the scaled learning rate of all weights begins with.

    >>> from simulator import popart
    >>> popart.reservedDefaultScaledLearningRate0Prefix()
    'scaledLearningRate0___default___'
    """
    return "scaledLearningRate0___default___"


def reservedDefaultWeightDecayScaleFactor0Prefix() -> str:
    """Return what the name of the factor of decay of all weights begins with.

    >>> from simulator import popart
    >>> popart.reservedDefaultWeightDecayScaleFactor0Prefix()
    'weightDecayScaleFactor0___default___'
    """
    return "weightDecayScaleFactor0___default___"


def reservedAcclPrefix() -> str:
    """Return what the name of the velocity that SGD keeps begins with.

    >>> from simulator import popart
    >>> popart.reservedAcclPrefix()
    'Accl___'
    """
    return "Accl___"


def reservedAccl1Prefix() -> str:
    """Return what the name of the first tensor that an optimiser keeps begins with.

    >>> from simulator import popart
    >>> popart.reservedAccl1Prefix()
    'Accl1___'
    """
    return "Accl1___"


def reservedAccl2Prefix() -> str:
    """Return what the name of the second tensor that an optimiser keeps begins with.

    >>> from simulator import popart
    >>> popart.reservedAccl2Prefix()
    'Accl2___'
    """
    return "Accl2___"


def reservedAccl3Prefix() -> str:
    """Return what the name of the third tensor that an optimiser keeps begins with.

    >>> from simulator import popart
    >>> popart.reservedAccl3Prefix()
    'Accl3___'
    """
    return "Accl3___"


def reservedAcclToReducePrefix() -> str:
    """Return what the name of a velocity begins with that replicas add up.

    >>> from simulator import popart
    >>> popart.reservedAcclToReducePrefix()
    'AcclIntoReduce___'
    """
    return "AcclIntoReduce___"


def reservedAcclToUpdatePrefix() -> str:
    """Return what the name of a velocity begins with that changes a weight.

    >>> from simulator import popart
    >>> popart.reservedAcclToUpdatePrefix()
    'AcclIntoUpdate___'
    """
    return "AcclIntoUpdate___"


def reservedAcclFinalOutPrefix() -> str:
    """Return what the name of a velocity begins with that the next step adds to.

    >>> from simulator import popart
    >>> popart.reservedAcclFinalOutPrefix()
    'AcclOutOfAcclUpdate___'
    """
    return "AcclOutOfAcclUpdate___"


def reservedStepPrefix() -> str:
    """Return what the name of the count of steps begins with.

    >>> from simulator import popart
    >>> popart.reservedStepPrefix()
    'Step___'
    """
    return "Step___"


def reservedAccumPrefix() -> str:
    """Return what the name of the sum of gradients of micro-batches begins with.

    >>> from simulator import popart
    >>> popart.reservedAccumPrefix()
    'Accum___'
    """
    return "Accum___"


def reservedRestoredPrefix() -> str:
    """Return what the name of an activation that was taken from a stash begins with.

    >>> from simulator import popart
    >>> popart.reservedRestoredPrefix()
    'Restored___'
    """
    return "Restored___"


def reservedStashedPrefix() -> str:
    """Return what the name of an activation in a stash begins with.

    >>> from simulator import popart
    >>> popart.reservedStashedPrefix()
    'Stashed___'
    """
    return "Stashed___"


def reservedUpdatedVarPrefix() -> str:
    """Return what the name of a weight that has been changed begins with.

    >>> from simulator import popart
    >>> popart.reservedUpdatedVarPrefix()
    'UpdatedVar___'
    """
    return "UpdatedVar___"


def reservedRemoteArgPrefix() -> str:
    """Return what the name of the place of a tensor in a remote buffer begins with.

    >>> from simulator import popart
    >>> popart.reservedRemoteArgPrefix()
    'RemoteArg___'
    """
    return "RemoteArg___"


def reservedLossScalingPrefix() -> str:
    """Return what the name of a scaling of losses begins with.

    >>> from simulator import popart
    >>> popart.reservedLossScalingPrefix()
    'lossScaling_'
    """
    return "lossScaling_"
