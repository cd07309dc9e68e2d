"""Adam and its kin, which keep the first and second moment of gradients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import ClassVar

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT
from simulator.popart.errors import popart_exception
from simulator.popart.optimizers.step import Number, Step, Terms
from simulator.popart.optimizers.types import DataType, WeightDecayMode
from simulator.popart.optimizers.values import ClipNormSettings, Compound, Given, Optimizer, rest_of
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr

FIRST, SECOND, COUNT = "Accl1", "Accl2", "Step"


class AdamMode(Enum):
    """Which of Adam's kin: AdamW is Adam with weight decay of mode Decay."""

    Adam = "Adam"
    AdamNoBias = "AdamNoBias"
    AdaMax = "AdaMax"
    Lamb = "Lamb"
    LambNoBias = "LambNoBias"


_COMMON = (
    Compound("learningRate", "learningRate", lambda lr: lr),
    Compound("beta1", "beta1", lambda b: b),
    Compound("beta2", "beta2", lambda b: b),
    Compound("maxWeightNorm", "maxWeightNorm", lambda norm: norm),
)
# How much of a gradient, or of its square, goes into the moments, and what those are divided by.
_UNSCALED = (
    Compound("firstShare", "beta1 lossScaling", lambda b, ls: rest_of(b) / ls),
    Compound("secondShare", "beta2 lossScaling", lambda b, ls: rest_of(b) / ls**2),
    Compound("inverseLossScaling", "lossScaling", lambda ls: 1 / ls),
    Compound("weightDecay", "weightDecay", lambda wd: wd),
    Compound("decayOfGradient", "weightDecay lossScaling", lambda wd, ls: wd * ls),
    Compound("eps", "eps", lambda eps: eps),
)
_SCALED = (
    Compound("firstShare", "beta1", rest_of),
    Compound("secondShare", "beta2", rest_of),
    Compound("inverseLossScaling", "", lambda: 1.0),
    Compound("weightDecay", "weightDecay", lambda wd: wd),
    Compound("decayOfGradient", "weightDecay lossScaling", lambda wd, ls: wd * ls),
    Compound("eps", "eps lossScaling", lambda eps, ls: eps * ls),
)


class Adam(Optimizer):
    """Adam, AdamW, AdaMax and Lamb: Adam({"defaultLearningRate": (0.001, False), ...}).

    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2, of AdaMax max(beta2 v, |g|);
    x = m' / (sqrt(v') + eps), both moments without the bias of their first steps, of AdaMax
    m' / (v + eps); w -= rate (x + decay w), of Lamb times min(|w|, maxWeightNorm) / |x + decay w|.

    >>> Adam({"defaultLearningRate": (0.5, False)}).of("w")["learningRate"].val()
    0.5
    """

    DEFAULTS: ClassVar[Mapping[str, float]] = {
        "learningRate": 0.1, "weightDecay": 0.0, "beta1": 0.9, "beta2": 0.999, "eps": 1e-6,
        "lossScaling": 1.0, "maxWeightNorm": 10.0,
    }  # fmt: skip

    def __init__(
        self,
        values: Mapping[str, Given] | None = None,
        mode: AdamMode = AdamMode.Adam,
        weight_decay_mode: WeightDecayMode = WeightDecayMode.Decay,
        accum_type: DataType | str = DataType.UNDEFINED,
        accl1_type: DataType | str = DataType.FLOAT,
        accl2_type: DataType | str = DataType.FLOAT,
        clip_norm_settings: Iterable[ClipNormSettings] = (),
        scaled_optimizer_state: bool = False,
    ) -> None:
        if not isinstance(mode, AdamMode) or not isinstance(weight_decay_mode, WeightDecayMode):
            raise popart_exception(
                f"Adam: modes are {mode!r}, {weight_decay_mode!r}; "
                "an AdamMode and a WeightDecayMode are needed"
            )
        self.mode, self._decay = mode, weight_decay_mode
        self._scaled = scaled_optimizer_state
        types = {"Accum": accum_type, FIRST: accl1_type, SECOND: accl2_type}
        super().__init__(values, types, clip_norm_settings)

    def traits(self) -> tuple[object, ...]:
        return self.mode, self._decay, self._scaled, *super().traits()

    def compounds(self, weight: str) -> tuple[Compound, ...]:
        return (*_COMMON, *(_SCALED if self._scaled else _UNSCALED))

    @property
    def _corrects(self) -> bool:
        return self.mode not in (AdamMode.AdamNoBias, AdamMode.LambNoBias)

    def kept(self, weight: str) -> dict[str, str]:
        return {FIRST: self._types[FIRST], SECOND: self._types[SECOND]} | (
            {COUNT: "FLOAT"} if self._corrects else {}
        )

    def change(self, step: Step, weight: str) -> None:
        """Add the change of a weight."""
        added = self._decay is WeightDecayMode.L2Regularization
        if added and step.is_needed("decayOfGradient"):
            decay, plain = step.number("decayOfGradient"), step.gradient
            step.gradient = step.made(
                lambda t: t(plain) + t(step.weight) * t(decay), "L2Regularization"
            )
        self._take_in(step)
        first, second = _without_bias(step, self.mode) if self._corrects else (1.0, 1.0)

        def moved(t: Terms) -> Expr:
            root = t(step.kept[SECOND])
            if self.mode is not AdamMode.AdaMax:
                root = expr.Sqrt(root * t(second) if isinstance(second, Tensor) else root)
            mean = t(step.kept[FIRST])
            mean = mean * t(first) if isinstance(first, Tensor) else mean
            ratio = mean / (root + t(step.number("eps")))
            if added or not step.is_needed("weightDecay"):
                return ratio
            return ratio + t(step.weight) * t(step.number("weightDecay"))

        change, rate = step.made(moved, "AdamUpdater"), step.number("learningRate")
        if self.mode in (AdamMode.Lamb, AdamMode.LambNoBias):
            rate = _trusted(step, change, rate)
        step.subtract(change, rate)

    def _take_in(self, step: Step) -> None:
        """Take a gradient into both moments."""
        gradient = step.gradient
        share, inverse_scale, most = map(
            step.number, ("firstShare", "secondShare", "inverseLossScaling")
        )
        step.keep(FIRST, lambda t, m: m * t(step.number("beta1")) + t(gradient) * t(share))
        if self.mode is AdamMode.AdaMax:
            step.keep(
                SECOND,
                lambda t, v: expr.Max(v * t(step.number("beta2")), expr.Abs(t(gradient)) * t(most)),
            )
        else:
            step.keep(
                SECOND,
                lambda t, v: (
                    v * t(step.number("beta2")) + expr.Square(t(gradient)) * t(inverse_scale)
                ),
            )


def _without_bias(step: Step, mode: AdamMode) -> tuple[Tensor, Number]:
    """Count the step; give what takes the bias of the first steps from each moment."""
    count = step.keep(COUNT, lambda t, n: n + 1.0)

    def factor(name: str) -> Tensor:
        return step.made(
            lambda t: t(1.0) / (t(1.0) - expr.Pow(t(step.number(name)), t(count))), f"{name}Bias"
        )

    return factor("beta1"), 1.0 if mode is AdamMode.AdaMax else factor("beta2")


def _trusted(step: Step, change: Tensor, rate: Number) -> Tensor:
    """Return Lamb's rate: that of the weight's norm to the change's."""

    def squares(tensor: Tensor, label: str) -> Tensor:
        params = popops.ReduceParams(Operation.SQUARE_ADD)
        return popops.reduce(
            step.graph, tensor.flatten(), FLOAT, [0], params, step.prog, f"{step.name}/{label}"
        ).reshape([1])

    of_weight, of_change = squares(step.weight, "R1"), squares(change, "R2")

    def made(t: Terms) -> Expr:
        norm = expr.Min(expr.Sqrt(t(of_weight)), t(step.number("maxWeightNorm")))
        moved = expr.Sqrt(t(of_change))
        ratio = expr.Select(norm / moved, t(1.0), expr.Gt(norm * moved, t(0.0)))
        return ratio * t(rate)

    return step.made(made, "TrustRatio")
