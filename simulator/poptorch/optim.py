"""Optimisers: those of torch.optim with what the device needs beside, as the loss scaling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import torch

from simulator.poptorch.errors import Error


class VariableAttributes:
    """Which attributes of an optimiser may change after compilation: here all that are not 0."""

    def __init__(self, variable_attributes: Iterable[str], allowed_attributes: Iterable[str]):
        self.allowed = tuple(allowed_attributes)
        self.variable = set(variable_attributes)
        wrong = sorted(self.variable - set(self.allowed))
        if wrong:
            raise Error(f"VariableAttributes: {wrong[0]!r}; known are {', '.join(self.allowed)}")

    def isConstant(self, name: str) -> bool:
        return name not in self.variable

    def markAsConstant(self, name: str) -> None:
        """Let a value be part of the program."""
        self.variable.discard(name)

    def markAsVariable(self, name: str) -> None:
        """Let a value change between calls."""
        self.variable.add(name)


def _device_part(*extra: str) -> dict[str, object]:
    """Return the defaults of the attributes that torch's optimisers do not have."""
    defaults: dict[str, Any] = {
        "loss_scaling": 1.0, "max_grad_norm": None, "accum_type": None,
        "first_order_momentum_accum_type": torch.float32,
        "second_order_momentum_accum_type": torch.float32, "use_combined_accum": False,
        "velocity_scaling": None, "bias_correction": True, "max_weight_norm": None,
        "use_tf_variant": False,
    }  # fmt: skip
    return {
        name: defaults[name] for name in ("loss_scaling", "max_grad_norm", "accum_type", *extra)
    }


class _OnDevice:
    """The attributes of an optimiser beside torch's; `EXTRA` are their defaults."""

    EXTRA: ClassVar[dict[str, Any]] = {}

    def _take(self, arguments: dict[str, object]) -> dict[str, object]:
        """Set the attributes of the device; return the arguments that are torch's."""
        for name, default in self.EXTRA.items():
            setattr(self, name, arguments.pop(name, default))
        return arguments


_MOMENTA = ("first_order_momentum_accum_type", "second_order_momentum_accum_type")


class SGD(_OnDevice, torch.optim.SGD):
    """Stochastic gradient descent; loss_scaling, velocity_scaling, use_combined_accum, ..."""

    EXTRA = _device_part("velocity_scaling", "use_combined_accum")

    def __init__(self, params: object, lr: float = 1e-3, **arguments: object) -> None:
        super().__init__(params, lr=lr, **self._take(arguments))


class Adam(_OnDevice, torch.optim.Adam):
    """Adam; loss_scaling, max_grad_norm, types of the moments."""

    EXTRA = _device_part(*_MOMENTA)

    def __init__(self, params: object, lr: float = 1e-3, **arguments: object) -> None:
        super().__init__(params, lr=lr, **self._take(arguments))


class AdamW(_OnDevice, torch.optim.AdamW):
    """AdamW; loss_scaling, max_grad_norm, bias_correction, types of the moments."""

    EXTRA = _device_part("bias_correction", *_MOMENTA)

    def __init__(self, params: object, lr: float = 1e-3, **arguments: object) -> None:
        super().__init__(params, lr=lr, **self._take(arguments))


class RMSprop(_OnDevice, torch.optim.RMSprop):
    """RMSprop; loss_scaling, use_tf_variant."""

    EXTRA = _device_part("use_tf_variant", *_MOMENTA)

    def __init__(self, params: object, lr: float = 1e-2, **arguments: object) -> None:
        super().__init__(params, lr=lr, **self._take(arguments))


class LAMB(_OnDevice, torch.optim.Optimizer):
    """LAMB: Adam's step, as long as the weight by max_weight_norm is."""

    EXTRA = _device_part("bias_correction", "max_weight_norm", *_MOMENTA)

    def __init__(
        self,
        params: object,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **arguments: object,
    ) -> None:
        surplus = self._take(arguments)
        if surplus:
            raise Error(f"LAMB: no argument {next(iter(surplus))!r}")
        values = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, values)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Change the parameters by their gradients, on the host."""
        loss = closure() if closure else None
        pairs = [(weight, group) for group in self.param_groups for weight in group["params"]]
        with torch.no_grad():
            for weight, group in pairs:
                if weight.grad is not None:
                    self._change(weight, group)
        return loss

    def _change(self, weight: torch.Tensor, group: Mapping[str, Any]) -> None:
        state, (one, two) = self.state[weight], group["betas"]
        if not state:
            zeros = torch.zeros_like
            state |= {"step": 0, "first": zeros(weight), "second": zeros(weight)}
        state["step"] += 1
        state["first"].mul_(one).add_(weight.grad, alpha=1 - one)
        state["second"].mul_(two).addcmul_(weight.grad, weight.grad, value=1 - two)
        least = state["step"] if self.bias_correction else 0
        first = state["first"] / (1 - one**least if least else 1)
        second = state["second"] / (1 - two**least if least else 1)
        change = first / (second.sqrt() + group["eps"]) + group["weight_decay"] * weight
        limit = self.max_weight_norm
        norm = weight.norm() if limit is None else weight.norm().clamp(max=limit)
        length = change.norm()
        trust = norm / length if norm > 0 and length > 0 else 1.0
        weight.sub_(change, alpha=float(group["lr"] * trust))
