"""Fourier transforms as products by matrices of cosines and sines."""

from __future__ import annotations

import numpy as np

from simulator.graph.types import Array
from simulator.popart.importing.composites.body import Body, Unsupported


def fourier(body: Body) -> None:
    """Transform along one axis (DFT): its length, and the axis, are constants."""
    dims = body.dims()
    axis = int(body.attribute("axis", 1 if body.node.version < 20 else -2))
    operand = body.value(2)
    axis = (axis if operand is None else int(operand.reshape(-1)[0])) % len(dims)
    if axis == len(dims) - 1:
        raise Unsupported(f"axis {axis} of {body.info()}; the last one is of complex parts")
    inverse, half = (bool(body.attribute(name, 0)) for name in ("inverse", "onesided"))
    operand = body.value(1)
    before = dims[axis]
    length = 2 * (before - 1) if inverse and half else before
    length = length if operand is None else int(operand.reshape(-1)[0])
    last = len(dims) - 2  # of each part, without the axis of parts
    order = [n for n in range(last + 1) if n != axis] + [axis]
    parts = [
        body("Transpose", body("Gather", "x0", np.int64(part), axis=-1), perm=order)
        for part in range(dims[-1])
    ]
    matrices = _half_back(before, length) if inverse and half else _matrices(
        before, length, inverse=inverse, half=half
    )  # fmt: skip
    back = np.argsort(order).tolist()
    transformed = [body("Transpose", part, perm=back) for part in _products(body, parts, matrices)]
    transformed = transformed[:1] if inverse and half else transformed
    _joined(body, transformed)


def _products(body: Body, parts: list[str], matrices: tuple[Array, Array]) -> list[str]:
    """Multiply the parts, one or two, by real and imaginary matrices."""
    real, imaginary = (body.constant(body.float(matrix)) for matrix in matrices)
    first = [body("MatMul", parts[0], real), body("MatMul", parts[0], imaginary)]
    if len(parts) == 1:
        return first
    second = [body("MatMul", parts[1], imaginary), body("MatMul", parts[1], real)]
    return [body("Sub", first[0], second[0]), body("Add", first[1], second[1])]


def _joined(body: Body, parts: list[str]) -> None:
    apart = [body("Unsqueeze", part, [-1]) for part in parts]
    body("Concat", *apart, axis=-1, out="y")


def _matrices(before: int, length: int, *, inverse: bool, half: bool) -> tuple[Array, Array]:
    """Return real and imaginary parts of what each element before adds to each frequency."""
    after = length // 2 + 1 if half else length
    turns = np.outer(np.arange(before), np.arange(after)) / length
    waves = np.exp((2j if inverse else -2j) * np.pi * turns) / (length if inverse else 1)
    waves[length:] = 0  # what is cut off
    return waves.real, waves.imag


def _half_back(before: int, length: int) -> tuple[Array, Array]:
    """Return what each of half the frequencies adds to the real signal that they are of."""
    real, imaginary = _matrices(before, length, inverse=True, half=False)
    twice = np.where((np.arange(before) == 0) | (2 * np.arange(before) == length), 1.0, 2.0)
    twice[length // 2 + 1 :] = 0
    return real * twice[:, None], imaginary * twice[:, None]


def frames_transformed(body: Body) -> None:
    """Transform overlapping frames of a signal, each weighed by a window (STFT)."""
    dims, operand = body.dims(), body.value(3)
    length = dims[1] if operand is None else int(operand.reshape(-1)[0])
    if operand is None and body.has(2):
        length = body.dims(2)[0]
    step = body.value(1)
    if step is None or int(step.reshape(-1)[0]) < 1 or not 1 <= length <= dims[1]:
        raise Unsupported(f"frames of {length} elements of {body.info()}")
    starts = np.arange(0, dims[1] - length + 1, int(step.reshape(-1)[0]))
    places = starts[:, None] + np.arange(length)
    half = bool(body.attribute("onesided", 1))
    parts = []
    for part in range(dims[2] if len(dims) > 2 else 1):
        alone = body("Gather", "x0", np.int64(part), axis=-1) if len(dims) > 2 else "x0"
        cut = body("Gather", alone, places, axis=1)
        parts.append(body("Mul", cut, "x2") if body.has(2) else cut)
    _joined(body, _products(body, parts, _matrices(length, length, inverse=False, half=half)))
