"""Reports that say one thing in one table and another in the next, and the law that names it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from pva import schema
from pva.check import LAWS, check
from pva.data.dataset import Dataset
from pva.formats import registry
from tests.analysis.samples import SAMPLES
from tests.builders import small_report

Values = Any
Change = Callable[[Values], Values]


@cache
def sample(name: str) -> Dataset:
    return small_report() if name == "small" else registry.read(SAMPLES / name)


def spoiled(name: str, item: str, change: Change) -> Dataset:
    """Return a sample with one array, or one column `table.column`, changed."""
    whole = sample(name)
    tables = {table: dict(whole.table(table)) for table in whole.tables}
    arrays = {array: whole.array(array) for array in whole.arrays}
    table, _, column = item.partition(".")
    place = tables[table] if column else arrays
    place[column or table] = change(place[column or table].copy())
    return Dataset.of(tables, arrays)


def none(values: Values) -> Values:
    return np.zeros_like(values)


def put(place: Any, value: Any) -> Change:
    def change(values: Values) -> Values:
        values[place] = value
        return values

    return change


def add(amount: float, place: Any = 0) -> Change:
    def change(values: Values) -> Values:
        values[place] = values[place] + amount
        return values

    return change


def first_known(value: float) -> Change:
    def change(values: Values) -> Values:
        values[np.flatnonzero(~np.isnan(values))[0]] = value
        return values

    return change


def first_positive(amount: int) -> Change:
    def change(values: Values) -> Values:
        values.reshape(-1)[np.flatnonzero(values)[0]] += amount
        return values

    return change


def turned(values: Values) -> Values:
    return values[::-1]


def category(name: str) -> int:
    return schema.CATEGORIES.index(name)


TINY, MLP, PIPELINE, SMALL = (
    "matmul_chain_tiny", "mlp_digits_tiny", "newton_pipeline_replicas", "small",
)  # fmt: skip
WAIT = 1  # step of TINY in which the device waits for the host: StreamCopyBegin
# Sample, what is changed, how, and the law that names it.
INCONSISTENT: list[tuple[str, str, Change, str]] = [
    (TINY, "compute_set_active_cycles_by_tile", none,
     "active_cycles_by_tile_are_those_by_type"),
    (TINY, "compute_set_active_cycles_by_vertex_type", none,
     "active_cycles_by_tile_are_those_by_type"),
    (TINY, "compute_set_cycles_by_tile", first_positive(-1),
     "activities_are_those_of_the_steps"),
    (TINY, "compute_set_cycles_by_tile", lambda v: v * 2,
     "steps_last_as_long_as_their_slowest_tile"),
    (PIPELINE, "vertex_count_by_tile", none, "tiles_that_compute_have_vertices"),
    (PIPELINE, "compute_set_vertices.count", none, "vertices_are_on_tiles"),
    (MLP, "runs.cycles_from", put(1, 5), "runs_follow_each_other"),
    (PIPELINE, "runs.cycles", add(10**6), "runs_follow_each_other"),
    (SMALL, "runs.end_microseconds", put(0, 1.0), "runs_end_after_they_begin"),
    (SMALL, "runs.trace_end", put(0, 5), "runs_end_after_they_begin"),
    (SMALL, "runs.start_microseconds", put(1, 1577836800000100.0), "runs_follow_each_other"),
    (MLP, "runs.end_step", put(0, 0), "runs_share_out_the_steps"),
    (MLP, "steps.run", none, "runs_share_out_the_steps"),
    (TINY, "variables.shape", put(0, "3x3"), "variables_have_the_bytes_of_their_shape"),
    (TINY, "variables.type", put(0, "half"), "variables_have_the_bytes_of_their_shape"),
    (PIPELINE, "variables.bytes", add(4), "pieces_make_up_the_variables"),
    (TINY, "variables.category", put(0, category("stack")), "pieces_are_those_of_their_category"),
    (MLP, "memory_by_category", put(category("message"), 0), "pieces_are_those_of_their_category"),
    (MLP, "memory_by_category", put(category("stack"), 0), "always_live_names_are_known"),
    (MLP, "always_live_variables.name", put(0, "nobody"), "always_live_names_are_known"),
    (MLP, "always_live_variables.bytes", add(1, 2), "always_live_names_are_known"),
    (TINY, "variables.always_live", turned, "what_is_always_live_has_no_interval"),
    (TINY, "always_live_bytes", none, "always_live_pieces_are_part_of_the_tile"),
    (TINY, "always_live_bytes", lambda v: v * 1000, "live_bytes_fit_in_the_tile"),
    (TINY, "not_always_live_max_bytes", lambda v: v + 10**6, "live_bytes_fit_in_the_tile"),
    (TINY, "vertex_types.size", none, "vertices_have_the_size_of_their_type"),
    (PIPELINE, "vertex_types.size", add(8), "vertices_have_the_size_of_their_type"),
    (TINY, "graph.num_vars", none, "graph_counts_the_lowered_variables"),
    (TINY, "graph.num_edges", none, "graph_counts_the_edges"),
    (TINY, "graph.num_compute_sets", add(1), "graph_counts_what_is_there"),
    (TINY, "physical_tile", none, "each_tile_has_a_place_of_its_own"),
    (TINY, "steps.tile_balance", first_known(0.01), "balances_agree_with_the_active_tiles"),
    (TINY, "steps.active_tile_balance", first_known(0.01), "balances_agree_with_the_active_tiles"),
    (TINY, "steps.active_tiles", first_positive(-1), "balances_agree_with_the_active_tiles"),
    (TINY, "steps.tile_balance", lambda v: v / 2, "balances_are_those_of_the_tiles"),
    (TINY, "memory_by_tile.total", add(4), "regions_sum_to_the_total"),
    (TINY, "steps.thread_balance", first_known(0.01),
     "thread_balances_are_those_of_the_compute_sets"),
    (TINY, "steps.data_balance", first_known(0.01), "data_balances_are_those_of_the_exchanges"),
    (TINY, "steps.tile_balance", first_known(-0.5), "balances_are_fractions"),
    (PIPELINE, "steps_by_ipu.tile_balance", first_known(7.0), "balances_of_ipus_are_fractions"),
    (PIPELINE, "steps_by_ipu.cycles", lambda v: v + 1, "steps_last_as_long_as_their_slowest_ipu"),
    (PIPELINE, "steps_by_ipu.bytes_in", lambda v: v * 3, "data_of_a_step_is_that_of_its_ipus"),
    (PIPELINE, "steps_by_ipu.to_max", none, "clocks_of_an_ipu_are_in_order"),
    (TINY, "steps.total_data", lambda v: v * 2, "data_of_a_step_is_that_of_its_exchange"),
    (TINY, "steps.type", put(0, 5), "steps_are_of_their_programs"),
    (TINY, "steps.program", turned, "steps_are_of_their_programs"),
    (TINY, "steps.program", put(0, -1), "steps_have_a_program"),
    (TINY, "exchange_bytes_sent", lambda v: v * 9, "bytes_sent_are_received"),
    (PIPELINE, "external_exchange_bytes_received", none, "bytes_sent_to_other_ipus_are_received"),
    (TINY, "liveness_steps.program", turned, "liveness_steps_lie_in_each_other_as_programs"),
    (TINY, "liveness_steps.bytes", none, "live_bytes_are_those_of_the_variables"),
    (TINY, "tile_cycles.compute", none, "activities_are_those_of_the_steps"),
    (TINY, "execution.cycles", add(1), "cycles_are_those_of_the_recorded_runs"),
    (TINY, "memory_by_compute_set_edge_pointers", none, "parts_of_compute_sets_sum_to_totals"),
    (TINY, "memory_by_vertex_type_vertex_data", none, "compute_sets_have_the_state_of_their_types"),
    (TINY, "graph.num_vars", lambda v: v * 2, "graph_counts_the_lowered_variables"),
    (TINY, "graph.num_edges", lambda v: v * 5, "graph_counts_the_edges"),
    (TINY, "steps.sync_type", none, "steps_are_of_their_programs"),
    (TINY, "tile_cycles.active_compute", none, "activities_are_those_of_the_steps"),
    (MLP, "runs.program", turned, "runs_execute_their_program"),
    (MLP, "exchange_code_bytes", lambda v: v * 2, "exchange_code_is_that_of_its_instructions"),
    (TINY, "exchange_instructions.program", none, "exchange_code_is_that_of_its_instructions"),
    (TINY, "memory_by_tile.total_including_gaps", add(4096), "regions_lie_one_above_the_other"),
    (TINY, "variable_pieces.region", none, "regions_lie_one_above_the_other"),
    (TINY, "always_live_bytes", turned, "always_live_bytes_are_those_of_the_names"),
    (PIPELINE, "compute_set_vertices.vertex_type", turned, "types_that_compute_have_vertices"),
    (TINY, "access.program", turned, "what_a_program_uses_is_live"),
    (TINY, "programs.debug_context", add(4096), "debug_contexts_are_listed"),
    (PIPELINE, "steps_by_ipu.active_tile_balance", none,
     "balances_of_ipus_are_those_of_their_tiles"),
    (PIPELINE, "steps_by_ipu.bytes_out", first_positive(1),
     "bytes_of_ipus_are_those_of_their_tiles"),
    (SMALL, "steps.thread_balance", put(0, 0.4), "steps_tell_only_what_their_type_has"),
    (SMALL, "steps.data_balance", put(3, 0.4), "steps_tell_only_what_their_type_has"),
    (SMALL, "steps.total_data", put(0, 4), "steps_tell_only_what_their_type_has"),
    (PIPELINE, "steps_by_ipu.bytes_in", put(0, 4), "what_moves_no_bytes_moves_none_on_any_ipu"),
    (TINY, "steps.cycles", put(WAIT, 1), "steps_take_time_just_where_tiles_are_active"),
    (TINY, "steps.active_tiles", put(WAIT, 1), "steps_take_time_just_where_tiles_are_active"),
    (TINY, "steps.tile_balance", put(WAIT, 0.3), "steps_take_time_just_where_tiles_are_active"),
    (TINY, "steps.total_data", put(WAIT, 4), "steps_tell_only_what_their_type_has"),
    (TINY, "steps.data_balance", put(WAIT, 0.3), "steps_tell_only_what_their_type_has"),
    (PIPELINE, "steps_by_ipu.tile_balance", put(0, 0.3),
     "balances_of_steps_are_those_of_their_ipus"),  # of a sync
    (PIPELINE, "steps_by_ipu.active_tile_balance", put(0, 0.3),
     "balances_of_steps_are_those_of_their_ipus"),
    (PIPELINE, "relative_sync_delay", put(-1, 2), "syncs_let_tiles_go_by_their_delays"),
    (MLP, "tile_clock", add(1, -1), "clocks_of_tiles_are_those_that_the_steps_left"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "item", "change", "law"),
    INCONSISTENT,
    ids=[f"{number}-{row[1]}" for number, row in enumerate(INCONSISTENT)],
)
def test_an_inconsistent_report_breaks_the_law(
    name: str, item: str, change: Change, law: str
) -> None:
    assert law in {violation.law for violation in check(spoiled(name, item, change))}


@pytest.mark.parametrize("name", [TINY, MLP, PIPELINE, SMALL])
def test_the_samples_themselves_break_no_law(name: str) -> None:
    assert check(sample(name)) == []


def test_a_law_whose_column_was_not_recorded_is_not_checked() -> None:
    data = spoiled(TINY, "steps.thread_balance", lambda values: values * np.nan)
    (law,) = [law for law in LAWS if law.name.startswith("thread_balances")]
    (row,) = law.verdict(data)
    assert (row[2], row[4]) == (None, "no steps.thread_balance")


def test_a_law_that_compares_nothing_is_not_checked() -> None:
    (law,) = [law for law in LAWS if law.name == "runs_follow_each_other"]
    (row,) = law.verdict(sample(TINY))  # of one run
    assert (row[2], row[4]) == (None, "nothing to compare")


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", [TINY, PIPELINE, SMALL])
def test_references_that_lead_elsewhere_never_stop_the_check(name: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    items = [
        f"{table.name}.{column.name}"
        for table in schema.TABLES
        if sample(name).length(table.name)
        for column in table.columns
        if column.range.rows and sample(name).length(column.range.rows)
    ]
    item = items[random.integers(len(items))]
    table, _, column = item.partition(".")
    refers = schema.TABLE[table].column(column).range
    last = sample(name).length(refers.rows)

    def anywhere(values: Values) -> Values:
        return random.integers(refers.least, last, len(values))

    check(spoiled(name, item, anywhere))
