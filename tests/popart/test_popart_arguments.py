"""Devices, data flow, options and infos take what PopART's take, and refuse the rest by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from models import model, node, prepared

from simulator import popart
from simulator.graph.types import Array
from simulator.poplar import PoplarError

MANAGER = popart.DeviceManager()
SMALL = model([node("Add", "a a", "b")], {"a": [2]}, ["b"])


def test_enumerated_devices_are_groups_of_ipus() -> None:
    groups = {count: MANAGER.enumerateDevices(numIpus=count) for count in (1, 2, 16)}
    assert {count: len(devices) for count, devices in groups.items()} == {1: 16, 2: 8, 16: 1}
    assert all(one.numIpus == count for count, devices in groups.items() for one in devices)
    assert len(MANAGER.enumerateDevices()) == 16  # each IPU by itself
    assert {device.tilesPerIPU for device in MANAGER.enumerateDevices(tilesPerIPU=7)} == {7}


def test_a_session_runs_on_an_acquired_device() -> None:
    device = MANAGER.acquireAvailableDevice(2)
    assert (device.numIpus, device.isCpu) == (2, False)
    session = popart.InferenceSession(SMALL, deviceInfo=device, dataFeed=popart.DataFlow(1, ["b"]))
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"a": [1, 2]}, anchors))
    assert anchors["b"].tolist() == [2, 4]
    device.detach()


def test_a_device_is_acquired_with_some_tiles_of_each_ipu() -> None:
    with pytest.raises(PoplarError, match="tilesPerIPU is 2000; there are 1472"):
        MANAGER.acquireAvailableDevice(16, tilesPerIpu=2000)
    with MANAGER.acquireAvailableDevice(16, tilesPerIpu=4) as device:
        assert (device.numIpus, device.tilesPerIPU, device.target.num_tiles) == (16, 4, 64)
        with pytest.raises(PoplarError, match="no device with 1 IPUs is free"):
            MANAGER.acquireAvailableDevice(tilesPerIpu=4)
    with MANAGER.acquireAvailableDevice(tilesPerIpu=0) as device:
        assert device.tilesPerIPU == 1472


def test_a_device_is_acquired_by_its_id_once() -> None:
    first = MANAGER.acquireDeviceById(5)
    assert first.getId() == 5
    with pytest.raises(PoplarError, match="acquireDeviceById: device 5 is attached"):
        MANAGER.acquireDeviceById(5)
    first.detach()


def test_models_have_the_options_asked_for() -> None:
    device = MANAGER.createIpuModelDevice({"numIPUs": "2", "tilesPerIPU": 8, "ipuVersion": "mk1"})
    assert (device.numIpus, device.tilesPerIPU, device.target.name) == (2, 8, "mk1")


@pytest.mark.parametrize(
    ("options", "compiled"),
    [(None, True), ({"compileIPUCode": False}, False), ({"compileIPUCode": "True"}, True)],
)
def test_models_compile_code_unless_told_otherwise(options: Any, compiled: bool) -> None:
    assert MANAGER.createIpuModelDevice(options).target.compile_ipu_code == compiled
    assert MANAGER.createSimDevice(options).target.compile_ipu_code == compiled
    assert MANAGER.createCpuDevice().isCpu


def test_infos_of_arrays_and_names_agree() -> None:
    info = popart.TensorInfo(np.zeros((2, 3), np.float16))
    assert info == popart.TensorInfo("FLOAT16", [2, 3])
    assert (info.shape(), info.data_type(), info.nelms(), info.nbytes()) == (
        [2, 3],
        "FLOAT16",
        6,
        12,
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: MANAGER.createIpuModelDevice({"tiles": 8}), "option 'tiles'; known are numIPUs"),
        (lambda: MANAGER.createIpuModelDevice({"numIPUs": "x"}), "numIPUs is 'x'; a whole number"),
        (lambda: MANAGER.createIpuModelDevice({"numIPUs": 3.5}), "numIPUs is 3.5; a whole number"),
        (lambda: popart.TensorInfo("FLOAT7", [1]), "type 'FLOAT7'; known are FLOAT, UINT8"),
        (lambda: popart.TensorInfo("FLOAT", 3), "shape 3; a list of sizes"),
        (lambda: popart.TensorInfo("FLOAT", [-1]), "sizes cannot be negative"),
        (lambda: popart.TensorInfo(np.array(["a"])), "an array of <U1"),
        (
            lambda: popart.AnchorReturnType("SOME"),
            "Invalid anchor return type ID supplied: SOME",
        ),
        (
            lambda: popart.AnchorReturnType("EVERYN", 0),
            "Anchor return period must be greater than zero",
        ),
        (lambda: popart.DataFlow(0, []), "0 batches a step; at least 1"),
        (lambda: popart.DataFlow(2, {"a": "ALL"}), "anchor 'a' is 'ALL'; an AnchorReturnType"),
        (
            lambda: popart.DataFlow(2, {"a": popart.AnchorReturnType("EVERYN", 3)}),
            "anchor 'a' is given every 3 batches; a step has 2",
        ),
        (lambda: popart.DataFlow(1, "abc"), "anchors are 'abc'; a list is needed"),
        (lambda: popart.PyStepIO({}, {"c": [0.0]}), "output 'c' is a list, which cannot be filled"),
        (lambda: popart.PyStepIO([1], {}), r"inputs are \[1\]; a dictionary is needed"),
        (lambda: popart.SessionOptions(engineOption={}), "did you mean engineOptions"),
        (lambda: popart.SessionOptions(engineOptions=3), "engineOptions is 3; a dictionary"),
        (lambda: popart.InputShapeInfo().get("x"), "no input 'x'; there are none"),
        (lambda: popart.InferenceSession(SMALL), "a DataFlow and a device are needed"),
        (lambda: popart.SGD(float("nan")), "learning rate is nan; a number is needed"),
        (lambda: popart.SGD("fast"), "learning rate is 'fast'; a number is needed"),
    ],
)
def test_wrong_arguments_are_refused(call: Callable[[], object], text: str) -> None:
    with pytest.raises(popart.popart_exception, match=text):
        call()


def test_an_unknown_engine_option_is_refused_with_near_names() -> None:
    options = popart.SessionOptions(engineOptions={"debug.instrumen": "true"})
    flow = popart.DataFlow(1, ["b"])
    with pytest.raises(PoplarError, match="debug.instrument"):
        popart.InferenceSession(SMALL, flow, MANAGER.createCpuDevice(), userOptions=options)


def resized(opset: int, x: Array, inputs: list[object], **attributes: str) -> Array:
    """Run a Resize of these further inputs; attributes are noted on the node."""
    builder = popart.Builder(opsets={"ai.onnx": opset})
    name = builder.addInputTensor(popart.TensorInfo("FLOAT", x.shape))
    domain = builder.aiOnnx if opset == 10 else builder.aiOnnxOpset11
    rest = [one if isinstance(one, str) else domain.constant(one) for one in inputs]
    y = domain.resize([name, *rest])
    for attribute, value in attributes.items():
        builder.addNodeAttribute(attribute, value, {y})
    session = prepared(builder.getModelProto(), [y])
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({name: x}, out))
    return out[y]


REGION = np.zeros(0, np.float32)


@pytest.mark.parametrize(
    ("opset", "inputs", "attributes", "places"),
    [
        (10, [np.float16([2.0])], {}, [0, 0, 1, 1, 2, 2]),
        (11, [REGION, np.float16([2.0])], {"nearest_mode": "floor"}, [0, 0, 0, 1, 1, 2]),
        (11, [REGION, "", np.int64([6])], {"nearest_mode": "floor"}, [0, 0, 0, 1, 1, 2]),
        (11, [REGION, "", np.int32([6])], {"nearest_mode": "floor"}, [0, 0, 0, 1, 1, 2]),
        # PyTorch's nearest: element i / scale, whatever points are asked for
        (11, [REGION, np.float32([2.0])], {"nearest_mode": "pytorch"}, [0, 0, 1, 1, 2, 2]),
        (10, [np.float32([2.0])], {"nearest_mode": "pytorch"}, [0, 0, 1, 1, 2, 2]),
        (10, [np.float32([2.0])], {"nearest_mode": "ceil"}, [0, 1, 1, 2, 2, 2]),
    ],
)
def test_a_resize_takes_what_popart_does(
    opset: int, inputs: list[object], attributes: dict[str, str], places: list[int]
) -> None:
    x = np.float32([1, 2, 4])
    assert resized(opset, x, inputs, **attributes).tolist() == x[places].tolist()


def test_a_block_frees_a_group_of_ipus_and_keeps_a_model() -> None:
    with MANAGER.acquireAvailableDevice(16, tilesPerIpu=4) as group:
        assert group.isAttached
    assert not group.isAttached
    with MANAGER.createIpuModelDevice({"tilesPerIPU": 4}) as device:
        session = popart.InferenceSession(SMALL, popart.DataFlow(1, ["b"]), device)
        session.prepareDevice()
    out = session.initAnchorArrays()
    session.run(popart.PyStepIO({"a": np.float32([1, 2])}, out))
    assert out["b"].tolist() == [2, 4]


def test_a_device_on_demand_is_attached_by_its_session() -> None:
    device = MANAGER.acquireAvailableDevice(1, connectionType=popart.DeviceConnectionType.OnDemand)
    assert not device.isAttached
    session = popart.InferenceSession(SMALL, deviceInfo=device, dataFeed=popart.DataFlow(1, ["b"]))
    session.prepareDevice()
    assert device.isAttached
    assert device.attach()  # as it is already
    device.detach()


def test_more_ipus_than_there_are_are_refused_in_poparts_words() -> None:
    words = "Failed to acquire device with 256 IPUs. Ensure that there are sufficient IPUs"
    with pytest.raises(popart.popart_exception, match=words):
        MANAGER.acquireAvailableDevice(256)
    assert MANAGER.tryAcquireAvailableDevice(256) is None
    device = MANAGER.tryAcquireAvailableDevice(2)
    assert device.numIpus == 2
    device.detach()


def test_an_offline_device_is_compiled_for_and_never_loaded(tmp_path: Any) -> None:
    device = MANAGER.createOfflineIPUDevice({"tilesPerIPU": 4, "syncPattern": "full"})
    assert (device.type, device.tilesPerIPU) == (popart.DeviceType.OfflineIpu, 4)
    like = MANAGER.createOfflineIpuFromDeviceInfo(device)
    assert (like.version, like.tilesPerIPU, like.numIpus) == (device.version, 4, 1)
    session = popart.InferenceSession(SMALL, deviceInfo=device, dataFeed=popart.DataFlow(1, ["b"]))
    session.compileAndExport(tmp_path / "deeper" / "model.popef")
    assert (tmp_path / "deeper" / "model.popef").exists()
    with pytest.raises(popart.popart_exception, match="offline"):
        session.prepareDevice()


def test_a_simulated_device_has_four_tiles() -> None:
    assert MANAGER.createSimDevice().tilesPerIPU == 4
    assert MANAGER.createSimDevice({"numIPUs": 2, "tilesPerIPU": 8}).tilesPerIPU == 8


def test_an_older_name_of_an_option_is_written_to_the_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POPART_LOG_LEVEL", raising=False)
    popart.SessionOptions().prefetchBufferingDepthMap = {"a": 2}
    assert "prefetchBufferingDepthMap has been deprecated" in capsys.readouterr().err


def test_dithering_goes_to_the_library(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPLIBS_LOG_LEVEL", "DEBUG")
    builder = popart.Builder()
    data = builder.addInputTensor(popart.TensorInfo("FLOAT", [1, 1, 4, 4]))
    weights = builder.addInitializedInputTensor(np.ones((1, 1, 3, 3), np.float32))
    out = builder.aiOnnx.conv([data, weights])
    builder.setEnableConvDithering(out, 1)
    prepared(builder.getModelProto(), [out])
    lines = capsys.readouterr().err.splitlines()
    options = [line.split() for line in lines if " enableConvDithering " in line]
    assert {words[-1] for words in options} == {"1"}
    assert any("Planning convolution with a per-tile memory limit of" in line for line in lines)
