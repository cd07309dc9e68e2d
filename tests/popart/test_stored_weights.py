"""Large tensors of a model's file are read when they are asked for, and are the same then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from simulator import popart
from simulator.graph.types import Array
from simulator.popart import popart_exception
from simulator.popart.importing.model_files.model_file import read_graph, read_model, tensor_values
from simulator.popart.simulate import Request, simulate_model

RANDOM = np.random.default_rng(7)
LARGE = RANDOM.normal(size=(128, 128)).astype(np.float32)  # 64 KiB
SMALL = RANDOM.normal(size=(128 * 128 - 1,)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the file of a product by a large weight; a small one is not used."""
    floats = onnx.TensorProto.FLOAT
    tensors = [numpy_helper.from_array(LARGE, "large"), numpy_helper.from_array(SMALL, "small")]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "large"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", floats, [2, 128])],
        [helper.make_tensor_value_info("y", floats, [2, 128])],
        tensors,
    )
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_values_of_64_kib_stay_in_the_file_and_one_number_less_is_read(path: Path) -> None:
    large, small = read_graph(path)[0].graph.initializer
    assert (large.data_location, large.raw_data) == (onnx.TensorProto.EXTERNAL, b"")
    assert small.data_location == onnx.TensorProto.DEFAULT
    for tensor, values in ((large, LARGE), (small, SMALL)):
        np.testing.assert_array_equal(tensor_values(tensor, path.parent, "t"), values)


def test_without_its_large_values_a_model_is_what_onnx_reads(path: Path) -> None:
    model, expected = read_graph(path)[0], onnx.load(path)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(LARGE, "large"))
    assert model == expected


def test_a_product_by_a_weight_in_the_file_is_that_of_numpy(path: Path, tmp_path: Path) -> None:
    x: Array = RANDOM.normal(size=(2, 128)).astype(np.float32)
    outcome = simulate_model(path, tmp_path / "report", Request(data={"x": x}))
    np.testing.assert_allclose(outcome.outputs["y"].reshape(2, 128), x @ LARGE, rtol=1e-4)


@pytest.mark.parametrize("length", [0, 1, 7, 40, 1000, -1])
def test_a_file_that_ends_early_is_refused_as_ever(path: Path, length: int) -> None:
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(popart_exception) as expected:
        read_model(path)
    with pytest.raises(popart_exception) as raised:
        read_graph(path)
    assert str(raised.value) == str(expected.value)


def test_a_link_to_a_model_is_read_whole(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.onnx"
    link.parent.mkdir()
    link.symlink_to(path)
    assert read_graph(link)[0] == onnx.load(path)


def test_a_model_with_external_data_is_read_whole(path: Path) -> None:
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="data.bin")
    assert read_graph(path)[0] == onnx.load(path, load_external_data=False)


def trained_externally(folder: Path) -> tuple[Any, Path]:
    """Train a model whose weights lie in a file of their own; return session and file."""
    builder = popart.Builder()
    weights = [
        builder.addInitializedInputTensor(np.full(shape, 2, np.float32)) for shape in ((2, 2), (2,))
    ]
    out = builder.aiOnnx.matmul(weights)
    loss = builder.aiGraphcore.identityloss([out])
    place = folder / "weights.bin"
    builder.saveInitializersExternally(weights, str(place))
    device = popart.DeviceManager().createCpuDevice()
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, [out]), loss,
        popart.Adam({"defaultLearningRate": (0.5, True)}), device,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    session.run(popart.PyStepIO({}, session.initAnchorArrays()))
    return session, place


def test_weights_in_a_file_of_their_own_are_changed_there(tmp_path: Path) -> None:
    session, place = trained_externally(tmp_path)
    for _ in range(2):  # the second time nothing is longer
        session.modelToHost(str(tmp_path / "model.onnx"))
        # two weights, and of each two velocities and a step: 3 (4 + 2) + 2 floats
        assert place.stat().st_size == 4 * 20
    values = np.fromfile(place, np.float32)
    assert (values[:6] < 2).all()
    assert values[-2:].tolist() == [1, 1]  # steps come last
    again = popart.InferenceSession(
        str(tmp_path / "model.onnx"),
        popart.DataFlow(1, ["MatMul:0"]),
        popart.DeviceManager().createCpuDevice(),
    )
    again.prepareDevice()
    anchors = again.initAnchorArrays()
    again.run(popart.PyStepIO({}, anchors))
    product = values[:4].reshape(2, 2) @ values[4:6]
    np.testing.assert_allclose(anchors["MatMul:0"], product, rtol=1e-6)


def test_weights_go_on_in_a_copy_of_their_file(tmp_path: Path) -> None:
    session, place = trained_externally(tmp_path)
    copy = tmp_path / "copy.bin"
    session.updateExternallySavedTensorLocations(str(place), str(copy))
    session.modelToHost(str(tmp_path / "model.onnx"))
    assert np.fromfile(place, np.float32).tolist() == [2] * 6
    assert (np.fromfile(copy, np.float32)[:6] < 2).all()


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("none.bin", "copy.bin", "does not exist"),
        ("weights.bin", "weights.bin", "already exists"),
        ("other.bin", "copy.bin", "No ONNX model initializers have external location"),
    ],
)
def test_files_of_weights_that_cannot_be_copied(
    tmp_path: Path, source: str, target: str, words: str
) -> None:
    session, _ = trained_externally(tmp_path)
    (tmp_path / "other.bin").touch()
    with pytest.raises(popart.popart_exception, match=words):
        session.updateExternallySavedTensorLocations(str(tmp_path / source), str(tmp_path / target))
