"""A trace of PyTorch's profiler: what heads the page, and how its threads are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.address import parse
from dashboard.pages import trace, trace_tables
from dashboard.store import Store
from dashboard.timeline import endpoint
from pva.analysis.profilers import OWN_LABELS, is_wrapper
from pva.trace import openTrace

ALEXNET = Path(__file__).parents[1] / "traces" / "alexnet.pt.trace.json.gz"


@pytest.fixture
def store() -> Store:
    return Store([ALEXNET])


def test_the_program_heads_the_page_and_not_the_profiler(store: Store) -> None:
    sentence = trace.trace_sentence(store, parse("/trace", ""))
    assert "cudaDeviceGetStreamPriorityRange took the most by itself: 29.9 s" in sentence
    assert "of the time in events, without the profiler's own" in sentence


def test_spans_of_the_profiler_stand_last_in_the_table(store: Store) -> None:
    labels = trace_tables.label_frame(store, parse("/trace", ""))["label"].tolist()
    assert labels[:2] == ["cudaDeviceGetStreamPriorityRange", "cudaFree"]
    assert labels[-1] == "PyTorch Profiler (0)"


@pytest.mark.parametrize(
    ("label", "own"),
    [
        ("ProfilerStep#12", True),
        ("ProfilerStep*", True),
        ("PyTorch Profiler (0)", True),
        ("torch/autograd/profiler.py(640): __enter__", True),
        ("aten::mm", False),
        ("my PyTorch Profiler", False),
        ("ProfilerStepper", False),
    ],
)
def test_labels_that_wrap_are_told_by_their_names(label: str, own: bool) -> None:
    assert bool(OWN_LABELS.fullmatch(label)) == own


def test_a_channel_of_the_profiler_wraps_whatever_its_labels() -> None:
    opened = openTrace(ALEXNET)
    own = [text for text, is_own in zip(opened.labels, is_wrapper(opened), strict=True) if is_own]
    assert sorted(own) == [
        "Iteration Start: PyTorch Profiler", "PyTorch Profiler (0)", "Record Window End",
    ]  # fmt: skip


def test_threads_are_told_apart_at_both_ends_of_their_names(store: Store) -> None:
    names = [lane.name for lane in endpoint.unmerged(store, "").lanes]
    assert names[0] == "python3.10 2869224"
    assert len(set(names)) == len(names)
