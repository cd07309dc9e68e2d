"""Lines of the profile summary: columns, stars, colours. It knows nothing of reports.

The columns are those of the sample in the user guide, chapter "Profile summary output"; they are
counted from 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

NAME_GAP = 14
LONGEST_NAME = 160
BAR_WIDTH = 40
Row = TypeVar("Row", bound=tuple[Any, ...])

_RESET = "\x1b[0m"
_COLOURS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^\S.*$"), "\x1b[1;36m"),
    (re.compile(r"(?<=\d )\*+(?= )"), "\x1b[32m"),
    (re.compile(r"^ +[1-9][\d,]* tile\(s\) out of memory$"), "\x1b[1;31m"),
    (re.compile(r"^ +--- .* ---$"), "\x1b[2m"),
    (re.compile(r"^ +[^:]*:$"), "\x1b[1m"),
)


def is_terminal(stream: object) -> bool:
    """Return whether a stream ends on a terminal that knows colours."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) and os.environ.get("TERM") != "dumb"


def use_colours(option: bool | None, terminal: bool) -> bool:
    """Decide on colours: CLICOLOR_FORCE before CLICOLOR before the option before the terminal."""
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if os.environ.get("CLICOLOR") == "0":
        return False
    return terminal if option is None else option


def coloured(line: str) -> str:
    """Highlight one line by what it looks like: title, heading, bar, sync, lack of memory."""
    for pattern, code in _COLOURS:
        if pattern.search(line):
            return pattern.sub(rf"{code}\g<0>{_RESET}", line)
    return line


def printable(line: str) -> str:
    """Spell out control characters, so that a name in a report cannot steer the terminal."""
    if line.isprintable():
        return line
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in line
    )


class Block(tuple[str, ...]):
    """Several lines with their ends, printable already, with nothing to colour: their parts.

    Most of a long summary stands in such, and is copied no more than it must be.
    """


def texts(lines: Iterable[str | Block], *, colours: bool) -> Iterator[str]:
    """Write lines and blocks of them as they are to be printed, lines with their ends."""
    for line in lines:
        if isinstance(line, Block):
            yield "".join(line)
            continue
        line = printable(line).rstrip()
        yield f"{coloured(line) if colours else line}\n"


def left(indent: int, label: str, value: str, column: int) -> str:
    """Write a value that begins at a column, one space after a label that reaches further."""
    head = f"{'':{indent}}{label}:"
    return f"{head.ljust(column - 1)} {value}"


def right(indent: int, label: str, value: int, end: int, unit: str = "") -> str:
    """Write a count whose last digit stands in the column before `end`."""
    head = f"{'':{indent}}{label}:"
    return f"{head}{value:>{max(end - len(head), 0)},}{unit}"


def names(
    indent: int, rows: Sequence[tuple[str, int]], *, gap: int = NAME_GAP, unit: str = ""
) -> Iterator[str]:
    """Write names and counts, the counts `gap` wide after the longest name."""
    width = longest(name for name, _ in rows)
    for name, value in rows:
        yield f"{'':{indent}}{name:<{width}}{value:>{gap},}{unit}"


def descending(rows: Sequence[Row], column: int) -> list[Row]:
    """Sort rows that begin with a name, the largest number in a column first, equals by name."""
    return sorted(rows, key=lambda row: (-row[column], row[0]))


def longest(texts: Iterable[str]) -> int:
    """Return the width of a column of names."""
    return min(max(map(len, texts), default=0), LONGEST_NAME)


def vertex_lines(indent: int, rows: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    """Write vertex types with their instances and cycles."""
    width = longest(name for name, _, _ in rows)
    for name, instances, cycles in rows:
        bracket = f"({instances} instances)"
        yield f"{'':{indent}}{name:<{width}}{bracket:>23}:{cycles:>13,}"


def histogram(rows: Sequence[tuple[int, int, int]]) -> Iterator[str]:
    """Write a histogram of (low, high, tiles), one star for so many tiles that 40 are enough."""
    most = max((tiles for _, _, tiles in rows), default=0)
    tiles_per_star = max(-(-most // BAR_WIDTH), 1)
    digits = max([2, *(len(str(high)) for _, high, _ in rows)])
    head = "    Range (KB)".ljust(12 + digits)
    yield f"{head} {'Histogram (Excluding Gaps)':<{BAR_WIDTH}} Count (tiles)"
    for low, high, tiles in rows:
        stars = "*" * -(-tiles // tiles_per_star)
        yield f"{low:>9} - {high:>{digits}} {stars:<{BAR_WIDTH}}{tiles:>7,}"
