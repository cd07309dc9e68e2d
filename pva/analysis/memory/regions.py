"""How memory is used by region and by IPU, and what gaps leave unused. Bytes throughout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis
from pva.analysis.memory.totals import memory_by_tile
from pva.analysis.selection import tiles_of
from pva.analysis.table import Columns, largest_first, rows_of

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 40  # of its analyses in the catalogue
REGIONS = ("non_interleaved", "interleaved", "overflowed")


@analysis("region bytes:bytes share:fraction gaps:bytes tiles fullest_tile fullest_bytes:bytes")
def memory_by_region(
    report: Report, *, ipu: int | None = None, replica: int | None = None
) -> Columns:
    """Return the bytes in each region of the tiles' memory, and which tile has the most there.

    `gaps` are what alignment and fragmentation leave unused inside the region: `fullest_bytes`, of
    `fullest_tile`, are with them, `bytes` without. Overflowed is what does not fit. Raises
    SelectionError, NotRecordedError.
    """
    data = report.dataset
    tiles = tiles_of(report, ipu=ipu, replica=replica)
    used, gross = (
        np.array([data.column("memory_by_tile", f"{name}{suffix}")[tiles] for name in REGIONS])
        for suffix in ("", "_including_gaps")
    )
    fullest = gross.argmax(axis=1)
    total = used.sum(axis=1)
    return {
        "region": [name.replace("_", "-") for name in REGIONS],
        "bytes": total,
        "share": total / max(int(total.sum()), 1),
        "gaps": (gross - used).sum(axis=1),
        "tiles": (used > 0).sum(axis=1),
        "fullest_tile": np.where(gross.max(axis=1) > 0, tiles.start + fullest, -1),
        "fullest_bytes": gross.max(axis=1),
    }


@analysis(
    "ipu tiles bytes:bytes bytes_including_gaps:bytes share:fraction fullest_tile "
    "fullest_bytes:bytes free:bytes tiles_out_of_memory"
)
def memory_by_ipu(report: Report) -> Columns:
    """Return how full each IPU is, and its fullest tile, the IPU with the fullest tile first.

    `bytes` of data and `bytes_including_gaps`, of which `share` is taken of the IPU's memory; on
    its fullest tile `fullest_bytes` with gaps, of which `free` are left (negative: lacking).
    Raises NotRecordedError.
    """
    of_tile = memory_by_tile(report).arrays
    capacity = int(report.dataset.value("target", "bytes_per_tile"))
    # The first of an IPU, where tiles are sorted by what they need, is its fullest.
    by_need = rows_of(of_tile, np.argsort(-of_tile["total_including_gaps"], kind="stable"))
    ipus, fullest, place, tiles = np.unique(
        by_need["ipu"], return_index=True, return_inverse=True, return_counts=True
    )
    gross = summed(place, by_need["total_including_gaps"], len(ipus))
    columns = {
        "ipu": ipus,
        "tiles": tiles,
        "bytes": summed(place, by_need["total"], len(ipus)),
        "bytes_including_gaps": gross,
        "share": gross / np.maximum(tiles * capacity, 1),
        "fullest_tile": by_need["tile"][fullest],
        "fullest_bytes": by_need["total_including_gaps"][fullest],
        "free": by_need["free"][fullest],
        "tiles_out_of_memory": summed(place, by_need["free"] < 0, len(ipus)),
    }
    return largest_first(columns, "fullest_bytes")


@analysis(
    "tile ipu bytes:bytes gaps:bytes gap_share:fraction non_interleaved_gaps:bytes "
    "interleaved_gaps:bytes overflowed_gaps:bytes between_regions:bytes free:bytes"
)
def fragmentation(report: Report) -> Columns:
    """Return which tiles lose the most memory to gaps, the most first.

    `gaps` are the bytes that a tile needs beyond its data (`bytes`), `gap_share` their part of what
    it needs: inside the regions, from alignment and from holes that nothing fits, and
    `between_regions`, where data must lie interleaved and what is below it ends earlier. `free` is
    the rest of the tile's memory (negative: lacking). Raises NotRecordedError.
    """
    data = report.dataset
    inside = {
        f"{region}_gaps": data.column("memory_by_tile", f"{region}_including_gaps")
        - data.column("memory_by_tile", region)
        for region in REGIONS
    }
    used, needed = (
        data.column("memory_by_tile", name) for name in ("total", "total_including_gaps")
    )
    gaps = needed - used
    tiles = np.arange(len(used))
    columns = {
        "tile": tiles,
        "ipu": tiles // max(int(data.value("target", "tiles_per_ipu")), 1),
        "bytes": used,
        "gaps": gaps,
        "gap_share": gaps / np.maximum(needed, 1),
        **inside,
        "between_regions": gaps - sum(inside.values()),
        "free": data.value("target", "bytes_per_tile") - needed,
    }
    return largest_first(columns, "gaps")
