"""Laws about names: what one table calls a thing, another calls it, too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.check.law import Laws, Violation, equal
from pva.data.dataset import Dataset

LAWS = Laws()
QUALITIES = ("exact", "estimate", "measured")
ELSEWHERE = ("stream ", "remote buffer ", "<empty>")  # ends of a copy that are no variables
JOINT = ", "  # between the variables of a tensor; names may hold it, too
RECORDER = "BlockRecorder"  # one compute set, run by programs of many names


@LAWS.needing("report")
def version_begins_with_its_numbers(data: Dataset) -> Iterator[Violation]:
    """The version of the writer begins with its three numbers."""
    numbers = [int(data.value("report", name)) for name in ("major", "minor", "point")]
    if min(numbers) >= 0:
        text, expected = str(data.column("report", "version")[0]), ".".join(map(str, numbers))
        yield from equal(text[: len(expected)], expected, "version", why="its numbers are")


@LAWS.needing("provenance")
def provenance_is_of_what_a_report_has(data: Dataset) -> Iterator[Violation]:
    """Provenance speaks of tables and arrays, each of which is exact, an estimate or measured."""
    items, qualities = (data.column("provenance", name) for name in ("item", "quality"))
    is_declared = [item in schema.TABLE or item in schema.ARRAY for item in items]
    yield from equal(is_declared, True, "whether the item is a table or array", "row")
    yield from equal(np.isin(qualities, QUALITIES), True, "whether the quality is one", "row")


@LAWS.needing("programs", "compute_sets")
def programs_have_the_name_of_their_compute_set(data: Dataset) -> Iterator[Violation]:
    """A program that runs a compute set has its name, as compiled and as written.

    Other writers may name their programs as they like.
    """
    if data.foreign:
        return
    for table in ("programs", "written_programs"):
        if data.has(table):
            rows, names = (data.column(table, name) for name in ("compute_set", "name"))
            mine = rows >= 0
            of_compute_set = data.column("compute_sets", "name")[rows[mine]]
            of_program = names[mine]
            has_name = (of_program != "") & (of_compute_set != RECORDER)
            yield from equal(
                of_program[has_name], of_compute_set[has_name], f"name, {table}", "number"
            )


@LAWS.needing("written_programs", "variables")
def ends_of_copies_are_variables(data: Dataset) -> Iterator[Violation]:
    """A program as written reads and writes variables that are listed, streams or buffers."""
    variables = set(data.column("variables", "name"))
    for column in ("source", "destination"):
        texts = data.column("written_programs", column)
        is_named = [_is_known(text, variables) for text in texts if text]
        yield from equal(is_named, True, f"whether the {column} is there", "program with one")


def _is_known(text: str, variables: set[str]) -> bool:
    """Return whether a text begins with the name of a variable, or names what is elsewhere."""
    parts = text.split(JOINT)
    firsts = (JOINT.join(parts[:count]) for count in range(1, len(parts) + 1))
    return text.startswith(ELSEWHERE) or any(first in variables for first in firsts)


@LAWS.needing("variables.lowered_from")
def variables_are_like_those_they_are_lowered_from(data: Dataset) -> Iterator[Violation]:
    """A copy or part of a variable has its type and is listed after it."""
    origin, types = (data.column("variables", name) for name in ("lowered_from", "type"))
    rows = np.flatnonzero(origin >= 0)
    yield from _after(origin[rows], rows)
    yield from equal(types[rows], types[origin[rows]], "type", "copy", "it is lowered from")


def _after(origin: Values, rows: Values) -> Iterator[Violation]:
    yield from equal(origin < rows, True, "whether it is after lowered_from", "copy")
