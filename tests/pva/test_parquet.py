"""Tables in Parquet are the frames, carry units and meanings, and are read as they were written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from pva import schema
from pva.data.dataset import Dataset
from pva.errors import (
    DamagedFileError,
    MissingPackageError,
    NewerVersionError,
    OverwriteError,
    PvaError,
    UnknownFormatError,
)
from pva.formats import parquet, registry
from pva.frames import NAMES
from pva.report import Report, openReport
from tests.builders import small_report
from tests.strategies import datasets

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Report.of(small_report()).to_parquet(tmp_path_factory.mktemp("parquet") / "tables")


@FEW
@given(data=datasets())
def test_any_dataset_is_read_as_it_was_written(tmp_path: Path, data: Dataset) -> None:
    registry.write(data, tmp_path / "report", "parquet")
    assert registry.read(tmp_path / "report") == data


def test_a_directory_of_tables_opens_as_a_report(tables: Path) -> None:
    assert openReport(tables).dataset == small_report()
    assert openReport(tables).execution.totalCycles.total == 1024


@pytest.mark.parametrize("name", NAMES)
def test_a_file_read_by_pandas_is_the_frame_of_its_name(name: str, tables: Path) -> None:
    frame = getattr(Report.of(small_report()).frames, name)()
    pd.testing.assert_frame_equal(pd.read_parquet(tables / f"{name}.parquet"), frame)


def test_fields_carry_unit_and_meaning(tables: Path) -> None:
    found = pq.read_schema(tables / "runs.parquet")
    assert found.field("cycles").metadata[b"unit"] == b"cycles"
    assert found.field("cycles").metadata[b"meaning"] == b"how long it took on the device"
    assert found.metadata[b"tilescope.recorded_by"] == b"autoReport.outputExecutionProfile"


def test_a_large_array_is_written_in_parts_and_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "BATCH", 25)
    clock = np.random.default_rng(0).integers(0, 3, size=(7, 10))
    data = small_report(tile_clock=clock)
    parquet.write(data, tmp_path / "tables")
    np.testing.assert_array_equal(parquet.read(tmp_path / "tables").array("tile_clock"), clock)


def test_a_single_file_opens_as_what_it_holds(tables: Path) -> None:
    data = registry.read(tables / "runs.parquet")
    assert (data.tables, data.arrays) == (("runs",), ())


def test_columns_are_read_only_when_asked_for(tables: Path, tmp_path: Path) -> None:
    data = parquet.read(tables)
    (tables / "runs.parquet").rename(tmp_path / "moved.parquet")
    assert data.length("steps") == 24
    with pytest.raises(DamagedFileError, match="No such file"):
        data.table("runs")
    (tmp_path / "moved.parquet").rename(tables / "runs.parquet")


def changed(tables: Path, folder: Path, name: str, **changes: Any) -> Path:
    """Copy one file with other columns (None drops one) or `told` metadata."""
    table = pq.read_table(tables / f"{name}.parquet")
    told = {f"tilescope.{k}": v for k, v in changes.pop("told", {}).items()}
    columns = {c: table.column(c) for c in table.column_names} | changes
    columns = {c: values for c, values in columns.items() if values is not None}
    metadata = {k.decode(): v.decode() for k, v in table.schema.metadata.items()} | told
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), folder / f"{name}.parquet")
    return folder / f"{name}.parquet"


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "runs",
            {"program": ["a", "b"]},
            "program: 1-dimensional <U1; 1-dimensional whole numbers",
        ),
        ("runs", {"program": [1, None]}, "program: null; no value missing"),
        ("runs", {"program": [0.5, 1.5]}, "1-dimensional float64; 1-dimensional whole numbers"),
        ("runs", {"program": None}, "program: no such column; runs has it"),
        ("programs", {"type": ["Foo"] * 14}, "type: found 'Foo'; one of OnTileExecute"),
        ("target", {c.name: None for c in schema.TABLE["target"].columns[1:]}, "no such column"),
        ("tile_clock", {"told": {"shape": "[9]"}}, "shape '\\[9\\]'; a length for each"),
        ("tile_clock", {"told": {"shape": "[99999999, 99999999]"}}, "shape"),
        ("exchange_cycles", {"told": {"shape": "[1, 3]"}}, "tile: an index out of range; 0 to 2"),
        ("runs", {"told": {"name": "foo"}}, "holds foo; tables are written by"),
        ("runs", {"told": {"format_version": "99"}}, "format version 99; tables are read up to"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(
    tables: Path, tmp_path: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    file = changed(tables, tmp_path, name, **changes)
    wrong = (DamagedFileError, UnknownFormatError, NewerVersionError)
    with pytest.raises(wrong, match=message) as caught:
        data = parquet.read(file)
        data.table(name) if name in schema.TABLE else data.array(name)
    assert "\n" not in str(caught.value) and file.name in str(caught.value)


@pytest.mark.parametrize("size", [0, 3, 8, 100, 1000])
def test_a_file_cut_short_is_told_in_one_line(tables: Path, tmp_path: Path, size: int) -> None:
    file = tmp_path / "steps.parquet"
    file.write_bytes((tables / file.name).read_bytes()[:size])
    with pytest.raises(DamagedFileError, match=r"steps.parquet: ") as caught:
        parquet.read(tmp_path).table("steps")
    assert "\n" not in str(caught.value)


def test_a_flipped_byte_gives_an_error_of_one_line_or_other_values(
    tables: Path, tmp_path: Path
) -> None:
    whole = (tables / "steps.parquet").read_bytes()
    for place in np.random.default_rng(0).integers(0, len(whole), 200).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        (tmp_path / "steps.parquet").write_bytes(damaged)
        try:
            parquet.read(tmp_path).table("steps")
        except PvaError as error:
            assert "\n" not in str(error)


def test_a_small_file_with_very_many_rows_is_refused(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "reading_limit", lambda _: 8 * 1000)
    many = pa.DictionaryArray.from_arrays(pa.array([0] * 500_000, pa.int8()), [0])
    file = changed(tables, tmp_path, "control_programs", program=many)
    with pytest.raises(DamagedFileError, match=r"500000 rows in \d+ bytes; at most \d+ rows"):
        parquet.read(file)


def test_a_foreign_parquet_file_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(UnknownFormatError, match="holds no table of a report"):
        openReport(tmp_path)


def test_without_pyarrow_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'tilescope\[parquet\]'"):
        Report.of(small_report()).to_parquet(tmp_path / "tables")
    assert list(tmp_path.iterdir()) == []


FACES = {
    "report.json": lambda report, path, **more: report.to_json(path, **more),
    "report.cbor": lambda report, path, **more: report.to_cbor(path, **more),
    "plain.cbor": lambda report, path, **more: report.to_cbor(path, plain=True, **more),
    "tables": lambda report, path, **more: report.to_parquet(path, **more),
}


@pytest.mark.parametrize("name", FACES)
def test_a_report_written_from_a_notebook_reads_back_equal(name: str, tmp_path: Path) -> None:
    path = FACES[name](Report.of(small_report()), tmp_path / name)
    assert path == tmp_path / name
    assert openReport(path).dataset == small_report()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", FACES)
def test_what_is_there_is_replaced_only_when_told(name: str, tmp_path: Path) -> None:
    report, path = Report.of(small_report()), tmp_path / name
    FACES[name](Report.of(small_report().select("graph")), path)
    with pytest.raises(OverwriteError, match="already there; give another name, or overwrite"):
        FACES[name](report, path)
    assert not openReport(path).dataset.has("steps")
    FACES[name](report, path, overwrite=True)
    assert openReport(path).dataset == small_report()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_tables_never_take_the_place_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("precious")
    with pytest.raises(OverwriteError, match="holds something else: thesis.tex"):
        Report.of(small_report()).to_parquet(tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "thesis.tex").read_text() == "precious"


def test_tables_never_take_the_place_of_other_tables(tmp_path: Path) -> None:
    path = Report.of(small_report()).to_parquet(tmp_path / "tables")
    (path / "target.parquet").rename(path / "sales.parquet")
    with pytest.raises(OverwriteError, match="holds something else: sales.parquet"):
        Report.of(small_report()).to_parquet(path, overwrite=True)
    (path / "sales.parquet").rename(path / "target.parquet")
    Report.of(small_report()).to_parquet(path, overwrite=True)
    (path / "target.parquet").write_bytes((path / "runs.parquet").read_bytes())
    with pytest.raises(OverwriteError, match="holds something else: target.parquet"):
        Report.of(small_report()).to_parquet(path, overwrite=True)


def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Report.of(small_report().select("graph")).to_parquet(tmp_path / "tables")
    monkeypatch.setattr(parquet, "_long", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        Report.of(small_report()).to_parquet(tmp_path / "tables", overwrite=True)
    assert openReport(tmp_path / "tables").dataset == small_report().select("graph")
    assert [entry.name for entry in tmp_path.iterdir()] == ["tables"]


def test_cbor_may_be_written_without_tags(tmp_path: Path) -> None:
    import cbor2

    path = Report.of(small_report()).to_cbor(tmp_path / "report.cbor", plain=True)
    found = cbor2.loads(path.read_bytes())["graphProfile"]["memory"]["byTile"]["total"]
    assert found == json.loads(json.dumps(found))
