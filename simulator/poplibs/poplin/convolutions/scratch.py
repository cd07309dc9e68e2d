"""What vertices of convolutions need beside operands and outputs: room to work in, and zeros."""

from __future__ import annotations

import numpy as np

from simulator.codelets.products.convolution_cycles import input_group
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Field, cut_field
from simulator.poplibs.poplin.planning.plan import Plan
from simulator.poplibs.poplin.planning.plan_cost import SCRATCH, SLIC_WINDOW, scratch_elements


def scratch_fields(
    graph: Graph,
    plan: Plan,
    parameters: dict[str, Array],
    order: IntArray,
    prog: Sequence,
    name: str,
) -> dict[str, Field]:
    """Add the fields that the vertices of a method need beside those of all; v is on tile v.

    `order` is that of the vertices in their group.
    """
    rows = plan.method.filter_rows(input_group(graph.target, plan.problem.dtype))
    if rows > 1 and plan.problem.axes:
        return _padding(graph, plan, _filter_zeros(plan, parameters, rows), order, prog, name)
    if plan.method.vertex not in SCRATCH:
        return {}
    tiles = plan.tiles
    p, method = parameters, plan.method
    outputs = p["outputs"] * p["batch"] * np.minimum(p["groups"], method.conv_groups)
    for d in range(len(plan.problem.axes)):
        outputs = outputs * p[f"output{d}"]
    sizes = scratch_elements(graph.target, method, outputs)
    field = SCRATCH[method.vertex]
    tensor = graph.addVariable(method.partials, (int(sizes.sum()),), f"{name}/{field}")
    low = offsets_of(sizes)[:-1]
    graph.map_ranges(tensor, low, low + sizes, tiles)
    slic = method.vertex == "SLIC"
    bounds = low[order], (low + sizes)[order]
    fields = {field: cut_field(field, "output", tensor, *bounds, interleaved=slic)}
    if slic:
        fields |= _zeros(graph, plan, p, order, prog, name)
    return fields


def _zeros(
    graph: Graph,
    plan: Plan,
    parameters: dict[str, Array],
    order: IntArray,
    prog: Sequence,
    name: str,
) -> dict[str, Field]:
    """Copy the zeros around and between the inputs of each part, and in rows of the kernel.

    SLIC cannot leave them out, so PopLibs pads every tile's operands before (ConvVertices.cpp).
    """
    p, last = parameters, len(plan.problem.axes) - 1
    read = padded = p["groups"] * p["batch"] * p["inputs"]
    rows = p["groups"] * p["outputs"] * p["inputs"]
    for d, axis in enumerate(plan.problem.axes):
        taps = p[f"kernel{d}"]
        filled = -taps % SLIC_WINDOW if d == last else np.zeros_like(taps)
        read = read * p[f"input{d}"]
        padded = padded * ((p[f"output{d}"] - 1) * axis.stride + taps + filled)
        rows = rows * (filled if d == last else taps)
    sizes = np.maximum(padded - read, 0) + rows
    return _padding(graph, plan, sizes, order, prog, name)


def _filter_zeros(plan: Plan, parameters: dict[str, Array], rows: int) -> IntArray:
    """Count the zeros that fill each part's kernel up to whole filters of rows, and its input."""
    p = parameters
    filled = -p["kernel0"] % rows
    read = p["groups"] * p["batch"] * p["inputs"] * filled * plan.problem.axes[0].kernel_step
    taps = p["groups"] * p["outputs"] * p["inputs"] * filled
    for d in range(1, len(plan.problem.axes)):
        read, taps = read * p[f"input{d}"], taps * p[f"kernel{d}"]
    sizes: IntArray = read + taps
    return sizes


def _padding(
    graph: Graph, plan: Plan, sizes: IntArray, order: IntArray, prog: Sequence, name: str
) -> dict[str, Field]:
    """Copy so many zeros to the tile of each part."""
    if not sizes.any():
        return {}
    bounds = offsets_of(sizes)
    tensor = graph.addVariable(plan.problem.dtype, (int(bounds[-1]),), f"{name}/padding")
    graph.map_ranges(tensor, bounds[:-1], bounds[1:], plan.tiles)
    zero = graph.addConstant(plan.problem.dtype, (int(sizes.max()),), 0, f"{name}/zeros")
    graph.setTileMapping(zero, 0)
    some = sizes[sizes > 0]
    begins = np.full(len(some), zero.begins[0])
    everywhere = Tensor(graph, zero.dtype, tensor.shape, (begins, some))
    prog.add(Copy(everywhere, tensor, name=f"{name}/Pad"))
    low, high = bounds[:-1][order], bounds[1:][order]
    return {"padding": cut_field("padding", "input", tensor, low, high)}
