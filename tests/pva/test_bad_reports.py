"""Whatever is wrong with a file, one line of a PvaError says so."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import cbor2
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import (
    DamagedFileError,
    InconsistentDataError,
    NewerVersionError,
    NotFoundError,
    NotRecordedError,
    PvaError,
    UnknownFormatError,
)
from pva.formats import registry
from pva.report import openReport
from pvti import schema as pvti_schema
from tests.builders import small_report, write_report

MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the bytes of the small report in each format."""
    directory = tmp_path_factory.mktemp("written")
    names = {
        "pop": "report.pop",
        "json": "report.json",
        "cbor": "report.cbor",
        "debug": "debug.cbor",
    }
    for name in names.values():
        registry.write(small_report(), directory / name)
    return {kind: (directory / name).read_bytes() for kind, name in names.items()}


def read_all(path: Path) -> None:
    """Open a report and read every column and array of it."""
    data = openReport(path).dataset
    for table in data.tables:
        data.table(table)
    for array in data.arrays:
        data.array(array)


def fault(action: Callable[[], Any]) -> PvaError:
    """Return the error that is raised, which is a single line."""
    with pytest.raises(PvaError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    error = fault(lambda: openReport(tmp_path / "none"))
    assert isinstance(error, NotFoundError)
    assert str(error) == f"{tmp_path}/none: no such file or directory; give a report"


def test_a_directory_without_a_report_is_named(tmp_path: Path) -> None:
    error = fault(lambda: openReport(tmp_path))
    assert isinstance(error, NotFoundError)
    assert str(error).startswith(f"{tmp_path}: no report in this directory")


@pytest.mark.parametrize("content", [b"PK\x03\x04", b"\x89PNG\r\n", b"[1]", b"hello", b"\x00" * 99])
def test_a_foreign_file_is_answered_with_the_known_formats(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.pop"
    path.write_bytes(content)
    error = fault(lambda: openReport(path))
    assert isinstance(error, UnknownFormatError)
    assert "known formats: profile.pop" in str(error)


@pytest.mark.parametrize(
    "content", [b'{"a": 1}', b"{}", cbor2.dumps({"a": 1}), cbor2.dumps({1: 2})]
)
def test_an_object_that_is_no_profile_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    assert isinstance(fault(lambda: openReport(path)), UnknownFormatError)


def test_an_sqlite_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.pop")) as other:
        other.execute("CREATE TABLE report (x)")
        other.commit()
    error = fault(lambda: openReport(tmp_path / "other.pop"))
    assert isinstance(error, UnknownFormatError)
    assert "application id 0x0" in str(error)
    assert str(error).endswith(
        "databases of Graphcore's SDK, whose layout is not public, are not read"
    )


def test_a_host_trace_given_as_a_report_is_called_one(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "run.pvti")) as trace:
        trace.execute(f"PRAGMA application_id = {pvti_schema.APPLICATION_ID}")
        trace.execute("CREATE TABLE processes (id)")
    error = fault(lambda: openReport(tmp_path / "run.pvti"))
    assert isinstance(error, UnknownFormatError)
    assert str(error).endswith("run.pvti: a host trace (.pvti); a report (profile.pop) is needed")


@pytest.mark.parametrize("suffix", [".json", ".cbor"])
def test_a_newer_document_names_both_versions(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"graph{suffix}"
    nested = {"formatVersion": 99, "target": {}}
    path.write_bytes(orjson.dumps(nested) if suffix == ".json" else cbor2.dumps(nested))
    error = fault(lambda: openReport(path))
    assert isinstance(error, NewerVersionError)
    assert "format version 99; profiles are read up to version 1" in str(error)


def test_a_newer_database_names_both_versions(tmp_path: Path) -> None:
    path = write_report(tmp_path) / "profile.pop"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    error = fault(lambda: openReport(tmp_path))
    assert isinstance(error, NewerVersionError)
    assert "version 99" in str(error)
    assert "up to version 1" in str(error)


@pytest.mark.parametrize("kind", ["pop", "json", "cbor", "debug"])
@MANY
@given(data=st.data())
def test_a_truncated_file_is_a_fault(
    tmp_path: Path, written: dict[str, bytes], kind: str, data: st.DataObject
) -> None:
    whole = written[kind].rstrip(b"\n")
    path = tmp_path / "cut"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert str(path) in str(fault(lambda: read_all(path)))


@pytest.mark.parametrize("kind", ["pop", "json", "cbor", "debug"])
@MANY
@given(data=st.data())
def test_a_changed_byte_is_a_fault_or_another_report(
    tmp_path: Path, written: dict[str, bytes], kind: str, data: st.DataObject
) -> None:
    changed = bytearray(written[kind])
    for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=4)):
        changed[place] = data.draw(st.integers(0, 255))
    path = tmp_path / "changed"
    path.write_bytes(changed)
    try:
        read_all(path)
    except PvaError as error:
        assert "\n" not in str(error)


def damaged(path: Path, statement: str) -> PvaError:
    """Change a database, and give the fault that reading it raises."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
        database.commit()
    return fault(lambda: read_all(path))


@pytest.mark.parametrize(
    "change",
    [
        "data = zeroblob(length(data))",
        "crc32 = crc32 + 1",
        "crc32 = 'x'",
        "rows = rows + 1",
        "first_row = 5",
        "dtype = 'O'",
        "dtype = NULL",
        "shape = '[99999999999, 99999999999]'",
        "shape = 'x'",
        "shape = '[[1]]'",
        "encoding = 'lzma'",
    ],
)
def test_a_damaged_chunk_is_named(tmp_path: Path, change: str) -> None:
    path = write_report(tmp_path) / "profile.pop"
    with closing(sqlite3.connect(path)) as database:
        columns = "name, first_row, rows, dtype, shape, encoding, crc32, data"
        database.execute("ALTER TABLE arrays RENAME TO strict_arrays")
        database.execute(f"CREATE TABLE arrays ({columns})")
        database.execute(f"INSERT INTO arrays SELECT {columns} FROM strict_arrays")
        database.commit()
    error = damaged(path, f"UPDATE arrays SET {change} WHERE name = 'exchange_cycles'")
    assert isinstance(error, DamagedFileError)
    assert "exchange_cycles" in str(error)


@pytest.mark.parametrize("rows", [2**63 - 1, 23, -1])
def test_steps_are_not_counted_when_a_chunk_tells_other_rows_than_it_has(
    tmp_path: Path, rows: int
) -> None:
    path = write_report(tmp_path) / "profile.pop"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"UPDATE arrays SET rows = {rows} WHERE name = 'steps.type'")
        database.commit()
    with pytest.raises(DamagedFileError, match=r"steps\.type"):
        len(openReport(path).execution.steps)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("UPDATE programs SET type = 'Foo' WHERE rowid = 1", "table programs, column type"),
        ("UPDATE target SET num_tiles = 'many'", "table target, column num_tiles"),
        ("UPDATE target SET num_tiles = 1.5", "table target, column num_tiles"),
        ("UPDATE variables SET name = x'00'", "table variables, column name"),
        ("DELETE FROM target", "table target"),
        ("ALTER TABLE target DROP COLUMN num_tiles", "table target"),
    ],
)
def test_a_damaged_table_is_named(tmp_path: Path, change: str, place: str) -> None:
    error = damaged(write_report(tmp_path) / "profile.pop", change)
    assert isinstance(error, DamagedFileError)
    assert place in str(error)


def test_a_reference_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    path = write_report(tmp_path) / "profile.pop"
    error = damaged(path, "UPDATE programs SET compute_set = 3 WHERE compute_set = 2")
    assert isinstance(error, InconsistentDataError)
    assert "programs.compute_set: found 3; rows of compute_sets are -1 to 2" in str(error)


@pytest.mark.parametrize(
    ("nested", "place"),
    [
        ({"target": 5}, "target"),
        ({"target": {"numTiles": "x"}}, "target.numTiles"),
        ({"target": {"numTiles": 2**64}}, "target.numTiles"),
        ({"target": {}, "memory": {"byTile": {"total": [1, "x"]}}}, "memory.byTile.total"),
        ({"target": {}, "memory": {"byTile": {"total": [1], "overflowed": [1, 2]}}}, "byTile"),
        ({"target": {}, "programs": [5]}, "programs"),
        ({"target": {}, "programs": [{"type": "Sequence"}, None]}, "programs"),
        ({"target": {}, "programs": [{"type": "Foo"}]}, "programs.type"),
        ({"target": {}, "programs": [{"type": "Sequence", "children": 5}]}, "children"),
        ({"target": {}, "exchanges": {"cyclesByTile": [[1], [2, 3]]}}, "exchanges.cyclesByTile"),
        ({"target": {}, "memory": {"byCategory": {"foo": {}}}}, "memory.byCategory"),
        ({"computeSets": {"vertexCounts": [[1]], "vertexTypes": [[]]}}, "vertexCounts"),
        ({"formatVersion": "x", "target": {}}, "formatVersion"),
        ({"contexts": [{"id": 1, "name": 5}]}, "contexts[0]"),
        ({"contexts": [5]}, "contexts[0]"),
        ({"graphProfile": 5}, "graphProfile"),
    ],
)
def test_a_wrong_value_in_a_document_is_named(tmp_path: Path, nested: Any, place: str) -> None:
    path = tmp_path / "graph.json"
    path.write_bytes(cbor2.dumps(nested))
    error = fault(lambda: openReport(path))
    assert isinstance(error, DamagedFileError)
    assert place in str(error)


@pytest.mark.parametrize(
    "content",
    [
        b'{"target":' + b"[" * 100_000,
        b"\xa1\x66target" + b"\x81" * 100_000,
        b"\xa1\x66target\x9b\x0f" + b"\xff" * 7,  # a list of 2**60 items
        b"\xa1\x66target\x5b\x0f" + b"\xff" * 7,  # a string of 2**60 bytes
        b"\xa1\x66target" + b"\xd8\x28\x82\x82" + 2 * (b"\x1b\x00\xff" + 6 * b"\xff") + b"\x40",
        b"\xa1\xd8\x1c\x81\x01\x01",  # a shared value as a key
        b"\xa1\x66target\xd8\x1c\x82" + 2 * b"\xd8\x1d\x00",  # a list twice in itself
    ],
)
def test_depth_and_length_cost_neither_stack_nor_memory(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "deep"
    path.write_bytes(content)
    assert isinstance(fault(lambda: openReport(path)), DamagedFileError | UnknownFormatError)


def test_a_machine_without_end_is_refused(tmp_path: Path) -> None:
    nested = {"target": {"numTiles": 2**62}, "exchanges": {"cyclesByTile": []}}
    (tmp_path / "graph.json").write_bytes(orjson.dumps(nested))
    assert isinstance(fault(lambda: openReport(tmp_path)), InconsistentDataError)


def test_a_killed_program_leaves_the_runs_that_ended(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pva.formats.database.pop import ReportWriter; "
        "from tests.builders import small_report; report = small_report(); "
        "writer = ReportWriter(sys.argv[1], report.select('graph')); "
        "writer.append_run({name: report.table(name) for name in ('runs', 'steps')}); "
        "writer._connection.execute('BEGIN'); writer._connection.execute('DELETE FROM runs'); "
        "os._exit(9)"
    )
    path = tmp_path / "profile.pop"
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == 9
    assert len(openReport(path).execution.steps) == 24
    assert openReport(path).dataset.length("runs") == 2


def test_a_table_that_was_not_recorded_names_the_option() -> None:
    graph = small_report().select("graph")
    error = fault(lambda: graph.column("steps", "cycles"))
    assert isinstance(error, NotRecordedError)
    assert str(error).endswith("autoReport.outputExecutionProfile")


def test_an_unknown_suffix_is_answered_with_the_known_formats(tmp_path: Path) -> None:
    error = fault(lambda: registry.write(small_report(), tmp_path / "report.xml"))
    assert isinstance(error, UnknownFormatError)
    assert "no format has the suffix '.xml'; known formats" in str(error)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for name in ("report.pop", "report.json", "report.cbor"):
        path = tmp_path / "none" / name
        assert str(path) in str(fault(lambda path=path: registry.write(small_report(), path)))


def test_columns_of_different_lengths_are_refused() -> None:
    tables = {"vertex_types": {"name": ["a", "b"], "size": [1]}}
    assert isinstance(fault(lambda: Dataset.of(tables)), InconsistentDataError)


def test_what_the_program_has_not_is_not_blamed_on_an_option_that_was_on() -> None:
    error = fault(lambda: small_report(optimization_info=None).column("optimization_info", "name"))
    assert isinstance(error, NotRecordedError)
    assert "the program has none" in str(error)


def test_debug_information_that_was_not_recorded_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "debug.cbor"
    error = fault(lambda: registry.write(small_report().select("graph"), path))
    assert str(error).endswith("run the program with the engine option autoReport.outputDebugInfo")
    assert not path.exists()


@pytest.mark.parametrize("table", ["steps", "liveness_steps", "variable_pieces", "blocks"])
def test_a_cpu_is_the_reason_for_what_it_does_not_have(table: str) -> None:
    target = small_report().table("target")
    cpu = target | {"type": [schema.TABLE["target"].column("type").values.index("CPU")]}
    data = small_report(target=cpu, **{table: None})
    assert str(fault(lambda: data.table(table))).endswith(
        f"{table} not recorded; a CPU runs values without a model of tiles and cycles"
    )
    assert "autoReport.outputDebugInfo" in data.select("graph").why_absent("debug_contexts")


def test_the_mode_none_names_the_option_that_recorded_no_run() -> None:
    execution = small_report().table("execution") | {"profiler_mode": [0]}
    data = small_report(
        execution=execution, steps=None, blocks=None, measured_compute_set_cycles=None
    )
    for name in ("steps", "measured_compute_set_cycles"):
        assert data.why_absent(name).endswith("autoReport.executionProfileProgramRunCount")
    assert data.why_absent("blocks").endswith("profiler.blocks.filter")  # they do not need it


def test_a_folder_of_named_engines_points_to_their_reports(tmp_path: Path) -> None:
    for engine in ("training", "inference"):
        write_report(tmp_path / engine)
    assert str(fault(lambda: openReport(tmp_path))).endswith("those below: inference, training")
