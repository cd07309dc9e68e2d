"""Three runs and host work between them, with the times on both axes worked out by hand.

At 1 GHz a cycle is a nanosecond. On the host the trace begins at 1,000 of its clock:

    host     0    100        400    450        650  700      900    1000
    what     |work | run 0    | work | run 1     |    | run 2  | work |
    cycles           50                100              200

As on the device, run 0 is 100 to 150, the work after it 150 to 200, run 1 200 to 300, the gap 300
to 350, run 2 350 to 550, and the work after it ends at 650.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pva.analysis.alignment import Alignment, align, gaps, waits
from pva.analysis.pyramid import build
from pva.errors import NotFoundError
from pva.report import Report
from tests.builders import small_report

START = 1000
TRACE: Any = SimpleNamespace(
    anchor=SimpleNamespace(clock_ns=START), duration_ns=1000, path=Path("t.pvti")
)


def report(**changes: Any) -> Report:
    """Give a report of three runs at 1 GHz."""
    data = small_report()
    runs = {name: np.resize(values, 3).copy() for name, values in data.table("runs").items()}
    runs |= {
        "cycles_from": np.array([0, 50, 150]),
        "cycles": np.array([50, 100, 200]),
        "trace_begin": START + np.array([100, 450, 700]),
        "trace_end": START + np.array([400, 650, 900]),
        **changes,
    }
    target = dict(data.table("target")) | {"clock_frequency": np.array([1e9])}
    return Report.of(small_report(runs=runs, target=target))


@pytest.fixture(scope="module")
def found() -> Alignment:
    """Align the three runs."""
    return align(report(), TRACE)


HOST = np.array([0, 50, 100, 250, 400, 420, 450, 550, 650, 700, 900, 1000])
DEVICE = np.array([0, 50, 100, 125, 150, 170, 200, 250, 300, 350, 550, 650])


def test_host_moments_move_up_by_what_the_runs_took_too_long(found: Alignment) -> None:
    assert found.host(HOST, "device").tolist() == DEVICE.tolist()


def test_host_moments_stay_as_simulated(found: Alignment) -> None:
    assert found.host(HOST, "simulated").tolist() == HOST.tolist()


def test_cycles_of_runs_are_nanoseconds_as_on_the_device(found: Alignment) -> None:
    cycles = np.array([0, 25, 50, 100, 150, 250, 350])
    places = [100, 125, 200, 250, 350, 450, 550]  # 50 and 150 begin the next run
    assert found.on_device(cycles, "device").tolist() == places


def test_cycles_of_runs_are_stretched_as_simulated(found: Alignment) -> None:
    cycles = np.array([0, 25, 75, 100, 250, 350])
    assert found.on_device(cycles, "simulated").tolist() == [100, 250, 500, 550, 800, 900]


def test_a_step_that_ends_a_run_ends_with_it(found: Alignment) -> None:
    begin, end = np.array([40, 50, 340, 60]), np.array([50, 70, 350, 60])
    on_device = found.spans(begin, end, "device")
    assert [part.tolist() for part in on_device] == [[140, 200, 540, 210], [150, 220, 550, 210]]
    simulated = found.spans(begin, end, "simulated")
    assert [part.tolist() for part in simulated] == [[340, 450, 890, 470], [400, 490, 900, 470]]


def test_gaps_between_runs_are_told_on_both_axes(found: Alignment) -> None:
    rows = gaps(found).to_dict("records")
    assert rows == [
        {"run": 1, "begin": 150, "length": 50, "wall_begin": 400, "wall_end": 450},
        {"run": 2, "begin": 300, "length": 50, "wall_begin": 650, "wall_end": 700},
    ]


def test_who_waited_for_whom(found: Alignment) -> None:
    row = (np.array([0, 120, 420, 500]), np.array([100, 130, 440, 1000]), np.array([0, 1, 1, 0]))
    result = waits(report(), found, build([row]), ["work", "StreamCallback x"])
    assert (result.total, result.device) == (650, 350)
    assert (result.before, result.between, result.after) == (100, 100, 100)
    assert (result.callbacks, result.callback_time) == (1, 10)  # the other is outside of runs


def test_runs_without_a_place_in_the_trace_are_left_out() -> None:
    begins = np.array([-1, START + 450, START + 5000])
    kept = align(report(trace_begin=begins, trace_end=begins + 100), TRACE)
    assert kept.run.tolist() == [1]


def test_a_trace_of_something_else_is_refused() -> None:
    nowhere = np.full(3, -1)
    with pytest.raises(NotFoundError, match="no run in the trace t.pvti; trace the run"):
        align(report(trace_begin=nowhere, trace_end=nowhere), TRACE)
