"""Views are compared, added, copied and pickled as the lists and values that libpva has."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

from pva.report import Report, openReport
from pva.trace import openTrace

SAMPLES = Path(__file__).parents[2] / "sample_reports"
REPORT = openReport(SAMPLES / "mlp_digits_tiny")
TRACE = openTrace(SAMPLES / "mlp_digits_tiny")


def lists() -> list[Any]:
    """Make them anew: items, numbers and events."""
    steps, parts = REPORT.execution.steps, REPORT.compilation.programs[0].children
    return [steps[1:5], parts, numbers(), TRACE.threads[0].events]


def numbers() -> Any:
    steps = REPORT.execution.steps
    return next(step.cyclesByTile for step in steps if len(step.cyclesByTile))


def test_two_lists_of_the_same_are_equal_and_equal_a_list_of_their_items() -> None:
    for one, other in zip(lists(), lists(), strict=True):
        assert one == other and one == list(other) and list(one) == other
        assert one != other[:-1] and one != tuple(one)


def test_lists_add_up_to_a_list() -> None:
    for items in lists():
        first, rest = items[:1], items[1:]
        assert first + rest == [*first] + rest == first + [*rest] == list(items)
        assert sum([first, rest], []) == list(items)


def test_an_index_beyond_a_list_tells_how_many_there_are() -> None:
    for items in (items for items in lists() if items != numbers()):
        with pytest.raises(IndexError, match=f"index 99999 is not there; there are {len(items)}$"):
            items[99999]


def test_a_report_and_a_trace_are_pickled_by_their_paths() -> None:
    report, trace = pickle.loads(pickle.dumps((REPORT, TRACE)))
    assert report.path == REPORT.path and report.dataset == REPORT.dataset
    assert trace.frames.events().equals(TRACE.frames.events())
    together = openTrace([TRACE.path, TRACE.path], align="start")
    assert pickle.loads(pickle.dumps(together)).frames.events().equals(together.frames.events())


def test_a_report_and_what_shows_it_are_copied() -> None:
    held = Report.of(REPORT.dataset)
    for report in (REPORT, held):
        assert copy.deepcopy(report).dataset == copy.copy(report).dataset == REPORT.dataset
    for item in (REPORT.execution.steps[3], REPORT.compilation.tiles, TRACE.threads[0].events[0]):
        assert copy.deepcopy(item) == copy.copy(item) == item


def test_what_shows_a_report_or_a_trace_says_how_to_pickle_it() -> None:
    steps, events = REPORT.execution.steps, TRACE.threads[0].events
    for shown in (steps, steps[0], REPORT.frames, Report.of(REPORT.dataset), events, events[0]):
        with pytest.raises(TypeError, match="cannot be pickled; pickle the (report|trace), which"):
            pickle.dumps(shown)
    assert pickle.loads(pickle.dumps(numbers())) == numbers()
