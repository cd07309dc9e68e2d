"""Floats of any size (popfloat)."""

from __future__ import annotations

from simulator.poplibs.codelets import addCodelets as addCodelets
from simulator.poplibs.popfloat import experimental as experimental

__all__ = ["addCodelets", "experimental"]
