"""Plans of slices and updates by many offsets, their options, and what is checked of slices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index

from simulator.graph.errors import poplibs_error
from simulator.graph.option_table import Option, OptionValue, checked, defaults
from simulator.graph.tensors.tensor import Tensor
from simulator.graph.types import UNSIGNED_INT

Options = Mapping[str, object] | None

OPTIONS = {
    "usedForSlice": Option(True, "the plan is for multiSlice"),
    "usedForUpdate": Option(True, "the plan is for an update"),
    "operationForUpdate": Option("add", "what updates do", allowed=("none", "add", "max", "mul")),
    "partialType": Option("", "in what updates are added up", allowed=("half", "float")),
    "availableMemoryProportion": Option("0.6", "the part of a tile for temporary data"),
    "indicesDistribution": Option(
        "uniform", "taken, and without effect here", allowed=("uniform", "onePoint")
    ),
    "indicesAreSorted": Option(False, "offsets ascend; what they cost stays the same here"),
    "planMinimisationTarget": Option(
        "memory", "taken, and without effect here", allowed=("memory", "cycles")
    ),
    "planConstraints": Option("", "splits that the plan must have", form="json"),
    "validateIndices": Option(False, "stop with an error where an offset is too large"),
    "internal.alwaysIncludeBaseRearrangementCost": Option(True, "taken, and without effect here"),
}
BOUNDS = {
    "remapOutOfBoundIndices": Option(False, "take index 0 in place of one that is too large"),
    "paddingIndexUsed": Option(False, "give zeros for an index that is the size of the dimension"),
    "validateIndices": OPTIONS["validateIndices"],
}
GATHER_OPTIONS = OPTIONS | BOUNDS
SPLITS = ("lookupSplit", "slicedDimSplit", "unslicedDimSplit", "groupSplit")
CONSTRAINTS = (*SPLITS, "unslicedGrainSize", "useOrderingInfo")


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """How the slices of an embedding are shared among tiles; one without arguments is no plan.

    The offsets are split `lookupSplit` ways, the rows of the matrix `slicedDimSplit` ways, its
    columns `unslicedDimSplit` ways, and the matrices of a group `groupSplit` ways. Columns are
    dealt out in grains of `unslicedGrainSize`.
    """

    lookupSplit: int = 1
    slicedDimSplit: int = 1
    unslicedDimSplit: int = 1
    groupSplit: int = 1
    unslicedGrainSize: int = 1
    groupSize: int = 1
    isNull: bool = True

    def __str__(self) -> str:
        """Write the plan as PopLibs prints it."""
        if self.isNull:
            return "SlicePlan: Introspect"
        names = (*SPLITS[:3], "groupSplit", "unslicedGrainSize")
        lines = [f"    {name}={getattr(self, name)}" for name in names]
        return "\n".join(["SlicePlan:", "  Partition:", *lines])

    @property
    def tiles(self) -> int:
        """Count the tiles that the plan uses."""
        return self.groupSplit * self.lookupSplit * self.slicedDimSplit * self.unslicedDimSplit


def slice_options(options: Options, name: str) -> dict[str, OptionValue]:
    """Return the value of every option of slices; raises InvalidOptionError."""
    return defaults(OPTIONS, checked(OPTIONS, options or {}, name))


def proportion(options: Mapping[str, OptionValue], name: str) -> float:
    """Return `availableMemoryProportion` as a number from 0 to 1; raises poplibs_error."""
    text = options["availableMemoryProportion"]
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise poplibs_error(f"{name}: availableMemoryProportion is {text!r}; 0 to 1 is needed")
    return share


def constraints(options: Mapping[str, OptionValue], name: str) -> dict[str, int]:
    """Return the splits that a plan is bound to; raises poplibs_error."""
    text = str(options["planConstraints"])
    constraints_read: dict[str, object] = json.loads(text) if text else {}
    for key, value in constraints_read.items():
        if key not in CONSTRAINTS:
            constraint_names = ", ".join(CONSTRAINTS)
            raise poplibs_error(
                f"{name}: planConstraints: no constraint {key!r}; known: {constraint_names}"
            )
        if not isinstance(value, int) or value < (key != "useOrderingInfo"):
            raise poplibs_error(
                f"{name}: planConstraints: {key} is {value!r}; at least 1 is needed"
            )
    return {key: index(value) for key, value in constraints_read.items()}  # type: ignore[arg-type]


def check_slices(
    name: str, shape: Sequence[int], dims: Sequence[int], sizes: Sequence[int]
) -> None:
    """Raise poplibs_error when slices of these sizes cannot be taken out of a shape."""
    if len(dims) != len(sizes):
        raise poplibs_error(f"{name}: dims {list(dims)} and sizes {list(sizes)} differ in length")
    for dim, size in zip(dims, sizes, strict=True):
        if not 0 <= index(dim) < len(shape) or list(dims).count(dim) > 1:
            raise poplibs_error(
                f"{name}: dims {list(dims)} of shape {list(shape)}; "
                "different ones of its dimensions are needed"
            )
        if not 0 <= index(size) <= shape[dim]:
            raise poplibs_error(
                f"{name}: slice of {size} in dimension {dim} of shape {list(shape)}; "
                f"at most {shape[dim]} is possible"
            )


def check_offsets(name: str, offsets: Tensor, shape: tuple[int, ...]) -> None:
    """Raise poplibs_error when a tensor is not one of offsets of a shape."""
    if offsets.shape != shape or offsets.dtype != UNSIGNED_INT:
        raise poplibs_error(f"{name}: offsets {offsets!r}; {UNSIGNED_INT}{list(shape)} is needed")


def slice_order(shape: Sequence[int], dims: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Return the places in `dims` in the order in which slices leave the least, soonest.

    As in PopLibs lib/popops/DynamicSlice.cpp (bestSliceOrder).
    """
    return sorted(range(len(dims)), key=lambda place: sizes[place] / max(shape[dims[place]], 1))
