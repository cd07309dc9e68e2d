"""Small models, compiled and written to a repository as users do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from simulator import popart

WEIGHTS = np.arange(24, dtype=np.float32).reshape(8, 3) / 10
# Types that a device has or holds in others, by their names in ONNX, and in config.pbtxt.
TYPES = {
    "FLOAT": "FP32", "FLOAT16": "FP16", "INT32": "INT32", "UINT32": "UINT32", "BOOL": "BOOL",
    "UINT8": "UINT8", "INT8": "INT8", "INT16": "INT16", "UINT16": "UINT16",
    "INT64": "INT64", "UINT64": "UINT64", "DOUBLE": "FP64",
}  # fmt: skip
CONFIG = """backend: "poplar"
max_batch_size: {most}
input [ {{ name: "x" data_type: TYPE_{kind} dims: [ {inner} ] }} ]
output [ {{ name: "y" data_type: TYPE_{kind} dims: [ {outer} ] {labels} }} ]
instance_group [ {{ kind: KIND_CPU count: {instances} }} ]
"""
SYNCHRONOUS = 'parameters { key: "synchronous_execution" value { string_value: "1" } }\n'


def write_model(
    repository: Path, name: str, more: str = SYNCHRONOUS, *, most: int = 16, instances: int = 1,
    kind: str = "FP32", inner: int = 8, outer: int = 3, labels: str = "",
) -> Path:  # fmt: skip
    """Write the configuration of a model; return its folder."""
    folder = repository / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    text = CONFIG.format(most=most, kind=kind, inner=inner, outer=outer, instances=instances,
                         labels=labels)  # fmt: skip
    (folder / "config.pbtxt").write_text(text + more)
    return folder


def compile_linear(path: Path, batch: int = 4) -> None:
    """Compile y = x @ WEIGHTS for so many rows; write it, and the names that clients use."""
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [batch, 8]), "x")
    y = builder.aiOnnx.matmul([x, builder.addInitializedInputTensor(WEIGHTS, "w")])
    _compile(builder, y, path)


def compile_identity(path: Path, kind: str, batch: int = 2) -> None:
    """Compile y = x of a type, with 3 elements a row."""
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo(kind, [batch, 3]), "x")
    _compile(builder, builder.aiOnnx.transpose([x], [0, 1]), path)


def _compile(builder: popart.Builder, output: str, path: Path) -> None:
    builder.addOutputTensor(output)
    flow = popart.DataFlow(1, {output: popart.AnchorReturnType("ALL")})
    machine = {"numIPUs": 1, "tilesPerIPU": 4}
    device = popart.DeviceManager().createIpuModelDevice(machine)
    session = popart.InferenceSession(builder.getModelProto(), flow, device)
    session.compileAndExport(str(path / "executable.popef"))
    (path / "name_map.json").write_text(json.dumps({output: "y"}))
