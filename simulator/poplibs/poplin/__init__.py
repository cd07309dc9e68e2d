"""Linear algebra (poplin)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets as addCodelets
from simulator.poplibs.poplin import experimental as experimental
from simulator.poplibs.poplin import fc as fc
from simulator.poplibs.poplin import multiconv as multiconv
from simulator.poplibs.poplin.convolutions.biases import addBias as addBias
from simulator.poplibs.poplin.convolutions.biases import (
    convolutionBiasUpdate as convolutionBiasUpdate,
)
from simulator.poplibs.poplin.convolutions.biases import createBiases as createBiases
from simulator.poplibs.poplin.convolutions.convolution import (
    calculateWeightDeltas as calculateWeightDeltas,
)
from simulator.poplibs.poplin.convolutions.convolution import convolution as convolution
from simulator.poplibs.poplin.convolutions.convolution import (
    convolutionWeightUpdate as convolutionWeightUpdate,
)
from simulator.poplibs.poplin.convolutions.convolution import createInput as createInput
from simulator.poplibs.poplin.convolutions.convolution import createWeights as createWeights
from simulator.poplibs.poplin.convolutions.convolution import reportPlanInfo as reportPlanInfo
from simulator.poplibs.poplin.convolutions.create import PlanningCache as PlanningCache
from simulator.poplibs.poplin.convolutions.flops import getBwdFlops as getBwdFlops
from simulator.poplibs.poplin.convolutions.flops import (
    getBwdPerfectCycleCount as getBwdPerfectCycleCount,
)
from simulator.poplibs.poplin.convolutions.flops import getFwdFlops as getFwdFlops
from simulator.poplibs.poplin.convolutions.flops import (
    getFwdPerfectCycleCount as getFwdPerfectCycleCount,
)
from simulator.poplibs.poplin.convolutions.flops import getWuFlops as getWuFlops
from simulator.poplibs.poplin.convolutions.flops import (
    getWuPerfectCycleCount as getWuPerfectCycleCount,
)
from simulator.poplibs.poplin.convolutions.indices import getDilatedSize as getDilatedSize
from simulator.poplibs.poplin.convolutions.indices import getInputIndex as getInputIndex
from simulator.poplibs.poplin.convolutions.indices import getInputRange as getInputRange
from simulator.poplibs.poplin.convolutions.indices import getKernelIndex as getKernelIndex
from simulator.poplibs.poplin.convolutions.indices import getKernelRange as getKernelRange
from simulator.poplibs.poplin.convolutions.indices import (
    getOutputRangeForInputIndex as getOutputRangeForInputIndex,
)
from simulator.poplibs.poplin.convolutions.indices import (
    getOutputRangeForInputRange as getOutputRangeForInputRange,
)
from simulator.poplibs.poplin.convolutions.indices import (
    getOutputRangeForKernelIndex as getOutputRangeForKernelIndex,
)
from simulator.poplibs.poplin.convolutions.indices import (
    getOutputRangeForKernelRange as getOutputRangeForKernelRange,
)
from simulator.poplibs.poplin.convolutions.matmul import (
    createMatMulGroupedInputLHS as createMatMulGroupedInputLHS,
)
from simulator.poplibs.poplin.convolutions.matmul import (
    createMatMulGroupedInputRHS as createMatMulGroupedInputRHS,
)
from simulator.poplibs.poplin.convolutions.matmul import (
    createMatMulInputLHS as createMatMulInputLHS,
)
from simulator.poplibs.poplin.convolutions.matmul import (
    createMatMulInputRHS as createMatMulInputRHS,
)
from simulator.poplibs.poplin.convolutions.matmul import matMul as matMul
from simulator.poplibs.poplin.convolutions.matmul import matMulAcc as matMulAcc
from simulator.poplibs.poplin.convolutions.matmul import matMulGrouped as matMulGrouped
from simulator.poplibs.poplin.convolutions.matmul import matMulGroupedAcc as matMulGroupedAcc
from simulator.poplibs.poplin.convolutions.matmul import (
    matMulGroupedReportPlan as matMulGroupedReportPlan,
)
from simulator.poplibs.poplin.convolutions.matmul import matMulReportPlan as matMulReportPlan
from simulator.poplibs.poplin.convolutions.matmul import matMulWithOutput as matMulWithOutput
from simulator.poplibs.poplin.convolutions.matmul import (
    transposeGroupedMatrix as transposeGroupedMatrix,
)
from simulator.poplibs.poplin.convolutions.preplanning import MatMulParams as MatMulParams
from simulator.poplibs.poplin.convolutions.preplanning import PlanCosts as PlanCosts
from simulator.poplibs.poplin.convolutions.preplanning import (
    convolutionValidateOptions as convolutionValidateOptions,
)
from simulator.poplibs.poplin.convolutions.preplanning import (
    matmulValidateOptions as matmulValidateOptions,
)
from simulator.poplibs.poplin.convolutions.preplanning import preplan as preplan
from simulator.poplibs.poplin.convolutions.preplanning import (
    preplanConvolutions as preplanConvolutions,
)
from simulator.poplibs.poplin.convolutions.preplanning import preplanMatMuls as preplanMatMuls
from simulator.poplibs.poplin.convolutions.preplanning import (
    reportPlanEstimatedCosts as reportPlanEstimatedCosts,
)
from simulator.poplibs.poplin.convolutions.preplanning import (
    reportWeightUpdatePlanInfo as reportWeightUpdatePlanInfo,
)
from simulator.poplibs.poplin.convolutions.weights import (
    weightsTransposeChansFlipXY as weightsTransposeChansFlipXY,
)
from simulator.poplibs.poplin.convolutions.with_output import (
    convolutionWithOutput as convolutionWithOutput,
)
from simulator.poplibs.poplin.convolutions.with_output import createConvOutput as createConvOutput
from simulator.poplibs.poplin.convolutions.with_output import (
    createMatMulGroupedOutput as createMatMulGroupedOutput,
)
from simulator.poplibs.poplin.convolutions.with_output import (
    createMatMulOutput as createMatMulOutput,
)
from simulator.poplibs.poplin.convolutions.with_output import (
    matMulGroupedWithOutput as matMulGroupedWithOutput,
)
from simulator.poplibs.poplin.convolutions.with_output import (
    preArrangeMatMulGroupedInputRHS as preArrangeMatMulGroupedInputRHS,
)
from simulator.poplibs.poplin.convolutions.with_output import (
    preArrangeMatMulInputRHS as preArrangeMatMulInputRHS,
)
from simulator.poplibs.poplin.factors.cholesky import cholesky as cholesky
from simulator.poplibs.poplin.factors.cholesky import choleskyInPlace as choleskyInPlace
from simulator.poplibs.poplin.factors.cholesky import createCholeskyInput as createCholeskyInput
from simulator.poplibs.poplin.factors.preplan_parameters import (
    getCholeskyMatMulPrePlanParameters as getCholeskyMatMulPrePlanParameters,
)
from simulator.poplibs.poplin.factors.preplan_parameters import (
    getTriangularSolveMatMulPrePlanParameters as getTriangularSolveMatMulPrePlanParameters,
)
from simulator.poplibs.poplin.factors.triangular_solve import (
    createTriangularSolveInputLHS as createTriangularSolveInputLHS,
)
from simulator.poplibs.poplin.factors.triangular_solve import (
    createTriangularSolveInputRHS as createTriangularSolveInputRHS,
)
from simulator.poplibs.poplin.factors.triangular_solve import triangularMask as triangularMask
from simulator.poplibs.poplin.factors.triangular_solve import triangularSolve as triangularSolve
from simulator.poplibs.poplin.grids import linspace as linspace
from simulator.poplibs.poplin.grids import meshgrid2d as meshgrid2d
from simulator.poplibs.poplin.norms import createNormBeta as createNormBeta
from simulator.poplibs.poplin.norms import createNormGamma as createNormGamma
from simulator.poplibs.poplin.norms import createNormParams as createNormParams
from simulator.poplibs.poplin.norms import distributedNormStatistics as distributedNormStatistics
from simulator.poplibs.poplin.norms import (
    distributedNormStatisticsGradients as distributedNormStatisticsGradients,
)
from simulator.poplibs.poplin.norms import normalise as normalise
from simulator.poplibs.poplin.norms import normGradients as normGradients
from simulator.poplibs.poplin.norms import normParamGradients as normParamGradients
from simulator.poplibs.poplin.norms import normStatistics as normStatistics
from simulator.poplibs.poplin.norms import normStatisticsGradients as normStatisticsGradients
from simulator.poplibs.poplin.norms import normWhiten as normWhiten
from simulator.poplibs.poplin.planning.params import ConvParams as ConvParams
from simulator.poplibs.poplin.planning.params import InputTransform as InputTransform
from simulator.poplibs.poplin.planning.params import OutputTransform as OutputTransform
from simulator.poplibs.poplin.planning.params import getGradientParams as getGradientParams
from simulator.poplibs.poplin.planning.params import getWeightUpdateParams as getWeightUpdateParams

__all__ = sorted(name for name, item in globals().items() if callable(item))
