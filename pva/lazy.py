"""Packages that take long to import, each imported by its first use.

    from pva.lazy import pandas as pd

Types and names are those of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any


class Package:
    """A package or module that is imported by the first use of one of its names."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import pandas as pandas
else:
    pandas = Package("pandas")
