"""Rules about causes: which IPU or host function is waited for, which operation a run is long by.

Each takes a report and gives findings, none when there is nothing to say. Raises NotRecordedError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import labels, operations
from pva.analysis.host.delays import BETWEEN, host_delays
from pva.analysis.insight_rules.finding import RECORDED_RUNS, RUNS_AND_WAITS, Finding, part
from pva.analysis.waiting.causes import SYNC, critical_path, waits
from pva.analysis.waiting.stages import ipu_balance, layer_moves
from pva.lazy import pandas as pd
from pva.units import count, cycles_in_words, duration, listed, share, times

if TYPE_CHECKING:
    from pva.report import Report

WORTH_A_LOOK = 0.05  # of the cycles of the recorded runs
LARGE = 0.1  # of the critical path
IN_TURN = 1.25  # own cycles of all IPUs / those of the runs: below, hardly two work at once
NAMED = 3  # IPUs whose waits are written out


def bound_by_an_ipu(report: Report) -> list[Finding]:
    """Report the IPU that the others wait for, and layers that could move."""
    balance = ipu_balance(report).frame()
    total = _all_cycles(balance)
    own_cycles = balance["own_cycles"]
    if (
        len(balance) < 2
        or balance["waits"].mean() <= WORTH_A_LOOK
        or own_cycles.sum() < IN_TURN * total
    ):
        return []
    bound = balance.iloc[int(own_cycles.to_numpy().argmax())]
    waiting = balance[balance["ipu"] != bound["ipu"]].sort_values("ipu")
    moves = layer_moves(report).frame()
    saving = own_cycles.max() - own_cycles.mean()
    if len(moves):
        saving = moves["saving"].iloc[0]
    return [
        Finding(
            severity="cost",
            what=f"IPU {bound['ipu']:.0f} bounds the {_bounded(report)}: {_waiting(waiting)}",
            where=_meanwhile(report, int(bound["ipu"])),
            amount=float(np.rint(total - waiting["own_cycles"].mean())),
            of=RECORDED_RUNS,
            whole=total,
            advice=_move(moves.iloc[0] if len(moves) else None, int(bound["ipu"]), own_cycles),
            saving=float(np.rint(saving)),
            show="ipu_balance",
        )
    ]


def _all_cycles(balance: pd.DataFrame) -> float:
    """Return the cycles of the recorded runs."""
    first = balance.iloc[0]
    return float(first["own_cycles"] / max(1 - first["waits"], 1e-9))


def _bounded(report: Report) -> str:
    """Name what an IPU bounds: a pipeline, or the runs."""
    data = report.dataset
    stages = data.column("runs", "stages")
    return "pipeline" if int(stages.max(initial=-1)) > 1 else "runs"


def _waiting(waiting: pd.DataFrame) -> str:
    """Return how long IPUs wait, the first of many one by one."""
    is_summary = len(waiting) > NAMED
    if is_summary:
        mean = share(waiting["waits"].mean())
        return f"the {count(len(waiting))} others wait {mean} of the time on average"
    ipus = listed([f"{ipu:.0f}" for ipu in waiting["ipu"]])
    named, verb = ("IPUs", "wait") if len(waiting) > 1 else ("IPU", "waits")
    return f"{named} {ipus} {verb} {listed([share(part) for part in waiting['waits']])} of the time"


def _meanwhile(report: Report, ipu: int) -> str:
    """Name what an IPU does while the others wait for it."""
    frame = waits(report).frame()
    mine = frame[(frame["for_ipu"] == ipu) & (frame["ipu"] != ipu) & (frame["type"] != SYNC)]
    longest = mine.groupby("name")["cycles"].sum().sort_values(ascending=False, kind="stable")
    return f"longest for {longest.index[0]}" if len(longest) else ""


def _move(move: pd.Series | None, ipu: int, own_cycles: pd.Series) -> str:
    """Return what to move where, and how even the IPUs are then."""
    if move is None:
        even = cycles_in_words(own_cycles.mean())
        return (
            f"No layer at its ends is small enough to move: split its largest layer. With all IPUs "
            f"even, each works {even}."
        )
    names = move["first"] if move["layers"] == 1 else f"{move['first']} to {move['last']}"
    return (
        f"Move {names} to IPU {move['to_ipu']}: then no IPU works longer than "
        f"{cycles_in_words(move['longest'])}, instead of {cycles_in_words(own_cycles.max())} on "
        f"IPU {ipu}."
    )


def ipus_in_turn(report: Report) -> list[Finding]:
    """Report that hardly two IPUs work at the same time."""
    balance = ipu_balance(report).frame()
    total, own_cycles = _all_cycles(balance), balance["own_cycles"]
    if len(balance) < 2 or own_cycles.sum() >= IN_TURN * total:
        return []
    return [
        Finding(
            severity="cost",
            what=f"The {count(len(balance))} IPUs work in turns: each waits for the others "
            f"{share(balance['waits'].mean())} of the time",
            where=f"IPU {balance['ipu'].iloc[int(own_cycles.to_numpy().argmax())]} works longest, "
            f"{cycles_in_words(own_cycles.max())} of {cycles_in_words(total)}",
            amount=float(np.rint(total - own_cycles.mean())),
            of=RECORDED_RUNS,
            whole=total,
            advice="Pipeline them (enablePipelining, or simulate --repeat): each works on a batch "
            "of its own; the saving is that of a pipeline that is always full.",
            saving=float(np.rint(total - own_cycles.max())),
            show="ipu_balance",
        )
    ]


def on_the_critical_path(report: Report) -> list[Finding]:
    """Report the operation with the most cycles of the critical path."""
    path = critical_path(report).frame()
    total = int(path["cycles"].sum())
    steps = path[path["type"] != SYNC]
    owner = _operation_of(report, steps["name"])
    spent = steps.groupby(owner, sort=False)["cycles"].sum()
    if not len(spent) or spent.max() <= LARGE * total:
        return []
    worst = str(spent.idxmax())
    mine = steps[(owner == worst).to_numpy()]
    longest = mine.iloc[0]
    on = "" if path["ipu"].nunique() < 2 else f" on IPU {longest['ipu']}"
    return [
        Finding(
            severity="cost",
            what=f"{worst} is {share(part(spent.max(), total))} of the critical path",
            where=f"most in {longest['name']}{on}: {cycles_in_words(longest['cycles'])}, run "
            f"{times(longest['steps'])}",
            amount=float(spent.max()),
            of=RECORDED_RUNS,
            whole=total,
            advice="Shorten it first: what is not on the path makes the runs no shorter.",
            show="critical_path",
            name=str(longest["name"]),
        )
    ]


def delayed_by_host(report: Report) -> list[Finding]:
    """Report the function of the host that the device waits for, between runs or in callbacks."""
    delays = host_delays(report).frame()
    if not len(delays) or delays["share"].iloc[0] <= WORTH_A_LOOK:
        return []
    worst = delays.iloc[0]
    return [
        Finding(
            severity="cost",
            what=f"The device waits for {worst['function']} on the host "
            f"{share(worst['share'])} of the time",
            where=_delayed(worst),
            amount=float(worst["cycles"]),
            of=RUNS_AND_WAITS,
            whole=float(worst["cycles"] / worst["share"]),
            advice="Do it in a thread of its own while the device runs, or before the first run."
            if worst["where"] == BETWEEN
            else "Call it ahead (exchange.enablePrefetch), or hand it values that are ready.",
            saving=float(worst["cycles"]),
            show="host_delays",
            step=int(worst["step"]),
        )
    ]


def _delayed(worst: pd.Series) -> str:
    """Return where a function of the host delays the device, and how long at most at once."""
    total, longest = (duration(worst[name] / 1e9) for name in ("wait_ns", "longest_ns"))
    run = f"{'before' if worst['where'] == BETWEEN else 'in'} run {worst['run']}"
    run = f"{run}, {worst['name']}" if worst["name"] else run
    where = "between runs" if worst["where"] == BETWEEN else "in stream callbacks"
    copied = f", copied in step {worst['step']}" if worst["step"] >= 0 else ""
    most = "all of it" if worst["events"] == 1 else f"{longest} at once"
    return f"{total} {where}{copied}, {times(worst['events'])}; {most} {run}"


def _operation_of(report: Report, names: pd.Series) -> pd.Series:
    """Return the operation of programs that are known by their names."""
    owners = operations(report)
    program_names = labels(report, np.arange(len(owners)))
    return names.map(dict(zip(program_names.tolist(), owners.tolist(), strict=True)))
