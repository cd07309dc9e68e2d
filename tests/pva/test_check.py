"""Each conservation law holds for the small report, and is broken by one wrong figure."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva import OperationAnalysis, openReport, schema
from pva.check import LAWS, check
from pva.formats import registry
from tests import builders
from tests.analysis.samples import SAMPLES
from tests.builders import small_report


def changed(name: str, column: str, row: int | slice, value: Any) -> dict[str, Any]:
    """Change one value of a table."""
    table = {key: values.copy() for key, values in small_report().table(name).items()}
    table[column][row] = value
    return {name: table}


def changed_array(name: str, place: Any, value: int) -> dict[str, Any]:
    """Change one value of an array."""
    values = small_report().array(name).copy()
    values[place] = value
    return {name: values}


UPLOAD: dict[str, Any] = {
    "name": ["weightsFromHost"], "program": [0], "cycles": [300], "cycles_from": [1024],
    "start_microseconds": [0.0], "end_microseconds": [0.0], "trace_begin": [-1], "trace_end": [-1],
}  # fmt: skip
PIECE_OF_Y = 42  # after 10 pieces of each of four variables and 2 of the partials
BROKEN: dict[str, dict[str, Any]] = {
    "version_begins_with_its_numbers": changed("report", "point", 0, 4),
    "provenance_is_of_what_a_report_has": changed("provenance", "item", 0, "nothing"),
    "programs_have_the_name_of_their_compute_set": changed("compute_sets", "name", 0, "times"),
    "ends_of_copies_are_variables": changed("written_programs", "source", 7, "z"),
    "variables_are_like_those_they_are_lowered_from": changed("variables", "type", 3, "half"),
    "only_some_programs_hold_others": changed("program_children", "program", 7, 5),
    "written_programs_are_branches_of_those_around_them": changed(
        "written_programs", "role", 4, "body"
    ),
    "copies_move_what_their_exchanges_carry": changed("written_programs", "bytes", 1, 81),
    "runs_are_of_programs_that_were_written": changed("runs", "program", 1, 1),
    "liveness_steps_are_in_the_order_of_programs": changed("liveness_steps", "program", 1, 10),
    "syncs_take_what_the_farthest_tile_needs": changed("target", "min_sync_delay", 0, 22),
    "only_a_cpu_is_profiled_as_one": changed("target", "type", 0, schema.TARGET_TYPES.index("CPU")),
    "what_is_read_is_written": changed("access", "write", 0, False),
    "where_all_tiles_are_active_their_clocks_are_all_there_are": changed(
        "steps_by_ipu", "to_min", 0, 35
    ),
    "the_work_of_a_run_is_whole_batches": changed("runs", "batches", 0, 3),
    "machine_is_its_tiles": changed("target", "total_memory", 0, 1),
    "graph_counts_what_is_there": changed("graph", "num_compute_sets", 0, 4),
    "debug_contexts_are_a_tree": changed("debug_contexts", "parent", 0, 3),
    "tile_sets_do_what_is_theirs": changed("programs", "tile_set", 6, 1)
    | {"io_tiles": {"tile": [4]}},
    "vertices_are_on_tiles": changed_array("vertex_count_by_tile", (1, 3), 1),
    "programs_are_trees": changed("program_children", "child", 0, 0),
    "programs_point_at_something": changed("programs", "exchange", 5, 1),
    "programs_are_made_of_one_written_program": changed("written_results", "program", 2, 1),
    "programs_lie_in_each_other_as_they_were_written": changed("written_results", "written", 13, 7),
    "programs_do_what_was_written": changed("written_programs", "count", 2, 3),
    "programs_tell_only_what_their_type_has": changed("written_programs", "count", 0, 3),
    "active_cycles_by_tile_are_those_by_type": changed_array(
        "compute_set_active_cycles_by_vertex_type", (1, 0), 1
    ),
    "threads_are_active_no_longer_than_the_tile": changed_array(
        "compute_set_active_cycles_by_tile", (1, 1), 1
    ),
    "bytes_sent_are_received": changed_array("exchange_bytes_sent", (0, 3), 5),
    "bytes_sent_to_other_ipus_are_received": changed_array(
        "external_exchange_bytes_sent", (0, 3), 5
    ),
    "exchange_code_is_the_sum_of_its_instructions": changed("exchange_instructions", "send", 0, 8),
    "regions_sum_to_the_total": changed("memory_by_tile", "interleaved", 1, 4),
    "categories_sum_to_the_regions": changed_array("memory_by_category", (1, 0, 0, 4), 0),
    "parts_of_compute_sets_sum_to_totals": changed_array(
        "memory_by_compute_set_padding", (0, 0), 3
    ),
    "parts_of_vertex_types_sum_to_totals": changed_array("memory_by_vertex_type_code", (0, 0), 3),
    "control_code_is_that_of_the_programs": changed("control_code", "end_tile", 3, 9),
    "exchanges_have_no_more_code_than_the_tile": changed_array("exchange_code_bytes", (0, 2), 41),
    "flows_of_an_exchange_sum_to_what_is_received": changed("exchange_flows", "bytes", 0, 21),
    "flows_of_an_exchange_are_what_is_sent": changed("exchange_flows", "from_end", 0, 6),
    "pieces_make_up_the_variables": changed("variable_pieces", "bytes", 0, 4),
    "pieces_lie_in_the_memory": changed("variable_pieces", "address", 0, 2000),
    "live_pieces_do_not_overlap": changed("variable_pieces", "address", 0, 528),
    "liveness_steps_are_a_tree": changed("liveness_steps", "parent", 3, 3),
    "lives_are_in_order": changed("variable_intervals", "end", 0, 2),
    "live_bytes_are_those_of_the_variables": changed("liveness_steps", "bytes", 0, 8),
    "peak_is_the_largest_step": changed("liveness", "max_bytes", 0, 201),
    "live_bytes_by_ipu_sum_to_the_step": changed_array("liveness_bytes_by_ipu", (0, 0), 8),
    "always_live_variables_sum_to_the_tiles": changed_array("always_live_bytes", 0, 0),
    "peak_of_each_tile_is_that_of_its_pieces": changed_array("not_always_live_max_bytes", 9, 19),
    "steps_last_as_long_as_their_slowest_tile": changed("steps", "cycles", 3, 113),
    "steps_last_as_long_as_their_slowest_ipu": changed("steps_by_ipu", "cycles", 7, 113),
    "clocks_of_all_tiles_enclose_those_of_active_ones": changed(
        "steps_by_ipu", "all_to_max", 47, 9
    ),
    "steps_begin_with_the_clocks_that_the_last_one_left": changed(
        "steps_by_ipu", "from_min", 9, 169
    ),
    "time_does_not_run_back": changed("steps", "cycles_to", 5, 100),
    "overlap_is_what_was_hidden": changed("steps", "cycles_overlapped", 5, 0),
    "data_of_a_step_is_that_of_its_exchange": changed("steps", "total_data", 2, 41),
    "balances_are_fractions": changed("steps", "tile_balance", 0, 1.5),
    "runs_share_out_the_steps": changed("steps", "run", 5, 1),
    "runs_last_as_long_as_their_steps": changed("runs", "cycles", 0, 500),
    "cycles_are_those_of_the_recorded_runs": changed("execution", "cycles", 0, 1023),
    "activities_fill_the_time_of_all_tiles": changed("tile_cycles", "sync", 0, 1),
    "activities_are_those_of_the_steps": changed("tile_cycles", "do_exchange", 0, 1779),
    "a_mode_has_its_fields": {
        **changed("execution", "profiler_mode", 0, schema.PROFILER_MODES.index("VERTICES")),
        "vertex_vertex_type": None,
    },
    "what_was_measured_is_what_the_steps_took": changed_array("measured_compute_set_cycles", 1, 49),
    "nothing_is_measured_below_its_estimate": changed_array(
        "measured_host_exchange_cycles", (1, 0), 4
    )
    | changed_array("measured_compute_set_cycles_by_tile", (1, 5), 35),
    "a_compute_set_lasts_as_long_as_on_its_slowest_ipu": changed_array(
        "measured_compute_set_cycles_by_ipu", (1, 0), 47
    ),
    "measured_vertices_are_those_of_the_compute_sets": changed_array("vertex_vertex_type", 0, 1),
    "no_vertex_takes_longer_than_its_compute_set": changed_array("measured_vertex_cycles", 17, 31),
    "blocks_end_after_they_begin": changed("blocks", "cycles_to", 3, 699),
    "blocks_are_inside_their_run": changed("blocks", "run", 2, 0),
    "blocks_are_programs": changed("blocks", "program", 2, 6),
    "blocks_are_on_a_tile_of_their_ipu": changed("blocks", "tile", 4, 4),
    "blocks_nest": changed("blocks", "cycles_from", 1, 36) | changed("blocks", "cycles_to", 1, 91),
    "variables_have_the_bytes_of_their_shape": changed("variables", "shape", 0, "4x6"),
    "pieces_are_those_of_their_category": changed("variables", "category", 0, 0),
    "always_live_names_are_known": changed("always_live_variables", "name", 0, "nobody"),
    "what_is_always_live_has_no_interval": changed("variables", "always_live", 0, True),
    "always_live_pieces_are_part_of_the_tile": changed_array("always_live_bytes", slice(None), 0),
    "live_bytes_fit_in_the_tile": changed_array("not_always_live_max_bytes", 9, 10**6),
    "vertices_have_the_size_of_their_type": changed("vertex_types", "size", 0, 0),
    "graph_counts_the_lowered_variables": changed("graph", "num_vars", 0, 43),
    "graph_counts_the_edges": changed("graph", "num_edges", 0, 1),
    "each_tile_has_a_place_of_its_own": changed_array("physical_tile", 0, 1),
    "tiles_that_compute_have_vertices": changed_array("vertex_count_by_tile", slice(None), 0),
    "liveness_steps_lie_in_each_other_as_programs": changed("liveness_steps", "program", 5, 0),
    "steps_are_of_their_programs": changed("steps", "program", 0, 0),
    "steps_have_a_program": changed("steps", "program", 0, -1),
    "compute_sets_have_the_state_of_their_types": changed_array(
        "memory_by_vertex_type_vertex_data", slice(None), 0
    ),
    "balances_are_those_of_the_tiles": changed("steps", "tile_balance", slice(None), 0.01),
    "thread_balances_are_those_of_the_compute_sets": changed(
        "steps", "thread_balance", slice(None), 0.01
    ),
    "data_balances_are_those_of_the_exchanges": changed("steps", "data_balance", slice(None), 0.01),
    "data_of_a_step_is_that_of_its_ipus": changed("steps_by_ipu", "bytes_in", slice(None), 999),
    "clocks_of_an_ipu_are_in_order": changed("steps_by_ipu", "to_max", 3, 0),
    "balances_of_ipus_are_fractions": changed("steps_by_ipu", "tile_balance", 0, 1.5),
    "runs_end_after_they_begin": changed("runs", "trace_end", 0, 5),
    "runs_follow_each_other": changed("runs", "cycles_from", 1, 511),
    "balances_agree_with_the_active_tiles": changed("steps", "active_tiles", 0, 11),
    "clocks_are_kept_at_every_interval": {"tile_clock": np.zeros((2, builders.TILES))},
    "runs_execute_their_program": changed("runs", "program", 0, 1),
    "exchange_code_is_that_of_its_instructions": changed("exchange_instructions", "total", 0, 44),
    "regions_lie_one_above_the_other": changed("target", "interleaved_base", 0, 512),
    "always_live_bytes_are_those_of_the_names": changed_array("always_live_bytes", slice(None), 1),
    "types_that_compute_have_vertices": changed("compute_set_vertices", "vertex_type", 1, 0),
    "what_a_program_uses_is_live": changed("access", "variable", 0, 2),
    "debug_contexts_are_listed": changed("variables", "debug_context", 0, 77),
    "steps_take_what_their_slowest_tile_of_each_ipu_takes": changed(
        "steps_by_ipu", "cycles", slice(None), 1
    ),
    "balances_of_ipus_are_those_of_their_tiles": changed(
        "steps_by_ipu", "tile_balance", slice(None), 0.01
    ),
    "bytes_of_ipus_are_those_of_their_tiles": changed("steps_by_ipu", "bytes_in", slice(None), 999),
    "steps_tell_only_what_their_type_has": changed("steps", "thread_balance", 0, 0.4),
    "what_moves_no_bytes_moves_none_on_any_ipu": changed("steps_by_ipu", "bytes_out", 0, 4),
    "steps_take_time_just_where_tiles_are_active": changed("steps", "active_tiles", 0, 0),
    "balances_of_steps_are_those_of_their_ipus": changed("steps", "active_tiles", 0, 1),
    "syncs_let_tiles_go_by_their_delays": changed_array("relative_sync_delay", 0, 6),
    "clocks_of_tiles_are_those_that_the_steps_left": {"tile_clock": np.ones((2, builders.TILES))},
}


def test_the_small_report_breaks_no_law() -> None:
    assert [str(violation) for violation in check(small_report())] == []


def test_another_run_may_follow_the_last_one_and_not_begin_within_it() -> None:
    assert check(small_report(other_runs=UPLOAD)) == []
    (breach,) = check(small_report(other_runs=UPLOAD | {"cycles_from": [1023]}))
    assert (breach.law, breach.found) == ("runs_follow_each_other", "1024")


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_wrong_figure_breaks_its_law(law: Any) -> None:
    broken = small_report(**BROKEN[law.name])
    assert {violation.law for violation in law.broken_by(broken)} == {law.name}


def test_debug_contexts_around_themselves_are_named_and_the_report_opens(tmp_path: Path) -> None:
    registry.write(small_report(**changed("debug_contexts", "parent", 0, 3)), tmp_path / "a.cbor")
    report = openReport(tmp_path / "a.cbor")
    assert len(OperationAnalysis(report).operations)
    found = report.check()
    (breach,) = found[found["holds"].eq(False)].to_dict("records")
    assert (breach["law"], breach["where"]) == (
        "debug_contexts_are_a_tree",
        "debug_contexts, row 0",
    )


def test_a_number_of_two_debug_contexts_is_named() -> None:
    found = check(small_report(**changed("debug_contexts", "id", 1, 1)))
    (breach,) = [v for v in found if v.law == "debug_contexts_are_a_tree"]
    assert (breach.place, breach.found) == ("debug_contexts.id, times told, number 0", "2")


def test_a_violation_names_law_place_and_both_figures() -> None:
    broken = small_report(**changed("memory_by_tile", "total", 4, 5))
    assert str(check(broken)[0]) == "regions_sum_to_the_total: total, tile 4: found 5; 372"


def test_a_document_without_a_target_and_external_exchanges_breaks_no_law() -> None:
    data = registry.read(SAMPLES / "matmul_chain_tiny")
    documents = {name: registry.value_of(data, name) for name in ("graph", "execution")}
    assert len(documents["graph"].pop("target"))
    assert check(registry.of_values(**documents)) == []


def test_a_report_without_an_execution_breaks_no_law() -> None:
    assert check(small_report().select("graph")) == []


def test_pieces_that_share_an_address_at_different_times_are_no_collision() -> None:
    moved = changed("variable_pieces", "address", PIECE_OF_Y, 528)  # y begins as product ends
    laws = [law for law in LAWS if law.name == "live_pieces_do_not_overlap"]
    assert laws[0].broken_by(small_report(**moved)) == []


def test_always_live_pieces_collide_with_what_is_in_their_place() -> None:
    moved = changed("variable_pieces", "address", PIECE_OF_Y, 510)
    laws = [law for law in LAWS if law.name == "live_pieces_do_not_overlap"]
    assert laws[0].broken_by(small_report(**moved))[0].found == "'w' and 'y'"


def test_a_program_that_calls_itself_is_found() -> None:
    calling = small_report(**changed("programs", "target", 12, 0))
    assert "contains itself" in {v.found for v in check(calling)}


def test_no_tile_receives_more_than_all_tiles_send() -> None:
    sent = int(small_report().array("exchange_bytes_sent")[0].sum())
    # One byte more than was sent at all, though far less than a multicast of it to ten tiles.
    found = check(small_report(**changed_array("exchange_bytes_received", (0, 9), sent + 1)))
    (breach,) = [v for v in found if v.law == "bytes_sent_are_received"]
    assert (breach.place, breach.found) == ("bytes received, exchange, tile 0, 9", str(sent + 1))


@pytest.mark.parametrize(("most", "broken"), [(201, []), (199, ["peak_is_the_largest_step"])])
def test_steps_that_another_writer_cut_may_lack_the_peak(most: int, broken: list[str]) -> None:
    data = small_report(**changed("liveness", "max_bytes", 0, most))  # the largest step has 200 B
    assert data.column("liveness_steps", "bytes").max() == 200
    data.foreign = True
    assert [violation.law for violation in check(data)] == broken
