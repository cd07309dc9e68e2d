"""Where the time of each request of a replay went, as rows, and as a trace of Triton."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pva.formats.traces.triton_trace import MISSING, STAGES, TritonRequests
from pva.lazy import pandas as pd
from pva.queueing.replay import DONE, Outcome

HOW = ("answered", "rejected", "refused")


def request_spans(outcome: Outcome) -> pd.DataFrame:
    """Return a row a request; times in nanoseconds, `arrival_ns` since the first arrival.

    `queue_ns` is until its batch is sent, `device_wait_ns` until its first rows run, `execute_ns`
    until its last are done and, where order is preserved, earlier requests are answered.
    """
    at = outcome.arrivals.at_ns
    return pd.DataFrame(
        {
            "arrival_ns": at,
            "rows": outcome.arrivals.rows,
            "how": np.array(HOW, object)[outcome.how],
            "batch": outcome.batch,
            "queue_ns": outcome.sent_ns - at,
            "device_wait_ns": outcome.run_ns - outcome.sent_ns,
            "execute_ns": outcome.answered_ns - outcome.run_ns,
            "latency_ns": outcome.answered_ns - at,
        }
    )


def as_triton(outcome: Outcome, model: str, version: str) -> TritonRequests:
    """Return the requests that were answered as Triton would have traced them."""
    answered = np.flatnonzero(outcome.how == DONE)
    moments = np.full((len(STAGES), len(answered)), MISSING, np.int64)
    stages = {
        "REQUEST_START": outcome.arrivals.at_ns, "QUEUE_START": outcome.arrivals.at_ns,
        "COMPUTE_START": outcome.sent_ns, "COMPUTE_INPUT_END": outcome.run_ns,
        "COMPUTE_OUTPUT_START": outcome.answered_ns, "COMPUTE_END": outcome.answered_ns,
        "INFER_RESPONSE_COMPLETE": outcome.answered_ns, "REQUEST_END": outcome.answered_ns,
    }  # fmt: skip
    for stage, times in stages.items():
        moments[STAGES.index(stage)] = times[answered]
    count = len(answered)
    return TritonRequests(
        Path(model), answered + 1, np.zeros(count, np.int64), outcome.arrivals.rows[answered],
        [model] * count, [version] * count, [""] * count, moments,
    )  # fmt: skip
