"""A value that cannot be is refused by the file, the place and what would be right."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import pytest

from pva import schema
from pva.check import check
from pva.data import validation
from pva.data.dataset import Dataset
from pva.errors import DamagedFileError, InconsistentDataError
from pva.formats import registry
from pva.report import openReport
from tests.builders import small_report


def changed(table: str, column: str, row: int, value: Any) -> Dataset:
    """Return the small report with one other value."""
    columns = {name: values.copy() for name, values in small_report().table(table).items()}
    columns[column][row] = value
    return small_report(**{table: columns})


def refused(action: Any) -> str:
    with pytest.raises(InconsistentDataError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("table", "column", "value", "text"),
    [
        ("variables", "bytes", -2, "found -2; variables.bytes are -1 to 72057594037927936"),
        ("steps", "cycles", 2**60, f"found {2**60}; steps.cycles are -1 to"),
        ("target", "num_tiles", 0, "found 0; target.num_tiles are 1 to 2097152"),
        ("target", "num_tiles", 2**22, "target.num_tiles are 1 to 2097152"),
        ("target", "clock_frequency", -1.0, "target.clock_frequency: found -1.0"),
        ("target", "clock_frequency", float("inf"), "target.clock_frequency: found inf"),
        ("variables", "lowered_from", 7, "found 7; rows of variables are -1 to 6"),
        ("programs", "target", 1, "found 1; rows of function_programs are -1 to 0"),
        ("compute_set_vertices", "compute_set", -1, "found -1; rows of compute_sets are 0 to 2"),
        ("variable_pieces", "tile", 10, "found 10; variable_pieces.tile are 0 to 9"),
        ("steps_by_ipu", "ipu", 2, "found 2; steps_by_ipu.ipu are 0 to 1"),
        ("steps_by_ipu", "step", 5, "steps_by_ipu.step: rows that are not in order"),
        ("variable_intervals", "end", 15, "found 15; rows of liveness_steps are 0 to 14"),
        ("runs", "end_step", 25, "found 25; rows of steps are 0 to 24"),
        ("program_children", "child", 0, "program_children.child: row 0 contains itself"),
        ("liveness_steps", "parent", 0, "liveness_steps.parent: row 0 contains itself"),
        ("written_programs", "parent", 3, "written_programs.parent: row 0 contains itself"),
        ("written_programs", "compute_set", 3, "found 3; rows of compute_sets are -1 to 2"),
        ("compute_sets", "flops", 2**62, "compute_sets.flops are -1 to 72057594037927936"),
        ("compute_set_vertices", "count", 2**62, "count are -1 to 72057594037927936"),
        ("control_code", "tile", 2**62, "control_code.tile are -1 to 2097152"),
        ("written_results", "program", 14, "found 14; rows of programs are 0 to 13"),
    ],
)
def test_a_value_that_cannot_be_is_named(table: str, column: str, value: Any, text: str) -> None:
    assert text in refused(lambda: changed(table, column, 0, value).column(table, column))


MACHINE = ("num_ipus", "tiles_per_ipu", "num_tiles", "bytes_per_tile", "num_replicas")


@pytest.mark.parametrize("suffix", ["pop", "json", "cbor", "parquet"])
@pytest.mark.parametrize("column", MACHINE)
def test_a_machine_that_cannot_be_is_refused_when_opened(
    tmp_path: Path, column: str, suffix: str
) -> None:
    path = tmp_path / f"report.{suffix}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "check_column", lambda *_: None)
        registry.write(changed("target", column, 0, -1), path)
    wanted = f"target.{column}: found -1; target.{column} are 1 to"
    assert wanted in refused(lambda: openReport(path))


@pytest.mark.parametrize("column", MACHINE)
def test_a_machine_of_null_is_refused_when_opened(tmp_path: Path, column: str) -> None:
    path = tmp_path / "report.pop"
    registry.write(small_report(), path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"update target set {column} = null")
    assert f"target.{column}: found -1" in refused(lambda: openReport(path))


@pytest.mark.parametrize("suffix", ["json", "cbor"])
@pytest.mark.parametrize("column", MACHINE)
def test_a_machine_of_null_in_a_document_is_refused_when_opened(
    tmp_path: Path, column: str, suffix: str
) -> None:
    path = tmp_path / f"graph.{suffix}"
    registry.write(small_report(), path)
    codec: Any = json if suffix == "json" else cbor2
    document = codec.loads(path.read_bytes())
    key = schema.TABLE["target"].column(column).document_key
    assert document["target"][key] > 0
    document["target"][key] = None
    path.write_bytes(codec.dumps(document).encode() if suffix == "json" else codec.dumps(document))
    refused(lambda: openReport(path))


@pytest.mark.parametrize("column", MACHINE)
def test_a_machine_of_null_in_parquet_is_refused_when_opened(tmp_path: Path, column: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "report.parquet"
    registry.write(small_report(), folder)
    path = folder / "target.parquet"
    table = parquet.read_table(path)
    place = table.column_names.index(column)
    nothing = arrow.nulls(len(table), table.schema.field(column).type)
    parquet.write_table(table.set_column(place, table.schema.field(column), nothing), path)
    with pytest.raises(DamagedFileError, match=f"target.parquet: {column}: null; no value missing"):
        openReport(folder)


def test_programs_that_contain_each_other_are_refused() -> None:
    edges = {"program": [0, 1, 2, 3], "child": [1, 2, 3, 1]}
    data = small_report(program_children=edges)
    assert "row 1 contains itself" in refused(lambda: data.column("program_children", "child"))


def test_children_may_come_before_their_parents() -> None:
    data = small_report(program_children={"program": [5, 4, 4], "child": [4, 3, 2]})
    assert data.column("program_children", "child").tolist() == [4, 3, 2]


def test_a_deep_chain_of_programs_is_no_circle() -> None:
    count = 50_000
    names = {"type": np.zeros(count, dtype=int), "name": [""] * count}
    chain = {"program": np.arange(1, count), "child": np.arange(count - 1)}
    data = Dataset.of({"programs": names, "program_children": chain})
    assert len(data.column("program_children", "child")) == count - 1


@pytest.mark.parametrize(
    ("array", "values", "text"),
    [
        ("exchange_cycles", np.full((1, 10), -1), "exchange_cycles: found -1"),
        ("exchange_cycles", np.full((1, 10), 2**60), "exchange_cycles are 0 to 72057594037927936"),
        ("vertex_compute_set", np.full(18, 3), "found 3; vertex_compute_set are 0 to 2"),
        ("physical_tile", np.full(5, 5), "found 5; physical_tile are 0 to 4"),
    ],
)
def test_an_array_of_what_cannot_be_is_named(array: str, values: Any, text: str) -> None:
    assert text in refused(lambda: small_report(**{array: values}).array(array))


def test_an_array_shorter_than_its_table_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.pop"
    registry.write(small_report(), path)
    writer = registry.ReportWriter(path, small_report(exchange_cycles=None))
    writer.append_run({}, {"exchange_cycles": np.zeros((1, 9))})
    writer.close()
    data = openReport(path).dataset
    assert "is of shape (-1, 9)" in refused(lambda: data.rows("exchange_cycles", 0, 1))


def test_a_small_file_cannot_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "report.pop"
    writer = registry.ReportWriter(path, small_report(tile_clock=None))
    for _ in range(4):  # 12 million zeros each: 115 kB packed, 384 MB in all
        writer.append_run({}, {"tile_clock": np.zeros((1_200_000, 10), dtype=np.uint8)})
    writer.close()
    with pytest.raises(DamagedFileError, match="384000000 bytes; at most 153326592 more in"):
        openReport(path).dataset.array("tile_clock")


def test_a_program_that_counts_no_row_of_an_exchange_is_refused() -> None:
    data = changed("programs", "exchange", 5, 1)
    text = refused(lambda: data.array("exchange_cycles"))
    assert "programs.exchange: found 1; rows of exchange_cycles are -1 to 0" in text


def test_what_an_exchange_sends_and_receives_is_as_long() -> None:
    data = small_report(exchange_bytes_sent=np.zeros((2, 10)))
    data.array("exchange_cycles")
    text = refused(lambda: data.array("exchange_bytes_sent"))
    assert "exchange_bytes_sent: 2 along its index exchange; exchange_cycles has 1" in text


def test_memory_of_more_tiles_than_there_are_is_refused() -> None:
    memory = {name: np.zeros(11) for name in small_report().table("memory_by_tile")}
    data = small_report(memory_by_tile=memory)
    assert "11 rows; tiles are 10" in refused(lambda: data.column("memory_by_tile", "total"))


def test_a_value_that_cannot_be_breaks_the_laws_about_it() -> None:
    found = check(changed("steps", "run", 0, 2))
    assert {(v.place, v.found) for v in found if v.law == "runs_share_out_the_steps"} == {
        ("steps.run", "2")
    }
