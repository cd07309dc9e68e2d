"""A directory as `tilescope explore` leaves it, of points that are written down here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from pva.many.points import FIGURES
from tests.builders import write_report

MEMORY = 1000  # bytes of a tile
# batch, ipus, bytes on the fullest tile, samples a second, error
POINTS = (
    (1, 1, 500, 100.0, ""),
    (2, 1, 700, 180.0, ""),
    (4, 1, 1300, None, ""),
    (4, 2, 700, 150.0, ""),
    (8, 2, None, None, "killed: it took more than 1 GB"),
)


def write_explored(
    folder: Path, points: tuple[tuple[Any, ...], ...] = POINTS, reports: int = 2
) -> Path:
    """Write the table of points with keys k0, k1, ..., and reports of the first ones."""
    rows = [_row(number, *point) for number, point in enumerate(points)]
    frame = pd.DataFrame(rows).astype({"fits": "boolean"})
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(folder / "points.parquet", index=False)
    about = {"program": "m.onnx", "levers": {"batch": [], "ipus": [], "precision": []}, "space": 8}
    (folder / "exploration.json").write_text(json.dumps(about))
    for number in range(reports):
        write_report(folder / "reports" / f"k{number}")
    return folder


def _row(
    number: int, batch: int, ipus: int, fullest: int | None, rate: float | None, error: str
) -> dict[str, Any]:
    over = None if fullest is None else max(fullest - MEMORY, 0)
    figures: dict[str, Any] = dict.fromkeys(FIGURES, 0.0) | {
        "fits": None if fullest is None else not over, "fullest_tile": fullest, "over": over,
        "tile": 3, "bytes_per_tile": MEMORY, "samples_per_second": rate, "error": error,
        "step_name": "Conv", "live": "weights (800 bytes)", "step": 7, "latency": 1e-3,
    }  # fmt: skip
    levers = {"batch": batch, "ipus": ipus, "precision": "half"}
    return {"key": f"k{number}", **levers, **figures, "command": f"tilescope simulate -b {batch}"}
