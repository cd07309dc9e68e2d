"""Gradients of operators on every element, of reductions, and of what moves elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import UNSIGNED_INT, element_count
from simulator.popart.operators.backward import Gradient, of_one, summed_to, zeros
from simulator.popart.operators.call import Call, broadcast
from simulator.popart.operators.elements import dynamic, elementwise, graphcore, reductions, shapes
from simulator.popart.operators.elements.activations import FUNCTIONS, of_gelu
from simulator.popart.operators.elements.elementwise import operands
from simulator.popart.operators.elements.reductions import leaves_input, reduced_axes
from simulator.popart.representation.ir import GRAPHCORE, ONNX
from simulator.poplibs import popnn, popops
from simulator.poplibs.popnn import NonLinearityType
from simulator.poplibs.popops import Operation, expr
from simulator.poplibs.popops.expr import Expr, _1, _2, _3

Tensors = Sequence[Tensor]
Grads = list[Tensor | None]


def two(first: Expr, second: Expr) -> Gradient:
    """Make a gradient of two operands from expressions of a, b, the output (_3) and its gradient.

    The gradient is the fourth placeholder. A power's exponent may be of another type than its base.
    """

    def gradient(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
        pair = operands(call)
        alike = [call.cast(tensor, grads[0].dtype) for tensor in pair]
        wide = [broadcast(tensor, outputs[0].shape) for tensor in alike]
        gradients: Grads = []
        for place, expression in enumerate((first, second)):
            derivative = call.map(expression, *wide, outputs[0], grads[0])
            aligned = summed_to(call, derivative, pair[place].shape).reshape(call[place].shape)
            gradients.append(call.cast(aligned, call[place].dtype))
        return gradients

    return gradient


_4 = expr.PlaceHolder(4)
_TWO: dict[str, Gradient] = {
    "Add": two(_4, _4),
    "Sub": two(_4, -_4),
    "Mul": two(_4 * _2, _4 * _1),
    "Div": two(_4 / _2, -_4 * _3 / _2),
    "Pow": two(_4 * _2 * expr.Pow(_1, _2 - 1.0), _4 * _3 * expr.Log(_1)),
}
_ONE: dict[str, Gradient] = {
    "Abs": of_one(lambda x, y, g: g * expr.Signum(x)),
    "Asin": of_one(lambda x, y, g: g * expr.Rsqrt(1.0 - x * x)),
    "Atan": of_one(lambda x, y, g: g / (x * x + 1.0)),
    "Cos": of_one(lambda x, y, g: -g * expr.Sin(x)),
    "Cosh": of_one(lambda x, y, g: g * (expr.Exp(x) - expr.Exp(-x)) * 0.5),
    "Exp": of_one(lambda x, y, g: g * y),
    "Identity": lambda call, outputs, grads: [grads[0]],
    "Log": of_one(lambda x, y, g: g / x),
    "Neg": of_one(lambda x, y, g: -g),
    "Reciprocal": of_one(lambda x, y, g: -g * y * y),
    "Sin": of_one(lambda x, y, g: g * expr.Cos(x)),
    "Sinh": of_one(lambda x, y, g: g * (expr.Exp(x) + expr.Exp(-x)) * 0.5),
    "Sqrt": of_one(lambda x, y, g: g / y * 0.5),
    "Tan": of_one(lambda x, y, g: g * (y * y + 1.0)),
}


def of_non_linearity(kind: NonLinearityType, *, by_input: bool = False) -> Gradient:
    """Make the gradient of one of popnn's non-linearities."""

    def gradient(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
        acts = call[0] if by_input else outputs[0]
        arguments = (kind, acts, grads[0], call.prog, call.name)
        return [popnn.nonLinearityInputGradient(call.graph, *arguments)]

    return gradient


def of_chosen(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradient to the inputs that were the extreme."""
    gradients: Grads = []
    for place in range(len(call.inputs)):
        wide = broadcast(call[place], outputs[0].shape)
        selected = call.map(
            expr.Select(_3, _3 * 0.0, expr.Equal(_1, _2)), wide, outputs[0], grads[0]
        )
        gradients.append(summed_to(call, selected, call[place].shape))
    return gradients


def of_where(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradient to the tensor that each element was taken of."""
    condition = broadcast(call[0], outputs[0].shape)
    gradients: Grads = [None]
    for place, selection in (
        (1, expr.Select(_1, _1 * 0.0, _2)),
        (2, expr.Select(_1 * 0.0, _1, _2)),
    ):
        selected = call.map(selection, grads[0], condition)
        gradients.append(summed_to(call, selected, call.info(place).dims))
    return gradients


def of_expand(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Add up the gradients of the repeats along each axis."""
    return [summed_to(call, grads[0], call.info().dims), None]


def of_blocks(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """View the gradient as the input."""
    return [shapes.blocked_back(call, grads[0])]


def of_triangle(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Keep the triangle of the gradient, too."""
    call.inputs[0] = grads[0]
    return [elementwise.triangle(call), None]


def of_running_sum(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Add up the gradients of all sums that an element is in: the other way along the axis."""
    forward = bool(call.attribute("reverse", 0))
    return [reductions.running(call, grads[0], backward=not forward), None]


def of_sum(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Assign each input the gradient, or its share of a mean."""
    share = 1.0 / len(call.inputs) if call.node.operator == "Mean" else 1.0
    grad = grads[0] if share == 1.0 else call.map(_1 * share, grads[0])
    return [summed_to(call, grad, call.info(place).dims) for place in range(len(call.inputs))]


def of_clip(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradient where nothing was cut off."""
    passed = expr.Select(_3, _3 * 0.0, expr.Equal(_1, _2))
    no_gradients: Grads = [None] * (len(call.inputs) - 1)
    return [call.map(passed, call[0], outputs[0], grads[0]), *no_gradients]


def of_cast(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Cast the gradient back; what is no float has none."""
    if call[0].dtype.numpy.kind != "f":
        return [None]
    return [call.cast(grads[0], call[0].dtype)]


# Reductions
_REDUCED = {
    "ReduceL1": expr.Signum(_1) * _3,
    "ReduceL2": expr.Select(_3 * 0.0, _1 * _3 / _2, expr.Equal(_2, 0.0)),  # a corner at 0
    "ReduceLogSum": _3 / expr.Exp(_2),
    "ReduceLogSumExp": _3 * expr.Exp(_1 - _2),
    "ReduceMax": expr.Select(_3, _3 * 0.0, expr.Equal(_1, _2)),
    "ReduceMean": _3,
    "ReduceMin": expr.Select(_3, _3 * 0.0, expr.Equal(_1, _2)),
    "ReduceSum": _3,
    "ReduceSumSquare": _1 * _3 * 2.0,
}


def of_reduction(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Assign each element its part in what it was reduced to."""
    if leaves_input(call.node.operator, call.node.attributes):
        return [grads[0]]
    shape, axes = call[0].shape, reduced_axes(call)
    kept_shape = [1 if axis in axes else size for axis, size in enumerate(shape)]
    output, grad = (broadcast(t.reshape(kept_shape), shape) for t in (outputs[0], grads[0]))
    expression = _REDUCED[call.node.operator]
    if call.node.operator == "ReduceMean":
        expression = _3 * (1.0 / max(element_count(tuple(shape[axis] for axis in axes)), 1))
    gradient = call.map(expression, call[0], output, grad)
    return [gradient, *[None] * (len(call.inputs) - 1)]


def of_product(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Assign each element the product of the others, also where some are zero."""
    if leaves_input(call.node.operator, call.node.attributes):
        return [grads[0]]
    shape, axes, name = call[0].shape, reduced_axes(call), f"{call.name}/ProdGrad"
    kept_shape = [1 if axis in axes else size for axis, size in enumerate(shape)]
    zero = call.cast(call.map(expr.Equal(_1, 0.0), call[0]), call[0].dtype)
    filled = call.map(_1 + _2, call[0], zero)
    product, count = (
        popops.reduce(call.graph, tensor, axes, operation, call.prog, name)
        for tensor, operation in ((filled, Operation.MUL), (zero, Operation.ADD))
    )
    wide = [broadcast(t.reshape(kept_shape), shape) for t in (grads[0], product, count)]
    # No zero is among the others of an element if it is the only one, or there is none.
    product_of_others = expr.Select(_1 * _2 / _4, _1 * 0.0, expr.Equal(_3, expr.PlaceHolder(5)))
    return [call.map(product_of_others, *wide, filled, zero), *[None] * (len(call.inputs) - 1)]


def of_global_pool(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Spread the gradient of a mean, or give it to the maxima."""
    shape = call[0].shape
    grad = broadcast(grads[0], shape)
    if call.node.operator == "GlobalMaxPool":
        passed = expr.Select(_3, _3 * 0.0, expr.Equal(_1, _2))
        return [call.map(passed, call[0], broadcast(outputs[0], shape), grad)]
    return [call.map(_1 * (1.0 / element_count(shape[2:])), grad)]


# Views
def of_view(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """View the gradient in the shape of the input."""
    return [grads[0].reshape(call.info().dims), *[None] * (len(call.inputs) - 1)]


def of_transpose(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """View the gradient with the axes of the input."""
    return [shapes.transposed_back(call, grads[0])]


def of_concat(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Cut the gradient into the inputs' parts."""
    axis = call.axis(1 if call.node.version < 4 else 0)
    ends = np.cumsum([call.info(p).dims[axis] for p in range(len(call.inputs))]).tolist()
    return [grads[0].slice(b, e, axis) for b, e in zip([0, *ends[:-1]], ends, strict=True)]


def of_split(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Lay the parts' gradients one after another."""
    return [concat(list(grads), call.axis()), *[None] * (len(call.inputs) - 1)]


def of_tile(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Add up the gradients of the repeats."""
    shape = call[0].shape
    apart = [n for size, all_of in zip(shape, grads[0].shape, strict=True)
             for n in (all_of // max(size, 1), size)]  # fmt: skip
    total = summed_to(call, grads[0].reshape(apart), [n for size in shape for n in (1, size)])
    return [total.reshape(shape), *[None] * (len(call.inputs) - 1)]


def of_shrink(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return the gradient of what is not in the middle."""
    limit = call.attribute("lambd", 0.5)
    above = expr.Select(_2, _2 * 0.0, _1 > limit)
    return [call.map(expr.Select(_2, above, _1 < -limit), call[0], grads[0])]


def of_taken(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Put the gradient where its elements were taken from, among zeros."""
    zeroed = zeros(call, call[0], "SliceGrad")
    seen = shapes.sliced if call.node.operator == "Slice" else shapes.subsampled
    original_inputs = list(call.inputs)
    call.inputs[0] = zeroed
    call.prog.add(Copy(grads[0], seen(call), name=f"{call.name}/SliceGrad"))
    call.inputs[:] = original_inputs
    return [zeroed, *[None] * (len(call.inputs) - 1)]


def of_pad(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Take the gradient of what was padded; an element that was repeated has those of all."""
    mode, grad = shapes.pad_mode(call), grads[0]
    for axis, lower, upper in shapes.pad_widths(call):
        if mode == "constant":
            grad = call.padded(grad, -lower, -upper, axis)
        elif lower or upper:
            size = call.info().dims[axis]
            places = shapes.around(mode, size, lower, upper).astype(np.uint32)
            indices = call.constant(places, UNSIGNED_INT, "PadGrad")
            grad = added_to_rows(call, grad, indices, size, axis, "PadGrad")
    return [grad, *[None] * (len(call.inputs) - 1)]


def of_gather(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Add the gradient of each slice to the row that it was taken from."""
    axis, shape = call.axis(), call[0].shape
    indices = shapes.from_front(call, call[1].flatten(), shape[axis])
    slices = grads[0].reshape((*shape[:axis], indices.numElements(), *shape[axis + 1 :]))
    return [added_to_rows(call, slices, indices, shape[axis], axis, "GatherGrad"), None]


def added_to_rows(
    call: Call, slices: Tensor, indices: Tensor, size: int, axis: int, label: str
) -> Tensor:
    """Add each slice of an axis to the row of its index, of so many that begin with zero."""
    rows = slices.dimRoll(axis, 0)
    count, *other_dims = rows.shape
    inner, name = element_count(tuple(other_dims)), f"{call.name}/{label}"
    table = call.variable(rows.dtype, [size, inner], label)
    popops.zero(call.graph, table, call.prog, name)
    scale = call.constant(1.0, rows.dtype, "one")
    popops.multiUpdateAdd(
        call.graph, table, rows.reshape((count, 1, inner)), indices.expand([1]), scale, [0], [1],
        call.prog, debugContext=name,
    )  # fmt: skip
    return table.reshape((size, *other_dims)).dimRoll(0, axis)


def of_scale(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Scale the gradient, too (ai.graphcore)."""
    return [call.map(_1 * float(call.attribute("scale", 1.0)), grads[0])]


_RELU, _TANH = NonLinearityType.RELU, NonLinearityType.TANH
_SIGMOID, _GELU = NonLinearityType.SIGMOID, NonLinearityType.GELU
_MOVED: dict[str, Gradient] = {
    "Cast": of_cast,
    "Clip": of_clip,
    "Concat": of_concat,
    "CumSum": of_running_sum,
    "DepthToSpace": of_blocks,
    "Expand": of_expand,
    "Flatten": of_view,
    "Gather": of_gather,
    "Gelu": of_gelu,
    "GlobalAveragePool": of_global_pool,
    "GlobalMaxPool": of_global_pool,
    "Max": of_chosen,
    "Mean": of_sum,
    "Min": of_chosen,
    "Pad": of_pad,
    "Relu": of_non_linearity(_RELU),
    "Reshape": of_view,
    "Sigmoid": of_non_linearity(_SIGMOID),
    "Shrink": of_shrink,
    "Slice": of_taken,
    "SpaceToDepth": of_blocks,
    "Split": of_split,
    "Squeeze": of_view,
    "Sum": of_sum,
    "Tanh": of_non_linearity(_TANH),
    "Tile": of_tile,
    "Transpose": of_transpose,
    "Trilu": of_triangle,
    "Unsqueeze": of_view,
    "Where": of_where,
}


def of_sign(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Return zeros, as PopART does: a sign does not change when its input does a little."""
    return [zeros(call, grads[0], "Flat")]


def of_one_hot(call: Call, outputs: Tensors, grads: Tensors) -> Grads:
    """Add up what has reached each of the two values."""
    marks, axes = elementwise.pointed_at(call), list(range(grads[0].rank()))
    parts = [call.map(part, grads[0], marks) for part in (_1 * (1.0 - _2), _1 * _2)]
    sums = [reductions.reduced(call, part, axes, Operation.ADD).reshape([1]) for part in parts]
    return [None, None, concat(sums, 0).reshape(call[2].shape)]


# a - n b with a whole number n, which does not move.
_OF_REMAINDER = two(_4, -_4 * (_1 - _3) / _2)
POINTWISE: dict[tuple[str, str], Gradient] = {
    **{(ONNX, name): gradient for name, gradient in {**_TWO, **_ONE, **_MOVED}.items()},
    **{(ONNX, name): of_reduction for name in _REDUCED},
    (ONNX, "Mod"): _OF_REMAINDER,
    (ONNX, "OneHot"): of_one_hot,
    (ONNX, "ReduceProd"): of_product,
    (ONNX, "Sign"): of_sign,
    **{(ONNX, name): function.of_function for name, function in FUNCTIONS.items()},
    (GRAPHCORE, "Atan2"): two(_4 * _2 / (_1 * _1 + _2 * _2), -_4 * _1 / (_1 * _1 + _2 * _2)),
    (GRAPHCORE, "DepthToSpace"): of_blocks,
    (GRAPHCORE, "DynamicAdd"): dynamic.of_add,
    (GRAPHCORE, "DynamicSlice"): dynamic.of_slice,
    (GRAPHCORE, "DynamicUpdate"): dynamic.of_update,
    (GRAPHCORE, "DynamicZero"): dynamic.of_zero,
    (GRAPHCORE, "Expm1"): of_one(lambda x, y, g: g * (y + 1.0)),
    (GRAPHCORE, "Fmod"): _OF_REMAINDER,
    (GRAPHCORE, "Gelu"): of_non_linearity(_GELU, by_input=True),
    (GRAPHCORE, "GeluErf"): of_gelu,
    (GRAPHCORE, "Log1p"): of_one(lambda x, y, g: g / (x + 1.0)),
    (GRAPHCORE, "Nop"): lambda call, outputs, grads: [grads[0]],
    (GRAPHCORE, "Remainder"): _OF_REMAINDER,
    (GRAPHCORE, "Reshape"): of_view,
    (GRAPHCORE, "Reverse"): graphcore.of_reverse,
    (GRAPHCORE, "Scale"): of_scale,
    (GRAPHCORE, "ScaledAdd"): graphcore.of_scaled_sum,
    (GRAPHCORE, "Slice"): of_taken,
    (GRAPHCORE, "Square"): of_one(lambda x, y, g: x * g * 2.0),
    (GRAPHCORE, "Subsample"): of_taken,
    (GRAPHCORE, "Swish"): graphcore.SWISH.of_function,
    (GRAPHCORE, "TensorRemap"): lambda call, outputs, grads: [grads[0]],
    (GRAPHCORE, "PrintTensor"): lambda call, outputs, grads: [grads[0]],
}
