"""Vertices: groups of them as arrays, and the classes with which a user writes a codelet.

A codelet is a class; a trailing underscore is no part of a field's name:

    class SumVertex(poplar.Vertex):
        in_ = poplar.Input(poplar.Vector(poplar.FLOAT))
        out = poplar.Output(poplar.FLOAT)

        def compute(self) -> None:
            self.out[0] = self.in_.sum()

In `compute` every field is a NumPy array (a VectorList: a list of them), a scalar one of length 1:
an Input cannot be written, an Output not be read before it is written. A type or Vector by itself
is a field of the vertex's own, a number or an array, which `setInitialValue` sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from simulator.graph.deferred import DeferredFields
from simulator.graph.errors import PoplarError
from simulator.graph.geometry.intervals import as_int64, cut, offsets_of, spread
from simulator.graph.tensors.arena import Arena
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray, Type, checked_type

Direction = Literal["input", "output", "inout"]


@dataclass(frozen=True, slots=True)
class Vector:
    """A field of any number of elements, or of exactly `length`; alone: of initial values.

    >>> from simulator.graph.types import FLOAT
    >>> Vector(FLOAT, 4).length
    4
    """

    dtype: Type
    length: int | None = None

    def __post_init__(self) -> None:
        checked_type(self.dtype, "Vector")
        if self.length is not None and (not isinstance(self.length, int) or self.length < 0):
            raise PoplarError(f"Vector: length is {self.length!r}; 0 or more is needed")


@dataclass(frozen=True, slots=True)
class VectorList:
    """A field of any number of vectors.

    >>> from simulator.graph.types import FLOAT
    >>> VectorList(FLOAT).dtype.name
    'float'
    """

    dtype: Type

    def __post_init__(self) -> None:
        checked_type(self.dtype, "VectorList")


@dataclass(frozen=True, slots=True)
class Edge:
    """The declaration of a field that is joined to a tensor; a plain type is one element.

    >>> from simulator.graph.types import FLOAT
    >>> Input(FLOAT).length, Input(Vector(FLOAT)).length
    (1, None)
    """

    shape: Type | Vector | VectorList
    direction: ClassVar[Direction] = "input"

    def __post_init__(self) -> None:
        if not isinstance(self.shape, Vector | VectorList):
            checked_type(self.shape, type(self).__name__)

    @property
    def dtype(self) -> Type:
        """Return the element type.

        >>> from simulator.graph.types import FLOAT
        >>> Input(Vector(FLOAT)).dtype.name
        'float'
        """
        return self.shape if isinstance(self.shape, Type) else self.shape.dtype

    @property
    def length(self) -> int | None:
        """Return the number of elements the field must have; None for any.

        >>> from simulator.graph.types import FLOAT
        >>> Input(Vector(FLOAT, 4)).length
        4
        """
        if isinstance(self.shape, Type):
            return 1
        return self.shape.length if isinstance(self.shape, Vector) else None


@dataclass(frozen=True, slots=True)
class Input(Edge):
    """A field that is read.

    >>> from simulator.graph.types import FLOAT
    >>> Input(Vector(FLOAT)).direction
    'input'
    """


@dataclass(frozen=True, slots=True)
class Output(Edge):
    """A field that is written.

    >>> from simulator.graph.types import FLOAT
    >>> Output(Vector(FLOAT)).direction
    'output'
    """

    direction: ClassVar[Direction] = "output"


@dataclass(frozen=True, slots=True)
class InOut(Edge):
    """A field that is read and written.

    >>> from simulator.graph.types import FLOAT
    >>> InOut(Vector(FLOAT)).direction
    'inout'
    """

    direction: ClassVar[Direction] = "inout"


class Vertex:
    """The base of a user's codelets: one worker thread runs `compute`.

    >>> from simulator import poplar
    >>> from simulator.trial import Trial
    >>> class Double(poplar.Vertex):
    ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
    ...     def compute(self):
    ...         self.x *= 2
    >>> trial = Trial()
    >>> x, compute_set = trial.tensor([1.0, 2.0]), trial.graph.addComputeSet("double")
    >>> vertex = trial.graph.addVertex(compute_set, Double, {"x": x}, tile=0)
    >>> trial.prog.add(poplar.program.Execute(compute_set))
    >>> trial.values(x)
    [2.0, 4.0]
    """

    supervisor: ClassVar[bool] = False

    def compute(self) -> object:
        """Compute the outputs from the inputs.

        >>> from simulator import poplar
        >>> from simulator.trial import Trial
        >>> class Double(poplar.Vertex):
        ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
        ...     def compute(self):
        ...         self.x *= 2
        >>> trial = Trial()
        >>> x, compute_set = trial.tensor([1.0, 2.0]), trial.graph.addComputeSet("double")
        >>> vertex = trial.graph.addVertex(compute_set, Double, {"x": x}, tile=0)
        >>> trial.prog.add(poplar.program.Execute(compute_set))
        >>> trial.values(x)
        [2.0, 4.0]
        """
        raise NotImplementedError(f"{type(self).__name__} has no compute()")


class SupervisorVertex(Vertex):
    """A codelet that uses all worker threads of its tile; its estimate is of the whole tile.

    >>> from simulator import poplar
    >>> from simulator.trial import Trial
    >>> class Double(poplar.SupervisorVertex):
    ...     x = poplar.InOut(poplar.Vector(poplar.FLOAT))
    ...     def compute(self):
    ...         self.x *= 2
    >>> trial = Trial()
    >>> x, compute_set = trial.tensor([1.0, 2.0]), trial.graph.addComputeSet("double")
    >>> vertex = trial.graph.addVertex(compute_set, Double, {"x": x}, tile=0)
    >>> trial.prog.add(poplar.program.Execute(compute_set))
    >>> trial.values(x)
    [2.0, 4.0]
    """

    supervisor = True


class MultiVertex(SupervisorVertex):
    """Poplar's later name for the same; a `compute(self, workerId)` is called for each worker.

    >>> MultiVertex.supervisor
    True
    """

    if TYPE_CHECKING:
        compute: Any


@dataclass(frozen=True, slots=True, eq=False)
class Field(DeferredFields):
    """One field of all vertices of a group, of elements of `graph`, which may be a view.

    The intervals [starts[v], starts[v+1]) are vertex v's elements: `lengths` arena elements from
    `begins`. `edges` counts the edges a vertex (1; rows for a VectorList); `rows` holds the
    elements of every edge of a VectorList, None where a vertex has one edge. `interleaved` asks for
    memory that can be read twice as wide. `apart`: the edges of a vertex are even shares of its
    elements, each with a pointer of its own, so that one may lie elsewhere than the next.
    """

    graph: Arena
    name: str
    dtype: Type
    direction: Direction
    begins: IntArray
    lengths: IntArray
    starts: IntArray
    edges: IntArray
    interleaved: bool = False
    rows: IntArray | None = None
    apart: bool = False

    def counts(self) -> IntArray:
        """Count the elements of each vertex."""
        return np.diff(offsets_of(self.lengths)[self.starts])

    def elements(self) -> IntArray:
        """List the arena elements, vertex by vertex."""
        return spread(self.begins, self.lengths)


Apart = Literal["", "outputs", "in", "weights", "inputs"]


@dataclass(frozen=True, slots=True, eq=False)
class Codelet:
    """A vertex type: its name, cost in bytes, and how a whole group of its vertices computes.

    One that `reads_clock` finds the clocks of the tiles among the registers. `apart`: what it reads
    lies in other memory elements than what it writes (outputs), one field of it does (in, weights),
    or each input lies in others (inputs).
    `guessed`: vertices without an estimate take cycles that are counted in its `compute`.
    Of its pointers `scaled` are as short as the machine has them.
    """

    name: str
    compute: Callable[[Operands], dict[str, Array]]
    supervisor: bool = False
    state_bytes: int = 0
    code_bytes: int = 100
    flops: Callable[[VertexGroup], IntArray] | None = None
    kind: Literal["user", "library", "copy"] = "library"
    reads_clock: bool = False
    apart: Apart = ""
    guessed: bool = False
    scaled: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ComputeSet:
    """A set of vertices that run together; `id` is its place in the graph's list of them.

    >>> from simulator.trial import Trial
    >>> Trial().graph.addComputeSet("add").name
    'add'
    """

    id: int
    name: str
    debug_context: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class VertexGroup(DeferredFields):
    """The vertices of one codelet in one compute set.

    `cycles` a vertex: of its thread for workers, of the whole tile when `codelet.supervisor`.
    """

    compute_set: int
    codelet: Codelet
    tile: IntArray
    fields: dict[str, Field]
    parameters: dict[str, Array]
    cycles: IntArray

    def __len__(self) -> int:
        return len(self.tile)


@dataclass(slots=True)
class Operands:
    """What a codelet computes with: the values of each field, vertex by vertex.

    `prepared` is the codelet's own, kept from one execution to the next; `registers` are what the
    tiles of one replica hold besides their memory, shared by all codelets of a run.
    """

    group: VertexGroup
    arrays: dict[str, Array]
    counts: dict[str, IntArray]
    prepared: dict[str, Any] = field(default_factory=dict)
    registers: dict[str, Any] = field(default_factory=dict)


def cut_field(
    name: str,
    direction: Direction,
    tensor: Tensor,
    begin: object,
    end: object,
    *,
    interleaved: bool = False,
) -> Field:
    """Return vertex v the positions [begin[v], end[v]) of a flattened tensor."""
    low, high = as_int64(begin), as_int64(end)
    begins, lengths, starts = cut(tensor.begins, tensor.lengths, low, high)
    edges = np.ones(len(low), dtype=np.int64)
    columns = (begins, lengths, starts, edges)
    return Field(tensor.graph, name, tensor.dtype, direction, *columns, interleaved)


def cut_ranges(
    name: str,
    direction: Direction,
    tensor: Tensor,
    begin: IntArray,
    end: IntArray,
    ranges: IntArray,
    *,
    as_rows: bool = False,
    interleaved: bool = False,
) -> Field:
    """Return vertex v the next `ranges[v]` of the position ranges [begin, end) of a tensor.

    With `as_rows` each range is an edge of its own (a VectorList).
    """
    begins, lengths, piece_starts = cut(tensor.begins, tensor.lengths, begin, end)
    starts = piece_starts[offsets_of(ranges)]
    edges = ranges if as_rows else np.ones(len(ranges), dtype=np.int64)
    rows = end - begin if as_rows else None
    columns = (begins, lengths, starts, edges)
    return Field(tensor.graph, name, tensor.dtype, direction, *columns, interleaved, rows)


def field_name(attribute: str) -> str:
    """Return the field's name of a class attribute: without a trailing underscore."""
    return attribute.removesuffix("_")


def declared(codelet: type[Vertex]) -> tuple[dict[str, Edge], dict[str, Type | Vector]]:
    """List a codelet class's edges and its initial-value fields, by field name."""
    edges: dict[str, Edge] = {}
    values: dict[str, Type | Vector] = {}
    for base in reversed(codelet.__mro__):
        for attribute, value in vars(base).items():
            if isinstance(value, Edge):
                edges[field_name(attribute)] = value
            elif isinstance(value, Type | Vector):
                values[field_name(attribute)] = value
    return edges, values
