"""Read Chrome trace JSON piece by piece: in C where that was built, and where it is as most are.

What else there is, and every piece without the kernel, is read by `chrome_events`; both give the
same. A second thread parses some pieces ahead, while this one reads, unpacks and looks for ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pva import kernels
from pva.collector import collector_paused
from pva.formats.builders import Codes, Numbers, looked_up
from pva.formats.memory_limit import Budget
from pva.formats.traces import chrome_events
from pva.formats.traces.chrome_events import (
    ARGUMENTS,
    BYTES,
    DECODER,
    FAULTS,
    KEY,
    LABEL,
    LANE,
    NO_CATEGORY,
    PHASES,
    Event,
    Read,
    numbered,
)
from pva.formats.traces.json_pieces import Array, Piece

_UNKNOWN = 255
_PHASES = bytearray([_UNKNOWN]) * 256
for _letter, _number in PHASES.items():
    _PHASES[ord(_letter)] = _number
_PAIRS = msgspec.json.Decoder(list[Any])
_AHEAD = 4  # pieces that are parsed, or wait for it


class _Columns(NamedTuple):
    """The events of a piece as the kernel gives them, in its order.

    Lanes and labels are numbers of pairs, which stand in `lanes` and `labels` one after
    the other; `others` are the events that tell more.
    """

    phase: npt.NDArray[np.uint8]
    time: npt.NDArray[np.int64]
    duration: npt.NDArray[np.int64]
    lane: Codes
    label: Codes
    told: Codes
    sizes: Codes
    texts: bytearray
    lanes: list[Any]
    labels: list[Any]
    others: list[Event]


_TYPES = (np.uint8, np.int64, np.int64, np.int32, np.int32, np.int32, np.int32)


def read(source: Array, budget: Budget) -> Read:
    """Read all events of an array; raises DamagedFileError for more than fit into the memory."""
    content = Read(budget)
    with collector_paused():
        for piece, parsed in _parsed(source):
            columns = _columns(parsed)
            if columns is None:
                chrome_events.add(content, piece)
            else:
                _add(content, columns)
    return content


def _parsed(source: Array) -> Iterator[tuple[Piece, Any]]:
    """Return the pieces in their order, each with what the kernel makes of it."""
    if not kernels.compiled:
        yield from ((piece, None) for piece in source)
        return
    pending: deque[tuple[Piece, Any]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for piece in source:
            pending.append((piece, thread.submit(kernels.compiled.events, piece.text, _PHASES)))
            if len(pending) > _AHEAD:
                first, parsed = pending.popleft()
                yield first, parsed.result()
        for first, parsed in pending:
            yield first, parsed.result()


def _columns(parsed: Any) -> _Columns | None:
    """Return the columns of a piece as the kernel has them; None where it is for the other way."""
    if parsed is None:
        return None
    columns: Any = map(np.frombuffer, parsed, _TYPES)
    texts, *pairs, other_texts = parsed[len(_TYPES) :]
    try:
        lanes, labels = (_PAIRS.decode(text or b"[]") for text in pairs)
        other_events = DECODER.decode(other_texts or b"[]")
    except FAULTS:
        return None
    return _Columns._make((*columns, texts, lanes, labels, other_events))


def _add(content: Read, columns: _Columns) -> None:
    """Take in the columns of a piece."""
    content.budget.spend(int(BYTES[columns.phase].sum()), KEY)
    if len(columns.told):
        size = ARGUMENTS * len(columns.told) + 5 * len(columns.texts) // 4
        content.budget.spend(size, f"{KEY}.args")
        content.told.extend(columns.told + np.int64(len(content.phase)))
        content.texts.extend_run(columns.texts, columns.sizes)
    content.duration.extend(columns.duration)
    content.phase.extend(columns.phase)
    content.time.extend(columns.time)
    content.lane.extend(_codes(content, content.lanes, columns.lanes, columns.lane, LANE))
    labels = columns.labels
    labels[::2] = [content.categories[category or NO_CATEGORY] for category in labels[::2]]
    content.label.extend(_codes(content, content.labels, labels, columns.label, LABEL))
    if columns.others:
        chrome_events.add_others(content, columns.others)


def _codes(
    content: Read, numbers: Numbers, fields: list[object], codes: Codes, item_bytes: int
) -> Codes:
    """Number the pairs of a piece, and give the numbers of its events."""
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return looked_up(numbered(content, numbers, pairs, len(fields) // 2, item_bytes), codes)
