"""What stands out in a report: rules, each a function from a report to findings.

`RULES` names them by what they are about; `insights` asks them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from pva.analysis.columns import analysis
from pva.analysis.execution.steady import STEADY, counted
from pva.analysis.insight_rules import causes, lives, runs, space, speed
from pva.analysis.insight_rules.finding import UNITS, Finding, part
from pva.analysis.insight_rules.fitting import with_what_lacks
from pva.analysis.insight_rules.trials import Row, with_trials
from pva.analysis.table import Columns, columns_of
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 10  # of its analyses in the catalogue
Rule = Callable[["Report"], list[Finding]]
Answer = tuple[list[Finding], str]  # findings, and why the rule could not be checked

MEMORY, TIME = "memory", "time"
RULES: dict[str, tuple[Rule, ...]] = {
    MEMORY: (
        space.does_it_fit,
        space.uneven_tiles,
        space.gaps_on_fullest_tile,
        space.variable_on_few_tiles,
        lives.largest_at_peak,
        lives.idle_at_peak,
        lives.full_precision_at_peak,
        lives.mostly_always_live,
        space.code_of_exchanges,
        space.many_vertices,
    ),
    TIME: (
        runs.how_long_it_takes,
        runs.pipeline_rarely_full,
        causes.bound_by_an_ipu,
        causes.ipus_in_turn,
        causes.on_the_critical_path,
        causes.delayed_by_host,
        speed.uneven_work,
        speed.bound_by_sync,
        speed.bound_by_exchange,
        speed.bound_by_host,
        speed.one_thread_busy,
        speed.poor_use_of_matrix_units,
        speed.many_tiny_steps,
    ),
}
LITTLE = 0.005  # of what a saving is a part of: what saves less is told as a note
_ORDER = {"problem": 0, "cost": 1, "note": 2}
FIELDS = (
    "rule", "about", "severity", "what", "where", "amount", "unit", "advice", "saving", "of",
    "saving_share", "on_fullest", "show", "tile", "step", "variable", "name",
)  # fmt: skip
TRIALS = ("try_it", "measured_saving", "trial")
UNCHECKED = ("rule", "about", "tells", "why")


@analysis(
    "rule about severity what where amount unit advice saving of saving_share:fraction "
    "on_fullest:bytes show tile step variable name try_it measured_saving trial",
    name="debug name of what it is about, empty without one",
    where="step, run or tile that it is about",
)
def insights(report: Report, *, runs: str = STEADY) -> Columns:
    """Return what stands out: does it fit, what fills the tiles, what the runs wait for.

    Of the steady state: without the runs of programs that ran once while another one ran more
    often, such as those that load weights. `runs="all"` counts these, too. Raises SelectionError.

    A row is a finding: `what`, `where`, how much (`amount`), what to try (`advice`) and the most
    that this could save: `saving`, of what `of` says (one tile, all tiles, the peak of liveness,
    the recorded runs), of which `saving_share` is a part, and `on_fullest` what of the saving is on
    the fullest tile, in bytes. Savings do not add up: the finding about what lacks on the fullest
    tile says what they come to there, each kind of memory counted once. `unit` is bytes
    or cycles; `show` is the analysis that has the details, with tile, step and variable (-1: none),
    and `name` that of the programs to look at there. `try_it` is the command that tries an advice
    that is a lever of `tilescope explore`, or `tilescope fit`; empty where it is none, or where the
    report does not tell its program. Once it ran, `measured_saving` is what the best point saved
    that differs in that lever alone, in the unit of `saving` (of batches: for the work of this
    report), and `trial` its key; not a number where none was run.
    `severity` is problem, cost or note (what saves less than 0.5 % is one); problems come first,
    then what could save most. What was not recorded is not looked at; `unchecked_rules` lists it.
    """
    rows = with_trials(report, examination(counted(report, runs))[0])
    return columns_of(rows, (*FIELDS, *TRIALS))


@analysis("rule about tells why", why="why it was not checked")
def unchecked_rules(report: Report, *, runs: str = STEADY) -> Columns:
    """Return which rules of `insights` could not be checked, as the report lacks what they need.

    `runs` are those of `insights`. Raises SelectionError.
    """
    return columns_of(examination(counted(report, runs))[1], UNCHECKED)


def answer_of(rule: Rule, report: Report) -> Answer:
    """Ask a rule."""
    try:
        return rule(report), ""
    except NotRecordedError as error:
        return [], f"{error.found}; {error.wanted}"


def examination(
    report: Report, ask: Callable[[Rule, Report], Answer] = answer_of
) -> tuple[list[Row], list[Row]]:
    """Ask every rule once, by `ask`; return the rows of `insights` and of `unchecked_rules`."""
    findings: list[tuple[str, str, Finding]] = []
    unchecked: list[Row] = []
    for about, rule in all_rules():
        answer, lacking = ask(rule, report)
        findings += [(rule.__name__, about, finding) for finding in answer]
        if lacking:
            text = " ".join((rule.__doc__ or "").split())
            values = (rule.__name__, about, text, lacking)
            unchecked.append(dict(zip(UNCHECKED, values, strict=True)))
    rows = [_row(*finding) for finding in with_what_lacks(findings)]
    rows.sort(key=lambda row: (_ORDER[str(row["severity"])], -float(str(row["saving_share"]))))
    return rows, unchecked


def all_rules() -> Iterator[tuple[str, Rule]]:
    """Return every rule, with what it is about."""
    for about, rules in RULES.items():
        for rule in rules:
            yield about, rule


def _row(rule: str, about: str, finding: Finding) -> Row:
    values = asdict(finding)
    total = values.pop("whole")
    del values["holds"]
    share = min(part(finding.saving, total), 1.0)
    if values["severity"] == "cost" and 0 < share < LITTLE:
        values["severity"] = "note"
        values["advice"] += " By itself that saves little."
    return {"rule": rule, "about": about, "unit": UNITS[finding.of], "saving_share": share} | values
