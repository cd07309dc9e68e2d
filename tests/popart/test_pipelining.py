"""A pipeline gives the values of a run batch by batch, in less time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models import model, node, tiny

from pva.report import openReport
from simulator import popart
from simulator.graph.types import Array

SIZE = 64
RANDOM = np.random.default_rng(2)
NODES = [node("MatMul", f"x{i} w{i}", f"x{i + 1}") for i in range(4)]
WEIGHTS = {f"w{i}": RANDOM.normal(size=(SIZE, SIZE)).astype(np.float32) / 8 for i in range(4)}
CHAIN = model(NODES, {"x0": [8, SIZE]}, ["x4"], WEIGHTS)


def session_of(
    proto: object, anchors: object, batches: int, *, ipus: int = 2, pipelined: bool = True,
    out: Path | None = None,
) -> popart.InferenceSession:  # fmt: skip
    """Prepare a session whose nodes are balanced over IPUs."""
    options = popart.SessionOptions(autoVirtualGraph=True, enablePipelining=pipelined)
    if out is not None:
        options.engineOptions = {"autoReport.all": True, "autoReport.directory": str(out)}
    flow = popart.DataFlow(batches, anchors)
    session = popart.InferenceSession(proto, flow, tiny(ipus), userOptions=options)
    session.prepareDevice()
    session.weightsFromHost()
    return session


def values_of(session: popart.InferenceSession, inputs: dict[str, Array]) -> dict[str, Array]:
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO(inputs, anchors))
    return anchors


@pytest.mark.parametrize("ipus", [2, 4])
def test_values_are_those_of_each_batch(ipus: int) -> None:
    given = RANDOM.normal(size=(5, 8, SIZE)).astype(np.float32)
    expected = given
    for weights in WEIGHTS.values():
        expected = expected @ weights
    found = values_of(session_of(CHAIN, ["x4"], 5, ipus=ipus), {"x0": given})
    np.testing.assert_allclose(found["x4"], expected, rtol=1e-3, atol=1e-5)


def test_what_skips_a_stage_waits_for_its_batch() -> None:
    nodes = [*NODES, node("Add", "x4 x1", "y"), node("Add", "y x0", "z")]
    proto = model(nodes, {"x0": [8, SIZE]}, ["z"], WEIGHTS)
    given = {"x0": RANDOM.normal(size=(6, 8, SIZE)).astype(np.float32)}
    kinds = {"z": popart.AnchorReturnType("ALL"), "y": popart.AnchorReturnType("FINAL")}
    plain, piped = (
        values_of(session_of(proto, kinds, 6, ipus=4, pipelined=p), given) for p in (False, True)
    )
    np.testing.assert_allclose(piped["z"], plain["z"], rtol=1e-5)
    np.testing.assert_allclose(piped["y"], plain["y"], rtol=1e-5)


def test_batches_overlap(tmp_path: Path) -> None:
    cycles = []
    for pipelined in (False, True):
        out = tmp_path / str(pipelined)
        session = session_of(CHAIN, ["x4"], 8, pipelined=pipelined, out=out)
        values_of(session, {"x0": np.zeros((8, 8, SIZE), np.float32)})
        report = openReport(out)
        assert report.check()["holds"].fillna(True).all()
        cycles.append(report.execution.runs[1].cycles)
    assert cycles[1] < 0.8 * cycles[0]
    assert report.frames.programs()["name"].isin(["fill 0", "pipeline", "drain 0"]).any()


@pytest.mark.parametrize(
    ("ipus", "batches", "kind", "text"),
    [
        (1, 4, "ALL", "needs nodes on at least 2 IPUs"),
        (2, 1, "ALL", "2 stages needs as many batches a step; there are 1"),
        (2, 4, "EVERYN", "anchor 'x4': a pipeline gives ALL or FINAL"),
    ],
)
def test_what_makes_no_pipeline_is_refused(ipus: int, batches: int, kind: str, text: str) -> None:
    with pytest.raises(popart.popart_exception, match=text):
        session_of(CHAIN, {"x4": popart.AnchorReturnType(kind)}, batches, ipus=ipus)


def test_a_way_back_is_refused() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    with builder.virtualGraph(1):
        y = builder.aiOnnx.relu([x])
    with builder.virtualGraph(0):
        z = builder.aiOnnx.neg([y])
    options = popart.SessionOptions(enablePipelining=True)
    flow = popart.DataFlow(4, [z])
    session = popart.InferenceSession(builder.getModelProto(), flow, tiny(2), userOptions=options)
    with pytest.raises(popart.popart_exception, match="a pipeline goes on from IPU to IPU"):
        session.prepareDevice()
