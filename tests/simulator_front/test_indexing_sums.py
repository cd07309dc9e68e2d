"""Counting numbers and cumulative sums: NumPy's values, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import popops
from simulator.codelets.catalogue import rows_of
from simulator.codelets.indexing.cumulative_sum import add_carry_codelet, cumulative_sum_codelet
from simulator.graph.errors import poplibs_error
from simulator.graph.types import BOOL, FLOAT, HALF, INT, UNSIGNED_INT


@settings(max_examples=30, deadline=None)
@given(count=st.integers(1, 300), start=st.integers(-50, 50), tiles=st.sampled_from([1, 7]))
def test_iota_counts(count: int, start: int, tiles: int) -> None:
    run = DeviceProgram(tiles)
    ahead, back = (run.graph.addVariable(INT, [count], name) for name in ("ahead", "back"))
    for tensor in (ahead, back):
        popops_map(run, tensor)
    popops.iota(run.graph, ahead, start, run.program)
    popops.iota(run.graph, back.reverse(0), start, run.program)
    found, turned = run.run(ahead, back)
    np.testing.assert_array_equal(found, start + np.arange(count))
    np.testing.assert_array_equal(turned, found[::-1])


def popops_map(run: DeviceProgram, tensor: Any) -> None:
    """Put a tensor on two tiles, or on the one there is."""
    half, last = tensor.numElements() // 2, run.graph.target.num_tiles - 1
    run.graph.setTileMapping(tensor[:half], 0)
    run.graph.setTileMapping(tensor[half:], last)


def test_iota_costs_3_cycles_a_vector() -> None:
    run = DeviceProgram(1)
    tensor = run.tensor(np.zeros(24), UNSIGNED_INT)
    popops.iota(run.graph, tensor, 5, run.program, "count")
    (group,) = run.graph.vertex_groups()
    # 4 numbers for each of 6 workers: 2 vectors.
    assert group.cycles.tolist() == [10 + 4 + 3 * 2] * 6
    assert [c.name for c in run.graph.compute_sets] == ["count/iota"]


@pytest.mark.parametrize(
    ("dtype", "shape", "start", "said"),
    [
        (FLOAT, [4], 0, "int or unsigned int is needed"),
        (INT, [2, 2], 0, "one dimension"),
        (UNSIGNED_INT, [4], -1, "value -1 at element 0"),
        (INT, [4], 2**31 - 2, "value 2147483649 at element 1"),
    ],
)
def test_iota_of_what_cannot_count_is_refused(
    dtype: Any, shape: list[int], start: int, said: str
) -> None:
    run = DeviceProgram()
    tensor = run.tensor(np.zeros(shape), dtype)
    with pytest.raises(poplibs_error, match=f"count/iota: .*{said}"):
        popops.iota(run.graph, tensor, start, run.program, "count")


def summed(array: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    """Sum up as NumPy does, from the other end or without the element itself."""
    turned = np.flip(array, axis) if reverse else array
    sums = np.cumsum(turned, axis, dtype=np.float64)
    sums = sums - turned if exclusive else sums
    return np.flip(sums, axis) if reverse else sums


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_cumulative_sums_are_numpys(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    shape[axis] = data.draw(st.integers(1, 400))  # some sums go over several blocks
    dtype = data.draw(st.sampled_from([FLOAT, HALF, INT]))
    exclusive, reverse = data.draw(st.booleans()), data.draw(st.booleans())
    run = DeviceProgram(data.draw(st.sampled_from([1, 16])))
    array = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype.numpy)
    tensor = run.tensor(array, dtype)
    out = popops.cumSum(run.graph, tensor, axis, exclusive, reverse, run.program)
    (found,) = run.run(out)
    np.testing.assert_array_equal(found, summed(array, axis, exclusive, reverse))


def test_a_report_of_a_cumulative_sum_breaks_no_law(tmp_path: Path) -> None:
    run = DeviceProgram(16)
    array = np.random.default_rng(0).standard_normal((3, 2000)).astype(np.float32)
    out = popops.cumSum(run.graph, run.tensor(array), 1, run.program, "sums", reverse=True)
    (found,) = run.run(out, report=tmp_path)
    np.testing.assert_allclose(found, summed(array, 1, False, True), rtol=1e-4, atol=1e-4)


def test_sums_over_several_axes_are_tables_of_areas() -> None:
    run, array = DeviceProgram(4), np.arange(20).reshape(4, 5)
    out = popops.cumSum(run.graph, run.tensor(array), [0, 1], run.program)
    (found,) = run.run(out)
    np.testing.assert_array_equal(found, array.cumsum(0).cumsum(1))


def test_a_long_sum_is_cut_into_blocks_of_rows() -> None:
    run = DeviceProgram(16)
    popops.cumSum(run.graph, run.tensor(np.zeros(640)), 0, run.program, "sums")
    names = [c.name for c in run.graph.compute_sets]
    assert names == ["sums/cumSum", "sums/cumSum/carry", "sums/cumSum/add"]
    blocks, carry, add = run.graph.vertex_groups()
    assert blocks.cycles.tolist() == [20 + 8 + 2 * 64] * 10 == add.cycles.tolist()
    assert carry.cycles.tolist() == [20 + 8 + 2 * 10]


def test_sums_of_what_cannot_be_summed_are_refused() -> None:
    run = DeviceProgram()
    with pytest.raises(poplibs_error, match=r"s/cumSum: axes \[2\] of"):
        popops.cumSum(run.graph, run.tensor(np.zeros((2, 2))), 2, run.program, "s")
    with pytest.raises(poplibs_error, match="s/cumSum: .* known for float, half, int"):
        popops.cumSum(run.graph, run.tensor(np.zeros(2), BOOL), 0, run.program, "s")


@pytest.mark.parametrize(
    "codelet", [cumulative_sum_codelet(FLOAT, False, False), add_carry_codelet(FLOAT)]
)
def test_vertices_of_sums_have_the_bytes_of_their_rows(codelet: Any) -> None:
    entry = rows_of(codelet.name)[0]
    assert (codelet.state_bytes, codelet.code_bytes) == (entry.state_bytes, entry.code_bytes)
    assert not entry.exact
