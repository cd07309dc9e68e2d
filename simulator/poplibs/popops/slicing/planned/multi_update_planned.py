"""Updates at many offsets with a plan: parts of matrices and offsets on each tile.

As in PopLibs lib/popops/DynamicSlice.cpp (generatePlannedMultiUpdateOp). Tensors have a first
dimension of matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simulator.graph import program
from simulator.graph.errors import poplibs_error
from simulator.graph.graph import Graph
from simulator.graph.option_table import OptionValue
from simulator.graph.tensors.tensor import Tensor, concat
from simulator.graph.types import FLOAT, HALF, Type
from simulator.poplibs.popops.elementwise.cast import cast
from simulator.poplibs.popops.elementwise.fill import fill
from simulator.poplibs.popops.elementwise.scaled_add import scaledAddTo
from simulator.poplibs.popops.operators import maxInPlace, mulInPlace
from simulator.poplibs.popops.reduction.reduce import Operation, reduceWithOutput
from simulator.poplibs.popops.slicing.planned.lookup_vertices import Kind, add_lookups
from simulator.poplibs.popops.slicing.planned.planned_parts import (
    Parts,
    copies_of,
    in_plan,
    lookups_of,
    parts_of,
)
from simulator.poplibs.popops.slicing.planned.slice_layout import (
    add_parts,
    planned_base,
    planned_slices,
)
from simulator.poplibs.popops.slicing.planned.slice_plan import SlicePlan

REARRANGED_FROM = 4  # splits of the rows; slices are put in order before so many tiles get them


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """A planned update: what is done to rows, and with which options."""

    graph: Graph
    prog: program.Sequence
    plan: SlicePlan
    kind: Kind
    scale: Tensor | None
    options: Mapping[str, OptionValue]
    name: str

    def partials_type(self, dtype: Type) -> Type:
        """Return the type in which rows are added up; raises poplibs_error for one too narrow.

        Unless told, that is floats where parts of the offsets are added up each by itself.
        """
        if self.kind != "ADD" or dtype not in (FLOAT, HALF):
            return dtype
        usual = FLOAT if self.plan.lookupSplit > 1 else dtype
        partials_dtype = {"half": HALF, "float": FLOAT}.get(str(self.options["partialType"]), usual)
        if partials_dtype.size < dtype.size:
            raise poplibs_error(f"{self.name}: partialType {partials_dtype} of sums of {dtype}")
        return partials_dtype


def multi_update(update: Update, t: Tensor, s: Tensor, offsets: Tensor) -> None:
    """Update rows of matrices with slices [matrix][offset][1][column].

    Where the offsets are split, or sums have a wider type, each part is first added up by itself.
    """
    graph, prog, plan, name = update.graph, update.prog, update.plan, update.name
    if not s.numElements() or not t.numElements():
        return
    if update.kind == "" and plan.lookupSplit > 1:
        raise poplibs_error(
            f"{name}: the plan splits offsets {plan.lookupSplit} ways, so their order would be "
            'lost; plan with operationForUpdate "none"'
        )
    base = in_plan(graph, t, prog, plan, name)
    partials = update.partials_type(t.dtype)
    if partials != t.dtype or plan.slicedDimSplit >= REARRANGED_FROM:
        rearranged = planned_slices(graph, s.dtype, s.shape, plan, f"{name}/slicesRearranged")
        prog.add(program.Copy(s, rearranged, name=name))
        s = rearranged
    parts = parts_of(plan, base.shape, offsets.dim(1))
    if partials == t.dtype and plan.lookupSplit == 1:
        compute_set = graph.addComputeSet(f"{name}/Update")
        lookups = lookups_of(parts, plan, base, offsets, s, 1)
        add_lookups(graph, compute_set, update.kind, lookups, update.scale)
        prog.add(program.Execute(compute_set))
    else:
        _in_stages(update, parts, base, s, offsets, partials)
    if base is not t:
        prog.add(program.Copy(base, t, name=f"{name}/PostRegroupBase"))


def _in_stages(
    update: Update, parts: Parts, base: Tensor, s: Tensor, offsets: Tensor, partials: Type
) -> None:
    """Update empty matrices by each part of the offsets, then put these together with the base."""
    graph, prog, plan, name = update.graph, update.prog, update.plan, update.name
    if s.dtype != partials:
        s = cast(graph, s, partials, prog, f"{name}/CastSlices")
    partition, roles = copies_of(parts, plan), ("group", "lookup", "sliced", "unsliced")
    gathered, memory = add_parts(graph, partials, partition, plan, roles, f"{name}/gathered")
    one: Tensor | None = None
    if update.scale is not None:
        one = graph.addConstant(partials, [], 1, f"{name}/one")
        graph.setTileMapping(one, 0)
    compute_set = graph.addComputeSet(f"{name}/Update")
    add_lookups(
        graph,
        compute_set,
        update.kind,
        lookups_of(parts, plan, base=gathered, offsets=offsets, slices=s, split=1),
        one,
    )
    fill(graph, memory, prog, _neutral(update.kind, partials), f"{name}/zeroPartials")
    prog.add(program.Execute(compute_set))
    total, flat = planned_base(graph, partials, base.shape, plan, f"{name}/opUpdates")
    operation = Operation[update.kind]
    copies = partition.shape[1]
    # In memory the copies of a group of matrices stand one after another.
    starts = np.append(partition.starts()[:, 0, 0, 0], memory.numElements()).tolist()
    columns = [
        memory[low:high].reshape([copies, (high - low) // copies])
        for low, high in zip(starts[:-1], starts[1:], strict=True)
    ]
    reduceWithOutput(graph, concat(columns, 1), flat, [0], operation, prog, f"{name}/Reduce")
    _combine(update, base, total)


_IN_PLACE = {"MAX": maxInPlace, "MUL": mulInPlace}


def _neutral(kind: Kind, dtype: Type) -> float:
    """Return the number that an update with it leaves as it is."""
    if kind in ("ADD", "MUL"):
        return int(kind == "MUL")
    return -np.inf if dtype.numpy.kind == "f" else int(np.iinfo(dtype.numpy).min)


def _combine(update: Update, base: Tensor, total: Tensor) -> None:
    """Combine what came together, or its scaled values, with the base."""
    graph, prog, name = update.graph, update.prog, update.name
    if update.kind in _IN_PLACE:
        _IN_PLACE[update.kind](graph, base, total, prog, f"{name}/{update.kind.capitalize()}")
        return
    into = base
    if base.dtype != total.dtype:
        into = cast(graph, base, total.dtype, prog, f"{name}/castBase")
    if update.scale is not None:
        scale = update.scale
        if scale.dtype != total.dtype:
            scale = cast(graph, scale, total.dtype, prog, f"{name}/CastScale")
        scaledAddTo(graph, into, total, scale, prog, f"{name}/Add")
    if into is not base:
        prog.add(cast(graph, into, base, f"{name}/castBack"))
