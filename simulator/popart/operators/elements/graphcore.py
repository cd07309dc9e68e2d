"""Operators of ai.graphcore that are none of ONNX, nor of a file of their own."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT
from simulator.popart.operators.backward import summed_to
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements.activations import Function
from simulator.popart.representation.ir import Ir, Node
from simulator.poplibs import popops, poprand
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import Sigmoid, _1, _2, _3

Grads = list[Tensor | None]
_4 = expr.PlaceHolder(4)
SWISH = Function(
    "1",
    lambda x, a: x * Sigmoid(x),
    lambda x, y, g, a: g * Sigmoid(x) * (x * (1.0 - Sigmoid(x)) + 1.0),
)


def reversed_axes(call: Call, tensor: Tensor | None = None) -> Tensor:
    """View a tensor with some axes turned round."""
    out = call[0] if tensor is None else tensor
    for axis in call.attribute("dimensions", ()):
        out = out.reverse(call.place_of(int(axis)))
    return out


def reversed_back(call: Call, output: Tensor) -> Tensor:
    """View a tensor that lies as the output should as the input."""
    return reversed_axes(call, output)


def of_reverse(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Grads:
    """Turn the gradient round, too."""
    return [reversed_axes(call, grads[0])]


def incremented(call: Call) -> Tensor:
    """Return the remainder of what is more by an increment; it has the sign of the sum."""
    step, modulus = (float(call.attribute(name)) for name in ("increment", "modulus"))
    dtype = call[0].dtype
    numbers = (step, modulus) if dtype.numpy.kind == "f" else (int(step), int(modulus))
    first, second = (expr.Const(number, dtype) for number in numbers)
    return call.map(expr.Rem(_1 + first, second), call[0])


def scaled_sum(call: Call) -> Tensor:
    """Return a times scale0 and b times scale1; scales are attributes, or inputs 2 and 3."""
    if not call.has(2):
        return call.map(_1 * _scale(call, 0) + _2 * _scale(call, 1), call[0], call[1])
    scales = [broadcast(call.scalar(place), call[0].shape) for place in (2, 3)]
    return call.map(_1 * _3 + _2 * _4, call[0], call[1], *scales)


def _scale(call: Call, place: int) -> float:
    return float(call.attribute(f"scale{place}", 1.0))


def of_scaled_sum(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Grads:
    """Scale the gradient; a scale has the sum of what it multiplies."""
    grad = grads[0]
    if not call.has(2):
        return [call.map(_1 * _scale(call, place), grad) for place in (0, 1)]
    gradients: Grads = []
    for place in (2, 3):
        gradients.append(call.map(_1 * _2, grad, broadcast(call.scalar(place), grad.shape)))
    for place in (0, 1):
        scale_grad = summed_to(call, call.map(_1 * _2, grad, call[place]), [])
        gradients.append(scale_grad.reshape(call.info(place + 2).dims))
    return gradients


def overwritten(call: Call) -> Tensor:
    """Write values into a weight, which is the output."""
    call.prog.add(Copy(call[1], call[0], name=f"{call.name}/CopyVarUpdate"))
    return call[0]


def no_weight(node: Node, ir: Ir) -> str:
    """Return that a CopyVarUpdate writes to what is no weight."""
    name = node.inputs[0]
    return "" if name in ir.weights else f"input 0 ({name!r}) is no weight of floats"


def dropped(call: Call) -> Tensor:
    """Return the input; when trained, with parts of the given shape set to zero."""
    ratio, data = float(call.attribute("ratio", 0.5)), call[0]
    if not call.training or not ratio:
        return data
    like = call.variable(data.dtype, list(call.attribute("shape", ())), "mask")
    mask = poprand.bernoulli(call.graph, None, 0, like, data.dtype, 1 - ratio, call.prog, call.name)
    wide = broadcast(mask, data.shape)
    call.saved = (wide, 1 / (1 - ratio))
    return call.map(_1 * _2 * (1 / (1 - ratio)), data, wide)


def wrong_ratio(node: Node, ir: Ir) -> str:
    """Return what is wrong with the ratio of a ShapedDropout."""
    del ir
    ratio = float(node.attributes.get("ratio", 0.5))
    if 0 <= ratio < 1:
        return ""
    return f"ratio value {ratio:g} is not valid. Please use a value in the interval [0,1)"


def normalised_image(call: Call) -> Tensor:
    """Return (x * scale - offset) * factor of each of three channels, and a fourth of zeros."""
    return popops.normaliseImage(
        call.graph, call.prog, call[0], float(call.attribute("scale", 1.0)), call[1], call[2],
        call.name,
    )  # fmt: skip


def image_input(call: Call) -> Tensor:
    """Add images that lie as they are normalised."""
    info = call.info()
    return popops.createNormaliseImageInput(call.graph, info.device, info.dims, call.name)


def remapped(call: Call) -> Tensor:
    """Copy a tensor into one that is spread evenly."""
    return call.copy(call[0], "remapped")


def bucketized(call: Call) -> Tensor:
    """Return how many bounds are below each element; with `right`, how many are not above it.

    As PopART (popx/op/bucketizex.cpp): from the last two bounds on, a loop puts the number of the
    upper one where an element lies between.
    """
    data, count = call[0], call.info(1).nelms()
    bounds = call.cast(call[1], data.dtype)
    right = bool(call.attribute("right", 0))
    below, above = (expr.Lt, expr.Gte) if right else (expr.Lte, expr.Gt)
    out = call.variable(INT, data.shape, "buckets")
    popops.fill(call.graph, out, call.prog, count, f"{call.name}/fill")
    least = broadcast(bounds.slice(0, 1, 0).reshape([]), data.shape)
    first = expr.Select(expr.Const(0, INT), _1, below(_2, _3))
    popops.mapInPlace(call.graph, first, [out, data, least], call.prog, f"{call.name}/first")
    if count > 1:
        between = expr.Select(_4, _1, expr.And(above(_2, _3), below(_2, expr.PlaceHolder(5))))

        def body(number: Tensor) -> Program:
            inner, name = Program(name=f"{call.name}/bound"), f"{call.name}/bound"
            upper = popops.sub(call.graph, count - 1, number, inner, name)
            lower = popops.sub(call.graph, upper, 1, inner, name)
            ends = [
                popops.dynamicSlice(call.graph, bounds, place, [0], [1], inner, name)
                for place in (lower, upper)
            ]
            bucket = popops.cast(call.graph, upper, INT, inner, name)
            low, current, high = (
                broadcast(one.reshape([]), data.shape) for one in (ends[0], bucket, ends[1])
            )
            popops.mapInPlace(call.graph, between, [out, data, low, current, high], inner, name)
            return inner

        call.prog.add(popops.countedLoop(call.graph, 0, count - 1, 1, body))
    return out
