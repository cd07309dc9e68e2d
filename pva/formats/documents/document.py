"""A dataset as the nested documents of the user guide's chapter "Profiling", and back.

Places, keys and layouts come from the schema; `document_places` has the few that are laid out in
a way of their own. Arrays stay NumPy arrays in the nested dicts: JSON and CBOR writers know them.
Readers take what is there: keys and whole sections may be missing, and lists of objects may stand
where lists by column are usual, or the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.data.dataset import Dataset
from pva.errors import (
    DamagedFileError,
    InconsistentDataError,
    NewerVersionError,
    UnknownFormatError,
)
from pva.formats.documents import places
from pva.formats.documents.debug_strings import resolved
from pva.formats.documents.nested import columns_of, look_up, put, rows_of
from pva.formats.documents.steps import VERSION_KEY
from pva.formats.values import column_of, numbers_of, shown

Nested = dict[str, Any]
Columns = dict[str, Values]

INDEX_LIMIT = 1 << 30  # of an array without values; what does not fit is then refused
# A file may hold several documents; Engine::getProfile names the first two so.
COMBINED: dict[schema.Document, str] = {
    "graph": "graphProfile",
    "execution": "executionProfile",
    "debug": "debugInfo",
}
# A document of another writer is told by any of these keys; the graph profile is asked for last.
TELLING: dict[schema.Document, tuple[str, ...]] = {
    "execution": ("profilerMode", "simulation", "programTrace"),
    "debug": ("contexts",),
    "graph": ("target", "graph", "memory", "programs", "computeSets", "vertexTypes"),
}

# Names what was not recorded though the rows around it were: no row of it is no table of no rows.
ABSENT_KEY = "notRecorded"
ITEMS: tuple[schema.Table | schema.Array, ...] = (*schema.TABLES, *schema.ARRAYS)
# One of ours may have any of the schema's.
OWN_KEYS = {
    document: {item.place.split(".")[0] for item in ITEMS if item.document == document} - {""}
    for document in TELLING
}


def to_document(dataset: Dataset, document: schema.Document) -> Nested:
    """Turn what belongs to one document into nested dicts; arrays stay NumPy arrays.

    Raises InconsistentDataError for rows inside those of a table that is not there.
    """
    root: Nested = {VERSION_KEY: schema.FORMAT_VERSION}
    _check_places(dataset, document)
    for table in schema.TABLES:
        if table.document == document and dataset.has(table.name):
            write = places.WRITE_TABLE.get(table.name) or WRITE_LAYOUT[table.layout]
            write(root, table, dataset)
    for array in schema.ARRAYS:
        if array.document == document and dataset.has(array.name):
            values = dataset.array(array.name)
            if array.name in places.WRITE_ARRAY:
                places.WRITE_ARRAY[array.name](root, values)
            else:
                put(root, array.place, values)
    absent = [
        name
        for name, around in places.INSIDE.items()
        if _document_of(name) == document and dataset.has(around) and not dataset.has(name)
    ]
    return root | {ABSENT_KEY: absent} if absent else root


def _document_of(name: str) -> schema.Document:
    return (schema.TABLE.get(name) or schema.ARRAY[name]).document


def _check_places(dataset: Dataset, document: schema.Document) -> None:
    """Refuse to leave out what stands inside a table that is not there."""
    for name, around in places.INSIDE.items():
        if _document_of(name) == document and dataset.has(name) and not dataset.has(around):
            remedy = "profile.pop and Parquet keep one without the other, documents do not"
            raise InconsistentDataError(dataset.name, f"{name} without {around}", remedy)


def to_file(dataset: Dataset, stem: str) -> Nested:
    """Turn a dataset into what a file holds: one document when its name says so, or all of them."""
    for document in COMBINED:
        if document == stem:
            return to_document(dataset, document)
    parts = {d: dataset.select(d) for d in COMBINED}
    return {
        COMBINED[document]: to_document(dataset, document)
        for document, part in parts.items()
        if part.tables or part.arrays
    }


def from_file(file: object, root: object) -> Dataset:
    """Turn what a file holds into a dataset; `file` names it in the text of errors.

    Raises UnknownFormatError, NewerVersionError, DamagedFileError and InconsistentDataError.
    """
    if not isinstance(root, Mapping):
        raise UnknownFormatError(file, f"holds {type(root).__name__}", "a profile is an object")
    parts = {document: root[key] for document, key in COMBINED.items() if key in root}
    if not parts:
        parts = {_document_kind(file, root): root}
    tables: dict[str, Columns] = {}
    arrays: dict[str, Values] = {}
    foreign = False
    for document, part in parts.items():
        if not isinstance(part, Mapping):
            place, remedy = COMBINED[document], "an object"
            raise DamagedFileError(file, f"found {shown(part)}", remedy, place=place)
        _check_version(file, part)
        foreign |= VERSION_KEY not in part and document != "debug"
        content = resolved(file, part) if document == "debug" else part
        _read(file, document, content, tables, arrays)
    if foreign:
        _count_replicas(tables)
    return _dataset(file, tables, arrays, foreign=foreign)


def _document_kind(file: object, root: Mapping[str, object]) -> schema.Document:
    for document, keys in TELLING.items():
        own_keys = OWN_KEYS[document] if VERSION_KEY in root else set()
        if any(key in root for key in (*keys, *own_keys)):
            return document
    if set(root) == {VERSION_KEY}:
        return "graph"  # of nothing, as any document of nothing
    keys_in_file = ", ".join(shown(key) for key in list(root)[:5]) or "none"
    remedy = "a graph profile has target or programs, an execution profile profilerMode"
    raise UnknownFormatError(file, f"an object with the keys {keys_in_file}", remedy)


def _check_version(file: object, root: Mapping[str, object]) -> None:
    version = root.get(VERSION_KEY, schema.FORMAT_VERSION)
    if not isinstance(version, int) or isinstance(version, bool):
        raise DamagedFileError(file, f"found {shown(version)}", "a number", place=VERSION_KEY)
    if version > schema.FORMAT_VERSION:
        remedy = f"profiles are read up to version {schema.FORMAT_VERSION}: update tilescope"
        raise NewerVersionError(file, f"format version {version}", remedy)


def _read(
    file: object,
    document: schema.Document,
    root: Mapping[str, object],
    tables: dict[str, Columns],
    arrays: dict[str, Values],
) -> None:
    absent = _not_recorded(file, root)
    for table in schema.TABLES:
        if table.document != document or table.name in absent:
            continue
        read = places.READ_TABLE.get(table.name) or READ_LAYOUT[table.layout]
        columns = read(file, root, table)
        if columns is not None:
            tables[table.name] = columns
    for array in schema.ARRAYS:
        if array.document != document or array.name in absent:
            continue
        special = places.READ_ARRAY.get(array.name)
        nested = special(file, root) if special else look_up(file, root, array.place)
        if nested is not None:
            values = numbers_of(file, array.place, array.kind, nested, len(array.index))
            arrays[array.name] = values


def _not_recorded(file: object, root: Mapping[str, object]) -> set[str]:
    named = root.get(ABSENT_KEY) or []
    if not isinstance(named, list):
        raise DamagedFileError(file, f"found {shown(named)}", "a list of names", place=ABSENT_KEY)
    return {name for name in places.INSIDE if name in named}


def _count_replicas(tables: dict[str, Columns]) -> None:
    """Count the replicas where no key does: what is told by tile is of one, on whole IPUs."""
    target, memory = tables.get("target", {}), tables.get("memory_by_tile", {})
    recorded_tiles = len(next(iter(memory.values()), ()))
    if recorded_tiles and target and target["num_replicas"][0] < 0:
        machine = (int(target[key][0]) for key in ("num_ipus", "tiles_per_ipu", "num_tiles"))
        ipus, on_ipu, tiles = machine
        tiles = tiles if tiles > 0 else ipus * on_ipu
        if min(on_ipu, tiles) > 0 and recorded_tiles % on_ipu == 0 and tiles % recorded_tiles == 0:
            target["num_replicas"] = np.array([tiles // recorded_tiles])


def _dataset(
    file: object, tables: dict[str, Columns], arrays: dict[str, Values], *, foreign: bool
) -> Dataset:
    """Make the dataset; arrays of no rows get the shape that nested lists cannot tell."""
    lengths = Dataset.of(tables, name=str(file), foreign=foreign).dimensions()
    for name, values in arrays.items():
        if not values.size:
            index = schema.ARRAY[name].index
            inner = [min(lengths.get(axis, 0), INDEX_LIMIT) for axis in index[1:]]
            arrays[name] = values.reshape(len(values), *inner) if not len(values) else values
    return Dataset.of(tables, arrays, name=str(file), foreign=foreign)


def _write_object(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    (row,) = rows_of(table, dataset)
    for key, value in row.items():
        put(root, f"{table.place}.{key}" if table.place else key, value, merge=True)


def _write_columns(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    put(root, table.place, {}, merge=True)
    for column in table.columns:
        values = dataset.column(table.name, column.name)
        missing = schema.MISSING[column.kind]
        if column.optional and all(values == missing):
            continue
        if column.kind == "code":
            values = dataset.texts(table.name, column.name)
        put(root, f"{table.place}.{column.document_key}", values)


def _write_records(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    put(root, table.place, rows_of(table, dataset))


def _write_map(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    names, values = (dataset.column(table.name, column.name).tolist() for column in table.columns)
    put(root, table.place, dict(zip(names, values, strict=True)))


def _write_list(root: Nested, table: schema.Table, dataset: Dataset) -> None:
    put(root, table.place, dataset.column(table.name, table.columns[0].name))


def _read_object(file: object, root: Mapping[str, object], table: schema.Table) -> Columns | None:
    places = {c.name: f"{table.place}.{c.document_key}".strip(".") for c in table.columns}
    values = {name: look_up(file, root, place) for name, place in places.items()}
    if all(value is None for value in values.values()):
        return None
    return {c.name: column_of(file, places[c.name], c, [values[c.name]]) for c in table.columns}


def _read_rows(file: object, root: Mapping[str, object], table: schema.Table) -> Columns | None:
    return columns_of(file, look_up(file, root, table.place), table)


def _read_map(file: object, root: Mapping[str, object], table: schema.Table) -> Columns | None:
    mapping = look_up(file, root, table.place)
    if mapping is None:
        return None
    if not isinstance(mapping, Mapping):
        raise DamagedFileError(file, f"found {shown(mapping)}", "an object", place=table.place)
    names, values = table.columns
    return {
        names.name: column_of(file, table.place, names, list(mapping)),
        values.name: column_of(file, table.place, values, list(mapping.values())),
    }


def _read_list(file: object, root: Mapping[str, object], table: schema.Table) -> Columns | None:
    values = look_up(file, root, table.place)
    if values is None:
        return None
    if not isinstance(values, list | np.ndarray):
        raise DamagedFileError(file, f"found {shown(values)}", "a list", place=table.place)
    column = table.columns[0]
    return {column.name: column_of(file, table.place, column, values)}


WRITE_LAYOUT: dict[schema.Layout, Callable[[Nested, schema.Table, Dataset], None]] = {
    "object": _write_object,
    "columns": _write_columns,
    "records": _write_records,
    "map": _write_map,
    "list": _write_list,
}
READ_LAYOUT: dict[
    schema.Layout, Callable[[object, Mapping[str, Any], schema.Table], Columns | None]
] = {
    "object": _read_object,
    "columns": _read_rows,
    "records": _read_rows,
    "map": _read_map,
    "list": _read_list,
}
