"""Read Chrome trace JSON piece by piece: in C where that was built, and where it is as most are.

What else there is, and every piece without the kernel, is read by `chrome_events`; both give the
same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pva import kernels
from pva.formats import chrome_events
from pva.formats.budget import Budget
from pva.formats.chrome_events import (
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
from pva.formats.files import collector_paused
from pva.formats.growing import Codes, Numbers, looked_up
from pva.formats.json_pieces import Array

_UNKNOWN = 255
_PHASES = bytearray([_UNKNOWN]) * 256
for _letter, _number in PHASES.items():
    _PHASES[ord(_letter)] = _number
_PAIRS = msgspec.json.Decoder(list[Any])


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
    found = Read(budget)
    with collector_paused():
        for piece in source:
            columns = _columns(piece.text) if kernels.compiled else None
            if columns is None:
                chrome_events.add(found, piece)
            else:
                _add(found, columns)
    return found


def _columns(text: bytes) -> _Columns | None:
    """Return the columns of a piece; None where it is for the other way."""
    taken = kernels.compiled.events(text, _PHASES)
    if taken is None:
        return None
    columns: Any = map(np.frombuffer, taken, _TYPES)
    texts, *pairs, others = taken[len(_TYPES) :]
    try:
        lanes, labels = (_PAIRS.decode(text or b"[]") for text in pairs)
        told = DECODER.decode(others or b"[]")
    except FAULTS:
        return None
    return _Columns._make((*columns, texts, lanes, labels, told))


def _add(found: Read, columns: _Columns) -> None:
    """Take in the columns of a piece."""
    found.budget.spend(int(BYTES[columns.phase].sum()), KEY)
    if len(columns.told):
        size = ARGUMENTS * len(columns.told) + 5 * len(columns.texts) // 4
        found.budget.spend(size, f"{KEY}.args")
        found.told.extend(columns.told + np.int64(len(found.phase)))
        found.texts.extend_run(columns.texts, columns.sizes)
    found.duration.extend(columns.duration)
    found.phase.extend(columns.phase)
    found.time.extend(columns.time)
    found.lane.extend(_codes(found, found.lanes, columns.lanes, columns.lane, LANE))
    labels = columns.labels
    labels[::2] = [found.categories[category or NO_CATEGORY] for category in labels[::2]]
    found.label.extend(_codes(found, found.labels, labels, columns.label, LABEL))
    if columns.others:
        chrome_events.add_others(found, columns.others)


def _codes(found: Read, numbers: Numbers, told: list[Any], codes: Codes, each: int) -> Codes:
    """Number the pairs of a piece, and give the numbers of its events."""
    pairs = zip(told[::2], told[1::2], strict=True)
    return looked_up(numbered(found, numbers, pairs, len(told) // 2, each), codes)
