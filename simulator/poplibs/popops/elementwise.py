"""Element-wise operations; operands are broadcast by NumPy's rules."""

from __future__ import annotations

import numpy as np

from simulator.codelets import elementwise as codelets
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor, broadcast_to
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs.popops.regions import Operand, add_elementwise, debug_name, result_like


def _binary(
    graph: Graph, kind: str, a: Tensor, b: Tensor, prog: Sequence, context: str, in_place: bool
) -> Tensor:
    name = debug_name(context, f"Op/{kind.capitalize()}")
    if a.dtype != b.dtype:
        raise PoplarError(f"{name}: operands of types {a.dtype} and {b.dtype}")
    vertices = codelets.binary(kind, a.dtype, graph.target, in_place)
    with graph.debug_scope(name, "popops"):
        shape = a.shape if in_place else _common_shape(name, a, b)
        compute_set = graph.addComputeSet(name)
        right = broadcast_to(b, shape)
        operands: dict[str, Operand]
        if in_place:
            out = a
            operands = {"out": ("inout", a), "in2": ("input", right)}
        else:
            out = result_like(graph, [a, b], shape, a.dtype, f"{name}/out")
            left = broadcast_to(a, shape)
            operands = {"in1": ("input", left), "in2": ("input", right), "out": ("output", out)}
        add_elementwise(graph, compute_set, vertices, operands)
        prog.add(Execute(compute_set))
    return out


def _common_shape(name: str, a: Tensor, b: Tensor) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise PoplarError(f"{name}: {a!r} and {b!r} do not broadcast to one shape") from None


@library_call("POPOPS")
def add(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _binary(graph, "ADD", a, b, prog, debugContext, False)


@library_call("POPOPS")
def sub(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _binary(graph, "SUBTRACT", a, b, prog, debugContext, False)


@library_call("POPOPS")
def mul(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _binary(graph, "MULTIPLY", a, b, prog, debugContext, False)


@library_call("POPOPS")
def div(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _binary(graph, "DIVIDE", a, b, prog, debugContext, False)


@library_call("POPOPS")
def max(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _binary(graph, "MAXIMUM", a, b, prog, debugContext, False)


@library_call("POPOPS")
def min(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _binary(graph, "MINIMUM", a, b, prog, debugContext, False)


@library_call("POPOPS")
def addInPlace(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> None:
    _binary(graph, "ADD", a, b, prog, debugContext, True)


@library_call("POPOPS")
def subInPlace(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> None:
    _binary(graph, "SUBTRACT", a, b, prog, debugContext, True)


@library_call("POPOPS")
def mulInPlace(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> None:
    _binary(graph, "MULTIPLY", a, b, prog, debugContext, True)


@library_call("POPOPS")
def divInPlace(graph: Graph, a: Tensor, b: Tensor, prog: Sequence, debugContext: str = "") -> None:
    _binary(graph, "DIVIDE", a, b, prog, debugContext, True)


def _map(
    graph: Graph,
    vertices: codelets.ElementwiseVertices,
    a: Tensor,
    dtype: Type,
    prog: Sequence,
    name: str,
) -> Tensor:
    """Compute a new tensor from one operand."""
    with graph.debug_scope(name, "popops"):
        compute_set = graph.addComputeSet(name)
        out = result_like(graph, [a], a.shape, dtype, f"{name}/out")
        operands: dict[str, Operand] = {"in": ("input", a), "out": ("output", out)}
        add_elementwise(graph, compute_set, vertices, operands)
        prog.add(Execute(compute_set))
    return out


def _unary(graph: Graph, kind: str, a: Tensor, prog: Sequence, context: str) -> Tensor:
    vertices = codelets.unary(kind, a.dtype, graph.target, False)
    name = debug_name(context, f"Op/{kind.capitalize()}")
    return _map(graph, vertices, a, a.dtype, prog, name)


@library_call("POPOPS")
def neg(graph: Graph, a: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _unary(graph, "NEGATE", a, prog, debugContext)


@library_call("POPOPS")
def square(graph: Graph, a: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _unary(graph, "SQUARE", a, prog, debugContext)


@library_call("POPOPS")
def exp(graph: Graph, a: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _unary(graph, "EXPONENT", a, prog, debugContext)


@library_call("POPOPS")
def log(graph: Graph, a: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _unary(graph, "LOGARITHM", a, prog, debugContext)


@library_call("POPOPS")
def sqrt(graph: Graph, a: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _unary(graph, "SQRT", a, prog, debugContext)


@library_call("POPOPS")
def inv(graph: Graph, a: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    return _unary(graph, "INVERSE", a, prog, debugContext)


@library_call("POPOPS")
def absolute(graph: Graph, a: Tensor, prog: Sequence, debugContext: str = "") -> Tensor:
    """Give absolute values (popops::abs)."""
    return _unary(graph, "ABSOLUTE", a, prog, debugContext)


@library_call("POPOPS")
def cast(graph: Graph, a: Tensor, dtype: Type, prog: Sequence, debugContext: str = "") -> Tensor:
    """Give a tensor's values in another type."""
    vertices = codelets.cast(a.dtype, dtype, graph.target)
    return _map(graph, vertices, a, dtype, prog, debug_name(debugContext, "Cast"))


@library_call("POPOPS")
def scaledAddTo(
    graph: Graph, a: Tensor, b: Tensor, scale: float, prog: Sequence, debugContext: str = ""
) -> None:
    """Add `scale` times b to a."""
    name = debug_name(debugContext, "AddTo")
    if a.dtype != b.dtype or a.shape != b.shape:
        raise PoplarError(f"{name}: operands {a!r} and {b!r}; type and shape must be the same")
    with graph.debug_scope(name, "popops"):
        compute_set = graph.addComputeSet(name)
        operands: dict[str, Operand] = {"out": ("inout", a), "in2": ("input", b)}
        vertices = codelets.scaled_add(a.dtype, graph.target)
        add_elementwise(graph, compute_set, vertices, operands, {"scale": scale})
        prog.add(Execute(compute_set))


@library_call("POPOPS")
def scaledSubtractFrom(
    graph: Graph, a: Tensor, b: Tensor, scale: float, prog: Sequence, debugContext: str = ""
) -> None:
    """Subtract `scale` times b from a."""
    scaledAddTo(graph, a, b, -scale, prog, debugContext)
