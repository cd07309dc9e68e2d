"""Reports: `openReport` and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from os.path import expanduser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.data import long_texts
from pva.data.dataset import Dataset as Dataset
from pva.data.run_selection import WithoutRuns
from pva.errors import DamagedFileError, OverwriteError, PvaError, nearest
from pva.formats import registry
from pva.formats.registry import Profile as Profile
from pva.later import later
from pva.lazy import pandas as pd
from pva.model.show import Shown

if TYPE_CHECKING:
    from pva.frames import Frames
    from pva.model.compilation import CompilationReport
    from pva.model.execution import ExecutionReport
    from pva.model.instrumentation import InstrumentationSettings

# What a report makes once from its dataset.
VIEWS = ("compilation", "execution", "frames", "instrumentationSettings", "poplarVersion")


@dataclass(frozen=True, slots=True, repr=False)
class PoplarVersion(Shown):
    """What wrote the report."""

    _figures = ("string",)

    major: int
    minor: int
    point: int
    packageHash: str
    string: str


@dataclass(frozen=True, slots=True, repr=False)
class ProfileReportVersion(Shown):
    """Version of the report format."""

    _figures = ("major", "minor")

    major: int
    minor: int
    point: int
    isUnstableFormat: bool


# Its name in the documents of earlier SDKs.
ProfileVersionReport = ProfileReportVersion


def openReport(
    profileFilename: str | PathLike[str] | None = None,
    debugInfoFilename: str | PathLike[str] | None = None,
    *,
    filename: str | PathLike[str] | None = None,
    longest: int | None = None,
) -> Report:
    """Open a report directory, or a profile in a `.pop`, `.json` or `.cbor` file.

    `~` is the home directory; `filename` is libpva's other name of the first argument. Texts of
    more letters than `longest` are cut as they are read. Raises PvaError: NotFoundError,
    UnknownFormatError, DamagedFileError or NewerVersionError.

    >>> report = openReport("sample_reports/matmul_chain_mk2")
    >>> report.compilation.target.numTiles
    1472
    >>> report.execution.totalCycles.total
    33984
    """
    path = filename if profileFilename is None else profileFilename
    if path is None:
        raise TypeError("openReport: the path of a report is needed")
    return Report(path, debugInfoFilename, longest)


class Report(Shown):
    """What is known about a program and its runs. May be read from several threads."""

    _figures = (
        "IPUs=compilation.target.numIPUs",
        "tiles=compilation.target.numTiles",
        "runs=execution.runs",
    )

    def __init__(
        self,
        path: str | PathLike[str],
        debug_path: str | PathLike[str] | None = None,
        longest: int | None = None,
    ) -> None:
        self.path = Path(expanduser(path))
        self._debug_path = None if debug_path is None else Path(expanduser(debug_path))
        self._longest = longest
        self._held: Dataset | None = None
        self._whole: Report | None = None
        self.dataset = self._read()

    @classmethod
    def of(cls, dataset: Dataset) -> Report:
        """Make the report of a dataset that is in no file."""
        report = cls.__new__(cls)
        report.path, report._debug_path, report._longest = Path(dataset.name), None, None
        report.dataset = report._held = dataset
        report._whole = None
        return report

    @classmethod
    def of_profiles(cls, graph: Profile, execution: Profile | None = None) -> Report:
        """Make the report of a graph profile and an execution profile.

        Each is the value of its document, a file of any format or a report directory; without the
        second, the first may hold both. Raises PvaError.
        """
        if execution is None and not isinstance(graph, Mapping):
            return cls(graph)
        return cls.of(registry.of_profiles(graph, execution))

    def __reduce__(self) -> tuple[Callable[..., Report], tuple[object, ...]]:
        """Be pickled as a path: who unpickles it opens the file anew."""
        if self._held is not None:
            return Report.of, (self._held,)
        return Report, (self.path, self._debug_path, self._longest)

    def _read(self) -> Dataset:
        if self._held is not None:
            return self._held
        read = registry.read(self.path)
        if self._debug_path is not None:
            read = Dataset.joined((registry.read(self._debug_path), read), str(self.path))
        return read if self._longest is None else long_texts.with_cut_texts(read, self._longest)

    def reload(self) -> bool:
        """Read again; tell whether there is something new. Objects keep what they show."""
        before, after = self.dataset, self._read()
        self.dataset = after
        for name in [name for name in vars(self) if name in VIEWS]:
            del self.__dict__[name]
        return _extent(before) != _extent(after)

    @property
    def files(self) -> dict[str, Path]:
        """The files of the report: profile, graph, execution, debug, framework, app and trace."""
        if self._held is not None:
            return {}
        if self.path.is_dir():
            paths = registry.directory_files(self.path)
        else:
            paths = {"profile": self.path}
        return paths if self._debug_path is None else paths | {"debug": self._debug_path}

    @property
    def trace_path(self) -> Path | None:
        """The host trace in the report directory, if there is one."""
        return self.files.get("trace")

    @property
    def app(self) -> dict[str, object]:
        """What the program said about itself; empty when it said nothing. Raises PvaError."""
        return self._json("app")

    @property
    def framework(self) -> dict[str, object]:
        """What the framework said about itself; empty when there was none. Raises PvaError."""
        return self._json("framework")

    def _json(self, kind: str) -> dict[str, object]:
        file = self.files.get(kind)
        document = {} if file is None else registry.load_json(file)
        if not isinstance(document, dict):
            raise DamagedFileError(file, f"holds {type(document).__name__}", "an object")
        if self._longest is None:
            return document
        cut: dict[str, Any] = long_texts.cut_inside(document, self._longest)
        return cut

    @cached_property
    def compilation(self) -> CompilationReport:
        """What is known at the end of compilation."""
        from pva.model.compilation import CompilationReport  # the objects take long to import

        return CompilationReport(self.dataset)

    @cached_property
    def execution(self) -> ExecutionReport:
        """What was executed."""
        from pva.model.execution import ExecutionReport

        return ExecutionReport(self.dataset)

    @cached_property
    def frames(self) -> Frames:
        """Every table and array as a DataFrame."""
        from pva.frames import Frames

        return Frames(self.dataset)

    @cached_property
    def plot(self) -> Any:
        """The figures: `report.plot.memory()` and its like (`pva.plot.report_plots`).

        Raises MissingPackageError where plotly is not installed.
        """
        return later("plot.report_plots", "ReportPlots")(self)

    @property
    def insights(self) -> pd.DataFrame:
        """What stands out, as the analysis of this name returns it; raises NotRecordedError."""
        frame: pd.DataFrame = later("analysis", "CATALOGUE")["insights"](self).frame()
        return frame

    def compare(self, other: Report, table: str = "figures") -> pd.DataFrame:
        """Return what changed from this report to another, as `tilescope compare` prints it.

        `table` is a name of `pva.analysis.COMPARISONS` without `compare_`. Raises PvaError.
        """
        comparisons = {
            name.removeprefix("compare_"): function
            for name, function in later("analysis", "COMPARISONS").items()
        }
        if table not in comparisons:
            raise PvaError(f"compare(table={table!r})", "not known", nearest(table, comparisons))
        frame: pd.DataFrame = comparisons[table](self, other).frame()
        return frame

    def _repr_html_(self) -> str:
        """Show fit, memory, peak, cycles and three findings in a notebook."""
        return str(later("summary.glance", "glance")(self))

    def sql(self, query: str, *, seconds: float | None = None) -> pd.DataFrame:
        """Answer one SELECT over the tables and arrays that `frames` has.

        A table also has a column `row`, from 0, that others refer to: steps.program = programs.row.
        `show tables` names those that this report has.
        Whole numbers divide to whole numbers; what is missing or divided by zero is null. By DuckDB
        when it is installed, else by SQLite over tables that are not large.
        Raises QueryError, also when it takes longer than `seconds`, NotRecordedError and
        MissingPackageError.

        >>> report = openReport("sample_reports/matmul_chain_mk2")
        >>> report.sql("select type, count(*) n from programs group by 1 order by 2 desc limit 2")
                 type   n
        0        Sync  12
        1  DoExchange   8
        """
        from pva.query import select

        return select(self.dataset, query, seconds)

    def check(self) -> pd.DataFrame:
        """Check the report by the conservation laws: a row for each law, or for each breach.

        Columns: law, meaning, holds (missing where the report lacks what the law speaks of), where,
        found, wanted, places (how many break it).
        """
        from pva.check import LAWS

        rows = [row for law in LAWS for row in law.verdict(self.dataset)]
        columns = ["law", "meaning", "holds", "where", "found", "wanted", "places"]
        return pd.DataFrame(rows, columns=columns).astype({"holds": "boolean", "places": "int64"})

    def to_json(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the report as JSON; a file named graph, execution or debug holds that part alone.

        The file appears when it is whole. Raises OverwriteError and PvaError.
        """
        return self._write(path, "json", overwrite=overwrite)

    def to_cbor(
        self, path: str | PathLike[str], *, plain: bool = False, overwrite: bool = False
    ) -> Path:
        """Write the report as CBOR, as `to_json` does; `plain` has lists in place of typed arrays.

        Raises OverwriteError and PvaError.
        """
        return self._write(path, "plain" if plain else "cbor", overwrite=overwrite)

    def to_parquet(self, directory: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write each table and array, as `frames` has it, into a Parquet file of a new directory.

        Units and meanings are metadata of the fields; `openReport` reads the directory.
        Raises MissingPackageError, OverwriteError and PvaError.
        """
        return self._write(directory, "parquet", overwrite=overwrite)

    def without_runs(
        self, rows: npt.NDArray[np.int64], spent: Callable[[], Mapping[str, int]]
    ) -> Report:
        """Make the report without some rows of `runs`, which `other_runs` has instead.

        `spent` is asked for what the tiles did in them, by column of `tile_cycles`.
        """
        report = copy(self)
        for name in [name for name in vars(report) if name in VIEWS]:
            del report.__dict__[name]
        report.dataset = Dataset(WithoutRuns(self.dataset, rows, spent), self.dataset.name)
        report.dataset.foreign = self.dataset.foreign
        report._whole = self
        return report

    @property
    def whole(self) -> tuple[Report, npt.NDArray[np.int64]]:
        """The report that this one leaves runs out of, itself if none, and the rows kept there."""
        source = self.dataset.source
        if self._whole is not None and isinstance(source, WithoutRuns):
            return self._whole, source.kept_rows("runs")
        return self, np.arange(self.dataset.length("runs"))

    def _write(self, path: str | PathLike[str], form: str, *, overwrite: bool) -> Path:
        target = Path(expanduser(path))
        if not overwrite and (target.exists() or target.is_symlink()):
            remedy = "give another name, or overwrite=True to replace it"
            raise OverwriteError(target, "already there", remedy)
        registry.write(self.dataset, target, form)
        return target

    @cached_property
    def poplarVersion(self) -> PoplarVersion:
        """What wrote the report; zeros and empty texts when it does not say."""
        if not self.dataset.has("report"):
            return PoplarVersion(0, 0, 0, "", "")
        names = ("major", "minor", "point", "package_hash", "version")
        major, minor, point, *texts = (self.dataset.value("report", name) for name in names)
        return PoplarVersion(max(major, 0), max(minor, 0), max(point, 0), *texts)

    @cached_property
    def instrumentationSettings(self) -> InstrumentationSettings:
        """What was measured on the device."""
        from pva.model.instrumentation import InstrumentationSettings

        return InstrumentationSettings(self.dataset)

    def listPrintLength(self, newLength: int) -> None:
        """Set how many items lists show when printed, those of all reports."""
        from pva.model import views

        views.print_length(newLength)

    @property
    def version(self) -> ProfileReportVersion:
        """Version of the report format, which older files are read into."""
        return ProfileReportVersion(schema.FORMAT_VERSION, 0, 0, False)

    def _title(self) -> tuple[str, ...]:
        return (self.path.name,)


def _extent(data: Dataset) -> tuple[object, ...]:
    """Return what grows while a program runs."""
    return data.tables, data.length("runs"), data.length("other_runs")
