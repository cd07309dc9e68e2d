"""Train the digits network on the replicas of several instances, which share their gradients.

poprun --num-instances 2 --num-replicas 4 --out run python3 examples/digits_instances.py
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from simulator import popart, popdist
from simulator.examples.mlp_digits import load_digits
from simulator.popdist.popart import configureSessionOptions, getDevice

HIDDEN, SAMPLES, RATE = 32, 16, 0.2  # samples of a replica in a step


def initial_weights() -> dict[str, np.ndarray]:
    """Draw the weights, the same in every instance; biases start at zero."""
    random = np.random.default_rng(1)
    shapes = {"0": (64, HIDDEN), "1": (HIDDEN, 10)}
    drawn = {f"weight{n}": random.normal(0, s[0] ** -0.5, s) for n, s in shapes.items()}
    drawn |= {f"bias{n}": np.zeros(s[1]) for n, s in shapes.items()}
    return {name: values.astype(np.float32) for name, values in drawn.items()}


def model() -> tuple[bytes, str]:
    """Return a network of two layers, and the name of its loss."""
    builder = popart.Builder()
    image = builder.addInputTensor(popart.TensorInfo("FLOAT", [SAMPLES, 64]), "image")
    label = builder.addInputTensor(popart.TensorInfo("INT32", [SAMPLES]), "label")
    named = {
        name: builder.addInitializedInputTensor(values, name)
        for name, values in initial_weights().items()
    }
    hidden = builder.aiOnnx.relu([builder.aiOnnx.gemm([image, named["weight0"], named["bias0"]])])
    scores = builder.aiOnnx.gemm([hidden, named["weight1"], named["bias1"]])
    chances = builder.aiOnnx.softmax([scores])
    loss = builder.aiGraphcore.nllloss([chances, label], popart.ReductionType.Mean)
    return builder.getModelProto(), loss


def accuracy(weights: dict[str, np.ndarray], images: np.ndarray, labels: np.ndarray) -> float:
    """Return how many of the digits the weights tell right."""
    hidden = np.maximum(images @ weights["weight0"] + weights["bias0"], 0)
    return float(((hidden @ weights["weight1"] + weights["bias1"]).argmax(axis=1) == labels).mean())


def main() -> int:
    """Train some epochs; print the loss of this instance's replicas, and the accuracy of all."""
    parser = argparse.ArgumentParser(description="Train the digits network on several instances.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--target", default="tiny", help="mk1, mk2, bow or tiny")
    arguments = parser.parse_args()
    popdist.init()
    options = popart.SessionOptions(accumulationAndReplicationReductionType="Mean")
    configureSessionOptions(options)
    proto, loss = model()
    session = popart.TrainingSession(
        proto, popart.DataFlow(1, [loss]), deviceInfo=getDevice(1, ipuVersion=arguments.target),
        loss=loss, optimizer=popart.SGD(RATE), userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    digits, instance = load_digits(), popdist.getInstanceIndex()
    step, here = SAMPLES * popdist.getNumTotalReplicas(), SAMPLES * popdist.getNumLocalReplicas()
    first = SAMPLES * popdist.getReplicaIndexOffset()
    for epoch in range(arguments.epochs):
        losses = []
        for begin in range(first, len(digits.train_labels) - step + first + 1, step):
            mine = slice(begin, begin + here)
            images, labels = digits.train_images[mine], digits.train_labels[mine].astype(np.int32)
            anchors = session.initAnchorArrays()
            session.run(popart.PyStepIO({"image": images, "label": labels}, anchors))
            losses.append(anchors[loss].mean())
        print(f"instance {instance}, epoch {epoch + 1}: loss {np.mean(losses):.4f}")
    session.weightsToHost()
    weights = initial_weights()
    session.readWeights(weights)
    right = accuracy(weights, digits.test_images, digits.test_labels)
    print(f"instance {instance}: test accuracy {right:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
