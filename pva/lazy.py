"""Packages that take long to import, each imported by its first use.

    from pva.lazy import pandas as pd

Types and names are those of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pandas
else:

    class _Package:
        """A package that is imported by the first use of one of its names."""

        def __init__(self, name: str) -> None:
            self.__name__ = name

        def __getattr__(self, name: str) -> Any:
            member = getattr(import_module(self.__name__), name)
            setattr(self, name, member)  # the next use finds it at once
            return member

    pandas = _Package("pandas")
