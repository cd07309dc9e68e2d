"""What an exploration leaves: DIR/points/KEY.json a point, points.parquet of all, reports/KEY/."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pva.errors import MissingPackageError, PvaError
from pva.lazy import pandas as pd
from pva.schema.exploration import ABOUT, POINTS, REPORTS, TABLE, PointFigures, PointRow
from simulator.explore.levers import Point, Space

LOCK = "lock"
WRITER = "tilescope explore"  # by which a directory is known to be ours
TRUTHS, TEXTS = {"fits"}, {"step_name", "live", "error"}  # columns that are no numbers


class DiskFullError(PvaError):
    """There is no room for what an exploration writes; what it wrote is kept."""


class Record:
    """The directory of an exploration, which one process at a time writes."""

    def __init__(self, path: Path, space: Space) -> None:
        self.path, self.space = path, space
        self.rows: dict[str, PointRow] = {}

    def read(self) -> None:
        """Read the points that are there; one that a kill cut off is run again."""
        for file in sorted((self.path / POINTS).glob("*.json")):
            with suppress(ValueError, KeyError, TypeError):
                row = json.loads(file.read_text("utf-8"))
                self.rows[row["key"]] = row
        program = _about_of(self.path).get("program", self.space.program)
        if program != self.space.program:
            raise PvaError(self.path, f"an exploration of {program}",
                           f"another directory for {self.space.program}")  # fmt: skip
        about = {
            "writer": WRITER,
            "program": self.space.program,
            "shared": list(self.space.shared),
            "levers": {name: list(values) for name, values in self.space.levers.items()},
            "space": self.space.size,
        }
        self._write(self.path / ABOUT, json.dumps(about, indent=1).encode())
        (self.path / POINTS).mkdir(exist_ok=True)

    def add(self, row: PointRow) -> None:
        """Keep the row of a point; raises DiskFullError."""
        self.rows[row["key"]] = row
        self._write(self.path / POINTS / f"{row['key']}.json", json.dumps(row).encode())

    def tell_levers(self, points: Iterable[Point]) -> None:
        """Note levers by which a point that is there is now asked for, too, as by a default."""
        for point in points:
            row = self.rows[point.key]
            if not point.levers.items() <= row["levers"].items():
                self.add({**row, "levers": {**row["levers"], **point.levers}})

    def write_table(self, columns: Sequence[str]) -> None:
        """Write points.parquet of all rows: key, levers, figures, command and report."""
        levers = dict.fromkeys(name for row in self.rows.values() for name in row["levers"])
        names = ["key", *levers, *columns, "command", "report"]
        rows = [{**row, **row["levers"]} for row in self.rows.values()]
        frame = pd.DataFrame({name: [row.get(name) for row in rows] for name in names})
        for name in levers:  # numbers where all values are
            with suppress(ValueError, TypeError):
                frame[name] = pd.to_numeric(frame[name])
        for name in columns:  # of a kind each, also where no point has a figure
            if name in TRUTHS:
                frame[name] = frame[name].astype("boolean")
            elif name in TEXTS:
                frame[name] = [str(row.get(name) or "") for row in rows]
            else:
                frame[name] = pd.to_numeric(frame[name])
        temporary = self.path / f"{TABLE}.new"
        with _room(temporary):
            frame.to_parquet(temporary, index=False)
            os.replace(temporary, self.path / TABLE)

    def keep_reports(self, keys: Sequence[str]) -> None:
        """Delete the reports of all points but some; they are made again on demand."""
        for folder in (self.path / REPORTS).glob("*"):
            key = folder.name.removesuffix(".work")
            if key in self.rows and key not in keys:
                shutil.rmtree(folder, ignore_errors=True)

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f"{path.name}.new")
        with _room(temporary):
            temporary.write_bytes(data)
            os.replace(temporary, path)


@contextmanager
def _room(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(path.parent) from error
        raise


def disk_full(path: Path) -> DiskFullError:
    """Return the error of a full disk."""
    hint = "make room and run it again; the points that are done are kept"
    return DiskFullError(path, "the disk is full", hint)


def check_parquet(path: Path) -> None:
    """Raise MissingPackageError where points.parquet could not be written."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        hint = "pip install 'tilescope[parquet]'"
        raise MissingPackageError(path, TABLE, hint) from None


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Lock a directory; raises PvaError that says who has it, or that it is none of ours."""
    path.mkdir(parents=True, exist_ok=True)
    _check_ours(path)
    with (path / LOCK).open("a+", encoding="utf-8") as stream:
        _lock(stream, path)
        stream.truncate(0)
        stream.write(f"process {os.getpid()} of {socket.gethostname()}")
        stream.flush()
        yield


def _check_ours(path: Path) -> None:
    """Raise PvaError where a directory holds something that no exploration wrote."""
    if _about_of(path).get("writer") == WRITER or _is_only_locked(path):
        return
    beside = sorted(entry.name for entry in path.iterdir())
    if beside:
        raise PvaError(path, f"holds {beside[0]}, which no exploration wrote",
                       "give a new directory as --out")  # fmt: skip


def _is_only_locked(path: Path) -> bool:
    """Return whether an exploration was killed as it began: a lock of ours, and no more."""
    if not {entry.name for entry in path.iterdir()} <= {LOCK, f"{ABOUT}.new"}:
        return False
    with suppress(OSError, ValueError):
        text = (path / LOCK).read_text("utf-8")
        return not text or re.fullmatch(r"process \d+ of \S+", text) is not None
    return False


def _about_of(path: Path) -> dict[str, object]:
    """Read what a directory says of its exploration; nothing where it says nothing."""
    try:
        about = json.loads((path / ABOUT).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def _lock(stream: IO[str], path: Path) -> None:
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.seek(0)
        who = stream.read().strip() or "another process"
        raise PvaError(path, f"{who} explores into it",
                       "wait for it, or give another --out") from None  # fmt: skip


def row_of(point: Point, figures: PointFigures, report: str) -> PointRow:
    """Return the row of a point."""
    command = " ".join(("tilescope", "simulate", *map(_quoted, point.arguments)))
    return {"key": point.key, "levers": dict(point.levers), **figures,
            "arguments": list(point.arguments), "command": command, "report": report}  # fmt: skip


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
