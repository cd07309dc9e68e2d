"""Elements scattered along an axis and joined where they meet: ScatterReduce of ai.graphcore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import HALF, UNSIGNED_INT
from simulator.popart.operators.backward import zeros
from simulator.popart.operators.call import Call
from simulator.popart.operators.elements.pointwise_gradients import Grads
from simulator.popart.operators.indexing.indexed import join
from simulator.popart.representation.ir import Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.poplibs import popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import _1, _2, _3

REDUCTIONS = {"sum": "add", "max": "max", "min": "min", "mul": "mul", "none": "none"}
Shape = tuple[int, ...]


def _axis(node: Node, rank: int) -> int:
    axis = int(node.attributes.get("axis", -1))
    if not -rank <= axis < rank:
        raise ValueError(f"axis = {axis} is outside the acceptable range [{-rank}, {rank - 1}]")
    return axis % rank


def _groups(node: Node) -> int:
    """Count the leading dimensions that go together: one where there are several groups."""
    return int(int(node.attributes.get("group_size", 1)) > 1)


def index_shape(node: Node, source: Shape, indices: Shape) -> Shape:
    """Return the shape of indices with as many dimensions as the source; raises ValueError."""
    rank, groups = len(source), _groups(node)
    axis = _axis(node, rank)
    if len(indices) == rank:
        return indices
    if len(indices) != 1 + groups:
        raise ValueError(
            f"Failed to expand 'indices' shape {list(indices)} to {list(source)} along axis {axis}"
        )
    wide = [1] * rank
    wide[axis] = indices[-1]
    wide[:groups] = indices[:groups]
    return tuple(wide)


def inferred(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Return the output: like the initial values, or like the source but for the axis."""
    source, indices = infos[0], infos[1]
    shape = index_shape(node, source.dims, indices.dims)
    if len(infos) > 2:
        return [infos[2]]
    by_index = not int(node.attributes.get("enable_index_broadcast", 1))
    dims = list(shape if by_index else source.dims)
    dims[_axis(node, len(dims))] = int(node.attributes["axis_size"])
    return [TensorInfo(source.type, dims)]


def lacks(node: Node, ir: Ir) -> str:
    """Return what of a ScatterReduce cannot be done."""
    kind = str(node.attributes.get("reduction", "sum"))
    if kind not in REDUCTIONS:
        return f"reduction {kind!r}; known are {', '.join(REDUCTIONS)}"
    source, indices = (ir.infos[name].dims for name in node.inputs[:2])
    if int(node.attributes.get("axis_size", 0)) < 1:
        return f"axis_size = {node.attributes.get('axis_size', 0)} is not valid: must be > 0"
    try:
        shape = index_shape(node, source, indices)
    except ValueError as error:
        return str(error)
    spread = int(node.attributes.get("enable_index_broadcast", 1)) and shape != source
    wrong = any(size not in (1, extent) for size, extent in zip(shape, source, strict=True))
    if spread and wrong:
        return f"Failed to expand 'indices' shape {list(indices)} to {list(source)}"
    if spread and not _is_vector(node, shape, source):
        return "Partial broadcasting of indices is not currently supported."
    return ""


def _is_vector(node: Node, shape: Shape, source: Shape) -> bool:
    """Return whether indices are a list along the axis, for each group."""
    axis, groups = _axis(node, len(source)), _groups(node)
    fits = shape[:groups] == source[:groups] and shape[axis] == source[axis]
    outside = (size for place, size in enumerate(shape) if place >= groups and place != axis)
    return fits and all(size == 1 for size in outside)


@dataclass(frozen=True, slots=True)
class _Places:
    """Rows of an output that those of the source go to.

    `indices` are [updates]; rows are whole slices where indices are a list, else elements.
    `extent` is the part of the source that is scattered.
    """

    call: Call
    indices: Tensor
    axis: int
    by_slice: bool
    extent: Shape

    @property
    def groups(self) -> int:
        return _groups(self.call.node)

    def _order(self) -> list[int]:
        rank, first = len(self.extent), list(range(self.groups))
        outside = [place for place in range(self.groups, rank) if place != self.axis]
        return [*first, self.axis, *outside]

    def rows(self, out: Tensor) -> Tensor:
        """View an output [rows, elements]; of what is larger than the source only a part."""
        if not self.by_slice:
            return out.flatten().expand([1])
        for place, size in enumerate(self.extent):
            if place != self.axis and out.shape[place] != size:
                out = out.slice(0, size, place)
        turned = out.dimShuffle(self._order())
        count = prod(turned.shape[: 1 + self.groups])
        return turned.reshape((count, turned.numElements() // max(count, 1)))

    def updates(self, source: Tensor) -> Tensor:
        """View the source [updates, elements]."""
        if self.by_slice:
            return self.rows(source)
        part = source.slice([0] * len(self.extent), list(self.extent))
        return part.flatten().expand([1])

    def gathered(self, out: Tensor, name: str) -> Tensor:
        """Return the rows of an output [updates, elements] that the updates went to."""
        call = self.call
        offsets = self.indices.expand([1])
        rows = popops.multiSlice(
            call.graph, self.rows(out), offsets, [0], [1], call.prog, debugContext=name
        )
        return rows.reshape(
            (self.indices.numElements(), rows.numElements() // self.indices.numElements())
        )

    def source_of(self, updates: Tensor, shape: Shape) -> Tensor:
        """Return updates as the source has them; what of it is not scattered is zero."""
        call = self.call
        if not self.by_slice:
            view = updates.reshape(self.extent)
            if self.extent == shape:
                return view
            for axis, (have, need) in enumerate(zip(self.extent, shape, strict=True)):
                view = call.padded(view, 0, need - have, axis)
            return view
        order = self._order()
        turned = updates.reshape([shape[place] for place in order])
        return turned.dimShuffle(np.argsort(order).tolist())


def _places(call: Call) -> _Places:
    """Compute which rows of the output the updates go to."""
    source, out = call.info(0).dims, call.outputs[0].dims
    shape = index_shape(call.node, source, call.info(1).dims)
    axis, groups = _axis(call.node, len(source)), _groups(call.node)
    flat = call.cast(call[1], UNSIGNED_INT).flatten()
    spread = bool(int(call.attribute("enable_index_broadcast", 1)))
    if spread and shape != source:
        if groups:
            base = np.arange(source[0]).repeat(source[axis]) * out[axis]
            offsets = call.constant(base.astype(np.uint32), UNSIGNED_INT, "groups")
            flat = call.map(_1 + _2, flat, offsets)
        return _Places(call, flat, axis, True, source)
    positions = np.indices(shape)
    strides = [prod(out[place + 1 :]) for place in range(len(out))]
    base = sum(
        (positions[place] * stride for place, stride in enumerate(strides) if place != axis),
        start=np.zeros(shape, dtype=np.int64),
    ).reshape(-1)
    offsets = call.constant(base.astype(np.uint32), UNSIGNED_INT, "offsets")
    places = call.map(_1 * strides[axis] + _2, flat, offsets)
    return _Places(call, places, axis, False, shape)


def scattered(call: Call) -> Tensor:
    """Join the elements of the source with the initial values, or with what changes nothing."""
    kind = str(call.attribute("reduction", "sum"))
    places, dtype = _places(call), call[0].dtype
    limit = 0.0
    if call.has(2):
        out = call.copy(call[2], "scattered")
    else:
        out = call.variable(dtype, call.outputs[0].dims, "scattered")
        limit = _nothing(call, kind)
        popops.fill(call.graph, out, call.prog, limit, f"{call.name}/fill")
    join(call, REDUCTIONS[kind], places.rows(out), places.indices, places.updates(call[0]))
    if kind in ("max", "min") and not call.has(2):  # what nothing went to is 0
        empty = expr.Const(limit, dtype)
        popops.mapInPlace(
            call.graph, expr.Select(expr.Const(0, dtype), _1, expr.Equal(_1, empty)), [out],
            call.prog, f"{call.name}/empty",
        )  # fmt: skip
    call.saved = (places,)
    return out


def _nothing(call: Call, kind: str) -> float:
    """Return what an output begins with, so that any update counts alone."""
    numbers = call[0].dtype.numpy
    if kind in ("max", "min"):
        if numbers.kind == "f":
            largest = float(np.finfo(np.float16 if call[0].dtype == HALF else np.float32).max)
            return -largest if kind == "max" else largest
        info = np.iinfo(numbers)
        # What is joined as floats, which hold the least number, and the largest but for 127.
        return info.min if kind == "max" else info.max - 127
    return 1 if kind == "mul" else 0


def of_scattered(call: Call, outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Grads:
    """Return the gradients of the source and of the initial values.

    A sum hands its gradient on; a maximum to all that are equal to it; a product times what it is
    over each factor; where nothing is joined, the initial values that are replaced have none.
    """
    (places,) = call.saved
    kind, out, grad = str(call.attribute("reduction", "sum")), outputs[0], grads[0]
    name = f"{call.name}/ScatterReduceGrad"
    of_updates = places.gathered(grad, name)
    if kind in ("max", "min", "mul"):
        now, updates = places.gathered(out, name), places.updates(call[0])
        of_updates = call.map(_share(kind), of_updates, now, updates)
    initial: Tensor | None = None
    if call.has(2):
        initial = grad
        if kind == "none":
            initial = call.copy(grad, "InitialGrad")
            rows = places.rows(initial)
            nothing = zeros(call, of_updates, "nothing").expand([1])
            popops.multiUpdate(
                call.graph, rows, nothing, places.indices.expand([1]), [0], [1], call.prog,
                debugContext=name,
            )  # fmt: skip
        elif kind != "sum":
            initial = call.map(_share(kind), grad, out, call[2])
    source = places.source_of(of_updates, call.info(0).dims)
    return [source, None, initial][: len(call.inputs)]


def _share(kind: str) -> expr.Expr:
    """Return the gradient _1 of what came out as _2, by its operand _3."""
    if kind == "mul":
        return _1 * _2 / _3
    return expr.Select(_1, _1 * 0.0, expr.Equal(_2, _3))
