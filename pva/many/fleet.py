"""`pva.openFleet`: thousands of reports, by their key figures and chosen tables, and in full."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from os.path import expanduser
from pathlib import Path
from typing import Any

from pva.analysis import CATALOGUE
from pva.analysis.whole_report.key_figures import FIGURES
from pva.data.dataset import Dataset
from pva.errors import MissingPackageError, NotFoundError, PvaError, nearest
from pva.frames import NAMES
from pva.lazy import pandas as pd
from pva.many.executors import mapped
from pva.many.fleet_parts import (
    INSTALL,
    REPORT,
    REPORTS,
    TAG,
    batches,
    content_hash,
    part_files,
    read,
    read_tables,
    write_frame,
    write_part,
    write_tables,
)
from pva.query import by_duckdb
from pva.report import openReport

FleetPath = str | PathLike[str]
MAPS = "maps"
READ, ASKED = 32, 8  # reports that a unit of work reads, or asks
SCANNED = 64  # files of answers at once: Arrow holds some 80 kB of each while it scans
Progress = Callable[[int, int], None]  # done, of all


def openFleet(directory: FleetPath, *, client: object = None) -> Fleet:
    """Open a fleet that `tilescope fleet add` made; `client` is one of Dask. Raises PvaError.

    >>> from tempfile import TemporaryDirectory
    >>> reports = ["sample_reports/matmul_chain_tiny", "sample_reports/mlp_digits_tiny"]
    >>> with TemporaryDirectory() as directory:
    ...     addReports(directory, reports)
    ...     openFleet(directory).frame("reports")["recorded_runs"].tolist()
    (2, [])
    [1.0, 2.0]
    """
    path = Path(expanduser(directory))
    return Fleet(path, read_tables(path), client)


def addReports(
    directory: FleetPath,
    reports: Iterable[FleetPath],
    *,
    tables: Sequence[str] = (),
    tags: Callable[[str], Mapping[str, str]] | None = None,
    workers: int = 0,
    client: object = None,
    progress: Progress | None = None,
) -> tuple[int, list[str]]:
    """Add reports to a fleet, each once by its content; return how many came, and what failed.

    `tables` are those of `report.frames` that a new fleet keeps beside the key figures; one that
    is there keeps its own. `tags` gives those of a path. Raises PvaError.
    """
    path = Path(expanduser(directory))
    kept_tables = _tables_of(path, tables)
    identities = set(Fleet(path, kept_tables).frame(REPORTS, [REPORT])[REPORT])
    places, problems = [], []
    of_hash: dict[str, Mapping[str, str]] = {}
    for place in map(str, reports):
        try:
            identity = content_hash(Path(expanduser(place)))
        except PvaError as error:
            problems.append(str(error))
            continue
        if identity not in identities:
            identities.add(identity)
            places.append((os.path.abspath(expanduser(place)), identity))
            named = tags(place) if tags else {}
            of_hash[identity] = {_tag(name): value for name, value in named.items()}
    work = partial(keep, tables=kept_tables, directory=path)
    parts = [(batch, {identity: of_hash[identity] for _, identity in batch})
             for batch in batches(places, READ)]  # fmt: skip
    finished = added = 0
    for (batch, _), (count, failed) in mapped(work, parts, workers=workers or _cores(),
                                              client=client):  # fmt: skip
        problems += failed
        added += count
        finished += len(batch)
        if progress:
            progress(finished, len(places))
    return added, problems


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tag(name: str) -> str:
    return name if name == TAG else f"{TAG}_{name}"


def _tables_of(path: Path, tables: Sequence[str]) -> tuple[str, ...]:
    for name in tables:
        if name not in NAMES:
            raise PvaError(path, f"no table {name}", nearest(name, NAMES, "frames.schema()"))
    try:
        present = read_tables(path)
    except NotFoundError:
        if path.is_dir() and any(path.iterdir()):
            remedy = "give a new directory, or one that tilescope fleet add made"
            raise PvaError(path, "a directory with other files", remedy) from None
        write_tables(path, tables)
        return tuple(tables)
    if set(tables) - set(present):
        added = ", ".join(sorted(set(tables) - set(present)))
        problem = f"it keeps {', '.join(present) or 'no table'}, not {added}"
        raise PvaError(
            path, problem, "make another fleet: reports that are there are not read again"
        )
    return present


class Fleet:
    """Many reports: `reports` is a row for each, the other tables are those that are kept."""

    def __init__(self, path: Path, tables: Sequence[str], client: object = None) -> None:
        self.path, self.name = path, str(path)
        self.tables = (REPORTS, *tables)
        self.problems: tuple[str, ...] = ()  # of the last `map`: what had no answer
        self._client = client

    @property
    def frames(self) -> FleetFrames:
        """Every kept table of every report, with a column for the report's hash."""
        return FleetFrames(self)

    def frame(self, name: str, columns: list[str] | None = None) -> pd.DataFrame:
        """Return a kept table of all reports, with only these of its columns; raises PvaError."""
        dataset = _dataset(part_files(self.path, name))
        if dataset is None:
            return pd.DataFrame({column: [] for column in columns or [REPORT]})
        frame: pd.DataFrame = dataset.to_table(columns=columns).to_pandas()
        return frame

    def sql(self, query: str) -> pd.DataFrame:
        """Answer one SELECT over `reports` and the kept tables, by DuckDB; raises PvaError."""
        try:
            import duckdb  # noqa: F401
        except ImportError:
            raise MissingPackageError(self.name, "a query over a fleet", INSTALL) from None

        def lend(connection: duckdb.DuckDBPyConnection, name: str) -> None:
            dataset = _dataset(part_files(self.path, name))
            connection.register(name, self.frame(name) if dataset is None else dataset)

        return by_duckdb(Dataset.joined((), self.name), query, lend, self.tables)

    def trend(self, figure: str, *, by: str = TAG) -> pd.DataFrame:
        """Return a key figure over the values of a tag: least, median and most of its reports.

        Columns: the tag, reports, first (when the first was written), least, median, most, and
        change (of the median, as a part of that before). Values in the order of numbers when all
        are, else as their first reports were written. Raises PvaError.
        """
        frame = self.frame(REPORTS)
        if figure not in FIGURES:
            raise PvaError(self.name, f"no figure {figure}", nearest(figure, FIGURES))
        column = next((one for one in (by, _tag(by)) if one in frame), "")
        if not column:
            names = map(str, frame.columns)
            tags = [name.removeprefix(f"{TAG}_") for name in names if name.startswith(TAG)]
            remedy = nearest(by, tags) if tags else "add reports with --tag NAME=VALUE"
            raise PvaError(self.name, f"no tag {by}", remedy)
        recorded = frame[frame[figure].notna()].assign(**{by: frame[column].fillna("")})
        grouped = recorded.groupby(by, sort=False)
        result = grouped.agg(
            reports=(REPORT, "size"), first=("created", "min"), least=(figure, "min"),
            median=(figure, "median"), most=(figure, "max"),
        ).reset_index()  # fmt: skip
        result = result.loc[_order(result[by].tolist(), result["first"].tolist())]
        result["change"] = result["median"].pct_change(fill_method=None)
        return result.reset_index(drop=True)

    def map(
        self,
        analysis: str | Callable[..., object],
        *,
        workers: int = 0,
        progress: Progress | None = None,
        **options: object,
    ) -> pd.DataFrame:
        """Run an analysis of the catalogue on every report itself, and return all answers as one.

        Each answer is kept as Parquet by the report's hash, so that work goes on where it was
        killed. A column `report` has the hash. Reports without an answer are in `problems`, a line
        each. Runs on the Dask client of the fleet, else in processes. Raises PvaError.
        """
        name = analysis if isinstance(analysis, str) else analysis.__name__
        if name not in CATALOGUE:
            raise PvaError(self.name, f"no analysis {name}", nearest(name, CATALOGUE))
        text = json.dumps(options, sort_keys=True, default=str)
        mark = f"-{hashlib.sha256(text.encode()).hexdigest()[:8]}" if options else ""
        folder = self.path / MAPS / f"{name}{mark}"
        rows = self.frame(REPORTS, [REPORT, "path"])
        places = list(zip(rows["path"], rows[REPORT], strict=True))
        answered = {file.name.partition(".")[0] for file in folder.glob("*.*")}
        pending = [place for place in places if place[1] not in answered]
        work = partial(ask, name=name, options=options, folder=str(folder))
        count = len(places) - len(pending)
        for batch, _ in mapped(work, list(batches(pending, ASKED)), workers=workers or _cores(),
                               client=self._client):  # fmt: skip
            count += len(batch)
            if progress:
                progress(count, len(places))
        return self._answers(folder, places)

    def _answers(self, folder: Path, places: list[tuple[str, str]]) -> pd.DataFrame:
        problems, files = [], []
        for path, report_hash in places:
            file = folder / f"{report_hash}.parquet"
            if file.exists():
                files.append(file)
            else:
                problems.append(_said(folder / f"{report_hash}.txt", path))
        self.problems = tuple(problems)
        if not files:
            return pd.DataFrame({REPORT: []})
        dataset = _dataset(files)
        import pyarrow as arrow
        import pyarrow.dataset

        tables = (pyarrow.dataset.dataset(list(map(str, some)), schema=dataset.schema).to_table()
                  for some in batches(files, SCANNED))  # fmt: skip
        frame: pd.DataFrame = arrow.concat_tables(tables).to_pandas()
        return frame


def _said(file: Path, path: str) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else f"{path}: no answer"


class FleetFrames:
    """Tables by name, each a function without arguments that gives a DataFrame."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def __getattr__(self, name: str) -> Callable[[], pd.DataFrame]:
        if name not in self._fleet.tables:
            hint = "" if name.startswith("_") else nearest(name, self._fleet.tables)
            raise AttributeError(f"the fleet keeps no table {name}; {hint}")
        return lambda: self._fleet.frame(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._fleet.tables]


Part = tuple[Sequence[tuple[str, str]], Mapping[str, Mapping[str, str]]]


def keep(part: Part, tables: Sequence[str], directory: Path) -> tuple[int, list[str]]:
    """Read reports (path, hash; tags by hash) and write a part; return how many, what failed."""
    places, tags = part
    read_part = read(places, tables)
    write_part(directory, read_part, tags)
    return len(read_part.rows), read_part.problems


def ask(
    places: Sequence[tuple[str, str]], name: str, options: dict[str, object], folder: str
) -> int:
    """Ask an analysis of reports (path, hash) and write each answer, or why there is none."""
    for path, report_hash in places:
        target = Path(folder) / report_hash
        try:
            report = openReport(path)
            if content_hash(Path(path)) != report_hash:
                raise PvaError(path, "another report than was added", "add it again")
            answer = CATALOGUE[name](report, **options)
        except PvaError as error:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.with_suffix(".txt").write_text(str(error), encoding="utf-8")
            continue
        if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
            answer = pd.DataFrame([dataclasses.asdict(answer)])
        frame = answer.reset_index(drop=not answer.index.name)
        write_frame(target.with_suffix(".parquet"), _plain(frame, report_hash))
    return len(places)


def _plain(frame: pd.DataFrame, report_hash: str) -> pd.DataFrame:
    """Return a frame whose columns of mixed objects are texts, with the hash of its report."""
    kinds = {}
    for column in frame.columns:
        if str(frame[column].dtype) in ("object", "category"):
            texts = frame[column].astype(object)
            kinds[column] = texts.where(texts.isna(), texts.map(str)).astype("str")
    result = frame.assign(**kinds)
    result.columns = [str(column) for column in result.columns]
    result.insert(0, REPORT, report_hash)
    return result


def _dataset(files: Sequence[Path]) -> Any:
    """Return Parquet files as one dataset, whose columns are those of all; None without any."""
    if not files:
        return None
    try:
        import pyarrow as arrow
        import pyarrow.dataset
        import pyarrow.parquet
    except ImportError:
        raise MissingPackageError("fleet", "Parquet needs the package pyarrow", INSTALL) from None
    schemas = {str(one): one for one in map(pyarrow.parquet.read_schema, files)}
    schema = arrow.unify_schemas(list(schemas.values()), promote_options="permissive")
    return pyarrow.dataset.dataset([str(file) for file in files], schema=schema)


def _order(values: list[str], first: list[str]) -> list[int]:
    """Return the order of values: of numbers when all are, else of their first reports."""
    try:
        keys: list[Any] = [float(value) for value in values]
    except ValueError:
        keys = list(zip(first, values, strict=True))
    return sorted(range(len(values)), key=keys.__getitem__)
