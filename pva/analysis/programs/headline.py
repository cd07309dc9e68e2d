"""Which program takes most, and what is done in order: the facts of the headline of programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pva.analysis.programs.outline import AROUND, PART
from pva.lazy import pandas as pd

SYNC = "(Sync)"  # the stage of all syncs between two stages
_LEAST = 0.0005  # of the cycles: less is written as 0.0 %


@dataclass(frozen=True, slots=True)
class CompilationTotals:
    """How many programs the compiler made of those written, by kind, and how many it added."""

    written: int
    compiled: int
    by_kind: tuple[tuple[str, int], ...]
    added: int


@dataclass(frozen=True, slots=True)
class TreeSize:
    """How many programs a tree has, how many of its roots are control programs and functions."""

    programs: int
    control_programs: int
    functions: int


@dataclass(frozen=True, slots=True)
class StageOrder:
    """The longest stages in the order in which they run, and the remainder.

    rows        rows of `program_stages`
    count       of the stages with a share of the cycles, syncs apart
    longest     the row of the longest of these, None without any
    remainder   of the stages that are not in `rows`
    share       of the cycles: of the remainder
    syncs       of the cycles: of the syncs between the stages, 0 if too little to be written
    """

    rows: tuple[dict[Any, Any], ...]
    count: int
    longest: dict[Any, Any] | None
    remainder: int
    share: float
    syncs: float


def longest_program(tree: pd.DataFrame, column: str) -> dict[Any, Any] | None:
    """Return the row of the program without parts that has most of `column`, None without any."""
    leaves = tree[(tree["end"] == tree.index + 1) & (tree["function"] < 0)]
    leaves = leaves[leaves[column] > 0]
    return _first(leaves.nlargest(1, column))


def _first(rows: pd.DataFrame) -> dict[Any, Any] | None:
    records = rows.head(1).to_dict("records")
    return records[0] if records else None


def compilation_totals(tree: pd.DataFrame, types: pd.DataFrame) -> CompilationTotals:
    """Count what was written in `written_tree`, and what became of it in `compiled_types`."""
    of_user = types[types["written"] != ""]
    kinds = of_user.groupby("compiled", sort=False)["programs"].sum()
    kinds = kinds.sort_values(ascending=False, kind="stable")
    compiled = int(kinds.sum())
    by_kind = tuple((str(kind), int(count)) for kind, count in kinds.items())
    return CompilationTotals(len(tree), compiled, by_kind, int(types["programs"].sum()) - compiled)


def tree_size(tree: pd.DataFrame) -> TreeSize:
    """Count the programs, control programs and functions of `program_tree`."""
    roots = tree[tree["parent"] < 0]
    functions = int((roots["part"] == "function").sum())
    return TreeSize(len(tree), len(roots) - functions, functions)


def stages_around(stages: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of the programs around the stages, from the outermost to the innermost."""
    return stages[stages["role"] == AROUND].to_dict("records")


def stages_inside(stages: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of the stages, in the order in which they run."""
    return stages[stages["role"] == PART].to_dict("records")


def stage_order(stages: pd.DataFrame, limit: int, notable: float) -> StageOrder:
    """Return the `limit` stages that take most, without those below the share `notable` if cut."""
    parts = stages[stages["role"] == PART]
    named = parts[(parts["name"] != SYNC) & (parts["share"] >= _LEAST)]
    candidates = named if len(named) <= limit else named[named["share"] >= notable]
    most = candidates.nlargest(limit, "cycles").sort_values("line")
    share = float(named["share"].sum() - most["share"].sum())
    syncs = float(parts[parts["name"] == SYNC]["share"].sum())
    return StageOrder(
        rows=tuple(most.to_dict("records")),
        count=len(named),
        longest=_first(named.nlargest(1, "cycles")),
        remainder=len(named) - len(most),
        share=max(share, 0.0),
        syncs=syncs if syncs >= _LEAST else 0.0,
    )


def widest_stages(stages: pd.DataFrame, limit: int) -> list[dict[Any, Any]]:
    """Return the `limit` stages with most cycles in the order in which they run.

    Each row has its `width`, the fraction that it is of the cycles of all stages.
    """
    parts = stages[(stages["role"] == PART) & (stages["cycles"] > 0)]
    most = parts.nlargest(limit, "cycles").sort_values("line")
    return most.assign(width=most["cycles"] / float(parts["cycles"].sum() or 1)).to_dict("records")
