"""Gathers and scatters: NumPy's take, and XLA's definition worked out element by element."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import popops
from simulator.graph.errors import InvalidOptionError, PoplarError, poplibs_error
from simulator.graph.types import FLOAT, HALF, INT, UNSIGNED_INT


def whole_numbers(shape: Any, high: int = 50, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, high, tuple(shape))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_gather_of_one_axis_is_numpys_take(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    of_indices = data.draw(st.lists(st.integers(1, 5), max_size=2))
    params = popops.GatherParams(data.draw(st.sampled_from([2, 65535])))
    run, array = DeviceProgram(9), whole_numbers(shape)
    if data.draw(st.booleans()):
        made = popops.createGatherInput(run.graph, FLOAT, shape, axis, params)
        tensor = run.give(made, array)
    else:
        tensor = run.tensor(array)
    chosen = whole_numbers(of_indices, shape[axis], seed=1)
    indices = run.tensor(chosen, UNSIGNED_INT)
    out = popops.gather(run.graph, tensor, indices, axis, run.program, params)
    (found,) = run.run(out)
    np.testing.assert_array_equal(found, np.take(array, chosen, axis))


@pytest.mark.parametrize("most", [2, 65535])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("count", [2, 5, 9])  # one by one, in a loop, by one vertex
def test_indices_outside_are_remapped_or_padded_on_request(
    most: int, axis: int, count: int
) -> None:
    run, array = DeviceProgram(9), whole_numbers((5, 5)) + 1
    tensor, chosen = run.tensor(array), np.resize([5, 1, 4, 5, 0, 3, 7], count)
    params, inside = popops.GatherParams(most), np.minimum(chosen, 5)
    given, padding = run.tensor(chosen, UNSIGNED_INT), run.tensor(inside, UNSIGNED_INT)
    call = (axis, run.program, params)
    remapped = popops.gather(
        run.graph, tensor, given, *call, optionFlags={"remapOutOfBoundIndices": "true"}
    )
    flags = {"paddingIndexUsed": True, "validateIndices": True}
    padded = popops.gather(run.graph, tensor, padding, *call, "", flags)
    found = run.run(remapped, padded)
    np.testing.assert_array_equal(found[0], np.take(array, np.where(chosen < 5, chosen, 0), axis))
    zeros = np.pad(array, [(0, place == axis) for place in (0, 1)])
    np.testing.assert_array_equal(found[1], np.take(zeros, inside, axis))


def test_a_general_gather_takes_the_options_too() -> None:
    run, array = DeviceProgram(9), whole_numbers((4, 3)) + 1
    chosen = np.array([[1, 2], [4, 0], [0, 3]])  # rows 4 and columns 3 lie outside
    tensor, indices = run.tensor(array), run.tensor(chosen, UNSIGNED_INT)
    form = (1, [], [1, 1], [0, 1], [0, 1], run.program, "")
    parts = [
        popops.gather(run.graph, tensor, indices, *form, {name: "true"})
        for name in ("remapOutOfBoundIndices", "paddingIndexUsed")
    ]
    remapped, padded = run.run(*parts)
    assert remapped.tolist() == [array[1, 2], array[0, 0], array[0, 0]]
    assert padded.tolist() == [array[1, 2], 0, 0]


def test_a_gather_stops_at_indices_outside_when_they_are_validated() -> None:
    run = DeviceProgram()
    tensor, indices = run.tensor(np.zeros((4, 6))), run.tensor([1, 4], UNSIGNED_INT)
    options = {"validateIndices": True}
    out = popops.gather(run.graph, tensor, indices, 0, run.program, optionFlags=options)
    with pytest.raises(PoplarError, match="gather: offset that is not below 4"):
        run.run(out)
    with pytest.raises(InvalidOptionError, match="did you mean paddingIndexUsed"):
        popops.gather(run.graph, tensor, indices, 0, run.program, optionFlags={"paddingIndex": 1})


def element_of(place: Any, array: Any, indices: Any, form: dict[str, Any]) -> tuple[int, ...]:
    """Return the element that belongs to a place in the output of XLA's Gather."""
    kept = [dim for dim in range(array.ndim) if dim not in form["collapsedSliceDims"]]
    batch = [n for dim, n in enumerate(place) if dim not in form["offsetDims"]]
    if form["indexVectorDim"] < indices.ndim:
        batch.insert(form["indexVectorDim"], slice(None))
    start = np.zeros(array.ndim, int)
    start[form["startIndexMap"]] = indices[tuple(batch)]
    for dim, offset in zip(kept, form["offsetDims"], strict=True):
        start[dim] += place[offset]
    return tuple(start.tolist())


def xla_gather(array: Any, indices: Any, form: dict[str, Any], shape: Any) -> Any:
    """Return every element of the output by the definition of XLA's Gather."""
    out = np.zeros(shape, array.dtype)
    for place in product(*map(range, shape)):
        out[place] = array[element_of(place, array, indices, form)]
    return out


def drawn_gather(data: st.DataObject) -> tuple[Any, Any, dict[str, Any], tuple[int, ...]]:
    """Draw an input, indices inside it, the form of a gather, and the shape of its output."""
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    dims = range(len(shape))
    starts = data.draw(st.permutations(dims))[: data.draw(st.integers(1, len(shape)))]
    sizes = [data.draw(st.integers(1, size)) for size in shape]
    collapsed = [dim for dim in dims if sizes[dim] == 1 and data.draw(st.booleans())]
    batch = data.draw(st.lists(st.integers(1, 3), max_size=2))
    place = data.draw(st.integers(0, len(batch) + (len(starts) == 1)))
    rank = len(batch) + len(shape) - len(collapsed)
    offset = sorted(data.draw(st.permutations(range(rank)))[: len(shape) - len(collapsed)])
    limits = [shape[dim] - sizes[dim] + 1 for dim in starts]
    columns = np.stack([whole_numbers(batch, n, seed) for seed, n in enumerate(limits)], -1)
    indices = columns[..., 0] if place > len(batch) else np.moveaxis(columns, -1, place)
    form = {
        "indexVectorDim": indices.ndim if place > len(batch) else place,
        "offsetDims": offset,
        "sliceSizes": sizes,
        "collapsedSliceDims": collapsed,
        "startIndexMap": list(starts),
    }
    kept, rest = (iter([s for d, s in enumerate(sizes) if d not in collapsed]), iter(batch))
    out = tuple(next(kept if dim in offset else rest) for dim in range(rank))
    return whole_numbers(shape), indices, form, out


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_general_gather_is_xlas(data: st.DataObject) -> None:
    array, chosen, form, shape = drawn_gather(data)
    run = DeviceProgram(9)
    tensor = run.tensor(array, HALF)
    if data.draw(st.booleans()):
        sizes, starts = form["sliceSizes"], form["startIndexMap"]
        made = popops.createGatherInput(run.graph, HALF, array.shape, sizes, starts)
        tensor = run.give(made, array)
    indices = run.tensor(chosen, UNSIGNED_INT)
    out = popops.gather(run.graph, tensor, indices, *form.values(), run.program)
    (found,) = run.run(out)
    np.testing.assert_array_equal(found, xla_gather(array, chosen, form, shape))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_scatter_is_xlas(data: st.DataObject) -> None:
    # A scatter puts back what a gather of the same form takes.
    array, chosen, form, shape = drawn_gather(data)
    new = whole_numbers(shape, seed=7)
    adds = data.draw(st.booleans())
    run, dtype = DeviceProgram(9), data.draw(st.sampled_from([INT, UNSIGNED_INT]))
    operand, indices = run.tensor(array), run.tensor(chosen, dtype)
    more = [lambda g, old, add, prog: popops.add(g, old, add, prog)] if adds else []
    popops.scatter(
        run.graph,
        operand,
        indices,
        run.tensor(new),
        form["indexVectorDim"],
        form["offsetDims"],
        form["collapsedSliceDims"],
        form["startIndexMap"],
        *more,
        run.program,
    )
    (found,) = run.run(operand)
    np.testing.assert_array_equal(found, xla_scatter(array, chosen, new, form, adds))


def xla_scatter(array: Any, indices: Any, new: Any, form: dict[str, Any], adds: bool) -> Any:
    """Write every update by the definition of XLA's Scatter, window after window."""
    out = array.copy()
    batch = [dim for dim in range(new.ndim) if dim not in form["offsetDims"]]
    places = list(product(*map(range, new.shape)))
    for place in sorted(places, key=lambda place: [place[dim] for dim in batch]):
        element = element_of(place, array, indices, form)
        out[element] = new[place] + (out[element] if adds else 0)
    return out


def test_a_report_of_a_gather_and_a_scatter_breaks_no_law(tmp_path: Path) -> None:
    run, array = DeviceProgram(16), whole_numbers((12, 20))
    tensor, indices = run.tensor(array), run.tensor([3, 5, 3, 11, 0, 1, 2, 9], UNSIGNED_INT)
    rows = popops.gather(run.graph, tensor, indices, 0, run.program, debugContext="rows")
    popops.scatter(run.graph, tensor, indices, rows, 1, [1], [0], [0], run.program, "rows")
    found, same = run.run(rows, tensor, report=tmp_path)
    np.testing.assert_array_equal(found, array[[3, 5, 3, 11, 0, 1, 2, 9]])
    np.testing.assert_array_equal(same, array)


def test_an_input_that_lies_right_is_not_copied() -> None:
    run = DeviceProgram(16)
    made = popops.createGatherInput(run.graph, FLOAT, [30, 40], 0)
    linear = run.tensor(np.zeros((30, 40)))
    indices = run.tensor(np.zeros(9), UNSIGNED_INT)
    for tensor, name in ((made, "first"), (linear, "second")):
        popops.gather(run.graph, tensor, indices, 0, run.program, debugContext=name)
    copies = [v.name for v in run.graph.variables if v.name.endswith("inputTemp")]
    assert copies == ["second/gather/inputTemp"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"startIndexMap": [0, 2]}, r"startIndexMap \[0, 2\] .* do not fit indices"),
        ({"collapsedSliceDims": [1]}, r"collapsedSliceDims \[1\] of slices \[1, 3\]"),
        ({"offsetDims": [2]}, r"offsetDims \[2\]; 1 ascending ones of 2 dimensions"),
        ({"sliceSizes": [1, 4]}, "slice of 4 in dimension 1"),
    ],
)
def test_gathers_that_do_not_fit_are_refused_by_name(change: Any, said: str) -> None:
    run = DeviceProgram()
    tensor, indices = run.tensor(np.zeros((5, 3))), run.tensor(np.zeros((4, 2)), UNSIGNED_INT)
    form = {"indexVectorDim": 1, "offsetDims": [1], "sliceSizes": [1, 3]}
    form |= {"collapsedSliceDims": [0], "startIndexMap": [0, 1]} | change
    with pytest.raises(poplibs_error, match=f"words/gather: {said}"):
        popops.gather(run.graph, tensor, indices, **form, prog=run.program, debugContext="words")


def test_scatters_and_takes_that_do_not_fit_are_refused_by_name() -> None:
    run = DeviceProgram()
    tensor, indices = run.tensor(np.zeros((5, 3))), run.tensor(np.zeros(4), UNSIGNED_INT)
    with pytest.raises(poplibs_error, match=r"w/scatter: updates .* do not fit"):
        popops.scatter(run.graph, tensor, indices, tensor, 1, [1], [0], [0], run.program, "w")
    with pytest.raises(poplibs_error, match=r"w/scatter: updateWindowDims \[3\]"):
        popops.scatter(run.graph, tensor, indices, tensor, 1, [3], [0], [0], run.program, "w")
    with pytest.raises(poplibs_error, match=r"w/gather: axis 2 of shape \[5, 3\]"):
        popops.gather(run.graph, tensor, indices, 2, run.program, debugContext="w")
    with pytest.raises(poplibs_error, match=r"w/gather: indices .* unsigned int or int is needed"):
        popops.gather(run.graph, tensor, tensor, 0, run.program, debugContext="w")
