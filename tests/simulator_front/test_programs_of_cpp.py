"""What public C++ programs of PopLibs call, in their forms: values, places and refusals."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram

from simulator import poplar, poplin, popnn, popops, poputil
from simulator.codelets.elementwise import cycles
from simulator.codelets.products import lu, qr
from simulator.graph.machine.target import TARGETS
from simulator.poplar import FLOAT, HALF, INT, UNSIGNED_INT, Interval, program
from simulator.poplibs.poplin import ConvParams
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


# poplin
def test_transforms_are_set_after_the_parameters_are_made() -> None:
    params = ConvParams(FLOAT, 1, [3, 1], [5, 1], 1, 1, 1)
    params.inputTransform.paddingLower = [2, 0]
    params.inputTransform.paddingUpper = [2, 0]
    params.inputTransform.flip = [True, False]
    params.kernelTransform.flip = [True, False]
    assert params.getOutputFieldShape() == (3, 1)
    assert poplin.getInputRange(0, (0, 2), 1, params) == (0, 2)
    alike = ConvParams(FLOAT, 1, [3, 1], [5, 1], 1, 1, 1)
    assert alike != params
    with pytest.raises(poputil.poplibs_error, match="a kernel of 5 does not fit into an input of"):
        alike.getOutputFieldShape()


def test_a_plan_is_written_to_a_stream() -> None:
    graph, stream = DeviceProgram(tiles=4).graph, io.StringIO()
    params = ConvParams(HALF, 1, [4, 4], [3, 3], 4, 4)
    text = poplin.reportPlanInfo(stream, graph, params, {}, poplin.PlanningCache())
    assert stream.getvalue() == text == poplin.reportPlanInfo(graph, params)


def test_the_products_of_factors_and_systems_are_planned_ahead() -> None:
    # 3 blocks of 8 rows: 16 and 8 rows are below the first and the second
    products = poplin.getCholeskyMatMulPrePlanParameters(FLOAT, [2, 24, 24], True)
    shapes = [(product.aShape, product.bShape) for product, _ in products]
    assert shapes == [
        ((2, 16, 8), (2, 8, 8)), ((2, 16, 8), (2, 8, 16)), ((2, 8, 8), (2, 8, 8)),
    ]  # fmt: skip
    solve = poplin.getTriangularSolveMatMulPrePlanParameters
    products = solve(FLOAT, FLOAT, [8, 8], [8, 3], True, True, {"blockSize": 4})
    shapes = [(product.aShape, product.bShape) for product, _ in products]
    halves = [((1, 4, 4), (1, 4, 2)), ((1, 4, 4), (1, 4, 1))]
    assert shapes == halves + [((1, 1, k), (1, k, 2)) for k in (1, 2, 3)]
    graph = DeviceProgram(tiles=4).graph
    poplin.preplanMatMuls({(graph.getTarget(), product, None) for product, _ in products})


def test_the_products_of_a_fully_connected_layer() -> None:
    layer = poplin.fc.FullyConnectedParams(1, 4, 16, 8)
    training = poplin.fc.getMatMulPrePlanParameters(layer, {}, HALF, False)
    assert [(p.aShape, p.bShape, o["fullyConnectedPass"]) for p, o in training] == [
        ((1, 4, 16), (1, 16, 8), "TRAINING_FWD"),
        ((1, 4, 8), (1, 8, 16), "TRAINING_BWD"),
        ((1, 16, 4), (1, 4, 8), "TRAINING_WU"),
    ]
    ((_, options),) = poplin.fc.getMatMulPrePlanParameters(layer, {}, HALF, True)
    assert options["fullyConnectedPass"] == "INFERENCE_FWD"


@pytest.mark.parametrize("shape", [(14, 14), (9, 13), (13, 9), (1, 1)])
def test_lu_factors_are_triangles_whose_product_is_the_matrix(shape: tuple[int, int]) -> None:
    run, rng = DeviceProgram(), np.random.default_rng(1)
    matrix = rng.uniform(1.5, 9.9, shape) + 20 * np.eye(*shape)
    factors = poplin.experimental.LUFactorization(run.graph, run.tensor(matrix), run.program, "lu")
    lower, upper = run.run(*factors)
    np.testing.assert_array_equal(np.triu(lower), np.eye(shape[0]))
    np.testing.assert_array_equal(np.tril(upper, -1), np.zeros(shape))
    np.testing.assert_allclose(lower @ upper, matrix, rtol=1e-5)


@pytest.mark.parametrize(
    ("shape", "at_once", "tiles"),
    [((8, 4), 32, 1), ((16, 8), 5, 4), ((40, 40), 7, 16), ((8, 1), 32, 1), ((1, 1), 32, 2)],
)
def test_qr_factors_are_a_rotation_and_a_triangle(
    shape: tuple[int, int], at_once: int, tiles: int, tmp_path: Path
) -> None:
    # ||A - QR||^2 / ||A||^2 and ||I - QQ^T||^2 below m * 2^-23: QRFactorizationTest.cpp
    run, rows = DeviceProgram(tiles=tiles), shape[0]
    a, q = poplin.experimental.createQRFactorizationMatrices(run.graph, FLOAT, *shape, "qr")
    values = np.random.default_rng(1).uniform(-1, 1, shape)
    run.give(a, values), run.give(q, np.eye(rows))
    options = {"rowsPerIteration": str(at_once)}
    poplin.experimental.QRFactorization(run.graph, a, q, run.program, "qr", options)
    right, rotation = run.run(a, q, report=tmp_path)
    bound = rows * 2.0**-23
    assert ((values - rotation @ right) ** 2).sum() <= bound * (values**2).sum()
    assert ((np.eye(rows) - rotation @ rotation.T) ** 2).sum() <= bound
    np.testing.assert_allclose(np.tril(right, -1), 0, atol=1e-6)
    expected = np.linalg.qr(values)[1]
    np.testing.assert_allclose(np.abs(np.triu(right)[: shape[1]]), np.abs(expected), atol=1e-5)


def test_columns_of_a_then_rows_of_q_are_spread_over_the_tiles() -> None:
    run = DeviceProgram(tiles=4)
    a, q = poplin.experimental.createQRFactorizationMatrices(run.graph, FLOAT, 6, 3, "qr")
    mapping = [run.graph.getTileMapping(tensor) for tensor in (a.transpose(), q)]
    # 9 columns and rows of 6 on 4 tiles: 3, 2, 2, 2
    assert [[sum(p.size() for p in tile) // 6 for tile in of] for of in mapping] == [
        [3, 0, 0, 0], [0, 2, 2, 2]]  # fmt: skip


@pytest.mark.parametrize(
    ("a", "q", "dtype", "words"),
    [
        ([2, 3], [2, 2], FLOAT, "as many rows as columns"),
        ([3, 2], [2, 2], FLOAT, r"Q is \[2, 2\]; \[3, 3\] is needed"),
        ([3, 2], [3, 3], HALF, "only float is supported"),
        ([3], [3, 3], FLOAT, "two matrices"),
    ],
)
def test_matrices_without_qr_factors_are_refused(
    a: list[int], q: list[int], dtype: Any, words: str
) -> None:
    run = DeviceProgram()
    matrices = [run.graph.addVariable(dtype, shape, "m") for shape in (a, q)]
    with pytest.raises(poplar.PoplarError, match=words):
        poplin.experimental.QRFactorization(run.graph, *matrices, run.program)


def test_the_cycles_of_qr_vertices() -> None:
    # a part from 12 on: 4 of 30 elements are padding, one of a worker; 26 are computed, 5 of one
    sizes, offset = np.array([30]), np.array([12])
    assert qr.square_cycles(sizes, offset) == 6 * (34 + 2 * 1 + 6 + 5 * 5 + 1)
    assert qr.reflect_cycles(sizes, offset) == 6 * (37 + 4 * 1 + 9 + 5 * 5 + 1)
    assert qr.copy_cycles(np.array([7])) == 6 * (16 + 7 * 2 + 16)
    # 7 rows are two of a worker, 28 - 16 elements two
    assert qr.update_cycles(np.array([7]), np.array([28])) == 72 + 6 * (50 + 40) * 2 + 8


def test_the_cycles_of_lu_vertices() -> None:
    # two rows of a worker, 4 columns, 10 cycles and half of 6 an element
    cycles = lu.block(np.array([6]), np.array([12]), np.array([4]), TARGETS["mk2"])
    assert cycles == 6 * (30 + 2 * 4 * 13)
    # 6 columns, one of a worker: 15 products
    assert lu.row(np.array([6]), np.array([6]), TARGETS["mk2"]) == 6 * (30 + 15 * 6)


@pytest.mark.parametrize("stable", [False, True])
def test_a_norm_is_over_the_samples_of_all_replicas(stable: bool) -> None:
    # another replica with the negative values: a mean of 0, a variance of the mean of squares
    run = DeviceProgram()
    values = np.array([[[1.0, 2.0]], [[3.0, 4.0]]], np.float32)
    acts, calls = run.tensor(values), []

    def add(graph: Any, tensors: Any, prog: Any, replicas: int, name: str, options: Any) -> Any:
        calls.append((len(tensors), replicas))
        if len(tensors) == 2 or (stable and len(calls) == 1):
            popops.mulInPlace(graph, tensors[0], 0.0, prog)
        if len(tensors) == 2 or len(calls) == 2:
            popops.mulInPlace(graph, tensors[-1], 2.0, prog)
        return tensors

    mean, deviation = popnn.bn.distributedBatchNormStatistics(
        run.graph, acts, 0.0, run.program, False, add, 4, stable
    )
    found = run.run(mean, deviation)
    assert calls == ([(1, 2), (1, 2)] if stable else [(2, 2)])
    np.testing.assert_allclose(found[0], [0.0])
    np.testing.assert_allclose(found[1], [1 / np.sqrt((1 + 4 + 9 + 16) / 4)], rtol=1e-5)
    with pytest.raises(poputil.poplibs_error, match="normSize is 3; a multiple of 2"):
        popnn.bn.distributedBatchNormStatistics(run.graph, acts, 0.0, run.program, False, add, 3)


@pytest.mark.parametrize(("shape", "count"), [((0, 3, 0), 0), ((3, 2, 0), 6), ((2, 4, 1), 4)])
def test_a_norm_of_nothing_has_no_variance(shape: tuple[int, ...], count: int) -> None:
    run = DeviceProgram()
    acts = run.tensor(np.full(shape, 7.0))
    groups = 2 if shape[1] != 3 else 1
    found = popnn.gn.groupNormStatistics(run.graph, acts, 0.25, run.program, groups, False, True)
    mean, deviation = run.run(*found)
    assert mean.tolist() == [7.0 if all(shape) else 0.0] * count
    assert deviation.tolist() == [2.0] * count


# popnn
def test_the_largest_elements_with_their_indices_in_a_tensor() -> None:
    run = DeviceProgram()
    t, indices = run.tensor([[1.0, 3.0, 2.0]]), run.tensor([[0, 0]], UNSIGNED_INT)
    values = popnn.topK(run.graph, t, indices, 2, True, run.program)
    assert isinstance(values, poplar.Tensor)
    assert [v.ravel().tolist() for v in run.run(values, indices)] == [[3.0, 2.0], [1, 2]]


def _spline_reference(v: Any, degree: int) -> Any:
    """Return the coefficients of a uniform B-spline by the recursion of Cox and de Boor."""
    knots = np.arange(-degree, degree + 2, dtype=float)
    found = (knots[:-1] <= v) & (v < knots[1:])
    level: Any = found.astype(float)
    for k in range(1, degree + 1):
        left = (v - knots[: -k - 1]) / k * level[:-1]
        level = left + (knots[k + 1 :] - v) / k * level[1:]
    return level


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("is_open", [0, 1])
def test_splines_are_those_of_cox_and_de_boor(degree: int, is_open: int) -> None:
    run, rng = DeviceProgram(), np.random.default_rng(degree)
    pseudo, kernel = rng.random((5, 2)), np.array([6, 5])
    count = (degree + 1) ** 2
    basis, index = run.tensor(np.zeros((5, count))), run.tensor(np.zeros((5, count)), INT)
    popops.splineBasis(
        run.graph, run.tensor(pseudo), run.tensor(kernel, INT),
        run.tensor([is_open] * 2, poplar.UNSIGNED_CHAR), basis, index, degree, run.program,
    )  # fmt: skip
    found, places = run.run(basis, index)
    for edge in range(5):
        v = pseudo[edge] * (kernel - degree * is_open)
        one, two = (_spline_reference(x - np.floor(x), degree) for x in v)
        expected = (two[:, None] * one).ravel()
        np.testing.assert_allclose(found[edge], expected, rtol=1e-5, atol=1e-6)
        first, second = (
            (int(x) + np.arange(degree + 1)) % k for x, k in zip(v, kernel, strict=True)
        )
        assert places[edge].tolist() == (second[:, None] * 6 + first).ravel().tolist()


def test_features_are_weighted_by_splines() -> None:
    run, rng = DeviceProgram(), np.random.default_rng(7)
    x, w, b = rng.random((6, 3)), rng.random((4, 3, 5)), rng.random((6, 2))
    at = rng.integers(0, 4, (6, 2))
    out = popops.splineWeighting(
        run.graph, run.tensor(x), run.tensor(w), run.tensor(b), run.tensor(at, INT), run.program
    )
    expected = np.einsum("ec,esco,es->eo", x, w[at], b)
    np.testing.assert_allclose(run.run(out)[0], expected, rtol=1e-5)
    with pytest.raises(poputil.poplibs_error, match="degree is 4; 1, 2 or 3"):
        t, i = run.tensor(np.zeros((1, 1))), run.tensor(np.zeros(1), INT)
        popops.splineBasis(run.graph, t, i, i, t, t, 4, run.program)


def _sampled(maps: Any, roi: Any, params: Any) -> Any:
    """Return the bins of a region of maps [channels, height, width], sample by sample."""
    shift = 0.5 if params.aligned else 0.0
    x1, y1, x2, y2 = roi * params.spatialScale - shift
    least = 0.0 if params.aligned else 1.0
    high, wide = max(y2 - y1, least) / params.poolH, max(x2 - x1, least) / params.poolW
    out = np.zeros((len(maps), params.poolH, params.poolW))
    n, (height, width) = params.samplingRatio, maps.shape[1:]
    for i, j, a, b in np.ndindex(params.poolH, params.poolW, n, n):
        y, x = y1 + (i + (a + 0.5) / n) * high, x1 + (j + (b + 0.5) / n) * wide
        if y <= height and x <= width:
            y, x = max(y, 0.0), max(x, 0.0)
            top, left = min(int(y), height - 1), min(int(x), width - 1)
            down, right = min(top + 1, height - 1), min(left + 1, width - 1)
            v, u = y - top, x - left
            upper = (1 - u) * maps[:, top, left] + u * maps[:, top, right]
            lower = (1 - u) * maps[:, down, left] + u * maps[:, down, right]
            out[:, i, j] += ((1 - v) * upper + v * lower) / n**2
    return out


@pytest.mark.parametrize("aligned", [False, True])
def test_regions_are_pooled_at_fractions_of_elements(aligned: bool) -> None:
    run, rng = DeviceProgram(tiles=2), np.random.default_rng(3)
    params = popnn.experimental.roiAlignParams(2, 3, 2, aligned, 0.5)
    maps, grads = rng.random((2, 2, 6, 7)), rng.random((3, 2, 3, 2))
    rois = np.array([[1.6, 1.6, 9.2, 11.0], [0.0, 2.0, 3.0, 3.5], [4.0, 5.0, 16.0, 9.0]])
    images = [0, 1, 1]
    data, regions, at = run.tensor(maps), run.tensor(rois), run.tensor(images, INT)
    out = popnn.experimental.roiAlignFwd(run.graph, run.program, data, regions, at, params)
    gradient = popnn.experimental.roiAlignInputGradient(
        run.graph, run.program, data, regions, at, run.tensor(grads), params
    )
    found, back = run.run(out, gradient)
    direction = rng.random(maps.shape)  # of the derivative: pooling is linear in the map

    def pooled(values: Any) -> Any:
        return np.stack([_sampled(values[n], r, params) for n, r in zip(images, rois, strict=True)])

    np.testing.assert_allclose(found, pooled(maps), rtol=1e-4)
    slope = (pooled(maps + 1e-4 * direction) - pooled(maps - 1e-4 * direction)) / 2e-4
    np.testing.assert_allclose((back * direction).sum(), (slope * grads).sum(), rtol=1e-5)


def test_attention_scales_the_update_gate_and_has_a_gradient() -> None:
    rng = np.random.default_rng(5)
    batch, steps, size = 2, 3, 4
    x, h0 = rng.random((steps, batch, size)), rng.random((batch, size))
    w, u = (rng.normal(size=(3, size, size)) * 0.5 for _ in range(2))
    bias, scores = rng.random((3, size)), rng.random((batch, steps)) * 0.5
    seeds = rng.random((steps, batch, size))

    def sigmoid(v: Any) -> Any:
        return 1 / (1 + np.exp(-v))

    def forward(scores: Any, x: Any) -> Any:
        h, outs = h0, []
        for t in range(steps):
            reset, update = (sigmoid(x[t] @ w[k] + h @ u[k] + bias[k]) for k in (0, 1))
            candidate = np.tanh(x[t] @ w[2] + (reset * h) @ u[2] + bias[2])
            update = update * (1 - scores[:, t : t + 1])
            h = update * h + (1 - update) * candidate
            outs.append(h)
        return np.stack(outs)

    run = DeviceProgram()
    params = popnn.gru.GruParams(FLOAT, batch, steps, [size, size])
    weights = popnn.gru.GruWeights(run.tensor(w), run.tensor(u), run.tensor(bias))
    first, inputs = run.tensor(h0), run.tensor(x)
    attention = run.give(popnn.gru.createAttention(run.graph, params, "att"), scores)
    kept: list[Any] = []
    out = popnn.gru.auGruFwd(
        run.graph, params, first, inputs, weights, kept, attention, run.program, "fwd"
    )
    of_inputs: list[Any] = []
    of_scores: list[Any] = []
    popnn.gru.auGruBwdWithWU(
        run.graph, params, run.program, first, kept[0], weights, inputs, out, run.tensor(seeds),
        of_inputs, attention, of_scores, "bwd",
    )  # fmt: skip
    found, score_grads, input_grads = run.run(out, of_scores[0], of_inputs[0])
    np.testing.assert_allclose(found, forward(scores, x), rtol=1e-4)

    def slopes(values: Any, change: Any) -> Any:
        result = np.zeros_like(values)
        for place in np.ndindex(values.shape):
            step = np.zeros_like(values)
            step[place] = 1e-5
            result[place] = ((change(values + step) - change(values - step)) * seeds).sum() / 2e-5
        return result

    np.testing.assert_allclose(
        score_grads, slopes(scores, lambda s: forward(s, x)), rtol=2e-3, atol=1e-4
    )
    np.testing.assert_allclose(
        input_grads, slopes(x, lambda v: forward(scores, v)), rtol=2e-3, atol=1e-4
    )


def test_both_halves_of_a_backward_pass_are_the_whole() -> None:
    rng, values = np.random.default_rng(9), []
    for apart in (False, True):
        rng = np.random.default_rng(9)
        run = DeviceProgram()
        params = popnn.lstm.LstmParams(FLOAT, 2, 3, [4, 4])
        weights = popnn.lstm.LstmWeights(
            run.tensor(rng.normal(size=(4, 4, 4))), run.tensor(rng.normal(size=(4, 4, 4))),
            run.tensor(rng.normal(size=(4, 4))),
        )  # fmt: skip
        state = popnn.lstm.LstmState(run.tensor(rng.random((2, 4))), run.tensor(rng.random((2, 4))))
        x, seeds = run.tensor(rng.random((3, 2, 4))), run.tensor(rng.random((3, 2, 4)))
        last = popnn.lstm.LstmState(run.tensor(rng.random((2, 4))), run.tensor(rng.random((2, 4))))
        kept: list[Any] = []
        out, _ = popnn.lstm.lstmFwd(run.graph, params, state, x, weights, kept, run.program)
        call = (run.graph, params, run.program, state, kept[0])
        if apart:
            units: list[Any] = []
            grads = popnn.lstm.lstmBwd(*call, weights, x, out, seeds, last, None, units)
            of_weights = popnn.lstm.lstmWU(*call, units[0], weights, x, out)
        else:
            grads, of_weights = popnn.lstm.lstmBwdWithWU(*call, weights, x, out, seeds, last, None)
        values.append(run.run(*grads, *of_weights))
    for one, other in zip(*values, strict=True):
        np.testing.assert_array_equal(one, other)
