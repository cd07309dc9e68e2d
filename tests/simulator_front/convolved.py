"""Convolutions by NumPy's sliding windows, with every transform done to the arrays themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from simulator.poplibs.poplin import ConvParams, InputTransform


def transformed(array: Any, transform: InputTransform, dimensions: int) -> Any:
    """Truncate, dilate, pad and flip the last dimensions of an array."""
    for d in range(dimensions):
        axis = array.ndim - dimensions + d
        end = array.shape[axis] - transform.truncationUpper[d]
        array = np.take(array, range(transform.truncationLower[d], end), axis)
        shape = list(array.shape)
        shape[axis] = (shape[axis] - 1) * transform.dilation[d] + 1
        spread = np.zeros(shape, array.dtype)
        spread[(slice(None),) * axis + (slice(None, None, transform.dilation[d]),)] = array
        around = [(0, 0)] * array.ndim
        around[axis] = transform.paddingLower[d], transform.paddingUpper[d]
        array = np.pad(spread, around)
        array = np.flip(array, axis) if transform.flip[d] else array
    return array


def convolved(values: Any, weights: Any, params: ConvParams) -> Any:
    """Convolve [n, g * ci, *in] with [g, co, ci, *kernel]."""
    dims, groups = params.getNumFieldDims(), params.numConvGroups
    values = transformed(values, params.inputTransform, dims)
    weights = transformed(weights, params.kernelTransform, dims)
    apart = values.reshape(len(values), groups, -1, *values.shape[2:])
    windows = sliding_window_view(
        apart,
        weights.shape[3:],
        axis=tuple(range(3, 3 + dims)),  # type: ignore[call-overload]
    )
    field = windows.shape[3 : 3 + dims]
    flat = windows.reshape(*windows.shape[:3], int(np.prod(field)), -1)
    kernel = weights.reshape(*weights.shape[:3], -1)
    out = np.einsum("ngcpk,gock->ngop", flat, kernel).reshape(len(values), -1, *field)
    last = params.outputTransform
    for d in range(dims):
        end = out.shape[2 + d] - last.truncationUpper[d]
        out = np.take(out, range(last.truncationLower[d], end, last.stride[d]), 2 + d)
        around = [(0, 0)] * out.ndim
        around[2 + d] = last.paddingLower[d], last.paddingUpper[d]
        out = np.pad(out, around)
    return out
