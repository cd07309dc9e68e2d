"""The gated recurrent unit, forward (popnn/Gru.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensor import Tensor, concat
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs import poplin, popops
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.popnn import rnn
from simulator.poplibs.popnn.activations import NonLinearityType
from simulator.poplibs.popnn.rnn import Options, RnnParams, Sums
from simulator.poplibs.popops.expr import PlaceHolder
from simulator.poplibs.popops.regions import debug_name


class BasicGruCellUnit(IntEnum):
    """The units of a cell."""

    BASIC_GRU_CELL_RESET_GATE = 0
    BASIC_GRU_CELL_UPDATE_GATE = 1
    BASIC_GRU_CELL_CANDIDATE = 2


UNITS = len(BasicGruCellUnit)
_1, _2, _3 = PlaceHolder(1), PlaceHolder(2), PlaceHolder(3)


def getDefaultBasicGruCellOrder() -> list[BasicGruCellUnit]:
    """Give the order of the units in the weights: reset, update, candidate."""
    return list(BasicGruCellUnit)


@dataclass(slots=True)
class GruParams:
    """A layer: its sizes, and what it does.

    `cellOrder` is the order of the units in weights and biases. With `resetAfter` the reset gate
    acts on the product of the state, which has biases of its own. The output is that of all steps,
    or without `outputFullSequence` that of the last one.
    """

    dataType: Type
    batchSize: int
    timeSteps: int
    layerSizes: Sequence[int]
    activation: NonLinearityType = NonLinearityType.TANH
    recurrentActivation: NonLinearityType = NonLinearityType.SIGMOID
    outputFullSequence: bool = True
    calcInputGradients: bool = True
    cellOrder: Sequence[BasicGruCellUnit] = field(default_factory=getDefaultBasicGruCellOrder)
    resetAfter: bool = False

    @property
    def rnn(self) -> RnnParams:
        """Give the sizes."""
        return RnnParams(self.dataType, self.batchSize, self.timeSteps, self.layerSizes)

    @property
    def bias_shape(self) -> list[int]:
        """Give the shape of the biases without the outputs."""
        return [UNITS, 2] if self.resetAfter else [UNITS]


class GruWeights(NamedTuple):
    """Weights [units, inputs, outputs] and [units, outputs, outputs], biases [units, outputs].

    With `resetAfter` biases are [units, 2, outputs]: of the inputs, and of the state.
    """

    inputWeights: Tensor
    outputWeights: Tensor
    biases: Tensor


@library_call("POPNN")
def createInput(
    graph: Graph,
    params: GruParams,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Add the inputs [timeSteps, batch, inputs]."""
    name = debug_name(debugContext, "input")
    return rnn.create_input(graph, params.rnn, UNITS, name, options)


@library_call("POPNN")
def createInitialState(
    graph: Graph,
    params: GruParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the output before the first step, [batch, outputs]."""
    return rnn.create_state(graph, params.rnn, debug_name(debugContext, "initialOutput"))


@library_call("POPNN")
def createWeightsKernel(
    graph: Graph,
    params: GruParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor]:
    """Add the weights of inputs and outputs, laid out for the products of the steps."""
    return rnn.create_kernel(graph, params.rnn, UNITS, debugContext or "gru", options)


@library_call("POPNN")
def createWeightsBiases(
    graph: Graph,
    params: GruParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the biases."""
    name = debug_name(debugContext, "biases")
    return rnn.create_biases(graph, params.rnn, params.bias_shape, name)


@library_call("POPNN")
def createWeights(
    graph: Graph,
    params: GruParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> GruWeights:
    """Add all weights and biases."""
    kernel = createWeightsKernel(graph, params, debugContext, options, cache)
    biases = createWeightsBiases(graph, params, debugContext, options, cache)
    return GruWeights(*kernel, biases)


@library_call("POPNN")
def gruFwd(
    graph: Graph,
    params: GruParams,
    stateInit: Tensor,
    in_: Tensor,
    weights: GruWeights,
    intermediates: list[Tensor] | None,
    fwdProg: Program,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Run the layer over all steps; give its output.

    r, u = recurrentActivation(x W + h U + b) by their units, c = activation(x W + (r * h) U + b),
    with `resetAfter` activation(x W + b + r * (h U + b')); h = u * h + (1 - u) * c. `in_` is
    PopLibs' `in`. To a list of `intermediates` the units' values of each step are added:
    [timeSteps, 3, batch, outputs].
    """
    name = debug_name(debugContext, "gruFwd")
    order = _order(params, name)
    _check_tensors(name, params, stateInit, in_, weights)
    values = rnn.read_options(options, name)
    with graph.debug_scope(name, "popnn"):
        layer = _layer_of(graph, params, in_, _sorted(weights, order), values, fwdProg, name)
        state = rnn.copy_of(graph, stateInit, fwdProg, name)
        outputs = rnn.sequence_like(graph, state, params.timeSteps, f"{name}/outputs")
        kept = rnn.Kept(graph, intermediates, params.timeSteps, f"{name}/intermediates")

        def step(index: Tensor, prog: Program) -> None:
            made = _cell(layer, state, index, prog)
            if params.outputFullSequence:
                rnn.keep_step(graph, outputs, state, index, prog, f"{name}/outputs")
            kept.add(made, index, prog)

        rnn.add_loop(graph, params.timeSteps, fwdProg, name, step)
    return outputs if params.outputFullSequence else state


def _order(params: GruParams, name: str) -> list[int]:
    """Give where each unit stands in the weights."""
    given = [BasicGruCellUnit(unit) for unit in params.cellOrder]
    if sorted(given) != list(BasicGruCellUnit):
        raise poplibs_error(f"{name}: cell order {given}; each of the {UNITS} units is needed once")
    return [given.index(unit) for unit in BasicGruCellUnit]


def _sorted(weights: GruWeights, order: list[int]) -> GruWeights:
    """Put the units into their usual order."""
    return GruWeights(*(concat([part[u].expand([0]) for u in order], 0) for part in weights))


def _check_tensors(
    name: str, params: GruParams, state: Tensor, inputs: Tensor, weights: GruWeights
) -> None:
    sizes = params.rnn
    sizes.check(name)
    dtype, batch, outputs = sizes.dataType, sizes.batchSize, sizes.outputs
    rnn.expect(name, inputs, dtype, sizes.timeSteps, batch, sizes.inputs)
    rnn.expect(name, state, dtype, batch, outputs)
    rnn.expect(name, weights.inputWeights, dtype, UNITS, sizes.inputs, outputs)
    rnn.expect(name, weights.outputWeights, dtype, UNITS, outputs, outputs)
    rnn.expect(name, weights.biases, dtype, *params.bias_shape, outputs)


@dataclass(frozen=True, slots=True)
class _Layer:
    """The sums of the gates and of the candidate; with `resetAfter` what the state adds."""

    graph: Graph
    params: GruParams
    gates: Sums
    candidate: Sums
    state_kernel: Tensor
    state_biases: Tensor
    name: str


def _layer_of(
    graph: Graph,
    params: GruParams,
    inputs: Tensor,
    weights: GruWeights,
    values: dict[str, OptionValue],
    prog: Program,
    name: str,
) -> _Layer:
    """Prepare the products of a layer whose units are in their usual order."""
    biases, state_biases = weights.biases, weights.biases
    if params.resetAfter:
        own, state_biases = weights.biases[:, 0], weights.biases[:, 1]
        both = popops.add(graph, own[:2], state_biases[:2], prog, f"{name}/Biases")
        biases = concat([both, own[2].expand([0])], 0)

    def sums(units: list[int], part: Tensor, what: str) -> Sums:
        first, second = (rnn.as_matrix(kernel, units) for kernel in weights[:2])
        flat = part.flatten()
        return rnn.sums_of(graph, inputs, (first, second), flat, values, prog, f"{name}/{what}")

    gates = sums([0, 1], biases[:2], "Gates")
    candidate = sums([2], biases[2], "Candidate")
    kernel = rnn.as_matrix(weights.outputWeights, [2])
    return _Layer(graph, params, gates, candidate, kernel, state_biases[2], name)


def _cell(layer: _Layer, state: Tensor, index: Tensor, prog: Program) -> Tensor:
    """Add one step, which changes the state; give the units' values."""
    graph, params, name = layer.graph, layer.params, layer.name
    taken = layer.gates.take(index, prog)
    gates = layer.gates.of(taken, state, prog)
    rnn.activate(graph, [(params.recurrentActivation, gates)], prog, name)
    reset, update = gates[:, : params.rnn.outputs], gates[:, params.rnn.outputs :]
    if layer.candidate.before:
        taken = layer.candidate.take(index, prog)
    if params.resetAfter:
        candidate = _reset_after(layer, taken, state, reset, prog)
    else:
        part = popops.mul(graph, reset, state, prog, f"{name}/Reset")
        candidate = layer.candidate.of(taken, part, prog)
    rnn.activate(graph, [(params.activation, candidate)], prog, name)
    made = popops.map(
        graph, _3 + _2 * (_1 - _3), [state, update, candidate], prog, f"{name}/UpdateState"
    )
    prog.add(Copy(made, state, name=f"{name}/UpdateState"))
    return concat([tensor.expand([0]) for tensor in (reset, update, candidate)], 0)


def _reset_after(
    layer: _Layer, taken: Tensor, state: Tensor, reset: Tensor, prog: Program
) -> Tensor:
    """Give what the inputs add to the candidate, and the reset part of what the state adds."""
    graph, sums, name = layer.graph, layer.candidate, f"{layer.name}/ResetAfter"
    matMul, options = poplin.matMul, sums.options
    candidate = taken
    if not sums.before:
        inputs = sums.kernel[: taken.dim(1)]
        candidate = matMul(graph, taken, inputs, prog, None, f"{name}/Inputs", options)
        rnn.add_biases(graph, candidate, sums.biases, prog, name)
    product = matMul(graph, state, layer.state_kernel, prog, None, f"{name}/State", options)
    rnn.add_biases(graph, product, layer.state_biases, prog, name)
    popops.mapInPlace(graph, _1 * _2 + _3, [product, reset, candidate], prog, name)
    return product
