"""Every table and every array of a report, declared once.

Writers, readers, frames, `docs/report-format.md` and the messages "which option records it" come from here.
Names of keys, nesting and index orders are those of the chapter "Profiling" of the Poplar and PopLibs user guide;
what that chapter leaves open is ours and additive. A new column is one line in the module of its table.
"""

from __future__ import annotations

from pva.schema.arrays import ARRAYS
from pva.schema.declaration import (
    BLOCKS_OPTION,
    COMPUTE_OPTION,
    DEBUG_OPTION,
    EXCHANGE_OPTION,
    EXECUTION_OPTION,
    GRAPH_OPTION,
    LOWERED_OPTION,
    MISSING,
    Array,
    Column,
    Document,
    Kind,
    Layout,
    Table,
    camel,
    snake,
)
from pva.schema.enums import (
    BLOCK_KINDS,
    CATEGORIES,
    EXCHANGE_INSTRUCTIONS,
    OVERLAPS,
    PROFILER_MODES,
    PROGRAM_TYPES,
    REGIONS,
    STEP_TYPES,
    SYNC_TYPES,
    TARGET_TYPES,
    TILE_SETS,
    VERTEX_MEMORY_PARTS,
    WRITTEN_TYPES,
)
from pva.schema.execution_tables import EXECUTION_TABLES
from pva.schema.graph_tables import GRAPH_TABLES
from pva.schema.trace_tables import TRACE_TABLE, TRACE_TABLES

__all__ = [
    "ARRAY",
    "ARRAYS",
    "BLOCKS_OPTION",
    "BLOCK_KINDS",
    "CATEGORIES",
    "CLOCK_INTERVAL",
    "COMPUTE_OPTION",
    "DEBUG_OPTION",
    "DIMENSIONS",
    "EXCHANGE_INSTRUCTIONS",
    "EXCHANGE_OPTION",
    "EXECUTION_OPTION",
    "FORMAT_VERSION",
    "GRAPH_OPTION",
    "INDEX_WORDS",
    "LOWERED_OPTION",
    "MISSING",
    "OVERLAPS",
    "PROFILER_MODES",
    "PROGRAM_TYPES",
    "REGIONS",
    "STEP_TYPES",
    "SYNC_TYPES",
    "TABLE",
    "TABLES",
    "TARGET_TYPES",
    "TILE_SETS",
    "TRACE_TABLE",
    "TRACE_TABLES",
    "VERTEX_MEMORY_PARTS",
    "WRITTEN_TYPES",
    "Array",
    "Column",
    "Document",
    "Kind",
    "Layout",
    "Table",
    "camel",
    "snake",
]

FORMAT_VERSION = 1

TABLES: tuple[Table, ...] = (*GRAPH_TABLES, *EXECUTION_TABLES)

# Every so many steps the clock of each tile is kept, so that any window is replayed from the nearest one.
CLOCK_INTERVAL = 1024

TABLE = {table.name: table for table in TABLES}
ARRAY = {array.name: array for array in ARRAYS}

# How long each index of an array is: the table whose rows it counts, or a fixed list.
DIMENSIONS: dict[str, str | int] = {
    "compute_set": "compute_sets",
    "compute_set_vertices": "compute_set_vertices",
    "vertex_type": "vertex_types",
    "liveness_step": "liveness_steps",
    "category": len(CATEGORIES),
    "region": len(REGIONS),
    "overlap": len(OVERLAPS),
}

# Indexes of arrays that are words.
INDEX_WORDS = {"category": CATEGORIES, "region": REGIONS, "overlap": OVERLAPS}
