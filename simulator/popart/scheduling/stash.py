"""What a batch leaves for its backward pass while later batches already run forward.

A stash holds a variable of as many batches as begin before the first of them comes back. Each IPU
counts the batches that it has put in and those that it has taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from simulator.graph.geometry.intervals import join, present
from simulator.graph.geometry.patterns import Shifted
from simulator.graph.geometry.strides import Strides, stepped
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence as Steps
from simulator.graph.tensors.regions import parts_of, variables_of
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT
from simulator.poplibs import popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import _1


@dataclass(slots=True)
class Stash:
    """The stashes of an IPU: `put` ends its forward stage, `take` begins its backward stage."""

    graph: Graph  # of the IPU
    name: str
    depth: int
    put: Steps
    take: Steps
    instead: dict[int, int] = field(default_factory=dict)  # variable -> the one that is taken out
    counters: list[Tensor] = field(default_factory=list)

    def taken(self, tensor: Tensor, variables: Sequence[int]) -> Tensor:
        """Return a tensor as it was when the batch ran forward; `variables` have changed."""
        for number in variables:
            if number not in self.instead:
                self.instead[number] = self._add(number)
        return moved(tensor, {number: self.instead[number] for number in variables})

    def _add(self, number: int) -> int:
        """Add the stash of a variable; give the variable that it is taken out to."""
        graph, variable = self.graph, self.graph.variables[number]
        name, full_variable = f"{variable.name}/Stash", whole_variable(graph, number).expand([0])
        if not self.counters:
            self.counters = [
                _counter(graph, f"{self.name}/{direction}") for direction in ("put", "take")
            ]
        stash = popops.createSliceableTensorFromSlice(graph, full_variable, [0], [self.depth], name)
        put, take = self.counters
        popops.dynamicUpdate(graph, stash, full_variable, put, [0], [1], self.put, name)
        out = graph.clone(full_variable, f"{variable.name}/Restored")
        out_number = len(graph.variables) - 1
        popops.dynamicSliceWithOutput(graph, out, stash, take, [0], [1], self.take, name)
        return out_number

    def finish(self, begin: Steps) -> None:
        """Let the stages count their batches, from 0 at the begin of a run."""
        for counter, prog in zip(self.counters, (self.put, self.take), strict=False):
            name = f"{self.name}/count"
            popops.zero(self.graph, counter, begin, name)
            over = expr.Equal(_1, expr.Const(self.depth - 1, UNSIGNED_INT))
            following = expr.Select(_1 - _1, _1 + expr.Const(1, UNSIGNED_INT), over)
            popops.mapInPlace(self.graph, following, [counter], prog, name)


def whole_variable(graph: Graph, number: int) -> Tensor:
    """View all of a variable, flat; of a replicated graph the part of one replica."""
    variable = graph.variables[number]
    count = variable.elements // variable.replicas
    places = stepped(variable.offset // variable.dtype.size, [(count, 1)])
    return Tensor(graph, variable.dtype, (count,), places)


def _counter(graph: Graph, name: str) -> Tensor:
    counter = graph.addVariable(UNSIGNED_INT, [1], name)
    graph.setTileMapping(counter, 0)
    return counter


def moved(tensor: Tensor, instead: dict[int, int]) -> Tensor:
    """View other variables in place of those that a tensor views; they are as large."""
    variables, places = tensor.graph.variables, tensor.places
    if len(instead) == 1 and len(variables_of(tensor)) == 1:
        ((old, new),) = instead.items()
        by = (variables[new].offset - variables[old].offset) // tensor.dtype.size
        if isinstance(places, Strides | Shifted):
            return tensor.at(tensor.shape, places._replace(first=places.first + by))
        return tensor.at(tensor.shape, (places[0] + by, places[1]))
    parts = parts_of(tensor)
    shift = np.zeros(len(variables), dtype=np.int64)
    for old, new in instead.items():
        shift[old] = (variables[new].offset - variables[old].offset) // tensor.dtype.size
    numbers = present(parts.variable)
    first = np.zeros(len(variables), dtype=np.int64)
    first[numbers] = [variables[n].offset // tensor.dtype.size for n in numbers.tolist()]
    begins = (first + shift)[parts.variable] + parts.first
    return Tensor(tensor.graph, tensor.dtype, tensor.shape, join(begins, parts.high - parts.low))


def each_tensor(value: object, change: Callable[[Tensor], Tensor]) -> Any:
    """Change the tensors in whatever a node has saved: tuples, lists and dataclasses of them."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        items = [each_tensor(item, change) for item in value]
        return value._make(items) if hasattr(value, "_make") else type(value)(items)
    if is_dataclass(value) and not isinstance(value, type):
        field_values = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        now = {name: each_tensor(item, change) for name, item in field_values.items()}
        return replace(value, **{n: v for n, v in now.items() if v is not field_values[n]})
    return value


class Delayed(list[Any]):
    """Tensors that are taken out of the stash when they are first asked for."""

    def __init__(self, tensors: Sequence[object], change: Callable[[Tensor], Tensor]) -> None:
        super().__init__(tensors)
        self._change = change

    def __getitem__(self, place: Any) -> Any:
        item = super().__getitem__(place)
        return self._change(item) if isinstance(item, Tensor) else item
