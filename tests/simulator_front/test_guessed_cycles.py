"""A user's vertex without an estimate takes what is counted in its compute, and is marked so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pva.report import openReport
from simulator import poplar
from simulator.graph.vertices.guessed_cycles import guessed_cycles, operations_of
from simulator.poplar import program


class Scaled(poplar.Vertex):
    in_ = poplar.Input(poplar.Vector(poplar.FLOAT))
    out = poplar.Output(poplar.Vector(poplar.FLOAT))

    def compute(self) -> None:
        self.out[:] = self.in_ * 2 + 1  # a product and a sum


class Copied(poplar.Vertex):
    in_ = poplar.Input(poplar.FLOAT)
    out = poplar.Output(poplar.FLOAT)

    def compute(self) -> None:
        self.out[0] = self.in_[0]


def test_operations_are_counted_in_the_source() -> None:
    assert (operations_of(Scaled), operations_of(Copied)) == (2, 1)


@pytest.mark.parametrize(("elements", "cycles"), [(1, 20 + 4), (10, 20 + 40), (0, 20)])
def test_each_element_of_the_longest_field_counts(elements: int, cycles: int) -> None:
    sizes = [np.array([elements]), np.array([0])]
    assert guessed_cycles(Scaled, sizes).tolist() == [cycles]


@pytest.mark.parametrize("estimated", [False, True])
def test_a_report_says_which_cycles_are_guessed(tmp_path: Path, estimated: bool) -> None:
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    data = graph.addVariable(poplar.FLOAT, [10], "data")
    graph.setTileMapping(data, 1)
    out = graph.clone(data)
    compute_set = graph.addComputeSet("scale")
    vertex = graph.addVertex(compute_set, Scaled, {"in": data, "out": out}, tile=1)
    if estimated:
        graph.setPerfEstimate(vertex, 7)
    options = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    engine = poplar.Engine(graph, [program.Execute(compute_set)], options)
    engine.load(device)
    engine.run(0)
    report = openReport(str(tmp_path))
    rows = report.frames.provenance()
    reason = rows[rows["item"] == "compute_set_cycles_by_tile"]["reason"].iloc[0]
    assert ("of Scaled guessed from compute" in reason) is not estimated
    (group,) = graph.vertex_groups()
    assert group.cycles.tolist() == [7 if estimated else 60]
