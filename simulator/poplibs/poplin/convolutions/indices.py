"""Which inputs, kernel elements and outputs of a convolution meet (PopLibs poplin/ConvUtil.hpp).

Where PopLibs gives ~0U for none, these give `NONE`; an empty range is (0, 0).
"""

from __future__ import annotations

import numpy as np

from simulator.graph.errors import poplibs_error
from simulator.graph.types import IntArray
from simulator.logging import library_call
from simulator.poplibs.poplin.planning.params import ConvParams
from simulator.poplibs.poplin.planning.problem import problem_of

NONE = 2**32 - 1  # ~0U
Range = tuple[int, int]


@library_call("POPLIN")
def getDilatedSize(size: int, dilation: int) -> int:
    """Return the size of a dimension after zeros are put between its elements.

    >>> from simulator import poplin
    >>> poplin.getDilatedSize(3, 2)  # x 0 x 0 x
    5
    """
    return 1 + (size - 1) * dilation if size else 0


@library_call("POPLIN")
def getInputIndex(dim: int, outputIndex: int, kernelIndex: int, params: ConvParams) -> int:
    """Return the input that an output takes with a kernel element; NONE where it is a zero.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getInputIndex(0, 2, 1, params)  # out[2] = x[2] * w[0] + x[3] * w[1]
    3
    """
    number = int(_reads(params, dim)[outputIndex, kernelIndex])
    return NONE if number < 0 else number


@library_call("POPLIN")
def getKernelIndex(dim: int, outputIndex: int, inputIndex: int, params: ConvParams) -> int:
    """Return the kernel element with which an output takes an input; NONE where it takes it not.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getKernelIndex(0, 2, 3, params)  # out[2] = x[2] * w[0] + x[3] * w[1]
    1
    """
    taps = np.flatnonzero(_reads(params, dim)[outputIndex] == inputIndex)
    return int(taps[0]) if len(taps) else NONE


@library_call("POPLIN")
def getOutputRangeForKernelIndex(
    dim: int, outputRange: Range, kernelIndex: int, params: ConvParams
) -> Range:
    """Return the outputs of a range that take an input with a kernel element.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getOutputRangeForKernelIndex(0, (0, 3), 1, params)
    (0, 3)
    """
    return _outputs(params, dim, outputRange, (kernelIndex, kernelIndex + 1), None)


@library_call("POPLIN")
def getOutputRangeForKernelRange(
    dim: int, outputRange: Range, kernelIndexRange: Range, params: ConvParams
) -> Range:
    """Return the outputs of a range that take an input with some of these kernel elements.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getOutputRangeForKernelRange(0, (0, 3), (0, 2), params)
    (0, 3)
    """
    return _outputs(params, dim, outputRange, kernelIndexRange, None)


@library_call("POPLIN")
def getOutputRangeForInputIndex(
    dim: int, outputRange: Range, inputIndex: int, params: ConvParams
) -> Range:
    """Return the outputs of a range that take an input.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getOutputRangeForInputIndex(0, (0, 3), 1, params)  # out[0] and out[1]
    (0, 2)
    """
    return _outputs(params, dim, outputRange, None, (inputIndex, inputIndex + 1))


@library_call("POPLIN")
def getOutputRangeForInputRange(
    dim: int, outputRange: Range, inputRange: Range, params: ConvParams
) -> Range:
    """Return the outputs of a range that take some of these inputs.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getOutputRangeForInputRange(0, (0, 3), (2, 4), params)
    (1, 3)
    """
    return _outputs(params, dim, outputRange, None, inputRange)


@library_call("POPLIN")
def getInputRange(
    dim: int,
    outputRange: Range | int,
    kernelIndex: Range | int | ConvParams,
    params: ConvParams | None = None,
) -> Range:
    """Return the inputs that outputs take with kernel elements, with all where none are named.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getInputRange(0, (1, 3), (0, 2), params)  # out[1] and out[2] take x[1] to x[3]
    (1, 4)
    """
    if isinstance(kernelIndex, ConvParams):
        return getInputRange(dim, outputRange, (0, kernelIndex.kernelShape[dim]), kernelIndex)
    if params is None:
        raise poplibs_error("getInputRange: no params; ConvParams are needed last")
    part = _reads(params, dim)[_slice(outputRange), _slice(kernelIndex)]
    return _range(part[part >= 0])


@library_call("POPLIN")
def getKernelRange(
    dim: int, outputRange: Range | int, inputIndex: Range | int, params: ConvParams
) -> Range:
    """Return the kernel elements with which outputs take inputs.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getKernelRange(0, (0, 3), (1, 3), params)
    (0, 2)
    """
    part, inputs = _reads(params, dim)[_slice(outputRange)], _slice(inputIndex)
    meet = (part >= inputs.start) & (part < inputs.stop)
    return _range(np.flatnonzero(meet.any(axis=0)))


def _reads(params: ConvParams, dim: int) -> IntArray:
    """Return which input [output][kernel] reads, in the tensors that the user has."""
    axis = problem_of(params).axes[dim]
    first, kernel = params.inputTransform, params.kernelTransform
    reads = axis.reads
    if first.flip[dim]:
        reads = np.where(reads >= 0, axis.input - 1 - reads, -1)
    reads = np.where(reads >= 0, reads + first.truncationLower[dim], -1)
    if kernel.flip[dim]:
        reads = reads[:, ::-1]
    taps = [(0, 0), (kernel.truncationLower[dim], kernel.truncationUpper[dim])]
    last = params.outputTransform
    taps[0] = (last.paddingLower[dim], last.paddingUpper[dim])
    padded: IntArray = np.pad(reads, taps, constant_values=-1)
    return padded


def _slice(numbers: Range | int) -> slice:
    return slice(*numbers) if isinstance(numbers, tuple) else slice(numbers, numbers + 1)


def _outputs(
    params: ConvParams, dim: int, outputs: Range, taps: Range | None, inputs: Range | None
) -> Range:
    reads = _reads(params, dim)
    part = reads[slice(*outputs), slice(*taps or (0, reads.shape[1]))]
    low, high = inputs or (0, int(reads.max(initial=0)) + 1)
    meet = ((part >= low) & (part < high)).any(axis=1)
    begin, end = _range(np.flatnonzero(meet))
    return (begin + outputs[0], end + outputs[0]) if end else (0, 0)


def _range(numbers: IntArray) -> Range:
    return (int(numbers.min()), int(numbers.max()) + 1) if len(numbers) else (0, 0)
