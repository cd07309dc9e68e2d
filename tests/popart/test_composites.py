"""Operators that are computed by nodes of others give what NumPy, or onnx's evaluator, gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node, outcome
from onnx.reference import ReferenceEvaluator

from simulator.popart import backend
from simulator.popart.importing.from_onnx import import_model

RANDOM = np.random.default_rng(7)


def as_onnx_does(proto: onnx.ModelProto, **inputs: Any) -> None:
    (found,) = outcome(proto, inputs, "y")
    (wanted,) = ReferenceEvaluator(proto).run(None, inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def drawn(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("length", [5, 8, 11])
@pytest.mark.parametrize("half", [0, 1])
def test_a_transform_cuts_or_fills_its_signal_to_the_length(length: int, half: int) -> None:
    x = drawn(2, 8, 1)
    dft = node("DFT", "x n", "y", axis=1, onesided=half)
    (found,) = outcome(
        model([dft], {"x": x.shape}, ["y"], {"n": np.int64(length)}, 17), {"x": x}, "y"
    )
    transform = np.fft.rfft if half else np.fft.fft
    wanted = transform(x[..., 0].astype(np.float64), n=length, axis=1)
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted, atol=1e-5)


@pytest.mark.parametrize("length", [6, 7, 9, 12])
def test_half_the_frequencies_give_back_the_real_signal(length: int) -> None:
    x = drawn(3, 5, 2)
    nodes = [node("DFT", "x n a", "y", inverse=1, onesided=1)]
    weights = {"n": np.int64(length), "a": np.int64(-2)}
    (found,) = outcome(model(nodes, {"x": x.shape}, ["y"], weights, 20), {"x": x}, "y")
    wanted = np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=length, axis=1)
    np.testing.assert_allclose(found[..., 0], wanted, atol=1e-5)


@pytest.mark.parametrize("size", [(1, 5), (4, 5)])
def test_a_deformed_convolution_without_offsets_is_a_convolution(size: tuple[int, int]) -> None:
    x, w = drawn(2, 4, *size), drawn(6, 2, 3, 2)
    stored = {"w": w, "z": np.zeros((2, 12, size[0], size[1] + 1), np.float32)}
    how = {"group": 2, "pads": [1, 1, 1, 1], "kernel_shape": [3, 2]}
    plain = model([node("Conv", "x w", "y", **how)], {"x": x.shape}, ["y"], stored, 19)
    moved = model([node("DeformConv", "x w z", "y", **how)], {"x": x.shape}, ["y"], stored, 19)
    (found,), (wanted,) = (outcome(proto, {"x": x}, "y") for proto in (moved, plain))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("half", ["half_pixel", "output_half_pixel"])
def test_regions_are_aligned_beyond_the_edges_too(mode: str, half: str) -> None:
    rois = np.float32([[0, 0, 7, 5], [-3, -2, 4, 4], [5, 3, 12, 9]])
    how = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.5}
    roi = node("RoiAlign", "x r b", "y", mode=mode, coordinate_transformation_mode=half, **how)
    stored = {"r": rois, "b": np.int64([0, 1, 1])}
    proto = model([roi], {"x": [2, 3, 5, 7]}, ["y"], stored, 16)
    as_onnx_does(proto, x=np.abs(drawn(2, 3, 5, 7)))


def test_blocks_add_up_where_they_overlap() -> None:
    # The columns of an image, put back, are the image times how many blocks have each element.
    image = drawn(4, 5)
    blocks = [(r, c) for r in range(2) for c in range(2)]
    columns = np.stack([image[r : r + 3, c : c + 4].reshape(-1) for r, c in blocks])
    stored = {"s": np.int64([4, 5]), "k": np.int64([2, 2])}
    proto = model([node("Col2Im", "x s k", "y")], {"x": [1, 4, 12]}, ["y"], stored, 18)
    (found,) = outcome(proto, {"x": columns[None]}, "y")
    count = np.outer([1, 2, 2, 1], [1, 2, 2, 2, 1])
    np.testing.assert_allclose(found[0, 0], image * count, rtol=1e-6)


def test_what_max_pool_chose_goes_back_and_the_rest_is_zero() -> None:
    x = drawn(1, 2, 4, 4)
    pool = node("MaxPool", "x", "p i", kernel_shape=[2, 2], strides=[2, 2])
    back = node("MaxUnpool", "p i", "y", kernel_shape=[2, 2], strides=[2, 2])
    (found,) = outcome(model([pool, back], {"x": x.shape}, ["y"], opset=12), {"x": x}, "y")
    tops = x.reshape(1, 2, 2, 2, 2, 2).max(axis=(3, 5)).repeat(2, axis=2).repeat(2, axis=3)
    assert found.tolist() == np.where(x == tops, x, 0).tolist()


@pytest.mark.parametrize("axis", [None, 1])
def test_a_constant_condition_keeps_elements(axis: int | None) -> None:
    x, keep = drawn(2, 4), np.array([True, False, True])
    how = {} if axis is None else {"axis": axis}
    proto = model([node("Compress", "x k", "y", **how)], {"x": [2, 4]}, ["y"], {"k": keep}, 11)
    assert outcome(proto, {"x": x}, "y")[0].tolist() == np.compress(keep, x, axis).tolist()


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node("Greater", "x x", "k"), node("Compress", "x k", "y")], "a constant would be needed"),
        ([node("RoiAlign", "i r b", "y")], "sampling_ratio 0 takes as many samples as a region"),
        ([node("DFT", "i", "y", axis=3)], "axis 3 of FLOAT [1, 1, 4, 4]; the last one is of"),
    ],
)
def test_what_cannot_be_computed_is_refused_before_compiling(
    nodes: list[onnx.NodeProto], said: str
) -> None:
    stored = {"r": np.zeros((1, 4), np.float32), "b": np.int64([0])}
    proto = model(nodes, {"x": [4], "i": [1, 1, 4, 4]}, ["y"], stored, 17)
    assert said in import_model(proto, "model", None)[1][0]


def test_a_region_of_a_tensor_is_resized_with_what_lies_beyond_it() -> None:
    region = np.float32([0, 0, -0.5, 0.25, 1, 1, 0.5, 1.5])
    resize = node(
        "Resize", "x r e s", "y", coordinate_transformation_mode="tf_crop_and_resize",
        mode="linear", extrapolation_value=9.0,
    )  # fmt: skip
    resize.input[2] = ""
    stored = {"r": region, "s": np.int64([1, 2, 5, 4])}
    as_onnx_does(model([resize], {"x": [1, 2, 4, 4]}, ["y"], stored, 13), x=drawn(1, 2, 4, 4))


def test_a_constant_input_decides_how_often_a_loop_runs() -> None:
    # As PyTorch's range: the number of slices is computed of what is fed.
    proto = model(
        [node("Range", "a b c", "r"), node("Mul", "r x", "y")], {"x": [1]}, ["y"], opset=11
    )
    for name in "abc":
        value = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [])
        proto.graph.input.append(value)
    given = [np.float32(n) for n in (1, 9, 3)]
    (found,) = backend.prepare(proto).run([np.float32([2]), *given])
    assert found.tolist() == [2, 8, 14]


@pytest.mark.parametrize("rows", [1, 3, 6])
def test_a_determinant_is_numpys_also_where_a_pivot_is_zero(rows: int) -> None:
    x = drawn(4, rows, rows)
    x[0, 0, 0] = 0
    x[1, -1] = x[1, 0] * (rows > 1)  # singular
    proto = model([node("Det", "x", "y")], {"x": x.shape}, ["y"], opset=22)
    wanted = np.linalg.det(x.astype(np.float64))
    np.testing.assert_allclose(outcome(proto, {"x": x}, "y")[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_grams_are_counted_as_by_onnxs_evaluator(mode: str) -> None:
    how = {"ngram_counts": [0, 3, 7], "ngram_indexes": [3, 0, 5, 1, 2, 4],
           "pool_int64s": [1, 2, 0, 1, 2, 2, 1, 0, 1, 2], "min_gram_length": 1,
           "max_gram_length": 3, "max_skip_count": 2, "weights": [2, 1, 3, 0.5, 4, 5]}  # fmt: skip
    grams = [node("Cast", "x", "i", to=6), node("TfIdfVectorizer", "i", "y", mode=mode, **how)]
    x = RANDOM.integers(0, 3, (4, 9)).astype(np.float32)
    as_onnx_does(model(grams, {"x": x.shape}, ["y"], opset=9), x=x)


def classical(made: onnx.NodeProto, shape: tuple[int, ...], version: int) -> onnx.ModelProto:
    proto = model([made], {"x": shape}, ["y"], opset=21)
    proto.opset_import.append(onnx.helper.make_opsetid(made.domain, version))
    return proto


@pytest.mark.parametrize("how", [0, 1])
def test_trees_add_up_the_leaves_of_all_conditions(how: int) -> None:
    # Two trees: nodes 0 to 4 below root 0, node 5 with two leaves; each condition once.
    tensor = onnx.numpy_helper.from_array
    attributes = {
        "aggregate_function": how, "post_transform": 0, "n_targets": 2, "tree_roots": [0, 5],
        "nodes_modes": tensor(np.uint8([0, 1, 2, 3, 4, 5])),
        "nodes_splits": tensor(np.float32([0.5, 0.0, -0.5, 0.2, 1.0, 1.0])),
        "nodes_featureids": [0, 1, 2, 1, 0, 2],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0],
        "nodes_truenodeids": [1, 0, 4, 2, 4, 6], "nodes_trueleafs": [0, 1, 0, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 3, 5, 7], "nodes_falseleafs": [0, 1, 0, 1, 1, 1],
        "leaf_targetids": [0, 1, 0, 1, 0, 1, 0, 1],
        "leaf_weights": tensor(np.float32([1, 2, 4, 8, 16, 32, 64, 128])),
    }  # fmt: skip
    made = onnx.helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    x = RANDOM.choice(np.float32([-1, -0.5, 0, 0.2, 0.5, 1, np.nan]), (40, 3))
    found = outcome(classical(made, x.shape, 5), {"x": x}, "y")[0]
    assert found.tolist() == [trees_by_hand(row, how) for row in x]


def trees_by_hand(row: Any, how: int) -> list[float]:
    """Walk through both trees of the test above."""
    a, b, c = row
    if a <= 0.5 or np.isnan(a):
        leaf = 0 if b < 0 else 1
    elif c >= -0.5:
        leaf = 4 if a == 1 else 5
    else:
        leaf = 2 if b > 0.2 else 3
    made = [0.0, 0.0]
    for place in (leaf, 6 if c != 1 else 7):
        made[place % 2] += 2.0**place / (1 if how else 2)
    return made


@pytest.mark.parametrize(
    ("name", "states", "how"),
    [
        ("Adagrad", 1, {"decay_factor": 0.1, "epsilon": 1e-3}),
        ("Adam", 2, {"alpha": 0.7, "beta": 0.6, "epsilon": 1e-3, "norm_coefficient_post": 0.1}),
        ("Momentum", 1, {"alpha": 0.9, "beta": 0.5, "mode": "standard"}),
        ("Momentum", 1, {"alpha": 0.9, "beta": 0.5, "mode": "nesterov"}),
    ],
)
def test_the_fourth_step_of_an_optimiser_is_that_of_onnxs_evaluator(
    name: str, states: int, how: dict[str, Any]
) -> None:
    shapes = [(), *[(3,), (2, 2)] * (2 + states)]
    names = ["r", "t", *(f"v{n}" for n in range(len(shapes) - 1))]
    values = [onnx.helper.make_tensor_value_info("r", 1, []),
              onnx.helper.make_tensor_value_info("t", 7, []),
              *(onnx.helper.make_tensor_value_info(n, 1, s)
                for n, s in zip(names[2:], shapes[1:], strict=True))]  # fmt: skip
    outs = [f"o{n}" for n in range(2 * (1 + states))]
    domain = "ai.onnx.preview.training"
    how = how | {"norm_coefficient": 0.01}
    step = onnx.helper.make_node(name, names, outs, domain=domain, **how)
    made = [onnx.helper.make_tensor_value_info(o, 1, None) for o in outs]
    graph = onnx.helper.make_graph([step], "step", values, made)
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid(domain, 1)]
    proto = onnx.helper.make_model(graph, opset_imports=opsets)
    given = [np.float32(0.1), np.int64(4), *(np.abs(drawn(*s)) for s in shapes[1:])]
    inputs = {n: np.asarray(v) for n, v in zip(names, given, strict=True)}
    wanted = ReferenceEvaluator(proto).run(None, inputs)
    for found, exact in zip(backend.run_model(proto, given), wanted, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-5)
