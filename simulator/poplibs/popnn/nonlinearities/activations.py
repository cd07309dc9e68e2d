"""Non-linearities and their gradients (popnn/NonLinearity.hpp)."""

from __future__ import annotations

from enum import Enum

from simulator.codelets.layers.nonlinearity import nonlinearity, nonlinearity_gradient
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF
from simulator.logging import library_call
from simulator.poplibs.popnn.nonlinearities.hard_sigmoid import hard_sigmoid, hard_sigmoid_gradient
from simulator.poplibs.popnn.nonlinearities.softmax import SCALING, softmax, softmax_gradient
from simulator.poplibs.popops.elementwise.pointwise import check_output
from simulator.poplibs.popops.regions import Operand, add_elementwise, debug_name, result_like


class NonLinearityType(Enum):
    """The non-linearities; a softmax is one over each row of the last dimension."""

    SIGMOID = "SIGMOID"
    HARD_SIGMOID = "HARD_SIGMOID"
    RELU = "RELU"
    TANH = "TANH"
    GELU = "GELU"
    GELU_ERF = "GELU_ERF"
    SWISH = "SWISH"
    SOFTMAX = "SOFTMAX"
    SOFTMAX_STABLE = "SOFTMAX_STABLE"
    SOFTMAX_SCALED = "SOFTMAX_SCALED"


_SOFTMAXES = (
    NonLinearityType.SOFTMAX,
    NonLinearityType.SOFTMAX_STABLE,
    NonLinearityType.SOFTMAX_SCALED,
)
_OF_SEVERAL = (*_SOFTMAXES, NonLinearityType.HARD_SIGMOID)


@library_call("POPNN")
def getNonLinearityScaling(nonLinearityType: NonLinearityType) -> float:
    """Return the factor of the outputs: 62,000 for SOFTMAX_SCALED, else 1.

    PopLibs gives it by a reference argument, `nonLinearityScaling`.

    >>> from simulator import popnn
    >>> popnn.getNonLinearityScaling(popnn.NonLinearityType.RELU)
    1.0
    """
    return SCALING if nonLinearityType is NonLinearityType.SOFTMAX_SCALED else 1.0


@library_call("POPNN")
def nonLinearity(
    graph: Graph,
    nonLinearityType: NonLinearityType,
    t: Tensor,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Return the non-linearity of every element.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([-1.0, 2.0])
    >>> trial.values(popnn.nonLinearity(trial.graph, popnn.NonLinearityType.RELU, a, trial.prog))
    [0.0, 2.0]
    """
    name = debug_name(debugContext, "Nonlinearity")
    kind = _checked(name, nonLinearityType, t)
    with graph.debug_scope(name, "popnn"):
        if kind in _SOFTMAXES:
            return softmax(graph, t, kind.value, prog, name, in_place=False)
        out = result_like(graph, [t], t.shape, t.dtype, f"{name}/out")
        if kind is NonLinearityType.HARD_SIGMOID:
            prog.add(Copy(t, out, name=name))
            hard_sigmoid(graph, out, prog, name)
            return out
        compute_set = graph.addComputeSet(name)
        vertices = nonlinearity(kind.value, t.dtype, graph.target)
        operands: dict[str, Operand] = {"in": ("input", t), "out": ("output", out)}
        add_elementwise(graph, compute_set, vertices, operands)
        prog.add(Execute(compute_set))
    return out


@library_call("POPNN")
def nonLinearityInPlace(
    graph: Graph,
    nonLinearityType: NonLinearityType,
    t: Tensor,
    prog: Sequence | ComputeSet,
    debugContext: str = "",
) -> None:
    """Replace every element by its non-linearity.

    A compute set may stand in the place of the program, except for those of several steps.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([-1.0, 2.0])
    >>> popnn.nonLinearityInPlace(trial.graph, popnn.NonLinearityType.RELU, a, trial.prog)
    >>> trial.values(a)
    [0.0, 2.0]
    """
    name = debug_name(debugContext, "Nonlinearity")
    kind = _checked(name, nonLinearityType, t)
    if not t.isParallelWriteable():
        raise poplibs_error(f"{name}: {t!r}: has constants, or an element twice")
    with graph.debug_scope(name, "popnn"):
        if kind in _OF_SEVERAL:
            sequence = _sequence(name, kind, prog)
            if kind is NonLinearityType.HARD_SIGMOID:
                hard_sigmoid(graph, t, sequence, name)
            else:
                softmax(graph, t, kind.value, sequence, name, in_place=True)
            return
        compute_set = prog if isinstance(prog, ComputeSet) else graph.addComputeSet(name)
        vertices = nonlinearity(kind.value, t.dtype, graph.target, True)
        add_elementwise(graph, compute_set, vertices, {"out": ("inout", t)})
        if isinstance(prog, Sequence):
            prog.add(Execute(compute_set))


@library_call("POPNN")
def nonLinearityInputGradient(
    graph: Graph,
    nonLinearityType: NonLinearityType,
    act: Tensor,
    outGradient: Tensor,
    prog: Sequence | ComputeSet,
    debugContext: str = "",
) -> Tensor:
    """Return the gradient of the input from the gradient of the output and the activations.

    `act` is the output of the non-linearity; of GELU, GELU_ERF, SWISH and HARD_SIGMOID its input. A
    compute set may stand in the place of the program, except for those of several steps.

    >>> from simulator import popnn
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> out, gradient = trial.tensor([0.0, 2.0]), trial.tensor([10.0, 20.0])
    >>> kind = popnn.NonLinearityType.RELU
    >>> back = popnn.nonLinearityInputGradient(trial.graph, kind, out, gradient, trial.prog)
    >>> trial.values(back)
    [0.0, 20.0]
    """
    name = debug_name(debugContext, "NonLinearityGrad")
    kind = _checked(name, nonLinearityType, act)
    check_output(outGradient, act.shape, act.dtype, name)
    with graph.debug_scope(name, "popnn"):
        if kind in _OF_SEVERAL:
            sequence = _sequence(name, kind, prog)
            function = softmax_gradient if kind in _SOFTMAXES else hard_sigmoid_gradient
            return function(graph, act, outGradient, sequence, name)
        compute_set = prog if isinstance(prog, ComputeSet) else graph.addComputeSet(name)
        gradient = result_like(graph, [act], act.shape, act.dtype, f"{name}/inGradient")
        vertices = nonlinearity_gradient(kind.value, act.dtype, graph.target)
        operands: dict[str, Operand] = {
            "outGrad": ("input", outGradient),
            "act": ("input", act),
            "out": ("output", gradient),
        }
        add_elementwise(graph, compute_set, vertices, operands)
        if isinstance(prog, Sequence):
            prog.add(Execute(compute_set))
    return gradient


def _checked(name: str, kind: NonLinearityType, t: Tensor) -> NonLinearityType:
    if not isinstance(kind, NonLinearityType):
        raise poplibs_error(f"{name}: {kind!r} is no NonLinearityType")
    if t.dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: {kind.value} of {t!r}; known for float, half")
    if kind in _SOFTMAXES and t.rank() == 0:
        raise poplibs_error(f"{name}: {kind.value} of {t!r}; at least one dimension is needed")
    return kind


def _sequence(name: str, kind: NonLinearityType, prog: Sequence | ComputeSet) -> Sequence:
    if isinstance(prog, ComputeSet):
        raise poplibs_error(f"{name}: {kind.value} takes several steps; a Sequence is needed")
    return prog
