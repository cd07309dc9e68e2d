"""The gated recurrent unit, forward (popnn/Gru.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from importlib import import_module
from typing import Any, NamedTuple

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs import poplin, popops
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.popnn import rnn
from simulator.poplibs.popnn.nonlinearities.activations import NonLinearityType
from simulator.poplibs.popnn.recurrence import gated
from simulator.poplibs.popnn.rnn import Options, RnnParams, Sums
from simulator.poplibs.popnn.time_steps import Mask, params_with_lengths, takes_lengths
from simulator.poplibs.popops.expr import PlaceHolder
from simulator.poplibs.popops.regions import debug_name


class BasicGruCellUnit(IntEnum):
    """The units of a cell."""

    BASIC_GRU_CELL_RESET_GATE = 0
    BASIC_GRU_CELL_UPDATE_GATE = 1
    BASIC_GRU_CELL_CANDIDATE = 2


UNITS = len(BasicGruCellUnit)
GATES = 2  # reset and update, whose sums one product gives
_1, _2, _3 = PlaceHolder(1), PlaceHolder(2), PlaceHolder(3)


def getDefaultBasicGruCellOrder() -> list[BasicGruCellUnit]:
    """Return the order of the units in the weights: reset, update, candidate.

    >>> from simulator import popnn
    >>> first, *_ = popnn.gru.getDefaultBasicGruCellOrder()
    >>> first.name
    'BASIC_GRU_CELL_RESET_GATE'
    """
    return list(BasicGruCellUnit)


@params_with_lengths
@dataclass(slots=True)
class GruParams:
    """A layer: its sizes, and what it does.

    `cellOrder` is the order of the units in weights and biases. With `resetAfter` the reset gate
    acts on the product of the state, which has biases of its own. The output is that of all steps,
    or without `outputFullSequence` that of each sample's last one. Behind the end of a sample, by
    its `varTimeSteps`, outputs are zeros.
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
    varTimeSteps: Tensor | None = None

    @property
    def rnn(self) -> RnnParams:
        """Return the sizes."""
        sizes = (self.dataType, self.batchSize, self.timeSteps, self.layerSizes)
        return RnnParams(*sizes, varTimeSteps=self.varTimeSteps)

    def with_lengths(self, lengths: Tensor | None, name: str) -> GruParams:
        """Return the layer for samples of these lengths; raises poplibs_error for a second time."""
        if lengths is not None and self.varTimeSteps is not None:
            raise poplibs_error(f"{name}: varTimeSteps are given, and realTimeSteps; one is needed")
        return self if lengths is None else replace(self, varTimeSteps=lengths)

    @property
    def bias_shape(self) -> list[int]:
        """Return the shape of the biases without the outputs."""
        return [UNITS, 2] if self.resetAfter else [UNITS]


class GruWeights(NamedTuple):
    """Weights [units, inputs, outputs] and [units, outputs, outputs], biases [units, outputs].

    With `resetAfter` biases are [units, 2, outputs]: of the inputs, and of the state.
    """

    inputWeights: Tensor
    outputWeights: Tensor
    biases: Tensor


LAYER: gated.Layer[GruParams] = gated.Layer(
    "gru",
    BasicGruCellUnit,
    products=lambda params: [UNITS] if params.resetAfter else [GATES, 1],
    bias_shape=lambda params: params.bias_shape,
    sorts=True,
)
createInput = gated.input_of(LAYER)
createInitialState = gated.state_of(LAYER, "createInitialState", "initialOutput")
createWeightsKernel, createWeightsBiases, createWeights = gated.weights_of(LAYER, GruWeights)


@library_call("POPNN")
def createAttention(
    graph: Graph, params: GruParams, debugContext: str = "", options: Options = None
) -> Tensor:
    """Add the attention scores [batch, timeSteps] of `auGruFwd`.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 4, 5, [2, 3])  # 4 samples, 5 steps
    >>> popnn.gru.createAttention(trial.graph, params).shape
    (4, 5)
    """
    name = debug_name(debugContext, "attention")
    shape = [params.batchSize, params.timeSteps]
    return popops.createSliceableTensor(graph, params.dataType, shape, [1], [1], 0, name)


@takes_lengths(4)
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
    *,
    realTimeSteps: Tensor | None = None,
) -> Tensor:
    """Run the layer over all steps; give its output.

    r, u = recurrentActivation(x W + h U + b) by their units, c = activation(x W + (r * h) U + b),
    with `resetAfter` activation(x W + b + r * (h U + b')); h = u * h + (1 - u) * c. `in_` is
    PopLibs' `in`. To a list of `intermediates` the units' values of each step are added:
    [timeSteps, 3, batch, outputs], without all outputs and the step's own, with `resetAfter` and
    what the state adds to the candidate.
    `realTimeSteps` [batch], which may stand behind `in_`, are the steps that each sample has.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 3, [[[0.0]]] * 3, [[0.0]] * 3  # each gate is half open, no new content
    >>> weights = popnn.gru.GruWeights(*map(trial.tensor, zeros))
    >>> state, x = trial.tensor([[2.0]]), trial.tensor([[[1.0]]])
    >>> out = popnn.gru.gruFwd(trial.graph, params, state, x, weights, None, trial.prog)
    >>> trial.values(out)  # 0.5 * 2
    [[[1.0]]]
    """
    name = debug_name(debugContext, "gruFwd")
    params = params.with_lengths(realTimeSteps, name)
    operands = (stateInit, in_, weights, intermediates)
    return _forward(graph, params, operands, None, fwdProg, name, options)


@takes_lengths(4)
@library_call("POPNN")
def auGruFwd(
    graph: Graph,
    params: GruParams,
    stateInit: Tensor,
    in_: Tensor,
    weights: GruWeights,
    intermediates: list[Tensor] | None,
    attScores: Tensor,
    fwdProg: Program,
    debugContext: str = "",
    options: Options = None,
    planningCache: PlanningCache | None = None,
    *,
    realTimeSteps: Tensor | None = None,
) -> Tensor:
    """Run the layer as `gruFwd` does, its update gate u times 1 - `attScores` [batch, timeSteps].

    The intermediates have that product in the gate's place.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = popnn.gru.GruParams(poplar.FLOAT, 1, 1, [1, 1])
    >>> zeros = [[[0.0]]] * 3, [[[0.0]]] * 3, [[0.0]] * 3  # each gate is half open, no new content
    >>> weights = popnn.gru.GruWeights(*map(trial.tensor, zeros))
    >>> state, x, scores = trial.tensor([[2.0]]), trial.tensor([[[1.0]]]), trial.tensor([[0.0]])
    >>> operands = state, x, weights, None, scores, trial.prog
    >>> trial.values(popnn.gru.auGruFwd(trial.graph, params, *operands))  # 0.5 * 2
    [[[1.0]]]
    """
    name = debug_name(debugContext, "auGruFwd")
    params = params.with_lengths(realTimeSteps, name)
    rnn.expect(name, attScores, params.dataType, params.batchSize, params.timeSteps)
    operands = (stateInit, in_, weights, intermediates)
    return _forward(graph, params, operands, attScores, fwdProg, name, options)


def _forward(
    graph: Graph,
    params: GruParams,
    operands: tuple[Tensor, Tensor, GruWeights, list[Tensor] | None],
    attention: Tensor | None,
    fwdProg: Program,
    name: str,
    options: Options,
) -> Tensor:
    """Add the loop over the steps; return the layer's output."""
    stateInit, in_, weights, intermediates = operands
    order = gated.order_of(LAYER, params, name)
    check_tensors(name, params, stateInit, in_, weights)
    values = rnn.read_options(options, name)
    with graph.debug_scope(name, "popnn"):
        sizes = params.rnn
        inputs = in_
        if not values["preCalcWeights"]:
            inputs = rnn.laid_out(graph, sizes, in_, fwdProg, f"{name}/prevLayerActsCopy")
        outputs = rnn.create_sequence(
            graph, sizes, sizes.outputs, sizes.timeSteps, f"{name}/output"
        )
        layer = _layer_of(
            graph, params, inputs, in_usual_order(weights, order), values, fwdProg, name
        )
        layer = replace(layer, attention=attention)
        intermediates_kept = None
        if intermediates is not None:
            count = UNITS + (not params.outputFullSequence) + params.resetAfter
            intermediates_kept = rnn.Kept.of(
                graph, sizes, count, fwdProg, f"{name}/fwdIntermediatesSeq"
            )
            intermediates.append(intermediates_kept.sequence)
        state = rnn.copy_of(graph, sizes, stateInit, fwdProg, name)
        lengths = sizes.lengths(graph, fwdProg, name)
        if lengths and params.outputFullSequence:
            popops.zero(graph, outputs, fwdProg, f"{name}/zeroOutput")

        def step(index: Tensor, prog: Program) -> None:
            mask = lengths.mask(index, prog) if lengths else None
            intermediates_made = _cell(layer, state, index, intermediates_kept is not None, prog)
            if mask:
                mask.zero(intermediates_made, prog)
            if intermediates_kept and params.outputFullSequence:
                intermediates_kept.add(intermediates_made, index, prog)
            _next_output(layer, state, intermediates_made, mask, prog)
            if intermediates_kept and not params.outputFullSequence:
                units, more = intermediates_made[:UNITS], intermediates_made[UNITS:]
                all_values = concat([units, state.expand([0]), more], 0)
                intermediates_kept.add(all_values, index, prog)
            if params.outputFullSequence:
                rnn.keep_step(graph, outputs, state, index, prog, f"{name}/outputs")

        rnn.add_loop(graph, params.timeSteps, fwdProg, name, step, lengths=lengths)
    return outputs if params.outputFullSequence else state


def in_usual_order(weights: GruWeights, order: list[int]) -> GruWeights:
    """Put the units into their usual order."""
    return GruWeights(*(gated.in_order(part, order) for part in weights))


def check_tensors(
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
    """The sums of gates and of candidate; with `resetAfter` of all units, and what a state adds."""

    graph: Graph
    params: GruParams
    gates: Sums
    candidate: Sums | None
    state_kernel: Tensor | None
    state_biases: Tensor | None
    name: str
    attention: Tensor | None = None

    def attend(self, update: Tensor, index: Tensor, prog: Program) -> None:
        """Take a step's attention off the update gate [batch, outputs]."""
        if self.attention is not None:
            graph, name = self.graph, f"{self.name}/Attention"
            scores = popops.dynamicSlice(graph, self.attention, index, [1], [1], prog, name)
            popops.mapInPlace(graph, _1 - _2 * _1, [update, scores], prog, name)


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

    def sums(which: slice, part: Tensor, label: str) -> Sums:
        first, second = (rnn.as_matrix(kernel[which]) for kernel in weights[:2])
        return rnn.sums_of(graph, inputs, (first, second), part, values, prog, f"{name}/{label}")

    if params.resetAfter:
        both = sums(slice(0, UNITS), weights.biases[:, 0], "Units")
        kernel = rnn.as_matrix(weights.outputWeights)
        return _Layer(graph, params, both, None, kernel, weights.biases[:, 1], name)
    gates = sums(slice(0, GATES), weights.biases[:GATES], "Gates")
    candidate = sums(slice(GATES, UNITS), weights.biases[GATES:], "Candidate")
    return _Layer(graph, params, gates, candidate, None, None, name)


def _cell(layer: _Layer, state: Tensor, index: Tensor, keep: bool, prog: Program) -> Tensor:
    """Add one step up to its candidate; return the values that a backward pass needs."""
    step_sums = layer.gates.take(index, prog)
    if layer.candidate is None:
        units = _reset_after(layer, step_sums, state, prog)
        layer.attend(units[1], index, prog)
        return units
    graph, params, name = layer.graph, layer.params, layer.name
    reset, update, candidate = _units_like(layer, state)
    gates = concat([reset, update], 0)
    layer.gates.write(step_sums, state, gates, prog)
    rnn.activate(graph, [(params.recurrentActivation, gates)], prog, name)
    layer.attend(update[0], index, prog)
    if layer.candidate.before:
        step_sums = layer.candidate.take(index, prog)
    reset_kept = reset
    if keep:
        reset_kept = graph.clone(reset, f"{name}/resetGateOut")
        prog.add(Copy(reset, reset_kept, name=f"{name}/resetGateOut"))
    popops.mulInPlace(graph, reset[0], state, prog, f"{name}/resetGate * output")
    layer.candidate.write(step_sums, reset[0], candidate, prog)
    rnn.activate(graph, [(params.activation, candidate)], prog, name)
    return concat([reset_kept, update, candidate], 0)


def _units_like(layer: _Layer, state: Tensor) -> list[Tensor]:
    """Add a variable [1, batch, outputs] for each unit, that lies as the state does."""
    names = ("reset", "update", "candidate")
    return [layer.graph.clone(state, f"{layer.name}/{unit}").expand([0]) for unit in names]


def _next_output(
    layer: _Layer, state: Tensor, cell_values: Tensor, mask: Mask | None, prog: Program
) -> None:
    """Add what replaces the state by the output of the step.

    A sample without the step keeps its state, or has zeros where all outputs are kept.
    """
    operands, output = [state, cell_values[1], cell_values[2]], _3 + _2 * (_1 - _3)
    name = f"{layer.name}/CalcNextOutput"
    if mask is None or layer.params.outputFullSequence:
        popops.mapInPlace(layer.graph, output, operands, prog, name)
        if mask:
            mask.zero(state, prog)
    else:
        mask.select(state, popops.map(layer.graph, output, operands, prog, name), prog)


def _reset_after(layer: _Layer, step_sums: Tensor, state: Tensor, prog: Program) -> Tensor:
    """Add one step whose reset gate acts on what the state adds to the candidate."""
    graph, params, sums, name = layer.graph, layer.params, layer.gates, f"{layer.name}/ResetAfter"
    if layer.state_kernel is None or layer.state_biases is None:
        raise AssertionError(name)
    units = concat(_units_like(layer, state), 0)
    added = concat(_units_like(layer, state), 0)
    product = step_sums
    if not sums.before:
        inputs = sums.kernel[: step_sums.dim(1)]
        product = poplin.matMul(
            graph, step_sums, inputs, prog, None, f"{name}/Inputs", sums.options
        )
    of_state = poplin.matMul(
        graph, state, layer.state_kernel, prog, None, f"{name}/State", sums.options
    )
    rnn.write_units(graph, product, units, sums.biases, prog, f"{name}/Inputs")
    rnn.write_units(graph, of_state, added, layer.state_biases, prog, f"{name}/State")
    recurrent = graph.clone(added[GATES], f"{name}/candidateRecurrent")
    prog.add(Copy(added[GATES], recurrent, name=f"{name}/candidateRecurrent"))
    popops.addInPlace(graph, units[:GATES], added[:GATES], prog, f"{name}/Weights")
    rnn.activate(graph, [(params.recurrentActivation, units[:GATES])], prog, name)
    popops.mulInPlace(graph, added[GATES], units[0], prog, f"{name}/ch * r")
    popops.addInPlace(graph, units[GATES], added[GATES], prog, f"{name}/Candidate")
    rnn.activate(graph, [(params.activation, units[GATES:])], prog, name)
    return concat([units, recurrent.expand([0])], 0)


# What is built on this layer, under PopLibs' names; it is loaded when it is asked for.
_BUILT = {
    **dict.fromkeys(("gruBwd", "gruBwdWithWU", "gruWU"), "recurrence.gru_backward"),
    **dict.fromkeys(("auGruBwd", "auGruBwdWithWU", "auGruWU"), "recurrence.gru_backward"),
    **{f"getBasicGruCell{way}Flops": "flops" for way in ("Fwd", "Bwd", "Wu")},
}


def __getattr__(name: str) -> Any:
    if name not in _BUILT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"simulator.poplibs.popnn.{_BUILT[name]}"), name)
