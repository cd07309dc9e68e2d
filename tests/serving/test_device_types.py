"""Types of clients that a device holds in others: there and back, and what does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.errors import PvaError
from simulator.serving.device_types import to_client, to_device
from simulator.serving.served import RequestError
from simulator.serving.server import InferRequest, Server
from simulator.serving.triton_messages.tensors import TensorError
from tests.serving.small_models import compile_identity, write_model

HELD = {"INT64": "INT64", "UINT64": "UINT64", "DOUBLE": "FP64", "FLOAT": "BF16"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    repository = tmp_path_factory.mktemp("types")
    for onnx, kind in HELD.items():
        compile_identity(write_model(repository, kind, kind=kind, inner=3) / "1", onnx)
    started = Server(repository)
    started.start()
    yield started
    started.close()


def answered(server: Server, kind: str, array: Any, datatype: str = "") -> Any:
    asked = InferRequest(kind, "", "", {}, {"x": array}, (), {"x": datatype or kind})
    return server.infer(asked).outputs[0][1]


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("INT64", np.array([[2**31 - 1, -(2**31), 7]], np.int64)),
        ("UINT64", np.array([[2**32 - 1, 0, 7]], np.uint64)),
        ("FP64", np.array([[0.5, -np.inf, np.nan]])),
        ("BF16", np.array([[0x3F80, 0xFF80, 0x4049]], np.uint16)),  # 1, -infinity, near pi
    ],
)
def test_numbers_that_fit_come_back_as_they_went(server: Server, kind: str, array: Any) -> None:
    found = answered(server, kind, array)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("datatype", "array", "dtype"),
    [
        ("INT64", np.array([1, 2**31], np.int64), np.int32),
        ("INT64", np.array([-(2**31) - 1], np.int64), np.int32),
        ("UINT64", np.array([2**32], np.uint64), np.uint32),
        ("FP64", np.array([1.0, 1e300]), np.float32),
    ],
)
def test_numbers_that_do_not_fit_are_named(datatype: str, array: Any, dtype: Any) -> None:
    text = f"input 'x': value {array[-1]}; the device holds 32 bits"
    with pytest.raises(TensorError, match=re.escape(text)):
        to_device("x", datatype, array, np.dtype(dtype))


def test_bf16_is_rounded_to_the_nearest_and_halfway_to_even() -> None:
    bits = np.array([0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x7FC00000,
                     0x7F800001], np.uint32)  # fmt: skip
    wanted = [0x3F80, 0x3F82, 0x3F81, 0x3F80, 0x7F80, 0x7FC0, 0x7FC0]
    assert to_client("BF16", bits.view(np.float32)).tolist() == wanted


def test_a_request_of_another_type_is_refused_before_it_joins_a_batch(server: Server) -> None:
    halves = np.zeros((1, 3), np.uint16)
    for datatype, array, found in (
        ("UINT16", halves, "UINT16"),
        ("FP32", halves.astype(np.float32), "FP32"),
        ("BF16", halves.astype(np.int16), "int16"),
    ):
        with pytest.raises(RequestError, match=f"input 'x' is {found}; BF16 is needed"):
            answered(server, "BF16", array, datatype)


def test_a_type_that_no_device_holds_is_named_when_the_model_is_loaded(tmp_path: Path) -> None:
    compile_identity(write_model(tmp_path, "texts", kind="STRING", inner=3) / "1", "FLOAT")
    with pytest.raises(PvaError, match=r"input\[0\]\.data_type: BYTES; .* 'x' is f32"):
        Server(tmp_path).start()
