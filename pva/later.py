"""What stands above a report and is one attribute away: imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pva.errors import MissingPackageError

INSTALL = "pip install 'tilescope[notebook]'"


def later(module: str, name: str) -> Any:
    """Return a name of a module of `pva`; raises MissingPackageError where plotly is missing."""
    try:
        return getattr(import_module(f"pva.{module}"), name)
    except ModuleNotFoundError as fault:
        if (fault.name or "").startswith("pva"):
            raise
        raise MissingPackageError(f"pva.{module}", f"no {fault.name}", INSTALL) from fault
