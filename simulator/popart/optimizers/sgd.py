"""Stochastic gradient descent, with momentum or without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, ClassVar

from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.optimizers.step import Step
from simulator.popart.optimizers.types import DataType
from simulator.popart.optimizers.values import (
    ClipNormSettings,
    Compound,
    Given,
    Optimizer,
    OptimizerValue,
    value_of,
)
from simulator.poplibs import popops

VELOCITY, SEPARATE = "Accl", "Accl1"


class SGDAccumulatorAndMomentum(Enum):
    """Whether gradients are accumulated in the velocity itself, or in a tensor beside it."""

    Combined = "Combined"
    Separate = "Separate"


# How PopART makes its numbers of the parameters: ls is the loss scaling, vs the velocity's.
_PLAIN = (
    Compound(
        "scaledLearningRate0",
        "learningRate dampening lossScaling",
        lambda lr, dm, ls: lr * (1 - dm) / ls,
    ),
    Compound(
        "weightDecayScaleFactor0",
        "learningRate dampening weightDecay",
        lambda lr, dm, wd: 1 - lr * (1 - dm) * wd,
    ),
)
_MOMENTUM = (
    Compound("scaledMomentum", "momentum replicas", lambda mm, rf: mm / rf),
    Compound(
        "dampeningScaleFactor",
        "dampening velocityScaling lossScaling replicas",
        lambda dm, vs, ls, rf: (1 - dm) * vs * rf / ls,
    ),
    Compound(
        "scaledWeightDecay",
        "dampening weightDecay velocityScaling",
        lambda dm, wd, vs: (1 - dm) * wd * vs,
    ),
    Compound(
        "scaledLearningRate",
        "learningRate velocityScaling replicas",
        lambda lr, vs, rf: lr / (vs * rf),
    ),
)
_NESTEROV = (
    Compound("nesterovGradientScaleFactor", "velocityScaling lossScaling", lambda vs, ls: vs / ls),
    Compound("nesterovDecayScaleFactor", "velocityScaling weightDecay", lambda vs, wd: vs * wd),
    Compound("momentum", "momentum", lambda mm: mm),
)


class SGD(Optimizer):
    """Stochastic gradient descent.

    v = momentum v + (1 - dampening) (g + decay w); w -= rate v. SGD(0.1), whose rate can be changed
    between runs (session.updateOptimizerFromHost), or SGD({"defaultMomentum": (0.9, True), ...}).

    >>> optimizer = SGD({"defaultLearningRate": (0.5, False), "defaultMomentum": (0.75, True)})
    >>> optimizer.learnRate(), optimizer.of("w")["momentum"].val()
    (0.5, 0.75)
    """

    DEFAULTS: ClassVar[Mapping[str, float]] = {
        "learningRate": 0.1, "weightDecay": 0.0, "momentum": 0.0, "dampening": 0.0,
        "velocityScaling": 1.0, "lossScaling": 1.0, "nesterov": 0.0,
    }  # fmt: skip

    def __init__(
        self,
        learning_rate: float | Mapping[str, Given] | None = None,
        weight_decay: Any = 0.0,
        clip_norm_settings: Iterable[ClipNormSettings] = (),
        accumulatorAndMomentum: SGDAccumulatorAndMomentum = SGDAccumulatorAndMomentum.Combined,
        accumType: DataType | str = DataType.UNDEFINED,
        accl1Type: DataType | str = DataType.UNDEFINED,
        *,
        learningRate: float | None = None,
    ) -> None:
        rate = learning_rate if learningRate is None else learningRate
        if isinstance(rate, Mapping) and isinstance(weight_decay, list | tuple):
            clip_norm_settings, weight_decay = weight_decay, 0.0
        if rate is not None and not isinstance(rate, Mapping):
            rate = _of_numbers(type(self), rate, weight_decay)
        self.combined = accumulatorAndMomentum is SGDAccumulatorAndMomentum.Combined
        super().__init__(rate, {"Accum": accumType, VELOCITY: accl1Type}, clip_norm_settings)

    def _check_together(self, values: Mapping[str, OptimizerValue], subject: str) -> None:
        if values["nesterov"].value and values["dampening"].value:
            raise popart_exception(f"{subject}: dampening has to be 0 with nesterov")

    def learnRate(self) -> float:
        """Return the learning rate of weights without one of their own.

        >>> SGD(0.5).learnRate()
        0.5
        """
        return self._values["learningRate"].value

    def weightDecay(self) -> float:
        """Return the decay of weights without one of their own.

        >>> SGD(0.5, 0.25).weightDecay()
        0.25
        """
        return self._values["weightDecay"].value

    def traits(self) -> tuple[object, ...]:
        return self.combined, *super().traits()

    def _has_momentum(self, weight: str) -> bool:
        momentum = self.of(weight)["momentum"]
        return not momentum.constant or momentum.value > 0

    def _has_nesterov(self, weight: str) -> bool:
        return bool(self.of(weight)["nesterov"].value) and self._has_momentum(weight)

    def compounds(self, weight: str) -> tuple[Compound, ...]:
        if not self._has_momentum(weight):
            return _PLAIN
        return (*_MOMENTUM, *_NESTEROV) if self._has_nesterov(weight) else _MOMENTUM

    def kept(self, weight: str) -> dict[str, str]:
        return {self._velocity: self._types[VELOCITY]} if self._has_momentum(weight) else {}

    @property
    def _velocity(self) -> str:
        """Name what is kept of a weight: PopART's SGD1 and SGD2 call it otherwise."""
        return VELOCITY if self.combined else SEPARATE

    def accumulates_in(self, weight: str) -> str:
        # What is clipped is the gradient of all micro-batches, without the momentum.
        holds_sums = self.combined and not self.clips and self._has_momentum(weight)
        return VELOCITY if holds_sums and not self._has_nesterov(weight) else ""

    def at_first(self, weight: str, values: Array, name: str) -> Array | float:
        """Return what the velocity holds: where gradients are added to it, a decay already."""
        if not self.accumulates_in(weight):
            return 0.0
        return values * self.scalars(weight, 1.0)["scaledWeightDecay"].number

    def accumulate(self, step: Step) -> None:
        velocity, scale = step.kept[VELOCITY], step.number("dampeningScaleFactor")
        label = f"{step.name}/Accumulate"
        popops.scaledAddTo(step.graph, velocity, step.gradient, scale, step.prog, label)

    def shown_as(self, weight: str) -> str:
        if not self._has_momentum(weight):
            return "SGD0"
        return "SGD1" if self.combined else "SGD2"

    def change(self, step: Step, weight: str) -> None:
        """Add the change of a weight."""
        if not self._has_momentum(weight):
            if step.is_needed("weightDecayScaleFactor0", 1.0):
                step.scale(step.number("weightDecayScaleFactor0"))
            step.subtract(step.gradient, step.number("scaledLearningRate0"))
        elif self.accumulates_in(weight):
            if step.gradient is not step.kept[VELOCITY]:
                self.accumulate(step)
            step.subtract(step.kept[VELOCITY], step.number("scaledLearningRate"))
            _decay_velocity(step)
        else:
            _with_velocity(step, self._velocity, nesterov=self._has_nesterov(weight))


def _decay_velocity(step: Step) -> None:
    """Make the velocity what the gradients of the next step are added to."""
    momentum, decay = (step.number(name) for name in ("scaledMomentum", "scaledWeightDecay"))
    if step.is_needed("scaledWeightDecay"):
        step.keep(VELOCITY, lambda t, v: v * t(momentum) + t(step.weight) * t(decay))
    else:
        step.keep(VELOCITY, lambda t, v: v * t(momentum))


def _with_velocity(step: Step, key: str, *, nesterov: bool) -> None:
    gradient, momentum = step.gradient, step.number("scaledMomentum")
    scale, decay = (step.number(name) for name in ("dampeningScaleFactor", "scaledWeightDecay"))
    decayed = step.is_needed("scaledWeightDecay")
    change = step.keep(
        key,
        lambda t, v: v * t(momentum) + t(gradient) * t(scale)
        + (t(step.weight) * t(decay) if decayed else 0.0),
    )  # fmt: skip
    if nesterov:
        names = ("nesterovGradientScaleFactor", "nesterovDecayScaleFactor", "momentum")
        scale, decay, momentum = map(step.number, names)
        change = step.made(
            lambda t: t(gradient) * t(scale) + t(change) * t(momentum)
            + (t(step.weight) * t(decay) if decayed else 0.0),
            "Nesterov",
        )  # fmt: skip
    step.subtract(change, step.number("scaledLearningRate"))


def _of_numbers(
    kind: type[SGD], rate: float, decay: float, scaling: float = 1.0
) -> dict[str, Given]:
    """Return the parameters of the form SGD(rate, decay), whose rate alone may change."""
    class_name = kind.__name__
    return {
        "lossScaling": value_of(scaling, f"{class_name}: loss scaling"),
        "defaultLearningRate": value_of(
            rate, f"{class_name}: learning rate", constant=kind is ConstSGD
        ),
        "defaultWeightDecay": value_of(decay, f"{class_name}: weight decay"),
    }


class ConstSGD(SGD):
    """Stochastic gradient descent whose rate is part of the program."""

    def __init__(
        self,
        learning_rate: float,
        weight_decay: float = 0.0,
        loss_scaling: float = 1.0,
        clip_norm_settings: Iterable[ClipNormSettings] = (),
    ) -> None:
        parameters = _of_numbers(type(self), learning_rate, weight_decay, loss_scaling)
        super().__init__(parameters, 0.0, clip_norm_settings)
