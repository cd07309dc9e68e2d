"""Documents as plain values: equal to what is read from the file, and written to the same bytes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import cbor2
import numpy as np
import pytest
from hypothesis import given, settings

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError
from pva.formats import registry, values
from pva.formats.documents import cbor_profile, typed_arrays
from pva.model.instrumentation import ComputeInstrumentationLevel, InstrumentationSettings
from pva.report import Report, openReport
from pva.summary import profile_summary
from tests.builders import code, small_report, write_report
from tests.strategies import datasets

DOCUMENTS: tuple[schema.Document, ...] = ("graph", "execution")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_value_is_what_the_json_file_holds(tmp_path: Path, name: schema.Document) -> None:
    file = tmp_path / f"{name}.json"
    registry.write(small_report(), file)
    value = registry.value_of(small_report(), name)
    assert value == json.loads(file.read_text())
    assert registry.encoded(value, "json") == file.read_bytes()


@settings(max_examples=40, deadline=None)
@given(data=datasets())
def test_a_value_of_any_dataset_gives_the_bytes_of_its_file(data: Dataset) -> None:
    for name in DOCUMENTS:
        written = cbor_profile.encoded(cbor_profile.to_file(data, name))
        assert registry.encoded(registry.value_of(data, name), "cbor") == written


def test_values_make_the_dataset_again() -> None:
    data = small_report().select("graph", "execution")
    values = {name: registry.value_of(data, name) for name in DOCUMENTS}
    assert registry.of_values(**values) == data
    assert registry.of_values(graph=values["graph"], execution=None) == data.select("graph")


def test_pretty_json_is_the_same_on_more_lines() -> None:
    value = registry.value_of(small_report(), "graph")
    pretty = registry.encoded(value, "json", pretty=True)
    assert json.loads(pretty) == value
    assert pretty.startswith(b'{\n  "formatVersion": 1')


def test_a_value_that_is_no_profile_is_told_by_its_place() -> None:
    value = registry.value_of(small_report(), "graph")
    value["graph"]["numVars"] = "many"
    with pytest.raises(DamagedFileError, match="graph.numVars"):
        registry.of_values(graph=value)


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ([1, 2], [1, 2]), ([[1, 2], [3, 4]], [[1, 2], [3, 4]]), ([0.5, 1.0], [0.5, 1.0]),
        ([[1], [2, 3]], None), ([1, 2.5], None), ([1, "x"], None), ([True, False], None),
        ([], None), ([[], []], None), (["x"], None), ([{"a": 1}], None), ([0.5, 1], None),
    ],
)  # fmt: skip
def test_only_lists_of_one_kind_of_number_are_arrays(value: object, numbers: object) -> None:
    found = typed_arrays.numbers_in(value)
    assert (None if found is None else found.tolist()) == numbers


def test_fractions_that_are_missing_become_no_number() -> None:
    found = typed_arrays.numbers_in([0.5, None])
    assert found is not None
    assert np.isnan(found[1])
    assert cbor2.loads(registry.encoded({"a": 9 * [0.5, None]}, "cbor"))["a"].tag == 85


def test_a_report_of_a_dataset_is_like_that_of_a_file(tmp_path: Path) -> None:
    held, filed = Report.of(small_report()), openReport(write_report(tmp_path / "report"))
    assert profile_summary(held) == profile_summary(filed)
    assert held.files == {}
    assert held.app == {}
    assert not held.reload()


def test_blocks_are_listed_by_tile() -> None:
    execution = Report.of(small_report()).execution
    assert [block.name for block in execution.blocks(4)] == ["multiply", "x/StreamCopy"]
    assert len(execution.blocks(0)) == 0
    first, stream = execution.blocks(4)
    assert (first.isCommon, first.isStreamCopy, stream.isStreamCopy) == (True, False, True)
    assert (first.cyclesFrom, first.cyclesTo, first.tile) == (90, 180, 4)
    assert first.program is not None
    assert first.program.name == "multiply"
    flush, _, overflow = execution.blocks(9)
    assert (flush.isBlockFlush, flush.name, overflow.isOverflow) == (True, "y/StreamCopy", True)
    assert (overflow.program, overflow.name) == (None, "overflow")


@pytest.mark.parametrize(
    ("mode", "absent", "compute"),
    [
        ("VERTICES", "measured_compute_set_cycles_by_ipu", "Vertex"),
        ("COMPUTE_SETS", "measured_compute_set_cycles_by_ipu", "Tile"),
        ("SINGLE_TILE_COMPUTE_SETS", "measured_compute_set_cycles_by_ipu", "Device"),
        ("SINGLE_TILE_COMPUTE_SETS", "engine_options", "Ipu"),
        ("IPU_MODEL", "measured_compute_set_cycles_by_ipu", "Off"),
    ],
)
def test_without_options_the_mode_tells_what_was_measured(
    mode: str, absent: str, compute: str
) -> None:
    execution = {
        "profiler_mode": [code("execution", "profiler_mode", mode)],
        "cycles": [small_report().value("execution", "cycles")],
    }
    report = small_report(**{absent: None, "engine_options": None, "execution": execution})
    found = InstrumentationSettings(report)
    assert found.compute is ComputeInstrumentationLevel[compute]
    assert found.externalExchange is InstrumentationSettings.Tile


def test_encoding_refuses_what_is_no_plain_value() -> None:
    with pytest.raises(TypeError):
        registry.encoded({"a": io.StringIO()}, "json")


def test_whole_numbers_come_as_short_fractions_too() -> None:
    short = np.array(
        [0, 1, 2048], dtype=np.float16
    )  # no warning that 2**53 is more than these hold
    assert values.array_of("file", "place", "int", short, 1).tolist() == [0, 1, 2048]
