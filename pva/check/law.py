"""What a law is, and how a breach of it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pva import schema
from pva.array_types import Values
from pva.data.dataset import Dataset
from pva.errors import InconsistentDataError

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
        places = f" ({self.count} places)" if self.count > 1 else ""
        return f"{self.law}: {self.place}: found {self.found}; {self.wanted}{places}"


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
        rows = [(b.place, b.found, b.wanted, b.count) for b in broken] or [("", "", "", 0)]
        return [(self.name, self.meaning, not broken, *row) for row in rows]

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
            problem = error.found.removeprefix("found ")
            return [Violation(place, problem, error.wanted, law=self.name)], True
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
    actual: npt.ArrayLike, expected: npt.ArrayLike, subject: str, index: str = "", why: str = ""
) -> list[Violation]:
    """Compare two arrays; `index` names what their places are numbered by."""
    values, references = np.broadcast_arrays(np.asarray(actual), np.asarray(expected))
    return _broken(values != references, subject, index, values, references, why)


def at_most(
    actual: npt.ArrayLike, limit: npt.ArrayLike, subject: str, index: str = "", why: str = ""
) -> list[Violation]:
    """Compare two arrays, the first of which may be lower anywhere."""
    values, limits = np.broadcast_arrays(np.asarray(actual), np.asarray(limit))
    return _broken(values > limits, subject, index, values, limits, why or "at most")


def near(actual: Values, expected: Values, subject: str) -> list[Violation]:
    """Compare shares where both are known."""
    comparable = ~(np.isnan(actual) | np.isnan(expected))
    values, references = actual[comparable], expected[comparable]
    rounded = np.where(np.abs(values - references) <= CLOSE, references, values)
    return equal(rounded, references, subject, "number")


def share(part: Values, total: Values) -> Values:
    """Divide; not a number where the whole is nothing."""
    quotient: Values = np.divide(part, total, out=np.full(part.shape, np.nan), where=total > 0)
    return quotient


def _broken(
    wrong: Values, subject: str, index: str, actual: Values, expected: Values, why: str
) -> list[Violation]:
    COMPARED.get([]).append(wrong.size)
    places = np.argwhere(wrong)
    if not len(places):
        return []
    first = tuple(places[0])
    numbers = ", ".join(str(number) for number in first)
    place = f"{subject}, {index} {numbers}" if index else subject
    text = f"{why} {expected[first]}".strip()
    return [Violation(place, str(actual[first]), text, len(places))]
