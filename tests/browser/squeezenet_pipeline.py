"""Run SqueezeNet, as onnx ships it, over four IPUs in a pipeline, fed by a loader that is slow.

`tilescope simulate --sdk squeezenet_pipeline.py --out DIR` writes its report and host trace.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.backend.test
import popart

import pvti

MODEL = Path(onnx.backend.test.__file__).parent / "data" / "light" / "light_squeezenet.onnx"
BATCHES, RUNS = 8, 3  # a run takes so many batches through the stages
IMAGES = (BATCHES, 1, 3, 224, 224)


def build() -> popart.InferenceSession:
    """Compile the model for four stages, without values: memory and cycles are the same."""
    options = popart.SessionOptions()
    options.virtualGraphMode = popart.VirtualGraphMode.Auto
    options.enablePipelining = True
    options.engineOptions = {"simulator.computeValues": "false"}
    device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 4})
    outputs = popart.DataFlow(BATCHES, {"softmaxout_1": popart.AnchorReturnType("All")})
    session = popart.InferenceSession(str(MODEL), outputs, device, userOptions=options, name="")
    session.prepareDevice()
    session.weightsFromHost()
    return session


def decoded(random: np.random.Generator) -> np.ndarray:
    """Return a batch of images, decoded one by one."""
    with pvti.Tracepoint(CHANNEL, "loader: decode images"):
        return np.stack([random.normal(size=IMAGES[1:]) for _ in range(BATCHES)]).astype(np.float32)


CHANNEL = pvti.createTraceChannel("squeezenet_pipeline")
SESSION = build()
RANDOM = np.random.default_rng(5)
for _ in range(RUNS):
    SESSION.run(popart.PyStepIO({"data_0": decoded(RANDOM)}, SESSION.initAnchorArrays()))
