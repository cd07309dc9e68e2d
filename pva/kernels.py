"""The passes that `_kernels.c` has in C: there where it was built, else None.

What calls one has it in Python too, and both give the same.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

INTERFACE = 12  # as in _kernels.c
compiled: Any = None

try:
    # For tests and comparisons: the two behave alike.
    if os.environ.get("PVA_KERNELS") != "0":
        built = import_module("pva._kernels")
        # One built from the source of another version is not used.
        compiled = built if built.INTERFACE == INTERFACE else None
except ImportError:
    pass
