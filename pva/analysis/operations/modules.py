"""Modules of PyTorch as a tree: what each costs with all that are within, and where its code is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.operations.layers import OUTSIDE, argument
from pva.analysis.table import Arrays, arrays_of, joined, rows_of
from pva.array_types import Floats, Integers
from pva.errors import NotRecordedError

if TYPE_CHECKING:
    from pva.report import Report

LAYER = "poptorch"  # of debug contexts
SUMS_ONLY = ("operation", "kind", "share")


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its path ("" for the whole), its class, and the line that most of it is from."""

    path: str
    kind: str
    source: str


def modules_of(report: Report) -> dict[str, Module]:
    """Return the modules by name, the whole by its class; raises NotRecordedError without any."""
    data = report.dataset
    modules: dict[str, Module] = {}
    if data.has("debug_contexts"):
        rows = np.flatnonzero(data.column("debug_contexts", "layer") == LAYER)
        names, documents = (data.column("debug_contexts", name) for name in ("name", "json"))
        for row in rows.tolist():
            facts = [argument(documents[row], key) for key in ("module", "class", "source")]
            modules.setdefault(str(names[row]), Module(*facts))
    if not modules:
        raise NotRecordedError(data.name, "no modules of PyTorch", "a report by simulator.poptorch")
    return modules


def has_modules(report: Report) -> bool:
    """Return whether a report tells modules of PyTorch."""
    data = report.dataset
    if not data.has("debug_contexts"):
        return False
    return bool((data.column("debug_contexts", "layer") == LAYER).any())


def around(name: str, root: str) -> list[str]:
    """List the modules that one is in, the innermost last, and itself."""
    parts = name.split(".")
    above = [] if name == root or not root else [root]
    return [*above, *(".".join(parts[: n + 1]) for n in range(len(parts)))]


def is_within(name: str, module: str, root: str) -> bool:
    """Return whether a module is another one or in it."""
    return name == module or name.startswith(f"{module}.") or (module == root != OUTSIDE)


def name_of_whole(modules: dict[str, Module]) -> str:
    """Return the name of the module that has no path, "" where nothing is its own."""
    return next((name for name, module in modules.items() if not module.path), "")


@dataclass(frozen=True, slots=True)
class Subtrees:
    """Modules and those around them, a row each; the owners of figures are in several of them.

    `columns` are path, class, source and depth of each module, `rows` and `places` which owner
    counts in which row.
    """

    columns: Arrays
    rows: Integers
    places: Integers
    root: str

    def summed(self, values: Integers) -> Integers:
        """Sum up what is known of the owners by row; -1 where nothing is."""
        return _summed(values, self.rows, self.places, len(self.columns["operation"]))

    def order(self, weights: Floats) -> list[int]:
        """Put modules behind those that they are in, those of one parent by weight."""
        names = self.columns["operation"].tolist()
        weight = dict(zip(names, weights.tolist(), strict=True))
        keys = [
            [(-weight[part], len(part), part) for part in around(name, self.root)] for name in names
        ]
        return sorted(range(len(names)), key=keys.__getitem__)


def subtrees(report: Report, owners: list[str]) -> Subtrees:
    """Return the tree of modules around owners; raises NotRecordedError where none is told."""
    modules = modules_of(report) if owners else {}
    root = name_of_whole(modules)
    pairs = [(module, place) for place, name in enumerate(owners) for module in around(name, root)]
    names = list(dict.fromkeys(module for module, _ in pairs))
    row_of = {name: row for row, name in enumerate(names)}
    rows = np.array([row_of[module] for module, _ in pairs], dtype=np.int64)
    places = np.array([place for _, place in pairs], dtype=np.int64)
    return Subtrees(_columns(names, modules, root), rows, places, root)


def by_subtree(report: Report, costs: Arrays) -> Arrays:
    """Return a row for each module with the costs of all within, in the order of the tree.

    `own_cycles` are those of no module within, `depth` counts the modules around; `source` is file
    and line of `forward`. Modules of one parent are in the order of their cycles. What is in no
    module comes last.
    """
    figures = [name for name in costs if name not in SUMS_ONLY]
    outside = np.array([name.startswith("(") for name in costs["operation"].tolist()], dtype=bool)
    inside, outer = rows_of(costs, ~outside), rows_of(costs, outside)
    tree = subtrees(report, inside["operation"].tolist())
    columns = {**tree.columns, **{name: tree.summed(inside[name]) for name in figures}}
    total = max(int(np.maximum(costs["cycles"], 0).sum()), 1)
    own_cycles = dict(zip(inside["operation"].tolist(), inside["cycles"].tolist(), strict=True))
    own = [own_cycles.get(name, 0) for name in columns["operation"].tolist()]
    columns |= {"share": columns["cycles"] / total, "own_cycles": np.array(own, dtype=np.int64)}
    last = arrays_of({**outer, "source": "", "depth": 0, "own_cycles": outer["cycles"]})
    # Where nothing ran, estimates tell the order.
    estimates = np.maximum(columns["estimated_cycles"], 0)
    weights = np.maximum(columns["cycles"], 0) + estimates * 1e-6
    first = ["operation", "kind", "source", "depth", "cycles", "share", "own_cycles"]
    names = [*first, *(name for name in last if name not in first)]
    ordered = rows_of(columns, np.array(tree.order(weights), dtype=np.int64))
    return joined([{name: part[name] for name in names} for part in (ordered, last)])


def _columns(names: list[str], modules: dict[str, Module], root: str) -> Arrays:
    module_of_row = [modules.get(name) for name in names]
    kinds = [module.kind.rpartition(".")[2] if module else "" for module in module_of_row]
    return {
        "operation": np.array(names, dtype=object),
        "kind": np.array(kinds, dtype=object),
        "source": np.array([m.source if m else "" for m in module_of_row], dtype=object),
        "depth": np.array([len(around(name, root)) - 1 for name in names], dtype=np.int64),
    }


def _summed(values: Integers, rows: Integers, places: Integers, count: int) -> Integers:
    """Sum up what is known by row; -1 where nothing is."""
    figures = values[places]
    sums, recorded = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
    np.add.at(sums, rows, np.maximum(figures, 0).astype(np.int64))
    np.logical_or.at(recorded, rows, figures >= 0)
    return np.where(recorded, sums, -1)
