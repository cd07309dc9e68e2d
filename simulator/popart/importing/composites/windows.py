"""Operators that put windows together or take them where coordinates say."""

from __future__ import annotations

from math import prod

import numpy as np

from simulator.graph.types import Array
from simulator.popart.importing.composites.body import Body, Unsupported


def _per_axis(body: Body, name: str, count: int, default: int) -> list[int]:
    return [int(n) for n in body.attribute(name) or [default] * count]


def images_of_columns(body: Body) -> None:
    """Add the blocks of columns up where they stand in the image (Col2Im)."""
    image, block = body.value(1), body.value(2)
    if image is None or block is None:
        raise Unsupported("image_shape and block_shape are needed")
    sizes, kernel = [int(n) for n in image], [int(n) for n in block]
    rank = len(sizes)
    strides, dilations = (_per_axis(body, name, rank, 1) for name in ("strides", "dilations"))
    pads = _per_axis(body, "pads", 2 * rank, 0)
    batch, width, _ = body.dims()
    taps = np.indices(kernel).reshape(rank, -1)
    places: Array = np.zeros(prod(kernel), np.int64)
    inside: Array = np.ones(prod(kernel), bool)
    for n in range(rank):
        reach = dilations[n] * (kernel[n] - 1) + 1
        steps = (sizes[n] + pads[n] + pads[n + rank] - reach) // strides[n] + 1
        first = taps[n].reshape(-1, *[1] * (n + 1)) * dilations[n] - pads[n]
        at = first + np.arange(steps) * strides[n]
        places = places[..., None] * sizes[n] + at
        inside = inside[..., None] & (at >= 0) & (at < sizes[n])
    where = np.where(inside, places, prod(sizes)).reshape(-1, 1)
    rows = batch * width // prod(kernel)
    flat = body("Transpose", body("Reshape", "x0", [rows, -1]), perm=[1, 0])
    empty = np.zeros((prod(sizes) + 1, rows), body.info().host)
    added = body("ScatterND", empty, where, flat, reduction="add")
    pixels = body("Slice", added, [0], [prod(sizes)], [0])
    block_shape = [batch, width // prod(kernel), *sizes]
    body("Reshape", body("Transpose", pixels, perm=[1, 0]), block_shape, out="y")


def unpooled(body: Body) -> None:
    """Put elements back where MaxPool found them (MaxUnpool)."""
    dims, kernel = body.dims(), _per_axis(body, "kernel_shape", 0, 1)
    rank = len(kernel)
    strides, pads = _per_axis(body, "strides", rank, 1), _per_axis(body, "pads", 2 * rank, 0)
    spatial = [
        (size - 1) * strides[n] - pads[n] - pads[n + rank] + kernel[n]
        for n, size in enumerate(dims[2:])
    ]
    minimal, operand = [*dims[:2], *spatial], body.value(2)
    output_dims = minimal if operand is None else [int(n) for n in operand]
    if any(a < b for a, b in zip(output_dims, minimal, strict=True)):
        raise Unsupported(f"output_shape is {output_dims}; at least {minimal} would be needed")
    places = body("Reshape", "x1", [-1])
    empty = np.zeros(prod(minimal), body.info().host)
    full = body("ScatterElements", empty, places, body("Reshape", "x0", [-1]))
    padding = [b - a for a, b in zip(minimal, output_dims, strict=True)]
    shaped = body("Reshape", full, minimal)
    body("Pad", shaped, [0] * len(minimal) + padding, out="y")


def aligned_regions(body: Body) -> None:
    """Sample regions of images bilinearly and pool the samples of each bin (RoiAlign).

    The weights of a sample are those along one axis times those along the other.
    """
    height, width = body.dims()[2:]
    ratio = int(body.attribute("sampling_ratio", 0))
    if ratio < 1:
        raise Unsupported(
            "sampling_ratio 0 takes as many samples as a region is large; "
            "a positive one would be needed"
        )
    half = 0.5
    if body.attribute("coordinate_transformation_mode", "half_pixel") != "half_pixel":
        half = 0.0
    if body.node.version < 16:
        half = 0.0
    scale = body.float(body.attribute("spatial_scale", 1.0))
    corners = body("Sub", body("Mul", "x1", scale), body.float(half))
    sides = [
        _bins(body, corners, n, (int(body.attribute(name, 1)), ratio, size), limited=not half)
        for n, name, size in ((1, "output_height", height), (0, "output_width", width))
    ]
    images = body("Gather", "x0", "x2", axis=0)
    if body.attribute("mode", "avg") == "avg":
        rows, columns = (body("Add", *pair) for pair in sides)
        sampled = _weighed(body, images, rows, columns)
    else:  # as ONNX has it: of the four elements around a sample, each with its weight
        both = [(a, b) for a in sides[0] for b in sides[1]]
        sampled = body("Max", *(_weighed(body, images, a, b) for a, b in both))
    outs = [int(body.attribute(name, 1)) for name in ("output_height", "output_width")]
    shape = [body.dims(1)[0], body.dims()[1], outs[0], ratio, outs[1], ratio]
    pool = "ReduceMean" if body.attribute("mode", "avg") == "avg" else "ReduceMax"
    body(pool, body("Reshape", sampled, shape), [3, 5], keepdims=0, out="y")


def _weighed(body: Body, images: str, rows: str, columns: str) -> str:
    """Multiply images by weights of rows [regions, samples, height] and of columns."""
    row_weighted = body("MatMul", body("Unsqueeze", rows, [1]), images)
    turned = body("Transpose", columns, perm=[0, 2, 1])
    return body("MatMul", row_weighted, body("Unsqueeze", turned, [1]))


def _bins(
    body: Body, corners: str, axis: int, sizes: tuple[int, int, int], *, limited: bool
) -> list[str]:
    """Return the weights of the lower and the upper neighbour of each sample along an axis."""
    bins, ratio, size = sizes
    start, end = (body("Slice", corners, [n], [n + 1], [1]) for n in (axis, axis + 2))
    extent = body("Sub", end, start)
    extent = body("Max", extent, body.float(1)) if limited else extent
    steps = body.float((np.arange(bins * ratio) + 0.5) / (bins * ratio))
    at = body("Add", start, body("Mul", extent, steps))
    outside = body("Or", body("Less", at, body.float(-1)), body("Greater", at, body.float(size)))
    at = body("Clip", at, body.float(0), body.float(size - 1))
    low = body("Floor", at)
    high = body("Min", body("Add", low, body.float(1)), body.float(size - 1))
    part = body("Sub", at, low)
    remainder = body("Sub", body.float(1), part)
    every = body.float(np.arange(size).reshape(1, 1, -1))
    weights = []
    for place, weight in ((low, remainder), (high, part)):
        masked = body("Where", outside, body.float(0), weight)
        equal = body("Equal", body("Unsqueeze", place, [2]), every)
        weights.append(body("Where", equal, body("Unsqueeze", masked, [2]), body.float(0)))
    return weights


def deformed(body: Body) -> None:
    """Convolve what is sampled where offsets say (DeformConv)."""
    if len(body.dims()) != 4:
        raise Unsupported(f"input {body.node.inputs[0]!r} is {body.info()}; images are known")
    batch, channels, *size = body.dims()
    outputs, inner, *kernel = body.dims(1)
    after = body.dims(2)[2:]
    groups, moved = (int(body.attribute(name, 1)) for name in ("group", "offset_group"))
    taps, pixels = prod(kernel), prod(after)
    grid = _grid(body, (size, kernel, after), batch * moved)
    shape = [batch * moved, channels // moved, *size]
    images = body("Reshape", "x0", shape)
    sampled = body("GridSample", images, grid, mode="bilinear", align_corners=int(min(size) > 1))
    if body.has(4):
        sampled = body("Mul", sampled, body("Reshape", "x4", [batch * moved, 1, taps, pixels]))
    columns = body("Reshape", sampled, [batch, groups, inner * taps, pixels])
    weights = body("Reshape", "x1", [groups, outputs // groups, inner * taps])
    product = body("Reshape", body("MatMul", weights, columns), [batch, outputs, *after])
    bias = body("Reshape", "x3", [1, outputs, 1, 1]) if body.has(3) else body.float(0)
    body("Add", product, bias, out="y")


def _grid(body: Body, sizes: tuple[list[int], list[int], list[int]], count: int) -> str:
    """Return where each tap samples, x before y, from -1 to 1: centres of the outermost elements.

    Where an axis has one element alone, these are the edges of the image.
    """
    size, kernel, after = sizes
    strides, dilations = (_per_axis(body, name, 2, 1) for name in ("strides", "dilations"))
    pads = _per_axis(body, "pads", 4, 0)
    taps = np.indices(kernel).reshape(2, -1, 1)
    pixels = np.indices(after).reshape(2, 1, -1)
    shape = [count, prod(kernel), 2, prod(after)]
    offsets = body("Reshape", "x2", shape)
    coordinates = []
    for n in (1, 0):
        base: Array = pixels[n] * strides[n] - pads[n] + taps[n] * dilations[n]
        own_offsets = body("Gather", offsets, np.int64(n), axis=2)
        edge, extent = (0.0, size[n] - 1) if min(size) > 1 else (0.5, size[n])
        at = body("Add", own_offsets, body.float(base + edge))
        relative = body("Sub", body("Mul", at, body.float(2 / extent)), body.float(1))
        coordinates.append(body("Unsqueeze", relative, [-1]))
    return body("Concat", *coordinates, axis=-1)


def cropped(body: Body) -> None:
    """Resize a region of a tensor, which may lie beyond it (Resize, tf_crop_and_resize)."""
    dims, mode = body.dims(), body.attribute("mode", "nearest")
    if mode not in ("linear", "nearest"):
        raise Unsupported(f"mode {mode!r} of a region; known are linear, nearest")
    region, scales, sizes = (body.value(n) for n in (1, 2, 3))
    axes = [int(n) % len(dims) for n in body.attribute("axes") or range(len(dims))]
    if region is None or region.size != 2 * len(axes):
        raise Unsupported("a region of interest of both ends of each axis would be needed")
    ends = region.astype(np.float64).reshape(2, -1)
    out, inside = "x0", np.ones([1] * len(dims), bool)
    for n, axis in enumerate(axes):
        before = dims[axis]
        if sizes is not None and sizes.size:
            after = int(sizes[n])
        else:
            extent = float(ends[1, n] - ends[0, n])
            after = int(before * extent * float(np.asarray(scales).reshape(-1)[n]))
        steps = np.arange(after) / (after - 1) if after > 1 else np.full(1, 0.5)
        at = (ends[0, n] + steps * (ends[1, n] - ends[0, n])) * (before - 1)
        good = (at >= 0) & (at <= before - 1)
        inside = inside & good.reshape([-1 if a == axis else 1 for a in range(len(dims))])
        if after == before and np.array_equal(at, np.arange(before)):
            continue
        order = [a for a in range(len(dims)) if a != axis] + [axis]
        weights = body.float(_neighbours(at, before, mode == "linear"))
        product = body("MatMul", body("Transpose", out, perm=order), weights)
        out = body("Transpose", product, perm=np.argsort(order).tolist())
    beyond = body.float(body.attribute("extrapolation_value", 0.0))
    body("Where", inside, out, beyond, out="y")


def _neighbours(at: Array, before: int, linear: bool) -> Array:
    """Return what each element before is worth to each place."""
    where = np.clip(at, 0, before - 1)
    where = where if linear else np.ceil(where - 0.5)
    far: Array = np.abs(np.arange(before)[:, None] - where)
    return np.asarray(np.maximum(1 - far, 0))
