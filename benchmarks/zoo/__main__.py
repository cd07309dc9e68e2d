"""Run every model that can be made or found here, and print a row for each.

python -m benchmarks.zoo [--limit SECONDS] [--write] [--keep FOLDER] [--list] [NAME...]

`make zoo` sets up an environment with torch, torchvision, transformers, onnxruntime and packages
that hold models. --write puts the rows into docs/models.md; --keep keeps the model files. Seconds
are of the processor.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.zoo.model import Model
from benchmarks.zoo.sources import models
from benchmarks.zoo.trial import Figures, in_a_process

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
BEGIN, END = "<!-- zoo: begin -->", "<!-- zoo: end -->"
HEAD = "| model | from | nodes | weights | imported | runs | values | error | s | GB | items/s |"
RULE = f"| {' | '.join(['---'] * 3 + ['---:'] + ['---'] * 3 + ['---:'] * 4)} |"
WRONG = "WRONG"
CLOSE = 1e-3  # of the largest value of an output: more is named as wrong


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--list", action="store_true", help="name the models and end")
    arguments = parser.parse_args()
    every = models()
    if arguments.list:
        print(*every, sep="\n")
        return
    wrong = [name for name in arguments.names if name not in every]
    if wrong:
        parser.error(f"no model here is called {wrong[0]!r}; --list names all")
    rows = _written() if arguments.write else {}
    print(HEAD, RULE, sep="\n", flush=True)
    for name in arguments.names or every:
        figures = in_a_process(every[name], arguments.limit, arguments.keep)
        rows[name] = row(every[name], figures)
        print(rows[name], flush=True)
        if arguments.write:
            _write([rows[known] for known in every if known in rows])


def _written() -> dict[str, str]:
    """Read the rows that the page has, by model."""
    lines = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].splitlines()
    table = [line for line in lines if line.startswith("| ") and line not in (HEAD, RULE)]
    return {line.split(" | ")[0].removeprefix("| "): line for line in table}


def _write(rows: list[str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    text = "\n".join([HEAD, RULE, *rows, "", closing(rows)])
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def row(model: Model, figures: Figures) -> str:
    """Write the row of a model."""
    values = figures.values
    if values == "yes" and not figures.error < CLOSE:
        values = WRONG
    weights = f"{figures.weights / 1e6:,.1f} M" if figures.nodes else ""
    peak = number(figures.peak / 1e9, ".1f")
    error = number(figures.error, ".1e")
    cells = (
        model.name, model.source, str(figures.nodes or ""), weights, figures.imported, figures.runs,
        values, error, number(figures.seconds, ".1f"), peak, number(figures.items, ",.0f"),
    )  # fmt: skip
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def number(value: float, form: str) -> str:
    """Write a number, or nothing where it is not known."""
    return "" if np.isnan(value) else format(value, form)


def closing(rows: list[str]) -> str:
    """Sum the rows up: how many are imported, run and right."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]
    imported, runs, values = ([line[place] for line in cells] for place in (4, 5, 6))
    compared = [text for text in values if text in ("yes", WRONG)]
    return (
        f"Of {len(rows)} models {imported.count('yes')} are imported and {runs.count('yes')} run; "
        f"of {len(compared)} whose values were compared, {values.count('yes')} agree."
    )


if __name__ == "__main__":
    main()
