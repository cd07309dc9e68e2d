"""Stages that the builder has noted: several on an IPU, in any order of IPUs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from models import tiny

from pva.report import openReport
from simulator import popart
from simulator.graph.types import Array

SIZE, BATCHES = 6, 7
RANDOM = np.random.default_rng(7)
IMAGES = RANDOM.normal(size=(BATCHES, 4, SIZE)).astype(np.float32)
WEIGHT = (RANDOM.normal(size=(SIZE, SIZE)) / 3).astype(np.float32)
ANCHORS = ["loss", "Gradient___w"]


def tied(places: Sequence[tuple[int, int | None]]) -> tuple[bytes, str]:
    """Build sin(x w), tanh of it, and that times w again; each on its IPU, in its stage."""
    builder = popart.Builder(opsets={"ai.onnx": 10, "ai.graphcore": 1})
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [4, SIZE]), "x")
    w = builder.addInitializedInputTensor(WEIGHT, "w")
    operators = builder.aiOnnx
    a = operators.matmul([x, w])
    b = operators.sin([a])
    c = operators.tanh([b])
    y = operators.matmul([c, w])
    loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum, "loss")
    for name, (ipu, stage) in zip((a, b, c, y, loss), places, strict=True):
        builder.virtualGraph(name, ipu)
        if stage is not None:
            builder.pipelineStage(name, stage)
    builder.addOutputTensor(loss)
    return builder.getModelProto(), loss


def trained(
    places: Sequence[tuple[int, int | None]], *, pipelined: bool = True, ipus: int = 2,
    recompute: str = "NoRecompute", out: Path | None = None,
) -> tuple[dict[str, Array], Array]:  # fmt: skip
    """Return the anchors of a run, and the weight after it, whose gradients are accumulated."""
    proto, loss = tied(places)
    options = popart.SessionOptions(
        virtualGraphMode=popart.VirtualGraphMode.Manual, enablePipelining=pipelined,
        enableGradientAccumulation=True, accumulationFactor=BATCHES,
        autoRecomputation=popart.RecomputationType[recompute],
    )  # fmt: skip
    if out is not None:
        options.engineOptions = {"autoReport.all": True, "autoReport.directory": str(out)}
    session = popart.TrainingSession(
        proto, popart.DataFlow(1, {loss: popart.AnchorReturnType("ALL")}), loss,
        popart.SGD({"defaultLearningRate": (0.1, True)}), tiny(ipus), userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"x": IMAGES}, anchors))
    weight = np.zeros_like(WEIGHT)
    session.weightsToHost()
    session.readWeights(popart.PyWeightsIO({"w": weight}))
    return {"loss": anchors[loss]}, weight


def by_hand() -> tuple[Array, Array]:
    """Return the losses, and the weight after a step along the sum of its gradients."""
    x, w = IMAGES.astype(float), WEIGHT.astype(float)
    a = x @ w
    c = np.tanh(np.sin(a))
    back = np.ones((BATCHES, 4, SIZE)) @ w.T * (1 - c**2) * np.cos(a)
    gradient = (x.swapaxes(1, 2) @ back + c.swapaxes(1, 2) @ np.ones_like(c)).sum(axis=0)
    return (c @ w).sum(axis=(1, 2)), w - 0.1 * gradient


PLACES = {
    "the first and last stage on one IPU": [(0, 0), (1, 1), (1, 1), (0, 2), (0, 2)],
    "down and up twice": [(0, 0), (1, 1), (0, 2), (1, 3), (1, 3)],
    "from the last IPU to the first": [(1, 0), (1, 0), (0, 1), (0, 1), (0, 1)],
    "numbers that leave some out": [(0, 1), (1, 4), (1, 4), (0, 9), (0, 9)],
}


@pytest.mark.parametrize("recompute", ["NoRecompute", "Pipeline"])
@pytest.mark.parametrize("name", PLACES)
def test_a_weight_learns_from_all_stages_that_read_it(name: str, recompute: str) -> None:
    anchors, weight = trained(PLACES[name], recompute=recompute)
    losses, expected = by_hand()
    np.testing.assert_allclose(anchors["loss"].reshape(-1), losses, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weight, expected, rtol=1e-4, atol=1e-5)


def test_stages_that_follow_each_other_on_an_ipu_are_one(tmp_path: Path) -> None:
    cycles = []
    for number, stages in enumerate([(0, 1, 2, 5, 5), (0, 0, 0, 1, 1)]):
        out = tmp_path / str(number)
        trained(list(zip((0, 0, 0, 1, 1), stages, strict=True)), out=out)
        cycles.append(openReport(out / "training").execution.runs[-1].cycles)
    assert cycles[0] == cycles[1]


def test_the_report_names_three_stages_and_the_two_back(tmp_path: Path) -> None:
    trained(PLACES["the first and last stage on one IPU"], out=tmp_path / "out")
    report = openReport(tmp_path / "out" / "training")
    assert report.check()["holds"].fillna(True).all()
    names = set(report.frames.programs()["name"])
    assert {name for name in names if name.startswith("stage ")} == {f"stage {n}" for n in range(5)}


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([(0, 0), (0, 0), (1, 0), (1, 1), (1, 1)], "have the same pipeline stage 0, but are on"),
        ([(0, 0), (0, 0), (1, None), (1, 1), (1, 1)], "^Only some ops have had their pipeline"),
        ([(0, 1), (0, 1), (1, 0), (1, 2), (1, 2)], "is consumed in an earlier pipeline stage"),
        ([(1, 0), (1, 1), (1, 2), (1, 3), (1, 3)], "needs nodes on at least 2 IPUs"),
    ],
)
def test_stages_that_make_no_pipeline_are_refused(
    places: list[tuple[int, int | None]], words: str
) -> None:
    with pytest.raises(popart.popart_exception, match=words):
        trained(places)
