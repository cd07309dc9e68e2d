"""Tables and arrays in Parquet: a directory with one file for each, as `pva.frames` has them.

Arrays stand in long form, a column for each index; their shape is kept beside them, as zeros are
left out. Units and meanings are metadata of the fields. pyarrow is an optional package.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import DTYPES, Dataset
from pva.data.sources import Room, Spend
from pva.errors import (
    DamagedFileError,
    MissingPackageError,
    NewerVersionError,
    NotFoundError,
    OverwriteError,
    PvaError,
    UnknownFormatError,
)
from pva.formats import marker
from pva.formats.beginnings import PARQUET_SUFFIX
from pva.formats.files import beside, put_in_place
from pva.formats.marker import Marker
from pva.formats.memory_limit import POINTER, TEXT, reading_limit
from pva.formats.values import column_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile


FORMAT = "tables in Parquet"
INSTALL = "pip install 'tilescope[parquet]'"
PREFIX = "tilescope."  # of the keys of our metadata
BATCH = 1 << 20  # values of an array that are turned into rows at once
AT_ONCE = 1 << 18  # rows that are read at once


def files(directory: Path) -> list[Path]:
    """List the Parquet files of a directory."""
    return sorted(file for file in directory.glob(f"*{PARQUET_SUFFIX}") if file.is_file())


def write(dataset: Dataset, path: str | PathLike[str]) -> None:
    """Write every table and array into a directory, which appears when it is whole.

    Replaces a directory that holds what was written so, unchanged, and nothing else.
    Raises MissingPackageError, OverwriteError and PvaError.
    """
    target = Path(path)
    part = beside(target, "part")
    with _writing(target):
        _check_replaceable(target)
        part.mkdir()
        try:
            for name in dataset.tables:
                _write_table(part, dataset, schema.TABLE[name])
            for name in dataset.arrays:
                _write_array(part, dataset, schema.ARRAY[name])
            digests = {file.name: ("sha256", marker.digest(file)) for file in files(part)}
            marker.write(part, Marker(digests))
            _check_replaceable(target)
            put_in_place(part, target)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def read(path: str | PathLike[str]) -> Dataset:
    """Open such a directory, or one file of it; columns are read when asked for.

    Raises MissingPackageError, NotFoundError, UnknownFormatError, DamagedFileError and
    NewerVersionError.
    """
    where = Path(path)
    paths = files(where) if where.is_dir() else [where]
    if not paths:
        raise NotFoundError(where, "no Parquet file in this directory", f"{FORMAT} are looked for")
    _pyarrow(where)
    named = dict(map(_named, paths))
    return Dataset(_Parquet(named), str(where))


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    _pyarrow(target)
    try:
        yield
    except OSError as error:
        problem = error.strerror or str(error)
        raise PvaError(target, problem, f"a place where {FORMAT} can be written") from error


def _pyarrow(path: Path) -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise MissingPackageError(path, "Parquet needs the package pyarrow", INSTALL) from None


def _check_replaceable(target: Path) -> None:
    """Refuse to put a directory in the place of anything but another of its kind."""
    if not target.exists():
        return
    strangers = [target.name]
    if target.is_dir():
        recorded = marker.read(target) or Marker()
        names = sorted(set(os.listdir(target)) - {marker.NAME})
        strangers = [n for n in names if not marker.is_own(target, n, recorded.files.get(n))]
    if strangers:
        raise OverwriteError(target, f"holds something else: {strangers[0]}", "give another name")


def _metadata(declared: schema.Table | schema.Array, **further: str) -> dict[str, str]:
    fields = {
        "name": declared.name,
        "format_version": str(schema.FORMAT_VERSION),
        "meaning": declared.meaning,
        "recorded_by": declared.option,
    }
    return {f"{PREFIX}{key}": value for key, value in (fields | further).items()}


def _field(name: str, kind: schema.Kind, unit: str, meaning: str) -> pa.Field:
    import pyarrow as pa

    types = {
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "text": pa.string(),
        "code": pa.dictionary(pa.int8(), pa.string()),
    }
    return pa.field(name, types[kind], metadata={"unit": unit, "meaning": meaning})


def _coded(codes: Values, words: tuple[str, ...]) -> pa.Array:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(codes.astype(np.int8), pa.array(words, pa.string()))


def _write_table(directory: Path, dataset: Dataset, table: schema.Table) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [_field(c.name, c.kind, c.unit, c.meaning) for c in table.columns]
    columns = []
    for column, field in zip(table.columns, fields, strict=True):
        values = dataset.column(table.name, column.name)
        coded = column.kind == "code"
        columns.append(_coded(values, column.values) if coded else pa.array(values, field.type))
    rows = pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=_metadata(table)))
    pq.write_table(rows, directory / f"{table.name}{PARQUET_SUFFIX}", compression="zstd")


def _write_array(directory: Path, dataset: Dataset, array: schema.Array) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = dataset.array(array.name)
    kinds: dict[str, schema.Kind] = {
        name: "code" if name in schema.INDEX_WORDS else "int" for name in array.index
    }
    fields = [_field(name, kind, "", f"index: {name}") for name, kind in kinds.items()]
    fields.append(_field(array.value_column, array.kind, array.unit, array.meaning))
    metadata = _metadata(array, shape=json.dumps(values.shape))
    rows = pa.schema(fields, metadata=metadata)
    with pq.ParquetWriter(
        directory / f"{array.name}{PARQUET_SUFFIX}", rows, compression="zstd"
    ) as writer:
        for columns in _long(array, values):
            writer.write_batch(pa.record_batch(columns, schema=rows))


def _long(array: schema.Array, values: Values) -> Iterator[list[object]]:
    """Return an array in long form, some of its rows at a time."""
    step = max(BATCH // max(math.prod(values.shape[1:]), 1), 1)
    for first in range(0, len(values), step):
        part = values[first : first + step]
        places = list(np.nonzero(part)) if part.ndim > 1 else [np.arange(len(part))]
        cells = part[tuple(places)]
        places[0] = places[0] + first
        yield [*map(_index, array.index, places), cells]


def _index(name: str, places: Values) -> object:
    words = schema.INDEX_WORDS.get(name)
    return _coded(places, words) if words else places


@contextmanager
def _reading(file: Path, place: str = "") -> Iterator[None]:
    """Turn what pyarrow raises into one line about the file."""
    import pyarrow as pa

    try:
        yield
    except MemoryError as error:
        raise DamagedFileError(file, "too large for the memory", place=place) from error
    except OSError as error:
        problem = error.strerror or str(error)
        raise DamagedFileError(file, problem, f"{FORMAT} that can be read", place=place) from error
    except (pa.ArrowException, ValueError, TypeError, KeyError, OverflowError) as error:
        problem = str(error).partition("\n")[0]
        raise DamagedFileError(file, problem, f"{FORMAT}, whole", place=place) from error


def _named(file: Path) -> tuple[str, Path]:
    """Return which table or array a file holds, by its metadata."""
    import pyarrow.parquet as pq

    with _reading(file), pq.ParquetFile(file) as opened:
        metadata, rows, size = _file_metadata(opened), opened.metadata.num_rows, file.stat().st_size
    name = metadata.get("name", "")
    if name not in schema.TABLE and name not in schema.ARRAY:
        problem = f"holds {name or 'no table of a report'}"
        raise UnknownFormatError(file, problem, "tables are written by Report.to_parquet")
    version = metadata.get("format_version", "")
    if version.isdecimal() and int(version) > schema.FORMAT_VERSION:
        remedy = f"tables are read up to version {schema.FORMAT_VERSION}: update tilescope"
        raise NewerVersionError(file, f"format version {version}", remedy)
    if rows > reading_limit(size) // 8:
        remedy = f"at most {reading_limit(size) // 8} rows"
        raise DamagedFileError(file, f"{rows} rows in {size} bytes", remedy)
    return name, file


def _file_metadata(opened: ParquetFile) -> dict[str, str]:
    metadata: Mapping[bytes, bytes] = opened.schema_arrow.metadata or {}
    texts = {key.decode(): value.decode() for key, value in metadata.items()}
    return {
        key.removeprefix(PREFIX): value for key, value in texts.items() if key.startswith(PREFIX)
    }


class _Parquet:
    """The source of a dataset in Parquet files, by name of table or array."""

    def __init__(self, named: Mapping[str, Path]) -> None:
        self._files = named
        where = next(iter(named.values())).parent
        with _reading(where):  # a file may have been removed since
            size = sum(file.stat().st_size for file in named.values())
        self.room = Room(reading_limit(size), where)

    def tables(self) -> Collection[str]:
        return [name for name in self._files if name in schema.TABLE]

    def arrays(self) -> Collection[str]:
        return [name for name in self._files if name in schema.ARRAY]

    def length(self, table: str) -> int:
        import pyarrow.parquet as pq

        with _reading(self._files[table]), pq.ParquetFile(self._files[table]) as opened:
            return int(opened.metadata.num_rows)

    def column(self, table: str, column: str, spend: Spend) -> Values:
        import pyarrow.parquet as pq

        file, declared = self._files[table], schema.TABLE[table].column(column)
        rows = self.length(table)
        if schema.TABLE[table].layout == "object" and rows != 1:
            raise DamagedFileError(file, f"{rows} rows", "one row", place=column)
        spend(rows * POINTER, f"{file.name}, {column}")
        with _reading(file, column):
            if column in pq.read_schema(file).names:
                return _column(file, declared, spend)
        if not declared.optional:
            raise DamagedFileError(file, "no such column", f"{table} has it", place=column)
        return np.full(rows, schema.MISSING[declared.kind], DTYPES[declared.kind])

    def whole(self, table: str, spend: Spend) -> list[Values] | None:
        return None

    def rows(self, array: str, first: int, stop: int | None, spend: Spend) -> Values:
        with _reading(self._files[array]):
            return _dense(self._files[array], schema.ARRAY[array], spend)[first:stop]


def _column(file: Path, column: schema.Column, spend: Spend) -> Values:
    """Read one column, some rows at a time; a text told very often is held once."""
    import pyarrow.parquet as pq

    filled = 0
    with pq.ParquetFile(file, read_dictionary=[column.name]) as opened:
        _check_flat(file, opened.schema_arrow.field(column.name))
        array = np.empty(opened.metadata.num_rows, DTYPES[column.kind])
        for batch in opened.iter_batches(AT_ONCE, use_threads=False, columns=[column.name]):
            values = _decoded(file, column, _whole(file, batch, column.name), spend)
            array[filled : filled + len(values)] = values
            filled += len(values)
    if filled != len(array):
        remedy = f"{len(array)}, as the file tells"
        raise DamagedFileError(file, f"{filled} rows", remedy, place=column.name)
    return array


def _check_flat(file: Path, field: pa.Field) -> None:
    """Refuse what may be of any length in each row."""
    import pyarrow as pa

    if pa.types.is_nested(field.type):
        remedy = "a number or a text in each row"
        raise DamagedFileError(file, f"values of type {field.type}"[:80], remedy, place=field.name)


def _decoded(file: Path, column: schema.Column, values: pa.Array, spend: Spend) -> Values:
    with _reading(file, column.name):
        if column.kind not in ("code", "text"):
            rows = values.to_numpy(zero_copy_only=False)
            return column_of(file, column.name, column, rows)
        coded = values if hasattr(values, "dictionary") else values.dictionary_encode()
        spend(coded.dictionary.nbytes + TEXT * len(coded.dictionary), f"{file.name}, {column.name}")
        words = column_of(file, column.name, column, coded.dictionary.to_pylist())
        codes: Values = words[coded.indices.to_numpy(zero_copy_only=False)]
        return codes


def _dense(file: Path, array: schema.Array, spend: Spend) -> Values:
    """Put the values of an array at their places, some at a time; the others are zero."""
    import pyarrow.parquet as pq

    columns = [_index_column(name) for name in array.index]
    columns.append(schema.Column(array.value_column, array.kind, array.unit, array.meaning))
    names = [column.name for column in columns]
    with pq.ParquetFile(file) as opened:
        shape = _array_shape(file, array, _file_metadata(opened).get("shape", ""))
        spend(math.prod(shape) * POINTER, f"{file.name}, shape {shape}")
        missing = [name for name in names if name not in opened.schema_arrow.names]
        if missing:
            raise DamagedFileError(file, "no such column", f"{array.name} has it", place=missing[0])
        if opened.metadata.num_rows > max(math.prod(shape), BATCH):
            problem, remedy = f"{opened.metadata.num_rows} rows", f"at most one a value of {shape}"
            raise DamagedFileError(file, problem, remedy)
        dense: Values = np.zeros(shape, DTYPES[array.kind])
        for batch in opened.iter_batches(AT_ONCE, use_threads=False, columns=names):
            parts = [
                _decoded(file, column, _whole(file, batch, column.name), spend)
                for column in columns
            ]
            *places, values = parts
            _check_places(file, array, places, shape)
            dense[tuple(places)] = values
    return dense


def _check_places(
    file: Path, array: schema.Array, places: list[Values], shape: tuple[int, ...]
) -> None:
    for name, place, size in zip(array.index, places, shape, strict=True):
        if len(place) and not 0 <= place.min() <= place.max() < size:
            remedy = f"0 to {size - 1}"
            raise DamagedFileError(file, "an index out of range", remedy, place=name)


def _index_column(name: str) -> schema.Column:
    words = schema.INDEX_WORDS.get(name, ())
    return schema.Column(name, "code" if words else "int", "", "", "", False, words)


def _whole(file: Path, batch: pa.RecordBatch, name: str) -> pa.Array:
    values = batch.column(name)
    if values.null_count:
        raise DamagedFileError(file, "null", "no value missing", place=name)
    return values


def _array_shape(file: Path, array: schema.Array, text: str) -> tuple[int, ...]:
    """Read the shape of an array; raises DamagedFileError."""
    with suppress(ValueError, RecursionError):
        shape = json.loads(text)
        is_shape = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
        if is_shape and len(shape) == len(array.index):
            return tuple(shape)
    remedy = f"a length for each of {list(array.index)}"
    raise DamagedFileError(file, f"shape {text!r}", remedy)
