"""The counters of all models in Prometheus's text, under Triton's names.

Sources: Triton, docs/user_guide/metrics.md; Prometheus, text-based exposition format. Families that
begin with `tilescope_` are ours: cycles of the simulated device.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from simulator.serving.served import Served
from simulator.serving.server import Server

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
PARTS = ("queue", "compute_input", "compute_infer", "compute_output")
# Name, type, what it is; where it comes from follows in `_values`.
FAMILIES = (
    ("nv_inference_request_success", "counter", "Number of successful requests"),
    ("nv_inference_request_failure", "counter", "Number of failed requests, by reason"),
    ("nv_inference_count", "counter", "Number of inferences: rows of all batches"),
    ("nv_inference_exec_count", "counter", "Number of batches that ran"),
    ("nv_inference_pending_request_count", "gauge", "Requests that wait for a batch"),
    ("nv_inference_request_duration_us", "counter", "Time of requests, of the host"),
    *((f"nv_inference_{part}_duration_us", "counter", f"Time of {part}, of the host")
      for part in PARTS),
    *((f"nv_inference_{part}_summary_us", "summary", f"Time of {part} of recent requests")
      for part in ("request", *PARTS)),
    ("tilescope_device_cycles", "counter", "Cycles of the simulated device"),
)  # fmt: skip


def metrics_text(server: Server) -> str:
    """Return the text of all families."""
    versions = [(served, _values(served)) for served in server.all_served()]
    lines = []
    for name, kind, meaning in FAMILIES:
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        for served, values in versions:
            lines += [_line(name, served, suffix, labels, value)
                      for suffix, labels, value in values[name]]  # fmt: skip
    return "\n".join(lines) + "\n"


Value = tuple[str, dict[str, str], float]


def _values(served: Served) -> dict[str, list[Value]]:
    counted = served.statistics
    with counted.lock:
        recent = np.array(counted.recent, np.int64).reshape(-1, 1 + len(PARTS))
        values: dict[str, list[Value]] = {
            "nv_inference_request_success": [("", {}, counted.success.count)],
            "nv_inference_request_failure": [
                ("", {"reason": reason}, one.count) for reason, one in counted.failures.items()
            ],
            "nv_inference_count": [("", {}, counted.inferences)],
            "nv_inference_exec_count": [("", {}, counted.executions)],
            "nv_inference_pending_request_count": [("", {}, served.waiting.count)],
            "nv_inference_request_duration_us": [("", {}, counted.success.ns // 1000)],
            "tilescope_device_cycles": [("", {}, counted.cycles)],
        }
        sums = [counted.success, *(counted.parts[part] for part in PARTS)]
        for part in PARTS:
            name = f"nv_inference_{part}_duration_us"
            values[name] = [("", {}, counted.parts[part].ns // 1000)]
        totals = [(one.ns // 1000, one.count) for one in sums]
    for column, part in enumerate(("request", *PARTS)):
        name = f"nv_inference_{part}_summary_us"
        values[name] = list(_summary(recent[:, column], *totals[column]))
    return values


def _summary(recent: npt.NDArray[np.int64], total: int, count: int) -> Iterator[Value]:
    for quantile in QUANTILES:
        value = float(np.quantile(recent, quantile)) / 1000 if len(recent) else float("nan")
        yield "", {"quantile": f"{quantile:g}"}, value
    yield "_sum", {}, total
    yield "_count", {}, count


def _line(name: str, served: Served, suffix: str, labels: dict[str, str], value: float) -> str:
    pairs = {"model": served.name, "version": served.number, **labels}
    text = ",".join(f'{key}="{_escaped(one)}"' for key, one in pairs.items())
    number = "NaN" if value != value else f"{value:.10g}"
    return f"{name}{suffix}{{{text}}} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
