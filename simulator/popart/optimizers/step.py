"""One change of a weight as it is added to a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, Type
from simulator.poplibs import popops
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import Expr, PlaceHolder, _1, _2

Number = Tensor | float


@dataclass(slots=True)
class Terms:
    """The tensors of an expression in float: other types are cast, numbers become constants."""

    tensors: list[Tensor] = field(default_factory=list)

    def __call__(self, value: Number) -> Expr:
        """Return what stands for a tensor or a number in the expression."""
        if not isinstance(value, Tensor):
            return expr.Const(value, FLOAT)
        self.tensors.append(value)
        holder = PlaceHolder(len(self.tensors))
        return holder if value.dtype == FLOAT else expr.Cast(holder, FLOAT)


@dataclass(slots=True)
class Step:
    """A weight, its gradient, the numbers to compute with, and what is kept between batches."""

    graph: Graph
    prog: Sequence
    name: str
    weight: Tensor
    gradient: Tensor
    numbers: Mapping[str, Number]
    kept: Mapping[str, Tensor]

    def number(self, name: str) -> Number:
        return self.numbers[name]

    def is_needed(self, name: str, without: float = 0.0) -> bool:
        """Return whether a number changes anything: not if it is `without` for good."""
        number = self.numbers[name]
        return isinstance(number, Tensor) or number != without

    def made(self, make: Callable[[Terms], Expr], label: str, dtype: Type = FLOAT) -> Tensor:
        """Compute an expression of tensors, in float, in one operation."""
        terms = Terms()
        typed = _typed(make(terms), dtype)
        return popops.map(self.graph, typed, terms.tensors, self.prog, f"{self.name}/{label}")

    def keep(self, name: str, make: Callable[[Terms, Expr], Expr]) -> Tensor:
        """Change what is kept, by an expression that it stands in first."""
        tensor, terms = self.kept[name], Terms()
        before = terms(tensor)
        typed, label = _typed(make(terms, before), tensor.dtype), f"{self.name}/{name}"
        popops.mapInPlace(self.graph, typed, terms.tensors, self.prog, label)
        return tensor

    def scale(self, factor: Number) -> None:
        """Multiply the weight."""
        label, weight_type = f"{self.name}/Decay", self.weight.dtype
        if isinstance(factor, Tensor):
            scaled = _1 * (expr.Cast(_2, weight_type) if factor.dtype != weight_type else _2)
            popops.mapInPlace(self.graph, scaled, [self.weight, factor], self.prog, label)
        else:
            popops.mapInPlace(self.graph, _1 * factor, [self.weight], self.prog, label)

    def subtract(self, change: Tensor, rate: Number) -> None:
        """Take a change, times a rate, from the weight."""
        label = f"{self.name}/UpdateWeights"
        popops.scaledSubtractFrom(self.graph, self.weight, change, rate, self.prog, label)


def _typed(expression: Expr, dtype: Type) -> Expr:
    return expression if dtype == FLOAT else expr.Cast(expression, dtype)
