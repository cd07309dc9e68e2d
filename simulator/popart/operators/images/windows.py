"""The windows of convolutions and poolings: ONNX's attributes, and what the libraries take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import IntArray, element_count
from simulator.popart.operators.call import Call


@dataclass(frozen=True, slots=True)
class Windows:
    """One number for each dimension of the field.

    `lower` and `upper` are the padding that the model asks for; `extra` is what the last window
    reads beyond it (below 0: what no window reads).
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    extra: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def beyond(self) -> list[int]:
        """Return the padding behind the field up to the end of the last window."""
        return [upper + extra for upper, extra in zip(self.upper, self.extra, strict=True)]

    @property
    def dilated(self) -> bool:
        return any(step > 1 for step in self.dilation)

    def taps(self, axis: int) -> IntArray:
        """Return where each window reads [output][tap], in the field with its lower padding."""
        first = np.arange(self.outputs[axis], dtype=np.int64)[:, None] * self.stride[axis]
        return first + np.arange(self.kernel[axis], dtype=np.int64) * self.dilation[axis]

    def readers(self, axis: int, size: int) -> IntArray:
        """Return which windows read each element of a field [element][reader], -1 for none."""
        elements = self.taps(axis) - self.lower[axis]
        windows, taps = np.nonzero((elements >= 0) & (elements < size))
        read = elements[windows, taps]
        order = np.argsort(read, kind="stable")
        read, counts = read[order], np.bincount(read, minlength=size)
        nth = np.arange(len(read)) - (np.cumsum(counts) - counts)[read]
        table = np.full((size, max(int(counts.max(initial=0)), 1)), -1, dtype=np.int64)
        table[read, nth] = windows[order]
        return table


def windows_of(call: Call, kernel: tuple[int, ...], outputs: tuple[int, ...]) -> Windows:
    """Read the attributes of a convolution or pooling."""
    field = call.info().dims[2:]
    ones = [1] * len(field)
    stride = tuple(call.attribute("strides") or ones)
    dilation = tuple(call.attribute("dilations") or ones)
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    rows = list(zip(field, spans, stride, outputs, strict=True))
    needed = [(count - 1) * step + span - size for size, span, step, count in rows]
    lower, upper = _pads(call, needed)
    extra = tuple(n - a - b for n, a, b in zip(needed, lower, upper, strict=True))
    return Windows(kernel, stride, dilation, lower, upper, extra, outputs)


def _pads(call: Call, needed: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and behind, that of auto_pad by what the windows need."""
    kind = call.attribute("auto_pad", "NOTSET")
    if kind in ("SAME_UPPER", "SAME_LOWER"):
        amounts = [max(width, 0) for width in needed]
        small, large = tuple(w // 2 for w in amounts), tuple(w - w // 2 for w in amounts)
        return (small, large) if kind == "SAME_UPPER" else (large, small)
    half = len(needed)
    attribute = None if kind == "VALID" else call.attribute("pads")
    pads = tuple(attribute or [0] * (2 * half))
    return pads[:half], pads[half:]


def spread_windows(call: Call, tensor: Tensor, windows: Windows, fill: float) -> Tensor:
    """View [samples, channels, outputs..., taps]: what each window reads, `fill` outside."""
    axes = range(len(windows.kernel))
    around = padded_field(call, tensor, windows.lower, [max(u, 0) for u in windows.beyond], fill)
    for axis in axes:
        around = around.taken(windows.taps(axis).reshape(-1), 2 + axis)
    split = [size for axis in axes for size in (windows.outputs[axis], windows.kernel[axis])]
    apart = around.reshape((*tensor.shape[:2], *split))
    order = [0, 1, *(2 + 2 * axis for axis in axes), *(3 + 2 * axis for axis in axes)]
    shape = (*tensor.shape[:2], *windows.outputs, _taps(windows))
    return apart.dimShuffle(order).reshape(shape)


def spread_readers(call: Call, tensor: Tensor, windows: Windows, fill: float) -> Tensor:
    """View [samples, channels, field..., readers]: of all windows that read an element."""
    field = call.info().dims[2:]
    tables = [windows.readers(axis, size) for axis, size in enumerate(field)]
    for axis, table in enumerate(tables):
        if (table < 0).any():
            tensor = call.padded(tensor, 0, 1, 2 + axis, fill)
        places = np.where(table < 0, windows.outputs[axis], table)
        tensor = tensor.taken(places.reshape(-1), 2 + axis)
    samples, channels = tensor.shape[:2]
    apart = tensor.reshape((samples, channels, *(n for table in tables for n in table.shape)))
    axes = range(len(field))
    order = [0, 1, *(2 + 2 * axis for axis in axes), *(3 + 2 * axis for axis in axes)]
    count = int(np.prod([table.shape[1] for table in tables]))
    return apart.dimShuffle(order).reshape((samples, channels, *field, count))


def padded_field(
    call: Call, tensor: Tensor, lower: Sequence[int], upper: Sequence[int], fill: float = 0
) -> Tensor:
    """Put a number around the field of [samples, channels, field...]."""
    for place, (before, behind) in enumerate(zip(lower, upper, strict=True)):
        tensor = call.padded(tensor, before, behind, 2 + place, fill)
    return tensor


def _taps(windows: Windows) -> int:
    return int(np.prod(windows.kernel))


def positions(call: Call, windows: Windows) -> IntArray:
    """Return where each window reads [outputs..., taps], in the flat field; -1 outside of it."""
    field = call.info().dims[2:]
    count = len(field)
    flat = np.zeros([1] * (2 * count), dtype=np.int64)
    inside = np.ones([1] * (2 * count), dtype=np.bool_)
    stride = 1
    for axis in range(count)[::-1]:
        places = windows.taps(axis) - windows.lower[axis]
        shape = [1] * (2 * count)
        shape[axis], shape[count + axis] = places.shape
        flat = flat + places.reshape(shape) * stride
        inside = inside & ((places >= 0) & (places < field[axis])).reshape(shape)
        stride *= field[axis]
    return np.where(inside, flat, -1).reshape((*windows.outputs, _taps(windows)))


def in_images(call: Call, places: IntArray, outside: int) -> IntArray:
    """Return places of a field [...] as those of all samples and channels; -1 becomes `outside`."""
    samples, channels, *field = call.info().dims
    size = element_count(tuple(field))
    images = np.arange(samples * channels).reshape((samples, channels, *[1] * places.ndim))
    return np.asarray(np.where(places < 0, outside, places + images * size))
