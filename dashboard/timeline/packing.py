"""The binary answer to the canvas, little-endian throughout.

    offset  bytes  what
    0       4      "TSV1"
    4       4      u32: length of the header H, a multiple of 8
    8       H      header: JSON in UTF-8, padded with spaces
    8 + H          columns of n rectangles, one after the other, in the order of COLUMNS:
                   begin f64, end f64, item i32, count u32, label u16, row u16, colour u8

The header holds `n`, `unit` (cycles or ns), `clock` (units a second), `extent` and `window` (each
begin and end), `rows` (lane, name, overview), `colours` (token, words) and `labels`: the texts that
`label` indexes. NO_LABEL marks a rectangle whose text found no room in the answer. `item` is the
number of an executed step or event, or -1.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.analysis.level_of_detail import Rectangles

MAGIC = b"TSV1"
COLUMNS = (
    ("begin", "<f8"), ("end", "<f8"), ("item", "<i4"), ("count", "<u4"), ("label", "<u2"),
    ("row", "<u2"), ("colour", "u1"),
)  # fmt: skip
NO_LABEL = 0xFFFF
LABEL_BYTES = 10_000  # of texts in one answer

Column = npt.NDArray[Any]


def pack(rectangles: Rectangles, texts: list[str], header: dict[str, Any]) -> bytes:
    """Write an answer; `texts` are all labels, of which those of the widest rectangles are sent."""
    labels, sent = _labels_in_room(rectangles, texts)
    columns = {name: getattr(rectangles, name) for name, _ in COLUMNS} | {"label": labels}
    document = header | {"n": len(labels), "labels": sent}
    head = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    body = b"".join(columns[name].astype(dtype).tobytes() for name, dtype in COLUMNS)
    return MAGIC + len(head).to_bytes(4, "little") + head + body


def _labels_in_room(rectangles: Rectangles, texts: list[str]) -> tuple[Column, list[str]]:
    """Number the labels of this answer anew, those of the widest rectangles first."""
    widest = np.argsort(rectangles.begin - rectangles.end, kind="stable")
    used, first = np.unique(rectangles.label[widest], return_index=True)
    numbers = np.full(len(texts), NO_LABEL, dtype=np.int64)
    sent: list[str] = []
    room = LABEL_BYTES
    for label in used[np.argsort(first)].tolist():
        room -= len(texts[label].encode()) + 3
        if room < 0:
            break
        numbers[label] = len(sent)
        sent.append(texts[label])
    return numbers[rectangles.label], sent


def unpack(answer: bytes) -> tuple[dict[str, Any], dict[str, Column]]:
    """Read an answer back, as timeline.js does."""
    if answer[:4] != MAGIC:
        raise ValueError(
            f"timeline answer: begins with {answer[:4]!r}; it must begin with {MAGIC!r}"
        )
    offset = 8 + int.from_bytes(answer[4:8], "little")
    header = json.loads(answer[8:offset])
    columns = {}
    for name, dtype in COLUMNS:
        columns[name] = np.frombuffer(answer, dtype=dtype, count=header["n"], offset=offset)
        offset += columns[name].nbytes
    return header, columns
