"""The vertices of a convolution: every tile's part, rearranged where it must be, and multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.codelets.products.block_layout import Layout
from simulator.codelets.products.convolution import (
    AXIS,
    WORKLIST_ENTRIES,
    Steps,
    arrange_codelet,
    conv_codelet,
    row_worklists,
    worklists,
)
from simulator.codelets.products.convolution_cycles import input_group
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.machine.target import Target
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_SHORT, Array, IntArray
from simulator.graph.vertices.vertex import Field, VertexGroup, cut_field
from simulator.poplibs.poplin.convolutions.operands import (
    Operand,
    blocks_in_order,
    field_of_boxes,
    operand_of,
    with_edges,
)
from simulator.poplibs.poplin.convolutions.scratch import scratch_fields
from simulator.poplibs.poplin.planning.boxes import Rows, rows_of_boxes
from simulator.poplibs.poplin.planning.plan import Boxes, Plan, boxes_of
from simulator.poplibs.poplin.planning.plan_cost import Part, arrange_cycles, vertex_cycles

CHANNEL = {"input": 1, "weights": 2}  # place of the dimension that is summed


@dataclass(frozen=True)
class Partials:
    """What the parts made: the result of part v is `sizes[v]` elements from place `places[v]`."""

    tensor: Tensor
    places: IntArray
    sizes: IntArray
    rows: Rows
    shape: tuple[int, ...]
    layout: Layout

    def result(self, tensor: Tensor, places: IntArray) -> Tensor:
        """View a tensor of the parts of the result as [g][co][n][*field]; in the parts' order."""
        begins, lengths = blocks_in_order(self.rows, tensor.begins[0] + places)
        sizes = self.layout.sizes(self.shape)
        in_memory = Tensor(tensor.graph, tensor.dtype, sizes, (begins, lengths))
        split = in_memory.dimShuffle(self.layout.permutation())
        return split.reshape(self.shape)


def multiply(
    graph: Graph, plan: Plan, left: Tensor, right: Tensor, prog: Sequence, name: str
) -> Partials:
    """Add the vertices of [g][ci][n][*in] with [g][co][ci][*kernel]; part v is on tile v."""
    boxes, problem = boxes_of(plan), plan.problem
    grains = plan.method.grains(problem)
    dims = len(problem.axes)
    field, outputs, inputs = (1,) * dims, grains[2 + dims], grains[-1]
    operands = {
        "in": operand_of(left, CHANNEL["input"], (grains[0], inputs, grains[1], *field)),
        "weights": operand_of(right, CHANNEL["weights"], (grains[0], outputs, inputs, *field)),
    }
    tiles = plan.tiles[plan.pieces]
    parameters = _parameters(plan, boxes)
    order = _alike(parameters)
    groups = _edge_groups(plan, parameters)
    if plan.method.expanded:
        fields, layouts, parameters = _arranged(
            graph, plan, boxes, operands, parameters, order, prog, name
        )
        steps: Steps = ((1, 1, 1),) * dims
    else:
        steps = tuple((a.stride, a.kernel_step, a.input_step) for a in problem.axes)
        layouts = {which: operand.layout for which, operand in operands.items()}
        fields = {
            "in": field_of_boxes("in", operands["in"], _taken(boxes.input, order)),
            "weights": field_of_boxes("weights", operands["weights"], _taken(boxes.weights, order)),
        }
    compute_set = graph.addComputeSet(f"{name}/Convolve")
    partials = _partials(graph, plan, boxes, tiles, name)
    low = partials.places[order]
    fields |= scratch_fields(graph, plan, parameters, order, prog, name)
    fields |= {
        "out": cut_field(
            "out",
            "output",
            partials.tensor,
            low,
            low + partials.sizes[order],
            interleaved=plan.method.vertex in ("AMP", "SLIC"),
        ),
    }
    if plan.method.vertex != "OuterProduct":
        fields["worklists"] = _worklist_field(graph, plan, parameters, order, tiles, name)
    for which, edges in groups.items():
        item, apart = fields[which], which in CHANNEL and not plan.method.expanded
        # An operand that lies in the plan's groups is read where it lies, group by group.
        apart = apart and operands[which].in_groups(CHANNEL[which], plan.method.in_group)
        fields[which] = with_edges(item, item.counts(), edges[order], apart=apart)
    layouts["out"] = partials.layout
    codelet = conv_codelet(
        _vertex_name(graph.target, plan), problem.dtype, plan.method.partials, layouts, steps
    )
    ordered = {key: value[order] for key, value in parameters.items()}
    cycles = _cycles(graph, plan, boxes)[order]
    graph.add_vertices(VertexGroup(compute_set.id, codelet, tiles[order], fields, ordered, cycles))
    prog.add(Execute(compute_set))
    return partials


def _taken(box: tuple[IntArray, IntArray], order: IntArray) -> tuple[IntArray, IntArray]:
    return box[0][order], box[1][order]


def _vertex_name(target: Target, plan: Plan) -> str:
    kinds = f"{plan.problem.dtype},{plan.method.partials}"
    method = plan.method
    if method.vertex == "OuterProduct":
        return f"poplin::OuterProduct<{plan.problem.dtype}>"
    if method.vertex == "HMAC":
        return f"poplin::ConvPartialHorizontalMac<{kinds},true>"
    if method.vertex == "VMAC":
        return f"poplin::ConvPartialVerticalMac<{kinds},true,{method.conv_groups}>"
    if method.vertex == "SLIC":
        stride = plan.problem.axes[-1].stride
        return f"poplin::ConvPartial1x4SLIC<{kinds},{stride},{method.conv_groups}>"
    one = method.expanded or all(a.kernel == 1 for a in plan.problem.axes)
    one = one and method.filter_rows(input_group(target, plan.problem.dtype)) == 1
    return f"poplin::ConvPartial{'1x1Out' if one else 'nx1'}<{kinds},true,false>"


def _parameters(plan: Plan, boxes: Boxes) -> dict[str, Array]:
    """Assign each vertex the sizes of its part."""
    (low, high), (out_low, out_high) = plan.shares, boxes.output
    (in_low, in_high), (tap_low, tap_high) = boxes.input, boxes.weights
    sizes = high - low
    dims = len(plan.problem.axes)
    sizes_by_name: dict[str, Array] = {
        "groups": sizes[:, 0],
        "batch": sizes[:, 1],
        "outputs": sizes[:, 2 + dims],
        "inputs": sizes[:, -1],
    }
    for d, axis in enumerate(plan.problem.axes):
        place = out_low[:, 3 + d] * axis.stride + tap_low[:, 3 + d] * axis.kernel_step
        shift = place - axis.padding - in_low[:, 3 + d] * axis.input_step
        values = (
            in_high[:, 3 + d] - in_low[:, 3 + d],
            out_high[:, 3 + d] - out_low[:, 3 + d],
            tap_high[:, 3 + d] - tap_low[:, 3 + d],
            shift,
        )
        sizes_by_name |= {f"{key}{d}": value for key, value in zip(AXIS, values, strict=True)}
    return sizes_by_name


def _alike(parameters: dict[str, Array]) -> IntArray:
    """Order the vertices so that those of one shape are neighbours: they are computed together."""
    return np.lexsort(tuple(parameters.values()))


def _edge_groups(plan: Plan, parameters: dict[str, Array]) -> dict[str, IntArray]:
    """Count the edges of each field as PopLibs lists them, one for each group of channels."""
    method, p = plan.method, parameters
    dims = range(len(plan.problem.axes))
    taps, field = np.ones_like(p["inputs"]), np.ones_like(p["inputs"])
    for d in dims:
        taps, field = taps * p[f"kernel{d}"], field * p[f"output{d}"]
    summed = p["inputs"] * taps if method.expanded else p["inputs"]
    ins = ceil_div(summed, method.in_group)
    still = p["batch"] if method.swapped else p["outputs"]
    outs = ceil_div(still, method.out_group) * (field if method.swapped else 1)
    moving, stationary = ("weights", "in") if method.swapped else ("in", "weights")
    groups = ceil_div(p["groups"], method.conv_groups)
    return {moving: groups * ins, stationary: groups * ins * outs, "out": groups * outs}


def _part_of(plan: Plan, sizes: IntArray) -> Part:
    """Return the sizes of all parts."""
    dims = len(plan.problem.axes)
    columns = list(sizes.T)
    return Part(
        columns[0],
        columns[1],
        tuple(columns[2 : 2 + dims]),
        columns[2 + dims],
        tuple(columns[3 + dims : 3 + 2 * dims]),
        columns[-1],
    )


def _cycles(graph: Graph, plan: Plan, boxes: Boxes) -> IntArray:
    """Return the cycles of every vertex; what meets padding is not computed."""
    low, high = plan.shares
    dims = len(plan.problem.axes)
    used = []
    for d, axis in enumerate(plan.problem.axes):
        taps_read = np.zeros((axis.output + 1, axis.kernel + 1), dtype=np.int64)
        taps_read[1:, 1:] = (axis.reads >= 0).cumsum(axis=0).cumsum(axis=1)
        o, k = 2 + d, 3 + dims + d
        inside = (
            taps_read[high[:, o], high[:, k]]
            - taps_read[low[:, o], high[:, k]]
            - taps_read[high[:, o], low[:, k]]
            + taps_read[low[:, o], low[:, k]]
        )
        used.append(inside / ((high - low)[:, o] * (high - low)[:, k]))
    part = _part_of(plan, high - low)
    cycles = vertex_cycles(graph.target, plan.problem, plan.method, part, tuple(used))
    return np.asarray(cycles, dtype=np.int64)


def _partials(graph: Graph, plan: Plan, boxes: Boxes, tiles: IntArray, name: str) -> Partials:
    """Add the variable of all results, part after part."""
    problem, method = plan.problem, plan.method
    shape = (problem.groups, problem.outputs, problem.batch, *(a.output for a in problem.axes))
    is_grouped = method.conv_groups > 1
    grouped = 0 if is_grouped else 2 if method.swapped else 1
    group = gcd(method.conv_groups if is_grouped else method.out_group, shape[grouped])
    axes = tuple(range(len(shape)))
    layout = Layout(axes)
    if group > 1:  # groups of channels lie outermost, as PopLibs has them
        axes = tuple(dict.fromkeys((0, grouped, *axes)))
        layout = Layout(axes, grouped, group)
    sizes = boxes.sizes("output")
    places = offsets_of(sizes)
    last = "partials" if plan.sums > 1 else "out"
    tensor = graph.addVariable(method.partials, (int(places[-1]),), f"{name}/{last}")
    graph.map_ranges(tensor, places[:-1], places[1:], tiles)
    first = slice(None, None, plan.sums)  # the parts of a sum are all of the same outputs
    low, high = boxes.output[0][first], boxes.output[1][first]
    if group > 1:
        divisor = np.where(np.array(axes) == grouped, group, 1)
        low, high = (bound[:, axes] // divisor for bound in (low, high))
        low = np.column_stack([low, np.zeros(len(low), dtype=np.int64)])
        high = np.column_stack([high, np.full(len(high), group)])
    rows = rows_of_boxes(layout.sizes(shape), low, high)
    return Partials(tensor, places[:-1], sizes, rows, shape, layout)


def _worklist_field(
    graph: Graph,
    plan: Plan,
    parameters: dict[str, Array],
    order: IntArray,
    tiles: IntArray,
    name: str,
) -> Field:
    """Add the constant that tells each worker its share of the positions, for every kernel step."""
    p, method = parameters, plan.method
    positions = p["outputs"] if method.swapped else p["batch"]
    taps = width = np.ones_like(positions)
    for d in range(sum(key.startswith("kernel") for key in p)):
        width = p[f"kernel{d}"]
        taps = taps * width
        positions = positions * (1 if method.swapped else p[f"output{d}"])
    workers = graph.target.workers
    if method.vertex == "VMAC":
        values, counts = row_worklists(positions, taps // width, width, workers)
        size = counts * values.shape[1]
    else:
        values = worklists(np.repeat(positions, taps), workers)
        size = taps * workers * WORKLIST_ENTRIES
    constant = graph.addConstant(
        UNSIGNED_SHORT, (int(size.sum()),), values.reshape(-1), f"{name}/worklists"
    )
    low = offsets_of(size)[:-1]
    graph.map_ranges(constant, low, low + size, tiles)
    return cut_field("worklists", "input", constant, low[order], (low + size)[order])


def _arranged(
    graph: Graph,
    plan: Plan,
    boxes: Boxes,
    operands: dict[str, Operand],
    parameters: dict[str, Array],
    order: IntArray,
    prog: Sequence,
    name: str,
) -> tuple[dict[str, Field], dict[str, Layout], dict[str, Array]]:
    """Lay out both operands of every part for a product of matrices; give what that reads."""
    problem = plan.problem
    steps: Steps = tuple((a.stride, a.kernel_step, a.input_step) for a in problem.axes)
    p = parameters
    positions, taps = p["groups"] * p["batch"], np.ones_like(p["groups"])
    for d in range(len(problem.axes)):
        positions, taps = positions * p[f"output{d}"], taps * p[f"kernel{d}"]
    summed = p["inputs"] * taps
    ordered = {key: value[order] for key, value in p.items()}
    compute_set = graph.addComputeSet(f"{name}/Arrange")
    fields = {}
    for which, box, rows in (
        ("in", boxes.input, positions),
        ("weights", boxes.weights, p["groups"] * p["outputs"]),
    ):
        source = field_of_boxes("in", operands[which], _taken(box, order))
        codelet = arrange_codelet(
            problem.dtype, operands[which].layout, steps, weights=which == "weights"
        )
        cycles = arrange_cycles(graph.target, problem, rows, summed)[order]
        fields[which] = _local_copy(
            graph,
            compute_set,
            which,
            source,
            codelet,
            (rows * summed)[order],
            plan.tiles[order],
            ordered,
            cycles,
            name,
        )
    prog.add(Execute(compute_set))
    flat = {**p, "inputs": summed}
    for d in range(len(problem.axes)):
        one = np.ones_like(summed)
        flat |= {f"input{d}": p[f"output{d}"], f"kernel{d}": one, f"shift{d}": one - 1}
    # What was arranged lies as [g][n][*field][ci] and [g][co][ci].
    axes = tuple(range(3, 3 + len(problem.axes)))
    layouts = {"in": Layout((0, 2, *axes, 1)), "weights": Layout((0, 1, 2, *axes))}
    return fields, layouts, flat


def _local_copy(
    graph: Graph,
    compute_set: ComputeSet,
    which: str,
    source: Field,
    codelet: object,
    sizes: IntArray,
    tiles: IntArray,
    parameters: dict[str, Array],
    cycles: IntArray,
    name: str,
) -> Field:
    """Add the vertices that arrange an operand on every tile, and give what they write."""
    bounds = offsets_of(sizes)
    tensor = graph.addVariable(source.dtype, (int(bounds[-1]),), f"{name}/{which}Arranged")
    graph.map_ranges(tensor, bounds[:-1], bounds[1:], tiles)
    fields = {
        "in": source,
        "out": cut_field("out", "output", tensor, bounds[:-1], bounds[1:]),
    }
    graph.add_vertices(
        VertexGroup(compute_set.id, codelet, tiles, fields, parameters, cycles)  # type: ignore[arg-type]
    )
    return cut_field(which, "input", tensor, bounds[:-1], bounds[1:])
