"""Triton's own client against `serve-model live`, in an environment of its own: make test-serving.

The client pins packages to other versions than ours; the server runs in the environment beside it.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tritonclient")
import ml_dtypes
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv" / "bin" / "python"
WEIGHTS = np.arange(24, dtype=np.float32).reshape(8, 3) / 10
KINDS = {
    "FP32": np.float32, "FP16": np.float16, "INT32": np.int32, "UINT32": np.uint32,
    "BOOL": np.bool_, "UINT8": np.uint8, "INT8": np.int8, "INT16": np.int16, "UINT16": np.uint16,
    "INT64": np.int64, "UINT64": np.uint64, "FP64": np.float64,
    "BF16": ml_dtypes.bfloat16,
}  # fmt: skip
PROTOCOLS = ("http", "grpc")
Ports = dict[str, int]


class Process:
    """A server in a process of its own."""

    def __init__(self, repository: Path, *options: str, ports: Ports | None = None) -> None:
        wanted = ports or {"http": 0, "grpc": 0, "metrics": 0}
        chosen = [f"--{name}={number}" for name, number in wanted.items()]
        command = [PYTHON, "-m", "cli.main", "serve-model", "live", repository, *chosen, *options]
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.ports: Ports = {}
        for line in self.process.stdout or ():
            if match := re.fullmatch(r"(http|grpc|metrics): (\d+)\n", line):
                self.ports[match[1]] = int(match[2])
            if line.startswith("ready"):
                return
        raise AssertionError(f"the server ended with {self.process.wait()}")

    def kill(self, number: int = signal.SIGTERM) -> int:
        """End the process; return its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(30)
        if self.process.stdout:
            self.process.stdout.close()
        return code

    def memory(self) -> int:
        """Return the bytes that the process holds."""
        text = Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([PYTHON, "-m", "tests.triton.repository", folder], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[Process]:
    models = [path.name for path in repository.iterdir()]
    options = [part for name in models for part in ("--load-model", name)]
    process = Process(repository, "--model-control-mode", "explicit", *options)
    yield process
    assert process.kill() == 0


def client(process: Process, protocol: str) -> tuple[Any, Any]:
    """Return a client and the module that it is of."""
    module = triton_http if protocol == "http" else triton_grpc
    return module.InferenceServerClient(f"127.0.0.1:{process.ports[protocol]}"), module


def tensor(module: Any, array: np.ndarray, kind: str = "FP32", **more: Any) -> Any:
    one = module.InferInput("x", list(array.shape), kind)
    one.set_data_from_numpy(array, **more)
    return one


def drawn(number: int, rows: int) -> np.ndarray:
    return np.random.default_rng(number).normal(size=(rows, 8)).astype(np.float32)


def is_right(result: Any, array: np.ndarray) -> bool:
    return np.allclose(result.as_numpy("y"), array @ WEIGHTS, atol=1e-4)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_client_finds_server_models_and_configuration(server: Process, protocol: str) -> None:
    asking, _ = client(server, protocol)
    assert asking.is_server_live() and asking.is_server_ready()
    assert asking.is_model_ready("linear") and not asking.is_model_ready("none")
    more = {"as_json": True} if protocol == "grpc" else {}
    assert asking.get_server_metadata(**more)["name"] == "tilescope"
    metadata = asking.get_model_metadata("linear", **more)
    assert [int(size) for size in metadata["inputs"][0]["shape"]] == [-1, 8]
    config = asking.get_model_config("linear", **more)
    assert config.get("config", config)["max_batch_size"] == 16
    index = asking.get_model_repository_index(**more)
    rows = index["models"] if protocol == "grpc" else index
    assert {row["state"] for row in rows} == {"READY"} and len(rows) == 2 + len(KINDS)


@pytest.mark.parametrize("raw_in", [True, False])
@pytest.mark.parametrize("raw_out", [True, False])
def test_http_takes_json_and_raw_tensors_in_all_four_ways(
    server: Process, raw_in: bool, raw_out: bool
) -> None:
    asking, module = client(server, "http")
    array = drawn(1, 5)
    outputs = [module.InferRequestedOutput("y", binary_data=raw_out)]
    for packed in (None, "gzip", "deflate"):
        result = asking.infer(
            "linear", [tensor(module, array, binary_data=raw_in)], outputs=outputs, request_id="7",
            request_compression_algorithm=packed, response_compression_algorithm=packed,
        )  # fmt: skip
        assert is_right(result, array)
    told = result.get_response()
    assert told["id"] == "7" and told["parameters"]["device_cycles"] > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_tensor_of_each_type_comes_back_as_it_was(
    server: Process, protocol: str, kind: str
) -> None:
    asking, module = client(server, protocol)
    array = np.array([[0, 1, 2], [100, 7, 0]]).astype(KINDS[kind])
    result = asking.infer(f"identity_{kind.lower()}", [tensor(module, array, kind)])
    assert result.as_numpy("y").dtype == array.dtype
    assert result.as_numpy("y").tolist() == array.tolist()
    if protocol == "http" and kind not in ("FP16", "BF16"):
        values = tensor(module, array, kind, binary_data=False)
        outputs = [module.InferRequestedOutput("y", binary_data=False)]
        result = asking.infer(f"identity_{kind.lower()}", [values], outputs=outputs)
        assert result.as_numpy("y").tolist() == array.tolist()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_classes_come_as_texts(server: Process, protocol: str) -> None:
    asking, module = client(server, protocol)
    array = drawn(2, 2)
    outputs = [module.InferRequestedOutput("y", class_count=1)]
    found = asking.infer("linear", [tensor(module, array)], outputs=outputs).as_numpy("y")
    best = [int(text.decode().split(":")[1]) for text in found.ravel()]
    assert best == (array @ WEIGHTS).argmax(axis=1).tolist()


def test_asynchronous_requests_of_http_grpc_and_a_stream_are_all_answered(server: Process) -> None:
    arrays = [drawn(number, 1 + number % 4) for number in range(24)]
    asking, module = client(server, "http")
    waiting = [asking.async_infer("linear", [tensor(module, array)]) for array in arrays]
    assert all(is_right(one.get_result(), array)
               for one, array in zip(waiting, arrays, strict=True))  # fmt: skip
    asking, module = client(server, "grpc")
    answers: queue.Queue[Any] = queue.Queue()
    for number, array in enumerate(arrays):
        asking.async_infer(
            "linear", [tensor(module, array)], request_id=str(number),
            callback=lambda result, error: answers.put((result, error)),
        )  # fmt: skip
    asking.start_stream(callback=lambda result, error: answers.put((result, error)))
    for number, array in enumerate(arrays):
        asking.async_stream_infer("linear", [tensor(module, array)], request_id=str(number))
    found = [answers.get(timeout=20) for _ in range(2 * len(arrays))]
    asking.stop_stream()
    assert [error for _, error in found if error] == []
    assert all(is_right(one, arrays[int(one.get_response().id)]) for one, _ in found)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_errors_are_lines(server: Process, protocol: str) -> None:
    asking, module = client(server, protocol)
    good = tensor(module, drawn(1, 1))
    wrong = module.InferInput("z", [1, 8], "FP32")
    wrong.set_data_from_numpy(drawn(1, 1))
    calls = {
        "unknown model 'none'": lambda: asking.infer("none", [good]),
        "no version '9'": lambda: asking.infer("linear", [good], model_version="9"),
        "input 'x' is missing": lambda: asking.infer("linear", [wrong]),
        "at most 16": lambda: asking.infer("linear", [tensor(module, drawn(1, 17))]),
        "no shared memory": lambda: asking.register_system_shared_memory("a", "b", 1),
        "no model 'none'": lambda: asking.load_model("none"),
    }
    for words, call in calls.items():
        with pytest.raises(InferenceServerException, match=words):
            call()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_statistics_and_settings_are_read_and_set(server: Process, protocol: str) -> None:
    asking, module = client(server, protocol)
    more = {"as_json": True} if protocol == "grpc" else {}

    def count() -> int:
        (found,) = asking.get_inference_statistics("slow", **more)["model_stats"]
        return int(found.get("inference_count", 0))

    before = count()
    asking.infer("slow", [tensor(module, drawn(1, 3))])
    assert count() == before + 3
    changed = asking.update_trace_settings(settings={"trace_rate": "5"}, **more)
    assert "5" in str(changed) and "log_info" in str(asking.get_log_settings(**more))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_model_that_is_unloaded_while_it_runs_answers_what_waits(
    server: Process, protocol: str
) -> None:
    asking, module = client(server, protocol)
    arrays = [drawn(number, 2) for number in range(6)]

    def ask(array: np.ndarray) -> bool:
        own, _ = client(server, protocol)
        return is_right(own.infer("slow", [tensor(module, array)]), array)

    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(ask, array) for array in arrays]
        time.sleep(0.12)  # two of them are done, one runs, the others wait
        asking.unload_model("slow")
        found = [future.exception(30) or future.result() for future in futures]
    late = [one for one in found if one is not True]
    assert all("slow" in str(one) for one in late) and len(late) < 6
    assert not asking.is_model_ready("slow")
    asking.load_model("slow")
    assert asking.is_model_ready("slow")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sixteen_clients_at_once_lose_and_mix_up_no_answer(server: Process, protocol: str) -> None:
    def ask(first: int) -> int:
        asking, module = client(server, protocol)
        arrays = [drawn(1000 * first + number, 1 + number % 7) for number in range(25)]
        return sum(is_right(asking.infer("linear", [tensor(module, one)]), one) for one in arrays)

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(16))) == [25] * 16


def test_a_killed_server_starts_again_on_its_ports(repository: Path) -> None:
    first = Process(repository, "--model-control-mode", "explicit", "--load-model", "linear")
    asking, module = client(first, "http")
    assert is_right(asking.infer("linear", [tensor(module, drawn(1, 2))]), drawn(1, 2))
    assert first.kill(signal.SIGKILL) == -signal.SIGKILL
    again = Process(repository, "--model-control-mode", "explicit", "--load-model", "linear",
                    ports=first.ports)  # fmt: skip
    for protocol in PROTOCOLS:
        asking, module = client(again, protocol)
        assert is_right(asking.infer("linear", [tensor(module, drawn(2, 2))]), drawn(2, 2))
    assert again.kill() == 0


def test_memory_stays_flat_under_load(server: Process) -> None:
    asking, module = client(server, "http")

    def load(seconds: float) -> int:
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            asking.infer("linear", [tensor(module, drawn(count, 4))])
            count += 1
        return count

    load(3)
    before = server.memory()
    count = load(6)
    assert count > 100
    assert server.memory() - before < 4 << 20
