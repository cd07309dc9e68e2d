"""A pipeline gives the values of a run batch by batch, in less time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
        report = openReport(out / "inference")
        assert report.check()["holds"].fillna(True).all()
        cycles.append(report.execution.runs[0].cycles)
    assert cycles[1] < 0.8 * cycles[0]
    assert report.frames.programs()["name"].isin(["fill 0", "pipeline", "drain 0"]).any()


def test_nodes_on_one_ipu_make_no_pipeline() -> None:
    with pytest.raises(popart.popart_exception, match="needs nodes on at least 2 IPUs"):
        session_of(CHAIN, {"x4": popart.AnchorReturnType("ALL")}, 4, ipus=1)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_fewer_batches_than_stages_pass_through_a_pipeline(batches: int) -> None:
    given = RANDOM.normal(size=(batches, 8, SIZE)).astype(np.float32)
    kinds = {"x1": popart.AnchorReturnType("FINAL"), "x4": popart.AnchorReturnType("ALL")}
    found = values_of(session_of(CHAIN, kinds, batches, ipus=4), {"x0": given})
    expected = given @ WEIGHTS["w0"] @ WEIGHTS["w1"] @ WEIGHTS["w2"] @ WEIGHTS["w3"]
    np.testing.assert_allclose(found["x4"].reshape(given.shape), expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(found["x1"], given[-1] @ WEIGHTS["w0"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("period", "batches"), [(2, 7), (3, 9), (4, 4)])
def test_anchors_come_every_so_many_batches(period: int, batches: int) -> None:
    kinds = {"x1": popart.AnchorReturnType("EVERYN", period), "x4": popart.AnchorReturnType("ALL")}
    kinds["x3"] = popart.AnchorReturnType("EVERYN", 2)
    given = RANDOM.normal(size=(batches, 8, SIZE)).astype(np.float32)
    found = values_of(session_of(CHAIN, kinds, batches, ipus=4), {"x0": given})
    first = given @ WEIGHTS["w0"]
    third = first @ WEIGHTS["w1"] @ WEIGHTS["w2"]
    np.testing.assert_allclose(
        found["x1"], first[period - 1 :: period].reshape(found["x1"].shape), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(found["x3"], third[1::2], rtol=1e-3, atol=1e-5)


# Training
def training(
    proto: object, anchors: object, batches: int, *losses: Any, ipus: int, pipelined: bool,
    rate: float = 0.0, labels: list[int] | None = None, out: Path | None = None,
) -> popart.TrainingSession:  # fmt: skip
    """Prepare a training session whose nodes are balanced over IPUs."""
    options = popart.SessionOptions(autoVirtualGraph=True, enablePipelining=pipelined)
    if out is not None:
        options.engineOptions = {"autoReport.all": True, "autoReport.directory": str(out)}
    shapes = popart.InputShapeInfo()
    if labels is not None:
        shapes.add("labels", popart.TensorInfo("INT32", labels))
    session = popart.TrainingSession(
        proto, popart.DataFlow(batches, anchors), losses, popart.SGD(rate), tiny(ipus),
        inputShapeInfo=shapes, userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    return session


def test_an_anchored_weight_is_that_behind_the_change_of_its_batch() -> None:
    rate, batches, ones = 0.1, 4, np.ones((2, 6))
    w0, w1 = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((4, 6), (6, 6)))
    nodes = [node("MatMul", "x w0", "a"), node("MatMul", "a w1", "y")]
    proto = model(nodes, {"x": [2, 4]}, ["y"], {"w0": w0, "w1": w1})
    x = RANDOM.normal(size=(batches, 2, 4)).astype(np.float32)
    session = training(proto, ["w0", "w1"], batches, popart.IdentityLoss("y", "loss"), ipus=2,
                       pipelined=True, rate=rate)  # fmt: skip
    found = values_of(session, {"x": x})
    back = rate * x[0].T @ (ones @ w1.T)
    np.testing.assert_allclose(found["w0"][0], w0 - back, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["w1"][0], w1 - rate * (x[0] @ w0).T @ ones, rtol=1e-4)
    session.weightsToHost()
    last = {"w0": np.zeros_like(w0), "w1": np.zeros_like(w1)}
    session.readWeights(last)
    assert all((found[name][-1] == last[name]).all() for name in last)


def test_weights_change_as_each_batch_comes_back() -> None:
    rate, batches = 0.1, 5
    w0, w1 = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((4, 6), (6, 6)))
    nodes = [node("MatMul", "x w0", "a"), node("MatMul", "a w1", "y")]
    proto = model(nodes, {"x": [2, 4]}, ["y"], {"w0": w0, "w1": w1})
    x = RANDOM.normal(size=(batches, 2, 4)).astype(np.float32)
    session = training(proto, ["loss"], batches, popart.IdentityLoss("y", "loss"), ipus=2,
                       pipelined=True, rate=rate)  # fmt: skip
    found = values_of(session, {"x": x})["loss"]
    session.weightsToHost()
    weights = {"w0": np.zeros_like(w0), "w1": np.zeros_like(w1)}
    session.readWeights(weights)
    # The first layer's gradient of a batch comes two cycles after it went forward.
    losses, back = [], []
    for batch in range(batches):
        if batch >= 2:
            w0 = w0 - rate * x[batch - 2].T @ back[batch - 2]
        a = x[batch] @ w0
        losses.append((a @ w1).sum())
        back.append(np.ones((2, 6)) @ w1.T)
        w1 = w1 - rate * a.T @ np.ones((2, 6))
    for batch in (batches - 2, batches - 1):
        w0 = w0 - rate * x[batch].T @ back[batch]
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    np.testing.assert_allclose(weights["w0"], w0, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights["w1"], w1, rtol=1e-4, atol=1e-5)


def test_losses_of_an_earlier_stage_add_their_gradients_there() -> None:
    w0, w1 = (RANDOM.normal(size=shape).astype(np.float32) for shape in ((4, 6), (6, 6)))
    nodes = [node("MatMul", "x w0", "a"), node("MatMul", "a w1", "y")]
    proto = model(nodes, {"x": [2, 4]}, ["y"], {"w0": w0, "w1": w1})
    x = RANDOM.normal(size=(5, 2, 4)).astype(np.float32)
    losses = [popart.IdentityLoss("y", "main"), popart.L1Loss("a", "first", 0.1),
              popart.L1Loss("a", "second", 0.2)]  # fmt: skip
    anchors = ["Gradient___w0", "Gradient___x"]
    found = values_of(training(proto, anchors, 5, *losses, ipus=2, pipelined=True), {"x": x})
    reached = np.ones((2, 6)) @ w1.T + 0.3 * np.sign(x @ w0)
    expected = x.transpose(0, 2, 1) @ reached, reached @ w0.T
    for name, wanted in zip(anchors, expected, strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)


def test_a_batch_meets_its_own_activations_on_the_way_back() -> None:
    nodes = [
        node("MatMul", "x w0", "a"), node("Relu", "a", "b"), node("MatMul", "b w1", "c"),
        node("Add", "c b", "d"), node("Tanh", "d", "e"), node("MatMul", "e w2", "f"),
        node("Mul", "f e", "g"), node("MatMul", "g w3", "h"), node("Softmax", "h", "p"),
    ]  # fmt: skip
    weights = {f"w{i}": RANDOM.normal(size=(6, 6)).astype(np.float32) for i in range(4)}
    proto = model(nodes, {"x": [4, 6]}, ["p"], weights)
    given = {"x": RANDOM.normal(size=(8, 4, 6)).astype(np.float32),
             "labels": RANDOM.integers(0, 6, (8, 4)).astype(np.int32)}  # fmt: skip
    kinds = {f"Gradient___w{i}": popart.AnchorReturnType("ALL") for i in range(4)}
    kinds |= {"p": popart.AnchorReturnType("EVERYN", 3), "loss": popart.AnchorReturnType("ALL"),
              "Gradient___b": popart.AnchorReturnType("FINAL")}  # fmt: skip
    loss = popart.NllLoss("p", "labels", "loss")
    plain, piped = (
        values_of(training(proto, kinds, 8, loss, ipus=3, pipelined=p, labels=[4]), given)
        for p in (False, True)
    )
    for name in kinds:
        np.testing.assert_allclose(piped[name], plain[name], rtol=1e-3, atol=1e-5, err_msg=name)


def test_ways_there_and_back_overlap_and_the_report_shows_the_stages(tmp_path: Path) -> None:
    cycles = []
    for pipelined in (False, True):
        out = tmp_path / str(pipelined)
        session = training(CHAIN, ["loss"], 8, popart.IdentityLoss("x4", "loss"), ipus=2,
                           pipelined=pipelined, out=out)  # fmt: skip
        values_of(session, {"x0": np.zeros((8, 8, SIZE), np.float32)})
        report = openReport(out / "training")
        assert report.check()["holds"].fillna(True).all()
        cycles.append({run.name: run.cycles for run in report.execution.runs}["run"])
    assert cycles[1] < 0.85 * cycles[0]
    names = set(report.frames.programs()["name"])
    assert {"fill 0", "fill 1", "pipeline", "drain 0", "drain 1", "stage 2"} <= names


def test_a_branch_meets_its_own_activations_on_the_way_back() -> None:
    branches = {
        "then_branch": model([node("Mul", "a b", "o")], {}, ["o"]).graph,
        "else_branch": model([node("Tanh", "b", "o")], {}, ["o"]).graph,
    }
    nodes = [
        node("MatMul", "x w0", "a"), node("Sigmoid", "a", "b"), node("ReduceSum", "b", "t"),
        node("Greater", "t z", "p"), node("If", "p", "c", **branches), node("MatMul", "c w1", "d"),
        node("Abs", "d", "e"), node("MatMul", "e w2", "f"),
    ]  # fmt: skip
    weights = {f"w{i}": RANDOM.normal(size=(6, 6)).astype(np.float32) for i in range(3)}
    proto = model(nodes, {"x": [2, 6]}, ["f"], {**weights, "z": np.float32(6)})
    given = {"x": RANDOM.normal(size=(7, 2, 6)).astype(np.float32)}
    loss = popart.IdentityLoss("f", "loss")
    kinds = ["Gradient___w0", "Gradient___w1", "Gradient___w2", "p", "loss"]
    plain, piped = (
        values_of(training(proto, kinds, 7, loss, ipus=3, pipelined=p), given)
        for p in (False, True)
    )
    assert 0 < plain["p"].sum() < 7
    for name in kinds:
        np.testing.assert_allclose(piped[name], plain[name], rtol=1e-3, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("factor", [1, 2])
def test_few_micro_batches_change_the_weights_as_without_a_pipeline(factor: int) -> None:
    given = RANDOM.normal(size=(3 * factor, 8, SIZE)).astype(np.float32)
    found = []
    for pipelined in (False, True):
        options = popart.SessionOptions(
            autoVirtualGraph=True, enablePipelining=pipelined, enableGradientAccumulation=True,
            accumulationFactor=factor,
        )  # fmt: skip
        session = popart.TrainingSession(
            CHAIN, popart.DataFlow(3, ["x4"]), [popart.IdentityLoss("x4", "loss")],
            popart.SGD(1e-3), tiny(2), userOptions=options,
        )  # fmt: skip
        session.prepareDevice()
        session.weightsFromHost()
        found.append(values_of(session, {"x0": given})["x4"])
    untrained = given @ WEIGHTS["w0"] @ WEIGHTS["w1"] @ WEIGHTS["w2"] @ WEIGHTS["w3"]
    assert np.abs(found[0].reshape(given.shape)[-1] - untrained[-1]).max() > 0.1
    np.testing.assert_allclose(found[1], found[0], rtol=1e-3, atol=1e-4)


def test_a_weight_of_two_stages_has_the_gradients_of_both() -> None:
    x, w = (RANDOM.normal(size=(4, 4)).astype(np.float32) for _ in "xw")
    nodes = [node("Add", "x w", "a"), node("MatMul", "a w", "y")]  # the later one lays w out
    proto = model(nodes, {"x": [4, 4]}, ["y"], {"w": w})
    loss = popart.IdentityLoss("y", "loss")
    session = training(proto, ["Gradient___w"], 1, loss, ipus=2, pipelined=True)
    ones = np.ones((4, 4))
    expected = ones @ w.T + (x + w).T @ ones
    found = values_of(session, {"x": x[None]})["Gradient___w"]
    np.testing.assert_allclose(found.reshape(4, 4), expected, rtol=1e-4, atol=1e-5)


def test_a_way_back_is_refused() -> None:
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [2]))
    with builder.virtualGraph(1):
        y = builder.aiOnnx.relu([x])
    with builder.virtualGraph(0):
        z = builder.aiOnnx.neg([y])
    options = popart.SessionOptions(enablePipelining=True)
    flow = popart.DataFlow(4, [z])
    with pytest.raises(popart.popart_exception, match="in an earlier pipeline stage than it is"):
        popart.InferenceSession(builder.getModelProto(), flow, tiny(2), userOptions=options)
