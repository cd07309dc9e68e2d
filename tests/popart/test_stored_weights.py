"""Large tensors of a model's file are read when they are asked for, and are the same then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from simulator.graph.types import Array
from simulator.popart import popart_exception
from simulator.popart.importing.model_file import read_graph, read_model, tensor_values
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
