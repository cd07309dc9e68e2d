"""What a worker process raises reaches the process that waits for it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import simulator.popart
import simulator.poplar
from pva.analysis import CATALOGUE, filters, selection
from pva.analysis.whole_report import budgets
from pva.errors import NotRecordedError, PvaError
from pva.report import Report, openReport
from simulator.poplar import PoplarError

SAMPLE = Path(__file__).parents[2] / "sample_reports" / "matmul_chain_tiny"
HOMES = (
    budgets,
    filters,
    selection,
    simulator.popart,
    simulator.poplar,
)  # of kinds of errors, when imported


def kinds(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)


@pytest.mark.parametrize("kind", [*kinds(PvaError)])
def test_an_error_is_pickled_with_what_it_says(kind: type[PvaError]) -> None:
    error = kind("run/", "no table", "record\nit", place="row 3")
    error.add_note("of the second report")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error) == "run/: row 3: no table; record it"
    assert vars(again) == vars(error)


@pytest.mark.parametrize("kind", [*kinds(PoplarError)])
def test_an_error_of_the_simulator_is_pickled(kind: type[PoplarError]) -> None:
    error = kind("no tile 4")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error)


def blocks(report: Report) -> int:
    return len(CATALOGUE["blocks"](report))


def test_a_pool_goes_on_after_a_report_that_lacks_what_is_asked_for() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        with pytest.raises(NotRecordedError, match="blocks not recorded; run the program with"):
            pool.submit(blocks, openReport(SAMPLE)).result()
        assert pool.submit(len, [1, 2]).result() == 2
