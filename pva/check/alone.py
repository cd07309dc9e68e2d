"""Columns that no other figure of a report can contradict, and why: no law is about them."""

from __future__ import annotations

# Reason, and the columns that it holds for.
REASONS: tuple[tuple[str, str], ...] = (
    ("says who wrote the report, and when", "report.package_hash report.created"),
    (
        "describes the machine; no other figure follows from it alone",
        "target.architecture target.machine target.differences",
    ),
    (
        "times on the device are recorded in cycles; the host's clock is another one",
        "target.clock_frequency",
    ),
    ("what the compiler tells of its own work", "optimization_info.name optimization_info.value"),
    ("names stand once", "vertex_types.name runs.name other_runs.name"),
    ("operations are counted nowhere else", "compute_sets.flops"),
    ("a tile's control code is recorded of all programs together", "control_code.program"),
    ("what was asked for, not what was done", "engine_options.name engine_options.value"),
    ("a sentence for the reader", "provenance.reason"),
    (
        "where in the source something was made stands once; numbers and parents are held",
        "debug_contexts.name debug_contexts.layer debug_contexts.file debug_contexts.function "
        "debug_contexts.line debug_contexts.json",
    ),
)
ALONE: dict[str, str] = {item: reason for reason, items in REASONS for item in items.split()}
