"""Findings whose advice is a lever of `tilescope explore`: the command that tries it, and what a
point that was run with it saved.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pva.analysis.execution.hidden_io import io_tiles_wanted
from pva.analysis.execution.main_runs import main_run
from pva.analysis.insight_rules.finding import AT_PEAK, RECORDED_RUNS
from pva.analysis.memory.liveness import liveness_overview
from pva.errors import NotRecordedError, PvaError
from pva.explored import exploration_of, point_of, points_of

if TYPE_CHECKING:
    from pva.report import Report

Words = Sequence[str]
Point = Mapping[str, Any]
Row = dict[str, Any]  # a finding, by the columns of `insights`
MODEL, PROGRAMS = ".onnx", (".onnx", ".py")
FIT = "does_it_fit"
REPEAT, TRAIN, IPUS = "repeat", "--train", "ipus"
MAX_IPUS = 4  # that `tilescope fit` may try
# What `simulate` writes beside its report, or what `explore` adds by itself.
OUTPUTS, FLAGS = ("out", "cache", "save-outputs"), ("--json", "--no-values")
FIGURES = {AT_PEAK: "peak", RECORDED_RUNS: "cycles"}  # of a point: what a saving is a part of
NOT_MEASURED = float("nan")


@dataclass(frozen=True, slots=True)
class Lever:
    """An option of `tilescope simulate MODEL`: its default, and the values that a finding advises.

    `values` takes the report and the present value.
    """

    name: str
    default: str
    values: Callable[[Report, str], tuple[str, ...]]
    of_training: bool = False


def _io_tiles(report: Report, _: str) -> tuple[str, ...]:
    tiles = io_tiles_wanted(report)
    return (str(tiles),) if tiles else ()


def _more_batches(report: Report, present: str) -> tuple[str, ...]:
    stages = max(main_run(report).stages, int(report.dataset.of_replica("num_ipus")))
    least = max(int(present), stages)
    return str(2 * least), str(4 * least)


LEVERS = {
    "full_precision_at_peak": Lever("precision", "float", lambda *_: ("half",)),
    "idle_at_peak": Lever("recompute", "none", lambda *_: ("standard", "all"), of_training=True),
    "ipus_in_turn": Lever(REPEAT, "1", _more_batches),
    "pipeline_rarely_full": Lever(REPEAT, "1", _more_batches),
    "bound_by_host": Lever("io-tiles", "0", _io_tiles),
}


def with_trials(report: Report, rows: Sequence[Row]) -> list[Row]:
    """Return findings with `try_it`, `measured_saving` and `trial`, as `insights` tells them."""
    point = point_of(report.path)
    program, words = _command_line(report, point)
    space = exploration_of(report.path) or _directory_of_trials(report, program)
    commands = [_command(report, str(row["rule"]), row, program, words, space) for row in rows]
    points = points_of(space) if any(commands) else []
    measured = [
        _measured(report, row, LEVERS[row["rule"]], words, points)
        if command and row["rule"] in LEVERS
        else (NOT_MEASURED, "")
        for row, command in zip(rows, commands, strict=True)
    ]
    return [
        {**row, "try_it": command, "measured_saving": float(saving), "trial": key}
        for row, command, (saving, key) in zip(rows, commands, measured, strict=True)
    ]


def _directory_of_trials(report: Report, program: str) -> Path:
    """Return where the points of a report's trials go: beside the report."""
    folder = report.path if report.path.is_dir() else report.path.parent
    beside = folder.parent / f"explore-{Path(program).stem}"
    directory = Path.cwd()
    return beside.relative_to(directory) if beside.is_relative_to(directory) else beside


def _command_line(report: Report, point: Point | None) -> tuple[str, tuple[str, ...]]:
    """Return the program that `tilescope simulate` ran, and its arguments; of others nothing."""
    if point is not None:
        program, *words = point["arguments"]
        return program, tuple(words)
    try:
        app = report.app
    except PvaError:  # a damaged file beside the report
        return "", ()
    words = app.get("command")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "", ()
    if words[:1] != ["simulate"] or not "".join(words[1:2]).endswith(PROGRAMS):
        return "", ()
    remaining = _without(words[2:], *OUTPUTS)
    return words[1], tuple(word for word in remaining if word not in FLAGS)


def _command(report: Report, rule: str, row: Point, program: str, words: Words, space: Path) -> str:
    """Return the command that tries what a finding advises; nothing where there is none."""
    if rule == FIT and row["severity"] == "problem" and program.endswith(PROGRAMS):
        least = int(report.dataset.value("target", "num_ipus"))
        ipus = f"{least}..{max(least, MAX_IPUS)}"
        return shlex.join(("tilescope", "fit", program, *_without(words, IPUS), "--ipus", ipus))
    lever = LEVERS.get(rule)
    if lever is None or not program.endswith(MODEL) or (lever.of_training and TRAIN not in words):
        return ""
    present = _value(words, lever)
    try:
        values = [value for value in lever.values(report, present) if value != present]
    except NotRecordedError:
        return ""
    if not values:
        return ""
    vary = f"{lever.name}={','.join((present, *values))}"
    remaining = _without(words, lever.name)
    return shlex.join(("tilescope", "explore", program, *remaining, "--vary", vary,
                       "--out", str(space)))  # fmt: skip


def _measured(
    report: Report, row: Point, lever: Lever, words: Words, points: Sequence[Point]
) -> tuple[float, str]:
    """Return what the best point saves that differs from the report in a lever alone, and its key.

    One of the points must be the report's own, with the same bytes live at the peak.
    """
    figure, present = FIGURES.get(str(row["of"]), ""), _value(words, lever)
    alike = [p for p in points if _rest(p["arguments"][1:], lever) == _rest(words, lever)]
    present_points = [p for p in alike if _value(p["arguments"], lever) == present]
    if not present_points or present_points[0].get("peak") != liveness_overview(report).max_live:
        return NOT_MEASURED, ""
    spent = [(_spent(p, lever, figure), str(p["key"])) for p in alike if p is not present_points[0]]
    tried = [(value, key) for value, key in spent if value > 0]
    before = _spent(present_points[0], lever, figure)
    if not tried or before <= 0 or not row["saving_share"]:
        return NOT_MEASURED, ""
    least, key = min(tried)
    return float(row["saving"] / row["saving_share"] * (1 - least / before)), key


def _rest(words: Words, lever: Lever) -> list[str]:
    """Return arguments without a lever, defaults and what changes no figure, in one order."""
    usual = [other.name for other in LEVERS.values() if _value(words, other) == other.default]
    remaining = [word for word in _without(words, lever.name, *usual) if word not in FLAGS]
    pairs = (word.split("=", 1) if word.startswith("--") else [word] for word in remaining)
    return sorted(text for pair in pairs for text in pair)


def _spent(point: Point, lever: Lever, figure: str) -> float:
    """Return the bytes or cycles of a point, a batch where batches are the lever; 0 of none."""
    value = point.get(figure)
    if point.get("error") or not isinstance(value, int | float):
        return 0.0
    batches = float(_value(point["arguments"], lever)) if lever.name == REPEAT else 1.0
    return value / batches


def _value(words: Words, lever: Lever) -> str:
    """Return what arguments set a lever to; its default where they do not."""
    option = f"--{lever.name}"
    values = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    values += [words[place + 1] for place in range(len(words) - 1) if words[place] == option]
    return values[-1] if values else lever.default


def _without(words: Words, *names: str) -> list[str]:
    """Return arguments without some options and their values."""
    options = tuple(f"--{name}" for name in names)
    remaining = []
    for before, word in zip(("", *words), words, strict=False):
        of_option = before in options and not word.startswith("-")
        if not of_option and word.partition("=")[0] not in options:
            remaining.append(word)
    return remaining
