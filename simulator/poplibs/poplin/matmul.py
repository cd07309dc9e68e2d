"""Matrix products: blocks on the matrix units of all tiles, then a reduction of partial sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.codelets.convolution import WORKLIST_ENTRIES, conv_codelet, worklists
from simulator.codelets.convolution_cycles import conv_cycles
from simulator.codelets.costs import ceil_div, even_bounds
from simulator.codelets.reduction import reduce_add_codelet, reduce_add_cycles
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, UNSIGNED_SHORT, IntArray, Type
from simulator.graph.vertex import Field, VertexGroup, cut_field, cut_ranges
from simulator.logging import library_call, log
from simulator.poplibs.poplin.blocks import Blocks
from simulator.poplibs.poplin.planner import Plan, plan_product
from simulator.poplibs.popops.regions import debug_name


@dataclass(frozen=True, slots=True)
class _Vertices:
    """Where each vertex stands in the plan: its part of rows, outputs and inputs; its block."""

    row: IntArray
    output: IntArray
    split: IntArray
    positions: IntArray
    outputs: IntArray
    inputs: IntArray


@library_call("POPLIN")
def matMul(graph: Graph, A: Tensor, B: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Multiply [m, k] by [k, n]."""
    name = debug_name(debugContext, "Conv_1")
    _check(name, A.shape, B.shape, A.dtype, B.dtype)
    plan = plan_product(graph.target, A.dtype, A.dim(0), A.dim(1), B.dim(1))
    log("PL", "POPLIN", "DEBUG", f"{name}: {list(A.shape)} x {list(B.shape)} by {plan}")
    if not plan.fits:
        text = (
            f"{name}: no plan keeps to the memory of a tile; the best takes {plan.block_bytes:,} B"
        )
        log("PL", "POPLIN", "WARN", text)
    with graph.debug_scope(name, "poplin"):
        left, right = (B.transpose(), A.transpose()) if plan.swapped else (A, B)
        out = _convolve(graph, plan, left, right, prog, name)
    return out.transpose() if plan.swapped else out


@library_call("POPLIN")
def createMatMulInputLHS(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: tuple[int, ...] | list[int],
    bShape: tuple[int, ...] | list[int],
    debugContext: str = "",
) -> Tensor:
    """Add the left operand of a product, laid out as its plan wants it."""
    return _create_input(graph, inputType, outputType, aShape, bShape, debugContext, left=True)


@library_call("POPLIN")
def createMatMulInputRHS(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: tuple[int, ...] | list[int],
    bShape: tuple[int, ...] | list[int],
    debugContext: str = "",
) -> Tensor:
    """Add the right operand of a product, laid out as its plan wants it."""
    return _create_input(graph, inputType, outputType, aShape, bShape, debugContext, left=False)


def _check(
    name: str,
    a_shape: tuple[int, ...] | list[int],
    b_shape: tuple[int, ...] | list[int],
    a_type: Type,
    b_type: Type,
) -> None:
    if len(a_shape) != 2 or len(b_shape) != 2 or a_shape[1] != b_shape[0]:
        raise PoplarError(f"{name}: cannot multiply {list(a_shape)} by {list(b_shape)}")
    if a_type != b_type or a_type not in (FLOAT, HALF):
        raise PoplarError(f"{name}: operands of types {a_type} and {b_type}; both float or half")


def _create_input(
    graph: Graph,
    dtype: Type,
    output_type: Type,
    a_shape: tuple[int, ...] | list[int],
    b_shape: tuple[int, ...] | list[int],
    name: str,
    *,
    left: bool,
) -> Tensor:
    """Add an operand in blocked order; each block is shared among the tiles that read it."""
    _check(name or "matMul", a_shape, b_shape, dtype, output_type)
    plan = plan_product(graph.target, dtype, a_shape[0], a_shape[1], b_shape[1])
    moving = left != plan.swapped  # the operand whose rows pass through the units
    rows, columns = (plan.m, plan.k) if moving else (plan.k, plan.n)
    blocks = _moving_blocks(plan) if moving else _weight_blocks(plan)
    shape = tuple(a_shape) if left else tuple(b_shape)
    flat = graph.addVariable(dtype, shape, name or "matMul/operand").flatten()
    readers = plan.n_splits if moving else plan.m_splits
    _map_shared(graph, flat, blocks, plan, readers, moving)
    first = int(flat.begins[0])
    operand = flat.view(first + blocks.positions().reshape(rows, columns))
    return operand.transpose() if plan.swapped else operand


def _moving_blocks(plan: Plan) -> Blocks:
    return Blocks(plan.row_bounds(), plan.input_bounds())


def _weight_blocks(plan: Plan) -> Blocks:
    return Blocks(plan.input_bounds(), plan.output_bounds())


def _tile(plan: Plan, row: IntArray, output: IntArray, split: IntArray) -> IntArray:
    """Give the tile of a vertex: the parts of one sum are neighbours."""
    return (row * plan.n_splits + output) * plan.k_splits + split


def _map_shared(
    graph: Graph, flat: Tensor, blocks: Blocks, plan: Plan, readers: int, moving: bool
) -> None:
    """Cut every block into one piece for each tile that reads it, and map the pieces."""
    heights, widths = blocks.heights(), blocks.widths()
    block_row, block_column, reader = (
        index.reshape(-1) for index in np.indices((len(heights), len(widths), readers))
    )
    start = blocks.starts()[block_row, block_column]
    size = (heights[:, None] * widths[None, :])[block_row, block_column]
    low = start + size * reader // readers
    high = start + size * (reader + 1) // readers
    if moving:
        tiles = _tile(plan, block_row, reader, block_column)
    else:
        tiles = _tile(plan, reader, block_column, block_row)
    keep = high > low
    graph.map_ranges(flat, low[keep], high[keep], tiles[keep])


def _vertices(plan: Plan) -> _Vertices:
    """List the vertices, those of one shape together: they are computed in one product."""
    row, output, split = (
        index.reshape(-1).astype(np.int64)
        for index in np.indices((plan.m_splits, plan.n_splits, plan.k_splits))
    )
    positions = np.diff(plan.row_bounds())[row]
    outputs = np.diff(plan.output_bounds())[output]
    inputs = np.diff(plan.input_bounds())[split]
    order = np.lexsort((inputs, outputs, positions))
    columns = (row, output, split, positions, outputs, inputs)
    return _Vertices(*(column[order] for column in columns))


def _convolve(
    graph: Graph, plan: Plan, left: Tensor, right: Tensor, prog: Sequence, name: str
) -> Tensor:
    """Add the products of all blocks, and the reduction when sums are split."""
    dtype = left.dtype
    compute_set = graph.addComputeSet(f"{name}/Convolve")
    vertices = _vertices(plan)
    out_blocks = Blocks(plan.row_bounds(), plan.output_bounds())
    size = plan.m * plan.n
    partials = graph.addVariable(
        dtype, (plan.k_splits, size), f"{name}/{'partials' if plan.k_splits > 1 else 'out'}"
    ).flatten()
    out_low = vertices.split * size + out_blocks.starts()[vertices.row, vertices.output]
    out_high = out_low + vertices.positions * vertices.outputs
    tiles = _tile(plan, vertices.row, vertices.output, vertices.split)
    graph.map_ranges(partials, out_low, out_high, tiles)
    fields = {
        **_operand_fields(plan, vertices, left, right),
        "out": cut_field("out", "output", partials, out_low, out_high, interleaved=True),
        "worklists": _worklist_field(graph, vertices, tiles, name),
    }
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=conv_codelet(dtype),
            tile=tiles,
            fields=fields,
            parameters={
                "positions": vertices.positions,
                "inputs": vertices.inputs,
                "outputs": vertices.outputs,
            },
            cycles=conv_cycles(
                graph.target, dtype, vertices.positions, vertices.outputs, vertices.inputs
            ),
        )
    )
    prog.add(Execute(compute_set))
    blocked = partials
    if plan.k_splits > 1:
        blocked = _reduce(graph, plan, partials, prog, name)
    return blocked.view(int(blocked.begins[0]) + out_blocks.positions())


def _operand_fields(
    plan: Plan, vertices: _Vertices, left: Tensor, right: Tensor
) -> dict[str, Field]:
    """Give each vertex its block of both operands; edges are as PopLibs lists them, by group."""
    in_groups = ceil_div(vertices.inputs, plan.group)
    out_groups = ceil_div(vertices.outputs, plan.units)
    moving, weights = _moving_blocks(plan), _weight_blocks(plan)
    in_low = moving.starts()[vertices.row, vertices.split]
    weight_low = weights.starts()[vertices.split, vertices.output]
    in_field = cut_field(
        "in",
        "input",
        left.view(left.elements().reshape(-1)[moving.in_order()]),
        in_low,
        in_low + vertices.positions * vertices.inputs,
    )
    weight_field = cut_field(
        "weights",
        "input",
        right.view(right.elements().reshape(-1)[weights.in_order()]),
        weight_low,
        weight_low + vertices.inputs * vertices.outputs,
    )
    return {
        "in": _with_edges(in_field, in_groups),
        "weights": _with_edges(weight_field, in_groups * out_groups),
    }


def _with_edges(field: Field, edges: IntArray) -> Field:
    return Field(
        field.name,
        field.dtype,
        field.direction,
        field.begins,
        field.lengths,
        field.starts,
        edges,
        field.interleaved,
    )


def _worklist_field(graph: Graph, vertices: _Vertices, tiles: IntArray, name: str) -> Field:
    """Add the constant that tells each worker of each vertex its share of the positions."""
    values = worklists(vertices.positions, graph.target.workers)
    size = graph.target.workers * WORKLIST_ENTRIES
    constant = graph.addConstant(
        UNSIGNED_SHORT, (len(tiles), size), values.reshape(-1), f"{name}/worklists"
    )
    low = np.arange(len(tiles), dtype=np.int64) * size
    graph.map_ranges(constant, low, low + size, tiles)
    return cut_field("worklists", "input", constant, low, low + size)


def _reduce(graph: Graph, plan: Plan, partials: Tensor, prog: Sequence, name: str) -> Tensor:
    """Add the partial sums; the outputs are spread in blocked order over the tiles in use."""
    size, dtype = plan.m * plan.n, partials.dtype
    grain = graph.target.getVectorWidth(dtype)
    grains = ceil_div(size, grain)
    pieces = min(plan.vertices, grains)
    bounds = np.minimum(even_bounds(grains, pieces) * grain, size)
    order = np.argsort(np.diff(bounds), kind="stable")  # those of one size together
    first, end = bounds[:-1][order], bounds[1:][order]
    tiles = (np.arange(pieces, dtype=np.int64) * plan.vertices // pieces)[order]
    out = graph.addVariable(dtype, (size,), f"{name}/Reduce/out")
    graph.map_ranges(out, first, end, tiles)
    compute_set = graph.addComputeSet(f"{name}/Reduce")
    row_start = np.arange(plan.k_splits, dtype=np.int64) * size
    low = (first[:, None] + row_start[None, :]).reshape(-1)
    high = (end[:, None] + row_start[None, :]).reshape(-1)
    ranges = np.full(pieces, plan.k_splits, dtype=np.int64)
    graph.add_vertices(
        VertexGroup(
            compute_set=compute_set.id,
            codelet=reduce_add_codelet(dtype),
            tile=tiles,
            fields={
                "partials": cut_ranges(
                    "partials", "input", partials, low, high, ranges, as_rows=True
                ),
                "out": cut_field("out", "output", out, first, end),
            },
            parameters={"splits": ranges},
            cycles=reduce_add_cycles(graph.target, dtype)(end - first, plan.k_splits),
        )
    )
    prog.add(Execute(compute_set))
    return out
