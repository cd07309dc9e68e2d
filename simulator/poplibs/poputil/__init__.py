"""Helpers for tile mappings, layouts and views of tensors (poputil)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from simulator.graph.errors import poplibs_error
from simulator.poplibs.poputil import graphfn
from simulator.poplibs.poputil.broadcast import (
    broadcastToMatch,
    canBroadcastToMatch,
    expandToMatchRanks,
)
from simulator.poplibs.poputil.copies import (
    cloneN,
    cloneToIpu,
    copyToIpu,
    createIpuCopy,
    duplicate,
)
from simulator.poplibs.poputil.mapping_by_use import TensorUseTracker, createBroadcastOperand
from simulator.poplibs.poputil.offsets import (
    calcLinearTileMappingAndNewOffset,
    calculateUnshufflingIntervals,
    chooseMappingOffset,
    cloneAndExpandAliasing,
    cloneToGraph,
    flattenIntervals,
    invTransformTileIndex,
    transformTileIndex,
)
from simulator.poplibs.poputil.regions import (
    balancedPartition,
    flattenIndex,
    intervalSequenceNumElements,
    mergeAdjacentRegions,
    splitRegions,
    splitRegionsBetweenWorkers,
    unflattenIndex,
)
from simulator.poplibs.poputil.structure import (
    createPartitionableTensor,
    detectDimGroupings,
    detectInnermostGrouping,
    dimIsSplitOverIPUs,
    dimIsSplitOverTiles,
    factorDims,
    iterateTensorPartitions,
    unfactorDims,
)
from simulator.poplibs.poputil.tile_mapping import (
    calcLinearTileMapping,
    getTileImbalance,
    mapOutputForElementWiseOp,
    mapTensorLinearly,
    mapTensorLinearlyWithOffset,
    rebalanceTensor,
)
from simulator.poplibs.poputil.values import (
    castToDeviceHalfValue,
    checkAccuracyWhenCast,
    templateVertex,
)

__all__ = [
    "calcLinearTileMappingAndNewOffset",
    "calculateUnshufflingIntervals",
    "chooseMappingOffset",
    "cloneAndExpandAliasing",
    "cloneToGraph",
    "flattenIntervals",
    "invTransformTileIndex",
    "transformTileIndex",
    "TensorUseTracker",
    "balancedPartition",
    "broadcastToMatch",
    "calcLinearTileMapping",
    "canBroadcastToMatch",
    "castToDeviceHalfValue",
    "checkAccuracyWhenCast",
    "cloneN",
    "cloneToIpu",
    "copyToIpu",
    "countedForLoop",
    "createBroadcastOperand",
    "createIpuCopy",
    "createPartitionableTensor",
    "detectDimGroupings",
    "detectInnermostGrouping",
    "dimIsSplitOverIPUs",
    "dimIsSplitOverTiles",
    "duplicate",
    "expandToMatchRanks",
    "factorDims",
    "flattenIndex",
    "getTileImbalance",
    "graphfn",
    "intervalSequenceNumElements",
    "iterateTensorPartitions",
    "mapOutputForElementWiseOp",
    "mapTensorLinearly",
    "mapTensorLinearlyWithOffset",
    "mergeAdjacentRegions",
    "poplibs_error",
    "rebalanceTensor",
    "splitRegions",
    "splitRegionsBetweenWorkers",
    "templateVertex",
    "unfactorDims",
    "unflattenIndex",
]


def __getattr__(name: str) -> Any:
    # The guide calls it poputil's; it is popops', which is built on poputil.
    if name != "countedForLoop":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("simulator.poplibs.popops").countedForLoop
