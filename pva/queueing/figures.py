"""The figures of a replay: wait, fill, padding, latency, throughput."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pva.array_types import Integers
from pva.queueing.replay import DONE, REFUSED, REJECTED, Outcome, queue_lengths

PERCENTILES = (50, 90, 95, 99, 99.9)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a replay comes to. Times in nanoseconds, rates a second.

    `fill` is the share of the rows on the device that belong to requests, the others are
    `padding_rows`. `device_share` is the share of time in which devices run: near 1 they do not
    keep up. `queue_mean_ns` is the wait for a batch to be sent; latency is from arrival to answer.
    """

    requests: int
    answered: int
    rejected: int
    refused: int
    rows: int
    batches: int
    rows_per_batch: float
    pieces: int
    fill: float
    padding_rows: int
    device_ns: int
    device_share: float
    span_ns: int
    requests_per_second: float
    rows_per_second: float
    queue_mean_ns: float
    queue_longest: int
    latency_mean_ns: float
    latency_p50_ns: float
    latency_p90_ns: float
    latency_p95_ns: float
    latency_p99_ns: float
    latency_p99_9_ns: float
    latency_max_ns: float


def figures(outcome: Outcome) -> Figures:
    """Sum up a replay. A percentile is that of `numpy.percentile`: between the two nearest."""
    at, device = outcome.arrivals.at_ns, outcome.device
    is_done = outcome.how == DONE
    latency = (outcome.answered_ns - at)[is_done]
    waits = (outcome.sent_ns - at)[is_done]
    rows, pieces = int(outcome.piece_rows.sum()), len(outcome.piece_rows)
    last = int(outcome.answered_ns.max(initial=0))
    span = last - int(at[0]) if len(at) else 0
    seconds = span / 1e9 or np.nan
    points = np.percentile(latency, PERCENTILES) if len(latency) else [np.nan] * len(PERCENTILES)
    p50, p90, p95, p99, p99_9 = map(float, points)
    return Figures(
        requests=len(at), answered=int(is_done.sum()),
        rejected=int((outcome.how == REJECTED).sum()),
        refused=int((outcome.how == REFUSED).sum()), rows=rows, batches=len(outcome.batch_rows),
        rows_per_batch=rows / max(len(outcome.batch_rows), 1), pieces=pieces,
        fill=rows / max(pieces * device.rows, 1), padding_rows=pieces * device.rows - rows,
        device_ns=pieces * device.batch_ns,
        device_share=pieces * device.batch_ns / (device.instances * span) if span else np.nan,
        span_ns=span, requests_per_second=len(latency) / seconds, rows_per_second=rows / seconds,
        queue_mean_ns=_mean(waits), queue_longest=int(queue_lengths(outcome)[1].max(initial=0)),
        latency_mean_ns=_mean(latency), latency_p50_ns=p50, latency_p90_ns=p90,
        latency_p95_ns=p95, latency_p99_ns=p99, latency_p99_9_ns=p99_9,
        latency_max_ns=float(latency.max()) if len(latency) else np.nan,
    )  # fmt: skip


def _mean(values: Integers) -> float:
    return float(values.mean()) if len(values) else float("nan")
