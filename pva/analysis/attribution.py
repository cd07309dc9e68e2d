"""What a step is charged to: its phase, its operation and its layer; and how often each row ran.

A step costs each tile what the row of its program says (a compute set or an exchange), so that
sums over steps are sums over rows, weighted by how often each was executed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.selection import tile_count
from pva.array_types import Integers, Texts

if TYPE_CHECKING:
    from pva.report import Report


# Words for the kinds of step, as in the summary of the user guide; all others are syncs.
STEP_WORDS = {
    "OnTileExecute": "compute",
    "DoExchange": "exchange",
    "GlobalExchange": "exchange",
    "CopySharedStructure": "exchange",
    "StreamCopy": "host exchange",
    "StreamCopyBegin": "host exchange",
    "StreamCopyEnd": "host exchange",
}
SYNC = "sync"
PHASES = ("compute", "exchange", "host exchange", SYNC)

# The column of `programs` that counts rows of the arrays of a type, and how these are called.
OPERANDS = {
    "OnTileExecute": ("compute_set", "compute_set"),
    "DoExchange": ("exchange", "exchange"),
    "GlobalExchange": ("exchange", "external_exchange"),
    "StreamCopy": ("exchange", "host_exchange"),
}
EXCHANGES = ("DoExchange", "GlobalExchange", "StreamCopy")

# What the compiler puts around an operation's own compute sets, as the user guide's sample and
# public profiles name it ("Layer1/Fwd/Conv_1/Convolve/ExchangePre").
_STAGE = re.compile(
    r"(Exchange(Pre|Post)?|Global(Exchange|Pre|Post)|OnTileCopy(Pre|Post)?"
    r"|(Pre|Post)Arrange|StreamCopy(Begin|Mid|End)?)(-\d+)?"
)
# The layer of variables and compute sets, which are parts of operations; and the layers whose
# contexts are operations, whatever is above them.
_PARTS_LAYER = "poplar"
_OPERATION_LAYERS = frozenset({"popart", "hloinstruction"})


def phases(report: Report) -> Integers:
    """Return the phase of each step, an index into PHASES."""
    data = report.dataset
    words = data.words("steps", "type")
    of_code = np.array([PHASES.index(STEP_WORDS.get(word, SYNC)) for word in words])
    return of_code[data.column("steps", "type")]


def elapsed(report: Report) -> Integers:
    """Return the cycles by which each step made its run longer; 0 where no clock was recorded."""
    begin, end = (report.dataset.column("steps", name) for name in ("cycles_from", "cycles_to"))
    return np.where((begin >= 0) & (end >= begin), end - begin, 0)


def executions(report: Report) -> Integers:
    """Count how often each program was executed in the recorded runs."""
    data = report.dataset
    programs = data.column("steps", "program")
    count = len(data.column("programs", "name"))
    valid = programs[(programs >= 0) & (programs < count)]
    return np.bincount(valid, minlength=count)


def executions_of_rows(report: Report, tag: str, rows: int) -> Integers:
    """Count how often each compute set or exchange (by type of program) was executed."""
    data = report.dataset
    of_type = data.texts("programs", "type") == tag
    operand = data.column("programs", OPERANDS[tag][0])[of_type]
    counts = executions(report)[of_type]
    valid = (operand >= 0) & (operand < rows)
    return summed(operand[valid], counts[valid], rows)


def moved_bytes(report: Report, tag: str) -> tuple[Integers, Integers]:
    """Return what every tile receives and sends in each exchange of a type of program.

    There are none where no program is of that type and no exchange was written. Raises
    NotRecordedError when the programs are there and the bytes are not.
    """
    none = np.zeros((0, tile_count(report)), dtype=np.int64)
    received, sent = [report.dataset.array(name) for name in _moves(report, tag)] or [none, none]
    return received, sent


def moved_by_exchange(report: Report, tag: str, *, most: bool = False) -> tuple[Integers, Integers]:
    """Return what all tiles receive and send in each exchange, as `moved_bytes` does by tile.

    With `most` it is what the tile does that receives or sends the most.
    """
    data, none = report.dataset, np.zeros(0, dtype=np.int64)
    find = data.row_maxima if most else data.row_sums
    received, sent = [find(name) for name in _moves(report, tag)] or [none, none]
    return received, sent


def _moves(report: Report, tag: str) -> tuple[str, ...]:
    """Name the arrays of what is received and sent; none where there is no such exchange."""
    data = report.dataset
    names = tuple(f"{OPERANDS[tag][1]}_bytes_{way}" for way in ("received", "sent"))
    is_there = any(map(data.has, names)) or tag in data.texts("programs", "type")
    return names if is_there else ()


def summed(groups: Integers, values: npt.NDArray[np.integer | np.bool_], count: int) -> Integers:
    """Sum whole numbers by group."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, groups, values)
    return sums


def labels(report: Report, programs: Integers) -> Texts:
    """Return the names of programs, for one without a name its type in brackets."""
    data = report.dataset
    types = np.append(data.texts("programs", "type"), "unknown")
    names = np.append(data.column("programs", "name"), "")
    last = len(types) - 1
    rows = np.where((programs >= 0) & (programs < last), programs, last)
    texts: Texts = np.where(names[rows] != "", names[rows], "(" + types[rows] + ")")
    return texts


def operations(report: Report) -> Texts:
    """Name the operation that each program belongs to, and last what an unknown program does."""
    named: Texts = report.dataset.kept("operations", lambda _: _operations(report))
    return named


def _operations(report: Report) -> Texts:
    data = report.dataset
    names = labels(report, np.arange(data.length("programs") + 1))
    operations = owners(report, names, np.append(data.column("programs", "debug_context"), -1))
    operations.flags.writeable = False
    return operations


def owners(report: Report, names: Texts, contexts: Integers) -> Texts:
    """Name the operation that each program or variable of a name and a debug context belongs to.

    Where debug contexts were recorded, it is the nearest one above it that is an operation of a
    framework, else the outermost one of a library; what has none, such as a copy that the compiler
    put in, goes to the operation whose path its name begins with. Otherwise it is the path of the
    name without its last stage.
    """
    scopes = _scopes(report)
    context_list = contexts.tolist()
    operations = {scopes[context] for context in context_list if context in scopes}
    names_of_owners = [
        scopes[context] if context in scopes else _by_path(name, operations)
        for name, context in zip(names.tolist(), context_list, strict=True)
    ]
    return np.array(names_of_owners, dtype=object)


def layer_of(operation: str) -> str:
    """Return the outermost scope of a path."""
    return operation.partition("/")[0]


def _scopes(report: Report) -> dict[int, str]:
    """Name the operation of each debug context, as libpva's OperationAnalysis finds it."""
    data = report.dataset
    if not data.has("debug_contexts"):
        return {}
    columns = (data.column("debug_contexts", c).tolist() for c in ("id", "parent", "name", "layer"))
    contexts = {number: fields for number, *fields in zip(*columns, strict=True)}
    nearest: dict[int, str] = {}
    outermost: dict[int, str] = {}
    for number in contexts:
        # Each context is walked through once: what is above it is known already.
        path: dict[int, None] = {}
        above = number
        while above in contexts and above not in nearest and above not in path:
            path[above] = None
            above = contexts[above][0]
        for below in reversed(path):
            parent, name, layer = contexts[below]
            nearest[below] = name if layer in _OPERATION_LAYERS else nearest.get(parent, "")
            scope = "" if layer == _PARTS_LAYER else name
            outermost[below] = outermost.get(parent, "") or scope
    named = {
        number: nearest[number] or outermost[number] or name
        for number, (_, name, _) in contexts.items()
    }
    return {number: name for number, name in named.items() if name}


def _by_path(name: str, operations: set[str]) -> str:
    """Return the known operation that a name is of, else the name without its last stage."""
    parts = name.split("/")
    for length in range(len(parts), 0, -1):
        path = "/".join(parts[:length])
        if path in operations:
            return path
    while len(parts) > 1 and _STAGE.fullmatch(parts[-1]):
        parts.pop()
    return "/".join(parts[:-1]) if len(parts) > 1 else parts[0]
