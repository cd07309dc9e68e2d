"""A hostile file of any format costs four times its size in memory, or 256 MB, and 10 s.

Each file is read whole in a process of its own, whose address space is limited so.
"""

import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import cbor2
import numpy as np
import pytest

from pva import openReport, schema
from pva.errors import DamagedFileError
from pva.formats import parquet, registry
from tests.builders import small_report

MB = 1 << 20
SIZE = 12 * MB
READ = """
import resource, sys
import cbor2, msgspec, orjson, pyarrow.parquet, pva
from pva.errors import PvaError
from pva.formats import registry
open_report = pva.openReport
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, 2 * (pages * resource.getpagesize() + int(sys.argv[2]),))
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
told = set()
def attempt(action, *arguments):
    try:
        return action(*arguments)
    except PvaError as error:
        told.add(str(error))
report = attempt(open_report, sys.argv[1])
if report is not None:
    for table in report.dataset.tables:
        for column in attempt(report.dataset.table, table) or ():
            pass
    for array in report.dataset.arrays:
        attempt(report.dataset.array, array)
print("; ".join(sorted(told)) or "opened")
"""


def told(path: Path) -> str:
    """Read a file, and give what was wrong with it."""
    files = list(path.iterdir()) if path.is_dir() else [path]
    limit = max(256 * MB, 4 * sum(file.stat().st_size for file in files))
    command = [sys.executable, "-c", READ, str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert "too large for the memory" not in done.stdout  # what Python itself says
    return done.stdout


def of_json(before: str, item: str, after: str) -> bytes:
    return (before + item * (SIZE // len(item)) + after).encode()


def of_cbor(before: object, item: bytes, *, endless: bool = False) -> bytes:
    """Put very many items in the place of the last list of a document."""
    count = SIZE // len(item)
    head, end = (b"\x9f", b"\xff") if endless else (b"\x9b" + count.to_bytes(8), b"")
    begin = cbor2.dumps(before)
    assert begin.endswith(b"\x80")
    return begin[:-1] + head + item * count + end


PROGRAMS = '{"target":{},"programs":['
TOTAL = '{"target":{},"memory":{"byTile":{"total":['
IN_PROGRAMS = {"target": {}, "programs": []}
IN_TOTAL = {"target": {}, "memory": {"byTile": {"total": []}}}
DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "empty lists.json": lambda: of_json(PROGRAMS, "[],", "[]]}"),
    "empty objects.json": lambda: of_json(PROGRAMS, "{},", "{}]}"),
    "lists in objects.json": lambda: of_json(PROGRAMS, '{"children":[[],[]]},', "{}]}"),
    "keys.json": lambda: of_json('{"target":{"a":0', ',"b":0', "}}"),
    "texts.json": lambda: of_json('{"target":{},"vertexTypes":{"names":[', '"",', '""]}}'),
    "fractions.json": lambda: of_json(TOTAL, "0,.5,".replace(",.", ",0."), "null]}}}"),
    "zeros.json": lambda: of_json(TOTAL, "0,", "0]}}}"),
    "short rows.json": lambda: of_json(TOTAL, "[1],", "[1]]}}}"),
    "contexts.json": lambda: of_json('{"contexts":[', '{"id":1},', '{"id":1}]}'),
    "empty lists.cbor": lambda: of_cbor(IN_PROGRAMS, b"\x80"),
    "empty maps.cbor": lambda: of_cbor(IN_PROGRAMS, b"\xa0"),
    "endless maps.cbor": lambda: of_cbor(IN_PROGRAMS, b"\xa0", endless=True),
    "lists in maps.cbor": lambda: of_cbor(IN_PROGRAMS, cbor2.dumps({"children": [[], []]})),
    "texts.cbor": lambda: of_cbor(IN_PROGRAMS, b"\x61a"),
    "nulls.cbor": lambda: of_cbor(IN_TOTAL, b"\xf6"),
    "endless zeros.cbor": lambda: of_cbor(IN_TOTAL, b"\x00", endless=True),
    "typed arrays.cbor": lambda: of_cbor(IN_TOTAL, b"\xd8\x40\x40"),
    "debug.cbor": lambda: of_cbor({"contexts": []}, cbor2.dumps({"id": 1})),
    "one in another.cbor": lambda: b"\xa1\x66target" + b"\x81" * 20 + of_cbor([], b"\x80"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_very_many_values_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(DOCUMENTS[name]())
    assert f"{name}: " in told(tmp_path / name)


def test_a_long_text_of_wide_characters_is_read_within_the_bound(tmp_path: Path) -> None:
    text = "a" * SIZE + "\U0001f600"
    (tmp_path / "text.json").write_text(json.dumps({"target": {}, "programs": text}))
    assert "a list of values" in told(tmp_path / "text.json")


def packed(path: Path, statement: str, names: list[str], shape: list[int]) -> None:
    """Put zeros that pack well into columns and arrays of a small profile.pop."""
    registry.write(small_report(), path)
    data = zlib.compress(bytes(int(np.prod(shape))), 9)
    with closing(connect(path)) as database, database:
        database.execute(statement)
        for name in names:
            database.execute("DELETE FROM arrays WHERE name = ?", (name,))
            row = (name, 0, shape[0], "u1", json.dumps(shape), "zlib", zlib.crc32(data), data)
            database.execute("INSERT INTO arrays VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def test_tables_that_pack_well_are_refused(tmp_path: Path) -> None:
    wide = [table for table in schema.TABLES if table.wide]
    names = [f"{table.name}.{column.name}" for table in wide for column in table.columns]
    packed(tmp_path / "wide.pop", "SELECT 1", names, [16 * MB])
    assert "table steps: " in told(tmp_path / "wide.pop")
    assert (tmp_path / "wide.pop").stat().st_size < 8 * MB


def test_arrays_that_pack_well_are_not_held_together(tmp_path: Path) -> None:
    tiles = 2 * MB
    names = [a.name for a in schema.ARRAYS if a.index == ("compute_set", "tile")]
    machine = f"UPDATE target SET num_tiles = {tiles}, tiles_per_ipu = {tiles}, num_ipus = 1"
    packed(tmp_path / "zeros.pop", machine, names, [3, tiles])
    assert len(names) * 3 * tiles * 8 > 256 * MB
    assert "compute_set_cycles_by_tile" not in told(tmp_path / "zeros.pop")


def test_tables_in_parquet_that_pack_well_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet.write(small_report(), tmp_path / "tables")
    file = tmp_path / "tables" / "steps.parquet"
    rows = pq.read_table(file).slice(0, 1)
    repeated = rows.take(pa.array(np.zeros(4 * MB, dtype=np.int32)))
    pq.write_table(repeated, file, compression="zstd")
    assert "rows in" in told(tmp_path / "tables")


TWICE = {
    "json": b'{"graphProfile": {"target": {"a": 1, "b": 2, "a": 3}}}',
    "cbor": b"\xa1\x6cgraphProfile\xa1\x66target\xa2\x61a\x01\x61a\x03",
}
FAR_DOWN = {
    "json": b'{"programs": [' + b'{"name": "x", "type": "Sequence"}, ' * 40_000
    + b'{"name": "x", "name": "y"}], "target": {}}',
    "cbor": b"\xa2\x68programs\x9a\x00\x00\x9c\x41" + b"\xa1\x64name\x61x" * 40_000
    + b"\xa2\x64name\x61x\x64name\x61y" + b"\x66target\xa0",
}  # fmt: skip


@pytest.mark.parametrize("suffix", TWICE)
def test_a_key_twice_is_one_clear_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"graph.{suffix}"
    path.write_bytes(TWICE[suffix])
    with pytest.raises(DamagedFileError) as caught:
        openReport(path)
    assert str(caught.value) == f"{path}: graphProfile.target: the key 'a' twice; once"


@pytest.mark.parametrize("suffix", FAR_DOWN)
def test_a_key_twice_in_one_of_many_rows_is_found(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"graph.{suffix}").write_bytes(FAR_DOWN[suffix])
    with pytest.raises(DamagedFileError, match="programs: .*name"):
        openReport(tmp_path)


def test_keys_with_quotes_and_colons_are_no_keys_twice(tmp_path: Path) -> None:
    lists = r'{"names": ["a\": ", "\\", "\"\":"], "sizes": [1, 2, 3]}'
    text = f'{{"target" : {{}}, "vertexTypes": {lists}}}'
    (tmp_path / "graph.json").write_text(text)
    names = openReport(tmp_path).dataset.column("vertex_types", "name")
    assert names.tolist() == ['a": ', "\\", '"":']
