"""What a fleet keeps of reports: key figures and chosen tables, a part of Parquet for some of each.

    fleet.json                     version of the format, and the tables that are kept
    reports/part-<identity>.parquet    a row for each report: hash, path, tags, key figures
    <table>/part-<identity>.parquet    the rows of the same reports, with their hashes

The part of `reports` is written last: what a killed writer left behind has none and is not read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pva.analysis.whole_report.key_figures import FIGURES, Figure
from pva.errors import DamagedFileError, MissingPackageError, NotFoundError, PvaError
from pva.formats import registry
from pva.formats.files import replaced, replacing
from pva.frames import frame_of
from pva.lazy import pandas as pd
from pva.report import Report, openReport

NAME, VERSION = "fleet.json", 1
REPORTS, REPORT = "reports", "report"
BLOCK = 1 << 20  # bytes that are hashed at once
TAG = "tag"
INSTALL = "pip install 'tilescope[parquet,sql]'"
PARTS = ("profile", "graph", "execution", "debug", "framework", "application")


@dataclass(frozen=True, slots=True)
class Kept:
    """What was read of some reports: a row of figures for each, their tables, and what failed."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, list[Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def content_hash(path: Path) -> str:
    """Return the hash of the files of a report, whatever they are called; raises PvaError."""
    files = registry.directory_files(path) if path.is_dir() else {"profile": path}
    hashed = sorted((part, file) for part, file in files.items() if part in PARTS)
    if not hashed:
        raise NotFoundError(path, "no report", "give a report or a directory of one")
    digest = hashlib.sha256()
    for part, file in hashed:
        try:
            with file.open("rb") as stream:
                digest.update(f"{part} {file.stat().st_size} ".encode())
                while block := stream.read(BLOCK):
                    digest.update(block)
        except FileNotFoundError:
            raise NotFoundError(file, "no such file", "give the path of a report") from None
        except OSError as error:
            raise PvaError(file, error.strerror or str(error), "a file that can be read") from None
    return digest.hexdigest()[:32]


def key_figures(report: Report) -> dict[str, float]:
    """Return those of FIGURES that a report holds; each analysis is asked once."""
    answers: dict[Any, Any] = {}

    def asked(analysis: Any) -> Any:
        if analysis not in answers:
            try:
                answers[analysis] = analysis(report)
            except PvaError as error:
                answers[analysis] = error
        if isinstance(answers[analysis], PvaError):
            raise answers[analysis]
        return answers[analysis]

    values = {}
    for name, figure in FIGURES.items():
        once = Figure(figure.unit, lambda _, f=figure: asked(f.analysis), figure.field,
                      figure.of_runs)  # fmt: skip
        try:
            values[name] = float(once.of(report))
        except PvaError:
            continue
    return values


def read(places: Sequence[tuple[str, str]], tables: Sequence[str]) -> Kept:
    """Read reports (path, hash): their figures, and tables with the hash in a column."""
    part = Kept(tables={name: [] for name in tables})
    for path, report_hash in places:
        try:
            report = openReport(path)
            created = report.dataset.table("report")["created"] if report.dataset.has(
                "report") else [""]  # fmt: skip
            frames = {
                name: frame_of(report.dataset, name, copy=False)
                for name in tables if report.dataset.has(name)
            }  # fmt: skip
            part.rows.append(
                {
                    REPORT: report_hash,
                    "path": path,
                    "created": str(created[0]),
                    **key_figures(report),
                }
            )
        except PvaError as error:
            part.problems.append(str(error))
            continue
        for name, frame in frames.items():
            frame.insert(0, REPORT, report_hash)
            part.tables[name].append(frame)
    return part


def write_part(directory: Path, part: Kept, tags: Mapping[str, Mapping[str, str]]) -> None:
    """Write what was read as a part of each table, that of `reports` last; raises PvaError."""
    if not part.rows:
        return
    identity = hashlib.sha256("".join(row[REPORT] for row in part.rows).encode()).hexdigest()[:16]
    for name, frames in part.tables.items():
        if frames:
            _write(directory / name, identity, pd.concat(frames, ignore_index=True))
    rows = [{**row, **tags.get(row[REPORT], {})} for row in part.rows]
    columns = [REPORT, "path", "created", *FIGURES]
    tag_columns = sorted({name for row in rows for name in row} - set(columns))
    frame = pd.DataFrame(rows, columns=[*columns[:3], *tag_columns, *columns[3:]])
    kinds = {name: "float64" if name in FIGURES else "str" for name in frame.columns}
    _write(directory / REPORTS, identity, frame.astype(kinds))


def _write(directory: Path, identity: str, frame: pd.DataFrame) -> None:
    write_frame(directory / f"part-{identity}.parquet", frame)


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """Write a frame as Parquet; raises PvaError."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingPackageError(path, "Parquet needs the package pyarrow", INSTALL) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, "a part of a fleet") as stream:
        frame.to_parquet(stream, index=False)


def part_files(directory: Path, table: str) -> list[Path]:
    """List the whole parts of a table."""
    complete = {file.name for file in (directory / REPORTS).glob("part-*.parquet")}
    return [file for file in sorted((directory / table).glob("part-*.parquet"))
            if file.name in complete]  # fmt: skip


def read_tables(directory: Path) -> tuple[str, ...]:
    """Read which tables a fleet keeps; raises PvaError."""
    path = directory / NAME
    try:
        content = json.loads(path.read_bytes())
        version, tables = content["format"], content["tables"]
    except FileNotFoundError:
        remedy = "make it with tilescope fleet add FLEET REPORT..."
        raise NotFoundError(directory, f"no {NAME}", remedy) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise DamagedFileError(path, "no fleet", f"the {NAME} of a fleet") from None
    if version != VERSION or not isinstance(tables, list):
        raise DamagedFileError(path, f"format {version}", f"this one reads format {VERSION}")
    return tuple(str(name) for name in tables)


def write_tables(directory: Path, tables: Sequence[str]) -> None:
    """Write which tables a fleet keeps; raises PvaError."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": VERSION, "tables": list(tables)}, indent=2)
    replaced(directory / NAME, text.encode() + b"\n", "the file of a fleet")


def batches(items: Sequence[object], size: int) -> Iterator[Sequence[Any]]:
    """Cut a sequence into parts of at most this length."""
    return (items[first : first + size] for first in range(0, len(items), size))
