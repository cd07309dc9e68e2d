"""The plain recurrent layer (popnn/Recurrent.hpp): h = f(x W + h U + b), and its gradients.

`popnn.rnn` has these names. Its steps may be added one by one, or as a loop (`rnnFwdSequence`).
"""

from __future__ import annotations

from typing import Any, overload

from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionFlags
from simulator.graph.program import Copy
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, Type
from simulator.logging import library_call
from simulator.poplibs import poplin, popops
from simulator.poplibs.poplin import PlanningCache
from simulator.poplibs.poplin.convolutions.preplanning import MatMulParams
from simulator.poplibs.popnn import rnn
from simulator.poplibs.popnn.nonlinearities.activations import (
    NonLinearityType,
    nonLinearityInPlace,
    nonLinearityInputGradient,
)
from simulator.poplibs.popnn.rnn import BACKWARD, FORWARD, UPDATE
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import duplicate

NAMES = (
    "backwardGradientStep", "createBwdState", "createFwdState", "createInput",
    "createWeightsFeedback", "createWeightsInput", "forwardIterate", "forwardWeightInput",
    "getBwdFlops", "getFwdFlops", "getMatMulPrePlanParameters", "getOutputFromFwdState",
    "getWuFlops", "paramDeltaUpdate", "rnnBwdSequence", "rnnFwdSequence",
)  # fmt: skip
Shape = tuple[int, int]


def _options(partials: Type, which: str) -> dict[str, object]:
    return {"partialsType": str(partials), "fullyConnectedPass": which}


def _forward(partials: Type, inference: bool) -> dict[str, object]:
    return _options(partials, "INFERENCE_FWD" if inference else FORWARD)


@library_call("POPNN")
def getMatMulPrePlanParameters(
    numSteps: int,
    batchSize: int,
    inputSize: int,
    outputSize: int,
    dType: Type,
    partialsType: Type = FLOAT,
    inferenceOnly: bool = False,
    hasFeedforwardWeights: bool = True,
) -> list[tuple[MatMulParams, OptionFlags]]:
    """List the products of the layer's passes; as PopLibs does, of inputs batch times inputs.

    >>> from simulator import poplar, popnn
    >>> sizes = 1, 4, 2, 3  # steps, batch, inputs, outputs
    >>> len(popnn.rnn.getMatMulPrePlanParameters(*sizes, poplar.FLOAT))  # 3 passes of 2 products
    6
    """
    inputs = [batchSize * inputSize] if hasFeedforwardWeights else []
    layers = [
        poplin.fc.FullyConnectedParams(1, batchSize, size, outputSize)
        for size in (*inputs, outputSize)
    ]
    options = {"partialsType": str(partialsType)}
    parameters = poplin.fc.getMatMulPrePlanParameters
    return [one for of in layers for one in parameters(of, options, dType, inferenceOnly)]


@library_call("POPNN")
def getFwdFlops(
    sequenceSize: int, batchSize: int, inputSize: int, outputSize: int, weightInput: bool = True
) -> int:
    """Count the operations of the forward pass: two products, 2 more an output of a step.

    >>> from simulator import popnn
    >>> popnn.rnn.getFwdFlops(1, 1, 2, 3)  # 3 outputs: 5 of the state, 3 of the inputs, 2
    30
    """
    samples = batchSize * sequenceSize
    flops = samples * outputSize * (2 * outputSize - 1) + 2 * sequenceSize * outputSize
    return flops + (samples * outputSize * (2 * inputSize - 1) if weightInput else 0)


@library_call("POPNN")
def getBwdFlops(
    sequenceSize: int, batchSize: int, inputSize: int, outputSize: int, calcInputGrad: bool = True
) -> int:
    """Count the operations of the backward pass, without non-linearities.

    >>> from simulator import popnn
    >>> popnn.rnn.getBwdFlops(1, 1, 2, 3)  # 3 outputs: 5 of the state, 3 of the inputs
    24
    """
    width = 2 * outputSize - 1 + (2 * inputSize - 1 if calcInputGrad else 0)
    return batchSize * sequenceSize * outputSize * width


@library_call("POPNN")
def getWuFlops(sequenceSize: int, batchSize: int, inputSize: int, outputSize: int) -> int:
    """Count the operations of the gradients of weights and biases, and of their updates.

    >>> from simulator import popnn
    >>> popnn.rnn.getWuFlops(1, 1, 2, 3)  # 3 outputs: 5 products, 6 updates
    33
    """
    samples, fed = batchSize * sequenceSize, inputSize + outputSize
    sums = (samples - 1) * outputSize * (fed + 1)
    return samples * outputSize * fed + sums + outputSize * (fed + 1)


@library_call("POPNN")
def createInput(
    graph: Graph,
    numSteps: int,
    batchSize: int,
    inputSize: int,
    outputSize: int,
    dType: Type,
    partialsType: Type = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Add the inputs [steps, batch, inputs]; all steps lie alike, as their product reads them.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> sizes = 5, 4, 2, 3  # steps, batch, inputs, outputs
    >>> popnn.rnn.createInput(Trial().graph, *sizes, poplar.FLOAT).shape
    (5, 4, 2)
    """
    name = debug_name(debugContext, "input")
    shapes: tuple[Shape, Shape] = (batchSize, inputSize), (inputSize, outputSize)
    options = _forward(partialsType, inferenceOnly)
    first = poplin.createMatMulInputLHS(graph, dType, dType, *shapes, name, options, planningCache)
    steps = [first, *(graph.clone(first, f"{name}/{step}") for step in range(1, numSteps))]
    return concat([step.expand([0]) for step in steps], 0)


@library_call("POPNN")
def createFwdState(
    graph: Graph,
    dType: Type,
    batchSize: int,
    outputSize: int,
    prog: Program,
    initState: bool,
    inferenceOnly: bool,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Add the state before the first step, [batch, outputs]; zeros where `initState` says so.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> operands = poplar.FLOAT, 1, 3, trial.prog, True, False
    >>> trial.values(popnn.rnn.createFwdState(trial.graph, *operands))
    [[0.0, 0.0, 0.0]]
    """
    name = debug_name(debugContext, "FwdState")
    which = "INFERENCE_FWD" if inferenceOnly else FORWARD
    state = _state(graph, dType, (batchSize, outputSize), which, name, planningCache)
    if initState:
        popops.zero(graph, state, prog, name)
    return state


@library_call("POPNN")
def createBwdState(
    graph: Graph,
    dType: Type,
    batchSize: int,
    outputSize: int,
    prog: Program,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Add the gradient of the state behind the last step, [batch, outputs], of zeros.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.values(popnn.rnn.createBwdState(trial.graph, poplar.FLOAT, 1, 3, trial.prog))
    [[0.0, 0.0, 0.0]]
    """
    name = debug_name(debugContext, "BwdState")
    state = _state(graph, dType, (batchSize, outputSize), BACKWARD, name, planningCache)
    popops.zero(graph, state, prog, name)
    return state


def _state(
    graph: Graph, dtype: Type, shape: Shape, which: str, name: str, cache: PlanningCache | None
) -> Tensor:
    kernel = (shape[1], shape[1])
    options = {"fullyConnectedPass": which}
    return poplin.createMatMulInputLHS(graph, dtype, dtype, shape, kernel, name, options, cache)


def getOutputFromFwdState(fwdState: Tensor) -> Tensor:
    """Return the output that a state has, which is the state.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> trial.values(popnn.rnn.getOutputFromFwdState(trial.tensor([[2.0]])))
    [[2.0]]
    """
    return fwdState


@library_call("POPNN")
def createWeightsInput(
    graph: Graph,
    sequenceSize: int,
    batchSize: int,
    inputSize: int,
    outputSize: int,
    dType: Type,
    partialsType: Type = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Add the weights of inputs, [inputs, outputs].

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> sizes = 5, 4, 2, 3  # steps, batch, inputs, outputs
    >>> popnn.rnn.createWeightsInput(Trial().graph, *sizes, poplar.FLOAT).shape
    (2, 3)
    """
    name = debug_name(debugContext, "weightsInput")
    options = _forward(partialsType, inferenceOnly)
    shapes: tuple[Shape, Shape] = (batchSize, inputSize), (inputSize, outputSize)
    return poplin.createMatMulInputRHS(graph, dType, dType, *shapes, name, options, planningCache)


@library_call("POPNN")
def createWeightsFeedback(
    graph: Graph,
    batchSize: int,
    outputSize: int,
    dType: Type,
    partialsType: Type = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Add the weights of states, [outputs, outputs].

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> popnn.rnn.createWeightsFeedback(Trial().graph, 4, 3, poplar.FLOAT).shape  # batch, outputs
    (3, 3)
    """
    name = debug_name(debugContext, "weightsRecurrent")
    options = _forward(partialsType, inferenceOnly)
    shapes: tuple[Shape, Shape] = (batchSize, outputSize), (outputSize, outputSize)
    return poplin.createMatMulInputRHS(graph, dType, dType, *shapes, name, options, planningCache)


@library_call("POPNN")
def forwardWeightInput(
    graph: Graph,
    actIn: Tensor,
    weights: Tensor,
    prog: Program,
    partialsType: Type = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Return the inputs [steps, batch, inputs] times their weights, all steps at once.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> x, weights = trial.tensor([[[3.0]], [[4.0]]]), trial.tensor([[2.0]])
    >>> trial.values(popnn.rnn.forwardWeightInput(trial.graph, x, weights, trial.prog))
    [[[6.0]], [[8.0]]]
    """
    name = debug_name(debugContext, "RnnFwd/FeedFwd")
    steps, batch, size = actIn.shape
    options = _forward(partialsType, inferenceOnly)
    flat = actIn.reshape([steps * batch, size])
    product = poplin.matMul(graph, flat, weights, prog, None, name, options, planningCache)
    return product.reshape([steps, batch, weights.dim(1)])


@library_call("POPNN")
def forwardIterate(
    graph: Graph,
    feedFwdIn: Tensor,
    initState: Tensor,
    feedbackWeights: Tensor,
    biases: Tensor,
    prog: Program,
    nonLinearityType: NonLinearityType,
    partialsType: Type = FLOAT,
    inferenceOnly: bool = False,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Return the states of all steps, [steps, batch, outputs], of weighted inputs alike.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> values = [[[3.0]], [[4.0]]], [[0.0]], [[2.0]], [1.0]  # inputs, state, its weights, biases
    >>> operands = *map(trial.tensor, values), trial.prog, popnn.NonLinearityType.RELU
    >>> trial.values(popnn.rnn.forwardIterate(trial.graph, *operands))  # 3 + 1, 4 + 2 * 4 + 1
    [[[4.0]], [[13.0]]]
    """
    name = debug_name(debugContext, "RnnFwd/Feedback")
    options = _forward(partialsType, inferenceOnly)
    spread = biases.expand([0]).broadcast(feedFwdIn.dim(1), 0)
    states = [initState]
    for step in range(feedFwdIn.dim(0)):
        label = f"{name}/{step}"
        state = poplin.matMul(
            graph, states[-1], feedbackWeights, prog, None, label, options, planningCache
        )
        popops.addInPlace(graph, state, feedFwdIn[step], prog, f"{label}/Sum")
        popops.addInPlace(graph, state, spread, prog, f"{label}/Bias")
        nonLinearityInPlace(graph, nonLinearityType, state, prog, label)
        states.append(state)
    return concat([state.expand([0]) for state in states[1:]], 0)


@library_call("POPNN")
def rnnFwdSequence(
    graph: Graph,
    prog: Program,
    fwdStateInit: Tensor,
    weightedIn: Tensor | None,
    biases: Tensor,
    feedFwdWeights: Tensor,
    feedbackWeights: Tensor,
    prevLayerActs: Tensor,
    nonLinearityType: NonLinearityType,
    partialsType: Type,
    inferenceOnly: bool,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor:
    """Return the states of all steps; a loop takes each step's inputs, or what they weigh.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> state, biases, x = map(trial.tensor, ([[0.0]], [0.0], [[[1.0]], [[1.0]]]))
    >>> weights = trial.tensor([[2.0]]), trial.tensor([[3.0]])  # of inputs, of states
    >>> kind = popnn.NonLinearityType.RELU, poplar.FLOAT, False
    >>> operands = state, None, biases, *weights, x, *kind
    >>> out = popnn.rnn.rnnFwdSequence(trial.graph, trial.prog, *operands)
    >>> trial.values(out)  # 2, 2 + 3 * 2
    [[[2.0]], [[8.0]]]
    """
    name = debug_name(debugContext, "rnnFwdSequence")
    steps = prevLayerActs.dim(0)
    state = duplicate(graph, fwdStateInit, prog, f"{name}/state")
    parts = [graph.clone(fwdStateInit, f"{name}/fwdState") for _ in range(steps)]
    states = concat([part.expand([0]) for part in parts], 0)
    source = prevLayerActs if weightedIn is None else weightedIn

    def step(index: Tensor, body: Program) -> None:
        fed = popops.dynamicSlice(graph, source, index, [0], [1], body, f"{name}/rnnInput")
        shared = (partialsType, inferenceOnly, name, planningCache)
        if weightedIn is None:
            fed = forwardWeightInput(graph, fed, feedFwdWeights, body, *shared)
        after = forwardIterate(
            graph, fed, state, feedbackWeights, biases, body, nonLinearityType, *shared
        )
        body.add(Copy(after[0], state, name=f"{name}/state"))
        popops.dynamicUpdate(graph, states, after, index, [0], [1], body, f"{name}/rnnUpdateState")

    rnn.add_loop(graph, steps, prog, name, step)
    return states


@overload
def backwardGradientStep(
    graph: Graph,
    nextLayerGrad: Tensor,
    bwdState: Tensor,
    actOut: Tensor,
    weightsInput: Tensor,
    weightsFeedback: Tensor,
    prog: Program,
    nonLinearityType: NonLinearityType,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor, Tensor]: ...
@overload
def backwardGradientStep(
    graph: Graph,
    nextLayerGrad: Tensor,
    bwdState: Tensor,
    actOut: Tensor,
    weightsFeedback: Tensor,
    prog: Program,
    nonLinearityType: NonLinearityType,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> Tensor: ...
@library_call("POPNN")
def backwardGradientStep(
    graph: Graph,
    nextLayerGrad: Tensor,
    bwdState: Tensor,
    actOut: Tensor,
    *arguments: Any,
    **named: Any,
) -> tuple[Tensor, Tensor] | Tensor:
    """Return the gradients of a step's input and of its sum, which is the state before it.

    Without the weights of inputs, which stand before those of states, that of the sum alone.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> gradient, behind, out = map(trial.tensor, ([[1.0]], [[1.0]], [[4.0]]))
    >>> weights = trial.tensor([[2.0]]), trial.tensor([[3.0]])  # of inputs, of states
    >>> operands = gradient, behind, out, *weights, trial.prog, popnn.NonLinearityType.RELU
    >>> trial.values(*popnn.rnn.backwardGradientStep(trial.graph, *operands))  # 2 * 4, 1 + 3 * 1
    [[[8.0]], [[4.0]]]
    """
    tensors = [value for value in arguments[:2] if isinstance(value, Tensor)]
    rest = arguments[len(tensors) :]
    tensors += [named.pop(key) for key in ("weightsInput", "weightsFeedback") if key in named]
    values = (nextLayerGrad, bwdState, actOut)
    of_input, state = _backward(graph, values, tensors, *rest, **named)
    return state if of_input is None else (of_input, state)


def _backward(
    graph: Graph,
    step_values: tuple[Tensor, Tensor, Tensor],
    weights: list[Tensor],
    prog: Program,
    nonLinearityType: NonLinearityType,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor | None, Tensor]:
    """Add the gradients of a step, by those of its output and of the sum behind it."""
    name = debug_name(debugContext, "RnnBwd")
    output_grad, behind, output = step_values
    options = _options(partialsType, BACKWARD)
    gradient = poplin.matMul(
        graph, behind, weights[-1].transpose(), prog, None, f"{name}/Fb", options, planningCache
    )
    popops.addInPlace(graph, gradient, output_grad, prog, f"{name}/AddOutGrad")
    state = nonLinearityInputGradient(graph, nonLinearityType, output, gradient, prog, name)
    if len(weights) == 1:
        return None, state
    of_input = poplin.matMul(
        graph, state, weights[0].transpose(), prog, None, f"{name}/Ff", options, planningCache
    )
    return of_input, state


@library_call("POPNN")
def paramDeltaUpdate(
    graph: Graph,
    bwdState: Tensor,
    actIn: Tensor,
    prevOut: Tensor,
    weightsInputDeltasAcc: Tensor,
    weightsFeedbackDeltasAcc: Tensor,
    biasDeltasAcc: Tensor,
    prog: Program,
    partialsType: Type = FLOAT,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> None:
    """Add a step to the gradients of weights and biases, by that of its sum.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> gradient, x, before = map(trial.tensor, ([[2.0]], [[3.0]], [[4.0]]))
    >>> totals = trial.tensor([[0.0]]), trial.tensor([[0.0]]), trial.tensor([10.0])
    >>> popnn.rnn.paramDeltaUpdate(trial.graph, gradient, x, before, *totals, trial.prog)
    >>> trial.values(*totals)  # 2 * 3, 2 * 4, 10 + 2
    [[[6.0]], [[8.0]], [12.0]]
    """
    name = debug_name(debugContext, "RnDeltas")
    options = _options(partialsType, UPDATE)
    for label, total, left in (
        ("Wi", weightsInputDeltasAcc, actIn),
        ("Wfb", weightsFeedbackDeltasAcc, prevOut),
    ):
        poplin.matMulAcc(
            graph, total, 1.0, left.transpose(), bwdState, prog, f"{name}/{label}", options,
            planningCache,
        )  # fmt: skip
    sums = popops.reduce(graph, bwdState, bwdState.dtype, [0], popops.Operation.ADD, prog, name)
    popops.addInPlace(graph, biasDeltasAcc, sums, prog, name)


@library_call("POPNN")
def rnnBwdSequence(
    graph: Graph,
    doWU: bool,
    ignoreInputGradientCalc: bool,
    prog: Program,
    fwdStateInit: Tensor,
    fwdState: Tensor,
    biases: Tensor,
    feedFwdWeights: Tensor,
    feedbackWeights: Tensor,
    outGradient: Tensor,
    actIn: Tensor,
    nonLinearityType: NonLinearityType,
    partialsType: Type,
    debugContext: str = "",
    planningCache: PlanningCache | None = None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of the inputs, the weights of inputs and of states, and the biases.

    Of `outGradient` [batch, steps, outputs]. What is not asked for is None. PopLibs' loop leaves
    the gradient of the state at zero; here it goes from step to step.

    >>> from simulator import poplar, popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> state, biases, x = map(trial.tensor, ([[0.0]], [0.0], [[[1.0]], [[1.0]]]))
    >>> weights = trial.tensor([[2.0]]), trial.tensor([[3.0]])  # of inputs, of states
    >>> out, gradient = trial.tensor([[[2.0]], [[8.0]]]), trial.tensor([[[0.0], [1.0]]])
    >>> kind = popnn.NonLinearityType.RELU, poplar.FLOAT
    >>> operands = state, out, biases, *weights, gradient, x, *kind
    >>> gradients = popnn.rnn.rnnBwdSequence(trial.graph, True, False, trial.prog, *operands)
    >>> trial.values(*gradients)  # of the sums 3 and 1
    [[[[6.0]], [[2.0]]], [[4.0]], [[2.0]], [4.0]]
    """
    name = debug_name(debugContext, "rnnBwdSequence")
    batch, outputs = fwdStateInit.shape
    gradient = createBwdState(graph, actIn.dtype, batch, outputs, prog, name, planningCache)
    totals = _totals(graph, (feedFwdWeights, feedbackWeights, biases), doWU, prog, name)
    before = concat([fwdStateInit.expand([0]), fwdState[: fwdState.dim(0) - 1]], 0)
    of_inputs = None if ignoreInputGradientCalc else graph.clone(actIn, f"{name}/gradient")
    weights = [feedbackWeights] if ignoreInputGradientCalc else [feedFwdWeights, feedbackWeights]

    def step(index: Tensor, body: Program) -> None:
        def take(sequence: Tensor) -> Tensor:
            return rnn.take_step(graph, sequence, index, body, f"{name}/slice")

        values = (take(outGradient.dimShuffle([1, 0, 2])), gradient, take(fwdState))
        shared = (partialsType, name, planningCache)
        of_input, state = _backward(graph, values, weights, body, nonLinearityType, *shared)
        if of_input is not None and of_inputs is not None:
            rnn.keep_step(graph, of_inputs, of_input, index, body, f"{name}/rnnUpdateGradient")
        if totals:
            parts = (take(actIn), take(before), *totals)
            paramDeltaUpdate(graph, state, *parts, body, *shared)
        body.add(Copy(state, gradient, name=f"{name}/state"))

    rnn.add_loop(graph, actIn.dim(0), prog, name, step, backward=True)
    return (of_inputs, *totals) if totals else (of_inputs, None, None, None)


def _totals(
    graph: Graph, parts: tuple[Tensor, Tensor, Tensor], wanted: bool, prog: Program, name: str
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Add the gradients of weights and biases, of zeros, where they are wanted."""
    if not wanted:
        return None
    inputs, states, biases = (graph.clone(part, f"{name}/DeltasAcc") for part in parts)
    for total in (inputs, states, biases):
        popops.zero(graph, total, prog, f"{name}/ZeroDeltasAcc")
    return inputs, states, biases
