"""Linear algebra (poplin)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets as addCodelets
from simulator.poplibs.poplin.cholesky import cholesky as cholesky
from simulator.poplibs.poplin.cholesky import choleskyInPlace as choleskyInPlace
from simulator.poplibs.poplin.cholesky import createCholeskyInput as createCholeskyInput
from simulator.poplibs.poplin.convolution import calculateWeightDeltas as calculateWeightDeltas
from simulator.poplibs.poplin.convolution import convolution as convolution
from simulator.poplibs.poplin.convolution import convolutionWeightUpdate as convolutionWeightUpdate
from simulator.poplibs.poplin.convolution import createInput as createInput
from simulator.poplibs.poplin.convolution import createWeights as createWeights
from simulator.poplibs.poplin.convolution import reportPlanInfo as reportPlanInfo
from simulator.poplibs.poplin.create import PlanningCache as PlanningCache
from simulator.poplibs.poplin.matmul import (
    createMatMulGroupedInputLHS as createMatMulGroupedInputLHS,
)
from simulator.poplibs.poplin.matmul import (
    createMatMulGroupedInputRHS as createMatMulGroupedInputRHS,
)
from simulator.poplibs.poplin.matmul import createMatMulInputLHS as createMatMulInputLHS
from simulator.poplibs.poplin.matmul import createMatMulInputRHS as createMatMulInputRHS
from simulator.poplibs.poplin.matmul import matMul as matMul
from simulator.poplibs.poplin.matmul import matMulAcc as matMulAcc
from simulator.poplibs.poplin.matmul import matMulGrouped as matMulGrouped
from simulator.poplibs.poplin.matmul import matMulGroupedAcc as matMulGroupedAcc
from simulator.poplibs.poplin.matmul import matMulGroupedReportPlan as matMulGroupedReportPlan
from simulator.poplibs.poplin.matmul import matMulReportPlan as matMulReportPlan
from simulator.poplibs.poplin.matmul import matMulWithOutput as matMulWithOutput
from simulator.poplibs.poplin.matmul import transposeGroupedMatrix as transposeGroupedMatrix
from simulator.poplibs.poplin.norms import createNormBeta as createNormBeta
from simulator.poplibs.poplin.norms import createNormGamma as createNormGamma
from simulator.poplibs.poplin.norms import createNormParams as createNormParams
from simulator.poplibs.poplin.norms import normalise as normalise
from simulator.poplibs.poplin.norms import normGradients as normGradients
from simulator.poplibs.poplin.norms import normParamGradients as normParamGradients
from simulator.poplibs.poplin.norms import normStatistics as normStatistics
from simulator.poplibs.poplin.norms import normStatisticsGradients as normStatisticsGradients
from simulator.poplibs.poplin.norms import normWhiten as normWhiten
from simulator.poplibs.poplin.params import ConvParams as ConvParams
from simulator.poplibs.poplin.params import InputTransform as InputTransform
from simulator.poplibs.poplin.params import OutputTransform as OutputTransform
from simulator.poplibs.poplin.params import getGradientParams as getGradientParams
from simulator.poplibs.poplin.params import getWeightUpdateParams as getWeightUpdateParams
from simulator.poplibs.poplin.triangular_solve import (
    createTriangularSolveInputLHS as createTriangularSolveInputLHS,
)
from simulator.poplibs.poplin.triangular_solve import (
    createTriangularSolveInputRHS as createTriangularSolveInputRHS,
)
from simulator.poplibs.poplin.triangular_solve import triangularMask as triangularMask
from simulator.poplibs.poplin.triangular_solve import triangularSolve as triangularSolve

__all__ = sorted(name for name, item in globals().items() if callable(item))
