"""`report.plot`: the figures of a report, each with title and units, for the end of a cell."""

from __future__ import annotations

from typing import Any, Literal, get_args

import plotly.graph_objects as go

from pva import units
from pva.analysis.memory import tile_series
from pva.analysis.memory import totals as memory_analysis
from pva.analysis.memory.liveness import liveness_curve
from pva.analysis.operations.costs import operation_costs
from pva.analysis.operations.cycle_breakdown import cycles_by_phase
from pva.analysis.selection import SelectionError
from pva.analysis.whole_report.comparison import compare_causes, compare_tiles, total_of, waterfall
from pva.plot import compare as comparing
from pva.plot import floor, liveness, memory, operations, spans
from pva.plot.device import device_timeline
from pva.plot.finished import finished
from pva.plot.memory import Limit
from pva.plot.theme import Theme
from pva.report import Report

Breakdown = Literal["category", "region", "liveness", "none"]
Compared = Literal["memory", "liveness", "cycles"]


class ReportPlots:
    """The figures of one report. Each method gives a plotly figure; all take a `theme`."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def memory(self, by: Breakdown = "category", *, theme: Theme = "light") -> go.Figure:
        """Draw what each tile holds, gaps included, broken down, against the memory of a tile.

        Raises SelectionError and NotRecordedError.
        """
        report = self._report
        _check("by", by, get_args(Breakdown))
        gaps: Any = "excluded" if by == "liveness" else "included"
        frame = tile_series.memory_series(report, breakdown=by, gaps=gaps).frame()
        overview = memory_analysis.memory_overview(report)
        label = memory_analysis.category_label
        has_ipus = int(report.dataset.of_replica("num_ipus")) > 1
        drawn = memory.over_tiles(
            frame,
            [memory.series_of(column, label, theme) for column in frame.columns[1:]],
            axis="Tile",
            limit=Limit(overview.bytes_per_tile, "A tile", overview.tiles_out_of_memory > 0),
            theme=theme,
            ipus=int(report.dataset.value("target", "tiles_per_ipu")) if has_ipus else 0,
        )
        words = "Memory by tile" if by == "none" else f"Memory by tile and {by}"
        return finished(drawn, f"{words}, bytes", self._name, theme=theme)

    def tile_map(
        self, category: str = "", *, scale: str = "blue", theme: Theme = "light"
    ) -> go.Figure:
        """Draw the tiles as they lie on the chip, coloured by their bytes, or those of a category.

        Raises SelectionError and NotRecordedError.
        """
        _check("scale", scale, floor.SCALES)
        frame = tile_series.floor_plan(self._report, category=category).frame()
        words = memory_analysis.category_label(category) if category else ""
        top = float(frame["bytes"].max())
        drawn = floor.tile_map(frame, words=words, scale=scale, top=top, theme=theme)
        return finished(
            drawn, f"Tile map, bytes of {words or 'each tile'}", self._name, theme=theme
        )

    def liveness(self, *, always: bool = True, theme: Theme = "light") -> go.Figure:
        """Draw what is live at each program step, on all tiles; raises NotRecordedError."""
        drawn = liveness.liveness_curve(
            liveness_curve(self._report).frame(), always=always, theme=theme
        )
        return finished(drawn, "Live by program step, bytes of all tiles", self._name, theme=theme)

    def execution(
        self, first: int | None = None, last: int | None = None, *, theme: Theme = "light"
    ) -> go.Figure:
        """Draw the executed steps from number `first` to `last`, that one too, on each IPU.

        Without them all. Where many are close together, one span stands for them. Raises
        SelectionError and NotRecordedError.
        """
        data = self._report.dataset
        begin, end = (data.column("steps", name) for name in ("cycles_from", "cycles_to"))
        steps = _steps(first, last, len(begin))
        timeline = device_timeline(self._report)
        window = timeline.extent
        if (first, last) != (None, None):
            low = int(begin[steps].min(initial=window[1]))
            window = low, max(int(end[steps].max(initial=0)), low + 1)
        drawn = spans.timeline_figure(timeline, window, theme=theme)
        words = f"Execution, steps {steps.start:,} to {steps.stop - 1:,}, cycles of each IPU"
        return finished(drawn, words, self._name, theme=theme)

    def operations(self, *, theme: Theme = "light") -> go.Figure:
        """Draw the operations with most cycles, by what these went to; raises NotRecordedError."""
        cycles_by_phase(self._report).frame()  # which says how to record what there is to draw
        drawn = operations.operation_bars(operation_costs(self._report).frame(), theme=theme)
        return finished(drawn, "Operations, cycles of the recorded runs", self._name, theme=theme)

    def compare(
        self, other: Report, of: Compared = "memory", *, theme: Theme = "light"
    ) -> go.Figure:
        """Draw this report and a later one: bytes by tile, live bytes by step, or cycles by cause.

        Raises SelectionError and NotRecordedError.
        """
        _check("of", of, get_args(Compared))
        drawn, words = _COMPARED[of](self._report, other, theme)
        return finished(drawn, words, f"{self._name} → {other.path.name}", theme=theme)

    @property
    def _name(self) -> str:
        return self._report.path.name


def _check(name: str, word: str, words: tuple[str, ...]) -> None:
    """Raise SelectionError for a word that is not known."""
    if word not in words:
        raise SelectionError(f"{name}={word!r}", "not known", f"one of {', '.join(words)}")


def _steps(first: int | None, last: int | None, count: int) -> slice:
    """Return the steps chosen; raises SelectionError."""
    low, high = 0 if first is None else first, count - 1 if last is None else last
    if not 0 <= low <= high < max(count, 1):
        problem = f"there are {count:,} executed steps"
        raise SelectionError(f"execution({first}, {last})", problem, f"0 to {max(count - 1, 0):,}")
    return slice(low, high + 1)


def _names(before: Report, after: Report) -> tuple[str, str]:
    return f"before: {before.path.name}", f"after: {after.path.name}"


def _memory_of_both(before: Report, after: Report, theme: Theme) -> tuple[go.Figure, str]:
    frame = compare_tiles(before, after)
    first, second = _names(before, after)
    curves = (
        comparing.Curve(first, frame.loc[frame["in"] != "after", "before"].to_numpy()),
        comparing.Curve(second, frame.loc[frame["in"] != "before", "after"].to_numpy()),
    )
    return comparing.two_curves(curves, axis="Tile", theme=theme), "Memory by tile, bytes"


def _liveness_of_both(before: Report, after: Report, theme: Theme) -> tuple[go.Figure, str]:
    curves = []
    for name, report in zip(_names(before, after), (before, after), strict=True):
        frame = liveness_curve(report).frame()
        words = frame["name"].where(frame["name"] != "", frame["type"]).tolist()
        curves.append(comparing.Curve(name, frame["total"].to_numpy(), words))
    drawn = comparing.two_curves((curves[0], curves[1]), axis="Program step", theme=theme)
    return drawn, "Live by program step, bytes of all tiles"


def _cycles_of_both(before: Report, after: Report, theme: Theme) -> tuple[go.Figure, str]:
    frame = compare_causes(before, after)
    start, end, _ = total_of(frame)
    named = frame.rename(columns={frame.columns[0]: "name"})
    drawn = comparing.waterfall(
        waterfall(named).frame(), total=(start, end), unit="cycles", names=_names(before, after),
        theme=theme,
    )  # fmt: skip
    change = f"{end - start:+,}" if not units.manner().clock else units.cycles_or_time(end - start)
    return drawn, f"Cycles by cause, {change} cycles"


_COMPARED = {"memory": _memory_of_both, "liveness": _liveness_of_both, "cycles": _cycles_of_both}
