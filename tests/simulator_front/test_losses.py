"""Losses with their gradients, accuracy, and the search for the best class, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from pva.check import check
from pva.formats import registry
from simulator import popnn, popops, poputil
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT
from simulator.poplar import Engine, Graph, IPUModel

MASK = popnn.MASKED_LABEL_CODE
TOLERANCE = {"float": {"rtol": 1e-5, "atol": 1e-5}, "half": {"rtol": 5e-3, "atol": 5e-3}}


def probabilities(batch: int, classes: int, seed: int, dtype: Any) -> Any:
    powers = np.exp(numbers(batch, classes, seed=seed).astype(float))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(dtype.numpy)


def run_loss(kind: Any, probs: Any, labels: Any, dtype: Any, scales: Any = ()) -> Any:
    """Run calcLoss with accuracy; give the loss of each sample, the deltas, and the count."""
    values = Values()
    outputs = values.tensor(probs, dtype=dtype)
    deltas = values.graph.addVariable(dtype, probs.shape, "deltas")  # calcLoss maps it
    loss = values.tensor(np.zeros(len(probs)), dtype=dtype)
    correct = values.tensor([5], dtype=UNSIGNED_INT)
    given = [values.tensor([scale], dtype=dtype)[0] for scale in scales]
    made = popnn.calcLoss(
        values.graph,
        outputs,
        values.tensor(np.array(labels, np.uint32), dtype=UNSIGNED_INT),
        loss,
        deltas,
        *given,
        correct,
        kind,
        "loss",
    )
    values.program.add(made)
    storage = values.run()
    return storage.read(loss), storage.read(deltas), storage.read(correct).tolist()[0]


cases = given(
    batch=st.integers(1, 9),
    classes=st.integers(1, 40),
    dtype=st.sampled_from([FLOAT, HALF]),
    seed=st.integers(0, 99),
)


@settings(max_examples=25, deadline=None)
@cases
def test_sum_squared_loss_by_label(batch: int, classes: int, dtype: Any, seed: int) -> None:
    probs = probabilities(batch, classes, seed, dtype)
    labels = np.random.default_rng(seed).integers(0, classes, batch)
    loss, deltas, correct = run_loss(popnn.SUM_SQUARED_LOSS, probs, labels, dtype)
    expected = probs.astype(float) - np.eye(classes)[labels]
    np.testing.assert_allclose(deltas, expected, **TOLERANCE[dtype.name])
    np.testing.assert_allclose(loss, (expected**2).sum(axis=1) / 2, **TOLERANCE[dtype.name])
    assert correct == 5 + (probs.argmax(axis=1) == labels).sum()


@settings(max_examples=25, deadline=None)
@cases
def test_cross_entropy_passes_over_masked_labels(
    batch: int, classes: int, dtype: Any, seed: int
) -> None:
    probs = probabilities(batch, classes, seed, dtype)
    generator = np.random.default_rng(seed)
    labels, masked = generator.integers(0, classes, batch), generator.random(batch) < 0.4
    loss, deltas, correct = run_loss(
        popnn.CROSS_ENTROPY_LOSS, probs, np.where(masked, MASK, labels), dtype
    )
    wide = probs.astype(float)
    likely = -np.log(wide[np.arange(batch), labels])
    np.testing.assert_allclose(loss, np.where(masked, 0, likely), **TOLERANCE[dtype.name])
    expected = np.where(masked[:, None], 0, wide - np.eye(classes)[labels])
    np.testing.assert_allclose(deltas, expected, **TOLERANCE[dtype.name])
    assert correct == 5 + ((probs.argmax(axis=1) == labels) & ~masked).sum()


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_scaled_outputs_give_scaled_gradients_and_the_same_loss(dtype: Any) -> None:
    probs, labels = probabilities(4, 6, 3, FLOAT), [5, 0, 3, 3]
    scaled = (probs * 1024).astype(dtype.numpy)
    loss, deltas, _ = run_loss(popnn.CROSS_ENTROPY_LOSS, scaled, labels, dtype, (8.0, 1024.0))
    np.testing.assert_allclose(loss, -np.log(probs[np.arange(4), labels]), rtol=1e-2)
    np.testing.assert_allclose(deltas, 8 * (probs - np.eye(6)[labels]), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("classes", [1, 32, 33, 200, 1100])
@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT, UNSIGNED_INT])
def test_the_best_class_is_found_in_stages(classes: int, dtype: Any) -> None:
    values = Values()
    data = np.abs(np.round(60 * numbers(5, classes))).astype(dtype.numpy)
    tensor = values.tensor(data, dtype=dtype)
    largest, at = popnn.maxAndArgMax(values.graph, tensor, values.program, "best")
    smallest, low = popnn.minAndArgMin(values.graph, tensor, values.program)
    storage = values.run()
    assert largest.dtype == dtype
    assert storage.read(at).tolist() == data.argmax(axis=1).tolist()
    assert storage.read(low).tolist() == data.argmin(axis=1).tolist()
    np.testing.assert_array_equal(storage.read(largest), data.max(axis=1))
    np.testing.assert_array_equal(storage.read(smallest), data.min(axis=1))


@pytest.mark.parametrize("sort", [False, True])
def test_the_k_largest_of_each_row(sort: bool) -> None:
    values, data = Values(), numbers(6, 40)
    best, index = popnn.topK(values.graph, values.tensor(data), 7, sort, values.program, "best")
    storage = values.run()
    found, places = storage.read(best)[:, 0], storage.read(index)[:, 0]
    np.testing.assert_array_equal(np.take_along_axis(data, places.astype(int), 1), found)
    expected = np.sort(data, axis=1)[:, :-8:-1]
    np.testing.assert_array_equal(found if sort else np.sort(found, axis=1)[:, ::-1], expected)


def test_one_worker_has_the_outputs_of_a_tile() -> None:
    # 40 outputs of which each of 2 tiles has 20: LossSumSquaredTransform costs 19 + 4 * 20.
    values = Values(tiles_per_ipu=2)
    outputs = values.graph.addVariable(FLOAT, [2, 20], "outputs")
    for row in range(2):
        values.graph.setTileMapping(outputs[row], row)
    labels, loss = values.tensor([0, 1], dtype=UNSIGNED_INT), values.tensor([0.0, 0.0])
    deltas = values.graph.clone(outputs)
    popnn.calcLoss(values.graph, outputs, labels, loss, deltas, popnn.SUM_SQUARED_LOSS)
    (group,) = [g for g in values.graph.vertex_groups() if "Transform" in g.codelet.name]
    assert (group.tile.tolist(), group.cycles.tolist()) == ([0, 1], [99, 99])


def test_one_hot_labels_cost_what_they_do_in_the_published_sample() -> None:
    # 16 rows of 10 classes: 20 vertices of 8 elements, of 1, 2, 2, 2, 1 rows in turn: 4,408.
    values = Values(tiles_per_ipu=1216)
    labels = values.tensor(np.arange(16), dtype=UNSIGNED_INT)
    popops.encodeOneHot(values.graph, labels, values.tensor(np.zeros((16, 10))), values.program)
    (group,) = values.graph.vertex_groups()
    assert group.cycles[:5].tolist() == [182, 246, 246, 246, 182]
    assert (len(group), group.cycles.sum()) == (20, 4_408)


def test_what_does_not_fit_is_refused() -> None:
    values = Values()
    outputs, deltas = values.tensor(np.zeros((3, 4))), values.tensor(np.zeros((3, 4)))
    labels, loss = values.tensor([0, 1, 2], dtype=INT), values.tensor(np.zeros(3))
    one, kinds = values.tensor([1.0]), popnn.LossType
    with pytest.raises(poplibs_error, match="mine/LossSumSquared: scales are given"):
        popnn.calcLoss(
            values.graph, outputs, labels, loss, deltas, one, one, kinds.SUM_SQUARED_LOSS, "mine"
        )
    with pytest.raises(poplibs_error, match=r"LossCrossEntropy: .* differ in shape"):
        popnn.calcLoss(values.graph, outputs, labels, loss, deltas[:2], kinds.CROSS_ENTROPY_LOSS)
    with pytest.raises(poplibs_error, match="argmax: .* rows of at least one element"):
        popnn.argMax(values.graph, loss, values.program)
    with pytest.raises(poplibs_error, match="topK: 5 of"):
        popnn.topK(values.graph, outputs, 5, True, values.program)
    with pytest.raises(PoplarError, match="lossType"):
        popnn.calcLoss(values.graph, outputs, labels, loss, deltas, one)


def test_a_report_of_a_loss_breaks_no_law(tmp_path: Any) -> None:
    device = IPUModel("mk1", tilesPerIPU=16).createDevice()
    graph = Graph(device.getTarget())
    tensors = []
    for name, dtype, shape in (
        *(("outputs", HALF, [12, 40]), ("labels", UNSIGNED_INT, [12]), ("loss", HALF, [12])),
        *(("deltas", HALF, [12, 40]), ("correct", UNSIGNED_INT, [1])),
    ):
        tensors.append(graph.addVariable(dtype, shape, name))
        poputil.mapTensorLinearly(graph, tensors[-1])
        graph.createHostWrite(name, tensors[-1])
    made = popnn.calcLoss(graph, *tensors, popnn.CROSS_ENTROPY_LOSS, "loss")
    graph.createHostRead("result", tensors[2])
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = Engine(graph, made, options)
    engine.load(device)
    engine.writeTensor("outputs", probabilities(12, 40, 0, HALF))
    engine.writeTensor("labels", np.arange(12, dtype=np.uint32))
    engine.run(0)
    expected = -np.log(probabilities(12, 40, 0, FLOAT)[np.arange(12), np.arange(12)])
    np.testing.assert_allclose(engine.readTensor("result"), expected, rtol=1e-2)
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []
