"""Operators that look up or move rows, each group or sequence by itself."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from simulator.popart.importing.composites.body import Body, Unsupported


def grouped_gather(body: Body) -> None:
    """Take slices of an axis of each group by indices of its own (GroupedGather).

    The rows of all groups are one table, in which the indices of a group begin behind the last.
    """
    dims, index_dims = body.dims(0), body.dims(1)
    groups, axis = int(body.attribute("group_size", 1)), int(body.attribute("axis", 0))
    axis %= len(dims)
    if dims[0] != groups or index_dims[:1] != [groups] or not axis:
        raise Unsupported(f"axis {axis} of {groups} groups of {body.info(0)}, {body.info(1)}")
    size, other_axes = dims[axis], [n for n in range(1, len(dims)) if n != axis]
    inner, picked = [dims[n] for n in other_axes], index_dims[1:]
    rows = body("Transpose", "x0", perm=[0, axis, *other_axes])
    table = body("Reshape", rows, [groups * size, prod(inner)])
    first = (np.arange(groups) * size).reshape(groups, *[1] * len(picked))
    places = body("Add", "x1", first.astype(body.info(1).host))
    slices = body("Gather", table, body("Reshape", places, [-1]), axis=0)
    unflattened = body("Reshape", slices, np.array([groups, *picked, *inner], np.int64))
    before = [1 + len(picked) + n for n in range(axis - 1)]
    behind = [1 + len(picked) + n for n in range(axis - 1, len(inner))]
    order = [0, *before, *range(1, 1 + len(picked)), *behind]
    body("Transpose", unflattened, perm=order, out="y")


def sequences_moved(body: Body) -> None:
    """Copy sequences of rows of one tensor into another, by lengths and offsets (SequenceSlice).

    Every row that is written reads one row; the others are zero, or what they have been.
    """
    rows = body.dims(1)[0]
    if body.dims(0)[1:] != body.dims(1)[1:] or body.info(0).type != body.info(1).type:
        raise Unsupported(f"{body.info(0)} into {body.info(1)}; rows have to be alike")
    length, source, begin = (
        body("Unsqueeze", body("Cast", f"x{place}", to=7), [1]) for place in (2, 3, 4)
    )
    step = body("Sub", np.arange(rows), begin)  # [sequences, rows]
    within = body("And", body("GreaterOrEqual", step, [0]), body("Less", step, length))
    place = body("Where", within, body("Add", step, source), [-1])
    last = body("ReduceMax", place, [0], keepdims=0)
    moved = body("Gather", "x0", body("Max", last, [0]), axis=0)
    shape = np.array([rows, *[1] * (len(body.dims(1)) - 1)], np.int64)
    in_range = body("Reshape", body("GreaterOrEqual", last, [0]), shape)
    fallback = body.constant(body.float(0)) if body.attribute("zeroUnused", 0) else "x1"
    body("Where", in_range, moved, fallback, out="y")


def convolutions(body: Body) -> None:
    """Convolve several inputs, each with weights and perhaps a bias of its own (MultiConv)."""
    count, offsets = len(body.node.outputs), dict.fromkeys(("pads", "strides", "dilations"), 0)
    for name in ("inDilations", "outPads"):
        if any(n != (name == "inDilations") for n in body.attribute(name, ())):
            raise Unsupported(f"{name} {list(body.attribute(name))}; none can be done here")
    for number in range(count):
        data, bias = 3 * number, 3 * number + 2
        spatial = len(body.dims(data)) - 2
        settings: dict[str, Any] = {}
        for name in offsets:
            width = spatial * (2 if name == "pads" else 1)
            values = list(body.attribute(name, ()))[offsets[name] : offsets[name] + width]
            offsets[name] += width
            settings |= {name: values} if values else {}
        for name, noted in (("availableMemoryProportions", "__available_memory"),
                            ("partialsTypes", "__partials_type")):  # fmt: skip
            if body.attribute(name):
                settings[noted] = body.attribute(name)[number]
        inputs = [f"x{place}" for place in range(data, bias + 1) if body.has(place)]
        body("Conv", *inputs, out=f"y{number}" if number else "y", **settings)
