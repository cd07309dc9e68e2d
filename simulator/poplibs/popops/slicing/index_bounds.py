"""Indices of a gather that lie outside of what is gathered: refused, taken as 0, or zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.graph import program
from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue, checked, defaults
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.operators import logicalAnd, lt, mul, select
from simulator.poplibs.popops.slicing.planned.slice_plan import BOUNDS, GATHER_OPTIONS
from simulator.poplibs.popops.slicing.validate_indices import validate_indices


def gather_options(
    options: Mapping[str, object] | None, name: str
) -> tuple[dict[str, OptionValue], dict[str, object]]:
    """Return what is done with indices outside, and the options of slices.

    Raises InvalidOptionError.
    """
    values = checked(GATHER_OPTIONS, options or {}, name)
    bounds = defaults(BOUNDS, {key: values[key] for key in values if key in BOUNDS})
    return bounds, {key: value for key, value in (options or {}).items() if key not in BOUNDS}


def checked_indices(
    graph: Graph,
    indices: Tensor,
    limits: Sequence[int],
    bounds: Mapping[str, OptionValue],
    prog: program.Sequence,
    name: str,
) -> Tensor:
    """Return indices [slice][dimension] as they are to be gathered."""
    if bounds["remapOutOfBoundIndices"]:
        inside = cast(graph, _inside(graph, indices, limits, prog, name), UNSIGNED_INT, prog, name)
        return mul(graph, indices, inside, prog, f"{name}/remap")
    if bounds["validateIndices"]:
        ends = [limit + bool(bounds["paddingIndexUsed"]) for limit in limits]
        validate_indices(graph, indices, ends, prog, name)
    return indices


def with_padding(
    graph: Graph,
    slices: Tensor,
    indices: Tensor,
    limits: Sequence[int],
    bounds: Mapping[str, OptionValue],
    prog: program.Sequence,
    name: str,
) -> Tensor:
    """Return slices [slice][...] with zeros where an index is that of the padding."""
    if bounds["remapOutOfBoundIndices"] or not bounds["paddingIndexUsed"]:
        return slices
    columns = _inside(graph, indices, limits, prog, name)
    inside = columns[:, 0]
    for place in range(1, len(limits)):
        inside = logicalAnd(graph, inside, columns[:, place], prog, f"{name}/inside")
    zero = graph.addConstant(slices.dtype, [], 0, f"{name}/padding")
    graph.setTileMapping(zero, 0)
    mask = inside.reshape([slices.dim(0), *[1] * (slices.rank() - 1)])
    return select(graph, slices, zero, mask, prog, f"{name}/fillPadding")


def _inside(
    graph: Graph, indices: Tensor, limits: Sequence[int], prog: program.Sequence, name: str
) -> Tensor:
    ends = graph.addConstant(UNSIGNED_INT, [len(limits)], list(limits), f"{name}/endIndices")
    graph.setTileMapping(ends, 0)
    return lt(graph, indices, ends, prog, f"{name}/inside")
