"""Changes of type."""

from __future__ import annotations

from typing import overload

from simulator.codelets.elementwise import vertices as codelets
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import ComputeSet, Graph
from simulator.graph.program import Copy, Execute, Program, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import Type, checked_type
from simulator.logging import library_call
from simulator.poplibs.popops.elementwise.pointwise import check_output
from simulator.poplibs.popops.regions import Operand, add_elementwise, debug_name, result_like


@overload
def cast(
    graph: Graph, a: Tensor, dtype: Type, prog: Sequence, debugContext: str = ""
) -> Tensor: ...
@overload
def cast(graph: Graph, a: Tensor, dtype: Tensor, prog: str = "") -> Program: ...
@overload
def cast(graph: Graph, a: Tensor, dtype: Tensor, prog: ComputeSet) -> None: ...
@library_call("POPOPS")
def cast(
    graph: Graph,
    a: Tensor,
    dtype: Type | Tensor,
    prog: Sequence | ComputeSet | str = "",
    debugContext: str = "",
) -> Tensor | Program | None:
    """Return a tensor's values in another type.

    As in PopLibs, given a tensor to write to in place of the type, it gives a program that does, or
    adds the vertices to a compute set that stands in the place of `prog`.

    >>> from simulator import poplar, popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([1.5, -2.0])
    >>> trial.values(popops.cast(trial.graph, a, poplar.INT, trial.prog))
    [1, -2]
    """
    if isinstance(dtype, Tensor):
        if isinstance(prog, ComputeSet):
            _add_vertices(graph, prog, a, dtype, prog.name)
            return None
        if not isinstance(prog, str):
            raise poplibs_error("cast: to a tensor it gives its program, or takes a compute set")
        steps = Sequence()
        cast_into(graph, a, dtype.dtype, steps, prog or debugContext, dtype)
        return steps
    if not isinstance(prog, Sequence):
        raise poplibs_error(f"{debug_name(debugContext, 'Cast')}: prog is {prog!r}; needs Sequence")
    return cast_into(graph, a, checked_type(dtype, "cast"), prog, debugContext, None)


@library_call("POPOPS")
def castWithOutput(
    graph: Graph, src: Tensor, dst: Tensor, prog: Sequence, debugContext: str = ""
) -> None:
    """Write a tensor's values in the type of another to that tensor.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, out = trial.tensor([1.5, -2.0]), trial.tensor([0, 0])
    >>> popops.castWithOutput(trial.graph, a, out, trial.prog)
    >>> trial.values(out)
    [1, -2]
    """
    cast_into(graph, src, dst.dtype, prog, debugContext, dst)


def cast_into(
    graph: Graph, a: Tensor, dtype: Type, prog: Sequence, context: str, out: Tensor | None
) -> Tensor:
    """Write a tensor's values in another type to a tensor, or to a new one; give it."""
    name = debug_name(context, "Cast")
    with graph.debug_scope(name, "popops"):
        into = result_like(graph, [a], a.shape, dtype, f"{name}/out") if out is None else out
        if a.dtype == dtype and a.shape == into.shape:
            prog.add(Copy(a, into, name=name))
            return into
        compute_set = graph.addComputeSet(name)
        _add_vertices(graph, compute_set, a, into, name)
        prog.add(Execute(compute_set))
    return into


def _add_vertices(
    graph: Graph, compute_set: ComputeSet, a: Tensor, into: Tensor, name: str
) -> None:
    check_output(into, a.shape, into.dtype, name)
    vertices = codelets.cast(a.dtype, into.dtype, graph.target)
    operands: dict[str, Operand] = {"in": ("input", a), "out": ("output", into)}
    add_elementwise(graph, compute_set, vertices, operands)
