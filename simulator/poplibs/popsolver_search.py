"""The search of popsolver: rows of values, to which one choice after another is added.

A column is an int64 array of a variable's values, one a row, or of one value that stands for all.
Chunks of rows go depth first, in lexicographic order; a row is dropped as soon as a constraint
cannot hold whatever the later choices are, or it cannot be cheaper than the best so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import cycle
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

LARGEST = (1 << 62) - 2  # of any variable
BEYOND = LARGEST + 1  # stands for what is larger, or not allowed; twice that is an int64 still
MOST_ROWS = 1 << 16  # of a chunk; its columns stay in a processor's cache

Column: TypeAlias = NDArray[Any]
Function: TypeAlias = Callable[[Sequence[Column]], Column]
Table: TypeAlias = dict[int, Column]
Step: TypeAlias = tuple[int, int]  # the depth of a choice (-1: none), and a call then or 0


class Kind(NamedTuple):
    """How a value follows from others, or whether a constraint of them `holds`.

    `signs` repeats over the parts: "+" where the value grows with the part, "-" where it falls
    with it. It is empty when neither is sure. `called` functions are a user's, and slow.
    """

    function: Function
    signs: str = ""
    called: bool = False
    holds: bool = False


def _multiply(left: Column, right: Column) -> Column:
    if int(left.max()) * int(right.max()) <= LARGEST:
        return left * right
    fits = np.multiply(left, right, dtype=np.float64) < 1.5 * BEYOND  # so it is below 2^63
    return np.minimum(np.where(fits, left * right, BEYOND), BEYOND)


def _divided(operation: Callable[[Column, Column], Column]) -> Function:
    """Divide columns; nothing can be divided by 0."""
    return lambda c: np.where(c[1], operation(c[0], np.maximum(c[1], 1)), BEYOND)


KINDS = {
    "sum": Kind(lambda c: reduce(lambda a, b: np.minimum(a + b, BEYOND), c), "+"),
    "product": Kind(lambda c: reduce(_multiply, c), "+"),
    "max": Kind(lambda c: reduce(np.maximum, c), "+"),
    "min": Kind(lambda c: reduce(np.minimum, c), "+"),
    "sub": Kind(lambda c: np.maximum(c[0] - c[1], 0), "+-"),
    "floordiv": Kind(_divided(np.floor_divide), "+-"),
    "ceildiv": Kind(_divided(lambda left, right: -(-left // right)), "+-"),
    "mod": Kind(_divided(np.remainder)),
    "less": Kind(lambda c: c[0] < c[1], "-+", holds=True),
    "lessOrEqual": Kind(lambda c: c[0] <= c[1], "-+", holds=True),
    "allowed": Kind(lambda c: c[0] <= LARGEST, "-", holds=True),
    "notEqual": Kind(lambda c: c[0] != c[1], holds=True),
}


@dataclass(slots=True)
class Fact:
    """What is known of a variable before the search."""

    ends: tuple[Column, Column]  # the least and the most that it may be
    depths: frozenset[int]  # of the choices that it follows from
    step: Step  # when it is known
    values: Column  # if it follows from one choice at most, for each of its values
    kind: Kind
    parts: tuple[int, ...]

    def sources(self, most: bool) -> list[tuple[int, bool]]:
        """Tell from which end of each part, least or most, an end of it follows."""
        signs = zip(cycle(self.kind.signs), self.parts, strict=False)
        return [(part, (sign == "+") == most) for sign, part in signs]


def listed(values: Column, depths: frozenset[int] = frozenset()) -> Fact:
    """Give a variable of ascending values."""
    step = max(depths, default=-1), 0
    return Fact((values[:1], values[-1:]), depths, step, values, Kind(np.array), ())


def following(facts: Sequence[Fact], kind: Kind, ids: tuple[int, ...]) -> Fact:
    """Give a variable that follows from others."""
    parts = [facts[v] for v in ids]
    values = [part.values for part in parts]
    depths = frozenset[int]().union(*(part.depths for part in parts))
    call = max(len(facts) * kind.called, *(part.step[1] for part in parts))
    step = max(depths, default=-1), call
    made = Fact((np.array([0]), np.array([BEYOND])), depths, step, np.zeros(0), kind, ids)
    if all(map(len, values)) and len(depths) <= (not kind.called):
        made.values, made.step = kind.function(values), (step[0], 0)
        made.ends = made.values.min(keepdims=True), made.values.max(keepdims=True)
    elif kind.signs:
        least, most = (
            kind.function([facts[v].ends[end] for v, end in made.sources(most)])
            for most in (False, True)
        )
        made.ends = least, most
    return made


class Search:
    """When each variable is last used, and the best row so far."""

    def __init__(
        self, facts: list[Fact], choices: list[int], held: list[int], cost: list[int]
    ) -> None:
        # What the first cost is held to sinks to the least so far; no choice makes it known.
        self.limit = listed(np.array([0, LARGEST]), frozenset({-1}))
        self.facts, self.choices, self.cost = [*facts, self.limit], choices, cost
        self.facts.append(following(self.facts, KINDS["lessOrEqual"], (cost[0], len(facts))))
        self.held = {*held, len(facts) + 1}
        self.last = dict.fromkeys([*choices, *cost], (len(choices), 0))  # the step of its last use
        for v, fact in reversed([*enumerate(self.facts)]):
            if v in self.held and not fact.ends[0]:  # else it holds for sure
                self.last[v] = fact.step
            for part in fact.parts if v in self.last else ():
                self.last[part] = max(self.last.get(part, fact.step), fact.step)
        self.steps: list[dict[Step, list[int]]] = [{} for _ in choices]  # what is known after each
        for (depth, call), v in sorted((self.facts[v].step, v) for v in self.last):
            if depth >= 0:
                self.steps[depth].setdefault((depth, call), []).append(v)
        self.ahead = [self._ahead(depth) for depth in range(len(choices))]
        self.counts = [len(self.facts[choice].values) for choice in choices]
        self.best: Table = {}  # the values of the choices
        self.least: list[int] = []

    def _ahead(self, depth: int) -> list[tuple[int, bool]]:
        """List the ends of what is known later that tell, after a choice, what cannot hold."""
        # Whether a value is allowed is seen once it is known: looking ahead would seldom tell more.
        held = self.held & self.last.keys()
        wanted, found = {(v, True) for v in held if len(self.facts[v].parts) > 1}, []
        for v in sorted(self.last, reverse=True):
            fact = self.facts[v]
            if fact.kind.signs and depth in fact.depths and fact.step > (depth, 0):
                for most in (most for most in (False, True) if (v, most) in wanted):
                    found.append((v, most))
                    wanted.update(fact.sources(most))
        return found[::-1]

    def minimum(self) -> tuple[int, ...]:
        """Find the values of all variables with the least cost; none if there is no solution."""
        if not all(self.facts[v].ends[1] for v in self.held):
            return ()
        for sample in (True, False):  # of a few rows, to bound the cost that is searched for
            waiting: list[tuple[int, Table]] = [(0, {})]
            while waiting and self.limit.ends[1] >= self.facts[self.cost[0]].ends[0]:
                depth, table = waiting.pop()
                if depth == len(self.choices):
                    self._consider(table, sample)
                    continue
                length = len(table[self.choices[0]]) if table else 1
                rows = max(1, MOST_ROWS // self.counts[depth])
                if length > rows and sample:
                    table = _taken(table, np.linspace(0, length - 1, rows).astype(np.intp))
                elif length > rows:
                    waiting.append((depth, _taken(table, slice(rows, None))))
                    table = _taken(table, slice(rows))
                if table := self._advance(depth, table):
                    waiting.append((depth + 1, table))
        return self._followed()

    def _advance(self, depth: int, table: Table) -> Table:
        """Repeat rows for each value of a choice; gives those that may be the best, if any."""
        table = {v: column[:, None] for v, column in table.items()}  # a grid [row, value] at first
        for step, fresh in self.steps[depth].items():
            for v in fresh:
                fact = self.facts[v]
                parts = [table.get(part, self.facts[part].ends[1]) for part in fact.parts]
                table[v] = fact.values[None, :] if len(fact.values) else fact.kind.function(parts)
            holds = [table[v] for v in fresh if v in self.held]
            if step == (depth, 0):
                holds += self._hopes(depth, table)
            table = self._kept(table, holds, step)
            if not table:
                break
        return table

    def _hopes(self, depth: int, table: Table) -> list[Column]:
        """Tell for what must hold later whether it can."""
        found = {(v, most): column for v, column in table.items() for most in (False, True)}
        for v, most in self.ahead[depth]:
            fact = self.facts[v]
            ends = [(end, self.facts[end[0]].ends[end[1]]) for end in fact.sources(most)]
            found[v, most] = fact.kind.function([found.get(end, known) for end, known in ends])
        return [found[end] for end in self.ahead[depth] if end[0] in self.held]

    def _kept(self, table: Table, holds: Sequence[Column], step: Step) -> Table:
        """Give the rows where all holds, of the columns that are used later; {} if none are."""
        shape = np.broadcast_shapes(*(column.shape for column in table.values()))
        holding = reduce(np.logical_and, holds) if holds else np.array(True)
        picked = np.flatnonzero(np.broadcast_to(holding, shape))
        places = {shape: picked}
        if len(shape) == 2:
            rows = picked // shape[1]
            places = {(1, shape[1]): picked - rows * shape[1], (shape[0], 1): rows, shape: picked}
        used = [v for v in table if self.last[v] > step and len(picked)]
        return {v: table[v].ravel().take(places[table[v].shape]) for v in used}

    def _consider(self, table: Table, sample: bool) -> None:
        """Take the first of the cheapest rows, if it is cheaper than the best so far."""
        length = len(table[self.choices[0]]) if table else 1
        costs = [np.broadcast_to(table.get(v, self.facts[v].ends[1]), length) for v in self.cost]
        row = np.lexsort(costs[::-1])[0]
        least = [int(column[row]) for column in costs]
        if not sample and (not self.least or least < self.least):
            self.best, self.least = {v: table[v][row : row + 1] for v in self.choices}, least
        most = least[0] - (len(least) == 1 and not sample)
        self.limit.ends = self.limit.ends[0], np.minimum(self.limit.ends[1], most)

    def _followed(self) -> tuple[int, ...]:
        """Give the values of all variables that follow from the best of the choices."""
        values = self.best
        for v, fact in enumerate(self.facts[:-2] if self.least else ()):
            if v not in values:
                parts = [values[part] for part in fact.parts]
                values[v] = fact.kind.function(parts) if parts else fact.ends[0]
        return tuple(int(values[v][0]) for v in range(len(values)))


def _taken(table: Table, rows: slice | Column) -> Table:
    return {v: column[rows] for v, column in table.items()}
