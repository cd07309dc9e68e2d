"""Rows of the catalogue: vertex types of popops that slice, look up, count and sum up."""

from __future__ import annotations

from simulator.codelets import copy_cycles, indexing_cycles
from simulator.codelets.cumulative_sum import cumulative_sum_cycles
from simulator.codelets.vertex_cost import VertexCost, row, supervisor

_ESTIMATORS = "PopLibs lib/popops/popopsCycleEstimators.cpp"
_PERFORMANCE = "PopLibs lib/popops/PerformanceEstimation.cpp"

INDEXING: tuple[VertexCost, ...] = (
    supervisor(
        "popops::DynamicSlice1D<type>",
        "offset baseT subT",
        indexing_cycles.dynamic_slice_1d,
        _ESTIMATORS,
        (20, 120),
    ),
    row(
        "popops::DynamicSlice2D<type>",
        "offset baseT subT",
        indexing_cycles.dynamic_slice_2d,
        _ESTIMATORS,
        (24, 140),
    ),
    supervisor(
        "popops::DynamicUpdateSlice1D<type>",
        "offset baseT subT",
        indexing_cycles.dynamic_slice_1d,
        _ESTIMATORS,
        (20, 120),
    ),
    row(
        "popops::DynamicUpdateSlice2D<type>",
        "offset baseT subT",
        indexing_cycles.dynamic_update_2d,
        _ESTIMATORS,
        (24, 140),
    ),
    supervisor(
        "popops::MultiSlice<type>",
        "offsets baseT subT",
        indexing_cycles.multi_slice,
        _PERFORMANCE,
        (24, 150),
    ),
    supervisor(
        "popops::MultiUpdate<type>",
        "offsets baseT subT",
        indexing_cycles.multi_update,
        _PERFORMANCE,
        (24, 150),
    ),
    supervisor(
        "popops::MultiUpdateAdd<type>",
        "offsets baseT subT",
        indexing_cycles.multi_update_add,
        _PERFORMANCE,
        (24, 150),
    ),
    supervisor(
        "popops::MultiUpdateOp<type,subwords,MAX>",
        "offsets baseT subT",
        indexing_cycles.multi_update_add,
        _PERFORMANCE,
        (24, 150),
    ),
    supervisor(
        "popops::ScaledMultiUpdateAdd<type,scale,subwords>",
        "offsets baseT subT scale",
        indexing_cycles.multi_update_add,
        _PERFORMANCE,
        (28, 170),
    ),
    supervisor(
        "popops::EncodeOneHot<index,out>, 2019",
        "indices out offsets sliceLength",
        indexing_cycles.one_hot_2019,
        _ESTIMATORS + " of 2019",
        (28, 120),
    ),
    row(
        "popops::EncodeOneHot<index,out>",
        "indices out",
        indexing_cycles.one_hot,
        _ESTIMATORS,
        (16, 120),
    ),
    row("popops::Iota<type>", "out offsets", indexing_cycles.iota, _ESTIMATORS, (24, 90)),
    row(
        "popops::CumulativeSum<type,exclusive,reverse>",
        "in out total",
        cumulative_sum_cycles,
        "our estimate",
        (20, 130),
        exact=False,
    ),
    row(
        "popops::CumulativeSumCarry<type>",
        "out carry",
        cumulative_sum_cycles,
        "our estimate",
        (16, 100),
        exact=False,
    ),
    row("popops::HeapSortVertex<type>", "out", indexing_cycles.heap_sort, _ESTIMATORS, (8, 220)),
    row(
        "popops::ForLoopCounter<type>",
        "count limit increment comparisonResult",
        copy_cycles.loop_counter,
        "our estimate, from the C++ codelet of PopLibs",
        (16, 60),
        exact=False,
    ),
)
