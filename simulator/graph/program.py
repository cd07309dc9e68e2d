"""The control program: a tree of steps.

A node is its own identity: one node stands for one place in the program, and may be used twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from simulator.graph.arguments import refuse_in
from simulator.graph.errors import PoplarError
from simulator.graph.host.copy_ends import End, check_ends, check_same, moved_rows
from simulator.graph.host.host_functions import HostFunction
from simulator.graph.replicas import everywhere
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, Type, checked_values
from simulator.graph.validation.checks import check_writable
from simulator.graph.vertices.vertex import ComputeSet


class Program:
    """A step of the control program.

    >>> isinstance(Sequence(), Program)
    True
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        refuse_in(cls)


@dataclass(slots=True, eq=False, init=False)
class Sequence(Program):
    """Run programs one after another.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(Sequence(Copy(x, y), name="copies"))
    >>> trial.values(y)
    [1.0, 2.0]
    """

    children: list[Program]
    name: str = ""

    def __init__(self, *children: Program | Iterable[Program], name: str = "") -> None:
        self.children = []
        self.name = name
        for child in children:
            if isinstance(child, Program):
                self.add(child)
            elif isinstance(child, str):  # Sequence([first, second], "name")
                self.name = child
            else:
                self.children.extend(map(checked_program, child))

    def add(self, child: Program) -> None:
        """Append a program.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
        >>> trial.prog.add(Copy(x, y))
        >>> trial.values(y)
        [1.0, 2.0]
        """
        self.children.append(checked_program(child))


@dataclass(frozen=True, slots=True, eq=False)
class Execute(Program):
    """Run all vertices of a compute set.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> Execute(trial.graph.addComputeSet("add")).name
    'add'
    """

    compute_set: ComputeSet
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.compute_set, ComputeSet):
            raise PoplarError(f"Execute: needs a compute set, not {self.compute_set!r}")
        object.__setattr__(self, "name", self.name or self.compute_set.name)


@dataclass(frozen=True, slots=True, eq=False)
class Repeat(Program):
    """Run a program a fixed number of times.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, step = trial.tensor([1]), Sequence()
    >>> popops.addInPlace(trial.graph, x, 1, step)
    >>> trial.prog.add(Repeat(3, step))
    >>> trial.values(x)
    [4]
    """

    count: int
    body: Program
    name: str = ""

    def __post_init__(self) -> None:
        checked_program(self.body)
        if not isinstance(self.count, int | np.integer) or self.count < 0:
            raise PoplarError(f"Repeat: count is {self.count!r}; a number of 0 or more is needed")
        object.__setattr__(self, "count", int(self.count))


@dataclass(frozen=True, slots=True, eq=False)
class RepeatWhile(Program):
    """Run `cond`; while the predicate is as wanted then, run the body and `cond` again.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, step = trial.tensor([3]), Sequence()
    >>> popops.subInPlace(trial.graph, x, 1, step)
    >>> trial.prog.add(RepeatWhileTrue(Sequence(), x, step))
    >>> trial.values(x)
    [0]
    """

    cond: Program
    predicate: Tensor
    body: Program
    name: str = ""

    def __post_init__(self) -> None:
        checked_program(self.cond)
        checked_program(self.body)
        _set(self, "predicate", _predicate(self, self.predicate))


class RepeatWhileTrue(RepeatWhile):
    """Loop while the predicate is not zero.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, step = trial.tensor([3]), Sequence()
    >>> popops.subInPlace(trial.graph, x, 1, step)
    >>> trial.prog.add(RepeatWhileTrue(Sequence(), x, step))
    >>> trial.values(x)
    [0]
    """

    __slots__ = ()


class RepeatWhileFalse(RepeatWhile):
    """Loop while the predicate is zero.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, step = trial.tensor([0]), Sequence()
    >>> popops.addInPlace(trial.graph, x, 1, step)
    >>> trial.prog.add(RepeatWhileFalse(Sequence(), x, step))
    >>> trial.values(x)
    [1]
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class If(Program):
    """Run one of two programs: the first when the predicate is not zero.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> one, two, y = (trial.tensor([number]) for number in (1, 2, 0))
    >>> trial.prog.add(If(trial.tensor([True]), Copy(one, y), Copy(two, y)))
    >>> trial.values(y)
    [1]
    """

    predicate: Tensor
    trueBody: Program
    falseBody: Program = field(default_factory=Sequence)
    name: str = ""

    def __post_init__(self) -> None:
        checked_program(self.trueBody)
        checked_program(self.falseBody)
        _set(self, "predicate", _predicate(self, self.predicate))


@dataclass(slots=True, eq=False)
class Switch(Program):
    """Run the program of the case that the control tensor holds, else the default.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> one, two, y = (trial.tensor([number]) for number in (1, 2, 0))
    >>> trial.prog.add(Switch(two, [(1, Copy(one, y)), (2, Copy(two, y))]))
    >>> trial.values(y)
    [2]
    """

    control: Tensor
    cases: list[tuple[int, Program]] = field(default_factory=list)
    defaultCaseBody: Program = field(default_factory=Sequence)
    name: str = ""

    def __post_init__(self) -> None:
        self.control = _one_element("Switch", self.control, (INT, UNSIGNED_INT))
        checked_program(self.defaultCaseBody)
        cases, self.cases = list(self.cases), []
        for case in cases:
            self.add(*case)

    def add(self, value: int, body: Program) -> Switch:
        """Add a case; gives the Switch, so that calls can be chained.

        >>> from simulator.trial import Trial
        >>> trial = Trial()
        >>> one, two, y = (trial.tensor([number]) for number in (1, 2, 0))
        >>> trial.prog.add(Switch(two).add(1, Copy(one, y)).add(2, Copy(two, y)))
        >>> trial.values(y)
        [2]
        """
        if not isinstance(value, int | np.integer):
            raise PoplarError(f"Switch: case {value!r}; a whole number is needed")
        checked_values(int(value), self.control.dtype, "Switch: case")
        if any(value == label for label, _ in self.cases):
            raise PoplarError(f"Switch: case {value} stands there twice")
        self.cases.append((int(value), checked_program(body)))
        return self


@dataclass(frozen=True, slots=True)
class Function:
    """A program that several places call; `id` is its place in the list of functions.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.graph.addFunction(Sequence()).id
    0
    """

    id: int
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Call(Program):
    """Run a function of the graph; or one of the host: `Call(function, inputs, outputs)`.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, step = trial.tensor([1]), Sequence()
    >>> popops.addInPlace(trial.graph, x, 1, step)
    >>> function = trial.graph.addFunction(step)
    >>> trial.prog.add(Sequence(Call(function), Call(function)))
    >>> trial.values(x)
    [3]
    """

    function: Function
    name: str = ""

    def __new__(cls, function: object = None, *arguments: Any, **named: Any) -> Any:
        if isinstance(function, HostFunction):
            return _call_host(function, *arguments, **named)
        return object.__new__(cls)

    def __post_init__(self) -> None:
        if not isinstance(self.function, Function):
            raise PoplarError(f"Call: needs a function, not {self.function!r}; see addFunction")


def _call_host(
    function: HostFunction, inputs: list[Tensor], outputs: list[Tensor], name: str = ""
) -> Program:
    """Return the program that sends the inputs, has the function called, and takes its outputs.

    Raises PoplarError for tensors of another number, type or size than the function has.
    """
    for kind, tensors, needed in (
        ("inputs", inputs, function.inputs),
        ("outputs", outputs, function.outputs),
    ):
        if len(tensors) != len(needed):
            raise PoplarError(
                f"Call of host function {function.handle!r}: {len(tensors)} {kind}; it has "
                f"{len(needed)}"
            )
    sent = [Copy(tensor, end) for tensor, end in zip(inputs, function.inputs, strict=True)]
    received = [Copy(end, tensor) for end, tensor in zip(function.outputs, outputs, strict=True)]
    return Sequence([*sent, *received], name=name or function.handle)


@dataclass(frozen=True, slots=True, eq=False)
class Block(Program):
    """Name a program, so that a profile shows when it begins and ends.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(Block(Copy(x, y), "first"))
    >>> trial.values(y)
    [1.0, 2.0]
    """

    body: Program
    name: str

    def __post_init__(self) -> None:
        checked_program(self.body)
        if not isinstance(self.name, str) or not self.name:
            raise PoplarError(f"Block: name is {self.name!r}; a text is needed")


@dataclass(frozen=True, slots=True, eq=False)
class Copy(Program):
    """Copy between tensors, from or to a stream, or rows from or to a remote buffer.

    `offset` holds the numbers of the rows of a remote buffer; without it row 0 is meant.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(Copy(x, y))
    >>> trial.values(y)
    [1.0, 2.0]
    """

    src: End
    dst: End
    offset: Tensor | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.offset, str):  # Copy(src, dst, "name")
            _set(self, "name", self.offset)
        # Copy(src, dst, dontOutline, "name"): no copy is outlined here.
        if isinstance(self.offset, str | bool):
            _set(self, "offset", None)
        subject = f"Copy {self.name}".rstrip()
        check_ends(subject, self.src, self.dst)
        for side in ("src", "dst"):
            end = getattr(self, side)
            if isinstance(end, Tensor):
                _set(self, side, everywhere(end))
        if isinstance(self.dst, Tensor):
            check_writable(self.dst, subject)
        rows = moved_rows(subject, self.src, self.dst, self.offset)
        if self.offset is not None:
            _set(self, "offset", everywhere(self.offset))
        check_same(subject, self.src, self.dst, rows)


@dataclass(frozen=True, slots=True, eq=False)
class CrossReplicaCopy(Program):
    """Copy a tensor of each replica to a tensor of another: `replicaMap` says which to which.

    >>> from simulator import poplar
    >>> target = poplar.Target.createIPUTarget(2, "tiny")
    >>> graph = poplar.Graph(target, poplar.replication_factor(2))
    >>> x, y = (graph.addVariable(FLOAT, [2], name) for name in "xy")
    >>> CrossReplicaCopy(x, y, {0: 1, 1: 0}).replicaMap
    {0: 1, 1: 0}
    """

    src: Tensor
    dst: Tensor
    replicaMap: Mapping[int, int]
    name: str = ""

    def __post_init__(self) -> None:
        subject = f"CrossReplicaCopy {self.name}".rstrip()
        graph = self.src.graph
        count = graph.getReplicationFactor()
        everyone = list(range(count))
        if sorted(self.replicaMap) != everyone or sorted(self.replicaMap.values()) != everyone:
            raise PoplarError(
                f"{subject}: replica map {dict(self.replicaMap)}; each of the replicas 0 to "
                f"{count - 1} must stand once on each side"
            )
        check_same(subject, self.src, self.dst)
        source, destination = everywhere(self.src), everywhere(self.dst)
        if graph.window.replicas > 1:
            senders = {receiver: sender for sender, receiver in self.replicaMap.items()}
            source = concat([source[senders[receiver]].expand([0]) for receiver in everyone])
        check_writable(destination, subject)
        _set(self, "src", source)
        _set(self, "dst", destination)


@dataclass(frozen=True, slots=True, eq=False)
class PrintTensor(Program):
    """Print a tensor on the host under a title.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(PrintTensor("x", x))
    >>> trial.prog.children[0].title
    'x'
    """

    title: str
    tensor: Tensor
    name: str = field(init=False)

    def __init__(self, title: str | Tensor, tensor: Tensor | None = None) -> None:
        printed = title if isinstance(title, Tensor) else tensor
        text = title.describe() if isinstance(title, Tensor) else title
        if printed is None:
            raise PoplarError(f"PrintTensor {text!r}: needs a tensor")
        _set(self, "title", text)
        _set(self, "tensor", everywhere(printed))
        _set(self, "name", text)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorProgram(Program):
    """End the run with an error that shows a message and a tensor.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(ErrorProgram("stop", x))
    >>> trial.values(x)
    Traceback (most recent call last):
    simulator.graph.errors.application_runtime_error: ...
    """

    message: str
    tensor: Tensor
    name: str = ""

    def __post_init__(self) -> None:
        _set(self, "tensor", everywhere(self.tensor))


@dataclass(frozen=True, slots=True, eq=False)
class Abort(Program):
    """End the run with an error that shows a message.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(Abort("stop"))
    >>> trial.values(x)
    Traceback (most recent call last):
    simulator.graph.errors.application_runtime_error: ...
    """

    message: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        _check_message(self, self.message)


@dataclass(frozen=True, slots=True, eq=False)
class AbortOnCondition(Program):
    """End the run with an error when a tensor of one element is not zero.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(AbortOnCondition(trial.tensor([True]), "stop"))
    >>> trial.values(x)
    Traceback (most recent call last):
    simulator.graph.errors.application_runtime_error: ...
    """

    predicate: Tensor
    message: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        _set(self, "predicate", _predicate(self, self.predicate))
        _check_message(self, self.message)


@dataclass(frozen=True, slots=True, eq=False)
class AssumeEqualAcrossReplicas(Program):
    """Declare that all replicas hold the same; nothing is done, and nothing checked here.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(AssumeEqualAcrossReplicas(x))
    >>> trial.values(x)
    [1.0, 2.0]
    """

    tensor: Tensor
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class WriteUndef(Program):
    """Declare that the value of a tensor is no longer needed.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(Sequence(WriteUndef(y), Copy(x, y)))
    >>> trial.values(y)
    [1.0, 2.0]
    """

    tensor: Tensor
    name: str = ""

    def __post_init__(self) -> None:
        _set(self, "tensor", everywhere(self.tensor))


class SyncType(Enum):
    """Who waits: the tiles of each IPU, all tiles and the host, or all tiles of all replicas."""

    INTERNAL = "Internal"
    EXTERNAL = "External"
    GLOBAL = "Global"


@dataclass(frozen=True, slots=True, eq=False)
class Sync(Program):
    """Let tiles wait for one another.

    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, y = trial.tensor([1.0, 2.0]), trial.tensor([0.0, 0.0])
    >>> trial.prog.add(Sequence(Copy(x, y), Sync(SyncType.EXTERNAL)))
    >>> trial.values(y)
    [1.0, 2.0]
    """

    type: SyncType = SyncType.INTERNAL
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.type, SyncType):
            raise PoplarError(f"Sync: type is {self.type!r}; one such as SyncType.INTERNAL")


def checked_program(child: object) -> Program:
    """Return a program back, or raise PoplarError for anything else."""
    if not isinstance(child, Program):
        raise PoplarError(f"a program is needed, not {child!r}")
    return child


def children_of(node: Program) -> list[Program]:
    """List the programs right below one, in the order in which it names them."""
    match node:
        case Sequence():
            return node.children
        case Repeat() | Block():
            return [node.body]
        case RepeatWhile():
            return [node.cond, node.body]
        case If():
            return [node.trueBody, node.falseBody]
        case Switch():
            return [*(body for _, body in node.cases), node.defaultCaseBody]
    return []


def tensors_of(node: Program) -> list[Tensor]:
    """List the tensors that a program reads or writes by itself."""
    match node:
        case Copy() | CrossReplicaCopy():
            ends = (node.src, node.dst, getattr(node, "offset", None))
            return [end for end in ends if isinstance(end, Tensor)]
        case PrintTensor() | ErrorProgram() | WriteUndef() | AssumeEqualAcrossReplicas():
            return [node.tensor]
        case RepeatWhile() | If() | AbortOnCondition():
            return [node.predicate]
        case Switch():
            return [node.control]
    return []


def _set(node: Program, name: str, value: object) -> None:
    object.__setattr__(node, name, value)


def _check_message(node: Program, message: object) -> None:
    if not isinstance(message, str):
        raise PoplarError(f"{type(node).__name__}: message is {message!r}; a text is needed")


def _predicate(node: Program, tensor: Tensor) -> Tensor:
    return _one_element(type(node).__name__, tensor, (BOOL, INT, UNSIGNED_INT, HALF, FLOAT))


def _one_element(kind: str, tensor: Tensor, types: tuple[Type, ...]) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise PoplarError(f"{kind}: needs a tensor to decide by, not {tensor!r}")
    if tensor.numElements() != 1 or tensor.dtype not in types:
        names = ", ".join(map(str, types))
        raise PoplarError(
            f"{kind}: {tensor!r}; a tensor of one element of one of these types is needed: {names}"
        )
    return everywhere(tensor)
