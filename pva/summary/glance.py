"""A report at a glance, as a notebook shows it: fit, memory, peak, cycles, and what stands out."""

from __future__ import annotations

import shlex
from html import escape
from typing import TYPE_CHECKING

from pva import units
from pva.analysis.execution.totals import execution_overview
from pva.analysis.insight_rules import insights
from pva.analysis.memory.liveness import liveness_overview
from pva.analysis.memory.totals import memory_overview
from pva.errors import NotRecordedError, PvaError

if TYPE_CHECKING:
    from pva.report import Report

FINDINGS = 3
LONGEST = 160  # letters of a finding


def glance(report: Report) -> str:
    """Return four figures and three findings as an HTML table; what was not recorded says so.

    Beside each finding stands the command whose table proves it. Names are data, and escaped.
    """
    rows = []
    for name, figure in (("Fit", _fit), ("Memory", _memory), ("Peak", _peak), ("Cycles", _cycles)):
        try:
            rows.append(_row(name, escape(figure(report))))
        except NotRecordedError as fault:
            rows.append(_row(name, escape(f"not recorded: {fault}")))
    try:
        findings = insights(report).frame().head(FINDINGS)
    except PvaError:
        return f"<table>{''.join(rows)}</table>"
    path = shlex.quote(str(report.path))
    for number, finding in enumerate(findings.to_dict("records"), 1):
        words = " – ".join(_cut(str(finding[name])) for name in ("what", "where") if finding[name])
        command = f"tilescope show {finding['show']} {path}" if finding["show"] else ""
        rows.append(_row(f"Finding {number}", escape(words), escape(command)))
    return f"<table>{''.join(rows)}</table>"


def _cut(text: str) -> str:
    """Cut a text that is longer than a line or two."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _row(name: str, words: str, command: str = "") -> str:
    style = "text-align:left"
    cells = (
        f"<td style='{style}'>{words}</td><td style='{style};font-family:monospace'>{command}</td>"
    )
    return f"<tr><th style='{style}'>{name}</th>{cells}</tr>"


def _fit(report: Report) -> str:
    memory = memory_overview(report)
    out = memory.tiles_out_of_memory
    without = "" if memory.code_counted else ", without code"
    return f"does not fit{without}: {out:,} tiles out of memory" if out else f"fits{without}"


def _memory(report: Report) -> str:
    memory = memory_overview(report)
    used, limit = units.size(memory.fullest_bytes), units.size(memory.bytes_per_tile)
    share = units.share(memory.fullest_share)
    return f"fullest tile {memory.fullest_tile:,}: {used} of {limit} ({share})"


def _peak(report: Report) -> str:
    live = liveness_overview(report)
    if live.peak_step < 0:
        return f"{units.size(live.always_live)} always live; no program steps"
    name = _cut(live.peak_name or live.peak_type)
    return f"{units.size(live.max_live)} live at step {live.peak_step:,} ({name})"


def _cycles(report: Report) -> str:
    execution = execution_overview(report)
    runs = "run" if execution.recorded_runs == 1 else "runs"
    time = units.duration(execution.seconds)
    return f"{execution.cycles:,} cycles ({time}) in {execution.recorded_runs:,} recorded {runs}"
