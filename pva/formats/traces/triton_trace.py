"""Read and write the trace JSON of Triton Inference Server: when each request reached which stage.

The file is an array of objects that share an `id`: the model of a request, its `timestamps`, and,
where tensors were traced, an `activity` with a `tensor`. Objects and timestamps stand in any order.
Source: Triton Inference Server, docs/user_guide/trace.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from pva.array_types import Integers
from pva.collector import collector_paused
from pva.errors import DamagedFileError, UnknownFormatError
from pva.formats.memory_limit import SHORTER, Budget
from pva.formats.traces.json_pieces import Array
from pva.plain_file import opened
from pva.progress import part_of, reading

FORMAT = "a trace of Triton"
# Stages in their order, by the name of what is first of them in the file.
STAGES = (
    "HTTP_RECV_START", "HTTP_RECV_END", "GRPC_WAITREAD_START", "GRPC_WAITREAD_END",
    "REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START",
    "COMPUTE_END", "INFER_RESPONSE_COMPLETE", "REQUEST_END", "HTTP_SEND_START", "HTTP_SEND_END",
    "GRPC_SEND_START", "GRPC_SEND_END",
)  # fmt: skip
_PLACE = {name: place for place, name in enumerate(STAGES)}
MISSING = -1
TIME_LIMIT = 1 << 61  # ns
REQUEST_BYTES = 700  # that a request takes while its columns are made
INPUT = "TENSOR_QUEUE_INPUT"


class Moment(msgspec.Struct, gc=False):
    """One timestamp."""

    name: str
    ns: int


class Tensor(msgspec.Struct, gc=False):
    """One tensor of a request; its values are not read."""

    shape: str = ""


class Entry(msgspec.Struct, gc=False):
    """One object of the file; each tells a part of a request."""

    id: int
    model_name: str = ""
    model_version: int | str = ""
    request_id: str = ""
    parent_id: int = 0
    timestamps: list[Moment] = []
    activity: str = ""
    tensor: Tensor | None = None


@dataclass
class TritonRequests:
    """Requests in the order in which the file names them first.

    `moments` is [stage][request] in nanoseconds, -1 where a stage was not reached; `rows` is the
    first dimension of its inputs, 0 where no tensor was traced.
    """

    path: Path
    id: Integers
    parent: Integers
    rows: Integers
    model: list[str]
    version: list[str]
    request_id: list[str]
    moments: Integers
    problems: tuple[str, ...] = ()

    def at(self, stage: str) -> Integers:
        """Return when each request reached a stage, -1 where it did not."""
        column: Integers = self.moments[_PLACE[stage]]
        return column


@dataclass(slots=True)
class _One:
    moments: list[int] = field(default_factory=lambda: [MISSING] * len(STAGES))
    rows: int = 0
    parent: int = 0
    model: str = ""
    version: str = ""
    request_id: str = ""


_DECODER = msgspec.json.Decoder(list[Entry])


def is_triton(text: bytes) -> bool:
    """Return whether the begin of a JSON array is that of a trace of Triton."""
    head = text.lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"[") and b'"ph"' not in head and b'"id"' in head and (
        b'"model_name"' in head or b'"timestamps"' in head
    )  # fmt: skip


def read(path: Path, budget: Budget | None = None) -> TritonRequests:
    """Read a trace of Triton; raises PvaError."""
    with opened(path, FORMAT) as stream, part_of(reading(path), os.fstat(stream.fileno()).st_size):
        array = Array(path, stream, "traceEvents")
        size = os.fstat(stream.fileno()).st_size
        limit = budget or Budget(path, size, held=0, otherwise=SHORTER)
        requests: dict[int, _One] = {}
        unknown: set[str] = set()
        with collector_paused():
            for number, piece in enumerate(array):
                _add(_entries(path, piece.as_array(), number), requests, unknown, limit)
    if not requests:
        raise UnknownFormatError(path, "no request", FORMAT)
    problems = [f"stage {name!r}: not known, left out" for name in sorted(unknown)[:10]]
    if array.cut_off or not array.closed:
        problems.append("the file ends within its array: the last requests may lack stages")
    return _columns(path, requests, tuple(problems))


def _entries(path: Path, text: bytes, number: int) -> list[Entry]:
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        place = f"objects of part {number}"
        raise DamagedFileError(path, str(error), FORMAT, place=place) from None


def _add(
    entries: Iterable[Entry], requests: dict[int, _One], unknown: set[str], budget: Budget
) -> None:
    before = len(requests)
    for entry in entries:
        one = requests.get(entry.id)
        if one is None:
            one = requests[entry.id] = _One()
        if entry.model_name:
            one.model, one.version = entry.model_name, str(entry.model_version)
            one.request_id, one.parent = entry.request_id, entry.parent_id
        for moment in entry.timestamps:
            place = _PLACE.get(moment.name)
            if place is None or not 0 <= moment.ns < TIME_LIMIT:
                unknown.add(moment.name)
            else:
                one.moments[place] = moment.ns
        if entry.tensor is not None and entry.activity == INPUT:
            first = entry.tensor.shape.partition(",")[0].strip(" []")
            one.rows = int(first) if first.isdecimal() and len(first) < 10 else one.rows
    budget.spend(REQUEST_BYTES * (len(requests) - before), "requests")


def _columns(path: Path, requests: dict[int, _One], problems: tuple[str, ...]) -> TritonRequests:
    ones = list(requests.values())
    try:
        numbers = np.fromiter(requests, np.int64, len(ones))
        parents = np.array([one.parent for one in ones], np.int64)
    except OverflowError:
        raise DamagedFileError(path, "an id beyond 64 bits", FORMAT) from None
    return TritonRequests(
        path, numbers, parents, np.array([one.rows for one in ones], np.int64),
        [one.model for one in ones], [one.version for one in ones],
        [one.request_id for one in ones],
        np.array([one.moments for one in ones], np.int64).T.copy(), problems,
    )  # fmt: skip


def write(requests: TritonRequests, out: BinaryIO) -> None:
    """Write requests as Triton does: an object that names the model, then one with timestamps."""
    out.write(b"[")
    for number, text in enumerate(_objects(requests)):
        out.write((b",\n" if number else b"\n") + text)
    out.write(b"\n]\n")


def _objects(requests: TritonRequests) -> Iterator[bytes]:
    columns: Any = zip(
        requests.id.tolist(), requests.parent.tolist(), requests.rows.tolist(), requests.model,
        requests.version, requests.request_id, requests.moments.T.tolist(), strict=True,
    )  # fmt: skip
    for number, parent, rows, model, version, request, moments in columns:
        fields = {"id": number, "model_name": model, "model_version": _version(version)}
        optional = {"request_id": request} if request else {}
        yield json.dumps(fields | optional | ({"parent_id": parent} if parent else {})).encode()
        reached = [(ns, STAGES[place]) for place, ns in enumerate(moments) if ns != MISSING]
        stamps = [{"name": name, "ns": ns} for ns, name in reached]
        yield json.dumps({"id": number, "timestamps": stamps}).encode()
        if rows:
            tensor = {"id": number, "activity": INPUT, "tensor": {"shape": f"{rows}"}}
            yield json.dumps(tensor).encode()


def _version(text: str) -> int | str:
    return int(text) if text.isdecimal() and len(text) < 19 else text
