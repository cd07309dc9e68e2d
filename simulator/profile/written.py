"""The programs as they were given to the engine, and which of the compiled ones each became."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from pva import schema
from simulator.compiler.executable import Lowered
from simulator.graph.host.copy_ends import End
from simulator.graph.host.streams import Stream
from simulator.graph.program import (
    Call,
    Copy,
    CrossReplicaCopy,
    ErrorProgram,
    Execute,
    PrintTensor,
    Program,
    Repeat,
    WriteUndef,
    tensors_of,
)
from simulator.graph.tensors.tensor import Tensor

TYPES = {name: number for number, name in enumerate(schema.WRITTEN_TYPES)}


@dataclass(frozen=True, slots=True)
class _Described:
    """A row of `written_programs`, but for its place."""

    type: int
    name: str
    compute_set: int = -1
    target: int = -1
    count: int = -1
    source: str = ""
    destination: str = ""
    bytes: int = -1


def written_tables(lowered: Lowered) -> dict[str, dict[str, Any]]:
    """Make the tables of the stage before compilation."""
    descriptions: dict[Program, _Described] = {}
    for statement in lowered.written:
        if statement.node not in descriptions:
            descriptions[statement.node] = _described(statement.node)
    rows = [descriptions[item.node] for item in lowered.written]
    columns = {
        field.name: [getattr(row, field.name) for row in rows] for field in fields(_Described)
    }
    origins = np.array(lowered.origins, dtype=np.int64)
    results = np.flatnonzero(origins >= 0)
    order = np.argsort(origins[results], kind="stable")
    return {
        "written_programs": columns
        | {
            "parent": [item.parent for item in lowered.written],
            "role": [item.role for item in lowered.written],
        },
        "written_results": {"written": origins[results][order], "program": results[order]},
    }


def _described(node: Program) -> _Described:
    row = _Described(TYPES[type(node).__name__], str(getattr(node, "name", "")))
    match node:
        case Execute():
            return replace(row, compute_set=node.compute_set.id)
        case Call():
            return replace(row, name=node.name or node.function.name, target=node.function.id)
        case Repeat():
            return replace(row, count=node.count)
        case Copy() | CrossReplicaCopy():
            moved = node.src if isinstance(node.src, Tensor) else node.dst
            size = moved.numElements() * moved.dtype.size if isinstance(moved, Tensor) else -1
            return replace(row, source=_named(node.src), destination=_named(node.dst), bytes=size)
        case WriteUndef():
            return replace(row, destination=_named(node.tensor))
        case PrintTensor() | ErrorProgram():
            size = node.tensor.numElements() * node.tensor.dtype.size
            return replace(row, source=_named(node.tensor), bytes=size)
        case _:
            decides = tensors_of(node)
            return replace(row, source=_named(decides[0])) if decides else row


def _named(end: End) -> str:
    if isinstance(end, Tensor):
        return end.describe()
    return f"{'stream' if isinstance(end, Stream) else 'remote buffer'} {end.handle}"
