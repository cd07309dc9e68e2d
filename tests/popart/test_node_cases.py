"""The node tests that onnx comes with pass, but for those that stand in the page with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_cases import DEFINED, REASONS, markdown, outcomes

from simulator.popart import backend, popart_exception
from simulator.popart.operators.table import OPERATORS

PAGE = Path(__file__).parents[2] / "docs" / "onnx-coverage.md"

pytestmark = pytest.mark.xdist_group("onnx node tests")  # they are run once, not in each process


NAMES = sorted({*(name for domain, name in OPERATORS if domain == "ai.onnx"), *DEFINED})


@pytest.mark.parametrize("operator", NAMES)
def test_node_tests_of_an_operator_pass(operator: str) -> None:
    tests = [outcome for outcome in outcomes() if operator in outcome.operators]
    failed = {outcome.name: outcome.fault for outcome in tests if outcome.fault}
    assert {name: fault for name, fault in failed.items() if name not in REASONS} == {}


def test_what_fails_for_a_reason_still_fails() -> None:
    assert {outcome.name for outcome in outcomes() if outcome.fault} == set(REASONS)


def test_the_page_has_todays_counts() -> None:
    assert PAGE.read_text() == markdown(outcomes()) + "\n"


def test_a_node_runs_by_itself() -> None:
    from onnx import helper

    (found,) = backend.run_node(helper.make_node("Neg", ["a"], ["b"]), [[1.5, -2.0]])
    assert found.tolist() == [-1.5, 2.0]


def test_a_sequence_of_several_shapes_is_refused_by_name() -> None:
    from onnx import helper

    with pytest.raises(popart_exception, match="input 'a': is a sequence of several shapes"):
        backend.run_node(helper.make_node("Neg", ["a"], ["b"]), [[[1.5], [1.0, 2.0]]])
