"""What the backward passes of recurrent layers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.program import Copy, Execute
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs import poplin, popops
from simulator.poplibs.popnn import rnn
from simulator.poplibs.popnn.nonlinearities.activations import (
    NonLinearityType,
    nonLinearityInputGradient,
)
from simulator.poplibs.popnn.rnn import RnnParams

Values = Mapping[str, OptionValue]
Activated = tuple[NonLinearityType, Tensor, Tensor]


def gradients_of(
    graph: Graph, activated: Sequence[Activated], prog: Program, name: str
) -> list[Tensor]:
    """Return the gradients of inputs of non-linearities, by their outputs and those's gradients.

    Those that take one step are in one compute set.
    """
    compute_set = graph.addComputeSet(f"{name}/NonLinearityGrad")
    gradients_in = [
        nonLinearityInputGradient(
            graph, kind, act, gradient, prog if _in_steps(kind) else compute_set, name
        )
        for kind, act, gradient in activated
    ]
    if not all(_in_steps(kind) for kind, _, _ in activated):
        prog.add(Execute(compute_set))
    return gradients_in


def _in_steps(kind: NonLinearityType) -> bool:
    return kind is NonLinearityType.HARD_SIGMOID


def arranged_weights(
    graph: Graph, params: RnnParams, matrix: Tensor, values: Values, prog: Program, name: str
) -> Tensor:
    """Copy the transposed weights [units times outputs, columns] to where each step reads them."""
    dtype, rows = params.dataType, (params.batchSize, matrix.dim(0))
    options = rnn.product_options(values, rnn.BACKWARD)
    rhs = poplin.createMatMulInputRHS(graph, dtype, dtype, rows, matrix.shape, name, options)
    source = popops.rearrange.regroupIfBeneficial(graph, matrix, rhs, prog, name)
    prog.add(Copy(source, rhs, name=name))
    return rhs


def product(
    graph: Graph,
    params: RnnParams,
    gradients: Tensor,
    weights: Tensor,
    group: int,
    values: Values,
    prog: Program,
    name: str,
) -> Tensor:
    """Multiply gradients [batch, units times outputs] by arranged weights; lay them in groups."""
    options = rnn.product_options(values, rnn.BACKWARD)
    gradient = poplin.matMul(graph, gradients, weights, prog, None, name, options)
    return rnn.grouped_transpose(graph, gradient, group, prog, name)


def accumulator_type(params: RnnParams, values: Values) -> Type:
    """Return the type of the sums of the weights' gradients."""
    types = {"float": FLOAT, "half": HALF}
    return types.get(str(values["weightAccumulatorsType"]), params.dataType)


def accumulate(
    graph: Graph,
    total: Tensor,
    left: Tensor,
    gradients: Tensor,
    values: Values,
    prog: Program,
    name: str,
) -> None:
    """Add the product of a step's inputs [rows, batch] and gradients to the weights' gradient."""
    options = rnn.product_options(values, rnn.UPDATE)
    delta = poplin.matMul(graph, left, gradients, prog, total.dtype, name, options)
    popops.scaledAddTo(graph, total, delta, 1.0, prog, name)


def add_biases(graph: Graph, total: Tensor, gradients: Tensor, prog: Program, name: str) -> None:
    """Add the gradients of a step to those of the biases; the batch is summed after the loop."""
    if total.dtype != gradients.dtype:
        gradients = popops.cast(graph, gradients, total.dtype, prog, name)
    popops.addInPlace(graph, total, gradients, prog, name)


def before_each(
    graph: Graph, params: RnnParams, first: Tensor, outputs: Tensor, prog: Program, name: str
) -> Tensor:
    """View the state before each step: the first one, then the outputs but the last."""
    copy = rnn.laid_out(graph, params, first.expand([0]), prog, name)
    return concat([copy, outputs[: params.timeSteps - 1]], 0) if params.timeSteps > 1 else copy


def zeros(graph: Graph, params: RnnParams, prog: Program, name: str) -> Tensor:
    """Add a state of zeros."""
    state = rnn.create_state(graph, params, name)
    popops.zero(graph, state, prog, name)
    return state
