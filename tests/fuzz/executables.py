"""Spoil the file of an executable: its bytes, or its table with a length and checksum that fit.

`fault(body)` reads it and tells what was wrong, which is nothing when it is read or refused by a
PoplarError of one line.
"""

from __future__ import annotations

import io
import json
import traceback
import zlib
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

from simulator import poplar, popops
from simulator.poplar import FLOAT, Executable, PoplarError, program

Pick = Callable[[int], int]  # a number below a count
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1 << 40, 1 << 80, 0.5, "", "os", "O", "object", "function", "<f8", [], [0],
    [-1], [[0]], [1 << 40], {}, {"a": 1}, "simulator.executable_file", "system", "x" * 1000,
)  # fmt: skip


@cache
def compiled() -> Executable:
    """Compile a program with vertices of the library, functions and streams."""
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice())
    x = graph.addVariable(FLOAT, [8], poplar.VariableMappingMethod.LINEAR, "x")
    fed = program.Sequence([program.Copy(graph.addHostToDeviceFIFO("in", FLOAT, 8), x)])
    popops.map(graph, popops.expr.Sqrt(popops.expr._1), [x], fed)
    total = popops.reduce(graph, x, [0], popops.Operation.ADD, fed)
    graph.createHostRead("total", total)
    again = program.Call(graph.addFunction(fed, "again"))
    return poplar.compileGraph(graph, program.Repeat(2, again))


@cache
def seed() -> bytes:
    """Keep the program."""
    file = io.BytesIO()
    compiled().serialize(file)
    return file.getvalue()


def spoilt(pick: Pick) -> bytes:
    """Spoil the seed in one of the ways, as `pick` chooses."""
    line, rest = seed().split(b"\n", 1)
    if not pick(4):
        body = bytearray(seed())
        for _ in range(1 + pick(8)):
            body[pick(len(body))] = pick(256)
        return bytes(body[: pick(len(body))] if pick(2) else body)
    header = json.loads(line)
    table, data = json.loads(rest[: header["table"]]), rest[header["table"] :]
    for _ in range(1 + pick(4)):
        _change(table, pick)
    return _file(header, json.dumps(table).encode(), data)


def fault(body: bytes) -> str:
    """Read a file; give what was raised that is no PoplarError of one line."""
    try:
        Executable.deserialize(io.BytesIO(body))
    except PoplarError as error:
        return "" if "\n" not in str(error) else f"several lines: {error}"
    except Exception:
        return traceback.format_exc()
    return ""


def _change(table: dict[str, Any], pick: Pick) -> None:
    """Put something else in some place of the table."""
    place: Any = table[("classes", "nodes", "nodes", "nodes")[pick(4)]]
    while place and isinstance(place, list):
        index = pick(len(place))
        if not isinstance(place[index], list) or not place[index] or not pick(4):
            choice = pick(len(HOSTILE) + 2)
            some = table["nodes"][pick(len(table["nodes"]))]
            place[index] = deepcopy(HOSTILE[choice] if choice < len(HOSTILE) else some)
            return
        place = place[index]


def _file(header: dict[str, Any], table: bytes, data: bytes) -> bytes:
    header |= {"table": len(table), "crc32": zlib.crc32(data, zlib.crc32(table))}
    return json.dumps(header).encode() + b"\n" + table + data
