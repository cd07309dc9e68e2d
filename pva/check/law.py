"""What a law is, and how a breach of it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.dataset import Dataset
from pva.errors import InconsistentDataError

Values = npt.NDArray[Any]


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


Find = Callable[[Dataset], Iterable[Violation]]


@dataclass(frozen=True, slots=True)
class Law:
    """A law: the tables and arrays that it speaks of, and who finds breaches."""

    find: Find
    needs: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the law."""
        return self.find.__name__

    @property
    def meaning(self) -> str:
        """What must be, in a sentence."""
        return (self.find.__doc__ or "").partition("\n")[0]

    def verdict(self, data: Dataset) -> list[tuple[str, str, bool | None, str, str, str, int]]:
        """Give law, meaning, whether it holds, place, found, wanted, places; a row each breach."""
        lacking = ", ".join(name for name in self.needs if not data.has(name))
        if lacking:
            return [(self.name, self.meaning, None, "", f"no {lacking}", "", 0)]
        broken = self.broken_by(data)
        told = [(b.place, b.found, b.wanted, b.count) for b in broken] or [("", "", "", 0)]
        return [(self.name, self.meaning, not broken, *row) for row in told]

    def broken_by(self, data: Dataset) -> list[Violation]:
        """Give the breaches of a dataset; none when it lacks what the law speaks of.

        What the dataset refuses to give is one.
        """
        if not all(data.has(name) for name in self.needs):
            return []
        try:
            return [replace(violation, law=self.name) for violation in self.find(data)]
        except InconsistentDataError as error:
            place = error.place or error.subject
            return [
                Violation(place, error.found.removeprefix("found "), error.wanted, law=self.name)
            ]


class Laws(list[Law]):
    """The laws of a module, in order."""

    def needing(self, *needs: str) -> Callable[[Find], Find]:
        """Mark a function as a law about these tables and arrays."""

        def add(find: Find) -> Find:
            self.append(Law(find, needs))
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


def _broken(
    wrong: Values, what: str, index: str, found: Values, wanted: Values, why: str
) -> list[Violation]:
    places = np.argwhere(wrong)
    if not len(places):
        return []
    first = tuple(places[0])
    numbers = ", ".join(str(number) for number in first)
    place = f"{what}, {index} {numbers}" if index else what
    text = f"{why} {wanted[first]}".strip()
    return [Violation(place, str(found[first]), text, len(places))]
