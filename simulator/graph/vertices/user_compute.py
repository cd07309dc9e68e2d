"""Running the codelets that users write: an object of the class for every vertex."""

from __future__ import annotations

import re
import traceback
from inspect import signature
from itertools import repeat
from operator import is_not
from typing import Any

import numpy as np

from simulator.graph.errors import PoplarError
from simulator.graph.geometry.intervals import offsets_of
from simulator.graph.types import Array, IntArray, Type
from simulator.graph.vertices.output_array import (
    OutputReadError,
    as_output,
    marked_outputs,
    restore_unwritten,
)
from simulator.graph.vertices.vertex import (
    Codelet,
    Edge,
    Field,
    MultiVertex,
    Operands,
    Vector,
    Vertex,
    VertexGroup,
    declared,
    field_name,
)

# The operations of each vertex, among its parameters; no attribute can have this name.
FLOPS = "<flops>"


def codelet_of(vertex: type[Vertex], compute_set: str = "") -> Codelet:
    """Make the codelet of a user's class; what goes wrong in it names the compute set."""
    edges, values = declared(vertex)
    # A pointer of 4 bytes an edge, 8 with a length beside it, and the values themselves.
    state = sum(4 if edge.length == 1 else 8 for edge in edges.values())
    state += sum(value.size if isinstance(value, Type) else 8 for value in values.values())
    where = f"compute set {compute_set!r}: " if compute_set else ""

    def compute(operands: Operands) -> dict[str, Array]:
        return run_user_vertices(vertex, operands, where)

    return Codelet(vertex.__name__, compute, vertex.supervisor, state, flops=_flops, kind="user")


def _flops(group: VertexGroup) -> IntArray:
    return group.parameters[FLOPS]


def _attributes(vertex: type[Vertex]) -> dict[str, str]:
    """Map field names to the attributes of the class."""
    names = {attribute for base in vertex.__mro__ for attribute in vars(base)}
    kinds = (Edge, Type, Vector)
    return {field_name(a): a for a in names if isinstance(getattr(vertex, a), kinds)}


def _pieces(operands: Operands, field: Field) -> list[Any]:
    """Split a field's values into one array a vertex, or a list of rows for a VectorList."""
    values = operands.arrays[field.name]
    if field.direction == "input":
        values.flags.writeable = False
    bounds = offsets_of(operands.counts[field.name] if field.rows is None else field.rows).tolist()
    pieces = [values[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    if field.direction == "output":
        pieces = list(map(as_output, pieces))
    if field.rows is None:
        return pieces
    first = offsets_of(field.edges).tolist()
    return [_Rows(pieces[a:b]) for a, b in zip(first[:-1], first[1:], strict=True)]


class _Rows(list[Array]):
    """The rows of a VectorList: what is assigned to one is copied into its memory."""

    def __setitem__(self, place: Any, value: object) -> None:
        _copy(value, self[place])


def run_user_vertices(vertex: type[Vertex], operands: Operands, where: str) -> dict[str, Array]:
    """Run `compute` of every vertex of a group; PoplarError names the one in which it fails."""
    group = operands.group
    attributes = _attributes(vertex)
    values = {name: column for name, column in group.parameters.items() if name in attributes}
    names = [attributes[name] for name in (*group.fields, *values)]
    outputs = [operands.arrays[n] for n, i in group.fields.items() if i.direction == "output"]
    before = list(map(marked_outputs, outputs))
    columns = [_pieces(operands, item) for item in group.fields.values()]
    columns += [column.tolist() for column in values.values()]
    rows = zip(*columns, strict=True) if columns else repeat((), len(group))
    workers = _workers(vertex, group)
    index = 0
    try:
        for index, row in enumerate(rows):  # noqa: B007 - names the vertex that fails
            instance = vertex()
            state = vars(instance)
            state.update(zip(names, row, strict=True))
            for worker in workers:
                instance.compute(*worker)
            if any(map(is_not, map(state.get, names), row)):
                _take_back(group, attributes, state, row)
    except Exception as error:
        name = f"{where}vertex {vertex.__name__}[{index}] on tile {group.tile[index]}"
        raise PoplarError(f"{name}{_reason(error, operands, attributes)}") from error
    for array, former in zip(outputs, before, strict=True):
        restore_unwritten(array, former)
    return {n: operands.arrays[n] for n, item in group.fields.items() if item.direction != "input"}


def _workers(vertex: type[Vertex], group: VertexGroup) -> list[tuple[int, ...]]:
    """Return the arguments of each call of `compute`: none, or the workers of a MultiVertex."""
    takes_number = issubclass(vertex, MultiVertex) and len(signature(vertex.compute).parameters) > 1
    if not takes_number:
        return [()]
    graphs = [field.graph for field in group.fields.values()]
    return [(worker,) for worker in range(graphs[0].target.workers if graphs else 0)]


class _FieldError(PoplarError):
    """A field was assigned what it cannot take."""


def _take_back(
    group: VertexGroup,
    attributes: dict[str, str],
    state: dict[str, object],
    row: tuple[object, ...],
) -> None:
    """Copy what was assigned to outputs (`self.out = ...`) instead of written into them."""
    for (name, item), array in zip(group.fields.items(), row, strict=False):
        value = state.get(attributes[name])
        if value is array:
            continue
        if item.direction == "input":
            raise _FieldError(f", field {name!r}: an Input cannot be written")
        try:
            _copy(value, array)
        except (TypeError, ValueError) as error:
            message = f", field {name!r}: compute() gave what does not fit: {error}"
            raise _FieldError(message) from error


def _copy(value: Any, array: Any) -> None:
    """Copy a value into an array, or values into a list of arrays."""
    if not isinstance(array, list):
        numbers = np.asarray(value)
        if numbers.dtype.kind not in "biuf":
            raise TypeError(f"{numbers.dtype}, where numbers are needed")
        array[...] = numbers
        return
    for target, source in zip(array, value, strict=True):
        _copy(source, target)


def _reason(error: Exception, operands: Operands, attributes: dict[str, str]) -> str:
    """Return what went wrong in a vertex, with the field where there is one."""
    fields = operands.group.fields
    if isinstance(error, _FieldError):
        return str(error)
    if isinstance(error, OutputReadError):
        array = error.array.view(np.ndarray)
        read = [name for name in fields if np.may_share_memory(operands.arrays[name], array)]
        return f", field {read[0]!r}: {error}"
    if isinstance(error, ValueError) and "read-only" in str(error):
        inputs = {n: attributes[n] for n, item in fields.items() if item.direction == "input"}
        frames = traceback.extract_tb(error.__traceback__)
        line = next((f.line for f in reversed(frames) if f.filename != __file__), None) or ""
        meant = [n for n, a in inputs.items() if re.search(rf"\b{a}\b", line)] or list(inputs)
        return f", field {' or '.join(map(repr, meant))}: an Input cannot be written"
    message = f": compute() raised {type(error).__name__}: {error}".rstrip(".")
    alone = "; a field of one value is an array too: field[0] is its value"
    return message + alone if "array element with a sequence" in message else message
