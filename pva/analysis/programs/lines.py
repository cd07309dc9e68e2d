"""Which lines of `program_tree` are shown, found and related: what a view of the tree asks."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from pva.array_types import Integers, Texts, Truths
from pva.lazy import pandas as pd


def open_lines(tree: pd.DataFrame, *, level: int = 0, turned: Collection[int] = ()) -> Truths:
    """Return which lines show their parts: those above a level, but for the programs turned over.

    `level` 1 shows control programs and functions alone; 0 is everything.
    """
    has_parts = tree["end"].to_numpy() > np.arange(len(tree)) + 1
    opened = has_parts & ((tree["depth"].to_numpy() < level - 1) | (level == 0))
    return opened ^ (has_parts & np.isin(tree["program"], list(turned)))


def visible_lines(tree: pd.DataFrame, opened: Truths) -> Truths:
    """Return which lines are seen: those in no line that is closed."""
    closed = np.flatnonzero(~opened)
    change = np.zeros(len(tree) + 1, dtype=np.int64)
    np.add.at(change, closed + 1, 1)
    np.add.at(change, tree["end"].to_numpy()[closed], -1)
    seen: Truths = np.cumsum(change[:-1]) == 0
    return seen


def closed_above(tree: pd.DataFrame, opened: Truths, line: int) -> Integers:
    """Return the programs to open so that a line is seen."""
    lines = np.arange(line)
    around = (tree["end"].to_numpy()[:line] > line) & ~opened[:line]
    return tree["program"].to_numpy()[lines[around]]


def found_lines(tree: pd.DataFrame, text: str) -> Integers:
    """List the lines whose name or type has a text in it, capitals or not."""
    if not text:
        return np.zeros(0, dtype=np.int64)
    words = tree["name"].astype(str) + "\n" + tree["type"].astype(str)
    return np.flatnonzero(words.str.contains(text, case=False, regex=False))


def following(lines: Integers, line: int, *, backwards: bool = False) -> int:
    """Return the next of some lines, or the one before, round the end; -1 of none."""
    if not len(lines):
        return -1
    if backwards:
        return int(lines[np.searchsorted(lines, line) - 1])
    place = np.searchsorted(lines, line, side="right")
    return int(lines[place % len(lines)])


def related_lines(tree: pd.DataFrame, owners: Texts, line: int) -> Truths:
    """Return which lines are of the same operation as one; `owners` are by program."""
    owner = owners[:-1][tree["program"].to_numpy()]
    if str(owner[line]).startswith("("):  # a kind of program, and no operation
        return np.zeros(len(tree), dtype=bool)
    same: Truths = (owner == owner[line]) & (np.arange(len(tree)) != line)
    return same


def line_place(visible: Truths, line: int) -> tuple[int, int]:
    """Return how many lines are visible, and at which of them a line is, -1 if it is not."""
    before = int(np.count_nonzero(visible[:line])) if line >= 0 and visible[line] else -1
    return int(np.count_nonzero(visible)), before
