"""The sections Target, Graph and Memory of the profile summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pva.analysis.execution import exchanges
from pva.analysis.memory import totals as memory
from pva.summary.layout import descending, histogram, left, names, right
from pva.units import KILOBYTE, MEGABYTE

if TYPE_CHECKING:
    from pva.report import Report

TARGET_COLUMN = 26
COUNT_END = 38
CATEGORY_END = 59
VERTEX_END = 47
TILES_SHOWN = 5

# The order of the sample; what it does not show stands beside what is like it.
CATEGORY_ORDER = (
    "variable", "constant", "multiple", "outputEdge", "message", "hostMessage", "globalMessage",
    "rearrangement", "hostExchangePacketHeader", "globalExchangePacketHeader", "controlId",
    "controlTable", "instrumentationResults", "stack", "sharedDataStorage", "vertexInstanceState",
    "copyDescriptor", "vectorListDescriptor", "vertexFieldData", "controlCode",
    "sharedCodeStorage", "vertexCode", "internalExchangeCode", "globalExchangeCode",
    "hostExchangeCode",
)  # fmt: skip
VERTEX_PARTS = (
    ("Internal vertex state", "vertex_data"),
    ("Edge pointers", "edge_pointers"),
    ("Copy pointers", "copy_pointers"),
    ("Padding", "padding"),
    ("Descriptors", "descriptors"),
)
VERTEX_MEMORY = (
    "vertex_types",
    *(f"memory_by_vertex_type_{part}" for _, part in (*VERTEX_PARTS, ("", "code"), ("", "total"))),
)


def target_lines(report: Report) -> Iterator[str]:
    """Write the machine."""
    target = {name: values.tolist()[0] for name, values in report.dataset.table("target").items()}
    replicas = max(target["num_replicas"], 1)
    changed = [("Machine", target["machine"]), ("Differences", target["differences"])]
    rows = (
        *(changed if target["differences"] else ()),
        ("Number of IPUs", f"{target['num_ipus']:,}"),
        ("Tiles per IPU", f"{target['tiles_per_ipu']:,}"),
        ("Total Tiles", f"{target['num_tiles']:,}"),
        ("Memory Per-Tile", f"{target['bytes_per_tile'] / KILOBYTE:,.1f} kB"),
        ("Total Memory", _memory(target["total_memory"])),
        ("Clock Speed (approx)", f"{target['clock_frequency'] / 1e6:,.1f} MHz"),
        ("Number of Replicas", f"{replicas:,}"),
        ("IPUs per Replica", f"{target['num_ipus'] // replicas:,}"),
        ("Tiles per Replica", f"{target['num_tiles'] // replicas:,}"),
        ("Memory per Replica", _memory(target["total_memory"] / replicas)),
    )
    yield "Target:"
    yield from (left(2, label, value, TARGET_COLUMN) for label, value in rows)


def _memory(size: float) -> str:
    """Write a memory in MB as the sample does, one below a megabyte in kB."""
    if size < MEGABYTE:
        return f"{size / KILOBYTE:,.1f} kB"
    return f"{size / MEGABYTE:,.1f} MB"


def graph_lines(report: Report) -> Iterator[str]:
    """Write how large the graph is."""
    yield "Graph:"
    for label, column in (
        ("Number of vertices", "num_vertices"),
        ("Number of edges", "num_edges"),
        ("Number of variables", "num_vars"),
        ("Number of compute sets", "num_compute_sets"),
    ):
        yield right(2, label, report.dataset.value("graph", column), COUNT_END)


def optimization_lines(report: Report) -> Iterator[str]:
    """Write what the compiler says about its own work."""
    yield "Optimization Details:"
    metrics, values = (report.dataset.column("optimization_info", c) for c in ("name", "value"))
    for metric, value in zip(metrics, values, strict=True):
        yield left(2, metric, f"{value:,.10g}", COUNT_END)


def exchange_instruction_lines(report: Report) -> Iterator[str]:
    """Write the code of all internal exchanges by kind of instruction."""
    yield "Exchange Instruction Breakdown:"
    sums = exchanges.exchange_code_sums(report)
    total = sums.pop("total")
    for kind, size in sums.items():
        if size:
            yield right(2, kind.replace("_", " ").title(), size, COUNT_END, " B")
    yield right(2, "Total", total, COUNT_END, " B")


def memory_lines(report: Report) -> Iterator[str]:
    """Write the memory of all IPUs; of a replicated graph, that of one replica."""
    replicas = int(report.dataset.value("target", "num_replicas"))
    if replicas > 1:
        yield f"Memory of one of {replicas:,} replicas:"
        yield from _usage_lines(report, replica=0)
    else:
        yield "Memory on all IPUs:"
        yield from _usage_lines(report)


def ipu_memory_lines(report: Report) -> Iterator[str]:
    """Write the memory of each IPU; of a replicated graph, those of one replica."""
    for ipu in range(report.dataset.of_replica("num_ipus")):
        if ipu:
            yield ""
        yield f"Memory on IPU {ipu}:"
        yield from _usage_lines(report, ipu=ipu)


def _usage_lines(
    report: Report, *, ipu: int | None = None, replica: int | None = None
) -> Iterator[str]:
    yield "Memory Usage:"
    usage = memory.memory_usage(report, ipu=ipu, replica=replica)
    yield "  Total:"
    yield right(4, "Including Gaps", usage.including_gaps, COUNT_END, " B")
    yield "    Excluding Gaps:"
    yield "      By Memory Region:"
    yield right(8, "Non-interleaved", usage.non_interleaved, COUNT_END, " B")
    yield right(8, "Interleaved", usage.interleaved, COUNT_END, " B")
    yield right(8, "Overflowed", usage.overflowed, COUNT_END, " B")
    yield right(6, "Total", usage.total, COUNT_END, " B")
    yield "      By Data Type:"
    yield "        Not Overlapped"
    yield from _category_lines(usage.not_overlapped_by_category)
    yield right(10, "Total", usage.not_overlapped, CATEGORY_END, " B")
    yield "        Overlapped"
    yield from _category_lines(usage.overlapped_by_category)
    yield right(10, "Total", usage.overlapped, CATEGORY_END, " B")
    yield right(10, "Total After Overlapping", usage.after_overlapping, CATEGORY_END, " B")
    yield from _vertex_lines(report, ipu, replica)
    yield ""
    yield ""
    yield "  By Tile (Excluding Gaps):"
    columns = memory.histogram_columns(report, ipu=ipu, replica=replica)
    rows = (values.tolist() for values in columns.values())
    yield from histogram(list(zip(*rows, strict=True)))
    yield ""
    yield from _fullest_lines(report, ipu, replica)


def _category_lines(categories: dict[str, int]) -> Iterator[str]:
    for category in CATEGORY_ORDER:
        if category in categories:
            label = memory.category_label(category)
            yield right(12, label, categories[category], CATEGORY_END, " B")


def _vertex_lines(report: Report, ipu: int | None, replica: int | None) -> Iterator[str]:
    if not all(map(report.dataset.has, VERTEX_MEMORY)):
        yield "      Vertex Data: this report has no memory by vertex type"
        return
    table = memory.vertex_type_columns(report, ipu=ipu, replica=replica)
    parts = {part: int(table[part].sum()) for _, part in VERTEX_PARTS}
    yield f"      Vertex Data ({sum(parts.values()):,}B):"
    yield "        By Category:"
    yield from (right(10, label, parts[part], VERTEX_END, " B") for label, part in VERTEX_PARTS)
    yield "        By Type:"
    rows = list(zip(table["vertex_type"].tolist(), table["total"].tolist(), strict=True))
    yield from names(10, descending(rows, 1), gap=15, unit=" B")


def _fullest_lines(report: Report, ipu: int | None, replica: int | None) -> Iterator[str]:
    overview = memory.memory_overview(report, ipu=ipu, replica=replica)
    for label, size, tile in (
        ("Including", overview.fullest_bytes, overview.fullest_tile),
        ("Excluding", overview.fullest_bytes_excluding_gaps, overview.fullest_tile_excluding_gaps),
    ):
        kilobytes = f"{size / KILOBYTE:,.1f} K"
        yield f"    Maximum ({label} Gaps): {size:,} ({kilobytes}) on tile {tile}"
    out = f"    {overview.tiles_out_of_memory:,} tile(s) out of memory"
    yield out if overview.code_counted else f"{out}, without code"
    if not overview.code_counted:
        yield f"    Code was not counted: {memory.COUNT_CODE}"
    if overview.tiles_out_of_memory:
        yield from _overfull_lines(report, overview.tiles_out_of_memory, ipu, replica)


def _overfull_lines(
    report: Report, overfull: int, ipu: int | None, replica: int | None
) -> Iterator[str]:
    """Write the few tiles that need the most, each with its three largest categories."""
    frame = memory.fullest_tiles(
        report, count=min(overfull, TILES_SHOWN), ipu=ipu, replica=replica
    ).frame()
    for tile, size, free in zip(frame["tile"], frame["bytes"], frame["free"], strict=True):
        yield f"      Tile {tile}: {size:,} B, {-free:,} B too many"
        categories = memory.memory_by_category(report, tile=int(tile)).frame().head(3)
        rows = list(zip(categories["label"], categories["total"].tolist(), strict=True))
        yield from names(8, rows, unit=" B")
