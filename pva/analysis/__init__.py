"""Questions to a report, a host trace or a run; each function gives a frozen table or a dataclass.

`CATALOGUE` names them all, and each may be imported from here; `tilescope show NAME REPORT` and
`docs/analyses.md` come from it.
`COMPARISONS` names those of two reports or traces, for `tilescope compare A B`.

>>> from pva import openReport
>>> from pva.analysis import fullest_tiles
>>> table = fullest_tiles(openReport("sample_reports/matmul_chain_tiny"), count=2)
>>> table.arrays["bytes"].tolist(), table.units["bytes"]
([213376, 213376], 'bytes')
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

from pva.analysis.catalogue import Analysis, Catalogue
from pva.analysis.columns import COLUMNS
from pva.errors import nearest

_TOOLS = {
    "annotations",
    "nearest",
    "isfunction",
    "import_module",
    "Iterator",
    "Path",
    "ModuleType",
    "Any",
}


def _analyses() -> Iterator[Analysis]:
    """Import the modules of this package that have analyses; yield these in their order."""
    folder = Path(__file__).parent
    # A module without the word cannot declare one: importing such as well would cost 10 ms.
    files = [path for path in folder.rglob("*.py") if b"ORDER" in path.read_bytes()]
    places = [path.relative_to(folder).with_suffix("").parts for path in files]
    names = [".".join(part for part in place if part != "__init__") for place in places]
    modules = [import_module(f"{__name__}.{name}") for name in names if name]
    declaring = [module for module in modules if hasattr(module, "ORDER")]
    for module in sorted(declaring, key=lambda module: int(module.ORDER)):
        yield from _declared_in(module)


def _declared_in(module: ModuleType) -> Iterator[Analysis]:
    members = [member for member in vars(module).values() if isfunction(member)]
    yield from (analysis for analysis in members if analysis.__module__ == module.__name__
                and analysis.__name__ in COLUMNS)  # fmt: skip


def _comparisons() -> Iterator[Analysis]:
    """Yield the questions to two reports or traces, before and after, in their order."""
    from pva.analysis.whole_report import comparison

    return _declared_in(comparison)


# Made when one of them is first asked for: all modules take long to import.
CATALOGUE: Catalogue
COMPARISONS: Catalogue
_MADE_OF = {"CATALOGUE": _analyses, "COMPARISONS": _comparisons}


def _catalogue(name: str) -> Catalogue:
    if name not in globals():
        globals()[name] = Catalogue.of(_MADE_OF[name]())
    catalogue: Catalogue = globals()[name]
    return catalogue


def __getattr__(name: str) -> Any:
    if name in _MADE_OF:
        return _catalogue(name)
    folder = Path(__file__).parent
    if (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file():
        return import_module(f"{__name__}.{name}")
    analyses, comparisons = map(_catalogue, _MADE_OF)
    analysis = analyses.get(name) or comparisons.get(name)
    if analysis is None:
        hint = "" if name.startswith("_") else nearest(name, [*analyses, *comparisons], "CATALOGUE")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; {hint}")
    return analysis


def __dir__() -> list[str]:
    names = {*globals(), *_MADE_OF}.union(*map(_catalogue, _MADE_OF))
    return sorted(names - _TOOLS)
