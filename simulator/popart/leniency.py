"""What PopART takes and ONNX's inference of shapes does not."""

from __future__ import annotations

import onnx

from simulator.popart.indices import INDICES, TUPLES
from simulator.popart.ir import Ir, Node
from simulator.popart.tensor_info import TensorInfo

PLACES = ("ArgMax", "ArgMin")


def with_places(node: Node, made: dict[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Return what a node makes: the places of extremes are INT32 (PopART, op/argextrema.cpp)."""
    if node.operator not in PLACES:
        return made
    return {name: TensorInfo("INT32", info.dims) for name, info in made.items()}


def types_of(node: Node, ir: Ir) -> dict[str, TensorInfo]:
    """Give type and shape of what a node reads; unsigned places are signed."""
    found = {name: ir.infos[name] for name in node.inputs if name}
    kinds = {info.type for info in found.values()}
    if {"INT32", "INT64"} <= kinds:  # of places, which ONNX has in 64 bits
        places = {name for other in ir.nodes if other.operator in PLACES for name in other.outputs}
        for name in places & set(found):
            found[name] = TensorInfo("INT64", found[name].dims)
    place = {**INDICES, **TUPLES, "OneHot": 0}.get(node.operator)
    if place is not None and found[node.inputs[place]].type == "UINT32":
        name = node.inputs[place]
        found[name] = TensorInfo("INT32", found[name].dims)
    return found


def with_size(proto: onnx.NodeProto, ir: Ir) -> onnx.NodeProto:
    """Give a recurrent node with the size of its state, which its weights tell as well."""
    given = any(attribute.name == "hidden_size" for attribute in proto.attribute)
    if given or proto.op_type not in ("GRU", "LSTM", "RNN") or len(proto.input) < 3:
        return proto
    sized = onnx.NodeProto()
    sized.CopyFrom(proto)
    size = ir.infos[proto.input[2]].dims[-1:]
    sized.attribute.extend(onnx.helper.make_attribute("hidden_size", n) for n in size)
    return sized
