"""Odd numbers, single elements of rows, sequences of rows, rings and tensors for the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import popops
from simulator.codelets.indexing import not_numbers, rows, sequences
from simulator.graph.errors import poplibs_error
from simulator.graph.machine.target import make_target
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT, Type

MK2 = make_target("mk2")
MASKED = 2**32 - 1


def spread_oddly(run: DeviceProgram, values: Any, dtype: Type) -> Any:
    """Map elements to tiles so that some have several regions and some one."""
    array = np.asarray(values, dtype.numpy)
    t = run.graph.addVariable(dtype, array.shape, "t")
    flat = t.flatten()
    for element in range(array.size):
        run.graph.setTileMapping(flat[element], element // 5 % 3 if element < 20 else 4)
    return run.give(t, array)


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize(("value", "nan", "either"), [(1, 0, 0), (np.nan, 1, 1), (-np.inf, 0, 1)])
@pytest.mark.parametrize("place", [0, 18, 39])
def test_an_odd_number_shows_anywhere(
    dtype: Type, value: float, nan: int, either: int, place: int, tmp_path: Any
) -> None:
    run, values = DeviceProgram(), np.arange(40.0)
    values[place] = value
    t = spread_oddly(run, values, dtype)
    both = [f(run.graph, t, run.program) for f in (popops.hasNaN, popops.hasNaNOrInf)]
    assert [bool(one) for one in run.run(*both, report=tmp_path / "report")] == [nan, either]


def test_the_cycles_of_a_search_for_odd_numbers_are_poplibs() -> None:
    one = not_numbers.one_region
    # 50 floats: 25 words, 5 a worker: 10; 10 + 2 * 2 + 2 = 16; 6 * (17 + 16 + 7) + 24 = 264
    assert one(np.array([50]), FLOAT, MK2, infinities=False) == 264
    # 3 a vector and 1 in the test more: 10 + 3 * 2 + 2 = 18; 6 * (17 + 18 + 8) + 24
    assert one(np.array([50]), FLOAT, MK2, infinities=True) == 282
    # 101 halves: 25 words and 1, 5 a worker: 21 elements; 12 + 2 * 2 + 2 + 2 = 20 (8 + 4 + 1)
    assert one(np.array([101]), HALF, MK2, infinities=True) == 6 * (17 + 20 + 12) + 24
    # two regions of 5 and 4 floats, a worker: 9 + 13 + 12 + 7
    several = not_numbers.several_regions
    assert several(np.array([5, 4]), np.array([2]), FLOAT, infinities=False) == 9 + 13 + 12 + 7


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_single_elements_of_rows_are_numpys(data: st.DataObject) -> None:
    run = DeviceProgram(tiles=5)
    count, width = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 8))
    dtype = data.draw(st.sampled_from([FLOAT, HALF]))
    values = np.arange(count * width, dtype=np.float32).reshape(count, width) + 1
    index = st.one_of(st.integers(0, width), st.just(MASKED))
    picked = np.array([data.draw(index) for _ in range(count)], np.uint32)
    linear = data.draw(st.booleans())
    t = run.tensor(values, dtype) if linear else spread_oddly(run, values, dtype)
    at = run.tensor(picked, UNSIGNED_INT)
    taken = popops.selectScalarFromRows(run.graph, t, at, run.program)
    popops.updateScalarInRows(run.graph, t, at, run.program)
    out, after = run.run(taken, t)
    expected = values.copy()
    for row, column in enumerate(picked.tolist()):
        if column == MASKED:
            assert out[row] == 0
        elif column >= width:
            assert np.isnan(out[row])
            expected[row] = np.nan
        else:
            assert out[row] == values[row, column]
            expected[row, column] -= 1
    np.testing.assert_array_equal(after, expected.astype(dtype.numpy))


def test_what_rows_take_is_poplibs_and_wrong_ones_are_refused() -> None:
    assert rows.one_interval(np.array([3]), FLOAT) == 27 + 24
    assert rows.one_interval(np.array([3]), HALF) == 27 + 36
    assert rows.several_intervals(np.array([3, 2]), np.array([2]), FLOAT) == 27 + 8 * 5
    run = DeviceProgram()
    t, at = run.tensor(np.zeros((2, 3)), INT), run.tensor([0, 1], UNSIGNED_INT)
    with pytest.raises(poplibs_error, match="a matrix of float or half is needed"):
        popops.selectScalarFromRows(run.graph, t, at, run.program)
    with pytest.raises(poplibs_error, match=r"indices .*; unsigned int\[3\] is needed"):
        matrix = run.tensor(np.zeros((3, 3)))
        popops.updateScalarInRows(run.graph, matrix, at, run.program)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_sequences_of_rows_are_copied_as_numpy_copies_slices(data: st.DataObject) -> None:
    run = DeviceProgram()
    height, out_height, inner = (data.draw(st.integers(2, 9)) for _ in range(3))
    source = np.arange(height * inner, dtype=np.float32).reshape(height, inner) + 1
    target = -np.arange(out_height * inner, dtype=np.float32).reshape(out_height, inner)
    most = min(height, out_height)
    counts = [data.draw(st.integers(0, most)) for _ in range(data.draw(st.integers(1, 3)))]
    begins = [data.draw(st.integers(0, height - n)) for n in counts]
    ends = [data.draw(st.integers(0, out_height - n)) for n in counts]
    zeros = data.draw(st.booleans())
    t, out = run.tensor(source), run.tensor(target)
    places = [run.tensor(column, UNSIGNED_INT) for column in (counts, begins, ends)]
    popops.sequenceSlice(run.graph, t, out, *places, zeros, run.program)
    expected = np.zeros_like(target) if zeros else target.copy()
    for n, begin, end in zip(counts, begins, ends, strict=True):
        expected[end : end + n] = source[begin : begin + n]
    np.testing.assert_array_equal(run.run(out)[0], expected)


def test_the_cycles_of_sequences_are_poplibs() -> None:
    # 5 rows of 6 floats: 120 bytes, 60 cycles, 20 a sequence of 3; one round of 6 workers
    assert sequences.sequence_slice(np.array([6]), 5, 3, FLOAT, MK2) == 60 + 20 * 6 + 180
    assert sequences.sequence_slice(np.array([6]), 5, 7, HALF, MK2) == 60 + 5 * 12 + 420
    assert sequences.sequence_slice(np.array([6]), 5, 0, FLOAT, MK2) == 40


def test_a_ring_gives_back_the_newest_tensors(tmp_path: Any) -> None:
    run = DeviceProgram()
    ring = popops.CircBuf(run.graph, FLOAT, 3, [2, 3], "ring")
    values = np.arange(24.0).reshape(4, 2, 3)
    for number in range(4):
        ring.add(run.tensor(values[number]), run.program)
    taken = [ring.prev(i, run.program) for i in range(3)]
    outs = run.run(*taken, ring.getIndex(), report=tmp_path / "report")
    assert np.array_equal(outs[:3], values[[3, 2, 1]])
    assert (outs[3].tolist(), ring.size(), len(ring.getTileMapping())) == ([1], 3, 8)
    with pytest.raises(poplibs_error, match="i is 3; 0 to 2 is needed"):
        ring.prev(3, run.program)
    with pytest.raises(poplibs_error, match=r"float\[2, 3\] is needed"):
        ring.add(run.tensor([1.0]), run.program)


def test_tensors_for_the_host_lie_in_whole_packets() -> None:
    graph = DeviceProgram(tiles=4).graph
    pair = popops.createHostSliceableTensor(graph, FLOAT, [2, 400], False)
    assert (pair.indices.shape, pair.tensor.shape) == ((2,), (2, 400))
    # A row of 1,600 bytes is 2 packets of 1,024, 3,200 bytes that the host reads 13 of 256; 300
    # bytes before them took the first two tiles.
    ends = [parts[0][1] for parts in graph.getTileMapping(pair.tensor)]
    assert ends == [256, 400, 656, 800]
    assert graph.getTileMapping(pair.indices) == [[(0, 1)], [], [(1, 2)], []]
    read = popops.createHostTransferableTensor(graph, FLOAT, [20, 40], True, 300, "x")
    assert [parts[0] for parts in graph.getTileMapping(read)] == [
        (448, 640),
        (640, 800),
        (0, 256),
        (256, 448),
    ]
    with pytest.raises(poplibs_error, match=r"shape is \[4\]; \[rows, elements\] is needed"):
        popops.createHostSliceableTensor(graph, FLOAT, [4], True)
