"""What a run takes in, as far as who starts it knows: a report tells items a second from it."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from operator import index

from simulator.graph.errors import PoplarError

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Work:
    """The items of a run, such as images, of all replicas, and the batches that they come in.

    `batches` are those that one replica takes in one after another; `stages` how many of them are
    in its pipeline at once when that is full, 1 without a pipeline. -1 stands for what is unknown.

    >>> Work(items=32, batches=4).items
    32
    """

    items: int = UNKNOWN
    batches: int = UNKNOWN
    stages: int = UNKNOWN

    def __post_init__(self) -> None:
        for field, value in zip(fields(self), astuple(self), strict=True):
            try:
                number = index(value)
            except TypeError:
                number = 0
            if number < 1 and number != UNKNOWN:
                raise PoplarError(
                    f"Work: {field.name} is {value!r}; at least 1 is needed, or {UNKNOWN} for what"
                    " is not known"
                )


NOTHING_KNOWN = Work()
