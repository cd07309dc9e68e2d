"""`pva.openExploration`: the points that `tilescope explore` or `fit` ran, and their reports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pva.errors import MissingPackageError, NotFoundError, PvaError, nearest
from pva.lazy import pandas as pd
from pva.plain_file import contents
from pva.report import openReport
from pva.schema.exploration import ABOUT, POINTS, REPORTS, TABLE

if TYPE_CHECKING:
    from pva.report import Report

MAX_BYTES = 1 << 20  # of a file of one point
INSTALL = "pip install 'tilescope[parquet]'"


class Exploration:
    """The directory of an exploration: `frame` has a row a point, `report(key)` opens one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._about = dict(json.loads((path / ABOUT).read_text("utf-8")))
        except OSError:
            hint = "give the directory that `tilescope explore` wrote"
            raise NotFoundError(path, "no exploration", hint) from None
        except ValueError as error:
            raise PvaError(path / ABOUT, f"not JSON: {error}", "explore it again") from None

    def __repr__(self) -> str:
        return f"Exploration({self.program}, {len(self.frame)} of {self.space} points)"

    @property
    def program(self) -> str:
        """The program or model."""
        return str(self._about.get("program", ""))

    @property
    def levers(self) -> list[str]:
        """The levers, as columns of the frame."""
        return list(self._about.get("levers", {}))

    @property
    def space(self) -> int:
        """How many points the space has that was last explored."""
        return int(self._about.get("space", 0))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All points: key, levers, figures, the command that runs it, its report."""
        from pva.many.points import FIGURES

        try:
            frame = pd.read_parquet(self.path / TABLE)
        except ImportError:
            raise MissingPackageError(self.path, TABLE, INSTALL) from None
        except (OSError, ValueError) as error:
            raise PvaError(self.path / TABLE, f"cannot be read: {error}",
                           "explore it again: what is done is kept") from None  # fmt: skip
        absent = [name for name in ("key", *FIGURES, "command") if name not in frame]
        if absent:
            raise PvaError(self.path / TABLE, f"no column {absent[0]}", "explore it again")
        return frame

    def pareto(self, *objectives: str) -> pd.DataFrame:
        """Return the points that fit and that no other is better than; samples_per_second alone
        and fullest_tile if none are named. Raises PvaError.
        """
        from pva.many.points import FIGURES, pareto

        signed = objectives or ("samples_per_second", "fullest_tile")
        for name in signed:
            if not FIGURES.get(name, ("", 0))[1]:
                allowed = ", ".join(key for key, (_, sign) in FIGURES.items() if sign)
                raise PvaError(self.path, f"{name!r} is no objective", f"one of {allowed}")
        return self.frame[pareto(self.frame, signed)].reset_index(drop=True)

    def report(self, key: str) -> Report:
        """Open the report of a point; one that was not kept is made again. Raises PvaError."""
        rows = self.frame[self.frame["key"] == key]
        if rows.empty:
            raise PvaError(self.path, f"no point {key!r}", nearest(key, list(self.frame["key"])))
        folder = self.path / REPORTS / key
        if not folder.is_dir():
            _simulate(json.loads((self.path / POINTS / f"{key}.json").read_text("utf-8")), folder)
        return openReport(folder)

    def _repr_html_(self) -> str:
        return str(self.frame.to_html(max_rows=20, index=False))


def openExploration(path: str | PathLike[str]) -> Exploration:
    """Open the directory that `tilescope explore` wrote. Raises PvaError.

    >>> openExploration("sample_reports")
    Traceback (most recent call last):
    pva.errors.NotFoundError: sample_reports: no exploration; give the directory that ...
    """
    return Exploration(Path(path))


def point_words(report: Path) -> str:
    """Return the levers that vary and their values at the point whose report a directory is.

    The text is empty where the directory is no report of an exploration.
    """
    folder = report.parent.parent
    if report.parent.name != REPORTS or not (folder / ABOUT).is_file():
        return ""
    try:
        space = _levers(folder / ABOUT)
        values = _levers(folder / POINTS / f"{report.name}.json")
    except (PvaError, ValueError, RecursionError, KeyError, TypeError):
        return ""
    varied = [name for name, tried in space.items() if len(tried) > 1] or list(space)
    return ", ".join(f"{name} {values[name]}" for name in varied if name in values)


def _levers(path: Path) -> dict[str, Any]:
    """Read the levers in one of the files of an exploration; raises PvaError and what json does."""
    return dict(json.loads(contents(path, "a file of an exploration", MAX_BYTES))["levers"])


def _simulate(row: dict[str, Any], folder: Path) -> None:
    """Make the report of a point again, by the command that made it; raises PvaError."""
    program, *options = row["arguments"]
    command: Sequence[str] = (sys.executable, "-m", "cli.main", "simulate", program)
    process = subprocess.run(
        [*command, "--out", str(folder), *options], capture_output=True, text=True, check=False
    )
    if not folder.is_dir():
        words = process.stderr.strip().splitlines() or ["it wrote no report"]
        raise PvaError(folder, words[-1], f"run: {row['command']}")
