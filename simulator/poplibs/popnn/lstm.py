"""The long short-term memory layer, forward (popnn/Lstm.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Sequence as Program
from simulator.graph.tensor import Tensor, concat
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.popnn import rnn
from simulator.poplibs.popnn.activations import NonLinearityType, nonLinearity
from simulator.poplibs.popnn.rnn import Options, RnnParams
from simulator.poplibs.popops.regions import debug_name


class BasicLstmCellUnit(IntEnum):
    """The units of a cell."""

    BASIC_LSTM_CELL_FORGET_GATE = 0
    BASIC_LSTM_CELL_INPUT_GATE = 1
    BASIC_LSTM_CELL_CANDIDATE = 2
    BASIC_LSTM_CELL_OUTPUT_GATE = 3


UNITS = len(BasicLstmCellUnit)


def getDefaultBasicLstmCellOrder() -> list[BasicLstmCellUnit]:
    """Give the order of the units in the weights: forget, input, candidate, output."""
    return list(BasicLstmCellUnit)


@dataclass(slots=True)
class LstmParams:
    """A layer: its sizes, and what it does.

    `cellOrder` is the order of the units in weights and biases. The output is that of all steps, or
    without `outputFullSequence` that of the last one.
    """

    dataType: Type
    bs: int
    timeSteps: int
    layerSizes: Sequence[int]
    activation: NonLinearityType = NonLinearityType.TANH
    recurrentActivation: NonLinearityType = NonLinearityType.SIGMOID
    outputFullSequence: bool = True
    calcInputGradients: bool = True
    preserveFinalState: bool = False
    cellOrder: Sequence[BasicLstmCellUnit] = field(default_factory=getDefaultBasicLstmCellOrder)

    @property
    def rnn(self) -> RnnParams:
        """Give the sizes."""
        return RnnParams(self.dataType, self.bs, self.timeSteps, self.layerSizes)


class LstmState(NamedTuple):
    """What goes from step to step: [batch, outputs] each."""

    output: Tensor
    cellState: Tensor


class LstmWeights(NamedTuple):
    """Weights [units, inputs, outputs] and [units, outputs, outputs], biases [units, outputs]."""

    inputWeights: Tensor
    outputWeights: Tensor
    biases: Tensor


@library_call("POPNN")
def createInput(
    graph: Graph,
    params: LstmParams,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Add the inputs [timeSteps, batch, inputs]."""
    name = debug_name(debugContext, "input")
    return rnn.create_input(graph, params.rnn, UNITS, name, options)


@library_call("POPNN")
def createInitialOutput(
    graph: Graph,
    params: LstmParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the output before the first step, [batch, outputs]."""
    return rnn.create_state(graph, params.rnn, debug_name(debugContext, "initialOutput"))


@library_call("POPNN")
def createInitialCellState(
    graph: Graph,
    params: LstmParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add what the cell holds before the first step, [batch, outputs]."""
    return rnn.create_state(graph, params.rnn, debug_name(debugContext, "initialCellState"))


@library_call("POPNN")
def createInitialState(
    graph: Graph,
    params: LstmParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> LstmState:
    """Add the output and what the cell holds before the first step."""
    output = createInitialOutput(graph, params, debugContext, options, cache)
    return LstmState(output, createInitialCellState(graph, params, debugContext, options, cache))


@library_call("POPNN")
def zeroInitialState(
    graph: Graph, initialState: LstmState, prog: Program, debugContext: str = ""
) -> None:
    """Set a state to zero."""
    for tensor in initialState:
        popops.zero(graph, tensor, prog, debug_name(debugContext, "initState"))


@library_call("POPNN")
def createWeightsKernel(
    graph: Graph,
    params: LstmParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor]:
    """Add the weights of inputs and outputs, laid out for the products of the steps."""
    return rnn.create_kernel(graph, params.rnn, UNITS, debugContext or "lstm", options)


@library_call("POPNN")
def createWeightsBiases(
    graph: Graph,
    params: LstmParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the biases [units, outputs]."""
    return rnn.create_biases(graph, params.rnn, [UNITS], debug_name(debugContext, "biases"))


@library_call("POPNN")
def createWeights(
    graph: Graph,
    params: LstmParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> LstmWeights:
    """Add all weights and biases."""
    kernel = createWeightsKernel(graph, params, debugContext, options, cache)
    biases = createWeightsBiases(graph, params, debugContext, options, cache)
    return LstmWeights(*kernel, biases)


@library_call("POPNN")
def lstmFwd(
    graph: Graph,
    params: LstmParams,
    stateInit: LstmState,
    in_: Tensor,
    weights: LstmWeights,
    intermediates: list[Tensor] | None,
    fwdProg: Program,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor]:
    """Run the layer over all steps; give its output and what the cell holds in the end.

    f, i, o = recurrentActivation(x W + h U + b), g = activation(x W + h U + b) by their units;
    cell = f * cell + i * g, h = o * activation(cell). `in_` is PopLibs' `in`. To a list of
    `intermediates` the values of each step are added: [timeSteps, 5, batch, outputs], the units'
    and the activated cell's.
    """
    name = debug_name(debugContext, "lstmFwd")
    order = _order(params, name)
    _check_tensors(name, params.rnn, stateInit, in_, weights)
    values = rnn.read_options(options, name)
    with graph.debug_scope(name, "popnn"):
        state = LstmState(*(rnn.copy_of(graph, tensor, fwdProg, name) for tensor in stateInit))
        kernels = rnn.as_matrix(weights[0], order), rnn.as_matrix(weights[1], order)
        biases = concat([weights.biases[unit] for unit in order], 0)
        sums = rnn.sums_of(graph, in_, kernels, biases, values, fwdProg, name)
        outputs = rnn.sequence_like(graph, state.output, params.timeSteps, f"{name}/outputs")
        kept = rnn.Kept(graph, intermediates, params.timeSteps, f"{name}/intermediates")

        def step(index: Tensor, prog: Program) -> None:
            units = sums.of(sums.take(index, prog), state.output, prog)
            made = _cell(graph, params, units, state, prog, name)
            if params.outputFullSequence:
                rnn.keep_step(graph, outputs, state.output, index, prog, f"{name}/outputs")
            kept.add(made, index, prog)

        rnn.add_loop(graph, params.timeSteps, fwdProg, name, step)
    return (outputs if params.outputFullSequence else state.output), state.cellState


def _order(params: LstmParams, name: str) -> list[int]:
    """Give where each unit stands in the weights."""
    given = [BasicLstmCellUnit(unit) for unit in params.cellOrder]
    if sorted(given) != list(BasicLstmCellUnit):
        raise poplibs_error(f"{name}: cell order {given}; each of the {UNITS} units is needed once")
    return [given.index(unit) for unit in BasicLstmCellUnit]


def _check_tensors(
    name: str, params: RnnParams, state: LstmState, inputs: Tensor, weights: LstmWeights
) -> None:
    params.check(name)
    dtype, batch, outputs = params.dataType, params.batchSize, params.outputs
    rnn.expect(name, inputs, dtype, params.timeSteps, batch, params.inputs)
    for tensor in state:
        rnn.expect(name, tensor, dtype, batch, outputs)
    rnn.expect(name, weights.inputWeights, dtype, UNITS, params.inputs, outputs)
    rnn.expect(name, weights.outputWeights, dtype, UNITS, outputs, outputs)
    rnn.expect(name, weights.biases, dtype, UNITS, outputs)


def _cell(
    graph: Graph, params: LstmParams, sums: Tensor, state: LstmState, prog: Program, name: str
) -> Tensor:
    """Add one step, which changes the state; give the units' values and the activated cell's."""
    size = params.rnn.outputs
    units = [sums[:, size * unit : size * (unit + 1)] for unit in range(UNITS)]
    forget, given, candidate, output = units
    gates = concat([forget, given, output], 1)
    activated = [(params.recurrentActivation, gates), (params.activation, candidate)]
    rnn.activate(graph, activated, prog, name)
    values = concat([state.cellState, candidate], 1)
    parts = popops.mul(graph, concat([forget, given], 1), values, prog, f"{name}/UpdateCell")
    both = (parts[:, :size], parts[:, size:])
    popops.addWithOutput(graph, *both, state.cellState, prog, f"{name}/AddCellCand")
    shown = nonLinearity(graph, params.activation, state.cellState, prog, f"{name}/Cell")
    popops.mulWithOutput(graph, output, shown, state.output, prog, f"{name}/OutputGate")
    return concat([tensor.expand([0]) for tensor in (*units, shown)], 0)
