"""Linear algebra (poplin)."""

from __future__ import annotations

from simulator.poplibs.poplin.matmul import createMatMulInputLHS, createMatMulInputRHS, matMul

__all__ = ["createMatMulInputLHS", "createMatMulInputRHS", "matMul"]
