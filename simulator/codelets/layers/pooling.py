"""Pooling vertices: a box of the field for some groups of channels, computed in rows of channels.

Fields, by vertex [group][sample][field...][channel]: `in` and `out`; the gradient of a maximum has
the forward pass's input beside `out` (`fwdActsIn`) and its output beside `in` (`fwdActsOut`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from simulator.codelets.layers import pooling_cycles
from simulator.codelets.vertex_type import (
    POPNN_CYCLES,
    POPNN_ESTIMATES,
    VertexTypes,
    supervisor,
    worker,
)
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

TYPES = VertexTypes(
    (
        supervisor(
            "popnn::MaxPooling<type>",
            "in out startPos offsetBase workList",
            pooling_cycles.max_pooling,
            POPNN_ESTIMATES,
            (44, 400),
        ),
        supervisor(
            "popnn::SumPooling<type>",
            "in out startPos offsetBase workList",
            pooling_cycles.sum_pooling,
            POPNN_ESTIMATES,
            (48, 400),
        ),
        supervisor(
            "popnn::MaxPoolingGrad<type>",
            "in out startPos offsetBase workList fwdActsIn fwdActsOut",
            pooling_cycles.max_pooling_gradient,
            POPNN_ESTIMATES,
            (52, 400),
        ),
        supervisor(
            "popnn::MaxPoolingGradientScale<type>",
            "in out startPos offsetBase workList fwdActsOut",
            pooling_cycles.max_pooling,
            POPNN_ESTIMATES,
            (48, 400),
        ),
        worker(
            "popnn::SelectiveScaling<type>",
            "inOut scaleWorklist",
            pooling_cycles.selective_scaling,
            POPNN_CYCLES,
            (20, 150),
        ),
    )
)

Pair = tuple[IntArray, IntArray]  # rows of outputs and of their inputs, at one kernel position
NOWHERE = -1  # in a table of inputs: the output has none there


def lowest(dtype: Type) -> float:
    """Return what a maximum starts from: halves have no infinity on the device."""
    return -float(np.finfo(np.float16).max) if dtype.size == 2 else -np.inf


def coordinates(sizes: IntArray) -> tuple[IntArray, list[IntArray]]:
    """List the places of boxes [box][dimension], row by row: the box of each, and where it is."""
    counts = sizes.prod(axis=1)
    box = np.repeat(np.arange(len(sizes)), counts)
    offset = spread(np.zeros(len(sizes), dtype=np.int64), counts)
    at: list[IntArray] = []
    for dimension in reversed(range(sizes.shape[1])):
        size = sizes[box, dimension]
        at.append(offset % size)
        offset = offset // size
    return box, at[::-1]


def _pairs(operands: Operands, inputs: list[IntArray]) -> list[Pair]:
    """Pair outputs with inputs, by position of the kernel; `inputs` are tables by dimension."""
    if "pairs" not in operands.prepared:
        operands.prepared["pairs"] = list(_made_pairs(operands.group, inputs))
    pairs: list[Pair] = operands.prepared["pairs"]
    return pairs


def _made_pairs(group: VertexGroup, inputs: list[IntArray]) -> Iterator[Pair]:
    outer, size, begin = (group.parameters[f"{n}Out"] for n in ("outer", "size", "begin"))
    in_size, in_begin = group.parameters["sizeIn"], group.parameters["beginIn"]
    box, at = coordinates(np.concatenate([outer, size], axis=1))
    base = offsets_of(outer.prod(axis=1) * in_size.prod(axis=1))[box]
    places = [begin[box, d] + place for d, place in enumerate(at[2:])]
    for position in np.ndindex(*(len(table) for table in inputs)):
        row = at[0] * outer[box, 1] + at[1]
        covered = np.ones(len(box), dtype=bool)
        for d, (table, k) in enumerate(zip(inputs, position, strict=True)):
            coordinate = table[k][places[d]]
            covered &= coordinate != NOWHERE
            row = row * in_size[box, d] + coordinate - in_begin[box, d]
        output = np.flatnonzero(covered)
        yield output, (base + row)[output]


def _rows(operands: Operands, name: str) -> Array:
    channels = int(operands.group.parameters["channels"][0])
    return operands.arrays[name].reshape(-1, channels)


def _filled(operands: Operands, fill: float, dtype: type) -> Array:
    channels = int(operands.group.parameters["channels"][0])
    rows = int(operands.counts["out"].sum()) // channels
    result: Array = np.full((rows, channels), fill, dtype)
    return result


def _operations(group: VertexGroup) -> IntArray:
    return group.parameters["operations"]


def max_pooling(dtype: Type, inputs: list[IntArray]) -> Codelet:
    """Return the vertex of the largest input of each output."""

    def compute(operands: Operands) -> dict[str, Array]:
        values = _rows(operands, "in")
        out = _filled(operands, lowest(dtype), dtype.numpy.type)
        for output, source in _pairs(operands, inputs):
            out[output] = np.maximum(out[output], values[source])
        return {"out": out.reshape(-1)}

    return _codelet("MaxPooling", dtype, compute)


def sum_pooling(dtype: Type, inputs: list[IntArray]) -> Codelet:
    """Return the vertex of the sum of the inputs of each output, times `scale`."""

    def compute(operands: Operands) -> dict[str, Array]:
        values = _rows(operands, "in").astype(np.float32)
        out = _filled(operands, 0, np.float32)
        for output, source in _pairs(operands, inputs):
            out[output] += values[source]
        scale = np.repeat(operands.group.parameters["scale"], operands.counts["out"])
        return {"out": (out.reshape(-1) * scale).astype(dtype.numpy)}

    return _codelet("SumPooling", dtype, compute)


def max_pooling_gradient(dtype: Type, inputs: list[IntArray]) -> Codelet:
    """Return the vertex that adds to each input of a maximum the gradients of equal outputs."""

    def compute(operands: Operands) -> dict[str, Array]:
        gradient = _rows(operands, "in").astype(np.float32)
        before, after = _rows(operands, "fwdActsIn"), _rows(operands, "fwdActsOut")
        out = _filled(operands, 0, np.float32)
        for output, source in _pairs(operands, inputs):
            out[output] += np.where(before[output] == after[source], gradient[source], 0)
        return {"out": out.reshape(-1).astype(dtype.numpy)}

    return _codelet("MaxPoolingGrad", dtype, compute)


def max_pooling_scale(dtype: Type, inputs: list[IntArray]) -> Codelet:
    """Return the vertex of one over the number of inputs that are equal to their maximum."""

    def compute(operands: Operands) -> dict[str, Array]:
        values, largest = _rows(operands, "in"), _rows(operands, "fwdActsOut")
        count = _filled(operands, 0, np.float32)
        for output, source in _pairs(operands, inputs):
            count[output] += values[source] == largest[output]
        out = np.where(count > 0, 1 / np.maximum(count, 1), 0)
        return {"out": out.reshape(-1).astype(dtype.numpy)}

    return _codelet("MaxPoolingGradientScale", dtype, compute)


def selective_scaling(dtype: Type, used: IntArray) -> Codelet:
    """Return the vertex that divides each output by how many inputs it is the sum of."""

    def compute(operands: Operands) -> dict[str, Array]:
        if "divisor" not in operands.prepared:
            operands.prepared["divisor"] = _divisor(operands.group, used)
        values = _rows(operands, "inOut") / operands.prepared["divisor"][:, None]
        return {"inOut": values.reshape(-1).astype(dtype.numpy)}

    name = f"popnn::SelectiveScaling<{dtype}>"
    return TYPES.codelet(name, compute, _operations)


def _divisor(group: VertexGroup, used: IntArray) -> Array:
    """Return the number of inputs of each row of channels; 1 for none."""
    outer, size, begin = (group.parameters[f"{n}Out"] for n in ("outer", "size", "begin"))
    box, at = coordinates(np.concatenate([outer, size], axis=1))
    places = tuple(begin[box, d] + place for d, place in enumerate(at[2:]))
    divisor: Array = np.maximum(used[places], 1).astype(np.float32)
    return divisor


def _codelet(name: str, dtype: Type, compute: Callable[[Operands], dict[str, Array]]) -> Codelet:
    return TYPES.codelet(f"popnn::{name}<{dtype}>", compute, _operations)
