"""The computation graph: variables, and the compute sets and copies that read and write them.

A node has a key: `v12` is the variable of row 12, `p40` the program of row 40. Programs that run
the same compute set or exchange are one node, that of the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import OPERANDS, labels, summed
from pva.analysis.columns import analysis, table
from pva.analysis.execution.totals import vertices_by_compute_set
from pva.analysis.memory.liveness import sizes_on
from pva.analysis.selection import SelectionError, chosen, program_texts
from pva.analysis.table import Columns, Table, largest_first
from pva.array_types import Integers
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Dataset, Report

ORDER = 80  # of its analyses in the catalogue
VARIABLE = "variable"
MAX_NEIGHBOURS = 16  # of one node that are drawn; the tables have them all
_KEY = re.compile(r"([vp])(\d{1,12})")


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A part of the graph: its nodes, and its edges in the direction of the data."""

    nodes: Table
    edges: Table


@analysis(
    "key kind name bytes:bytes reads writes",
    name="debug name of the variable, or of what reads and writes it",
    bytes="bytes of the variable, or of all that it touches",
    reads="how many it reads, or by how many it is read",
    writes="how many it writes, or by how many it is written",
    kind="variable, or the type of the program",
)
def graph_nodes(report: Report, *, ipu: int | None = None, tile: int | None = None) -> Columns:
    """Return the nodes of the computation graph: what reads and writes variables, and variables.

    `key` names a node in `graph_edges`; `kind` is variable, or the type of the program; programs
    that run the same compute set or exchange are one node, that of the first. `bytes` are those of
    the variable, or of all variables that the program touches; `reads` and `writes` count its
    neighbours: those that it reads and writes, or that read and write it. Most bytes first. Of a
    `tile` or an `ipu`, the variables that lie there, with their bytes on it. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    program, variable, write, sizes = _edges_on(report, ipu, tile)
    count, programs = len(sizes), data.length("programs")
    touched = np.unique(np.stack((program, variable)), axis=1)
    rows = np.unique(program)
    used = np.unique(variable)
    counts = {
        name: (
            np.bincount(variable[way], minlength=count)[used],
            np.bincount(program[way], minlength=programs)[rows],
        )
        for name, way in (("reads", ~write), ("writes", write))
    }
    total = summed(touched[0], sizes[touched[1]], programs)
    types, _ = program_texts(report, rows)
    columns = {
        "key": [*(f"v{row}" for row in used.tolist()), *(f"p{row}" for row in rows.tolist())],
        "kind": [VARIABLE] * len(used) + types,
        "name": [*data.column("variables", "name")[used], *labels(report, rows)],
        "bytes": np.concatenate((sizes[used], total[rows])),
        **{name: np.concatenate(parts) for name, parts in counts.items()},
    }
    return largest_first(columns, "bytes")


@analysis(
    "source source_name target target_name bytes:bytes",
    bytes="bytes of the variable that is read or written",
    source="key of the node that the data come from",
    target="key of the node that the data go to",
)
def graph_edges(
    report: Report,
    *,
    variable: int | None = None,
    program: int | None = None,
    ipu: int | None = None,
    tile: int | None = None,
) -> Columns:
    """Return who reads and writes a variable, or what a program reads and writes: a row for each.

    `source` and `target` are keys, in the direction of the data: from a variable to the program
    that reads it, or from a program to the variable that it writes. Without either, what is around
    the program at the peak of liveness; of a `tile` or an `ipu`, the variables that lie there.
    Raises SelectionError, NotRecordedError.
    """
    keys = [f"v{variable}"] if variable is not None else []
    keys += [f"p{program}"] if program is not None else []
    around = neighbourhood(report, keys, most=1 << 30, ipu=ipu, tile=tile)
    nodes, edges = around.nodes.arrays, around.edges.arrays
    names = dict(zip(nodes["key"].tolist(), nodes["name"].tolist(), strict=True))
    return {
        "source": edges["source"],
        "source_name": [names[key] for key in edges["source"].tolist()],
        "target": edges["target"],
        "target_name": [names[key] for key in edges["target"].tolist()],
        "bytes": edges["bytes"],
    }


def neighbourhood(
    report: Report,
    keys: Sequence[str] = (),
    *,
    most: int = MAX_NEIGHBOURS,
    ipu: int | None = None,
    tile: int | None = None,
) -> Neighbourhood:
    """Return the nodes of these keys and their neighbours, of each node at most the `most` largest.

    The first key is in layer 0. Without keys, around the program at the peak of liveness. Of a
    `tile` or an `ipu`, the variables that lie there. Raises SelectionError for what is not there,
    NotRecordedError.
    """
    program, variable, write, sizes = _edges_on(report, ipu, tile)
    shift = report.dataset.length("programs")  # behind the programs: number of the first variable
    centres = [_number(report, key) for key in keys] or _centre(report, program)
    ends = np.stack((program, variable + shift))
    layers: dict[int, int] = {}
    queue = list(dict.fromkeys(centres))
    while queue:
        # Next is one that is drawn already: it has its layer from what it is connected with.
        node = next((node for node in queue if node in layers), queue[0])
        queue.remove(node)
        # Variables are ordered by size, programs by their place.
        _open(layers, node, ends, write, np.concatenate((np.arange(shift, 0, -1), sizes)), most)
    nodes = np.fromiter(layers, dtype=np.int64, count=len(layers))
    inside = np.isin(ends[0], nodes) & np.isin(ends[1], nodes)
    return Neighbourhood(
        _nodes(report, nodes, layers, set(centres), ends, inside, sizes),
        _edges_among(ends[:, inside], write[inside], shift, sizes),
    )


def _open(
    layers: dict[int, int],
    node: int,
    ends: Integers,
    write: npt.NDArray[np.bool_],
    sizes: Integers,
    most: int,
) -> None:
    """Assign a node and its neighbours a layer: what it gets data from is before it."""
    layer = layers.setdefault(node, 0)
    side = int((ends[0] == node).any())
    touching = ends[1 - side] == node
    neighbours = ends[side][touching]
    # The data comes to a program from what it reads, to a variable from what writes it.
    before = ~write[touching] if side else write[touching]
    steps = np.where(before, -1, 1)
    distinct, first = np.unique(neighbours, return_index=True)
    order = np.argsort(-sizes[distinct], kind="stable")[:most]
    for neighbour, step in zip(distinct[order].tolist(), steps[first[order]].tolist(), strict=True):
        layers.setdefault(neighbour, layer + step)


def _edges(report: Report) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
    """Return program, variable and whether it writes, each once, programs by their node."""

    def make(data: Dataset) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
        names = ("program", "variable", "write")
        program, variable, write = (data.column("access", name) for name in names)
        rows = np.stack((_same_work(report)[program], variable, write.astype(np.int64)))
        rows = np.unique(rows, axis=1) if rows.size else rows
        return rows[0], rows[1], rows[2].astype(bool)

    edges: tuple[Integers, Integers, npt.NDArray[np.bool_]] = report.dataset.kept(
        "computation graph", make
    )
    return edges


def _edges_on(
    report: Report, ipu: int | None, tile: int | None
) -> tuple[Integers, Integers, npt.NDArray[np.bool_], Integers]:
    """Return the edges to variables that lie on an IPU or tile, or all; and the bytes of each."""
    program, variable, write = _edges(report)
    sizes = sizes_on(report, ipu=ipu, tile=tile)
    if tile is None and ipu is None:
        return program, variable, write, sizes
    on_tiles = sizes[variable] > 0
    return program[on_tiles], variable[on_tiles], write[on_tiles], sizes


def _same_work(report: Report) -> Integers:
    """Return for each program the first one that runs the same compute set or exchange."""
    data = report.dataset
    types = data.texts("programs", "type")
    first = np.arange(len(types))
    for tag, (column, _) in OPERANDS.items():
        typed = np.flatnonzero(types == tag)
        operand = data.column("programs", column)[typed]
        valid = operand >= 0
        _, place, back = np.unique(operand[valid], return_index=True, return_inverse=True)
        first[typed[valid]] = typed[valid][place][back]
    return first


def _centre(report: Report, program: Integers) -> list[int]:
    """Choose the program at the peak of liveness, or the first one that touches a variable."""
    data = report.dataset
    if not len(program):
        return []
    live = data.column("liveness_steps", "bytes") if data.has("liveness_steps") else ()
    peak = int(data.column("liveness_steps", "program")[int(np.argmax(live))]) if len(live) else -1
    same = _same_work(report)
    at_peak = int(same[peak]) if 0 <= peak < len(same) else -1
    return [at_peak if (program == at_peak).any() else int(program[0])]


def _number(report: Report, key: str) -> int:
    """Read a key; raises SelectionError."""
    match = _KEY.fullmatch(key)
    if not match:
        raise SelectionError(
            f"node {key}", "no node", "write v12 for a variable, p40 for a program"
        )
    row = int(match[2])
    data = report.dataset
    programs = data.length("programs")
    if match[1] == "v":
        return programs + chosen("variable", row, data.length("variables"))
    return int(_same_work(report)[chosen("program", row, programs)])


@table(
    "key kind row name bytes:bytes layer opened neighbours hidden",
    row="row of the variable or of the program",
    name="debug name of the variable, or of what reads and writes it",
    bytes="bytes of the variable, or of all that it touches",
    layer="place in the direction of the data, which flows from lower layers to higher ones",
    opened="true if its neighbours were asked for",
    neighbours="nodes that it reads, writes, or is read or written by",
    hidden="how many of these are not here",
    kind="variable, or the type of the program",
)
def _nodes(
    report: Report,
    nodes: Integers,
    layers: dict[int, int],
    opened: set[int],
    ends: Integers,
    inside: npt.NDArray[np.bool_],
    sizes: Integers,
) -> Columns:
    data = report.dataset
    shift = data.length("programs")
    pairs = np.unique(ends, axis=1) if ends.size else ends
    shown = np.unique(ends[:, inside], axis=1) if inside.any() else ends[:, :0]
    size = shift + data.length("variables")
    all_of, visible = (np.bincount(of.ravel(), minlength=size)[nodes] for of in (pairs, shown))
    is_variable = nodes >= shift
    programs, variables = np.where(is_variable, 0, nodes), np.where(is_variable, nodes - shift, 0)
    touched = summed(pairs[0], sizes[pairs[1] - shift], shift) if shift else np.zeros(1, np.int64)
    names = np.append(data.column("variables", "name"), "")
    types = np.array(program_texts(report, programs)[0], dtype=object)
    return {
        "key": [f"v{n - shift}" if n >= shift else f"p{n}" for n in nodes.tolist()],
        "kind": np.where(is_variable, VARIABLE, types),
        "row": np.where(is_variable, variables, programs),
        "name": np.where(is_variable, names[variables], labels(report, programs)),
        "bytes": np.where(is_variable, np.append(sizes, 0)[variables], touched[programs]),
        "layer": [layers[n] for n in nodes.tolist()],
        "opened": [n in opened for n in nodes.tolist()],
        "neighbours": all_of,
        "hidden": all_of - visible,
    }


@table(
    "source target bytes:bytes",
    bytes="bytes of the variable at one end",
    source="key of the node that the data come from",
    target="key of the node that the data go to",
)
def _edges_among(
    ends: Integers, write: npt.NDArray[np.bool_], shift: int, sizes: Integers
) -> Columns:
    programs = np.array([f"p{row}" for row in ends[0].tolist()], dtype=object)
    variables = np.array([f"v{row - shift}" for row in ends[1].tolist()], dtype=object)
    return {
        "source": np.where(write, programs, variables),
        "target": np.where(write, variables, programs),
        "bytes": sizes[ends[1] - shift],
    }


def has_accesses(report: Report) -> bool:
    """Return whether any program reads or writes a variable; raises NotRecordedError."""
    return len(report.dataset.column("access", "program")) > 0


@dataclass(frozen=True, slots=True)
class LinkTotals:
    """The links of a node in one direction: how many, and the bytes of the variables at an end."""

    links: int
    bytes: int


def link_totals(sizes: pd.Series[int], mask: pd.Series[bool]) -> LinkTotals:
    """Sum up the links of a mask."""
    return LinkTotals(int(mask.sum()), int(sizes[mask].sum()))


def vertices_of(report: Report, program: int) -> pd.DataFrame | None:
    """Return the `vertices_by_compute_set` of a program; None if there are none or none is told."""
    data = report.dataset
    needed = ("compute_set_vertices", "compute_set_active_cycles_by_vertex_type")
    compute_set = int(data.column("programs", "compute_set")[program])
    if compute_set < 0 or not all(data.has(name) for name in needed):
        return None
    return vertices_by_compute_set(report, compute_set=compute_set).frame()
