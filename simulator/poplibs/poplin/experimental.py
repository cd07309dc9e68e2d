"""Factors of matrices (poplin::experimental)."""

from __future__ import annotations

from simulator.poplibs.poplin.factors.lu import LUFactorization
from simulator.poplibs.poplin.factors.qr import QRFactorization, createQRFactorizationMatrices

__all__ = ["LUFactorization", "QRFactorization", "createQRFactorizationMatrices"]
