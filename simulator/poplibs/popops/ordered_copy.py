"""Copies whose elements go in the order of memory, so that whole rows move together."""

from __future__ import annotations

from simulator.graph.program import Copy
from simulator.graph.tensors.tensor import Tensor
from simulator.poplibs.popops.regions import in_memory_order


def ordered_copy(source: Tensor, destination: Tensor, name: str) -> Copy:
    """Copy a tensor to one of its shape, in the order of the destination's memory."""
    ordered = in_memory_order(
        {"in": ("input", source), "out": ("output", destination)}, leading="out"
    )
    return Copy(ordered["in"][1], ordered["out"][1], name=name)
