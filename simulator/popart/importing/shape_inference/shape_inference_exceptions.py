"""What PopART takes and ONNX's inference of shapes does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from simulator.popart.indices import INDICES, TUPLES
from simulator.popart.representation.ir import Ir, Node
from simulator.popart.representation.tensor_info import TensorInfo

PLACES = ("ArgMax", "ArgMin")
SIZES = ("Expand", "OneHot", "Tile")  # whose second inputs are sizes, which may be of less bits
# Operators of any type, of which older operator sets of ONNX have some types alone.
OF_ANY_TYPE = (
    "Add",
    "CumSum",
    "Div",
    "Equal",
    "Greater",
    "Less",
    "Max",
    "Min",
    "Mul",
    "Sub",
    "TopK",
)
STANDING_IN = ("FLOAT", "INT32", "INT64", "BOOL")


def with_places(node: Node, infos: dict[str, TensorInfo], ir: Ir) -> dict[str, TensorInfo]:
    """Return what a node makes: the places of extremes are INT32 (PopART, op/argextrema.cpp).

    The statistics of a BatchNormalization, whose shapes older operator sets leave open, are like
    those that it reads: running mean and variance, then those of the batch.
    """
    if node.operator == "BatchNormalization" and len(node.inputs) > 4:
        like = (ir.infos[node.inputs[place]] for place in (3, 4, 3, 4))
        return {n: info for n, info in zip(node.outputs[1:5], like, strict=False) if n} | infos
    if node.operator not in PLACES:
        return infos
    return {name: TensorInfo("INT32", info.dims) for name, info in infos.items()}


def common_type(infos: Mapping[str, TensorInfo]) -> str:
    """Return the type of operands: that of all, or of halves and floats that of the larger one.

    Of a half and a float one has to be a single number (popart, `willow/src/op/elementwise.cpp`);
    "" where they do not go together.
    """
    kinds = {info.type for info in infos.values()}
    if len(kinds) == 1:
        return kinds.pop()
    large = {info.type for info in infos.values() if info.nelms() != 1}
    if kinds == {"FLOAT", "FLOAT16"} and len(large) < 2:
        return large.pop() if large else "FLOAT16"
    return ""


def stand_ins(node: Node, infos: dict[str, TensorInfo]) -> Iterator[tuple[str, str]]:
    """Return pairs of a type that inputs have, and of one that may stand in for it."""
    if node.operator in OF_ANY_TYPE:
        operands = infos
        if node.operator in ("CumSum", "TopK"):
            operands = {node.inputs[0]: infos[node.inputs[0]]}
        kind = common_type(operands)
        yield from ((kind, stand_in) for stand_in in STANDING_IN if kind)


def standing_in(infos: dict[str, TensorInfo], node: Node, stand_in: str) -> dict[str, TensorInfo]:
    """Return what a node reads as if its operands were of another type."""
    first = node.inputs[:1] if node.operator in ("CumSum", "TopK") else node.inputs
    return {
        name: TensorInfo(stand_in, info.dims) if name in first else info
        for name, info in infos.items()
    }


def types_of(node: Node, ir: Ir) -> dict[str, TensorInfo]:
    """Return type and shape of what a node reads; unsigned places are signed."""
    infos = {name: ir.infos[name] for name in node.inputs if name}
    kinds = {info.type for info in infos.values()}
    if {"INT32", "INT64"} <= kinds:  # of places, which ONNX has in 64 bits
        places = {
            name for reader in ir.nodes if reader.operator in PLACES for name in reader.outputs
        }
        for name in places & set(infos):
            infos[name] = TensorInfo("INT64", infos[name].dims)
    if node.operator in SIZES and len(node.inputs) > 1:
        name = node.inputs[1]
        if infos[name].host.kind in "iu":
            infos[name] = TensorInfo("INT64", infos[name].dims)
    if node.operator in ("Resize", "Upsample"):
        for name in node.inputs[1:]:
            info = infos.get(name)
            if info is not None and info.type == "FLOAT16":
                infos[name] = TensorInfo("FLOAT", info.dims)
            elif info is not None and info.type == "INT32":
                infos[name] = TensorInfo("INT64", info.dims)
    if node.operator == "BatchNormalization" and node.version < 14:
        kind = infos[node.inputs[0]].type  # statistics may be wider, as in newer versions
        infos |= {name: TensorInfo(kind, infos[name].dims) for name in node.inputs[1:]}
    place = {**INDICES, **TUPLES, "OneHot": 0}.get(node.operator)
    if place is not None and infos[node.inputs[place]].type == "UINT32":
        name = node.inputs[place]
        infos[name] = TensorInfo("INT32", infos[name].dims)
    return infos


def as_inferred(proto: onnx.NodeProto, ir: Ir) -> onnx.NodeProto:
    """Return a node as ONNX's inference takes it, where PopART takes it otherwise."""
    if proto.op_type == "Resize":
        return _resize(proto, ir)
    return _with_size(proto, ir)


def _resize(proto: onnx.NodeProto, ir: Ir) -> onnx.NodeProto:
    """Return a Resize whose missing scales are empty, and without the rounding of newer versions.

    An empty region of interest stands in for the scales.
    """
    adapted = onnx.NodeProto()
    adapted.CopyFrom(proto)
    region, scales = (proto.input[place] if len(proto.input) > 3 else "" for place in (1, 2))
    if region and not scales and not ir.infos[region].nelms():
        adapted.input[2] = region
    if len(proto.input) == 2:  # of version 10, for which PopART has the attribute as well
        attributes = [one for one in proto.attribute if one.name != "nearest_mode"]
        del adapted.attribute[:]
        adapted.attribute.extend(attributes)
    return adapted


def _with_size(proto: onnx.NodeProto, ir: Ir) -> onnx.NodeProto:
    """Return a recurrent node with the size of its state, which its weights tell as well."""
    has_size = any(attribute.name == "hidden_size" for attribute in proto.attribute)
    if has_size or proto.op_type not in ("GRU", "LSTM", "RNN") or len(proto.input) < 3:
        return proto
    sized = onnx.NodeProto()
    sized.CopyFrom(proto)
    size = ir.infos[proto.input[2]].dims[-1:]
    sized.attribute.extend(onnx.helper.make_attribute("hidden_size", n) for n in size)
    return sized
