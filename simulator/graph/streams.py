"""What joins the device to the host: data streams and direct host accesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from simulator.graph.tensor import Tensor
from simulator.graph.types import Type


@dataclass(frozen=True, slots=True)
class Stream:
    """A first-in first-out channel of `elements` values a transfer; "in" is host to device."""

    id: int
    handle: str
    dtype: Type
    elements: int
    direction: Literal["in", "out"]


class HostAccess(NamedTuple):
    """A tensor that the host reads or writes between runs."""

    tensor: Tensor
    direction: Literal["read", "write"]
