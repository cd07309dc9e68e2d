"""Random programs for a few tiles, each drawn together with its meaning in NumPy.

A tensor is drawn with the places of its elements in the model's memory, so that every view is made
twice: by the tensor's methods and by NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from simulator import poplar
from simulator.graph.graph import Function
from simulator.graph.program import Program
from simulator.poplar import program
from tests.program_model import Array, Machine, Node, Place

WHOLE = (poplar.INT, poplar.UNSIGNED_INT)
REAL = (poplar.FLOAT, poplar.HALF)
TYPES = (*WHOLE, *REAL, poplar.BOOL, poplar.UNSIGNED_CHAR, poplar.LONGLONG)
DEPTH = 3


@dataclass(frozen=True)
class Shape:
    """A machine: its IPUs and the tiles of each, the replicas, and how they are made."""

    ipus: int
    tiles: int
    replicas: int = 1
    how: str = ""


MACHINES = [
    Shape(1, 4),
    Shape(2, 3),
    Shape(2, 3, 2, "view"),
    Shape(4, 2, 2, "view"),
    Shape(2, 3, 2, "start"),
    Shape(4, 2, 2, "start"),
]


class View(Place):
    """A tensor and its place in the model."""

    def __init__(self, tensor: poplar.Tensor, at: Array) -> None:
        super().__init__(str(tensor.dtype), at)
        object.__setattr__(self, "tensor", tensor)
        assert tensor.shape == at.shape

    tensor: poplar.Tensor


@dataclass(eq=False)
class Variable:
    """A variable of the pool: the IPU it lies on (None for several), and what may be done to it."""

    view: View
    ipu: int | None
    written: bool = True  # by programs
    exact: bool = True  # the order of operations leaves no choice
    handle: str = ""  # of the host write
    initial: Array | None = None  # [replica][element]


@dataclass(eq=False)
class Pair:
    """A program and its meaning."""

    program: Program
    node: Node


def _codelet(dtype: poplar.Type) -> type[poplar.Vertex]:
    class Mix(poplar.Vertex):
        rows = poplar.Input(poplar.VectorList(dtype))
        held = poplar.InOut(poplar.Vector(dtype))
        out = poplar.Output(poplar.Vector(dtype))
        factor = dtype

        def compute(self) -> None:
            rows: Any = self.rows
            held: Any = self.held
            self.out[:] = np.concatenate([row[:1] for row in rows])  # type: ignore[index]
            held[:] = np.where(held == 0, held.dtype.type(self.factor), held[::-1])

    return Mix


class Countdown(poplar.Vertex):
    left = poplar.InOut(poplar.INT)
    done = poplar.Output(poplar.BOOL)

    def compute(self) -> None:
        left: Any = self.left
        left[:] = left - 1
        self.done[:] = left == 0  # type: ignore[index]


CODELETS = {dtype: _codelet(dtype) for dtype in TYPES}


class Drawn:
    """A graph, its programs and the model of both, drawn choice by choice."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self.machine = self.one_of(MACHINES)
        kind = self.machine
        model = poplar.IPUModel("mk2", numIPUs=kind.ipus, tilesPerIPU=kind.tiles)
        self.device = model.createDevice()
        start = kind.how == "start"
        self.whole = poplar.Graph(
            self.device.getTarget(), poplar.replication_factor(kind.replicas if start else 1)
        )
        self.graph = self.whole
        if kind.how == "view":
            self.graph = self.whole.createReplicatedGraph(kind.replicas)
        self.ipus = kind.ipus // kind.replicas
        self.tiles = self.ipus * kind.tiles
        self.views = [self._view() for _ in range(3)]
        self.together = kind.how != "start"
        self.variables: list[Variable] = []  # those that programs may choose from
        self.everything: list[Variable] = []
        self.reads: dict[str, Variable] = {}
        self.sizes = {str(dtype): 0 for dtype in TYPES}
        self.counts: dict[str, int] = {}
        self.functions: list[tuple[Function, Node]] = []
        self.given: dict[tuple[str, int], Array] = {}
        self.streams: list[tuple[poplar.Stream, bool]] = []
        self.buffers: dict[poplar.RemoteBuffer, tuple[int, list[Array]]] = {}
        for dtype in (*TYPES, *self.some(TYPES, 3)):
            self.variable(dtype)
        for dtype in self.some(TYPES, 2):
            self.variable(dtype, written=False)
        for _ in range(self.number(0, 2)):
            body = self.sequence(1)
            function = self.graph.addFunction(body.program, self.name("function"))
            self.functions.append((function, body.node))
        self.programs = [self.sequence(0) for _ in range(self.number(1, 2))]
        self.options = self._options()
        self.runs = [self.number(0, len(self.programs) - 1) for _ in range(self.number(1, 3))]

    # Choices
    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def one_of(self, choices: Any) -> Any:
        return choices[self.number(0, len(choices) - 1)]

    def some(self, choices: Any, most: int) -> list[Any]:
        return [self.one_of(choices) for _ in range(self.number(0, most))]

    def chance(self, of: int = 2) -> bool:
        return self.number(1, of) == 1

    def name(self, kind: str) -> str:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return f"{kind}{self.counts[kind]}"

    def values(self, dtype: poplar.Type, *shape: int, least: int = 0, most: int = 9) -> Array:
        numbers = np.random.default_rng(self.number(0, 999)).integers(least, most, shape)
        if dtype in REAL:
            return ((numbers - 4) / 4).astype(dtype.numpy)
        return (numbers % 3 == 0 if dtype == poplar.BOOL else numbers).astype(dtype.numpy)

    def _options(self) -> dict[str, Any]:
        """Draw what is instrumented, what is recorded of Blocks and programs, and of whom."""
        given: dict[str, Any] = {
            f"debug.instrument{part}": True
            for part in self.some(("Compute", "ExternalExchange", "HostExchange"), 2)
        }
        given["debug.computeInstrumentationLevel"] = self.one_of(
            ("tile", "vertex", "device", "ipu")
        )
        for kind in self.some(("blocks", "programs"), 2):
            given[f"profiler.{kind}.filter"] = self.one_of((".*", "1|2"))
        given["profiler.blocks.bufferSize"] = self.one_of((100, 1000))
        given["autoReport.executionProfileProgramRunCount"] = self.number(0, 2)
        if self.machine.how == "start":
            given["profiler.replicaToProfile"] = self.number(0, self.machine.replicas - 1)
        return given

    def _view(self) -> tuple[poplar.Graph, int]:
        """Draw a view of some tiles of each IPU, or the graph itself; give its tiles of an IPU."""
        tiles = sorted({self.number(0, self.machine.tiles - 1) for _ in range(3)})
        if self.chance():
            return self.graph, self.machine.tiles
        return self.graph.createVirtualGraph(tiles), len(tiles)

    def place(self, ipu: int | None = None) -> tuple[poplar.Graph, int]:
        """Draw a view and one of its tiles, maybe of one IPU."""
        graph, per_ipu = self.one_of(self.views)
        first = self.number(0, self.ipus - 1) if ipu is None else ipu
        return graph, first * per_ipu + self.number(0, per_ipu - 1)

    # Variables
    def new_view(self, tensor: poplar.Tensor) -> View:
        """Add a place of its own in the model for a tensor."""
        name, count = str(tensor.dtype), tensor.numElements()
        first = self.sizes[name]
        self.sizes[name] += count
        return View(tensor, np.arange(first, first + count).reshape(tensor.shape))

    def map(self, tensor: poplar.Tensor, ipu: int | None) -> None:
        """Put a tensor on tiles in up to three parts."""
        flat = tensor.flatten()
        inside = sorted(self.number(0, tensor.numElements()) for _ in range(self.number(0, 2)))
        bounds = [0, *inside, tensor.numElements()]
        for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
            graph, tile = self.place(ipu)
            graph.setTileMapping(flat[begin:end], tile)

    def variable(
        self,
        dtype: poplar.Type,
        shape: list[int] | None = None,
        *,
        written: bool = True,
        ipu: int | None = None,
        initial: Array | None = None,
        pooled: bool = True,
    ) -> Variable:
        """Add a variable, or a constant if nobody writes it, and maybe host accesses."""
        if shape is None:
            shape = [self.number(1, 6) for _ in range(self.number(1, 2))]
        if ipu is None and self.chance():
            ipu = self.number(0, self.ipus - 1)
        name, count = self.name(f"{dtype} "), int(np.prod(shape))
        if initial is None and (not written or self.chance()):
            initial = self.values(dtype, self.machine.replicas, count)
        if not written and self.chance():
            assert initial is not None
            initial = np.tile(initial[0], (self.machine.replicas, 1))
            tensor = self.graph.addConstant(dtype, shape, initial[0], name)
        else:
            tensor = self.graph.addVariable(dtype, shape, name)
        handle = name if initial is not None and not tensor.containsConstant() else ""
        if handle:
            self.graph.createHostWrite(handle, tensor)
        self.map(tensor, ipu)
        found = Variable(self.new_view(tensor), ipu, written, initial=initial, handle=handle)
        self.everything.append(found)
        if pooled:
            self.variables.append(found)
            if self.chance(3):
                self.read_by_host(found)
        return found

    def read_by_host(self, variable: Variable) -> None:
        handle = self.name("read")
        self.reads[handle] = variable
        self.graph.createHostRead(handle, variable.view.tensor)

    def result(self, tensor: poplar.Tensor, *, exact: bool = True) -> View:
        """Take a tensor that a library made into the model; one that is not exact is only read."""
        found = Variable(self.new_view(tensor), None, exact=exact)
        self.variables.append(found)
        self.everything.append(found)
        if self.chance(3) or not exact:
            self.read_by_host(found)
        return found.view

    # Views
    def view(
        self,
        types: Any = TYPES,
        *,
        to_write: bool = False,
        ipu: int | None = None,
        most: int = 3,
    ) -> View:
        """Draw a view; of elements that stand there once and may be written, if asked for.

        `ipu` keeps it on one.
        """
        known = [
            variable
            for variable in self.variables
            if variable.view.tensor.dtype in types
            and variable.exact
            and (variable.written or not to_write)
            and (ipu is None or variable.ipu == ipu)
        ]
        if not known:
            dtype = self.one_of(types)
            known = [self.variable(dtype, ipu=ipu)]
        view: View = self.one_of(known).view
        for _ in range(self.number(0, most)):
            view = self._changed(view, [one.view for one in known], to_write)
        return view

    def _changed(self, view: View, others: list[View], once: bool) -> View:
        tensor, at, rank = view.tensor, view.at, view.at.ndim
        axis = self.number(0, rank - 1) if rank else 0
        size = at.shape[axis] if rank else 0
        other = self.one_of(others)
        match self.number(0, 7):
            case 0 if size > 1:
                low = self.number(0, size - 1)
                high = self.number(low + 1, size)
                return View(
                    tensor.slice(low, high, axis), at[(slice(None),) * axis + (slice(low, high),)]
                )
            case 1 if size:
                return View(tensor.reverse(axis), np.flip(at, axis))
            case 2 if size > 1:
                stride = self.number(1, 3)
                return View(
                    tensor.subSample(stride, axis),
                    at[(slice(None),) * axis + (slice(None, None, stride),)],
                )
            case 3:
                return View(tensor.transpose(), at.T)
            case 4:
                return View(tensor.flatten(), at.reshape(-1))
            case 5 if size and rank > 1:
                number = self.number(0, size - 1)
                return View(tensor[(slice(None),) * axis + (number,)], at.take(number, axis))
            case 6 if not once and size and at.size < 12:
                return View(tensor.broadcast(2, axis), np.concatenate([at, at], axis))
            case 7 if other.tensor.dtype == tensor.dtype:
                joined = np.concatenate([at.reshape(-1), other.at.reshape(-1)])
                if joined.size < 24 and not (once and len(np.unique(joined)) < joined.size):
                    return View(poplar.concat(tensor.flatten(), other.tensor.flatten()), joined)
        return view

    def cut(self, view: View, count: int) -> View:
        """Take the first elements of a view."""
        return View(view.tensor.flatten()[:count], view.at.reshape(-1)[:count])

    def same_size(self, dtype: poplar.Type, ipu: int | None = None) -> tuple[View, View]:
        """Draw what a copy reads and what it writes."""
        source, sink = self.view([dtype], ipu=ipu), self.view([dtype], ipu=ipu, to_write=True)
        count = min(source.at.size, sink.at.size)
        return self.cut(source, count), self.cut(sink, count)

    # Programs
    def sequence(self, depth: int, decided: bool = False) -> Pair:
        """Draw a few programs in a row; `decided` means that a tensor decides whether they run."""
        pairs = [self.one(depth, decided) for _ in range(self.number(0 if depth else 1, 4))]
        sequence = program.Sequence(*(pair.program for pair in pairs))
        return Pair(sequence, Node(tuple(pair.node for pair in pairs)))

    def one(self, depth: int, decided: bool) -> Pair:
        from tests import random_steps

        inner = depth < DEPTH and self.chance(3)
        choices = list(random_steps.CONTAINERS if inner else random_steps.LEAVES)
        if not inner and not decided and self.machine.replicas > 1:
            choices += random_steps.CROSSINGS
        if not inner and self.machine.how == "view":
            choices += random_steps.BETWEEN
        make: Callable[[Drawn, int, bool], Pair] = self.one_of(choices)
        return make(self, depth, decided)

    # The model
    def model(self) -> Machine:
        """Return the state before the first run."""
        machine = Machine(
            [
                {str(dtype): np.zeros(self.sizes[str(dtype)], dtype.numpy) for dtype in TYPES}
                for _ in range(self.machine.replicas)
            ],
            {
                buffer.handle: [part.copy() for part in rows]
                for buffer, (_, rows) in self.buffers.items()
            },
            dict(self.given),
        )
        for variable in self.everything:
            for replica in range(self.machine.replicas if variable.initial is not None else 0):
                assert variable.initial is not None
                machine.write(
                    replica,
                    variable.view,
                    variable.initial[replica].reshape(variable.view.at.shape),
                )
        return machine
