"""What can be set while the server runs, tracing and logging; and the traces that it records.

Requests are traced as Triton does, their number bounded: one of `trace_rate`, `trace_count` at most
(-1: as many as MOST). Source: Triton, docs/protocol/extension_trace.md, extension_logging.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import numpy as np

from pva.formats.files import replacing
from pva.formats.traces.triton_trace import MISSING, STAGES, TritonRequests, write
from simulator.serving.server import InferResponse

MOST = 1_000_000  # requests that are held
LEVELS = ("OFF", "TIMESTAMPS")
LOGGING: dict[str, object] = {
    "log_file": "", "log_info": True, "log_warning": True, "log_error": True,
    "log_verbose_level": 0, "log_format": "default",
}  # fmt: skip
FORMAT = "a trace of Triton"


class SettingError(ValueError):
    """A setting that there is not, or a value that it cannot have."""


class Settings:
    """Tracing and logging of a server. Several threads ask and record."""

    def __init__(self, trace_file: Path | None = None, rate: int = 1, count: int = -1) -> None:
        self._trace: dict[str, object] = {
            "trace_level": ["TIMESTAMPS" if trace_file else "OFF"], "trace_rate": str(rate),
            "trace_count": str(count), "log_frequency": "0",
            "trace_file": str(trace_file or ""), "trace_mode": "triton",
        }  # fmt: skip
        self._logging = dict(LOGGING)
        self._lock = Lock()
        self._seen = 0
        self._rows: list[tuple[object, ...]] = []

    def trace(self, values: Mapping[str, object]) -> dict[str, object]:
        """Change settings of tracing and return all; raises SettingError."""
        with self._lock:
            changed = dict(self._trace)
            for name, value in values.items():
                changed[name] = _trace_value(name, value, self._trace)
            self._trace = changed
            return dict(changed)

    def logging(self, values: Mapping[str, object]) -> dict[str, object]:
        """Change settings of logging and return all; raises SettingError."""
        with self._lock:
            for name, value in values.items():
                if name not in LOGGING or type(value) is not type(LOGGING[name]):
                    raise SettingError(f"logging setting {name!r}: {str(value)[:40]!r}")
            if values.get("log_file"):
                raise SettingError("logging setting 'log_file': this server logs to stderr")
            self._logging |= values
            return dict(self._logging)

    @contextmanager
    def recorded(self, protocol: str, request_id: str) -> Iterator[Callable[[InferResponse], None]]:
        """Trace a request, where it is its turn; the block hands over the answer."""
        begin = time.perf_counter_ns()
        traced = self._chooses()
        answers: list[InferResponse] = []
        yield answers.append
        if traced and answers:
            end = time.perf_counter_ns()
            row = (protocol, request_id, begin, end, answers[0])
            with self._lock:
                self._rows.append(_moments(*row))

    def _chooses(self) -> bool:
        if self._trace["trace_level"] == ["OFF"]:
            return False
        with self._lock:
            self._seen += 1
            count = int(str(self._trace["trace_count"]))
            rate = int(str(self._trace["trace_rate"]))
            most = MOST if count < 0 else min(count, MOST)
            return len(self._rows) < most and (self._seen - 1) % rate == 0

    @property
    def traced(self) -> int:
        """Return how many requests are traced so far."""
        return len(self._rows)

    def write_trace(self) -> Path | None:
        """Write what is traced to the file that was asked for; return it. Raises PvaError."""
        name = str(self._trace["trace_file"])
        with self._lock:
            rows = list(self._rows)
        if not name or not rows:
            return None
        path = Path(name)
        with replacing(path, FORMAT) as stream:
            write(_columns(path, rows), stream)
        return path


def _trace_value(name: str, value: object, current: Mapping[str, object]) -> object:
    """Check a setting of tracing; None sets it back."""
    if name not in current:
        raise SettingError(f"trace setting {name!r}: there are {', '.join(current)}")
    if name == "trace_level":
        levels = value if isinstance(value, list) else [value or "OFF"]
        if len(levels) != 1 or levels[0] not in LEVELS:
            raise SettingError(f"trace_level {levels}: {' or '.join(LEVELS)}")
        return levels
    if name in ("trace_rate", "trace_count"):
        text = str(value if value is not None else (1 if name == "trace_rate" else -1))
        least = 1 if name == "trace_rate" else -1
        if not text.lstrip("-").isdecimal() or len(text) > 12 or int(text) < least:
            raise SettingError(f"{name} {text[:40]!r}: a whole number from {least} on")
        return text
    if str(value) != str(current[name]):
        raise SettingError(f"trace setting {name!r} is fixed when the server starts")
    return current[name]


def _moments(
    protocol: str, request_id: str, begin: int, end: int, answer: InferResponse
) -> tuple[object, ...]:
    result = answer.result
    stages = {
        "REQUEST_START": begin, "QUEUE_START": result.queue_begin,
        "COMPUTE_START": result.compute_begin, "COMPUTE_INPUT_END": result.input_end,
        "COMPUTE_OUTPUT_START": result.output_begin, "COMPUTE_END": result.compute_end,
        "INFER_RESPONSE_COMPLETE": result.compute_end, "REQUEST_END": end,
    }  # fmt: skip
    first = answer.outputs[0][1] if answer.outputs else np.zeros(1)
    rows = len(first) if np.ndim(first) else 1
    times = [stages.get(stage, MISSING) for stage in STAGES]
    return answer.model, answer.version, request_id, rows, times


def _columns(path: Path, rows: list[tuple[object, ...]]) -> TritonRequests:
    count = len(rows)
    model, version, request_id, size, times = (list(column) for column in zip(*rows, strict=True))
    return TritonRequests(
        path, np.arange(1, count + 1), np.zeros(count, np.int64), np.array(size, np.int64),
        model, version, request_id, np.array(times, np.int64).T.copy(),
    )  # fmt: skip
