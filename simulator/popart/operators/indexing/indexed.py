"""Operators that address elements by tuples of indices, and those that join what meets there."""

from __future__ import annotations

import numpy as np

from simulator.graph.program import Repeat
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import INT, UNSIGNED_INT, element_count
from simulator.popart.operators.call import Call, wider
from simulator.popart.operators.elements.shapes import element_places
from simulator.popart.representation.ir import Ir, Node
from simulator.poplibs import popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import _1, _2

REDUCTIONS = ("none", "add", "mul", "max", "min")
JOINED = ("half", "float", "int")  # types whose updates are joined


def gathered_nd(call: Call) -> Tensor:
    """Take an element or a slice of the data for each tuple of indices."""
    batch = int(call.attribute("batch_dims", 0))
    rows, places = _rows(call, batch)
    shape = call.outputs[0].dims
    if not element_count(shape):
        return call[0].flatten().slice(0, 0).reshape(shape)
    call.saved = (places,)
    slices = popops.multiSlice(
        call.graph, rows, places.expand([1]), [0], [1], call.prog, debugContext=call.name
    )
    return slices.reshape(shape)


def scattered_nd(call: Call) -> Tensor:
    """Change a copy of the data where tuples of indices point."""
    if not call.info(1).nelms():
        return call[0]
    out = call.copy(call[0], "scattered")
    rows, places = _rows(call, 0, out)
    call.saved = (places,)
    updates = call[2].reshape((places.numElements(), rows.shape[1]))
    join(call, str(call.attribute("reduction", "none")), rows, places, updates)
    return out


def scattered_elements(call: Call) -> Tensor:
    """Change elements of a copy: element i of the updates goes to index i of the axis."""
    if not call.info(1).nelms():
        return call[0]
    out = call.copy(call[0], "scattered")
    flat = element_places(call)
    call.saved = (flat,)
    rows, kind = out.flatten().expand([1]), str(call.attribute("reduction", "none"))
    join(call, kind, rows, flat, call[2].flatten().expand([1]))
    return out


def lacks(node: Node, ir: Ir) -> str:
    """Return how a scatter joins updates with what is there in a way that it cannot."""
    kind = str(node.attributes.get("reduction", "none"))
    if kind not in REDUCTIONS:
        return f"reduction {kind!r}; known are {', '.join(REDUCTIONS)}"
    info = ir.infos[node.inputs[0]]
    if kind != "none" and info.device.name not in JOINED:
        return f"reduction {kind!r} of {info}; FLOAT, FLOAT16 or INT32 would be needed"
    return ""


def _rows(call: Call, batch: int, data: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """View the data as the slices that tuples address [slices, elements]; number those addressed.

    The first `batch` dimensions of data and indices go together.
    """
    data = call[0] if data is None else data
    shape, tuples = data.shape, call.info(1).dims
    depth = tuples[-1]
    picked, inner = shape[batch : batch + depth], shape[batch + depth :]
    count = element_count(shape[: batch + depth])
    strides = [element_count(picked[place + 1 :]) for place in range(depth)]
    tuples_per_batch = element_count(tuples[batch:-1])  # tuples of a batch
    base = np.repeat(np.arange(element_count(shape[:batch])), tuples_per_batch) * element_count(
        picked
    )
    places = call.constant(base.astype(np.int32), INT, "offsets")
    signed = call.cast(call[1], INT).reshape((len(base), depth))
    for axis, (size, stride) in enumerate(zip(picked, strides, strict=True)):
        wrapped = expr.Select(_2 + size, _2, _2 < 0)
        places = call.map(_1 + wrapped * stride, places, signed[:, axis])
    return data.reshape((count, element_count(inner))), call.cast(places, UNSIGNED_INT)


def join(call: Call, kind: str, rows: Tensor, places: Tensor, updates: Tensor) -> None:
    """Join updates [updates, elements] with the rows [rows, elements] that they go to."""
    if kind == "mul":
        _multiply(call, rows, places, updates)
        return
    offsets, slices = places.expand([1]), updates.expand([1])
    where = ([0], [1], call.prog)
    if kind == "none":
        popops.multiUpdate(call.graph, rows, slices, offsets, *where, debugContext=call.name)
    elif kind == "add":
        one = call.constant(1, rows.dtype, "one").reshape([])
        popops.multiUpdateAdd(call.graph, rows, slices, offsets, one, *where,
                              debugContext=call.name)  # fmt: skip
    else:
        _keep_extremes(call, kind, rows, places, updates)


def _keep_extremes(call: Call, kind: str, rows: Tensor, places: Tensor, updates: Tensor) -> None:
    """Keep the larger, or the smaller, of updates and what is there: those of negatives turn."""
    wide = wider(rows.dtype, ("half", "float"))
    sign = 1 if kind == "max" else -1
    extremes = call.copy(call.map(_1 * sign, call.cast(rows, wide)), "extremes")
    changed = call.map(_1 * sign, call.cast(updates, wide)).expand([1])
    popops.multiUpdateMax(
        call.graph,
        extremes,
        changed,
        places.expand([1]),
        [0],
        [1],
        call.prog,
        debugContext=call.name,
    )
    updated = call.cast(call.map(_1 * sign, extremes), rows.dtype)
    popops.mapInPlace(call.graph, _2, [rows, updated], call.prog, f"{call.name}/extremes")


def _multiply(call: Call, rows: Tensor, places: Tensor, updates: Tensor) -> None:
    """Multiply rows by updates, one update after another: several may go to one row."""
    number = call.variable(UNSIGNED_INT, [1], "update")
    popops.zero(call.graph, number, call.prog, f"{call.name}/update")
    body, name = Program(name=f"{call.name}/body"), call.name
    outer, call.prog = call.prog, body
    place = popops.dynamicSlice(call.graph, places.expand([1]), number, [0], [1], body, name)
    update = popops.dynamicSlice(call.graph, updates, number, [0], [1], body, name)
    row = popops.multiSlice(call.graph, rows, place, [0], [1], body, debugContext=name)
    product = call.map(_1 * _2, row.reshape(update.shape), update)
    popops.multiUpdate(
        call.graph, rows, product.expand([1]), place, [0], [1], body, debugContext=name
    )
    one = expr.Const(1, UNSIGNED_INT)
    popops.mapInPlace(call.graph, _1 + one, [number], body, f"{name}/update")
    call.prog = outer
    call.prog.add(Repeat(places.numElements(), body, name=name))


def reversed_sequences(call: Call) -> Tensor:
    """Turn round the first so many steps of each sequence of a batch."""
    time = call.place_of(int(call.attribute("time_axis", 0)))
    batch = call.place_of(int(call.attribute("batch_axis", 1)))
    other_axes = [axis for axis in range(call[0].rank()) if axis not in (time, batch)]
    order = [batch, time, *other_axes]
    data = call[0].dimShuffle(order)
    count, steps = data.shape[:2]
    step = np.tile(np.arange(steps, dtype=np.int32), count)
    lengths = call.cast(call[1], INT).expand([1]).broadcast(steps, 1).flatten()
    steps_index, first = (
        call.constant(values.astype(np.int32), INT, label)
        for values, label in (
            (step, "steps"),
            (np.repeat(np.arange(count) * steps, steps), "first"),
        )
    )
    turned = call.map(expr.Select(_2 - 1 - _1, _1, _1 < _2), steps_index, lengths)
    places = call.cast(call.map(_1 + _2, turned, first), UNSIGNED_INT)
    rows = data.reshape((count * steps, data.numElements() // (count * steps)))
    slices = popops.multiSlice(
        call.graph, rows, places.expand([1]), [0], [1], call.prog, debugContext=call.name
    )
    return slices.reshape(data.shape).dimShuffle(np.argsort(order).tolist())


def written_cache(call: Call) -> Tensor:
    """Write steps into a cache of sequences, each sample's from its own place (TensorScatter)."""
    axis, shape = call.axis(-2), call.info().dims
    steps, size = call.info(1).dims[axis], shape[axis]
    before, inner = element_count(shape[:axis]), element_count(shape[axis + 1 :])
    out = call.copy(call[0], "cache")
    step = np.tile(np.arange(steps, dtype=np.int32), before)
    first = np.repeat(np.arange(before, dtype=np.int32) * size, steps)
    positions = call.constant(step, INT, "steps")
    if call.has(2):
        starts = call.cast(call[2], INT).expand([1]).broadcast(len(step) // shape[0], 1).flatten()
        positions = call.map(_1 + _2, positions, starts)
    if call.attribute("mode", "linear") == "circular":
        positions = call.map(_1 % size, positions)
    places = call.map(_1 + _2, positions, call.constant(first, INT, "first"))
    popops.multiUpdate(
        call.graph,
        out.reshape((before * size, inner)),
        call[1].reshape((before * steps, inner)).expand([1]),
        call.cast(places, UNSIGNED_INT).expand([1]),
        [0],
        [1],
        call.prog,
        debugContext=call.name,
    )
    return out
