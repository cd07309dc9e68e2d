"""A small transformer for the digits: two blocks over the four by four patches of an image.

Built with PopART's names. `placed` says on which IPU each part of it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from simulator import popart

PATCHES, PIXELS = 16, 4  # of an image: 8 x 8 pixels, cut into patches of 2 x 2
WIDTH, HEADS, INNER = 64, 4, 256
CLASSES = 10
BATCH = 16  # images of a micro-batch
SEED = 3
EPSILON = 1e-5
OPSETS = {"ai.onnx": 11, "ai.graphcore": 1}

Placement = Mapping[str, int]

# Which IPU has which part. The attention of both blocks on IPU 0, or one on each IPU.
CROWDED: Placement = {
    "embedding": 0, "block1/attention": 0, "block1/mlp": 0, "block2/attention": 0,
    "block2/mlp": 1, "head": 1,
}  # fmt: skip
EVEN: Placement = {**CROWDED, "block2/attention": 1}


@dataclass(frozen=True, slots=True)
class Network:
    """An ONNX model and the names of its tensors."""

    proto: bytes
    images: str
    labels: str
    probabilities: str


@dataclass(slots=True)
class Making:
    """A network that is being built."""

    placed: Placement
    builder: popart.Builder = field(default_factory=lambda: popart.Builder(opsets=OPSETS))
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Put what is added within on the part's IPU, below its name."""
        with self.builder.virtualGraph(self.placed[name]), self.builder.nameScope(name):
            yield

    def weight(self, name: str, *shape: int, fill: float | None = None) -> str:
        """Add a weight: random, or `fill` in all places."""
        values = self.random.normal(size=shape) / np.sqrt(shape[0])
        values = values if fill is None else np.full(shape, fill)
        return self.builder.addInitializedInputTensor(values.astype(np.float32), name)

    def reshaped(self, data: str, *shape: int) -> str:
        """Return data another shape."""
        return str(self.builder.reshape_const(self.builder.aiOnnx, [data], list(shape)))

    def linear(self, name: str, data: str, inputs: int, outputs: int) -> str:
        """Multiply by a weight and add a bias."""
        operators = self.builder.aiOnnx
        with self.builder.nameScope(name):
            product = operators.matmul([data, self.weight("weight", inputs, outputs)])
            return str(operators.add([product, self.weight("bias", outputs, fill=0.0)]))

    def norm(self, data: str) -> str:
        """Normalise each row."""
        with self.builder.nameScope("norm"):
            given = [
                data,
                self.weight("scale", WIDTH, fill=1.0),
                self.weight("shift", WIDTH, fill=0.0),
            ]
            return str(self.builder.aiGraphcore.groupnormalization(given, 1, EPSILON)[0])

    def embedding(self, images: str) -> str:
        """Make a row of each patch, with its place in the image added."""
        patches = self.reshaped(images, BATCH * PATCHES, PIXELS)
        rows = self.linear("patch", patches, PIXELS, WIDTH)
        whole = self.reshaped(rows, BATCH, PATCHES, WIDTH)
        located = self.builder.aiOnnx.add([whole, self.weight("places", PATCHES, WIDTH)])
        return self.reshaped(located, BATCH * PATCHES, WIDTH)

    def attention(self, rows: str) -> str:
        """Let every patch look at the others of its image, in each head by itself."""
        operators = self.builder.aiOnnx
        size = WIDTH // HEADS
        seen = self.norm(rows)

        def heads(name: str, order: list[int]) -> str:
            values = self.linear(name, seen, WIDTH, WIDTH)
            split = self.reshaped(values, BATCH, PATCHES, HEADS, size)
            return str(operators.transpose([split], order))

        query, value = heads("query", [0, 2, 1, 3]), heads("value", [0, 2, 1, 3])
        key = heads("key", [0, 2, 3, 1])
        with self.builder.nameScope("scores"):
            root = operators.constant(np.float32(1 / np.sqrt(size)))
            scores = operators.mul([operators.matmul([query, key]), root])
            shares = operators.softmax([scores], axis=3)
        with self.builder.nameScope("mix"):
            mixed = operators.transpose([operators.matmul([shares, value])], [0, 2, 1, 3])
            together = self.reshaped(mixed, BATCH * PATCHES, WIDTH)
        return str(operators.add([rows, self.linear("out", together, WIDTH, WIDTH)]))

    def mlp(self, rows: str) -> str:
        """Add two products with a curve between."""
        inner = self.linear("inner", self.norm(rows), WIDTH, INNER)
        curve = self.builder.aiGraphcore.gelu([inner])
        return str(self.builder.aiOnnx.add([rows, self.linear("outer", curve, INNER, WIDTH)]))

    def head(self, rows: str) -> str:
        """Return the probability of each digit, from the mean of all patches."""
        operators = self.builder.aiOnnx
        whole = self.reshaped(self.norm(rows), BATCH, PATCHES, WIDTH)
        mean = operators.reducemean([whole], axes=[1], keepdims=0)
        return str(operators.softmax([self.linear("classes", mean, WIDTH, CLASSES)], axis=1))


def network(placed: Placement) -> Network:
    """Build the transformer with its parts placed on IPUs."""
    making = Making(placed)
    shape = [BATCH, PATCHES, PIXELS]
    images = making.builder.addInputTensor(popart.TensorInfo("FLOAT", shape), "images")
    labels = making.builder.addInputTensor(popart.TensorInfo("INT32", [BATCH]), "labels")
    with making.part("embedding"):
        rows = making.embedding(images)
    for block in ("block1", "block2"):
        with making.part(f"{block}/attention"):
            rows = making.attention(rows)
        with making.part(f"{block}/mlp"):
            rows = making.mlp(rows)
    with making.part("head"):
        probabilities = making.head(rows)
    making.builder.addOutputTensor(probabilities)
    return Network(making.builder.getModelProto(), images, labels, probabilities)
