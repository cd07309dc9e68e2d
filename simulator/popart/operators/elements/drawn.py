"""Tensors of random numbers, drawn anew in every run (PopART: RandomNormal, RandomUniform)."""

from __future__ import annotations

from simulator.graph.tensors.tensor import Tensor
from simulator.popart.operators.call import Call
from simulator.poplibs import poprand

# Operators that draw random numbers.
DRAWS = ("Dropout", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
         "ShapedDropout")  # fmt: skip


def uniform(call: Call) -> Tensor:
    """Draw numbers between two that are equally probable."""
    low, high = (float(call.attribute(n, d)) for n, d in (("low", 0.0), ("high", 1.0)))
    like = _reference(call)
    return poprand.uniform(call.graph, None, 0, like, like.dtype, low, high, call.prog, call.name)


def normal(call: Call) -> Tensor:
    """Draw numbers of a normal distribution."""
    mean, scale = (float(call.attribute(n, d)) for n, d in (("mean", 0.0), ("scale", 1.0)))
    like = _reference(call)
    return poprand.normal(call.graph, None, 0, like, like.dtype, mean, scale, call.prog, call.name)


def _reference(call: Call) -> Tensor:
    """Return a tensor that lies as the output is to: the input, or one spread evenly."""
    info = call.outputs[0]
    if call.inputs and call.inputs[0] is not None and call[0].dtype == info.device:
        return call[0]
    return call.variable(info.device, info.dims, "like")
