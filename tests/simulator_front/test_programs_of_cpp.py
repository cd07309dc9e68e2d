"""What public C++ programs of PopLibs call, in their forms: values, places and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram

from simulator import poplar, popops, poputil
from simulator.codelets.elementwise import cycles
from simulator.poplar import FLOAT, HALF, INT, UNSIGNED_INT, Interval, program
from simulator.poplibs.popops import embedding, expr
from simulator.poplibs.popops.elementwise.scaled_add import ScaledAddSpecialisation
from simulator.poplibs.poputil import graphfn

_1, _2 = expr._1, expr._2


# poputil
def test_an_interval_has_poplars_bounds() -> None:
    run = DeviceProgram(tiles=2)
    t = run.tensor(np.zeros(64))
    assert [[(p.lower(), p.upper(), p.size()) for p in parts] for parts in
            run.graph.getTileMapping(t, True)] == [[(0, 32, 32)], [(32, 64, 32)]]  # fmt: skip


def test_a_tensor_of_no_graph_is_not_valid() -> None:
    empty = poplar.Tensor()
    assert not empty.valid()
    assert empty.numElements() == 0
    assert DeviceProgram().tensor([1.0]).valid()


def test_lists_of_regions_are_cut_across_their_intervals() -> None:
    # 50,001 elements in a list, at most 50,000 a region: whole grains of 4, the rest is another
    regions = [[(0, 30000), (40000, 60001)]]
    (partition,) = poputil.splitRegions(regions, 4, 1, 0, None, 50000)
    assert partition == [[(0, 30000), (40000, 60000)], [(60000, 60001)]]
    two = poputil.splitRegions([[(0, 8)], [(10, 14), (20, 24)]], 4, 2)
    assert two == [[[(0, 8)]], [[(10, 14), (20, 24)]]]


@pytest.mark.parametrize("named", [False, True])
def test_a_function_may_take_the_name_of_its_call(named: bool) -> None:
    run = DeviceProgram()
    x, y = run.tensor([1.0, 2.0]), run.tensor([3.0, 5.0])

    def plain(args: Any, prog: Any) -> None:
        popops.addInPlace(run.graph, args[0], args[1], prog)

    def with_name(args: Any, prog: Any, name: str) -> None:
        popops.addInPlace(run.graph, args[0], args[1], prog, name)

    sig = [graphfn.inout(x), graphfn.input(y)]
    function = graphfn.VoidFunction(run.graph, sig, with_name if named else plain)
    function([x, y], run.program, "call")
    assert run.run(x)[0].tolist() == [4.0, 7.0]


def test_elements_of_a_halo_go_with_those_before_them() -> None:
    # tiles 0 and 1 use 8 of 14 columns each, 2 of them both
    graph = DeviceProgram(tiles=2).graph
    tracker = poputil.TensorUseTracker(2)
    t = graph.addVariable(FLOAT, [14])
    tracker.add(graph, 0, t.slice(0, 8))
    tracker.add(graph, 1, t.slice(6, 14))
    tracker.mapTensorsByUse(graph, 1, 1, False, tracker.MappingMethod.OptimizeHaloRegions)
    assert graph.getTileMapping(t) == [[(0, 8)], [(8, 14)]]


def test_sets_that_have_a_tile_in_common_are_one_set() -> None:
    # tile 0 uses [0, 6), tile 1 [4, 16): all 16 are shared by both, in grains of 4
    graph = DeviceProgram(tiles=4).graph
    tracker = poputil.TensorUseTracker(4, 1)
    t = graph.addVariable(FLOAT, [16])
    tracker.add(graph, 0, t.slice(0, 6))
    tracker.add(graph, 1, t.slice(4, 16))
    method = tracker.MappingMethod.ConstrainMappingToUsedTiles
    tracker.mapTensorsByUse(graph, 4, 1, False, method)
    assert graph.getTileMapping(t) == [[], [(0, 8)], [(8, 16)], []]


def test_a_tracker_takes_what_another_has_resolved() -> None:
    graph = DeviceProgram(tiles=2).graph
    t = graph.addVariable(FLOAT, [2, 8])
    tracker = poputil.TensorUseTracker(2)
    for row in range(2):
        one = poputil.TensorUseTracker(2)
        for tile in range(2):
            one.add(graph, tile, t[row])
        one.resolve(graph, 4, 4)
        tracker.add(one)
    tracker.mapTensorsByUse(graph, 4, 4)
    assert graph.getTileMapping(t) == [[(0, 4), (8, 12)], [(4, 8), (12, 16)]]
    with pytest.raises(poputil.poplibs_error, match="tracker of 3 tiles to one of 2"):
        tracker.add(poputil.TensorUseTracker(3))


# popops
def test_expressions_are_compared_operand_by_operand() -> None:
    one = expr.Add(expr.Const(1.0), expr.Cast(_1, FLOAT))
    assert one.deepEquals(expr.Add(expr.Const(1.0), expr.Cast(_1, FLOAT)))
    assert not one.deepEquals(expr.Add(expr.Const(1), expr.Cast(_1, FLOAT)))
    assert not one.deepEquals(expr.Add(expr.Const(1.0), expr.Cast(_2, FLOAT)))
    assert not one.deepEquals(expr.Mul(expr.Const(1.0), expr.Cast(_1, FLOAT)))
    assert not expr.Const(1.0).deepEquals(expr.ConstHalf(1.0))
    assert np.float32(expr.Const(1e-8).printValue()) == np.float32(1e-8)


@pytest.mark.parametrize("form", ["new", "in place", "to outputs"])
def test_several_expressions_read_what_is_there_before(form: str) -> None:
    run = DeviceProgram()
    a, b = run.tensor([1, 2, 3], INT), run.tensor([4, 5, 6], INT)
    both = [_1 + _2, _1 * _2]
    outs = [a, b]
    if form == "new":
        outs = popops.map(run.graph, both, [a, b], run.program)
    elif form == "in place":
        popops.mapInPlace(run.graph, both, [a, b], run.program)
    else:
        outs = [run.graph.clone(a), run.graph.clone(b)]
        popops.mapWithOutput(run.graph, both, [a, b], outs, run.program)
    sums, products = run.run(*outs)
    assert (sums.tolist(), products.tolist()) == ([5, 7, 9], [4, 10, 18])


def test_several_expressions_need_as_many_tensors() -> None:
    run = DeviceProgram()
    a = run.tensor([1, 2, 3], INT)
    with pytest.raises(poputil.poplibs_error, match="2 expressions into 0 outputs"):
        popops.mapWithOutput(run.graph, [_1, -_1], [a], [], run.program)
    with pytest.raises(poputil.poplibs_error, match="2 expressions into 1 tensors"):
        popops.mapInPlace(run.graph, [_1, -_1], [a], run.program)


def test_integers_are_scaled_and_added() -> None:
    run = DeviceProgram()
    x, y = run.tensor([1, 2, 3, 4], INT), run.tensor([1, 1, 1, -1], INT)
    popops.scaledAddTo(run.graph, x, 2, y, 3, run.program)
    popops.scaledSubtractFrom(run.graph, x, y, 5, run.program)
    assert run.run(x)[0].tolist() == [0, 2, 4, 10]


def test_the_cycles_of_scaled_integers_are_poplibs() -> None:
    # 53 + 26 * 3 + 6 + 26 * 1 + 8 + 6 of ten integers
    assert cycles.scaled_add_integers(np.array([10])) == 53 + 78 + 6 + 26 + 14
    two = cycles.scaled_add_2d_integers(np.array([3, 4]), np.array([2]))
    assert two == 8 + 1 + 2 * 7 + 5 * 7


def test_x_minus_ax_plus_by() -> None:
    run = DeviceProgram()
    x, y = run.tensor([8.0, 4.0], HALF), run.tensor([2.0, 6.0], HALF)
    kind = ScaledAddSpecialisation.X_MINUS_AX_PLUS_BY
    popops.scaledAddTo(run.graph, x, 0.25, y, 0.5, run.program, kind, "name")
    assert run.run(x)[0].tolist() == [7.0, 6.0]
    z = run.tensor([1.0, 1.0])
    with pytest.raises(poputil.poplibs_error, match="known for half"):
        popops.scaledAddTo(run.graph, z, 0.25, z, 0.5, run.program, kind)


def test_labels_are_encoded_with_two_levels() -> None:
    run = DeviceProgram()
    indices, encoded = run.tensor([2, 0], UNSIGNED_INT), run.tensor(np.zeros((2, 3)), HALF)
    on, off = run.tensor([4.0], HALF), run.tensor([-1.0], HALF)
    popops.encodeOneHot(run.graph, indices, encoded, run.program, on, off, "levels")
    assert run.run(encoded)[0].tolist() == [[-1.0, -1.0, 4.0], [4.0, -1.0, -1.0]]


def test_a_loop_counts_in_the_type_of_its_limit() -> None:
    run = DeviceProgram()
    limit, total = run.tensor([7], UNSIGNED_INT), run.tensor([0], INT)
    body = program.Sequence()
    popops.addInPlace(run.graph, total, 1, body)
    run.program.add(popops.countedForLoop(run.graph, 10, limit, -1, body, "loop"))
    assert run.run(total)[0].tolist() == [3]


def test_indices_of_a_gather_may_be_signed() -> None:
    run = DeviceProgram()
    t, at = run.tensor([[1.0, 2.0], [3.0, 4.0]]), run.tensor([1], INT)
    out = popops.gather(run.graph, t, at, 0, run.program, {}, "gather")  # type: ignore[arg-type]
    assert run.run(out)[0].tolist() == [[3.0, 4.0]]


def test_scalars_are_scattered_without_a_window() -> None:
    run = DeviceProgram()
    t, at, updates = run.tensor([0], INT), run.tensor([0, 0], INT), run.tensor([3, 4], INT)
    popops.scatter(
        run.graph, t, at, updates, 1, [1], [0], [0], lambda g, a, b, p: popops.add(g, a, b, p),
        run.program,
    )  # fmt: skip
    assert run.run(t)[0].tolist() == [7]


def test_offsets_that_come_twice_are_scaled_by_half() -> None:
    run = DeviceProgram()
    t, s, scale = run.tensor([1.0], HALF), run.tensor([[2.0], [3.0]], HALF), run.tensor(2.0, HALF)
    popops.multiUpdateAdd(run.graph, t, s, [0, 0], scale, 0, run.program)
    assert run.run(t)[0].tolist() == [11.0]


def test_a_sequence_of_no_rows_does_not_end_the_others() -> None:
    run = DeviceProgram()
    t, out = run.tensor([[1.0], [2.0], [3.0]]), run.tensor([[0.0], [0.0], [0.0]])
    places = [run.tensor(values, UNSIGNED_INT) for values in ([0, 2], [0, 1], [0, 0])]
    popops.sequenceSlice(run.graph, t, out, *places, True, run.program)
    assert run.run(out)[0].tolist() == [[2.0], [3.0], [0.0]]


def test_several_embeddings_are_planned_as_each_by_itself() -> None:
    graph = DeviceProgram(tiles=4).graph
    several = [
        embedding.SlicePlanningParameters(graph, HALF, 2, 1, 1, [1, 1]),
        embedding.SlicePlanningParameters(graph, FLOAT, 1, 4, 16, [2], {"usedForUpdate": "false"}),
    ]
    plans = embedding.planMultiple(several)
    assert plans[0] == embedding.plan(graph, HALF, 2, 1, 1, [1, 1])
    assert plans[1] == embedding.plan(graph, FLOAT, 1, 4, 16, [2], {"usedForUpdate": "false"})
    assert plans[0] != plans[1]


def test_a_deviation_may_be_of_another_type() -> None:
    run = DeviceProgram()
    variance = run.tensor([3.0, 0.0])
    deviation = popops.varianceToInvStdDev(run.graph, variance, 1.0, run.program, HALF, "name")
    assert deviation.dtype == HALF
    back = popops.invStdDevToVariance(run.graph, deviation, 1.0, run.program, FLOAT)
    values = run.run(deviation, back)
    assert [v.tolist() for v in values] == [[0.5, 1.0], [3.0, 0.0]]


def test_types_of_the_device_by_those_of_values() -> None:
    kinds = [float, int, bool, np.float16, np.uint32, np.int64]
    names = [poplar.equivalent_device_type(kind).value.name for kind in kinds]
    assert names == ["float", "int", "bool", "half", "unsigned int", "long long"]
    with pytest.raises(poplar.PoplarError, match="no type of the device is as"):
        _ = poplar.equivalent_device_type(np.complex64).value
    assert Interval(1, 3).upper() == 3
