"""From the representation to a graph: tensors laid out by those who read them, nodes in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array
from simulator.popart.errors import popart_exception
from simulator.popart.operators.call import Call
from simulator.popart.operators.table import OPERATORS
from simulator.popart.representation.ir import (
    DITHERING_ATTRIBUTE,
    MEMORY_ATTRIBUTE,
    PARTIALS_ATTRIBUTE,
    Ir,
    Node,
)
from simulator.popart.representation.origins import Origin, within_module
from simulator.popart.representation.tensor_info import TensorInfo, to_device
from simulator.popart.scheduling.off_chip import OffChip
from simulator.popart.scheduling.placement import brought, graphs_of
from simulator.poplibs import poputil

LAYER = "popart"
MISSING = TensorInfo("FLOAT", [])  # of an output that nobody asks for
NOTED = {
    PARTIALS_ATTRIBUTE: "partialsType",
    MEMORY_ATTRIBUTE: "availableMemoryProportion",
    DITHERING_ATTRIBUTE: "enableConvDithering",
}
_OUTPUT_NUMBER = re.compile(r":\d+(/\d+)?$")  # in a name that the builder gave: Add:0/1
DEEPEST = 32  # views between a tensor and who says how it lies

Progress = Callable[[int, int, str], None]


Item = TypeVar("Item")


class Span(Protocol):
    """A sequence of nodes that comes again."""

    @property
    def length(self) -> int:
        """Return the number of its nodes."""


class Caller(Protocol):
    """Lowers sequences of nodes that come again once, and calls them."""

    def at(self, place: int, below: int) -> Span | None:
        """Return the longest sequence of fewer than `below` nodes that begins at a node."""

    def lower(self, lowering: Lowering, repeat: Any, place: int, prog: Program) -> None:
        """Add a call in place of the nodes from a place on."""


@dataclass(slots=True)
class Lowering:
    """A graph on its way to the device.

    `stored` are the tensors that are there before a batch runs: inputs, weights and constants, each
    added when it is first read. `made` are those that nodes have made.
    """

    ir: Ir
    graph: Graph
    options: Mapping[str, object]
    values: bool = True
    training: bool = False
    placed: Mapping[str, int] = field(default_factory=dict)  # node -> home: an IPU, or a stage
    home: int = 0  # of nodes that are not placed: those of a branch
    ipus: Sequence[int] = ()  # of each home, where these are stages of a pipeline
    stored: dict[str, Tensor] = field(default_factory=dict)
    made: dict[str, Tensor] = field(default_factory=dict)
    consumers: dict[str, list[tuple[Node, int]]] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)  # kept for the backward pass
    copies: dict[tuple[str, int], Tensor] = field(default_factory=dict)  # on other IPUs
    graphs: list[Graph] = field(default_factory=list)  # of each home
    makers: dict[str, int] = field(default_factory=dict)  # tensor -> home of the node that made it
    gradient_homes: dict[str, int] = field(default_factory=dict)  # by the tensor
    inner: dict[int, Lowering] = field(default_factory=dict)  # by the id of a branch
    products: Mapping[str, object] = field(default_factory=dict)  # options of matrix products
    pools: Mapping[str, object] = field(default_factory=dict)  # options of poolings
    prefix: str = ""  # of the names of what a function has of its own
    outlining: Caller | None = None  # of the model's own nodes, not of those in a branch
    modules: dict[Origin, int] = field(default_factory=dict)  # of PyTorch -> debug context
    off_chip: OffChip | None = None

    def __post_init__(self) -> None:
        self.consumers = self.ir.consumers()
        self.graphs = self.graphs or graphs_of(self.graph)

    def home_of(self, node: Node) -> int:
        """Return the home of a node: the IPU that it is on, in a pipeline the stage."""
        return self.placed.get(node.name, self.home)

    def ipu_with(self, tensor: Tensor) -> int:
        """Return the IPU that holds a tensor; the first when it is on several."""
        target = self.graph.target
        if target.num_ipus == 1:
            return 0
        tiles = self.graph.tile_ranges(tensor)[2]
        return int(tiles.min(initial=target.num_tiles - 1)) // target.tiles_per_ipu

    def weight_home(self, name: str) -> int:
        """Return the home of a weight, where it changes."""
        return self.ipu_with(self.stored[name])

    def gradient_home(self, name: str) -> int:
        """Return the home of a tensor's gradient; that of a loss is where the loss is."""
        return self.gradient_homes.get(name, self.maker_home(name))

    def brought(self, tensor: Tensor, home: int, prog: Program, name: str) -> Tensor:
        """Return a tensor on the IPU of a home: itself, or a copy."""
        ipu = self.ipus[home] if self.ipus else home
        return brought(self.graph, tensor, ipu, prog, name)

    def program(self, home: int, prog: Program) -> Program:
        """Return the program that what a home computes now goes to."""
        return prog

    def finish(self, begin: Program) -> None:
        """End what the lowering has begun; `begin` is where a run begins."""

    def turn(self) -> None:
        """Begin the backward pass."""

    def held(self, home: int, tensors: Sequence[Item]) -> list[Item]:
        """Return what the forward pass has left at a home, for the backward pass."""
        return list(tensors)

    def carried(self, tensor: Tensor, source: int, home: int, prog: Program, name: str) -> Tensor:
        """Return at a home what the backward pass has made at another."""
        del source
        return self.brought(tensor, home, prog, name)

    def at_home(self, name: str, home: int, prog: Program) -> Tensor:
        """Return a tensor at a home; what comes from another one is copied once."""
        if (name, home) not in self.copies:
            self.copies[name, home] = self.brought(self.tensor(name), home, prog, name)
        return self.copies[name, home]

    def lower(
        self, prog: Program, progress: Progress = lambda finished, total, stage: None
    ) -> None:
        """Add all nodes to a program."""
        total = len(self.ir.nodes)
        self.lower_nodes(range(total), prog, total, progress)
        progress(total, total, "")

    def lower_nodes(
        self,
        places: range,
        prog: Program,
        below: int,
        progress: Progress = lambda finished, total, stage: None,
    ) -> None:
        """Add some nodes; calls stand for sequences of fewer nodes than `below`."""
        place = places.start
        while place < places.stop:
            node = self.ir.nodes[place]
            progress(place, len(self.ir.nodes), node.name)
            at = self.program(self.home_of(node), prog)
            repeat = self.outlining.at(place, below) if self.outlining else None
            length, begin = repeat.length if repeat else 1, len(at.children)
            if self.outlining and repeat:
                self.outlining.lower(self, repeat, place, at)
            else:
                self.lower_node(node, at)
            self.load_weights(self.ir.nodes[place : place + length], at, begin)
            place += length

    def load_weights(self, nodes: Sequence[Node], prog: Program, place: int) -> None:
        """Load, at a place of a program, the weights off the chip that nodes read first."""
        if self.off_chip is not None:
            names = dict.fromkeys(name for node in nodes for name in node.reads)
            weights = {
                n: self.stored[n] for n in names if n in self.ir.weights and n in self.stored
            }
            self.off_chip.load_weights(weights, prog, place)

    def lower_node(self, node: Node, prog: Program) -> None:
        """Add one node."""
        with self.scope(node):
            call = self.call(node, prog)
            for place, name in enumerate(node.inputs):
                if name and self.wanted(node, place):
                    call.inputs[place] = self.at_home(name, self.home_of(node), prog)
            for name in node.reads[len(node.inputs) :]:
                if name in self.made or name in self.ir.inputs:
                    self.at_home(name, self.home_of(node), prog)  # where a branch will find it
            lowered = OPERATORS[node.key].lower(call)
        if self.training:
            self.calls[node.name] = call
        self.makers |= dict.fromkeys(node.outputs, self.home_of(node))
        outputs = [lowered] if isinstance(lowered, Tensor) else list(lowered)
        for name, tensor in zip(node.outputs, outputs, strict=False):
            if name:
                self.made[name] = self.checked(node, name, tensor)

    @contextmanager
    def scope(self, node: Node) -> Iterator[None]:
        """Make what is added inside a node's: with its name, its operator and its layer.

        Around it is its module of PyTorch, if it has one. What the libraries refuse is raised as
        popart_exception, which names the node.
        """
        path = _OUTPUT_NUMBER.sub("", node.name)
        layer = path.rpartition("/")[0] or path
        facts = {"node": node.name, "operator": node.kind, "onnxLayer": layer}
        facts |= self.place_of(node)
        with (
            within_module(self.graph, node.origin, self.modules),
            self.graph.debug_scope(node.name, LAYER, **facts),
        ):
            try:
                yield
            except popart_exception as error:
                if node.origin is None or str(node.origin) in str(error):
                    raise
                raise popart_exception(f"{node.origin}: {error}") from error
            except PoplarError as error:
                raise popart_exception(f"{node}: {error}") from error

    @contextmanager
    def scope_of_weight(self, name: str, **facts: str) -> Iterator[None]:
        """Make what is added inside a weight's, in the module whose node reads it first."""
        readers = self.consumers.get(name)
        origin = readers[0][0].origin if readers else None
        with (
            within_module(self.graph, origin, self.modules),
            self.graph.debug_scope(name, LAYER, weight=name, **facts),
        ):
            yield

    def place_of(self, node: Node) -> dict[str, str]:
        """Return in which stage of a pipeline a node is, for its debug context."""
        del node
        return {}

    def maker_home(self, name: str) -> int:
        """Return the home of the node that makes a tensor."""
        return self.makers.get(name, self.home)

    def checked(self, node: Node, name: str, tensor: Tensor) -> Tensor:
        """Return an output back when it is what shape inference says."""
        info = self.ir.infos[name]
        if tensor.shape != info.dims or tensor.dtype != info.device:
            raise popart_exception(f"{node}: output {name!r} came out as {tensor!r}, not {info}")
        return tensor

    def wanted(self, node: Node, place: int) -> bool:
        """Return whether an input is needed on the device: not if its values are in the program."""
        return place not in OPERATORS[node.key].static

    def call(self, node: Node, prog: Program, place_name: str = "") -> Call:
        """Return a node's call, its inputs still to be filled in.

        `place_name` is the name by which it is placed, if it is called otherwise.
        """
        infos = [self.ir.infos[name] if name else None for name in node.inputs]
        constants = [self.ir.constants.get(name) if name else None for name in node.inputs]
        for place in OPERATORS[node.key].static:
            if place < len(node.inputs) and node.inputs[place]:
                constants[place] = self.ir.known(node.inputs[place])
        outputs = [self.ir.infos[name] if name else MISSING for name in node.outputs]
        empty: list[Tensor | None] = [None] * len(infos)
        home = self.placed.get(place_name or node.name, self.home)
        options = self.options_of(node)
        arguments = (self.graphs[home], prog, node, empty, infos, outputs, constants, options)
        return Call(*arguments, partial(self.branch, home), self.training)

    def options_of(self, node: Node) -> Mapping[str, object]:
        """Return the options of a convolution, product or pooling, with what the builder noted."""
        if node.operator == "MaxPool":
            return self.pools
        noted = {
            option: node.attributes[key] for key, option in NOTED.items() if key in node.attributes
        }
        options = self.products if node.operator in ("MatMul", "Gemm") else self.options
        return {**options, **noted} if noted else options

    def branch(
        self, home: int, ir: Ir, prog: Program, inputs: Mapping[str, Tensor] | None = None
    ) -> list[Tensor]:
        """Add the nodes of a graph within, which sees what stands around it; give its outputs."""
        overrides: dict[str, Any] = {
            name: dict(getattr(self, name)) for name in ("stored", "made", "copies")
        }
        inner = replace(
            self, ir=ir, home=home, placed={}, calls={}, inner={}, gradient_homes={},
            outlining=None, **overrides,
        )  # fmt: skip
        inner.made.update(inputs or {})
        inner.lower(prog)
        self.inner[id(ir)] = inner
        # What is stored in the graph around can be read by others; a branch's own names are not.
        self.stored |= {name: t for name, t in inner.stored.items() if name in self.ir.infos}
        return [inner.at_home(name, home, prog) for name in ir.outputs]

    # Tensors
    def tensor(self, name: str) -> Tensor:
        """Return a tensor by its name, added if it is not there yet."""
        if name in self.made:
            return self.made[name]
        if name not in self.stored:
            self.stored[name] = self.added(name)
        return self.stored[name]

    def added(self, name: str) -> Tensor:
        """Add an input, weight or constant where its readers want it, at the first of their homes.

        That is where the gradients of a pipeline's readers come together.
        """
        info, values = self.ir.infos[name], self.ir.constants.get(name)
        readers = [self.home_of(node) for node, _ in self.consumers.get(name, ())]
        home = min(readers, default=self.maker_home(name))
        label, graph = f"{self.prefix}{name}", self.graphs[home]
        laid_out = self.laid_out(name, label, home, DEEPEST)
        if values is None:
            return spread(graph, info, label) if laid_out is None else laid_out
        device_values = to_device(values, info, f"constant {name!r}")
        if laid_out is None:
            return constant(graph, info, device_values, name)
        if self.values:
            self.graph.setInitialValue(laid_out, device_values)
        return laid_out

    def laid_out(self, name: str, called: str, home: int, depth: int) -> Tensor | None:
        """Add a tensor as the first reader at a home that cares wants it; None when none does."""
        for node, place in self.consumers.get(name, ()):
            if self.home_of(node) != home:
                continue
            operator = OPERATORS[node.key]
            call = self.call(replace(node, name=called), Program(), node.name)
            for before, input_name in enumerate(node.inputs[:place]):
                call.inputs[before] = self.made.get(input_name, self.stored.get(input_name))
            layout: Tensor | None = None
            if place in operator.layouts:
                layout = operator.layouts[place](call)
            elif operator.back is not None and place == 0 and depth:
                behind = self.laid_out(node.outputs[0], called, home, depth - 1)
                layout = None if behind is None else operator.back(call, behind)
            if layout is not None:
                return layout
        return None


def spread(graph: Graph, info: TensorInfo, name: str) -> Tensor:
    """Add a variable, spread evenly over the tiles."""
    tensor = graph.addVariable(info.device, info.dims, name)
    poputil.mapTensorLinearly(graph, tensor)
    return tensor


def constant(graph: Graph, info: TensorInfo, values: Array, name: str) -> Tensor:
    """Add a constant, spread evenly over the tiles."""
    tensor = graph.addConstant(info.device, info.dims, values, name)
    poputil.mapTensorLinearly(graph, tensor)
    return tensor
