"""AdaGrad, RMSProp and AdaDelta, which divide gradients by a mean of their squares."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.optimizers.step import Step, Terms
from simulator.popart.optimizers.types import DataType, WeightDecayMode
from simulator.popart.optimizers.values import Compound, Given, Optimizer, rest_of
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import Expr

SQUARES, SECOND, VELOCITY = "Accl1", "Accl2", "Accl3"


class AdaptiveMode(Enum):
    """Which of them."""

    AdaGrad = "AdaGrad"
    RMSProp = "RMSProp"
    CenteredRMSProp = "CenteredRMSProp"
    AdaDelta = "AdaDelta"


_COMPOUNDS = (
    *(Compound(name, name, lambda value: value)
      for name in ("learningRate", "weightDecay", "alpha", "momentum", "eps")),
    Compound("rest", "alpha", rest_of),
    Compound("inverseLossScaling", "lossScaling", lambda ls: 1 / ls),
)  # fmt: skip


class Adaptive(Optimizer):
    """AdaGrad, RMSProp (also centred, and TensorFlow's) and AdaDelta.

    s = alpha s + (1 - alpha) g^2, of AdaGrad s + g^2; x = g / (sqrt(s) + eps), centred by the mean
    of g, of AdaDelta g sqrt(d + eps) / sqrt(s + eps) with d that mean of x^2;
    v = momentum v + x; w -= rate (v + decay w).

    >>> Adaptive({"defaultLearningRate": (0.5, False)}).of("w")["learningRate"].val()
    0.5
    """

    DEFAULTS: ClassVar[Mapping[str, float]] = {
        "learningRate": 0.01, "weightDecay": 0.0, "alpha": 0.99, "momentum": 0.0, "eps": 1e-6,
        "lossScaling": 1.0,
    }  # fmt: skip

    def __init__(
        self,
        values: Mapping[str, Given] | None = None,
        mode: AdaptiveMode = AdaptiveMode.RMSProp,
        weight_decay_mode: WeightDecayMode = WeightDecayMode.Decay,
        accum_type: DataType | str = DataType.UNDEFINED,
        accl1_type: DataType | str = DataType.FLOAT,
        accl2_type: DataType | str = DataType.FLOAT,
        accl3_type: DataType | str = DataType.UNDEFINED,
        rmsprop_tf_variant: bool = False,
    ) -> None:
        if not isinstance(mode, AdaptiveMode) or not isinstance(weight_decay_mode, WeightDecayMode):
            raise popart_exception(
                f"Adaptive: modes are {mode!r}, {weight_decay_mode!r}; "
                "an AdaptiveMode and a WeightDecayMode are needed"
            )
        self.mode, self._decay = mode, weight_decay_mode
        types = {SQUARES: accl1_type, SECOND: accl2_type, VELOCITY: accl3_type, "Accum": accum_type}
        centred = mode is AdaptiveMode.CenteredRMSProp
        self._as_tensorflow = rmsprop_tf_variant and (centred or mode is AdaptiveMode.RMSProp)
        super().__init__(values, types)

    def traits(self) -> tuple[object, ...]:
        return self.mode, self._decay, self._as_tensorflow, *super().traits()

    def compounds(self, weight: str) -> tuple[Compound, ...]:
        return _COMPOUNDS

    def _has_momentum(self, weight: str) -> bool:
        momentum = self.of(weight)["momentum"]
        return not momentum.constant or momentum.value > 0

    def kept(self, weight: str) -> dict[str, str]:
        two = self.mode in (AdaptiveMode.CenteredRMSProp, AdaptiveMode.AdaDelta)
        names = [SQUARES, *([SECOND] if two else [])]
        names += [VELOCITY] if self._has_momentum(weight) else []
        return {name: self._types[name] for name in names}

    def at_first(self, weight: str, values: Array, name: str) -> Array | float:
        """Return what a mean begins with: TensorFlow's squares with 1, as PopART's variant of it.

        Source: popart `willow/src/patterns/adaptivedecompose.cpp`, where Accl1 is made.
        """
        return 1.0 if self._as_tensorflow and name == SQUARES else 0.0

    def change(self, step: Step, weight: str) -> None:
        """Add the change of a weight."""
        number, scale = step.number, step.number("inverseLossScaling")
        added = self._decay is WeightDecayMode.L2Regularization and step.is_needed("weightDecay")
        plain = step.gradient
        if added:
            step.gradient = step.made(
                lambda t: t(plain) * t(scale) + t(step.weight) * t(number("weightDecay")),
                "L2Regularization",
            )
        elif step.is_needed("inverseLossScaling", 1.0):
            step.gradient = step.made(lambda t: t(plain) * t(scale), "Unscale")
        change = self._updater(step)
        rate = number("learningRate")
        at_once = self._as_tensorflow and self._has_momentum(weight)
        if self._has_momentum(weight):
            delta = change
            change = step.keep(
                VELOCITY,
                lambda t, v: (
                    v * t(number("momentum")) + (t(delta) * t(rate) if at_once else t(delta))
                ),
            )
        if self._decay is WeightDecayMode.Decay and step.is_needed("weightDecay"):
            moved = change
            change = step.made(
                lambda t: t(moved) + t(step.weight) * t(number("weightDecay")), "Decay"
            )
        step.subtract(change, 1.0 if at_once else rate)

    def _updater(self, step: Step) -> Tensor:
        """Take a gradient into the means; give what it changes."""
        gradient, number = step.gradient, step.number

        def mean(name: str, of: Tensor, *, square: bool) -> None:
            def mixed(t: Terms, previous: Expr) -> Expr:
                new = expr.Square(t(of)) if square else t(of)
                return previous * t(number("alpha")) + new * t(number("rest"))

            step.keep(name, mixed)

        if self.mode is AdaptiveMode.AdaGrad:
            step.keep(SQUARES, lambda t, s: s + expr.Square(t(gradient)))
        else:
            mean(SQUARES, gradient, square=True)
        if self.mode is AdaptiveMode.CenteredRMSProp:
            mean(SECOND, gradient, square=False)
        change = step.made(lambda t: self._quotient(step, t), f"{self.mode.name}Updater")
        if self.mode is AdaptiveMode.AdaDelta:
            mean(SECOND, change, square=True)
        return change

    def _quotient(self, step: Step, t: Terms) -> Expr:
        gradient, squares = t(step.gradient), t(step.kept[SQUARES])
        eps = t(step.number("eps"))
        if self.mode is AdaptiveMode.AdaDelta:
            return gradient * expr.Sqrt(t(step.kept[SECOND]) + eps) / expr.Sqrt(squares + eps)
        if self.mode is AdaptiveMode.CenteredRMSProp:
            squares = squares - expr.Square(t(step.kept[SECOND]))
        return gradient / (
            expr.Sqrt(squares + eps) if self._as_tensorflow else expr.Sqrt(squares) + eps
        )
