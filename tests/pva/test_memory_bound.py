"""A hostile file of any format costs four times its size in memory, or 256 MB, and 10 s.

Each file is read whole in a process of its own, whose address space is limited so.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pva import openReport
from pva.errors import DamagedFileError
from tests.fuzz.bombs import KINDS

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
    # Arrow's own allocator gives back what is free after a while: how much it holds is chance.
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert not done.returncode, done.stderr
    assert "too large for the memory" not in done.stdout  # what Python itself says
    return done.stdout


DOCUMENTS = (
    *("empty lists", "empty objects", "lists in objects", "keys", "texts", "fractions", "zeros"),
    *("short rows", "contexts", "one long row"),
)
IN_CBOR = (
    *("empty lists", "empty maps", "endless maps", "lists in maps", "texts", "nulls"),
    *("endless zeros", "typed arrays", "shaped arrays", "large numbers", "contexts", "far inside"),
)
REFUSED = [*(f"{name}.json" for name in DOCUMENTS), *(f"{name}.cbor" for name in IN_CBOR)]


@pytest.mark.parametrize("name", REFUSED)
def test_a_document_of_very_many_values_is_refused(tmp_path: Path, name: str) -> None:
    KINDS[name](tmp_path / name, SIZE)
    assert f"{name}: " in told(tmp_path / name)


def test_a_long_text_of_wide_characters_is_read_within_the_bound(tmp_path: Path) -> None:
    text = "a" * SIZE + "\U0001f600"
    (tmp_path / "text.json").write_text(json.dumps({"target": {}, "programs": text}))
    assert "a list of values" in told(tmp_path / "text.json")


def test_tables_that_pack_well_are_refused(tmp_path: Path) -> None:
    KINDS["packed columns.pop"](tmp_path / "wide.pop", SIZE)
    assert "table steps: " in told(tmp_path / "wide.pop")
    assert (tmp_path / "wide.pop").stat().st_size < 8 * MB


def test_arrays_that_pack_well_are_not_held_together(tmp_path: Path) -> None:
    KINDS["packed arrays.pop"](tmp_path / "zeros.pop", SIZE)
    assert "opened" in told(tmp_path / "zeros.pop")


def test_tables_in_parquet_that_pack_well_are_refused(tmp_path: Path) -> None:
    KINDS["packed tables"](tmp_path / "tables", SIZE)
    assert "table steps: " in told(tmp_path / "tables")


def test_a_text_that_parquet_tells_very_often_is_held_once(tmp_path: Path) -> None:
    KINDS["packed texts"](tmp_path / "texts", SIZE)
    assert "too large" not in told(tmp_path / "texts")


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
