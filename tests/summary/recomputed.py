"""Every line of the profile summary worked out again from the columns and arrays of a report.

Only words are taken from the code under test. A line here has single spaces and no stars: how lines
are laid out is what the sample of the guide tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from pva import schema
from pva.analysis.memory.totals import CATEGORY_LABELS
from pva.data.dataset import Dataset
from pva.summary.graph_summary import CATEGORY_ORDER

PARTS = (
    ("Internal vertex state", "vertex_data"), ("Edge pointers", "edge_pointers"),
    ("Copy pointers", "copy_pointers"), ("Padding", "padding"), ("Descriptors", "descriptors"),
)  # fmt: skip
ACTIVITIES = (
    ("compute cycles (including idle threads)", "compute"),
    ("compute cycles (excluding idle threads)", "active_compute"),
    ("IPU exchange cycles", "do_exchange"), ("global exchange cycles", "global_exchange"),
    ("host exchange cycles", "stream_copy"),
    ("shared structure copy cycles", "copy_shared_structure"), ("sync cycles", "sync"),
)  # fmt: skip
KB, MB = 1024, 1024 * 1024


def plain(text: str) -> list[str]:
    """Return the lines that say something, with single spaces and without stars."""
    lines = (" ".join(line.replace("*", " ").split()) for line in text.splitlines())
    return [line for line in lines if line]


def lines(data: Dataset) -> Iterator[str]:
    """Return the lines of a summary with all options."""
    yield from _target(data)
    yield from _graph(data)
    tiles = int(data.value("target", "num_tiles")) // _replicas(data)
    whole = f"one of {_replicas(data)} replicas" if _replicas(data) > 1 else ""
    yield f"Memory of {whole}:" if whole else "Memory on all IPUs:"
    yield from _memory(data, slice(0, tiles))
    each = int(data.value("target", "tiles_per_ipu"))
    for ipu in range(tiles // each):
        yield f"Memory on IPU {ipu}:"
        yield from _memory(data, slice(each * ipu, each * (ipu + 1)))
    yield from _liveness(data)
    yield from _execution(data, tiles)
    yield "Steps"
    for step in range(data.length("steps")):
        yield from _step(data, step, tiles)


def _replicas(data: Dataset) -> int:
    return max(int(data.value("target", "num_replicas")), 1)


def _size(size: float) -> str:
    return f"{size / MB:,.1f} MB" if size >= MB else f"{size / KB:,.1f} kB"


def _target(data: Dataset) -> Iterator[str]:
    one, replicas = data.table("target"), _replicas(data)
    memory = one["bytes_per_tile"][0] * one["num_tiles"][0]
    yield "Target:"
    if one["differences"][0]:
        yield f"Machine: {one['machine'][0]}"
        yield f"Differences: {one['differences'][0]}"
    yield f"Number of IPUs: {one['num_ipus'][0]:,}"
    yield f"Tiles per IPU: {one['tiles_per_ipu'][0]:,}"
    yield f"Total Tiles: {one['num_ipus'][0] * one['tiles_per_ipu'][0]:,}"
    yield f"Memory Per-Tile: {one['bytes_per_tile'][0] / KB:,.1f} kB"
    yield f"Total Memory: {_size(memory)}"
    yield f"Clock Speed (approx): {one['clock_frequency'][0] / 1e6:,.1f} MHz"
    yield f"Number of Replicas: {replicas}"
    yield f"IPUs per Replica: {one['num_ipus'][0] // replicas:,}"
    yield f"Tiles per Replica: {one['num_tiles'][0] // replicas:,}"
    yield f"Memory per Replica: {_size(memory / replicas)}"


def _graph(data: Dataset) -> Iterator[str]:
    yield "Graph:"
    yield f"Number of vertices: {data.column('compute_set_vertices', 'count').sum():,}"
    yield f"Number of edges: {data.value('graph', 'num_edges'):,}"
    yield f"Number of variables: {data.value('graph', 'num_vars'):,}"
    yield f"Number of compute sets: {data.length('compute_sets'):,}"
    yield "Optimization Details:"
    for name, value in zip(*data.table("optimization_info").values(), strict=True):
        yield f"{name}: {value:,.10g}"
    yield "Exchange Instruction Breakdown:"
    kinds = data.table("exchange_instructions")
    for kind in (*(k for k in kinds if k not in ("program", "total") and kinds[k].any()), "total"):
        yield f"{kind.replace('_', ' ').title()}: {kinds[kind].sum():,} B"


def _memory(data: Dataset, tiles: slice) -> Iterator[str]:
    by_tile = {name: values[tiles] for name, values in data.table("memory_by_tile").items()}
    total = int(by_tile["interleaved"].sum() + by_tile["non_interleaved"].sum())
    total += int(by_tile["overflowed"].sum())
    own, shared = data.array("memory_by_category")[..., tiles].sum(axis=(1, 3)).T
    yield from ("Memory Usage:", "Total:")
    yield f"Including Gaps: {by_tile['total_including_gaps'].sum():,} B"
    yield from ("Excluding Gaps:", "By Memory Region:")
    for region in ("non_interleaved", "interleaved", "overflowed"):
        yield f"{region.replace('_', '-').capitalize()}: {by_tile[region].sum():,} B"
    yield from (f"Total: {total:,} B", "By Data Type:", "Not Overlapped")
    yield from _categories(own)
    yield from (f"Total: {own.sum():,} B", "Overlapped")
    yield from _categories(shared)
    yield from (f"Total: {shared.sum():,} B", f"Total After Overlapping: {total - own.sum():,} B")
    yield from _vertex_data(data, tiles)
    yield from _tiles(data, by_tile, tiles.start)


def _categories(sizes: Any) -> Iterator[str]:
    for name in CATEGORY_ORDER:
        if size := sizes[schema.CATEGORIES.index(name)]:
            yield f"{CATEGORY_LABELS[name]}: {size:,} B"


def _vertex_data(data: Dataset, tiles: slice) -> Iterator[str]:
    parts = {p: data.array(f"memory_by_vertex_type_{p}")[:, tiles].sum(axis=1) for _, p in PARTS}
    code = data.array("memory_by_vertex_type_code")[:, tiles].sum(axis=1)
    yield f"Vertex Data ({sum(values.sum() for values in parts.values()):,}B):"
    yield "By Category:"
    yield from (f"{label}: {parts[part].sum():,} B" for label, part in PARTS)
    yield "By Type:"
    totals = zip(code + sum(parts.values()), data.column("vertex_types", "name"), strict=True)
    for size, name in sorted(totals, key=lambda row: (-row[0], row[1])):
        if size:
            yield f"{' '.join(name.replace('*', ' ').split())} {size:,} B"


def _tiles(data: Dataset, by_tile: dict[str, Any], first: int) -> Iterator[str]:
    yield "By Tile (Excluding Gaps):"
    yield "Range (KB) Histogram (Excluding Gaps) Count (tiles)"
    tiles = Counter((by_tile["total"] // KB).tolist())
    for low in range(min(tiles), max(tiles) + 1):
        yield f"{low} - {low + 1} {tiles[low]:,}"
    for word, column in (("Including", "total_including_gaps"), ("Excluding", "total")):
        sizes = by_tile[column].tolist()
        most = max(sizes)
        tile = first + sizes.index(most)
        yield f"Maximum ({word} Gaps): {most:,} ({most / KB:,.1f} K) on tile {tile}"
    capacity = int(data.value("target", "bytes_per_tile"))
    needed = by_tile["total_including_gaps"].tolist()
    lacking = [tile for tile, size in enumerate(needed) if size > capacity]
    codes = [row for row, word in enumerate(schema.CATEGORIES) if word.endswith("Code")]
    counted = data.array("memory_by_category")[codes].sum() > 0
    yield f"{len(lacking):,} tile(s) out of memory{'' if counted else ', without code'}"
    if not counted:
        yield "Code was not counted: run the program on a device with compileIPUCode"
    for tile in sorted(lacking, key=lambda tile: -needed[tile])[:5]:
        yield f"Tile {first + tile}: {needed[tile]:,} B, {needed[tile] - capacity:,} B too many"
        held = data.array("memory_by_category")[..., first + tile].sum(axis=(1, 2)).tolist()
        for row in sorted((row for row, size in enumerate(held) if size), key=lambda r: -held[r])[
            :3
        ]:
            yield f"{CATEGORY_LABELS[schema.CATEGORIES[row]]} {held[row]:,} B"


def _named(rows: Any) -> Iterator[str]:
    sizes: Counter[str] = Counter()
    for name, size in rows:
        sizes[name or "<anon>"] += size
    yield from (f"{name} {sizes[name]:,}" for name in sorted(sizes))


def _liveness(data: Dataset) -> Iterator[str]:
    always, steps = int(data.array("always_live_bytes").sum()), data.table("liveness_steps")
    yield "Variable Storage Liveness: All tiles"
    yield from (f"Always-live bytes: {always:,}", "Always-live variables:")
    yield from _named(zip(*data.table("always_live_variables").values(), strict=True))
    yield f"Maximum live bytes (including always-live): {always + max(steps['bytes']):,}"
    types, names = data.texts("programs", "type"), data.column("programs", "name")
    lives, known = data.table("variable_intervals"), data.table("variables")
    for step, program in enumerate(steps["program"].tolist()):
        yield f"{types[program]}: {names[program]}" if names[program] else types[program]
        if types[program] == "Sequence":
            continue
        yield f"Live Bytes (excluding always-live): {steps['bytes'][step]:,}"
        here = lives["variable"][(lives["begin"] <= step) & (lives["end"] > step)]
        live = [(known["name"][v], int(known["bytes"][v])) for v in here if known["bytes"][v]]
        if live:
            yield "Live Vars (excluding always-live):"
            yield from _named(live)


def _execution(data: Dataset, tiles: int) -> Iterator[str]:
    spent = {name: int(values[0]) for name, values in data.table("tile_cycles").items()}
    cycles = int(data.value("execution", "cycles"))
    microseconds = cycles / data.value("target", "clock_frequency") * 1e6
    yield "Execution:"
    yield f"Total cycles: {cycles:,} (approx {microseconds:,.1f} microseconds)"
    yield from (f"Total {words}: {spent[name]:,}" for words, name in ACTIVITIES)
    yield f"Total tile balance: {100 * spent['compute'] / (cycles * tiles):.1f}%"
    yield f"Total thread balance: {100 * spent['active_compute'] / spent['compute']:.1f}%"
    runs = data.table("runs")
    whole = int((runs["end_step"] > runs["first_step"]).sum())
    if whole < len(runs["end_step"]):
        yield f"Runs recorded in full, of all runs: {whole:,} of {len(runs['end_step']):,}"
    yield "Cycles by vertex type:"
    cycles_by_type = data.array("compute_set_active_cycles_by_vertex_type").sum(axis=0)
    counts = np.zeros(len(cycles_by_type), dtype=int)
    vertices = data.table("compute_set_vertices")
    for vertex_type, count in zip(vertices["vertex_type"], vertices["count"], strict=True):
        counts[vertex_type] += count
    yield from _vertices(data, zip(cycles_by_type, range(len(counts)), counts, strict=True))


def _vertices(data: Dataset, rows: Any) -> Iterator[str]:
    names = data.column("vertex_types", "name")
    found = sorted((-cycles, names[row], count) for cycles, row, count in rows)
    for cycles, name, count in found:
        yield f"{' '.join(name.replace('*', ' ').split())} ({count} instances): {-cycles:,}"


def _step(data: Dataset, step: int, tiles: int) -> Iterator[str]:
    row = {name: values[step] for name, values in data.table("steps").items()}
    kind = data.texts("steps", "type")[step]
    if kind == "Sync":
        yield f"--- {data.texts('steps', 'sync_type')[step]} Sync ---"
        return
    name = data.column("programs", "name")[row["program"]]
    title = f"{kind} (cycles {row['cycles_from']:,} - {row['cycles_to']:,})"
    yield f"{title}: {name}" if name else title
    hidden = int(row["cycles"] - (row["cycles_to"] - row["cycles_from"]))
    over = f" ({hidden:,} overlapped with previous)"
    computes = kind == "OnTileExecute"
    yield f"Cycles: {row['cycles']:,}{over if computes or kind == 'DoExchange' else ''}"
    if kind in ("StreamCopyBegin", "StreamCopyEnd"):
        return
    yield f"Active Tiles: {row['active_tiles']:,} / {tiles:,}"
    if computes:
        yield f"Thread Balance: {100 * row['thread_balance']:.1f}%"
    yield f"Tile Balance: {100 * row['tile_balance']:.1f}%"
    yield f"Active Tile Balance: {100 * row['active_tile_balance']:.1f}%"
    if not computes:
        yield f"Total Data: {row['total_data']:,}"
        yield f"Data Balance (mean / max data per tile): {100 * row['data_balance']:.1f}%"
        return
    here = data.column("programs", "compute_set")[row["program"]]
    vertices = data.table("compute_set_vertices")
    mine = np.flatnonzero(vertices["compute_set"] == here)
    cycles = data.array("compute_set_active_cycles_by_vertex_type")[here]
    if len(mine):
        yield "By vertex type:"
        types, counts = vertices["vertex_type"][mine], vertices["count"][mine]
        yield from _vertices(data, zip(cycles[types], types, counts, strict=True))
