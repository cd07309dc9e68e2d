"""What a random program means, told in NumPy: values, streams, rows of buffers, printed text.

It knows nothing of tiles and steps. A node says what it runs; `Machine.run` is the way through.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
Task = Callable[["Machine", int], None]  # what a step does to one replica
Way = Callable[["Machine", int], int]  # which of its bodies a node takes in one replica


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A step (`task`), or bodies: all in a row `count` times, the one of `way`, or a while loop.

    A while loop runs its first body, the check, before each run of the second and at the end;
    `way` says whether (1) or not (0) the second one comes.
    """

    bodies: tuple[Node, ...] = ()
    count: int = 1
    way: Way | None = None
    loop: bool = False
    task: Task | None = None
    crossing: Callable[[Machine], None] | None = None


def step(task: Task) -> Node:
    """Make a node that does one thing in each replica."""
    return Node(task=task)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Elements of the model's memory of a type: their numbers, in the shape of the tensor."""

    dtype: str
    at: Array


@dataclass(slots=True, eq=False)
class Machine:
    """The state: memory[replica][type], rows[buffer][replica], streams by (name, replica)."""

    memory: list[dict[str, Array]]
    rows: dict[str, list[Array]] = field(default_factory=dict)
    given: dict[tuple[str, int], Array] = field(default_factory=dict)  # [transfer][element]
    taken: dict[tuple[str, int], int] = field(default_factory=dict)
    sent: dict[tuple[str, int], list[Array]] = field(default_factory=dict)
    text: str = ""

    def read(self, replica: int, place: Place) -> Array:
        values: Array = self.memory[replica][place.dtype][place.at]
        return values

    def write(self, replica: int, place: Place, values: Array) -> None:
        self.memory[replica][place.dtype][place.at] = values

    def fetch(self, name: str, replica: int) -> Array:
        """Take the next transfer of a stream, which begins again after the last."""
        transfers = self.given[name, replica]
        number = self.taken.get((name, replica), 0)
        self.taken[name, replica] = number + 1
        values: Array = transfers[number % len(transfers)]
        return values

    def run(self, node: Node, together: bool) -> None:
        """Run a program; replicas that do not run together go from one meeting to the next."""
        everyone = list(range(len(self.memory)))
        groups = [everyone] if together else [[replica] for replica in everyone]
        walks = [self._walk(node, group) for group in groups]
        while True:
            meetings = [next(walk, None) for walk in walks]
            if meetings[0] is None:
                assert set(meetings) == {None}
                return
            meetings[0](self)

    def _walk(
        self, node: Node, group: list[int]
    ) -> Generator[Callable[[Machine], None], None, None]:
        if node.crossing is not None:
            yield node.crossing
        elif node.task is not None:
            for replica in group:
                node.task(self, replica)
        elif node.loop:
            check, body = node.bodies
            yield from self._walk(check, group)
            while self._way(node, group):
                yield from self._walk(body, group)
                yield from self._walk(check, group)
        elif node.way is not None:
            yield from self._walk(node.bodies[self._way(node, group)], group)
        else:
            for _ in range(node.count):
                for body in node.bodies:
                    yield from self._walk(body, group)

    def _way(self, node: Node, group: list[int]) -> int:
        assert node.way is not None
        ways = {node.way(self, replica) for replica in group}
        assert len(ways) == 1
        return ways.pop()


def printed(values: Array, depth: int = 0) -> str:
    """Write values as a C++ stream and Poplar do: rows in braces, six digits."""
    if not values.ndim:
        number = values.item()
        return f"{number:.6g}" if isinstance(number, float) else str(int(number))
    parts = [printed(part, depth + 1) for part in values]
    if values.ndim == 1:
        return "{" + ",".join(parts) + "}"
    return "{\n" + ",\n".join(" " * (depth + 1) + part for part in parts) + f"\n{' ' * depth}}}"
