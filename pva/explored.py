"""The points of the exploration that a report lies in, as `tilescope explore` wrote them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import cast

from pva.errors import PvaError
from pva.plain_file import contents
from pva.schema.exploration import ABOUT, POINTS, REPORTS, PointRow

LIMIT = 1 << 20  # bytes of the file of a point


def exploration_of(report: Path) -> Path | None:
    """Return the directory of the exploration that a report is a point of; None of none."""
    folder = _directory(report).parent
    is_point = folder.name == REPORTS and (folder.parent / ABOUT).is_file()
    return folder.parent if is_point else None


def point_of(report: Path) -> PointRow | None:
    """Return the row of the point that a report is; None where it is of no exploration.

    A row is what `tilescope explore` keeps of a point: key, levers, figures, `arguments` of
    `tilescope simulate`.
    """
    folder = exploration_of(report)
    return None if folder is None else _row(folder / POINTS / f"{_directory(report).name}.json")


def points_of(folder: Path) -> list[PointRow]:
    """Return the rows of the points of an exploration; none where there is no such directory.

    Those that cannot be read are left out.
    """
    return [row for path in _files(folder) if (row := _row(path)) is not None]


def _directory(report: Path) -> Path:
    return report if report.is_dir() else report.parent


def _files(folder: Path) -> list[Path]:
    return sorted((folder / POINTS).glob("*.json"))


def _row(path: Path) -> PointRow | None:
    with suppress(PvaError, ValueError, RecursionError):
        row = json.loads(contents(path, "a point of an exploration", LIMIT))
        words = row.get("arguments") if isinstance(row, dict) else None
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return cast("PointRow", {**row, "key": path.stem})
    return None
