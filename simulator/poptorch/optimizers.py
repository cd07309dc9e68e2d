"""An optimiser of torch as one of PopART: values by group, weights by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

import torch

from simulator import popart
from simulator.popart.optimizers import Optimizer
from simulator.poptorch import optim
from simulator.poptorch.errors import Error

UNLIMITED = 65500.0  # of the norm of a weight
REFUSED = ("amsgrad", "maximize", "differentiable", "centered_tf")
Values = dict[str, tuple[float, bool]]
Group = Mapping[str, Any]  # of parameters: torch's values by their names


def weights_of(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> set[str]:
    """Name the weights that an optimiser changes; `names` are those of the parameters by id."""
    groups = (group["params"] for group in optimizer.param_groups)
    return {names[id(p)] for params in groups for p in params if id(p) in names}


def to_popart(optimizer: torch.optim.Optimizer, names: Mapping[int, str]) -> Optimizer:
    """Return PopART's optimiser with the values of torch's; raises Error for what it has not."""
    kind = next((k for k in KINDS if isinstance(optimizer, k)), None)
    label = type(optimizer).__name__
    if kind is None:
        kinds = ", ".join(k.__name__ for k in KINDS)
        raise Error(f"optimizer {label}: the device has {kinds}")
    for group in optimizer.param_groups:
        on = [name for name in REFUSED if group.get(name)]
        if on:
            raise Error(f"optimizer {label}: {on[0]} cannot be done here")
    values, make = KINDS[kind]
    first, *specifics = (
        _checked(values(optimizer, group), label) for group in optimizer.param_groups
    )
    scaling = float(getattr(optimizer, "loss_scaling", None) or 1.0)
    keyed = {popart_key(name): value for name, value in first.items()}
    popart_optimizer = make(optimizer, {**keyed, "lossScaling": (scaling, False)})
    for group, specific in zip(optimizer.param_groups[1:], specifics, strict=True):
        for weight in group["params"]:
            if id(weight) in names:
                popart_optimizer.insertSpecific(names[id(weight)], specific)
    return popart_optimizer


def popart_key(name: str) -> str:
    """Return the key of a value of all weights: defaultLearningRate."""
    return name if name == "nesterov" else f"default{name[0].upper()}{name[1:]}"


def _checked(values: Values, label: str) -> Values:
    for name, (number, _) in values.items():
        if not number >= 0:
            raise Error(f"optimizer {label}: {name} is {number}; 0 or more is needed")
    return values


def _value(number: SupportsFloat) -> tuple[float, bool]:
    """Return a value that may change unless it is 0, which has no part in the program."""
    value = float(number)
    return value, value == 0.0


def _sgd_values(optimizer: torch.optim.Optimizer, group: Group) -> Values:
    scaling = getattr(optimizer, "velocity_scaling", None)
    return {
        "learningRate": (float(group["lr"]), False),
        "momentum": _value(group["momentum"]),
        "dampening": _value(group["dampening"]),
        "weightDecay": _value(group["weight_decay"]),
        "nesterov": (float(bool(group["nesterov"])), True),
        "velocityScaling": (float(scaling or 1.0), True),
    }


def _adam_values(optimizer: torch.optim.Optimizer, group: Group) -> Values:
    limit = getattr(optimizer, "max_weight_norm", None)
    return {
        "learningRate": (float(group["lr"]), False),
        "beta1": (float(group["betas"][0]), False),
        "beta2": (float(group["betas"][1]), False),
        "eps": (float(group["eps"]), False),
        "weightDecay": _value(group["weight_decay"]),
        "maxWeightNorm": (float(UNLIMITED if limit is None else limit), True),
    }


def _rmsprop_values(optimizer: torch.optim.Optimizer, group: Group) -> Values:
    return {
        "learningRate": (float(group["lr"]), False),
        "alpha": (float(group["alpha"]), False),
        "eps": (float(group["eps"]), False),
        "momentum": _value(group["momentum"]),
        "weightDecay": _value(group["weight_decay"]),
    }


def _clips(optimizer: object) -> list[popart.ClipNormSettings]:
    limit = getattr(optimizer, "max_grad_norm", None)
    return [] if limit in (None, float("inf")) else [popart.ClipNormSettings.clipAllWeights(limit)]


def _types(optimizer: object) -> dict[str, Any]:
    """Return the types of what is kept for each weight."""
    names = {
        "accum_type": "accum_type",
        "first_order_momentum_accum_type": "accl1_type",
        "second_order_momentum_accum_type": "accl2_type",
    }
    kinds = {torch.float32: popart.DataType.FLOAT, torch.float16: popart.DataType.FLOAT16}
    types = {key: getattr(optimizer, name, None) for name, key in names.items()}
    return {key: kinds[kind] for key, kind in types.items() if kind is not None}


def _sgd(optimizer: torch.optim.Optimizer, values: Values) -> Optimizer:
    ways = popart.SGDAccumulatorAndMomentum
    combined = bool(getattr(optimizer, "use_combined_accum", False))
    return popart.SGD(
        values, clip_norm_settings=_clips(optimizer),
        accumulatorAndMomentum=ways.Combined if combined else ways.Separate,
    )  # fmt: skip


def _adam(optimizer: torch.optim.Optimizer, values: Values) -> Optimizer:
    modes, decays = popart.AdamMode, popart.WeightDecayMode
    corrects = bool(getattr(optimizer, "bias_correction", True))
    lamb = isinstance(optimizer, optim.LAMB)
    mode = {
        (False, True): modes.Adam, (False, False): modes.AdamNoBias,
        (True, True): modes.Lamb, (True, False): modes.LambNoBias,
    }[lamb, corrects]  # fmt: skip
    decoupled = lamb or isinstance(optimizer, torch.optim.AdamW)
    decay = decays.Decay if decoupled else decays.L2Regularization
    return popart.Adam(
        values, mode, decay, clip_norm_settings=_clips(optimizer), **_types(optimizer)
    )


def _rmsprop(optimizer: torch.optim.Optimizer, values: Values) -> Optimizer:
    if _clips(optimizer):
        raise Error("optimizer RMSprop: max_grad_norm cannot be done here")
    modes = popart.AdaptiveMode
    centred = [bool(group["centered"]) for group in optimizer.param_groups]
    return popart.Adaptive(
        values, modes.CenteredRMSProp if any(centred) else modes.RMSProp,
        popart.WeightDecayMode.L2Regularization, **_types(optimizer),
        rmsprop_tf_variant=bool(getattr(optimizer, "use_tf_variant", False)),
    )  # fmt: skip


Maker = tuple[
    Callable[[torch.optim.Optimizer, Group], Values],
    Callable[[torch.optim.Optimizer, Values], Optimizer],
]
KINDS: dict[type[torch.optim.Optimizer], Maker] = {
    torch.optim.SGD: (_sgd_values, _sgd),
    torch.optim.AdamW: (_adam_values, _adam),
    torch.optim.Adam: (_adam_values, _adam),
    torch.optim.RMSprop: (_rmsprop_values, _rmsprop),
    optim.LAMB: (_adam_values, _adam),
}
