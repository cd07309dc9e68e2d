"""Rows of the catalogue: vertex types of popnn's non-linearities, losses and classes."""

from __future__ import annotations

from simulator.codelets import loss_cycles as losses
from simulator.codelets import nonlinearity_cycles as nonlinearity
from simulator.codelets.vertex_cost import VertexCost, row, supervisor

_ESTIMATORS = "PopLibs lib/popnn/popnnCycleEstimators.cpp"
_LOSSES = "PopLibs lib/popnn/PerformanceEstimation.hpp"

POPNN: tuple[VertexCost, ...] = (
    supervisor(
        "popnn::NonLinearitySupervisor<type,kind>",
        "in out",
        nonlinearity.nonlinearity_1d,
        _ESTIMATORS,
        (16, 150),
    ),
    supervisor(
        "popnn::NonLinearityInPlaceSupervisor<type,kind>",
        "out",
        nonlinearity.nonlinearity_1d,
        _ESTIMATORS,
        (16, 150),
    ),
    row(
        "popnn::NonLinearity2D<type,kind>",
        "in out",
        nonlinearity.nonlinearity_2d,
        _ESTIMATORS,
        (24, 170),
    ),
    row(
        "popnn::NonLinearity2DInPlace<type,kind>",
        "out",
        nonlinearity.nonlinearity_2d,
        _ESTIMATORS,
        (24, 170),
    ),
    supervisor(
        "popnn::NonLinearityGradSupervisor<type,kind>",
        "outGrad act inGrad",
        nonlinearity.gradient_1d,
        _ESTIMATORS,
        (16, 150),
    ),
    row(
        "popnn::NonLinearityGrad2D<type,kind>",
        "outGrad act inGrad",
        nonlinearity.gradient_2d,
        _ESTIMATORS,
        (24, 170),
    ),
    row(
        "popnn::LossSumSquaredTransform<type>",
        "probs expected deltas transformed",
        losses.sum_squared,
        _LOSSES,
        (20, 100),
    ),
    row(
        "popnn::LossCrossEntropyTransform<type>",
        "probs expected deltas transformed deltasScale modelOutputScaling",
        losses.cross_entropy,
        _LOSSES,
        (20, 120),
    ),
    supervisor(
        "popnn::ReduceMaxClassGather<type,index>",
        "activations value index",
        losses.class_gather,
        _ESTIMATORS,
        (20, 120),
    ),
    supervisor(
        "popnn::ReduceMinClassGather<type,index>",
        "activations value index",
        losses.class_gather,
        _ESTIMATORS,
        (20, 120),
    ),
    supervisor(
        "popnn::ReduceMaxClassGather<type,index>, several workers",
        "activations value index",
        losses.class_gather_supervisor,
        _ESTIMATORS,
        (20, 120),
    ),
    row(
        "popnn::ReduceMaxClassSparse<type,index>",
        "activations labels value index",
        losses.class_sparse,
        _ESTIMATORS,
        (16, 90),
    ),
    row(
        "popnn::ReduceMinClassSparse<type,index>",
        "activations labels value index",
        losses.class_sparse,
        _ESTIMATORS,
        (16, 90),
    ),
    row(
        "popnn::CalcAccuracy<type>",
        "maxPerBatch expected numCorrect",
        losses.accuracy,
        _ESTIMATORS,
        (16, 100),
    ),
)
