"""The LSTM layer against its equations in double precision."""

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
from simulator.poplibs.popnn import lstm
from simulator.poplibs.popnn.lstm import LstmParams, LstmState, LstmWeights


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def reference(data: Any, output: Any, cell: Any, weights: Any) -> Any:
    """Return the outputs and the last cell; units are forget, input, candidate, output."""
    outputs = []
    for step in data.astype(float):
        forget, given, candidate, shown = (
            step @ inputs + output @ states + bias
            for inputs, states, bias in zip(*(w.astype(float) for w in weights), strict=True)
        )
        cell = sigmoid(forget) * cell + sigmoid(given) * np.tanh(candidate)
        output = sigmoid(shown) * np.tanh(cell)
        outputs.append(output)
    return np.array(outputs), cell


def draw(steps: int, batch: int, inputs: int, outputs: int, dtype: Any, seed: int) -> Any:
    """Draw the inputs, the first output and cell, and the weights."""
    shapes = [(steps, batch, inputs), (batch, outputs), (batch, outputs)]
    shapes += [(4, inputs, outputs), (4, outputs, outputs), (4, outputs)]
    made = [0.5 * numbers(*shape, seed=seed + i) for i, shape in enumerate(shapes)]
    data, output, cell, *weights = (values.astype(dtype.numpy) for values in made)
    return data, output, cell, weights


sizes = given(
    sizes=st.tuples(st.integers(1, 4), *[st.integers(1, 9)] * 3),
    dtype=st.sampled_from([FLOAT, HALF]),
    before=st.booleans(),
    seed=st.integers(0, 99),
)


@settings(max_examples=12, deadline=None)
@sizes
def test_all_steps_are_those_of_the_equations(
    sizes: Any, dtype: Any, before: bool, seed: int
) -> None:
    data, output, cell, weights = draw(*sizes, dtype, seed)
    values, (steps, batch, *layer) = Values(), sizes
    state = LstmState(values.tensor(output, dtype=dtype), values.tensor(cell, dtype=dtype))
    out, last = lstm.lstmFwd(
        values.graph,
        LstmParams(dtype, batch, steps, layer),
        state,
        values.tensor(data, dtype=dtype),
        LstmWeights(*(values.tensor(part, dtype=dtype) for part in weights)),
        None,
        values.program,
        "layer",
        {"preCalcWeights": before},
    )
    storage = values.run()
    expected, cells = reference(data, output, cell, weights)
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype is FLOAT else {"rtol": 2e-2, "atol": 1e-2}
    np.testing.assert_allclose(storage.read(out), expected, **tolerance)
    np.testing.assert_allclose(storage.read(last), cells, **tolerance)
    np.testing.assert_array_equal(storage.read(state.output), output)


def test_the_last_output_and_what_each_step_leaves() -> None:
    data, output, cell, weights = draw(3, 2, 5, 4, FLOAT, 0)
    values, kept = Values(), []
    params = LstmParams(FLOAT, 2, 3, [5, 4], outputFullSequence=False)
    params.cellOrder = [lstm.BasicLstmCellUnit(unit) for unit in (3, 1, 0, 2)]
    placed = [part[[3, 1, 0, 2]] for part in weights]
    out, last = lstm.lstmFwd(
        values.graph,
        params,
        LstmState(values.tensor(output), values.tensor(cell)),
        values.tensor(data),
        LstmWeights(*map(values.tensor, placed)),
        kept,
        values.program,
    )
    storage = values.run()
    expected, cells = reference(data, output, cell, weights)
    np.testing.assert_allclose(storage.read(out), expected[-1], rtol=1e-5, atol=1e-6)
    steps = storage.read(kept[0])
    assert steps.shape == (3, 6, 2, 4)
    np.testing.assert_allclose(steps[:, 3] * steps[:, 4], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(steps[-1, 4], np.tanh(cells), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(steps[0, 5], cell, rtol=1e-6)


@pytest.mark.parametrize("before", [False, True])
def test_a_report_of_a_layer_breaks_no_law(tmp_path: Any, before: bool) -> None:
    device = poplar.IPUModel("mk2", tilesPerIPU=32).createDevice()
    graph = poplar.Graph(device.getTarget())
    params = LstmParams(FLOAT, 8, 6, [24, 16])
    options, prog = {"preCalcWeights": before}, poplar.program.Sequence()
    inputs = popnn.lstm.createInput(graph, params, "layer", options)
    state = popnn.lstm.createInitialState(graph, params, "layer", options)
    weights = popnn.lstm.createWeights(graph, params, "layer", options)
    popnn.lstm.zeroInitialState(graph, state, prog, "layer")
    out, _ = popnn.lstm.lstmFwd(graph, params, state, inputs, weights, None, prog, "layer", options)
    data, output, cell, parts = draw(6, 8, 24, 16, FLOAT, 1)
    for name, tensor in zip("xiob", (inputs, *weights), strict=True):
        graph.createHostWrite(name, tensor)
    graph.createHostRead("out", out)
    engine = poplar.Engine(
        graph, prog, {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    )
    engine.load(device)
    for name, values in zip("xiob", (data, *parts), strict=True):
        engine.writeTensor(name, values)
    engine.run(0)
    expected, _ = reference(data, 0 * output, 0 * cell, parts)
    np.testing.assert_allclose(engine.readTensor("out"), expected, rtol=1e-5, atol=1e-5)
    report = registry.read(tmp_path)
    assert [str(violation) for violation in check(report)] == []
    assert 6 in report.column("programs", "count").tolist()


def test_what_does_not_fit_is_refused() -> None:
    values = Values()
    tensor = values.tensor(np.zeros((2, 4)))
    state, graph = LstmState(tensor, tensor), values.graph
    weights = LstmWeights(*(values.tensor(np.zeros(s)) for s in ((4, 5, 4), (4, 4, 4), (4, 4))))
    inputs = values.tensor(np.zeros((3, 2, 5)))
    call = (state, inputs, weights, None, values.program, "layer")
    with pytest.raises(poplibs_error, match=r"layer/lstmFwd: .* float\[7, 2, 5\] is needed"):
        lstm.lstmFwd(graph, LstmParams(FLOAT, 2, 7, [5, 4]), *call)
    params = LstmParams(FLOAT, 2, 3, [5, 4])
    params.cellOrder = params.cellOrder[:3]
    with pytest.raises(poplibs_error, match="layer/lstmFwd: cell order"):
        lstm.lstmFwd(graph, params, *call)
    with pytest.raises(poplibs_error, match="initialOutput: layerSizes"):
        lstm.createInitialState(graph, LstmParams(FLOAT, 2, 3, [5]))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 3, 0, 2)])
def test_weights_are_read_where_they_lie_in_any_order_of_units(tmp_path: Any, order: Any) -> None:
    device = poplar.IPUModel("mk1", tilesPerIPU=24).createDevice()
    graph, prog = poplar.Graph(device.getTarget()), poplar.program.Sequence()
    units = [lstm.BasicLstmCellUnit(unit) for unit in order]
    params = LstmParams(HALF, 16, 2, [64, 64], cellOrder=units)
    inputs, state = lstm.createInput(graph, params), lstm.createInitialState(graph, params)
    weights = lstm.createWeights(graph, params, "layer")
    lstm.lstmFwd(graph, params, state, inputs, weights, None, prog, "layer")
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = poplar.Engine(graph, prog, options)
    engine.load(device)
    engine.run(0)
    report = registry.read(tmp_path)
    names = report.column("programs", "name").tolist()
    assert any("Convolve" in name for name in names)
    assert not [name for name in names if "Convolve/PreArrange" in name]


def test_steps_lie_on_the_same_tiles_from_the_last_one_on() -> None:
    # 2 samples of 48 elements are 6 groups of 16: on 4 tiles 2 each, on 3 of them.
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    tensor = lstm.createInput(graph, LstmParams(FLOAT, 2, 5, [48, 48]))
    tiles = [
        [sum(high - low for low, high in part) for part in graph.getTileMapping(tensor[step])]
        for step in range(5)
    ]
    assert tiles == [[32, 32, 0, 32]] * 5
