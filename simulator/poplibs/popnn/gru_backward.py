"""The backward pass of the gated recurrent unit (popnn/Gru.hpp)."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensor import Tensor, concat
from simulator.logging import library_call
from simulator.poplibs import popops
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.popnn import gru, rnn, rnn_backward
from simulator.poplibs.popnn.gru import GATES, UNITS, GruParams, GruWeights
from simulator.poplibs.popnn.rnn import Options
from simulator.poplibs.popnn.rnn_backward import Values
from simulator.poplibs.popops.expr import Const, PlaceHolder
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import detectInnermostGrouping

_1, _2, _3, _4, _5 = (PlaceHolder(number) for number in range(1, 6))


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
) -> tuple[Tensor, GruWeights]:
    """Return the gradients of the first output and the weights; add that of inputs to a list.

    `fwdIntermediates` are what `gruFwd` left, `output` all its outputs, `outputGrad` their
    gradients. Neither `resetAfter` nor a layer without all outputs has a backward pass here.
    """
    name = debug_name(debugContext, "gruBwd")
    order = gru.order_of(params, name)
    gru.check_tensors(name, params, fwdOutputInit, input, weights)
    if params.resetAfter or not params.outputFullSequence:
        raise poplibs_error(
            f"{name}: resetAfter is {params.resetAfter}, outputFullSequence "
            f"{params.outputFullSequence}; the backward pass is known for False and True"
        )
    sizes, values = params.rnn, rnn.read_options(options, name)
    with graph.debug_scope(name, "popnn"):
        before = rnn_backward.before_each(
            graph, sizes, fwdOutputInit, output, prog, f"{name}/fwdOutShifted"
        )
        layer = _Layer(graph, params, values, before, fwdIntermediates, name)
        usual = gru.in_usual_order(weights, order)
        first, units = layer.states(usual, outputGrad, inputGrad, prog)
        kernels = layer.weights(usual, input, units, prog)
    places = [params.cellOrder[place] for place in range(UNITS)]
    parts = [concat([part[unit].expand([0]) for unit in places], 0) for part in kernels]
    return first, GruWeights(*parts)


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer whose gradients are added; its units are in their usual order."""

    graph: Graph
    params: GruParams
    values: Values
    before: Tensor
    intermediates: Tensor
    name: str

    def states(
        self,
        weights: GruWeights,
        output_grad: Tensor,
        input_grad: list[Tensor] | None,
        prog: Program,
    ) -> tuple[Tensor, Tensor]:
        """Run back over the steps; return the gradients of the first state and of all units."""
        graph, sizes, name = self.graph, self.params.rnn, self.name
        kernel = weights.outputWeights
        if input_grad is not None:
            kernel = concat([weights.inputWeights, kernel], 1)
        arranged = [
            rnn_backward.arranged_weights(
                graph, sizes, rnn.as_matrix(part).transpose(), self.values, prog, f"{name}/Weights"
            )
            for part in (kernel[GATES:], kernel[:GATES])
        ]
        state = rnn_backward.zeros(graph, sizes, prog, f"{name}/lastOutGrad")
        next_grads = rnn.laid_out(graph, sizes, output_grad, prog, f"{name}/gradLayerNext")
        of_inputs = []
        if input_grad is not None:
            of_inputs = [
                rnn.create_sequence(graph, sizes, sizes.inputs, steps, f"{name}/inputGrad")
                for steps in (sizes.timeSteps, 1)
            ]
            input_grad.append(of_inputs[0])
        history = rnn.Kept.of(graph, sizes, UNITS, prog, f"{name}/bwdIntermediates")

        def step(index: Tensor, body: Program) -> None:
            step_values = [
                rnn.take_step(graph, sequence, index, body, f"{name}/slice")
                for sequence in (next_grads, self.before, self.intermediates)
            ]
            state_grad, units, of_input = self.step(state, step_values, arranged, body)
            if of_inputs:
                body.add(Copy(of_input, of_inputs[1][0], name=f"{name}/inputGrad"))
            history.add(units, index, body)
            body.add(Copy(state_grad, state, name=f"{name}/outGrad"))
            if of_inputs:
                full_inputs, part = of_inputs
                rnn.keep_step(graph, full_inputs, part[0], index, body, f"{name}/inputs")

        rnn.add_loop(graph, sizes.timeSteps, prog, name, step, backward=True)
        return state, history.sequence

    def step(
        self, state: Tensor, step_values: list[Tensor], arranged: list[Tensor], prog: Program
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Add a step; return the gradients of the state before it, of the units, of the input."""
        graph, params, name = self.graph, self.params, self.name
        group, (grads, before, saved) = detectInnermostGrouping(graph, state), step_values
        reset, update, candidate = saved[0], saved[1], saved[2]
        batch, size = params.rnn.batchSize, params.rnn.outputs
        gradient = popops.add(graph, state, grads, prog, f"{name}/AddActGrads")
        one_minus_update = popops.map(graph, Const(1) - _1, [update], prog, f"{name}/1-updateGate")
        apart = popops.sub(graph, before, candidate, prog, f"{name}/preOutput-candidate")
        factors = concat([one_minus_update, apart], 0)
        both = popops.mul(graph, factors, concat([gradient] * 2, 0), prog, f"{name}/MulOGate")
        of_candidate, of_update = rnn_backward.gradients_of(
            graph,
            [
                (params.activation, candidate, both[:batch]),
                (params.recurrentActivation, update, both[batch:]),
            ],
            prog,
            f"{name}/OutputGate",
        )
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

    def weights(
        self, weights: GruWeights, inputs: Tensor, units: Tensor, prog: Program
    ) -> GruWeights:
        """Sum the gradients of the weights over the steps."""
        graph, sizes, name = self.graph, self.params.rnn, f"{self.name}/GruDeltas"
        dtype = rnn_backward.accumulator_type(sizes, self.values)
        unit_slices, totals = (slice(0, GATES), slice(GATES, UNITS)), []
        for which in unit_slices:
            parts = [rnn.as_matrix(part[which]) for part in weights[:2]]
            totals.append(graph.clone(concat(parts, 0), f"{name}/weightsDeltaAcc", dtype))
        biases = graph.clone(units[0], f"{name}/biasesDeltaAcc", dtype)
        together = concat([part.flatten() for part in (*totals, biases)], 0)
        popops.zero(graph, together, prog, f"{name}/zeroWeightAccumulators")
        copy = rnn.laid_out(graph, sizes, inputs, prog, f"{name}/inputCopy")

        def step(index: Tensor, body: Program) -> None:
            step_values, before, saved, grads = (
                rnn.take_step(graph, sequence, index, body, f"{name}/slice")
                for sequence in (copy, self.before, self.intermediates, units)
            )
            shown = popops.mul(graph, before, saved[0], body, f"{name}/h_prev * r")
            for which, total, state in zip(unit_slices, totals, (before, shown), strict=True):
                columns = concat([step_values, state], 1).transpose()
                rnn_backward.accumulate(
                    graph,
                    total,
                    columns,
                    rnn.as_matrix(grads[which]),
                    self.values,
                    body,
                    f"{name}/dw",
                )
            rnn_backward.add_biases(graph, biases, grads, body, f"{name}/Bias")

        rnn.add_loop(graph, sizes.timeSteps, prog, name, step, backward=True)
        of_biases = graph.clone(weights.biases, f"{name}/biasGrad", dtype)
        popops.reduceWithOutput(
            graph, biases, of_biases, [1], popops.Operation.ADD, prog, f"{name}/FinalBiasReduction"
        )
        split = [
            concat([rnn.units_of(part, total.dim(1) // sizes.outputs) for part, total in pairs], 0)
            for pairs in (
                [(total[: sizes.inputs], total) for total in totals],
                [(total[sizes.inputs :], total) for total in totals],
            )
        ]
        return GruWeights(split[0], split[1], of_biases)
