"""Modules of PyTorch as a tree: what each costs with all that are within, and where its code is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.operations.layers import OUTSIDE, argument
from pva.array_types import Integers
from pva.errors import NotRecordedError
from pva.lazy import pandas as pd

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

    `frame` has path, class, source and depth of each module, `rows` and `places` which owner
    counts in which row.
    """

    frame: pd.DataFrame
    rows: Integers
    places: Integers
    root: str

    def summed(self, values: Integers) -> Integers:
        """Sum up what is known of the owners by row; -1 where nothing is."""
        return _summed(values, self.rows, self.places, len(self.frame))

    def order(self, weights: pd.Series) -> list[int]:
        """Put modules behind those that they are in, those of one parent by weight."""
        names = self.frame["operation"].tolist()
        weight = dict(zip(names, weights, strict=True))
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
    return Subtrees(_frame(names, modules, root), rows, places, root)


def by_subtree(report: Report, costs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each module with the costs of all within, in the order of the tree.

    `own_cycles` are those of no module within, `depth` counts the modules around; `source` is file
    and line of `forward`. Modules of one parent are in the order of their cycles. What is in no
    module comes last.
    """
    figures = [name for name in costs.columns if name not in SUMS_ONLY]
    outside = costs["operation"].str.startswith("(").to_numpy(dtype=bool)
    inside, outer = costs[~outside], costs[outside]
    tree = subtrees(report, inside["operation"].tolist())
    frame = tree.frame
    total = max(int(costs["cycles"].clip(lower=0).sum()), 1)
    for name in figures:
        frame[name] = tree.summed(inside[name].to_numpy())
    frame["share"] = frame["cycles"] / total
    own_cycles = dict(zip(inside["operation"], inside["cycles"], strict=True))
    frame["own_cycles"] = [int(own_cycles.get(name, 0)) for name in frame["operation"]]
    last = outer.assign(source="", depth=0, own_cycles=outer["cycles"])
    # Where nothing ran, estimates tell the order.
    weights = frame["cycles"].clip(lower=0) + frame["estimated_cycles"].clip(lower=0) * 1e-6
    first = ["operation", "kind", "source", "depth", "cycles", "share", "own_cycles"]
    columns = [*first, *(name for name in last.columns if name not in first)]
    ordered = frame.iloc[tree.order(weights)][columns]
    return pd.concat([ordered, last[columns]], ignore_index=True)


def _frame(names: list[str], modules: dict[str, Module], root: str) -> pd.DataFrame:
    module_of_row = [modules.get(name) for name in names]
    return pd.DataFrame(
        {
            "operation": np.array(names, dtype=object),
            "kind": np.array(
                [m.kind.rpartition(".")[2] if m else "" for m in module_of_row], dtype=object
            ),
            "source": np.array([m.source if m else "" for m in module_of_row], dtype=object),
            "depth": [len(around(name, root)) - 1 for name in names],
        }
    )


def _summed(values: Integers, rows: Integers, places: Integers, count: int) -> Integers:
    """Sum up what is known by row; -1 where nothing is."""
    figures = values[places]
    sums, recorded = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
    np.add.at(sums, rows, np.maximum(figures, 0).astype(np.int64))
    np.logical_or.at(recorded, rows, figures >= 0)
    return np.where(recorded, sums, -1)
