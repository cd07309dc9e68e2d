"""One node as it is lowered: its tensors on the device, its attributes, what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulator.codelets.elementwise.operation import Operation
from simulator.codelets.elementwise.operations import BINARY, TERNARY, UNARY
from simulator.graph.graph import Graph
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, broadcast_to
from simulator.graph.types import FLOAT, INT, Array, Type
from simulator.popart.errors import popart_exception
from simulator.popart.representation.ir import Node
from simulator.popart.representation.tensor_info import TensorInfo
from simulator.poplibs import popops, poputil
from simulator.poplibs.popops.expr import Expr
from simulator.poplibs.popops.op_types import BinaryOpType, TernaryOpType, UnaryOpType
from simulator.poplibs.popops.padding import MappingMethod

_KINDS: tuple[tuple[Mapping[str, Operation], Callable[[str], Any]], ...] = (
    (UNARY, UnaryOpType),
    (BINARY, BinaryOpType),
    (TERNARY, TernaryOpType),
)


@dataclass(slots=True)
class Call:
    """A node's inputs (None where not given or only known), and where its operations go.

    `known` are the values of inputs that are known before the program runs; `options` are those of
    convolutions. `lower_graph` lowers a graph within to a program, given its inputs. In training
    `needed` tells the inputs whose gradient is wanted, `saved` is what the forward pass leaves for
    it; `again` says that the node has been computed already, and is for the backward pass.
    """

    graph: Graph
    prog: Program
    node: Node
    inputs: list[Tensor | None]
    infos: list[TensorInfo | None]
    outputs: list[TensorInfo]
    known: list[Array | None]
    options: Mapping[str, object]
    lower_graph: Callable[..., list[Tensor]]
    training: bool = False
    needed: list[bool] = field(default_factory=list)
    saved: tuple[Any, ...] = ()
    again: bool = False

    @property
    def name(self) -> str:
        return self.node.name

    def __getitem__(self, place: int) -> Tensor:
        """Return an input that has to be there."""
        tensor = self.inputs[place] if place < len(self.inputs) else None
        if tensor is None:
            raise popart_exception(f"{self.node}: input {place} is missing")
        return tensor

    def has(self, place: int) -> bool:
        """Return whether an optional input is given."""
        return place < len(self.infos) and self.infos[place] is not None

    def info(self, place: int = 0) -> TensorInfo:
        """Return type and shape of an input that has to be there."""
        info = self.infos[place] if place < len(self.infos) else None
        if info is None:
            raise popart_exception(f"{self.node}: input {place} is missing")
        return info

    def value(self, place: int) -> Array | None:
        """Return an input's values if they are known."""
        return self.known[place] if place < len(self.known) else None

    def numbers(self, place: int, attribute: str = "") -> list[int] | None:
        """Return whole numbers of an input, or of the attribute that older versions have."""
        value = self.value(place)
        if value is not None:
            return [int(number) for number in value.reshape(-1)]
        numbers = self.attribute(attribute, None) if attribute else None
        return None if numbers is None else [int(number) for number in numbers]

    def attribute(self, name: str, default: object = None) -> Any:
        return self.node.attributes.get(name, default)

    def axis(self, default: int = 0, name: str = "axis") -> int:
        """Return an axis of the first input, counted from the front; raises popart_exception."""
        return self.place_of(int(self.attribute(name, default)))

    def place_of(self, axis: int) -> int:
        """Count an axis of the first input from the front; raises popart_exception."""
        rank = max(len(self.info().dims), 1)
        if not -rank <= axis < rank:
            raise popart_exception(f"{self.node}: axis {axis} of {self.info()}")
        return axis % rank

    def wants(self, output: int) -> bool:
        """Return whether an optional output is asked for."""
        return output < len(self.node.outputs) and bool(self.node.outputs[output])

    # Operations
    def variable(self, dtype: Type, shape: Sequence[int], label: str) -> Tensor:
        """Add a variable, spread evenly."""
        tensor = self.graph.addVariable(dtype, shape, f"{self.name}/{label}")
        poputil.mapTensorLinearly(self.graph, tensor)
        return tensor

    def constant(self, values: Array | float, dtype: Type, label: str = "constant") -> Tensor:
        """Add a constant, spread evenly."""
        shape = values.shape if hasattr(values, "shape") else ()
        tensor = self.graph.addConstant(dtype, shape, values, f"{self.name}/{label}")
        poputil.mapTensorLinearly(self.graph, tensor)
        return tensor

    def cast(self, tensor: Tensor, dtype: Type) -> Tensor:
        """Return a tensor's values in another type; itself when it has it."""
        if tensor.dtype == dtype:
            return tensor
        return popops.cast(self.graph, tensor, dtype, self.prog, self.name)

    def copy(self, tensor: Tensor, label: str = "copy") -> Tensor:
        """Return a variable of its own with a tensor's values."""
        out = self.variable(tensor.dtype, tensor.shape, label)
        self.prog.add(Copy(tensor, out, name=f"{self.name}/{label}"))
        return out

    def map(self, expression: Expr, *operands: Tensor) -> Tensor:
        """Compute an expression of tensors, fused."""
        return popops.map(self.graph, expression, list(operands), self.prog, self.name)

    def apply(self, operation: str, *operands: Tensor) -> Tensor:
        """Apply an operator of popops to tensors of any type; what it lacks is computed wider."""
        table, kind = _KINDS[len(operands) - 1]
        entry, dtype = table[operation], operands[0].dtype
        wide = wider(dtype, entry.types)
        converted = [self.cast(tensor, wide) for tensor in operands]
        arguments: list[Any] = [*converted, self.prog, self.name]
        out = popops.map(self.graph, kind(operation), *arguments)
        return out if entry.boolean else self.cast(out, dtype)

    def padded(
        self, tensor: Tensor, lower: int, upper: int, axis: int, value: float | Tensor = 0
    ) -> Tensor:
        """Put a number around an axis of a tensor; it lies where the edge of the tensor lies."""
        method = MappingMethod.EDGE if tensor.numElements() else MappingMethod.ZERO
        return popops.pad(self.graph, tensor, lower, upper, axis, value, method)

    def scalar(self, place: int) -> Tensor:
        """Return an input of one element as a tensor without dimensions."""
        return self[place].reshape([])


def wider(dtype: Type, types: Sequence[str]) -> Type:
    """Return a type that an operation has and that holds the values of another."""
    if dtype.name in types:
        return dtype
    order = (INT, FLOAT) if dtype.numpy.kind in "biu" else (FLOAT, INT)
    return next((wide for wide in order if wide.name in types), dtype)


def broadcast(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """View a tensor in a larger shape, by NumPy's rules."""
    return broadcast_to(tensor, tuple(shape))
