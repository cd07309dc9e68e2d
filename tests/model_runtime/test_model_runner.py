"""The runner: each request gets its own answer, in batches that are cut and filled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from simulator import model_runtime
from simulator.model_runtime import ModelRunner, ModelRunnerConfig
from simulator.poplar import PoplarError
from tests.popart.models import model, node, prepared
from tests.popef.files import W, X, session


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("popef") / "net.popef"
    session().saveExecutable(file)
    return file


def test_requests_of_any_size_get_their_rows_whatever_they_are_batched_with(path):
    random = np.random.default_rng(30)
    given = [random.random((n, 3), np.float32) for n in random.integers(1, 6, 40)]
    config = ModelRunnerConfig(batching_dim=0, replication_factor=2, timeout_ns=0)
    with ModelRunner(path, config) as runner:
        futures = [runner.executeAsync({"x": x}) for x in given]
        for x, future in zip(given, futures, strict=True):
            np.testing.assert_allclose(future.get()["y"], x @ W, rtol=1e-6)


def test_the_last_batch_of_a_request_is_filled_up(path):
    with ModelRunner(path, ModelRunnerConfig(batching_dim=0, timeout_ns=0)) as runner:
        one, three = runner.execute({"x": X[:1]}), runner.execute({"x": np.repeat(X, 2, 0)[:3]})
    assert (one.padding, three.padding) == (1, 1)
    assert three.cycles == 2 * one.cycles > 0  # two batches, of the same program


def test_cycles_are_those_of_the_engine(path):
    made = session()
    before = made._engine.getTimeStamp().cycles
    made.run(model_runtime_step(made))
    cycles = made._engine.getTimeStamp().cycles - before
    with ModelRunner(path) as runner:
        assert [runner.execute({"x": X}).cycles for _ in range(2)] == [cycles, cycles]


def model_runtime_step(made):
    from simulator.popart import PyStepIO

    return PyStepIO({"x": X}, made.initAnchorArrays())


def test_iterations_of_a_step_without_a_request_are_fed_zeros(tmp_path):
    session(3).saveExecutable(tmp_path / "three.popef")
    with ModelRunner(tmp_path / "three.popef", ModelRunnerConfig(timeout_ns=0)) as runner:
        alone = runner.execute({"x": X})
        np.testing.assert_allclose(alone["y"], X @ W)
        futures = [runner.executeAsync({"x": X * k}) for k in range(7)]
        for k, future in enumerate(futures):
            np.testing.assert_allclose(future.get()["y"], X @ W * k)


def test_clients_in_threads_get_their_own_answers(path):
    def ask(k):
        return runner.execute({"x": X + k})["y"]

    with ModelRunner(path) as runner, ThreadPoolExecutor(8) as clients:
        for k, found in enumerate(clients.map(ask, range(64))):
            np.testing.assert_allclose(found, (X + k) @ W)


def test_arrays_are_filled_in_place(path):
    out = np.zeros((2, 4), np.float32)
    with ModelRunner(path) as runner:
        assert runner.execute({"x": X}, {"y": out})["y"] is out
    np.testing.assert_allclose(out, X @ W)


def test_a_frozen_input_is_given_once(tmp_path):
    proto = model([node("Add", "x z", "y")], {"x": [2, 3], "z": [3]}, ["y"])
    prepared(proto, ["y"]).saveExecutable(tmp_path / "add.popef")
    frozen = ModelRunnerConfig(frozen_inputs={"z": np.full(3, 5, np.float32)}, batching_dim=0)
    with ModelRunner(tmp_path / "add.popef", frozen) as runner:
        assert [desc.name for desc in runner.getExecuteInputs()] == ["x"]
        np.testing.assert_array_equal(runner.execute({"x": X})["y"], X + 5)
    with pytest.raises(PoplarError, match="the first sizes differ: 'x' 2, 'z' 3, 'y' 2"):
        ModelRunner(tmp_path / "add.popef", ModelRunnerConfig(batching_dim=0))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input 'x' is not given"),
        ({"x": X, "z": X}, "no input 'z'; there are x"),
        ({"x": X.T}, r"input 'x' is float32 \[3, 2\]; f32 \[2, 3\] is needed"),
        ({"x": X.astype(np.float64)}, r"input 'x' is float64 \[2, 3\]"),
    ],
)
def test_a_wrong_request_is_refused_before_it_waits(path, inputs, message):
    with ModelRunner(path) as runner:
        with pytest.raises(PoplarError, match=message):
            runner.executeAsync(inputs)
        runner.execute({"x": X.astype(np.float16)})  # whose values all fit


def test_a_closed_runner_takes_no_request(path):
    runner = ModelRunner(path)
    runner.close()
    with pytest.raises(PoplarError, match="it is closed"):
        runner.execute({"x": X})


def test_queues_hold_the_arrays_of_the_next_steps(path):
    run = model_runtime.Session(path)
    run.bindToDevice()
    run.runLoadPrograms()
    queues = run.createQueueManager()
    outs = [np.ones((2, 4), np.float32) for _ in range(3)]
    for k, out in enumerate(outs[:2]):
        queues.inputQueue("x").enqueue(X * k)
        queues.outputQueue("y").enqueue(out)
    for _ in range(3):
        run.runMainPrograms()  # the third without arrays: zeros in, nothing out
    np.testing.assert_allclose(outs, [X @ W * 0, X @ W, np.ones((2, 4))])
    with pytest.raises(PoplarError, match="no input 'z'; there are x"):
        queues.inputQueue("z")


def test_a_device_is_waited_for_as_long_as_told():
    from datetime import timedelta

    wait = model_runtime.DeviceWaitConfig(
        model_runtime.DeviceWaitStrategy.WAIT_WITH_TIMEOUT,
        timeout=timedelta(milliseconds=20),
        sleepTime=timedelta(milliseconds=5),
    )
    manager = model_runtime.DeviceManager()
    whole = manager.acquireDevice(16)
    with pytest.raises(PoplarError, match="no device with 1 IPUs is free"):
        manager.acquireDevice(1, wait)
    whole.detach()
    manager.acquireDevice(1, wait).detach()
