"""What a program does, in which order, and which part takes the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.columns import analysis
from pva.analysis.programs.hierarchy import CONTROL, program_tree
from pva.array_types import Integers
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 210  # of its analyses in the catalogue
AROUND, PART = "around", "part"
_WAITS = ("StreamCopyBegin", "StreamCopyEnd")  # the phases around the copy itself
_MOSTLY = 0.75  # of a program's cycles, in one of its parts: that part is what it does
_NOTABLE = 0.01  # of a program's cycles: a part with a name that is worth a line


@analysis("role line program type name executions cycles:cycles share:fraction")
def program_stages(report: Report) -> pd.DataFrame:
    """Return what the program does, in which order, and which part takes the time.

    From the control program that took the most cycles down to where its time divides: the rows of
    `role` around are the programs on the way, the rows of `role` part what the last of them does,
    in order. Parts without a name are added up by type, such as `(Sync)`, at the place of the
    first. `line` is a row of `program_tree`, as are `executions` and `cycles`; without steps,
    `cycles` are those estimated, of one execution. The phases of a stream copy are one part.
    `share` is of the cycles of the control program. Raises NotRecordedError.
    """
    tree = program_tree(report).frame()
    recorded = bool((tree["cycles"] >= 0).any())
    tree["cycles"] = tree["cycles" if recorded else "estimated_cycles"]
    tree["line"] = np.arange(len(tree))
    columns = ["line", "program", "type", "name", "executions", "cycles"]
    control = tree[(tree["parent"] < 0) & (tree["part"] == CONTROL)]
    if not len(control):
        return _framed(tree[columns].head(0), tree[columns].head(0), 0)
    first = int(control["line"].to_numpy()[control["cycles"].to_numpy().argmax()])
    around = _way_down(tree, first)
    parts = tree.loc[_below(tree, around[-1]), columns]
    parts = parts[(parts["cycles"] > 0) | (parts["name"] != "")]
    begins = parts["line"].where(parts["type"] == "StreamCopyBegin").ffill()
    waits = parts["type"].isin(_WAITS)
    parts.loc[waits, "executions"] = 0
    parts["type"] = parts["type"].mask(waits, "StreamCopy")
    unnamed = parts["name"] == ""
    parts["name"] = parts["name"].where(~unnamed, "(" + parts["type"] + ")")
    first_lines = parts["line"].mask(parts["type"] == "StreamCopy", begins.fillna(parts["line"]))
    keys = first_lines.where(~unnamed, -1)
    grouped = parts.groupby([keys, "type", "name"], sort=False, as_index=False).agg(
        {"line": "first", "program": "first", "executions": "sum", "cycles": "sum"}
    )
    parts = grouped.sort_values("line")[columns]
    return _framed(tree.loc[around, columns], parts, int(tree["cycles"][first]))


def _framed(around: pd.DataFrame, parts: pd.DataFrame, total: int) -> pd.DataFrame:
    frame = pd.concat([around.assign(role=AROUND), parts.assign(role=PART)], ignore_index=True)
    frame["share"] = frame["cycles"] / max(total, 1)
    return frame[["role", "line", "program", "type", "name", "executions", "cycles", "share"]]


def _way_down(tree: pd.DataFrame, line: int) -> list[int]:
    """Follow the part that takes nearly all, calls into their functions, until several count."""
    functions = tree[(tree["parent"] < 0) & (tree["part"] != CONTROL)]
    line_of = dict(zip(functions["number"].tolist(), functions.index.tolist(), strict=True))
    cycles, names = tree["cycles"].to_numpy(), tree["name"].to_numpy()
    ends, called = tree["end"].to_numpy(), tree["function"].to_numpy()
    way = [line]
    while True:
        parts = _below(tree, way[-1])
        total = cycles[parts].sum()
        notable = parts[(names[parts] != "") & (cycles[parts] >= _NOTABLE * total)]
        if not len(parts) or len(notable) > 1:
            return way
        longest = int(parts[cycles[parts].argmax()])
        inside = line_of.get(int(called[longest]), longest)
        has_parts = ends[inside] > inside + 1
        if cycles[longest] < _MOSTLY * total or not has_parts or inside in way:
            return way
        way += [longest] if inside == longest else [longest, inside]


def _below(tree: pd.DataFrame, line: int) -> Integers:
    """List the lines of a program's own parts."""
    inside = tree["parent"].to_numpy()[line + 1 : int(tree["end"].iloc[line])]
    return line + 1 + np.flatnonzero(inside == line)
