"""Sparse matrices (popsparse)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets as addCodelets
from simulator.poplibs.popsparse import dynamic as dynamic
from simulator.poplibs.popsparse import static_ as static_
from simulator.poplibs.popsparse.formats import COOMatrix as COOMatrix
from simulator.poplibs.popsparse.formats import CSCMatrix as CSCMatrix
from simulator.poplibs.popsparse.formats import CSRMatrix as CSRMatrix

__all__ = ["COOMatrix", "CSCMatrix", "CSRMatrix", "addCodelets", "dynamic", "static_"]
