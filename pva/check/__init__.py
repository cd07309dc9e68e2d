"""Conservation laws that every report must keep; `check` names those that one breaks."""

from __future__ import annotations

from pva.check import (
    agreement,
    blocks,
    by_ipu,
    execution,
    flows,
    graph,
    instrumentation,
    liveness,
    memory,
    names,
    shares,
    written,
)
from pva.check.law import Law, Violation
from pva.data.dataset import Dataset

__all__ = ["LAWS", "Law", "Violation", "check"]

LAWS: tuple[Law, ...] = (
    *names.LAWS,
    *graph.LAWS,
    *written.LAWS,
    *memory.LAWS,
    *liveness.LAWS,
    *execution.LAWS,
    *instrumentation.LAWS,
    *blocks.LAWS,
    *agreement.LAWS,
    *shares.LAWS,
    *by_ipu.LAWS,
    *flows.LAWS,
)


def check(data: Dataset) -> list[Violation]:
    """Check a dataset by every law whose tables and arrays it has."""
    return [violation for law in LAWS for violation in law.broken_by(data)]
