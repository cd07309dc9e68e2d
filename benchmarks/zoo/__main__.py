"""Run every model that can be made or found here, and print a row for each.

python -m benchmarks.zoo [--limit SECONDS] [--write] [--keep FOLDER] [--list] [NAME...]

`make zoo` sets up an environment with torch, torchvision, transformers, onnxruntime and packages
that hold models. --write puts the table into docs/models.md; --keep keeps the model files. Seconds
are of the processor.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.zoo.sources import Model, models
from benchmarks.zoo.trial import Figures, in_a_process

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
BEGIN, END = "<!-- zoo: begin -->", "<!-- zoo: end -->"
HEAD = "| model | from | nodes | weights | imported | runs | values | error | s | GB | items/s |"
RULE = f"| {' | '.join(['---'] * 3 + ['---:'] + ['---'] * 3 + ['---:'] * 4)} |"
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
    chosen = [every[name] for name in arguments.names or every]
    print(HEAD, RULE, sep="\n", flush=True)
    lines, refused = [], []
    for model in chosen:
        figures = in_a_process(model, arguments.limit, arguments.keep)
        if isinstance(figures, str):
            refused.append(f"{model.name} ({figures})")
            continue
        lines.append((model, figures))
        print(row(model, figures), flush=True)
    text = "\n".join([HEAD, RULE, *(row(*line) for line in lines), "", *closing(lines, refused)])
    print("", *closing(lines, refused), sep="\n")
    if arguments.write:
        page = PAGE.read_text(encoding="utf-8")
        block = re.compile(f"{BEGIN}.*{END}", re.DOTALL)
        PAGE.write_text(block.sub(lambda _: f"{BEGIN}\n{text}\n{END}", page), encoding="utf-8")


def row(model: Model, figures: Figures) -> str:
    """Write the row of a model."""
    values = figures.values
    if values == "yes" and not figures.error < CLOSE:
        values = "WRONG"
    weights = f"{figures.weights / 1e6:,.1f} M"
    peak = number(figures.peak / 1e9, ".1f")
    error = number(figures.error, ".1e")
    cells = (
        model.name, model.source, str(figures.nodes), weights, figures.imported, figures.runs,
        values, error, number(figures.seconds, ".1f"), peak, number(figures.items, ",.0f"),
    )  # fmt: skip
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def number(value: float, form: str) -> str:
    """Write a number, or nothing where it is not known."""
    return "" if np.isnan(value) else format(value, form)


def closing(lines: list[tuple[Model, Figures]], refused: list[str]) -> Iterator[str]:
    """Sum up: how many are imported, run and right, and which no exporter could write."""
    figures = [line for _, line in lines]
    imported = sum(one.imported == "yes" for one in figures)
    runs = sum(one.runs == "yes" for one in figures)
    compared = [one for one in figures if one.values == "yes"]
    right = sum(one.error < CLOSE for one in compared)
    tool = "onnxruntime" if find_spec("onnxruntime") else "onnx"
    evaluator = f"{tool} {metadata.version(tool)}"
    yield (
        f"Of {len(figures)} models {imported} are imported and {runs} run; of {len(compared)} whose"
    )
    yield f"values were compared with those of {evaluator}, {right} agree within {CLOSE:g}."
    if refused:
        yield ""
        yield f"Their exporters refuse: {'; '.join(refused)}."


if __name__ == "__main__":
    main()
