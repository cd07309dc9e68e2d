"""The program tree in words: its headline, its stages in order, what stands on a line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dash import dcc, html

from dashboard import address
from dashboard.address import Address
from dashboard.components import Element, Frame
from dashboard.pages.headlines import counted
from pva import units
from pva.analysis.programs.outline import AROUND, PART
from pva.plot.theme import SERIES, step_words

MAX_STAGES = 6  # of a sentence
NOTABLE = 0.04  # of the cycles: what a sentence or a key names
MAX_IN_BAR, MAX_IN_KEY = 120, 12
MAX_KINDS = 4
_SYNC = "(Sync)"
_HUES = [hue for hue in SERIES if hue not in ("#ccbb44", "#ddcc77")]  # they look like a sync


def line_words(lines: Frame, roles: Any = None) -> Any:
    """Find what each line does: its type in words, with how often, which function, which branch."""
    words = lines["type"].map(step_words)
    count, called = lines["count"], lines["function"]
    words = words.where(count < 0, words + " " + count.map("{:,}".format) + " times")
    words = words.where(called < 0, words + " function " + called.astype(str))
    sync = (lines["type"] == "Sync") & (lines["sync_type"] != "None")
    words = words.where(~sync, words + ", " + lines["sync_type"].str.lower())
    return words if roles is None else words.where(roles == "", words + " (" + roles + ")")


def program_link(state: Address, row: dict[Any, Any], words: str) -> list[Element]:
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
    detail = _compiled_words(tree, types)
    column = "cycles" if bool((tree["cycles"] >= 0).any()) else "estimated_cycles"
    leaves = tree[(tree["end"] == tree.index + 1) & (tree["function"] < 0)]
    leaves = leaves[leaves[column] > 0]
    if not len(leaves):
        return "The report tells no cycles of the programs as written.", detail
    most = leaves.loc[leaves[column].idxmax()]
    recorded = column == "cycles"
    share = f" ({units.share(most['share'])} of all)" if recorded else " by estimate"
    subject = f"{step_words(most['type'])} {most['name']}".strip()
    duration = units.cycles_in_words(most[column])
    return f"Of what was written, {subject} takes longest: {duration}{share}.", detail


def _compiled_words(tree: Frame, types: Frame) -> str:
    """Return how many programs the compiler made of how many, of which kinds, and of its own."""
    user_types = types[types["written"] != ""]
    kinds = user_types.groupby("compiled", sort=False)["programs"].sum()
    kinds = kinds.sort_values(ascending=False, kind="stable")
    named = [f"{step_words(kind)} {count:,}" for kind, count in kinds.items()]
    kind_words = ", ".join(named[:MAX_KINDS]) + (", …" if len(named) > MAX_KINDS else "")
    additions = int(types["programs"].sum() - user_types["programs"].sum())
    became = f"{counted(len(tree), 'program')} as written became {user_types['programs'].sum():,}"
    return (
        f"{became} ({kind_words}); the compiler adds "
        f"{units.count(additions) if additions else 'none'} of its own."
    )


def stages_sentence(stages: Frame, *, recorded: bool) -> str:
    """Return what takes the time, and what it does, in order."""
    around, parts = stages[stages["role"] == AROUND], stages[stages["role"] == PART]
    if not len(around):
        return "The report has no programs."
    root, body = around.iloc[0], around.iloc[-1]
    if not root["cycles"]:
        names = [_stage(row) for row in parts.head(MAX_STAGES).to_dict("records")]
        tail = "" if len(parts) <= MAX_STAGES else f" and {len(parts) - MAX_STAGES:,} more"
        order = f" It does {', '.join(names)}{tail}, in this order." if names else ""
        return f"The report tells no cycles of the program.{order}"
    total = units.cycles_in_words(root["cycles"])
    total = f"all {total}" if recorded else f"an estimated {total} for one execution"
    named = around[around["name"] != ""]
    subject = named.iloc[-1]["name"] if len(named) else "The program"
    often = f", run {body['executions']:,} times," if body["executions"] > 1 else ""
    part = f"{units.share(body['share'])} of " if body["share"] < 0.9995 else ""
    head = f"{subject}{often} takes {part}{total}"
    order = _in_order(parts)
    return f"{head}: {order}." if order else f"{head}."


def _in_order(parts: Frame) -> str:
    """List the stages that take most, in the order in which they run."""
    named = parts[parts["name"] != _SYNC]
    named = named[named["share"] >= 0.0005]
    candidates = named if len(named) <= MAX_STAGES else named[named["share"] >= NOTABLE]
    most = candidates.nlargest(MAX_STAGES, "cycles").sort_values("line")
    if len(named) and not len(most):
        longest = named.loc[named["cycles"].idxmax()].to_dict()
        parts = f"{len(named):,} parts, the longest {_stage(longest)}"
        return f"{parts} with {units.share(longest['share'])}"
    texts = [f"{_stage(row)} {units.share(row['share'])}" for row in most.to_dict("records")]
    remainder = len(named) - len(most)
    if remainder:
        share = named["share"].sum() - most["share"].sum()
        texts.append(f"{counted(remainder, 'other part')} {units.share(max(share, 0))}")
    syncs = parts[parts["name"] == _SYNC]["share"].sum()
    if syncs >= 0.0005:
        texts.append(f"syncs between them {units.share(syncs)}")
    return ", ".join(texts)


def _stage(row: dict[str, Any]) -> str:
    name = str(row["name"])
    return step_words(row["type"]).lower() if name.startswith("(") else name


def more_words(tree: Frame) -> str:
    """Return how large the tree is, and which single program takes most."""
    roots = tree[tree["parent"] < 0]
    functions = int((roots["part"] == "function").sum())
    size = (
        f"{counted(len(tree), 'program')} in {counted(len(roots) - functions, 'control program')}"
    )
    size += f" and {counted(functions, 'function')}." if functions else "."
    leaves = tree[(tree["end"] == tree.index + 1) & (tree["function"] < 0)]
    leaves = leaves[leaves["cycles"] > 0]
    if not len(leaves):
        return size
    most = leaves.loc[leaves["cycles"].idxmax()]
    name = most["name"] or step_words(most["type"])
    return f"Longest step: {name}, {units.share(most['share'])} of the cycles. {size}"


def stage_shares(stages: Frame, state: Address) -> Element:
    """Draw the stages in order as one bar, each with its share of all cycles and a link."""
    parts = stages[(stages["role"] == PART) & (stages["cycles"] > 0)]
    most = parts.nlargest(MAX_IN_BAR, "cycles").sort_values("line")
    if len(most) < 2:
        return None
    total = float(parts["cycles"].sum())
    rows = most.to_dict("records")
    colours = {row["line"]: _colour(number, row) for number, row in enumerate(rows)}
    is_linked = len(rows) <= MAX_IN_KEY
    bar = [_bar_part(state, row, colours[row["line"]], total, linked=is_linked) for row in rows]
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


def _bar_part(
    state: Address, row: dict[str, Any], colour: str, total: float, *, linked: bool
) -> Element:
    """Draw a part of the bar; many would be as many stops of the tab key, and are no links."""
    looks = {
        "className": "bar-part",
        "title": f"{_stage(row)}: {units.share(row['share'])} of all cycles",
        "style": {"width": f"{100 * row['cycles'] / total:.4f}%", "background": colour},
    }
    return dcc.Link("", href=_to(state, row), **looks) if linked else html.Span(**looks)


def _colour(number: int, row: dict[str, Any]) -> str:
    return "var(--step-Sync)" if row["name"] == _SYNC else _HUES[number % len(_HUES)]


def _to(state: Address, row: dict[str, Any]) -> str:
    options = dict(state.options) | {"program": str(row["program"])}
    return address.write(replace(state, path="/programs", options=tuple(sorted(options.items()))))
