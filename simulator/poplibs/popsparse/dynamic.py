"""Products with a sparse matrix whose non-zeros may move from run to run (popsparse::dynamic)."""

from __future__ import annotations

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_SHORT, Type
from simulator.logging import library_call
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.popsparse.embedding import createIndicesTensor as createIndicesTensor
from simulator.poplibs.popsparse.embedding import createSliceTensor as createSliceTensor
from simulator.poplibs.popsparse.embedding import embeddingSlice as embeddingSlice
from simulator.poplibs.popsparse.embedding import embeddingUpdateAdd as embeddingUpdateAdd
from simulator.poplibs.popsparse.multiply import gradient_of_nonzeros, multiply
from simulator.poplibs.popsparse.params import FullyConnectedParams as FullyConnectedParams
from simulator.poplibs.popsparse.params import MatMulParams as MatMulParams
from simulator.poplibs.popsparse.params import SparsityParams as SparsityParams
from simulator.poplibs.popsparse.params import SparsityStructure as SparsityStructure
from simulator.poplibs.popsparse.params import SparsityType as SparsityType
from simulator.poplibs.popsparse.partitioner import Partitioner as Partitioner
from simulator.poplibs.popsparse.partitioner import SparsityDataImpl as SparsityDataImpl
from simulator.poplibs.popsparse.plan import (
    FULLY_CONNECTED,
    MATMUL,
    Options,
    SparsePlan,
    settings,
    sparse_plan,
)
from simulator.poplibs.popsparse.plan import PlanningCache as PlanningCache
from simulator.poplibs.popsparse.tensors import SparseTensor as SparseTensor
from simulator.poplibs.popsparse.tensors import add_buckets, dense_matrix, dense_operand


@library_call("POPSPARSE")
def createSparseDenseMatMulLHS(
    graph: Graph,
    inputType: Type,
    params: MatMulParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> SparseTensor:
    """Add the sparse operand [m, k] of a product, empty until the host writes its buckets.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 2, 2, 1  # any, all, groups, m, k, n
    >>> params = dynamic.MatMulParams.createWithNzRatio(*sizes)
    >>> lhs = dynamic.createSparseDenseMatMulLHS(trial.graph, poplar.FLOAT, params)
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> partitioner = dynamic.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)  # what the host writes
    >>> data.nzValues.shape == lhs.getNzValuesTensor().shape
    True
    """
    name = debug_name(debugContext, "sparseLHS")
    settings(options, name, MATMUL)
    plan = sparse_plan(graph.target, params, inputType, options, name)
    return add_buckets(graph, plan, name)


@library_call("POPSPARSE")
def createSparseDenseMatMulRHS(
    graph: Graph,
    inputType: Type,
    params: MatMulParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the dense operand [1, k, n] of a product, laid out as its plan wants it.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 2, 2, 1  # any, all, groups, m, k, n
    >>> params = dynamic.MatMulParams.createWithNzRatio(*sizes)
    >>> dynamic.createSparseDenseMatMulRHS(trial.graph, poplar.FLOAT, params).shape
    (1, 2, 1)
    """
    name = debug_name(debugContext, "denseRHS")
    settings(options, name, MATMUL)
    plan = sparse_plan(graph.target, params, inputType, options, name)
    dense = dense_operand(graph, plan, inputType, name, by="y", columns=plan.bounds("z"))
    return dense.expand([0])


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
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 2, 2, 1  # any, all, groups, m, k, n
    >>> params = dynamic.MatMulParams.createWithNzRatio(*sizes)
    >>> lhs = dynamic.createSparseDenseMatMulLHS(trial.graph, poplar.FLOAT, params)
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> partitioner = dynamic.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)
    >>> _ = trial.write(lhs.getMetaInfoTensor(), data.metaInfo)
    >>> _ = trial.write(lhs.getNzValuesTensor(), data.nzValues)
    >>> x = trial.tensor([[[1.0], [10.0]]])
    >>> trial.values(dynamic.sparseDenseMatMul(trial.graph, lhs, x, trial.prog))
    [[[3.0], [40.0]]]
    """
    name = debug_name(debugContext, "sparseDenseMatMul")
    settings(options, name, MATMUL)
    plan = lhs.plan(name)
    dense = dense_matrix(rhs, name)
    dense = dense.transpose() if transposeRHS else dense
    out = multiply(graph, lhs, plan, dense, prog, name, transpose=transposeLHS)
    return out.expand([0])


@library_call("POPSPARSE")
def createFullyConnectedWeights(
    graph: Graph,
    inputType: Type,
    params: FullyConnectedParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> SparseTensor:
    """Add sparse weights [outputs, inputs], empty until the host writes their buckets.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> weights = dynamic.createFullyConnectedWeights(trial.graph, poplar.FLOAT, params)
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> partitioner = dynamic.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)  # what the host writes
    >>> data.nzValues.shape == weights.getNzValuesTensor().shape
    True
    """
    name = debug_name(debugContext, "weights")
    plan = sparse_plan(graph.target, params, inputType, options, name)
    return add_buckets(graph, plan, name)


@library_call("POPSPARSE")
def createFullyConnectedInput(
    graph: Graph,
    inputType: Type,
    params: FullyConnectedParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add activations [batch, inputs], laid out as the plan wants them.

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> dynamic.createFullyConnectedInput(trial.graph, poplar.FLOAT, params).shape
    (1, 2)
    """
    name = debug_name(debugContext, "input")
    plan = sparse_plan(graph.target, params, inputType, options, name)
    dense = dense_operand(graph, plan, inputType, name, by="y", columns=plan.bounds("z"))
    return dense.transpose()


def _layer(
    weights: SparseTensor, params: FullyConnectedParams, options: Options, name: str
) -> SparsePlan:
    """Return the plan of weights; raises poplibs_error where it is another layer's."""
    settings(options, name, FULLY_CONNECTED)
    plan = weights.plan(name)
    if plan.params != params:
        raise poplibs_error(f"{name}: weights of another layer: {plan.params}, not {params}")
    return plan


@library_call("POPSPARSE")
def fullyConnectedFwd(
    graph: Graph,
    weights: SparseTensor,
    activations: Tensor,
    fcParams: FullyConnectedParams,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Multiply activations [batch, inputs] by sparse weights; gives [batch, outputs].

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> weights = dynamic.createFullyConnectedWeights(trial.graph, poplar.FLOAT, params)
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> partitioner = dynamic.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)
    >>> _ = trial.write(weights.getMetaInfoTensor(), data.metaInfo)
    >>> _ = trial.write(weights.getNzValuesTensor(), data.nzValues)
    >>> operands = weights, trial.tensor([[1.0, 10.0]]), params, trial.prog
    >>> trial.values(dynamic.fullyConnectedFwd(trial.graph, *operands))
    [[3.0, 40.0]]
    """
    name = debug_name(debugContext, "fullyConnectedFwd")
    plan = _layer(weights, fcParams, options, name)
    dense = activations.transpose()
    return multiply(graph, weights, plan, dense, prog, name, transpose=False).transpose()


@library_call("POPSPARSE")
def fullyConnectedGradA(
    graph: Graph,
    weights: SparseTensor,
    gradients: Tensor,
    fcParams: FullyConnectedParams,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Return the gradient of the activations [batch, inputs] out of [batch, outputs].

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> weights = dynamic.createFullyConnectedWeights(trial.graph, poplar.FLOAT, params)
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> partitioner = dynamic.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)
    >>> _ = trial.write(weights.getMetaInfoTensor(), data.metaInfo)
    >>> _ = trial.write(weights.getNzValuesTensor(), data.nzValues)
    >>> operands = weights, trial.tensor([[1.0, 10.0]]), params, trial.prog
    >>> trial.values(dynamic.fullyConnectedGradA(trial.graph, *operands))
    [[3.0, 40.0]]
    """
    name = debug_name(debugContext, "fullyConnectedGradA")
    plan = _layer(weights, fcParams, options, name)
    dense = gradients.transpose()
    return multiply(graph, weights, plan, dense, prog, name, transpose=True).transpose()


@library_call("POPSPARSE")
def fullyConnectedSparseGradW(
    graph: Graph,
    sparsityMetaInfo: Tensor,
    gradA: Tensor,
    activations: Tensor,
    fcParams: FullyConnectedParams,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Return the gradients of the non-zeros, in the order of `getNzValuesTensor()`.

    `gradA` [batch, outputs] are gradients of the outputs, `activations` are [batch, inputs].

    >>> from simulator import poplar, popsparse
    >>> from simulator.trial import Trial
    >>> trial, dynamic = Trial(), popsparse.dynamic
    >>> sizes = dynamic.SparsityParams(), 1.0, 1, 1, 2, 2  # any, all, batch, groups, in, out
    >>> params = dynamic.FullyConnectedParams.createWithNzRatio(*sizes)
    >>> weights = dynamic.createFullyConnectedWeights(trial.graph, poplar.FLOAT, params)
    >>> matrix = popsparse.CSRMatrix([3.0, 4.0], [0, 1], [0, 1, 2])  # a diagonal
    >>> partitioner = dynamic.Partitioner(params, poplar.FLOAT, trial.graph.target)
    >>> data = partitioner.createSparsityDataImpl(matrix)
    >>> _ = trial.write(weights.getMetaInfoTensor(), data.metaInfo)
    >>> _ = trial.write(weights.getNzValuesTensor(), data.nzValues)
    >>> gradient, x = trial.tensor([[1.0, 10.0]]), trial.tensor([[2.0, 5.0]])
    >>> operands = weights.getMetaInfoTensor(), gradient, x, params, trial.prog
    >>> values = trial.values(dynamic.fullyConnectedSparseGradW(trial.graph, *operands))
    >>> of_weights = dynamic.SparsityDataImpl(data.metaInfo, values)
    >>> partitioner.sparsityDataImplToCSRMatrix(of_weights).nzValues.tolist()  # 1 * 2, 10 * 5
    [2.0, 50.0]
    """
    name = debug_name(debugContext, "fullyConnectedSparseGradW")
    plan = sparse_plan(graph.target, fcParams, activations.dtype, options, name)
    length = plan.x * plan.y * (1 + 2 * plan.room)
    if sparsityMetaInfo.shape != (length,) or sparsityMetaInfo.dtype != UNSIGNED_SHORT:
        needed = f"{UNSIGNED_SHORT}[{length}]"
        raise poplibs_error(f"{name}: meta-information {sparsityMetaInfo!r}; {needed} is needed")
    batch = gradA.dim(0)
    if gradA.shape != (batch, fcParams.rows) or activations.shape != (batch, fcParams.inner):
        raise poplibs_error(
            f"{name}: gradients {gradA!r} and activations {activations!r}; [batch, "
            f"{fcParams.rows}] and [batch, {fcParams.inner}] are needed"
        )
    both = (gradA.transpose(), activations.transpose())
    return gradient_of_nonzeros(graph, sparsityMetaInfo, plan, *both, prog, name)
