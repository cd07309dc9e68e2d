"""Questions to a report or a host trace; each function gives a DataFrame or a dataclass.

`CATALOGUE` names them all, and each may be imported from here; `tilescope show NAME REPORT` and
`docs/analyses.md` come from it.
`COMPARISONS` names those of two reports, for `tilescope compare A B`.
"""

from __future__ import annotations

from pva.analysis import (
    balance,
    blocks,
    causes,
    code,
    compare,
    compilation,
    computation_graph,
    costs,
    exchanges,
    execution,
    flops,
    hidden_io,
    host,
    insights,
    layers,
    live_steps,
    liveness,
    main_runs,
    memory,
    on_tiles,
    operation_parts,
    operations,
    overview,
    placement,
    program_parts,
    program_stages,
    program_tree,
    ranges,
    regions,
    tile_series,
    timing,
    written_programs,
)
from pva.analysis.catalogue import Analysis, Catalogue
from pva.errors import nearest

CATALOGUE = Catalogue.of(
    (
        insights.insights,
        insights.unchecked_rules,
        overview.report_overview,
        overview.recorded_parts,
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
        computation_graph.graph_nodes,
        computation_graph.graph_edges,
        placement.memory_map,
        regions.fragmentation,
        tile_series.memory_series,
        tile_series.variables_by_tile,
        tile_series.floor_plan,
        tile_series.address_map,
        on_tiles.tile_details,
        on_tiles.vertices_on_tiles,
        on_tiles.compute_sets_on_tiles,
        on_tiles.exchanges_on_tiles,
        on_tiles.variables_on_tiles,
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
        live_steps.live_over_tiles,
        live_steps.vertices_at_steps,
        live_steps.cycle_estimates,
        live_steps.lifetime_intervals,
        main_runs.main_run,
        execution.execution_overview,
        operations.cycles_by_phase,
        operations.cycles_by_layer,
        operations.cycles_by_operation,
        layers.software_layers,
        costs.operation_costs,
        costs.operation_totals,
        operation_parts.operation_compute_sets,
        operation_parts.operation_by_tile,
        operation_parts.operation_contexts,
        program_stages.program_stages,
        program_tree.program_tree,
        program_parts.program_figures,
        program_parts.program_by_tile,
        program_parts.vertices_of_program,
        program_parts.variables_of_program,
        program_parts.contexts_of_program,
        compilation.compiled_types,
        compilation.compiled_programs,
        written_programs.written_figures,
        balance.cycles_by_ipu,
        balance.cycles_by_tile,
        balance.tile_balance,
        balance.thread_balance,
        balance.slowest_vertices,
        balance.slowest_tiles,
        balance.sync_waits,
        causes.why_idle,
        causes.waits,
        causes.critical_path,
        causes.path_steps,
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
        hidden_io.overlap_io,
        timing.longest_steps,
        execution.steps,
        execution.runs,
        execution.other_runs,
        ranges.range_by_ipu,
        ranges.range_by_program,
        ranges.step_executions,
        ranges.tile_cycles_of_step,
        timing.time_between_runs,
        blocks.blocks,
        host.threads,
        host.label_statistics,
        host.channel_statistics,
        host.longest_events,
    )
)

# Questions to two reports, before and after.
COMPARISONS = Catalogue.of(
    (
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
)


def __getattr__(name: str) -> Analysis:
    found = CATALOGUE.get(name) or COMPARISONS.get(name)
    if found is None:
        hint = (
            "" if name.startswith("_") else nearest(name, [*CATALOGUE, *COMPARISONS], "CATALOGUE")
        )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; {hint}")
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *CATALOGUE, *COMPARISONS} - {"annotations", "nearest"})
