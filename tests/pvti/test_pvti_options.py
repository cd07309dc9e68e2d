"""PVTI_OPTIONS as documented: unset records nothing, text that does not parse records all."""

from __future__ import annotations

import pytest

from pvti.options import Options, from_environment


def test_unset_records_nothing() -> None:
    assert from_environment({}) is None


@pytest.mark.parametrize("text", ["", "{", "yes", "[]", "3", "null", '{"enable": true}', "{}"])
def test_what_does_not_parse_records_with_defaults(text: str) -> None:
    assert from_environment({"PVTI_OPTIONS": text}) == Options("", (), 0.0)


@pytest.mark.parametrize("value", ["false", '"false"', "0"])
def test_enable_can_be_off(value: str) -> None:
    assert from_environment({"PVTI_OPTIONS": f'{{"enable": {value}}}'}) is None


def test_all_options_are_taken() -> None:
    text = '{"enable": "true", "directory": "out", "channels": ["A", "B"], "duration": 2.5}'
    assert from_environment({"PVTI_OPTIONS": text}) == Options("out", ("A", "B"), 2.5)


def test_values_of_a_wrong_type_leave_the_default() -> None:
    text = '{"directory": 3, "channels": {"a": 1}, "duration": "long"}'
    assert from_environment({"PVTI_OPTIONS": text}) == Options()
    assert from_environment({"PVTI_OPTIONS": '{"duration": -1, "channels": "A"}'}) == Options(
        "", ("A",), 0.0
    )


def test_a_ring_has_a_length() -> None:
    ring = from_environment({"PVTI_OPTIONS": '{"mode": "ring", "seconds": 5}'})
    assert ring == Options("", (), 0.0, "ring", 5.0)
    ring = from_environment({"PVTI_OPTIONS": '{"mode": "ring"}'})
    assert ring == Options("", (), 0.0, "ring", 30.0)


@pytest.mark.parametrize(
    "seconds", ["0", "-1", "null", "true", '"long"', "NaN", "Infinity", "1e999"]
)
def test_other_modes_and_lengths_leave_the_default(seconds: str) -> None:
    text = f'{{"mode": "circle", "seconds": {seconds}, "duration": {seconds}}}'
    assert from_environment({"PVTI_OPTIONS": text}) == Options("", (), 0.0, "file", 30.0)
