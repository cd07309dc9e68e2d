"""Build and run programs for a tiled processor, in the way of Poplar and PopLibs.

from simulator import poplar, poputil, popops, poplin, popnn, poprand, popsparse, popsolver
from simulator import popfloat, gcl, popart
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulator import popart as popart
    from simulator import poplar as poplar
    from simulator.poplibs import gcl as gcl
    from simulator.poplibs import popfloat as popfloat
    from simulator.poplibs import poplin as poplin
    from simulator.poplibs import popnn as popnn
    from simulator.poplibs import popops as popops
    from simulator.poplibs import poprand as poprand
    from simulator.poplibs import popsolver as popsolver
    from simulator.poplibs import popsparse as popsparse
    from simulator.poplibs import poputil as poputil

_MODULES = {
    "popart": "simulator.popart",
    "gcl": "simulator.poplibs.gcl",
    "poplar": "simulator.poplar",
    "poputil": "simulator.poplibs.poputil",
    "popops": "simulator.poplibs.popops",
    "popfloat": "simulator.poplibs.popfloat",
    "poplin": "simulator.poplibs.poplin",
    "popnn": "simulator.poplibs.popnn",
    "poprand": "simulator.poplibs.poprand",
    "popsolver": "simulator.poplibs.popsolver",
    "popsparse": "simulator.poplibs.popsparse",
}

__all__ = [
    "gcl",
    "popart",
    "popfloat",
    "poplar",
    "poplin",
    "popnn",
    "popops",
    "poprand",
    "popsolver",
    "popsparse",
    "poputil",
]


def __getattr__(name: str) -> ModuleType:
    if name not in _MODULES:
        raise AttributeError(f"module 'simulator' has no attribute {name!r}")
    return importlib.import_module(_MODULES[name])


def __dir__() -> list[str]:
    return __all__
