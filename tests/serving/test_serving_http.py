from __future__ import annotations

import gzip
import io
import json
import zlib
from typing import Any

import numpy as np
import pytest

from simulator.serving.kserve.http import application
from simulator.serving.server import Server
from simulator.serving.settings import Settings
from tests.serving.small_models import WEIGHTS

X = np.random.default_rng(30).normal(size=(5, 8)).astype(np.float32)
MOST = 100_000  # bytes
LENGTH = "Inference-Header-Content-Length"


def asked(
    server: Server, path: str, body: bytes | None = None, **headers: Any
) -> tuple[int, dict[str, str], bytes]:
    """Ask the application as waitress does; return status, headers and body."""
    environ = {
        "REQUEST_METHOD": "GET" if body is None else "POST", "PATH_INFO": path,
        "CONTENT_LENGTH": str(len(body or b"")), "wsgi.input": io.BytesIO(body or b""),
        **{f"HTTP_{name}": str(value) for name, value in headers.items()},
    }  # fmt: skip
    environ |= {"CONTENT_LENGTH": headers["length"]} if "length" in headers else {}
    found: list[Any] = []
    answer = application(server, Settings(), MOST)(environ, lambda *start: found.extend(start))
    return int(found[0].split()[0]), dict(found[1]), b"".join(answer)


def plain(server: Server, path: str, value: Any = None) -> Any:
    body = None if value is None else json.dumps(value).encode()
    status, _, answer = asked(server, path, body)
    assert status == 200, answer
    return json.loads(answer)


def request(data: Any = None, **more: Any) -> dict[str, Any]:
    one = {"name": "x", "shape": [5, 8], "datatype": "FP32"}
    one |= {"data": data} if data is not None else {}
    return {"inputs": [one | more]}


def of_values(answer: dict[str, Any]) -> np.ndarray:
    (output,) = answer["outputs"]
    return np.array(output["data"], np.float32).reshape(output["shape"])


def test_json_in_and_out_gives_what_numpy_gives_with_cycles_beside_the_host_s_time(
    server: Server,
) -> None:
    for data in (X.ravel().tolist(), X.tolist()):
        answer = plain(server, "/v2/models/lin/infer", request(data) | {"id": "7"})
        assert np.allclose(of_values(answer), X @ WEIGHTS, atol=1e-4)
    told = answer["parameters"]
    assert (answer["id"], answer["model_version"]) == ("7", "1")
    # 5 rows are two batches of 4 on a device, whose clock is 1.33 GHz.
    assert told["padding_rows"] == 3 and told["device_cycles"] % 2 == 0
    assert told["device_us"] == pytest.approx(told["device_cycles"] / 1330, rel=1e-3)
    assert told["host_us"] > 0


def test_raw_bytes_in_and_out_stand_behind_the_json(server: Server) -> None:
    head = request(parameters={"binary_data_size": X.nbytes})
    head["outputs"] = [{"name": "y", "parameters": {"binary_data": True}}]
    text = json.dumps(head).encode()
    status, headers, body = asked(
        server, "/v2/models/lin/versions/1/infer", text + X.tobytes(),
        INFERENCE_HEADER_CONTENT_LENGTH=len(text),
    )  # fmt: skip
    length = int(headers[LENGTH])
    assert status == 200 and headers["Content-Type"] == "application/octet-stream"
    (output,) = json.loads(body[:length])["outputs"]
    assert output["parameters"]["binary_data_size"] == len(body) - length == 5 * 3 * 4
    assert np.allclose(np.frombuffer(body[length:], "<f4").reshape(5, 3), X @ WEIGHTS, atol=1e-4)


def test_a_raw_body_is_the_one_input_and_gets_a_raw_answer(server: Server) -> None:
    _, headers, body = asked(server, "/v2/models/lin/infer", X[:1].tobytes(),
                             INFERENCE_HEADER_CONTENT_LENGTH=0)  # fmt: skip
    assert np.allclose(
        np.frombuffer(body[int(headers[LENGTH]) :], "<f4"), X[0] @ WEIGHTS, atol=1e-4
    )


@pytest.mark.parametrize("name", ["gzip", "deflate"])
def test_bodies_may_be_packed_and_so_are_answers_to_who_asks(server: Server, name: str) -> None:
    pack, unpack = (gzip.compress, gzip.decompress) if name == "gzip" else (
        zlib.compress, zlib.decompress)  # fmt: skip
    body = pack(json.dumps(request(X.tolist())).encode())
    status, headers, answer = asked(server, "/v2/models/lin/infer", body, CONTENT_ENCODING=name,
                                    ACCEPT_ENCODING=f"{name};q=1, br")  # fmt: skip
    assert (status, headers["Content-Encoding"]) == (200, name)
    assert np.allclose(of_values(json.loads(unpack(answer))), X @ WEIGHTS, atol=1e-4)


def test_classes_are_the_largest_values_with_index_and_label(server: Server) -> None:
    wanted = {"outputs": [{"name": "y", "parameters": {"classification": 2}}]}
    (output,) = plain(server, "/v2/models/lin/infer", request(X.tolist()) | wanted)["outputs"]
    best = np.argsort(-(X @ WEIGHTS), axis=1)[:, :2].ravel()
    labels = (":ape", ":bee", "")
    ends = [text.partition(":")[2] for text in output["data"]]
    assert ends == [f"{index}{labels[index]}" for index in best]
    assert (output["datatype"], output["shape"]) == ("BYTES", [5, 2])


def test_health_metadata_configuration_and_index_are_those_of_the_model(server: Server) -> None:
    assert asked(server, "/v2/health/live")[0] == asked(server, "/v2/health/ready")[0] == 200
    assert asked(server, "/v2/models/lin/ready")[0] == 200
    assert asked(server, "/v2/models/no/ready")[0] == 400
    assert "binary_tensor_data" in plain(server, "/v2")["extensions"]
    found = plain(server, "/v2/models/lin")
    assert found["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 8]}]
    config = plain(server, "/v2/models/lin/config")
    assert (config["name"], config["max_batch_size"], config["input"][0]["dims"]) == (
        "lin",
        16,
        [8],
    )
    index = plain(server, "/v2/repository/index", {})
    assert index == [{"name": "lin", "version": "1", "state": "READY", "reason": ""}]


def test_counters_add_up_in_statistics_and_metrics(started: Any) -> None:
    server = started()
    for rows in (5, 5, 2):
        one = request(X[:rows].tolist(), shape=[rows, 8])
        plain(server, "/v2/models/lin/infer", one)
    assert asked(server, "/v2/models/lin/infer", b"{}")[0] == 400
    (found,) = plain(server, "/v2/models/lin/stats")["model_stats"]
    assert (found["inference_count"], found["execution_count"]) == (12, 3)
    assert [(row["batch_size"], row["compute_infer"]["count"]) for row in found["batch_stats"]] == [
        (2, 1), (5, 2),
    ]  # fmt: skip
    times = found["inference_stats"]
    parts = ("queue", "compute_input", "compute_infer", "compute_output")
    assert times["success"]["count"] == times["queue"]["count"] == 3
    assert 0 < sum(times[part]["ns"] for part in parts) <= times["success"]["ns"]
    _, headers, text = asked(server, "/metrics")
    lines = dict(line.rsplit(" ", 1) for line in text.decode().splitlines() if line[0] != "#")
    told = '{model="lin",version="1"}'
    assert lines[f"nv_inference_request_success{told}"] == "3"
    assert lines[f"nv_inference_count{told}"] == "12"
    assert lines[f"nv_inference_exec_count{told}"] == "3"
    assert lines[f"nv_inference_pending_request_count{told}"] == "0"
    assert float(lines[f"nv_inference_request_summary_us_count{told}"]) == 3
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")


BAD = [
    ({}, 400, "inputs: a list of objects"),
    ({"inputs": [{"name": "x"}]}, 400, "datatype ''; one of BOOL"),
    (request([0.0] * 40, datatype="FP8"), 400, "datatype 'FP8'"),
    (request([0.0] * 39), 400, "39 values; 40 for its shape"),
    (request([[0.0]] * 40, shape=[5, 8, 1]), 400, r"input 'x' is [5, 8, 1]; [-1, 8]"),
    (request(["a"] * 40), 400, "data that is not FP32"),
    (request([[0.0], 1.0]), 400, "nested unevenly"),
    (request(), 400, "no data"),
    (request([], shape=[0, 8]), 400, "input 'x' is [0, 8]"),
    (request([], shape=[-1, 8]), 400, "sizes from 0 on"),
    (request([], shape=[1 << 39, 1 << 39]), 400, "elements; at most"),
    (request([0.0] * 40, name="z"), 400, "input 'x' is missing"),
    (request([0.0] * 160, shape=[20, 8]), 400, "batch size 20 of 'lin'; at most 16"),
    (request(parameters={"binary_data_size": 4}), 400, "binary_data_size 4; 0 bytes are left"),
    (request(parameters={"shared_memory_region": "r"}), 501, "no shared memory"),
    (request([0.0] * 40) | {"outputs": [{"name": "q"}]}, 400, "no output 'q'; there are y"),
    (request([0.0] * 40) | {"parameters": {"sequence_id": 3}}, 400, "no sequence batching"),
    (request([0.0] * 40) | {"parameters": {"priority": -1}}, 400, "parameter 'priority'"),
    (request([0.0] * 40) | {"id": 5}, 400, "id: '5'; a text"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "status", "words"), BAD)
def test_a_request_that_no_model_takes_is_answered_by_a_line(
    server: Server, value: Any, status: int, words: str
) -> None:
    found, _, body = asked(server, "/v2/models/lin/infer", json.dumps(value).encode())
    error = json.loads(body)["error"]
    assert found == status and words in error and "\n" not in error


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/v2/nothing", None, {}, 404),
        ("/v2/models/no/infer", b"{}", {}, 404),
        ("/v2/models/lin/versions/2/infer", b"{}", {}, 404),
        ("/v2/models/lin/infer", None, {}, 405),
        ("/v2/models/lin/infer", b"{", {}, 400),
        ("/v2/models/lin/infer", b"[" * 5_000, {}, 400),
        ("/v2/models/lin/infer", b"[]", {}, 400),
        ("/v2/models/lin/infer", b'{"inputs": NaN}', {}, 400),
        ("/v2/models/lin/infer", b"", {"length": str(MOST + 1)}, 413),
        ("/v2/models/lin/infer", b"", {"length": "many"}, 411),
        ("/v2/models/lin/infer", b"{}", {"CONTENT_ENCODING": "br"}, 415),
        ("/v2/models/lin/infer", b"{}", {"CONTENT_ENCODING": "gzip"}, 400),
        (
            "/v2/models/lin/infer",
            gzip.compress(bytes(MOST + 1), mtime=0),
            {"CONTENT_ENCODING": "gzip"},
            413,
        ),
        (
            "/v2/models/lin/infer",
            gzip.compress(b"{}", mtime=0)[:-4],
            {"CONTENT_ENCODING": "gzip"},
            400,
        ),
        ("/v2/models/lin/infer", b"{}", {"INFERENCE_HEADER_CONTENT_LENGTH": "9"}, 400),
        ("/v2/models/lin/infer", b"{}", {"INFERENCE_HEADER_CONTENT_LENGTH": "x"}, 400),
        ("/v2/models/lin/infer", b"{}", {"SEC_FETCH_SITE": "cross-site"}, 403),
        ("/v2/repository/models/lin/load", b"", {}, 400),
        ("/v2/systemsharedmemory/region/r/register", b"{}", {}, 501),
        ("/v2/trace/setting", b'{"trace_level": "ALL"}', {}, 400),
        ("/v2/logging", b'{"log_info": 3}', {}, 400),
    ],
)
def test_what_is_no_request_has_its_status_and_a_line(
    server: Server, path: str, body: bytes | None, headers: dict[str, str], status: int
) -> None:
    found, _, answer = asked(server, path, body, **headers)
    assert found == status and "\n" not in json.loads(answer)["error"]


def test_settings_of_tracing_and_logging_are_texts_and_stay(server: Server) -> None:
    assert plain(server, "/v2/trace/setting")["trace_level"] == ["OFF"]
    assert plain(server, "/v2/models/lin/trace/setting", {"trace_rate": "5"})["trace_rate"] == "5"
    assert plain(server, "/v2/logging", {"log_verbose_level": 1})["log_verbose_level"] == 1
    assert plain(server, "/v2/systemsharedmemory/status") == []


def test_a_fault_of_the_server_is_a_line_and_its_log_has_the_rest(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "infer", lambda *_: 1 / 0)
    status, _, body = asked(
        server, "/v2/models/lin/infer", json.dumps(request(X.tolist())).encode()
    )
    assert (status, json.loads(body)["error"]) == (
        500, "the server failed here; its log has the details",
    )  # fmt: skip
    assert "division by zero" in caplog.text
