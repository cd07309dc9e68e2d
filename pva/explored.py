"""The points of the exploration that a report lies in, as `tilescope explore` wrote them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from pva.errors import PvaError
from pva.plain_file import contents
from pva.schema.exploration import ABOUT, POINTS, REPORTS

LIMIT = 1 << 20  # bytes of the file of a point


def exploration_of(report: Path) -> Path | None:
    """Return the directory of the exploration that a report is a point of; None of none."""
    folder = _directory(report).parent
    is_point = folder.name == REPORTS and (folder.parent / ABOUT).is_file()
    return folder.parent if is_point else None


def points_beside(report: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the row of a report's own point, None where it is of none, and those of the others.

    A row is what `tilescope explore` keeps of a point: key, levers, figures, `arguments` of
    `tilescope simulate`. Rows that cannot be read are left out.
    """
    folder, own = exploration_of(report), _directory(report).name
    rows = {} if folder is None else {path.stem: _row(path) for path in _files(folder)}
    others = [row for key, row in rows.items() if row is not None and key != own]
    return rows.get(own), others


def _directory(report: Path) -> Path:
    return report if report.is_dir() else report.parent


def _files(folder: Path) -> list[Path]:
    return sorted((folder / POINTS).glob("*.json"))


def _row(path: Path) -> dict[str, Any] | None:
    with suppress(PvaError, ValueError, RecursionError):
        row = json.loads(contents(path, "a point of an exploration", LIMIT))
        words = row.get("arguments") if isinstance(row, dict) else None
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return {**row, "key": path.stem}
    return None
