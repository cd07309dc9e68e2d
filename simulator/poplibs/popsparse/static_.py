"""Products with a sparse matrix whose non-zeros stay where they are (popsparse::static_).

The places are constants of the program; buckets are as large as the fullest needs. Cycles are those
of products whose non-zeros may move: an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.machine.target import Target
from simulator.graph.option_table import Option, checked
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Array, Type
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popsparse import params as sizes
from simulator.poplibs.popsparse.formats import COOMatrix, CSCMatrix, CSRMatrix
from simulator.poplibs.popsparse.multiply import multiply
from simulator.poplibs.popsparse.partitioner import (
    AnyMatrix,
    blocks_of,
    fill_buckets,
    fullest_bucket,
)
from simulator.poplibs.popsparse.partitioner import SparsityDataImpl as Buckets
from simulator.poplibs.popsparse.plan import Options, SparsePlan, sparse_plan
from simulator.poplibs.popsparse.plan import PlanningCache as PlanningCache
from simulator.poplibs.popsparse.tensors import SparseTensor as SparseTensor
from simulator.poplibs.popsparse.tensors import add_buckets, dense_matrix, dense_operand

_TAKEN = "taken, and without effect here"
OPTIONS = {
    "availableMemoryProportion": Option("0.6", _TAKEN),
    "numBands": Option(0, _TAKEN),
    "nSplit": Option(0, _TAKEN),
    "verboseLogging": Option(False, _TAKEN),
    "enablePreprocessing": Option(False, _TAKEN),
}


@dataclass(frozen=True, slots=True)
class MatMulParams:
    """A product of a sparse [m, k] and a dense [k, n], or of a dense and a sparse one."""

    groups: int
    m: int
    k: int
    n: int
    transposed: bool = False

    @classmethod
    def createForSparseDense(cls, groups: int, m: int, k: int, n: int) -> MatMulParams:
        """Describe sparse [m, k] times dense [k, n]."""
        return cls(groups, m, k, n)

    @classmethod
    def createForDenseSparse(cls, groups: int, n: int, k: int, m: int) -> MatMulParams:
        """Describe dense [n, k] times sparse [k, m]."""
        return cls(groups, m, k, n, transposed=True)

    def getNumGroups(self) -> int:
        return self.groups

    def getM(self) -> int:
        return self.m

    def getK(self) -> int:
        return self.k

    def getN(self) -> int:
        return self.n

    def isTransposed(self) -> bool:
        return self.transposed


@dataclass(frozen=True, slots=True)
class SparsityDataImpl:
    """The values of the non-zeros of a matrix, as the device holds them."""

    nzValues: Array


class Partitioner:
    """Puts the values of a matrix where the device holds them, and takes them out again."""

    def __init__(
        self,
        params: MatMulParams,
        dataType: Type,
        target: Target,
        options: Options = None,
        cache: PlanningCache | None = None,
        name: str = "",
    ) -> None:
        self._name = name or "Partitioner"
        checked(OPTIONS, options or {}, self._name)
        self._how = (target, params, dataType)
        self._last: tuple[SparsePlan, Buckets] | None = None

    def createSparsityDataImpl(self, matrix: AnyMatrix) -> SparsityDataImpl:
        """Return the values of a matrix; its places are those that the program was made with."""
        plan = _planned(*self._how, matrix, self._name)
        data = fill_buckets(plan, _sparse_side(self._how[1], matrix), self._name)
        self._last = (plan, data)
        return SparsityDataImpl(data.nzValues)

    def _matrix(
        self, kind: type[CSRMatrix] | type[CSCMatrix] | type[COOMatrix], data: SparsityDataImpl
    ) -> AnyMatrix:
        if self._last is None:
            raise poplibs_error(f"{self._name}: no matrix yet; createSparsityDataImpl comes first")
        plan, buckets = self._last
        shape, rows, columns, values = blocks_of(plan, Buckets(buckets.metaInfo, data.nzValues))
        if self._how[1].transposed:
            turned = COOMatrix.of(shape[::-1], columns, rows, values.swapaxes(1, 2))
            rows, columns, values = turned.coordinates()
            shape = shape[::-1]
        return kind.of(shape, rows, columns, values)

    def sparsityDataImplToCOOMatrix(self, data: SparsityDataImpl) -> AnyMatrix:
        return self._matrix(COOMatrix, data)

    def sparsityDataImplToCSRMatrix(self, data: SparsityDataImpl) -> AnyMatrix:
        return self._matrix(CSRMatrix, data)

    def sparsityDataImplToCSCMatrix(self, data: SparsityDataImpl) -> AnyMatrix:
        return self._matrix(CSCMatrix, data)


def _sparse_side(params: MatMulParams, matrix: AnyMatrix) -> AnyMatrix:
    """Return the sparse operand that is on the left: the transpose of one on the right."""
    if not params.transposed:
        return matrix
    rows, columns, values = matrix.coordinates()
    return COOMatrix.of((params.m, params.k), columns, rows, values.swapaxes(1, 2))


def _planned(
    target: Target, params: MatMulParams, dtype: Type, matrix: AnyMatrix, name: str
) -> SparsePlan:
    """Plan a product of a matrix whose places are known; its buckets fit."""
    sparsity = sizes.SparsityParams(blockDimensions=matrix.blockDimensions)
    shape = (params.groups, params.m, params.k, params.n)
    count = len(matrix.nzValues)
    product = sizes.MatMulParams.createWithNumNonZeroValues(sparsity, count, *shape)
    plan = sparse_plan(target, product, dtype, {}, name)
    fullest = fullest_bucket(plan, _sparse_side(params, matrix), name)
    return replace(plan, room=max(fullest, 1))


def _add_sparse(
    graph: Graph, dtype: Type, params: MatMulParams, matrix: AnyMatrix, name: str, options: Options
) -> SparseTensor:
    checked(OPTIONS, options or {}, name)
    plan = _planned(graph.target, params, dtype, matrix, name)
    places = fill_buckets(plan, _sparse_side(params, matrix), name).metaInfo
    return add_buckets(graph, plan, name, places)


def _side(params: MatMulParams, *, transposed: bool, name: str) -> None:
    if params.transposed != transposed:
        method = "createForDenseSparse" if transposed else "createForSparseDense"
        raise poplibs_error(f"{name}: parameters of the other product; {method} is needed")


@library_call("POPSPARSE")
def createSparseDenseMatMulLHS(
    graph: Graph,
    inputType: Type,
    params: MatMulParams,
    csrLHS: CSRMatrix,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> SparseTensor:
    """Add the sparse operand [m, k], with the places of a matrix's non-zeros.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, static_ = Trial(), popsparse.static_
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> params = static_.MatMulParams.createForSparseDense(1, 2, 2, 1)
    >>> lhs = static_.createSparseDenseMatMulLHS(trial.graph, poplar.FLOAT, params, matrix)
    >>> partitioner = static_.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)  # what the host writes
    >>> data.nzValues.shape == lhs.getNzValuesTensor().shape
    True
    """
    name = debug_name(debugContext, "sparseLHS")
    _side(params, transposed=False, name=name)
    return _add_sparse(graph, inputType, params, csrLHS, name, options)


@library_call("POPSPARSE")
def createDenseSparseMatMulRHS(
    graph: Graph,
    inputType: Type,
    params: MatMulParams,
    csrRHS: CSRMatrix,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> SparseTensor:
    """Add the sparse operand [k, m], with the places of a matrix's non-zeros.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, static_ = Trial(), popsparse.static_
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> params = static_.MatMulParams.createForDenseSparse(1, 1, 2, 2)
    >>> rhs = static_.createDenseSparseMatMulRHS(trial.graph, poplar.FLOAT, params, matrix)
    >>> partitioner = static_.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)  # what the host writes
    >>> data.nzValues.shape == rhs.getNzValuesTensor().shape
    True
    """
    name = debug_name(debugContext, "sparseRHS")
    _side(params, transposed=True, name=name)
    return _add_sparse(graph, inputType, params, csrRHS, name, options)


@library_call("POPSPARSE")
def createSparseDenseMatMulRHS(
    graph: Graph,
    inputType: Type,
    params: MatMulParams,
    csrLHS: CSRMatrix,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the dense operand [1, k, n], laid out as the plan wants it.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, static_ = Trial(), popsparse.static_
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> params = static_.MatMulParams.createForSparseDense(1, 2, 2, 1)
    >>> static_.createSparseDenseMatMulRHS(trial.graph, poplar.FLOAT, params, matrix).shape
    (1, 2, 1)
    """
    name = debug_name(debugContext, "denseRHS")
    _side(params, transposed=False, name=name)
    return _dense(graph, inputType, params, csrLHS, name, options).expand([0])


@library_call("POPSPARSE")
def createDenseSparseMatMulLHS(
    graph: Graph,
    inputType: Type,
    params: MatMulParams,
    csrRHS: CSRMatrix,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the dense operand [1, n, k], laid out as the plan wants it.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, static_ = Trial(), popsparse.static_
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> params = static_.MatMulParams.createForDenseSparse(1, 1, 2, 2)
    >>> static_.createDenseSparseMatMulLHS(trial.graph, poplar.FLOAT, params, matrix).shape
    (1, 1, 2)
    """
    name = debug_name(debugContext, "denseLHS")
    _side(params, transposed=True, name=name)
    return _dense(graph, inputType, params, csrRHS, name, options).transpose().expand([0])


def _dense(
    graph: Graph, dtype: Type, params: MatMulParams, matrix: AnyMatrix, name: str, options: Options
) -> Tensor:
    checked(OPTIONS, options or {}, name)
    plan = _planned(graph.target, params, dtype, matrix, name)
    return dense_operand(graph, plan, dtype, name, by="y", columns=plan.bounds("z"))


@library_call("POPSPARSE")
def sparseDenseMatMul(
    graph: Graph,
    lhs: SparseTensor,
    rhs: Tensor,
    prog: Sequence,
    transposeLHS: bool = False,
    transposeRHS: bool = False,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Multiply a sparse [m, k] by a dense [1, k, n], either of them transposed; gives [1, m, n].

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, static_ = Trial(), popsparse.static_
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> params = static_.MatMulParams.createForSparseDense(1, 2, 2, 1)
    >>> lhs = static_.createSparseDenseMatMulLHS(trial.graph, poplar.FLOAT, params, matrix)
    >>> partitioner = static_.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)
    >>> _ = trial.write(lhs.getNzValuesTensor(), data.nzValues)
    >>> x = trial.tensor([[[1.0], [10.0]]])
    >>> trial.values(static_.sparseDenseMatMul(trial.graph, lhs, x, trial.prog))
    [[[3.0], [40.0]]]
    """
    name = debug_name(debugContext, "sparseDenseMatMul")
    checked(OPTIONS, options or {}, name)
    dense = dense_matrix(rhs, name)
    dense = dense.transpose() if transposeRHS else dense
    return multiply(graph, lhs, lhs.plan(name), dense, prog, name, transpose=transposeLHS).expand(
        [0]
    )


@library_call("POPSPARSE")
def denseSparseMatMul(
    graph: Graph,
    lhs: Tensor,
    rhs: SparseTensor,
    prog: Sequence,
    transposeLHS: bool = False,
    transposeRHS: bool = False,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Multiply a dense [1, n, k] by a sparse [k, m], either of them transposed; gives [1, n, m].

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, static_ = Trial(), popsparse.static_
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> params = static_.MatMulParams.createForDenseSparse(1, 1, 2, 2)
    >>> rhs = static_.createDenseSparseMatMulRHS(trial.graph, poplar.FLOAT, params, matrix)
    >>> partitioner = static_.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)
    >>> _ = trial.write(rhs.getNzValuesTensor(), data.nzValues)
    >>> x = trial.tensor([[[1.0, 10.0]]])
    >>> trial.values(static_.denseSparseMatMul(trial.graph, x, rhs, trial.prog))
    [[[3.0, 40.0]]]
    """
    name = debug_name(debugContext, "denseSparseMatMul")
    checked(OPTIONS, options or {}, name)
    dense = dense_matrix(lhs, name)
    # The transpose of the product is that of the sparse operand by that of the dense one.
    dense = dense if transposeLHS else dense.transpose()
    out = multiply(graph, rhs, rhs.plan(name), dense, prog, name, transpose=transposeRHS)
    return out.transpose().expand([0])
