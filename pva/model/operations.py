"""Operations: the programs that one call of a library or framework was compiled into."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pva.data.dataset import Dataset
from pva.model.debug import DebugContext
from pva.model.programs import Program, programs
from pva.model.show import Shown
from pva.model.variables import LoweredVariable, accessed
from pva.model.views import Item, Items

Rows = npt.NDArray[np.int64]

# The layer of variables and compute sets, which are parts of operations.
PARTS_LAYER = "poplar"
# Layers whose contexts are operations: what is above them is what they were translated from.
OPERATION_LAYERS = frozenset({"popart", "hloinstruction"})


class _HasDataset(Protocol):
    @property
    def dataset(self) -> Dataset: ...


class OperationAnalysis(Shown):
    """The operations of a report, in the order in which they first run.

    Raises NotRecordedError when the report has no debug information.
    """

    _figures = ("operations",)

    def __init__(self, report: _HasDataset) -> None:
        self._data = report.dataset

    @cached_property
    def operations(self) -> Sequence[Operation]:
        """An operation for each debug context that programs come from.

        Of the contexts around a program it is the nearest of a layer of operations (popart,
        hloinstruction), else the outermost that is not of the layer poplar, else the program's own.
        """
        owner = _owners(self._data)
        first, last = _step_indexes(self._data)
        order = np.argsort(owner, kind="stable")
        rows, begins = np.unique(owner[order], return_index=True)
        members = np.split(order, begins[1:])
        operations = [
            Operation(self._data, row, mine, _least(first[mine]), int(last[mine].max()))
            for row, mine in zip(rows.tolist(), members, strict=False)
            if row >= 0
        ]
        return sorted(operations, key=lambda operation: operation.firstStepIndex)


def _least(steps: Rows) -> int:
    """Return the first step of those that there are; -1 for none."""
    return int(steps[steps >= 0].min(initial=steps.max()))


class Operation(Item):
    """What one call of a library or framework was compiled into.

    `firstStepIndex` and `lastStepIndex` are indexes into `livenessProgramSteps`.
    """

    __slots__ = ("_programs", "firstStepIndex", "lastStepIndex")
    _figures = ("programs=_programs.size", "firstStepIndex", "lastStepIndex")

    def __init__(self, data: Dataset, row: int, members: Rows, first: int, last: int) -> None:
        super().__init__(data, row)
        self._programs = members
        self.firstStepIndex = first
        self.lastStepIndex = last

    @property
    def name(self) -> str:
        """Name of its debug context."""
        return self.debugContext.name

    @property
    def debugContext(self) -> DebugContext:
        """Where it was made."""
        return DebugContext(self._data, self._row)

    @property
    def replacedDebugContext(self) -> list[DebugContext]:
        """The operations that a framework put this one in the place of.

        Empty: neither the user guide's documents nor `debug.cbor` tell what was replaced.
        """
        return []

    def programs(self) -> Sequence[Program]:
        """Return its programs, in the order of `compilation.programs`."""
        return programs(self._data, self._programs.tolist())

    @property
    def vars(self) -> Items[LoweredVariable]:
        """The variables that its programs read or write, each once, tile by tile."""
        return accessed(self._data, self._programs)


def _owners(data: Dataset) -> Rows:
    """Return the row of the operation's debug context for each program, -1 for none."""
    ids, parents = (data.column("debug_contexts", name).tolist() for name in ("id", "parent"))
    layers = data.column("debug_contexts", "layer").tolist()
    rows = {number: row for row, number in reversed(list(enumerate(ids)))}
    owner_of_context: dict[int, int] = {-1: -1}

    def owner(number: int) -> int:
        if number not in owner_of_context:
            owner_of_context[number] = _owner_row(rows.get(number, -1), rows, parents, layers)
        return owner_of_context[number]

    contexts = data.column("programs", "debug_context").tolist()
    return np.array([owner(number) for number in contexts], dtype=np.int64)


def _owner_row(row: int, rows: dict[int, int], parents: list[int], layers: list[str]) -> int:
    """Walk up from a context to the operation that it is part of; circles end where they began."""
    path: dict[int, None] = {}
    while row >= 0 and row not in path:
        path[row] = None
        row = rows.get(parents[row], -1)
    of_operations = [row for row in path if layers[row] in OPERATION_LAYERS]
    of_calls = [row for row in path if layers[row] != PARTS_LAYER]
    return next(iter([*of_operations, *of_calls[-1:], *path]), -1)


def _step_indexes(data: Dataset) -> tuple[Rows, Rows]:
    """Return the first and the last liveness step of each program; -1 of one that is in none."""
    count = data.length("programs")
    steps = np.arange(data.length("liveness_steps"))
    at = data.column("liveness_steps", "program") if len(steps) else steps
    first, last = (np.full(count, -1, dtype=np.int64) for _ in range(2))
    valid = (at >= 0) & (at < count)
    last[at[valid]] = steps[valid]
    first[at[valid][::-1]] = steps[valid][::-1]
    return first, last
