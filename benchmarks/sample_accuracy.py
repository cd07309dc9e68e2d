"""Put our run of the user guide's sample beside the figures that the guide prints of it.

    python -m benchmarks.sample_accuracy --write

The network is `simulator/examples/fc_mnist.py`, on Mk1. Both sides are figures of the profile
summary; `sample_published.csv` has the guide's. `--write` puts the table into docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pva.report import openReport
from pva.summary import profile_summary
from simulator.examples import fc_mnist

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
PUBLISHED = Path(__file__).with_name("sample_published.csv")
BEGIN, END = "<!-- sample_accuracy: begin -->", "<!-- sample_accuracy: end -->"
HEAD = "| part | figure | published | ours | difference | why |"
CLOSE = 0.25  # of the published figure; what is farther off has a reason in the table
# A line that heads others, as it is printed, and what its part is called in the table.
HEADINGS = {
    "Graph:": "graph",
    "Memory Usage:": "memory",
    "Not Overlapped": "not overlapped",
    "Overlapped": "overlapped",
    "By Category:": "vertex data",
    "By Type:": "bytes by type",
    "By Tile (Excluding Gaps):": "tiles",
    "Variable Storage Liveness: All tiles": "liveness",
    "Always-live variables:": "always live",
    "Sequence": "first live",
    "Execution:": "execution",
    "Cycles by vertex type:": "cycles by type",
}
FIGURE = re.compile(r"(.*?)(?:\s*\((\d+) instances\))?:?\s+([\d,.]+)(?: B| \(.*| / .*|%)?")
STEP = re.compile(r"(OnTileExecute|DoExchange|StreamCopy) \(cycles [^)]*\):? ?(.*)")
# Steps of which the guide prints no more than this, so that later ones are not compared.
LAST = "step Layer1/Fwd/Conv_1/Convolve"


class Figure(NamedTuple):
    """A printed number by the part of the summary that it stands in, and its label there."""

    part: str
    label: str


# Why figures differ: words of the part, words of the label, the reason; the first that fits.
_STATE = "state and code of a vertex are our estimates"
_COPIES = "copies on tiles, 42 % of the published cycles, are hardly made here"
_LAID = "follows where the products lie"
REASONS = (
    ("", "poplar_rt|[cC]opy", "what is copied there for a vertex arrives in its order here"),
    ("", "Rearrangement", "what is copied there for a vertex arrives in its order here"),
    ("", "Transpose2d", "blocks are put in order by the exchange, not by vertices"),
    ("", "numPartials", "vertices hold their counts themselves"),
    ("", "numCorrect", "listed at each step instead: the host writes and reads it"),
    ("", "ValuePadder|<const>", "nothing is padded, and constants have names"),
    ("always", "<anon>", "constants have names"),
    ("first", "<anon>", "the seed is always live here"),
    ("graph", "variables", "there each part that the compiler makes is counted"),
    ("bytes", "SetSeed|CalcAccuracy|ScaledAdd|poplin::", _STATE),
    ("", "ScaledAdd", "weights lie in shorter runs of memory"),
    ("", "NonLinearity|Loss|Reduce<|ScaledReduce", _LAID),
    ("", "worklists", "equal constants on a tile are one there"),
    ("", "[vV]ector.?List|Edge pointers|Descriptors|Padding|[vV]ertex.?Code", _STATE),
    ("", "[cC]ontrol.?Code", "instructions of a program are our estimate"),
    ("", "[iI]nternal.?[eE]xchange.?Code", "each fragment has instructions of its own here"),
    ("", "[hH]ost", "more tiles hold images, and each of them waits for the whole copy"),
    ("", "", _COPIES),
)
# Figures that numbers of the model are fitted to, in the same form: they are no evidence.
_LATENCY = "used: the latency of exchanges is fitted to it"
FITTED = (
    ("step switchControl|Convolve/ExchangePre", "Cycles|Tile Balance", _LATENCY),
    ("stream copy [123]", "Cycles", "used: the latency of the host is fitted to it"),
    ("", "^[sS]tack$", "used: the bytes of a tile are taken from it"),
)


def figures(text: str) -> dict[Figure, float]:
    """Read the numbers of a profile summary; of a label that stands twice in a part, the first."""
    found: dict[Figure, float] = {}
    part, streams = "target", 0
    for line in map(str.strip, text.splitlines()):
        if line in HEADINGS:
            part = HEADINGS[line]
        elif step := STEP.fullmatch(line):
            if part == LAST:
                break
            streams += step[1] == "StreamCopy"
            part = f"stream copy {streams}" if step[1] == "StreamCopy" else f"step {step[2]}"
        elif (match := FIGURE.fullmatch(line)) and not re.match(r"\d+ - ", line):
            label, instances, value = match.groups()
            found.setdefault(Figure(part, label.rstrip(":")), float(value.replace(",", "")))
            if instances and part == "cycles by type":
                found.setdefault(Figure("instances", label), float(instances))
    return found


def published() -> dict[Figure, float]:
    """Read the guide's figures."""
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return {Figure(row["part"], row["label"]): float(row["value"]) for row in rows}


def ours() -> dict[Figure, float]:
    """Run the network on Mk1, and read the figures of its summary."""
    with tempfile.TemporaryDirectory() as folder:
        fc_mnist.run(target="mk1", out=Path(folder))
        report = openReport(folder)
        text = profile_summary(report, show_var_storage=True, show_execution_steps=True)
    return figures(re.sub(r"switchControlBroadcast\d+", "switchControlBroadcast", text))


def rows(theirs: dict[Figure, float], own: dict[Figure, float]) -> Iterator[str]:
    """Write the rows of the table, in the order in which the guide prints the figures."""
    for figure, value in theirs.items():
        mine = own.get(figure, 0.0)
        apart = mine - value
        share = abs(apart) / value if value else float(apart != 0)
        difference = "exact" if not apart else f"{100 * apart / value:+.1f} %" if value else "new"
        why = _reason(figure, FITTED) or (_reason(figure, REASONS) if share > CLOSE else "")
        label = figure.label.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
        yield f"| {figure.part} | {label} | {value:,.10g} | {mine:,.10g} | {difference} | {why} |"


def _reason(figure: Figure, reasons: tuple[tuple[str, str, str], ...]) -> str:
    return next((why for part, label, why in reasons if _fits(figure, part, label)), "")


def _fits(figure: Figure, part: str, label: str) -> bool:
    return bool(re.search(part, figure.part) and re.search(label, figure.label))


def table() -> str:
    """Write the section of docs/accuracy.md."""
    theirs, own = published(), ours()
    shares = [abs(own.get(f, 0.0) - value) / value for f, value in theirs.items() if value]
    exact, close = (sum(share <= most for share in shares) for most in (0.0, CLOSE))
    of = f"Of {len(shares)} figures {exact} are exact and {close} within 25 %; a figure that we do"
    lines = [f"{of}\nnot have counts as 0.", "", HEAD, "| --- " * HEAD.count(" | ") + "| --- |"]
    return "\n".join([*lines, *rows(theirs, own)])


def write(section: str) -> None:
    """Put the section into docs/accuracy.md, between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{PAGE.name}: has no line {BEGIN} and {END}")
    PAGE.write_text(f"{before}{BEGIN}\n{section}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Print the table, or write it into the page."""
    parser = argparse.ArgumentParser(description="Compare the guide's sample with our run of it.")
    parser.add_argument("--write", action="store_true", help="put the table into docs/accuracy.md")
    arguments = parser.parse_args()
    section = table()
    if arguments.write:
        write(section)
    print(section)


if __name__ == "__main__":
    main()
