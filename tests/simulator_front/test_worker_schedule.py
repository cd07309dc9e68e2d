"""Cycles of compute sets, and bytes of vertices."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from simulator.compiler.costs import busiest_worker, compute_costs
from simulator.compiler.fixed_data import vertex_bytes
from simulator.graph.machine.target import TARGETS
from simulator.graph.vertices.vertex import Codelet, VertexGroup
from simulator.poplibs import poplin

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 99)), min_size=1, max_size=60)


def group(tiles: list[int], cycles: list[int], *, supervisor: bool = False) -> VertexGroup:
    codelet = Codelet("v", lambda operands: {}, supervisor)
    return VertexGroup(0, codelet, np.array(tiles), {}, {}, np.array(cycles))


@settings(max_examples=60, deadline=None)
@given(PAIRS)
def test_each_vertex_goes_to_the_worker_with_the_least_to_do(pairs: list[tuple[int, int]]) -> None:
    loads: dict[int, list[int]] = {}
    for tile, cycles in pairs:
        workers = loads.setdefault(tile, [0] * 6)
        workers[workers.index(min(workers))] += cycles
    tiles, cycles = (np.array(column) for column in zip(*pairs, strict=True))
    used, longest = busiest_worker(tiles, cycles, 6)
    assert dict(zip(used.tolist(), longest.tolist(), strict=True)) == {
        tile: max(workers) for tile, workers in loads.items()
    }


def test_tutorial_7_takes_4410_cycles_to_multiply_and_96_to_add() -> None:
    # 42 dot products of 200 columns (5 + 100 cycles) and 9 sums of 5 (5 + 3) on the busiest tile.
    both = [group([0] * 42, [105] * 42), group([1] * 9, [8] * 9)]
    costs = compute_costs(TARGETS["mk1"], 1, both, [both[0].codelet], np.array([0, 0]))
    assert costs.cycles[0, :3].tolist() == [4410, 96, 0]
    assert costs.active_cycles[0, :2].tolist() == [42 * 105, 72]
    assert costs.active_by_type.tolist() == [[42 * 105 + 72]]


def test_a_tile_with_one_worker_computes_in_one_of_six_cycles() -> None:
    # The guide's example of tileCycles: activeCompute 1349, compute 8094.
    alone = group([0, 1], [1000, 349])
    costs = compute_costs(TARGETS["tiny"], 1, [alone], [alone.codelet], np.array([0]))
    assert (costs.active_cycles.sum(), costs.cycles.sum()) == (1349, 8094)


def test_supervisor_vertices_take_their_estimate_one_after_another() -> None:
    both = [group([0, 0], [100, 50], supervisor=True), group([0], [10])]
    types = [both[0].codelet, both[1].codelet]
    costs = compute_costs(TARGETS["tiny"], 1, both, types, np.array([0, 1]))
    assert costs.cycles[0, 0] == 100 + 50 + 6 * 10
    assert costs.active_cycles[0, 0] == 160


def test_a_product_does_two_operations_for_each_pair_of_numbers() -> None:
    values = Values("mk1")
    tensors = values.tensor(numbers(16, 100)), values.tensor(numbers(100, 30))
    poplin.matMul(values.graph, *tensors, values.program)
    groups = values.graph.vertex_groups()
    types = [g.codelet for g in groups]
    names = [compute_set.name for compute_set in values.graph.compute_sets]
    count = len(names)
    costs = compute_costs(values.graph.target, count, groups, types, np.arange(len(groups)))
    assert costs.flops[names.index("Conv_1/Convolve")] == 2 * 16 * 100 * 30


def test_the_parts_of_vertices_add_up_to_what_is_filed() -> None:
    values = Values("mk1")
    tensors = values.tensor(numbers(16, 100)), values.tensor(numbers(100, 30))
    poplin.matMul(values.graph, *tensors, values.program)
    for item in values.graph.vertex_groups():
        sizes = vertex_bytes(item)
        filed = sizes.instance() + sizes.field_data + sizes.list_descriptors
        np.testing.assert_array_equal(filed + sizes.copy_descriptors, sizes.total())
        assert (sizes.instance() >= item.codelet.state_bytes).all()
        assert (sizes.instance() % 4 == 0).all()
