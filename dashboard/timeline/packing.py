"""The binary answer to the canvas, little-endian throughout.

    offset  bytes  what
    0       4      "TSV2"
    4       4      u32: length of the header H, a multiple of 8
    8       H      header: JSON in UTF-8, padded with spaces
    8 + H          columns of n rectangles, one after the other, in the order of COLUMNS

The header holds `n`, `window` (begin and end), `rows` (their numbers, in the order of the
rectangles), `counts` (rectangles of each) and `labels`: the texts that `label` indexes. NO_LABEL
marks a rectangle whose text found no room in the answer. `item` is the number of an executed step
or event, or -1; `count` events stand together in a rectangle for `time`, of which the label has
`share` 255ths.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from pva.analysis.timeline.viewport import Rectangles
from pva.array_types import Values

MAGIC = b"TSV2"
COLUMNS = (
    ("begin", "<f8"), ("length", "<f4"), ("time", "<f4"), ("item", "<i4"), ("count", "<u4"),
    ("label", "<u2"), ("colour", "u1"), ("share", "u1"),
)  # fmt: skip
NO_LABEL = 0xFFFF
LABEL_BYTES = 9_000  # of texts in one answer
LABEL_LETTERS = 300  # of one text


def pack(rectangles: Rectangles, texts: object, item: Values, header: dict[str, object]) -> bytes:
    """Write an answer; of the labels `texts` those of the widest rectangles are sent.

    `item` is the number of the first event of each rectangle.
    """
    label, sent = _labels_in_room(rectangles, texts)
    share = 255 * rectangles.label_time / np.maximum(rectangles.time, 1)
    row = rectangles.row
    edges = np.flatnonzero(np.append(row[1:] != row[:-1], True)[: len(row)]) + 1
    columns = {
        "begin": rectangles.begin,
        "length": rectangles.end - rectangles.begin,
        "time": rectangles.time,
        "item": np.where(rectangles.count == 1, item, -1),
        "count": rectangles.count,
        "label": label,
        "colour": np.minimum(rectangles.kind, 255),
        "share": np.where(rectangles.time > 0, share, 255),
    }
    document = header | {
        "n": len(label),
        "rows": row[edges - 1].tolist(),
        "counts": np.diff(edges, prepend=0).tolist(),
        "labels": sent,
    }
    head = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    head += b" " * (-len(head) % 8)
    body = b"".join(columns[name].astype(dtype).tobytes() for name, dtype in COLUMNS)
    return MAGIC + len(head).to_bytes(4, "little") + head + body


def _labels_in_room(rectangles: Rectangles, texts: Any) -> tuple[Values, list[str]]:
    """Number the labels of this answer anew, those of the widest rectangles first."""
    widest = np.argsort(rectangles.begin - rectangles.end, kind="stable")
    label = rectangles.label[widest]
    if label.max(initial=0) < 1 << 16:  # of 16 bits NumPy sorts in linear time
        label = label.astype(np.uint16)
    used, first, place = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(first)
    sent: list[str] = []
    room = LABEL_BYTES
    for number in used[order].tolist():
        text = shortened(texts[number])
        room -= len(text.encode(errors="replace")) + 3
        if room < 0:
            break
        sent.append(text)
    numbers = np.full(len(used), NO_LABEL, dtype=np.int64)
    numbers[order[: len(sent)]] = np.arange(len(sent))
    labels = np.empty(len(widest), dtype=np.int64)
    labels[widest] = numbers[place]
    return labels, sent


def shortened(text: str) -> str:
    """Leave out the middle of a text that is too long for any screen."""
    half = LABEL_LETTERS // 2
    return text if len(text) <= LABEL_LETTERS else f"{text[:half]}…{text[-half:]}"


def unpack(answer: bytes) -> tuple[dict[str, object], dict[str, Values]]:
    """Read an answer back, as timeline.js does; with the `row` of each rectangle."""
    if answer[:4] != MAGIC:
        raise ValueError(
            f"timeline answer: begins with {answer[:4]!r}; it must begin with {MAGIC!r}"
        )
    offset = 8 + int.from_bytes(answer[4:8], "little")
    header = json.loads(answer[8:offset])
    columns = {"row": np.repeat(header["rows"], header["counts"])}
    for name, dtype in COLUMNS:
        columns[name] = np.frombuffer(answer, dtype=dtype, count=header["n"], offset=offset)
        offset += columns[name].nbytes
    return header, columns
