"""Rows of the catalogue: the vertex types of pooling and norms."""

from __future__ import annotations

from simulator.codelets import deviation
from simulator.codelets import pooling_cycles as pooling
from simulator.codelets.vertex_cost import VertexCost, row, supervisor

_SOURCE = "PopLibs lib/popnn/PerformanceEstimation.hpp"
_LISTS = "in out startPos offsetBase workList"

POOLING: tuple[VertexCost, ...] = (
    supervisor("popnn::MaxPooling<type>", _LISTS, pooling.max_pooling, _SOURCE, (44, 400)),
    supervisor("popnn::SumPooling<type>", _LISTS, pooling.sum_pooling, _SOURCE, (48, 400)),
    supervisor(
        "popnn::MaxPoolingGrad<type>",
        f"{_LISTS} fwdActsIn fwdActsOut",
        pooling.max_pooling_gradient,
        _SOURCE,
        (52, 400),
    ),
    supervisor(
        "popnn::MaxPoolingGradientScale<type>",
        f"{_LISTS} fwdActsOut",
        pooling.max_pooling,
        _SOURCE,
        (48, 400),
    ),
    row(
        "popnn::SelectiveScaling<type>",
        "inOut scaleWorklist",
        pooling.selective_scaling,
        "PopLibs lib/popnn/popnnCycleEstimators.cpp",
        (20, 150),
    ),
)

NORMS: tuple[VertexCost, ...] = (
    row(
        "poplin::InverseStdDeviation<mean,power,out,centred>",
        "mean power iStdDev",
        deviation.inverse_deviation,
        "PopLibs lib/poplin/poplinCycleEstimators.cpp",
        (deviation.STATE_BYTES, deviation.CODE_BYTES),
    ),
)
