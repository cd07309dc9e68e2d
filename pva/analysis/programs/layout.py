"""Programs in depth-first order, those of either stage of the compilation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.array_types import Integers, Values

if TYPE_CHECKING:
    from pva.report import Report

CONTROL, FUNCTION = "control", "function"
UNKNOWN = -1
Roots = tuple[npt.NDArray[np.object_], Integers, Integers]  # part, its number, its first program


@dataclass(frozen=True, slots=True)
class Tree:
    """The lines of the tree, as arrays; `levels` are the lines of each depth."""

    program: Integers
    parent: Integers
    depth: Integers
    end: Integers
    part: npt.NDArray[np.object_]
    number: Integers
    levels: tuple[Integers, ...]
    line_of: Integers  # by program, -1 for what no control program or function holds

    def columns(self) -> dict[str, Values]:
        """Return what a table says of the place of each line."""
        names = ("program", "parent", "depth", "end", "part", "number")
        return {name: getattr(self, name) for name in names}


def tree_of(report: Report) -> Tree:
    """Put the programs in depth-first order; raises NotRecordedError."""
    count = len(report.dataset.column("programs", "name"))
    edges = (report.dataset.column("program_children", name) for name in ("program", "child"))
    return laid_out(count, _roots(report, count), *edges)


def laid_out(count: int, outermost: Roots, above: Integers, below: Integers) -> Tree:
    """Put programs in depth-first order, by the pairs of one and one that lies in it."""
    parts, numbers, roots = outermost
    parent, offsets, children = _children(count, roots, above, below)
    levels = [roots]
    while len(levels[-1]):
        levels.append(_gathered(levels[-1], offsets, children))
    levels.pop()
    sizes = np.ones(count, dtype=np.int64)
    for level in reversed(levels[1:]):
        np.add.at(sizes, parent[level], sizes[level])
    line_of = np.full(count, UNKNOWN)
    for number, level in enumerate(levels):
        before = np.cumsum(sizes[level]) - sizes[level]
        if number:
            _, first, group = np.unique(parent[level], return_index=True, return_inverse=True)
            before += line_of[parent[level]] + 1 - before[first][group]
        line_of[level] = before
    placed = np.flatnonzero(line_of >= 0)
    program = placed[np.argsort(line_of[placed], kind="stable")]
    around = parent[program]
    root = np.repeat(np.arange(len(roots)), sizes[roots])
    depth = np.zeros(len(program), dtype=np.int64)
    for number, level in enumerate(levels):
        depth[line_of[level]] = number
    return Tree(
        program=program,
        parent=np.where(around >= 0, line_of[around], UNKNOWN) if len(around) else around,
        depth=depth,
        end=np.arange(len(program)) + sizes[program],
        part=parts[root],
        number=numbers[root],
        levels=tuple(line_of[level] for level in levels),
        line_of=line_of,
    )


def _roots(report: Report, count: int) -> Roots:
    """List control programs and functions, each program once; without them what has no parent."""
    data = report.dataset
    entries = [
        (part, number, int(program))
        for part in (CONTROL, FUNCTION)
        if data.has(f"{part}_programs")
        for number, program in enumerate(data.column(f"{part}_programs", "program").tolist())
    ]
    if not entries:
        inside = np.isin(np.arange(count), data.column("program_children", "child"))
        entries = [
            (CONTROL, number, row) for number, row in enumerate(np.flatnonzero(~inside).tolist())
        ]
    once = {row: (part, number) for part, number, row in reversed(entries) if 0 <= row < count}
    return roots_of(
        (part, number, row) for part, number, row in entries if once.get(row) == (part, number)
    )


def roots_of(entries: Iterable[tuple[str, int, int]]) -> Roots:
    """Return which parts there are, their numbers and their outermost programs."""
    listed = list(entries)
    parts, numbers, rows = zip(*listed, strict=True) if listed else ((), (), ())
    return (
        np.array(parts, dtype=object),
        np.array(numbers, dtype=np.int64),
        np.array(rows, dtype=np.int64),
    )


def _children(
    count: int, roots: Integers, above: Integers, below: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return the parent of each program, and the children of all, one program's after another's.

    A program that a file hangs up twice stays where it was first.
    """
    valid = (above >= 0) & (above < count) & (below >= 0) & (below < count)
    valid &= ~np.isin(below, roots)
    above, below = above[valid], below[valid]
    first = np.sort(np.unique(below, return_index=True)[1])
    above, below = above[first], below[first]
    parent = np.full(count, UNKNOWN)
    parent[below] = above
    order = np.argsort(above, kind="stable")
    offsets = np.searchsorted(above[order], np.arange(count + 1))
    return parent, offsets, below[order]


def _gathered(rows: Integers, offsets: Integers, children: Integers) -> Integers:
    """Return the children of each of some programs, in order."""
    counts = offsets[rows + 1] - offsets[rows]
    begins = np.repeat(offsets[rows] - (np.cumsum(counts) - counts), counts)
    return children[begins + np.arange(len(begins))]
