"""Memory over the tiles or the IPUs, for plots and maps: broken down, in either order. Bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pva.analysis.attribution import summed
from pva.analysis.columns import analysis
from pva.analysis.memory.regions import REGIONS
from pva.analysis.memory.totals import CATEGORY_LABELS, category_by_tile
from pva.analysis.selection import SelectionError, several, tile_count
from pva.analysis.table import Columns, joined, rows_of
from pva.array_types import Integers
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 90  # of its analyses in the catalogue
BREAKDOWNS = ("none", "region", "category", "liveness")
UNITS = ("tile", "ipu")
ORDERS = ("software", "physical")
GAPS = ("included", "excluded")
MAP_COLUMNS = 16  # of tiles on an IPU: four columns of islands of four (schematic, not published)
GAPS_COLUMN = "gaps"


@analysis("tile *:bytes")
def memory_series(
    report: Report,
    *,
    breakdown: str = "none",
    per: str = "tile",
    order: str = "software",
    gaps: str = "included",
) -> Columns:
    """Return the bytes of every tile, or IPU, in the order of a plot, broken down.

    `tile` (or `ipu`), then the columns of the `breakdown`: none, region, category or liveness. They
    add up to what the tile holds, and with gaps `included` (else `excluded`) to what it needs;
    those of liveness to the most that is live at once, whatever the gaps. `per` is tile or ipu,
    `order` software or physical. Raises SelectionError, NotRecordedError.
    """
    for name, value, choices in (
        ("breakdown", breakdown, BREAKDOWNS), ("per", per, UNITS), ("order", order, ORDERS),
        ("gaps", gaps, GAPS),
    ):  # fmt: skip
        if value not in choices:
            raise SelectionError(f"{name} {value}", "not there", f"known: {', '.join(choices)}")
    columns = _COLUMNS[breakdown](report, gaps == "included")
    tiles = np.arange(tile_count(report))
    if per == "ipu":
        ipus = tiles // max(int(report.dataset.value("target", "tiles_per_ipu")), 1)
        count = int(ipus.max(initial=-1)) + 1
        sums = {name: summed(ipus, values, count) for name, values in columns.items()}
        return {"ipu": np.arange(count), **sums}
    places = hardware_order(report) if order == "physical" else tiles
    return {"tile": places, **{name: values[places] for name, values in columns.items()}}


def hardware_order(report: Report) -> npt.NDArray[np.int64]:
    """Return the tiles in the order in which they lie on the hardware, IPU by IPU."""
    count = tile_count(report)
    per_ipu = max(int(report.dataset.value("target", "tiles_per_ipu")), 1)
    tiles = np.arange(count)
    return np.lexsort((_physical(report, tiles, per_ipu), tiles // per_ipu))


def _physical(report: Report, tiles: Any, per_ipu: int) -> Any:
    data = report.dataset
    within = tiles % per_ipu
    return data.array("physical_tile")[within] if data.has("physical_tile") else within


def _with_gaps(report: Report, columns: dict[str, Any], included: bool) -> dict[str, Any]:
    if not included:
        return columns
    data, needed = (
        report.dataset.column("memory_by_tile", name) for name in ("total", "total_including_gaps")
    )
    return columns | {GAPS_COLUMN: needed - data}


def _whole(report: Report, included: bool) -> dict[str, Any]:
    name = "total_including_gaps" if included else "total"
    return {"total": report.dataset.column("memory_by_tile", name)}


def _regions(report: Report, included: bool) -> dict[str, object]:
    columns = {name: report.dataset.column("memory_by_tile", name) for name in REGIONS}
    return _with_gaps(report, columns, included)


def _by_category(report: Report, included: bool) -> dict[str, object]:
    frame = category_by_tile(report).frame()
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    return _with_gaps(report, columns, included)


def _by_liveness(report: Report, included: bool) -> dict[str, object]:
    del included
    data = report.dataset
    return {
        "always_live": data.array("always_live_bytes"),
        "not_always_live": data.array("not_always_live_max_bytes"),
    }


_COLUMNS = {
    "none": _whole,
    "region": _regions,
    "category": _by_category,
    "liveness": _by_liveness,
}


@analysis("tile *:bytes")
def variables_by_tile(report: Report, *, variables: tuple[int, ...] = ()) -> Columns:
    """Return the bytes of chosen variables on every tile, or of the four largest.

    `tile`, then a column `variable_N` for each, by its row in `largest_variables`. Raises
    SelectionError, NotRecordedError without the pieces of variables.
    """
    data = report.dataset
    sizes = data.column("variables", "bytes")
    rows = several("variable", variables, len(sizes))
    rows = rows or np.argsort(-sizes, kind="stable")[:4].tolist()
    count = tile_count(report)
    columns = {}
    for variable in rows:
        pieces = data.rows_where("variable_pieces", "variable", variable)
        tiles, sizes_on_tiles = (
            data.column("variable_pieces", name)[pieces] for name in ("tile", "bytes")
        )
        columns[f"variable_{variable}"] = summed(tiles, sizes_on_tiles, count)
    return {"tile": np.arange(count), **columns}


@analysis("tile ipu physical_tile column row bytes:bytes free:bytes")
def floor_plan(report: Report, *, category: str = "") -> Columns:
    """Lay the tiles out as on the chip, with the bytes of each, or of one category of its data.

    `column` and `row` count within the IPU, in hardware order along the columns: the order is the
    report's, that there are 16 columns is schematic. `bytes` include gaps unless a `category` is
    named; `free` is negative where the tile is out of memory. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    count = tile_count(report)
    per_ipu = max(int(data.value("target", "tiles_per_ipu")), 1)
    tiles = np.arange(count)
    physical = _physical(report, tiles, per_ipu)
    columns = MAP_COLUMNS if per_ipu >= MAP_COLUMNS * MAP_COLUMNS else max(int(np.sqrt(per_ipu)), 1)
    needed = data.column("memory_by_tile", "total_including_gaps")
    rows = -(-per_ipu // columns)
    return {
        "tile": tiles,
        "ipu": tiles // per_ipu,
        "physical_tile": physical,
        "column": physical // rows,
        "row": physical % rows,
        "bytes": _of_category(report, category) if category else needed,
        "free": int(data.value("target", "bytes_per_tile")) - needed,
    }


def _of_category(report: Report, category: str) -> object:
    """Return the bytes of a category by tile, overlapped items in full."""
    if category not in CATEGORY_LABELS:
        choices = ", ".join(CATEGORY_LABELS)
        raise SelectionError(f"category {category}", "not there", f"known: {choices}")
    row = list(CATEGORY_LABELS).index(category)
    return report.dataset.array("memory_by_category")[row].sum(axis=(0, 1))


@analysis(
    "tile address:bytes end:bytes bytes:bytes region name category first_step last_step kind "
    "shares",
    bytes="length in bytes",
    kind="piece of a variable, or gap",
)
def address_map(report: Report, *, tile: int) -> Columns:
    """Lay out what lies on a tile by address, and the gaps between.

    Pieces of variables as in `memory_map` (`kind` piece), and what no variable takes between them
    (`gap`). `shares` tells how many other pieces a piece overlaps: those are not live together.
    Code and vertex state have no addresses here and may fill gaps. Raises SelectionError,
    NotRecordedError.
    """
    from pva.analysis.memory.placement import memory_map

    pieces = memory_map(report, tile=tile).arrays
    begin, end = pieces["address"], pieces["end"]
    # Of pieces in the order of their begin: before which address all earlier ones have ended.
    reach = np.maximum.accumulate(end) if len(end) else end
    after = np.concatenate([[0], reach])[:-1] if len(end) else end
    hole = begin > after
    starts_before = np.searchsorted(begin, end, side="left")
    ended_before = np.searchsorted(np.sort(end), begin, side="right")
    whole: Columns = {**pieces, "kind": "piece", "shares": starts_before - ended_before - 1}
    gaps: Columns = {
        "tile": tile,
        "address": after[hole],
        "end": begin[hole],
        "bytes": (begin - after)[hole],
        "region": "",
        "name": "",
        "category": "",
        "first_step": -1,
        "last_step": -1,
        "kind": "gap",
        "shares": 0,
    }
    columns = joined((whole, gaps))
    return rows_of(columns, np.lexsort((columns["end"], columns["address"])))


def stacked_heights(frame: pd.DataFrame) -> Integers:
    """Add up the series of each row of a frame whose first column is its place."""
    return frame.iloc[:, 1:].sum(axis=1).to_numpy()
