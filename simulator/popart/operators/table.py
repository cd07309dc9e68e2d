"""The table of operators: for each its versions, its lowering, and what it needs to know."""

from __future__ import annotations

from dataclasses import replace

from simulator.popart.operators.control_flow import control, loops, scans
from simulator.popart.operators.elements import drawn, elementwise, reductions, shapes
from simulator.popart.operators.elements.activations import FUNCTIONS
from simulator.popart.operators.graphcore_table import GRAPHCORE_OPERATORS
from simulator.popart.operators.images import fields, grids, resize, transposed
from simulator.popart.operators.indexing import indexed
from simulator.popart.operators.layers import norms, products, quantised
from simulator.popart.operators.recurrence import gru, recurrent, simple_recurrent
from simulator.popart.operators.row import Operator, row
from simulator.popart.representation.ir import GRAPHCORE, ONNX, Ir, Node
from simulator.poplibs.popnn import NonLinearityType


def _unknown_activation(node: Node, ir: Ir) -> str:
    """Return which activation of an LSTM is not known."""
    names = [name.lower() for name in node.attributes.get("activations") or ()]
    activations = [name.lower() for name in recurrent.ACTIVATIONS]
    wrong = [name for name in names if name not in activations]
    return (
        f"activation {wrong[0]!r} is not supported; known are {', '.join(recurrent.ACTIVATIONS)}"
        if wrong
        else ""
    )


def _whole_numbers(node: Node, ir: Ir) -> str:
    """Return the refusal of a logarithm of whole numbers."""
    info = ir.infos[node.inputs[0]]
    if info.device.numpy.kind == "f":
        return reductions.wrong_axes(node, ir)
    return f"input {node.inputs[0]!r} is {info}; a logarithm is of FLOAT or FLOAT16"


def _wide_scale(node: Node, ir: Ir) -> str:
    """Return which parameter of a LayerNormalization differs between rows."""
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
    "Abs": row("6 13", elementwise.absolute),
    "Add": row("6 7 13 14", elementwise.binary("ADD")),
    "And": row("1 7", elementwise.binary("LOGICAL_AND")),
    "Asin": row("7 22", _U("ASIN")),
    "Atan": row("7 22", elementwise.ARC_TANGENT),
    "BitShift": row("11 28", elementwise.shifted),
    "BitwiseAnd": row("18", elementwise.binary("BITWISE_AND")),
    "BitwiseNot": row("18", _U("BITWISE_NOT")),
    "BitwiseOr": row("18", elementwise.binary("BITWISE_OR")),
    "BitwiseXor": row("18", elementwise.binary("BITWISE_XOR")),
    "Cast": row("6 9 13 19 21 23 24 25 28", elementwise.cast),
    "Ceil": row("1 6 13", _U("CEIL")),
    "Clip": row("6 11 12 13", elementwise.clip),
    "Cos": row("7 22", _U("COS")),
    "Cosh": row("9 22", elementwise.HYPERBOLIC_COSINE),
    "Div": row("6 7 13 14", elementwise.binary("DIVIDE")),
    "Equal": row("1 7 11 13 19", elementwise.binary("EQUAL")),
    "Exp": row("6 13", _U("EXPONENT")),
    "Floor": row("1 6 13", _U("FLOOR")),
    "Gelu": row("20", elementwise.gelu),
    "Greater": row("1 7 9 13", elementwise.binary("GREATER_THAN")),
    "IsInf": row("10 20", elementwise.is_inf),
    "IsNaN": row("9 13 20", _U("IS_NAN")),
    "Less": row("7 9 13", elementwise.binary("LESS_THAN")),
    "Log": row("6 13", _U("LOGARITHM")),
    "Max": row("6 8 12 13", elementwise.several("MAXIMUM")),
    "Mean": row("6 8 13", elementwise.mean),
    "Min": row("6 8 12 13", elementwise.several("MINIMUM")),
    "Mod": row("10 13 28", elementwise.modulo),
    "Mul": row("6 7 13 14", elementwise.binary("MULTIPLY")),
    "Neg": row("6 13", _U("NEGATE")),
    "Not": row("1", _U("LOGICAL_NOT")),
    "OneHot": row("9 11 28", elementwise.one_hot, 1),
    "Or": row("1 7", elementwise.binary("LOGICAL_OR")),
    "Pow": row("1 7 12 13 15", elementwise.power),
    "Round": row("11 22", _U("NEARBY_INT")),
    "Reciprocal": row("6 13", _U("INVERSE")),
    "Relu": row("6 13 14", elementwise.non_linearity(_RELU)),
    "Shrink": row("9", elementwise.shrink),
    "Sigmoid": row("6 13", elementwise.non_linearity(_SIGMOID)),
    "Sign": row("9 13", _U("SIGNUM")),
    "Sin": row("7 22", _U("SIN")),
    "Sinh": row("9 22", elementwise.HYPERBOLIC_SINE),
    "Sqrt": row("6 13", _U("SQRT")),
    "Sub": row("6 7 13 14", elementwise.binary("SUBTRACT")),
    "Sum": row("6 8 13", elementwise.several("ADD")),
    "Tan": row("7 22", _U("TAN")),
    "Tanh": row("6 13", elementwise.non_linearity(_TANH)),
    "Trilu": row("14", elementwise.triangle, 1),
    "Where": row("9 16", elementwise.where),
    "Xor": row("1 7", elementwise.binary("NOT_EQUAL")),
    **{name: row(function.versions, function.lower) for name, function in FUNCTIONS.items()},
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
    {
        name: replace(row(v, reductions.reduction, 1), lacks=reductions.wrong_axes)
        for name, v in _REDUCED.items()
    }
    | {
        name: replace(row(_REDUCED[name], reductions.reduction, 1), lacks=_whole_numbers)
        for name in ("ReduceLogSum", "ReduceLogSumExp")
    }
    | {
        "ArgMax": row("1 11 12 13", reductions.arg_extreme),
        "ArgMin": row("1 11 12 13", reductions.arg_extreme),
        "GlobalAveragePool": row("1 22", reductions.global_pool),
        "GlobalMaxPool": row("1 22", reductions.global_pool),
        "Hardmax": row("1 11 13", reductions.hardmax),
        "LogSoftmax": row("1 11 13", reductions.log_softmax),
        "LpNormalization": row("1 22", reductions.by_norm),
        "Softmax": row("1 11 13", reductions.softmax),
        "TopK": row("1 10 11 24", reductions.top_k, 1),
    }
)


def _view(versions: str, *static: int) -> Operator:
    return replace(row(versions, shapes.reshaped, *static), back=shapes.reshaped_back)


_BLOCKED = replace(row("1 11 13", shapes.blocked), back=shapes.blocked_back)
_SHAPES = {
    "BitCast": replace(row("26", elementwise.same_bits), lacks=elementwise.other_width),
    "Concat": row("1 4 11 13", shapes.joined),
    "CumProd": row("26", reductions.running_product, 1),
    "CumSum": row("11 14", reductions.running_sum, 1),
    "DepthToSpace": _BLOCKED,
    "Expand": row("8 13", shapes.expanded, 1),
    "Flatten": _view(f"1 9 11 13 {_VIEW}"),
    "Gather": replace(row("1 11 13", shapes.gathered), layouts={0: shapes.gather_input}),
    "GatherElements": row("11 13", shapes.gathered_elements),
    "GatherND": row("11 12 13", indexed.gathered_nd),
    "Identity": replace(row(f"1 13 14 16 19 {_VIEW}", shapes.same), back=shapes.reshaped_back),
    "Pad": row(f"2 11 13 18 19 {_VIEW}", shapes.padded, 1, 3),
    "Reshape": _view(f"5 13 14 19 {_VIEW}", 1),
    "QuantizeLinear": row("10 13 19 21 23 24 25 28", quantised.quantised),
    "Resize": replace(row("10 11 13 18 19", resize.resized, 1, 2, 3), lacks=resize.lacks),
    "ReverseSequence": row("10 28", indexed.reversed_sequences),
    "Scatter": row("9 11", indexed.scattered_elements),
    "ScatterElements": replace(row("11 13 16 18", indexed.scattered_elements), lacks=indexed.lacks),
    "TensorScatter": row("24", indexed.written_cache),
    "ScatterND": replace(row("11 13 16 18", indexed.scattered_nd), lacks=indexed.lacks),
    "Slice": row("1 10 11 13", shapes.sliced, 1, 2, 3, 4),
    "SpaceToDepth": replace(_BLOCKED, versions=(1, 13)),
    "Split": row("2 11 13 18", shapes.split, 1),
    "Squeeze": _view(f"1 11 13 {_VIEW}", 1),
    "Tile": row("1 6 13", shapes.tiled, 1, 2),
    "Transpose": replace(row(f"1 13 {_VIEW}", shapes.transposed), back=shapes.transposed_back),
    "Upsample": replace(row("7 9", resize.resized, 1), lacks=resize.lacks),
    "Unsqueeze": _view(f"1 11 13 {_VIEW}", 1),
}
_PARAMETERS = {place: norms.norm_parameter(place) for place in (1, 2, 3, 4)}
_LAYERS = {
    "AveragePool": row("1 7 10 11 19 22", fields.average_pool),
    "BatchNormalization": replace(row("6 7 9 14 15", norms.batch_norm), layouts=_PARAMETERS),
    "ConvInteger": row("10", quantised.whole_convolution),
    "Conv": replace(
        row("1 11 22", fields.convolution),
        layouts={0: fields.conv_input, 1: fields.conv_weights},
    ),
    "ConvTranspose": replace(
        row("1 11 22", transposed.convolution), layouts={1: transposed.weights}
    ),
    "Dropout": row("6 7 10 12 13 22", norms.dropout, 1, 2),
    "Gemm": replace(
        row("6 7 9 11 13", products.gemm),
        layouts={0: products.gemm_input(0), 1: products.gemm_input(1)},
    ),
    "DequantizeLinear": row("10 13 19 21 23 24 25 28", quantised.dequantised),
    "GRU": replace(row("7 14 22", gru.onnx_gru), lacks=gru.lacks),
    "GridSample": row("16 20 22", grids.sampled),
    "GroupNormalization": row("18 21", norms.group_norm),
    "If": row(f"1 11 13 16 19 {_VIEW}", control.conditional),
    "InstanceNormalization": row("6 22", norms.instance_norm),
    "LRN": row("1 13", fields.local_response),
    "LSTM": replace(row("1 7 14 22", recurrent.onnx_lstm), lacks=_unknown_activation),
    "LayerNormalization": replace(row("17", norms.layer_norm), lacks=_wide_scale),
    "Loop": replace(row(f"1 11 13 16 19 {_VIEW}", loops.loop), lacks=loops.lacks),
    "LpPool": row("2 11 18 22", fields.lp_pool),
    "MatMulInteger": row("10", quantised.whole_product),
    "MatMul": replace(
        row("1 9 13", products.mat_mul),
        layouts={0: products.mat_mul_input(0), 1: products.mat_mul_input(1)},
    ),
    "MaxPool": row("1 8 10 11 12 22", fields.max_pool),
    "QLinearConv": row("10", quantised.quantised_convolution),
    "QLinearMatMul": row("10 21", quantised.quantised_product),
    "Scan": replace(row(f"9 11 16 19 {_VIEW}", scans.scan), lacks=scans.lacks),
    "RandomNormal": row("1 22", drawn.normal),
    "RandomNormalLike": row("1 22", drawn.normal),
    "RandomUniform": row("1 22", drawn.uniform),
    "RandomUniformLike": row("1 22", drawn.uniform),
    "RNN": replace(row("7 14 22", simple_recurrent.onnx_rnn), lacks=simple_recurrent.lacks),
}
OPERATORS: dict[tuple[str, str], Operator] = {
    **{
        (ONNX, name): operator
        for table in (ELEMENTWISE, _REDUCTIONS, _SHAPES, _LAYERS)
        for name, operator in table.items()
    },
    **{(GRAPHCORE, name): operator for name, operator in GRAPHCORE_OPERATORS.items()},
}


def unsupported(node: Node, ir: Ir) -> str:
    """Return why a node cannot be lowered and what would be needed; "" when it can."""
    operator = OPERATORS.get(node.key)
    if operator is None:
        return "the operator has no lowering; one to PopLibs would be needed"
    if node.version not in operator.versions:
        versions = ", ".join(map(str, operator.versions))
        return f"version {node.version} has no lowering; versions {versions} have"
    for place in operator.static:
        name = node.inputs[place] if place < len(node.inputs) else ""
        if name and ir.known(name) is None:
            return (
                f"input {place} ({name!r}) is computed or fed when the program runs; "
                "a constant would be needed"
            )
    return operator.lacks(node, ir) if operator.lacks is not None else ""
