"""Questions to a report, a host trace or a run; each function gives a DataFrame or a dataclass.

`CATALOGUE` names them all, and each may be imported from here; `tilescope show NAME REPORT` and
`docs/analyses.md` come from it.
`COMPARISONS` names those of two reports, for `tilescope compare A B`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from typing import Any

from pva.analysis.catalogue import Analysis, Catalogue
from pva.analysis.columns import COLUMNS
from pva.errors import nearest

_TOOLS = {"annotations", "nearest", "isfunction", "import_module", "Iterator", "Path", "Any"}


def _analyses() -> Iterator[Analysis]:
    """Import the modules of this folder that have analyses; yield these in their order."""
    folder = Path(__file__).parent
    sources = [*folder.glob("*.py"), *folder.glob("*/__init__.py")]
    # A module without the word cannot declare one: importing such as well would cost 10 ms.
    files = [path for path in sources if b"ORDER" in path.read_bytes()]
    names = [path.parent.name if path.stem == "__init__" else path.stem for path in files]
    modules = [import_module(f"{__name__}.{name}") for name in names if name != folder.name]
    declaring = [module for module in modules if hasattr(module, "ORDER")]
    for module in sorted(declaring, key=lambda module: int(module.ORDER)):
        members = [member for member in vars(module).values() if isfunction(member)]
        yield from (analysis for analysis in members if analysis.__module__ == module.__name__
                    and analysis.__name__ in COLUMNS)  # fmt: skip


def _comparisons() -> Iterator[Analysis]:
    """Yield the questions to two reports, before and after, in their order."""
    from pva.analysis import compare

    yield from (
        compare.compare_figures,
        compare.compare_categories,
        compare.compare_tiles,
        compare.compare_variables,
        compare.compare_vertex_types,
        compare.compare_compute_sets,
        compare.compare_always_live,
        compare.compare_live_at_peak,
        compare.compare_causes,
        compare.compare_phases,
        compare.compare_layers,
        compare.compare_operations,
        compare.compare_operation_memory,
        compare.compare_programs,
    )


# Made when one of them is first asked for: all modules take long to import.
CATALOGUE: Catalogue
COMPARISONS: Catalogue
_MADE_OF = {"CATALOGUE": _analyses, "COMPARISONS": _comparisons}


def _catalogue(name: str) -> Catalogue:
    if name not in globals():
        globals()[name] = Catalogue.of(_MADE_OF[name]())
    made: Catalogue = globals()[name]
    return made


def __getattr__(name: str) -> Any:
    if name in _MADE_OF:
        return _catalogue(name)
    folder = Path(__file__).parent
    if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
        return import_module(f"{__name__}.{name}")
    known, compared = map(_catalogue, _MADE_OF)
    analysis = known.get(name) or compared.get(name)
    if analysis is None:
        hint = "" if name.startswith("_") else nearest(name, [*known, *compared], "CATALOGUE")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; {hint}")
    return analysis


def __dir__() -> list[str]:
    names = {*globals(), *_MADE_OF}.union(*map(_catalogue, _MADE_OF))
    return sorted(names - _TOOLS)
