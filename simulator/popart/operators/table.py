"""The table of operators: for each its versions, its lowering, and what it needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from simulator.graph.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.ir import GRAPHCORE, ONNX, Ir, Node
from simulator.popart.operators import (
    control,
    drawn,
    elementwise,
    fields,
    grids,
    gru,
    indexed,
    loops,
    losses,
    norms,
    products,
    quantised,
    recurrent,
    reductions,
    resize,
    scans,
    shapes,
    simple_recurrent,
    transposed,
)
from simulator.popart.operators.activations import FUNCTIONS
from simulator.popart.operators.call import Call
from simulator.popart.tensor_info import TensorInfo
from simulator.poplibs.popnn import NonLinearityType
from simulator.poplibs.popops import expr

Lowered = Tensor | Sequence[Tensor]
Back = Callable[[Call, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator at some versions.

    `static` inputs have to be known before the program runs. `layouts` add an input that lies as
    the operator reads it. `back` views a tensor that lies as the output should as the input.
    `lacks` says what of a node cannot be done.
    """

    lower: Callable[[Call], Lowered]
    versions: tuple[int, ...]
    static: tuple[int, ...] = ()
    layouts: Mapping[int, Callable[[Call], Tensor | None]] = field(default_factory=dict)
    back: Back | None = None
    lacks: Callable[[Node, Ir], str] | None = None


def _row(versions: str, lower: Callable[[Call], Lowered], *static: int) -> Operator:
    return Operator(lower, tuple(map(int, versions.split())), static)


def _unknown_activation(node: Node, ir: Ir) -> str:
    """Say which activation of an LSTM is not known."""
    names = [name.lower() for name in node.attributes.get("activations") or ()]
    known = [name.lower() for name in recurrent.ACTIVATIONS]
    wrong = [name for name in names if name not in known]
    return f"activation {wrong[0]!r}; known are {', '.join(recurrent.ACTIVATIONS)}" if wrong else ""


def _whole_numbers(node: Node, ir: Ir) -> str:
    """Say that a logarithm of whole numbers is none."""
    info = ir.infos[node.inputs[0]]
    if info.device.numpy.kind == "f":
        return ""
    return f"input {node.inputs[0]!r} is {info}; a logarithm is of FLOAT or FLOAT16"


def _wide_scale(node: Node, ir: Ir) -> str:
    """Say which parameter of a LayerNormalization differs between rows."""
    axis, info = int(node.attributes.get("axis", -1)), ir.infos[node.inputs[0]]
    if not -len(info.dims) <= axis < len(info.dims):
        return f"axis {axis} of {info}"
    row = info.dims[axis:]
    for name in filter(None, node.inputs[1:3]):
        info = ir.infos[name]
        if any(size != 1 for size in info.dims[: max(len(info.dims) - len(row), 0)]):
            return f"input {name!r} is {info}; at most {list(row)}, for all rows, would be needed"
    return ""


_U = elementwise.unary
_VIEW = "21 23 24 25"  # versions that only added types
_RELU, _TANH = NonLinearityType.RELU, NonLinearityType.TANH
_SIGMOID, _GELU = NonLinearityType.SIGMOID, NonLinearityType.GELU

ELEMENTWISE = {
    "Abs": _row("6 13", elementwise.absolute),
    "Add": _row("6 7 13 14", elementwise.binary("ADD")),
    "And": _row("1 7", elementwise.binary("LOGICAL_AND")),
    "Asin": _row("7 22", _U("ASIN")),
    "Atan": _row("7 22", elementwise.ARC_TANGENT),
    "BitShift": _row("11 28", elementwise.shifted),
    "BitwiseAnd": _row("18", elementwise.binary("BITWISE_AND")),
    "BitwiseNot": _row("18", _U("BITWISE_NOT")),
    "BitwiseOr": _row("18", elementwise.binary("BITWISE_OR")),
    "BitwiseXor": _row("18", elementwise.binary("BITWISE_XOR")),
    "Cast": _row("6 9 13 19 21 23 24 25 28", elementwise.cast),
    "Ceil": _row("1 6 13", _U("CEIL")),
    "Clip": _row("6 11 12 13", elementwise.clip),
    "Cos": _row("7 22", _U("COS")),
    "Cosh": _row("9 22", elementwise.HYPERBOLIC_COSINE),
    "Div": _row("6 7 13 14", elementwise.binary("DIVIDE")),
    "Equal": _row("1 7 11 13 19", elementwise.binary("EQUAL")),
    "Exp": _row("6 13", _U("EXPONENT")),
    "Floor": _row("1 6 13", _U("FLOOR")),
    "Gelu": _row("20", elementwise.gelu),
    "Greater": _row("1 7 9 13", elementwise.binary("GREATER_THAN")),
    "IsInf": _row("10 20", elementwise.is_inf),
    "IsNaN": _row("9 13 20", _U("IS_NAN")),
    "Less": _row("7 9 13", elementwise.binary("LESS_THAN")),
    "Log": _row("6 13", _U("LOGARITHM")),
    "Max": _row("6 8 12 13", elementwise.several("MAXIMUM")),
    "Mean": _row("6 8 13", elementwise.mean),
    "Min": _row("6 8 12 13", elementwise.several("MINIMUM")),
    "Mod": _row("10 13 28", elementwise.modulo),
    "Mul": _row("6 7 13 14", elementwise.binary("MULTIPLY")),
    "Neg": _row("6 13", _U("NEGATE")),
    "Not": _row("1", _U("LOGICAL_NOT")),
    "OneHot": _row("9 11 28", elementwise.one_hot, 1),
    "Or": _row("1 7", elementwise.binary("LOGICAL_OR")),
    "Pow": _row("1 7 12 13 15", elementwise.power),
    "Round": _row("11 22", _U("NEARBY_INT")),
    "Reciprocal": _row("6 13", _U("INVERSE")),
    "Relu": _row("6 13 14", elementwise.non_linearity(_RELU)),
    "Shrink": _row("9", elementwise.shrink),
    "Sigmoid": _row("6 13", elementwise.non_linearity(_SIGMOID)),
    "Sign": _row("9 13", _U("SIGNUM")),
    "Sin": _row("7 22", _U("SIN")),
    "Sinh": _row("9 22", elementwise.HYPERBOLIC_SINE),
    "Sqrt": _row("6 13", _U("SQRT")),
    "Sub": _row("6 7 13 14", elementwise.binary("SUBTRACT")),
    "Sum": _row("6 8 13", elementwise.several("ADD")),
    "Tan": _row("7 22", _U("TAN")),
    "Tanh": _row("6 13", elementwise.non_linearity(_TANH)),
    "Trilu": _row("14", elementwise.triangle, 1),
    "Where": _row("9 16", elementwise.where),
    "Xor": _row("1 7", elementwise.binary("NOT_EQUAL")),
    **{name: _row(function.versions, function.lower) for name, function in FUNCTIONS.items()},
}
_REDUCED = {
    "ReduceL1": "1 11 13 18",
    "ReduceL2": "1 11 13 18",
    "ReduceLogSum": "1 11 13 18 28",
    "ReduceLogSumExp": "1 11 13 18 28",
    "ReduceMax": "1 11 12 13 18 20",
    "ReduceMean": "1 11 13 18",
    "ReduceMin": "1 11 12 13 18 20",
    "ReduceProd": "1 11 13 18",
    "ReduceSum": "1 11 13",
    "ReduceSumSquare": "1 11 13 18",
}
_REDUCTIONS = (
    {name: _row(v, reductions.reduction, 1) for name, v in _REDUCED.items()}
    | {
        name: replace(_row(_REDUCED[name], reductions.reduction, 1), lacks=_whole_numbers)
        for name in ("ReduceLogSum", "ReduceLogSumExp")
    }
    | {
        "ArgMax": _row("1 11 12 13", reductions.arg_extreme),
        "ArgMin": _row("1 11 12 13", reductions.arg_extreme),
        "GlobalAveragePool": _row("1 22", reductions.global_pool),
        "GlobalMaxPool": _row("1 22", reductions.global_pool),
        "Hardmax": _row("1 11 13", reductions.hardmax),
        "LogSoftmax": _row("1 11 13", reductions.log_softmax),
        "LpNormalization": _row("1 22", reductions.by_norm),
        "Softmax": _row("1 11 13", reductions.softmax),
        "TopK": _row("1 10 11 24", reductions.top_k, 1),
    }
)


def _view(versions: str, *static: int) -> Operator:
    return replace(_row(versions, shapes.reshaped, *static), back=shapes.reshaped_back)


_BLOCKED = replace(_row("1 11 13", shapes.blocked), back=shapes.blocked_back)
_SHAPES = {
    "BitCast": replace(_row("26", elementwise.same_bits), lacks=elementwise.other_width),
    "Concat": _row("1 4 11 13", shapes.joined),
    "CumProd": _row("26", reductions.running_product, 1),
    "CumSum": _row("11 14", reductions.running_sum, 1),
    "DepthToSpace": _BLOCKED,
    "Expand": _row("8 13", shapes.expanded, 1),
    "Flatten": _view(f"1 9 11 13 {_VIEW}"),
    "Gather": replace(_row("1 11 13", shapes.gathered), layouts={0: shapes.gather_input}),
    "GatherElements": _row("11 13", shapes.gathered_elements),
    "GatherND": _row("11 12 13", indexed.gathered_nd),
    "Identity": replace(_row(f"1 13 14 16 19 {_VIEW}", shapes.same), back=shapes.reshaped_back),
    "Pad": _row(f"2 11 13 18 19 {_VIEW}", shapes.padded, 1, 3),
    "Reshape": _view(f"5 13 14 19 {_VIEW}", 1),
    "QuantizeLinear": _row("10 13 19 21 23 24 25 28", quantised.quantised),
    "Resize": replace(_row("10 11 13 18 19", resize.resized, 1, 2, 3), lacks=resize.lacks),
    "ReverseSequence": _row("10 28", indexed.reversed_sequences),
    "Scatter": _row("9 11", indexed.scattered_elements),
    "ScatterElements": replace(
        _row("11 13 16 18", indexed.scattered_elements), lacks=indexed.lacks
    ),
    "TensorScatter": _row("24", indexed.written_cache),
    "ScatterND": replace(_row("11 13 16 18", indexed.scattered_nd), lacks=indexed.lacks),
    "Slice": _row("1 10 11 13", shapes.sliced, 1, 2, 3, 4),
    "SpaceToDepth": replace(_BLOCKED, versions=(1, 13)),
    "Split": _row("2 11 13 18", shapes.split, 1),
    "Squeeze": _view(f"1 11 13 {_VIEW}", 1),
    "Tile": _row("1 6 13", shapes.tiled, 1, 2),
    "Transpose": replace(_row(f"1 13 {_VIEW}", shapes.transposed), back=shapes.transposed_back),
    "Upsample": replace(_row("7 9", resize.resized, 1), lacks=resize.lacks),
    "Unsqueeze": _view(f"1 11 13 {_VIEW}", 1),
}
_PARAMETERS = {place: norms.norm_parameter(place) for place in (1, 2, 3, 4)}
_LAYERS = {
    "AveragePool": _row("1 7 10 11 19 22", fields.average_pool),
    "BatchNormalization": replace(_row("6 7 9 14 15", norms.batch_norm), layouts=_PARAMETERS),
    "ConvInteger": _row("10", quantised.whole_convolution),
    "Conv": replace(
        _row("1 11 22", fields.convolution),
        layouts={0: fields.conv_input, 1: fields.conv_weights},
    ),
    "ConvTranspose": replace(
        _row("1 11 22", transposed.convolution), layouts={1: transposed.weights}
    ),
    "Dropout": _row("6 7 10 12 13 22", norms.dropout, 1, 2),
    "Gemm": replace(
        _row("6 7 9 11 13", products.gemm),
        layouts={0: products.gemm_input(0), 1: products.gemm_input(1)},
    ),
    "DequantizeLinear": _row("10 13 19 21 23 24 25 28", quantised.dequantised),
    "GRU": replace(_row("7 14 22", gru.onnx_gru), lacks=gru.lacks),
    "GridSample": _row("16 20 22", grids.sampled),
    "GroupNormalization": _row("18 21", norms.group_norm),
    "If": _row(f"1 11 13 16 19 {_VIEW}", control.conditional),
    "InstanceNormalization": _row("6 22", norms.instance_norm),
    "LRN": _row("1 13", fields.local_response),
    "LSTM": replace(_row("1 7 14 22", recurrent.onnx_lstm), lacks=_unknown_activation),
    "LayerNormalization": replace(_row("17", norms.layer_norm), lacks=_wide_scale),
    "Loop": replace(_row(f"1 11 13 16 19 {_VIEW}", loops.loop), lacks=loops.lacks),
    "LpPool": _row("2 11 18 22", fields.lp_pool),
    "MatMulInteger": _row("10", quantised.whole_product),
    "MatMul": replace(
        _row("1 9 13", products.mat_mul),
        layouts={0: products.mat_mul_input(0), 1: products.mat_mul_input(1)},
    ),
    "MaxPool": _row("1 8 10 11 12 22", fields.max_pool),
    "QLinearConv": _row("10", quantised.quantised_convolution),
    "QLinearMatMul": _row("10 21", quantised.quantised_product),
    "Scan": replace(_row(f"9 11 16 19 {_VIEW}", scans.scan), lacks=scans.lacks),
    "RandomNormal": _row("1 22", drawn.normal),
    "RandomNormalLike": _row("1 22", drawn.normal),
    "RandomUniform": _row("1 22", drawn.uniform),
    "RandomUniformLike": _row("1 22", drawn.uniform),
    "RNN": replace(_row("7 14 22", simple_recurrent.onnx_rnn), lacks=simple_recurrent.lacks),
}
_GRAPHCORE = {
    "Atan2": _row("1", elementwise.binary("ATAN2")),
    "BitwiseAnd": _row("1", elementwise.binary("BITWISE_AND")),
    "BitwiseNot": _row("1", _U("BITWISE_NOT")),
    "BitwiseOr": _row("1", elementwise.binary("BITWISE_OR")),
    "BitwiseXnor": _row("1", elementwise.binary("BITWISE_XNOR")),
    "BitwiseXor": _row("1", elementwise.binary("BITWISE_XOR")),
    "ConvFlipWeights": _row("1", fields.flipped_weights),
    "Detach": replace(_row("1", shapes.same), back=shapes.reshaped_back),
    "Expm1": _row("1", _U("EXPONENT_MINUS_ONE")),
    "Fmod": _row("1", elementwise.binary("REMAINDER")),
    "Gelu": _row("1", elementwise.non_linearity(_GELU)),
    "GroupNormalization": _row("1", norms.group_norm),
    "IdentityLoss": replace(_row("1", losses.identity), lacks=losses.lacks),
    "L1": replace(_row("1", losses.absolute), lacks=losses.lacks),
    "LSTM": _row("1", recurrent.graphcore_lstm),
    "Log1p": _row("1", _U("LOGARITHM_ONE_PLUS")),
    "Nll": replace(_row("1", losses.likelihood), lacks=losses.lacks),
    "Nop": replace(_row("1", shapes.same), back=shapes.reshaped_back),
    "PrintTensor": _row("1", control.printed),
    "Remainder": _row("1", elementwise.modulo),
    "Reshape": replace(_row("1", shapes.reshaped), back=shapes.reshaped_back),
    "Round": _row("1", _U("NEARBY_INT")),
    "Scale": _row("1", elementwise.scaled),
    "Square": _row("1", elementwise.expression(expr.Square)),
    "Subsample": _row("1", shapes.subsampled),
}

OPERATORS: dict[tuple[str, str], Operator] = {
    **{
        (ONNX, name): operator
        for table in (ELEMENTWISE, _REDUCTIONS, _SHAPES, _LAYERS)
        for name, operator in table.items()
    },
    **{(GRAPHCORE, name): operator for name, operator in _GRAPHCORE.items()},
}


def unsupported(node: Node, ir: Ir) -> str:
    """Say why a node cannot be lowered and what would be needed; "" when it can."""
    operator = OPERATORS.get(node.key)
    if operator is None:
        return "the operator has no lowering; one to PopLibs would be needed"
    if node.version not in operator.versions:
        known = ", ".join(map(str, operator.versions))
        return f"version {node.version} has no lowering; versions {known} have"
    for place in operator.static:
        name = node.inputs[place] if place < len(node.inputs) else ""
        if name and ir.known(name) is None:
            return (
                f"input {place} ({name!r}) is computed or fed when the program runs; "
                "a constant would be needed"
            )
    return operator.lacks(node, ir) if operator.lacks is not None else ""


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
    """Give the shape that a Reshape names: 0 keeps a size, -1 is what is left."""
    sizes = [infos[0].dims[place] if size == 0 else int(size)
             for place, size in enumerate(node.attributes["shape"])]  # fmt: skip
    known = prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and known:
        sizes[sizes.index(-1)] = infos[0].nelms() // known
    if prod(sizes) != infos[0].nelms():
        raise ValueError(f"shape {list(node.attributes['shape'])}")
    return [TensorInfo(infos[0].type, sizes)]


_TWO = ("Atan2", "BitwiseAnd", "BitwiseOr", "BitwiseXnor", "BitwiseXor", "Fmod", "Remainder")
_INFERRED = {
    **dict.fromkeys(_TWO, _broadcast),
    "ConvFlipWeights": _flipped,
    "GroupNormalization": _group_norm,
    "IdentityLoss": losses.inferred,
    "L1": losses.inferred,
    "LSTM": _lstm,
    "Nll": losses.inferred,
    "Reshape": _reshaped,
    "Subsample": _subsampled,
}


def infer_graphcore(node: Node, infos: Sequence[TensorInfo | None], what: str) -> list[TensorInfo]:
    """Give the outputs of a node of ai.graphcore; raises popart_exception."""
    given = [info for info in infos if info is not None]
    try:
        return _INFERRED.get(node.operator, _like_input)(node, given)[: len(node.outputs)]
    except (KeyError, ValueError, IndexError, ZeroDivisionError) as error:
        shown = ", ".join(map(str, given))
        raise popart_exception(f"{what}: inputs {shown} do not fit ({error})") from None
