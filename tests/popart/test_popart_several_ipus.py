"""Nodes are placed on IPUs by notes or by balance; what crosses is exchanged globally."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models import model, node, tiny

from pva.report import openReport
from simulator import popart
from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import concat
from simulator.graph.types import FLOAT, Array
from simulator.popart.lowering import Lowering
from simulator.popart.scheduling.placement import lies_on


def guides_example() -> tuple[bytes, list[str], str]:
    """Build the guide's example: two additions on IPU 0, one of their results on IPU 1."""
    builder = popart.Builder()
    inputs = [builder.addInputTensor(popart.TensorInfo("FLOAT", [1])) for _ in range(4)]
    with builder.virtualGraph(0):
        o1, o2 = (builder.aiOnnx.add(inputs[p : p + 2]) for p in (0, 2))
    with builder.virtualGraph(1):
        o = builder.aiOnnx.add([o1, o2])
    return builder.getModelProto(), inputs, o


def ran(
    proto: object, inputs: dict[str, Array], anchor: str, out: Path, **chosen: bool
) -> popart.InferenceSession:
    """Run a model on two IPUs with a report; check the values of its anchor against the CPU's."""
    options = popart.SessionOptions(**chosen)
    options.engineOptions = {"autoReport.all": True, "autoReport.directory": str(out)}
    found = []
    for device, given in ((tiny(2), options), (popart.DeviceManager().createCpuDevice(), None)):
        flow = popart.DataFlow(1, [anchor])
        session = popart.InferenceSession(proto, flow, device, userOptions=given)
        session.prepareDevice()
        session.weightsFromHost()
        anchors = session.initAnchorArrays()
        session.run(popart.PyStepIO(inputs, anchors))
        found.append(anchors[anchor])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    return session


def test_the_guides_example_crosses_between_its_ipus(tmp_path: Path) -> None:
    proto, inputs, o = guides_example()
    ran(proto, {name: np.float32([p]) for p, name in enumerate(inputs)}, o, tmp_path)
    report = openReport(tmp_path / "inference")
    programs = report.frames.programs()
    crossing = programs.loc[programs["type"] == "GlobalExchange", "name"]
    assert sum("ToIpu1" in name for name in crossing) == 2
    assert report.check()["holds"].fillna(True).all()


def layers(count: int, size: int) -> tuple[object, dict[str, Array]]:
    """Make a chain of products."""
    random = np.random.default_rng(1)
    weights = {f"w{i}": random.normal(size=(size, size)).astype(np.float32) for i in range(count)}
    nodes = [node("MatMul", f"x{i} w{i}", f"x{i + 1}") for i in range(count)]
    inputs = {"x0": random.normal(size=(2, size)).astype(np.float32)}
    return model(nodes, {"x0": [2, size]}, [f"x{count}"], weights), inputs


def test_layers_are_balanced_by_weights_and_work(tmp_path: Path) -> None:
    proto, inputs = layers(4, 8)
    ran(proto, inputs, "x4", tmp_path, autoVirtualGraph=True)
    report = openReport(tmp_path / "inference")
    by_tile = report.frames.variables().groupby("name")["bytes"].sum()
    assert by_tile["w0"] == by_tile["w3"] == 256
    memory = report.frames.memory_by_tile()
    halves = memory["total"].groupby(memory.index // 4).sum()
    assert len(halves) == 2 and halves.min() / halves.max() > 0.6


def test_the_first_half_of_like_layers_is_on_the_first_ipu() -> None:
    proto, _ = layers(4, 8)
    options = popart.SessionOptions(autoVirtualGraph=True)
    flow = popart.DataFlow(1, ["x4"])
    session = popart.InferenceSession(proto, flow, tiny(2), userOptions=options)
    placed = session._placed(Lowering(session._ir, Graph(tiny(2).target), {}))
    assert list(placed.values()) == [0, 0, 1, 1]


def test_what_is_planned_to_take_long_has_an_ipu_of_its_own() -> None:
    weights = {"few": np.zeros((64, 2), np.float32), "more": np.zeros((2, 2), np.float32)}
    nodes = [node("MatMul", "x few", "a"), node("Reshape", "a s", "b"), node("Neg", "b", "c"),
             node("MatMul", "c more", "d"), node("Abs", "d", "e")]  # fmt: skip
    proto = model(nodes, {"x": [512, 64]}, ["e"], {**weights, "s": np.int64([512, 2])})
    session = popart.InferenceSession(proto, popart.DataFlow(1, ["e"]), tiny(2))
    placed = session._placed(Lowering(session._ir, Graph(tiny(2).target), {}))
    session._options.autoVirtualGraph = True
    balanced = session._placed(Lowering(session._ir, Graph(tiny(2).target), {}))
    assert set(placed.values()) == {0}
    assert list(balanced.values()) == [0, 1, 1, 1]  # the view is gone


def test_an_ipu_that_is_not_there_is_named() -> None:
    proto, _, o = guides_example()
    options = popart.SessionOptions(virtualGraphMode=popart.VirtualGraphMode.Manual)
    session = popart.InferenceSession(proto, popart.DataFlow(1, [o]), tiny(), userOptions=options)
    with pytest.raises(popart.popart_exception, match="is placed on IPU 1; the device has 1"):
        session.prepareDevice()


def test_notes_of_ipus_count_nothing_on_one_ipu_where_no_mode_is_asked_for() -> None:
    proto, _, o = guides_example()
    session = popart.InferenceSession(proto, popart.DataFlow(1, [o]), tiny())
    assert session._placed(Lowering(session._ir, Graph(tiny().target), {})) == {}
    session.prepareDevice()


def test_training_over_two_ipus_changes_weights_as_on_one() -> None:
    proto, inputs = layers(2, 4)
    found = []
    for ipus in (1, 2):
        session = popart.TrainingSession(
            proto,
            popart.DataFlow(1, []),
            losses=[popart.L1Loss("x2", "loss")],
            optimizer=popart.SGD(0.1),
            deviceInfo=tiny(ipus),
            userOptions=popart.SessionOptions(autoVirtualGraph=True),
        )
        session.prepareDevice()
        session.weightsFromHost()
        session.run(popart.PyStepIO(inputs, {}))
        session.weightsToHost()
        weights = {name: np.zeros((4, 4), np.float32) for name in ("w0", "w1")}
        session.readWeights(weights)
        found.append(weights)
    for name in ("w0", "w1"):
        np.testing.assert_allclose(found[0][name], found[1][name], rtol=1e-5)


def test_a_tensor_lies_on_an_ipu_when_all_of_its_elements_do() -> None:
    graph = Graph(tiny(2).target)
    tiles = graph.target.tiles_per_ipu
    apart, across = (graph.addVariable(FLOAT, [4], name=name) for name in ("apart", "across"))
    graph.setTileMapping(apart, tiles)
    graph.setTileMapping(across[:2], 0)
    graph.setTileMapping(across[2:], tiles)
    tensors = [apart, across, across[:2], across[1:3], concat([apart, across[2:]])]
    on = [[lies_on(graph, tensor, ipu) for ipu in (0, 1)] for tensor in tensors]
    assert on == [[False, True], [False, False], [True, False], [False, False], [False, True]]
