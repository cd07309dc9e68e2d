"""A trace of PyTorch's profiler: what heads the page, and how its threads are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboard.address import parse
from dashboard.details import drawer
from dashboard.pages import flames
from dashboard.pages.trace import page as trace
from dashboard.pages.trace import tables as trace_tables
from dashboard.store import Store
from dashboard.timeline import endpoint
from pva.analysis.host.profilers import OWN_LABELS, is_wrapper
from pva.trace import openTrace
from tests.dashboard.layouts import parts, words

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


def innermost(store: Store, thread: int, time: int) -> str:
    """Return the label of the innermost event of a thread at a moment, looked for in all."""
    trace = store.trace("")
    assert trace is not None
    events = trace.frames.events()
    end = events["begin_ns"] + events["duration_ns"]
    is_open = (events["thread"] == thread) & (events["begin_ns"] <= time) & (time <= end)
    return str(events[is_open].sort_values("depth")["label"].iloc[-1])


def test_flows_lead_from_the_innermost_event_to_the_innermost(store: Store) -> None:
    trace, whole = store.trace(""), endpoint.unmerged(store, "")
    assert trace is not None
    found, recorded = endpoint.host_flows(store, ""), trace.flows
    assert len(found.time) == len(recorded) == 139
    for row in range(0, 139, 7):
        both = whole.tracks.label[[found.event[row], found.to_event[row]]]
        names = [whole.labels[label] for label in both]
        assert names == [
            innermost(store, int(recorded.thread[row]), int(recorded.time_ns[row])),
            innermost(store, int(recorded.to_thread[row]), int(recorded.to_time_ns[row])),
        ]


@pytest.mark.parametrize("merged", ["", "on"])
def test_arrows_of_a_window_are_the_longest_and_those_of_the_chosen_event(
    store: Store, merged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.timeline.flows.MAX_DRAWN", 3)
    flows = endpoint.host_flows(store, "")
    length = flows.to_time - flows.time
    shortest = int(length.argmin())
    asked = {"merged": merged, "event": str(flows.event[shortest])}
    told = json.loads(endpoint._flows(store, "host", asked)[0])
    drawn = [end - begin for begin, end in zip(told["begin"], told["end"], strict=True)]
    assert sorted(drawn)[-3:] == sorted(length.tolist())[-3:]
    chosen = [time for time, is_chosen in zip(drawn, told["chosen"], strict=True) if is_chosen]
    assert chosen == [length[shortest]]
    rows = endpoint.timeline(store, "host", "", asked).tracks.rows
    assert max(told["row"] + told["to_row"]) < rows


def test_the_drawer_says_what_led_to_an_event_and_chooses_it(store: Store) -> None:
    flows = endpoint.host_flows(store, "")
    launch, kernel = int(flows.event[0]), int(flows.to_event[0])
    made = drawer.drawer(store, parse("/trace", f"?object=event:{kernel}"), "light")
    name = "cudaMemcpyAsync, 55.0 µs before"
    assert f"Led to by {name}" in words(made).replace("\u00a0", " ")
    (button,) = (part for part in parts(made) if getattr(part, "title", "") == name)
    assert (getattr(button, "data-key"), getattr(button, "data-value")) == ("event", str(launch))


def test_names_of_flows_are_no_channel_of_events(store: Store) -> None:
    shown = words(trace.channel_key(store, parse("/trace", ""), "light"))
    assert "cuda_runtime" in shown and "ac2g" not in shown


def test_flames_leave_out_the_thread_of_the_profiler(store: Store) -> None:
    flame = flames.flame_of(store, parse("/flames", ""))
    assert "PyTorch Profiler (0)" not in flame.names and "aten::to" in flame.names
    assert "cudaDeviceGetStreamPriorityRange" in words(
        flames.answer(store, parse("/flames", ""), "light")
    )
