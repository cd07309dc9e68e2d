"""Checks of the windows of convolutions and pools, when a builder adds them, as PopART does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulator.popart.errors import popart_exception

WINDOWED = ("Conv", "AveragePool", "MaxPool", "Pad")
Shapes = Callable[[str], list[int] | None]


def check_window(
    operator: str, inputs: Sequence[str], attributes: Mapping[str, Any], shape_of: Shapes
) -> None:
    """Raise popart_exception for sizes of a window that do not fit each other or the data.

    `shape_of` gives the shape of a tensor, None where it is not known.
    """
    data = shape_of(inputs[0])
    weights = shape_of(inputs[1]) if operator == "Conv" and len(inputs) > 1 else None
    if weights is not None:
        _check_kernel(attributes.get("kernel_shape"), inputs[1], weights[2:])
    if data is None:
        return
    if operator == "Pad":
        _check_pads(attributes.get("pads"), len(data), "dimension")
        return
    axes = len(data) - 2
    _check_lengths(attributes, axes)
    kernel = weights[2:] if weights is not None else attributes.get("kernel_shape")
    if kernel and attributes.get("auto_pad") in (None, "", "NOTSET", "VALID"):
        _check_output(data[2:], list(kernel), attributes)


def _check_kernel(declared: Sequence[int] | None, name: str, inferred: Sequence[int]) -> None:
    if declared and list(declared) != list(inferred):
        raise popart_exception(
            f"kernel_shape, {_shown(declared)}, does not match inferred shape from weight input "
            f"'{name}', {_shown(inferred)}"
        )


def _check_lengths(attributes: Mapping[str, Any], axes: int) -> None:
    for name in ("strides", "dilations"):
        values = attributes.get(name)
        if values and len(values) != axes:
            raise popart_exception(
                f"Length of {name} vector {len(values)} != number of spatial dimensions {axes}"
            )
    _check_pads(attributes.get("pads"), axes, "spatial dimension")


def _check_pads(pads: Sequence[int] | None, axes: int, kind: str) -> None:
    if pads and len(pads) != 2 * axes:
        raise popart_exception(
            f"Padding vector (length {len(pads)}) does not have 2 values for each {kind} {axes}"
        )


def _check_output(
    sizes: Sequence[int], kernel: Sequence[int], attributes: Mapping[str, Any]
) -> None:
    """Raise popart_exception where a window is longer than the data that it goes over."""
    axes = len(sizes)
    strides = attributes.get("strides") or [1] * axes
    dilations = attributes.get("dilations") or [1] * axes
    pads = attributes.get("pads") or [0] * (2 * axes)
    room = [
        size + before + after - dilation * (width - 1) - 1
        for size, before, after, dilation, width in zip(
            sizes, pads[:axes], pads[axes:], dilations, kernel, strict=True
        )
    ]
    output_sizes = [excess // stride + 1 for excess, stride in zip(room, strides, strict=True)]
    if any(size < 0 for size in output_sizes):
        shown = _shown(output_sizes)
        raise popart_exception(
            f"Window parameter values combine to give invalid spatial output shape: {shown}"
        )


def _shown(sizes: Sequence[int]) -> str:
    return "[" + " ".join(map(str, sizes)) + "]"
