"""Gradients are those that differences of the reference evaluator give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node, tiny, trained
from onnx.reference import ReferenceEvaluator

from simulator import popart
from simulator.graph.types import Array
from simulator.popart.operators.layer_gradients import GRADIENTS
from simulator.popart.representation.ir import GRAPHCORE

Nodes = Sequence[onnx.NodeProto]
RANDOM = np.random.default_rng(3)
STEP = 1e-5


def values(*shape: int) -> Array:
    """Return numbers away from 0 and from each other, where functions with corners have none."""
    order = RANDOM.permutation(int(np.prod(shape)))
    signs = np.where(order % 2, 1.0, -1.0)
    return ((0.3 + order / len(order)) * signs).reshape(shape).astype(np.float32)


def positive(*shape: int) -> Array:
    return np.abs(values(*shape))


def one(operator: str, w: Array, **attributes: Any) -> Any:
    """Make the case of one node that reads the weight alone."""
    return pytest.param([node(operator, "w", "y", **attributes)], w, {}, id=operator)


def more(operator: str, inputs: str, w: Array, constants: Any, name: str = "", **given: Any) -> Any:
    """Make the case of one node that reads constants, too."""
    nodes = [node(operator, inputs, "y", **given)]
    return pytest.param(nodes, w, constants, id=name or f"{operator}({inputs})")


IMAGE = values(1, 2, 5, 5)
# Inputs, weights, recurrent weights, biases, lengths and the first output of LSTM and GRU.
LSTM = [values(3, 2, 4), values(2, 12, 4), values(2, 12, 3), values(2, 24), np.int32([3, 3]),
        values(2, 2, 3)]  # fmt: skip
GRU = [values(2, 2, 4), values(2, 9, 4), values(2, 9, 3), values(2, 18), np.int32([2, 2]),
       values(2, 2, 3)]  # fmt: skip
CASES = [
    *(one(name, values(2, 3)) for name in ("Abs", "Atan", "Cos", "Cosh", "Exp", "Identity", "Neg")),
    *(one(name, values(2, 3)) for name in ("Relu", "Sigmoid", "Sin", "Sinh", "Tan", "Tanh")),
    *(one(name, positive(2, 3)) for name in ("Log", "Reciprocal", "Sqrt")),
    one("Asin", values(2, 3) / 2),
    one("Cast", values(2, 3), to=onnx.TensorProto.FLOAT),
    one("Flatten", values(2, 3, 2)),
    one("GlobalAveragePool", values(1, 2, 3, 3)),
    one("GlobalMaxPool", values(1, 2, 3, 3)),
    one("Softmax", values(2, 3), axis=1),
    one("LogSoftmax", values(2, 3), axis=1),
    one("Transpose", values(2, 3, 4), perm=[2, 0, 1]),
    one("Squeeze", values(2, 1, 3), axes=[1]),
    one("Unsqueeze", values(2, 3), axes=[1]),
    one("MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    one("AveragePool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    pytest.param([node("MaxPool", "w", "y", kernel_shape=[2, 2], dilations=[2, 2],
                       pads=[1, 0, 0, 1])], IMAGE, {}, id="dilated MaxPool"),
    pytest.param([node("MaxPool", "w", "y places", kernel_shape=[2, 3], storage_order=1)],
                 IMAGE, {}, id="MaxPool with places"),
    one("Shrink", values(2, 5), lambd=0.95, bias=0.2),
    one("Sign", values(2, 3)),
    more("Mod", "w c", np.float32([5, -4]), {"c": np.float32([1.1, 0.9])}, fmod=1),
    more("Mod", "c w", np.float32([1.1, 0.9]), {"c": np.float32([5, -4])}, fmod=1),
    more("OneHot", "i d w", values(2), {"i": np.int64([[1, 0, -1]]), "d": np.int64(3)}, axis=0),
    more("Tile", "w c", values(2, 3), {"c": np.int64([2, 3])}),
    pytest.param([node("TopK", "w c", "y places", axis=1)], values(2, 5, 3),
                 {"c": np.int64([3])}, id="TopK"),
    pytest.param([node("TopK", "w c", "y places", largest=0)], values(2, 5),
                 {"c": np.int64([2])}, id="TopK of the smallest"),
    *(
        one(name, positive(2, 3, 2), axes=[1], keepdims=0)
        for name in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                     "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare")
    ),
    *(
        more(name, inputs, positive(3), {"c": positive(2, 3) + np.float32(0.05)})
        for name in ("Add", "Sub", "Mul", "Div", "Pow", "Sum", "Mean", "Max", "Min")
        for inputs in ("w c", "c w")
        if (name, inputs) != ("Mean", "w c")  # the reference adds up in place of its first operand
    ),
    more("Pow", "w c", positive(2, 3), {"c": np.int64([2, 3, -1])}, "Pow by whole numbers"),
    more("Clip", "w low high", values(2, 3), {"low": np.float32(-0.8), "high": np.float32(0.7)}),
    more("Concat", "w c w", values(2, 3), {"c": values(2, 1)}, axis=1),
    more("Reshape", "w c", values(2, 3), {"c": np.int64([3, 2])}),
    more("Gather", "w c", values(3, 2), {"c": np.int64([2, 0, 2])}),
    more("Gather", "w c", values(2, 3, 2), {"c": np.int64([[-1, 0], [1, -1]])},
         "Gather from the end", axis=1),
    more("Slice", "w s e a t", values(4, 5), {"s": np.int64([3, 1]), "e": np.int64([0, 5]),
         "a": np.int64([0, 1]), "t": np.int64([-1, 2])}),
    more("Pad", "w c", values(2, 3), {"c": np.int64([1, 0, 0, 2])}),
    *(
        more("Pad", "w c", values(2, 3), {"c": np.int64([0, 1, 1, 2])}, f"Pad by {mode}", mode=mode)
        for mode in ("edge", "reflect")
    ),
    more("MatMul", "w c", values(2, 3), {"c": values(3, 4)}),
    more("MatMul", "c w", values(3, 4), {"c": values(5, 2, 3)}, "batches of MatMul"),
    more("Gemm", "w c d", values(3, 2), {"c": values(3, 4), "d": values(4)}, transA=1, alpha=0.5),
    more("Gemm", "c w d", values(4, 3), {"c": values(2, 3), "d": values(4)}, transB=1, beta=2.0),
    more("Gemm", "c d w", values(1, 4), {"c": values(2, 3), "d": values(3, 4)}),
    more("Conv", "w c", IMAGE, {"c": values(4, 2, 3, 3)}, strides=[2, 2], pads=[1, 1, 1, 1]),
    more("Conv", "c w", values(4, 1, 3, 3), {"c": IMAGE}, group=2),
    more("Conv", "c d w", values(4), {"c": IMAGE, "d": values(4, 2, 3, 3)}),
    *(
        more("LSTM", " ".join("w" if p == q else n for q, n in enumerate("cdefgh")), LSTM[p],
             {n: v for q, (n, v) in enumerate(zip("cdefgh", LSTM, strict=True)) if q != p},
             f"LSTM {p}", hidden_size=3, direction="bidirectional")
        for p in (0, 1, 2, 3, 5)
    ),
    *(
        more("GRU", " ".join("w" if p == q else n for q, n in enumerate("cdefgh")), GRU[p],
             {n: v for q, (n, v) in enumerate(zip("cdefgh", GRU, strict=True)) if q != p},
             f"GRU {p} {after}", hidden_size=3, direction="bidirectional",
             linear_before_reset=after)
        for p, after in ((0, 1), (1, 0), (2, 0), (2, 1), (3, 1), (5, 0))
    ),
    more("InstanceNormalization", "w c d", values(2, 2, 4), {"c": values(2), "d": values(2)}),
    more("InstanceNormalization", "c w d", values(2), {"c": values(2, 2, 4), "d": values(2)}),
]  # fmt: skip
NORMAL = [values(2, 3, 4), values(3, 4), values(4)]
# Of operator set 23; those after RMSNormalization are what ONNX defines by functions.
NEWER = [
    *(one(name, values(2, 3)) for name in ("Asinh", "Elu", "Erf", "Gelu", "HardSigmoid",
                                           "LeakyRelu", "Selu", "Softplus", "Softsign")),
    one("Gelu", values(2, 3), approximate="tanh"),
    one("ThresholdedRelu", values(2, 3), alpha=0.5),
    one("Elu", values(2, 3), alpha=0.5),
    *(one(name, values(2, 3) / 2) for name in ("Acos", "Atanh")),
    one("Acosh", positive(2, 3) + 1),
    one("DepthToSpace", values(1, 8, 2, 3), blocksize=2, mode="CRD"),
    one("SpaceToDepth", values(1, 2, 4, 6), blocksize=2),
    more("Expand", "w c", values(3, 1), {"c": np.int64([2, 1, 4])}),
    *(
        more("Where", inputs, values(3, 1), {"c": np.arange(6).reshape(3, 2) % 2 == 0,
             "d": values(2)})
        for inputs in ("c w d", "c d w")
    ),
    more("GatherElements", "w c", values(2, 3), {"c": np.int64([[0, 0, -1], [2, 1, 0]])}, axis=1),
    *(
        more("ScatterElements", inputs, w, {"c": np.int64([[1, 0]]), "d": other}, axis=1)
        for inputs, w, other in (("w c d", values(2, 2), values(1, 2)),
                                 ("d c w", values(1, 2), values(2, 3)))
    ),
    *(
        more("ScatterElements", inputs, w, {"c": np.int64([[1, 0, 1]]), "d": other},
             f"ScatterElements that adds {inputs}", axis=1, reduction="add")
        for inputs, w, other in (("w c d", values(2, 2), values(1, 3)),
                                 ("d c w", values(1, 3), values(2, 3)))
    ),
    one("Trilu", values(2, 3, 4), upper=0),
    more("CumSum", "w c", values(2, 3), {"c": np.int64(1)}, exclusive=1),
    more("CumSum", "w c", values(2, 3), {"c": np.int64(0)}, "CumSum from the end", reverse=1),
    *(
        more("LayerNormalization", " ".join("w" if p == q else n for q, n in enumerate("cde")),
             NORMAL[p], {n: v for q, (n, v) in enumerate(zip("cde", NORMAL, strict=True))
                         if p != q}, axis=1)
        for p in range(3)
    ),
    *(
        more("ConvTranspose", inputs, w, {"c": other, "d": values(3)}, strides=[2, 2],
             pads=[1, 0, 1, 1], output_padding=[1, 0])
        for inputs, w, other in (("w c d", IMAGE, values(2, 3, 3, 2)),
                                 ("c w d", values(2, 3, 3, 2), IMAGE))
    ),
    more("ConvTranspose", "c d w", values(3), {"c": IMAGE, "d": values(2, 3, 2, 2)}),
    *(
        pytest.param([onnx.helper.make_node("Resize", ["w", "", "c"], ["y"], mode=mode)],
                     values(1, 2, 3, 4), {"c": np.float32([1, 1, 2, 0.75])}, id=f"{mode} Resize")
        for mode in ("nearest", "linear", "cubic")
    ),
    more("RMSNormalization", "w c", values(2, 4), {"c": values(4)}),
    *(one(name, values(2, 3)) for name in ("Celu", "HardSwish", "Mish")),
    more("PRelu", "c w", positive(3, 1), {"c": values(2, 3, 4)}),
    more("SoftmaxCrossEntropyLoss", "w c", values(3, 4), {"c": np.int64([1, 3, 0])}),
    more("Attention", "w c c", values(1, 2, 3, 4), {"c": values(1, 2, 3, 4)}),
]  # fmt: skip


def numeric(
    nodes: Nodes, w: Array, constants: dict[str, Array], mix: Array, opset: int = 12
) -> Array:
    """Differentiate the sum of outputs times `mix`, by the reference evaluator."""
    proto = model(nodes, {"w": w.shape}, ["y"], {}, opset=opset)
    del proto.graph.input[:]
    for name in ("w", *constants):
        proto.graph.input.append(onnx.helper.make_value_info(name, onnx.TypeProto()))
    evaluator = ReferenceEvaluator(proto)
    wide = {n: v.astype(np.float64) if v.dtype.kind == "f" else v for n, v in constants.items()}

    def total(values: Array) -> float:
        return float((evaluator.run(None, {"w": values, **wide})[0] * mix).sum())

    return differences(total, w)


def differences(total: Callable[[Array], float], w: Array) -> Array:
    """Differentiate a function element by element, in double precision."""
    found, base = np.zeros(w.shape), w.astype(np.float64)
    for place in np.ndindex(*w.shape):
        step = np.zeros(w.shape)
        step[place] = STEP
        found[place] = (total(base + step) - total(base - step)) / (2 * STEP)
    return found


@pytest.mark.parametrize(("nodes", "w", "constants"), CASES)
def test_a_gradient_is_that_of_differences(
    nodes: Nodes, w: Array, constants: dict[str, Array], opset: int = 12
) -> None:
    reference = model(nodes, {"w": w.shape}, ["y"], constants, opset=opset)
    (output,) = ReferenceEvaluator(reference).run(None, {"w": w})
    mix = RANDOM.normal(size=output.shape)
    mixed = [*nodes, node("Mul", "y mix", "z")]
    weights = {"w": w, "mix": mix.astype(np.float32), **constants}
    loss = popart.IdentityLoss("z", "loss")
    found = trained(mixed, weights, loss, "Gradient___w", opset=opset)
    expected = numeric(nodes, w, constants, mix, opset)
    np.testing.assert_allclose(found["Gradient___w"], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("nodes", "w", "constants"), NEWER)
def test_a_gradient_of_a_newer_operator_is_that_of_differences(
    nodes: Nodes, w: Array, constants: dict[str, Array]
) -> None:
    test_a_gradient_is_that_of_differences(nodes, w, constants, opset=23)


def test_the_gradient_of_response_normalisation_is_that_of_its_formula() -> None:
    # The reference evaluator (onnx 1.23) does not compute the formula of the operator.
    def total(x: Array) -> float:
        around = np.pad(x * x, ((0, 0), (1, 1), (0, 0)))
        squares = around[:, :-2] + around[:, 1:-1] + around[:, 2:]
        return float((x / (1.5 + 0.5 / 3 * squares) ** 0.75 * mix).sum())

    w, mix = values(1, 5, 4), RANDOM.normal(size=(1, 5, 4))
    nodes = [node("LRN", "w", "y", size=3, alpha=0.5, beta=0.75, bias=1.5)]
    mixed = [*nodes, node("Mul", "y mix", "z")]
    weights = {"w": w, "mix": mix.astype(np.float32)}
    found = trained(mixed, weights, popart.IdentityLoss("z", "loss"), "Gradient___w")
    np.testing.assert_allclose(found["Gradient___w"], differences(total, w), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("with_padding", [0, 1])
def test_the_gradient_of_a_dilated_mean_is_that_of_its_formula(with_padding: int) -> None:
    # The reference evaluator (onnx 1.23) has no dilated means at this version.
    def total(x: Array) -> float:
        around, inside = (np.pad(a, [(0, 0), (0, 0), (1, 1), (0, 0)]) for a in (x, np.ones_like(x)))
        taps = [(slice(i, i + 5), slice(j, j + 3)) for i in (0, 2) for j in (0, 2)]
        read, there = (sum(a[:, :, r, c] for r, c in taps) for a in (around, inside))
        return float((read / (4 if with_padding else there) * mix).sum())

    mix = RANDOM.normal(size=(1, 2, 5, 3))
    pooled = node("AveragePool", "w", "y", kernel_shape=[2, 2], dilations=[2, 2],
                  pads=[1, 0, 1, 0], count_include_pad=with_padding)  # fmt: skip
    weights = {"w": IMAGE, "mix": mix.astype(np.float32)}
    nodes, loss = [pooled, node("Mul", "y mix", "z")], popart.IdentityLoss("z", "loss")
    found = trained(nodes, weights, loss, "Gradient___w", opset=19)
    expected = differences(total, IMAGE)
    np.testing.assert_allclose(found["Gradient___w"], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("mode", "expected"), [("edge", [3, 1, 2]), ("reflect", [1, 3, 2]), ("wrap", [2, 2, 2])]
)
def test_an_element_that_a_pad_repeats_has_the_gradient_of_each_time(
    mode: str, expected: list[int]
) -> None:
    nodes = [node("Pad", "w p", "y", mode=mode)]
    stored = {"w": np.ones(3, np.float32), "p": np.int64([2, 1])}
    loss = popart.IdentityLoss("y", "loss")
    found = trained(nodes, stored, loss, "Gradient___w", opset=19)
    assert found["Gradient___w"].tolist() == expected


@pytest.mark.parametrize(
    ("axes", "pads", "shape", "expected"),
    [([1, 0], [1, 0, 0, 1], (3, 3), [[1, 2], [4, 5]]), ([-1], [1, 2], (2, 5), [[1, 2], [6, 7]])],
)
def test_a_pad_of_some_axes_gives_the_gradient_of_these(
    axes: list[int], pads: list[int], shape: tuple[int, int], expected: list[list[int]]
) -> None:
    # "" is the padding's value, which is not given.
    pad = onnx.helper.make_node("Pad", ["w", "p", "", "axes"], ["y"])
    stored = {"w": np.ones((2, 2), np.float32), "p": np.int64(pads), "axes": np.int64(axes),
              "mix": np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)}  # fmt: skip
    nodes, loss = [pad, node("Mul", "y mix", "z")], popart.IdentityLoss("z", "loss")
    found = trained(nodes, stored, loss, "Gradient___w", opset=18)
    assert found["Gradient___w"].tolist() == expected


@pytest.mark.parametrize("trains", ["data", "updates"])
def test_scattering_gives_each_place_its_gradient(trains: str) -> None:
    given = {"data": values(3, 4), "updates": values(2, 2)}
    index, mix = np.int64([[1, -1], [0, 2]]), RANDOM.normal(size=(3, 4))

    def total(w: Array) -> float:
        now = {**given, trains: w}
        out = now["data"].astype(np.float64)
        for row, column in np.ndindex(2, 2):
            out[row, index[row, column]] = now["updates"][row, column]
        return float((out * mix).sum())

    nodes = [node("Scatter", "data index updates", "y", axis=1), node("Mul", "y mix", "z")]
    weights = {**given, "index": index, "mix": mix.astype(np.float32)}
    anchor, loss = f"Gradient___{trains}", popart.IdentityLoss("z", "loss")
    found = trained(nodes, weights, loss, anchor, opset=10)
    expected = differences(total, given[trains])
    np.testing.assert_allclose(found[anchor], expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("condition", [2.0, -2.0])
def test_the_branch_of_an_if_that_ran_gives_the_gradient(condition: float) -> None:
    w, v = values(2, 3), values(3)
    branches = {
        "then_branch": model([node("Mul", "w v", "o")], {}, ["o"]).graph,
        "else_branch": model([node("Tanh", "w", "t"), node("Mul", "t k", "o")], {}, ["o"],
                             {"k": np.float32(3)}).graph,
    }  # fmt: skip
    nodes = [node("Greater", "c zero", "p"), node("If", "p", "y", **branches)]
    stored = {"w": w, "v": v, "c": np.float32([condition]), "zero": np.float32([0])}
    anchors = ("Gradient___w", "Gradient___v", "y")
    found = trained(nodes, stored, popart.IdentityLoss("y", "loss"), *anchors)
    if condition > 0:
        expected = np.broadcast_to(v, w.shape), w.sum(axis=0), w * v
    else:
        expected = 3 / np.cosh(w) ** 2, 0 * v, 3 * np.tanh(w)
    for name, wanted in zip(anchors, expected, strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5)


def test_operators_of_graphcore_have_the_gradients_of_their_formulas() -> None:
    w = values(2, 3)
    cases = {"Scale": (3.0 + 0 * w, {"scale": 3.0}), "Square": (2 * w, {})}
    for name, (expected, given) in cases.items():
        nodes = [node(name, "w", "y", domain=GRAPHCORE, **given)]
        found = trained(nodes, {"w": w}, popart.IdentityLoss("y", "loss"), "Gradient___w")
        np.testing.assert_allclose(found["Gradient___w"], expected, rtol=1e-5)


def test_every_gradient_of_onnx_has_a_case_here() -> None:
    tried = {n.op_type for case in [*CASES, *NEWER] for n in case.values[0]}
    apart = {"BatchNormalization", "Dropout", "LRN", "GroupNormalization", "Split", "Scatter",
             "Upsample"}  # fmt: skip
    apart |= {"GatherND", "GridSample", "RNN", "ScatterND"}  # test_indexed_gradients.py
    assert {name for domain, name in GRADIENTS if domain == "ai.onnx"} - tried <= apart


def test_a_product_with_zeros_gives_each_element_the_product_of_the_others() -> None:
    nodes = [node("ReduceProd", "w", "y", axes=[1])]
    stored = {"w": np.float32([[2, 3, 4], [2, 0, 4], [0, 0, 4]])}
    found = trained(nodes, stored, popart.IdentityLoss("y", "loss"), "Gradient___w")
    assert found["Gradient___w"].tolist() == [[12, 8, 6], [0, 8, 0], [0, 0, 0]]


def test_a_scatter_that_keeps_the_larger_is_refused_in_training() -> None:
    scatter = node("ScatterElements", "w c d", "y", axis=1, reduction="max")
    stored = {"w": values(2, 2), "c": np.int64([[1, 0]]), "d": values(1, 2)}
    with pytest.raises(popart.popart_exception, match="ScatterElements.* has no gradient"):
        trained([scatter], stored, popart.IdentityLoss("y", "loss"), "Gradient___w", opset=18)


def test_a_length_of_zero_gives_no_gradient() -> None:
    nodes = [node("ReduceL2", "w", "y", axes=[1])]
    stored = {"w": np.float32([[3, 4], [0, 0]])}
    found = trained(nodes, stored, popart.IdentityLoss("y", "loss"), "Gradient___w")
    np.testing.assert_allclose(found["Gradient___w"], [[0.6, 0.8], [0, 0]], rtol=1e-6)


def test_the_places_of_chosen_elements_give_no_gradient() -> None:
    nodes = [
        node("TopK", "w k", "top places"), node("Cast", "places", "floats", to=1),
        node("ReduceSum", "floats", "a"), node("ReduceSum", "w", "b"), node("Add", "a b", "y"),
    ]  # fmt: skip
    stored = {"w": values(5), "k": np.int64([2])}
    found = trained(nodes, stored, popart.IdentityLoss("y", "loss"), "Gradient___w")
    assert found["Gradient___w"].tolist() == [1, 1, 1, 1, 1]


def test_an_output_whose_gradient_is_left_out_is_refused_where_a_loss_depends_on_it() -> None:
    nodes = [node("LayerNormalization", "w s", "n mean"), node("Mul", "n mean", "y")]
    stored = {"w": values(2, 3), "s": values(3)}
    with pytest.raises(popart.popart_exception, match="no gradient of its output 'mean', on which"):
        trained(nodes, stored, popart.IdentityLoss("y", "loss"), opset=17)


def test_a_product_of_no_rows_has_a_gradient_of_zero() -> None:
    stored = {"a": np.ones((0, 4), np.float32), "w": np.ones((4, 3), np.float32)}
    loss = popart.IdentityLoss("y", "loss")
    found = trained([node("MatMul", "a w", "y")], stored, loss, "Gradient___w")
    assert found["Gradient___w"].tolist() == np.zeros((4, 3)).tolist()


def test_parts_that_nobody_uses_have_a_gradient_of_zero() -> None:
    nodes = [node("Split", "w", "a b", axis=0), node("Neg", "a", "y")]
    found = trained(nodes, {"w": values(4)}, popart.IdentityLoss("y", "loss"), "Gradient___w")
    assert found["Gradient___w"].tolist() == [-1, -1, 0, 0]


@pytest.mark.parametrize(("which", "expected"), [
    ("All", [[0, 1, 1], [0, 1, 0]]), ("First", [[0, 1, 0], [0, 0, 0]]),
])  # fmt: skip
def test_equal_maxima_have_the_gradient_of_popart_or_of_torch(
    which: str, expected: list[list[int]]
) -> None:
    w = np.float32([[0, 2, 2], [1, 2, 0]]).reshape(1, 1, 2, 3)
    proto = model([node("MaxPool", "w", "y", kernel_shape=[2, 3])], {}, [], {"w": w})
    options = popart.SessionOptions(maxPoolGradient=which)
    session = popart.TrainingSession(
        proto, popart.DataFlow(1, ["Gradient___w"]), userOptions=options, deviceInfo=tiny(),
        losses=[popart.IdentityLoss("y", "loss")], optimizer=popart.ConstSGD(0.0),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    found = session.initAnchorArrays()
    session.run(popart.PyStepIO({}, found))
    assert found["Gradient___w"].reshape(2, 3).tolist() == expected
