"""The control program: a tree of steps.

A node is its own identity: one node stands for one place in the program, and may be used twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.graph import ComputeSet
from simulator.graph.streams import Stream
from simulator.graph.tensor import Tensor
from simulator.graph.validate import check_writable


class Program:
    """A step of the control program."""

    __slots__ = ()


@dataclass(slots=True, eq=False, init=False)
class Sequence(Program):
    """Run programs one after another."""

    children: list[Program]
    name: str = ""

    def __init__(self, *children: Program | Iterable[Program], name: str = "") -> None:
        self.children = []
        self.name = name
        for child in children:
            if isinstance(child, Program):
                self.add(child)
            else:
                self.children.extend(map(_checked, child))

    def add(self, child: Program) -> None:
        """Append a program."""
        self.children.append(_checked(child))


@dataclass(frozen=True, slots=True, eq=False)
class Execute(Program):
    """Run all vertices of a compute set."""

    compute_set: ComputeSet
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.compute_set, ComputeSet):
            raise PoplarError(f"Execute: needs a compute set, not {self.compute_set!r}")
        object.__setattr__(self, "name", self.name or self.compute_set.name)


@dataclass(frozen=True, slots=True, eq=False)
class Repeat(Program):
    """Run a program a fixed number of times."""

    count: int
    body: Program
    name: str = ""

    def __post_init__(self) -> None:
        _checked(self.body)
        if not isinstance(self.count, int | np.integer) or self.count < 0:
            raise PoplarError(f"Repeat: count is {self.count!r}; a number of 0 or more is needed")
        object.__setattr__(self, "count", int(self.count))


@dataclass(frozen=True, slots=True, eq=False)
class Copy(Program):
    """Copy a tensor to a tensor, a stream to a tensor or a tensor to a stream."""

    src: Tensor | Stream
    dst: Tensor | Stream
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.src, Stream) and isinstance(self.dst, Stream):
            raise PoplarError(
                f"Copy {self.name}: from stream {self.src.handle!r} to stream "
                f"{self.dst.handle!r}; one of the two must be a tensor"
            )
        if isinstance(self.src, Stream) and self.src.direction != "in":
            raise PoplarError(f"Copy from stream {self.src.handle!r}: it goes to the host")
        if isinstance(self.dst, Stream) and self.dst.direction != "out":
            raise PoplarError(f"Copy to stream {self.dst.handle!r}: it comes from the host")
        if isinstance(self.dst, Tensor):
            check_writable(self.dst, f"Copy {self.name}".rstrip())
        if self.src.dtype != self.dst.dtype or _size(self.src) != _size(self.dst):
            raise PoplarError(
                f"Copy {self.name}: {_side(self.src)} to {_side(self.dst)}; "
                "type and number of elements must be the same"
            )


@dataclass(frozen=True, slots=True, eq=False)
class PrintTensor(Program):
    """Print a tensor on the host under a title."""

    title: str
    tensor: Tensor
    name: str = field(init=False)

    def __init__(self, title: str | Tensor, tensor: Tensor | None = None) -> None:
        printed = title if isinstance(title, Tensor) else tensor
        text = title.describe() if isinstance(title, Tensor) else title
        if printed is None:
            raise PoplarError(f"PrintTensor {text!r}: needs a tensor")
        object.__setattr__(self, "title", text)
        object.__setattr__(self, "tensor", printed)
        object.__setattr__(self, "name", text)


@dataclass(frozen=True, slots=True, eq=False)
class WriteUndef(Program):
    """Declare that the value of a tensor is no longer needed."""

    tensor: Tensor
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Sync(Program):
    """Let all tiles wait for one another; `external` also for the host."""

    external: bool = False
    name: str = ""


def _checked(child: object) -> Program:
    if not isinstance(child, Program):
        raise PoplarError(f"a program is needed, not {child!r}")
    return child


def _size(side: Tensor | Stream) -> int:
    return side.elements if isinstance(side, Stream) else side.numElements()


def _side(side: Tensor | Stream) -> str:
    name = f"stream {side.handle!r}" if isinstance(side, Stream) else side.describe()
    return f"{name} ({_size(side)} x {side.dtype})"
