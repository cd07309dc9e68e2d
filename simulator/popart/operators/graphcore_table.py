"""The operators of ai.graphcore: their lowerings, and the shapes of what they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from simulator.popart.errors import popart_exception
from simulator.popart.operators import collectives
from simulator.popart.operators.control_flow import control
from simulator.popart.operators.elements import dynamic, elementwise, graphcore, shapes
from simulator.popart.operators.images import fields
from simulator.popart.operators.indexing import scatter_reduce
from simulator.popart.operators.layers import ctc, losses, norms
from simulator.popart.operators.recurrence import recurrent
from simulator.popart.operators.row import Operator, row
from simulator.popart.representation.ir import Node
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.poplibs.popnn import NonLinearityType
from simulator.poplibs.popops import expr

_U = elementwise.unary
_GELU = NonLinearityType.GELU
_SCATTER_REDUCE = replace(row("1", scatter_reduce.scattered), lacks=scatter_reduce.lacks)
GRAPHCORE_OPERATORS: dict[str, Operator] = {
    "Abort": row("1", control.aborted),
    "Atan2": row("1", elementwise.binary("ATAN2")),
    "BatchNormalization": row("1", norms.batch_norm),
    "BitwiseAnd": row("1", elementwise.binary("BITWISE_AND")),
    "BitwiseNot": row("1", _U("BITWISE_NOT")),
    "BitwiseOr": row("1", elementwise.binary("BITWISE_OR")),
    "BitwiseXnor": row("1", elementwise.binary("BITWISE_XNOR")),
    "BitwiseXor": row("1", elementwise.binary("BITWISE_XOR")),
    "ConvFlipWeights": row("1", fields.flipped_weights),
    "Detach": replace(row("1", shapes.same), back=shapes.reshaped_back),
    "Expm1": row("1", _U("EXPONENT_MINUS_ONE")),
    "Fmod": row("1", elementwise.binary("REMAINDER")),
    "Gelu": row("1", elementwise.non_linearity(_GELU)),
    "GroupNormalization": row("1", norms.group_norm),
    "IdentityLoss": replace(row("1", losses.identity), lacks=losses.lacks),
    "L1": replace(row("1", losses.absolute), lacks=losses.lacks),
    "LSTM": row("1", recurrent.graphcore_lstm),
    "Log1p": row("1", _U("LOGARITHM_ONE_PLUS")),
    "Nll": replace(row("1", losses.likelihood), lacks=losses.lacks),
    "Nop": replace(row("1", shapes.same), back=shapes.reshaped_back),
    "PrintTensor": row("1", control.printed),
    "Remainder": row("1", elementwise.modulo),
    "ReplicatedAllReduce": row("1", collectives.all_reduced),
    "Reshape": replace(row("1", shapes.reshaped), back=shapes.reshaped_back),
    "Round": row("1", _U("NEARBY_INT")),
    "Scale": row("1", elementwise.scaled),
    "Square": row("1", elementwise.expression(expr.Square)),
    "Subsample": row("1", shapes.subsampled),
    "Bucketize": row("1", graphcore.bucketized),
    "CopyVarUpdate": replace(row("1", graphcore.overwritten), lacks=graphcore.no_weight),
    "Ctc": replace(row("1", ctc.loss), lacks=ctc.lacks),
    "CtcBeamSearchDecoder": replace(row("1", ctc.decoded), lacks=ctc.decoder_lacks),
    "DepthToSpace": replace(row("1", shapes.blocked), back=shapes.blocked_back),
    "DynamicAdd": row("1", dynamic.dynamic_add),
    "DynamicSlice": replace(row("1", dynamic.dynamic_slice), layouts={0: dynamic.sliceable}),
    "DynamicUpdate": row("1", dynamic.dynamic_update),
    "DynamicZero": row("1", dynamic.dynamic_zero),
    "GeluErf": row("1", elementwise.gelu),
    "IncrementMod": row("1", graphcore.incremented),
    "Init": row("1", dynamic.init),
    "NearbyInt": row("1", _U("NEARBY_INT")),
    "NormalizeImage": replace(
        row("1", graphcore.normalised_image), layouts={0: graphcore.image_input}
    ),
    "Reverse": replace(row("1", graphcore.reversed_axes), back=graphcore.reversed_back),
    "ScaledAdd": row("1", graphcore.scaled_sum),
    "ShapedDropout": replace(row("1", graphcore.dropped), lacks=graphcore.wrong_ratio),
    "GroupedScatterReduce": _SCATTER_REDUCE,
    "ScatterReduce": _SCATTER_REDUCE,
    "Slice": row("1", shapes.sliced),
    "Swish": row("1", graphcore.SWISH.lower),
    "TensorRemap": row("1", graphcore.remapped),
}


# Shapes of what ONNX has no schema for
def _like_input(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    return [infos[0]]


def _flipped(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    groups = int(node.attributes.get("group", 1))
    outputs, inputs, *kernel = infos[0].dims
    return [TensorInfo(infos[0].type, [inputs * groups, outputs // groups, *kernel])]


def _group_norm(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    count = int(node.attributes["num_groups"]) * infos[0].dims[0]
    return [infos[0], *[TensorInfo("FLOAT", [count])] * 2]


def _batch_norm(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    statistics = [*infos[3:5], *infos[3:5]]  # running ones, and those of the batch
    return [infos[0], *statistics[: len(node.outputs) - 1]]


def _nothing(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    return []


def _lstm(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    steps, batch, _ = infos[0].dims
    size, kind = infos[1].dims[-1], infos[0].type
    full = node.attributes.get("output_full_sequence", 1)
    last = TensorInfo(kind, [batch, size])
    return [TensorInfo(kind, [steps, batch, size]) if full else last, last]


def _subsampled(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    strides = node.attributes["strides"]
    sizes = [-(-n // step) for n, step in zip(infos[0].dims, strides, strict=True)]
    return [TensorInfo(infos[0].type, sizes)]


def _broadcast(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    return [TensorInfo(infos[0].type, np.broadcast_shapes(*(info.dims for info in infos)))]


def _reshaped(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Return the shape that a Reshape names: 0 keeps a size, -1 is what is left."""
    sizes = [infos[0].dims[place] if size == 0 else int(size)
             for place, size in enumerate(node.attributes["shape"])]  # fmt: skip
    known_product = prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and known_product:
        sizes[sizes.index(-1)] = infos[0].nelms() // known_product
    if prod(sizes) != infos[0].nelms():
        raise ValueError(f"shape {list(node.attributes['shape'])}")
    return [TensorInfo(infos[0].type, sizes)]


_TWO = ("Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXnor", "BitwiseXor", "Fmod", "Remainder")


def _buckets(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    if len(infos[1].dims) != 1 or not infos[1].nelms():
        raise ValueError("boundaries are a list")
    return [TensorInfo("INT32", infos[0].dims)]


def _blocks(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    size, (batch, channels, height, width) = int(node.attributes["blocksize"]), infos[0].dims
    if channels % size**2:
        raise ValueError(f"blocksize {size}")
    return [TensorInfo(infos[0].type, [batch, channels // size**2, height * size, width * size])]


def _image(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    kind = "FLOAT16" if infos[0].type == "UINT8" else infos[0].type
    return [TensorInfo(kind, [*infos[0].dims[:-1], 4])]


def _cut(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    starts, ends = node.attributes["starts"], node.attributes["ends"]
    dims = list(infos[0].dims)
    axes = node.attributes.get("axes") or range(len(starts))
    for axis, start, end in zip(axes, starts, ends, strict=True):
        dims[axis] = len(range(dims[axis])[start:end])
    return [TensorInfo(infos[0].type, dims)]


def _second(node: Node, infos: Sequence[TensorInfo]) -> list[TensorInfo]:
    if infos[0] != infos[1]:
        raise ValueError("both have to be alike")
    return [infos[1]]


_INFERRED = {
    **dict.fromkeys(_TWO, _broadcast),
    "Abort": _nothing,
    "Bucketize": _buckets,
    "ConvFlipWeights": _flipped,
    "CopyVarUpdate": _second,
    "Ctc": ctc.inferred,
    "CtcBeamSearchDecoder": ctc.decoder_inferred,
    "DepthToSpace": _blocks,
    "DynamicSlice": dynamic.inferred_slice,
    "BatchNormalization": _batch_norm,
    "GroupNormalization": _group_norm,
    "GroupedScatterReduce": scatter_reduce.inferred,
    "IdentityLoss": losses.inferred,
    "Init": dynamic.inferred_init,
    "L1": losses.inferred,
    "LSTM": _lstm,
    "Nll": losses.inferred,
    "NormalizeImage": _image,
    "Reshape": _reshaped,
    "ScatterReduce": scatter_reduce.inferred,
    "Slice": _cut,
    "Subsample": _subsampled,
}


def infer_graphcore(
    node: Node, infos: Sequence[TensorInfo | None], subject: str
) -> list[TensorInfo]:
    """Return the outputs of a node of ai.graphcore; raises popart_exception."""
    known_infos = [info for info in infos if info is not None]
    try:
        return _INFERRED.get(node.operator, _like_input)(node, known_infos)[: len(node.outputs)]
    except (KeyError, ValueError, IndexError, ZeroDivisionError) as error:
        shown = ", ".join(map(str, known_infos))
        raise popart_exception(f"{subject}: inputs {shown} do not fit ({error})") from None
