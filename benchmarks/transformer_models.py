"""Transformers of published sizes, made here: with random weights, or with weights in no file."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEED = 7
OPSET = 17


@dataclass(frozen=True)
class Size:
    """The sizes of a transformer; `causal` ones see no later word, and end in a vocabulary."""

    layers: int
    hidden: int
    heads: int
    words: int
    vocabulary: int
    causal: bool = False
    half: bool = False


BERT_BASE = Size(12, 768, 12, 128, 30_522, half=True)
BERT_LARGE = Size(24, 1024, 16, 128, 30_522, half=True)
GPT2_SMALL = Size(12, 768, 12, 128, 50_257, causal=True)


@dataclass
class Making:
    """The nodes and weights of a transformer so far; `stored` says whether weights have values."""

    size: Size
    stored: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))

    @property
    def dtype(self) -> type[np.floating]:
        """Return the element type of weights and activations."""
        return np.float16 if self.size.half else np.float32

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        """Add a node; give its output."""
        name = f"{operator}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name, **attributes))
        return name

    def weight(self, name: str, *shape: int, fill: float | None = None) -> str:
        """Add a weight: random, or `fill` in all places; without values where none are stored."""
        if not self.stored:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
            tensor = TensorProto(name=name, data_type=kind, dims=shape)
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights-in-no-file")
        else:
            values = self.random.normal(size=shape) / np.sqrt(shape[0])
            values = values if fill is None else np.full(shape, fill)
            tensor = numpy_helper.from_array(values.astype(self.dtype), name)
        self.weights.append(tensor)
        return name

    def constant(self, name: str, values: object, dtype: type = np.int64) -> str:
        """Add a tensor that is known; give its name."""
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def linear(self, name: str, data: str, inputs: int, outputs: int) -> str:
        """Multiply with a weight and add a bias."""
        product = self.add("MatMul", data, self.weight(f"{name}/weight", inputs, outputs))
        return self.add("Add", product, self.weight(f"{name}/bias", outputs, fill=0.0))

    def norm(self, name: str, data: str) -> str:
        """Normalise the last dimension."""
        width = self.size.hidden
        scale = self.weight(f"{name}/scale", width, fill=1.0)
        shift = self.weight(f"{name}/shift", width, fill=0.0)
        return self.add("LayerNormalization", data, scale, shift, axis=-1)

    def attention(self, name: str, data: str) -> str:
        """Let every word look at the others, in each head by itself."""
        size = self.size
        width = size.hidden // size.heads
        heads = {}
        for part, order in (
            ("query", [0, 2, 1, 3]),
            ("key", [0, 2, 3, 1]),
            ("value", [0, 2, 1, 3]),
        ):
            rows = self.linear(f"{name}/{part}", data, size.hidden, size.hidden)
            split = self.add("Reshape", rows, "in_heads")
            heads[part] = self.add("Transpose", split, perm=order)
        scale = self.constant(f"{name}/root", np.sqrt(width), self.dtype)
        scores = self.add("Div", self.add("MatMul", heads["query"], heads["key"]), scale)
        if size.causal:
            later = np.triu(np.full((size.words, size.words), -10_000.0), 1)
            scores = self.add("Add", scores, self.constant(f"{name}/later", later, self.dtype))
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), heads["value"])
        together = self.add("Transpose", mixed, perm=[0, 2, 1, 3])
        rows = self.add("Reshape", together, "in_rows")
        return self.linear(f"{name}/output", rows, size.hidden, size.hidden)

    def gelu(self, name: str, data: str) -> str:
        """Compute x/2 * (1 + erf(x / sqrt(2)))."""
        root = self.constant(f"{name}/root", np.sqrt(2.0), self.dtype)
        one, half = (self.constant(f"{name}/{v}", v, self.dtype) for v in (1.0, 0.5))
        curve = self.add("Add", self.add("Erf", self.add("Div", data, root)), one)
        return self.add("Mul", self.add("Mul", data, curve), half)

    def layer(self, name: str, data: str) -> str:
        """Add one layer: attention, then two products with a curve between."""
        width = self.size.hidden
        seen = self.norm(f"{name}/norm1", data) if self.size.causal else data
        data = self.add("Add", data, self.attention(f"{name}/attention", seen))
        if not self.size.causal:
            data = self.norm(f"{name}/norm1", data)
        seen = self.norm(f"{name}/norm2", data) if self.size.causal else data
        inner = self.gelu(name, self.linear(f"{name}/inner", seen, width, 4 * width))
        data = self.add("Add", data, self.linear(f"{name}/outer", inner, 4 * width, width))
        return data if self.size.causal else self.norm(f"{name}/norm2", data)


def transformer(size: Size, *, stored: bool) -> onnx.ModelProto:
    """Make a transformer of one batch; without `stored` its weights are in a file that is not."""
    making = Making(size, stored)
    width = size.hidden // size.heads
    making.constant("in_heads", [1, size.words, size.heads, width])
    making.constant("in_rows", [1, size.words, size.hidden])
    table = making.weight("words", size.vocabulary, size.hidden)
    data = making.add("Gather", table, "ids", axis=0)
    data = making.add("Add", data, making.weight("places", size.words, size.hidden))
    data = data if size.causal else making.norm("embedding", data)
    for number in range(size.layers):
        data = making.layer(f"layer{number}", data)
    if size.causal:
        data = making.add("MatMul", making.norm("last", data), making.add("Transpose", table))
    ids = helper.make_tensor_value_info("ids", TensorProto.INT32, [1, size.words])
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(making.dtype))
    outputs = size.vocabulary if size.causal else size.hidden
    out = helper.make_tensor_value_info(data, kind, [1, size.words, outputs])
    graph = helper.make_graph(making.nodes, "transformer", [ids], [out], making.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def words(size: Size) -> dict[str, np.ndarray]:
    """Make the input: random words."""
    ids = np.random.default_rng(SEED + 1).integers(0, size.vocabulary, (1, size.words))
    return {"ids": ids.astype(np.int32)}
