"""What a program does, in which order, and which part takes the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis
from pva.analysis.programs.hierarchy import CONTROL, program_tree
from pva.analysis.table import Arrays, Columns, joined, rows_of
from pva.array_types import Integers

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 210  # of its analyses in the catalogue
AROUND, PART = "around", "part"
_WAITS = ("StreamCopyBegin", "StreamCopyEnd")  # the phases around the copy itself
_MOSTLY = 0.75  # of a program's cycles, in one of its parts: that part is what it does
_NOTABLE = 0.01  # of a program's cycles: a part with a name that is worth a line


@analysis(
    "role line program type name executions cycles:cycles share:fraction", line="number of the line"
)
def program_stages(report: Report) -> Columns:
    """Return what the program does, in which order, and which part takes the time.

    From the control program that took the most cycles down to where its time divides: the rows of
    `role` around are the programs on the way, the rows of `role` part what the last of them does,
    in order. Parts without a name are added up by type, such as `(Sync)`, at the place of the
    first. `line` is a row of `program_tree`, as are `executions` and `cycles`; without steps,
    `cycles` are those estimated, of one execution. The phases of a stream copy are one part.
    `share` is of the cycles of the control program. Raises NotRecordedError.
    """
    tree = program_tree(report).arrays
    recorded = bool((tree["cycles"] >= 0).any())
    cycles = tree["cycles" if recorded else "estimated_cycles"]
    lines = {
        "line": np.arange(len(cycles)),
        **{name: tree[name] for name in ("program", "type", "name", "executions")},
        "cycles": cycles,
    }
    control = np.flatnonzero((tree["parent"] < 0) & (tree["part"] == CONTROL))
    if not len(control):
        return _with_shares(rows_of(lines, control), rows_of(lines, control), 0)
    first = int(control[cycles[control].argmax()])
    around = _way_down(tree, cycles, first)
    parts = rows_of(lines, _below(tree, around[-1]))
    parts = _grouped(rows_of(parts, (parts["cycles"] > 0) | (parts["name"] != "")))
    return _with_shares(rows_of(lines, np.array(around)), parts, int(cycles[first]))


def _grouped(parts: Arrays) -> Arrays:
    """Add up the phases of each stream copy, and parts without a name by their type."""
    lines, types = parts["line"], parts["type"]
    waits = np.isin(types, _WAITS)
    # The phases of a copy stand at the place of the one that begins it.
    begins = np.maximum.accumulate(np.where(types == "StreamCopyBegin", lines, -1))
    is_copy = waits | (types == "StreamCopy")
    types = np.where(waits, "StreamCopy", types)
    unnamed = parts["name"] == ""
    names = np.where(unnamed, "(" + types + ")", parts["name"])
    keys = np.where(unnamed, -1, np.where(is_copy & (begins >= 0), begins, lines))
    pairs = zip(keys.tolist(), types.tolist(), names.tolist(), strict=True)
    number: dict[tuple[int, str, str], int] = {}
    group = np.array([number.setdefault(pair, len(number)) for pair in pairs], dtype=np.int64)
    _, first = np.unique(group, return_index=True)
    ran = np.where(waits, 0, parts["executions"])
    return {
        "line": lines[first],
        "program": parts["program"][first],
        "type": types[first],
        "name": names[first],
        "executions": summed(group, ran, len(first)),
        "cycles": summed(group, parts["cycles"], len(first)),
    }


def _with_shares(around: Arrays, parts: Arrays, total: int) -> Columns:
    roles = np.repeat(
        np.array([AROUND, PART], dtype=object), [len(x["line"]) for x in (around, parts)]
    )
    rows = joined((around, parts))
    return {"role": roles, **rows, "share": rows["cycles"] / max(total, 1)}


def _way_down(tree: Arrays, cycles: Integers, line: int) -> list[int]:
    """Follow the part that takes nearly all, calls into their functions, until several count."""
    functions = np.flatnonzero((tree["parent"] < 0) & (tree["part"] != CONTROL))
    line_of = dict(zip(tree["number"][functions].tolist(), functions.tolist(), strict=True))
    names, ends, called = (tree[name] for name in ("name", "end", "function"))
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


def _below(tree: Arrays, line: int) -> Integers:
    """List the lines of a program's own parts."""
    inside = tree["parent"][line + 1 : int(tree["end"][line])]
    return line + 1 + np.flatnonzero(inside == line)
