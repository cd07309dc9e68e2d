"""A program for instances: each has weights of its own, and takes those of one.

    python broadcast.py FILE ROOT

FILE gets the number of the instance: an output with the weights, and what the host has then.
"""

from __future__ import annotations

import sys

import numpy as np

from simulator import popart, popdist


def main(file: str, root: int) -> None:
    """Add what is broadcast to zeros."""
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2, 3]), debugContext="x")
    own = np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * popdist.getInstanceIndex()
    w = builder.addInitializedInputTensor(own, debugContext="w")
    half = builder.addInitializedInputTensor(own.astype(np.float16), debugContext="half")
    out = builder.aiOnnx.add([builder.aiOnnx.add([x, w]), builder.aiOnnx.cast([half], "FLOAT")])
    session = popart.InferenceSession(
        builder.getModelProto(),
        popart.DataFlow(1, [out]),
        popart.DeviceManager().createIpuModelDevice({"numIPUs": 1, "ipuVersion": "tiny"}),
    )
    session.broadcastWeights(root)
    session.prepareDevice()
    session.weightsFromHost()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.zeros((2, 3), np.float32)}, anchors))
    np.save(f"{file}{popdist.getInstanceIndex()}.npy", anchors[out])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
