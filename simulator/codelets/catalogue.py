"""The library's vertex types as one table: fields, cycles, bytes, and where each formula is from.

It is what the modules of this package declare. `docs/vertex-costs.md` is made from it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

from simulator import codelets
from simulator.codelets.vertex_type import VertexType

LIBRARIES = ("popops", "poplin", "popnn", "poprand", "popsparse", "popfloat", "popsys", "poplar_rt")


def _declared() -> tuple[VertexType, ...]:
    """Return the types of all modules, library by library."""
    packaged = walk_packages(codelets.__path__, f"{codelets.__name__}.")
    modules = [import_module(module.name) for module in packaged]
    tables = [module.TYPES for module in modules if hasattr(module, "TYPES")]
    return tuple(sorted((entry for table in tables for entry in table.types), key=_library))


def _library(entry: VertexType) -> int:
    name = entry.name.partition("::")[0]
    return LIBRARIES.index(name) if name in LIBRARIES else len(LIBRARIES)


CATALOGUE: tuple[VertexType, ...] = _declared()


def rows_of(codelet: str) -> tuple[VertexType, ...]:
    """Return the rows of a vertex type, by its name with or without its template."""
    name = codelet.partition("<")[0]
    return tuple(row for row in CATALOGUE if row.prefix.partition(",")[0] == name)


def source_of(codelet: str) -> str:
    """Name the source of a library vertex type's cost; empty for a type that is not listed."""
    rows = rows_of(codelet)
    return rows[0].source if rows else ""
