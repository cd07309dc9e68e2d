"""The end of a classifier: softmax, losses by label, which class, how many are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from value_program import Values, numbers

from simulator.graph.errors import PoplarError
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT
from simulator.poplibs import popnn, popops

LABELS = [1, 0, 2, 2, 9, 0, 1]
SOFTMAX = popnn.NonLinearityType.SOFTMAX


def softmax_of(rows: Any) -> Any:
    """Compute softmax in double precision."""
    powers = np.exp(rows.astype(float))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_stable_softmax_is_that_of_each_row_even_of_large_numbers() -> None:
    values = Values()
    rows = np.concatenate([numbers(6, 10), [np.full(10, 1000, np.float32)]])
    out = popnn.softmaxStable(values.graph, values.tensor(rows), values.program)
    found = values.run().read(out)
    np.testing.assert_allclose(found[:6], softmax_of(rows[:6]), rtol=1e-5)
    np.testing.assert_allclose(found[6], np.full(10, 0.1), rtol=1e-6)


def test_softmax_in_place_replaces_the_values() -> None:
    values = Values()
    tensor = values.tensor([[0.0, np.log(3.0)]])
    popnn.nonLinearityInPlace(values.graph, SOFTMAX, tensor, values.program)
    np.testing.assert_allclose(values.run().read(tensor), [[0.25, 0.75]], rtol=1e-6)


def test_gradient_of_softmax_is_the_product_with_its_jacobian() -> None:
    values = Values()
    out, gradient = softmax_of(numbers(3, 5)), numbers(3, 5, seed=1)
    found = popnn.nonLinearityInputGradient(
        values.graph, SOFTMAX, values.tensor(out), values.tensor(gradient), values.program
    )
    jacobians = [np.diag(row) - np.outer(row, row) for row in out]
    expected = [jacobian @ row for jacobian, row in zip(jacobians, gradient, strict=True)]
    np.testing.assert_allclose(values.run().read(found), expected, atol=1e-6)


@pytest.mark.parametrize("index", [INT, UNSIGNED_INT])
@pytest.mark.parametrize("classes", [1, 10, 33])
def test_one_hot_rows_have_their_one_at_the_label(classes: int, index: Any) -> None:
    values = Values(tiles_per_ipu=5)
    labels = values.tensor(np.array(LABELS) % classes, dtype=index)
    encoded = values.tensor(np.full((7, classes), 5), dtype=FLOAT)
    popops.encodeOneHot(values.graph, labels, encoded, values.program)
    expected = np.eye(classes)[np.array(LABELS) % classes]
    np.testing.assert_array_equal(values.run().read(encoded), expected)


def test_labels_must_be_integers_and_one_a_row() -> None:
    values = Values()
    encoded = values.tensor(np.zeros((3, 4)))
    with pytest.raises(PoplarError, match=r"OneHot: indices of type float; int"):
        popops.encodeOneHot(values.graph, values.tensor([0, 1, 2]), encoded, values.program)
    with pytest.raises(PoplarError, match="does not label the rows"):
        labels = values.tensor([0, 1], dtype=INT)
        popops.encodeOneHot(values.graph, labels, encoded, values.program)


def loss_of(kind: popnn.LossType, probs: Any, expected: Any, dtype: Any = FLOAT) -> Any:
    """Run calcLoss with a loss a sample; give losses, deltas and the number of right answers."""
    values = Values()
    outputs = values.tensor(probs, dtype=dtype)
    loss = values.tensor(np.zeros(len(probs)), dtype=dtype)
    deltas = values.tensor(np.zeros(np.shape(probs)), dtype=dtype)
    correct = values.tensor([3], dtype=UNSIGNED_INT)
    labels = values.tensor(expected, dtype=INT if np.ndim(expected) == 1 else dtype)
    values.program.add(
        popnn.calcLoss(values.graph, outputs, labels, loss, deltas, correct, kind, "loss")
    )
    storage = values.run()
    return [storage.read(tensor) for tensor in (loss, deltas, correct)]


@pytest.mark.parametrize("one_hot", [False, True])
def test_cross_entropy_is_the_logarithm_of_the_labels_probability(one_hot: bool) -> None:
    probs = np.array([[0.25, 0.75], [0.5, 0.5], [0.125, 0.875]])
    labels = np.eye(2)[[1, 0, 0]] if one_hot else [1, 0, 0]
    loss, deltas, correct = loss_of(popnn.CROSS_ENTROPY_LOSS, probs, labels)
    np.testing.assert_allclose(loss, np.log([4 / 3, 2, 8]), rtol=1e-6)
    np.testing.assert_array_equal(deltas, [[0.25, -0.25], [-0.5, 0.5], [-0.875, 0.875]])
    # Three were counted before; rows 0 and 1 are right, the first of equals is taken.
    assert correct.tolist() == [5]


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_cross_entropy_of_an_impossible_class_is_finite(dtype: Any) -> None:
    loss, _, _ = loss_of(popnn.CROSS_ENTROPY_LOSS, [[0.0, 1.0]], [0], dtype)
    assert loss[0] == pytest.approx(-np.log({FLOAT: 1.1755e-38, HALF: 5.96e-8}[dtype]), rel=1e-2)


def test_sum_squared_loss_takes_labels_too() -> None:
    loss, deltas, _ = loss_of(popnn.SUM_SQUARED_LOSS, [[0.5, 0.25]], [0])
    assert loss.tolist() == [0.5 * (0.25 + 0.0625)]
    assert deltas.tolist() == [[-0.5, 0.25]]


def test_arg_max_and_arg_min_are_numpys() -> None:
    values = Values()
    data = np.round(2 * numbers(9, 21))
    data[4, 7] = np.nan
    tensor = values.tensor(data)
    largest = popnn.argMax(values.graph, tensor, values.program)
    smallest = popnn.argMin(values.graph, tensor, values.program)
    storage = values.run()
    assert storage.read(largest).tolist() == data.argmax(axis=1).tolist()
    assert storage.read(smallest).tolist() == data.argmin(axis=1).tolist()


def test_costs_of_class_and_accuracy_are_those_of_the_published_sample() -> None:
    # The user guide's sample: 16 rows of 10 classes cost 1,056 in all, the accuracy of 16 costs 78.
    values = Values()
    outputs, labels = values.tensor(np.zeros((16, 10))), values.tensor(np.zeros(16), dtype=INT)
    correct = values.tensor([0], dtype=UNSIGNED_INT)
    popnn.calcAccuracy(values.graph, outputs, labels, correct)
    found = {group.codelet.name: group.cycles.sum() for group in values.graph.vertex_groups()}
    assert found["popnn::ReduceMaxClassGather<float,int>"] == 1056
    assert found["popnn::CalcAccuracy<int>"] == 78


def test_accuracy_counts_into_one_unsigned_int() -> None:
    values = Values()
    outputs, labels = values.tensor(np.zeros((2, 3))), values.tensor([0, 1], dtype=INT)
    with pytest.raises(PoplarError, match="one unsigned int is needed"):
        popnn.calcAccuracy(values.graph, outputs, labels, values.tensor([0]))
