"""Operators on every element: of one tensor, of two, of several."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from simulator.codelets.elementwise.operations import BINARY, TERNARY
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import BOOL, FLOAT, INT, UNSIGNED_INT
from simulator.popart.operators.call import Call, broadcast, wider
from simulator.popart.operators.elements.activations import exact_gelu
from simulator.popart.representation.ir import Ir, Node
from simulator.poplibs import popnn, popops
from simulator.poplibs.popnn import NonLinearityType
from simulator.poplibs.popops import expr
from simulator.poplibs.popops.expr import Expr, _1, _2, _3

Lower = Callable[[Call], Tensor]


def unary(operation: str) -> Lower:
    """Lower to an operator of popops with one operand."""
    return lambda call: call.apply(operation, call[0])


def absolute(call: Call) -> Tensor:
    """Return absolute values; what has no sign has them already."""
    if call.info().host.kind == "u":
        return call[0]
    return call.apply("ABSOLUTE", call[0])


def expression(expression: Callable[[Expr], Expr]) -> Lower:
    """Lower to an expression of one operand, computed in one compute set."""
    return lambda call: call.map(expression(_1), call[0])


def non_linearity(kind: NonLinearityType) -> Lower:
    """Lower to popnn's non-linearity."""

    def lower(call: Call) -> Tensor:
        if kind is NonLinearityType.RELU and call.info().host.kind in "iu":
            return call.apply("MAXIMUM", call[0], call.constant(0, call[0].dtype, "zero"))
        return popnn.nonLinearity(call.graph, kind, call[0], call.prog, call.name)

    return lower


# The two exponentials of a hyperbolic sine would cancel near 0; the differences from 1 do not.
HYPERBOLIC_SINE = expression(lambda x: (expr.Expm1(x) + expr.Expm1(x) / (expr.Expm1(x) + 1)) * 0.5)
HYPERBOLIC_COSINE = expression(lambda x: (expr.Exp(x) + expr.Exp(-x)) * 0.5)
ARC_TANGENT = expression(lambda x: expr.Atan2(x, expr.Const(1)))


def gelu(call: Call) -> Tensor:
    """Return x/2 (1 + erf(x / sqrt 2)), or its approximation by a tangent."""
    kind = NonLinearityType.GELU_ERF if exact_gelu(call) else NonLinearityType.GELU
    return popnn.nonLinearity(call.graph, kind, call[0], call.prog, call.name)


def is_inf(call: Call) -> Tensor:
    """Return which elements are infinite, of both signs or of one."""
    signs = call.attribute("detect_positive", 1), call.attribute("detect_negative", 1)
    if all(signs):
        return call.apply("IS_INF", call[0])
    if not any(signs):
        return call.constant(np.zeros(call.info().dims, dtype=np.bool_), BOOL)
    limit = np.inf if signs[0] else -np.inf
    return call.apply("EQUAL", call[0], call.constant(limit, call[0].dtype, "infinity"))


def shrink(call: Call) -> Tensor:
    """Move what is outside [-lambd, lambd] by the bias, the rest to 0."""
    bias, limit = call.attribute("bias", 0.0), call.attribute("lambd", 0.5)
    above = expr.Select(_1 - bias, _1 * 0.0, _1 > limit)
    return call.map(expr.Select(_1 + bias, above, _1 < -limit), call[0])


def clip(call: Call) -> Tensor:
    """Keep elements within limits, which are attributes or inputs."""
    out = call[0]
    for place, name, operation in ((1, "min", "MAXIMUM"), (2, "max", "MINIMUM")):
        if call.has(place):
            out = call.apply(operation, out, call.scalar(place))
        elif name in call.node.attributes:
            limit = call.constant(call.attribute(name), out.dtype, name)
            out = call.apply(operation, out, limit)
    return out


def scaled(call: Call) -> Tensor:
    """Multiply by a number (ai.graphcore)."""
    return call.map(_1 * float(call.attribute("scale", 1.0)), call[0])


# Two operands
def operands(call: Call) -> tuple[Tensor, Tensor]:
    """Return both operands in ranks that broadcast; before opset 7 an attribute says how."""
    a, b = call[0], call[1]
    if call.attribute("broadcast", 0) and b.rank() < a.rank():
        axis = int(call.attribute("axis", a.rank() - b.rank())) % a.rank()
        b = b.reshape((*b.shape, *[1] * (a.rank() - axis - b.rank())))
    return a, b


def binary(operation: str) -> Lower:
    """Lower to an operator of popops with two operands; a float beside halves becomes one."""

    def lower(call: Call) -> Tensor:
        a, b = operands(call)
        wide = call.outputs[0].device
        if a.dtype != b.dtype and wide.numpy.kind == "f":
            a, b = call.cast(a, wide), call.cast(b, wide)
        return call.apply(operation, a, b)

    return lower


def power(call: Call) -> Tensor:
    """Raise to powers: in floats, also of integers."""
    base, exponent = operands(call)
    wide = base.dtype if base.dtype.numpy.kind == "f" else FLOAT
    raised = call.apply("POWER", call.cast(base, wide), call.cast(exponent, wide))
    return call.cast(raised, base.dtype)


def modulo(call: Call) -> Tensor:
    """Return what is left of a division: with the sign of the divisor, or as C has it (fmod)."""
    a, b = operands(call)
    remainder = call.apply("REMAINDER", a, b)
    if call.attribute("fmod", 0) or call.info().host.kind == "u":
        return remainder
    wide = wider(a.dtype, ("float", "half", "int"))
    pair = call.cast(remainder, wide), broadcast(call.cast(b, wide), remainder.shape)
    signs_differ = expr.Signum(_1) * expr.Signum(_2) < 0
    return call.cast(call.map(expr.Select(_1 + _2, _1, signs_differ), *pair), a.dtype)


def triangle(call: Call) -> Tensor:
    """Keep the upper or lower triangle of matrices, and set the rest to zero."""
    rows, columns = call.info().dims[-2:]
    keep = np.triu if call.attribute("upper", 1) else np.tril
    first = (call.numbers(1) or [0])[0]
    mask_values = keep(np.ones((rows, columns), np.bool_), first)
    wide = wider(call[0].dtype, TERNARY["SELECT"].types)
    mask, zero = call.constant(mask_values, BOOL, "triangle"), call.constant(0, wide, "zero")
    around = (broadcast(tensor, call[0].shape) for tensor in (zero, mask))
    selected = call.map(expr.Select(_1, _2, _3), call.cast(call[0], wide), *around)
    return call.cast(selected, call[0].dtype)


def where(call: Call) -> Tensor:
    """Take elements of one tensor where a condition is true, else of another."""
    shape, dtype = call.outputs[0].dims, call[1].dtype
    wide = wider(dtype, TERNARY["SELECT"].types)
    operands = [broadcast(call.cast(call[place], wide), shape) for place in (1, 2)]
    selected = call.map(expr.Select(_1, _2, _3), *operands, broadcast(call[0], shape))
    return call.cast(selected, dtype)


def several(operation: str) -> Lower:
    """Lower to an operator between all inputs, one after another."""

    def lower(call: Call) -> Tensor:
        inputs = [call[place] for place in range(len(call.inputs))]
        if len(inputs) == 1:
            return inputs[0]
        return reduce(lambda a, b: call.apply(operation, a, b), inputs)

    return lower


def mean(call: Call) -> Tensor:
    """Return the mean of all inputs."""
    return call.map(_1 * (1.0 / len(call.inputs)), several("ADD")(call))


# Types and truth
def cast(call: Call) -> Tensor:
    """Change the type; what is not zero becomes true, and narrow numbers keep their last bits."""
    info = call.outputs[0]
    dtype = info.device
    if info.type == "FLOAT4E2M1":
        return quarter(call, call.cast(call[0], FLOAT))
    if info.bits:
        signed = dtype.numpy.kind == "i"
        return call.cast(_narrowed(call, call.cast(call[0], INT), info.bits, signed=signed), dtype)
    if dtype == BOOL and call[0].dtype != BOOL:
        zero = call.constant(0, call[0].dtype, "zero")
        return call.apply("NOT_EQUAL", call[0], zero)
    return call.cast(call[0], dtype)


def quarter(call: Call, values: Tensor) -> Tensor:
    """Round floats to those of four bits (FLOAT4E2M1): 0, 0.5, 1, 1.5, 2, 3, 4, 6 and -0.5 to -6.

    Ties go to the even one, what is larger becomes 6, and what is no number 0, as in ONNX's tests.
    """
    half, one, two = map(expr.ConstFloat, (0.5, 1.0, 2.0))
    size = expr.Abs(_1)
    steps = call.map(expr.Select(half, expr.Select(one, two, size < 4.0), size < 2.0), values)
    rounded = expr.Min(expr.NearbyInt(size / _2) * _2, 6.0) * expr.Signum(_1)
    signed = call.map(expr.Select(expr.ConstFloat(0.0), rounded, expr.IsNaN(_1)), values, steps)
    return call.cast(signed, call.outputs[0].device)


def pointed_at(call: Call) -> Tensor:
    """Return 1 where each index points, 0 elsewhere, in the type of the two values."""
    depth = int(call.numbers(1)[0])  # type: ignore[index]
    indices = call.cast(call[0], INT)
    axis = int(call.attribute("axis", -1)) % (indices.rank() + 1)
    wrapped = call.map(expr.Select(_1 + depth, _1, _1 < 0), indices)
    rows = call.cast(wrapped, UNSIGNED_INT).flatten()
    encoded = call.variable(call[2].dtype, [rows.numElements(), depth], "encoded")
    popops.encodeOneHot(call.graph, rows, encoded, call.prog, call.name)
    return encoded.reshape((*indices.shape, depth)).dimRoll(indices.rank(), axis)


def one_hot(call: Call) -> Tensor:
    """Put one of two values where each index points, the other elsewhere."""
    out = pointed_at(call)
    off, on = call[2].flatten()[0], call[2].flatten()[1]
    shaped = [broadcast(value, out.shape) for value in (on, off)]
    return call.map(expr.Select(_1, _2, _3 != 0), *shaped, out)


def shifted(call: Call) -> Tensor:
    """Shift bits; amounts below 0, or of the width at least, leave the sign or 0 (BitShift-28)."""
    dtype, is_left = call[0].dtype, call.attribute("direction") == "LEFT"
    bits, signed = 8 * dtype.size, dtype.numpy.kind == "i"
    operation = "SHIFT_LEFT" if is_left else "SHIFT_RIGHT_SIGN_EXTEND" if signed else "SHIFT_RIGHT"
    wide = wider(dtype, BINARY[operation].types)
    values, amounts_raw = (broadcast(call.cast(operand, wide), call.outputs[0].dims)
                     for operand in operands(call))  # fmt: skip
    valid = expr.And(_1 >= 0, _1 < bits) if signed else _1 < bits
    amounts = call.map(expr.Select(_1, _1 * 0 + (bits - 1), valid), amounts_raw)
    shifted_bits = call.apply(operation, values, amounts)
    if is_left or not signed:
        shifted_bits = call.map(
            expr.Select(_1, _1 * 0, _2), shifted_bits, call.map(valid, amounts_raw)
        )
    return call.cast(_narrowed(call, shifted_bits, bits, signed=signed), dtype)


def _narrowed(call: Call, wide_value: Tensor, bits: int, *, signed: bool) -> Tensor:
    """Drop the bits of a wider integer that a narrower one does not have."""
    spare_bits = 8 * wide_value.dtype.size - bits
    if not spare_bits:
        return wide_value
    back = "SHIFT_RIGHT_SIGN_EXTEND" if signed else "SHIFT_RIGHT"
    distance = call.constant(spare_bits, wide_value.dtype, "width")
    return call.apply(back, call.apply("SHIFT_LEFT", wide_value, distance), distance)


def same_bits(call: Call) -> Tensor:
    """View the bits of each element as another type of the same width."""
    return call[0].reinterpret(call.outputs[0].device)


def other_width(node: Node, ir: Ir) -> str:
    """Return the refusal of a BitCast of a type that the device holds in another width."""
    info = ir.infos[node.inputs[0]]
    if info.host.itemsize == info.device.size:
        return ""
    return f"input {node.inputs[0]!r} is {info}; at most 32 bits an element would be needed"
