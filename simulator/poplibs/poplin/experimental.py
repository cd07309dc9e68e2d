"""Factors of matrices (poplin::experimental)."""

from __future__ import annotations

from simulator.poplibs.poplin.lu import LUFactorization
from simulator.poplibs.poplin.qr import QRFactorization, createQRFactorizationMatrices

__all__ = ["LUFactorization", "QRFactorization", "createQRFactorizationMatrices"]
