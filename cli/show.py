"""`tilescope show TABLE REPORT`: any analysis, and any table of `report.frames` or `run.frames`."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from cli.descriptions.run_info import is_run
from cli.shared.declared import Declaration
from cli.shared.faults import Command, Group
from cli.shared.fitting import terminal_width
from cli.shared.output import (
    CODE,
    OBJECT,
    Result,
    Rows,
    format_option,
    printable,
    write_object,
    write_paged,
    write_rows,
)
from cli.shared.selection import OPTIONS, Selection, write_selected
from cli.shared.source import name_problems, open_report, open_run, open_trace
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.many.run import Run
    from pva.trace import Trace

_HELP_WIDTH, _LEAST_MEANING = 76, 24  # click indents by two, and leaves two free at the right
EXAMPLES = """
\b
Examples:
  tilescope show                                           every table and its columns
  tilescope show fullest_tiles run/                        which tiles are near the limit?
  tilescope show cycles_by_layer run/ --where 'share > 5 %'
  tilescope show live_variables run/ --step 12 --tile 3 --sort bytes
  tilescope show table.steps run/ --where 'type = DoExchange' --format csv > exchanges.csv
  tilescope show memory_by_tile run/ --format parquet > tiles.parquet
  tilescope show stragglers run/                           of many instances, which is late?
"""
ROW = "row"  # the number that other tables refer to, as in SQL
INDENT = " " * 4  # of what a table means and of its columns
TABLE = "table."  # before the name of a table that an analysis has, too


class Shown(Group):
    """The analyses and the tables as commands, made when they are asked for."""

    member = "table or analysis"
    lists = "tilescope show"

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name every analysis; `resolve_command` and the list without arguments have the tables."""
        from pva.analysis import CATALOGUE

        return list(CATALOGUE)

    def known_names(self, ctx: click.Context) -> list[str]:
        """Name every analysis and every table."""
        return [name for name, *_ in entries()]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete options, analyses and tables."""
        listed = self.list_commands(ctx)
        tables = [
            CompletionItem(name)
            for name in self.known_names(ctx)
            if name.startswith(incomplete) and name not in listed
        ]
        return [*super().shell_complete(ctx, incomplete), *tables]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of an analysis, or of a table."""
        from pva.analysis import CATALOGUE
        from pva.frames import NAMES

        if cmd_name in CATALOGUE:
            return _of_analysis(cmd_name, CATALOGUE[cmd_name])
        table = cmd_name.removeprefix(TABLE)
        return _of_table(cmd_name, table) if table in NAMES else None


def entries() -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """List what can be shown: name, report or trace, one sentence, units by column."""
    from pva import schema
    from pva.analysis import CATALOGUE
    from pva.analysis.columns import COLUMNS

    for name, analysis in CATALOGUE.items():
        yield name, _subject(analysis), _first_sentence(analysis), COLUMNS.get(name, {})
    for table in schema.TABLES:
        units = {ROW: ""} | {column.name: column.unit for column in table.columns}
        yield _table_name(table.name), "report", f"{_capital(table.meaning)}.", units
    for array in schema.ARRAYS:
        units = dict.fromkeys(array.index, "") | {array.value_column: array.unit}
        yield _table_name(array.name), "report", f"{_capital(array.meaning)}.", units


def _table_name(name: str) -> str:
    from pva.analysis import CATALOGUE

    return f"{TABLE}{name}" if name in CATALOGUE else name


def _subject(analysis: Callable[..., object]) -> str:
    return next(iter(inspect.signature(analysis).parameters))


def _first_sentence(analysis: Callable[..., object]) -> str:
    paragraph = (inspect.getdoc(analysis) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _of_analysis(name: str, analysis: Callable[..., Result]) -> click.Command:
    subject = _subject(analysis)

    def ask(path: str, options: dict[str, object]) -> tuple[Result, str]:
        keywords = {option: value for option, value in options.items() if value is not None}
        opened = _OPEN[subject](path) if subject in _OPEN else open_report(path)
        result = analysis(opened, **keywords)
        name_problems(opened)
        return result, _note(opened, _units(name))

    text = f"{inspect.getdoc(analysis)}{_columns_text(name)}"
    return _command(name, subject, ask, text, _parameters(analysis))


def _of_table(name: str, table: str) -> click.Command:
    def ask(path: str, options: dict[str, object]) -> tuple[pd.DataFrame, str]:
        from pva import schema
        from pva.frames import frame_of

        if is_run(Path(path)):
            run = open_run(path)
            frame = run.frame(table)
            name_problems(run)
            return frame, ""
        frame = frame_of(open_report(path).dataset, table, copy=False)
        if table in schema.TABLE:
            frame.insert(0, ROW, range(len(frame)))
        return frame, ""

    sentence = next(text for entry, _, text, _ in entries() if entry == _table_name(table))
    return _command(name, "report", ask, f"{sentence}{_columns_text(_table_name(table))}", [])


_OPEN: dict[str, Callable[[str], Trace | Run]] = {"trace": open_trace, "run": open_run}


def _note(opened: Any, units: dict[str, str]) -> str:
    """Return how code is counted, below a table that has it, where it was not."""
    if not (CODE | {"code_counted"}) & set(units):
        return ""
    from pva.analysis.memory.totals import COUNT_CODE, counts_code

    return "" if counts_code(opened) else f"code was not counted; {COUNT_CODE}"


def _columns_text(name: str) -> str:
    """Write for each column its unit and what it means, in lines that fit into 80 columns."""
    heads = _with_units(_units(name))
    indent = " " * (max(map(len, heads), default=0) + 4)
    width = max(_HELP_WIDTH, len(indent) + _LEAST_MEANING)
    lines = [
        textwrap.fill(meaning, width, initial_indent=f"  {head}".ljust(len(indent)),
                      subsequent_indent=indent)
        for head, meaning in zip(heads, _meanings(name), strict=True)
    ]  # fmt: skip
    return "\n".join(["\n\n\b\nColumns:", *lines]) if lines else ""


def _meanings(name: str) -> list[str]:
    """Return what each column means, of an analysis or of a table under either of its names."""
    from pva import schema
    from pva.analysis.columns import DECLARED

    table = name.removeprefix(TABLE)
    if name in DECLARED:
        return [DECLARED[name].meaning(column) for column in DECLARED[name].units]
    if table in schema.TABLE:
        return ["number of the row", *(column.meaning for column in schema.TABLE[table].columns)]
    array = schema.ARRAY[table]
    return [*(f"index: {index}" for index in array.index), array.meaning]


def _units(name: str) -> dict[str, str]:
    """Return the units of the columns of an analysis, or of a table under either of its names."""
    units_by_entry = {entry: units for entry, _, _, units in entries()}
    return units_by_entry.get(name) or units_by_entry.get(name.removeprefix(TABLE), {})


def _with_units(units: dict[str, str]) -> list[str]:
    return [f"{column} ({unit})" if unit else column for column, unit in units.items()]


def _command(
    name: str,
    subject: str,
    ask: Callable[[str, dict[str, object]], tuple[Result, str]],
    text: str,
    parameters: list[click.Parameter],
) -> click.Command:
    def run(path: str, **options: Any) -> None:
        names = [field.name for field in dataclasses.fields(Selection)]
        selection = Selection(**{key: options.pop(key) for key in names})
        units = _units(name)
        result, note = ask(path, options)
        write_selected(name, path, result, units, selection, note)

    argument = click.Argument(["path"], metavar=subject.upper(), type=click.Path())
    command = Command(name, callback=run, params=[argument, *parameters], help=text)
    for option in OPTIONS:
        command = option(command)
    return command


def _parameters(analysis: Callable[..., object]) -> list[click.Parameter]:
    """Make an option of each keyword of an analysis: a tile, a step, an IPU, a run."""
    keywords = [
        parameter
        for parameter in inspect.signature(analysis).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    return [_parameter(keyword) for keyword in keywords]


def _parameter(keyword: inspect.Parameter) -> click.Parameter:
    # A default of None, given to click, would count as a value of a required option.
    default = {} if keyword.default in (inspect.Parameter.empty, None, ()) else {
        "default": keyword.default, "show_default": keyword.default != "",
    }  # fmt: skip
    return click.Option(
        [f"--{keyword.name.replace('_', '-')}"],
        type=click.STRING if isinstance(keyword.default, str) else click.IntRange(min=0),
        required=keyword.default is inspect.Parameter.empty,
        multiple=keyword.default == (),
        help=_HELP[keyword.name],
        **default,
    )


_HELP = {
    "tile": "Only this tile.",
    "ipu": "Only this IPU.",
    "tiles": "A tile to look at; once for each.",
    "breakdown": "none, region, category or liveness.",
    "per": "tile or ipu.",
    "order": "software or physical.",
    "gaps": "included or excluded.",
    "category": "Only the bytes of this category, as in `memory_by_category`.",
    "replica": "Only the tiles of this replica.",
    "steps": "A program step, counted from 0 as in `liveness_curve`; once for each.",
    "variables": "The row of a variable, as in `largest_variables`; once for each.",
    "step": "A step, counted from 0: of `liveness_curve` for memory, of `steps` for cycles.",
    "run": "Only this run, counted from 0.",
    "runs": "steady (without runs of set-up) or all.",
    "variable": "The row of a variable, as in `largest_variables`.",
    "program": "The row of a program, as in `code_by_program`.",
    "compute_set": "Only this compute set.",
    "count": "How many.",
    "groups": "At most this many groups of tiles, at least one for each IPU.",
    "kind": "internal or between IPUs.",
    "exchange": "The row of an exchange of the kind, as in `largest_exchanges`.",
    "rows": "At most this many groups of tiles.",
    "columns": "At most this many program steps.",
    "first_step": "From this program step on.",
    "last_step": "Up to this program step.",
    "begin": "From this cycle on.",
    "end": "Up to this cycle.",
    "operation": "An operation of the layer, as in `operation_costs`; else what costs most.",
    "by": "module: the modules of PyTorch as a tree, each with all that is within.",
    "layer": "A software layer, as in `software_layers`.",
    "stage": "compiled or written.",
    "label": "Events of this label.",
    "model": "Only requests of this model.",
    "delay": "Delays of the batcher to try.",
    "preferred": "Preferred sizes to try, as none,8,8+32.",
    "instances": "Numbers of instances to try.",
    "max_batch": "Rows of a batch at most, where the trace does not tell.",
    "compiled_batch": "Rows of a compiled batch, where the trace does not tell.",
    "batch_time": "Time of a compiled batch, as 400us.",
}


@click.command(
    cls=Shown, epilog=EXAMPLES, invoke_without_command=True,
    subcommand_metavar="[NAME REPORT [OPTIONS]]",
)  # fmt: skip
@format_option
@click.pass_context
def show(ctx: click.Context, form: str) -> None:
    """Print an analysis or a table of a report; alone, list them all with columns and units.

    Tables have the names of report.frames; one that is also an analysis is table.NAME. Rows are
    chosen by --where, ordered by --sort and written by --format, as `tilescope show NAME --help`
    tells, which also has the options of an analysis, such as --tile or --step.
    """
    if ctx.invoked_subcommand is not None:
        return
    if form == "table":
        write_paged(list(_listed()))
        return
    columns = ("name", "of", "meaning", "column", "unit")
    rows = [
        (name, subject, meaning, column, unit)
        for name, subject, meaning, units in entries()
        for column, unit in (units or {"": ""}).items()
    ]
    if form == OBJECT:
        keys = ("name", "of", "meaning", "columns")
        listed = [(*head, [{"name": c, "unit": u} for c, u in units.items()])
                  for *head, units in entries()]  # fmt: skip
        write_object("show", None, tables=[dict(zip(keys, one, strict=True)) for one in listed])
    else:
        write_rows(Rows(columns, rows, len(rows)), form)


def _listed() -> Iterator[str]:
    before = ""
    terminal = terminal_width()
    for name, subject, meaning, units in entries():
        kind = _kind(name)
        if kind != before:
            yield f"{kind}\n" if not before else f"\n{kind}\n"
        before = kind
        yield f"{name}  ({subject})" if subject != "report" else name
        text = printable(meaning)
        yield from _indented(text, terminal or len(INDENT + text))
        yield from _indented(", ".join(_with_units(units)), min(terminal or 96, 96))


def _indented(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=INDENT, subsequent_indent=INDENT)


def _kind(name: str) -> str:
    from pva import schema
    from pva.analysis import CATALOGUE

    if name in CATALOGUE:
        return "ANALYSES: questions that have been asked before"
    table = name.removeprefix(TABLE) in schema.TABLE
    return "TABLES of report.frames" if table else "ARRAYS of report.frames, a row for each place"


COMMAND = Declaration(
    command=show,
    order=40,
    usage={
        "`tilescope show TABLE REPORT`": (
            "One question, or any table, chosen by `--where` and `--sort`, as a table,"
            " JSON, CSV or Parquet"
        ),
    },
    calls=(
        "show fullest_tiles run --count 3",
        "show memory_overview run",
        "show why_idle run",
        "show waits run --limit 3",
        "show critical_path run --json",
        "show cycles_by_layer run --where 'share > 10 %' --sort -cycles",
        ("show table.steps run --where type=OnTileExecute --sort cycles --limit 2 --format csv"),
        "show runs run --format json",
        "show fullest_tiles run --limit 1 --json",
        "show labels host.pvti",
        "show label_statistics host.pvti",
        "show fullest_tiles run --where 'byte > 3'",
        "show vertex_typs run",
        "show cycles_by_layer graph.json",
    ),
    reports=("show memory_by_tile IN",),
    steps=("show table.steps IN",),
    traces=("show threads IN",),
)
