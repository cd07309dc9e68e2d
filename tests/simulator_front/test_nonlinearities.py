"""Non-linearities and their gradients: values against NumPy, in half and float, and a cost."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, pi, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from pva.check import check
from pva.formats import registry
from simulator import popnn, poputil
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.types import FLOAT, HALF, INT
from simulator.poplar import Engine, Graph, IPUModel, program

KIND = popnn.NonLinearityType


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "SIGMOID": sigmoid,
    "HARD_SIGMOID": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "RELU": lambda x: np.maximum(x, 0),
    "TANH": np.tanh,
    "GELU": lambda x: 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))),
    "GELU_ERF": np.vectorize(lambda x: 0.5 * x * (1 + erf(x / sqrt(2)))),
    "SWISH": lambda x: x * sigmoid(x),
    "SOFTMAX": softmax,
    "SOFTMAX_STABLE": softmax,
    "SOFTMAX_SCALED": lambda x: 62000 * softmax(x),
}
OF_INPUT = ("GELU", "GELU_ERF", "SWISH", "HARD_SIGMOID")
POINTWISE = [kind for kind in FUNCTIONS if not kind.startswith("SOFTMAX")]
# The power of a half from -16 to -8, which is rounded by up to 2^-8, is off by as much; so is
# half of that each of the sum, the quotient and the scaling.
TOLERANCE = {"float": {"rtol": 1e-5, "atol": 1e-5}, "half": {"rtol": 8e-3, "atol": 4e-3}}


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(sorted(FUNCTIONS)),
    shape=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    dtype=st.sampled_from([FLOAT, HALF]),
    in_place=st.booleans(),
    seed=st.integers(0, 99),
)
def test_values_are_numpys(kind: str, shape: Any, dtype: Any, in_place: bool, seed: int) -> None:
    values = Values()
    data = (2 * numbers(*shape, seed=seed)).astype(dtype.numpy)
    tensor = values.tensor(data, dtype=dtype)
    if in_place:
        popnn.nonLinearityInPlace(values.graph, KIND(kind), tensor, values.program)
        out = tensor
    else:
        out = popnn.nonLinearity(values.graph, KIND(kind), tensor, values.program)
    found = values.run().read(out)
    assert found.dtype == dtype.numpy
    np.testing.assert_allclose(found, FUNCTIONS[kind](data.astype(float)), **TOLERANCE[dtype.name])


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(POINTWISE),
    dtype=st.sampled_from([FLOAT, HALF]),
    columns=st.integers(1, 30),
    seed=st.integers(0, 99),
)
def test_gradients_are_the_slope_of_the_values(
    kind: str, dtype: Any, columns: int, seed: int
) -> None:
    values, step = Values(), 1e-6
    data = (2 * numbers(3, columns, seed=seed)).astype(dtype.numpy)
    gradient = numbers(3, columns, seed=seed + 1).astype(dtype.numpy)
    wide, function = data.astype(float), FUNCTIONS[kind]
    slope = (function(wide + step) - function(wide - step)) / (2 * step)
    activations = data if kind in OF_INPUT else function(wide)
    act, out_gradient = (values.tensor(x, dtype=dtype) for x in (activations, gradient))
    found = popnn.nonLinearityInputGradient(
        values.graph, KIND(kind), act, out_gradient, values.program
    )
    expected = gradient * slope
    np.testing.assert_allclose(
        values.run().read(found), expected, rtol=1e-2 if dtype is HALF else 1e-4, atol=1e-2
    )


@pytest.mark.parametrize("kind", ["SOFTMAX", "SOFTMAX_STABLE"])
def test_the_gradient_of_a_softmax_is_the_product_with_its_jacobian(kind: str) -> None:
    values = Values()
    out, gradient = softmax(numbers(2, 4, 5)), numbers(2, 4, 5, seed=1)
    found = popnn.nonLinearityInputGradient(
        values.graph, KIND(kind), values.tensor(out), values.tensor(gradient), values.program
    )
    expected = out * (gradient - (out * gradient).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(values.run().read(found), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("sigmoid", "SIGMOID"), ("relu", "RELU"), ("tanh", "TANH"), ("gelu", "GELU")),
        *(("swish", "SWISH"), ("hardSigmoid", "HARD_SIGMOID"), ("softmax", "SOFTMAX")),
        ("softmaxStable", "SOFTMAX_STABLE"),
        ("scaledSoftmaxStable", "SOFTMAX_SCALED"),
    ],
)
def test_each_has_functions_of_its_own(name: str, kind: str) -> None:
    values, data = Values(), numbers(4, 9)
    tensor = values.tensor(data)
    out = getattr(popnn, name)(values.graph, tensor, values.program, "mine")
    getattr(popnn, f"{name}InPlace")(values.graph, tensor, values.program)
    storage = values.run()
    np.testing.assert_array_equal(storage.read(out), storage.read(tensor))
    np.testing.assert_allclose(storage.read(out), FUNCTIONS[kind](data.astype(float)), rtol=1e-4)


def test_a_scaled_softmax_keeps_what_a_half_would_lose() -> None:
    values = Values()
    rows = np.array([[0.0, -17.0]])
    out = popnn.scaledSoftmaxStable(values.graph, values.tensor(rows, dtype=HALF), values.program)
    assert popnn.getNonLinearityScaling(KIND.SOFTMAX_SCALED) == 62000
    assert popnn.getNonLinearityScaling(KIND.SOFTMAX) == 1
    np.testing.assert_allclose(values.run().read(out)[0, 1], 62000 * np.exp(-17), rtol=1e-2)


def test_several_non_linearities_share_a_compute_set() -> None:
    values = Values()
    one, two = values.tensor(numbers(8)), values.tensor(numbers(8, seed=1))
    compute_set = values.graph.addComputeSet("both")
    popnn.nonLinearityInPlace(values.graph, KIND.RELU, one, compute_set)
    popnn.nonLinearityInPlace(values.graph, KIND.TANH, two, compute_set)
    values.program.add(program.Execute(compute_set))
    storage = values.run()
    np.testing.assert_array_equal(storage.read(one), np.maximum(numbers(8), 0))
    np.testing.assert_allclose(storage.read(two), np.tanh(numbers(8, seed=1)), rtol=1e-6)
    with pytest.raises(poplibs_error, match="SOFTMAX takes several steps"):
        popnn.nonLinearityInPlace(values.graph, KIND.SOFTMAX, one, compute_set)


def test_a_vertex_of_halves_costs_what_the_public_formula_says() -> None:
    # 27 halves: 6 vectors, one a worker, a pair and one are left; a sigmoid step takes 2 cycles.
    # Worker: 20 + (3 + 2 * 2) + 4 + (2 + 2) + (3 + 2) = 40.
    values = Values(tiles_per_ipu=1)
    tensor = values.tensor(numbers(27), dtype=HALF)
    popnn.sigmoidInPlace(values.graph, tensor, values.program)
    (group,) = values.graph.vertex_groups()
    assert group.codelet.name.startswith("popnn::NonLinearityInPlaceSupervisor<half,")
    assert group.cycles.tolist() == [9 + 6 * 40]


def test_what_does_not_fit_is_refused() -> None:
    values = Values()
    tensor, whole = values.tensor(numbers(4)), values.tensor([1, 2], dtype=INT)
    with pytest.raises(poplibs_error, match="mine/Nonlinearity: RELU of .*known for float, half"):
        popnn.relu(values.graph, whole, values.program, "mine")
    with pytest.raises(poplibs_error, match="'SIGMOID' is no NonLinearityType"):
        popnn.nonLinearity(values.graph, "SIGMOID", tensor, values.program)
    with pytest.raises(PoplarError, match="NonLinearityGrad: result is .* does not fit"):
        popnn.nonLinearityInputGradient(values.graph, KIND.TANH, tensor, tensor[:3], values.program)
    with pytest.raises(poplibs_error, match="has constants, or an element twice"):
        popnn.reluInPlace(values.graph, tensor.broadcast(2, 0), values.program)


def test_a_report_of_non_linearities_breaks_no_law(tmp_path: Any) -> None:
    device = IPUModel("mk1", tilesPerIPU=16).createDevice()
    graph = Graph(device.getTarget())
    tensor = graph.addVariable(HALF, [40, 10], "values")
    poputil.mapTensorLinearly(graph, tensor)
    graph.createHostWrite("values", tensor)
    sequence = program.Sequence()
    for kind in KIND:
        out = popnn.nonLinearity(graph, kind, tensor, sequence, kind.value)
        back = popnn.nonLinearityInputGradient(graph, kind, out, tensor, sequence, kind.value)
        graph.createHostRead(kind.value, back)
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = Engine(graph, sequence, options)
    engine.load(device)
    engine.writeTensor("values", numbers(40, 10).astype(np.float16))
    engine.run(0)
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


@pytest.mark.parametrize("shape", [[7], [3, 50], [2, 3, 4]])
@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_a_log_softmax_is_numpys_and_does_not_overflow(shape: Any, dtype: Any) -> None:
    values = Values()
    data = (30 * numbers(*shape)).astype(dtype.numpy)  # exp of 89 is no float
    new, own = values.tensor(data, dtype=dtype), values.tensor(data, dtype=dtype)
    out = popnn.logSoftmax(values.graph, new, values.program)
    popnn.logSoftmaxInPlace(values.graph, own, values.program, "own")
    exact = data.astype(float)
    less = exact - exact.max(axis=-1, keepdims=True)
    expected = less - np.log(np.exp(less).sum(axis=-1, keepdims=True))
    storage = values.run()
    for found in (storage.read(out), storage.read(own)):
        assert found.dtype == dtype.numpy
        near = {"rtol": 2e-3, "atol": 1e-3} if dtype == HALF else {"rtol": 1e-5, "atol": 2e-5}
        np.testing.assert_allclose(found, expected, **near)
    np.testing.assert_array_equal(storage.read(new), data)
    with pytest.raises(PoplarError, match="own/LogSoftmax: .*at least one dimension is needed"):
        popnn.logSoftmax(values.graph, values.tensor(1.0), values.program, "own")
