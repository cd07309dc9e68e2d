"""Elementwise and normalising operators are computed on the tiles that hold their input."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from models import node
from onnx import TensorProto, helper

import pva
from simulator import popart
from simulator.popart.operators.table import ELEMENTWISE

SHAPE = [2, 32, 16, 16]
TILES = 64  # an input of 16,384 elements lies on all of them
TRUTHS = ("And", "Not", "Or", "Xor")
NORMS = {
    "BatchNormalization": "x scale scale scale scale",
    "Dropout": "x",
    "InstanceNormalization": "x scale scale",
    "LayerNormalization": "x row",
    "LogSoftmax": "x",
    "LRN": "x",
    "MeanVarianceNormalization": "x",
    "Softmax": "x",
}
SEVERAL = dict.fromkeys(("Max", "Mean", "Min", "Mod", "Sum"), "x x")
INPUTS = {
    "BitShift": "bits bits",
    "Cast": "x",
    "Clip": "x low high",
    "Where": "truth x x",
    **SEVERAL,
    **NORMS,
}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "BitShift": {"direction": "LEFT"}, "Cast": {"to": 10}, "LRN": {"size": 5}, "Mod": {"fmod": 1},
}  # fmt: skip
# Its mean and deviation are tensors of 32, which lie on four tiles, and so is what is made of them.
MEANS = {"MeanVarianceNormalization": 0.01}
NAMES = sorted({*ELEMENTWISE, *NORMS} - {"OneHot"})  # OneHot makes an axis that its input has not


def _node(name: str) -> onnx.NodeProto:
    data = "truth" if name in TRUTHS else "whole" if name.startswith("Bitwise") else "x"
    count = onnx.defs.get_schema(name, 20, "").min_input
    inputs = INPUTS.get(name, " ".join([data] * count))
    return node(name, inputs, name, name=f"<{name}>", **ATTRIBUTES.get(name, {}))


@cache
def _costs() -> dict[str, list[tuple[float, int, float]]]:
    """Return for each compute set its share of the operator's cycles, its tiles, max over mean."""
    types = {"x": TensorProto.FLOAT, "truth": TensorProto.BOOL, "whole": TensorProto.INT32,
             "bits": TensorProto.UINT32}  # fmt: skip
    inputs = [helper.make_tensor_value_info(name, kind, SHAPE) for name, kind in types.items()]
    weights = {"scale": np.ones(32), "row": np.ones(16), "low": np.zeros(()), "high": np.ones(())}
    stored = [
        onnx.numpy_helper.from_array(np.float32(value), name) for name, value in weights.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in NAMES]
    graph = helper.make_graph([_node(name) for name in NAMES], "all", inputs, outputs, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    device = popart.DeviceManager().createIpuModelDevice({"tilesPerIPU": TILES})
    with TemporaryDirectory() as folder:
        options = {"autoReport.all": "true", "autoReport.directory": folder}
        session = popart.InferenceSession(
            model, popart.DataFlow(1, NAMES), device,
            userOptions=popart.SessionOptions(engineOptions=options),
        )  # fmt: skip
        session.prepareDevice()
        (report,) = Path(folder).rglob("profile.pop")
        frames = pva.openReport(str(report)).frames
        cycles = frames.compute_set_active_cycles_by_tile()
        sets = frames.compute_sets()["name"]
    by_set = (
        cycles[cycles["cycles"] > 0].groupby("compute_set")["cycles"].agg(["sum", "size", "max"])
    )
    costs: dict[str, list[tuple[float, int, float]]] = {}
    for name in NAMES:
        own = by_set[sets.loc[by_set.index].str.startswith(f"<{name}>").to_numpy()]
        share, slowest = own["sum"] / own["sum"].sum(), own["max"] * own["size"] / own["sum"]
        costs[name] = [*zip(share, own["size"], slowest, strict=True)]
    return costs


@pytest.mark.parametrize("name", NAMES)
def test_compute_sets_of_an_operator_use_half_of_the_tiles_of_its_input(name: str) -> None:
    costs = _costs()[name]
    assert costs or name == "Dropout"  # a view
    assert all(tiles >= TILES / 2 or share < MEANS.get(name, 0) for share, tiles, _ in costs), costs


@pytest.mark.parametrize("name", NAMES)
def test_costly_compute_sets_of_an_operator_are_balanced(name: str) -> None:
    assert all(slowest < 2 for share, _, slowest in _costs()[name] if share >= 0.1)


PADS: dict[str, dict[str, Any]] = {
    "AveragePool": {
        "kernel_shape": [3, 3], "strides": [1, 1], "pads": [1, 1, 1, 1], "count_include_pad": 1
    },
    "LRN": {"size": 5},
    "Pad": {"mode": "constant"},
}  # fmt: skip


@pytest.mark.parametrize("name", PADS)
def test_what_pads_a_tensor_lies_where_its_edge_lies(name: str, tmp_path: Path) -> None:
    field = helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)
    widths = onnx.numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "widths")
    made = node(name, "x widths" if name == "Pad" else "x", "y", **PADS[name])
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([made], "pads", [field], outputs, [widths])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    session = popart.InferenceSession(
        model, popart.DataFlow(1, ["y"]),
        popart.DeviceManager().createIpuModelDevice({"tilesPerIPU": TILES}),
        userOptions=popart.SessionOptions(
            engineOptions={"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
        ),
    )  # fmt: skip
    session.prepareDevice()
    (report,) = tmp_path.rglob("profile.pop")
    frames = pva.openReport(str(report)).frames
    pieces, names = frames.variable_pieces(), frames.variables()["name"]
    padding = pieces[(names.loc[pieces["variable"]] == "padding").to_numpy()]
    bytes_of_tiles = padding.groupby("tile")["bytes"].sum()
    assert bytes_of_tiles.sum() >= 4 * 2 * 32 * 2 * 16  # two sides of a row, or channels
    assert bytes_of_tiles.max() <= bytes_of_tiles.sum() / 4
