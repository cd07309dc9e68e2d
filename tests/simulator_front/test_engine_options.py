"""The engine's options."""

from __future__ import annotations

import json

import pytest

from simulator.graph.errors import PoplarError
from simulator.options import resolve


@pytest.fixture(autouse=True)
def _no_options_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POPLAR_ENGINE_OPTIONS", raising=False)


def test_two_runs_are_recorded_and_nothing_is_written_by_default() -> None:
    values = resolve(None)
    assert values["autoReport.executionProfileProgramRunCount"] == 2
    assert values["autoReport.outputGraphProfile"] is False


def test_all_turns_every_part_on_that_is_not_turned_off() -> None:
    values = resolve({"autoReport.all": "true", "autoReport.outputDebugInfo": "false"})
    assert values["autoReport.outputGraphProfile"] is True
    assert values["autoReport.outputDebugInfo"] is False
    assert values["debug.instrumentCompute"] is True


def test_the_environment_wins_over_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    outside = {"autoReport.directory": "theirs", "autoReport.executionProfileProgramRunCount": "5"}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(outside))
    values = resolve({"autoReport.directory": "ours", "autoReport.all": True})
    assert values["autoReport.directory"] == "theirs"
    assert values["autoReport.executionProfileProgramRunCount"] == 5
    assert values["autoReport.all"] is True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"autoreport.all": "true"}, "no option 'autoreport.all'; did you mean autoReport.all"),
        ({"autoReport.all": "yes"}, "autoReport.all is 'yes'; true or false is needed"),
        (
            {"autoReport.executionProfileProgramRunCount": -1},
            "RunCount is -1; a number that is 0 or more is needed",
        ),
        ({"debug.computeInstrumentationLevel": "core"}, "must be one of tile, vertex"),
        ({"colour": "red"}, "no option 'colour'; known: autoReport.all"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(PoplarError, match=said):
        resolve(options)


@pytest.mark.parametrize(("text", "said"), [("{", "not JSON"), ("[1]", "a JSON object")])
def test_a_wrong_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", text)
    with pytest.raises(PoplarError, match=f"POPLAR_ENGINE_OPTIONS: .*{said}"):
        resolve({})
