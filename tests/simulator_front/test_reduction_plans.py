"""Which stages a reduction has, by PopLibs' rules worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from value_program import Values, numbers

from simulator.compiler.fixed_data import vertex_bytes
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF
from simulator.poplibs import popops
from simulator.poplibs.popops import Operation
from simulator.poplibs.popops.reduction.plan import parts_of_rows


def one_row_a_tile(rows: int, columns: int) -> tuple[Values, Tensor, np.ndarray]:
    """Add up rows that lie on a tile each."""
    values = Values("mk1")
    array = numbers(rows, columns)
    tensor = values.tensor(array)
    for row in range(rows):
        values.graph.setTileMapping(tensor[row], row)
    out = popops.reduce(values.graph, tensor, [0], Operation.ADD, values.program)
    return values, out, array


@pytest.mark.parametrize(("rows", "between"), [(64, 0), (65, 1)])
def test_more_than_64_partial_results_an_output_go_by_tiles_between(rows, between) -> None:
    values, _, _ = one_row_a_tile(rows, 4)
    names = [compute_set.name for compute_set in values.graph.compute_sets]
    assert sum("ReduceStage" in name for name in names) == between


def test_blocks_between_have_64_values_and_a_tile_each() -> None:
    # Two pieces of 4 columns: 299 x 4 values are 18 blocks of 64, so of 17 rows each.
    values, out, array = one_row_a_tile(299, 8)
    first = values.graph.vertex_groups()[0]
    assert len(set(first.tile.tolist())) == 2 * 18
    np.testing.assert_allclose(values.run().read(out), array.sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize(("rows", "parts"), [(32, 3), (8, 1)])
def test_rows_are_cut_where_that_is_quicker_for_the_slowest_worker(rows, parts) -> None:
    # Two regions of 8 floats, 4 values a cycle: 30 + 64 cycles, or 60 + 64 / 3 in three parts each;
    # of 8 rows 30 + 16, which 60 + 8 does not beat.
    outs, tile = np.array([8, 8]), np.array([0, 0])
    found = parts_of_rows(outs, np.array([rows, rows]), tile, 6, FLOAT, "ADD")
    assert found.tolist() == [parts, parts]


def test_parts_of_rows_are_summed_by_one_vertex_and_what_is_not_cut_is_done_at_once() -> None:
    # On tile 0, 96 rows of 8 columns, which 6 workers share; on tile 1, 4 rows.
    values = Values("mk1")
    tensor = values.graph.addVariable(HALF, [100, 8], "values")
    values.graph.setTileMapping(tensor[:96], 0)
    values.graph.setTileMapping(tensor[96:], 1)
    popops.reduce(values.graph, tensor, [0], Operation.ADD, values.program)
    first, second = (
        [tile for group in values.graph.groups_of(number) for tile in group.tile.tolist()]
        for number in (0, 1)
    )
    assert sorted(first) == [0] * 6 + [1]
    assert second == [0]


def test_what_runs_were_reduced_to_is_summed_by_as_many_vertices_as_the_runs() -> None:
    # On the tile: 4 rows of 8 columns, each column 4 halves side by side. Four vertices of 8 halves
    # add up the rows, four of two columns what that leaves of each column.
    values = Values("mk1")
    tensor = values.graph.addVariable(HALF, [4, 8, 4], "values")
    values.graph.setTileMapping(tensor, 0)
    popops.reduce(values.graph, tensor, [0, 2], Operation.ADD, values.program)
    groups = values.graph.vertex_groups()
    assert [(group.codelet.name[-2], len(group)) for group in groups] == [("3", 4), ("1", 4)]


@pytest.mark.parametrize(("machine", "size"), [("mk1", 12), ("mk2", 16)])
def test_a_strided_reduction_has_two_pointers_as_short_as_the_machines(machine, size) -> None:
    # ReductionConnection.cpp counts 10 bytes on Mk1: pointers and three numbers of two bytes each.
    values = Values(machine)
    tensor = values.graph.addVariable(FLOAT, [16, 8], "values")
    values.graph.setTileMapping(tensor, 0)
    popops.reduce(values.graph, tensor, [0], Operation.MAX, values.program)
    vertices = values.graph.vertex_groups()[0]
    sizes = vertex_bytes(vertices, values.graph.target.scaled_pointer_bytes)
    assert vertices.codelet.name.endswith(",3>")
    assert set(sizes.total().tolist()) == {size}
