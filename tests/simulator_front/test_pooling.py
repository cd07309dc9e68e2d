"""Pooling gives NumPy's values forward and backward, for any window; its plan, cost and faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_program import Values, numbers

from pva.check import check
from pva.formats import registry
from simulator import popnn, poputil
from simulator.codelets.layers.pooling_cycles import (
    initial_shares,
    max_pooling,
    max_pooling_gradient,
    sum_pooling,
    unpacking_of,
)
from simulator.graph.errors import PoplarError, poplibs_error
from simulator.graph.machine.target import make_target
from simulator.graph.types import FLOAT, HALF, INT, Type
from simulator.poplar import Engine, Graph, IPUModel, program
from simulator.poplibs.popnn.pools.plan import Partition, Problem, cheapest
from simulator.poplibs.popnn.pools.tiles import Wishes, in_turn
from simulator.poplibs.popnn.pools.windows import PoolShape, Window

pooling = popnn.pooling
MAX, AVG, SUM = pooling.PoolingType.MAX, pooling.PoolingType.AVG, pooling.PoolingType.SUM
REDUCED: dict[Any, Any] = {MAX: np.nanmax, AVG: np.nanmean, SUM: np.nansum}


def padded(array: Any, params: Any) -> Any:
    """Lay an array into its padded field, not a number elsewhere; or cut it where it is less."""
    lower, upper = params.inputTruncationOrPaddingLower, params.inputTruncationOrPaddingUpper
    around = [(0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in zip(lower, upper, strict=True))]
    wide = np.pad(array.astype(np.float64), around, constant_values=np.nan)
    cut = [slice(max(-a, 0), -max(-b, 0) or None) for a, b in zip(lower, upper, strict=True)]
    return wide[(slice(None), slice(None), *cut)]


def windows_of(wide: Any, params: Any) -> Any:
    """List each output's place and its window in the padded field."""
    for place in np.ndindex(*params.getOutputFieldShape()):
        at = zip(place, params.stride, params.kernelShape, strict=True)
        window = tuple(slice(p * s, p * s + k) for p, s, k in at)
        yield place, (slice(None), slice(None), *window)


def reference(array: Any, params: Any) -> Any:
    wide = padded(array, params)
    out = np.zeros((*array.shape[:2], *params.getOutputFieldShape()))
    axes = tuple(range(2, array.ndim))
    for place, window in windows_of(wide, params):
        out[(..., *place)] = REDUCED[params.poolingType](wide[window], axis=axes)
    return out


def reference_gradient(array: Any, gradient: Any, params: Any, scaled: bool = False) -> Any:
    """Add up what each input has part in; of equal largest ones all, or each its share."""
    wide = padded(np.arange(array.size).reshape(array.shape), params)
    values, pooled = padded(array, params), reference(array, params)
    out = np.zeros(array.size)
    for place, window in windows_of(wide, params):
        shape = (*array.shape[:2], *[1] * (array.ndim - 2))
        got = np.broadcast_to(gradient[(..., *place)].reshape(shape), wide[window].shape)
        there = ~np.isnan(wide[window])
        axes = tuple(range(2, array.ndim))
        if params.poolingType is MAX:
            there = there & (values[window] == pooled[(..., *place)].reshape(shape))
        share = params.poolingType is AVG or scaled
        count = there.sum(axis=axes, keepdims=True) if share else 1
        np.add.at(out, wide[window][there].astype(int), (got / np.maximum(count, 1))[there])
    return out.reshape(array.shape)


@st.composite
def poolings(draw: st.DrawFn) -> Any:
    """Draw parameters of one to three dimensions in which no window is all padding."""
    dimensions = draw(st.integers(1, 3))
    columns = []
    for _ in range(dimensions):
        kernel = draw(st.integers(1, 4))
        lower, upper = (draw(st.integers(-1, kernel - 1)) for _ in range(2))
        field = draw(st.integers(kernel - min(lower, 0) - min(upper, 0), 9))
        columns.append((field, kernel, draw(st.integers(1, 4)), lower, upper))
    field, kernel, stride, lower, upper = map(list, zip(*columns, strict=True))
    channels, batch = draw(st.sampled_from([1, 2, 3, 4, 8, 12, 32])), draw(st.integers(1, 3))
    kind = draw(st.sampled_from([MAX, AVG, SUM]))
    return pooling.PoolParams(kind, field, kernel, stride, lower, upper, channels, batch)


@settings(max_examples=80, deadline=None)
@given(st.data(), poolings())
def test_both_passes_equal_numpys(data: st.DataObject, params: Any) -> None:
    values = Values(tiles_per_ipu=data.draw(st.sampled_from([1, 5, 32])))
    shape = (params.batchSize, params.numChannels, *params.inputFieldShape)
    array = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-4, 4, shape)
    tensor = values.tensor(array)
    options = {"poolUseIntrospectiveMapping": data.draw(st.booleans())}
    out = pooling.pool(values.graph, params, tensor, values.program, "p", options)
    gradient = numbers(*out.shape)
    given_gradient = values.tensor(gradient)
    scaled = data.draw(st.booleans())
    if params.poolingType is MAX:
        back = pooling.poolInputGradient(
            values.graph, params, tensor, out, given_gradient, scaled, values.program, "g", options
        )
    else:
        back = pooling.poolInputGradient(
            values.graph, params, 1, given_gradient, values.program, "g", options
        )
    storage = values.run()
    expected = reference(array, params)
    np.testing.assert_allclose(storage.read(out), expected, rtol=1e-5, atol=1e-5)
    by_hand = reference_gradient(array, gradient, params, scaled and params.poolingType is MAX)
    np.testing.assert_allclose(storage.read(back), by_hand, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [MAX, AVG, SUM])
def test_halves_are_right_to_their_precision(kind: Any) -> None:
    params = pooling.PoolParams(kind, [6, 6], [3, 3], [2, 2], [1, 1], [1, 1], 8, 2, HALF)
    values, array = Values(tiles_per_ipu=16), numbers(2, 8, 6, 6).astype(np.float16)
    tensor = values.tensor(array, dtype=HALF)
    out = pooling.pool(values.graph, params, tensor, values.program)
    found = values.run().read(out)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, reference(array, params), rtol=2e-3, atol=2e-3)


def test_the_output_field_counts_whole_windows() -> None:
    params = pooling.PoolParams(MAX, [35, 8], [3, 2], [2, 3], [0, 1], [0, -1], 4, 1, HALF)
    assert params.getOutputFieldShape() == [17, 3]  # (35 - 3) // 2 + 1, (8 + 1 - 1 - 2) // 3 + 1


def test_operations_are_counted_without_padding() -> None:
    params = pooling.PoolParams(AVG, [3], [3], [1], [1], [1], 4, 2)
    # Windows of 2, 3 and 2 inputs, and a division for each.
    assert pooling.getFwdFlops(params) == (2 + 3 + 2 + 3) * 4 * 2


# Work lists
def lists_of(storage: Any, field: Any) -> list[list[Any]]:
    """Read the edges of a field of unsigned shorts, by vertex."""
    values = storage.view(field.dtype)[field.elements()].tolist()
    sizes = field.counts() if field.rows is None else field.rows
    ends = np.cumsum(sizes)
    edges = [values[end - size : end] for size, end in zip(sizes, ends, strict=True)]
    last = np.cumsum(field.edges)
    return [edges[end - count : end] for count, end in zip(field.edges, last, strict=True)]


def pooled_by_lists(storage: Any, group: Any, vertex: int, stride: int, dilation: int) -> Any:
    """Do what a worker does with its list: give the rows of inputs of each row of outputs."""
    (starts,) = lists_of(storage, group.fields["startPos"])[vertex]
    (bases,) = lists_of(storage, group.fields["offsetBase"])[vertex]
    rows = lists_of(storage, group.fields["workList"])[vertex]
    assert starts[-1] == len(rows) == len(bases) // 2
    found: list[tuple[int, int]] = []
    for row, items in enumerate(rows):
        for out, source, less in zip(*(items[k::3] for k in range(3)), strict=True):
            begin, first = bases[2 * row] + out, bases[2 * row + 1] + source
            found += [(begin + dilation * n, first + stride * n) for n in range(less + 1)]
    return sorted(found)


@pytest.mark.parametrize("gradient", [False, True])
def test_work_lists_pair_the_inputs_and_outputs_of_values(gradient: bool) -> None:
    values = Values("mk1", tiles_per_ipu=10)
    tensor = values.tensor(numbers(2, 8, 9, 7))
    params = pooling.PoolParams(MAX, [9, 7], [3, 3], [1, 2], [1, 1], [0, 1], 8, 2)
    out = pooling.pool(values.graph, params, tensor, values.program)
    if gradient:
        pooling.poolInputGradient(values.graph, params, tensor, out, out, False, values.program)
    group = values.graph.vertex_groups()[-1]
    storage = values.run()
    shape = PoolShape(2, 8, tuple(Window.forward(*w) for w in ((9, 3, 1, 1, 0), (7, 3, 2, 1, 1))))
    windows = (shape.gradient() if gradient else shape).windows
    rows, columns = (window.input_of() for window in windows)
    steps = windows[1].stride, windows[1].dilation
    for vertex in range(len(group)):
        at = {name: column[vertex] for name, column in group.parameters.items()}
        expected = []
        for sample, y, x in np.ndindex(at["outerOut"][1], *at["sizeOut"]):
            for up, left in np.ndindex(3, 3):
                row = rows[up][at["beginOut"][0] + y] - at["beginIn"][0]
                column = columns[left][at["beginOut"][1] + x] - at["beginIn"][1]
                if min(rows[up][at["beginOut"][0] + y], columns[left][at["beginOut"][1] + x]) < 0:
                    continue
                inside = (sample * at["sizeIn"][0] + row) * at["sizeIn"][1] + column
                place = (sample * at["sizeOut"][0] + y) * at["sizeOut"][1] + x
                expected.append((place, inside))
        assert pooled_by_lists(storage, group, vertex, *steps) == sorted(expected)


def test_averages_of_different_numbers_of_inputs_are_scaled_apart() -> None:
    values = Values("mk1", tiles_per_ipu=1)
    params = pooling.PoolParams(AVG, [4], [3], [1], [1], [1], 4, 1)
    pooling.pool(values.graph, params, values.tensor(numbers(1, 4, 4)), values.program)
    summed, scaled = values.graph.vertex_groups()
    names = ["popnn::SumPooling<float>", "popnn::SelectiveScaling<float>"]
    assert [summed.codelet.name, scaled.codelet.name] == names
    # Windows of 2, 3, 3 and 2 inputs; workers 1, 2, 4 and 5 of six have an output each.
    (lists,) = lists_of(values.run(), scaled.fields["scaleWorklist"])
    assert [run for run in lists if run] == [[0, 1, 2], [1, 1, 3], [2, 1, 3], [3, 1, 2]]


# Windows
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3))
@settings(deadline=None)
def test_the_gradient_reads_what_the_forward_pass_wrote(
    inputs: int, kernel: int, stride: int, padding: int
) -> None:
    forward = Window.forward(inputs, kernel, stride, padding, kernel)
    pairs = {(int(i), o) for row in forward.input_of() for o, i in enumerate(row) if i >= 0}
    back = forward.gradient().input_of()
    assert {(i, int(o)) for row in back for i, o in enumerate(row) if o >= 0} == pairs


@pytest.mark.parametrize("workers", [1, 4])
def test_targets_may_have_other_workers(workers: int) -> None:
    values, array = Values(tiles_per_ipu=4, workers=workers), numbers(2, 4, 5, 5)
    params = pooling.PoolParams(AVG, [5, 5], [3, 3], [1, 1], [1, 1], [1, 1], 4, 2)
    out = pooling.pool(values.graph, params, values.tensor(array), values.program)
    np.testing.assert_allclose(values.run().read(out), reference(array, params), rtol=1e-5)
    starts = values.graph.vertex_groups()[0].fields["startPos"]
    assert set(starts.counts().tolist()) == {workers}


def test_every_replica_pools_its_own() -> None:
    device = IPUModel("tiny", numIPUs=2, tilesPerIPU=8).createDevice()
    parent, sequence = Graph(device.getTarget()), program.Sequence()
    graph = parent.createReplicatedGraph(2)
    tensor = graph.addVariable(FLOAT, [1, 4, 6, 6], "values")
    poputil.mapTensorLinearly(graph, tensor)
    params = pooling.PoolParams(MAX, [6, 6], [3, 3], [1, 1], [1, 1], [1, 1], 4, 1)
    out = pooling.pool(graph, params, tensor, sequence)
    back = pooling.poolInputGradient(graph, params, tensor, out, tensor, False, sequence)
    parent.createHostWrite("values", parent.getNonReplicatedTensor(tensor))
    parent.createHostRead("back", parent.getNonReplicatedTensor(back))
    engine = Engine(parent, sequence)
    engine.load(device)
    arrays = numbers(2, 1, 4, 6, 6)
    engine.writeTensor("values", arrays)
    engine.run(0)
    expected = [reference_gradient(array, array, params) for array in arrays]
    np.testing.assert_allclose(engine.readTensor("back"), expected, rtol=1e-5, atol=1e-5)


# Costs
def test_the_slowest_worker_makes_the_cycles_of_its_vertex() -> None:
    # One row of one item of 4 outputs, 2 vectors of one group, of which it initialises 2.
    one = [np.array([number]) for number in (1, 1, 4, 2, 2, 1)]
    begin = 17 + 1 + (4 + 2) + 6 + 2 + 1
    assert max_pooling(*one)[0] == 13 + 6 * (begin + 2 + 1 + 3 + 2 + 4 + 1 + 15 + 25 + 2 * 16)
    assert sum_pooling(*one)[0] == max_pooling(*one)[0] + 6 * (1 + 2)
    assert max_pooling_gradient(*one)[0] == 13 + 6 * (begin + 12 + 9 + 15 + 25 + 2 * 25)


def test_later_machines_unpack_other_pointers() -> None:
    one = [np.array([number]) for number in (1, 1, 4, 2, 2, 1)]
    mk1, mk2 = (max_pooling(*one, unpacking_of(make_target(name)))[0] for name in ("mk1", "mk2"))
    assert mk2 - mk1 == 6 * (-1 - 2 + 2 * (5 - 2))  # data, start positions, two lists


def test_a_worker_without_rows_only_initialises() -> None:
    idle = [np.array([number]) for number in (0, 0, 0, 3, 2, 2)]
    assert max_pooling(*idle)[0] == 13 + 6 * (27 + 2 * (4 + 3))


def test_outputs_are_initialised_in_equal_shares() -> None:
    # 8 outputs of one vector: 1 each, and 2 left; of two vectors the difference is below 0.
    assert initial_shares(np.array([8]), 1).tolist() == [[2, 2, 1, 1, 1, 1]]
    assert initial_shares(np.array([8]), 2).tolist() == [[3] * 6]


# Plans
def planned_cycles(height: int, width: int, groups: int, vectors: int) -> int:
    """Count, worker by worker, what the planner takes a box with a kernel of 9 to cost."""
    outputs, slowest = height * width, 0
    for worker in range(6):
        mine = range(worker * outputs // 6, (worker + 1) * outputs // 6)
        rows = len({output // width for output in mine})
        share = outputs // vectors * vectors // 6
        more = worker < outputs // vectors - 6 * share or outputs // vectors < 6 * share
        cycles = 17 + 2 + (4 + share + more) * groups + 6 + 2 + 1
        if rows:
            cycles += 2 + 1 + 3 + 2 + 2 * 2 + 1 + 15 * rows
            item = 20 + 4 * (groups - 1) + 2 * groups + 3
            cycles += 9 * (rows * (item + groups * vectors * 4) + 3 * groups * vectors * len(mine))
        slowest = max(slowest, cycles)
    return 13 + 6 * slowest


def test_the_plan_is_the_cheapest_of_all() -> None:
    window = Window.forward(5, 3, 1, 1, 1)
    shape, tiles = PoolShape(1, 16, (window, window)), 12
    plan = cheapest(Problem(make_target("mk1", tiles_per_ipu=tiles), "max", shape, HALF, 16))
    costs = []
    for vectors, split, down, across in np.ndindex(4, 4, 5, 5):
        vectors, split, down, across = vectors + 1, split + 1, down + 1, across + 1
        whole = -(-16 // (4 * vectors))
        if split * down * across > tiles or split > whole:
            continue
        height, width, groups = -(-5 // down), -(-5 // across), -(-whole // split)
        boxes = [(height, width)]
        boxes += [(height - 1, width)] * (5 % height > 0) + [(height, width - 1)] * (5 % width > 0)
        compute = max(planned_cycles(*box, groups, vectors) for box in boxes)
        size = (height + 2) * (width + 2) * groups * 4 * vectors * 2
        costs.append(compute + size // 4 + (size // 4) * (vectors < 4))
    assert plan is not None and plan.cycles == min(costs)


def test_one_tile_does_it_all() -> None:
    window = Window.forward(12, 3, 1, 1, 1)
    shape = PoolShape(1, 16, (window, window))
    alone = cheapest(Problem(make_target("mk1", tiles_per_ipu=1), "max", shape, HALF, 16))
    assert alone is not None and alone.partition == Partition(1, 1, 16, (1, 1))


def test_parts_go_where_their_input_isin_turn() -> None:
    # Both first parts want tile 2; the third reads nothing of any tile and takes the first free.
    wishes = Wishes(np.array([0, 0, 1, 1, 3]), np.array([2, 1, 2, 0, 3]))
    assert in_turn(wishes, 4, np.array([1, 0, 2, 3])).tolist() == [2, 0, 1, 3]


def test_the_vertices_lie_on_tiles_of_their_own() -> None:
    values = Values("mk1", tiles_per_ipu=64)
    tensor = values.tensor(numbers(1, 16, 12, 12))
    params = pooling.PoolParams(MAX, [12, 12], [3, 3], [1, 1], [1, 1], [1, 1], 16, 1)
    pooling.pool(values.graph, params, tensor, values.program)
    (group,) = values.graph.vertex_groups()
    assert group.codelet.name == "popnn::MaxPooling<float>"
    assert len(np.unique(group.tile)) == len(group) > 32


def test_windows_that_tile_the_field_become_long_rows() -> None:
    values = Values("mk1", tiles_per_ipu=4)
    tensor = values.tensor(numbers(2, 8, 16, 16))
    params = pooling.PoolParams(MAX, [16, 16], [2, 2], [2, 2], [0, 0], [0, 0], 8, 2)
    pooling.pool(values.graph, params, tensor, values.program)
    (group,) = values.graph.vertex_groups()
    sizes = group.parameters["sizeOut"]
    assert sizes[:, 0].max() == 1 and sizes[:, 1].sum() == 8 * 8 * 2 * 8 // 8


# Reports and faults
@pytest.mark.parametrize(("kind", "dtype"), [(MAX, HALF), (AVG, FLOAT)])
def test_a_report_of_pooling_breaks_no_law(tmp_path: Path, kind: Any, dtype: Type) -> None:
    device = IPUModel("mk1", tilesPerIPU=32).createDevice()
    graph = Graph(device.getTarget())
    tensor = graph.addVariable(dtype, [2, 8, 9, 9], "values")
    poputil.mapTensorLinearly(graph, tensor)
    params = pooling.PoolParams(kind, [9, 9], [3, 3], [2, 2], [1, 1], [1, 1], 8, 2, dtype)
    sequence = program.Sequence()
    out = pooling.pool(graph, params, tensor, sequence)
    gradient = graph.clone(out, "gradient")
    if kind is MAX:
        back = pooling.poolInputGradient(graph, params, tensor, out, gradient, True, sequence)
    else:
        back = pooling.poolInputGradient(graph, params, 4, gradient, sequence)
    for name, what in (("values", tensor), ("gradient", gradient)):
        graph.createHostWrite(name, what)
    graph.createHostRead("back", back)
    folder = {"autoReport.all": True, "autoReport.directory": str(tmp_path)}
    engine = Engine(graph, sequence, folder)
    engine.load(device)
    engine.run(0)
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"kernelShape": [3]}, "as many as the field has dimensions"),
        ({"stride": [0, 1]}, "positive numbers"),
        ({"kernelShape": [9, 9]}, "larger than the padded field"),
        ({"numChannels": 5}, r"shape \[1, 5, 6, 6\] is needed"),
        ({"numChannels": 0}, "at least one of each"),
        ({"stride": [1.5, 1]}, "whole numbers are needed"),
    ],
)
def test_windows_that_do_not_fit_are_refused(change: dict[str, Any], fault: str) -> None:
    values = Values()
    tensor = values.tensor(numbers(1, 4, 6, 6))
    usual: dict[str, Any] = {
        "poolingType": MAX,
        "inputFieldShape": [6, 6],
        "kernelShape": [2, 2],
        "stride": [1, 1],
        "inputTruncationOrPaddingLower": [0, 0],
        "inputTruncationOrPaddingUpper": [0, 0],
        "numChannels": 4,
        "batchSize": 1,
    }
    params = pooling.PoolParams(**(usual | change))
    with pytest.raises(poplibs_error, match=f"layer/maxPool.*{fault}"):
        pooling.pool(values.graph, params, tensor, values.program, "layer")


def test_types_options_and_passes_that_do_not_fit_are_refused() -> None:
    values = Values()
    params = pooling.PoolParams(SUM, [6, 6], [2, 2], [1, 1], [0, 0], [0, 0], 4, 1)
    tensor = values.tensor(numbers(1, 4, 6, 6))
    whole = values.tensor(np.zeros((1, 4, 6, 6)), dtype=INT)
    with pytest.raises(poplibs_error, match="takes float and half"):
        pooling.pool(values.graph, params, whole, values.program)
    with pytest.raises(PoplarError, match="poolUseIntrospectiveMapping"):
        pooling.pool(values.graph, params, tensor, values.program, options={"poolUse": True})
    with pytest.raises(poplibs_error, match="takes no activations"):
        pooling.poolInputGradient(
            values.graph, params, tensor, tensor, tensor, False, values.program
        )
    gradient = values.tensor(numbers(1, 4, 5, 5))
    with pytest.raises(poplibs_error, match="groups of 3"):
        pooling.poolInputGradient(values.graph, params, 3, gradient, values.program)
