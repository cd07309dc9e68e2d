"""Operations on tensors (popops)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets as addCodelets
from simulator.poplibs.popops import embedding as embedding
from simulator.poplibs.popops import expr as expr
from simulator.poplibs.popops import padding as padding
from simulator.poplibs.popops import rearrange as rearrange
from simulator.poplibs.popops.elementwise import deviations as _deviations
from simulator.poplibs.popops.elementwise.cast import cast as cast
from simulator.poplibs.popops.elementwise.cast import castWithOutput as castWithOutput
from simulator.poplibs.popops.elementwise.fill import fill as fill
from simulator.poplibs.popops.elementwise.fill import zero as zero
from simulator.poplibs.popops.elementwise.map import map as map
from simulator.poplibs.popops.elementwise.map import mapInPlace as mapInPlace
from simulator.poplibs.popops.elementwise.map import mapWithOutput as mapWithOutput
from simulator.poplibs.popops.elementwise.outputs import (
    createOutputForElementWiseOp as createOutputForElementWiseOp,
)
from simulator.poplibs.popops.elementwise.scaled_add import (
    ScaledAddSpecialisation as ScaledAddSpecialisation,
)
from simulator.poplibs.popops.elementwise.scaled_add import scaledAddTo as scaledAddTo
from simulator.poplibs.popops.elementwise.scaled_add import scaledSubtractFrom as scaledSubtractFrom
from simulator.poplibs.popops.encoding import encodeOneHot as encodeOneHot
from simulator.poplibs.popops.gather_statistics import histogram as histogram
from simulator.poplibs.popops.host_tensors import IndicesAndTensor as IndicesAndTensor
from simulator.poplibs.popops.host_tensors import (
    createHostSliceableTensor as createHostSliceableTensor,
)
from simulator.poplibs.popops.host_tensors import (
    createHostTransferableTensor as createHostTransferableTensor,
)
from simulator.poplibs.popops.iota import iota as iota
from simulator.poplibs.popops.loop import addForLoopCounterVertex as addForLoopCounterVertex
from simulator.poplibs.popops.loop import countedForLoop as countedForLoop
from simulator.poplibs.popops.loop import countedLoop as countedLoop
from simulator.poplibs.popops.normalise_image import (
    createNormaliseImageInput as createNormaliseImageInput,
)
from simulator.poplibs.popops.normalise_image import normaliseImage as normaliseImage
from simulator.poplibs.popops.not_numbers import hasNaN as hasNaN
from simulator.poplibs.popops.not_numbers import hasNaNOrInf as hasNaNOrInf
from simulator.poplibs.popops.operators import *  # noqa: F403 - its names are all operators
from simulator.poplibs.popops.pad import pad as pad
from simulator.poplibs.popops.reduction.cumulative_sum import cumSum as cumSum
from simulator.poplibs.popops.reduction.reduce import Operation as Operation
from simulator.poplibs.popops.reduction.reduce import ReduceParams as ReduceParams
from simulator.poplibs.popops.reduction.reduce import SingleReduceOp as SingleReduceOp
from simulator.poplibs.popops.reduction.reduce import allTrue as allTrue
from simulator.poplibs.popops.reduction.reduce import reduce as reduce
from simulator.poplibs.popops.reduction.reduce import reduceMany as reduceMany
from simulator.poplibs.popops.reduction.reduce import reduceWithOutput as reduceWithOutput
from simulator.poplibs.popops.ring import CircBuf as CircBuf
from simulator.poplibs.popops.scalars_in_rows import selectScalarFromRows as selectScalarFromRows
from simulator.poplibs.popops.scalars_in_rows import updateScalarInRows as updateScalarInRows
from simulator.poplibs.popops.slicing.dynamic_slice import (
    createDynamicSliceOutput as createDynamicSliceOutput,
)
from simulator.poplibs.popops.slicing.dynamic_slice import dynamicSlice as dynamicSlice
from simulator.poplibs.popops.slicing.dynamic_slice import (
    dynamicSliceWithOutput as dynamicSliceWithOutput,
)
from simulator.poplibs.popops.slicing.dynamic_slice import dynamicUpdate as dynamicUpdate
from simulator.poplibs.popops.slicing.dynamic_slice import getSliceMapping as getSliceMapping
from simulator.poplibs.popops.slicing.gather import GatherParams as GatherParams
from simulator.poplibs.popops.slicing.gather import createGatherInput as createGatherInput
from simulator.poplibs.popops.slicing.gather import gather as gather
from simulator.poplibs.popops.slicing.grouped_tensors import (
    createGroupedIndicesTensor as createGroupedIndicesTensor,
)
from simulator.poplibs.popops.slicing.grouped_tensors import (
    createGroupedSliceableTensor as createGroupedSliceableTensor,
)
from simulator.poplibs.popops.slicing.grouped_tensors import (
    createGroupedSliceTensor as createGroupedSliceTensor,
)
from simulator.poplibs.popops.slicing.multi_slice import groupedMultiSlice as groupedMultiSlice
from simulator.poplibs.popops.slicing.multi_slice import groupedMultiUpdate as groupedMultiUpdate
from simulator.poplibs.popops.slicing.multi_slice import (
    groupedMultiUpdateAdd as groupedMultiUpdateAdd,
)
from simulator.poplibs.popops.slicing.multi_slice import (
    groupedMultiUpdateMax as groupedMultiUpdateMax,
)
from simulator.poplibs.popops.slicing.multi_slice import (
    groupedMultiUpdateMul as groupedMultiUpdateMul,
)
from simulator.poplibs.popops.slicing.multi_slice import multiSlice as multiSlice
from simulator.poplibs.popops.slicing.multi_slice import multiUpdate as multiUpdate
from simulator.poplibs.popops.slicing.multi_slice import multiUpdateAdd as multiUpdateAdd
from simulator.poplibs.popops.slicing.multi_slice import multiUpdateMax as multiUpdateMax
from simulator.poplibs.popops.slicing.multi_slice import multiUpdateMul as multiUpdateMul
from simulator.poplibs.popops.slicing.planned.slice_plan import SlicePlan as SlicePlan
from simulator.poplibs.popops.slicing.scatter import scatter as scatter
from simulator.poplibs.popops.slicing.sequence_slice import sequenceSlice as sequenceSlice
from simulator.poplibs.popops.slicing.sliceable import createIndicesTensor as createIndicesTensor
from simulator.poplibs.popops.slicing.sliceable import (
    createSliceableTensor as createSliceableTensor,
)
from simulator.poplibs.popops.slicing.sliceable import (
    createSliceableTensorFromSlice as createSliceableTensorFromSlice,
)
from simulator.poplibs.popops.slicing.sliceable import createSliceTensor as createSliceTensor
from simulator.poplibs.popops.sorting.sort import sort as sort
from simulator.poplibs.popops.sorting.sort import sortInPlace as sortInPlace
from simulator.poplibs.popops.sorting.sort import sortKeyValue as sortKeyValue
from simulator.poplibs.popops.sorting.sort import sortKeyValueInPlace as sortKeyValueInPlace
from simulator.poplibs.popops.sorting.topk import SortOrder as SortOrder
from simulator.poplibs.popops.sorting.topk import TopKParams as TopKParams
from simulator.poplibs.popops.sorting.topk import createTopKInput as createTopKInput
from simulator.poplibs.popops.sorting.topk import topK as topK
from simulator.poplibs.popops.sorting.topk import topKKeyValue as topKKeyValue
from simulator.poplibs.popops.sorting.topk import topKWithPermutation as topKWithPermutation
from simulator.poplibs.popops.splines import splineBasis as splineBasis
from simulator.poplibs.popops.splines import splineWeighting as splineWeighting
from simulator.poplibs.poputil.values import checkAccuracyWhenCast as checkAccuracyWhenCast

# With the type of the result, which the operators of these names have not.
varianceToInvStdDev = _deviations.varianceToInvStdDev  # type: ignore[assignment]
invStdDevToVariance = _deviations.invStdDevToVariance  # type: ignore[assignment]

__all__ = sorted(name for name, item in globals().items() if callable(item))
