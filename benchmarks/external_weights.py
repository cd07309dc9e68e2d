"""A model whose weights take gigabytes, in a file beside it that has no blocks on the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

LOCATION, OPSET = "weights.bin", 17


def layers(count: int, width: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Make a chain of products with square matrices, one behind another in the file."""
    size = 4 * width * width
    weights = []
    for number in range(count):
        tensor = TensorProto(name=f"w{number}", data_type=TensorProto.FLOAT, dims=[width, width])
        tensor.data_location = TensorProto.EXTERNAL
        entries = {"location": LOCATION, "offset": size * number, "length": size}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
    names = ["x", *(f"y{number}" for number in range(count))]
    nodes = [
        helper.make_node("Gemm", [before, weight.name], [after], after)
        for before, weight, after in zip(names, weights, names[1:], strict=False)
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, width])
        for name in (names[0], names[-1])
    ]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model, {"x": np.ones((1, width), dtype=np.float32)}


def stretch_files(model: onnx.ModelProto, folder: Path) -> None:
    """Make the files of a model's external data, of zeros that take no room, below a folder."""
    for tensor in model.graph.initializer:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if entries:
            path = folder / entries["location"]
            with path.open("ab") as file:
                end = int(entries.get("offset", 0)) + int(entries.get("length", 0))
                file.truncate(max(end, path.stat().st_size))
