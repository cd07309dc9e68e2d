"""The library's vertex types and where their cost formulas come from."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A family of vertex types: the start of their names, and the source of their costs."""

    prefix: str
    source: str


CATALOGUE = (
    Entry("popops::BinaryOp", "PopLibs lib/popops/popopsCycleEstimators.cpp"),
    Entry("popops::UnaryOp", "PopLibs lib/popops/popopsCycleEstimators.cpp"),
    Entry("popops::ScaledAdd", "PopLibs lib/popops/PerformanceEstimation.cpp"),
    Entry("popops::Cast", "PopLibs lib/popops/PerformanceEstimation.cpp"),
    Entry("popnn::NonLinearity", "PopLibs lib/popnn/popnnCycleEstimators.cpp"),
    Entry("popnn::LossSumSquared", "PopLibs lib/popnn/PerformanceEstimation.hpp"),
    Entry("popnn::LossCrossEntropy", "PopLibs lib/popnn/PerformanceEstimation.hpp"),
    Entry("popnn::ReduceMaxClassGather", "PopLibs lib/popnn/popnnCycleEstimators.cpp"),
    Entry("popnn::ReduceMinClassGather", "PopLibs lib/popnn/popnnCycleEstimators.cpp"),
    Entry("popnn::CalcAccuracy", "PopLibs lib/popnn/popnnCycleEstimators.cpp"),
    Entry("popops::EncodeOneHot", "PopLibs lib/popops/popopsCycleEstimators.cpp"),
    Entry("popops::Reduce", "PopLibs lib/popops/reduction/CycleEstimationFunctions.cpp"),
    Entry("poplin::ReduceAdd", "PopLibs lib/poplin/PerformanceEstimation.hpp"),
    Entry(
        "poplin::ConvPartial1x1Out",
        "PopLibs lib/poplin/PerformanceEstimation.hpp of 2019",
    ),
)


def source_of(codelet: str) -> str:
    """Name the source of a library vertex type's cost; empty for a type that is not listed."""
    return next((entry.source for entry in CATALOGUE if codelet.startswith(entry.prefix)), "")
