"""What an optimiser is given: parameters of all weights and of some, which may change or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, log2
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.optimizers.step import Step
from simulator.popart.optimizers.types import DataType, type_of

LOSS_SCALING = "lossScaling"
REPLICAS = "replicas"  # whose gradients the velocity adds up, where it accumulates them
PLAIN = (LOSS_SCALING, "nesterov")  # parameters whose keys are their names; others have "default"
POSITIVE = ("eps", "lossScaling", "velocityScaling", "maxWeightNorm")


@dataclass(frozen=True, slots=True)
class OptimizerValue:
    """A parameter: its value, and whether it is part of the program.

    >>> value = OptimizerValue(0.1, False)
    >>> value.val(), value.isConst()
    (0.1, False)
    """

    value: float
    constant: bool = True

    def val(self) -> float:
        """Return the number.

        >>> OptimizerValue(0.1).val()
        0.1
        """
        return self.value

    def isConst(self) -> bool:
        """Return whether the number is part of the program.

        >>> OptimizerValue(0.1).isConst()
        True
        """
        return self.constant


Given = OptimizerValue | float | Sequence[Any]


class Compound(NamedTuple):
    """What a program computes with: a number made of parameters, on the host."""

    name: str
    parameters: str
    make: Callable[..., float]


class Scalar(NamedTuple):
    """A compound of a weight: the name of its tensor, its number, whether that may change.

    It is proportional to a `power` of the loss scaling.
    """

    tensor: str
    number: float
    constant: bool
    power: int = 0


def power_of(parameters: Sequence[str], make: Callable[..., float]) -> int:
    """Return the power of the loss scaling that a number made of parameters is proportional to."""
    if LOSS_SCALING not in parameters:
        return 0
    neutral = {LOSS_SCALING: 1.0, REPLICAS: 1.0}
    one, two = (
        make(*(scale if p == LOSS_SCALING else neutral.get(p, 0.5) for p in parameters))
        for scale in (1.0, 2.0)
    )
    return round(log2(two / one))


def rest_of(share: float) -> float:
    """Return what a share leaves of one, in floats: as 1 - b^t of float b is near no other number.

    Source: popart `willow/src/popx/op/accumulatex.cpp`, MovingAverage and MovingAverageSquare.
    """
    return float(np.float32(1) - np.float32(share))


def key_of(parameter: str) -> str:
    """Return the key of a parameter: learningRate is defaultLearningRate."""
    return parameter if parameter in PLAIN else f"default{parameter[0].upper()}{parameter[1:]}"


def value_of(value: Any, subject: str, *, constant: bool = True) -> OptimizerValue:
    """Return a parameter that comes as a number, as (number, constant) or as it is."""
    if isinstance(value, OptimizerValue):
        return value
    if isinstance(value, tuple | list) and len(value) == 2:
        value, constant = value[0], bool(value[1])
    flag = subject.endswith("nesterov") and isinstance(value, bool)  # on or off
    if not isinstance(value, Real) or (isinstance(value, bool) and not flag) or not isfinite(value):
        raise popart_exception(f"{subject} is {value!r}; a number is needed")
    return OptimizerValue(float(value), constant)


class ClipNormSettings:
    """A limit to the norm of the gradients of some weights together, or of all.

    >>> clip = ClipNormSettings(["w"], 2.0)
    >>> clip.getWeightIds(), clip.getMaxNorm()
    (('w',), 2.0)
    """

    def __init__(self, weightIds: Iterable[str] | None, maxNorm: float) -> None:
        limit = value_of(maxNorm, "ClipNormSettings: maxNorm").value
        if limit <= 0:
            raise popart_exception(f"ClipNormSettings: maxNorm is {maxNorm}; more than 0 is needed")
        names = (weightIds,) if isinstance(weightIds, str) else weightIds
        self._weights = None if names is None else tuple(names)
        self._limit = limit

    @classmethod
    def clipWeights(cls, weightIds: Iterable[str], maxNorm: float) -> ClipNormSettings:
        """Limit the norm of the gradients of these weights.

        >>> clip = ClipNormSettings.clipWeights(["w"], 2.0)
        >>> clip.covers("w"), clip.covers("b")
        (True, False)
        """
        return cls(weightIds, maxNorm)

    @classmethod
    def clipAllWeights(cls, maxNorm: float) -> ClipNormSettings:
        """Limit the norm of the gradients of all weights.

        >>> ClipNormSettings.clipAllWeights(2.0).covers("b")
        True
        """
        return cls(None, maxNorm)

    def getWeightIds(self) -> tuple[str, ...]:
        """Name the weights, none where all are meant.

        >>> clip = ClipNormSettings.clipWeights(["w"], 2.0)
        >>> clip.getWeightIds()
        ('w',)
        """
        return self._weights or ()

    def getMaxNorm(self) -> float:
        """Return the limit.

        >>> clip = ClipNormSettings.clipWeights(["w"], 2.0)
        >>> clip.getMaxNorm()
        2.0
        """
        return self._limit

    def covers(self, weight: str) -> bool:
        """Return whether a weight's gradient is limited.

        >>> clip = ClipNormSettings.clipWeights(["w"], 2.0)
        >>> clip.covers("w")
        True
        """
        return self._weights is None or weight in self._weights

    def __eq__(self, settings: object) -> bool:
        return isinstance(settings, ClipNormSettings) and vars(self) == vars(settings)

    def __hash__(self) -> int:
        return hash((self._weights, self._limit))


class Optimizer:
    """How gradients change weights: SGD({"defaultLearningRate": (0.1, False)}).

    A value is a number and whether it is constant, so part of the program; those left out are the
    defaults, which are constant. `insertSpecific` gives a weight values of its own.

    >>> from simulator.popart import SGD
    >>> SGD({"defaultLearningRate": (0.5, False), "lossScaling": (8, True)}).getLossScalingVal()
    8.0
    """

    DEFAULTS: ClassVar[Mapping[str, float]] = {}  # parameter -> value

    def __init__(
        self,
        values: Mapping[str, Given] | None,
        types: Mapping[str, DataType | str],
        clip_norm_settings: Iterable[ClipNormSettings] = (),
    ) -> None:
        kind = type(self).__name__
        keys = {key_of(parameter): parameter for parameter in self.DEFAULTS}
        values = {} if values is None else values
        if not isinstance(values, Mapping):
            raise popart_exception(f"{kind}: {values!r}; a dictionary of parameters is needed")
        unknown = [key for key in values if key not in keys]
        if unknown:
            raise popart_exception(f"{kind}: no parameter {unknown[0]!r}; known are {_list(keys)}")
        self._values = {name: OptimizerValue(number) for name, number in self.DEFAULTS.items()}
        self._values |= self._checked({keys[key]: value for key, value in values.items()})
        self._specific: dict[str, dict[str, OptimizerValue]] = {}
        self._types = {name: type_of(dtype) for name, dtype in types.items()}
        self.clips = tuple(clip_norm_settings)
        if not all(isinstance(clip, ClipNormSettings) for clip in self.clips):
            raise popart_exception(f"{kind}: clip norms are {self.clips}; ClipNormSettings are")
        self._check_together(self._values, kind)

    def insertSpecific(self, tensor: str, values: Mapping[str, Given]) -> None:
        """Set values of one weight: insertSpecific("w", {"learningRate": (0.2, False)}).

        >>> from simulator.popart import SGD
        >>> optimizer = SGD({"defaultLearningRate": (0.5, False)})
        >>> optimizer.insertSpecific("w", {"learningRate": (0.25, False)})
        >>> optimizer.of("w")["learningRate"].val(), optimizer.of("b")["learningRate"].val()
        (0.25, 0.5)
        """
        kind = f"{type(self).__name__}.insertSpecific"
        parameters = [name for name in self.DEFAULTS if name != LOSS_SCALING]
        unknown = [name for name in values if name not in parameters]
        if unknown:
            raise popart_exception(
                f"{kind}: no parameter {unknown[0]!r}; known are {_list(parameters)}"
            )
        specific = self._checked(values)
        self._check_together({**self._values, **specific}, kind)
        self._specific[tensor] = specific

    def getLossScalingVal(self) -> float:
        """Return what the loss is multiplied by.

        >>> from simulator.popart import SGD
        >>> SGD({"lossScaling": (8, True)}).getLossScalingVal()
        8.0
        """
        return self._values[LOSS_SCALING].value

    def compiled(self) -> list[object]:
        """Return what programs are made of: all but the values that may change."""

        def fixed(values: Mapping[str, OptimizerValue]) -> dict[str, float | None]:
            return {name: value.value if value.constant else None for name, value in values.items()}

        specific = {name: fixed(values) for name, values in self._specific.items()}
        parts = ("_values", "_specific", "_types")
        settings = {name: value for name, value in vars(self).items() if name not in parts}
        return [fixed(self._values), specific, self._types, settings]

    def _checked(self, parameters: Mapping[str, Given]) -> dict[str, OptimizerValue]:
        checked = {}
        for name, value in parameters.items():
            subject = f"{type(self).__name__}: {key_of(name)}"
            checked[name] = value_of(value, subject)
            number = checked[name].value
            if number < 0 or (number == 0 and name in POSITIVE):
                least = "more than 0" if name in POSITIVE else "at least 0"
                raise popart_exception(f"{subject} is {number}; {least} is needed")
        return checked

    def _check_together(self, values: Mapping[str, OptimizerValue], subject: str) -> None:
        """Raise popart_exception for values that exclude each other."""

    # What programs are made of
    def kept(self, weight: str) -> dict[str, str]:
        """Return the type of each tensor that is kept for a weight; "" is the weight's own."""
        return {}

    def accumulator_type(self) -> str:
        """Return the type that gradients of micro-batches are added up in, "" for the weight's."""
        return self._types["Accum"]

    def accumulates_in(self, weight: str) -> str:
        """Name the kept tensor that gradients of micro-batches are added to, if there is one."""
        return ""

    def shown_as(self, weight: str) -> str:
        """Name the optimiser as the nodes of a weight's change do."""
        return type(self).__name__

    def accumulate(self, step: Step) -> None:
        """Add a gradient to the tensor that `accumulates_in` names."""
        raise NotImplementedError

    def at_first(self, weight: str, values: Array, name: str) -> Array | float:
        """Return what a kept tensor holds before the first step, by the weight's values."""
        return 0.0

    def change(self, step: Step, weight: str) -> None:
        """Add the change of a weight to a program."""
        raise NotImplementedError

    def of(self, weight: str) -> dict[str, OptimizerValue]:
        """Return the values that hold for a weight."""
        return {**self._values, **self._specific.get(weight, {})}

    def specific(self) -> list[str]:
        """Name the weights with values of their own."""
        return list(self._specific)

    def compounds(self, weight: str) -> tuple[Compound, ...]:
        """Return what changes of a weight compute with."""
        raise NotImplementedError

    def scalars(self, weight: str, share: float, replicas: int = 1) -> dict[str, Scalar]:
        """Return the compounds of a weight by name.

        Of the sum of gradients a `share` counts; `replicas` is as REPLICAS says.
        """
        values = self.of(weight)
        scaling = values[LOSS_SCALING]
        values[LOSS_SCALING] = OptimizerValue(scaling.value / share, scaling.constant)
        values[REPLICAS] = OptimizerValue(replicas)
        whose = f"specific___{weight}" if weight in self._specific else "default"
        compounds = {}
        for name, parameters, make in self.compounds(weight):
            values_used = [values[parameter] for parameter in parameters.split()]
            number = make(*(value.value for value in values_used))
            constant = all(value.constant for value in values_used)
            power = power_of(parameters.split(), make)
            compounds[name] = Scalar(f"{name}___{whose}___FLOAT", number, constant, power)
        return compounds

    def traits(self) -> tuple[object, ...]:
        """Return what is part of the program beside the values."""
        return tuple(self._types.items())

    def cannot_follow(self, optimizer: Optimizer) -> str:
        """Return why this optimiser cannot take the place of another; "" when it can."""
        kind = type(optimizer).__name__
        if type(self) is not type(optimizer):
            return f"{type(self).__name__} cannot take the place of {kind}"
        if self.traits() != optimizer.traits() or self.clips != optimizer.clips:
            return f"modes, types and clip norms of {kind} are part of the program"
        if set(self._specific) != set(optimizer._specific):
            return f"which weights have values of their own is part of the program of {kind}"
        for weight in ("", *self._specific):
            new, old = self.of(weight), optimizer.of(weight)
            for name, value in old.items():
                if value.constant != new[name].constant or (value.constant and value != new[name]):
                    whose = f" of {weight!r}" if weight else ""
                    return f"{key_of(name)}{whose} is part of the program: it was given as constant"
        return ""


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
