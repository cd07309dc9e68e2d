"""What a served version has done: counts and times, as Triton's statistics and metrics have them.

A request counts once whatever its rows; inferences count rows, executions count batches. Times are
those of the host, in nanoseconds; cycles of the device stand beside them and are never added up
with them. Source: Triton, docs/user_guide/metrics.md, docs/protocol/extension_statistics.md.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from threading import Lock

PARTS = ("queue", "compute_input", "compute_infer", "compute_output")
FAILURES = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
RECENT = 4096  # requests that quantiles are of


@dataclass(slots=True)
class Duration:
    """How often, and how long together."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int, count: int = 1) -> None:
        """Count another one, or several that take as long each."""
        self.count += count
        self.ns += ns * count

    def plain(self) -> dict[str, int]:
        """Return both for JSON."""
        return {"count": self.count, "ns": self.ns}


@dataclass(slots=True)
class Batches:
    """Executions of one number of rows."""

    compute_input: Duration = field(default_factory=Duration)
    compute_infer: Duration = field(default_factory=Duration)
    compute_output: Duration = field(default_factory=Duration)


@dataclass(slots=True)
class Statistics:
    """The counters of one version. Several threads add to them."""

    success: Duration = field(default_factory=Duration)
    parts: dict[str, Duration] = field(default_factory=lambda: {p: Duration() for p in PARTS})
    failures: dict[str, Duration] = field(
        default_factory=lambda: {reason: Duration() for reason in FAILURES}
    )
    batches: dict[int, Batches] = field(default_factory=dict)
    inferences: int = 0
    executions: int = 0
    cycles: int = 0
    last_ms: int = 0
    recent: deque[tuple[int, ...]] = field(default_factory=lambda: deque(maxlen=RECENT))
    lock: Lock = field(default_factory=Lock)

    def answered(self, total_ns: int, parts: tuple[int, int, int, int]) -> None:
        """Count a request that was answered, with its times in the order of PARTS."""
        with self.lock:
            self.success.add(total_ns)
            for name, ns in zip(PARTS, parts, strict=True):
                self.parts[name].add(ns)
            self.recent.append((total_ns, *parts))

    def failed(self, reason: str, ns: int) -> None:
        """Count a request that was not."""
        with self.lock:
            self.failures[reason].add(ns)

    def executed(self, rows: int, times: tuple[int, int, int], cycles: int) -> None:
        """Count a batch, with the times of its input, run and output."""
        with self.lock:
            self.inferences += rows
            self.executions += 1
            self.cycles += cycles
            self.last_ms = time.time_ns() // 1_000_000
            batches = self.batches.setdefault(rows, Batches())
            names = ("compute_input", "compute_infer", "compute_output")
            for name, ns in zip(names, times, strict=True):
                getattr(batches, name).add(ns)

    def plain(self, name: str, version: str) -> dict[str, object]:
        """Return all as JSON of the protocol has them."""
        with self.lock:
            fail = Duration()
            for one in self.failures.values():
                fail.count, fail.ns = fail.count + one.count, fail.ns + one.ns
            parts = {part: duration.plain() for part, duration in self.parts.items()}
            none = Duration().plain()
            rows = [
                {"batch_size": size, "compute_input": one.compute_input.plain(),
                 "compute_infer": one.compute_infer.plain(),
                 "compute_output": one.compute_output.plain()}
                for size, one in sorted(self.batches.items())
            ]  # fmt: skip
            return {
                "name": name, "version": version, "last_inference": self.last_ms,
                "inference_count": self.inferences, "execution_count": self.executions,
                "inference_stats": {
                    "success": self.success.plain(), "fail": fail.plain(), **parts,
                    "cache_hit": none, "cache_miss": none,
                },
                "batch_stats": rows, "memory_usage": [],
            }  # fmt: skip
