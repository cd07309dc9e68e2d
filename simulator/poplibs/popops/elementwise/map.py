"""Expressions on whole tensors: several operations are fused into one vertex type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

from simulator.codelets.elementwise.fused import Node, fused
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import checked
from simulator.graph.program import Copy, Execute, Sequence
from simulator.graph.tensors.tensor import Tensor, broadcast_to
from simulator.graph.types import BOOL, Type, checked_values
from simulator.logging import library_call
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.elementwise.cast import cast_into
from simulator.poplibs.popops.elementwise.pointwise import (
    OPTIONS,
    apply,
    as_tensor,
    check_output,
    common_shape,
)
from simulator.poplibs.popops.expr import Const, Expr, Operator, PlaceHolder
from simulator.poplibs.popops.op_types import (
    OPERANDS,
    BinaryOpType,
    OpType,
    TernaryOpType,
    UnaryOpType,
)
from simulator.poplibs.popops.overloads import NEEDED, arguments_of
from simulator.poplibs.popops.regions import Operand, add_elementwise, debug_name, result_like

Options = Mapping[str, object] | None


@overload
def map(
    graph: Graph,
    expr: Expr,
    ts: Iterable[Tensor],
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> Tensor: ...
@overload
def map(
    graph: Graph,
    expr: list[Expr],
    ts: Iterable[Tensor],
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> list[Tensor]: ...
@overload
def map(
    graph: Graph,
    expr: UnaryOpType,
    t: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> Tensor: ...
@overload
def map(
    graph: Graph,
    expr: BinaryOpType,
    a: Tensor,
    b: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> Tensor: ...
@overload
def map(
    graph: Graph,
    expr: TernaryOpType,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> Tensor: ...
@library_call("POPOPS")
def map(
    graph: Graph,
    expr: Expr | list[Expr] | UnaryOpType | BinaryOpType | TernaryOpType,
    *arguments: object,
    **named: object,
) -> Tensor | list[Tensor]:
    """Return the values of an expression of tensors, or of one operator, broadcast to one shape.

    Of a list of expressions it is a list.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([1.0, 2.0]), trial.tensor([3.0, 4.0])
    >>> sum_of_square = popops.expr._1 * popops.expr._1 + popops.expr._2
    >>> trial.values(popops.map(trial.graph, sum_of_square, [a, b], trial.prog))
    [4.0, 8.0]
    """
    if isinstance(expr, list | tuple):
        requests, options = _requests("map", graph, expr, arguments, named)
        return [_map(request, options) for request in requests]
    request, options = _request("map", graph, expr, arguments, named)
    return _map(request, options)


@overload
def mapInPlace(
    graph: Graph,
    expr: Expr | list[Expr],
    ts: Iterable[Tensor],
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> None: ...
@overload
def mapInPlace(
    graph: Graph,
    expr: UnaryOpType,
    t: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> None: ...
@overload
def mapInPlace(
    graph: Graph,
    expr: BinaryOpType,
    a: Tensor,
    b: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> None: ...
@overload
def mapInPlace(
    graph: Graph,
    expr: TernaryOpType,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
) -> None: ...
@library_call("POPOPS")
def mapInPlace(
    graph: Graph,
    expr: Expr | list[Expr] | UnaryOpType | BinaryOpType | TernaryOpType,
    *arguments: object,
    **named: object,
) -> None:
    """Write the values of an expression of tensors, or of one operator, to the first of them.

    Of a list of expressions the first goes to the first tensor, the second to the second.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([1.0, 2.0]), trial.tensor([3.0, 4.0])
    >>> popops.mapInPlace(trial.graph, popops.expr._1 + popops.expr._2, [a, b], trial.prog)
    >>> trial.values(a)
    [4.0, 6.0]
    """
    if isinstance(expr, list | tuple):
        requests, options = _requests("mapInPlace", graph, expr, arguments, named)
        tensors, name = requests[0].tensors, requests[0].name
        if len(requests) > len(tensors):
            raise poplibs_error(f"{name}: {len(requests)} expressions into {len(tensors)} tensors")
        _write_all(requests, tensors[: len(requests)], options)
        return
    request, options = _request("mapInPlace", graph, expr, arguments, named)
    _map(replace(request, in_place=True), options)


@library_call("POPOPS")
def mapWithOutput(
    graph: Graph,
    expr: Expr | list[Expr],
    ts: Iterable[Tensor],
    out: Tensor | list[Tensor],
    prog: Sequence,
    debugContext: str = "",
    options: Mapping[str, object] | None = None,
) -> None:
    """Write the values of an expression of tensors to another tensor, those of a list to a list.

    >>> from simulator import popops
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b, out = (trial.tensor(x) for x in ([1.0, 2.0], [3.0, 4.0], [0.0, 0.0]))
    >>> both = popops.expr._1 + popops.expr._2
    >>> popops.mapWithOutput(trial.graph, both, [a, b], out, trial.prog)
    >>> trial.values(out)
    [4.0, 6.0]
    """
    if not isinstance(expr, Expr) or not isinstance(out, Tensor):
        tensors = tuple(ts)
        requests = [Request(graph, one, tensors, prog, debugContext) for one in _listed(expr)]
        outputs = _listed(out)
        if len(requests) != len(outputs):
            name = debug_name(debugContext, "Op/Map")
            raise poplibs_error(f"{name}: {len(requests)} expressions into {len(outputs)} outputs")
        _write_all(requests, outputs, options)
        return
    _map(Request(graph, expr, tuple(ts), prog, debugContext, out), options)


def _listed(values: Any) -> list[Any]:
    """Return several values as a list; one is a list of itself."""
    return list(values) if isinstance(values, list | tuple) else [values]


def _requests(
    function: str,
    graph: Graph,
    expressions: Iterable[Expr],
    arguments: tuple[object, ...],
    named: dict[str, Any],
) -> tuple[list[Request], Options]:
    """Sort the arguments of several expressions of the same tensors."""
    form = {"ts": NEEDED, "prog": NEEDED, "debugContext": "", "options": None}
    call_args = arguments_of(function, form, arguments, named)
    rest = (tuple(call_args["ts"]), call_args["prog"], call_args["debugContext"])
    requests = [Request(graph, expression, *rest) for expression in expressions]
    if not requests:
        raise poplibs_error(f"{function}: no expressions are given")
    return requests, call_args["options"]


def _write_all(requests: list[Request], outputs: Iterable[Tensor], options: Options) -> None:
    """Write the values of expressions once all are computed, as an output may be an operand."""
    values = [_map(request, options) for request in requests]
    for request, value, out in zip(requests, values, outputs, strict=True):
        if value.dtype != out.dtype or value.shape != out.shape:
            raise poplibs_error(f"{request.name}: {value!r} into {out!r}; a like one is needed")
        request.prog.add(Copy(value, out, name=request.name))


def _request(
    function: str,
    graph: Graph,
    expression: Expr | OpType,
    arguments: tuple[object, ...],
    named: dict[str, Any],
) -> tuple[Request, Options]:
    """Sort the arguments: a list of tensors for an expression, each by itself for an operator."""
    count = OPERANDS.get(type(expression), 0)
    names = ("ts",) if not count else ("t",) if count == 1 else ("a", "b", "c")[:count]
    form = {**dict.fromkeys((*names, "prog"), NEEDED), "debugContext": "", "options": None}
    call_args = arguments_of(function, form, arguments, named)
    tensors = tuple(call_args[name] for name in names) if count else tuple(call_args["ts"])
    if isinstance(expression, OpType):
        holders = [PlaceHolder(place) for place in range(1, count + 1)]
        expression = expr.operator(expression, *holders)
    return Request(
        graph, expression, tensors, call_args["prog"], call_args["debugContext"]
    ), call_args["options"]


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be computed, and where it goes."""

    graph: Graph
    expr: Expr
    tensors: tuple[Tensor, ...]
    prog: Sequence
    context: str
    out: Tensor | None = None
    in_place: bool = False

    @property
    def name(self) -> str:
        """Return the debug name of the operation."""
        return debug_name(self.context, "Op/Map")

    @property
    def into(self) -> Tensor | None:
        """Return the tensor that is to be written; None for a new one."""
        return self.tensors[0] if self.in_place else self.out


def _map(request: Request, options: Options) -> Tensor:
    """Choose between one operation, a fused vertex and separate operations."""
    name, expression = request.name, expr.term(request.expr)
    settings = checked(OPTIONS, options or {}, name)
    if not request.tensors:
        raise poplibs_error(f"{name}: no tensors are given; {expression!r} needs their shape")
    node = _typed(expression, request, None if request.into is None else request.into.dtype)
    direct = all(not argument.arguments for argument in node.arguments)
    fuse = settings.get("enableGenerateCodelet", True)
    separate = not settings.get("forceGenerateCodelet") if direct else not fuse
    # A tensor that no operation reads still takes part in the shape of the result.
    if separate and node.arguments and len(_fields(node)) == len(request.tensors):
        return _separately(request, node, request.into)
    return _fused(request, node)


# Types, as PopLibs infers them
def _known_type(expression: Expr, request: Request) -> Type | None:
    """Return an expression's type; None where it is a constant's, which depends on its use."""
    match expression:
        case PlaceHolder():
            if expression.index > len(request.tensors):
                count = len(request.tensors)
                raise poplibs_error(f"{request.name}: expression has {expression}; {count} tensors")
            return request.tensors[expression.index - 1].dtype
        case expr.Cast():
            return expression.dtype
        case Operator():
            if expression.operation.boolean:
                return BOOL
            return _shared_type(expression, request)
    return None


def _shared_type(expression: Operator, request: Request) -> Type | None:
    """Return the type that the operands of an operator have; None when all are constants."""
    compared = expression.arguments[:2] if expression.operation.predicate else expression.arguments
    types = (_known_type(argument, request) for argument in compared)
    return next((dtype for dtype in types if dtype is not None), None)


def _typed(expression: Expr, request: Request, target_type: Type | None) -> Node:
    """Return an expression with the type of every part; constants take the type that is wanted."""
    match expression:
        case Const():
            dtype = target_type or expression.own_type
            value = checked_values(expression.value, dtype, request.name, poplibs_error)
            return Node(dtype, number=value.tobytes())
        case PlaceHolder():
            dtype = _known_type(expression, request) or BOOL
            return Node(dtype, field=f"in{expression.index}")
        case expr.Cast():
            return Node(expression.dtype, arguments=(_typed(expression.argument, request, None),))
        case Operator():
            return _typed_operator(expression, request, target_type)
    raise poplibs_error(f"{request.name}: {expression!r} is no expression")


def _typed_operator(expression: Operator, request: Request, target_type: Type | None) -> Node:
    operation, name = expression.operation, request.name
    usual = _shared_type(expression, request) or (None if operation.boolean else target_type)
    if usual is None:  # constants alone: a real one makes all real
        usual = max(_own_types(expression), key=lambda dtype: dtype.numpy.kind == "f")
    select = operation.predicate
    wants = [BOOL if select and place == 2 else usual for place in range(3)]
    arguments = tuple(
        _typed(argument, request, want)
        for argument, want in zip(expression.arguments, wants, strict=False)
    )
    compared = arguments[:2] if select else arguments
    if len({argument.dtype for argument in compared}) > 1:
        types = " and ".join(str(argument.dtype) for argument in compared)
        raise poplibs_error(f"{name}: {operation.debug_name} of {types} in {expression!r}")
    if select and arguments[2].dtype != BOOL:
        raise poplibs_error(f"{name}: Select by {arguments[2].dtype} in {expression!r}; needs bool")
    dtype = arguments[0].dtype
    return Node(operation.result_type(dtype, name), operation, arguments)


def _own_types(expression: Expr) -> list[Type]:
    """List the types of the constants that make up an expression without tensors."""
    match expression:
        case Const():
            return [expression.own_type]
        case Operator():
            return [dtype for a in expression.arguments for dtype in _own_types(a)]
    return []


def _fields(node: Node) -> set[str]:
    """Return the names of the fields that an expression reads."""
    return {part.field for part in node.parts() if part.field}


# Vertices
def _fused(request: Request, node: Node) -> Tensor:
    """Add one vertex type for the whole expression."""
    graph, name, tensors = request.graph, request.name, request.tensors
    shape = common_shape(tensors, name)
    used = _fields(node)
    with graph.debug_scope(name, "popops"):
        out = request.into
        if out is None:
            out = result_like(graph, list(tensors), shape, node.dtype, f"{name}/out")
        check_output(out, shape, node.dtype, name)
        operands: dict[str, Operand] = {"out": ("output", out)}
        for place, tensor in enumerate(tensors, 1):
            if f"in{place}" in used:
                one = tensor.numElements() == 1
                operands[f"in{place}"] = ("input", tensor if one else broadcast_to(tensor, shape))
        compute_set = graph.addComputeSet(name)
        add_elementwise(graph, compute_set, fused(node, graph.target), operands)
        request.prog.add(Execute(compute_set))
    return out


def _separately(request: Request, node: Node, out: Tensor | None) -> Tensor:
    """Add the vertices of every operation by itself; give the result of the last."""
    graph, name = request.graph, request.name
    if node.field:
        return request.tensors[int(node.field.removeprefix("in")) - 1]
    if not node.arguments:
        return as_tensor(graph, node.value(), node.dtype, name)
    values = [_separately(request, argument, None) for argument in node.arguments]
    if node.operation is None:
        return cast_into(graph, values[0], node.dtype, request.prog, request.context, out)
    in_place = out is not None and values[0] is out
    return apply(
        graph,
        node.operation,
        values,
        request.prog,
        request.context,
        out=out,
        in_place=in_place,
    )
