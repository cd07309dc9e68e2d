"""When requests arrive: of a Poisson process, as intervals, or as a server or a load test saw them.

`poisson:RATE` is RATE requests a second. `intervals.txt` is perf_analyzer's `--request-intervals`,
microseconds a line; `perf_analyzer.json` its `--profile-export-file`; `trace.json` what Triton
traced. Sources: perf_analyzer, docs/cli.md and docs/profile_export_file.md.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pva.array_types import Integers
from pva.errors import DamagedFileError, PvaError, UnknownFormatError
from pva.formats.traces import triton_trace
from pva.plain_file import contents, opened
from pva.queueing.replay import Arrivals

POISSON = "poisson:"
REQUESTS = 100_000  # of a Poisson process, unless more or fewer are asked for
MAX_REQUESTS = 10_000_000
NS, US = 1e9, 1000
FILE_LIMIT = 1 << 30  # bytes
HEAD = 4096  # bytes
LONGEST_NS = 1 << 60  # from the first to the last
FORMAT = "trace.json, perf_analyzer.json, poisson:RATE or intervals.txt"


class Timed(msgspec.Struct, gc=False):
    """A request of perf_analyzer: when it was sent, in ns."""

    timestamp: int


class Load(msgspec.Struct, gc=False, frozen=True):
    """The load of an experiment: concurrency, request_rate and the like, and its value."""

    mode: str = ""
    value: float = 0


class Experiment(msgspec.Struct, gc=False):
    """The requests of one load."""

    requests: list[Timed]
    experiment: Load = Load()


class Export(msgspec.Struct, gc=False):
    """What perf_analyzer writes with --profile-export-file."""

    experiments: list[Experiment]


def read_arrivals(
    source: str, *, requests: int = 0, seed: int = 0, rows: int = 1, experiment: int | None = None
) -> Arrivals:
    """Read or draw arrivals; time 0 is the first. `requests` 0: all, or as many as is usual.

    `rows` are those of each request, where the source does not tell. Raises PvaError.
    """
    if not 0 <= requests <= MAX_REQUESTS:
        raise PvaError(source, f"{requests:,} requests", f"at most {MAX_REQUESTS:,}")
    if source.startswith(POISSON):
        at = _poisson(source, requests or REQUESTS, seed)
        return Arrivals(at, np.full(len(at), rows, np.int64))
    path = Path(source)
    at, rows_of_requests = _of_file(path, experiment)
    if not requests or requests >= len(at):
        return _arrivals(path, at, rows_of_requests, rows)
    return _arrivals(path, at[:requests], rows_of_requests[:requests], rows)


def _arrivals(path: Path, at: Integers, recorded: Integers, rows: int) -> Arrivals:
    if not len(at):
        raise DamagedFileError(path, "no request", FORMAT)
    if int(at.max()) - int(at.min()) > LONGEST_NS:
        raise DamagedFileError(path, "times decades apart", "nanoseconds of one clock")
    order = np.argsort(at, kind="stable")
    return Arrivals(at[order] - at[order[0]], np.where(recorded > 0, recorded, rows)[order])


def _poisson(source: str, count: int, seed: int) -> Integers:
    try:
        rate = float(source.removeprefix(POISSON))
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and 1e-3 <= rate <= 1e9):
        raise PvaError(source, "no rate", "requests a second, as poisson:2000")
    gaps = np.random.default_rng(seed).exponential(NS / rate, count)
    gaps[0] = 0
    return np.cumsum(np.rint(gaps).astype(np.int64))


def _of_file(path: Path, experiment: int | None) -> tuple[Integers, Integers]:
    """Return when requests came and their rows, 0 where the file does not tell."""
    with opened(path, FORMAT) as stream:
        head = stream.read(HEAD)
    if triton_trace.is_triton(head):
        return _of_triton(path)
    text = head.lstrip()
    if text.startswith(b"{"):
        at = _of_export(path, experiment)
    elif text[:1].isdigit():
        at = _of_intervals(path)
    else:
        raise UnknownFormatError(path, f"begins with {head[:8]!r}" if head else "empty", FORMAT)
    return at, np.zeros_like(at)


def _of_triton(path: Path) -> tuple[Integers, Integers]:
    requests = triton_trace.read(path)
    at = requests.at("QUEUE_START")
    for stage in ("REQUEST_START", "HTTP_RECV_START", "GRPC_WAITREAD_START"):
        at = np.where(at < 0, requests.at(stage), at)
    queued = (at >= 0) & (requests.parent == 0)
    return at[queued], requests.rows[queued]


def _of_export(path: Path, experiment: int | None) -> Integers:
    try:
        export = msgspec.json.decode(contents(path, FORMAT, FILE_LIMIT), type=Export)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedFileError(path, str(error), "an export of perf_analyzer") from None
    loads = [f"{one.experiment.mode} {one.experiment.value:g}" for one in export.experiments]
    if experiment is None and len(loads) == 1:
        experiment = 1
    if experiment is None or not 1 <= experiment <= len(loads):
        named = "; ".join(f"{number} is {load}" for number, load in enumerate(loads, 1))
        problem = (
            f"{len(loads)} experiments" if experiment is None else f"no experiment {experiment}"
        )
        raise PvaError(path, problem, f"choose one with --experiment: {named}" if named else FORMAT)
    times: list[Any] = [one.timestamp for one in export.experiments[experiment - 1].requests]
    try:
        return np.array(times, np.int64)
    except OverflowError:
        raise DamagedFileError(path, "a timestamp beyond 64 bits", "nanoseconds") from None


def _of_intervals(path: Path) -> Integers:
    """Read the microseconds between requests; the first request comes after the first of them."""
    times = []
    for number, line in enumerate(contents(path, FORMAT, FILE_LIMIT).split(b"\n"), 1):
        if text := line.strip():
            if not text.isdigit() or len(text) > 15:
                place, problem = f"line {number}", ascii(text[:20].decode("latin-1"))
                raise DamagedFileError(path, problem, "whole microseconds", place=place)
            times.append(int(text) * US)
    if sum(times) > LONGEST_NS:
        raise DamagedFileError(path, "times decades apart", "microseconds between requests")
    return np.cumsum(np.array(times, np.int64))
