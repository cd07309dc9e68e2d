"""Documents mean the same in every mixture of encodings, layouts, files and missing parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cbor2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pva import schema
from pva.data.dataset import Dataset
from pva.formats import registry
from pva.formats.documents import cbor_profile, document, json_profile, typed_arrays
from tests.builders import small_report
from tests.strategies import TOGETHER, datasets

FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
DOCUMENTS = ("graph", "execution", "debug")
SUFFIXES = (".json", ".cbor")


def as_it_comes(value: Any, numbers: np.random.Generator) -> Any:
    """Write each array in one of the ways that CBOR has: list, rows, either byte order, columns."""
    if isinstance(value, dict):
        return {key: as_it_comes(part, numbers) for key, part in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict | list | np.ndarray):
        return [as_it_comes(part, numbers) for part in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iuf" or not value.size:
        return value.tolist() if isinstance(value, np.ndarray) else value
    way = int(numbers.integers(5))
    if way == 0:
        return value.tolist()
    if way == 1 and value.ndim > 1:
        return [as_it_comes(row, numbers) for row in value]
    if way == 2:
        whole = value.astype(">f8" if value.dtype.kind == "f" else ">i8")
        tag = next(t for t, dtype in typed_arrays.DTYPES.items() if dtype == whole.dtype.str)
        flat = cbor2.CBORTag(tag, whole.tobytes())
        return cbor2.CBORTag(40, [list(value.shape), flat]) if value.ndim > 1 else flat
    if way == 3:
        flat = value.reshape(-1, order="F").tolist()
        return cbor2.CBORTag(1040, [list(value.shape), cbor2.CBORTag(41, flat)])
    return typed_arrays.encoded(value)


@FEW
@given(data=datasets(), seed=st.integers(0, 2**32 - 1))
def test_arrays_may_be_typed_or_plain_one_by_one(tmp_path: Path, data: Dataset, seed: int) -> None:
    nested = document.to_file(data, "report")
    mixed = as_it_comes(nested, np.random.default_rng(seed))
    (tmp_path / "report.cbor").write_bytes(cbor2.dumps(mixed))
    assert registry.read(tmp_path / "report.cbor") == data


@FEW
@given(data=datasets(), seed=st.integers(0, 2**32 - 1))
def test_rows_may_be_told_by_column_or_by_object(tmp_path: Path, data: Dataset, seed: int) -> None:
    """Tables of the layouts `columns` and `records` are told the other way round, at random."""
    nested = document.to_file(data, "report")
    turn = np.random.default_rng(seed)
    for table in schema.TABLES:
        part = nested.get(document.COMBINED[table.document])
        if part is not None and table.layout == "columns" and turn.random() < 0.5:
            _as_records(part, table)
    (tmp_path / "report.json").write_bytes(json_profile.encoded(nested))
    assert registry.read(tmp_path / "report.json") == data


def _as_records(part: dict[str, Any], table: schema.Table) -> None:
    *above, key = table.place.split(".")
    for name in above:
        part = part.get(name, {})
    columns = part.get(key) if isinstance(part, dict) else None
    if not isinstance(columns, dict) or set(columns) - {c.document_key for c in table.columns}:
        return  # other tables and arrays stand beside its columns
    lists = {name: np.asarray(values, dtype=object).tolist() for name, values in columns.items()}
    rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    if rows:
        part[key] = rows


@FEW
@given(data=datasets(), suffixes=st.tuples(*3 * [st.sampled_from(SUFFIXES)]))
def test_documents_of_a_directory_may_differ_in_encoding(
    tmp_path: Path, data: Dataset, suffixes: tuple[str, ...]
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    for name, suffix in zip(DOCUMENTS, suffixes, strict=True):
        if name != "debug" or data.has("debug_contexts"):
            registry.write(data, tmp_path / f"{name}{suffix}")
    assert registry.read(tmp_path) == data


@pytest.mark.parametrize("name", ["pop", "json", "cbor", "plain"])
@pytest.mark.parametrize("absent", sorted({*schema.TABLE, *schema.ARRAY} - {*TOGETHER}))
def test_any_part_may_be_missing(tmp_path: Path, name: str, absent: str) -> None:
    inside = [part for part, other in TOGETHER.items() if other == absent]
    data = small_report(**dict.fromkeys((absent, *inside)))
    registry.write(data, tmp_path / "report", name)
    assert registry.read(tmp_path / "report") == data


@pytest.mark.parametrize("first", ["pop", "json", "cbor", "plain"])
@FEW
@given(data=datasets())
def test_converting_there_and_back_changes_nothing(
    tmp_path: Path, first: str, data: Dataset
) -> None:
    registry.write(data, tmp_path / "first", first)
    for second in ("json", "pop", "plain", "cbor"):
        registry.write(registry.read(tmp_path / "first"), tmp_path / "second", second)
        assert registry.read(tmp_path / "second") == data


def test_short_arrays_are_lists_and_long_ones_are_typed() -> None:
    nested = {"short": np.arange(16), "long": np.arange(17), "rows": np.ones((3, 6), dtype=int)}
    found: dict[int, int] = {}
    root = cbor2.loads(
        cbor_profile.encoded(nested),
        tag_hook=lambda tag, _: found.setdefault(tag.tag, len(found)) * 0,
    )
    assert root["short"] == list(range(16))
    assert sorted(found) == [40, 64]
