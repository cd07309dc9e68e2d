from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pva.errors import PvaError
from simulator.model_runtime import ModelRunner, ModelRunnerConfig
from simulator.serving.program import batch_facts
from simulator.serving.repository import read_model
from simulator.serving.served import RequestError
from simulator.serving.server import InferRequest, InferResponse, Server
from tests.serving.small_models import SYNCHRONOUS, WEIGHTS, write_model

Start = Callable[..., Server]
BATCHING = "dynamic_batching {{ max_queue_delay_microseconds: {delay} {more} }}\n"
SLOW = 'parameters {{ key: "execute_delay_ms" value {{ string_value: "{}" }} }}\n'


def rows(number: int, count: int = 1) -> np.ndarray:
    return np.random.default_rng(number).normal(size=(count, 8)).astype(np.float32)


def infer(server: Server, array: np.ndarray, **parameters: object) -> InferResponse:
    return server.infer(InferRequest("lin", "", "", parameters, {"x": array}))


def is_right(response: InferResponse, array: np.ndarray) -> bool:
    return np.allclose(response.outputs[0][1], array @ WEIGHTS, atol=1e-4)


@pytest.mark.parametrize("more", [SYNCHRONOUS, ""])
def test_many_clients_each_get_their_own_answer(started: Start, more: str) -> None:
    server = started(more + "dynamic_batching { max_queue_delay_microseconds: 1000 }", instances=2)
    arrays = [rows(number, 1 + number % 5) for number in range(160)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda array: infer(server, array), arrays))
    assert all(map(is_right, answers, arrays))
    counted = server.served("lin").statistics
    assert counted.success.count == 160 and counted.inferences == sum(map(len, arrays))
    assert counted.executions < 160  # requests shared batches


def test_a_batch_goes_as_soon_as_a_preferred_size_is_there(started: Start) -> None:
    server = started(
        SYNCHRONOUS + BATCHING.format(delay=60_000_000, more="preferred_batch_size: 3")
    )
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda number: infer(server, rows(number)), range(3)))
    assert [one.parameters["batch_rows"] for one in answers] == [3, 3, 3]
    assert len({one.parameters["batch"] for one in answers}) == 1


def test_cycles_are_those_of_the_runner_and_none_of_the_host_s(started: Start) -> None:
    server = started()
    model = read_model(server.repository, "lin")
    with ModelRunner(model.newest.executable, ModelRunnerConfig(batching_dim=0)) as runner:
        expected = runner.execute({"x": rows(1, 4)}).cycles
    assert infer(server, rows(1, 4)).parameters["device_cycles"] == expected
    assert infer(server, rows(1, 9)).parameters["device_cycles"] == 3 * expected
    facts = batch_facts(model.settings, model.newest)
    assert (facts["cycles"], facts["rows"], facts["clock"]) == (expected, 4, 1.33e9)


def test_a_full_queue_refuses_and_a_late_request_is_rejected(started: Start) -> None:
    policy = "default_queue_policy { max_queue_size: 1 default_timeout_microseconds: 50000 }"
    server = started(SYNCHRONOUS + BATCHING.format(delay=0, more=policy) + SLOW.format(300), most=1)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(infer, server, rows(1))
        end = time.monotonic() + 10
        while not server.served("lin").running and time.monotonic() < end:
            time.sleep(0.001)
        late = pool.submit(infer, server, rows(2))
        while not server.served("lin").waiting.count and time.monotonic() < end:
            time.sleep(0.001)
        with pytest.raises(RequestError, match="its queue is full"):
            infer(server, rows(3))
        with pytest.raises(RequestError, match="waited longer than its timeout"):
            late.result()
        assert is_right(first.result(), rows(1))
    assert server.served("lin").statistics.failures["REJECTED"].count == 2


def test_answers_keep_the_order_of_arrival_where_that_is_asked_for(started: Start) -> None:
    more = SYNCHRONOUS + BATCHING.format(delay=0, more="preserve_ordering: true") + SLOW.format(30)
    multiplier = SLOW.format("4").replace("execute_delay_ms", "instance_wise_delay_multiplier")
    server = started(more + multiplier, most=1, instances=2)  # 30 ms and 120 ms
    order: list[int] = []
    asked = [InferRequest("lin", "", "", {}, {"x": rows(number)}) for number in range(6)]
    requests = [server.submitted(server.served("lin"), one) for one in asked]
    for number, request in enumerate(requests):
        request.content.future.add_done_callback(lambda _, number=number: order.append(number))
    assert len({request.content.future.result().batch for request in requests}) == 6
    assert order == sorted(order)


def test_what_waits_is_answered_when_its_model_is_unloaded(started: Start) -> None:
    server = started(SYNCHRONOUS + SLOW.format(20), mode="explicit")
    asked = [InferRequest("lin", "", "", {}, {"x": rows(number)}) for number in range(8)]
    requests = [server.submitted(server.served("lin"), one) for one in asked]
    server.unload("lin")
    for number, request in enumerate(requests):
        result = request.content.future.result(timeout=10)
        assert np.allclose(result.outputs["y"], rows(number) @ WEIGHTS, atol=1e-4)
    with pytest.raises(RequestError, match="unknown model 'lin'"):
        infer(server, rows(1))
    assert server.index()[0]["reason"] == "unloaded"
    server.load("lin")
    assert is_right(infer(server, rows(1)), rows(1))
    with pytest.raises(RequestError, match="no model 'none'; there are lin"):
        server.load("none")


def test_a_model_that_does_not_fit_its_executable_is_one_line(started: Start) -> None:
    changes = [
        ("dims: [ 8 ]", "dims: [ 9 ]", r"input\[0\].dims: \[9\]; .* is \[8\] a row"),
        ('name: "y" data_type: TYPE_FP32', 'name: "y" data_type: TYPE_FP16', "data_type: FP16"),
        ('name: "y"', 'name: "z"', r"output\[0\].name: 'z'; the executable has y"),
    ]
    server = started(mode="explicit")
    folder = server.repository / "lin"
    text = (folder / "config.pbtxt").read_text()
    for before, after, words in changes:
        (folder / "config.pbtxt").write_text(text.replace(before, after))
        with pytest.raises(RequestError, match=words):
            server.load("lin")
        assert is_right(infer(server, rows(1)), rows(1))  # what was loaded goes on


def test_a_foreign_file_is_no_executable_and_ends_the_start(tmp_path) -> None:
    folder = write_model(tmp_path, "lin")
    (folder / "1" / "executable.popef").write_bytes(b"\x00" * 100)
    with pytest.raises(PvaError, match="its layout is not public"):
        Server(tmp_path).start()


WARM_UP = """model_warmup {{ name: "w" batch_size: 2 count: 3
  inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: 8 {data} }} }} }}\n"""


@pytest.mark.parametrize("data", ["zero_data: true", "random_data: true"])
def test_warm_up_runs_before_a_model_is_ready_and_is_not_counted(started: Start, data: str) -> None:
    server = started(SYNCHRONOUS + WARM_UP.format(data=data))
    served = server.served("lin")
    assert served.statistics.executions == 0
    assert served.programs[0].runner._steps[0].session._engine.getTimeStamp().cycles > 0


def test_a_file_of_warm_up_data_that_is_too_short_is_one_line(started: Start, tmp_path) -> None:
    (tmp_path / "models" / "lin" / "warmup").mkdir(parents=True)
    (tmp_path / "models" / "lin" / "warmup" / "d.bin").write_bytes(b"1234")
    with pytest.raises(PvaError, match=r"d.bin: input 'x': 4 bytes; 64 for \[2, 8\]"):
        started(SYNCHRONOUS + WARM_UP.format(data='input_data_file: "d.bin"'))


def test_a_changed_model_is_loaded_again_when_files_are_polled(started: Start) -> None:
    server = started(mode="poll")
    before = server.served("lin")
    server._ended.set()
    path = server.repository / "lin" / "config.pbtxt"
    path.write_text(path.read_text().replace("max_batch_size: 16", "max_batch_size: 32"))
    server._ended.clear()
    threading.Thread(target=server._poll, args=(0.02,), daemon=True).start()
    end = time.monotonic() + 5
    while server.served("lin") is before and time.monotonic() < end:
        time.sleep(0.01)
    assert server.served("lin").settings.rules.most_rows == 32
