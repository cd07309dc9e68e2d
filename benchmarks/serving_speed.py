"""Measure what the server adds to a request, and its memory under load.

    python -m benchmarks.serving_speed [--seconds 60] [--rate 200]

One client asks a linear model with raw tensors, in turns with `session.run` of the same program in
this process. Goals: the median of a request over HTTP at most 1 ms above that of `session.run`,
and memory that grows by less than 1 MB a minute under a load of `--rate` requests a second.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from simulator import popart
from tests.serving.small_models import SYNCHRONOUS, WEIGHTS, compile_linear, write_model

ROOT = Path(__file__).parent.parent
ADDED_MS, GROWTH, TURNS, ROWS = 1.0, 1 << 20, 500, 4


def started(repository: Path) -> tuple[subprocess.Popen[str], int]:
    """Start a server; return it and its port of HTTP."""
    command = [sys.executable, "-m", "cli.main", "serve-model", "live", repository,
               "--http", "0", "--grpc", "off", "--metrics", "off"]  # fmt: skip
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True,
                               env=environment)  # fmt: skip
    for line in process.stdout or ():
        if match := re.fullmatch(r"http: (\d+)\n", line):
            return process, int(match[1])
    raise SystemExit(f"the server ended with {process.wait()}")


def session() -> popart.InferenceSession:
    """Return a session of the same program."""
    builder = popart.Builder()
    x = builder.addInputTensor(popart.TensorInfo("FLOAT", [ROWS, 8]), "x")
    y = builder.aiOnnx.matmul([x, builder.addInitializedInputTensor(WEIGHTS, "w")])
    flow = popart.DataFlow(1, {y: popart.AnchorReturnType("ALL")})
    device = popart.DeviceManager().createIpuModelDevice({"numIPUs": 1, "tilesPerIPU": 4})
    options = popart.SessionOptions()
    options.engineOptions = {"autoReport.outputExecutionProfile": "false"}
    made = popart.InferenceSession(builder.getModelProto(), flow, device, userOptions=options)
    made.prepareDevice()
    made.weightsFromHost()
    return made


def ask(connection: http.client.HTTPConnection, array: np.ndarray) -> np.ndarray:
    """Ask with raw tensors; return the output."""
    head = json.dumps({
        "inputs": [{"name": "x", "shape": list(array.shape), "datatype": "FP32",
                    "parameters": {"binary_data_size": array.nbytes}}],
        "parameters": {"binary_data_output": True},
    }).encode()  # fmt: skip
    length = "Inference-Header-Content-Length"
    connection.request("POST", "/v2/models/linear/infer", head + array.tobytes(),
                       {length: str(len(head))})  # fmt: skip
    answer = connection.getresponse()
    return np.frombuffer(answer.read()[int(answer.headers[length]) :], "<f4")


def medians(connection: http.client.HTTPConnection) -> tuple[float, float]:
    """Return the median times of a request and of `session.run`, in milliseconds."""
    own, array = session(), np.ones((ROWS, 8), np.float32)
    anchors = own.initAnchorArrays()
    step = popart.PyStepIO({"x": array}, anchors)
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(TURNS + 20):
        for place, act in enumerate((lambda: ask(connection, array), lambda: own.run(step))):
            begin = time.perf_counter()
            act()
            if turn >= 20:
                times[place].append(1000 * (time.perf_counter() - begin))
    return float(np.median(times[0])), float(np.median(times[1]))


def grown(
    process: subprocess.Popen[str], connection: http.client.HTTPConnection, seconds: float,
    rate: float,
) -> tuple[int, float]:  # fmt: skip
    """Load the server; return requests, and the growth of its memory in bytes a minute."""
    array = np.ones((ROWS, 8), np.float32)
    expected = (array @ WEIGHTS).ravel()
    begin, count = time.monotonic(), 0
    samples: list[tuple[float, int]] = []
    while (now := time.monotonic() - begin) < seconds:
        if not np.allclose(ask(connection, array), expected, atol=1e-4):
            raise SystemExit("a wrong answer")
        count += 1
        if now > len(samples) * seconds / 100:
            pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            samples.append((now, pages * os.sysconf("SC_PAGESIZE")))
        time.sleep(max(0.0, count / rate - (time.monotonic() - begin)))
    at, held = np.array(samples[len(samples) // 5 :]).T
    return count, 60 * float(np.polyfit(at, held, 1)[0])


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        compile_linear(write_model(Path(directory), "linear", SYNCHRONOUS) / "1", ROWS)
        process, port = started(Path(directory))
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            request, run = medians(connection)
            count, growth = grown(process, connection, arguments.seconds, arguments.rate)
        finally:
            process.terminate()
            process.wait()
    print("| figure | measured | goal | |\n| --- | ---: | ---: | --- |")
    added = request - run
    for name, value, goal in (
        (f"a request, median; session.run takes {run:.2f} ms: added, ms", added, ADDED_MS),
        (f"{count:,} requests in {arguments.seconds:g} s: memory grows, kB a minute",
         growth / 1024, GROWTH / 1024),
    ):  # fmt: skip
        print(f"| {name} | {value:.2f} | <= {goal:g} | {'met' if value <= goal else 'missed'} |")


if __name__ == "__main__":
    main()
