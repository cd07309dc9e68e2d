"""Read tables of published figures, in the form of poplibs_benchmarks_mk1.csv.

One row is one program: its name, its kind, its parameters as JSON, and its figures. What cannot be
read raises a TableError that names the file and the row.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

TABLE = Path(__file__).parent / "poplibs_benchmarks_mk1.csv"
DEFAULT_TARGET = "mk1"


class TableError(Exception):
    """A table or a row that cannot be read, or whose program cannot be built."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a program: cycles of all runs, bytes on all tiles, bytes with gaps on one."""

    cycles: int
    total_memory_bytes: int
    max_tile_bytes_including_gaps: int


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A row of the table."""

    name: str
    kind: str
    parameters: Mapping[str, str]
    published: Figures


COLUMNS = ("name", "kind", "parameters", *Figures.__slots__)


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a program, and which of them were read."""

    values: Mapping[str, str]
    read: set[str] = field(default_factory=set)

    def __getitem__(self, name: str) -> str:
        """Return a parameter; raises TableError when the row has none of this name."""
        if name not in self.values:
            raise TableError(f"parameter {name!r} is missing")
        return self.get(name, "")

    def get(self, name: str, usual: str) -> str:
        """Return a parameter, or what is usual."""
        self.read.add(name)
        return self.values.get(name, usual)

    def check_all_read(self) -> None:
        """Raise TableError when a parameter means nothing to the program."""
        if ignored := sorted(set(self.values) - self.read):
            known = ", ".join(sorted(self.read))
            raise TableError(f"parameter {ignored[0]!r} is not known here; known are {known}")


def read_table(path: Path = TABLE) -> Iterator[Benchmark]:
    """Read the published rows; raises TableError."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                needed = ", ".join(COLUMNS)
                raise TableError(f"{path}: no column {missing[0]!r}; needed are {needed}")
            for row in rows:
                yield _row_of(row, f"{path}, line {rows.line_num}")
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _row_of(row: Mapping[str, str | None], place: str) -> Benchmark:
    """Read a row; raises TableError."""
    cells = {name: row[name] or "" for name in COLUMNS}
    for name in ("name", "kind"):
        if not cells[name]:
            raise TableError(f"{place}: {name} is empty")
    for name in Figures.__slots__:
        if not cells[name].isdecimal() or not int(cells[name]):
            raise TableError(f"{place}: {name} is {cells[name]!r}; a positive number is needed")
    try:
        parameters = json.loads(cells["parameters"])
    except ValueError:
        parameters = None
    if not isinstance(parameters, dict) or not all(isinstance(v, str) for v in parameters.values()):
        found = cells["parameters"]
        raise TableError(f"{place}: parameters are {found!r}; a JSON object of strings is needed")
    figures = Figures(*(int(cells[name]) for name in Figures.__slots__))
    return Benchmark(cells["name"], cells["kind"], parameters, figures)


def chosen_rows(path: Path, names: str) -> list[Benchmark]:
    """Read the rows with these names, with commas between, or all; raises TableError."""
    rows = list(read_table(path))
    if not rows:
        raise TableError(f"{path}: no rows")
    by_name = {row.name: row for row in rows}
    if len(by_name) < len(rows):
        twice = next(name for name in by_name if sum(row.name == name for row in rows) > 1)
        raise TableError(f"{path}: two rows are named {twice!r}; names must differ")
    wanted = names.split(",") if names else list(by_name)
    for name in wanted:
        if name not in by_name:
            raise TableError(f"{path}: no row {name!r}")
    return [by_name[name] for name in dict.fromkeys(wanted)]
