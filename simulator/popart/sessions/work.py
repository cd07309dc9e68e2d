"""How many items a step of a session takes in, and in how many batches."""

from __future__ import annotations

from simulator.popart.representation.ir import Ir
from simulator.runtime.work import UNKNOWN, Work


def batch_size(ir: Ir) -> int:
    """Count the items of a micro-batch: the first size that all inputs share, scalars aside.

    -1 where they share none: then nobody tells which of their sizes counts items.
    """
    sizes = {dims[0] for dims in (ir.infos[name].dims for name in ir.inputs) if dims}
    only = sizes.pop() if len(sizes) == 1 else 0
    return only or UNKNOWN


def work_of(ir: Ir, micro_batches: int, batches: int, stages: int) -> Work:
    """Return what a step of so many micro-batches, of all replicas, and batches takes in."""
    items = batch_size(ir)
    return Work(items if items == UNKNOWN else items * micro_batches, batches, stages)
