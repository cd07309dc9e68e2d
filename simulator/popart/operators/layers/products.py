"""Products of matrices: MatMul by NumPy's rules, Gemm."""

from __future__ import annotations

from collections.abc import Callable

from simulator.graph.tensors.tensor import Tensor, broadcast_to
from simulator.graph.types import Type, element_count
from simulator.popart.operators.call import Call, broadcast
from simulator.poplibs import poplin
from simulator.poplibs.poplin.convolutions.matmul import create_rows, product_by_rows
from simulator.poplibs.popops.expr import _1, _2
from simulator.poplibs.popops.regions import debug_name

Shape = tuple[int, ...]
Layout = Callable[[Call], Tensor | None]


def mat_mul(call: Call) -> Tensor:
    """Multiply matrices; dimensions before the last two are broadcast."""
    a, b = call[0], call[1]
    a = a.expand([0]) if a.rank() == 1 else a
    b = b.expand([1]) if b.rank() == 1 else b
    rows, inner, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    if b.rank() == 2:
        flat = a.reshape((element_count(a.shape[:-1]), inner))
        out = poplin.matMul(
            call.graph, flat, b, call.prog, debugContext=call.name, options=call.options
        )
        return out.reshape(call.outputs[0].dims)
    groups = _groups(a.shape[:-2], b.shape[:-2])
    count = element_count(groups)
    lhs = broadcast_to(a, (*groups, rows, inner)).reshape((count, rows, inner))
    right = broadcast_to(b, (*groups, inner, columns)).reshape((count, inner, columns))
    out = poplin.matMulGrouped(
        call.graph, lhs, right, call.prog, debugContext=call.name, options=call.options
    )
    return out.reshape(call.outputs[0].dims)


def _groups(a: Shape, b: Shape) -> Shape:
    """Return the shape to which two shapes are broadcast."""
    rank = max(len(a), len(b))
    padded = [(1,) * (rank - len(shape)) + shape for shape in (a, b)]
    return tuple(max(sizes) if min(sizes) else 0 for sizes in zip(*padded, strict=True))


def mat_mul_input(place: int) -> Layout:
    """Make the function that adds an operand of a product of two matrices as it is read."""

    def create(call: Call) -> Tensor | None:
        a, b = call.info(0), call.info(1)
        if len(b.dims) != 2 or len(a.dims) < 2 or not (a.nelms() and b.nelms()):
            return None
        shapes = (a.nelms() // a.dims[-1], a.dims[-1]), b.dims
        return _operand(call, place, a.device, *shapes).reshape(call.info(place).dims)

    return create


def _operand(call: Call, place: int, dtype: Type, a: Shape, b: Shape) -> Tensor:
    make = poplin.createMatMulInputRHS if place else poplin.createMatMulInputLHS
    return make(call.graph, dtype, dtype, a, b, call.name, call.options)


def _turned(call: Call) -> tuple[bool, bool]:
    return bool(call.attribute("transA", 0)), bool(call.attribute("transB", 0))


def gemm(call: Call) -> Tensor:
    """Return alpha A B + beta C, with A or B transposed if asked."""
    turned = _turned(call)
    a = call[0].transpose() if turned[0] else call[0]
    rows = call[1] if turned[1] else call[1].transpose()
    name = debug_name(call.name, "Conv_1")
    product = product_by_rows(
        call.graph, a.expand([0]), rows.expand([0]), call.prog, None, name, call.options
    ).squeeze([0])
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    if not call.has(2) or not beta:
        return product if alpha == 1 else call.map(_1 * alpha, product)
    added = broadcast(call[2], product.shape)
    scaled = _1 if alpha == 1 else _1 * alpha
    return call.map(scaled + (_2 if beta == 1 else _2 * beta), product, added)


def gemm_input(place: int) -> Layout:
    """Make the function that adds an operand of a Gemm as it is read."""

    def create(call: Call) -> Tensor | None:
        if not (call.info(0).nelms() and call.info(1).nelms()):
            return None
        turned = _turned(call)
        a, b = (call.info(p).dims[::-1] if turned[p] else call.info(p).dims for p in (0, 1))
        if place:
            types = (call.info().device,) * 2
            operand = create_rows(call.graph, types, (1, *a), (1, *b), call.name, call.options)
            rows = operand.squeeze([0])
            return rows if turned[1] else rows.transpose()
        operand = _operand(call, 0, call.info().device, a, b)
        return operand.transpose() if turned[0] else operand

    return create
