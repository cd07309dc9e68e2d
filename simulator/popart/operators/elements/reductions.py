"""Operators that make one element of many: sums, extremes, the places of extremes, softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from simulator.codelets.products.reduction import REDUCTIONS
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import BOOL, element_count
from simulator.popart.errors import popart_exception
from simulator.popart.operators.call import Call, broadcast, wider
from simulator.popart.representation.ir import Ir, Node
from simulator.poplibs import popnn, popops
from simulator.poplibs.popnn import NonLinearityType
from simulator.poplibs.popops import Operation, SortOrder, TopKParams, expr
from simulator.poplibs.popops.expr import Expr, _1, _2

Function = Callable[[Expr], Expr]


class Reduction(NamedTuple):
    """A reduction: what is done to elements first, how they are joined, what is done last."""

    operation: Operation
    before: Function | None = None
    after: Function | None = None
    mean: bool = False


REDUCED = {
    "ReduceL1": Reduction(Operation.ADD, before=expr.Abs),
    "ReduceL2": Reduction(Operation.SQUARE_ADD, after=expr.Sqrt),
    "ReduceLogSum": Reduction(Operation.ADD, after=expr.Log),
    "ReduceLogSumExp": Reduction(Operation.LOG_ADD),
    "ReduceMax": Reduction(Operation.MAX),
    "ReduceMean": Reduction(Operation.ADD, mean=True),
    "ReduceMin": Reduction(Operation.MIN),
    "ReduceProd": Reduction(Operation.MUL),
    "ReduceSum": Reduction(Operation.ADD),
    "ReduceSumSquare": Reduction(Operation.SQUARE_ADD),
}


def names_no_axis(operator: str, attributes: Mapping[str, Any]) -> bool:
    """Return whether a reduction names no axis: each element is then reduced by itself."""
    axes = attributes.get("axes")
    return operator in (*REDUCED, "ReduceMedian") and axes is not None and len(axes) == 0


def leaves_input(operator: str, attributes: Mapping[str, object]) -> bool:
    """Return whether a reduction gives its input: of no axis, by what leaves a single number."""
    kind = REDUCED.get(operator)
    changes = kind is not None and (
        kind.before or kind.after or kind.operation is Operation.SQUARE_ADD
    )
    return names_no_axis(operator, attributes) and not changes


def check_axes(axes: Iterable[int], rank: int) -> None:
    """Raise popart_exception for an axis that is not there, in the words of PopART."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise popart_exception(f"Axis {axis} is out of acceptable range [{-rank}, {rank - 1}]")


def wrong_axes(node: Node, ir: Ir) -> str:
    """Return "" where a reduction's axes are there; raises popart_exception for one that is not."""
    axes_input = ir.known(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] else None
    axes = (
        node.attributes.get("axes") or () if axes_input is None else axes_input.reshape(-1).tolist()
    )
    check_axes(axes, len(ir.infos[node.inputs[0]].dims))
    return ""


_OF_TRUTH = {Operation.MAX: Operation.LOGICAL_OR, Operation.MIN: Operation.LOGICAL_AND}


def reduced_axes(call: Call) -> list[int]:
    """Return the axes that go, from the attribute or, in newer versions, the input."""
    rank = len(call.info().dims)
    axes = call.numbers(1, "axes")
    if names_no_axis(call.node.operator, call.node.attributes):
        return []
    if not axes:
        return [] if call.attribute("noop_with_empty_axes", 0) else list(range(rank))
    return sorted(axis % rank for axis in axes)


def reduction(call: Call) -> Tensor:
    """Reduce axes, which stay with size 1 or go."""
    if leaves_input(call.node.operator, call.node.attributes):
        return call[0]
    kind, axes, tensor = REDUCED[call.node.operator], reduced_axes(call), call[0]
    operation = _OF_TRUTH[kind.operation] if tensor.dtype == BOOL else kind.operation
    names = [dtype.name for dtype in REDUCTIONS[operation.value].types]
    values = call.cast(tensor, wider(tensor.dtype, names))
    if kind.before is not None and tensor.dtype.numpy.kind != "u":  # which is its absolute value
        values = call.map(kind.before(_1), values)
    out = reduced(call, values, axes, operation)
    if kind.mean:
        count = max(element_count(tuple(tensor.shape[axis] for axis in axes)), 1)
        share = _1 * (1.0 / count) if out.dtype.numpy.kind == "f" else _1 / count
        out = call.map(share, out)
    if kind.after is not None:
        out = call.map(kind.after(_1), call.cast(out, wider(out.dtype, ("float", "half", "int"))))
    return call.cast(out, tensor.dtype).reshape(call.outputs[0].dims)


def reduced(call: Call, values: Tensor, axes: list[int], operation: Operation) -> Tensor:
    """Reduce axes, which go."""
    return popops.reduce(call.graph, values, axes, operation, call.prog, call.name)


def arg_extreme(call: Call) -> Tensor:
    """Return the place of the largest or smallest element of an axis: the first, or the last."""
    axis = call.axis()
    tensor, size = call[0], call.info().dims[axis]
    rows = tensor.dimRoll(axis, tensor.rank() - 1)
    last = bool(call.attribute("select_last_index", 0))
    if last:
        rows = rows.reverse(rows.rank() - 1)
    table = rows.reshape((rows.numElements() // size, size))
    find = popnn.argMax if call.node.operator == "ArgMax" else popnn.argMin
    extremes = find(call.graph, table, call.prog, call.name)
    places = call.cast(extremes, call.outputs[0].device)
    if last:
        places = call.map(expr.Sub(size - 1, _1), places)
    return places.reshape(call.outputs[0].dims)


def top_k(call: Call) -> list[Tensor]:
    """Return the largest or smallest elements of an axis, and their places."""
    axis, tensor = call.axis(-1), call[0]
    count = call.numbers(1) or [call.attribute("k")]
    rows = tensor.dimRoll(axis, tensor.rank() - 1)
    size = rows.shape[-1]
    largest = bool(call.attribute("largest", 1))
    order = SortOrder.DESCENDING if largest else SortOrder.ASCENDING
    params = TopKParams(int(count[0]), largest, order, stableSort=True)
    keys = call.cast(rows, wider(rows.dtype, ("float", "half", "int", "unsigned int")))
    table = keys.reshape((rows.numElements() // size, size))
    values, places = popops.topKWithPermutation(call.graph, call.prog, table, params, call.name)
    call.saved = (places,)
    shape = (*rows.shape[:-1], int(count[0]))
    outputs = (call.cast(values, tensor.dtype), call.cast(places, call.outputs[1].device))
    return [part.reshape(shape).dimRoll(tensor.rank() - 1, axis) for part in outputs]


# Softmax
def classes_of(call: Call, tensor: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """View the classes of each sample as a row; give the rows, and the way back.

    Before opset 13 all dimensions from the axis on are classes.
    """
    if call.node.version < 13:
        axis = call.axis(1)
        samples = element_count(tensor.shape[:axis])
        shape = (samples, tensor.numElements() // max(samples, 1))
        return tensor.reshape(shape), lambda out: out.reshape(tensor.shape)
    axis, last = call.axis(-1), tensor.rank() - 1
    moved = tensor.dimRoll(axis, last)
    classes = moved.shape[-1]
    table = moved.reshape((moved.numElements() // classes, classes))
    return table, lambda out: out.reshape(moved.shape).dimRoll(last, axis)


def softmax(call: Call) -> Tensor:
    """Return the softmax of each sample, stable for large values."""
    table, back = classes_of(call, call[0])
    kind = NonLinearityType.SOFTMAX_STABLE
    return back(popnn.nonLinearity(call.graph, kind, table, call.prog, call.name))


def log_softmax(call: Call) -> Tensor:
    """Return x - max - log(sum(exp(x - max))) of each sample."""
    table, back = classes_of(call, call[0])
    largest = reduced(call, table, [1], Operation.MAX).expand([1])
    below = call.map(_1 - _2, table, broadcast(largest, table.shape))
    powers = call.map(expr.Exp(_1), below)
    total = reduced(call, powers, [1], Operation.ADD).expand([1])
    return back(call.map(_1 - expr.Log(_2), below, broadcast(total, table.shape)))


# Placed here, as they are reductions over the whole field.
def global_pool(call: Call) -> Tensor:
    """Return the mean or the maximum of each channel."""
    tensor = call[0]
    axes = list(range(2, tensor.rank()))
    if call.node.operator == "GlobalMaxPool":
        out = reduced(call, tensor, axes, Operation.MAX)
    else:
        total = reduced(call, tensor, axes, Operation.ADD)
        count = int(np.prod(tensor.shape[2:]))
        out = call.map(_1 * (1.0 / count), total)
    return out.reshape(call.outputs[0].dims)


def running_sum(call: Call) -> Tensor:
    """Add up the elements of an axis as far as each, or from each on."""
    return running(call, call[0], backward=bool(call.attribute("reverse", 0)))


def running(call: Call, tensor: Tensor, *, backward: bool) -> Tensor:
    """Add up a tensor along the axis of a CumSum; integers of 8 and 16 bits in 32."""
    (axis,) = call.numbers(1) or [0]
    settings = {"exclusive": bool(call.attribute("exclusive", 0)), "reverse": backward}
    wide = call.cast(tensor, wider(tensor.dtype, ("float", "half", "int", "unsigned int")))
    place = call.place_of(axis)
    sums = popops.cumSum(call.graph, wide, place, call.prog, call.name, **settings)
    return call.cast(sums, tensor.dtype)


def hardmax(call: Call) -> Tensor:
    """Return 1 at the first largest element of each sample, else 0."""
    table, back = classes_of(call, call[0])
    maxima = popnn.argMax(call.graph, table, call.prog, call.name)
    hot = call.variable(table.dtype, table.shape, "hardmax")
    popops.encodeOneHot(call.graph, maxima, hot, call.prog, call.name)
    return back(hot)


def by_norm(call: Call) -> Tensor:
    """Divide the elements of an axis by their norm; where that is 0 they stay 0."""
    axis, tensor = call.axis(-1), call[0]
    absolute = call.attribute("p", 2) == 1
    values = call.map(expr.Abs(_1), tensor) if absolute else tensor
    operation = Operation.ADD if absolute else Operation.SQUARE_ADD
    total = reduced(call, values, [axis], operation)
    norm = total if absolute else call.map(expr.Sqrt(_1), total)
    wide = broadcast(norm.expand([axis]), tensor.shape)
    return call.map(expr.Select(_1 / _2, _1 * 0.0, _2 > 0), tensor, wide)


def running_product(call: Call) -> Tensor:
    """Multiply the elements of an axis as far as each, or from each on, in log2(size) steps."""
    place = call.place_of((call.numbers(1) or [0])[0])
    backward = bool(call.attribute("reverse", 0))
    products = call[0].reverse(place) if backward else call[0]
    size = products.shape[place]
    if call.attribute("exclusive", 0):
        ahead = call.padded(products, 1, 0, place, 1)
        products = ahead.slice(0, size, place)
    distance = 1
    while distance < size:
        before = products.slice(0, size - distance, place)
        joined = call.map(_1 * _2, products.slice(distance, size, place), before)
        products = concat([products.slice(0, distance, place), joined], place)
        distance *= 2
    return call.copy(products.reverse(place) if backward else products, "product")
