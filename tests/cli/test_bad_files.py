"""Every command says in one line what is wrong with a bad file, and ends with code 2."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import cbor2
import pytest
from click.testing import CliRunner

from cli.main import tilescope
from tests.fuzz.seeds import seeds

SEEDS = {seed.name: seed for seed in seeds()}


def whole(seed: str) -> bytes:
    (content,) = SEEDS[seed].files.values()
    return content


def in_database(statement: str) -> Callable[[Path], object]:
    def make(path: Path) -> None:
        path.write_bytes(whole("pop"))
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.executescript(statement)

    return make


BAD: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.touch(),
    "foreign": lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n"),
    "directory": lambda path: path.mkdir(),
    "pipe": os.mkfifo,
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "cut database": lambda path: path.write_bytes(whole("pop")[:9000]),
    "cut json": lambda path: path.write_bytes(whole("json")[:9000]),
    "cut cbor": lambda path: path.write_bytes(whole("cbor")[:3000]),
    "deep json": lambda path: path.write_bytes(b'{"target":' + b"[" * 100_000),
    "deep cbor": lambda path: path.write_bytes(b"\xa1\x66target" + b"\x81" * 100_000),
    "long cbor": lambda path: path.write_bytes(b"\xa1\x66target\x9b\x0f" + b"\xff" * 7),
    "no profile": lambda path: path.write_bytes(b'{"a": 1}'),
    "newer": lambda path: path.write_bytes(cbor2.dumps({"formatVersion": 99, "target": {}})),
    "another database": in_database("PRAGMA application_id = 1"),
    "newer database": in_database("PRAGMA user_version = 99"),
    "view": in_database("DROP TABLE target; CREATE VIEW target AS SELECT 1"),
    "write-ahead log": in_database("PRAGMA journal_mode = WAL"),
    "wrong value": in_database("UPDATE target SET num_tiles = 'many'"),
    "negative value": in_database("UPDATE target SET num_tiles = -5"),
    "no table": in_database("DELETE FROM target"),
}  # fmt: skip
COMMANDS = ("summary", "info", "show memory_overview", "check", "convert", "serve")


def run(path: Path, command: str) -> tuple[int, str, str]:
    arguments = [*command.split(), str(path)]
    if command == "convert":
        arguments.append(str(path.with_name("converted.json")))
    done = CliRunner().invoke(tilescope, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("command", COMMANDS[:-1])
def test_a_bad_file_is_one_line_and_code_2(tmp_path: Path, kind: str, command: str) -> None:
    path = tmp_path / "bad.pop"
    BAD[kind](path)
    code, out, err = run(path, command)
    assert (code, err.count("\n")) == (2, 1), (out, err)
    assert err.startswith("tilescope: ")
    assert str(path) in err
    assert out == ""
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.pop"]


def test_a_flipped_bit_inside_an_array_is_found_by_whoever_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "bad.pop"
    path.write_bytes(whole("pop"))
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        (data,) = database.execute(
            "SELECT data FROM arrays WHERE name = 'memory_by_tile.total'"
        ).fetchone()
    content = path.read_bytes()
    at = content.index(data)
    path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
    for command in ("summary", "show fullest_tiles", "convert", "check"):
        code, _, err = run(path, command)
        assert code == 2
        assert f"{path}: arrays, memory_by_tile.total, rows from 0: checksum" in err
    assert run(path, "show runs")[0] == 0


def test_a_bad_host_trace_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.pvti"
    path.write_bytes(whole("trace")[:9000])
    for command in ("show threads", "show label_statistics"):
        code, out, err = run(path, command)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"{path}: cut short: 9000 bytes" in err


@pytest.mark.parametrize("kind", ["empty", "foreign", "cut database", "wrong value"])
def test_serve_refuses_a_bad_file_or_lives_with_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bad.pop"
    BAD[kind](path)
    with subprocess.Popen(
        [sys.executable, "-m", "cli.main", "serve", "--port", "0", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as served:  # fmt: skip
        assert served.stdout is not None
        assert served.stderr is not None
        line = served.stdout.readline()
        served.terminate()
        errors = served.stderr.read()
    assert "Traceback" not in errors
    assert line.startswith("dashboard: ") or errors.count("\n") == 1


@pytest.mark.parametrize("whole_ones", [0, 2])
def test_serve_takes_a_folder_of_chrome_traces_where_any_opens(
    tmp_path: Path, whole_ones: int
) -> None:
    (tmp_path / "damaged.json").write_text('{"traceEvents": oops')
    for number in range(whole_ones):
        (tmp_path / f"{number}.json").write_text('{"traceEvents": []}')
    with subprocess.Popen(
        [sys.executable, "-m", "cli.main", "serve", "--port", "0", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as served:  # fmt: skip
        assert served.stdout is not None and served.stderr is not None
        line = served.stdout.readline()
        served.terminate()
        errors = served.stderr.read()
    assert line.startswith("dashboard: ") == bool(whole_ones)
    assert errors.count("\n") == (0 if whole_ones else 1)
