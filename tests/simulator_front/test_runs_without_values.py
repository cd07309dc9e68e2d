"""Programs whose way no tensor decides can be run for their cycles and memory alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pva.report import openReport
from simulator import poplar
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import If, Program, Sequence
from simulator.poplibs import popops
from simulator.poplibs.poputil import mapTensorLinearly

WITHOUT = {"simulator.computeValues": "false"}


def made(*, decides: bool = False) -> tuple[poplar.Device, Graph, Program]:
    """Make a program that sums a tensor, and maybe asks the sum where to go."""
    device = poplar.IPUModel("tiny").createDevice()
    graph, program = Graph(device.getTarget()), Sequence()
    tensor = graph.addVariable(poplar.FLOAT, [64], "t")
    mapTensorLinearly(graph, tensor)
    graph.createHostRead("t", tensor)
    total = popops.reduce(graph, tensor, [0], popops.Operation.ADD, program)
    if decides:
        program.add(If(popops.cast(graph, total, poplar.BOOL, program), Sequence(), Sequence()))
    return device, graph, program


def test_cycles_and_memory_are_those_of_a_run_with_values(tmp_path: Path) -> None:
    found = []
    for name, options in (("with", {}), ("without", WITHOUT)):
        device, graph, program = made()
        places = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / name)}
        engine = poplar.Engine(graph, program, places | options)
        engine.load(device)
        engine.run()
        data = openReport(tmp_path / name).dataset
        found.append((data.column("steps", "cycles_to"), data.array("always_live_bytes")))
    for expected, without in zip(*found, strict=True):
        np.testing.assert_array_equal(without, expected)


def test_tensors_have_nothing_to_read() -> None:
    device, graph, program = made()
    engine = poplar.Engine(graph, program, WITHOUT)
    engine.load(device)
    with pytest.raises(PoplarError, match=r"simulator\.computeValues is false.*have no values"):
        engine.readTensor("t")


def test_no_tensor_can_decide_where_the_program_goes() -> None:
    device, graph, program = made(decides=True)
    engine = poplar.Engine(graph, program, WITHOUT)
    engine.load(device)
    with pytest.raises(PoplarError, match=r"decides where .*simulator\.computeValues has to be tr"):
        engine.run()
