"""A row of the table of operators: versions, a lowering, and what it needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.graph.tensors.tensor import Tensor
from simulator.popart.operators.call import Call
from simulator.popart.representation.ir import Ir, Node

Lowered = Tensor | Sequence[Tensor]
Back = Callable[[Call, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator at some versions.

    `static` inputs have to be known before the program runs. `layouts` add an input that lies as
    the operator reads it. `back` views a tensor that lies as the output should as the input.
    `lacks` says what of a node cannot be done.
    """

    lower: Callable[[Call], Lowered]
    versions: tuple[int, ...]
    static: tuple[int, ...] = ()
    layouts: Mapping[int, Callable[[Call], Tensor | None]] = field(default_factory=dict)
    back: Back | None = None
    lacks: Callable[[Node, Ir], str] | None = None


def row(versions: str, lower: Callable[[Call], Lowered], *static: int) -> Operator:
    return Operator(lower, tuple(map(int, versions.split())), static)
