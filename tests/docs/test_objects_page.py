"""`docs/objects.md` is what the classes say, and has every attribute of every object."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pva
from pva.document import SECTIONS, markdown
from tests.pva.test_libpva_names import NAMES, OBJECTS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "objects.md"
SAMPLE = ROOT / "sample_reports" / "mlp_digits_tiny"
# What is not of an object: how a report is made of a dataset, and what it is made of.
OF_THE_CLASS = {"of", "of_profiles", "dataset", *dir(tuple)}


def sections() -> dict[str, str]:
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


def named(kind: type) -> set[str]:
    """Return the attributes that the page has for a class, those of the classes above it too."""
    texts = [
        text for name, text in sections().items() if name in {k.__name__ for k in kind.__mro__}
    ]
    heads = [
        line.split(" | ")[0] for text in texts for line in text.splitlines() if line[:3] == "| `"
    ]
    return {name for head in heads for name in re.findall(r"`(\w+)(?:\([^`]*\))?`", head)}


def objects() -> Iterator[Any]:
    """Return one object of each section, as the path in the section gets there."""
    paths = [path for path, _, _ in SECTIONS if not path.startswith("program,")]
    scope: dict[str, Any] = {"pva": pva, "path": SAMPLE, "tile": 0}
    for path in paths:
        variable, _, expression = path.rpartition(" = ")
        try:
            found = eval(expression, scope)  # the page's own paths
        except IndexError:  # of what the sample has none
            continue
        scope |= {variable or "_": found}
        yield found


def test_page_is_what_the_classes_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown()


@pytest.mark.parametrize("sample", sorted(f.parent.name for f in SAMPLE.parent.glob("*/*.pop")))
def test_steps_share_out_the_time_as_the_page_says(sample: str) -> None:
    execution = pva.openReport(SAMPLE.parent / sample).execution
    total = execution.totalCycles.total
    for ipu in range(len(execution.steps[0].ipus)):
        spans = [step.ipus[ipu].allCycles for step in execution.steps]
        assert sum(span.cyclesTo.max - span.cyclesFrom.max for span in spans) == total
        assert sum(step.ipus[ipu].cycles for step in execution.steps) > total


def test_the_page_tells_by_how_much_the_cycles_of_steps_exceed_the_total() -> None:
    report = pva.openReport(SAMPLE.parent / "matmul_chain_mk2")
    steps = report.frames.steps()
    syncs, text = steps[steps["type"] == "Sync"], " ".join(sections()["IpuStep"].split())
    ratio = sum(s.ipus[0].cycles for s in report.execution.steps) / steps["cycles_to"].max()
    longer = (syncs["cycles_to"] - syncs["cycles_from"]).sum()
    assert f"the sum is {ratio:.1f} times the total" in text
    assert f"are {syncs['cycles'].sum():,} cycles, by {longer:,} of which" in text


def test_paths_of_the_page_lead_to_objects_of_which_it_has_every_attribute() -> None:
    seen = 0
    for found in objects():
        kind = type(found)
        public = {name for name in dir(found) if not name.startswith("_")}
        members = {name for name in public if isinstance(getattr(kind, name, None), enum.Enum)}
        assert public - members - OF_THE_CLASS - named(kind) == set(), kind.__name__
        seen += 1
    assert seen > 40


@pytest.mark.parametrize("kind", NAMES)
def test_names_of_libpva_are_on_the_page(kind: str) -> None:
    found = OBJECTS[kind](pva.openReport(SAMPLE))
    assert {name for name in NAMES[kind] if name not in named(type(found))} == set()


def test_each_attribute_is_told() -> None:
    for row in re.findall(r"^\| `.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        assert all(cell.strip() for cell in row.strip("|").split(" | ")), row
