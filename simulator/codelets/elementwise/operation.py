"""What an element-wise operator is: names, values, and the cycles of its inner loop by type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.machine.target import Target
from simulator.graph.types import BOOL, Array, Type


class Step(NamedTuple):
    """One step of an inner loop: its cycles, and its elements (0: one vector of the data path).

    With `overhead` the loop itself is not in the cycles: each kind of vertex adds its own.
    """

    cycles: int
    elements: int
    overhead: bool = False

    def width(self, dtype: Type, target: Target) -> int:
        """Return the elements of a step."""
        return self.elements or target.getVectorWidth(dtype)


Steps = dict[str, Step]


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An element-wise operator. `steps` are its cycles by the types that it takes.

    `name` is that of PopLibs' enumerations, `function` of popops, `expression` of popops::expr.
    `in_place` are the steps of a unary operator in place, where an input is loaded and its output
    stored through one pointer; `with_number` of a binary one with a number, which is loaded once.
    A `boolean` operator gives truth values; one by `predicate` takes them as its last operand. Its
    loop for float and half may be in `assembly`; `start` are the cycles of a worker before a unary
    one, `flops` the floating-point operations of an element. `example` are operands and a result as
    texts, for the docstrings; a comparison has another of truth values, which it can replace.
    """

    name: str
    function: str
    expression: str
    compute: Callable[..., Array]
    steps: Steps
    in_place: Steps | None = None
    with_number: Steps | None = None
    boolean: bool = False
    predicate: bool = False
    assembly: bool = False
    start: int = 17
    flops: int = 1
    example: tuple[str, ...] = field(kw_only=True)
    truth_example: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """Return the names of the types that it takes."""
        return tuple(self.steps)

    @property
    def replaces(self) -> bool:
        """Return whether its result may have the type of its operands, and so their place."""
        return not self.boolean or BOOL.name in self.steps

    def result_type(self, dtype: Type, name: str) -> Type:
        """Return the type of what comes of operands of a type; raises poplibs_error with a name."""
        if dtype.name not in self.steps:
            type_names = ", ".join(self.steps)
            raise poplibs_error(f"{name}: {self.name} of {dtype}; known for {type_names}")
        return BOOL if self.boolean else dtype

    @property
    def debug_name(self) -> str:
        """Return PopLibs' name of the operator in compute sets: LESS_THAN is LessThan."""
        joined = "".join(word.capitalize() for word in self.name.split("_"))
        return {"IsNan": "IsNaN"}.get(joined, joined)


Table = Mapping[str, Operation]


def table(*operations: Operation) -> Table:
    """Return operators by their names in PopLibs' enumerations."""
    return {operation.name: operation for operation in operations}


def step_of(steps: Steps | None, operation: Operation, dtype: Type) -> Step:
    """Return the step of an operator on a type; raises PoplarError where there is none."""
    if not steps or dtype.name not in steps:
        type_names = ", ".join(steps or ()) or "no type"
        raise PoplarError(f"operation {operation.name} on {dtype}: known for {type_names}")
    return steps[dtype.name]


# Steps as the rows of the table are written with
def vector(cycles: int) -> Step:
    """Return a step of one vector."""
    return Step(cycles, 0, True)


def scalar(cycles: int) -> Step:
    """Return a step of one element."""
    return Step(cycles, 1, True)


def floats(single: Step, half: Step) -> Steps:
    """Return the steps of float and half."""
    return {"float": single, "half": half}


def ints(step: Step, unsigned: Step | None = None) -> Steps:
    """Return the steps of integers of 4 bytes."""
    return {"int": step, "unsigned int": unsigned or step}


def longs(step: Step, unsigned: Step | None = None) -> Steps:
    """Return the steps of integers of 8 bytes."""
    return {"long long": step, "unsigned long long": unsigned or step}


def shorts(step: Step) -> Steps:
    """Return the step of integers of 2 bytes."""
    return {"short": step, "unsigned short": step}


def whole(word: int, long: int) -> Steps:
    """Return integers of 4 and of 8 bytes, one by one."""
    return ints(Step(word, 1)) | longs(Step(long, 1))


def signs(word: tuple[int, int], long: tuple[int, int]) -> Steps:
    """Return signed and unsigned integers of 4 and of 8 bytes, one by one."""
    (i, u), (q, v) = word, long
    return ints(Step(i, 1), Step(u, 1)) | longs(Step(q, 1), Step(v, 1))


def compare(single: int, half: int, word: int, long: int, boolean: int) -> Steps:
    """Return a comparison: four elements a step, of every type."""
    steps = floats(Step(single, 4), Step(half, 4)) | {"bool": Step(boolean, 4)}
    return steps | ints(Step(word, 4)) | longs(Step(long, 4))
