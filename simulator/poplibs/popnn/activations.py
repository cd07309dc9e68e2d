"""Nonlinearities and their gradients."""

from __future__ import annotations

from enum import Enum

from simulator.codelets import elementwise as codelets
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.logging import library_call
from simulator.poplibs.popnn.softmax import softmax, softmax_gradient
from simulator.poplibs.popops.regions import Operand, add_elementwise, debug_name, result_like


class NonLinearityType(Enum):
    """The nonlinearities."""

    SIGMOID = "SIGMOID"
    TANH = "TANH"
    RELU = "RELU"
    SOFTMAX = "SOFTMAX"


@library_call("POPNN")
def nonLinearity(
    graph: Graph, kind: NonLinearityType, tensor: Tensor, prog: Sequence, debugContext: str = ""
) -> Tensor:
    """Apply a nonlinearity to every element (softmax: to every row of the last dimension)."""
    name = debug_name(debugContext, "Nonlinearity")
    with graph.debug_scope(name, "popnn"):
        if kind is NonLinearityType.SOFTMAX:
            return softmax(graph, tensor, prog, name)
        compute_set = graph.addComputeSet(name)
        out = result_like(graph, [tensor], tensor.shape, tensor.dtype, f"{name}/out")
        vertices = codelets.nonlinearity(kind.value, tensor.dtype, graph.target)
        operands: dict[str, Operand] = {"in": ("input", tensor), "out": ("output", out)}
        add_elementwise(graph, compute_set, vertices, operands)
        prog.add(Execute(compute_set))
    return out


@library_call("POPNN")
def nonLinearityInPlace(
    graph: Graph, kind: NonLinearityType, tensor: Tensor, prog: Sequence, debugContext: str = ""
) -> None:
    """Replace every element by its nonlinearity."""
    name = debug_name(debugContext, "Nonlinearity")
    with graph.debug_scope(name, "popnn"):
        if kind is NonLinearityType.SOFTMAX:
            prog.add(Copy(softmax(graph, tensor, prog, name), tensor))
            return
        compute_set = graph.addComputeSet(name)
        vertices = codelets.nonlinearity(kind.value, tensor.dtype, graph.target, True)
        add_elementwise(graph, compute_set, vertices, {"out": ("inout", tensor)})
        prog.add(Execute(compute_set))


@library_call("POPNN")
def nonLinearityInputGradient(
    graph: Graph,
    kind: NonLinearityType,
    out: Tensor,
    outGradient: Tensor,
    prog: Sequence,
    debugContext: str = "",
) -> Tensor:
    """Give the gradient of the input from the output and the gradient of the output."""
    name = debug_name(debugContext, "NonLinearityGrad")
    if out.shape != outGradient.shape:
        raise PoplarError(f"{name}: output {out!r} and gradient {outGradient!r} differ in shape")
    with graph.debug_scope(name, "popnn"):
        if kind is NonLinearityType.SOFTMAX:
            return softmax_gradient(graph, out, outGradient, prog, name)
        compute_set = graph.addComputeSet(name)
        gradient = result_like(graph, [out], out.shape, out.dtype, f"{name}/inGradient")
        vertices = codelets.nonlinearity_gradient(kind.value, out.dtype, graph.target)
        operands: dict[str, Operand] = {
            "in1": ("input", outGradient),
            "in2": ("input", out),
            "out": ("output", gradient),
        }
        add_elementwise(graph, compute_set, vertices, operands)
        prog.add(Execute(compute_set))
    return gradient
