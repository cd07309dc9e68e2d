"""Events by which a profiler wraps what it records: they are no work of the program.

PyTorch's profiler (Kineto) lays a span over the whole window, and another over each step that the
program told it; torch/csrc/profiler and libkineto/src/output_json.cpp name them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva.analysis.host.alignment import PHASES
from pva.array_types import Integers
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.trace import Trace

OWN_CHANNEL = "Trace"  # of the spans over the whole window
OWN_LABELS = re.compile(
    r"(Trace )?PyTorch Profiler( \(\d+\))?|ProfilerStep(\*|#\d+)?|Iteration Start: PyTorch Profiler"
    r"|(Record Window End)|.*\btorch/(autograd/)?profiler\b.*"
)


def is_wrapper(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return by label whether its events only wrap others, as a profiler adds them."""
    channels = np.array([name == OWN_CHANNEL for name in trace.channels], dtype=np.bool_)
    of_channel = channels[trace.label_channels] if len(trace.labels) else np.zeros(0, np.bool_)
    named = np.array([bool(OWN_LABELS.fullmatch(text)) for text in trace.labels], dtype=np.bool_)
    wraps: npt.NDArray[np.bool_] = of_channel | named
    return wraps


def is_simulated(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return by label whether its events are the simulator's own work in and between runs."""
    return np.array([text in PHASES for text in trace.labels], dtype=np.bool_)


def wrappers_last(frame: pd.DataFrame, trace: Trace) -> pd.DataFrame:
    """Put the rows of labels that only wrap others behind all others; the order stays else."""
    wrappers: Any = np.array(trace.labels, dtype=object)[is_wrapper(trace)]
    wraps = frame["label"].isin(set(wrappers.tolist()))
    return frame.iloc[np.argsort(wraps.to_numpy(), kind="stable")].reset_index(drop=True)


@dataclass(frozen=True, slots=True)
class LongestLabel:
    """The label that took the most time by itself, in ns, and its share of the time in events.

    `without` names whose events are in neither: a profiler's, the simulator's.
    """

    label: int
    self_ns: int
    share: float
    without: tuple[str, ...]


def longest_label(trace: Trace, self_time: Integers) -> LongestLabel | None:
    """Return the label of the program's work with the most self time; None without any.

    What only wraps others, and what the simulator does for itself in and between runs, is apart.
    `self_time` is in ns by label, and last that of what has no label.
    """
    apart = {"the profiler's own": is_wrapper(trace), "the simulator's own": is_simulated(trace)}
    hidden = np.logical_or.reduce(list(apart.values()))
    times = np.where(np.append(hidden, False), 0, self_time)
    total = int(times.sum())
    if not total:
        return None
    longest = int(times.argmax())
    spent = int(times[longest])
    without = tuple(name for name, labels in apart.items() if self_time[:-1][labels].any())
    return LongestLabel(longest, spent, spent / total, without)
