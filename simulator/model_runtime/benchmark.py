"""`python -m simulator.model_runtime.benchmark FILE`: how long requests take, on host and device.

Latency and throughput are those of the simulator on this host; the device's own, from its cycles,
stand beside them and are never mixed with them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np

from pva import units
from pva.errors import PvaError
from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.model_runtime.config import ModelRunnerConfig
from simulator.model_runtime.memory import DataDesc
from simulator.model_runtime.runner import ModelRunner

WARM_UP, SEED = 10, 1


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of requests on the host, and what the device took.

    `rows` are those of a request, `device_cycles` those of all steps for each request. The device's
    seconds are of its steps alone, one after another without time between them; of several devices
    they are those of the one that had most to do.
    """

    requests: int
    rows: int
    threads: int
    latency_max: float
    latency_min: float
    latency_average: float
    latency_p99: float
    seconds: float
    requests_per_second: float
    rows_per_second: float
    device_cycles: float
    device_seconds: float
    device_rows_per_second: float


def measured(
    runner: ModelRunner, iterations: int, threads: int = 1, rows: int | None = None
) -> Measured:
    """Send so many requests of random values, by as many threads; give what they took.

    Without `rows` a request has those of a batch. Ten requests go before, which do not count.
    """
    inputs = random_inputs(runner.getExecuteInputs(), rows)

    def ask(_: int) -> float:
        begin = time.perf_counter()
        runner.execute(inputs)
        return time.perf_counter() - begin

    for number in range(WARM_UP):
        ask(number)
    before = runner.device_cycles
    with ThreadPoolExecutor(threads) as clients:
        begin = time.perf_counter()
        latency = np.array(list(clients.map(ask, range(iterations))))
        seconds = time.perf_counter() - begin
    cycles = np.subtract(runner.device_cycles, before)
    request_rows = rows or runner.rows_of_request
    busy = float(cycles.max()) / runner.clock_frequency  # of the device that had most to do
    return Measured(
        iterations, request_rows, threads,
        float(latency.max()), float(latency.min()), float(latency.mean()),
        float(np.percentile(latency, 99)), seconds, iterations / seconds,
        iterations * request_rows / seconds, float(cycles.sum()) / iterations, busy,
        iterations * request_rows / busy if busy else 0.0,
    )  # fmt: skip


def random_inputs(descs: Sequence[DataDesc], rows: int | None = None) -> dict[str, Array]:
    """Return normal numbers for floats and 0 for all else, of so many rows if told."""
    random = np.random.default_rng(SEED)
    inputs = {}
    for desc in descs:
        shape = desc.shape if rows is None else (rows, *desc.shape[1:])
        values = random.normal(size=shape) if desc.dtype.kind == "f" else np.zeros(shape)
        inputs[desc.name] = values.astype(desc.dtype)
    return inputs


def lines(result: Measured) -> list[str]:
    """Return what was measured as text."""
    latency = (result.latency_max, result.latency_min, result.latency_average, result.latency_p99)
    names = ("max", "min", "average", "P99")
    shown = ", ".join(
        f"{name} {units.duration(seconds)}" for name, seconds in zip(names, latency, strict=True)
    )
    clients = "1 thread" if result.threads == 1 else f"{result.threads} threads"
    return [
        f"requests    {result.requests:,} of {result.rows:,} rows, from {clients}",
        f"latency     {shown} (of the simulator on this host)",
        f"throughput  {result.requests_per_second:,.1f} requests/s, {result.rows_per_second:,.1f}"
        f" rows/s (of the simulator on this host), in {units.duration(result.seconds)}",
        f"device      {result.device_cycles:,.0f} cycles a request"
        f", {units.duration(result.device_seconds)} in all,"
        f" {result.device_rows_per_second:,.0f} rows/s"
        " (of the modelled machine)",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print latency, throughput and the device's own for a PopEF file."""
    parser = argparse.ArgumentParser(prog="python -m simulator.model_runtime.benchmark")
    parser.add_argument("file", nargs="+", help="PopEF file; further ones have weights")
    parser.add_argument("--iterations", type=int, default=100, help="requests (100)")
    parser.add_argument("--threads", type=int, default=1, help="threads that send requests (1)")
    parser.add_argument("--replicas", type=int, default=1, help="copies of the program (1)")
    parser.add_argument("--rows", type=int, help="rows of a request, cut and filled to batches")
    parser.add_argument("--timeout-ns", type=int, default=0, help="wait for a full batch (0)")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    options = parser.parse_args(arguments)
    for name in ("iterations", "threads", "rows"):
        if (value := getattr(options, name)) is not None and value < 1:
            parser.error(f"--{name} is {value}; at least 1 is needed")
    try:
        config = ModelRunnerConfig(
            replication_factor=options.replicas,
            timeout_ns=options.timeout_ns,
            batching_dim=None if options.rows is None else 0,
        )
        with ModelRunner(options.file, config) as runner:
            result = measured(runner, options.iterations, options.threads, options.rows)
    except (PvaError, PoplarError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(asdict(result)) if options.json else "\n".join(lines(result)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
