"""Sessions whose inputs and anchors go by I/O tiles: values, cycles and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.check import check
from pva.data.dataset import Dataset
from pva.formats import registry
from simulator import popart

SIZE, IO_TILES = 64, 4
JIT, INNER, LOOPS = (
    popart.ExchangeStrategy.JustInTime,
    popart.ExchangeStrategy.OverlapInnerLoop,
    popart.ExchangeStrategy.OverlapLoops,
)
IO, COMPUTE = popart.TileSet.IO, popart.TileSet.Compute
WEIGHT = np.random.default_rng(3).normal(0, 0.1, (SIZE, SIZE)).astype(np.float32)


def model(tiles: popart.TileSet, strategy: popart.ExchangeStrategy, stages: int = 1) -> Any:
    """Build relu(x @ w), several times over as stages; return the proto, input and output."""
    builder = popart.Builder()
    info = popart.TensorInfo("FLOAT", [SIZE, SIZE])
    x = out = builder.addInputTensor(info, popart.InputSettings(tiles, strategy), "x")
    for stage in range(stages):
        with builder.virtualGraph(stage):
            w = builder.addInitializedInputTensor(WEIGHT, f"w{stage}")
            out = builder.aiOnnx.relu([builder.aiOnnx.matmul([out, w])])
    builder.addOutputTensor(out)
    return builder.getModelProto(), x, out


def device(ipus: int = 1) -> popart.DeviceInfo:
    """Return a device of 32 tiles an IPU."""
    options = {"ipuVersion": "tiny", "tilesPerIPU": 32, "numIPUs": ipus}
    return popart.DeviceManager().createIpuModelDevice(options)


def options(tiles: popart.TileSet, folder: Path | None = None, **more: Any) -> Any:
    """Return the options of a session."""
    report = {"autoReport.all": True, "autoReport.directory": str(folder)} if folder else {}
    count = IO_TILES if tiles is IO else 0
    return popart.SessionOptions(engineOptions=report, numIOTiles=count, **more)


def wanted(x: np.ndarray, stages: int = 1) -> np.ndarray:
    """Compute what the model gives."""
    for _ in range(stages):
        x = np.maximum(x @ WEIGHT, 0)
    return x


def run(
    tiles: popart.TileSet, strategy: popart.ExchangeStrategy, batches: int,
    anchor: tuple[Any, ...] = ("ALL",), folder: Path | None = None, stages: int = 1, **more: Any,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return what a session gives for a step of random batches, and what each batch should."""
    proto, x, out = model(tiles, strategy, stages)
    art = popart.AnchorReturnType(*anchor, tiles, strategy)
    session = popart.InferenceSession(
        proto, popart.DataFlow(batches, {out: art}), device(stages),
        userOptions=options(tiles, folder, **more), name="",
    )  # fmt: skip
    session.prepareDevice()
    anchors = session.initAnchorArrays()
    data = np.random.default_rng(batches).normal(size=(batches, SIZE, SIZE)).astype(np.float32)
    session.run(popart.PyStepIO({x: data}, anchors))
    return anchors[out], wanted(data, stages)


@pytest.mark.parametrize("strategy", [JIT, INNER, LOOPS])
@pytest.mark.parametrize("tiles", [IO, COMPUTE])
@pytest.mark.parametrize("batches", [1, 2, 3, 6])
def test_every_batch_gives_what_numpy_gives(
    tiles: popart.TileSet, strategy: popart.ExchangeStrategy, batches: int
) -> None:
    found, right = run(tiles, strategy, batches)
    assert np.allclose(found.reshape(right.shape), right, atol=1e-5)


@pytest.mark.parametrize("strategy", [JIT, INNER])
def test_anchors_that_come_now_and_then_are_of_their_batches(
    strategy: popart.ExchangeStrategy,
) -> None:
    found, right = run(IO, strategy, 7, ("EVERYN", 2))
    assert np.allclose(found, right[1::2], atol=1e-5)
    found, right = run(IO, strategy, 7, ("FINAL",))
    assert np.allclose(found, right[-1], atol=1e-5)
    found, right = run(IO, strategy, 7, ("SUM",))
    assert np.allclose(found, right.sum(axis=0), atol=1e-4)


def test_a_pipeline_over_two_ipus_loads_and_stores_beside_its_stages() -> None:
    found, right = run(IO, INNER, 6, stages=2, enablePipelining=True)
    assert np.allclose(found, right, atol=1e-5)


def report(folder: Path, tiles: popart.TileSet, strategy: popart.ExchangeStrategy) -> Dataset:
    """Return the report of a step of twelve batches."""
    run(tiles, strategy, 12, folder=folder)
    return registry.read(folder)


def test_loading_and_storing_are_hidden_but_for_the_first_and_the_last(tmp_path: Path) -> None:
    apart, beside = (
        report(tmp_path / s.name, IO, s).value("execution", "cycles") for s in (JIT, INNER)
    )
    data = registry.read(tmp_path / INNER.name)
    exchange = data.array("host_exchange_cycles").max(axis=1)
    loading, storing = exchange[exchange > 100][:2]
    assert check(data) == []
    assert apart - beside > 0.9 * 10 * min(loading, storing)
    steps, kinds = data.table("steps"), data.texts("steps", "type")
    streams = (kinds == "StreamCopy") & (steps["cycles"] > 100)
    exposed = (steps["cycles_to"] - steps["cycles_from"])[streams]
    assert (exposed > 0).sum() < len(exposed)


def trained(
    tiles: popart.TileSet, strategy: popart.ExchangeStrategy, folder: Path, batches: int = 3
) -> np.ndarray:
    """Return the weight after a step of batches of four micro-batches."""
    proto, x, out = model(tiles, strategy)
    session = popart.TrainingSession(
        proto,
        popart.DataFlow(batches, {out: popart.AnchorReturnType("ALL", tiles, strategy)}),
        popart.IdentityLoss(out, "loss"),
        popart.ConstSGD(0.01),
        device(),
        userOptions=options(tiles, folder, enableGradientAccumulation=True, accumulationFactor=4),
        name="",
    )
    session.prepareDevice()
    session.weightsFromHost()
    data = np.random.default_rng(1).normal(size=(batches * 4, SIZE, SIZE)).astype(np.float32)
    session.run(popart.PyStepIO({x: data}, session.initAnchorArrays()))
    session.weightsToHost()
    kept = {"w0": np.zeros_like(WEIGHT)}
    session.readWeights(kept)
    return kept["w0"]


@pytest.mark.parametrize("strategy", [JIT, INNER, LOOPS])
def test_weights_are_those_of_training_without_io_tiles(
    tmp_path: Path, strategy: popart.ExchangeStrategy
) -> None:
    right = trained(COMPUTE, JIT, tmp_path / "right")
    found = trained(IO, strategy, tmp_path / "found")
    assert not np.allclose(right, WEIGHT)
    assert np.allclose(found, right, atol=1e-5)
    assert check(registry.read(tmp_path / "found")) == []


def test_over_both_loops_more_is_hidden_than_over_the_inner_one(tmp_path: Path) -> None:
    cycles = {}
    for strategy in (JIT, INNER, LOOPS):
        trained(IO, strategy, tmp_path / strategy.name)
        cycles[strategy] = registry.read(tmp_path / strategy.name).value("execution", "cycles")
    assert cycles[LOOPS] < cycles[INNER] < cycles[JIT]


@pytest.mark.parametrize("count", [3, 32, 64])
def test_a_number_of_io_tiles_that_cannot_be_is_refused(count: int) -> None:
    proto, _, out = model(IO, INNER)
    flow = popart.DataFlow(1, [out])
    session = popart.InferenceSession(
        proto, flow, device(), userOptions=popart.SessionOptions(numIOTiles=count)
    )
    with pytest.raises(popart.popart_exception, match="numIOTiles"):
        session.prepareDevice()


def test_io_tiles_that_are_not_there_and_overlapped_steps_are_refused() -> None:
    proto, _, out = model(IO, INNER)
    session = popart.InferenceSession(proto, popart.DataFlow(1, [out]), device())
    with pytest.raises(popart.popart_exception, match="numIOTiles is 0"):
        session.prepareDevice()
    with pytest.raises(popart.popart_exception, match="OverlapStep"):
        popart.InputSettings(IO, popart.ExchangeStrategy.OverlapStep)
    with pytest.raises(popart.popart_exception, match="virtualGraphMode"):
        _ = popart.SessionOptions(
            numIOTiles=4, virtualGraphMode=popart.VirtualGraphMode.Off
        ).io_tiles


def test_each_replica_has_a_link_of_its_own_to_the_host(tmp_path: Path) -> None:
    proto, x, out = model(IO, INNER)
    data = np.random.default_rng(5).normal(size=(4, 2, SIZE, SIZE)).astype(np.float32)
    cycles = []
    for replicas in (1, 2):
        session = popart.InferenceSession(
            proto,
            popart.DataFlow(4, {out: popart.AnchorReturnType("ALL", IO, INNER)}),
            device(replicas),
            userOptions=options(
                IO, tmp_path / str(replicas), enableReplicatedGraphs=True,
                replicatedGraphCount=replicas,
            ),
            name="",
        )  # fmt: skip
        session.prepareDevice()
        anchors = session.initAnchorArrays()
        given = data[:, :replicas]
        session.run(popart.PyStepIO({x: given}, anchors))
        right = wanted(given.reshape(-1, SIZE, SIZE)).reshape(given.shape)
        assert np.allclose(anchors[out].reshape(right.shape), right, atol=1e-5)
        report = registry.read(tmp_path / str(replicas))
        cycles.append(report.array("host_exchange_cycles"))
        assert check(report) == []
    assert np.array_equal(*cycles)  # of one replica, whose link no other one shares
