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
from pva.errors import NotRecordedError, PvaError
from pva.explored import exploration_of, points_beside

if TYPE_CHECKING:
    from pva.lazy import pandas as pd
    from pva.report import Report

Words = Sequence[str]
Point = Mapping[str, Any]
MODEL, PROGRAMS = ".onnx", (".onnx", ".py")
FIT = "does_it_fit"
REPEAT, TRAIN = "repeat", "--train"
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


def with_trials(report: Report, findings: pd.DataFrame) -> pd.DataFrame:
    """Return findings with `try_it`, `measured_saving` and `trial`, as `insights` tells them."""
    own, others = points_beside(report.path)
    program, words = _command_line(report, own)
    rows: list[dict[str, Any]] = findings.to_dict("records")  # type: ignore[assignment]
    commands = [_command(report, str(row["rule"]), row, program, words) for row in rows]
    measured = [
        _measured(row, LEVERS[row["rule"]], own, others)
        if own is not None and command and row["rule"] in LEVERS
        else (NOT_MEASURED, "")
        for row, command in zip(rows, commands, strict=True)
    ]
    return findings.assign(
        try_it=commands,
        measured_saving=[float(saving) for saving, _ in measured],
        trial=[key for _, key in measured],
    )


def _command_line(report: Report, own: Point | None) -> tuple[str, tuple[str, ...]]:
    """Return the program that `tilescope simulate` ran, and its arguments; of others nothing."""
    if own is not None:
        program, *words = own["arguments"]
        return program, tuple(words)
    try:
        app = report.app
    except PvaError:  # a damaged file beside the report
        return "", ()
    name, words = str(app.get("application", "")), app.get("arguments")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "", ()
    models = [place for place, word in enumerate(words) if word.endswith(MODEL)]
    if models and words[0] == "simulate":
        program, words = words[models[0]], words[models[0] + 1 :]
        kept = _without(words, *OUTPUTS)
        return program, tuple(word for word in kept if word not in FLAGS)
    return (name, tuple(words)) if name.endswith(".py") and not models else ("", ())


def _command(report: Report, rule: str, row: Point, program: str, words: Words) -> str:
    """Return the command that tries what a finding advises; nothing where there is none."""
    if rule == FIT and row["severity"] == "problem" and program.endswith(PROGRAMS):
        return shlex.join(("tilescope", "fit", program, *words))
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
    folder = exploration_of(report.path) or Path(f"explore-{Path(program).stem}")
    vary = f"{lever.name}={','.join((present, *values))}"
    kept = _without(words, lever.name)
    return shlex.join(("tilescope", "explore", program, *kept, "--vary", vary,
                       "--out", str(folder)))  # fmt: skip


def _measured(row: Point, lever: Lever, own: Point, others: Sequence[Point]) -> tuple[float, str]:
    """Return what the best point saves that differs from a report's own in a lever alone."""
    figure = FIGURES.get(str(row["of"]), "")
    alike = [point for point in others if _rest(point, lever) == _rest(own, lever)]
    spent = [(_spent(point, lever, figure), str(point["key"])) for point in alike]
    tried = [(value, key) for value, key in spent if value > 0]
    before = _spent(own, lever, figure)
    if not tried or before <= 0 or not row["saving_share"]:
        return NOT_MEASURED, ""
    least, key = min(tried)
    return float(row["saving"] / row["saving_share"] * (1 - least / before)), key


def _rest(point: Point, lever: Lever) -> list[str]:
    """Return the program and arguments of a point without a lever, in one order."""
    return sorted(_without(point["arguments"], lever.name))


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
    kept = []
    for before, word in zip(("", *words), words, strict=False):
        of_option = before in options and not word.startswith("-")
        if not of_option and word.partition("=")[0] not in options:
            kept.append(word)
    return kept
