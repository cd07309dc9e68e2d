"""The host trace of a training: the program's own events beside the simulator's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pva
import pvti
from simulator.examples import mlp_digits


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> pva.Trace:
    """Trace a training of two epochs."""
    path = Path(pvti.startTrace(tmp_path_factory.mktemp("trace")))
    mlp_digits.train(target="tiny", epochs=2)
    pvti.closeTrace()
    return pva.openTrace(path)


@pytest.fixture(scope="module")
def events(trace: pva.Trace) -> list[tuple[str, str, str]]:
    """Return channel, label and the label around it of every event."""
    threads = [thread for process in trace.processes for thread in process.threads]
    return [row for thread in threads for event in thread.events for row in below(event, "")]


def below(event: Any, around: str) -> Iterator[tuple[str, str, str]]:
    yield event.channel, event.label, around
    for child in event.children():
        yield from below(child, event.label)


def test_the_program_has_a_channel_of_its_own(events: list[tuple[str, str, str]]) -> None:
    own = [label for channel, label, _ in events if channel == "mlp_digits"]
    assert own == ["load data", "build graph", "epoch 1", "epoch 2", "evaluate"]


def test_runs_of_the_engine_lie_inside_the_programs_events(
    events: list[tuple[str, str, str]],
) -> None:
    runs = [around for channel, label, around in events if label == "Engine::run"]
    assert runs == ["epoch 1", "epoch 2", "evaluate"]


def test_runs_of_the_engine_tell_their_number_and_their_name(trace: pva.Trace) -> None:
    columns = trace.threads[0].columns
    runs = np.flatnonzero(columns.label == trace.labels.index("Engine::run"))
    told = [json.loads(columns.metadata.of(row) or "") for row in runs.tolist()]
    assert [run["run"] for run in told] == [0, 1, 2]
    assert [run["name"] for run in told] == ["epoch 1", "epoch 2", "evaluate"]


def test_the_compilers_passes_lie_inside_the_compilation(
    events: list[tuple[str, str, str]],
) -> None:
    passes = [label for channel, label, around in events if around == "Engine::compile"]
    assert passes[0] == "validate"
    assert {"compile/lower", "compile/liveness", "compile/allocate"} <= set(passes)


def test_every_transfer_of_a_stream_is_an_event(events: list[tuple[str, str, str]]) -> None:
    images = [around for _, label, around in events if label == "StreamCallback images"]
    # 89 batches an epoch, 23 to evaluate 359 images.
    assert len(images) == 2 * 89 + 23
    assert set(images) == {"run/values"}
