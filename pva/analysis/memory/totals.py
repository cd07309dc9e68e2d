"""Where the memory of the tiles goes. Bytes throughout; gaps are what alignment leaves unused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pva.analysis.columns import analysis
from pva.analysis.facts import Facts
from pva.analysis.selection import chosen, rows_wanted, tile_count, tiles_of
from pva.analysis.table import Columns, largest_first, rows_of
from pva.array_types import Values
from pva.errors import NotRecordedError
from pva.units import KILOBYTE

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 30  # of its analyses in the catalogue
Bytes = npt.NDArray[np.int64]

# Labels of the summary of the user guide ("Profile summary output"), in the order of the array
# memory_by_category; the ones that its sample does not show are spelt in the same manner.
CATEGORY_LABELS = {
    "constant": "Constants",
    "controlCode": "Control Code",
    "controlId": "Control IDs",
    "controlTable": "Control Table",
    "copyDescriptor": "Copy Descriptors",
    "globalExchangeCode": "Global Exchange Code",
    "globalExchangePacketHeader": "Global Exchange Packet Headers",
    "globalMessage": "Global Exchange Message Buffers",
    "hostExchangeCode": "Host Exchange Code",
    "hostExchangePacketHeader": "Host Exchange Packet Headers",
    "hostMessage": "Host Exchange Message Buffers",
    "instrumentationResults": "Instrumentation Results",
    "internalExchangeCode": "Internal Exchange Code",
    "message": "Internal Exchange Message Buffers",
    "multiple": "Multiple Categories",
    "outputEdge": "Output Edges",
    "rearrangement": "Data Rearrangement Buffers",
    "sharedCodeStorage": "Shared Code Storage",
    "sharedDataStorage": "Shared Data Storage",
    "stack": "Stack",
    "variable": "Variables",
    "vectorListDescriptor": "VectorList Descriptors",
    "vertexCode": "Vertex Code",
    "vertexFieldData": "Vertex Field Data",
    "vertexInstanceState": "Vertex Instances",
}
# The categories of each kind of code that operations and programs have.
CODE_CATEGORIES = {
    "control_code": ("controlCode",),
    "exchange_code": ("internalExchangeCode", "globalExchangeCode", "hostExchangeCode"),
    "vertex_code": ("vertexCode",),
}
COUNT_CODE = "run the program on a device with compileIPUCode"  # as Poplar's IPUModel has it
OVERLAPPED = "overlapped"
_OVERLAPPED_LABEL = "Overlapped variables"


@dataclass(frozen=True, slots=True)
class MemoryOverview(Facts):
    """How full the tiles are. Sizes in bytes, shares as fractions of one tile's memory.

    Without `code_counted` there is no code in them.
    """

    bytes_per_tile: int
    tiles: int
    total: int
    total_including_gaps: int
    fullest_tile: int
    fullest_bytes: int
    fullest_share: float
    fullest_tile_excluding_gaps: int
    fullest_bytes_excluding_gaps: int
    mean_bytes: float
    tiles_out_of_memory: int
    largest_category: str
    largest_category_bytes: int
    code_counted: bool


def category_label(category: str) -> str:
    """Return the words for a category, or for the column `overlapped` of `category_by_tile`."""
    return _OVERLAPPED_LABEL if category == OVERLAPPED else CATEGORY_LABELS[category]


def counts_code(report: Report) -> bool:
    """Return whether memory has code in it: what runs on a tile has some, so that none is no count.

    True where the report has no memory by category, as nothing speaks against it.
    """
    if not report.dataset.has("memory_by_category"):
        return True
    names = list(CATEGORY_LABELS)
    rows = [names.index(category) for kind in CODE_CATEGORIES.values() for category in kind]
    return report.dataset.kept(
        "counts code", lambda data: any(data.row("memory_by_category", row).any() for row in rows)
    )


def check_code(report: Report) -> None:
    """Raise NotRecordedError, which says how to count it, where code was not counted."""
    if not counts_code(report):
        raise NotRecordedError(report.dataset.name, "code was not counted", COUNT_CODE)


def code_if_counted(report: Report, code: Bytes) -> Bytes:
    """Return bytes of code as they are, -1 where code was not counted."""
    return code if counts_code(report) else np.full_like(code, -1)


@analysis(
    "tile ipu total:bytes total_including_gaps:bytes interleaved:bytes non_interleaved:bytes "
    "overflowed:bytes free:bytes",
    total="data without gaps, the sum of the regions",
)
def memory_by_tile(report: Report) -> Columns:
    """Return the bytes of each tile by region, and what is free (negative: out of memory).

    `total` is data without gaps, the sum of the regions; `free` is what gaps leave. In the order of
    the tiles. Raises NotRecordedError.
    """
    data = report.dataset
    columns = ("total", "total_including_gaps", "interleaved", "non_interleaved", "overflowed")
    values = {name: data.column("memory_by_tile", name) for name in columns}
    tiles = np.arange(len(values["total"]))
    return {
        "tile": tiles,
        "ipu": tiles // data.value("target", "tiles_per_ipu"),
        **values,
        "free": data.value("target", "bytes_per_tile") - values["total_including_gaps"],
    }


def _categories(report: Report) -> Bytes:
    """Return bytes by [category][overlap][tile], the regions added up."""
    array: Bytes = report.dataset.array("memory_by_category")
    by_overlap: Bytes = array.sum(axis=1)
    return by_overlap


@analysis(
    "category label not_overlapped:bytes overlapped:bytes total:bytes",
    label="the words for the category",
    total="not_overlapped and overlapped together",
)
def memory_by_category(report: Report, *, tile: int | None = None) -> Columns:
    """Return the bytes of each category, on all tiles or one, overlapped variables in full.

    `total` is the sum of `not_overlapped` and `overlapped`, each item in full: with overlapped
    variables, categories add up to more than the tiles hold. Those not in use are left out;
    the largest stand first. Raises SelectionError, NotRecordedError.
    """
    if tile is None:
        values = _categories(report).sum(axis=2)
    else:
        place = chosen("tile", tile, tile_count(report))
        values = report.dataset.on_tiles("memory_by_category", place).sum(axis=1)
    columns = {
        "category": list(CATEGORY_LABELS),
        "label": list(CATEGORY_LABELS.values()),
        "not_overlapped": values[:, 0],
        "overlapped": values[:, 1],
        "total": values.sum(axis=1),
    }
    return largest_first(rows_of(columns, columns["total"] > 0), "total")


def _in_place(report: Report) -> Bytes:
    """Return bytes by [category][tile] that nothing overlaps, and last the overlapped ones.

    The rows of a tile add up to its total. Computed once a report.
    """
    data = report.dataset

    def make(_: object) -> Bytes:
        alone = _categories(report)[:, 0, :]
        shared = data.column("memory_by_tile", "total") - alone.sum(axis=0)
        rows = np.vstack([alone, shared])
        rows.flags.writeable = False
        return rows

    return data.kept("bytes in place", make)


@analysis("tile *:bytes overlapped:bytes", index="tile", **{"*": "bytes of the category"})
def category_by_tile(report: Report) -> Columns:
    """Return the bytes of each tile by category, largest first; a row adds up to its total.

    The column `overlapped` is the memory of overlapped variables, which are not live at the same
    time: it has no single category. The other columns are the bytes that nothing overlaps. `tile`
    is the index of the rows.
    Raises NotRecordedError.
    """
    values = _in_place(report)
    totals = values.sum(axis=1)
    order = [row for row in np.argsort(-totals, kind="stable").tolist() if totals[row] > 0]
    names = [*CATEGORY_LABELS, OVERLAPPED]
    by_category = {names[row]: values[row] for row in order}
    return {"tile": np.arange(values.shape[1]), **by_category}


@analysis(
    "bytes_per_tile:bytes tiles total:bytes total_including_gaps:bytes fullest_tile "
    "fullest_bytes:bytes fullest_share:fraction fullest_tile_excluding_gaps "
    "fullest_bytes_excluding_gaps:bytes mean_bytes:bytes tiles_out_of_memory largest_category "
    "largest_category_bytes:bytes code_counted"
)
def memory_overview(
    report: Report, *, ipu: int | None = None, replica: int | None = None
) -> MemoryOverview:
    """Return how full the tiles are, which one is fullest, and what takes the most.

    Bytes, with gaps unless it says without; shares are of one tile's memory. Raises SelectionError,
    NotRecordedError.
    """
    data = report.dataset
    tiles = tiles_of(report, ipu=ipu, replica=replica)
    total = data.column("memory_by_tile", "total")[tiles]
    gaps = data.column("memory_by_tile", "total_including_gaps")[tiles]
    capacity = int(data.value("target", "bytes_per_tile"))
    fullest, fullest_data = int(gaps.argmax()), int(total.argmax())
    categories = _in_place(report)[:, tiles].sum(axis=1)
    largest = int(categories.argmax())
    return MemoryOverview(
        bytes_per_tile=capacity,
        tiles=len(total),
        total=int(total.sum()),
        total_including_gaps=int(gaps.sum()),
        fullest_tile=tiles.start + fullest,
        fullest_bytes=int(gaps[fullest]),
        fullest_share=float(gaps[fullest] / max(capacity, 1)),
        fullest_tile_excluding_gaps=tiles.start + fullest_data,
        fullest_bytes_excluding_gaps=int(total[fullest_data]),
        mean_bytes=float(gaps.mean()),
        tiles_out_of_memory=int((gaps > capacity).sum()),
        largest_category=[*CATEGORY_LABELS, OVERLAPPED][largest],
        largest_category_bytes=int(categories[largest]),
        code_counted=counts_code(report),
    )


@analysis("tile ipu bytes:bytes free:bytes", bytes="bytes that the tile needs, gaps included")
def fullest_tiles(
    report: Report, *, count: int = 10, ipu: int | None = None, replica: int | None = None
) -> Columns:
    """Return the tiles that need the most memory, and how much is free there (negative: lacking).

    `bytes` and `free`, gaps included, of `count` tiles. Raises SelectionError, NotRecordedError.
    """
    by_tile = memory_by_tile(report).arrays
    columns = {
        "tile": by_tile["tile"],
        "ipu": by_tile["ipu"],
        "bytes": by_tile["total_including_gaps"],
        "free": by_tile["free"],
    }
    ordered = largest_first(rows_of(columns, tiles_of(report, ipu=ipu, replica=replica)), "bytes")
    return rows_of(ordered, slice(rows_wanted(count)))


@dataclass(frozen=True, slots=True)
class MemoryUsage(Facts):
    """The bytes on a set of tiles, taken apart. `*_by_category` holds the categories in use."""

    including_gaps: int
    total: int
    non_interleaved: int
    interleaved: int
    overflowed: int
    not_overlapped_by_category: dict[str, int]
    overlapped_by_category: dict[str, int]

    @property
    def not_overlapped(self) -> int:
        """Return the bytes that nothing overlaps."""
        return sum(self.not_overlapped_by_category.values())

    @property
    def overlapped(self) -> int:
        """Return the bytes of overlapped items, each counted in full."""
        return sum(self.overlapped_by_category.values())

    @property
    def after_overlapping(self) -> int:
        """Return the memory that the overlapped items take together."""
        return self.total - self.not_overlapped


@analysis(
    "including_gaps:bytes total:bytes non_interleaved:bytes interleaved:bytes overflowed:bytes "
    "not_overlapped_by_category:bytes overlapped_by_category:bytes"
)
def memory_usage(
    report: Report, *, ipu: int | None = None, replica: int | None = None
) -> MemoryUsage:
    """Add up the bytes by region and by category, on all tiles, one IPU or one replica.

    As in the profile summary: overlapped variables count in full. Raises SelectionError,
    NotRecordedError.
    """
    tiles = tiles_of(report, ipu=ipu, replica=replica)

    def region(name: str) -> int:
        return int(report.dataset.column("memory_by_tile", name)[tiles].sum())

    categories = _categories(report)[:, :, tiles].sum(axis=2).tolist()
    alone, shared = (
        {name: row[overlap] for name, row in zip(CATEGORY_LABELS, categories, strict=True)}
        for overlap in (0, 1)
    )
    return MemoryUsage(
        including_gaps=region("total_including_gaps"),
        total=region("total"),
        non_interleaved=region("non_interleaved"),
        interleaved=region("interleaved"),
        overflowed=region("overflowed"),
        not_overlapped_by_category={name: size for name, size in alone.items() if size},
        overlapped_by_category={name: size for name, size in shared.items() if size},
    )


VERTEX_PARTS = ("vertex_data", "edge_pointers", "copy_pointers", "padding", "descriptors")


@analysis(
    "vertex_type vertex_data:bytes edge_pointers:bytes copy_pointers:bytes padding:bytes "
    "descriptors:bytes code:bytes total:bytes",
    total="bytes of fields, pointers and code",
)
def memory_by_vertex_type(
    report: Report,
    *,
    ipu: int | None = None,
    replica: int | None = None,
    tile: int | None = None,
) -> Columns:
    """Return the bytes of each vertex type: its code once a tile, its data by part, largest first.

    Summed over all tiles, those of an IPU or one; `total` is the sum of the other columns, of which
    `code` is -1 where it was not counted. Raises SelectionError, NotRecordedError.
    """
    return vertex_type_columns(report, ipu=ipu, replica=replica, tile=tile)


def vertex_type_columns(
    report: Report,
    *,
    ipu: int | None = None,
    replica: int | None = None,
    tile: int | None = None,
) -> dict[str, Values]:
    """Return the columns of `memory_by_vertex_type`, for which nothing imports pandas."""
    tiles = tiles_of(report, ipu=ipu, replica=replica, tile=tile)
    parts = {
        part: report.dataset.array(f"memory_by_vertex_type_{part}")[:, tiles].sum(axis=1)
        for part in (*VERTEX_PARTS, "code", "total")
    }
    parts["code"] = code_if_counted(report, parts["code"])
    names = report.dataset.column("vertex_types", "name")
    total = parts["total"]
    rows = np.argsort(-total, kind="stable")[: np.count_nonzero(total > 0)]
    return {name: values[rows] for name, values in ({"vertex_type": names} | parts).items()}


@analysis(
    "compute_set name vertices state:bytes vertex_data:bytes edge_pointers:bytes "
    "copy_pointers:bytes padding:bytes descriptors:bytes code:bytes"
)
def memory_by_compute_set(report: Report) -> Columns:
    """Return which compute sets' vertices take the most memory, on all tiles, largest first.

    `state` is what is held for its `vertices` alone: the sum of the columns after it. `code` counts
    each vertex type once a tile; other compute sets share it, so that it cannot be added up; -1
    where it was not counted. Bytes. Raises NotRecordedError.
    """
    data = report.dataset
    name = "memory_by_compute_set"
    parts = {part: data.row_sums(f"{name}_{part}") for part in VERTEX_PARTS}
    vertices = np.zeros(len(data.column("compute_sets", "name")), dtype=np.int64)
    rows, counts = (data.column("compute_set_vertices", c) for c in ("compute_set", "count"))
    np.add.at(vertices, rows, counts)
    table = {
        "compute_set": np.arange(len(vertices)),
        "name": data.column("compute_sets", "name"),
        "vertices": vertices,
        "state": sum(parts.values()),
        **parts,
        "code": code_if_counted(report, data.row_sums(f"{name}_code")),
    }
    return largest_first(table, "state", "code")


_MAX_BINS = 4096


@analysis("low_kb:kB high_kb:kB tiles")
def memory_histogram(
    report: Report, *, ipu: int | None = None, replica: int | None = None
) -> Columns:
    """Count the tiles by the kilobytes of data (without gaps) that they hold.

    A row is 1 kB wide, or the power of two that keeps the table below 4,097 rows. Raises
    SelectionError, NotRecordedError.
    """
    return histogram_columns(report, ipu=ipu, replica=replica)


def histogram_columns(
    report: Report, *, ipu: int | None = None, replica: int | None = None
) -> dict[str, npt.NDArray[np.generic]]:
    """Return the columns of `memory_histogram`, for which nothing imports pandas."""
    tiles = tiles_of(report, ipu=ipu, replica=replica)
    kilobytes = report.dataset.column("memory_by_tile", "total")[tiles] // KILOBYTE
    lowest, highest = (int(kilobytes.min()), int(kilobytes.max())) if len(kilobytes) else (0, -1)
    width = 1 << max((highest - lowest) // _MAX_BINS, 0).bit_length()
    low = np.arange(lowest // width, highest // width + 1) * width
    counts = np.bincount((kilobytes // width) - lowest // width, minlength=len(low))
    return {"low_kb": low, "high_kb": low + width, "tiles": counts}
