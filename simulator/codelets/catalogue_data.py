"""The rows of the catalogue for states of random generators, sorting and images."""

from __future__ import annotations

from functools import partial

from simulator.codelets import random_cycles, sorting_cycles
from simulator.codelets.sorting_cycles import compare_and_swap
from simulator.codelets.transpose_cycles import transpose_2d
from simulator.codelets.vertex_cost import VertexCost, row, supervisor

_ESTIMATORS = "PopLibs lib/popops/popopsCycleEstimators.cpp"
_AS_SEED = "our estimate, as setting a seed"

STATES: tuple[VertexCost, ...] = tuple(
    supervisor(name, "seeds", random_cycles.hardware_seeds, _AS_SEED, (8, 40), exact=False)
    for name in ("poplar_rt::GetHwSeeds", "poplar_rt::SetHwSeeds")
)

SORTING: tuple[VertexCost, ...] = (
    row(
        "popops::HeapSortVertexKV<key,value>",
        "key value",
        sorting_cycles.heap_sort_key_value,
        _ESTIMATORS,
        (12, 280),
    ),
    supervisor(
        "popops::CompareAndSwapAtDistance<key>",
        "keys",
        partial(compare_and_swap, values="none"),
        _ESTIMATORS,
        (100, 200),
    ),
    supervisor(
        "popops::CompareAndSwapAtDistanceKeyVal<key,value,stable>",
        "keys values",
        partial(compare_and_swap, values="moved"),
        _ESTIMATORS,
        (104, 260),
    ),
)

REARRANGING: tuple[VertexCost, ...] = (
    row(
        "popops::Transpose2D<type>",
        "in out",
        transpose_2d,
        "PopLibs lib/poplin/poplinCycleEstimators.cpp of 2019",
        (16, 150),
    ),
    supervisor(
        "popops::NormaliseImage<in,out>",
        "in out scales offsets",
        sorting_cycles.normalise_image,
        _ESTIMATORS,
        (28, 180),
    ),
)

DATA = STATES + SORTING + REARRANGING
