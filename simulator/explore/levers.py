"""What may vary, and the points that it makes: each the arguments of one `tilescope simulate`."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pva.version import VERSION
from simulator.graph.errors import PoplarError
from simulator.graph.machine.files import SUFFIX as MACHINE
from simulator.graph.machine.target import part_name

MODEL = ".onnx"
OPTION = "option:"
VALUES = "simulator.computeValues"
NONE = "none"  # the value that leaves an option out
# Levers of a training, which must be one.
OF_TRAINING = ("recompute", "optimizer")
# What `simulate` takes for a model where an option is left out: the same point.
DEFAULTS = {"precision": "float", "ipus": "1", "target": "mk2", "repeat": "1", "io-tiles": "0",
            "memory-proportion": "0.6", "recompute": NONE, "optimizer": "sgd"}  # fmt: skip
KEY_DIGITS = 16

Levers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Space:
    """A program, the arguments that all points share, and the values of each lever."""

    program: str
    shared: tuple[str, ...]
    levers: Mapping[str, tuple[str, ...]]

    @property
    def size(self) -> int:
        """Count its points."""
        return math.prod(map(len, self.levers.values()))

    def points(self) -> Iterator[Point]:
        """Make every point, the last lever the fastest."""
        for values in itertools.product(*self.levers.values()):
            yield self.point(dict(zip(self.levers, values, strict=True)))

    def point(self, levers: Levers) -> Point:
        """Make one point, whose key follows from all that it is compiled from."""
        return Point(address(self, levers), dict(levers), arguments(self, levers))


@dataclass(frozen=True, slots=True)
class Point:
    """One configuration: its address, the values of its levers, the arguments of `simulate`."""

    key: str
    levers: dict[str, str]
    arguments: tuple[str, ...]


def read_levers(pairs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read LEVER=VALUE,VALUE pairs; raises PoplarError."""
    levers: dict[str, tuple[str, ...]] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        values = tuple(dict.fromkeys(value.strip() for value in text.split(",")))
        name = name.strip().removeprefix("--")
        if not name or not equals or not all(values):
            raise PoplarError(f"--vary {pair}: write LEVER=VALUE,VALUE, as batch=1,2,4")
        if name in levers:
            raise PoplarError(f"--vary {name}: it is there twice; write all its values together")
        for value in values if name == "target" else ():
            part_name("--vary target", value)
        levers[name] = values
    return levers


def arguments(space: Space, levers: Levers) -> tuple[str, ...]:
    """Return the arguments of `tilescope simulate` for a point, but for its --out."""
    words = [text for name, value in levers.items() for text in _argument(name, value)]
    return (space.program, *_shared(space, levers), *words)


def _shared(space: Space, levers: Levers) -> list[str]:
    """Return the arguments of all points, with those that the levers imply."""
    model = space.program.endswith(MODEL)
    shared = [*_unset(space.shared, levers)] if model else list(space.shared)
    if model and "--no-values" not in shared:
        shared.append("--no-values")
    if model and "--train" not in shared and any(lever in levers for lever in OF_TRAINING):
        shared.append("--train")
    if _goes_without_values(space):
        shared += ["--option", f"{VALUES}=false"]
    return shared


def _unset(shared: Sequence[str], levers: Levers) -> Iterator[str]:
    """Return the arguments of a model's simulation without the options that levers set."""
    options = {f"--{name}" for name in levers}
    words = iter(shared)
    for word in words:
        name, equals, _ = word.partition("=")
        if name not in options:
            yield word
        elif not equals:
            next(words, None)  # its value


def _goes_without_values(space: Space) -> bool:
    """Return whether it is a file, whose engines take options, and that says nothing of values."""
    return space.program.endswith(".py") and VALUES not in " ".join((*space.shared, *space.levers))


def _argument(name: str, value: str) -> list[str]:
    """Return the arguments that set one lever; `none` leaves it out, as in recompute=none,all."""
    if name.startswith(OPTION):
        return ["--option", f"{name.removeprefix(OPTION)}={value}"]
    return [] if value == NONE else [f"--{name}={value}"]


def address(space: Space, levers: Levers) -> str:
    """Return the address of a point: a hash of its program, machine, arguments and of the toolkit.

    What a Python program imports is not in it: a changed module needs a new directory.
    """
    model = space.program.endswith(MODEL)
    parts = [
        VERSION,
        _content(Path(space.program)),
        _shared(space, levers),
        {
            name: _value(name, value)
            for name, value in sorted(levers.items())
            if not (model and DEFAULTS.get(name) == value)
        },
        [_content(Path(text)) for text in space.shared if text.endswith(MACHINE)],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:KEY_DIGITS]


def _value(name: str, value: str) -> str:
    return _content(Path(value)) if name == "target" and value.endswith(MACHINE) else value


def _content(path: Path) -> str:
    """Return a hash of a file; the name itself where there is none, as of a program of ours."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return str(path)
