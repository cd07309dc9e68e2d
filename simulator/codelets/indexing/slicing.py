"""Vertices that take slices out of a tensor, or put them into it, at offsets read at run time.

Source: PopLibs lib/popops/codelets (DynamicSlice1D and 2D, DynamicUpdateSlice1D and 2D, MultiSlice,
MultiUpdate, MultiUpdateOp). Their cycles: `indexing_cycles`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np

from simulator.codelets.indexing import cycles as indexing_cycles
from simulator.codelets.vertex_type import (
    POPOPS_CYCLES,
    POPOPS_ESTIMATES,
    VertexTypes,
    supervisor,
    worker,
)
from simulator.graph.geometry.intervals import offsets_of, spread
from simulator.graph.types import FLOAT, HALF, Array, IntArray, Type
from simulator.graph.vertices.vertex import Codelet, Operands, VertexGroup

TYPES = VertexTypes(
    (
        supervisor(
            "popops::DynamicSlice1D<type>",
            "offset baseT subT",
            indexing_cycles.dynamic_slice_1d,
            POPOPS_CYCLES,
            (20, 120),
        ),
        worker(
            "popops::DynamicSlice2D<type>",
            "offset baseT subT",
            indexing_cycles.dynamic_slice_2d,
            POPOPS_CYCLES,
            (24, 140),
        ),
        supervisor(
            "popops::DynamicUpdateSlice1D<type>",
            "offset baseT subT",
            indexing_cycles.dynamic_slice_1d,
            POPOPS_CYCLES,
            (20, 120),
        ),
        worker(
            "popops::DynamicUpdateSlice2D<type>",
            "offset baseT subT",
            indexing_cycles.dynamic_update_2d,
            POPOPS_CYCLES,
            (24, 140),
        ),
        supervisor(
            "popops::MultiSlice<type>",
            "offsets baseT subT",
            indexing_cycles.multi_slice,
            POPOPS_ESTIMATES,
            (24, 150),
        ),
        supervisor(
            "popops::MultiUpdate<type>",
            "offsets baseT subT",
            indexing_cycles.multi_update,
            POPOPS_ESTIMATES,
            (24, 150),
        ),
        supervisor(
            "popops::MultiUpdateAdd<type>",
            "offsets baseT subT",
            indexing_cycles.multi_update_add,
            POPOPS_ESTIMATES,
            (24, 150),
        ),
        *(
            supervisor(
                f"popops::MultiUpdateOp<type,subwords,{operation}>",
                "offsets baseT subT",
                indexing_cycles.multi_update_add,
                POPOPS_ESTIMATES,
                (24, 150),
            )
            for operation in ("MAX", "MUL")
        ),
        supervisor(
            "popops::ScaledMultiUpdateAdd<type,scale,subwords>",
            "offsets baseT subT scale",
            indexing_cycles.multi_update_add,
            POPOPS_ESTIMATES,
            (28, 170),
        ),
    )
)

UpdateKind = Literal["", "ADD", "MAX", "MUL"]


@cache
def dynamic_slice_codelet(dtype: Type, *, update: bool, several: bool) -> Codelet:
    """Return a vertex of one region of columns (1D) or of several (2D).

    For each region `baseT` holds all its rows and `subT` as many as there are slices, from row
    `offset` on; past the last row comes the first one again. Parameters by vertex: the `rows` of
    the base, the `slices`, the number of `regions`; by region: its columns (`length`).
    """
    compute = _update if update else _slice
    kind = "DynamicUpdateSlice" if update else "DynamicSlice"
    name = f"popops::{kind}{'2D' if several else '1D'}<{dtype}>"
    return TYPES.codelet(name, compute)


def _slice(operands: Operands) -> dict[str, Array]:
    return {"subT": operands.arrays["baseT"][_places(operands)]}


def _update(operands: Operands) -> dict[str, Array]:
    base = operands.arrays["baseT"]
    base[_places(operands)] = operands.arrays["subT"]
    return {"baseT": base}


def _places(operands: Operands) -> IntArray:
    """Return the place in `baseT` of every element of `subT`."""
    if not operands.prepared:
        operands.prepared |= _rows_of_slices(operands.group)
    plan = operands.prepared
    offset = operands.arrays["offset"].astype(np.int64)[plan["vertex"]]
    row = (offset + plan["slice"]) % plan["rows"]
    return spread(plan["base"] + row * plan["length"], plan["length"])


def _rows_of_slices(group: VertexGroup) -> dict[str, IntArray]:
    """List the rows of `subT`: their vertex, slice and length, and where their region begins."""
    length = group.parameters["length"]
    owner = np.repeat(np.arange(len(group)), group.parameters["regions"])
    rows, slices = group.parameters["rows"][owner], group.parameters["slices"][owner]
    region = np.repeat(np.arange(len(length)), slices)
    return {
        "vertex": owner[region],
        "slice": spread(np.zeros_like(slices), slices),
        "rows": rows[region],
        "length": length[region],
        "base": offsets_of(length * rows)[:-1][region],
    }


@cache
def multi_slice_codelet(dtype: Type) -> Codelet:
    """Return popops::MultiSlice: row `offsets[i]` of `baseT` becomes row i of `subT`.

    Parameters by vertex: `length`, the elements of a row, and `first`, the offset of the first row
    that `baseT` holds. Offsets of other rows leave zeros.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        base, sub, _ = _hits(operands)
        out = np.zeros(int(operands.counts["subT"].sum()), dtype.numpy)
        out[sub] = operands.arrays["baseT"][base]
        return {"subT": out}

    return TYPES.codelet(f"popops::MultiSlice<{dtype}>", compute)


@cache
def multi_update_codelet(dtype: Type, scale: Type | None, kind: UpdateKind, odd: bool) -> Codelet:
    """Return the vertex that puts row i of `subT` into row `offsets[i]` of `baseT`, in order.

    It replaces the row, adds `scale` times what comes, keeps the larger elements or multiplies.
    Parameters as of `multi_slice_codelet`; `odd` rows of halves are written in parts of words.
    """

    def compute(operands: Operands) -> dict[str, Array]:
        base, sub, offsets = _hits(operands)
        table, new = operands.arrays["baseT"], operands.arrays["subT"][sub]
        if scale is not None:
            length = operands.group.parameters["length"]
            vertex = operands.prepared["vertex"][offsets]
            factors = np.repeat(operands.arrays["scale"][vertex], length[vertex])
            wide = np.float32 if dtype == HALF else dtype.numpy  # rounded once, as by the machine
            new = (new.astype(wide) * factors.astype(wide)).astype(dtype.numpy)
        _COMBINE[kind](table, base, new)
        return {"baseT": table}

    def operations(group: VertexGroup) -> IntArray:
        real = dtype in (FLOAT, HALF) and kind != ""
        return group.fields["subT"].counts() * real * (2 if scale is not None else 1)

    words = str(odd).lower()
    name = {
        "": f"popops::MultiUpdate<{dtype}>",
        "ADD": f"popops::ScaledMultiUpdateAdd<{dtype},{scale},{words}>",
    }.get(kind, f"popops::MultiUpdateOp<{dtype},{words},popops::Operation::{kind}>")
    return TYPES.codelet(name, compute, operations)


def _replace(table: Array, places: IntArray, new: Array) -> None:
    table[places] = new  # of rows that come twice NumPy leaves the last


_COMBINE: dict[UpdateKind, Callable[[Array, Any, Array], None]] = {
    "": _replace,
    "ADD": np.add.at,
    "MAX": np.maximum.at,
    "MUL": np.multiply.at,
}


def _hits(operands: Operands) -> tuple[IntArray, IntArray, IntArray]:
    """Return the places in `baseT` and `subT` of the rows that a vertex holds, and their offsets.

    The first two are by element, the last by row: the number of its offset among all.
    """
    if not operands.prepared:
        operands.prepared |= _offsets_of_vertices(operands)
    plan = operands.prepared
    row = operands.arrays["offsets"].astype(np.int64) - plan["first"]
    hit = np.flatnonzero((row >= 0) & (row < plan["rows"]))
    length = plan["length"][hit]
    base = spread(plan["base"][hit] + row[hit] * length, length)
    return base, spread(plan["sub"][hit], length), hit


def _offsets_of_vertices(operands: Operands) -> dict[str, IntArray]:
    """List for every offset its vertex, and where its row and its vertex's base begin."""
    parameters, counts = operands.group.parameters, operands.counts
    vertex = np.repeat(np.arange(len(operands.group)), counts["offsets"])
    length = parameters["length"][vertex]
    return {
        "vertex": vertex,
        "length": length,
        "first": parameters["first"][vertex],
        "rows": (counts["baseT"] // np.maximum(parameters["length"], 1))[vertex],
        "base": offsets_of(counts["baseT"])[:-1][vertex],
        "sub": offsets_of(length)[:-1],
    }
