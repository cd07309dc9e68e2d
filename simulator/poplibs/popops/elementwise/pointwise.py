"""One operator on whole tensors: types, broadcasting, and the vertices that compute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulator.codelets.elementwise import vertices as codelets
from simulator.codelets.elementwise.broadcast import has_vector
from simulator.codelets.elementwise.operation import Operation
from simulator.codelets.elementwise.ternary import BROADCASTS, FIELDS, ternary
from simulator.codelets.elementwise.vertices import ElementwiseVertices
from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import Option, checked
from simulator.graph.tensors.tensor import Tensor, broadcast_to
from simulator.graph.types import BOOL, FLOAT, INT, Type
from simulator.poplibs.popops.elementwise.vector_broadcast import add_with_vectors
from simulator.poplibs.popops.regions import Operand, add_elementwise, debug_name, result_like

Number = float | int | bool
Value = Tensor | Number
Options = Mapping[str, object] | None

OPTIONS = {
    "enableGenerateCodelet": Option(True, "fuse an expression of several operations"),
    "forceGenerateCodelet": Option(False, "fuse an expression of one operation too"),
    "enableVectorBroadcastOptimisations": Option(True, "take a vector that repeats once a tile"),
    "enableExpressionOptimizations": Option(True, "take a vector that repeats once a tile"),
}


def apply(
    graph: Graph,
    operation: Operation,
    values: Sequence[Value],
    prog: program.Sequence,
    context: str,
    *,
    out: Tensor | None = None,
    in_place: bool = False,
    options: Options = None,
) -> Tensor:
    """Add an operation with one, two or three operands; give its result.

    It goes to a new tensor, to `out`, or in place of the first operand. Raises poplibs_error with
    the operation's debug name for types and shapes that it does not take.
    """
    name = debug_name(context, f"Op/{operation.debug_name}")
    settings = checked(OPTIONS, options or {}, name)
    with graph.debug_scope(name, "popops"):
        tensors = as_tensors(graph, operation, values, name)
        dtype = operand_type(operation, tensors, name)
        result = operation.result_type(dtype, name)
        shape = common_shape(tensors, name)
        into = tensors[0] if in_place else out
        if into is None:
            into = result_like(graph, tensors, shape, result, f"{name}/out")
        check_output(into, shape, result, name)
        vertices, fields = _vertices(graph, operation, dtype, tensors, into, in_place)
        compute_set = graph.addComputeSet(name)
        if settings.get("enableVectorBroadcastOptimisations", True) and _repeats(operation, fields):
            add_with_vectors(graph, compute_set, operation, vertices, fields)
        else:
            add_elementwise(graph, compute_set, vertices, fields)
        prog.add(program.Execute(compute_set))
    return into


def as_tensors(
    graph: Graph, operation: Operation, values: Sequence[Value], name: str
) -> list[Tensor]:
    """Return operands as tensors: a number becomes a constant of the other operands' type."""
    compared = values[:2] if operation.predicate else values
    dtypes = [value.dtype for value in compared if isinstance(value, Tensor)]
    are_integers = operation.predicate and all(
        isinstance(value, int | np.integer) for value in compared
    )
    usual = dtypes[0] if dtypes else INT if are_integers else FLOAT
    tensors = []
    for place, value in enumerate(values):
        dtype = BOOL if operation.predicate and place == 2 else usual
        tensors.append(as_tensor(graph, value, dtype, name))
    return tensors


def as_tensor(graph: Graph, value: Value, dtype: Type, name: str) -> Tensor:
    """Return a tensor as it is, a number as a constant on tile 0; raises TypeError for others."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, int | float | np.number | np.bool_):
        raise TypeError(f"{name}: operand is {value!r}; a tensor or a number is needed")
    constant = graph.addConstant(dtype, [], value, f"{name}/const")
    graph.setTileMapping(constant, 0)
    return constant


def operand_type(operation: Operation, tensors: Sequence[Tensor], name: str) -> Type:
    """Return the type that the operands have; raises poplibs_error when they differ."""
    compared = tensors[:2] if operation.predicate else tensors
    if len({tensor.dtype for tensor in compared}) > 1:
        types = " and ".join(str(tensor.dtype) for tensor in compared)
        raise poplibs_error(f"{name}: operands of types {types}")
    if operation.predicate and tensors[2].dtype != BOOL:
        raise poplibs_error(
            f"{name}: chooses by {tensors[2]!r}; a predicate of type bool is needed"
        )
    return tensors[0].dtype


def common_shape(tensors: Sequence[Tensor], name: str) -> tuple[int, ...]:
    """Return the shape to which tensors broadcast by NumPy's rules; raises poplibs_error."""
    try:
        return np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except ValueError:
        shapes = " and ".join(map(repr, tensors))
        raise poplibs_error(f"{name}: {shapes} do not broadcast to one shape") from None


def check_output(out: Tensor, shape: tuple[int, ...], dtype: Type, name: str) -> None:
    """Raise poplibs_error when results of a shape and type cannot go into a tensor."""
    if out.shape != shape or out.dtype != dtype:
        raise poplibs_error(f"{name}: result is {dtype}{list(shape)}; it does not fit {out!r}")


def _vertices(
    graph: Graph,
    operation: Operation,
    dtype: Type,
    tensors: Sequence[Tensor],
    out: Tensor,
    in_place: bool,
) -> tuple[ElementwiseVertices, dict[str, Operand]]:
    """Choose the vertices of an operation and join their fields."""
    kind, target = operation.name, graph.target
    numbers = tuple(tensor.numElements() == 1 < out.numElements() for tensor in tensors)
    if len(tensors) == 1:
        vertices = codelets.unary(kind, dtype, target, in_place)
        names: tuple[str, ...] = ("in",)
        numbers = (False,)
    elif len(tensors) == 2:
        scalar = numbers[1] and codelets.has_broadcast(kind, dtype)
        make = codelets.broadcast_scalar if scalar else codelets.binary
        vertices = make(kind, dtype, target, in_place)
        names = ("data", "B") if scalar else ("in1", "in2")
        numbers = (False, scalar)
    else:
        numbers = numbers if (kind, numbers) in BROADCASTS else (False, False, False)
        vertices = ternary(kind, dtype, target, in_place, numbers)
        names = FIELDS
    operands: dict[str, Operand] = {"out": ("inout" if in_place else "output", out)}
    for name, tensor, number in list(zip(names, tensors, numbers, strict=True))[in_place:]:
        operands[name] = ("input", tensor if number else broadcast_to(tensor, out.shape))
    return vertices, operands


def _repeats(operation: Operation, fields: Mapping[str, Operand]) -> bool:
    """Return whether an operand of two repeats elements, and vertices may take it as it is."""
    operands = [tensor for name, (_, tensor) in fields.items() if name in ("in1", "in2")]
    return (
        has_vector(operation.name, fields["out"][1].dtype)
        and "in2" in fields
        and any(tensor.containsAliases() for tensor in operands)
    )
