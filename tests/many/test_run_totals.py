"""Instances beside each other: totals, and who compiled something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pva
from pva.analysis import equal_graphs, instances
from pva.data.graph_hash import graph_hash
from tests.builders import small_report
from tests.many.runs import other_report, write_instances


def test_instances_have_their_totals(tmp_path: Path) -> None:
    run = pva.openRun(write_instances(tmp_path, 2))
    frame = instances(run)
    cycles = int(small_report().column("runs", "cycles").sum())
    assert frame["seconds"].tolist() == [1.0, 2.0]
    assert frame["cycles"].tolist() == [cycles, cycles]
    assert frame["pid"].tolist() == [100, 101]
    assert frame["trace_seconds"].isna().all()


def test_equal_programs_have_equal_graphs(tmp_path: Path) -> None:
    frame = equal_graphs(pva.openRun(write_instances(tmp_path, 3)))
    assert not frame["differs"].any()
    assert frame["graph"].nunique() == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_instance_that_compiled_something_else_is_named(tmp_path: Path, seed: int) -> None:
    culprit = int(np.random.default_rng(seed).integers(4))
    run = pva.openRun(write_instances(tmp_path, 4, {culprit: other_report()}))
    frame = equal_graphs(run)
    assert frame[frame["differs"]]["instance"].tolist() == [culprit]
    found = frame[frame["differs"]].iloc[0]
    name = small_report().column("compute_sets", "name").tolist()[1]
    assert (found["table"], found["column"], found["row"]) == ("compute_sets", "name", 1)
    assert (found["value"], found["most"]) == ("other", name)


def test_a_hash_covers_what_was_compiled_and_not_when() -> None:
    later = small_report(
        report={**small_report().table("report"), "created": ["2030-01-01T00:00:00+00:00"]}
    )
    assert graph_hash(later) == graph_hash(small_report())
    assert graph_hash(other_report()) != graph_hash(small_report())
