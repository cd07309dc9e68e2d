"""Changes of type, and sums with a scaled tensor."""

from __future__ import annotations

from simulator.codelets import elementwise as codelets
from simulator.graph.errors import PoplarError
from simulator.graph.graph import Graph
from simulator.graph.program import Execute, Sequence
from simulator.graph.tensor import Tensor
from simulator.graph.types import Type
from simulator.logging import library_call
from simulator.poplibs.popops.pointwise import check_output
from simulator.poplibs.popops.regions import Operand, add_elementwise, debug_name, result_like


@library_call("POPOPS")
def cast(graph: Graph, a: Tensor, dtype: Type, prog: Sequence, debugContext: str = "") -> Tensor:
    """Give a tensor's values in another type."""
    return cast_into(graph, a, dtype, prog, debugContext, None)


def cast_into(
    graph: Graph, a: Tensor, dtype: Type, prog: Sequence, context: str, out: Tensor | None
) -> Tensor:
    """Write a tensor's values in another type to a tensor, or to a new one; give it."""
    name = debug_name(context, "Cast")
    vertices = codelets.cast(a.dtype, dtype, graph.target)
    with graph.debug_scope(name, "popops"):
        into = result_like(graph, [a], a.shape, dtype, f"{name}/out") if out is None else out
        check_output(into, a.shape, dtype, name)
        compute_set = graph.addComputeSet(name)
        operands: dict[str, Operand] = {"in": ("input", a), "out": ("output", into)}
        add_elementwise(graph, compute_set, vertices, operands)
        prog.add(Execute(compute_set))
    return into


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
