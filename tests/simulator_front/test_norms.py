"""Norms give NumPy's values forward and backward, in every grouping; their costs and faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from pva.check import check
from pva.formats import registry
from simulator import poplin, popnn, poputil
from simulator.codelets.layers.deviation import inverse_deviation
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, INT
from simulator.poplar import Engine, Graph, IPUModel, program

EPS = 1e-3


def split(array: Any, groups: int, strided: bool = False) -> Any:
    """Return [statistic][value]: of each group of each sample, or (0) of each channel."""
    samples, channels = array.shape[:2]
    if not groups:
        return np.moveaxis(array, 1, 0).reshape(channels, -1)
    if strided:
        apart = array.reshape(samples, channels // groups, groups, -1).swapaxes(1, 2)
    else:
        apart = array.reshape(samples, groups, channels // groups, -1)
    return apart.reshape(samples * groups, -1)


def join(rows: Any, like: Any, groups: int, strided: bool = False) -> Any:
    """Turn `split` round."""
    places = split(np.arange(like.size).reshape(like.shape), groups, strided)
    out = np.empty(like.size)
    out[places.reshape(-1)] = rows.reshape(-1)
    return out.reshape(like.shape)


def by_channel(vector: Any, like: Any) -> Any:
    return vector.reshape(1, -1, *[1] * (like.ndim - 2))


class Reference:
    """A norm in float64."""

    def __init__(self, acts: Any, groups: int, unbiased: bool, strided: bool = False) -> None:
        rows = split(acts.astype(np.float64), groups, strided)
        self.shape = (acts, groups, strided)
        self.mean = rows.mean(axis=1)
        ddof = int(unbiased and rows.shape[1] > 1)
        self.deviation = 1 / np.sqrt(rows.var(axis=1, ddof=ddof) + EPS)
        self.rows = (rows - self.mean[:, None]) * self.deviation[:, None]
        self.whitened = join(self.rows, *self.shape)

    def gradient(self, gradient: Any, gamma: Any) -> Any:
        """Return the gradient of the activations."""
        acts, groups, strided = self.shape
        rows = split(gradient * by_channel(gamma, acts), groups, strided)
        mean, along = rows.mean(axis=1), (rows * self.rows).mean(axis=1)
        rows = (rows - mean[:, None] - self.rows * along[:, None]) * self.deviation[:, None]
        return join(rows, *self.shape)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[list[int], int]:
    """Draw a shape and a number of groups; 0 for the statistics of batch norm."""
    groups, each = draw(st.integers(0, 4)), draw(st.integers(1, 4))
    channels = max(groups, 1) * each
    field = draw(st.lists(st.integers(1, 5), max_size=2))
    return [draw(st.integers(1, 4)), channels, *field], groups


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@settings(max_examples=60, deadline=None)
@given(st.data(), layouts())
def test_all_passes_of_batch_and_group_norm_equal_numpys(data: st.DataObject, layout: Any) -> None:
    shape, groups = layout
    unbiased, stable, strided = (data.draw(st.booleans()) for _ in range(3))
    values = Values(tiles_per_ipu=data.draw(st.sampled_from([1, 7, 32])))
    graph, prog = values.graph, values.program
    acts, gradient = numbers(*shape), numbers(*shape, seed=1)
    tensor, gradients = values.tensor(acts), values.tensor(gradient)
    gamma, beta = numbers(shape[1], seed=2), numbers(shape[1], seed=3)
    factor, addend = values.tensor(gamma), values.tensor(beta)
    options = {"groupNormStridedChannelGrouping": strided}
    layer: Any = popnn.gn if groups else popnn.bn
    prefix = "group" if groups else "batch"

    def call(name: str, *arguments: Any) -> Any:
        function = getattr(layer, f"{prefix}Norm{name}")
        return function(graph, *arguments, prog, debugContext="layer", options=options)

    statistics = getattr(layer, f"{prefix}NormStatistics")
    number = (groups,) if groups else ()
    mean, deviation = statistics(
        graph, tensor, EPS, prog, *number, unbiased, stable, options=options
    )
    out, whitened = call("alise", tensor, factor, addend, mean, deviation)
    deltas = call("ParamGradients", whitened, gradients)
    back = call("Gradients", whitened, gradients, deviation, factor)
    again = call("Gradients", tensor, gradients, mean, deviation, factor)
    storage = values.run()

    expected = Reference(acts, groups, unbiased, strided)
    close(storage.read(mean), expected.mean)
    np.testing.assert_allclose(storage.read(deviation), expected.deviation, rtol=2e-4)
    close(storage.read(whitened), expected.whitened)
    close(storage.read(out), expected.whitened * by_channel(gamma, acts) + by_channel(beta, acts))
    axes = (0, *range(2, acts.ndim))
    close(storage.read(deltas[0]), (gradient * expected.whitened).sum(axis=axes))
    close(storage.read(deltas[1]), gradient.sum(axis=axes))
    np.testing.assert_allclose(
        storage.read(back), expected.gradient(gradient, gamma), rtol=2e-3, atol=2e-4
    )
    np.testing.assert_array_equal(storage.read(again), storage.read(back))


def test_layer_and_instance_norm_are_the_ends_of_group_norm() -> None:
    acts, values = numbers(3, 6, 4), Values(tiles_per_ipu=16)
    graph, prog, tensor = values.graph, values.program, values.tensor(numbers(3, 6, 4))
    factor, addend = values.tensor(numbers(6, seed=2)), values.tensor(numbers(6, seed=3))
    found = {}
    for layer, prefix in ((popnn.ln, "layer"), (popnn.in_, "instance")):
        statistics = getattr(layer, f"{prefix}NormStatistics")(graph, tensor, EPS, prog, False)
        normalise = getattr(layer, f"{prefix}Normalise")
        found[prefix] = normalise(graph, tensor, factor, addend, *statistics, prog)[1]
    storage = values.run()
    close(storage.read(found["layer"]), Reference(acts, 1, False).whitened)
    close(storage.read(found["instance"]), Reference(acts, 6, False).whitened)


def test_a_far_mean_needs_the_stable_way() -> None:
    acts = numbers(4, 2, 100) + 3000
    values = Values(tiles_per_ipu=16)
    tensor = values.tensor(acts)
    deviations = [
        poplin.normStatistics(values.graph, tensor, EPS, values.program, False, stable)[1]
        for stable in (False, True)
    ]
    storage = values.run()
    expected = Reference(acts, 0, False).deviation
    assert not np.allclose(storage.read(deviations[0]), expected, rtol=1e-2)
    np.testing.assert_allclose(storage.read(deviations[1]), expected, rtol=1e-5)


def test_batch_norm_takes_combined_factors() -> None:
    acts, values = numbers(2, 3, 5), Values()
    tensor, scale, shift = values.tensor(acts), numbers(3, seed=1), numbers(3, seed=2)
    out = popnn.bn.batchNormalise(
        values.graph, tensor, values.tensor(scale), values.tensor(shift), values.program
    )
    close(values.run().read(out), acts * scale[:, None] + shift[:, None])


@pytest.mark.parametrize("layer", [popnn.bn, popnn.gn, popnn.ln, popnn.in_])
def test_parameters_move_against_their_gradients(layer: Any) -> None:
    update = next(getattr(layer, name) for name in dir(layer) if name.endswith("ParamUpdate"))
    values, vectors = Values(), [numbers(4, seed=seed) for seed in range(4)]
    gamma_delta, beta_delta, gamma, beta = (values.tensor(vector) for vector in vectors)
    update(values.graph, gamma_delta, beta_delta, -0.5, gamma, beta, values.program)
    storage = values.run()
    close(storage.read(gamma), vectors[2] - 0.5 * vectors[0])
    close(storage.read(beta), vectors[3] - 0.5 * vectors[1])


def test_halves_are_right_to_their_precision() -> None:
    acts, gradient = (numbers(4, 8, 6, seed=seed).astype(np.float16) for seed in (0, 1))
    values = Values(tiles_per_ipu=16)
    graph, prog = values.graph, values.program
    tensor, gradients = (values.tensor(array, dtype=HALF) for array in (acts, gradient))
    gamma = values.tensor(np.ones(8), dtype=HALF)
    mean, deviation = popnn.bn.batchNormStatistics(graph, tensor, EPS, prog, True)
    whitened = popnn.bn.batchNormWhiten(graph, tensor, mean, deviation, prog)
    back = popnn.bn.batchNormGradients(graph, whitened, gradients, deviation, gamma, prog)
    storage, expected = values.run(), Reference(acts, 0, True)
    assert {t.dtype for t in (mean, deviation, whitened, back)} == {HALF}
    np.testing.assert_allclose(storage.read(whitened), expected.whitened, rtol=4e-3, atol=4e-3)
    by_hand = expected.gradient(gradient.astype(np.float64), np.ones(8))
    np.testing.assert_allclose(storage.read(back), by_hand, rtol=1e-2, atol=1e-2)


# Costs
def test_statistics_share_their_compute_sets() -> None:
    device = IPUModel("mk1", tilesPerIPU=64).createDevice()
    graph = Graph(device.getTarget())
    tensor = graph.addVariable(FLOAT, [64, 8, 4], "acts")
    poputil.mapTensorLinearly(graph, tensor)
    poplin.normStatistics(graph, tensor, EPS, program.Sequence(), False)
    found = [(group.compute_set, group.codelet.name) for group in graph.vertex_groups()]
    sums, squares = (
        {compute_set for compute_set, name in found if f"<popops::{kind}," in name}
        for kind in ("ReduceAdd", "ReduceSquareAdd")
    )
    assert squares and squares <= sums
    assert found[-1][1] == "poplin::InverseStdDeviation<float,float,float,false>"


def test_the_deviation_costs_what_its_formula_says() -> None:
    # Two regions of 3 and 4 elements: 6, and 4 + 5 * 2 for each.
    assert inverse_deviation(np.array([3, 4]), np.array([2])).tolist() == [6 + 14 + 14]


def test_parameters_lie_where_their_channels_do() -> None:
    values = Values(tiles_per_ipu=4)
    tensor = values.graph.addVariable(HALF, [1, 16, 8], "acts")
    for tile in range(4):
        values.graph.setTileMapping(tensor.slice(4 * tile, 4 * tile + 4, 1), tile)
    gamma, beta = poplin.createNormParams(values.graph, tensor)
    assert gamma.dtype == HALF and gamma.shape == beta.shape == (16,)
    for parameter in (gamma, beta):
        assert values.graph.getTileMapping(parameter) == [[(4 * t, 4 * t + 4)] for t in range(4)]


def test_a_report_of_batch_norm_breaks_no_law(tmp_path: Path) -> None:
    device = IPUModel("mk1", tilesPerIPU=32).createDevice()
    graph, sequence = Graph(device.getTarget()), program.Sequence()

    def variable(shape: list[int], name: str) -> Tensor:
        tensor = graph.addVariable(HALF, shape, name)
        poputil.mapTensorLinearly(graph, tensor)
        graph.createHostWrite(name, tensor)
        return tensor

    acts, gradients = (variable([4, 8, 5, 5], name) for name in ("acts", "gradients"))
    gamma, beta = poplin.createNormParams(graph, acts)
    statistics = popnn.bn.batchNormStatistics(graph, acts, EPS, sequence, True)
    whitened = popnn.bn.batchNormalise(graph, acts, gamma, beta, *statistics, sequence)[1]
    back = popnn.bn.batchNormGradients(graph, whitened, gradients, statistics[1], gamma, sequence)
    deltas = popnn.bn.batchNormParamGradients(graph, whitened, gradients, sequence)
    popnn.bn.batchNormParamUpdate(graph, *deltas, -0.1, gamma, beta, sequence)
    for name, tensor in (("back", back), ("gamma", gamma), ("beta", beta)):
        graph.createHostRead(name, tensor)
    folder = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = Engine(graph, sequence, folder)
    engine.load(device)
    engine.run(0)
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


# Faults
def test_what_does_not_fit_is_refused() -> None:
    values = Values()
    graph, prog = values.graph, values.program
    acts, three = values.tensor(numbers(2, 6, 3)), values.tensor(numbers(3))
    whole = values.tensor(np.zeros((2, 6)), dtype=INT)
    with pytest.raises(poplibs_error, match="layer/Norm/statistics: .*int.* takes float and half"):
        poplin.normStatistics(graph, whole, EPS, prog, False, debugContext="layer")
    with pytest.raises(poplibs_error, match="needs samples, channels"):
        poplin.normStatistics(graph, three, EPS, prog, False)
    with pytest.raises(poplibs_error, match="6 channels of .* in 4 groups"):
        popnn.gn.groupNormStatistics(graph, acts, EPS, prog, 4, False)
    with pytest.raises(poplibs_error, match="layer/Whiten: mean .* each of the 6 channels"):
        poplin.normWhiten(graph, acts, three, three, prog, "layer")
    with pytest.raises(poplibs_error, match="as many for each sample"):
        popnn.ln.layerNormWhiten(graph, acts, three, three, prog)
    with pytest.raises(poplibs_error, match="gradients .* are not like activations"):
        poplin.normParamGradients(graph, acts, three, prog)
    with pytest.raises(PoplarError, match="groupNormStridedChannelGrouping"):
        popnn.gn.groupNormStatistics(graph, acts, EPS, prog, 2, False, options={"groupNorm": True})
    with pytest.raises(PoplarError, match="batchNormGradients"):
        popnn.bn.batchNormGradients(graph, acts, acts, prog)
