"""Operators that choose elements: how many is known by a bound alone, or by a constant."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx

from simulator.popart.importing.composites.body import Body, Unsupported

NOTHING = -1  # stands in the rows of a bound that nothing was chosen for


def compressed(body: Body) -> None:
    """Keep the elements or slices that a constant condition names (Compress)."""
    condition = body.value(1)
    places = np.flatnonzero([] if condition is None else condition.reshape(-1))
    axis = body.attribute("axis")
    source = body("Reshape", "x0", [-1]) if axis is None else "x0"
    if not places.size:
        raise Unsupported("its condition keeps nothing; an element would be needed")
    body("Gather", source, places, axis=int(axis or 0), out="y")


def non_zero(body: Body) -> None:
    """Write the places of elements that are not 0, one after another (NonZero)."""
    dims = body.dims()
    count = prod(dims)
    if not dims or not count:
        raise Unsupported(f"input {body.node.inputs[0]!r} is {body.info()}; elements are needed")
    places = np.stack(np.unravel_index(np.arange(count), dims), axis=1)
    flat = body("Reshape", "x0", [-1])
    keep = flat if body.info().type == "BOOL" else body("Cast", flat, to=onnx.TensorProto.BOOL)
    rows = _in_front(body, keep, body.constant(places), places.shape, 1)
    body("Transpose", rows, perm=[1, 0], out="y")


def _in_front(body: Body, keep: str, rows: str, shape: tuple[int, ...], axis: int) -> str:
    """Bring the rows to keep in front; the rest is NOTHING, or cut to what the model declares."""
    count, width = shape
    declared = body.declared
    limit = declared[axis] if declared is not None and len(declared) == 2 else None
    limit = count if limit is None else min(limit, count)
    before = body("CumSum", body("Cast", keep, to=onnx.TensorProto.INT64), 0)
    place = body("Where", keep, body("Sub", before, [1]), [count])
    empty = np.full((count + 1, width), NOTHING, np.int64)
    filled = body("ScatterND", empty, body("Unsqueeze", place, [1]), rows)
    return body("Slice", filled, [0], [limit], [0])


def suppressed(body: Body) -> None:
    """Choose boxes by their scores, none that overlaps a chosen one (NonMaxSuppression).

    Each run of a loop takes the best box that is left of each class and drops what it overlaps.
    """
    boxes, classes = body.dims(0)[1], body.dims(1)[1]
    batches, limit = body.dims(0)[0], body.value(2)
    most = min(0 if limit is None else int(limit.reshape(-1)[0]), boxes)
    if most < 1:
        raise Unsupported("max_output_boxes_per_class is 0 or missing; it is the bound of the rows")
    edges = _edges(body)
    least = np.finfo(body.info(1).host).min
    scores = "x1"
    if body.has(4):
        scores = body("Where", body("Greater", "x1", "x4"), "x1", least)
    graph = _taken(body, edges, least, (batches, classes, boxes))
    loop = onnx.helper.make_node(
        "Loop", [body.constant(most), "", scores], ["scores_left", "all_chosen"], body=graph
    )
    body.nodes.append(loop)
    ordered = body("Transpose", "all_chosen", perm=[1, 2, 0])
    selected = body("Reshape", ordered, [-1, 1])
    count = batches * classes * most
    first = np.repeat(np.indices((batches, classes)).reshape(2, -1).T, most, axis=0)
    rows = body("Concat", first, selected, axis=1)
    keep = body("GreaterOrEqual", body("Reshape", ordered, [-1]), [0])
    body("Identity", _in_front(body, keep, rows, (count, 3), 0), out="y")


def _edges(body: Body) -> list[str]:
    """Return the lower and upper edges along both axes and the area, each [batch, 1, boxes]."""
    size = body.dims(0)
    columns = [
        body("Reshape", body("Slice", "x0", [n], [n + 1], [2]), [size[0], 1, size[1]])
        for n in range(4)
    ]
    lower, upper = [], []
    for a, b in ((0, 2), (1, 3)):
        if body.attribute("center_point_box", 0):
            half = body("Mul", columns[b], body.float(0.5))
            lower.append(body("Sub", columns[a], half))
            upper.append(body("Add", columns[a], half))
        else:
            lower.append(body("Min", columns[a], columns[b]))
            upper.append(body("Max", columns[a], columns[b]))
    sides = [body("Sub", up, low) for low, up in zip(lower, upper, strict=True)]
    return [*lower, *upper, body("Mul", *sides)]


def _taken(
    body: Body, edges: list[str], least: float, shape: tuple[int, int, int]
) -> onnx.GraphProto:
    """Return one run: the best box of each class, and the scores that are left."""
    inner = Body(body.node, body.infos, body.known, prefix=f"{body.node.outputs[0]}/run:")
    run, go, scores, on, remaining, chosen_box = map(
        inner.named, ("run", "go", "scores", "on", "left", "chosen")
    )
    host, zero = body.info(1).host, body.float(0)
    best = inner("ArgMax", scores, axis=-1, keepdims=1)
    best = inner("Cast", best, to=onnx.TensorProto.INT64)
    top = inner("ReduceMax", scores, [-1], keepdims=1)
    valid = inner("Greater", top, np.asarray(least, host))
    mine = [
        inner("GatherElements", inner("Expand", edge, list(shape)), best, axis=2) for edge in edges
    ]
    sides = []
    for n in (0, 1):
        far = inner("Min", edges[n + 2], mine[n + 2])
        sides.append(inner("Max", inner("Sub", far, inner("Max", edges[n], mine[n])), zero))
    common = inner("Mul", *sides)
    meets = inner("Greater", common, zero)
    union = inner("Sub", inner("Add", edges[4], mine[4]), common)
    share = inner("Div", common, inner("Where", meets, union, body.float(1)))
    over = inner("Greater", share, "x3" if body.has(3) else zero)
    box = inner("Equal", np.arange(shape[2]).reshape(1, 1, -1), best)
    drops = inner("Or", inner("And", meets, over), box)
    inner("Where", drops, np.asarray(least, host), scores, out=remaining)
    picked = inner("Where", valid, best, NOTHING)
    inner("Squeeze", picked, [-1], out=chosen_box)
    inner("Identity", go, out=on)
    kinds = {run: onnx.TensorProto.INT64, go: onnx.TensorProto.BOOL}
    values = [onnx.helper.make_tensor_value_info(name, kind, []) for name, kind in kinds.items()]
    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(host))
    values.append(onnx.helper.make_tensor_value_info(scores, element, shape))
    outputs = [
        onnx.helper.make_empty_tensor_value_info(name) for name in (on, remaining, chosen_box)
    ]
    return onnx.helper.make_graph(inner.nodes, "body", values, outputs)
