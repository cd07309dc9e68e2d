"""Write a model repository with the digits network in it.

    python examples/serving/make_repository.py models

A softmax regression is trained with NumPy, compiled for one IPU and a batch of 16, and written as
`models/digits/1/executable.popef` beside its configuration.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from simulator import popart
from simulator.examples.mlp_digits import CLASSES, PIXELS, load_digits

BATCH, STEPS, RATE = 16, 200, 0.5
CONFIG = f"""name: "digits"
backend: "poplar"
max_batch_size: 64
input [ {{ name: "image" data_type: TYPE_FP32 dims: [ {PIXELS} ] }} ]
output [ {{ name: "probability" data_type: TYPE_FP32 dims: [ {CLASSES} ]
           label_filename: "labels.txt" }} ]
instance_group [ {{ kind: KIND_CPU }} ]
dynamic_batching {{
  preferred_batch_size: [ {BATCH} ]
  max_queue_delay_microseconds: 500
}}
model_warmup [ {{ name: "zeros" batch_size: {BATCH}
  inputs {{ key: "image" value {{ data_type: TYPE_FP32 dims: [ {PIXELS} ] zero_data: true }} }} }} ]
parameters [ {{ key: "synchronous_execution" value: {{ string_value: "1" }} }} ]
"""


def trained() -> tuple[np.ndarray, np.ndarray]:
    """Train a softmax regression by gradient descent; return its weights and biases."""
    digits = load_digits()
    images, labels = digits.train_images, np.eye(CLASSES)[digits.train_labels]
    weights, biases = np.zeros((PIXELS, CLASSES)), np.zeros(CLASSES)
    for _ in range(STEPS):
        scores = images @ weights + biases
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = likely / likely.sum(axis=1, keepdims=True) - labels
        weights -= RATE * images.T @ error / len(images)
        biases -= RATE * error.mean(axis=0)
    return weights.astype(np.float32), biases.astype(np.float32)


def write_repository(repository: Path) -> None:
    """Compile the network and write it with its configuration, names and labels."""
    version = repository / "digits" / "1"
    version.mkdir(parents=True, exist_ok=True)
    (repository / "digits" / "config.pbtxt").write_text(CONFIG)
    (repository / "digits" / "labels.txt").write_text("".join(f"digit {n}\n" for n in range(10)))
    weights, biases = trained()
    builder = popart.Builder()
    image = builder.addInputTensor(popart.TensorInfo("FLOAT", [BATCH, PIXELS]), "image")
    layer = [builder.addInitializedInputTensor(array) for array in (weights, biases)]
    probability = builder.aiOnnx.softmax([builder.aiOnnx.gemm([image, *layer])])
    builder.addOutputTensor(probability)
    session = popart.InferenceSession(
        builder.getModelProto(),
        popart.DataFlow(1, {probability: popart.AnchorReturnType("ALL")}),
        popart.DeviceManager().createIpuModelDevice({"numIPUs": 1, "tilesPerIPU": 64}),
    )
    session.compileAndExport(str(version / "executable.popef"))
    (version / "name_map.json").write_text(json.dumps({probability: "probability"}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a repository with the digits network.")
    parser.add_argument("repository", type=Path, nargs="?", default=Path("models"))
    write_repository(parser.parse_args().repository)
