"""The network of the guide's sample trains as NumPy does, and is built as the sample is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pva.analysis.execution.totals import cycles_by_vertex_type
from pva.check import check
from pva.formats import registry
from pva.report import openReport
from simulator import poplar, popnn
from simulator.examples import fc_mnist
from simulator.graph.program import Sequence


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> fc_mnist.Result:
    return fc_mnist.run(target="mk1", out=tmp_path_factory.mktemp("fc_mnist"))


def test_one_batch_steps_down_the_gradient(result: fc_mnist.Result) -> None:
    batch, start = fc_mnist.draw_batch(), fc_mnist.initial_weights()
    first, third = start["Layer1/weights"].astype(float), start["Layer3/weights"].astype(float)
    hidden = sigmoid(batch.images @ first.T)
    outputs = sigmoid(hidden @ third.T)
    errors = outputs - np.eye(10)[batch.labels]
    np.testing.assert_allclose(result.losses, (errors**2).sum(axis=1) / 2, rtol=1e-5)
    assert result.correct == (outputs.argmax(axis=1) == batch.labels).sum()
    deltas3 = errors * outputs * (1 - outputs)
    deltas1 = deltas3 @ third * hidden * (1 - hidden)
    steps = {
        "Layer3/weights": deltas3.T @ hidden,
        "Layer3/biases": deltas3.sum(axis=0),
        "Layer1/weights": deltas1.T @ batch.images,
        "Layer1/biases": deltas1.sum(axis=0),
    }
    for handle, step in steps.items():
        expected = start[handle] - 0.3 * step
        np.testing.assert_allclose(result.weights[handle], expected, rtol=1e-5, atol=1e-6)


def laid_as_in_the_sample(graph: poplar.Graph, rows: int, a_tile: int) -> poplar.Tensor:
    """Add [16 images, rows] as the sample's products give them: row by row of 8 images."""
    tensor = graph.addVariable(poplar.FLOAT, [2, rows, 8])
    for tile, part in enumerate(tensor.flatten().reshape([16 * rows // a_tile, a_tile])):
        graph.setTileMapping(part, tile)
    return tensor.dimShuffle([0, 2, 1]).reshape([16, rows])


def test_what_follows_the_products_costs_what_the_guide_prints() -> None:
    # 480 sums lie on 60 tiles of 8, 160 on 8 tiles of 20.
    graph, prog = poplar.Graph(poplar.IPUModel("mk1").createDevice().getTarget()), Sequence()
    for rows, a_tile in ((30, 8), (10, 20)):
        sums = laid_as_in_the_sample(graph, rows, a_tile)
        out = popnn.sigmoid(graph, sums, prog)
        popnn.nonLinearityInputGradient(graph, fc_mnist.SIGMOID, out, out, prog)
    labels, correct = (graph.addVariable(poplar.UNSIGNED_INT, [size]) for size in (16, 1))
    loss, deltas = graph.addVariable(poplar.FLOAT, [16]), graph.clone(out)
    for tensor in (labels, correct, loss):
        graph.setTileMapping(tensor, 0)
    kind = popnn.SUM_SQUARED_LOSS
    popnn.calcLoss(graph, out, labels, loss, deltas, correct, kind)
    found: dict[str, list[int]] = {}
    for group in graph.vertex_groups():
        counts = found.setdefault(group.codelet.name.partition("<")[0], [0, 0])
        counts[0], counts[1] = counts[0] + len(group), counts[1] + int(group.cycles.sum())
    expected = {
        "popnn::NonLinearitySupervisor": [68, 15_780],
        "popnn::NonLinearityGradSupervisor": [68, 14_628],
        "popops::EncodeOneHot": [20, 4_408],
        "popnn::LossSumSquaredTransform": [8, 792],
        "popnn::ReduceMaxClassGather": [16, 1_056],
        "popnn::CalcAccuracy": [1, 78],
    }
    assert expected.items() <= found.items()


def test_its_first_product_exchanges_for_the_169_cycles_of_the_guide(
    result: fc_mnist.Result,
) -> None:
    assert result.report is not None
    name = "Layer1/Fwd/Conv_1/Convolve/ExchangePre"
    steps = openReport(result.report).execution.steps
    step = next(step.ipus[0] for step in steps if step.program.name == name)
    assert step.cycles == 169
    assert round(100 * step.activeTileBalance, 1) == 86.6


def test_its_report_breaks_no_law(result: fc_mnist.Result) -> None:
    assert result.report is not None
    assert [str(violation) for violation in check(registry.read(result.report))] == []


def test_its_weights_streams_and_costs_are_those_of_the_sample(result: fc_mnist.Result) -> None:
    assert result.report is not None
    report = openReport(result.report)
    sizes = report.frames.variables().groupby("name")["bytes"].sum()
    names = ("Layer1/Fwd/weights", "Layer1/Fwd/biases", "Layer3/Fwd/weights", "Layer3/Fwd/biases")
    assert [sizes[name] for name in names] == [94_080, 120, 1_200, 40]
    steps = (step.program for step in report.execution.steps)
    streams = [step.name for step in steps if step.type.name == "StreamCopyMid"]
    assert streams == ["", "", "epoch", "batch"]
    cycles = cycles_by_vertex_type(report).set_index("vertex_type")["cycles"]
    sigmoid = "<float,popnn::NonLinearityType::SIGMOID>"
    assert cycles["poplin::ConvPartial1x1Out<float,float,true,false>"] == 764_028
    assert cycles["poplin::ReduceAdd<float,float>"] == 154_116
    assert cycles["popops::ScaledAddSupervisor<float,float,true>"] == 139_812
    assert cycles[f"popnn::NonLinearitySupervisor{sigmoid}"] == 15_780
    assert cycles[f"popnn::NonLinearityGradSupervisor{sigmoid}"] == 14_628
    assert cycles["popops::EncodeOneHot<unsigned int,float>"] == 4_408
    assert cycles["popnn::ReduceMaxClassGather<float,unsigned int>"] == 1_056
    assert cycles["popnn::CalcAccuracy<unsigned int>"] == 78
