"""Tables and facts in the width of a terminal: long cells wrap, or each value has its own line."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

GAP = 2  # letters between columns
# Letters of a column whose cells wrap; where there is no room for them, rows are stacked.
LEAST = 14


class _Wrapper(textwrap.TextWrapper):
    """Wrap at blanks, and names of several parts also after what parts them."""

    wordsep_simple_re = re.compile(r"(\s+|(?<=[/,_:;])(?=[^\s/,_:;]))")


def terminal_width() -> int | None:
    """Return how many letters a line of the terminal holds.

    None of a pipe or file, and of the terminals of CI systems, which set CI: lines are whole there.
    """
    if not sys.stdout.isatty() or os.environ.get("CI"):
        return None
    return shutil.get_terminal_size().columns


def wrapped(text: str, width: int) -> list[str]:
    """Cut a text into lines."""
    if len(text) <= width:
        return [text]
    return _Wrapper(max(width, 1), break_on_hyphens=False).wrap(text) or [""]


def labelled(facts: Iterable[tuple[str, str]], label_width: int) -> Iterator[str]:
    """Write facts behind their labels; on a terminal the text wraps beside its label."""
    width = terminal_width()
    for label, text in facts:
        lines = [text] if width is None else wrapped(text, width - label_width)
        for first, line in zip_longest([label], lines, fillvalue=""):
            yield f"{first:<{label_width}}{line}".rstrip()


def laid_out(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[bool],
    rigid: Sequence[bool],
) -> Iterator[str]:
    """Write a table, on a terminal in its width; `rigid` are the columns that never wrap."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    terminal = terminal_width()
    room = None if terminal is None else terminal - GAP * (len(widths) - 1)
    if room is not None and sum(widths) > room:
        narrow = _narrowed(heads, widths, rigid, room)
        if narrow is None:
            yield from _stacked(heads, rows, rigid)
            return
        widths = narrow
    for texts in (heads, *rows):
        cells = [wrapped(text, width) for text, width in zip(texts, widths, strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            aligned = (
                text.rjust(width) if at_right else text.ljust(width)
                for text, width, at_right in zip(line, widths, right, strict=True)
            )
            yield (" " * GAP).join(aligned).rstrip()


def _narrowed(
    heads: Sequence[str], widths: Sequence[int], rigid: Sequence[bool], room: int
) -> list[int] | None:
    """Return narrower columns that fit the room, the widest cut first; None if there are none."""
    least = [
        width if fixed else min(width, max(LEAST, len(head)))
        for head, width, fixed in zip(heads, widths, rigid, strict=True)
    ]
    if sum(least) > room:
        return None
    for most in range(max(widths), 0, -1):
        narrow = [min(width, max(most, low)) for width, low in zip(widths, least, strict=True)]
        if sum(narrow) <= room:
            return narrow
    return least


def _stacked(
    heads: Sequence[str], rows: Sequence[Sequence[str]], rigid: Sequence[bool]
) -> Iterator[str]:
    """Write each value of a row on a line of its own; those that are empty have none."""
    column = max(map(len, heads)) + GAP
    for number, row in enumerate(rows):
        if number:
            yield ""
        for head, text, fixed in zip(heads, row, rigid, strict=True):
            if fixed and text:
                yield f"{head:<{column}}{text}"
            elif text:
                yield from labelled([(head, text)], column)
