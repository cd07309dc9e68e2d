"""Linear algebra (poplin)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets
from simulator.poplibs.poplin.matmul import createMatMulInputLHS, createMatMulInputRHS, matMul

__all__ = ["addCodelets", "createMatMulInputLHS", "createMatMulInputRHS", "matMul"]
