"""Operations of a convolution, and the cycles that they take at the least.

Source: PopLibs lib/poplin/Convolution.cpp, getFwdFlops and getFwdPerfectCycleCount.
"""

from __future__ import annotations

from math import prod

from simulator.graph.graph import Graph
from simulator.graph.types import FLOAT, HALF
from simulator.logging import library_call
from simulator.poplibs.poplin.planning.params import ConvParams
from simulator.poplibs.poplin.planning.problem import problem_of


def _products(params: ConvParams) -> int:
    """Count the products of a pass; those with the zeros of padding and dilation are none."""
    taps = prod(int((axis.reads >= 0).sum()) for axis in problem_of(params).axes)
    channels = params.inputChannelsPerConvGroup * params.outputChannelsPerConvGroup
    return params.numConvGroups * params.batchSize * channels * taps


def _flops(params: ConvParams) -> int:
    return 2 * _products(params)


def _perfect_cycles(graph: Graph, params: ConvParams) -> float:
    """Divide the products by what all tiles multiply in a cycle."""
    target = graph.target
    if params.dataType == FLOAT:
        rate = target.getFloatVectorWidth()
    else:
        units = max(target.getNumConvUnits(HALF, HALF), target.getNumConvUnits(HALF, FLOAT))
        rate = max(units, target.getNumConvUnits(FLOAT, FLOAT)) * target.getHalfVectorWidth()
    return _products(params) / (rate * target.getNumTiles())


@library_call("POPLIN")
def getFwdFlops(params: ConvParams) -> int:
    """Count the operations of the forward pass.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getFwdFlops(params)  # 3 outputs of 2 products and 2 sums
    12
    """
    return _flops(params)


@library_call("POPLIN")
def getBwdFlops(params: ConvParams) -> int:
    """Count the operations of the backward pass.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getBwdFlops(params)  # as the forward pass: 6 products and 6 sums
    12
    """
    return _flops(params)


@library_call("POPLIN")
def getWuFlops(params: ConvParams) -> int:
    """Count the operations of the weight update.

    >>> from simulator import poplar, poplin
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 1, 1)
    >>> poplin.getWuFlops(params)  # as the forward pass: 6 products and 6 sums
    12
    """
    return _flops(params)


@library_call("POPLIN")
def getFwdPerfectCycleCount(graph: Graph, params: ConvParams) -> float:
    """Compute the cycles of the forward pass if all matrix units worked in all of them.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 16, 16)
    >>> poplin.getFwdPerfectCycleCount(trial.graph, params)  # 1,536 products, 8 a cycle
    192.0
    """
    return _perfect_cycles(graph, params)


@library_call("POPLIN")
def getBwdPerfectCycleCount(graph: Graph, params: ConvParams) -> float:
    """Compute the cycles of the backward pass if all matrix units worked in all of them.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 16, 16)
    >>> poplin.getBwdPerfectCycleCount(trial.graph, params)  # 1,536 products, 8 a cycle
    192.0
    """
    return _perfect_cycles(graph, params)


@library_call("POPLIN")
def getWuPerfectCycleCount(graph: Graph, params: ConvParams) -> float:
    """Compute the cycles of the weight update if all matrix units worked in all of them.

    >>> from simulator import poplar, poplin
    >>> from simulator.trial import Trial
    >>> trial = Trial()
    >>> params = poplin.ConvParams(poplar.FLOAT, 1, [4], [2], 16, 16)
    >>> poplin.getWuPerfectCycleCount(trial.graph, params)  # 1,536 products, 8 a cycle
    192.0
    """
    return _perfect_cycles(graph, params)
