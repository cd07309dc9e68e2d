"""Library operations give NumPy's values, however their tensors lie on the tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.graph.errors import PoplarError
from simulator.graph.types import FLOAT, HALF
from simulator.poplibs import popnn, popops
from simulator.poplibs.popops import Operation


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (popops.add, np.add),
        (popops.sub, np.subtract),
        (popops.mul, np.multiply),
        (popops.div, np.divide),
        (popops.max, np.maximum),
        (popops.min, np.minimum),
    ],
)
def test_binary_operations_broadcast_like_numpy(operation: Any, expected: Any) -> None:
    values = Values()
    left, right = numbers(6, 40), numbers(40, seed=1)
    out = operation(values.graph, values.tensor(left), values.tensor(right), values.program, "sums")
    np.testing.assert_array_equal(values.run().read(out), expected(left, right))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (popops.neg, np.negative),
        (popops.square, np.square),
        (popops.exp, np.exp),
        (popops.log, np.log),
        (popops.sqrt, np.sqrt),
        (popops.inv, np.reciprocal),
        (popops.absolute, np.abs),
    ],
)
def test_unary_operations_equal_numpys(operation: Any, expected: Any) -> None:
    values = Values()
    data = np.abs(numbers(5, 31)) + np.float32(0.5)
    out = operation(values.graph, values.tensor(data), values.program)
    np.testing.assert_array_equal(values.run().read(out), expected(data))


def test_in_place_operations_work_on_columns_that_lie_apart() -> None:
    values = Values()
    data, other = numbers(9, 20), numbers(9, seed=1)
    tensor = values.tensor(data)
    popops.mulInPlace(values.graph, tensor[:, 3], values.tensor(other), values.program)
    expected = data.copy()
    expected[:, 3] *= other
    np.testing.assert_array_equal(values.run().read(tensor), expected)


def test_scaled_add_works_on_a_transposed_view() -> None:
    values = Values()
    data, other = numbers(7, 20), numbers(20, 7, seed=1)
    tensor = values.tensor(data)
    popops.scaledAddTo(
        values.graph, tensor.transpose(), values.tensor(other), -0.25, values.program
    )
    expected = data + np.float32(-0.25) * other.T
    np.testing.assert_array_equal(values.run().read(tensor), expected)


def test_cast_rounds_to_half() -> None:
    values = Values()
    data = numbers(50)
    out = popops.cast(values.graph, values.tensor(data), HALF, values.program)
    np.testing.assert_array_equal(values.run().read(out), data.astype(np.float16))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_reductions_equal_numpys_over_any_dimensions(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    dims = data.draw(
        st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True)
    )
    operation, function = data.draw(
        st.sampled_from([(Operation.ADD, np.sum), (Operation.MAX, np.max), (Operation.MIN, np.min)])
    )
    values, array = Values(), numbers(*shape)
    out = popops.reduce(values.graph, values.tensor(array), dims, operation, values.program)
    expected = function(array, axis=tuple(dims))  # type: ignore[operator]
    np.testing.assert_allclose(values.run().read(out), expected, rtol=1e-4, atol=1e-5)


def test_a_reduction_over_tiles_has_a_stage_on_the_tiles_and_a_final_one() -> None:
    values = Values()
    popops.reduce(values.graph, values.tensor(numbers(64, 4)), [0], Operation.ADD, values.program)
    assert [c.name.split("/", 1)[1] for c in values.graph.compute_sets] == [
        "ReduceOnTile/InToIntermediateNoExchange",
        "ReduceFinalStage/IntermediateToOutput",
    ]


@pytest.mark.parametrize(
    ("kind", "function", "slope"),
    [
        ("SIGMOID", lambda x: 1 / (1 + np.exp(-x)), lambda y: y * (1 - y)),
        ("TANH", np.tanh, lambda y: 1 - y * y),
        ("RELU", lambda x: np.maximum(x, 0), lambda y: (y > 0).astype(np.float32)),
    ],
)
def test_nonlinearities_and_their_gradients(kind: str, function: Any, slope: Any) -> None:
    values = Values()
    data, gradient = numbers(3, 50), numbers(3, 50, seed=1)
    which = popnn.NonLinearityType(kind)
    out = popnn.nonLinearity(values.graph, which, values.tensor(data), values.program)
    back = popnn.nonLinearityInputGradient(
        values.graph, which, out, values.tensor(gradient), values.program
    )
    storage = values.run()
    expected = function(data)
    np.testing.assert_allclose(storage.read(out), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(storage.read(back), gradient * slope(expected), rtol=1e-4, atol=1e-6)


def test_a_sigmoid_in_place_saturates_without_a_warning() -> None:
    values = Values()
    tensor = values.tensor([-1000, 0, 1000])
    popnn.nonLinearityInPlace(values.graph, popnn.NonLinearityType.SIGMOID, tensor, values.program)
    assert values.run().read(tensor).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("count", [1, 4])
def test_sum_squared_loss_and_its_gradient(count: int) -> None:
    values = Values()
    outputs, expected = numbers(4, 10), numbers(4, 10, seed=1)
    model = values.tensor(outputs)
    deltas = values.graph.clone(model, "deltas")
    loss = values.tensor(np.zeros(count))
    kind = popnn.LossType.SUM_SQUARED_LOSS
    values.program.add(
        popnn.calcLoss(values.graph, model, values.tensor(expected), loss, deltas, kind)
    )
    storage = values.run()
    each = 0.5 * (outputs - expected) ** 2
    wanted = each.sum(axis=1) if count == 4 else each.sum(keepdims=True).reshape(1)
    np.testing.assert_array_equal(storage.read(deltas), outputs - expected)
    np.testing.assert_allclose(storage.read(loss), wanted, rtol=1e-5)


def test_operands_that_do_not_fit_are_refused() -> None:
    values = Values()
    halves = values.graph.addVariable(HALF, [4], "halves")
    floats = values.graph.addVariable(FLOAT, [4], "floats")
    with pytest.raises(PoplarError, match="operands of types float and half"):
        popops.add(values.graph, floats, halves, values.program)
    with pytest.raises(PoplarError, match="'floats': is not wholly mapped"):
        popops.mulInPlace(values.graph, floats, floats, values.program)
    with pytest.raises(PoplarError, match=r"Reduce: dimensions \[1\] of"):
        popops.reduceWithOutput(values.graph, floats, floats[0], [1], Operation.ADD, values.program)
