"""The builder's methods of ai.graphcore, which ONNX has no schema of: attributes in PopART's order.

Names and order: popart `python/popart/popart_core/popart.cpp`.
"""

from __future__ import annotations

from typing import NamedTuple

ANY = 1 << 30  # inputs, where there is no limit


class Row(NamedTuple):
    """A method: `name:kind` of each attribute, how many outputs it has, how many inputs it takes.

    Kinds are i (a whole number), f (a number), s (a text), g (a graph), and I, F, S, lists of them.
    """

    attributes: str = ""
    outputs: int = 1
    least: int = 1
    most: int = ANY


_ONE, _TWO = Row(most=1), Row(least=2, most=2)
GRAPHCORE_SIGNATURES: dict[str, Row] = {
    "Abort": Row(outputs=0, least=0, most=1),
    "Atan2": _TWO,
    "BatchNormalization": Row("num_outputs:i epsilon:f momentum:f", least=5, most=5),
    "BitwiseAnd": _TWO,
    "BitwiseNot": _ONE,
    "BitwiseOr": _TWO,
    "BitwiseXnor": _TWO,
    "BitwiseXor": _TWO,
    "Bucketize": Row("right:i", least=2, most=2),
    "Call": Row("num_outputs:i callee:g", least=0),
    "ConvFlipWeights": Row("group:i", most=1),
    "CopyVarUpdate": _TWO,
    "Ctc": Row("reduction:s blank:i outDataType:s zeroInfinity:i", least=4, most=4),
    "CtcBeamSearchDecoder": Row("blank:i beam_width:i top_paths:i", 3, 2, 2),
    "DepthToSpace": Row("blocksize:i mode:s", most=1),
    "Detach": _ONE,
    "DynamicAdd": Row("axes:I sizes:I", least=3, most=3),
    "DynamicSlice": Row("axes:I sizes:I noOverlap:i", least=2, most=3),
    "DynamicUpdate": Row("axes:I sizes:I noOverlap:i", least=3, most=3),
    "DynamicZero": Row("axes:I sizes:I", least=2, most=2),
    "Expm1": _ONE,
    "Fmod": _TWO,
    "Gelu": _ONE,
    "GeluErf": _ONE,
    "GroupNormalization": Row("num_groups:i epsilon:f", 3, 3, 3),
    "GroupedGather": Row("axis:i group_size:i", least=2, most=2),
    "GroupedScatterReduce": Row(
        "axis_size:i axis:i reduction:s group_size:i enable_index_broadcast:i", least=2, most=3
    ),
    "IdentityLoss": Row("reduction:s", most=1),
    "IncrementMod": Row("increment:f modulus:f", most=1),
    "Init": Row("shape:I data_type:i init_type:i batch_axis:i", least=0, most=0),
    "L1": Row("lambda:f reduction:s", most=1),
    "LSTM": Row("output_full_sequence:i", 2, 3),
    "Log1p": _ONE,
    "MultiConv": Row(
        "dilations:I inDilations:I pads:I outPads:I strides:I availableMemoryProportions:F "
        "partialsTypes:S planType:s perConvReservedTiles:i cycleBackOff:f enableConvDithering:I"
    ),
    "NearbyInt": _ONE,
    "Nll": Row("reduction:s ignoreIndex:i inputIsLogProbability:i", least=2, most=2),
    "Nop": _ONE,
    "NormalizeImage": Row("scale:f", least=3, most=3),
    "PackedDataBlock": Row(
        "maxSequenceLengths:I resultSize:i callbackBatchSize:i callback:g", least=5
    ),
    "PrintTensor": Row("print_gradient:i title:s", most=1),
    "ReduceMedian": Row("axes:I keepdims:i", 2, most=1),
    "Remainder": _TWO,
    "ReplicatedAllReduce": Row("__collectiveCommGroup:I", most=1),
    "Reshape": Row("shape:I", most=1),
    "Reverse": Row("dimensions:I", most=1),
    "Round": _ONE,
    "Scale": Row("scale:f", most=1),
    "ScaledAdd": Row("scale0:f scale1:f", least=2, most=4),
    "SequenceSlice": Row("zeroUnused:i", least=5, most=5),
    "ShapedDropout": Row("shape:I ratio:f", most=1),
    "Slice": Row("ends:I starts:I axes:I", most=1),
    "ScatterReduce": Row(
        "axis_size:i axis:i reduction:s enable_index_broadcast:i", least=2, most=3
    ),
    "Sort": Row("axis:i descending:i stable:i", 2, most=1),
    "Square": _ONE,
    "Subsample": Row("strides:I", most=1),
    "Swish": _ONE,
    "TensorRemap": Row("remap_type:i", most=1),
}  # fmt: skip
