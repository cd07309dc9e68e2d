from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.serving.server import Server
from simulator.serving.settings import Settings
from simulator.serving.triton_messages.protocol import message, message_class
from tests.serving.small_models import SYNCHRONOUS, WEIGHTS

grpc = pytest.importorskip("grpc")
X = np.random.default_rng(31).normal(size=(3, 8)).astype(np.float32)
SERVICE = "/inference.GRPCInferenceService/"


class Client:
    """A client of the service, made of the messages alone."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel

    def __call__(self, name: str, /, **fields: Any) -> Any:
        ask = self.channel.unary_unary(
            SERVICE + name,
            request_serializer=message_class(f"{name}Request").SerializeToString,
            response_deserializer=message_class(f"{name}Response").FromString,
        )
        return ask(message_class(f"{name}Request")(**fields), timeout=20)

    def stream(self, requests: list[Any]) -> Iterator[Any]:
        ask = self.channel.stream_stream(
            f"{SERVICE}ModelStreamInfer",
            request_serializer=message_class("ModelInferRequest").SerializeToString,
            response_deserializer=message_class("ModelStreamInferResponse").FromString,
        )
        return ask(iter(requests), timeout=20)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    from simulator.serving.kserve.grpc_service import serve

    listening, port = serve(server, Settings(), "127.0.0.1:0", 100_000, 4)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Client(channel)
    listening.stop(0).wait()


def asked(name: str = "lin", **more: Any) -> dict[str, Any]:
    one = {"name": "x", "datatype": "FP32", "shape": [3, 8]}
    return {
        "model_name": name,
        "id": "9",
        "inputs": [one],
        "raw_input_contents": [X.tobytes()],
    } | more


def is_right(response: Any) -> bool:
    found = np.frombuffer(response.raw_output_contents[0], "<f4").reshape(3, 3)
    return np.allclose(found, X @ WEIGHTS, atol=1e-4)


def test_raw_and_typed_contents_give_what_numpy_gives(client: Client) -> None:
    response = client("ModelInfer", **asked())
    assert is_right(response) and (response.id, response.model_version) == ("9", "1")
    assert response.parameters["device_cycles"].int64_param > 0
    assert response.parameters["host_us"].double_param > 0
    typed = {"name": "x", "datatype": "FP32", "shape": [3, 8],
             "contents": {"fp32_contents": X.ravel().tolist()}}  # fmt: skip
    assert is_right(client("ModelInfer", **asked(inputs=[typed], raw_input_contents=[])))


def test_a_stream_answers_in_order_and_a_bad_request_in_it_by_a_line(client: Client) -> None:
    requests = [message("ModelInferRequest", **asked(id=str(number))) for number in range(20)]
    requests[7] = message("ModelInferRequest", **asked("no", id="7"))
    answers = list(client.stream(requests))
    assert [one.infer_response.id for one in answers] == [str(number) for number in range(20)]
    assert answers[7].error_message.startswith("unknown model 'no'")
    assert all(is_right(one.infer_response) for one in answers[:7] + answers[8:])


def test_methods_beside_inference_tell_what_http_tells(client: Client, server: Server) -> None:
    assert client("ServerLive").live and client("ServerReady").ready
    assert client("ModelReady", name="lin").ready and not client("ModelReady", name="no").ready
    assert "statistics" in client("ServerMetadata").extensions
    metadata = client("ModelMetadata", name="lin")
    assert list(metadata.inputs[0].shape) == [-1, 8] and list(metadata.versions) == ["1"]
    assert client("ModelConfig", name="lin").config.max_batch_size == 16
    (counted,) = client("ModelStatistics", name="lin").model_stats
    assert counted.execution_count == server.served("lin").statistics.executions
    assert client("RepositoryIndex").models[0].state == "READY"
    assert client("TraceSetting").settings["trace_level"].value == ["OFF"]
    assert client("LogSettings").settings["log_info"].bool_param
    assert not client("SystemSharedMemoryStatus").regions


@pytest.mark.parametrize(
    ("name", "fields", "code"),
    [
        ("ModelInfer", asked("no"), "NOT_FOUND"),
        ("ModelInfer", asked(raw_input_contents=[b"1"]), "INVALID_ARGUMENT"),
        ("ModelInfer", asked(raw_input_contents=[b"", b""]), "INVALID_ARGUMENT"),
        ("ModelInfer", asked(raw_input_contents=[]), "INVALID_ARGUMENT"),
        ("ModelInfer", asked(inputs=[{"name": "x", "datatype": "F", "shape": []}]),
         "INVALID_ARGUMENT"),
        ("ModelInfer", asked(raw_input_contents=[bytes(200_000)]), "RESOURCE_EXHAUSTED"),
        ("RepositoryModelLoad", {"model_name": "lin"}, "INVALID_ARGUMENT"),
        ("CudaSharedMemoryRegister", {"name": "r"}, "UNIMPLEMENTED"),
        ("TraceSetting", {"settings": {"colour": {"value": ["x"]}}}, "INVALID_ARGUMENT"),
    ],
)  # fmt: skip
def test_an_error_has_its_status_and_a_line(
    client: Client, name: str, fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        client(name, **fields)
    assert raised.value.code().name == code and "\n" not in raised.value.details()


def test_a_request_that_is_cancelled_while_it_waits_leaves_the_queue(
    started: Callable[..., Server],
) -> None:
    from simulator.serving.kserve.grpc_service import serve

    delay = 'parameters { key: "execute_delay_ms" value { string_value: "200" } }'
    server = started(SYNCHRONOUS + delay)
    served = server.served("lin")
    listening, port = serve(server, Settings(), "127.0.0.1:0", 100_000, 4)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = channel.unary_unary(
            f"{SERVICE}ModelInfer",
            request_serializer=message_class("ModelInferRequest").SerializeToString,
            response_deserializer=message_class("ModelInferResponse").FromString,
        )
        first = ask.future(message("ModelInferRequest", **asked()))
        wait_for(lambda: served.running)
        second = ask.future(message("ModelInferRequest", **asked()))
        wait_for(lambda: served.waiting.count)
        second.cancel()
        wait_for(lambda: not served.waiting.count)
        assert is_right(first.result())
        wait_for(lambda: served.statistics.failures["CANCELED"].count)
    listening.stop(0).wait()
    assert served.statistics.executions == 1


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_without_grpcio_the_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    import sys

    from pva.errors import MissingPackageError
    from simulator.serving.kserve.grpc_service import serve

    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(MissingPackageError, match=r"tilescope\[serving\]"):
        serve(server, Settings(), "127.0.0.1:0", 1, 1)


def test_the_service_has_the_twenty_methods_of_the_interface(server: Server) -> None:
    from simulator.serving.kserve.grpc_service import Methods

    table = Methods(server, Settings()).table()
    assert len(table) == 20
    for request, response, _ in table.values():
        assert message_class(request) and message_class(response)


def test_a_port_that_is_taken_is_one_line(tmp_path: Path, server: Server) -> None:
    import socket

    from pva.errors import PvaError
    from simulator.serving.live import _bound

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PvaError, match=f"--http 127.0.0.1:{port}: .*; another port, or 0"):
            _bound("127.0.0.1", port, "--http")
