"""The long short-term memory layer, forward (popnn/Lstm.hpp)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from importlib import import_module
from typing import Any, NamedTuple

from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.popnn import rnn
from simulator.poplibs.popnn.nonlinearities.activations import NonLinearityType, nonLinearity
from simulator.poplibs.popnn.recurrence import gated
from simulator.poplibs.popnn.rnn import Options, RnnParams, Sums
from simulator.poplibs.popnn.time_steps import Mask, params_with_lengths
from simulator.poplibs.popops.expr import Expr, PlaceHolder, Sigmoid, Tanh
from simulator.poplibs.popops.regions import debug_name


class BasicLstmCellUnit(IntEnum):
    """The units of a cell."""

    BASIC_LSTM_CELL_FORGET_GATE = 0
    BASIC_LSTM_CELL_INPUT_GATE = 1
    BASIC_LSTM_CELL_CANDIDATE = 2
    BASIC_LSTM_CELL_OUTPUT_GATE = 3


UNITS = len(BasicLstmCellUnit)
KEPT = 6  # values of a step that its backward pass needs
_1, _2, _3 = PlaceHolder(1), PlaceHolder(2), PlaceHolder(3)
# Activations of the cell that take one vertex with the product by the output gate.
FUSED: dict[NonLinearityType, Callable[[Expr], Expr]] = {
    NonLinearityType.TANH: Tanh,
    NonLinearityType.SIGMOID: Sigmoid,
}


def getDefaultBasicLstmCellOrder() -> list[BasicLstmCellUnit]:
    """Return the order of the units in the weights: forget, input, candidate, output.

    >>> from simulator import popnn
    >>> first, *_ = popnn.lstm.getDefaultBasicLstmCellOrder()
    >>> first.name
    'BASIC_LSTM_CELL_FORGET_GATE'
    """
    return list(BasicLstmCellUnit)


@params_with_lengths
@dataclass(slots=True)
class LstmParams:
    """A layer: its sizes, and what it does.

    `cellOrder` is the order of the units in weights and biases. The output is that of all steps, or
    without `outputFullSequence` that of the last one. Behind the end of a sample, by its
    `varTimeSteps`, outputs are zeros, and the cell, unless its state is preserved.
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
    varTimeSteps: Tensor | None = None

    @property
    def rnn(self) -> RnnParams:
        """Return the sizes."""
        return RnnParams(
            self.dataType, self.bs, self.timeSteps, self.layerSizes, varTimeSteps=self.varTimeSteps
        )


class LstmState(NamedTuple):
    """What goes from step to step: [batch, outputs] each."""

    output: Tensor
    cellState: Tensor


class LstmWeights(NamedTuple):
    """Weights [units, inputs, outputs] and [units, outputs, outputs], biases [units, outputs]."""

    inputWeights: Tensor
    outputWeights: Tensor
    biases: Tensor


LAYER: gated.Layer[LstmParams] = gated.Layer(
    "lstm", BasicLstmCellUnit, products=lambda _: [UNITS], bias_shape=lambda _: [UNITS]
)
createInput = gated.input_of(LAYER)
createInitialOutput = gated.state_of(LAYER, "createInitialOutput", "initialOutput")
createInitialCellState = gated.state_of(LAYER, "createInitialCellState", "initialCellState")
createWeightsKernel, createWeightsBiases, createWeights = gated.weights_of(LAYER, LstmWeights)


@library_call("POPNN")
def createInitialState(
    graph: Graph,
    params: LstmParams,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> LstmState:
    """Add the output and what the cell holds before the first step.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.lstm.LstmParams(poplar.FLOAT, 4, 1, [2, 3])  # 4 samples, 3 outputs
    >>> [tensor.shape for tensor in popnn.lstm.createInitialState(trial.graph, params)]
    [(4, 3), (4, 3)]
    """
    output = createInitialOutput(graph, params, debugContext, options, cache)
    return LstmState(output, createInitialCellState(graph, params, debugContext, options, cache))


@library_call("POPNN")
def zeroInitialState(
    graph: Graph, initialState: LstmState, prog: Program, debugContext: str = ""
) -> None:
    """Set a state to zero.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> state = popnn.lstm.LstmState(trial.tensor([[1.0]]), trial.tensor([[2.0]]))
    >>> popnn.lstm.zeroInitialState(trial.graph, state, trial.prog)
    >>> trial.values(*state)
    [[[0.0]], [[0.0]]]
    """
    for tensor in initialState:
        popops.zero(graph, tensor, prog, debug_name(debugContext, "initState"))


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
    `intermediates` the values of each step are added: [timeSteps, 6, batch, outputs], the units'
    (forget, input, candidate, output), the activated cell's and the cell's before the step.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.lstm.LstmParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> state = popnn.lstm.LstmState(trial.tensor([[0.0]]), trial.tensor([[2.0]]))
    >>> zeros = [[[0.0]]] * 4, [[[0.0]]] * 4, [[0.0]] * 4  # each gate is half open, no new content
    >>> weights = popnn.lstm.LstmWeights(*map(trial.tensor, zeros))
    >>> x = trial.tensor([[[1.0]]])
    >>> operands = state, x, weights, None, trial.prog
    >>> out, cell = popnn.lstm.lstmFwd(trial.graph, params, *operands)
    >>> trial.values(cell, out)  # 0.5 * 2, and 0.5 * tanh of that
    [[[1.0]], [[[0.3807...]]]]
    """
    name = debug_name(debugContext, "lstmFwd")
    order = gated.order_of(LAYER, params, name)
    check_tensors(name, params.rnn, stateInit, in_, weights)
    values = rnn.read_options(options, name)
    operands = (stateInit, in_, weights, intermediates)
    with graph.debug_scope(name, "popnn"):
        return _forward(graph, params, order, operands, values, fwdProg, name)


def _forward(
    graph: Graph,
    params: LstmParams,
    order: list[int],
    operands: tuple[LstmState, Tensor, LstmWeights, list[Tensor] | None],
    values: Mapping[str, OptionValue],
    fwdProg: Program,
    name: str,
) -> tuple[Tensor, Tensor]:
    """Add the loop over all steps, and what comes before it."""
    stateInit, in_, weights, intermediates = operands
    sizes, inputs = params.rnn, in_
    if not values["preCalcWeights"]:
        inputs = rnn.laid_out(graph, sizes, in_, fwdProg, f"{name}/prevLayerActsCopy")
    outputs = rnn.create_sequence(graph, sizes, sizes.outputs, sizes.timeSteps, f"{name}/output")
    kernels = rnn.as_matrix(weights.inputWeights), rnn.as_matrix(weights.outputWeights)
    sums = rnn.sums_of(graph, inputs, kernels, weights.biases, values, fwdProg, name)
    history = None
    if intermediates is not None:
        history = rnn.Kept.of(graph, sizes, KEPT, fwdProg, f"{name}/fwdIntermediatesSeq")
        intermediates.append(history.sequence)
    state = LstmState(*(rnn.copy_of(graph, sizes, tensor, fwdProg, name) for tensor in stateInit))
    cell = _Cell(graph, params, order, sums, state, name)
    lengths = sizes.lengths(graph, fwdProg, name)
    if lengths and params.outputFullSequence:
        popops.zero(graph, outputs, fwdProg, f"{name}/zeroOutput")

    def step(index: Tensor, prog: Program) -> None:
        step_sums = sums.take(index, prog)
        mask = lengths.mask(index, prog) if lengths else None
        if history or mask:
            kept = cell.step(step_sums, prog, mask)
            if history:
                history.add(kept, index, prog)
            cell.finish(prog, mask)
        else:
            cell.step_in_place(step_sums, prog)
        if params.outputFullSequence:
            rnn.keep_step(graph, outputs, state.output, index, prog, f"{name}/outputs")

    rnn.add_loop(graph, params.timeSteps, fwdProg, name, step, lengths=lengths)
    return (outputs if params.outputFullSequence else state.output), state.cellState


def check_tensors(
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


@dataclass(slots=True)
class _Cell:
    """A step of a layer, which changes the state; `order` is where each unit stands."""

    graph: Graph
    params: LstmParams
    order: list[int]
    sums: Sums
    state: LstmState
    name: str
    after: Tensor | None = None

    def units(self, step_sums: Tensor, first: Tensor | None, prog: Program) -> list[Tensor]:
        """Return the activated units in their usual order; `first` may hold the output gate."""
        graph, name = self.graph, self.name
        parts = [graph.clone(self.state.cellState, f"{name}/Rearranged") for _ in self.order]
        if first is not None:
            parts[self.order[-1]] = first
        units = concat([part.expand([0]) for part in parts], 0)
        self.sums.write(step_sums, self.state.output, units, prog)
        forget, input_gate, candidate, output = (parts[place] for place in self.order)
        gates = concat([input_gate, forget, output], 0)
        params = self.params
        activated = [(params.recurrentActivation, gates), (params.activation, candidate)]
        rnn.activate(graph, activated, prog, name)
        return [forget, input_gate, candidate, output]

    def step_in_place(self, step_sums: Tensor, prog: Program) -> None:
        """Add a step of which nothing is kept."""
        graph, cell, name = self.graph, self.state.cellState, self.name
        forget, input_gate, candidate, output = self.units(step_sums, self.state.output, prog)
        both, gates = concat([cell, candidate], 0), concat([forget, input_gate], 0)
        popops.mulInPlace(graph, both, gates, prog, f"{name}/{{Forget + Input}}Gate")
        popops.addInPlace(graph, cell, candidate, prog, f"{name}/AddCellCand")
        function = FUSED.get(self.params.activation)
        if function is None:
            shown = nonLinearity(graph, self.params.activation, cell, prog, f"{name}/Cell")
            popops.mulInPlace(graph, output, shown, prog, f"{name}/CalcNextOutput")
        else:
            expression = _1 * function(_2)
            popops.mapInPlace(graph, expression, [output, cell], prog, f"{name}/CalcNextOutput")

    def step(self, step_sums: Tensor, prog: Program, mask: Mask | None = None) -> Tensor:
        """Add a step; return what a backward pass needs. The state changes in `finish`."""
        graph, cell, name = self.graph, self.state.cellState, self.name
        units = forget, input_gate, candidate, output = self.units(step_sums, None, prog)
        if mask:
            mask.zero_if_any(concat([unit.expand([0]) for unit in units], 0), prog)
        size = self.params.rnn.batchSize
        both, values = concat([forget, candidate], 0), concat([cell, input_gate], 0)
        product = popops.mul(graph, both, values, prog, f"{name}/{{Forget + Input}}Gate")
        after = product[:size]
        popops.addInPlace(graph, after, product[size:], prog, f"{name}/AddCellCand")
        shown = nonLinearity(graph, self.params.activation, after, prog, f"{name}/Cell")
        shown_output = popops.mul(graph, shown, output, prog, f"{name}/OutputGate")
        self.after = concat([shown_output, after], 0)
        return concat([tensor.expand([0]) for tensor in (*units, shown, cell)], 0)

    def finish(self, prog: Program, mask: Mask | None = None) -> None:
        """Replace the state by that after the step."""
        if self.after is not None and mask and self.params.preserveFinalState:
            batch, name = self.params.bs, f"{self.name}/preserveState"
            prog.add(Copy(self.after[:batch], self.state.output, name=name))
            operands = [self.state.cellState, self.after[batch:], mask.beyond.expand([1])]
            popops.mapInPlace(self.graph, _2 + _1 * _3, operands, prog, name)
        elif self.after is not None:
            prog.add(Copy(self.after, concat(list(self.state), 0), name=f"{self.name}/State"))


# What is built on this layer, under PopLibs' names; it is loaded when it is asked for.
_BUILT = {
    **dict.fromkeys(("lstmBwd", "lstmBwdWithWU", "lstmWU"), "recurrence.lstm_backward"),
    **{f"getBasicLstmCell{way}Flops": "flops" for way in ("Fwd", "Bwd", "Wu")},
}


def __getattr__(name: str) -> Any:
    if name not in _BUILT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"simulator.poplibs.popnn.{_BUILT[name]}"), name)
