"""The network of the guide's sample trains as NumPy does, and is built as the sample is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pva.analysis.execution import cycles_by_vertex_type
from pva.check import check
from pva.formats import registry
from pva.report import openReport
from simulator.examples import fc_mnist


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
    streams = [step.name for step in steps if "StreamCopy" in str(step.type)]
    assert streams == ["", "", "epoch", "batch"]
    cycles = cycles_by_vertex_type(report).set_index("vertex_type")["cycles"]
    assert cycles["popops::EncodeOneHot<unsigned int,float>"] == 4_408
    assert cycles["popnn::ReduceMaxClassGather<float,unsigned int>"] == 1_056
    assert cycles["popnn::CalcAccuracy<unsigned int>"] == 78
