"""Equal layers become a function: the values are the same, and its code is there once."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from models import model, node, tiny

import pva
from simulator import popart
from simulator.graph.types import Array
from simulator.popart.lowering import Lowering

RANDOM = np.random.default_rng(8)
LAYERS, WIDTH, ROWS, RATE = 4, 8, 16, 0.1
X = RANDOM.normal(size=(ROWS, WIDTH)).astype(np.float32)
WEIGHTS = [RANDOM.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 3 for _ in range(LAYERS)]
TYPES = popart.RecomputationType


def layers(ipus: int = 1) -> tuple[popart.Builder, str, str, list[str]]:
    """Build layers y + tanh(y @ w) / 2; give the input, the output and the weights."""
    builder = popart.Builder()
    x = y = builder.addInputTensor(popart.TensorInfo(X), "x")
    names = []
    for place, values in enumerate(WEIGHTS):
        scope = builder.nameScope(f"layer{place}")
        with scope, builder.virtualGraph(place * ipus // LAYERS):
            names.append(builder.addInitializedInputTensor(values, "w"))
            above = builder.aiOnnx.tanh([builder.aiOnnx.matmul([y, names[-1]])])
            y = builder.aiOnnx.add([y, builder.aiGraphcore.scale([above], 0.5)])
    builder.addOutputTensor(y)
    return builder, x, y, names


def through(x: Array, weights: Any = WEIGHTS) -> list[Array]:
    """Compute in NumPy what each layer is given, and the output."""
    given = [x.astype(float)]
    for weight in weights:
        given.append(given[-1] + np.tanh(given[-1] @ weight) / 2)
    return given


def changed(batches: Array) -> list[Array]:
    """Compute in NumPy the weights after a step for the sum of all outputs of some batches."""
    steps = [np.zeros((WIDTH, WIDTH)) for _ in WEIGHTS]
    for x in batches:
        given, grad = through(x), np.ones((ROWS, WIDTH))
        for place in reversed(range(LAYERS)):
            inner = grad * (1 - np.tanh(given[place] @ WEIGHTS[place]) ** 2) / 2
            steps[place] += given[place].T @ inner
            grad = grad + inner @ WEIGHTS[place].T
    return [weight - RATE * step for weight, step in zip(WEIGHTS, steps, strict=True)]


def calls(report: pva.Report) -> list[str]:
    """Name the calls of functions that were outlined."""
    found = (p.name for p in report.compilation.programs if p.type == pva.Program.Type.Call)
    return [name for name in found if "_subgraph" in name]


def functions(report: pva.Report) -> set[str]:
    """Name the functions that were outlined."""
    return {name.rpartition("/")[2] for name in calls(report)}


def inferred(batches: int = 1, device: Any = None, **given: Any) -> tuple[Array, pva.Report]:
    """Run batches of the layers; give the output and the report."""
    ipus = int(given.pop("ipus", 1))
    options = popart.SessionOptions(**given)
    builder, x, y, _ = layers(ipus)
    session = popart.InferenceSession(
        builder.getModelProto(), popart.DataFlow(batches, [y]), device or tiny(ipus),
        userOptions=options,
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: np.stack([X * (n + 1) for n in range(batches)])}, anchors))
    return anchors[y], session.getReport()


def trained(copies: int = 1, ipus: int = 1, **given: Any) -> tuple[list[Array], pva.Report]:
    """Train a step; give the weights and the report."""
    builder, x, y, names = layers(ipus)
    with builder.virtualGraph(ipus - 1):
        loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum)
    replicas = int(given.get("replicatedGraphCount", 1))
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, [loss]), loss, popart.SGD(RATE),
        tiny(ipus * replicas), userOptions=popart.SessionOptions(**given),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    inputs = np.stack([X * (n + 1) / copies for n in range(copies)])
    session.run(popart.PyStepIO({x: inputs}, session.initAnchorArrays()))
    session.weightsToHost()
    arrays = {name: np.zeros((WIDTH, WIDTH), np.float32) for name in names}
    session.readWeights(popart.PyWeightsIO(arrays))
    return [arrays[name] for name in names], session.getReport()


@pytest.mark.parametrize("outlining", [False, True])
def test_layers_are_a_function_if_asked_for(outlining: bool) -> None:
    values, report = inferred(enableOutlining=outlining)
    np.testing.assert_allclose(values, through(X)[-1], rtol=1e-5)
    names = [f"layer{n}/_subgraph(0)" for n in range(LAYERS)]
    assert calls(report) == (names if outlining else [])
    assert report.check()["holds"].fillna(True).all()


def test_the_report_is_the_same_but_for_copies_and_what_is_shared() -> None:
    device = popart.DeviceManager().createIpuModelDevice({"ipuVersion": "tiny"})
    (one, without), (other, shared) = (
        inferred(device=device, enableOutlining=on) for on in (False, True)
    )
    np.testing.assert_array_equal(one, other)

    def steps(report: pva.Report) -> list[tuple[str, int]]:
        names = report.frames.programs()["name"]
        rows = report.frames.steps()
        rows = rows[~names[rows["program"]].str.contains("subgraph").to_numpy()]
        return [row for row in zip(rows["type"], rows["cycles"], strict=True) if row[0] != "Sync"]

    assert steps(shared) == steps(without)
    sums = [r.frames.memory_by_category().groupby("category")["bytes"].sum() for r in
            (without, shared)]  # fmt: skip
    assert sums[1]["internalExchangeCode"] < sums[0]["internalExchangeCode"]
    assert sums[1]["vertexInstanceState"] < sums[0]["vertexInstanceState"]
    assert sums[1]["constant"] * LAYERS == sums[0]["constant"]  # the 0.5 of each layer


@pytest.mark.parametrize(
    ("threshold", "count"), [(1000.25, 4), (1000.35, 2), (2000.55, 2), (2000.65, 0)]
)
def test_a_function_is_worth_more_than_the_threshold(threshold: float, count: int) -> None:
    # A product is worth 1000, and each of tanh, scale and add 0.1: a layer 1000.3, two 2000.6.
    _, report = inferred(outlineThreshold=threshold)
    assert len(calls(report)) == count


@pytest.mark.parametrize(
    "options",
    [
        {"ipus": 2, "enablePipelining": True, "batches": 5},
        {"ipus": 2, "batches": 2},
        {"enableOutliningCopyCostPruning": False},
        {"outlineThreshold": -1},
    ],
    ids=str,
)
def test_values_are_those_of_the_nodes_one_by_one(options: dict[str, Any]) -> None:
    values, report = inferred(**options)
    single, _ = inferred(enableOutlining=False, **options)
    assert functions(report)
    np.testing.assert_array_equal(values, single)
    for number, batch in enumerate(values.reshape(-1, ROWS, WIDTH)):
        np.testing.assert_allclose(batch, through(X * (number + 1))[-1], rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"autoRecomputation": TYPES.Standard},
        {"autoRecomputation": TYPES.RecomputeAll},
        {"ipus": 2},
        {"ipus": 2, "copies": 6, "enablePipelining": True, "enableGradientAccumulation": True,
         "accumulationFactor": 6},
        {"ipus": 2, "copies": 6, "enablePipelining": True, "enableGradientAccumulation": True,
         "accumulationFactor": 6, "autoRecomputation": TYPES.Pipeline},
        {"copies": 4, "enableReplicatedGraphs": True, "replicatedGraphCount": 2,
         "enableGradientAccumulation": True, "accumulationFactor": 2},
    ],
    ids=str,
)  # fmt: skip
def test_training_changes_the_weights_as_numpy_does(options: dict[str, Any]) -> None:
    weights, report = trained(**options)
    copies = int(options.get("copies", 1))
    wanted = changed(np.stack([X * (n + 1) / copies for n in range(copies)]))
    assert functions(report)
    assert report.check()["holds"].fillna(True).all()
    for one, other in zip(weights, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_the_way_back_is_a_function_where_as_much_moves() -> None:
    # Nothing asks for the gradient of the input, so that the way back through layer 0 is alone.
    weights, report = trained()
    ahead = [f"layer{n}/_subgraph(0)" for n in range(LAYERS)]
    assert calls(report) == [*ahead, *(f"layer{n}/_subgraph(1)" for n in (3, 2, 1))]
    single, without = trained(enableOutlining=False)
    for one, other in zip(weights, single, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    sets = [len(r.frames.compute_sets()) for r in (report, without)]
    assert sets[0] < sets[1]


@pytest.mark.parametrize("place", [0, 1])
def test_gradients_that_are_asked_for_are_given(place: int) -> None:
    builder, x, y, names = layers()
    loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum)
    asked = [f"Gradient___{name}" for name in (x, names[place], names[place + 2])]
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, asked), loss, popart.SGD(RATE), tiny()
    )
    session.prepareDevice()
    session.weightsFromHost()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({x: X}, anchors))
    moved = [(w - new) / RATE for w, new in zip(WEIGHTS, changed(X[None]), strict=True)]
    for name, wanted in zip(asked[1:], moved[place::2], strict=False):
        np.testing.assert_allclose(anchors[name], wanted, rtol=1e-3, atol=1e-4)
    given, grad = through(X), np.ones((ROWS, WIDTH))
    for inner, weight in zip(given[-2::-1], WEIGHTS[::-1], strict=True):
        grad = grad + grad * (1 - np.tanh(inner @ weight) ** 2) / 2 @ weight.T
    np.testing.assert_allclose(anchors[asked[0]], grad, rtol=1e-3, atol=1e-4)


def statistics(enabled: bool) -> tuple[list[Array], set[str]]:
    """Train a batch of layers with norms; give their running means, and the functions."""
    builder = popart.Builder()
    x = y = builder.addInputTensor(popart.TensorInfo(X), "x")
    means = []
    for values in WEIGHTS:
        given = [builder.addInitializedInputTensor(np.full(WIDTH, n, np.float32)) for n in
                 (1, 0, 0, 1)]  # fmt: skip
        means.append(given[2])
        y = builder.aiOnnx.matmul([y, builder.addInitializedInputTensor(values)])
        y = builder.aiOnnx.batchnormalization([y, *given], 5, 1e-3, 0.9)[0]
    loss = builder.aiGraphcore.identityloss([y], popart.ReductionType.Sum)
    session = popart.TrainingSession(
        builder.getModelProto(), popart.DataFlow(1, [loss]), loss, popart.SGD(RATE), tiny(),
        userOptions=popart.SessionOptions(enableOutlining=enabled),
    )  # fmt: skip
    session.prepareDevice()
    session.weightsFromHost()
    session.run(popart.PyStepIO({x: X}, session.initAnchorArrays()))
    session.weightsToHost()
    arrays = {name: np.zeros(WIDTH, np.float32) for name in means}
    session.readWeights(popart.PyWeightsIO(arrays))
    return [arrays[name] for name in means], functions(session.getReport())


def test_running_statistics_that_a_function_changes_go_back() -> None:
    means, found = statistics(True)
    assert found
    np.testing.assert_allclose(means[0], 0.1 * (X @ WEIGHTS[0]).mean(axis=0), rtol=1e-4)
    for one, other in zip(means, statistics(False)[0], strict=True):
        np.testing.assert_array_equal(one, other)


def test_random_numbers_are_drawn_anew_in_every_call() -> None:
    nodes = [node("RandomUniformLike", "x", f"r{n}") for n in range(2)]
    nodes += [node("MatMul", f"r{n} w", f"y{n}") for n in range(2)]
    proto = model([nodes[n] for n in (0, 2, 1, 3)], {"x": [WIDTH, WIDTH]}, ["y0", "y1"],
                  {"w": np.eye(WIDTH, dtype=np.float32)})  # fmt: skip
    session = popart.InferenceSession(proto, popart.DataFlow(1, ["y0", "y1"]), tiny())
    session.prepareDevice()
    session.weightsFromHost()
    anchors = session.initAnchorArrays()
    session.run(popart.PyStepIO({"x": np.zeros((WIDTH, WIDTH), np.float32)}, anchors))
    assert functions(session.getReport())
    assert (anchors["y0"] != anchors["y1"]).any()
    assert all(0.3 < values.mean() < 0.7 for values in anchors.values())


@pytest.mark.parametrize("training", [False, True])
def test_nothing_holds_the_tensors_of_nodes_once_the_graph_is_built(training: bool) -> None:
    def alive() -> int:
        return sum(isinstance(held, Lowering) for held in gc.get_objects())

    gc.collect()
    before = alive()
    gc.disable()  # so that what holds itself stays
    try:
        (trained if training else inferred)()
        assert alive() == before
    finally:
        gc.enable()
