"""Products with sparse matrices: NumPy's of the dense ones, buckets, rows and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_program import DeviceProgram
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import popsparse
from simulator.codelets.products import sparse
from simulator.graph.errors import InvalidOptionError, poplibs_error
from simulator.graph.machine.target import make_target
from simulator.graph.types import FLOAT, HALF, UNSIGNED_INT
from simulator.poplibs.popsparse import COOMatrix, CSCMatrix, CSRMatrix, dynamic, static_

MK2 = make_target("mk2")
ROOM = {"metaInfoBucketOversizeProportion": "20"}


def drawn(seed: int, shape: tuple[int, int], block: int, ratio: float) -> Any:
    """Draw a matrix of whole numbers of which a part of the blocks is not zero."""
    rng = np.random.default_rng(seed)
    mask = rng.random((shape[0] // block, shape[1] // block)) < ratio
    mask[0, 0] = True
    values = rng.integers(1, 5, shape) * np.where(rng.random(shape) < 0.5, 1, -1)
    return values * np.kron(mask, np.ones((block, block)))


def stored(matrix: Any, block: int, kind: Any = CSRMatrix) -> Any:
    """Store the blocks of a matrix that are not zero."""
    rows, columns = matrix.shape[0] // block, matrix.shape[1] // block
    parts = matrix.reshape(rows, block, columns, block).swapaxes(1, 2)
    row, column = np.nonzero(parts.any(axis=(2, 3)))
    return kind.of(matrix.shape, row, column, parts[row, column])


def filled(run: DeviceProgram, tensor: Any, data: Any) -> Any:
    run.give(tensor.getMetaInfoTensor(), data.metaInfo)
    run.give(tensor.getNzValuesTensor(), data.nzValues)
    return tensor


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_sparse_product_is_that_of_the_dense_matrices(data: st.DataObject) -> None:
    block, dtype = data.draw(st.sampled_from([(1, FLOAT), (1, HALF), (4, FLOAT), (8, HALF)]))
    m, k = (block * data.draw(st.integers(1, 6)) for _ in range(2))
    n, ratio = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([0.2, 0.6, 1.0]))
    run = DeviceProgram(tiles=data.draw(st.sampled_from([2, 8, 30])))
    params = dynamic.MatMulParams.createWithNzRatio(
        dynamic.SparsityParams(blockDimensions=(block, block)), ratio, 1, m, k, n
    )
    matrix = drawn(data.draw(st.integers(0, 99)), (m, k), block, ratio)
    lhs = dynamic.createSparseDenseMatMulLHS(run.graph, dtype, params, "lhs", ROOM)
    partitioner = dynamic.Partitioner(params, dtype, run.graph.target, ROOM)
    filled(run, lhs, partitioner.createSparsityDataImpl(stored(matrix, block)))
    dense, turned = (np.random.default_rng(1).integers(-3, 4, (1, size, n)) for size in (k, m))
    rhs = run.give(dynamic.createSparseDenseMatMulRHS(run.graph, dtype, params, "rhs", ROOM), dense)
    out = dynamic.sparseDenseMatMul(run.graph, lhs, rhs, run.program, False, False, "x", ROOM)
    other = run.tensor(turned.swapaxes(1, 2), dtype)
    back = dynamic.sparseDenseMatMul(run.graph, lhs, other, run.program, True, True, "y", ROOM)
    values = run.run(out, back)
    assert np.array_equal(values[0], (matrix @ dense[0])[None])
    assert np.array_equal(values[1], (matrix.T @ turned[0])[None])


@pytest.mark.parametrize("block", [1, 4])
def test_a_layer_and_its_gradients_are_those_of_dense_weights(block: int, tmp_path: Any) -> None:
    run, batch = DeviceProgram(tiles=12), 5
    weights = drawn(3, (16, 24), block, 0.4)
    params = dynamic.FullyConnectedParams.createWithNzRatio(
        dynamic.SparsityParams(blockDimensions=(block, block)), 0.5, batch, 1, 24, 16
    )
    tensor = dynamic.createFullyConnectedWeights(run.graph, FLOAT, params, "w", ROOM)
    partitioner = dynamic.Partitioner(params, FLOAT, run.graph.target, ROOM)
    filled(run, tensor, partitioner.createSparsityDataImpl(stored(weights, block)))
    rng = np.random.default_rng(2)
    acts, up = rng.integers(-3, 4, (batch, 24)), rng.integers(-3, 4, (batch, 16))
    x = run.give(dynamic.createFullyConnectedInput(run.graph, FLOAT, params, "x", ROOM), acts)
    dy, last = run.tensor(up), (params, run.program)
    out = dynamic.fullyConnectedFwd(run.graph, tensor, x, *last)
    dx = dynamic.fullyConnectedGradA(run.graph, tensor, dy, *last)
    meta = tensor.getMetaInfoTensor()
    dw = dynamic.fullyConnectedSparseGradW(run.graph, meta, dy, x, *last, "dw", ROOM)
    values = run.run(out, dx, dw, report=tmp_path / "report")
    assert np.array_equal(values[0], acts @ weights.T)
    assert np.array_equal(values[1], up @ weights)
    data = partitioner.createSparsityDataImpl(stored(weights, block))
    coo = partitioner.sparsityDataImplToCOOMatrix(
        dynamic.SparsityDataImpl(data.metaInfo, values[2])
    )
    rows, columns, blocks = coo.coordinates()
    gradient = (up.T @ acts).reshape(16 // block, block, 24 // block, block).swapaxes(1, 2)
    assert np.array_equal(blocks, gradient[rows, columns])


@pytest.mark.parametrize(("block", "dtype"), [(1, FLOAT), (4, HALF)])
def test_rows_are_sliced_and_updated_where_they_are_not_zero(block: int, dtype: Any) -> None:
    run, weights = DeviceProgram(tiles=10), drawn(7, (16, 24), block, 0.5)
    params = dynamic.FullyConnectedParams.createWithNzRatio(
        dynamic.SparsityParams(blockDimensions=(block, block)), 0.6, 4, 1, 24, 16
    )
    tensor = dynamic.createFullyConnectedWeights(run.graph, dtype, params, "w", ROOM)
    partitioner = dynamic.Partitioner(params, dtype, run.graph.target, ROOM)
    data = partitioner.createSparsityDataImpl(stored(weights, block))
    filled(run, tensor, data)
    numbers, last = [3, 0, 3, 15], (params, "e", ROOM)
    indices = run.give(dynamic.createIndicesTensor(run.graph, params, 4), numbers)
    rows = dynamic.embeddingSlice(run.graph, tensor, indices, run.program, *last)
    added = np.random.default_rng(4).integers(-3, 4, (4, 24))
    slices = run.give(dynamic.createSliceTensor(run.graph, dtype, params, 4, "s", ROOM), added)
    scale = run.tensor([2.0], dtype)
    dynamic.embeddingUpdateAdd(run.graph, tensor, slices, indices, scale, run.program, *last)
    taken, after = run.run(rows, tensor.getNzValuesTensor())
    assert np.array_equal(taken, weights[numbers])
    updated = weights.copy()
    np.add.at(updated, numbers, 2 * added)
    coo = partitioner.sparsityDataImplToCOOMatrix(dynamic.SparsityDataImpl(data.metaInfo, after))
    rows_of, columns, blocks = coo.coordinates()
    wanted = updated.reshape(16 // block, block, 24 // block, block).swapaxes(1, 2)
    assert np.array_equal(blocks, wanted[rows_of, columns])
    assert len(blocks) == len(data.nzValues[data.nzValues != 0]) // block**2


@pytest.mark.parametrize("block", [1, 4])
def test_a_matrix_whose_places_are_constants_is_multiplied_from_both_sides(block: int) -> None:
    run, matrix = DeviceProgram(tiles=9), drawn(9, (8, 12), block, 0.4)
    csr, rng = stored(matrix, block), np.random.default_rng(5)
    left = static_.MatMulParams.createForSparseDense(1, 8, 12, 5)
    lhs = static_.createSparseDenseMatMulLHS(run.graph, FLOAT, left, csr)
    values = static_.Partitioner(left, FLOAT, run.graph.target)
    run.give(lhs.getNzValuesTensor(), values.createSparsityDataImpl(csr).nzValues)
    dense, other = rng.integers(-3, 4, (1, 12, 5)), rng.integers(-3, 4, (1, 5, 8))
    rhs = run.give(static_.createSparseDenseMatMulRHS(run.graph, FLOAT, left, csr), dense)
    out = static_.sparseDenseMatMul(run.graph, lhs, rhs, run.program)
    right = static_.MatMulParams.createForDenseSparse(1, 5, 8, 12)
    sparse_rhs = static_.createDenseSparseMatMulRHS(run.graph, FLOAT, right, csr)
    partitioner = static_.Partitioner(right, FLOAT, run.graph.target)
    data = partitioner.createSparsityDataImpl(csr)
    run.give(sparse_rhs.getNzValuesTensor(), data.nzValues)
    before = run.give(static_.createDenseSparseMatMulLHS(run.graph, FLOAT, right, csr), other)
    back = static_.denseSparseMatMul(run.graph, before, sparse_rhs, run.program)
    results = run.run(out, back)
    assert np.array_equal(results[0][0], matrix @ dense[0])
    assert np.array_equal(results[1][0], other[0] @ matrix)
    again = partitioner.sparsityDataImplToCSRMatrix(data)
    assert np.array_equal(again.nzValues, csr.nzValues)
    assert np.array_equal(again.columnIndices, csr.columnIndices)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 99), st.sampled_from([1, 4]), st.sampled_from([0.0, 0.3, 1.0]))
def test_matrices_come_out_of_buckets_as_they_went_in(seed: int, block: int, ratio: float) -> None:
    matrix = drawn(seed, (12, 8), block, ratio)
    params = dynamic.MatMulParams.createWithNzRatio(
        dynamic.SparsityParams(blockDimensions=(block, block)), 1.0, 1, 12, 8, 4
    )
    partitioner = dynamic.Partitioner(params, FLOAT, make_target("mk2", tiles_per_ipu=10))
    kinds = {"CSR": CSRMatrix, "CSC": CSCMatrix, "COO": COOMatrix}
    for name, kind in kinds.items():
        one = stored(matrix, block, kind)
        data = partitioner.createSparsityDataImpl(one)
        other = getattr(partitioner, f"sparsityDataImplTo{name}Matrix")(data)
        for attribute in ("nzValues", "columnIndices", "rowIndices"):
            assert np.array_equal(getattr(one, attribute), getattr(other, attribute))


def test_cycles_are_those_by_which_poplibs_plans() -> None:
    # 12 rows, 2 a worker, of 5 non-zeros each; 6 columns: 12 + 15 + 8 + 30 + 3; 30 + 2 * 81
    args = (np.array([12]), np.array([5]), np.array([6]))
    assert sparse.elements(*args, FLOAT, MK2) == 123 + 6 * (30 + (13 + 12 + 15 + 8 + 30 + 3) * 2)
    # halves, 13 columns: 16 + 15, 13 + 10, 11 + 10
    args = (np.array([12]), np.array([5]), np.array([13]))
    inner = 16 + 15 + 13 + 10 + 11 + 10
    assert sparse.elements(*args, HALF, MK2) == 123 + 6 * (33 + (12 + inner) * 2)
    # one of the 5 non-zeros a worker, 12 rows each: 24 + 8 + 2 + 18 + 4
    assert sparse.transposed(*args, FLOAT, MK2) == 142 + 6 * (23 + (24 + 8 + 20 + 4) * 12)
    # 9 + 6 + 1 a non-zero
    assert sparse.gradient(*args, FLOAT, MK2) == 101 + 6 * (34 + (9 + 16 * 5) * 2)
    # 6 blocks of 4 x 4 floats, 3 columns a worker
    args = (np.array([3]), np.array([6]), np.array([13]))
    blocks = 40 + 102 + 6 * (8 + 15) + 2 + 6 * (26 + 6 * (14 + 4 * 3))
    assert sparse.blocks(*args, 4, FLOAT, MK2) == blocks


def test_a_dense_operand_without_its_group_is_refused() -> None:
    run, params = DeviceProgram(), static_.MatMulParams.createForSparseDense(1, 8, 8, 4)
    places = stored(np.eye(8), 1)
    lhs = static_.createSparseDenseMatMulLHS(run.graph, FLOAT, params, places)
    with pytest.raises(poplibs_error, match=r"dense operand .*; \[1, rows, columns\] is needed"):
        static_.sparseDenseMatMul(run.graph, lhs, run.tensor(np.zeros((8, 4))), run.program)


def test_what_cannot_be_sparse_is_refused() -> None:
    run, kind = DeviceProgram(), dynamic.SparsityParams()
    with pytest.raises(poplibs_error, match="blocks of 4 x 8; 1 x 1, 4 x 4, 8 x 8, 16 x 16 are"):
        dynamic.SparsityParams(blockDimensions=(4, 8))
    with pytest.raises(poplibs_error, match="2 groups; sparse products have 1"):
        dynamic.MatMulParams.createWithNzRatio(kind, 0.1, 2, 8, 8, 8)
    params = dynamic.MatMulParams.createWithNumNonZeroValues(kind, 4, 1, 8, 8, 8)
    assert (params.getNumNonZeroValues(), params.getNzRatio()) == (4, 0.0625)
    with pytest.raises(InvalidOptionError, match="no option 'partialType'; did you mean partials"):
        dynamic.createSparseDenseMatMulLHS(run.graph, FLOAT, params, "", {"partialType": "half"})
    partitioner = dynamic.Partitioner(params, FLOAT, run.graph.target)
    with pytest.raises(poplibs_error, match="its bucket has room for .*; raise metaInfoBucketOver"):
        partitioner.createSparsityDataImpl(stored(np.ones((8, 8)), 1))
    with pytest.raises(poplibs_error, match="a block at row 8, column 0; the plan is for 8 x 8"):
        partitioner.createSparsityDataImpl(COOMatrix([1], [0], [8]))
    with pytest.raises(poplibs_error, match="3 values for 2 rows and 2 columns of blocks of 1 x 1"):
        partitioner.createSparsityDataImpl(COOMatrix([1, 2, 3], [0, 1], [0, 1]))
    lhs = dynamic.createSparseDenseMatMulLHS(run.graph, FLOAT, params)
    with pytest.raises(poplibs_error, match=r"dense operand .*; float\[8, columns\] is needed"):
        rhs = run.tensor(np.zeros((1, 7, 8)))
        dynamic.sparseDenseMatMul(run.graph, lhs, rhs, run.program)
    bare = popsparse.dynamic.SparseTensor(lhs.metaInfo, lhs.nzValues)
    with pytest.raises(poplibs_error, match="a sparse tensor without a plan"):
        dynamic.sparseDenseMatMul(run.graph, bare, run.tensor(np.zeros((1, 8, 8))), run.program)
    with pytest.raises(poplibs_error, match="indices .*; a list of unsigned ints is needed"):
        layer = dynamic.FullyConnectedParams.createWithNzRatio(kind, 0.5, 4, 1, 8, 8)
        weights = dynamic.createFullyConnectedWeights(run.graph, FLOAT, layer)
        at = run.tensor([[0]], UNSIGNED_INT)
        dynamic.embeddingSlice(run.graph, weights, at, run.program, layer)
