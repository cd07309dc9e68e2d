"""What is known of one variable, by hand and by plain loops over the samples."""

from __future__ import annotations

import pytest

from pva.analysis.memory.one_variable import variable_contexts, variable_figures
from pva.analysis.selection import SelectionError
from tests.analysis.samples import every_report, opened, rows, small


def test_a_variable_of_the_small_report_is_as_made_by_hand() -> None:
    found = variable_figures(small(), variable=0)
    assert (found.name, found.bytes, found.tiles, found.most_bytes) == ("x", 80, 10, 8)
    assert (found.always_live, found.at_peak) == (False, True)
    assert (found.readers, found.last_reader) == (2, "multiply")  # and what brings it there


@every_report
def test_lives_and_users_are_those_of_plain_loops(name: str) -> None:
    report = opened(name)
    steps = [row["program"] for row in rows(report, "liveness_steps")]
    programs = rows(report, "programs")
    for number in range(0, report.dataset.length("variables"), 7):
        found = variable_figures(report, variable=number)
        lives = [r for r in rows(report, "variable_intervals") if r["variable"] == number]
        if lives:
            assert found.first_step == min(row["begin"] for row in lives)
            assert found.last_step == max(row["end"] for row in lives) - 1
        reads = [
            row["program"] for row in rows(report, "access")
            if row["variable"] == number and not row["write"]
        ]  # fmt: skip
        assert found.readers == len(set(reads))
        order = {program: step for step, program in enumerate(steps)}
        if reads:
            last = max(set(reads), key=lambda program: order.get(program, -1))
            assert found.last_reader in (
                programs[last]["name"], f"({programs[last]['type']})"
            )  # fmt: skip


def test_where_a_variable_was_created_is_its_innermost_place_in_the_source() -> None:
    report = opened("matmul_chain_tiny")
    frame = variable_contexts(report, variable=0)
    found = variable_figures(report, variable=0)
    told = frame[frame["file"] != ""].iloc[-1]
    assert (found.file, found.line) == (told["file"], told["line"])
    assert found.file.endswith(".py") and found.line > 0


def test_a_variable_that_is_not_there_is_refused() -> None:
    with pytest.raises(SelectionError, match="variable 99"):
        variable_figures(small(), variable=99)


def test_what_was_not_recorded_is_said_so() -> None:
    found = variable_figures(small(variable_pieces=None, access=None), variable=0)
    assert (found.tiles, found.readers, found.last_reader) == (-1, -1, "")
