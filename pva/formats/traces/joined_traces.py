"""Several traces as one: their tables after each other, each row numbered anew.

The tables are those of `pvti.schema`, which tells what refers to what; `series` and `heatmaps` have
one more column, the `process`, as a file of one process does not tell it, and `processes` has the
`file` of each, counted from 0; `flows` are those of `chrome_flows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pva.errors import DamagedFileError
from pva.formats.builders import Texts
from pva.formats.memory_limit import Budget
from pva.formats.traces import chrome_flows, pvti_trace

Columns = dict[str, Any]
# Begin, end, label and kind of ended events, and of each chunk how many it has.
Events = tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.int32],
    npt.NDArray[np.uint8],
    npt.NDArray[np.int64],
]
OF_A_PROCESS = ("series", "heatmaps")
REFERENCES = pvti_trace.REFERENCES | {"flows": chrome_flows.REFERENCES}


class TraceFile(Protocol):
    """A trace of any format."""

    path: Path
    budget: Budget

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what the file has and the tables have not, a line each."""
        ...

    def tables(self) -> dict[str, Columns]:
        """Return all tables at one moment; of `event_chunks` all but the data."""
        ...

    def events(self, chunks: Columns) -> Events:
        """Return begin, end, label and kind of the events of these rows, and each row's number."""
        ...

    def check(self, amount: int, place: str) -> None:
        """Raise DamagedFileError when so many bytes more are too many for the file."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class JoinedFile:
    """Several files, each of processes of its own."""

    def __init__(self, files: Sequence[TraceFile], *, by_wall_clock: bool) -> None:
        self._files = files
        self._by_wall_clock = by_wall_clock
        self._numbers: list[dict[str, npt.NDArray[np.int64]]] = []  # of each file, by table
        self._first: dict[str, list[int]] = {}  # number of each file's first row, by table
        self._untimed: list[Path] = []
        added = len(files) - 1
        self.path = files[0].path.with_name(f"{files[0].path.name} and {added} more")
        size = sum(file.budget.size for file in files)
        self.budget = Budget(self.path, size, held=0, otherwise=files[0].budget.otherwise)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what the files have and the tables have not, each line behind its file."""
        untimed = [
            f"{path.name}: tells no wall clock, and begins with the others"
            for path in self._untimed
        ]
        lines = [f"{file.path.name}: {line}" for file in self._files for line in file.problems]
        return (*untimed, *lines)

    def tables(self) -> dict[str, Columns]:
        """Read the tables of all files."""
        read = [file.tables() for file in self._files]
        self._numbers = [
            {name: rows["id"] for name, rows in tables.items() if "id" in rows} for tables in read
        ]
        self._first = {
            name: np.cumsum([1, *(len(numbers[name]) for numbers in self._numbers)]).tolist()
            for name in self._numbers[0]
        }
        anew = [self._numbered(place, tables) for place, tables in enumerate(read)]
        joined = {
            table: {
                column: _after_each_other([rows[column] for rows in parts]) for column in parts[0]
            }
            for table, parts in _by_table(anew).items()
        }
        self._align(joined["processes"])
        self.budget.left = sum(file.budget.left for file in self._files)
        return joined

    def check(self, amount: int, place: str) -> None:
        """Raise DamagedFileError when so many bytes more are too many for the files."""
        self.budget.check_whole(amount, place)

    def events(self, chunks: Columns) -> Events:
        """Read the events of these rows, those of each file after each other."""
        files = np.array(self._first["event_chunks"])
        places = np.asarray(np.searchsorted(files, chunks["id"], "right")) - 1
        cuts = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), len(places)]
        parts = [
            self._events(int(places[first]), {n: c[first:stop] for n, c in chunks.items()})
            for first, stop in zip(cuts, cuts[1:], strict=False)
            if stop > first
        ] or [self._files[0].events(chunks)]
        if len(parts) == 1:
            return parts[0]
        begin, end, label, kind, records = map(np.concatenate, zip(*parts, strict=True))
        return begin, end, label, kind, records

    def _events(self, place: int, chunks: Columns) -> Events:
        renumbered = chunks | {
            "id": self._old(place, "event_chunks", chunks["id"]),
            "thread": self._old(place, "threads", chunks["thread"]),
        }
        begin, end, label, kind, records = self._files[place].events(renumbered)
        return begin, end, self._new(place, "labels", label).astype(np.int32), kind, records

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files:
            file.close()

    def _numbered(self, place: int, tables: dict[str, Columns]) -> dict[str, Columns]:
        """Number the rows of a file's tables anew."""
        columns_by_table = {}
        for name, rows in tables.items():
            new = dict(rows)
            if "id" in rows:
                new["id"] = self._first[name][place] + np.arange(len(rows["id"]))
            for column, table in REFERENCES[name].items():
                new[column] = self._new(place, table, rows[column])
            if name == "processes":
                new["file"] = np.full(len(rows["id"]), place)
            if name in OF_A_PROCESS and "process" not in rows:
                new["process"] = np.full(len(rows["id"]), self._first["processes"][place])
            elif name in OF_A_PROCESS:
                new["process"] = self._new(place, "processes", rows["process"])
            columns_by_table[name] = new
        return columns_by_table

    def _new(
        self, place: int, table: str, numbers: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.int64]:
        """Return the new numbers of rows of a file; raises DamagedFileError for one not there."""
        numbered = self._numbers[place][table]
        order = np.argsort(numbered, kind="stable")
        if not len(numbers):
            return np.zeros(0, np.int64)
        at = np.minimum(np.searchsorted(numbered, numbers, sorter=order), max(len(numbered) - 1, 0))
        wrong = numbers if not len(numbered) else numbers[numbered[order[at]] != numbers]
        if len(wrong):
            problem, path = f"no row {int(wrong[0])}", self._files[place].path
            raise DamagedFileError(path, problem, "each number used", place=f"table {table}")
        new: npt.NDArray[np.int64] = order[at] + self._first[table][place]
        return new

    def _old(
        self, place: int, table: str, numbers: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.int64]:
        old: npt.NDArray[np.int64] = self._numbers[place][table][
            numbers - self._first[table][place]
        ]
        return old

    def _align(self, processes: Columns) -> None:
        """Set for every process the wall clock that it is to lie by; 0 stands for none."""
        wall = processes["wall_ns"].copy()
        self._untimed = []
        recorded = wall[wall > 0]
        if not self._by_wall_clock:
            wall[:] = recorded.min() if len(recorded) else 0
        elif len(recorded) and len(recorded) < len(wall):
            owners = np.searchsorted(self._first["processes"], processes["id"], "right") - 1
            untimed = np.unique(np.asarray(owners)[wall == 0]).tolist()
            self._untimed = [self._files[place].path for place in untimed]
            wall[wall == 0] = recorded.min()
        processes["wall_ns"] = wall


def _by_table(files: Sequence[dict[str, Columns]]) -> dict[str, list[Columns]]:
    """Collect the rows of each table; only Chrome traces with flows have those."""
    parts: dict[str, list[Columns]] = {}
    for tables in files:
        for name, rows in tables.items():
            parts.setdefault(name, []).append(rows)
    return parts


def _after_each_other(parts: Sequence[Any]) -> object:
    if all(isinstance(part, Texts) for part in parts):
        return Texts.joined(parts)
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    texts = np.empty(sum(map(len, parts)), dtype=object)
    texts[:] = [text for part in parts for text in part]
    return texts
