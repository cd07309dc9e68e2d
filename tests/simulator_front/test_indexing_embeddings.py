"""Slices and updates at many offsets, planned and not: NumPy's values, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import popops
from simulator.codelets.catalogue import rows_of
from simulator.codelets.indexing.iota import iota_codelet
from simulator.codelets.indexing.slicing import (
    dynamic_slice_codelet,
    multi_slice_codelet,
    multi_update_codelet,
)
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.machine.target import make_target
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, Type
from simulator.graph.vertices.vertex import Codelet

NO_PLAN = popops.SlicePlan()


def small(dtype: Type, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Draw whole numbers whose sums every type holds exactly."""
    high = 2 if dtype == BOOL else 9
    return np.random.default_rng(seed).integers(0, high, shape).astype(dtype.numpy)


def drawn_plan(data: st.DataObject, groups: int, offsets: int, update: str = "add") -> Any:
    """Return no plan, or one with splits of any number."""
    if groups == 1 and data.draw(st.booleans()):
        return NO_PLAN
    splits = [data.draw(st.integers(1, most)) for most in (4, 5, 4, groups)]
    if update == "none":
        splits[0] = 1
    return popops.SlicePlan(*splits, groupSize=groups, isNull=False)


def mapped(data: st.DataObject, run: DeviceProgram, array: Any, dtype: Type, plan: Any) -> Tensor:
    """Map a matrix as its plan wants it, or for slices, or in order."""
    match data.draw(st.sampled_from(["planned", "sliceable", "linear"])):
        case "planned" if not plan.isNull and plan.groupSize == 1:
            base = popops.createSliceableTensor(
                run.graph, dtype, array.shape, [0], [1], plan, {}, "base"
            )
            return run.give(base, array)
        case "sliceable" if array.ndim == 2:
            base = popops.createSliceableTensor(run.graph, dtype, array.shape, [0], [1])
            return run.give(base, array)
    return run.tensor(array, dtype)


def looked_up(array: Any, offsets: Any) -> Any:
    """Return the rows at offsets, zeros where there is none: [offset][1][column]."""
    rows = np.zeros((len(offsets), 1, array.shape[1]), array.dtype)
    inside = offsets < len(array)
    rows[inside, 0] = array[offsets[inside]]
    return rows


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_lookups_equal_numpys(data: st.DataObject) -> None:
    rows, columns, count = (data.draw(st.integers(1, most)) for most in (14, 9, 20))
    dtype = data.draw(st.sampled_from([FLOAT, HALF, INT, BOOL]))
    run = DeviceProgram(data.draw(st.sampled_from([81, 320])))
    plan, array = drawn_plan(data, 1, count), small(dtype, (rows, columns))
    wrong = not plan.isNull or count > 6  # elsewhere offsets wrap
    offsets = np.random.default_rng(count).integers(0, rows + wrong, count)
    base = mapped(data, run, array, dtype, plan)
    indices = popops.createIndicesTensor(run.graph, [0], count, plan, {})
    run.give(indices, offsets[:, None])
    out = popops.multiSlice(run.graph, base, indices, [0], [1], run.program, plan, {}, "words")
    (found,) = run.run(out)
    np.testing.assert_array_equal(found, looked_up(array, offsets))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_updates_of_rows_equal_numpys(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["none", "add", "max"]))
    rows, columns, count = (data.draw(st.integers(1, most)) for most in (14, 9, 20))
    dtype = data.draw(st.sampled_from([FLOAT, HALF] if kind == "add" else [FLOAT, HALF, INT]))
    run, plan = DeviceProgram(320), drawn_plan(data, 1, count, kind)
    array, new = small(dtype, (rows, columns)), small(dtype, (count, 1, columns), seed=1)
    offsets = np.random.default_rng(count).integers(0, rows, count)
    base = mapped(data, run, array, dtype, plan)
    slices, indices = run.tensor(new, dtype), run.tensor(offsets[:, None], UNSIGNED_INT)
    arguments: list[Any] = [run.graph, base, slices, indices]
    if kind == "add":
        arguments.append(run.tensor(2, data.draw(st.sampled_from([FLOAT, dtype]))))
    function = {
        "none": popops.multiUpdate,
        "add": popops.multiUpdateAdd,
        "max": popops.multiUpdateMax,
    }
    function[kind](*arguments, [0], [1], run.program, plan, {"partialType": "float"}, "words")
    (found,) = run.run(base)
    if kind == "none":
        array[offsets] = new[:, 0]
    elif kind == "add":
        np.add.at(array, offsets, 2 * new[:, 0])
    else:
        np.maximum.at(array, offsets, new[:, 0])
    np.testing.assert_array_equal(found, array)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_groups_of_matrices_are_looked_up_and_updated_each_by_itself(data: st.DataObject) -> None:
    groups, rows, columns, count = (data.draw(st.integers(1, most)) for most in (4, 9, 5, 8))
    run, plan = DeviceProgram(400), drawn_plan(data, groups + 1, count)
    plan = replace(plan, groupSplit=min(groups, plan.groupSplit), groupSize=groups)
    array, new = small(FLOAT, (groups, rows, columns)), small(FLOAT, (groups, count, 1, columns))
    offsets = np.random.default_rng(count).integers(0, rows, (groups, count, 1))
    base, slices = run.tensor(array), run.tensor(new)
    indices = run.tensor(offsets, UNSIGNED_INT)
    out = popops.groupedMultiSlice(run.graph, base, indices, [0], [1], run.program, plan)
    popops.groupedMultiUpdateAdd(
        run.graph, base, slices, indices, run.tensor(3.0), [0], [1], run.program, plan
    )
    found, updated = run.run(out, base)
    for group in range(groups):
        expected = looked_up(array[group], offsets[group, :, 0])
        np.testing.assert_array_equal(found[group], expected)
        np.add.at(array[group], offsets[group, :, 0], 3 * new[group, :, 0])
    np.testing.assert_array_equal(updated, array)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_slices_in_several_dimensions_equal_numpys(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    dims = list(range(len(shape)))[: data.draw(st.integers(1, len(shape)))]
    sizes = [data.draw(st.integers(1, shape[dim])) for dim in dims]
    count = data.draw(st.integers(1, 9))
    limits = [shape[dim] - size + 1 for dim, size in zip(dims, sizes, strict=True)]
    offsets = np.random.default_rng(count).integers(0, limits, (count, len(dims)))
    run, array = DeviceProgram(7), small(FLOAT, shape)
    base, indices = run.tensor(array), run.tensor(offsets, UNSIGNED_INT)
    out = popops.multiSlice(run.graph, base, indices, dims, sizes, run.program)
    parts = [
        tuple(slice(low, low + size) for low, size in zip(row, sizes, strict=True))
        for row in offsets.tolist()
    ]
    expected = np.stack([array[part] for part in parts])
    new = small(FLOAT, expected.shape, seed=1)
    popops.multiUpdate(run.graph, base, run.tensor(new), indices, dims, sizes, run.program)
    found, updated = run.run(out, base)
    np.testing.assert_array_equal(found, expected)
    for part, values in zip(parts, new, strict=True):
        array[part] = values
    np.testing.assert_array_equal(updated, array)


def test_columns_are_looked_up_as_rows_are() -> None:
    run, array = DeviceProgram(16), small(FLOAT, (6, 12))
    base = run.give(popops.createSliceableTensor(run.graph, FLOAT, [6, 12], [1], [1]), array)
    offsets = np.arange(8)[:, None]
    indices = run.tensor(offsets, UNSIGNED_INT)
    out = popops.multiSlice(run.graph, base, indices, [1], [1], run.program)
    (found,) = run.run(out)
    np.testing.assert_array_equal(found, array.T[offsets[:, 0]][:, :, None])


@pytest.mark.parametrize("splits", [(1, 1, 4), (1, 3, 4), (3, 2, 2)])
def test_a_report_of_an_embedding_breaks_no_law(tmp_path: Path, splits: Any) -> None:
    run, array = DeviceProgram(16), small(FLOAT, (30, 12))
    plan = popops.SlicePlan(*splits, isNull=False)
    base = popops.createSliceableTensor(run.graph, FLOAT, [30, 12], [0], [1], plan, {})
    run.give(base, array)
    offsets = np.arange(20)[:, None] % 7
    indices = run.tensor(offsets, UNSIGNED_INT)
    out = popops.multiSlice(run.graph, base, indices, [0], [1], run.program, plan, {}, "words")
    scale = run.tensor(-1.0)
    popops.multiUpdateAdd(
        run.graph, base, out, indices, scale, [0], [1], run.program, plan, {}, "words"
    )
    found, updated = run.run(out, base, report=tmp_path)
    np.testing.assert_array_equal(found[:, 0], array[offsets[:, 0]])
    np.testing.assert_array_equal(updated, small_updated(array, offsets[:, 0]))


def small_updated(array: Any, offsets: Any) -> Any:
    """Subtract each row that is looked up, as it was at first, as often as it is."""
    updated = array.copy()
    np.subtract.at(updated, offsets, array[offsets])
    return updated


def test_a_plan_uses_the_tiles_and_keeps_its_bounds() -> None:
    graph = DeviceProgram(1472).graph
    plan = popops.embedding.plan(graph, FLOAT, 30_000, 768, [512], {})
    assert 1200 < plan.tiles <= 1472 and not plan.isNull
    assert plan.unslicedGrainSize == 1 and plan.groupSize == 1
    bound = popops.embedding.plan(
        graph, FLOAT, 30_000, 768, [512], {"planConstraints": {"slicedDimSplit": 4}}
    )
    assert bound.slicedDimSplit == 4
    none = popops.embedding.plan(graph, HALF, 300, 64, [5, 64], {"operationForUpdate": "none"})
    assert none.lookupSplit == 1
    groups = popops.embedding.plan(graph, HALF, 4, 300, 64, [64], {})
    assert groups.groupSize == 4
    with pytest.raises(poplibs_error, match="no way to split 300 rows, 64 columns and 8 offsets"):
        constraint = {"planConstraints": {"unslicedDimSplit": 99}}
        popops.embedding.plan(graph, FLOAT, 300, 64, [8], constraint)


@pytest.mark.parametrize(
    ("rows", "offsets", "splits"),
    [(1000, 21_600, (12, 1, 100)), (100_000, 1440, (1, 12, 100)), (100_000, 11_520, (1, 12, 100))],
)
def test_a_plan_needs_the_fewest_bytes(rows: int, offsets: int, splits: Any) -> None:
    # By hand from PopLibs' goal of March 2021: 10 times what stays, and what is there for a time.
    plan = popops.embedding.plan(DeviceProgram(1216).graph, HALF, rows, 200, [offsets], {})
    assert (plan.lookupSplit, plan.slicedDimSplit, plan.unslicedDimSplit) == splits


def test_less_memory_gives_another_plan() -> None:
    graph = DeviceProgram(64).graph
    roomy, tight = (
        popops.embedding.plan(graph, FLOAT, 20_000, 8, [4000], {"availableMemoryProportion": part})
        for part in ("1", "0.03")
    )
    assert roomy != tight


def test_what_lookups_cost_follows_from_their_parts() -> None:
    run = DeviceProgram(16)
    base = popops.createSliceableTensor(run.graph, FLOAT, [50, 32], [0], [1])
    indices = popops.createIndicesTensor(run.graph, [0], 20)
    popops.multiSlice(run.graph, base, indices, [0], [1], run.program, NO_PLAN, {}, "words")
    (group,) = run.graph.vertex_groups()
    # 16 tiles of 2 columns; 4 of 20 offsets for each of 6 workers, 19 + 3 each.
    assert group.codelet.name == "popops::MultiSlice<float>"
    assert group.cycles.tolist() == [6 * (16 + 4 * (19 + 3))] * 16
    assert [c.name for c in run.graph.compute_sets] == ["words/multiSlice"]
    scale = run.tensor(1.0)
    slices = popops.createSliceTensor(run.graph, base, [0], [1], 20)
    popops.multiUpdateAdd(run.graph, base, slices, indices, scale, [0], [1], run.program)
    (group,) = run.graph.groups_of(1)
    # One worker adds every offset's two floats: 11 and 3 each.
    assert group.cycles.tolist() == [6 * (17 + 20 * 14)] * 16


def test_a_matrix_that_would_fill_one_tile_is_spread_out_first() -> None:
    run = DeviceProgram(8)
    base = run.graph.addVariable(FLOAT, [4000, 64], "base")
    for row, tile in ((0, 0), (2000, 1)):
        run.graph.setTileMapping(base[row : row + 2000], tile)
    indices = popops.createIndicesTensor(run.graph, [0], 9)
    popops.multiSlice(run.graph, base, indices, [0], [1], run.program, NO_PLAN, {}, "words")
    (group,) = run.graph.vertex_groups()
    assert group.tile.tolist() == list(range(8))
    assert "words/multiSlice/baseRearranged" in [v.name for v in run.graph.variables]


@pytest.mark.parametrize("offset", [3, 4])
def test_offsets_are_validated_on_request(offset: int) -> None:
    run = DeviceProgram()
    base, indices = run.tensor(np.zeros((4, 6))), run.tensor([[1], [offset]], UNSIGNED_INT)
    out = popops.multiSlice(
        run.graph, base, indices, [0], [1], run.program, NO_PLAN, {"validateIndices": True}, "words"
    )
    if offset < 4:
        run.run(out)
        return
    with pytest.raises(PoplarError, match="words/multiSlice: offset that is not below 4"):
        run.run(out)


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [
        ((5,), {}, r"offsets .* \[slices\]\[1\] is needed"),
        ((5, 2), {}, r"offsets .*; unsigned int\[5, 1\] is needed"),
        ((5, 1), {"usedForSlices": True}, "no option 'usedForSlices'; did you mean usedForSlice"),
    ],
)
def test_lookups_that_do_not_fit_are_refused_by_name(shape: Any, options: Any, said: str) -> None:
    run = DeviceProgram()
    base, indices = run.tensor(np.zeros((4, 6))), run.tensor(np.zeros(shape), UNSIGNED_INT)
    with pytest.raises(PoplarError, match=f"words/multiSlice: {said}"):
        popops.multiSlice(
            run.graph, base, indices, [0], [1], run.program, NO_PLAN, options, "words"
        )


def test_updates_that_do_not_fit_are_refused_by_name() -> None:
    run = DeviceProgram()
    base, indices = run.tensor(np.zeros((4, 6))), run.tensor(np.zeros((5, 1)), UNSIGNED_INT)
    slices = run.tensor(np.zeros((5, 1, 6)))
    with pytest.raises(poplibs_error, match=r"w/multiUpdate: slices .* float\[5, 1, 6\] is needed"):
        popops.multiUpdate(
            run.graph, base, slices[0], indices, [0], [1], run.program, NO_PLAN, {}, "w"
        )
    whole = run.tensor(1, INT)
    with pytest.raises(poplibs_error, match="w/multiUpdateAdd: scale .* one float"):
        popops.multiUpdateAdd(
            run.graph, base, slices, indices, whole, [0], [1], run.program, NO_PLAN, {}, "w"
        )
    with pytest.raises(poplibs_error, match="the plan is for 12 tiles; the target has 8"):
        wide = popops.SlicePlan(2, 2, 3, isNull=False)
        popops.multiSlice(run.graph, base, indices, [0], [1], run.program, wide)
    split = popops.SlicePlan(2, isNull=False)
    with pytest.raises(poplibs_error, match="the plan splits offsets 2 ways"):
        popops.multiUpdate(run.graph, base, slices, indices, [0], [1], run.program, split)


@pytest.mark.parametrize(("dtype", "tolerance"), [(FLOAT, 1e-5), (HALF, 4e-3)])
@pytest.mark.parametrize("plan", [NO_PLAN, popops.SlicePlan(3, 2, 2, isNull=False)])
def test_sums_keep_the_precision_of_their_type(dtype: Type, tolerance: float, plan: Any) -> None:
    run, source = DeviceProgram(16), np.random.default_rng(0)
    array = source.standard_normal((9, 7)).astype(dtype.numpy)
    new = source.standard_normal((40, 1, 7)).astype(dtype.numpy)
    offsets = source.integers(0, 9, (40, 1))
    base, slices = run.tensor(array, dtype), run.tensor(new, dtype)
    indices, scale = run.tensor(offsets, UNSIGNED_INT), run.tensor(0.37, FLOAT)
    popops.multiUpdateAdd(run.graph, base, slices, indices, scale, [0], [1], run.program, plan)
    (found,) = run.run(base)
    expected = array.astype(np.float64)
    np.add.at(expected, offsets[:, 0], 0.37 * new[:, 0].astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_offsets_may_be_numbers() -> None:
    run, array = DeviceProgram(5), small(FLOAT, (4, 6, 3))
    tensor, offsets = run.tensor(array), [2, 0, 2, 5, 2, 0]
    out = popops.multiSlice(run.graph, tensor, offsets, 1, run.program, "words")
    new = small(FLOAT, (6, 4, 1, 3), seed=1)
    scale = run.tensor(0.5)
    popops.multiUpdateAdd(run.graph, tensor, run.tensor(new), offsets, scale, 1, run.program)
    found, updated = run.run(out, tensor)
    np.testing.assert_array_equal(found, np.stack([array[:, n : n + 1] for n in offsets]))
    np.add.at(array, (slice(None), offsets), 0.5 * new[:, :, 0].swapaxes(0, 1))
    np.testing.assert_allclose(updated, array, rtol=1e-6)
    with pytest.raises(poplibs_error, match="words/multiSlice: offset 6 in dimension 1"):
        popops.multiSlice(run.graph, tensor, [6], 1, run.program, "words")


def test_tensors_of_a_group_lie_as_planned() -> None:
    run = DeviceProgram(24)
    plan = popops.SlicePlan(1, 3, 4, 2, groupSize=2, isNull=False)
    base = popops.createGroupedSliceableTensor(run.graph, FLOAT, 2, [6, 8], [0], [1], plan)
    tiles = [[run.graph.getTileMapping(base[g, 2 * s, 2 * u]) for u in range(4)] for g, s in GROUPS]
    found = [[next(t for t, parts in enumerate(m) if parts) for m in row] for row in tiles]
    assert found == [[4 * part + u for u in range(4)] for part in range(6)]
    slices = popops.createGroupedSliceTensor(run.graph, FLOAT, 2, [6, 8], [0], [1], 9, plan)
    indices = popops.createGroupedIndicesTensor(run.graph, 2, [0], 9, plan)
    assert slices.shape == (2, 9, 1, 8) and indices.shape == (2, 9, 1)
    before = len(run.graph.variables)
    popops.groupedMultiSlice(run.graph, base, indices, [0], [1], run.program, plan)
    assert not any(v.name.endswith("/base") for v in run.graph.variables[before:])


GROUPS = [(group, part) for group in range(2) for part in range(3)]


def codelets() -> list[Codelet]:
    """Return the vertex types of indexing."""
    forms = [(update, several) for update in (False, True) for several in (False, True)]
    return [
        *(dynamic_slice_codelet(FLOAT, update=u, several=s) for u, s in forms),
        multi_slice_codelet(FLOAT),
        multi_update_codelet(FLOAT, None, "", False),
        multi_update_codelet(FLOAT, None, "MAX", False),
        multi_update_codelet(FLOAT, FLOAT, "ADD", False),
        iota_codelet(UNSIGNED_INT),
    ]


@pytest.mark.parametrize("codelet", codelets(), ids=lambda codelet: codelet.name)
def test_vertices_have_the_bytes_of_their_rows(codelet: Codelet) -> None:
    entry = rows_of(codelet.name)[0]
    found = (codelet.state_bytes, codelet.code_bytes, codelet.supervisor)
    assert found == (entry.state_bytes, entry.code_bytes, entry.supervisor)


def test_a_plan_prints_as_in_poplibs() -> None:
    assert str(NO_PLAN) == "SlicePlan: Introspect"
    assert "slicedDimSplit=3" in str(popops.SlicePlan(1, 3, isNull=False))
    assert make_target("mk2").num_tiles == 1472
