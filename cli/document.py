"""`docs/cli.md` and the commands of the README, made from what the commands declare.

python -m cli.document                  prints the page
python -m cli.document README.md        writes the table of commands in it again
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

README_HEAD = "| command | the question that it answers |\n| --- | --- |\n"
WIDTH = 96  # columns of the help texts
SAMPLE = "fullest_tiles"  # what stands for all that `show` can show
LISTED_ELSEWHERE = {
    "show": "[analyses.md](analyses.md) and `tilescope show` list what there is to show."
}

_HEAD = """# The command line

One command for each question. This file is made from the help texts by `make documents`; every one
of them is also printed by `tilescope COMMAND --help`.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | done; what was checked holds |
| 1 | checked and false: `tilescope check` found a broken law or budget, or a model does not fit |
| 2 | bad input or use: one line on stderr says what, where, and what would be right |
| 130, 141 | ended by Ctrl-C; the reader of the output went away |

`tilescope simulate PROGRAM.py` ends with the code of the program (1 after an exception), and with 2
when it makes no Engine.

## Input and output

Data goes to stdout, messages to stderr. A report is a directory or a file in any encoding; `-`
reads one from stdin. On a terminal a table takes its width: long cells wrap, and where there is
no room for columns each value has its own line. What is longer than the terminal goes through its
pager (`PAGER`). To a pipe or a file, and where `CI` is set, lines are whole, and all is written at
once. Work of more than a second says on stderr how far it is and about how much time it has left,
on one line that goes when it ends; only where stderr is a terminal.

`--format json` writes a list of rows, one object each; `--json` writes one object, whatever the
command:

| key | what it holds |
| --- | --- |
| `command` | the command, such as `show` or `trace info` |
| `of` | the path or paths that it was given |
| `columns`, `count`, `rows` | of a table: names and units; rows before `--limit`; an object a row |
| `name` | `show`: the table or analysis |
| `tables` | `show` alone: name, of, meaning, columns |
| `target`, `graph`; analyses by name | `summary`: what it is written from; null: not recorded |
| `kind`, `files`, `facts`, `recorded`, `missing` | `info`: the last two by engine option |
| `blobs`, `space`, `anchors`, `executables`, `fits` | `info FILE.popef` |
| `run` | `info`, `simulate MODEL`: figures of the model's run, as `main_run`; null: not recorded |
| `report`, `outputs` | `simulate MODEL`: the directory; name, shape, type and extremes |
| `figures`; `categories` to `settings` | `compare`: before, after, change; null: not recorded |
| `ok`, `laws`, `not_checked`, `budgets`, `broken`, `causes` | `check` |
| `query` | `sql` |
| `out`, `figure`, `budget`, `commits`, `first_bad`, `suspects` | `bisect` |
| `threads`, `labels` | `trace show`; `trace info` has its facts by name, of several files `files` |

## Completion

Put one of these into the file that the shell reads at its start:

    eval "$(_TILESCOPE_COMPLETE=bash_source tilescope)"                          # ~/.bashrc
    eval "$(_TILESCOPE_COMPLETE=zsh_source tilescope)"                           # ~/.zshrc
    _TILESCOPE_COMPLETE=fish_source tilescope | source      # ~/.config/fish/config.fish

It completes commands, options and the names of analyses and tables.
"""


def markdown() -> str:
    """Write the page."""
    from cli.main import COMMANDS

    sections = [section for command in COMMANDS for section in _sections(command, "tilescope")]
    return "\n".join([_HEAD, *sections])


def _sections(command: click.Command, above: str) -> Iterator[str]:
    path = f"{above} {command.name}"
    yield f"## {path}\n\n```text\n{help_text(command, path)}\n```\n"
    if command.name in LISTED_ELSEWHERE and isinstance(command, click.Group):
        yield f"{LISTED_ELSEWHERE[command.name]} One of them:\n"
        shown = command.get_command(click.Context(command), SAMPLE)
        assert shown is not None
        yield from _sections(shown, path)
    elif isinstance(command, click.Group):
        for below in command.commands.values():
            yield from _sections(below, path)


def help_text(command: click.Command, path: str) -> str:
    """Return the help of a command as on a terminal of WIDTH columns."""
    from cli.main import tilescope

    parent = click.Context(tilescope, info_name="tilescope")
    settings: dict[str, Any] = {"terminal_width": WIDTH, "max_content_width": WIDTH}
    name = path.removeprefix("tilescope ")
    context = click.Context(command, parent=parent, info_name=name, **settings)
    text = command.get_help(context)
    if command.name in LISTED_ELSEWHERE:
        head, _, tail = text.partition("\nCommands:\n")
        text = head + "\n" + tail.partition("\n\n")[2]
    return "\n".join(line.rstrip() for line in text.splitlines())


def with_commands(text: str) -> str:
    """Return a README whose table of commands is what the commands declare."""
    from cli.main import DECLARED

    rows = [
        f"| {call} | {question} |\n"
        for declared in DECLARED
        for call, question in declared.usage.items()
    ]
    before, head, tail = text.partition(README_HEAD)
    table = tail.partition("\n\n")[0]
    return before + head + "".join(rows).rstrip("\n") + tail.removeprefix(table)


if __name__ == "__main__":
    if sys.argv[1:]:
        readme = Path(sys.argv[1])
        readme.write_text(with_commands(readme.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(markdown(), end="")
