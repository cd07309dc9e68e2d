"""Small exports of transformers by both exporters of torch, against the outputs of torch.

`python -m benchmarks.zoo.fixtures tests/popart/exports` wrote them, with torch 2.13.0 and
transformers 5.23.0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models import tiny

from simulator import popart

FOLDER = Path(__file__).parent / "exports"
NAMES = sorted(path.stem for path in FOLDER.glob("*.onnx"))


@pytest.mark.parametrize("name", NAMES)
def test_an_export_gives_what_torch_gives(name: str) -> None:
    model = onnx.load(FOLDER / f"{name}.onnx")
    (fed,), (output,) = model.graph.input, model.graph.output
    flow = popart.DataFlow(1, [output.name])
    session = popart.InferenceSession(model, flow, tiny())
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    with np.load(FOLDER / f"{name}.npz") as stored:
        session.run(popart.PyStepIO({fed.name: stored["input"]}, anchors))
        np.testing.assert_allclose(anchors[output.name], stored["output"], rtol=1e-4, atol=1e-5)


def test_the_exports_are_small() -> None:
    assert len(NAMES) >= 10
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 300_000
