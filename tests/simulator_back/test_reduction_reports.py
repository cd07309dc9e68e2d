"""Whole programs of reductions: their reports break no law, and give NumPy's values."""

from pathlib import Path

import numpy as np
import pytest

from pva.check import check
from pva.formats import registry
from simulator import popops, poputil
from simulator.poplar import FLOAT, HALF, Engine, Graph, IPUModel, program


@pytest.mark.parametrize(
    ("dtype", "shape", "dims"),
    [
        (FLOAT, (300, 40), [0]),  # several partial sums of each column on a tile
        (FLOAT, (16, 50), [1]),  # rows that straddle tiles
        (HALF, (5, 64, 7), [0, 2]),  # values of a column in many places of a tile
        (HALF, (4096,), [0]),  # one output
    ],
)
def test_a_report_of_reductions_breaks_no_law(tmp_path: Path, dtype, shape, dims) -> None:
    device = IPUModel("mk1", tilesPerIPU=64).createDevice()
    graph = Graph(device.getTarget())
    tensor = graph.addVariable(dtype, shape, "values")
    poputil.mapTensorLinearly(graph, tensor)
    graph.createHostWrite("values", tensor)
    sequence = program.Sequence()
    out = popops.reduce(graph, tensor, dims, popops.Operation.ADD, sequence, "sums")
    graph.createHostRead("sums", out)
    engine = Engine(
        graph, sequence, {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    )
    engine.load(device)
    values = np.random.default_rng(0).integers(-8, 8, shape)
    engine.writeTensor("values", values.astype(dtype.numpy))
    engine.run(0)
    np.testing.assert_array_equal(engine.readTensor("sums"), values.sum(axis=tuple(dims)))
    report = registry.read(tmp_path)
    assert [str(violation) for violation in check(report)] == []


def test_partial_results_arrive_without_being_arranged() -> None:
    # 64 tiles of 4 rows of 32 columns: what an exchange brings stands row by row.
    device = IPUModel("mk1", tilesPerIPU=64).createDevice()
    graph = Graph(device.getTarget())
    tensor = graph.addVariable(FLOAT, [256, 32], "values")
    poputil.mapTensorLinearly(graph, tensor)
    graph.createHostWrite("values", tensor)
    sequence = program.Sequence()
    graph.createHostRead("sums", popops.reduce(graph, tensor, [0], popops.Operation.ADD, sequence))
    engine = Engine(graph, sequence, {"debug.instrument": True})
    engine.load(device)
    engine.run(0)
    names = [entry["name"] for entry in engine.getGraphProfile()["programs"] if "name" in entry]
    assert any("IntermediateToOutput/ExchangePre" in name for name in names)
    assert not any("Arrange" in name for name in names)


def test_outputs_that_wrap_are_put_in_order_from_another_memory_element(tmp_path: Path) -> None:
    # Tile 1 has 21 rows from the fifth column on: 4 to 7, then 0 to 3.
    device = IPUModel("mk1", tilesPerIPU=4).createDevice()
    graph = Graph(device.getTarget())
    tensor = graph.addVariable(HALF, [44, 8], "values")
    for tile, (low, high) in enumerate([(0, 4), (4, 172), (172, 352)]):
        graph.setTileMapping(tensor.flatten()[low:high], tile)
    graph.createHostWrite("values", tensor)
    sequence = program.Sequence()
    graph.createHostRead("sums", popops.reduce(graph, tensor, [0], popops.Operation.ADD, sequence))
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = Engine(graph, sequence, options)
    engine.load(device)
    values = np.random.default_rng(0).integers(-8, 8, (44, 8))
    engine.writeTensor("values", values.astype(HALF.numpy))
    engine.run(0)
    np.testing.assert_array_equal(engine.readTensor("sums"), values.sum(axis=0))
    report = registry.read(tmp_path)
    assert [str(violation) for violation in check(report)] == []
    names = [str(name) for name in report.column("variables", "name")]
    pieces = report.table("variable_pieces")
    elements = {
        names[variable]: address // 16_384
        for variable, tile, address in zip(
            pieces["variable"], pieces["tile"], pieces["address"], strict=True
        )
        if tile == 1 and "InToIntermediateNoExchange" in names[variable]
    }
    assert len(elements) == 2 and len(set(elements.values())) == 2
    assert any(name.endswith("Rearranged") for name in elements)
