"""Biases, several convolutions, flops, index helpers, given outputs and plans made ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from convolved import convolved
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import poplin, popnn, popops
from simulator.graph.errors import InvalidOptionError, poplibs_error
from simulator.graph.tensors.tensor import UpsampleMethod
from simulator.graph.types import FLOAT, HALF, INT
from simulator.poplibs.poplin import ConvParams, InputTransform, OutputTransform
from simulator.poplibs.poplin.convolutions import indices
from simulator.poplibs.poplin.multiconv import (
    CalculateWeightDeltasArgs,
    ConvolutionArgs,
    ConvWeightUpdateArgs,
    CreateTensorArgs,
)

RNG = np.random.default_rng(1)
AROUND = InputTransform(paddingLower=(1, 1), paddingUpper=(1, 1))
PARAMS = ConvParams(FLOAT, 2, (5, 4), (3, 3), 4, 8, 1, AROUND)
SMALL = ConvParams(FLOAT, 2, (3, 2), (1, 1), 8, 4)


def drawn(shape: Any) -> Any:
    return RNG.integers(-3, 4, shape).astype(np.float32)


def test_biases_are_added_by_channel_and_take_the_sums_of_gradients() -> None:
    run, acts, deltas, start = DeviceProgram(), drawn((2, 8, 5, 4)), drawn((2, 8, 5, 4)), drawn(8)
    t, d = run.tensor(acts), run.tensor(deltas)
    biases = run.give(poplin.createBiases(run.graph, t, PARAMS, "biases"), start)
    poplin.addBias(run.graph, t, biases, run.program)
    poplin.convolutionBiasUpdate(run.graph, d, biases, -0.5, {}, run.program)
    out, after = run.run(t, biases)
    assert np.array_equal(out, acts + start[:, None, None])
    assert np.array_equal(after, start - 0.5 * deltas.sum((0, 2, 3)))


def test_several_convolutions_are_those_of_each_forward_backward_and_update(tmp_path: Any) -> None:
    run, both = DeviceProgram(), (PARAMS, SMALL)
    made = [CreateTensorArgs(params) for params in both]
    data = [(drawn(p.input_shape()), drawn(p.weights_shape())) for p in both]
    args = [
        ConvolutionArgs(
            run.give(poplin.multiconv.createInput(run.graph, made, n), data[n][0]),
            run.give(poplin.multiconv.createWeights(run.graph, made, n), data[n][1]),
            params,
        )
        for n, params in enumerate(both)
    ]
    outs = poplin.multiconv.convolution(
        run.graph, args, False, run.program, "layers", {"planType": "serial"}
    )
    deltas = poplin.multiconv.calculateWeightDeltas(
        run.graph,
        [
            CalculateWeightDeltasArgs(out, a.inputs, a.params)
            for out, a in zip(outs, args, strict=True)
        ],
        run.program,
    )
    poplin.multiconv.convolutionWeightUpdate(
        run.graph,
        [
            ConvWeightUpdateArgs(out, a.weights, a.inputs, 0.5, a.params)
            for out, a in zip(outs, args, strict=True)
        ],
        run.program,
    )
    values = run.run(*outs, *deltas, *(a.weights for a in args), report=tmp_path / "report")
    for out, params, (x, w) in zip(values[:2], both, data, strict=True):
        assert np.array_equal(out, convolved(x, w, params))
    for before, delta, after in zip((w for _, w in data), values[2:4], values[4:], strict=True):
        assert np.allclose(after, before + 0.5 * delta)


def test_an_unknown_option_or_number_of_several_convolutions_is_refused() -> None:
    run, args = DeviceProgram(), [CreateTensorArgs(PARAMS)]
    with pytest.raises(InvalidOptionError, match="planType is 'both'; it must be one of serial"):
        poplin.multiconv.createInput(run.graph, args, 0, {"planType": "both"})
    with pytest.raises(poplibs_error, match="createInput: convolution 1; there are 0 to 0"):
        poplin.multiconv.createInput(run.graph, args, 1)


def test_weights_are_turned_round_for_the_backward_pass() -> None:
    run, weights = DeviceProgram(), drawn((1, 8, 4, 3, 3))
    source, out = run.tensor(weights), run.tensor(np.zeros((1, 4, 8, 3, 3)))
    poplin.weightsTransposeChansFlipXY(run.graph, source, out, run.program)
    assert np.array_equal(run.run(out)[0], weights.swapaxes(1, 2)[..., ::-1, ::-1])
    with pytest.raises(poplibs_error, match=r"output .*; float\[1, 4, 8, 3, 3\] is needed"):
        poplin.weightsTransposeChansFlipXY(run.graph, source, source, run.program)


def test_operations_count_no_products_with_padding() -> None:
    # 5 x 4 outputs; a kernel of 3 meets the field 3 * 5 - 2 = 13 and 3 * 4 - 2 = 10 times
    products = 2 * 4 * 8 * 13 * 10
    flops = (poplin.getFwdFlops, poplin.getBwdFlops, poplin.getWuFlops)
    assert [count(PARAMS) for count in flops] == [2 * products] * 3
    graph = DeviceProgram(tiles=8).graph  # mk2: vectors of 2 floats
    assert poplin.getFwdPerfectCycleCount(graph, PARAMS) == products / (2 * 8)
    halves = ConvParams(HALF, 2, (5, 4), (3, 3), 4, 8, 1, AROUND)
    assert poplin.getBwdPerfectCycleCount(graph, halves) == products / (16 * 4 * 8)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_indices_of_inputs_kernels_and_outputs_are_those_of_the_sum(data: st.DataObject) -> None:
    number = st.integers(0, 1)
    flips = data.draw(st.lists(st.booleans(), min_size=2, max_size=2))
    first = InputTransform(
        *([data.draw(number)] for _ in range(2)),
        [data.draw(number) + 1],
        *([data.draw(number)] for _ in range(2)),
        flips[:1],
    )
    kernel = InputTransform(dilation=[data.draw(number) + 1], flip=flips[1:])
    last = OutputTransform([data.draw(number)], [0], [data.draw(number) + 1], [0], [1])
    params = ConvParams(FLOAT, 1, [7], [2], 1, 1, 1, first, kernel, last)
    (size,) = params.getOutputFieldShape()
    # A product that only input i and kernel element k make is one where they meet.
    meets = np.zeros((size, 7, 2), bool)
    for i, k in np.ndindex(7, 2):
        x, w = np.eye(7)[i][None, None], np.eye(2)[k][None, None, None]
        meets[:, i, k] = convolved(x, w, params)[0, 0] != 0
    for o, i, k in np.ndindex(size, 7, 2):
        assert (poplin.getInputIndex(0, o, k, params) == i) == meets[o, i, k]
        assert (poplin.getKernelIndex(0, o, i, params) == k) == meets[o, i, k]
    for k in range(2):
        outs = np.flatnonzero(meets[:, :, k].any(1))
        ends = (outs.min(), outs.max() + 1) if len(outs) else (0, 0)
        assert poplin.getOutputRangeForKernelIndex(0, (0, size), k, params) == ends
    inputs = np.flatnonzero(meets[0].any(1))
    ends = (inputs.min(), inputs.max() + 1) if len(inputs) else (0, 0)
    assert poplin.getInputRange(0, 0, params) == ends
    assert indices.NONE == 2**32 - 1


def test_results_go_into_tensors_that_exist() -> None:
    run, x, w = DeviceProgram(), drawn(PARAMS.input_shape()), drawn(PARAMS.weights_shape())
    out = poplin.createConvOutput(run.graph, PARAMS, "out")
    poplin.convolutionWithOutput(
        run.graph, run.tensor(x), run.tensor(w), out, PARAMS, False, run.program
    )
    a, b = drawn((3, 4, 5)), drawn((3, 5, 6))
    product = poplin.createMatMulGroupedOutput(run.graph, FLOAT, FLOAT, a.shape, b.shape)
    arranged = poplin.preArrangeMatMulGroupedInputRHS(
        run.graph, a.shape, run.tensor(b), run.program
    )
    poplin.matMulGroupedWithOutput(run.graph, run.tensor(a), arranged, product, run.program)
    one = poplin.createMatMulOutput(run.graph, FLOAT, FLOAT, (4, 5), (5, 6))
    rhs = poplin.preArrangeMatMulInputRHS(run.graph, (4, 5), run.tensor(b[0]), run.program)
    poplin.matMulWithOutput(run.graph, run.tensor(a[0]), rhs, one, run.program)
    results = run.run(out, product, one)
    assert np.array_equal(results[0], convolved(x, w, PARAMS))
    assert np.array_equal(results[1], a @ b)
    assert np.array_equal(results[2], a[0] @ b[0])


def test_plans_made_ahead_are_those_that_are_reported() -> None:
    graph = DeviceProgram().graph
    product = poplin.MatMulParams(FLOAT, FLOAT, (4, 5), (5, 6))
    poplin.preplan([(graph.target, PARAMS, None)], [(graph.target, product, {})])
    costs, text = (
        poplin.reportPlanEstimatedCosts(graph, PARAMS),
        poplin.reportPlanInfo(graph, PARAMS),
    )
    assert f"{costs.cycles:,} cycles" in text and f"temporary {costs.memory:,} of" in text
    assert "cycles" in poplin.reportWeightUpdatePlanInfo(graph, PARAMS)
    poplin.convolutionValidateOptions({"gatherConvOutput": "true"})
    with pytest.raises(InvalidOptionError, match="no option 'pas'"):
        poplin.convolutionValidateOptions({"pas": "INFERENCE_FWD"})
    with pytest.raises(InvalidOptionError, match="no option 'pass'"):
        poplin.matmulValidateOptions({"pass": "NONE"})


def test_a_grid_has_the_coordinates_of_numpys() -> None:
    run = DeviceProgram()
    x = poplin.linspace(run.graph, FLOAT, -1, 1, 5)
    y = poplin.linspace(run.graph, FLOAT, 0, 3, 4)
    grids = run.run(*poplin.meshgrid2d(run.graph, x, y))
    wanted = np.meshgrid(np.linspace(-1, 1, 5, dtype=np.float32), np.arange(4, dtype=np.float32))
    assert all(np.array_equal(one, other) for one, other in zip(grids, wanted, strict=True))
    with pytest.raises(poplibs_error, match="linspace: type is int; float or half is needed"):
        poplin.linspace(run.graph, INT, 0, 1, 2)


def adjoint(change: Any, shape: tuple[int, ...], delta: Any) -> Any:
    """Return the gradient by an argument of a linear function, one element of it after another."""
    size = int(np.prod(shape))
    columns = np.eye(size, dtype=np.float32).reshape(size, *shape)
    return np.array([np.vdot(change(one), delta) for one in columns]).reshape(shape)


@pytest.mark.parametrize(("groups", "inputs", "outputs"), [(6, 1, 1), (4, 2, 3), (3, 4, 2)])
def test_gradients_of_grouped_convolutions_are_those_of_the_sums(
    groups: int, inputs: int, outputs: int
) -> None:
    params = ConvParams(FLOAT, 2, (4, 3), (3, 2), inputs, outputs, groups, AROUND)
    x, w = drawn(params.input_shape()), drawn(params.weights_shape())
    run = DeviceProgram()
    t = run.give(poplin.createInput(run.graph, params, "x"), x)
    k = run.give(poplin.createWeights(run.graph, params, "w"), w)
    out = poplin.convolution(run.graph, t, k, params, False, run.program)
    by_weights = poplin.calculateWeightDeltas(run.graph, out, t, params, run.program)
    back = poplin.getGradientParams(params)
    by_inputs = poplin.convolution(run.graph, out, k, back, True, run.program)
    forward, changed, spread = run.run(out, by_weights, by_inputs)
    assert np.array_equal(forward, convolved(x, w, params))
    assert np.array_equal(changed, adjoint(lambda one: convolved(x, one, params), w.shape, forward))
    assert np.array_equal(spread, adjoint(lambda one: convolved(one, w, params), x.shape, forward))


def test_an_octave_convolution_is_four_convolutions_of_two_resolutions() -> None:
    """High and low frequencies, each the sum of its own and of the other one's (Chen, 2019)."""
    high, low, run = drawn((1, 8, 8, 8)), drawn((1, 4, 4, 4)), DeviceProgram()
    t, u = run.tensor(high), run.tensor(low)
    halved = popnn.pooling.PoolParams(
        popnn.PoolingType.AVG, (8, 8), (2, 2), (2, 2), (0, 0), (0, 0), numChannels=8, batchSize=1
    )
    pooled = popnn.pooling.pool(run.graph, halved, t, run.program)
    sources = [t, pooled, u, u]
    sizes = [(8, 8), (4, 4), (4, 4), (4, 4)]
    widths = [(8, 6), (8, 3), (4, 6), (4, 3)]
    every = [
        ConvParams(FLOAT, 1, size, (3, 3), *width, 1, AROUND)
        for size, width in zip(sizes, widths, strict=True)
    ]
    weights = [drawn(p.weights_shape()) for p in every]
    made = [CreateTensorArgs(p) for p in every]
    kernels = [
        run.give(poplin.multiconv.createWeights(run.graph, made, n), w)
        for n, w in enumerate(weights)
    ]
    args = [
        ConvolutionArgs(source, kernel, p)
        for source, kernel, p in zip(sources, kernels, every, strict=True)
    ]
    hh, hl, lh, ll = poplin.multiconv.convolution(run.graph, args, False, run.program)
    doubled = lh.upsample(2, 2, UpsampleMethod.REPEAT).upsample(2, 3, UpsampleMethod.REPEAT)
    popops.addInPlace(run.graph, hh, doubled, run.program)
    popops.addInPlace(run.graph, ll, hl, run.program)
    fine, coarse = run.run(hh, ll)
    mean = high.reshape(1, 8, 4, 2, 4, 2).mean((3, 5))
    parts = [
        convolved(value, w, p)
        for value, w, p in zip((high, mean, low, low), weights, every, strict=True)
    ]
    assert np.allclose(fine, parts[0] + parts[2].repeat(2, 2).repeat(2, 3), atol=1e-4)
    assert np.allclose(coarse, parts[1] + parts[3], atol=1e-4)
