"""The backward pass of the long short-term memory layer (popnn/Lstm.hpp)."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.logging import library_call, log
from simulator.poplibs import popops
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.popnn import lstm, rnn
from simulator.poplibs.popnn.lstm import KEPT, UNITS, LstmParams, LstmState, LstmWeights
from simulator.poplibs.popnn.recurrence import gated, rnn_backward
from simulator.poplibs.popnn.recurrence.rnn_backward import Values
from simulator.poplibs.popnn.rnn import Options
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import detectInnermostGrouping


@library_call("POPNN")
def lstmBwd(
    graph: Graph,
    params: LstmParams,
    prog: Program,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    lastCellStateGrad: LstmState | Tensor | None,
    inputGrad: list[Tensor] | None,
    bwdIntermediates: list[Tensor] | None,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> LstmState:
    """Return the gradients of the first state; add those of inputs and of units to lists.

    `fwdIntermediates` are what `lstmFwd` left, `outputGrad` the gradients of the layer's output,
    `lastCellStateGrad` that of the last cell, or of the last output and cell.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.lstm.LstmParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 4, [[[0.0]]] * 4, [[0.0]] * 4  # each gate is half open, no new content
    >>> weights = popnn.lstm.LstmWeights(*map(trial.tensor, zeros))
    >>> state = popnn.lstm.LstmState(trial.tensor([[0.0]]), trial.tensor([[2.0]]))
    >>> x, values = trial.tensor([[[1.0]]]), []
    >>> out, _ = popnn.lstm.lstmFwd(trial.graph, params, state, x, weights, values, trial.prog)
    >>> gradients = trial.tensor([[[0.0]]]), trial.tensor([[1.0]])  # of the output, the last cell
    >>> operands = state, *values, weights, x, out, *gradients, None, None
    >>> first = popnn.lstm.lstmBwd(trial.graph, params, trial.prog, *operands)
    >>> trial.values(first.cellState)  # what the forget gate lets through
    [[0.5]]
    """
    name = debug_name(debugContext, "lstmBwd")
    layer = _layer(graph, params, fwdStateInit, weights, input, name, options)
    with graph.debug_scope(name, "popnn"):
        state, units = layer.states(
            fwdIntermediates, weights, outputGrad, lastCellStateGrad, inputGrad, prog
        )
    if bwdIntermediates is not None:
        bwdIntermediates.append(units)
    return state


@library_call("POPNN")
def lstmWU(
    graph: Graph,
    params: LstmParams,
    prog: Program,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    bwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> LstmWeights:
    """Return the gradients of the weights, by those of the units, which `lstmBwd` left.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.lstm.LstmParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 4, [[[0.0]]] * 4, [[0.0]] * 4  # each gate is half open, no new content
    >>> weights = popnn.lstm.LstmWeights(*map(trial.tensor, zeros))
    >>> state = popnn.lstm.LstmState(trial.tensor([[0.0]]), trial.tensor([[2.0]]))
    >>> x, values = trial.tensor([[[1.0]]]), []
    >>> out, _ = popnn.lstm.lstmFwd(trial.graph, params, state, x, weights, values, trial.prog)
    >>> gradients = trial.tensor([[[0.0]]]), trial.tensor([[1.0]])  # of the output, the last cell
    >>> units = []
    >>> operands = state, *values, weights, x, out, *gradients, None, units
    >>> first = popnn.lstm.lstmBwd(trial.graph, params, trial.prog, *operands)
    >>> operands = state, *values, *units, weights, x, out
    >>> of_weights = popnn.lstm.lstmWU(trial.graph, params, trial.prog, *operands)
    >>> trial.values(of_weights.biases)  # forget: 2 * 0.5 * 0.5; candidate: 0.5
    [[0.5], [0.0], [0.5], [0.0]]
    """
    name = debug_name(debugContext, "lstmWU")
    layer = _layer(graph, params, fwdStateInit, weights, input, name, options)
    with graph.debug_scope(name, "popnn"):
        outputs = layer.outputs(output, fwdIntermediates, prog)
        return layer.weights(fwdStateInit.output, weights, input, outputs, bwdIntermediates, prog)


@library_call("POPNN")
def lstmBwdWithWU(
    graph: Graph,
    params: LstmParams,
    prog: Program,
    fwdStateInit: LstmState,
    fwdIntermediates: Tensor,
    weights: LstmWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    lastCellStateGrad: LstmState | Tensor | None,
    inputGrad: list[Tensor] | None,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> tuple[LstmState, LstmWeights]:
    """Return the gradients of the first state and of the weights; add that of the inputs to a list.

    The arguments are those of `lstmBwd`; PopLibs takes the weights' gradient as one. The weights'
    gradients are summed in a loop of their own, after that of the states.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.lstm.LstmParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 4, [[[0.0]]] * 4, [[0.0]] * 4  # each gate is half open, no new content
    >>> weights = popnn.lstm.LstmWeights(*map(trial.tensor, zeros))
    >>> state = popnn.lstm.LstmState(trial.tensor([[0.0]]), trial.tensor([[2.0]]))
    >>> x, values = trial.tensor([[[1.0]]]), []
    >>> out, _ = popnn.lstm.lstmFwd(trial.graph, params, state, x, weights, values, trial.prog)
    >>> gradients = trial.tensor([[[0.0]]]), trial.tensor([[1.0]])  # of the output, the last cell
    >>> operands = state, *values, weights, x, out, *gradients, None
    >>> first, of_weights = popnn.lstm.lstmBwdWithWU(trial.graph, params, trial.prog, *operands)
    >>> trial.values(first.cellState, of_weights.biases)
    [[[0.5]], [[0.5], [0.0], [0.5], [0.0]]]
    """
    name = debug_name(debugContext, "lstmBwd")
    layer = _layer(graph, params, fwdStateInit, weights, input, name, options)
    with graph.debug_scope(name, "popnn"):
        gradients, unit_grads = layer.states(
            fwdIntermediates, weights, outputGrad, lastCellStateGrad, inputGrad, prog
        )
        outputs = layer.outputs(output, fwdIntermediates, prog)
        weight_grads = layer.weights(fwdStateInit.output, weights, input, outputs, unit_grads, prog)
    return gradients, weight_grads


def _layer(
    graph: Graph,
    params: LstmParams,
    state: LstmState,
    weights: LstmWeights,
    inputs: Tensor,
    name: str,
    options: Options,
) -> _Layer:
    """Return a layer for its gradients; raises poplibs_error for what does not fit."""
    lstm.check_tensors(name, params.rnn, state, inputs, weights)
    order = gated.order_of(lstm.LAYER, params, name)
    return _Layer(graph, params, order, rnn.read_options(options, name), name)


def _check_last_gradient(last_grad: LstmState | Tensor | None, name: str) -> None:
    """Refuse the gradient of a last state that samples reach at different steps.

    That of the cell alone is passed over with a warning, as in PopLibs.
    """
    if isinstance(last_grad, LstmState):
        raise poplibs_error(f"{name}: sequences have lengths; no gradient of a last state is taken")
    if last_grad is not None:
        log("PL", "POPNN", "WARN", f"{name}: sequences have lengths; lastCellStateGrad is ignored")


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer whose gradients are added; `order` is where each unit stands in the weights."""

    graph: Graph
    params: LstmParams
    order: list[int]
    values: Values
    name: str

    def outputs(self, output: Tensor, intermediates: Tensor, prog: Program) -> Tensor:
        """Return the outputs of all steps, which the layer may have kept or not."""
        if self.params.outputFullSequence:
            return output
        _, _, _, gate, shown, _ = (intermediates[:, value] for value in range(KEPT))
        return popops.mul(self.graph, gate, shown, prog, f"{self.name}/outputs")

    def states(
        self,
        intermediates: Tensor,
        weights: LstmWeights,
        output_grad: Tensor,
        last_grad: LstmState | Tensor | None,
        input_grad: list[Tensor] | None,
        prog: Program,
    ) -> tuple[LstmState, Tensor]:
        """Run back over the steps; return the gradients of the first state and of all units."""
        graph, sizes, name = self.graph, self.params.rnn, self.name
        kernel = weights.outputWeights
        if input_grad is not None:
            kernel = concat([weights.inputWeights, kernel], 1)
        arranged = rnn_backward.arranged_weights(
            graph, sizes, rnn.as_matrix(kernel).transpose(), self.values, prog, f"{name}/Weights"
        )
        state, next_grads = self._last_gradients(output_grad, last_grad, prog)
        of_inputs = None
        if input_grad is not None:
            of_inputs = self._input_gradients()
            input_grad.append(of_inputs[0])
        sequence = rnn.Kept.of(graph, sizes, UNITS, prog, f"{name}/bwdIntermediates")
        lengths = sizes.lengths(graph, prog, name)
        if lengths and of_inputs is not None:
            popops.zero(graph, of_inputs[0], prog, f"{name}/zeroInputGrad")

        def step(index: Tensor, body: Program) -> None:
            mask = lengths.mask(index, body) if lengths and next_grads is None else None
            grads = None
            if next_grads is not None:
                grads = rnn.take_step(graph, next_grads, index, body, f"{name}/gradNext")
            saved = rnn.take_step(graph, intermediates, index, body, f"{name}/intermediates")
            units, cell_after = self.unit_gradients(saved, state, grads, body)
            gradient = rnn_backward.product(
                graph, sizes, rnn.as_matrix(units), arranged,
                detectInnermostGrouping(graph, state.output), self.values, body,
                f"{name}/{{Prev + Input}}Grad",
            )  # fmt: skip
            if of_inputs is not None:
                body.add(
                    Copy(gradient[:, : sizes.inputs], of_inputs[1][0], name=f"{name}/inputGrad")
                )
            sequence.add(units, index, body)
            before = concat([gradient[:, gradient.dim(1) - sizes.outputs :], cell_after], 0)
            if mask:
                parts = before[: sizes.batchSize], before[sizes.batchSize :]
                for gradient_of, part in zip(state, parts, strict=True):
                    mask.select(gradient_of, part, body)
            else:
                body.add(Copy(before, concat(list(state), 0), name=f"{name}/stateGrads"))
            if of_inputs is not None:
                rnn.keep_step(
                    graph, of_inputs[0], of_inputs[1][0], index, body, f"{name}/inputGrad"
                )

        rnn.add_loop(graph, sizes.timeSteps, prog, name, step, backward=True, lengths=lengths)
        return state, sequence.sequence

    def _last_gradients(
        self, output_grad: Tensor, last_grad: LstmState | Tensor | None, prog: Program
    ) -> tuple[LstmState, Tensor | None]:
        """Return the gradients of the last state; and of all outputs, where the layer has them."""
        graph, sizes, name = self.graph, self.params.rnn, self.name
        output = rnn_backward.zeros(graph, sizes, prog, f"{name}/lastOutGrad")
        next_grads = None
        if self.params.outputFullSequence:
            label = f"{name}/gradLayerNextRearranged"
            next_grads = rnn.laid_out(graph, sizes, output_grad, prog, label)
        else:
            prog.add(Copy(output_grad, output, name=f"{name}/lastOutGrad"))
        cell = rnn_backward.zeros(graph, sizes, prog, f"{name}/cellStateGrad")
        if sizes.variableTimeSteps():
            _check_last_gradient(last_grad, name)
            last_grad = None
        if isinstance(last_grad, LstmState):
            popops.addInPlace(graph, output, last_grad.output, prog, f"{name}/lastOutGrad")
            last_grad = last_grad.cellState
        if last_grad is not None:
            prog.add(Copy(last_grad, cell, name=f"{name}/cellStateGrad"))
        return LstmState(output, cell), next_grads

    def _input_gradients(self) -> tuple[Tensor, Tensor]:
        """Return the sequence of the gradients of all inputs, and that of one step."""
        sizes = self.params.rnn
        lengths = {"inputGrad": sizes.timeSteps, "step": 1}
        every, one = (
            rnn.create_sequence(self.graph, sizes, sizes.inputs, steps, f"{self.name}/{label}")
            for label, steps in lengths.items()
        )
        return every, one

    def unit_gradients(
        self, saved: Tensor, state: LstmState, grads: Tensor | None, prog: Program
    ) -> tuple[Tensor, Tensor]:
        """Return the gradients of the units' sums in their order, and of the cell before a step."""
        graph, params, name = self.graph, self.params, self.name
        forget, input_gate, candidate, output, shown, before = (
            saved[value] for value in range(KEPT)
        )
        batch, gradient = params.rnn.batchSize, state.output
        if grads is not None:
            gradient = popops.add(graph, gradient, grads, prog, f"{name}/AddActGrads")
        both = popops.mul(
            graph, concat([output, shown], 0), concat([gradient] * 2, 0), prog, f"{name}/MulOGate"
        )
        cell, of_output = rnn_backward.gradients_of(
            graph,
            [
                (params.activation, shown, both[:batch]),
                (params.recurrentActivation, output, both[batch:]),
            ],
            prog,
            f"{name}/OutputGate",
        )
        popops.addInPlace(graph, cell, state.cellState, prog, f"{name}/AddCellState")
        factors = concat([input_gate, candidate, before, forget], 0)
        four = popops.mul(graph, factors, concat([cell] * 4, 0), prog, f"{name}/MulCell")
        parts = [four[batch * part : batch * (part + 1)] for part in range(4)]
        of_candidate, of_given, of_forget = rnn_backward.gradients_of(
            graph,
            [
                (params.activation, candidate, parts[0]),
                (params.recurrentActivation, input_gate, parts[1]),
                (params.recurrentActivation, forget, parts[2]),
            ],
            prog,
            f"{name}/{{Input+Candidate}}Gate",
        )
        usual = [of_forget, of_given, of_candidate, of_output]
        units = [usual[self.order.index(place)].expand([0]) for place in range(UNITS)]
        return concat(units, 0), parts[3]

    def weights(
        self,
        first: Tensor,
        weights: LstmWeights,
        inputs: Tensor,
        outputs: Tensor,
        units: Tensor,
        prog: Program,
    ) -> LstmWeights:
        """Sum the gradients of the weights over the steps."""
        graph, sizes, name = self.graph, self.params.rnn, f"{self.name}/LstmDeltas"
        dtype = rnn_backward.accumulator_type(sizes, self.values)
        kernel = concat(
            [rnn.as_matrix(weights.inputWeights), rnn.as_matrix(weights.outputWeights)], 0
        )
        total = graph.clone(kernel, f"{name}/weightsDeltaAcc", dtype)
        biases = graph.clone(units[0], f"{name}/biasesDeltaAcc", dtype)
        together = concat([total.flatten(), biases.flatten()], 0)
        popops.zero(graph, together, prog, f"{name}/zeroWeightAccumulators")
        copy = rnn.laid_out(graph, sizes, inputs, prog, f"{name}/inputCopy")
        before = rnn_backward.before_each(
            graph, sizes, first, outputs, prog, f"{name}/fwdOutShifted"
        )

        def step(index: Tensor, body: Program) -> None:
            step_values = [
                rnn.take_step(graph, sequence, index, body, f"{name}/slice")
                for sequence in (copy, before, units)
            ]
            columns = concat([step_values[0].transpose(), step_values[1].transpose()], 0)
            rnn_backward.accumulate(
                graph,
                total,
                columns,
                rnn.as_matrix(step_values[2]),
                self.values,
                body,
                f"{name}/Wi",
            )
            rnn_backward.add_biases(graph, biases, step_values[2], body, f"{name}/Bias")

        lengths = sizes.lengths(graph, prog, name)
        rnn.add_loop(graph, sizes.timeSteps, prog, name, step, backward=True, lengths=lengths)
        of_biases = graph.clone(weights.biases, f"{name}/biasGrad", dtype)
        popops.reduceWithOutput(
            graph, biases, of_biases, [1], popops.Operation.ADD, prog, f"{name}/FinalBiasReduction"
        )
        split = [
            rnn.units_of(total[: sizes.inputs], UNITS),
            rnn.units_of(total[sizes.inputs :], UNITS),
        ]
        return LstmWeights(split[0], split[1], of_biases)
