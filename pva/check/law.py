"""What a law is, and how a breach of it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.dataset import Dataset
from pva.errors import InconsistentDataError

Values = npt.NDArray[Any]
CLOSE = 1e-6  # of a share, whichever way it was summed up


@dataclass(frozen=True, slots=True)
class Violation:
    """One law broken, at the first place of `count`."""

    place: str
    found: str
    wanted: str
    count: int = 1
    law: str = ""

    def __str__(self) -> str:
        more = f" ({self.count} places)" if self.count > 1 else ""
        return f"{self.law}: {self.place}: found {self.found}; {self.wanted}{more}"


# How many figures each comparison of the law at hand was about.
COMPARED: ContextVar[list[int]] = ContextVar("COMPARED")
Find = Callable[[Dataset], Iterable[Violation]]


@dataclass(frozen=True, slots=True)
class Law:
    """A law: the tables and arrays that it speaks of, and who finds breaches."""

    find: Find
    needs: tuple[str, ...]
    walks: bool = False

    @property
    def name(self) -> str:
        """Name of the law."""
        return self.find.__name__

    @property
    def meaning(self) -> str:
        """What must be, in a sentence."""
        return (self.find.__doc__ or "").partition("\n")[0]

    def lacking(self, data: Dataset) -> str:
        """Name what the law speaks of and was not recorded; the empty text when all was."""
        return ", ".join(name for name in self.needs if not _is_recorded(data, name))

    def verdict(self, data: Dataset) -> list[tuple[str, str, bool | None, str, str, str, int]]:
        """Return law, meaning, whether it holds, place, found, wanted, places; a row each breach.

        It is missing where the law was not checked: what it speaks of is not there, or no row.
        """
        lacking = self.lacking(data)
        if lacking:
            return [(self.name, self.meaning, None, "", f"no {lacking}", "", 0)]
        broken, compared = self._held_against(data)
        if not broken and not compared:
            return [(self.name, self.meaning, None, "", "nothing to compare", "", 0)]
        told = [(b.place, b.found, b.wanted, b.count) for b in broken] or [("", "", "", 0)]
        return [(self.name, self.meaning, not broken, *row) for row in told]

    def broken_by(self, data: Dataset) -> list[Violation]:
        """Return the breaches of a dataset; none when it lacks what the law speaks of.

        What the dataset refuses to give is one.
        """
        return [] if self.lacking(data) else self._held_against(data)[0]

    def _held_against(self, data: Dataset) -> tuple[list[Violation], bool]:
        """Return the breaches, and whether anything was compared at all."""
        mark = COMPARED.set([])
        try:
            broken = [replace(violation, law=self.name) for violation in self.find(data)]
            return broken, self.walks or any(COMPARED.get())
        except InconsistentDataError as error:
            place = error.place or error.subject
            found = error.found.removeprefix("found ")
            return [Violation(place, found, error.wanted, law=self.name)], True
        finally:
            COMPARED.reset(mark)


def _is_recorded(data: Dataset, name: str) -> bool:
    """Return whether a table or array is there, or any value of a column: `table.column`."""
    table, _, column = name.partition(".")
    if not data.has(table) or not column:
        return data.has(table)
    try:
        values = data.column(table, column)
    except InconsistentDataError:
        return True  # the law names it
    missing = schema.MISSING[schema.TABLE[table].column(column).kind]
    return bool((~np.isnan(values) if values.dtype.kind == "f" else values != missing).any())


class Laws(list[Law]):
    """The laws of a module, in order."""

    def needing(self, *needs: str, walks: bool = False) -> Callable[[Find], Find]:
        """Mark a function as a law about tables, arrays and columns.

        `walks`: it finds its breaches by other ways than by comparing figures.
        """

        def add(find: Find) -> Find:
            self.append(Law(find, needs, walks))
            return find

        return add


def equal(
    found: npt.ArrayLike, wanted: npt.ArrayLike, what: str, index: str = "", why: str = ""
) -> list[Violation]:
    """Compare two arrays; `index` names what their places are numbered by."""
    left, right = np.broadcast_arrays(np.asarray(found), np.asarray(wanted))
    return _broken(left != right, what, index, left, right, why)


def at_most(
    found: npt.ArrayLike, limit: npt.ArrayLike, what: str, index: str = "", why: str = ""
) -> list[Violation]:
    """Compare two arrays, the first of which may be lower anywhere."""
    left, right = np.broadcast_arrays(np.asarray(found), np.asarray(limit))
    return _broken(left > right, what, index, left, right, why or "at most")


def near(found: Values, wanted: Values, what: str) -> list[Violation]:
    """Compare shares where both are known."""
    known = ~(np.isnan(found) | np.isnan(wanted))
    left, right = found[known], wanted[known]
    rounded = np.where(np.abs(left - right) <= CLOSE, right, left)
    return equal(rounded, right, what, "number")


def share(part: Values, whole: Values) -> Values:
    """Divide; not a number where the whole is nothing."""
    quotient: Values = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return quotient


def _broken(
    wrong: Values, what: str, index: str, found: Values, wanted: Values, why: str
) -> list[Violation]:
    COMPARED.get([]).append(wrong.size)
    places = np.argwhere(wrong)
    if not len(places):
        return []
    first = tuple(places[0])
    numbers = ", ".join(str(number) for number in first)
    place = f"{what}, {index} {numbers}" if index else what
    text = f"{why} {wanted[first]}".strip()
    return [Violation(place, str(found[first]), text, len(places))]
