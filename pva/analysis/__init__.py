"""Questions to a report or a host trace; each function gives a DataFrame or a dataclass.

`CATALOGUE` names them all; `tilescope show NAME REPORT` and `docs/analyses.md` come from it.
`COMPARISONS` names those of two reports, for `tilescope compare A B`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pva.analysis import (
    balance,
    blocks,
    code,
    compare,
    exchanges,
    execution,
    flops,
    host,
    insights,
    live_steps,
    liveness,
    memory,
    operations,
    placement,
    regions,
    timing,
)

Analysis = Callable[..., Any]

CATALOGUE: dict[str, Analysis] = {
    analysis.__name__: analysis
    for analysis in (
        insights.insights,
        insights.unchecked_rules,
        memory.memory_overview,
        memory.memory_by_tile,
        memory.fullest_tiles,
        memory.memory_by_category,
        memory.category_by_tile,
        regions.memory_by_region,
        regions.memory_by_ipu,
        memory.memory_by_vertex_type,
        memory.memory_by_compute_set,
        code.memory_by_operation,
        code.code_by_program,
        placement.largest_variables,
        placement.memory_by_layer,
        placement.memory_by_type,
        placement.variable_spread,
        placement.variable_by_tile,
        placement.variable_uses,
        placement.memory_map,
        regions.fragmentation,
        memory.memory_usage,
        memory.memory_histogram,
        liveness.liveness_overview,
        liveness.liveness_curve,
        liveness.live_variables,
        liveness.always_live_variables,
        liveness.live_at_peak,
        liveness.liveness_by_ipu,
        liveness.liveness_by_tile,
        liveness.variable_lifetimes,
        live_steps.live_at_steps,
        live_steps.vertices_at_steps,
        live_steps.cycle_estimates,
        live_steps.lifetime_intervals,
        execution.execution_overview,
        operations.cycles_by_phase,
        operations.cycles_by_layer,
        operations.cycles_by_operation,
        balance.cycles_by_ipu,
        balance.cycles_by_tile,
        balance.tile_balance,
        balance.thread_balance,
        balance.slowest_vertices,
        balance.slowest_tiles,
        balance.sync_waits,
        exchanges.largest_exchanges,
        exchanges.exchange_spread,
        exchanges.exchange_matrix,
        exchanges.traffic_by_tile,
        exchanges.exchange_code,
        exchanges.stream_bandwidth,
        execution.cycles_by_vertex_type,
        execution.cycles_by_program,
        execution.vertices_by_compute_set,
        execution.vertices_of_step,
        flops.flop_utilisation,
        flops.flops_by_compute_set,
        timing.estimated_against_measured,
        timing.varying_programs,
        timing.overlap,
        timing.longest_steps,
        execution.steps,
        execution.runs,
        timing.time_between_runs,
        blocks.blocks,
        host.threads,
        host.label_statistics,
        host.channel_statistics,
        host.longest_events,
    )
}

# Questions to two reports, before and after.
COMPARISONS: dict[str, Analysis] = {
    comparison.__name__: comparison
    for comparison in (
        compare.compare_figures,
        compare.compare_categories,
        compare.compare_tiles,
        compare.compare_variables,
        compare.compare_vertex_types,
        compare.compare_compute_sets,
        compare.compare_always_live,
        compare.compare_live_at_peak,
        compare.compare_phases,
        compare.compare_layers,
        compare.compare_operations,
        compare.compare_operation_memory,
        compare.compare_programs,
    )
}
