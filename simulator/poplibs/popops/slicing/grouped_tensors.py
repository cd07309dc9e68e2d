"""Tensors for slices of several matrices at once, which need a plan (popops/DynamicSlice.hpp)."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.graph.graph import Graph
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT, Type, checked_shape, checked_type
from simulator.logging import library_call
from simulator.poplibs import poputil
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popops.slicing.planned.slice_layout import (
    INDICES_PER_TILE,
    check_planned,
    planned_base,
    planned_slices,
)
from simulator.poplibs.popops.slicing.planned.slice_plan import (
    Options,
    SlicePlan,
    check_slices,
    slice_options,
)


@library_call("POPOPS")
def createGroupedSliceableTensor(
    graph: Graph,
    type: Type,
    groupSize: int,
    shape: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> Tensor:
    """Add a variable [groupSize][shape] that lies as a plan has it.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 3, 8, 4, [5], {})
    >>> sizes = [8, 4], [0], [1]
    >>> popops.createGroupedSliceableTensor(trial.graph, poplar.FLOAT, 3, *sizes, plan).shape
    (3, 8, 4)
    """
    name = debug_name(debugContext, "createGroupedSliceableTensor")
    dtype, one = _checked(graph, name, type, groupSize, shape, (dims, sizes), plan, options)
    return planned_base(graph, dtype, (groupSize, *one), plan, debugContext)[0]


@library_call("POPOPS")
def createGroupedSliceTensor(
    graph: Graph,
    type: Type,
    groupSize: int,
    shape: Sequence[int],
    dims: Sequence[int],
    sizes: Sequence[int],
    numIndices: int,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> Tensor:
    """Add a variable [groupSize][numIndices][1][columns] for slices as a plan leaves them.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 3, 8, 4, [5], {})
    >>> sizes = [8, 4], [0], [1], 5
    >>> popops.createGroupedSliceTensor(trial.graph, poplar.FLOAT, 3, *sizes, plan).shape
    (3, 5, 1, 4)
    """
    name = debug_name(debugContext, "createGroupedSliceTensor")
    dtype, one = _checked(graph, name, type, groupSize, shape, (dims, sizes), plan, options)
    return planned_slices(graph, dtype, (groupSize, numIndices, 1, one[1]), plan, debugContext)


@library_call("POPOPS")
def createGroupedIndicesTensor(
    graph: Graph,
    groupSize: int,
    dims: Sequence[int],
    numIndices: int,
    plan: SlicePlan,
    options: Options = None,
    debugContext: str = "",
) -> Tensor:
    """Add a variable [groupSize][numIndices][dims] of offsets.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> plan = popops.embedding.plan(trial.graph, poplar.FLOAT, 3, 8, 4, [5], {})
    >>> popops.createGroupedIndicesTensor(trial.graph, 3, [0], 5, plan).shape
    (3, 5, 1)
    """
    slice_options(options, debug_name(debugContext, "createGroupedIndicesTensor"))
    tensor = graph.addVariable(
        UNSIGNED_INT, [groupSize, numIndices, len(dims)], debug_name(debugContext, "indices")
    )
    poputil.mapTensorLinearly(graph, tensor, INDICES_PER_TILE, 1)
    return tensor


def _checked(
    graph: Graph,
    name: str,
    type: Type,
    groups: int,
    shape: Sequence[int],
    slices: tuple[Sequence[int], Sequence[int]],
    plan: SlicePlan,
    options: Options,
) -> tuple[Type, tuple[int, ...]]:
    """Return type and shape; raises poplibs_error for slices that are not those of the plan."""
    one = checked_shape(shape, name)
    check_slices(name, one, *slices)
    check_planned(name, plan, one, *slices, groups, graph.target)
    slice_options(options, name)
    return checked_type(type, name), one
