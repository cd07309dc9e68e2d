"""The node tests that onnx comes with end as the page says: none is wrong, none fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_cases import OUTCOMES, cases, markdown, outcomes

from simulator.popart import backend, popart_exception

PAGE = Path(__file__).parents[2] / "docs" / "onnx-coverage.md"

pytestmark = pytest.mark.xdist_group("onnx node tests")  # they are run once, not in each process


def test_every_node_test_of_onnx_has_an_outcome_and_none_is_wrong() -> None:
    assert len(outcomes()) == len(cases()) == len({o.name for o in outcomes()})
    assert {o.ended for o in outcomes()} <= set(OUTCOMES)
    assert [o.name for o in outcomes() if o.ended == "wrong"] == []


def test_what_is_refused_says_why() -> None:
    assert [o.name for o in outcomes() if o.ended == "refused" and len(o.reason) < 8] == []


def test_the_page_has_todays_outcomes() -> None:
    assert PAGE.read_text() == markdown(outcomes()) + "\n"


def test_a_node_runs_by_itself() -> None:
    from onnx import helper

    (found,) = backend.run_node(helper.make_node("Neg", ["a"], ["b"]), [[1.5, -2.0]])
    assert found.tolist() == [-1.5, 2.0]


def test_a_sequence_of_several_shapes_is_refused_by_name() -> None:
    from onnx import helper

    with pytest.raises(popart_exception, match="input 'a': is a sequence of several shapes"):
        backend.run_node(helper.make_node("Neg", ["a"], ["b"]), [[[1.5], [1.0, 2.0]]])
