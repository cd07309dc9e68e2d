"""Matrix products: convolutions whose rows are the batch (PopLibs' poplin/MatMul.hpp)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as List
from functools import wraps
from typing import Any, ParamSpec, cast

from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.program import Copy, Sequence
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import FLOAT, HALF, Type
from simulator.logging import library_call
from simulator.poplibs.poplin.convolutions.convolution import convolve
from simulator.poplibs.poplin.convolutions.create import PlanningCache, create_input, create_weights
from simulator.poplibs.poplin.planning.joint_plan import plan_of
from simulator.poplibs.poplin.planning.options import MATMUL, settings_of
from simulator.poplibs.poplin.planning.params import ConvParams, Sizes
from simulator.poplibs.poplin.planning.problem import problem_of
from simulator.poplibs.popops.elementwise.fill import zero
from simulator.poplibs.popops.elementwise.scaled_add import scaledAddTo
from simulator.poplibs.popops.regions import debug_name
from simulator.poplibs.poputil import mapTensorLinearly

Options = Mapping[str, object] | None
Shape = List[int]
_P = ParamSpec("_P")


def _of_one_type(function: Callable[_P, Tensor]) -> Callable[_P, Tensor]:
    """Let a function of an input's and an output's type take one that is both."""

    @wraps(function)
    def call(*arguments: _P.args, **named: _P.kwargs) -> Tensor:
        has_output_type = "outputType" in named or isinstance(
            (*arguments, None, None, None)[2], Type
        )
        if has_output_type or not isinstance((*arguments, None)[1], Type):
            return function(*arguments, **named)
        return cast(Callable[..., Tensor], function)(
            *arguments[:2], arguments[1], *arguments[2:], **named
        )

    return call


def _check_product(
    name: str, a: Sizes, b: Sizes, dtype: Type, b_dtype: Type, out_type: Type
) -> None:
    """Raise poplibs_error for what makes no product of [g, m, k] and [g, k, n]."""
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        raise poplibs_error(f"{name}: cannot multiply {_shown(a)} by {_shown(b)}")
    if dtype != b_dtype or dtype not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: operands of types {dtype} and {b_dtype}; both float or half")
    if out_type not in (FLOAT, HALF):
        raise poplibs_error(f"{name}: output of type {out_type}; float or half is needed")


def _shown(shape: Sizes) -> list[int]:
    """Return a shape as the user has it, who may have a product without groups."""
    return list(shape[1:] if len(shape) == 3 and shape[0] == 1 else shape)


def _params(
    name: str, a_shape: Shape, b_shape: Shape, dtype: Type, b_dtype: Type, out_type: Type | None
) -> ConvParams:
    """Return the convolution that is a product of [g, m, k] and [g, k, n]."""
    a, b, result = tuple(a_shape), tuple(b_shape), out_type or dtype
    _check_product(name, a, b, dtype, b_dtype, result)
    if min(a + b) < 1:
        raise poplibs_error(
            f"{name}: an empty dimension in {_shown(a)} by {_shown(b)}; sizes from 1 are planned"
        )
    return ConvParams(dtype, a[1], (), (), a[2], b[2], a[0], outputType=result)


@library_call("POPLIN")
def matMul(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    outputType: Type | str | None = None,
    debugContext: str | Options = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Multiply [m, k] by [k, n]; as in PopLibs the output's type may be left out.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b = trial.tensor([[1.0, 2.0], [3.0, 4.0]]), trial.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> trial.values(poplin.matMul(trial.graph, a, b, trial.prog))
    [[3.0, 2.0], [7.0, 4.0]]
    """
    out_type, context, options = _sorted(outputType, debugContext, options)
    name = debug_name(context, "Conv_1")
    for tensor in (A, B):
        if tensor.rank() != 2:
            raise poplibs_error(f"{name}: cannot multiply {list(A.shape)} by {list(B.shape)}")
    return _product(graph, A.expand([0]), B.expand([0]), prog, out_type, name, options).squeeze([0])


@library_call("POPLIN")
def matMulGrouped(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    outputType: Type | str | None = None,
    debugContext: str | Options = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Multiply [g, m, k] by [g, k, n], group by group.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a = trial.tensor([[[1.0, 2.0]], [[5.0, 6.0]]])
    >>> b = trial.tensor([[[3.0], [4.0]], [[0.0], [1.0]]])
    >>> trial.values(poplin.matMulGrouped(trial.graph, a, b, trial.prog))
    [[[11.0]], [[6.0]]]
    """
    out_type, context, options = _sorted(outputType, debugContext, options)
    return _product(graph, A, B, prog, out_type, debug_name(context, "Conv_1"), options)


def _sorted(
    output_type: Type | str | None, context: Any, options: Options
) -> tuple[Type | None, str, Options]:
    """Separate an output's type from a debug context in its place, before the options."""
    if not isinstance(output_type, str):
        return output_type, context, options
    if isinstance(context, Mapping):
        return None, output_type, context
    if context:
        raise poplibs_error(f"{context}: outputType is {output_type!r}; poplar.FLOAT or HALF")
    return None, output_type, options


def _product(
    graph: Graph,
    a: Tensor,
    b: Tensor,
    prog: Sequence,
    out_type: Type | None,
    name: str,
    options: Options,
) -> Tensor:
    return product_by_rows(graph, a, b.dimShuffle([0, 2, 1]), prog, out_type, name, options)


def product_by_rows(
    graph: Graph,
    a: Tensor,
    rows: Tensor,
    prog: Sequence,
    out_type: Type | None,
    name: str,
    options: Options,
) -> Tensor:
    """Multiply [g, m, k] by the transpose of [g, n, k], which plans read as it is.

    Nothing is planned for an empty dimension: a sum of no products is zero.
    """
    groups, columns, inner = rows.shape
    if not (a.numElements() and rows.numElements()):
        result = out_type or a.dtype
        _check_product(name, a.shape, (groups, inner, columns), a.dtype, rows.dtype, result)
        out = graph.addVariable(result, (groups, a.dim(1), columns), name)
        mapTensorLinearly(graph, out)
        zero(graph, out, prog, name)
        return out
    params = _params(name, a.shape, (groups, inner, columns), a.dtype, rows.dtype, out_type)
    settings = settings_of(graph.target, MATMUL, options, name)
    left = a.dimShuffle([0, 2, 1])
    out = convolve(graph, problem_of(params), left, rows, prog, name, settings)
    return out.dimShuffle([0, 2, 1])


@library_call("POPLIN")
def matMulWithOutput(
    graph: Graph,
    A: Tensor,
    B: Tensor,
    out: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Multiply [m, k] by [k, n] and write the product to a tensor.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b, out = map(trial.tensor, ([[1.0, 2.0]], [[3.0], [4.0]], [[0.0]]))
    >>> poplin.matMulWithOutput(trial.graph, a, b, out, trial.prog)
    >>> trial.values(out)
    [[11.0]]
    """
    product = matMul(graph, A, B, prog, out.dtype, debugContext, options, cache)
    _check_output(debugContext, out, product)
    prog.add(Copy(product, out, name=debug_name(debugContext, "Conv_1")))


@library_call("POPLIN")
def matMulAcc(
    graph: Graph,
    C: Tensor,
    k: Tensor | float,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Add k times the product of [m, k] and [k, n] to C.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b, c = map(trial.tensor, ([[1.0, 2.0]], [[3.0], [4.0]], [[100.0]]))
    >>> poplin.matMulAcc(trial.graph, c, 10.0, a, b, trial.prog)
    >>> trial.values(c)
    [[210.0]]
    """
    product = matMul(graph, A, B, prog, None, debugContext, options, cache)
    _check_output(debugContext, C, product)
    scaledAddTo(graph, C, product, k, prog, debugContext)


@library_call("POPLIN")
def matMulGroupedAcc(
    graph: Graph,
    C: Tensor,
    k: Tensor | float,
    A: Tensor,
    B: Tensor,
    prog: Sequence,
    debugContext: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> None:
    """Add k times the products of [g, m, k] and [g, k, n] to C.

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> a, b, c = map(trial.tensor, ([[[1.0, 2.0]]], [[[3.0], [4.0]]], [[[100.0]]]))
    >>> poplin.matMulGroupedAcc(trial.graph, c, 10.0, a, b, trial.prog)
    >>> trial.values(c)
    [[[210.0]]]
    """
    product = matMulGrouped(graph, A, B, prog, None, debugContext, options, cache)
    _check_output(debugContext, C, product)
    scaledAddTo(graph, C, product, k, prog, debugContext)


def _check_output(context: str, out: Tensor, product: Tensor) -> None:
    if out.shape != product.shape:
        name = debug_name(context, "Conv_1")
        raise poplibs_error(f"{name}: output {out!r}; {list(product.shape)} is needed")


@library_call("POPLIN")
@_of_one_type
def createMatMulInputLHS(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Shape,
    bShape: Shape,
    name: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the left operand of a product, laid out as its plan wants it.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplin.createMatMulInputLHS(trial.graph, poplar.FLOAT, poplar.FLOAT, [2, 3], [3, 4]).shape
    (2, 3)
    """
    shapes = [1, *aShape], [1, *bShape]
    arguments = (graph, inputType, outputType, *shapes, name, options, cache)
    return createMatMulGroupedInputLHS(*arguments).squeeze([0])


@library_call("POPLIN")
@_of_one_type
def createMatMulInputRHS(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Shape,
    bShape: Shape,
    name: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the right operand of a product, laid out as its plan wants it.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplin.createMatMulInputRHS(trial.graph, poplar.FLOAT, poplar.FLOAT, [2, 3], [3, 4]).shape
    (3, 4)
    """
    shapes = [1, *aShape], [1, *bShape]
    arguments = (graph, inputType, outputType, *shapes, name, options, cache)
    return createMatMulGroupedInputRHS(*arguments).squeeze([0])


@library_call("POPLIN")
@_of_one_type
def createMatMulGroupedInputLHS(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Shape,
    bShape: Shape,
    name: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the left operand of grouped products, laid out as its plan wants it.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> shapes = [5, 2, 3], [5, 3, 4]
    >>> poplin.createMatMulGroupedInputLHS(trial.graph, poplar.FLOAT, poplar.FLOAT, *shapes).shape
    (5, 2, 3)
    """
    label = name or "matMul/lhs"
    params = _params(label, aShape, bShape, inputType, inputType, outputType)
    settings = settings_of(graph.target, MATMUL, options, label)
    lhs = create_input(graph, params, settings, label)  # [m, g * k]
    groups, rows, inner = aShape
    return lhs.reshape((rows, groups, inner)).dimShuffle([1, 0, 2])


@library_call("POPLIN")
@_of_one_type
def createMatMulGroupedInputRHS(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Shape,
    bShape: Shape,
    name: str = "",
    options: Options = None,
    cache: PlanningCache | None = None,
) -> Tensor:
    """Add the right operand of grouped products, laid out as its plan wants it.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> shapes = [5, 2, 3], [5, 3, 4]
    >>> poplin.createMatMulGroupedInputRHS(trial.graph, poplar.FLOAT, poplar.FLOAT, *shapes).shape
    (5, 3, 4)
    """
    types = (inputType, outputType)
    rhs = create_rows(graph, types, aShape, bShape, name or "matMul/rhs", options)
    return rhs.dimShuffle([0, 2, 1])


def create_rows(
    graph: Graph, types: tuple[Type, Type], a: Shape, b: Shape, name: str, options: Options
) -> Tensor:
    """Add the right operand of grouped products as [g, n, k], laid out as its plan wants it."""
    params = _params(name, a, b, types[0], *types)
    settings = settings_of(graph.target, MATMUL, options, name)
    return create_weights(graph, params, settings, name)


@library_call("POPLIN")
def matMulReportPlan(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Shape,
    bShape: Shape,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> str:
    """Return the plan of a product as text.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> print(poplin.matMulReportPlan(trial.graph, poplar.FLOAT, poplar.FLOAT, [4, 4], [4, 4]))
    HMAC swapped, groups of 4 x 1, partials float; 4 tiles: batch 4, outputs 1, inputs 1; ...
    """
    return matMulGroupedReportPlan(
        graph, inputType, outputType, [1, *aShape], [1, *bShape], options, cache
    )


@library_call("POPLIN")
def matMulGroupedReportPlan(
    graph: Graph,
    inputType: Type,
    outputType: Type,
    aShape: Shape,
    bShape: Shape,
    options: Options = None,
    cache: PlanningCache | None = None,
) -> str:
    """Return the plan of grouped products as text.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> shapes = [2, 4, 4], [2, 4, 4]
    >>> plan = poplin.matMulGroupedReportPlan(trial.graph, poplar.FLOAT, poplar.FLOAT, *shapes)
    >>> print(plan)
    AMP swapped, groups of 8 x 16, partials float; 4 tiles: groups 2, batch 1, outputs 2, ...
    """
    params = _params("matMul", aShape, bShape, inputType, inputType, outputType)
    settings = settings_of(graph.target, MATMUL, options, "matMul")
    return plan_of(graph.target, problem_of(params), settings).describe()


@library_call("POPLIN")
def transposeGroupedMatrix(matrix: Tensor) -> Tensor:
    """View [g, m, n] as [g, n, m].

    >>> from simulator import poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> poplin.transposeGroupedMatrix(trial.tensor([[[1.0, 2.0]]])).shape
    (1, 2, 1)
    """
    return matrix.dimShuffle([0, 2, 1])
