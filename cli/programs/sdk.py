"""The names of the SDK for one run: poptorch, popart, popdist, pva, libpvti become importable."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType

# What a program imports, and what stands for it; `pva` and `libpvti` have their names anyway.
NAMES = {
    "poptorch": "simulator.poptorch",
    "popart": "simulator.popart",
    "popdist": "simulator.popdist",
}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules of the SDK under other names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a module of the SDK, None for any other."""
        return ModuleSpec(fullname, self) if fullname.partition(".")[0] in NAMES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import what stands for a module."""
        first, dot, submodule = spec.name.partition(".")
        return importlib.import_module(f"{NAMES[first]}{dot}{submodule}")

    def exec_module(self, module: ModuleType) -> None:
        """Leave a module as it is: it has been imported under its own name."""


@contextmanager
def importable() -> Iterator[None]:
    """Let the names of the SDK be imported within, before any package that is installed."""
    finder, before = _Finder(), _taken_away()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _taken_away()
        sys.modules.update(before)


def _taken_away() -> dict[str, ModuleType]:
    """Forget the modules that have been imported by names of the SDK; return them."""
    names = [name for name in sys.modules if name.partition(".")[0] in NAMES]
    return {name: sys.modules.pop(name) for name in names}
