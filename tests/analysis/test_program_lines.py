"""Which lines of the tree are seen, found and related, by hand on the small report."""

from __future__ import annotations

import numpy as np
import pytest

from pva.analysis.operations.layers import owners_in
from pva.analysis.programs.hierarchy import program_tree
from pva.analysis.programs.lines import (
    closed_above,
    following,
    found_lines,
    line_place,
    open_lines,
    related_lines,
    visible_lines,
)
from tests.analysis.samples import small

# Lines of the small report: 0 sequence, 3 loop, 4 its body, 5 to 7 in that, 12 function, 13 in it.
TREE = program_tree(small())


def test_everything_is_open_at_first() -> None:
    opened = open_lines(TREE)
    assert np.flatnonzero(opened).tolist() == [0, 3, 4, 12]
    assert visible_lines(TREE, opened).all()


def test_a_closed_line_hides_what_is_in_it() -> None:
    opened = open_lines(TREE, turned=[3])
    assert np.flatnonzero(~visible_lines(TREE, opened)).tolist() == [4, 5, 6, 7]


def test_a_level_closes_what_lies_deeper_and_turning_over_opens_it() -> None:
    assert np.flatnonzero(visible_lines(TREE, open_lines(TREE, level=1))).tolist() == [0, 12]
    opened = open_lines(TREE, level=2, turned=[3])
    assert np.flatnonzero(~visible_lines(TREE, opened)).tolist() == [5, 6, 7]


def test_what_is_closed_above_a_line_is_what_to_open() -> None:
    opened = open_lines(TREE, level=1)
    assert closed_above(TREE, opened, 6).tolist() == [0, 3, 4]
    assert closed_above(TREE, open_lines(TREE), 6).tolist() == []


def test_steps_are_found_by_name_and_type() -> None:
    assert found_lines(TREE, "MULTI").tolist() == [5, 6]
    assert found_lines(TREE, "repeat").tolist() == [3]
    assert found_lines(TREE, "").tolist() == found_lines(TREE, ".*").tolist() == []


def test_the_next_found_goes_round() -> None:
    found = np.array([2, 5, 9])
    assert [following(found, line) for line in (-1, 2, 3, 9)] == [2, 5, 5, 2]
    assert [following(found, line, backwards=True) for line in (9, 2, 3)] == [5, 9, 2]
    assert following(found[:0], 3) == -1


def test_steps_of_the_same_operation_are_related() -> None:
    owners = owners_in(small(), "operation")
    # multiply is its exchange and its compute set; a loop is an operation by itself.
    assert np.flatnonzero(related_lines(TREE, owners, 6)).tolist() == [5]
    assert np.flatnonzero(related_lines(TREE, owners, 3)).tolist() == []


def test_the_place_of_a_line_is_how_many_visible_ones_are_before_it() -> None:
    visible = np.array([True, False, True, True])
    assert line_place(visible, 2) == (3, 1)
    assert line_place(visible, 0) == (3, 0)


@pytest.mark.parametrize("line", [1, -1])
def test_a_hidden_line_has_no_place(line: int) -> None:
    assert line_place(np.array([True, False, True, True]), line) == (3, -1)
