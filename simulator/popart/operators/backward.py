"""What the gradients of operators share: sums over broadcast axes, zeros, expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulator.graph.tensors.tensor import Tensor
from simulator.popart.operators.call import Call
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation
from simulator.poplibs.popops.expr import Expr, _1, _2, _3

# A gradient gives those of the inputs (None where there is none) from those of the outputs.
Gradient = Callable[[Call, Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor | None]]


def of_one(expression: Callable[[Expr, Expr, Expr], Expr]) -> Gradient:
    """Make a gradient of one input from an expression of input, output and gradient."""

    def gradient(
        call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]
    ) -> list[Tensor | None]:
        return [call.map(expression(_1, _2, _3), call[0], outputs[0], grads[0])]

    return gradient


def summed_to(call: Call, tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Add up what a broadcast had repeated."""
    if tensor.shape == tuple(shape):
        return tensor
    padded = (1,) * (tensor.rank() - len(shape)) + tuple(shape)
    axes = [
        axis
        for axis, (have, want) in enumerate(zip(tensor.shape, padded, strict=True))
        if have != want
    ]
    return (total(call, tensor, axes) if axes else tensor).reshape(shape)


def total(call: Call, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Add up a gradient along axes, which go."""
    name = f"{call.name}/SumGrad"
    return popops.reduce(call.graph, tensor, list(axes), Operation.ADD, call.prog, name)


def of_bias(call: Call, gradient: Tensor) -> Tensor:
    """Return the gradient of the bias of each channel, which is axis 1."""
    return total(call, gradient, [axis for axis in range(gradient.rank()) if axis != 1])


def zeros(call: Call, like: Tensor, label: str = "zeros") -> Tensor:
    """Add a variable that lies like a tensor, and set it to zero."""
    out = call.graph.clone(like, f"{call.name}/{label}")
    if not out.isParallelWriteable():
        out = call.variable(like.dtype, like.shape, label)
    popops.zero(call.graph, out, call.prog, f"{call.name}/{label}")
    return out
