"""The image of what tiles do, as bytes: /timeline/device/tiles.

    offset  bytes  what
    0       4      "TSB1"
    4       4      u32: length of the header H, a multiple of 8
    8       H      header: JSON in UTF-8, padded with spaces
    8 + H          rows * columns bytes, row by row

The header holds `window`, `tiles` (the first tile of each row, and one behind the last), `columns`,
`by_step` and `activities`: (token, words). A byte is 16 * activity + share in 15ths; NOTHING where
nothing was executed.
"""

from __future__ import annotations

import json

import numpy as np

from dashboard.store import Report
from pva.analysis.execution.tile_activity import ACTIVITIES, tile_activity
from pva.plot.theme import step_words

MAGIC = b"TSB1"
NOTHING = 0xFF
MAX_ROWS, MAX_COLUMNS = 128, 720  # so that an answer stays below 100 kB
WORDS = [
    ("line" if kind == "wait" else f"step-{kind}",
     "Waiting and sync" if kind == "wait" else step_words(kind))
    for kind in ACTIVITIES
]  # fmt: skip


def tiles_answer(
    report: Report, window: tuple[int, int], size: tuple[int, int], tiles: tuple[int, int] | None
) -> bytes:
    """Pack what tiles do in a window, `size` columns and rows large; raises PvaError."""
    columns, rows = (
        min(max(requested, 1), most)
        for requested, most in zip(size, (MAX_COLUMNS, MAX_ROWS), strict=True)
    )
    run, _ = report.whole  # only there clocks are kept
    result = tile_activity(run, *window, columns=columns, rows=rows, tiles=tiles)
    activity = result.shares.argmax(axis=0)
    share = np.take_along_axis(result.shares, activity[None], axis=0)[0]
    cells = 16 * activity + np.rint(15 * np.clip(share, 0, 1)).astype(np.int64)
    cells = np.where(share > 0, cells, NOTHING).astype(np.uint8)
    header = {
        "window": window,
        "tiles": result.tiles.tolist(),
        "columns": columns,
        "by_step": result.by_step,
        "activities": WORDS,
    }
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return MAGIC + len(head).to_bytes(4, "little") + head + cells.tobytes()
