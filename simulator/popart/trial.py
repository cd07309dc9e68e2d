"""Small sessions to try a call on, as the examples of their methods do."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulator import popart

MACHINE = {"numIPUs": 1, "tilesPerIPU": 4}


def inference(**options: Any) -> tuple[popart.InferenceSession, str, str]:
    """Return a session that makes y = relu(x) of two floats; `options` are those of the session.

    >>> import numpy as np
    >>> from simulator import popart
    >>> from simulator.popart import trial
    >>> session, x, y = trial.inference()
    >>> session.prepareDevice()
    >>> anchors = session.initAnchorArrays()
    >>> session.run(popart.PyStepIO({x: np.float32([-1.0, 2.0])}, anchors))
    >>> anchors[y].tolist()
    [0.0, 2.0]
    """
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [2])
    y = builder.aiOnnx.relu([x])
    return _session(builder, y, options), x, y


def weighted() -> tuple[popart.InferenceSession, str, str, str]:
    """Return a session that makes y = x * w, where the weight w is 3 and 4.

    >>> from simulator.popart import trial
    >>> session, x, w, y = trial.weighted()
    >>> session.getInfo(w).shape()
    [2]
    """
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [2])
    w = builder.addInitializedInputTensor(np.array([3.0, 4.0], np.float32), "w")
    y = builder.aiOnnx.mul([x, w])
    return _session(builder, y, {}), x, w, y


def random(**options: Any) -> tuple[popart.InferenceSession, str]:
    """Return a session that draws two numbers, y.

    >>> from simulator.popart import trial
    >>> session, y = trial.random()
    >>> session.inputs
    []
    """
    builder = popart.Builder()
    y = builder.aiOnnx.randomuniform(shape=[2])
    return _session(builder, y, options), y


def training() -> tuple[popart.TrainingSession, str, str, str]:
    """Return a session whose loss is |x w|, where w is 3 and learns at a rate of 0.5.

    >>> from simulator.popart import trial
    >>> session, x, w, loss = trial.training()
    >>> session.getInfo(w).shape()
    [1, 1]
    """
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [1, 1])
    w = builder.addInitializedInputTensor(np.array([[3.0]], np.float32))
    loss = builder.aiGraphcore.l1loss([builder.aiOnnx.matmul([x, w])], 1.0)
    device = popart.DeviceManager().createIpuModelDevice(MACHINE)
    step = popart.SGD({"defaultLearningRate": (0.5, False)})
    flow = popart.DataFlow(1, [loss])
    return popart.TrainingSession(builder.getModelProto(), flow, loss, step, device), x, w, loss


def save(file: str) -> tuple[str, str]:
    """Compile y = relu(x) of three floats into a file; return the names of x and y.

    >>> from tempfile import TemporaryDirectory
    >>> from simulator import model_runtime
    >>> from simulator.popart import trial
    >>> with TemporaryDirectory() as folder:
    ...     x, y = trial.save(f"{folder}/net.popef")
    ...     session = model_runtime.Session(f"{folder}/net.popef")
    ...     session.bindToDevice()
    ...     session.runLoadPrograms()
    """
    builder = popart.Builder()
    x = builder.addInputTensor("FLOAT", [3])
    y = builder.aiOnnx.relu([x])
    device = popart.DeviceManager().createSimDevice()
    flow = popart.DataFlow(1, [y])
    session = popart.InferenceSession(builder.getModelProto(), flow, device)
    session.prepareDevice()
    session.saveExecutable(file)
    return x, y


def _session(
    builder: popart.Builder, output: str, options: dict[str, Any]
) -> popart.InferenceSession:
    builder.addOutputTensor(output)
    return popart.InferenceSession(
        builder.getModelProto(),
        popart.DataFlow(1, [output]),
        popart.DeviceManager().createIpuModelDevice(MACHINE),
        userOptions=popart.SessionOptions(**options),
    )
