"""Architectures that onnx ships run on an Mk2, with the values of its reference evaluator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.light_models import expected, image, light_model
from pva.report import openReport
from simulator import popart


@pytest.mark.parametrize("name", ["squeezenet", "bvlc_alexnet"])
def test_a_model_has_the_references_values_and_leaves_a_report(name: str, tmp_path: Path) -> None:
    model = light_model(name)
    inputs = image(model)
    (output,) = (value.name for value in model.graph.output)
    written = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    device = popart.DeviceManager().createIpuModelDevice(
        {"ipuVersion": "mk2", "compileIPUCode": False}
    )
    session = popart.InferenceSession(
        model,
        popart.DataFlow(1, [output]),
        device,
        userOptions=popart.SessionOptions(engineOptions=written),
    )
    session.prepareDevice()
    session.weightsFromHost()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO(inputs, anchors))
    np.testing.assert_allclose(anchors[output], expected(model, inputs), rtol=1e-3)
    report = openReport(tmp_path / "inference")
    assert report.check()["holds"].fillna(True).all()
    # A dropout that is not trained goes; of what is left, debug contexts have the names.
    left = [node for node in model.graph.node if node.op_type != "Dropout"]
    named = {node.name or f"{node.op_type}/{node.output[0]}" for node in left}
    assert named <= set(report.frames.debug_contexts()["name"])
