"""Sequences that are packed in rows, one behind another: a graph computes a few at a time.

PopART's PackedDataBlock: each input is rows with the offsets and lengths of its sequences. A few
of them are laid side by side, filled up with zeros to the longest that there may be; what the graph
makes of them goes back into rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from simulator.popart.importing.composites.body import Unsupported
from simulator.popart.representation.ir import GRAPHCORE, Ir


class Packed(NamedTuple):
    """Sequences in rows: where each begins, how long it is, and how long one may be."""

    rows: str
    offsets: str
    lengths: str
    longest: int = 0


def packed_nodes(ir: Ir, proto: onnx.NodeProto, name: str) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that a block is computed by; each has to be added before the next.

    Raises Unsupported for what does not fit together.
    """
    inputs, count, size = _checked(ir, proto)
    attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
    target = ""
    for first in range(0, count, size):
        label = f"{name}/{first}"
        arguments = [f"{label}/x{place}" for place in range(len(inputs))]
        for argument, packed in zip(arguments, inputs, strict=True):
            yield from _side_by_side(ir, packed, first, size, argument)
        result = f"{label}/y"
        yield helper.make_node(
            "Call", arguments, [result], domain=GRAPHCORE, callee=attributes["callback"],
            num_outputs=1,
        )  # fmt: skip
        info = ir.infos.get(result)
        if info is None:
            return  # what is wrong with the graph is noted already
        if len(info.dims) < 2 or info.dims[0] != size:
            raise Unsupported(f"the callback makes {info}; [{size}, rows, ...] is needed")
        if not target:
            target = f"{name}/zeros"
            shape = (int(attributes["resultSize"]), *info.dims[2:])
            yield _constant(target, np.zeros(shape, info.host))
        for place in range(size):
            sequence, last = f"{label}/{place}", first + place == count - 1
            packed = Packed(f"{sequence}/rows", proto.input[-2], proto.input[-1])
            yield _constant(f"{sequence}/place", np.int64(place))
            yield helper.make_node("Gather", [result, f"{sequence}/place"], [packed.rows])
            after = proto.output[0] if last else f"{sequence}/result"
            yield from _moved_back(packed, first + place, target, after, sequence)
            target = after


def _checked(ir: Ir, proto: onnx.NodeProto) -> tuple[list[Packed], int, int]:
    """Return the inputs of a block, how many sequences there are, and how many go at a time."""
    attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
    longest = list(attributes["maxSequenceLengths"])
    if len(proto.input) != 3 * len(longest) + 2 or not longest:
        raise Unsupported(
            f"{len(proto.input)} inputs and {len(longest)} maxSequenceLengths; rows, offsets and "
            "lengths for each of these are needed, and offsets and lengths of the result"
        )
    rows, offsets, lengths = (proto.input[place:-2:3] for place in range(3))
    inputs = [Packed(*row) for row in zip(rows, offsets, lengths, longest, strict=True)]
    counts = {ir.infos[name].nelms() for row in inputs for name in row[1:3]}
    counts |= {ir.infos[name].nelms() for name in proto.input[-2:]}
    size = int(attributes["callbackBatchSize"])
    if len(counts) > 1 or size < 1 or min(counts) % size:
        raise Unsupported(
            f"{' and '.join(map(str, sorted(counts)))} sequences, {size} at a time; "
            "as many for all, and whole groups of them, are needed"
        )
    return inputs, counts.pop(), size


def _side_by_side(
    ir: Ir, packed: Packed, first: int, size: int, out: str
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that lay some sequences side by side: [sequence, row, ...]."""
    info = ir.infos[packed.rows]
    shape = [size, packed.longest, *info.dims[1:]]
    yield _constant(f"{out}/numbers", np.arange(first, first + size))
    for part in ("offsets", "lengths"):
        names = [getattr(packed, part), f"{out}/numbers"]
        yield helper.make_node("Gather", names, [f"{out}/{part}"])
    yield _constant(f"{out}/empty", np.zeros((size * packed.longest, *info.dims[1:]), info.host))
    yield _constant(f"{out}/begins", np.arange(size, dtype=np.int32) * packed.longest)
    operands = [packed.rows, *(f"{out}/{n}" for n in ("empty", "lengths", "offsets", "begins"))]
    yield helper.make_node(
        "SequenceSlice", operands, [f"{out}/rows"], domain=GRAPHCORE, zeroUnused=1
    )
    yield _constant(f"{out}/shape", np.array(shape, np.int64))
    yield helper.make_node("Reshape", [f"{out}/rows", f"{out}/shape"], [out])


def _moved_back(
    packed: Packed, number: int, target: str, out: str, label: str
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that copy the first rows of one sequence into those of the result."""
    yield _constant(f"{label}/number", np.array([number]))
    yield _constant(f"{label}/begin", np.zeros(1, np.int32))
    for part in ("offsets", "lengths"):
        names = [getattr(packed, part), f"{label}/number"]
        yield helper.make_node("Gather", names, [f"{label}/{part}"])
    operands = [packed.rows, target, *(f"{label}/{n}" for n in ("lengths", "begin", "offsets"))]
    yield helper.make_node("SequenceSlice", operands, [out], domain=GRAPHCORE, zeroUnused=0)


def _constant(name: str, values: object) -> onnx.NodeProto:
    proto = numpy_helper.from_array(np.asarray(values))
    return helper.make_node("Constant", [], [name], value=proto)
