"""What a session tells of its runs: items, batches, and from them what a full pipeline gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import model, node, prepared, tiny

from pva.analysis import main_run
from pva.analysis.execution.main_runs import MainRun
from pva.analysis.insight_rules import insights
from pva.report import openReport
from simulator import popart, poplar

SIZE = 16
NODES = [node("MatMul", f"x{i} w{i}", f"x{i + 1}") for i in range(3)]
WEIGHTS = {f"w{i}": np.ones((SIZE, SIZE), np.float32) for i in range(3)}
CHAIN = model(NODES, {"x0": [4, SIZE]}, ["x3"], WEIGHTS)


def run_of(
    out: Path, batches: int, ipus: int = 1, *, train: bool = False, **options: Any
) -> MainRun:
    """Run one step of so many batches, pipelined over IPUs, and read its report."""
    chosen = popart.SessionOptions(
        autoVirtualGraph=ipus > 1, enablePipelining=ipus > 1,
        engineOptions={"autoReport.all": True, "autoReport.directory": str(out)}, **options,
    )  # fmt: skip
    made: dict[str, Any] = {"userOptions": chosen, "name": ""}
    session: popart.InferenceSession
    if train:
        made |= {"losses": popart.IdentityLoss("x3", "loss"), "optimizer": popart.ConstSGD(0.01)}
        flow = popart.DataFlow(batches, ["loss"])
        session = popart.TrainingSession(CHAIN, flow, deviceInfo=tiny(ipus), **made)
    else:
        flow = popart.DataFlow(batches, ["x3"])
        session = popart.InferenceSession(CHAIN, flow, tiny(ipus), **made)
    session.prepareDevice()
    session.weightsFromHost()
    factor = chosen.accumulationFactor * chosen.replicatedGraphCount
    fed = {"x0": np.zeros((batches * factor, 4, SIZE), np.float32)}
    session.run(popart.PyStepIO(fed, session.initAnchorArrays()))
    return main_run(openReport(out))


@pytest.mark.parametrize("ipus", [1, 3])
@pytest.mark.parametrize("train", [False, True])
def test_a_full_pipeline_takes_as_long_as_one_batch_more(
    ipus: int, train: bool, tmp_path: Path
) -> None:
    stages = ipus if not train else 2 * ipus - 1
    runs = [run_of(tmp_path / str(n), n, ipus, train=train) for n in (8, 9)]
    assert runs[1].steady_cycles == runs[1].cycles - runs[0].cycles
    assert (runs[1].items, runs[1].batches, runs[1].stages) == (36, 9, stages)
    frame = insights(openReport(tmp_path / "9")).set_index("rule")
    saving = frame["saving"].get("pipeline_rarely_full", 0)
    assert saving == (runs[1].cycles - 9 * runs[1].steady_cycles if stages > 1 else 0)
    clock = runs[1].cycles / runs[1].seconds
    assert runs[1].steady_items_per_second == pytest.approx(4 * clock / runs[1].steady_cycles)


def test_accumulated_micro_batches_are_one_batch_with_its_update(tmp_path: Path) -> None:
    accumulated = {"enableGradientAccumulation": True, "accumulationFactor": 3, "train": True}
    two, three = (run_of(tmp_path / str(n), n, **accumulated) for n in (2, 3))  # type: ignore[arg-type]
    assert (three.items, three.batches, three.stages) == (36, 3, 1)
    assert three.steady_cycles == three.cycles - two.cycles
    assert 0 < three.latency_cycles < three.steady_cycles / 3


def test_items_are_those_of_all_replicas(tmp_path: Path) -> None:
    options = popart.SessionOptions(enableReplicatedGraphs=True, replicatedGraphCount=2)
    session = popart.InferenceSession(
        CHAIN, popart.DataFlow(5, ["x3"]), tiny(2), userOptions=options
    )
    session.prepareDevice()
    fed = {"x0": np.zeros((10, 4, SIZE), np.float32)}
    session.run(popart.PyStepIO(fed, session.initAnchorArrays()))
    assert main_run(session.getReport()).items == 5 * 2 * 4


@pytest.mark.parametrize(
    ("shapes", "items"), [([[4, 2], [4, 2]], 4), ([[4, 2], []], 4), ([[4, 2], [1, 2]], -1)]
)
def test_inputs_that_share_no_first_size_tell_no_items(
    shapes: list[list[int]], items: int, tmp_path: Path
) -> None:
    proto = model([node("Add", "a b", "c")], dict(zip("ab", shapes, strict=True)), ["c"])
    inputs = {name: np.zeros(shape, np.float32) for name, shape in zip("ab", shapes, strict=True)}
    engine = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    session = prepared(proto, ["c"], **engine)
    session.run(popart.PyStepIO(inputs, session.initAnchorArrays()))
    assert main_run(session.getReport()).items == items


@pytest.mark.parametrize("wrong", [0, -2, 1.5, "many"])
def test_work_that_cannot_be_is_refused(wrong: Any) -> None:
    with pytest.raises(poplar.PoplarError, match=f"Work: items is {wrong!r}; at least 1"):
        poplar.Work(items=wrong)


def test_a_program_of_poplar_tells_the_items_of_its_runs(tmp_path: Path) -> None:
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    x = graph.addVariable(poplar.FLOAT, [4], "x")
    graph.setTileMapping(x, 0)
    stream = graph.addHostToDeviceFIFO("x", poplar.FLOAT, 4)
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = poplar.Engine(graph, poplar.program.Copy(stream, x, name="x"), options)
    engine.connectStream("x", np.zeros(4, np.float32))
    engine.load(device)
    engine.run(0, work=poplar.Work(items=4))
    run = main_run(engine.getReport())
    assert run.items_per_second == pytest.approx(4 / run.seconds)
