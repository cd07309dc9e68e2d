"""`python -m benchmarks.poplibs_accuracy` measures any table on any machine, or says why not."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.poplibs_accuracy import main, measure
from benchmarks.poplibs_table import COLUMNS, Benchmark, Figures, TableError, read_table

GEMM = {"m": "8", "k": "16", "n": "32"}
REDUCE = {"shape": "4,16,8", "dims": "1", "type": "half", "operation": "ADD"}
Row = tuple[str, str, str, object, object, object]
ROWS: list[Row] = [
    ("product", "gemm", json.dumps(GEMM), 1000, 2000, 400),
    ("sums", "reduction", json.dumps(REDUCE), 100, 200, 40),
]


def table_of(folder: Path, rows: list[Row], columns: tuple[str, ...] = COLUMNS) -> str:
    """Write a table; return its path."""
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return str(path)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    line = [sys.executable, "-m", "benchmarks.poplibs_accuracy", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_errors_of_all_rows_are_printed_as_json(tmp_path: Path) -> None:
    table = table_of(tmp_path, ROWS)
    done = command("--target", "tiny", "--table", table, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert [(row["name"], row["kind"]) for row in rows] == [row[:2] for row in ROWS]
    ours = measure(Benchmark("product", "gemm", GEMM, Figures(1, 1, 1)), "tiny")
    assert {name: rows[0][name] for name in list(rows[0])[2:]} == pytest.approx(
        {
            "cycles_error": ours.cycles / 1000 - 1,
            "memory_error": ours.total_memory_bytes / 2000 - 1,
            "tile_error": ours.max_tile_bytes_including_gaps / 400 - 1,
        }
    )


def test_another_machine_gives_other_figures() -> None:
    row = Benchmark("sums", "reduction", REDUCE, Figures(1, 1, 1))
    assert measure(row, "tiny") != measure(row, "mk1")


def test_row_that_cannot_be_measured_is_named_and_the_others_are_printed(tmp_path: Path) -> None:
    broken: Row = ("broken", "gemm", json.dumps(GEMM | {"alpha": "2"}), 1, 1, 1)
    done = command("--target", "tiny", "--table", table_of(tmp_path, [broken, ROWS[1]]), "--json")
    assert done.returncode == 1
    assert [row["name"] for row in json.loads(done.stdout)] == ["sums"]
    assert done.stderr.startswith("broken: ") and done.stderr.count("\n") == 1
    assert "parameter 'alpha' is not known here; known are data-type, k, m, n" in done.stderr


def changed(position: int, value: str) -> Row:
    """Return the first row with another cell."""
    return (*ROWS[0][:position], value, *ROWS[0][position + 1 :])  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("rows", "options", "line"),
    [
        (ROWS, ["--names", "sums,missing"], "table.csv: no row 'missing'"),
        (ROWS, ["--write"], "--write is for poplibs_benchmarks_mk1.csv"),
        (ROWS, ["--jobs", "0"], "--jobs is 0; at least 1 is needed"),
        ([], [], "table.csv: no rows"),
        ([ROWS[0], ROWS[0]], [], "two rows are named 'product'"),
        ([changed(1, "sorting")], [], "kind 'sorting'; known are conv, fc"),
        ([changed(2, "{m: 8}")], [], "line 2: parameters are '{m: 8}'; a JSON object"),
        ([changed(2, '{"m": 8}')], [], "a JSON object of strings is needed"),
        ([changed(3, "0")], [], "line 2: cycles is '0'; a positive number is needed"),
        ([ROWS[1], changed(4, "")], [], "line 3: total_memory_bytes is ''"),
    ],
)
def test_bad_input_is_one_line(
    rows: list[Row], options: list[str], line: str, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--target", "tiny", "--table", table_of(tmp_path, rows), *options])
    assert line in str(ended.value) and "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"m": "8"}, "parameter 'k' is missing"),
        (GEMM | {"m": "x"}, "'x' is no whole number"),
        (GEMM | {"data-type": "int"}, "parameter 'data-type' is 'int'; half or float is needed"),
        (GEMM | {"alpha": "2"}, "'alpha' is not known here; known are data-type, k, m, n"),
    ],
)
def test_parameters_that_cannot_be_built_are_named(parameters: dict[str, str], reason: str) -> None:
    with pytest.raises(TableError, match=re.escape(reason)):
        measure(Benchmark("product", "gemm", parameters, Figures(1, 1, 1)), "tiny")


@pytest.mark.parametrize("content", [b"name,kind\na,gemm\n", b"", b"\xff\xfe\x00", None])
def test_file_that_is_no_table_is_one_line(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TableError, match=f"^{re.escape(str(path))}: [^\n]+$"):
        list(read_table(path))


def test_what_is_wrong_is_one_line_and_a_status(tmp_path: Path) -> None:
    done = command("--target", "mk7", "--table", table_of(tmp_path, ROWS), "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("poplibs_accuracy: IPUModel: no part 'mk7'; known are mk1, mk2")
    assert done.stderr.count("\n") == 1
