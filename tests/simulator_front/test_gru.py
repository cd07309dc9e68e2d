"""The GRU layer against its equations in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from pva.check import check
from pva.formats import registry
from simulator import poplar, popnn
from simulator.graph.errors import poplibs_error
from simulator.graph.types import FLOAT, HALF
from simulator.poplibs.popnn import gru
from simulator.poplibs.popnn.gru import GruParams, GruWeights


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def reference(data: Any, state: Any, weights: Any, after: bool, gate: Any = sigmoid) -> Any:
    """Return the outputs of all steps; units are reset, update, candidate."""
    inputs, states, biases = (part.astype(float) for part in weights)
    own, other = (biases[:, 0], biases[:, 1]) if after else (biases, 0 * biases)
    outputs = []
    for step in data.astype(float):
        reset, update = (
            gate(step @ inputs[unit] + own[unit] + state @ states[unit] + other[unit])
            for unit in (0, 1)
        )
        inner = reset * (state @ states[2] + other[2]) if after else reset * state @ states[2]
        candidate = np.tanh(step @ inputs[2] + own[2] + inner)
        state = update * state + (1 - update) * candidate
        outputs.append(state)
    return np.array(outputs)


def draw(sizes: Any, after: bool, dtype: Any, seed: int) -> Any:
    """Draw the inputs, the first state and the weights."""
    steps, batch, inputs, outputs = sizes
    biases = (3, 2, outputs) if after else (3, outputs)
    shapes = [(steps, batch, inputs), (batch, outputs)]
    shapes += [(3, inputs, outputs), (3, outputs, outputs), biases]
    made = [0.5 * numbers(*shape, seed=seed + i) for i, shape in enumerate(shapes)]
    data, state, *weights = (values.astype(dtype.numpy) for values in made)
    return data, state, weights


@settings(max_examples=16, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 4), *[st.integers(1, 9)] * 3),
    dtype=st.sampled_from([FLOAT, HALF]),
    before=st.booleans(),
    after=st.booleans(),
    seed=st.integers(0, 99),
)
def test_all_steps_are_those_of_the_equations(
    sizes: Any, dtype: Any, before: bool, after: bool, seed: int
) -> None:
    data, state, weights = draw(sizes, after, dtype, seed)
    values, (steps, batch, *layer) = Values(), sizes
    first = values.tensor(state, dtype=dtype)
    out = gru.gruFwd(
        values.graph,
        GruParams(dtype, batch, steps, layer, resetAfter=after),
        first,
        values.tensor(data, dtype=dtype),
        GruWeights(*(values.tensor(part, dtype=dtype) for part in weights)),
        None,
        values.program,
        "layer",
        {"preCalcWeights": before},
    )
    storage = values.run()
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype is FLOAT else {"rtol": 2e-2, "atol": 1e-2}
    np.testing.assert_allclose(
        storage.read(out), reference(data, state, weights, after), **tolerance
    )
    np.testing.assert_array_equal(storage.read(first), state)


def test_the_last_output_units_in_another_order_and_what_each_step_leaves() -> None:
    data, state, weights = draw((3, 2, 5, 4), False, FLOAT, 0)
    values, kept = Values(), []
    params = GruParams(FLOAT, 2, 3, [5, 4], outputFullSequence=False)
    params.cellOrder = [gru.BasicGruCellUnit(unit) for unit in (2, 0, 1)]
    placed = [part[[2, 0, 1]] for part in weights]
    out = gru.gruFwd(
        values.graph,
        params,
        values.tensor(state),
        values.tensor(data),
        GruWeights(*map(values.tensor, placed)),
        kept,
        values.program,
    )
    storage, expected = values.run(), reference(data, state, weights, False)
    np.testing.assert_allclose(storage.read(out), expected[-1], rtol=1e-5, atol=1e-6)
    _, update, candidate, output = storage.read(kept[0])[-1]
    np.testing.assert_array_equal(output, storage.read(out))
    last = update * expected[-2] + (1 - update) * candidate
    np.testing.assert_allclose(last, expected[-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("after", [False, True])
def test_a_report_of_a_layer_breaks_no_law(tmp_path: Any, after: bool) -> None:
    device = poplar.IPUModel("mk2", tilesPerIPU=32).createDevice()
    graph = poplar.Graph(device.getTarget())
    params = GruParams(FLOAT, 8, 6, [24, 16], resetAfter=after)
    prog = poplar.program.Sequence()
    inputs = popnn.gru.createInput(graph, params, "layer")
    state = popnn.gru.createInitialState(graph, params, "layer")
    weights = popnn.gru.createWeights(graph, params, "layer")
    out = popnn.gru.gruFwd(graph, params, state, inputs, weights, None, prog, "layer")
    data, first, parts = draw((6, 8, 24, 16), after, FLOAT, 1)
    for name, tensor in zip("xsiob", (inputs, state, *weights), strict=True):
        graph.createHostWrite(name, tensor)
    graph.createHostRead("out", out)
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = poplar.Engine(graph, prog, options)
    engine.load(device)
    for name, values in zip("xsiob", (data, first, *parts), strict=True):
        engine.writeTensor(name, values)
    engine.run(0)
    expected = reference(data, first, parts, after)
    np.testing.assert_allclose(engine.readTensor("out"), expected, rtol=1e-5, atol=1e-5)
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


def test_a_hard_sigmoid_may_be_the_gates_function() -> None:
    data, state, weights = draw((2, 3, 4, 5), False, FLOAT, 3)
    values, kinds = Values(), popnn.NonLinearityType
    out = gru.gruFwd(
        values.graph,
        GruParams(FLOAT, 3, 2, [4, 5], kinds.TANH, kinds.HARD_SIGMOID),
        values.tensor(state),
        values.tensor(data),
        GruWeights(*map(values.tensor, weights)),
        None,
        values.program,
    )
    expected = reference(data, state, weights, False, lambda x: np.clip(0.2 * x + 0.5, 0, 1))
    np.testing.assert_allclose(values.run().read(out), expected, rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    values = Values()
    weights = GruWeights(*(values.tensor(np.zeros(s)) for s in ((3, 5, 4), (3, 4, 4), (3, 4))))
    call = (values.tensor(np.zeros((2, 4))), values.tensor(np.zeros((3, 2, 5))), weights, None)
    params = GruParams(FLOAT, 2, 3, [5, 4], resetAfter=True)
    with pytest.raises(poplibs_error, match=r"layer/gruFwd: .* float\[3, 2, 4\] is needed"):
        gru.gruFwd(values.graph, params, *call, values.program, "layer")
