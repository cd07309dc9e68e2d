"""A program for instances: train a small model, and write its losses and weights.

    python training.py FILE [SGD|Adam FACTOR]...

FILE gets the number of the instance. Alone it trains four replicas in one instance.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from simulator import popart, popdist
from simulator.popdist import popart as popdist_popart

STEPS, REPLICAS, SAMPLES = 20, 4, 2
OPTIMIZERS = {
    "SGD": lambda: popart.SGD(
        {"defaultLearningRate": (0.05, False), "defaultMomentum": (0.5, False)}
    ),
    "Adam": lambda: popart.Adam({"defaultLearningRate": (0.01, False)}),
}


def model() -> bytes:
    """Return two products with a tanh between them; the sum of what comes out is the loss."""
    random = np.random.default_rng(5)
    weights = {"w0": random.normal(size=(4, 6)), "w1": random.normal(size=(6, 3))}
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"]),
        helper.make_node("Tanh", ["h"], ["a"]),
        helper.make_node("MatMul", ["a", "w1"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [SAMPLES, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [SAMPLES, 3])],
        [numpy_helper.from_array(v.astype(np.float32), name) for name, v in weights.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)])
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


def train(optimizer: str, factor: int) -> dict[str, Any]:
    """Train 20 steps on the same data, of which each replica has its own; give what comes out."""
    options = popart.SessionOptions(
        enableGradientAccumulation=factor > 1, accumulationFactor=factor,
        enableReplicatedGraphs=True, replicatedGraphCount=REPLICAS,
    )  # fmt: skip
    if popdist.isPopdistEnvSet():
        popdist_popart.configureSessionOptions(options)
    here, first = options.replicas, popdist.getReplicaIndexOffset()
    device = popart.DeviceManager().createIpuModelDevice({"numIPUs": here, "ipuVersion": "tiny"})
    session = popart.TrainingSession(
        model(), popart.DataFlow(1, ["y"]), [popart.IdentityLoss("y", "loss")],
        OPTIMIZERS[optimizer](), device, userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    x = np.random.default_rng(1).normal(size=(STEPS, factor, REPLICAS, SAMPLES, 4))
    losses = []
    for step in x.astype(np.float32):
        anchors = session.initAnchorArrays()
        mine = np.ascontiguousarray(step[:, first : first + here])
        session.run(popart.PyStepIO({"x": mine}, anchors))
        losses.append(anchors["y"].reshape(factor, here, SAMPLES, 3))
    session.weightsToHost()
    weights = {"w0": np.zeros((4, 6), np.float32), "w1": np.zeros((6, 3), np.float32)}
    session.readWeights(weights)
    return {f"{optimizer}{factor}_y": np.array(losses)} | {
        f"{optimizer}{factor}_{name}": values for name, values in weights.items()
    }


if __name__ == "__main__":
    path, *words = sys.argv[1:]
    trained: dict[str, Any] = {}
    for name, number in zip(words[::2], words[1::2], strict=True):
        trained |= train(name, int(number))
    np.savez(f"{path}{popdist.getInstanceIndex()}", **trained)
