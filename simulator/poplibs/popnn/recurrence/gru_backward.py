"""The backward pass of the gated recurrent unit (popnn/Gru.hpp)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from simulator.graph.graph import Graph
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.popnn import gru, rnn
from simulator.poplibs.popnn.gru import GATES, UNITS, GruParams, GruWeights
from simulator.poplibs.popnn.recurrence import gated, rnn_backward
from simulator.poplibs.popnn.recurrence.rnn_backward import Values
from simulator.poplibs.popnn.rnn import Options
from simulator.poplibs.popnn.time_steps import Mask, takes_lengths
from simulator.poplibs.popops.expr import Const, PlaceHolder
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import detectInnermostGrouping

_1, _2, _3, _4, _5 = (PlaceHolder(number) for number in range(1, 6))


@takes_lengths(7)
@library_call("POPNN")
def gruBwd(
    graph: Graph,
    params: GruParams,
    prog: Program,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    inputGrad: list[Tensor] | None,
    bwdIntermediates: list[Tensor] | None,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
    *,
    realTimeSteps: Tensor | None = None,
) -> Tensor:
    """Return the gradient of the first output; add those of inputs and of units to lists.

    `fwdIntermediates` are what `gruFwd` left, `output` its outputs, `outputGrad` their
    gradients: of all steps, or of the last one of a layer without all outputs.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 3, [[[0.0]]] * 3, [[0.0]] * 3  # each gate is half open, no new content
    >>> weights = popnn.gru.GruWeights(*map(trial.tensor, zeros))
    >>> state, x, values = trial.tensor([[2.0]]), trial.tensor([[[1.0]]]), []
    >>> out = popnn.gru.gruFwd(trial.graph, params, state, x, weights, values, trial.prog)
    >>> gradient = trial.tensor([[[1.0]]])  # of the output
    >>> operands = state, *values, weights, x, out, gradient, None, None
    >>> first = popnn.gru.gruBwd(trial.graph, params, trial.prog, *operands)
    >>> trial.values(first)  # what the update gate lets through
    [[0.5]]
    """
    name = debug_name(debugContext, "gruBwd")
    params = params.with_lengths(realTimeSteps, name)
    layer = _layer(graph, params, fwdOutputInit, fwdIntermediates, weights, input, output, prog,
                   name, options, None)  # fmt: skip
    with graph.debug_scope(name, "popnn"):
        first, units = layer.states(weights, outputGrad, inputGrad, prog)
    if bwdIntermediates is not None:
        bwdIntermediates.append(units)
    return first


@library_call("POPNN")
def gruWU(
    graph: Graph,
    params: GruParams,
    prog: Program,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    bwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> GruWeights:
    """Return the gradients of the weights, by those of the units, which `gruBwd` left.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 3, [[[0.0]]] * 3, [[0.0]] * 3  # each gate is half open, no new content
    >>> weights = popnn.gru.GruWeights(*map(trial.tensor, zeros))
    >>> state, x, values = trial.tensor([[2.0]]), trial.tensor([[[1.0]]]), []
    >>> out = popnn.gru.gruFwd(trial.graph, params, state, x, weights, values, trial.prog)
    >>> gradient = trial.tensor([[[1.0]]])  # of the output
    >>> units = []
    >>> operands = state, *values, weights, x, out, gradient, None, units
    >>> first = popnn.gru.gruBwd(trial.graph, params, trial.prog, *operands)
    >>> operands = state, *values, *units, weights, x, out
    >>> of_weights = popnn.gru.gruWU(trial.graph, params, trial.prog, *operands)
    >>> trial.values(of_weights.biases)  # update: 2 * 0.5 * 0.5; candidate: 0.5
    [[0.0], [0.5], [0.5]]
    """
    name = debug_name(debugContext, "gruWU")
    layer = _layer(graph, params, fwdOutputInit, fwdIntermediates, weights, input, output, prog,
                   name, options)  # fmt: skip
    with graph.debug_scope(name, "popnn"):
        return layer.weights(weights, input, bwdIntermediates, prog)


@takes_lengths(7)
@library_call("POPNN")
def gruBwdWithWU(
    graph: Graph,
    params: GruParams,
    prog: Program,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    inputGrad: list[Tensor] | None,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
    *,
    realTimeSteps: Tensor | None = None,
) -> tuple[Tensor, GruWeights]:
    """Return the gradients of the first output and the weights; add that of inputs to a list.

    The arguments are those of `gruBwd`; PopLibs takes the weights' gradient as one.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 3, [[[0.0]]] * 3, [[0.0]] * 3  # each gate is half open, no new content
    >>> weights = popnn.gru.GruWeights(*map(trial.tensor, zeros))
    >>> state, x, values = trial.tensor([[2.0]]), trial.tensor([[[1.0]]]), []
    >>> out = popnn.gru.gruFwd(trial.graph, params, state, x, weights, values, trial.prog)
    >>> gradient = trial.tensor([[[1.0]]])  # of the output
    >>> operands = state, *values, weights, x, out, gradient, None
    >>> first, of_weights = popnn.gru.gruBwdWithWU(trial.graph, params, trial.prog, *operands)
    >>> trial.values(first, of_weights.biases)
    [[[0.5]], [[0.0], [0.5], [0.5]]]
    """
    name = debug_name(debugContext, "gruBwd")
    params = params.with_lengths(realTimeSteps, name)
    layer = _layer(graph, params, fwdOutputInit, fwdIntermediates, weights, input, output, prog,
                   name, options, None)  # fmt: skip
    with graph.debug_scope(name, "popnn"):
        first, units = layer.states(weights, outputGrad, inputGrad, prog)
        return first, layer.weights(weights, input, units, prog)


@takes_lengths(7)
@library_call("POPNN")
def auGruBwd(
    graph: Graph,
    params: GruParams,
    prog: Program,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    inputGrad: list[Tensor] | None,
    bwdIntermediates: list[Tensor] | None,
    attentions: Tensor,
    attentionsGrad: list[Tensor],
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
    *,
    realTimeSteps: Tensor | None = None,
) -> Tensor:
    """Do what `gruBwd` does of `auGruFwd`, and add the gradient of the attention to a list.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 3, [[[0.0]]] * 3, [[0.0]] * 3  # each gate is half open, no new content
    >>> weights = popnn.gru.GruWeights(*map(trial.tensor, zeros))
    >>> state, x, values = trial.tensor([[2.0]]), trial.tensor([[[1.0]]]), []
    >>> scores, of_scores = trial.tensor([[0.0]]), []
    >>> operands = state, x, weights, values, scores, trial.prog
    >>> out = popnn.gru.auGruFwd(trial.graph, params, *operands)
    >>> gradient = trial.tensor([[[1.0]]])  # of the output
    >>> operands = state, *values, weights, x, out, gradient, None, None, scores, of_scores
    >>> first = popnn.gru.auGruBwd(trial.graph, params, trial.prog, *operands)
    >>> trial.values(*of_scores)  # update gate: 0.5, less so much of 2 kept
    [[-1.0]]
    """
    name = debug_name(debugContext, "auGruBwd")
    params = params.with_lengths(realTimeSteps, name)
    layer = _layer(graph, params, fwdOutputInit, fwdIntermediates, weights, input, output, prog,
                   name, options, _Attention(attentions, attentionsGrad))  # fmt: skip
    with graph.debug_scope(name, "popnn"):
        first, units = layer.states(weights, outputGrad, inputGrad, prog)
    if bwdIntermediates is not None:
        bwdIntermediates.append(units)
    return first


@library_call("POPNN")
def auGruWU(
    graph: Graph,
    params: GruParams,
    prog: Program,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    bwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
) -> GruWeights:
    """Return the gradients of the weights of `auGruFwd`, by what `auGruBwd` left of the units.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 3, [[[0.0]]] * 3, [[0.0]] * 3  # each gate is half open, no new content
    >>> weights = popnn.gru.GruWeights(*map(trial.tensor, zeros))
    >>> state, x, values = trial.tensor([[2.0]]), trial.tensor([[[1.0]]]), []
    >>> scores, of_scores = trial.tensor([[0.0]]), []
    >>> operands = state, x, weights, values, scores, trial.prog
    >>> out = popnn.gru.auGruFwd(trial.graph, params, *operands)
    >>> gradient = trial.tensor([[[1.0]]])  # of the output
    >>> units = []
    >>> operands = state, *values, weights, x, out, gradient, None, units, scores, of_scores
    >>> first = popnn.gru.auGruBwd(trial.graph, params, trial.prog, *operands)
    >>> operands = state, *values, *units, weights, x, out
    >>> of_weights = popnn.gru.auGruWU(trial.graph, params, trial.prog, *operands)
    >>> trial.values(of_weights.biases)  # update: 2 * 0.5 * 0.5; candidate: 0.5
    [[0.0], [0.5], [0.5]]
    """
    name = debug_name(debugContext, "auGruWU")
    layer = _layer(graph, params, fwdOutputInit, fwdIntermediates, weights, input, output, prog,
                   name, options)  # fmt: skip
    with graph.debug_scope(name, "popnn"):
        return layer.weights(weights, input, bwdIntermediates, prog)


@takes_lengths(7)
@library_call("POPNN")
def auGruBwdWithWU(
    graph: Graph,
    params: GruParams,
    prog: Program,
    fwdOutputInit: Tensor,
    fwdIntermediates: Tensor,
    weights: GruWeights,
    input: Tensor,
    output: Tensor,
    outputGrad: Tensor,
    inputGrad: list[Tensor] | None,
    attentions: Tensor,
    attentionsGrad: list[Tensor],
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
    *,
    realTimeSteps: Tensor | None = None,
) -> tuple[Tensor, GruWeights]:
    """Do what `gruBwdWithWU` does of `auGruFwd`, and add the gradient of the attention to a list.

    The arguments are those of `auGruBwd`; PopLibs takes the weights' gradient as one.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 3, [[[0.0]]] * 3, [[0.0]] * 3  # each gate is half open, no new content
    >>> weights = popnn.gru.GruWeights(*map(trial.tensor, zeros))
    >>> state, x, values = trial.tensor([[2.0]]), trial.tensor([[[1.0]]]), []
    >>> scores, of_scores = trial.tensor([[0.0]]), []
    >>> operands = state, x, weights, values, scores, trial.prog
    >>> out = popnn.gru.auGruFwd(trial.graph, params, *operands)
    >>> gradient = trial.tensor([[[1.0]]])  # of the output
    >>> operands = state, *values, weights, x, out, gradient, None, scores, of_scores
    >>> first, of_weights = popnn.gru.auGruBwdWithWU(trial.graph, params, trial.prog, *operands)
    >>> trial.values(*of_scores, of_weights.biases)
    [[[-1.0]], [[0.0], [0.5], [0.5]]]
    """
    name = debug_name(debugContext, "auGruBwd")
    params = params.with_lengths(realTimeSteps, name)
    layer = _layer(graph, params, fwdOutputInit, fwdIntermediates, weights, input, output, prog,
                   name, options, _Attention(attentions, attentionsGrad))  # fmt: skip
    with graph.debug_scope(name, "popnn"):
        first, units = layer.states(weights, outputGrad, inputGrad, prog)
        return first, layer.weights(weights, input, units, prog)


class _Units(NamedTuple):
    """The reset gate of a step, and the gradients of candidate and update gate before them."""

    reset: Tensor
    of_candidate: Tensor
    of_update: Tensor


@dataclass(frozen=True, slots=True)
class _Attention:
    """The scores [batch, timeSteps], and the list that gets their gradient."""

    scores: Tensor
    gradients: list[Tensor]


def _layer(
    graph: Graph,
    params: GruParams,
    first: Tensor,
    intermediates: Tensor,
    weights: GruWeights,
    inputs: Tensor,
    outputs: Tensor,
    prog: Program,
    name: str,
    options: Options,
    attention: _Attention | None = None,
) -> _Layer:
    """Prepare a layer for its gradients; raises poplibs_error for what does not fit."""
    gru.check_tensors(name, params, first, inputs, weights)
    if not params.outputFullSequence:
        outputs = intermediates[:, UNITS]
    values = rnn.read_options(options, name)
    with graph.debug_scope(name, "popnn"):
        before = rnn_backward.before_each(
            graph, params.rnn, first, outputs, prog, f"{name}/fwdOutShifted"
        )
    return _Layer(graph, params, values, before, intermediates, name, attention)


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer whose gradients are added; inside, its units are in their usual order."""

    graph: Graph
    params: GruParams
    values: Values
    before: Tensor
    intermediates: Tensor
    name: str
    attention: _Attention | None = None

    def states(
        self,
        weights: GruWeights,
        output_grad: Tensor,
        input_grad: list[Tensor] | None,
        prog: Program,
    ) -> tuple[Tensor, Tensor]:
        """Run back over the steps; return the gradients of the first state and of all units."""
        graph, sizes, name = self.graph, self.params.rnn, self.name
        arranged = self._arranged(weights, prog, of_inputs=input_grad is not None)
        sequences = [self.before, self.intermediates]
        if self.params.outputFullSequence:
            state = rnn_backward.zeros(graph, sizes, prog, f"{name}/lastOutGrad")
            next_grads = rnn.laid_out(graph, sizes, output_grad, prog, f"{name}/gradLayerNext")
            sequences.append(next_grads)
        else:
            state = rnn.copy_of(graph, sizes, output_grad, prog, f"{name}/lastOutGrad")
        of_inputs = []
        if input_grad is not None:
            of_inputs = [
                rnn.create_sequence(graph, sizes, sizes.inputs, steps, f"{name}/inputGrad")
                for steps in (sizes.timeSteps, 1)
            ]
            input_grad.append(of_inputs[0])
        history = rnn.Kept.of(graph, sizes, UNITS, prog, f"{name}/bwdIntermediates")
        lengths = sizes.lengths(graph, prog, name)
        if lengths and of_inputs:
            popops.zero(graph, of_inputs[0], prog, f"{name}/zeroInputGrad")
        if self.attention:
            of_scores = gru.createAttention(graph, self.params, f"{name}/attScoresGrads")
            self.attention.gradients.append(of_scores)

        def step(index: Tensor, body: Program) -> None:
            mask = lengths.mask(index, body) if lengths else None
            step_values = [
                rnn.take_step(graph, sequence, index, body, f"{name}/slice")
                for sequence in sequences
            ]
            state_grad, units, of_input = self.step(state, step_values, arranged, index, mask, body)
            if of_inputs:
                body.add(Copy(of_input, of_inputs[1][0], name=f"{name}/inputGrad"))
            history.add(units, index, body)
            if mask:
                mask.select(state, state_grad, body)
            else:
                body.add(Copy(state_grad, state, name=f"{name}/outGrad"))
            if of_inputs:
                full_inputs, part = of_inputs
                rnn.keep_step(graph, full_inputs, part[0], index, body, f"{name}/inputs")

        rnn.add_loop(graph, sizes.timeSteps, prog, name, step, backward=True, lengths=lengths)
        return state, history.sequence

    def _arranged(self, weights: GruWeights, prog: Program, *, of_inputs: bool) -> list[Tensor]:
        """Lay the weights out by what the steps back multiply with, those of inputs where asked."""
        weights = gru.in_usual_order(weights, gated.order_of(gru.LAYER, self.params, self.name))
        kernel = weights.outputWeights
        if self.params.resetAfter:
            parts = [kernel, weights.inputWeights] if of_inputs else [kernel]
        else:
            whole = concat([weights.inputWeights, kernel], 1) if of_inputs else kernel
            parts = [whole[GATES:], whole[:GATES]]
        matrices = [rnn.as_matrix(part).transpose() for part in parts]
        shared = self.values, prog, f"{self.name}/Weights"
        return [
            rnn_backward.arranged_weights(self.graph, self.params.rnn, matrix, *shared)
            for matrix in matrices
        ]

    def _attended(
        self, update: Tensor, gradient: Tensor, index: Tensor, prog: Program
    ) -> tuple[Tensor, Tensor]:
        """Return the gate and its gradient before the attention; write that of the attention."""
        if self.attention is None:
            return update, gradient
        graph, name = self.graph, f"{self.name}/Attentions"
        scores = popops.dynamicSlice(graph, self.attention.scores, index, [1], [1], prog, name)
        gate = popops.map(graph, _1 / (Const(1) - _2), [update, scores], prog, name)
        of_scores = popops.map(graph, -(_1 * _2), [gradient, gate], prog, f"{name}Grad")
        total = popops.reduce(
            graph, of_scores, of_scores.dtype, [1], popops.Operation.ADD, prog, f"{name}Grad"
        )
        popops.dynamicUpdate(
            graph, self.attention.gradients[-1], total.expand([1]), index, [1], [1], prog, name
        )
        return gate, popops.map(graph, _1 - _1 * _2, [gradient, scores], prog, f"{name}/gate")

    def step(
        self,
        state: Tensor,
        step_values: list[Tensor],
        arranged: list[Tensor],
        index: Tensor,
        mask: Mask | None,
        prog: Program,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add a step; return the gradients of the state before it, of the units, of the input."""
        graph, params, name = self.graph, self.params, self.name
        group, (before, saved, *grads) = detectInnermostGrouping(graph, state), step_values
        reset, update, candidate = saved[0], saved[1], saved[2]
        batch, size = params.rnn.batchSize, params.rnn.outputs
        gradient = state
        for of_output in grads:
            gradient = popops.add(graph, state, of_output, prog, f"{name}/AddActGrads")
        one_minus_update = popops.map(graph, Const(1) - _1, [update], prog, f"{name}/1-updateGate")
        apart = popops.sub(graph, before, candidate, prog, f"{name}/preOutput-candidate")
        factors = concat([one_minus_update, apart], 0)
        both = popops.mul(graph, factors, concat([gradient] * 2, 0), prog, f"{name}/MulOGate")
        gate, of_gate = self._attended(update, both[batch:], index, prog)
        of_candidate, of_update = rnn_backward.gradients_of(
            graph,
            [
                (params.activation, candidate, both[:batch]),
                (params.recurrentActivation, gate, of_gate),
            ],
            prog,
            f"{name}/OutputGate",
        )
        if mask:
            mask.zero(of_candidate, prog)
        if params.resetAfter:
            gates = _Units(reset, of_candidate, of_update)
            return self._step_after(saved, gradient, gates, arranged, group, prog)
        second = rnn_backward.product(
            graph, params.rnn, of_candidate, arranged[0], group, self.values, prog,
            f"{name}/d_x2_d_h_prevr",
        )  # fmt: skip
        of_state = second[:, second.dim(1) - size :]
        of_product = popops.mul(graph, of_state, before, prog, f"{name}/d_hr * h_prev")
        activated = [(params.recurrentActivation, reset, of_product)]
        (of_reset,) = rnn_backward.gradients_of(graph, activated, prog, f"{name}/ResetGate")
        first = rnn_backward.product(
            graph, params.rnn, concat([of_reset, of_update], 1), arranged[1], group, self.values,
            prog, f"{name}/d_x1_d_h_prev1",
        )  # fmt: skip
        width = first.dim(1) - size
        of_input = first[:, :width]
        if width:
            of_input = popops.add(graph, of_input, second[:, :width], prog, f"{name}/dx")
        operands = [of_state, reset, gradient, update, first[:, width:]]
        previous_grad = popops.map(
            graph, ((_1 * _2) + (_3 * _4)) + _5, operands, prog, f"{name}/d_h_prev"
        )
        units = [part.expand([0]) for part in (of_reset, of_update, of_candidate)]
        return previous_grad, concat(units, 0), of_input

    def _step_after(
        self,
        saved: Tensor,
        gradient: Tensor,
        made: _Units,
        arranged: list[Tensor],
        group: int,
        prog: Program,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add the rest of a step whose reset gate acts on what the state adds to the candidate."""
        graph, params, name = self.graph, self.params, self.name
        reset, of_candidate, of_update = made
        of_gate = popops.mul(graph, of_candidate, saved[-1], prog, f"{name}/d_c * h_prev2")
        activated = [(params.recurrentActivation, reset, of_gate)]
        (of_reset,) = rnn_backward.gradients_of(graph, activated, prog, f"{name}/ResetGate")
        of_recurrent = popops.mul(graph, of_candidate, reset, prog, f"{name}/d_c * r")
        rows = [[of_reset, of_update, one] for one in (of_recurrent, of_candidate)]
        products = [
            rnn_backward.product(
                graph, params.rnn, concat(row, 1), weights, group, self.values, prog,
                f"{name}/PrevStepGrad",
            )
            for row, weights in zip(rows, arranged, strict=False)
        ]  # fmt: skip
        operands = [gradient, saved[1], products[0]]
        previous_grad = popops.map(graph, (_1 * _2) + _3, operands, prog, f"{name}/d_h_prev")
        units = [part.expand([0]) for part in (of_reset, of_update, of_candidate)]
        return previous_grad, concat(units, 0), products[-1]

    def weights(
        self, weights: GruWeights, inputs: Tensor, units: Tensor, prog: Program
    ) -> GruWeights:
        """Sum the gradients of the weights over the steps."""
        graph, sizes, name = self.graph, self.params.rnn, f"{self.name}/GruDeltas"
        weights = gru.in_usual_order(weights, gated.order_of(gru.LAYER, self.params, name))
        dtype = rnn_backward.accumulator_type(sizes, self.values)
        accumulators = (_AfterSums if self.params.resetAfter else _Sums).of(
            self, weights, units, dtype, prog, name
        )
        copy = rnn.laid_out(graph, sizes, inputs, prog, f"{name}/inputCopy")

        def step(index: Tensor, body: Program) -> None:
            step_values = [
                rnn.take_step(graph, sequence, index, body, f"{name}/slice")
                for sequence in (copy, self.before, self.intermediates, units)
            ]
            accumulators.add(step_values, body)

        lengths = sizes.lengths(graph, prog, name)
        rnn.add_loop(graph, sizes.timeSteps, prog, name, step, backward=True, lengths=lengths)
        of_biases = graph.clone(weights.biases, f"{name}/biasGrad", dtype)
        biases, batch_dim = accumulators.biases, weights.biases.rank() - 1
        popops.reduceWithOutput(
            graph, biases, of_biases, [batch_dim], popops.Operation.ADD, prog,
            f"{name}/FinalBiasReduction",
        )  # fmt: skip
        places = [self.params.cellOrder[place] for place in range(UNITS)]
        weight_grads = (*accumulators.by_units(), of_biases)
        return GruWeights(*(concat([p[u].expand([0]) for u in places], 0) for p in weight_grads))


@dataclass(frozen=True, slots=True)
class _Sums:
    """The gradients of weights that steps add to: of the gates, of the candidate; of biases."""

    layer: _Layer
    totals: list[Tensor]
    biases: Tensor
    name: str

    @classmethod
    def of(
        cls, layer: _Layer, weights: GruWeights, units: Tensor, dtype: Type, prog: Program,
        name: str,
    ) -> _Sums:  # fmt: skip
        """Add sums of zeros."""
        graph = layer.graph
        totals = [
            graph.clone(concat(parts, 0), f"{name}/weightsDeltaAcc", dtype)
            for parts in cls.matrices(weights)
        ]
        biases = concat(
            [graph.clone(units[0], f"{name}/biasesDeltaAcc", dtype).expand([1])
             for _ in range(weights.biases.rank() - 1)], 1,
        )  # fmt: skip
        biases = biases if weights.biases.rank() > 2 else biases.squeeze([1])
        together = concat([part.flatten() for part in (*totals, biases)], 0)
        popops.zero(graph, together, prog, f"{name}/zeroWeightAccumulators")
        return cls(layer, totals, biases, name)

    @staticmethod
    def matrices(weights: GruWeights) -> list[list[Tensor]]:
        """Return what each sum is the gradient of."""
        slices = (slice(0, GATES), slice(GATES, UNITS))
        return [[rnn.as_matrix(part[which]) for part in weights[:2]] for which in slices]

    def add(self, step_values: list[Tensor], prog: Program) -> None:
        """Add a step: of its input, the state before it, its units and their gradients."""
        (inputs, before, saved, grads), graph = step_values, self.layer.graph
        shown = popops.mul(graph, before, saved[0], prog, f"{self.name}/h_prev * r")
        slices = (slice(0, GATES), slice(GATES, UNITS))
        for which, total, state in zip(slices, self.totals, (before, shown), strict=True):
            columns = concat([inputs, state], 1)
            self._accumulate(total, columns, grads[which], "dw", prog)
        rnn_backward.add_biases(graph, self.biases, grads, prog, f"{self.name}/Bias")

    def _accumulate(
        self, total: Tensor, columns: Tensor, grads: Tensor, label: str, prog: Program
    ) -> None:
        rnn_backward.accumulate(
            self.layer.graph, total, columns.transpose(), rnn.as_matrix(grads), self.layer.values,
            prog, f"{self.name}/{label}",
        )  # fmt: skip

    def by_units(self) -> tuple[Tensor, ...]:
        """Return the gradients of the weights of inputs and of states, unit by unit."""
        sizes = self.layer.params.rnn
        rows = (slice(0, sizes.inputs), slice(sizes.inputs, sizes.inputs + sizes.outputs))
        return tuple(
            concat(
                [rnn.units_of(total[part], total.dim(1) // sizes.outputs) for total in self.totals],
                0,
            )
            for part in rows
        )


class _AfterSums(_Sums):
    """The same where the reset gate acts on what the state adds: of inputs, and of states."""

    @staticmethod
    def matrices(weights: GruWeights) -> list[list[Tensor]]:
        return [[rnn.as_matrix(part)] for part in weights[:2]]

    def add(self, step_values: list[Tensor], prog: Program) -> None:
        (inputs, before, saved, grads), graph = step_values, self.layer.graph
        recurrent = popops.mul(graph, grads[GATES], saved[0], prog, f"{self.name}/d_c * r")
        of_states = concat([grads[:GATES], recurrent.expand([0])], 0)
        self._accumulate(self.totals[0], inputs, grads, "dw for input weights", prog)
        self._accumulate(self.totals[1], before, of_states, "dw for output weights", prog)
        both = concat([grads.expand([1]), of_states.expand([1])], 1)
        rnn_backward.add_biases(graph, self.biases, both, prog, f"{self.name}/Bias")

    def by_units(self) -> tuple[Tensor, ...]:
        return tuple(rnn.units_of(total, UNITS) for total in self.totals)
