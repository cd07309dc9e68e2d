"""The program tree in words: its headline, its stages in order, what stands on a line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import dcc, html

from dashboard import address
from dashboard.address import Address
from dashboard.elements.components import Element, Frame
from dashboard.pages.headlines import counted
from pva import units
from pva.analysis.programs.headline import (
    SYNC,
    CompilationTotals,
    StageOrder,
    compilation_totals,
    longest_program,
    stage_order,
    stages_around,
    stages_inside,
    tree_size,
    widest_stages,
)
from pva.array_types import Texts
from pva.lazy import pandas as pd
from pva.plot.theme import SERIES, step_words

MAX_STAGES = 6  # of a sentence
NOTABLE = 0.04  # of the cycles: what a sentence or a key names
MAX_IN_BAR, MAX_IN_KEY = 120, 12
MAX_KINDS = 4
_HUES = [hue for hue in SERIES if hue not in ("#ccbb44", "#ddcc77")]  # they look like a sync


def line_words(lines: Frame, roles: Texts | None = None) -> pd.Series[str]:
    """Describe each line: its type in words, with how often, which function, which branch."""
    words = lines["type"].map(step_words)
    count, called = lines["count"], lines["function"]
    words = words.where(count < 0, words + " " + count.map("{:,}".format) + " times")
    words = words.where(called < 0, words + " function " + called.astype(str))
    sync = (lines["type"] == "Sync") & (lines["sync_type"] != "None")
    words = words.where(~sync, words + ", " + lines["sync_type"].str.lower())
    return words if roles is None else words.where(roles == "", words + " (" + roles + ")")


def program_link(state: Address, row: dict[str, Any], words: str) -> list[Element]:
    """Name a program beside the colour of its type; a click leads to its line."""
    line = Address(
        path="/programs",
        report=state.report,
        tiles=state.tiles,
        options=(("program", str(row["program"])),),
    )
    colour = {"background": f"var(--step-{row['type']}, var(--quiet))"}
    return [
        html.Span(className="program-tick inline", style=colour),
        dcc.Link([f"{words} ", html.Span(row["name"])], href=address.write(line)),
    ]


def written_sentence(tree: Frame, types: Frame) -> tuple[str, str]:
    """Return which line of what was written takes most, and what the compiler made of it all."""
    detail = _compiled_words(compilation_totals(tree, types))
    recorded = bool((tree["cycles"] >= 0).any())
    column = "cycles" if recorded else "estimated_cycles"
    most = longest_program(tree, column)
    if most is None:
        return "The report tells no cycles of the programs as written.", detail
    share = f" ({units.share(most['share'])} of all)" if recorded else " by estimate"
    subject = f"{step_words(most['type'])} {most['name']}".strip()
    duration = units.cycles_in_words(most[column])
    return f"Of what was written, {subject} takes longest: {duration}{share}.", detail


def _compiled_words(totals: CompilationTotals) -> str:
    """Return how many programs the compiler made of how many, of which kinds, and of its own."""
    kinds = [f"{step_words(kind)} {count:,}" for kind, count in totals.by_kind]
    kind_words = ", ".join(kinds[:MAX_KINDS]) + (", …" if len(kinds) > MAX_KINDS else "")
    became = f"{counted(totals.written, 'program')} as written became {totals.compiled:,}"
    return (
        f"{became} ({kind_words}); the compiler adds "
        f"{units.count(totals.added) if totals.added else 'none'} of its own."
    )


def stages_sentence(stages: Frame, *, recorded: bool) -> str:
    """Return what takes the time, and what it does, in order."""
    around = stages_around(stages)
    if not around:
        return "The report has no programs."
    root, body = around[0], around[-1]
    if not root["cycles"]:
        return _without_cycles([_stage(row) for row in stages_inside(stages)])
    total = units.cycles_in_words(root["cycles"])
    total = f"all {total}" if recorded else f"an estimated {total} for one execution"
    names = [row["name"] for row in around if row["name"]]
    subject = names[-1] if names else "The program"
    often = f", run {body['executions']:,} times," if body["executions"] > 1 else ""
    part = f"{units.share(body['share'])} of " if body["share"] < 0.9995 else ""
    head = f"{subject}{often} takes {part}{total}"
    order = _in_order(stage_order(stages, MAX_STAGES, NOTABLE))
    return f"{head}: {order}." if order else f"{head}."


def _without_cycles(names: list[str]) -> str:
    """Return the order of the stages of a report that tells no cycles."""
    tail = "" if len(names) <= MAX_STAGES else f" and {len(names) - MAX_STAGES:,} more"
    order = f" It does {', '.join(names[:MAX_STAGES])}{tail}, in this order." if names else ""
    return f"The report tells no cycles of the program.{order}"


def _in_order(order: StageOrder) -> str:
    """List the stages that take most, in the order in which they run."""
    if order.longest is not None and not order.rows:
        parts = f"{order.count:,} parts, the longest {_stage(order.longest)}"
        return f"{parts} with {units.share(order.longest['share'])}"
    texts = [f"{_stage(row)} {units.share(row['share'])}" for row in order.rows]
    if order.remainder:
        texts.append(f"{counted(order.remainder, 'other part')} {units.share(order.share)}")
    if order.syncs:
        texts.append(f"syncs between them {units.share(order.syncs)}")
    return ", ".join(texts)


def _stage(row: dict[str, Any]) -> str:
    name = str(row["name"])
    return step_words(row["type"]).lower() if name.startswith("(") else name


def more_words(tree: Frame) -> str:
    """Return how large the tree is, and which single program takes most."""
    totals = tree_size(tree)
    size = f"{counted(totals.programs, 'program')} in "
    size += counted(totals.control_programs, "control program")
    size += f" and {counted(totals.functions, 'function')}." if totals.functions else "."
    most = longest_program(tree, "cycles")
    if most is None:
        return size
    name = most["name"] or step_words(most["type"])
    return f"Longest step: {name}, {units.share(most['share'])} of the cycles. {size}"


def stage_shares(stages: Frame, state: Address) -> Element:
    """Draw the stages in order as one bar, each with its share of all cycles and a link."""
    rows = widest_stages(stages, MAX_IN_BAR)
    if len(rows) < 2:
        return None
    colours = {row["line"]: _colour(number, row) for number, row in enumerate(rows)}
    is_linked = len(rows) <= MAX_IN_KEY
    bar = [_bar_part(state, row, colours[row["line"]], linked=is_linked) for row in rows]
    key = [
        html.Li(
            [
                html.Span(className="swatch", style={"background": colours[row["line"]]}),
                dcc.Link(_stage(row), href=_to(state, row)),
                html.Span(units.share(row["share"]), className="key-value"),
            ]
        )
        for row in rows
        if is_linked
    ]
    return html.Div(
        [html.Div(bar, className="bar"), html.Ul(key, className="key")], className="stages"
    )


def _bar_part(state: Address, row: dict[str, Any], colour: str, *, linked: bool) -> Element:
    """Draw a part of the bar; many would be as many stops of the tab key, and are no links."""
    looks = {
        "className": "bar-part",
        "title": f"{_stage(row)}: {units.share(row['share'])} of all cycles",
        "style": {"width": f"{100 * row['width']:.4f}%", "background": colour},
    }
    return dcc.Link("", href=_to(state, row), **looks) if linked else html.Span(**looks)


def _colour(number: int, row: dict[str, Any]) -> str:
    return "var(--step-Sync)" if row["name"] == SYNC else _HUES[number % len(_HUES)]


def _to(state: Address, row: dict[str, Any]) -> str:
    options = dict(state.options) | {"program": str(row["program"])}
    return address.write(replace(state, path="/programs", options=tuple(sorted(options.items()))))
