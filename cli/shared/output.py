"""Rows as a table, as JSON or as CSV; text to a pipe whose reader may go away."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeGuard, TypeVar

import click

from cli.shared.fitting import laid_out, terminal_width
from pva import units
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.analysis.table import Table


class Record(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


Command = TypeVar("Command", bound=Callable[..., object])
Result: TypeAlias = "pd.DataFrame | Table | Record"  # of an analysis
PIPE_CLOSED = 141  # as shells have it: 128 + SIGPIPE
FORMATS = ("table", "json", "csv")
OBJECT = "object"  # what --json asks for
# Rows of a table unless told: about a screen. JSON and CSV are for programs and get all.
TABLE_ROWS = 40
_WIDEST_CELL = 72
_LONGEST_WRAPPED = 320  # letters of a cell on a terminal, where it wraps
RECORD_COLUMNS = ("field", "value")  # of a dataclass: a value is written as its field is called
_SHARES = ("share", "balance")
_SHARES_OF_TIME = (
    "compute", "exchange", "host_exchange", "waiting", "parallel_efficiency",
    "bubble", "global_exchange", "host", "sync",
)  # fmt: skip
_NANOSECONDS = "_ns"
_SECONDS = ("latency",)  # and what is called `..._seconds`
_DIGITS = 1e6  # numbers from here on are written without decimals
_NAMES_BY_NUMBER = frozenset({"pid", "tid"})
_CHANGE = "change"
# Columns of bytes of code, which are -1 where it was not counted.
CODE = frozenset({"code", "control_code", "exchange_code", "vertex_code", "code_bytes"})
COMMANDS = frozenset({"try_it", "command"})  # columns that are copied: never cut, never wrapped
_BATCH = 2000
_BUFFER = 1 << 16  # characters
_LINE_END = "\r\n"


class FormChoice(click.Choice[str]):
    """The forms of --format; --json sets the same parameter to OBJECT."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Take one of the choices, or OBJECT."""
        return OBJECT if value == OBJECT else super().convert(value, param, ctx)


_OBJECT_HELP = "Write one JSON object: command, of, and what the command found."
_format_option = click.option(
    "--format", "form", type=FormChoice(FORMATS), default="table", help="How to write the rows."
)
object_option = click.option("--json", "form", flag_value=OBJECT, help=_OBJECT_HELP)
limit_option = click.option(
    "--limit",
    type=click.IntRange(0, sys.maxsize),
    help="Rows at most; 0 for all.  [default: 40 in a table]",
)


def format_option(function: Command) -> Command:
    """Add --format and --json, which both set `form`."""
    return _format_option(object_option(function))


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns and rows; `count` is how many there are."""

    columns: tuple[str, ...]
    rows: Iterable[Sequence[object]]
    count: int


def of_frame(frame: pd.DataFrame | Table) -> Rows:
    """Take the rows of a DataFrame, its index too when that has a name, or of a table."""
    from pva.analysis.table import Table

    if isinstance(frame, Table):
        values = [_plain(column.tolist()) for column in frame.arrays.values()]
        return Rows(tuple(frame.arrays), zip(*values, strict=True), len(frame))
    if frame.index.name:
        frame = frame.reset_index()
    columns = [_values(frame[name]) for name in frame.columns]
    return Rows(tuple(frame.columns), zip(*columns, strict=True), len(frame))


def _values(column: pd.Series) -> list[object]:
    """Return the values of a column; what is missing, whatever the type, is not a number."""
    if column.hasnans:
        column = column.astype(object).where(column.notna(), math.nan)
    return column.tolist()


def _plain(values: list[object]) -> list[object]:
    """Return values of which those that are missing are no number."""
    return [math.nan if value is None else value for value in values] if None in values else values


def of_record(record: Record) -> Rows:
    """Take the fields of a dataclass as rows `field`, `value`; nested ones with a dotted name."""
    rows = list(_flat("", dataclasses.asdict(record)))
    return Rows(RECORD_COLUMNS, rows, len(rows))


def _flat(prefix: str, values: dict[str, object]) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def write_object(command: str, of: object, **fields: object) -> None:
    """Write the one JSON object of --json: the command, what it was given, what it found."""
    write([_json({"command": command, "of": of, **fields})])


def write_json(value: object) -> None:
    """Write one value as JSON."""
    write([_json(value)])


def write_rows_object(
    command: str,
    of: object,
    rows: Rows,
    limit: int | None = None,
    units: Mapping[str, str] | None = None,
    **fields: object,
) -> None:
    """Write rows as the object of --json: columns with their units, how many rows, the rows."""
    named = [{"name": name, "unit": (units or {}).get(name, "")} for name in rows.columns]
    shown = islice(rows.rows, limit) if limit else rows.rows
    records = [dict(zip(rows.columns, row, strict=True)) for row in shown]
    write_object(command, of, **fields, columns=named, count=rows.count, rows=records)


def write_result(result: Result, form: str, limit: int | None = None) -> None:
    """Write what an analysis gave: a DataFrame or a dataclass."""
    if dataclasses.is_dataclass(result):
        _write_record(result, form)
    else:
        write_rows(of_frame(result), form, limit)


def plain_result(result: Result) -> object:
    """Return what an analysis gave as plain values: an object, or a list of one object a row."""
    if dataclasses.is_dataclass(result):
        return dataclasses.asdict(result)
    rows = of_frame(result)
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]


def _write_record(record: Record, form: str) -> None:
    if form == "json":
        write([_json(dataclasses.asdict(record))])
    else:
        write_rows(of_record(record), form, 0)


def write_rows(rows: Rows, form: str = "table", limit: int | None = None) -> None:
    """Write rows in one of FORMATS; a table ends with how many rows were left out."""
    most = limit if limit is not None else TABLE_ROWS if form == "table" else 0
    shown = islice(rows.rows, most) if most else iter(rows.rows)
    left_out = max(rows.count - most, 0) if most else 0
    if form == "json":
        write(_json_lines(rows.columns, shown))
    elif form == "csv":
        texts = _csv_lines(rows.columns, shown)
        write(map(printable, texts) if sys.stdout.isatty() else texts)
    else:
        lines = list(table_lines(rows.columns, list(shown)))
        notes = [f"... {left_out:,} more rows; --limit 0 shows all"] if left_out else []
        write_paged([*lines, *notes])


def write_paged(lines: Sequence[str]) -> None:
    """Write lines, on a terminal that they are too wide or too long for through its pager.

    The terminals of CI systems, which set CI, have nobody to leave a pager.
    """
    if not sys.stdout.isatty() or os.environ.get("CI") or _fits(lines):
        write(lines)
        return
    # For `less`: do not wrap, keep colours, leave the text on the screen.
    os.environ.setdefault("LESS", "-SRX")
    click.echo_via_pager("\n".join(lines))


def _fits(lines: Sequence[str]) -> bool:
    size = shutil.get_terminal_size()
    return len(lines) < size.lines and max(map(len, lines), default=0) <= size.columns


def write(lines: Iterable[str], *, colours: bool | None = None) -> None:
    """Write lines to stdout; a reader that goes away ends the command without a word."""
    lines = iter(lines)
    with ended_by_reader():
        while batch := list(islice(lines, _BATCH)):
            click.echo("\n".join(batch), color=colours)


def write_texts(texts: Iterable[str]) -> None:
    """Write texts to stdout as they are, the first at once, the others as they come."""
    pending: list[str] = []
    size = most = 0
    with ended_by_reader():
        for text in texts:
            pending.append(text)
            size += len(text)
            if size > most:
                click.echo("".join(pending), nl=False, color=True)
                pending, size, most = [], 0, _BUFFER
        click.echo("".join(pending), nl=False, color=True)


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout, as `write` does lines."""
    with ended_by_reader():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@contextmanager
def ended_by_reader() -> Iterator[None]:
    """End the process without a word when the reader of its output goes away."""
    try:
        yield
    except BrokenPipeError:
        # What is still in the buffer must not be written again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE_CLOSED)


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int] = ()
) -> Iterator[str]:
    """Write a table: numbers to the right with thousands commas, shares as percentages.

    `right` are further columns that go to the right. A terminal that is too narrow gets the cells
    wrapped, or a line for each value.
    """
    if tuple(columns) == RECORD_COLUMNS:
        cells = [[str(name), _cell(value, str(name))] for name, value in rows]
        right = (1,)
    else:
        cells = [[_cell(value, name) for value, name in zip(row, columns, strict=True)]
                 for row in rows]  # fmt: skip
    heads = [printable(name.removesuffix(_NANOSECONDS)) for name in columns]
    numeric = [bool(rows) and all(_is_number(row[at]) for row in rows) for at in range(len(heads))]
    at_right = [number or at in right for at, number in enumerate(numeric)]
    rigid = [number or name in COMMANDS for number, name in zip(numeric, columns, strict=True)]
    yield from laid_out(heads, cells, at_right, rigid)
    if not rows:
        yield "(no rows)"


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object, column: str) -> str:
    if isinstance(value, float) and math.isnan(value):
        return ""
    if _is_number(value) and column.endswith(_NANOSECONDS):
        return units.duration(value / 1e9)
    if isinstance(value, float) and (f"_{column}".endswith("_seconds") or column in _SECONDS):
        return units.duration(value)
    if isinstance(value, float):
        name = column.partition(".")[0].removesuffix("s")
        if name.endswith(_SHARES) or name in _SHARES_OF_TIME:
            return units.share(value)
        return f"{value:,.6g}" if abs(value) < _DIGITS else f"{value:,.0f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == -1 and column in CODE:
        return "–"
    if isinstance(value, int) and column == _CHANGE:
        return signed(value)
    if isinstance(value, int):
        return str(value) if column in _NAMES_BY_NUMBER else f"{value:,}"
    text = printable(str(value))
    if column in COMMANDS:
        return text
    widest = _WIDEST_CELL if terminal_width() is None else _LONGEST_WRAPPED
    return text if len(text) <= widest else text[: widest - 1] + "…"


def signed(number: float) -> str:
    """Write a change: +1,234, -5 or 0."""
    return f"{number:+,.0f}" if number else "0"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write how many there are of something: `1 run`, `11 runs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or f'{noun}s'}"


def printable(text: str) -> str:
    """Spell out control characters, so that a name in a report cannot steer the terminal."""
    if text.isprintable():
        return text
    from pva.summary import printable as spelt_out

    return spelt_out(text)


def _json_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    head = "["
    for row in rows:
        yield head + _json(dict(zip(columns, row, strict=True)))
        head = ","
    yield "[]" if head == "[" else "]"


def _json(value: object) -> str:
    import json

    shown = plain(value)
    text = json.dumps(shown, ensure_ascii=False, allow_nan=False, default=_listed)
    # What could steer a terminal is written in escapes: the value is the same.
    return text if text.isprintable() else json.dumps(shown, allow_nan=False, default=_listed)


def _listed(value: object) -> object:
    """Write what JSON has no type for: an array as a list, a date as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def plain(value: object) -> object:
    """Make a value JSON can hold: what is not a number becomes null."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _csv_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    import csv
    import io

    for row in chain([columns], rows):
        line = io.StringIO()
        # Python 3.11 quotes only those line ends that the terminator holds.
        csv.writer(line, lineterminator=_LINE_END).writerow(
            ["" if isinstance(value, float) and math.isnan(value) else value for value in row]
        )
        yield line.getvalue().removesuffix(_LINE_END)
