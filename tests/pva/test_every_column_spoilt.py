"""Each column and array of a report, spoilt once: a law names it, or it is declared alone."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva import schema
from pva.check import LAWS, check
from pva.check.alone import ALONE
from pva.check.document import markdown
from pva.data.dataset import Dataset
from pva.errors import InconsistentDataError
from tests.builders import small_report

DOCUMENT = Path(__file__).parents[2] / "docs" / "laws.md"
REFUSED = "refused"  # when the report is opened
# The law that names a column or array with one wrong value.
NOTICED = {
    "version_begins_with_its_numbers": "report.version report.major report.minor report.point",
    "only_a_cpu_is_profiled_as_one": "target.type",
    "refused":
        "target.num_ipus target.tiles_per_ipu target.num_tiles target.num_replicas "
        "graph.num_vertices",
    "machine_is_its_tiles": "target.bytes_per_tile target.bytes_per_ipu target.total_memory",
    "syncs_take_what_the_farthest_tile_needs":
        "target.min_sync_delay target.global_sync_cycles relative_sync_delay",
    "regions_lie_one_above_the_other":
        "target.interleaved_base memory_by_tile.interleaved_including_gaps "
        "memory_by_tile.non_interleaved_including_gaps "
        "memory_by_tile.overflowed_including_gaps memory_by_tile.total_including_gaps "
        "variable_pieces.region",
    "tile_sets_do_what_is_theirs": "io_tiles.tile programs.tile_set",
    "graph_counts_what_is_there": "graph.num_compute_sets compute_set_vertices.count",
    "graph_counts_the_edges": "graph.num_edges",
    "graph_counts_the_lowered_variables": "graph.num_vars",
    "vertices_have_the_size_of_their_type": "vertex_types.size",
    "programs_have_the_name_of_their_compute_set":
        "compute_sets.name programs.name written_programs.name",
    "types_that_compute_have_vertices":
        "compute_set_vertices.compute_set compute_set_vertices.vertex_type",
    "programs_tell_only_what_their_type_has":
        "programs.type programs.target written_programs.target",
    "programs_do_what_was_written":
        "programs.compute_set programs.count written_programs.compute_set "
        "written_programs.count",
    "programs_point_at_something": "programs.exchange",
    "steps_are_of_their_programs": "programs.sync_type steps.type steps.sync_type steps.program",
    "debug_contexts_are_listed": "programs.debug_context variables.debug_context",
    "liveness_steps_are_in_the_order_of_programs":
        "program_children.program liveness_steps.program",
    "liveness_steps_lie_in_each_other_as_programs":
        "program_children.child function_programs.program",
    "control_code_is_that_of_the_programs":
        "control_code.tile control_code.end_tile control_code.bytes",
    "exchange_code_is_that_of_its_instructions":
        "exchange_instructions.program exchange_instructions.total exchange_code_bytes",
    "exchange_code_is_the_sum_of_its_instructions":
        "exchange_instructions.delay exchange_instructions.exchange "
        "exchange_instructions.other exchange_instructions.receive_address "
        "exchange_instructions.receive_format exchange_instructions.receive_mux "
        "exchange_instructions.send exchange_instructions.send_with_put_address "
        "exchange_instructions.send_with_put_format exchange_instructions.send_with_put_mux",
    "programs_are_trees": "control_programs.program",
    "written_programs_are_branches_of_those_around_them":
        "written_programs.type written_programs.role",
    "runs_are_of_programs_that_were_written":
        "written_programs.parent runs.program other_runs.program",
    "ends_of_copies_are_variables":
        "written_programs.source written_programs.destination variables.name",
    "copies_move_what_their_exchanges_carry": "written_programs.bytes",
    "programs_lie_in_each_other_as_they_were_written": "written_results.written",
    "programs_are_made_of_one_written_program": "written_results.program",
    "categories_sum_to_the_regions": "memory_by_tile.interleaved memory_by_tile.overflowed",
    "regions_sum_to_the_total": "memory_by_tile.non_interleaved memory_by_tile.total",
    "always_live_names_are_known": "always_live_variables.name",
    "always_live_variables_sum_to_the_tiles": "always_live_variables.bytes",
    "peak_is_the_largest_step": "liveness.max_bytes",
    "liveness_steps_are_a_tree": "liveness_steps.parent",
    "live_bytes_by_ipu_sum_to_the_step": "liveness_steps.bytes liveness_bytes_by_ipu",
    "variables_are_like_those_they_are_lowered_from": "variables.type variables.lowered_from",
    "variables_have_the_bytes_of_their_shape": "variables.shape variables.bytes",
    "pieces_are_those_of_their_category": "variables.category memory_by_category",
    "what_is_always_live_has_no_interval": "variables.always_live",
    "pieces_make_up_the_variables": "variable_pieces.variable variable_pieces.bytes",
    "peak_of_each_tile_is_that_of_its_pieces": "variable_pieces.tile not_always_live_max_bytes",
    "live_pieces_do_not_overlap": "variable_pieces.address",
    "lives_are_in_order": "variable_intervals.variable",
    "what_a_program_uses_is_live": "variable_intervals.begin access.variable",
    "live_bytes_are_those_of_the_variables": "variable_intervals.end",
    "what_is_read_is_written": "access.program access.write",
    "provenance_is_of_what_a_report_has": "provenance.item provenance.quality",
    "debug_contexts_are_a_tree": "debug_contexts.id debug_contexts.parent",
    "a_mode_has_its_fields": "execution.profiler_mode",
    "cycles_are_those_of_the_recorded_runs": "execution.cycles runs.cycles",
    "activities_are_those_of_the_steps": "tile_cycles.active_compute",
    "activities_fill_the_time_of_all_tiles":
        "tile_cycles.compute tile_cycles.copy_shared_structure tile_cycles.do_exchange "
        "tile_cycles.global_exchange tile_cycles.stream_copy tile_cycles.sync "
        "tile_cycles.idle_at_end",
    "runs_share_out_the_steps": "runs.first_step",
    "runs_last_as_long_as_their_steps": "runs.end_step runs.cycles_from",
    "runs_end_after_they_begin":
        "runs.start_microseconds runs.end_microseconds runs.trace_begin runs.trace_end "
        "other_runs.start_microseconds other_runs.end_microseconds other_runs.trace_begin "
        "other_runs.trace_end",
    "the_work_of_a_run_is_whole_batches": "runs.items runs.batches runs.stages",
    "runs_follow_each_other": "other_runs.cycles_from other_runs.cycles",
    "runs_execute_their_program": "steps.run",
    "steps_last_as_long_as_their_slowest_ipu": "steps.cycles",
    "overlap_is_what_was_hidden": "steps.cycles_from steps.cycles_overlapped",
    "time_does_not_run_back": "steps.cycles_to",
    "balances_agree_with_the_active_tiles":
        "steps.active_tiles steps.tile_balance steps.active_tile_balance",
    "thread_balances_are_those_of_the_compute_sets":
        "steps.thread_balance compute_set_cycles_by_tile",
    "data_of_a_step_is_that_of_its_exchange": "steps.total_data",
    "data_balances_are_those_of_the_exchanges":
        "steps.data_balance exchange_bytes_received external_exchange_bytes_received "
        "host_exchange_bytes_received",
    "data_of_a_step_is_that_of_its_ipus": "steps_by_ipu.step",
    "clocks_of_tiles_are_those_that_the_steps_left": "steps_by_ipu.ipu tile_clock",
    "clocks_of_an_ipu_are_in_order": "steps_by_ipu.cycles steps_by_ipu.to_max",
    "where_all_tiles_are_active_their_clocks_are_all_there_are":
        "steps_by_ipu.from_min steps_by_ipu.to_min",
    "steps_begin_with_the_clocks_that_the_last_one_left": "steps_by_ipu.from_max",
    "clocks_of_all_tiles_enclose_those_of_active_ones":
        "steps_by_ipu.all_to_min steps_by_ipu.all_to_max",
    "balances_of_ipus_are_those_of_their_tiles":
        "steps_by_ipu.tile_balance steps_by_ipu.active_tile_balance",
    "bytes_of_ipus_are_those_of_their_tiles":
        "steps_by_ipu.bytes_in steps_by_ipu.bytes_out host_exchange_bytes_sent",
    "blocks_are_inside_their_run": "blocks.run",
    "blocks_are_on_a_tile_of_their_ipu": "blocks.ipu blocks.tile",
    "blocks_are_programs": "blocks.program blocks.kind",
    "blocks_end_after_they_begin": "blocks.cycles_from blocks.cycles_to",
    "each_tile_has_a_place_of_its_own": "physical_tile",
    "active_cycles_by_tile_are_those_by_type":
        "compute_set_active_cycles_by_tile compute_set_active_cycles_by_vertex_type",
    "vertices_are_on_tiles": "vertex_count_by_tile",
    "bytes_sent_are_received": "exchange_bytes_sent",
    "balances_are_those_of_the_tiles": "exchange_cycles",
    "bytes_sent_to_other_ipus_are_received": "external_exchange_bytes_sent",
    "exchanges_have_no_more_code_than_the_tile":
        "external_exchange_code_bytes host_exchange_code_bytes",
    "nothing_is_measured_below_its_estimate": "external_exchange_cycles host_exchange_cycles",
    "parts_of_compute_sets_sum_to_totals":
        "memory_by_compute_set_code memory_by_compute_set_copy_pointers "
        "memory_by_compute_set_descriptors memory_by_compute_set_edge_pointers "
        "memory_by_compute_set_padding memory_by_compute_set_vertex_data "
        "memory_by_compute_set_total",
    "parts_of_vertex_types_sum_to_totals":
        "memory_by_vertex_type_code memory_by_vertex_type_copy_pointers "
        "memory_by_vertex_type_descriptors memory_by_vertex_type_edge_pointers "
        "memory_by_vertex_type_padding memory_by_vertex_type_vertex_data "
        "memory_by_vertex_type_total",
    "always_live_bytes_are_those_of_the_names": "always_live_bytes",
    "what_was_measured_is_what_the_steps_took":
        "measured_compute_set_cycles_by_tile measured_external_exchange_cycles "
        "measured_host_exchange_cycles",
    "a_compute_set_lasts_as_long_as_on_its_slowest_ipu":
        "measured_compute_set_cycles measured_compute_set_cycles_by_ipu",
    "flows_of_an_exchange_sum_to_what_is_received":
        "exchange_flows.exchange exchange_flows.to_tile exchange_flows.to_end "
        "exchange_flows.bytes external_exchange_flows.exchange external_exchange_flows.to_tile "
        "external_exchange_flows.to_end external_exchange_flows.bytes",
    "flows_of_an_exchange_are_what_is_sent":
        "exchange_flows.from_tile exchange_flows.from_end "
        "external_exchange_flows.from_tile external_exchange_flows.from_end",
    "no_vertex_takes_longer_than_its_compute_set": "measured_vertex_cycles",
    "measured_vertices_are_those_of_the_compute_sets": "vertex_compute_set vertex_vertex_type",
}  # fmt: skip
BY_ITEM = {item: law for law, items in NOTICED.items() for item in items.split()}
# Where a value that is one more, or the next word, contradicts nothing: place, and what does.
PLACED: dict[str, tuple[Any, Any]] = {
    "target.min_sync_delay": (0, 10**4), "target.global_sync_cycles": (0, 10**4),
    "relative_sync_delay": (4, 10**4), "graph.num_vars": (0, 10**4), "vertex_types.size": (0, 0),
    "programs.name": (6, "nobody"), "written_programs.name": (4, "nobody"),
    "programs.sync_type": (1, 1), "programs.debug_context": (2, 77), "programs.tile_set": (6, 2),
    "written_results.written": (13, 7), "memory_by_tile.non_interleaved_including_gaps": (0, 520),
    "variables.shape": (0, "4x6"), "variables.lowered_from": (3, 5),
    "variables.debug_context": (0, 77), "execution.profiler_mode": (0, 1),
    "runs.start_microseconds": (0, 1577836800e6 + 600), "runs.trace_begin": (0, 2_000_000),
    "runs.trace_end": (0, 5), "runs.items": (0, 0), "runs.batches": (0, 3),
    "other_runs.cycles_from": (0, 1000), "other_runs.start_microseconds": (0, 3e15),
    "other_runs.trace_begin": (0, 9_000_000), "other_runs.trace_end": (0, 5),
    "steps_by_ipu.tile_balance": (2, 0.5), "steps_by_ipu.active_tile_balance": (2, 0.5),
    "blocks.program": (1, 6), "blocks.cycles_from": (0, 200), "blocks.cycles_to": (0, 10),
    "host_exchange_code_bytes": ((0, 0), 10**4),
    "measured_compute_set_cycles_by_tile": ((0, 9), 10**4),
    "measured_compute_set_cycles_by_ipu": ((0, 1), 10**4), "measured_vertex_cycles": (0, 10**4),
}  # fmt: skip
OTHER_RUNS = {
    "name": ["weightsFromHost", "seed"], "program": [0, 0], "cycles": [300, 10],
    "cycles_from": [1024, 1324], "start_microseconds": [1577836802e6, 1577836803e6],
    "end_microseconds": [1577836802e6 + 500, 1577836803e6 + 500],
    "trace_begin": [3_000_000, 4_000_000], "trace_end": [3_500_000, 4_500_000],
}  # fmt: skip
OF_IO_TILES = ("io_tiles.tile", "programs.tile_set")
COLUMNS = [f"{table.name}.{column.name}" for table in schema.TABLES for column in table.columns]
ITEMS = [*COLUMNS, *(array.name for array in schema.ARRAYS)]


@cache
def whole(*, io_tiles: bool) -> Dataset:
    """Return a report with other runs, or one with an I/O tile that reduces and copies out."""
    if not io_tiles:
        return small_report(other_runs=OTHER_RUNS)
    programs = small_report().table("programs")
    programs["tile_set"] = programs["tile_set"].copy()
    programs["tile_set"][[8, 10]] = schema.TILE_SETS.index("IO")
    return small_report(io_tiles={"tile": [0]}, programs=programs)


def spoilt(item: str) -> Dataset:
    """Return a report with one wrong value; raises InconsistentDataError where it is refused."""
    data = whole(io_tiles=item in OF_IO_TILES)
    tables = {name: data.table(name) for name in data.tables}
    arrays = {name: data.array(name) for name in data.arrays}
    table, _, column = item.partition(".")
    place: dict[str, Any] = tables[table] if column else arrays
    values = place[column or table].copy()
    if item in PLACED:
        values[PLACED[item][0]] = PLACED[item][1]
    else:
        _change(values, schema.TABLE[table].column(column) if column else None)
    place[column or table] = values
    return Dataset.of(tables, arrays)


def _change(values: Any, column: schema.Column | None) -> None:
    """Change one value: the first text, word or fraction, or the first number above zero."""
    flat = values.reshape(-1)
    if values.dtype.kind == "b":
        flat[0] = not flat[0]
    elif values.dtype.kind == "O":
        flat[0] = "nobody"
    elif values.dtype.kind == "f":
        flat[np.flatnonzero(~np.isnan(flat))[0]] *= 0.5
    elif column is not None and column.values:
        flat[0] = (flat[0] + 1) % len(column.values)
    else:
        flat[np.flatnonzero(flat > 0)[0] if (flat > 0).any() else 0] += 1


def test_each_column_and_array_is_held_by_a_law_or_declared_to_be_alone() -> None:
    assert sorted([*BY_ITEM, *ALONE]) == sorted(ITEMS)


@pytest.mark.parametrize("item", BY_ITEM)
def test_a_wrong_value_is_named_by_its_law_or_refused(item: str) -> None:
    if BY_ITEM[item] == REFUSED:
        with pytest.raises(InconsistentDataError):
            spoilt(item)
    else:
        (law,) = [law for law in LAWS if law.name == BY_ITEM[item]]
        assert {violation.law for violation in law.broken_by(spoilt(item))} == {law.name}


@pytest.mark.parametrize("item", ALONE)
def test_nothing_contradicts_what_is_alone(item: str) -> None:
    assert check(spoilt(item)) == []


def test_the_document_of_the_laws_is_generated_from_them() -> None:
    assert DOCUMENT.read_text() == markdown()


@pytest.mark.parametrize("io_tiles", [False, True])
def test_the_reports_that_are_spoilt_break_no_law(io_tiles: bool) -> None:
    assert check(whole(io_tiles=io_tiles)) == []
