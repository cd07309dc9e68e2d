"""The stage before compilation: by hand on the small report, by sums on all."""

from __future__ import annotations

import numpy as np
import pytest

from pva.analysis.programs.compilation import (
    called_program,
    compiled_programs,
    compiled_types,
    function_program,
    program_count,
)
from pva.analysis.programs.hierarchy import program_tree
from pva.analysis.programs.written import written_figures
from pva.analysis.selection import SelectionError
from pva.errors import NotRecordedError
from tests.analysis.samples import every_report, opened, small


def test_lines_are_the_programs_as_they_were_written_functions_last() -> None:
    frame = program_tree(small(), stage="written")
    assert list(frame.columns) == list(program_tree(small()).columns)
    assert frame["program"].tolist() == list(range(10))
    assert frame["depth"].tolist() == [0, 1, 1, 2, 3, 3, 1, 1, 0, 1]
    assert frame["end"].tolist() == [8, 2, 6, 6, 5, 6, 7, 8, 10, 10]
    assert frame["part"].tolist() == ["control"] * 8 + ["function"] * 2
    assert frame["number"].tolist() == [0] * 10
    assert frame["type"].tolist()[1:4] == ["Copy", "Repeat", "Sequence"]
    assert frame["name"].tolist()[:2] == ["", "stream x to x"]


def test_a_written_program_costs_what_it_became() -> None:
    frame = program_tree(small(), stage="written")
    # Of two runs: the loop's exchange 2 * (49 + 48) and multiply 2 * (114 + 108), add in the call.
    assert frame["cycles"][[0, 2, 4, 5]].tolist() == [1024, 740, 194 + 444, 102]
    assert frame["share"][2] == pytest.approx(740 / 1024)
    assert frame["executions"].tolist() == [2, 2, 2, 4, 4, 4, 2, 2, 4, 4]
    assert frame["mean_cycles"][4] == pytest.approx(638 / 4)
    # Slowest tiles: exchange 49, multiply 114; the reduction's sync 36, exchange 20, compute 48.
    assert frame["estimated_cycles"][[4, 6]].tolist() == [49 + 114, 36 + 20 + 48]
    assert frame["first_step"][[0, 1, 4, 8]].tolist() == [-1, 0, 2, -1]
    assert frame["liveness_step"][[0, 1, 4, 8]].tolist() == [0, 1, 5, 8]


@every_report
def test_the_outermost_are_as_long_as_what_is_not_the_compilers(name: str) -> None:
    report = opened(name)
    written, types = program_tree(report, stage="written"), compiled_types(report)
    own = types.loc[types["written"] != "", "cycles"].sum()
    outermost = (written["parent"] < 0) & (written["part"] == "control")
    assert written["cycles"][outermost].sum() == own
    assert types["programs"].sum() == len(program_tree(report))


def test_what_a_program_became_adds_up_to_it() -> None:
    frame = compiled_programs(small(), program=6)
    assert frame["program"].tolist() == [13, 8, 9]
    assert frame["type"].tolist() == ["Sync", "GlobalExchange", "OnTileExecute"]
    assert frame["depth"].tolist() == [0, 0, 0]
    assert frame["cycles"].sum() == program_tree(small(), stage="written")["cycles"][6]
    assert compiled_programs(small(), program=2)["parts"].tolist() == [4]
    with pytest.raises(SelectionError, match="the report has written programs 0 to 9"):
        compiled_programs(small(), program=10)


def test_types_are_counted_as_written_and_as_compiled() -> None:
    frame = compiled_types(small()).set_index(["written", "compiled"])
    assert frame["programs"].sum() == 14
    assert frame.loc[("Execute", "OnTileExecute"), "programs"] == 3
    assert frame.loc[("Copy", "Sync"), "programs"] == 1
    assert set(compiled_types(small(steps=None))["cycles"]) == {-1}


def test_a_copy_tells_where_from_where_to_and_how_much() -> None:
    figures = written_figures(small(), program=1)
    assert (figures.type, figures.source, figures.destination, figures.bytes) == (
        "Copy", "stream x", "x", 80,
    )  # fmt: skip
    assert written_figures(small(), program=4).compute_set_name == "multiply"


def test_what_the_compiler_adds_is_of_nobody() -> None:
    results = {"written": [0, 4], "program": [0, 6]}
    frame = compiled_types(small(written_results=results))
    assert frame[frame["written"] == ""]["programs"].sum() == 12


def test_programs_in_any_order_and_twice_of_one_are_no_fault() -> None:
    count = 2000
    chain = {"type": [0] * count, "parent": [*range(1, count), -1]}
    results = {"written": [0, 1, 0], "program": [6, 6, 5]}
    report = small(written_programs=chain, written_results=results)
    frame = program_tree(report, stage="written")
    assert frame["program"].tolist() == list(range(count))[::-1]
    assert frame["cycles"].to_numpy()[np.argsort(frame["program"])][[0, 1]].tolist() == [638, 0]


def test_a_report_of_one_stage_says_so() -> None:
    report = small(written_programs=None, written_results=None)
    with pytest.raises(NotRecordedError, match="written_"):
        program_tree(report, stage="written")
    with pytest.raises(SelectionError, match="choose compiled or written"):
        program_tree(report, stage="x")


def test_a_call_leads_to_the_program_of_its_function() -> None:
    report = small()
    assert called_program(report, 7) == 11
    assert called_program(report, 6) == -1  # no call
    assert function_program(report, 0) == 11
    assert [function_program(report, number) for number in (-1, 1)] == [-1, -1]
    assert program_count(report) == 14
