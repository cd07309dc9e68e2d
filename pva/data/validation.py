"""What the values of a report must be: looked at once, when a column or an array is first read.

Numbers fit where they are used: counts and sizes are no less than 0 (-1: not known), rows lead to
rows that are there, arrays are as long as what they count, and trees are trees. Whether the figures
agree with each other is a matter of `pva.check`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from pva import schema
from pva.array_types import Values
from pva.errors import InconsistentDataError

LENGTHS = {"memory_by_tile": "tile"}
ASCENDING = {"steps_by_ipu.step"}  # searched by halves
ARRAY_ROWS = {
    "vertex_compute_set": "compute_set",
    "vertex_vertex_type": "vertex_type",
    "physical_tile": "tile_of_ipu",
}
ORDERING = 32  # bytes of a row that is put in order
# The programs that count rows of arrays over an axis that no table has.
USERS = {
    "exchange": "DoExchange",
    "external_exchange": "GlobalExchange",
    "host_exchange": "StreamCopy",
}


class Data(Protocol):
    """What is known of the rest of the report; a dataset."""

    name: str
    foreign: bool  # another writer leaves out what can be worked out

    def has(self, name: str) -> bool:
        """Return whether a table is there."""

    def length(self, table: str) -> int:
        """Count the rows of a table."""

    def axis(self, axis: str) -> int:
        """Return how long an index of arrays is; -1 when nothing tells."""

    def column(self, table: str, column: str) -> Values:
        """Return another column."""

    def make_room(self, amount: int, place: str) -> None:
        """Let go of what is held; raises DamagedFileError when there are not so many bytes."""


def limits(data: Data, table: str, column: schema.Column) -> tuple[int, int]:
    """Return the least and the greatest value of a column of whole numbers or codes."""
    declared = column.range
    if declared.rows and data.has(declared.rows):
        return declared.least, data.length(declared.rows) - (not declared.end)
    if declared.axis and data.axis(declared.axis) >= 0:
        return 0, data.axis(declared.axis) - 1
    least = -1 if data.foreign and declared.least > 0 else declared.least
    return least, declared.most


def check_opened(data: Data) -> None:
    """Refuse a machine that cannot be: all lengths follow it; raises InconsistentDataError."""
    for column in schema.TABLE["target"].columns if data.has("target") else ():
        if column.within is not None:
            data.column("target", column.name)


def takes_narrow(table: str, column: schema.Column) -> bool:
    """Return whether whole numbers of a column are checked in whatever type they have."""
    return column.kind in ("int", "code") and f"{table}.{column.name}" not in TREES


def check_column(data: Data, table: str, column: schema.Column, values: Values) -> None:
    """Refuse what does not fit; raises InconsistentDataError."""
    place = f"{table}.{column.name}"
    if table in LENGTHS:
        length = data.axis(LENGTHS[table])
        if length not in (-1, len(values)):
            _refuse(data, place, f"{len(values)} rows", f"{LENGTHS[table]}s are {length}")
    if column.kind == "float":
        _check_fractions(data, place, column, values)
    elif column.kind in ("int", "code"):
        refers = column.range.rows
        subject = f"rows of {refers}" if refers else place
        check_range(data.name, place, values, limits(data, table, column), subject)
    if place in ASCENDING and (values[1:] < values[:-1]).any():
        _refuse(data, place, "rows that are not in order", "ascending numbers")
    if place in TREES:
        _check_tree(data, place, values)


def check_array(data: Data, array: schema.Array, values: Values) -> None:
    """Refuse what does not fit in an array, or in some rows of it; raises InconsistentDataError."""
    check_shape(data, array, (-1, *values.shape[1:]))
    rows = data.axis(ARRAY_ROWS[array.name]) if array.name in ARRAY_ROWS else -1
    most = rows - 1 if rows >= 0 else array.range.most
    check_range(data.name, array.name, values, (array.range.least, most), array.name)


def check_shape(data: Data, array: schema.Array, shape: tuple[int, ...]) -> None:
    """Refuse a shape that is not that of the tables; raises InconsistentDataError.

    -1 stands for a length that is not looked at.
    """
    expected = tuple(data.axis(axis) for axis in array.index)
    fits = len(shape) == len(expected) and all(
        -1 in (want, size) or want == size for size, want in zip(shape, expected, strict=True)
    )
    if not fits:
        problem = f"array {array.name} is of shape {shape}"
        raise InconsistentDataError(data.name, problem, f"{list(array.index)} calls for {expected}")


def check_users(data: Data, array: schema.Array, rows: int) -> None:
    """Refuse programs that lead to no row of an array; raises InconsistentDataError."""
    tag = USERS.get(array.index[0])
    if tag and data.has("programs"):
        tags = schema.TABLE["programs"].column("type").values
        mine = data.column("programs", "type") == tags.index(tag)
        used = data.column("programs", "exchange")[mine]
        limits = (-1, rows - 1)
        check_range(data.name, "programs.exchange", used, limits, f"rows of {array.name}")


def check_range(
    name: str, place: str, values: Values, limits: tuple[int, int], subject: str
) -> None:
    """Refuse numbers outside of limits; raises InconsistentDataError."""
    first, last = limits
    if not values.size or (values.min() >= first and values.max() <= last):
        return
    wrong = values[(values < first) | (values > last)].flat[0]
    remedy = f"{subject} are {first} to {last}" if last >= first else f"{subject} are none"
    raise InconsistentDataError(name, f"found {wrong}", remedy, place=place)


def _check_fractions(data: Data, place: str, column: schema.Column, values: Values) -> None:
    """Fractions are finite where they are known; a clock does not stand still."""
    if not len(values):
        return
    least, most = column.range.least, column.range.most
    if np.fmin.reduce(values) < least or np.fmax.reduce(values) > most:  # what is no number aside
        wrong = values[(values < least) | (values > most)]
        _refuse(data, place, f"found {wrong[0]}", "a number that can be")


def _check_tree(data: Data, place: str, values: Values) -> None:
    above, below, count = TREES[place](data, values, place)
    if (below > above).all():
        return
    data.make_room(ORDERING * (len(above) + count), place)
    first = first_circular(above, below, count)
    if first is not None:
        _refuse(data, place, f"row {first} contains itself", "a tree")


def first_circular(above: Values, below: Values, count: int) -> int | None:
    """Return the first of `count` rows that is inside itself, by pairs of rows; None in a tree.

    Takes `ORDERING` bytes a row and a pair.
    """
    order = np.argsort(above, kind="stable")
    begins = np.searchsorted(above[order], np.arange(count + 1)).data
    inside = below[order].data
    parents = np.bincount(below, minlength=count)
    queue, around = np.empty(count, np.int64), parents.data
    end = int(np.count_nonzero(parents == 0))
    queue[:end] = np.flatnonzero(parents == 0)
    finished, row = queue.data, 0
    while row < end:
        for place in range(begins[finished[row]], begins[finished[row] + 1]):
            child = inside[place]
            around[child] -= 1
            if not around[child]:
                finished[end] = child
                end += 1
        row += 1
    return None if end == count else int(np.flatnonzero(parents)[0])


def _children(data: Data, values: Values, place: str) -> tuple[Values, Values, int]:
    del place
    return data.column("program_children", "program"), values, data.length("programs")


def _parents(data: Data, values: Values, place: str) -> tuple[Values, Values, int]:
    data.make_room(2 * values.nbytes, place)
    return values[values >= 0], np.flatnonzero(values >= 0), len(values)


TREES = {
    "program_children.child": _children,
    "liveness_steps.parent": _parents,
    "written_programs.parent": _parents,
}


def _refuse(data: Data, place: str, problem: str, remedy: str) -> None:
    raise InconsistentDataError(data.name, problem, remedy, place=place)
