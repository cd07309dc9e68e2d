"""One pass of a pooling: shape, plan and vertices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.logging import enabled, log
from simulator.poplibs.popnn.pools import transforms
from simulator.poplibs.popnn.pools.plan import (
    Plan,
    Problem,
    cheapest,
    flattening,
    preferred_channels,
)
from simulator.poplibs.popnn.pools.transforms import Form
from simulator.poplibs.popnn.pools.vertices import Grouped, Pooling, add_pooling
from simulator.poplibs.popnn.pools.windows import PoolShape

DEARER, THAN = 4, 3  # what a plan with the preferred groups may cost beside the cheapest


@dataclass(frozen=True, slots=True)
class Request:
    """A pass that is asked for: its kind of vertex and its shape.

    A `forward` pass may take another form; a gradient keeps that of the tensors that it reads.
    """

    graph: Graph
    kind: str
    shape: PoolShape
    prog: Sequence
    name: str
    introspective: bool
    forward: bool = False


def grouping(graph: Graph, row: Tensor) -> int:
    """Return how many elements of a row lie together, on a tile and in memory.

    PopLibs lib/poputil/VarStructure.cpp, which looks at the first row alone.
    """
    together = int(row.lengths[0])
    low, high, tile = graph.tile_ranges(row)
    first = np.ones(len(low), dtype=bool)
    first[1:] = (low[1:] != high[:-1]) | (tile[1:] != tile[:-1])
    sizes = np.add.reduceat(high - low, np.flatnonzero(first))
    size = int(np.gcd(together, sizes.max()))
    return size if row.numElements() % size == 0 else 1


def _planned(request: Request, source: Tensor, form: Form, least: int = 1) -> Plan | None:
    """Plan one form of the pooling, with groups of at least so many channels."""
    graph, dtype = request.graph, source.dtype
    grain = 8 // dtype.size
    factors = flattening(form.shape, grain)
    row = transforms.first_row(source, form)
    if factors:  # of few channels; what else goes into them is not in the first row
        flat = transforms.flatten_tensor(transforms.gather(source, form), factors)
        row = flat[(0,) * (flat.rank() - 1)]
    shape = transforms.flatten_shape(form.shape, factors)
    problem = Problem(graph.target, request.kind, shape, dtype, grouping(graph, row))
    return cheapest(problem, least, ceil_div(least, grain) if least > 1 else 0)


def _cheapest_form(request: Request, source: Tensor) -> tuple[Form, Plan]:
    """Choose the form and its plan: the cheapest, or one with the preferred groups of channels."""
    shape, dtype = request.shape, source.dtype
    preferred = preferred_channels(dtype)
    forms = [Form(shape), Form(shape)]
    if request.forward:
        forms = [transforms.forward_form(shape, group) for group in (8 // dtype.size, preferred)]
    plan = _planned(request, source, forms[0])
    if plan is None:
        raise poplibs_error(f"{request.name}: no plan for {shape} on these tiles")
    if plan.partition.group_channels < preferred <= forms[1].shape.channels:
        grouped = _planned(request, source, forms[1], preferred)
        if grouped is not None and THAN * grouped.cycles < DEARER * plan.cycles:
            return forms[1], grouped
    return forms[0], plan


def add_pass(
    request: Request,
    source: Tensor,
    like_source: Tensor | None = None,
    like_out: Tensor | None = None,
) -> Tensor:
    """Add a pass over [sample][field...][channel]; give [sample][channel][field...].

    `like_source` and `like_out` are further inputs of the gradient of a maximum.
    """
    form, plan = _cheapest_form(request, source)
    if enabled("PL", "DEBUG", "POPNN"):
        log("PL", "POPNN", "DEBUG", f"{request.name}: {plan} of {form}")
    channels = plan.partition.group_channels
    factors = flattening(form.shape, 8 // source.dtype.size)
    shape = transforms.flatten_shape(form.shape, factors)

    def grouped(tensor: Tensor) -> Tensor:
        flat = transforms.flatten_tensor(transforms.gather(tensor, form), factors)
        return _grouped(request, flat, channels)

    tensors = Grouped(
        grouped(source),
        None if like_source is None else grouped(like_source),
        None if like_out is None else grouped(like_out),
    )
    pooling = Pooling(
        request.graph,
        request.kind,
        shape,
        plan.partition,
        request.introspective,
        request.name,
    )
    out = transforms.out_of_groups(add_pooling(pooling, tensors, request.prog))
    out = out.slice(0, shape.channels, out.rank() - 1)
    out = transforms.ungather(transforms.unflatten_tensor(out, factors), request.shape, form)
    return transforms.outside(out)


def _grouped(request: Request, tensor: Tensor, channels: int) -> Tensor:
    """View a tensor by groups of channels; what is missing of the last group is zero."""
    last = tensor.rank() - 1
    missing = -tensor.dim(last) % channels
    if missing:
        zero = request.graph.addConstant(tensor.dtype, [1], [0], f"{request.name}/padding")
        request.graph.setTileMapping(zero, 0)
        shape = (*tensor.shape[:last], missing)
        filled = zero.broadcast(int(np.prod(shape)), 0).reshape(shape)
        tensor = concat([tensor, filled], last)
    return transforms.into_groups(tensor, channels)
