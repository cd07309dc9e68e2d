"""The columns of every analysis with their units; a test holds them against what is given.

Those of a dataclass are its fields. `NAME:UNIT`, a number without a unit is a count, an index or
an identifier; `*` stands for columns that depend on the report.
"""

from __future__ import annotations


def _column(word: str) -> tuple[str, str]:
    name, _, unit = word.partition(":")
    return name, unit.replace("-", " ")


_TEXTS: dict[str, str] = {
    "insights": (
        "rule about severity what where amount unit advice saving of saving_share:fraction "
        "on_fullest:bytes show tile step variable name"
    ),
    "unchecked_rules": "rule about tells why",
    "report_overview": (
        "type architecture ipus tiles created fullest_tile fullest_bytes:bytes "
        "bytes_per_tile:bytes tiles_out_of_memory code_counted runs cycles:cycles seconds:s"
    ),
    "report_sketch": "part place name first amount share:fraction unit",
    "recorded_parts": "part recorded option",
    "memory_overview": (
        "bytes_per_tile:bytes tiles total:bytes total_including_gaps:bytes fullest_tile "
        "fullest_bytes:bytes fullest_share:fraction fullest_tile_excluding_gaps "
        "fullest_bytes_excluding_gaps:bytes mean_bytes:bytes tiles_out_of_memory "
        "largest_category largest_category_bytes:bytes code_counted"
    ),
    "memory_by_tile": (
        "tile ipu total:bytes total_including_gaps:bytes interleaved:bytes "
        "non_interleaved:bytes overflowed:bytes free:bytes"
    ),
    "fullest_tiles": "tile ipu bytes:bytes free:bytes",
    "memory_by_category": "category label not_overlapped:bytes overlapped:bytes total:bytes",
    "category_by_tile": "tile *:bytes overlapped:bytes",
    "memory_by_region": (
        "region bytes:bytes share:fraction gaps:bytes tiles fullest_tile fullest_bytes:bytes"
    ),
    "memory_by_ipu": (
        "ipu tiles bytes:bytes bytes_including_gaps:bytes share:fraction fullest_tile "
        "fullest_bytes:bytes free:bytes tiles_out_of_memory"
    ),
    "memory_by_vertex_type": (
        "vertex_type vertex_data:bytes edge_pointers:bytes copy_pointers:bytes padding:bytes "
        "descriptors:bytes code:bytes total:bytes"
    ),
    "memory_by_compute_set": (
        "compute_set name vertices state:bytes vertex_data:bytes edge_pointers:bytes "
        "copy_pointers:bytes padding:bytes descriptors:bytes code:bytes"
    ),
    "memory_by_operation": (
        "operation layer bytes:bytes variables:bytes vertex_state:bytes control_code:bytes "
        "exchange_code:bytes"
    ),
    "code_by_program": (
        "program type name code:bytes control_code:bytes exchange_code:bytes tiles "
        "most_on_a_tile:bytes"
    ),
    "largest_variables": (
        "variable name type shape category bytes:bytes share:fraction always_live at_peak"
    ),
    "memory_by_layer": (
        "layer variables bytes:bytes always_live_bytes:bytes peak_bytes:bytes share:fraction"
    ),
    "memory_by_type": "type variables bytes:bytes always_live_bytes:bytes peak_bytes:bytes",
    "variable_spread": (
        "variable name category bytes:bytes tiles fullest_tile most_bytes:bytes "
        "balance:fraction excess_bytes:bytes"
    ),
    "variable_by_tile": "tile ipu bytes:bytes pieces address:bytes",
    "variable_uses": "program type name reads writes executions",
    "graph_nodes": "key kind name bytes:bytes reads writes",
    "graph_edges": "source source_name target target_name bytes:bytes",
    "memory_map": (
        "tile address:bytes end:bytes bytes:bytes region name category first_step last_step"
    ),
    "memory_series": "tile *:bytes",
    "variables_by_tile": "tile *:bytes",
    "floor_plan": "tile ipu physical_tile column row bytes:bytes free:bytes",
    "address_map": (
        "tile address:bytes end:bytes bytes:bytes region name category first_step last_step kind "
        "shares"
    ),
    "tile_details": "path label *:bytes",
    "vertices_on_tiles": "name vertices code:bytes state:bytes total:bytes *:bytes",
    "compute_sets_on_tiles": ("compute_set name vertices instances state:bytes code:bytes *:bytes"),
    "exchanges_on_tiles": (
        "kind exchange name code_bytes:bytes bytes_received:bytes bytes_sent:bytes *:bytes"
    ),
    "variables_on_tiles": "variable name category type shape always_live bytes:bytes *:bytes",
    "fragmentation": (
        "tile ipu bytes:bytes gaps:bytes gap_share:fraction non_interleaved_gaps:bytes "
        "interleaved_gaps:bytes overflowed_gaps:bytes between_regions:bytes free:bytes"
    ),
    "memory_usage": (
        "including_gaps:bytes total:bytes non_interleaved:bytes interleaved:bytes "
        "overflowed:bytes not_overlapped_by_category:bytes overlapped_by_category:bytes"
    ),
    "memory_histogram": "low_kb:kB high_kb:kB tiles",
    "liveness_overview": (
        "always_live:bytes peak_step peak_type peak_name peak_bytes:bytes max_live:bytes "
        "largest_variable largest_variable_bytes:bytes"
    ),
    "liveness_curve": (
        "step program type name depth always_live:bytes not_always_live:bytes total:bytes"
    ),
    "variable_figures": (
        "variable name type shape category bytes:bytes tiles fullest_tile most_bytes:bytes "
        "always_live first_step last_step first_name last_name at_peak readers writers last_reader "
        "last_writer operation file line function"
    ),
    "variable_contexts": "context layer name file line function json",
    "live_variables": "variable name category bytes:bytes",
    "always_live_variables": "name bytes:bytes",
    "live_at_peak": "variable name category always_live bytes:bytes share:fraction",
    "liveness_by_ipu": (
        "ipu most_live:bytes always_live:bytes not_always_live:bytes peak_step type name"
    ),
    "liveness_by_tile": (
        "tile ipu most_live:bytes always_live:bytes not_always_live:bytes share:fraction free:bytes"
    ),
    "variable_lifetimes": (
        "variable name category bytes:bytes steps first_step last_step at_peak "
        "byte_steps:bytes*steps"
    ),
    "liveness_map": ("step type name tile last_tile ipu fullest_tile live:bytes always_live:bytes"),
    "live_at_steps": "variable name category * change:bytes",
    "live_over_tiles": (
        "step type name least:bytes mean:bytes most:bytes deviation:bytes fullest_tile"
    ),
    "vertices_at_steps": "vertex_type state:bytes * change",
    "cycle_estimates": (
        "step type name cycles:cycles mean_cycles:cycles active_tiles slowest_tile"
    ),
    "lifetime_intervals": "variable name bytes:bytes begin end",
    "execution_overview": (
        "cycles:cycles seconds:s runs recorded_runs steps time_shares:fraction "
        "tile_cycles:tile-cycles compute_share:fraction exchange_share:fraction "
        "host_share:fraction sync_share:fraction idle_share:fraction tile_balance:fraction "
        "thread_balance:fraction"
    ),
    "cycles_by_phase": (
        "phase steps cycles:cycles share:fraction overlapped_cycles:cycles "
        "tile_cycles:tile-cycles tile_share:fraction"
    ),
    "cycles_by_cause": "cause cycles:cycles share:fraction",
    "cycles_by_layer": (
        "layer steps cycles:cycles share:fraction compute:cycles exchange:cycles "
        "host_exchange:cycles sync:cycles flops:flop"
    ),
    "cycles_by_operation": (
        "operation layer steps cycles:cycles share:fraction compute:cycles exchange:cycles "
        "host_exchange:cycles sync:cycles flops:flop"
    ),
    "software_layers": "layer label operations programs contexts",
    "operation_costs": (
        "operation kind programs steps cycles:cycles share:fraction compute:cycles exchange:cycles "
        "host_exchange:cycles sync:cycles estimated_cycles:cycles flops:flop code:bytes "
        "control_code:bytes exchange_code:bytes vertex_code:bytes vertex_state:bytes "
        "variables:bytes peak_bytes:bytes"
    ),
    "operation_totals": "figure unit operations outside elsewhere whole",
    "operation_compute_sets": (
        "compute_set name vertices executions cycles:cycles estimated_cycles:cycles flops:flop "
        "float_peak_share:fraction"
    ),
    "operation_by_tile": (
        "tile ipu compute:cycles exchange:cycles host_exchange:cycles control_code:bytes "
        "exchange_code:bytes vertex_state:bytes"
    ),
    "operation_contexts": "context layer name file line function json programs",
    "program_stages": "role line program type name executions cycles:cycles share:fraction",
    "program_tree": (
        "program parent depth end part number type name sync_type count function executions "
        "cycles:cycles share:fraction mean_cycles:cycles estimated_cycles:cycles first_step "
        "liveness_step"
    ),
    "program_figures": (
        "program type name operand operand_name count sync_type executions cycles:cycles "
        "share:fraction min_cycles:cycles mean_cycles:cycles max_cycles:cycles "
        "estimated_cycles:cycles active_tiles bytes_received:bytes bytes_sent:bytes vertices "
        "flops:flop control_code:bytes exchange_code:bytes vertex_state:bytes first_step "
        "longest_step liveness_step"
    ),
    "program_by_tile": (
        "tile ipu cycles:cycles active_cycles:cycles bytes_received:bytes bytes_sent:bytes"
    ),
    "vertices_of_program": "vertex_type vertices tiles cycles:cycles state:bytes",
    "variables_of_program": "variable name type shape access bytes:bytes always_live",
    "contexts_of_program": "context layer name file line function json",
    "compiled_types": "written compiled programs cycles:cycles",
    "compiled_programs": (
        "program depth type name sync_type executions cycles:cycles share:fraction "
        "estimated_cycles:cycles parts"
    ),
    "written_figures": (
        "program type name role compute_set compute_set_name target count source destination "
        "bytes:bytes"
    ),
    "cycles_by_ipu": (
        "ipu tiles compute_share:fraction exchange_share:fraction "
        "host_exchange_share:fraction waiting_share:fraction busiest_tile "
        "busiest_share:fraction"
    ),
    "cycles_by_tile": (
        "tile ipu compute:cycles exchange:cycles host_exchange:cycles busy:cycles "
        "waiting:cycles busy_share:fraction"
    ),
    "tile_balance": (
        "program type name executions cycles:cycles mean_cycles:cycles tile_balance:fraction "
        "tiles active_tiles lost_cycles:cycles"
    ),
    "thread_balance": (
        "compute_set name executions vertices active_tiles vertices_per_tile "
        "tile_cycles:tile-cycles active_cycles:tile-cycles thread_balance:fraction "
        "idle_cycles:tile-cycles"
    ),
    "slowest_vertices": (
        "compute_set name vertex_type vertices min_cycles:cycles mean_cycles:cycles "
        "max_cycles:cycles balance:fraction"
    ),
    "slowest_tiles": "step name tile ipu cycles:cycles active_cycles:cycles over_mean",
    "sync_waits": "sync_type after syncs cycles:cycles share:fraction",
    "why_idle": (
        "ipu compute:fraction imbalance:fraction bubble:fraction exchange:fraction "
        "global_exchange:fraction host:fraction sync:fraction waits_for meanwhile"
    ),
    "waits": (
        "ipu for_ipu for_tile type name stage first_step tile_cycles:tile-cycles cycles:cycles "
        "share:fraction"
    ),
    "critical_path": "ipu type name steps first_step cycles:cycles share:fraction",
    "path_steps": ("run step ipu tile type name cycles_from:cycles cycles_to:cycles cycles:cycles"),
    "arrivals": "ipu tile cycle:cycles name waits:cycles mean_wait:cycles",
    "longest_waits": (
        "run step ipu for_ipu for_tile name cycles_from:cycles cycles_to:cycles cycles:cycles"
    ),
    "stream_ends": "ipu way tiles bytes:bytes most_bytes:bytes fullest_tile",
    "stream_variables": "variable name bytes:bytes written",
    "cycles_by_name": "path parent total:cycles own:cycles",
    "code_by_name": "path parent total:bytes own:bytes",
    "memory_by_name": "path parent total:bytes own:bytes",
    "ipu_balance": "ipu own_cycles:cycles waits:fraction waited_for:fraction",
    "layer_moves": ("from_ipu to_ipu layers first last cycles:cycles longest:cycles saving:cycles"),
    "largest_exchanges": (
        "kind exchange name bytes_received:bytes bytes_sent:bytes cycles:cycles "
        "bytes_per_cycle:bytes/cycle code_bytes:bytes"
    ),
    "exchange_spread": (
        "kind exchange name fan_out receivers busiest_receiver busiest_receiver_bytes:bytes "
        "receive_balance:fraction senders busiest_sender busiest_sender_bytes:bytes "
        "send_balance:fraction"
    ),
    "exchange_matrix": (
        "from_ipu to_ipu bytes_at_least:bytes bytes_at_most:bytes exact share:fraction"
    ),
    "exchange_flows": (
        "from_tile from_last from_ipu to_tile to_last to_ipu bytes:bytes bytes_at_least:bytes "
        "bytes_at_most:bytes exact share:fraction"
    ),
    "traffic_by_tile": (
        "tile ipu bytes:bytes received:bytes sent:bytes global_received:bytes "
        "global_sent:bytes from_host:bytes to_host:bytes"
    ),
    "exchange_code": (
        "program name total:bytes delay:bytes exchange:bytes other:bytes "
        "receive_address:bytes receive_format:bytes receive_mux:bytes send:bytes "
        "send_with_put_address:bytes send_with_put_format:bytes send_with_put_mux:bytes"
    ),
    "stream_bandwidth": (
        "name executions bytes_in:bytes bytes_out:bytes cycles:cycles exposed_cycles:cycles "
        "bytes_per_second:bytes/s"
    ),
    "cycles_by_vertex_type": (
        "vertex_type instances cycles_once:cycles cycles:cycles share:fraction"
    ),
    "cycles_by_program": (
        "program type name executions cycles:cycles share:fraction mean_tile_balance:fraction"
    ),
    "vertices_by_compute_set": "compute_set name vertex_type instances cycles:cycles",
    "vertices_of_step": "vertex_type instances cycles:cycles",
    "flop_utilisation": (
        "flops:flop cycles:cycles compute_cycles:cycles flops_per_second:flop/s "
        "float_peak:flop/s half_peak:flop/s float_peak_share:fraction "
        "half_peak_share:fraction compute_float_peak_share:fraction "
        "compute_half_peak_share:fraction unknown_compute_sets"
    ),
    "flops_by_compute_set": (
        "compute_set name executions flops:flop cycles:cycles flops_per_cycle:flop/cycle "
        "float_peak_share:fraction half_peak_share:fraction"
    ),
    "estimated_against_measured": (
        "compute_set name executions estimated_cycles:cycles mean_cycles:cycles "
        "min_cycles:cycles max_cycles:cycles measured_cycles:cycles excess_cycles:cycles"
    ),
    "varying_programs": (
        "program type name executions min_cycles:cycles mean_cycles:cycles max_cycles:cycles "
        "longest_step spread_cycles:cycles"
    ),
    "overlap": (
        "ipu io_cycles:cycles compute_cycles:cycles both_cycles:cycles hidden_share:fraction"
    ),
    "overlap_io": (
        "run name ipu cycles:cycles io_cycles:cycles hidden_cycles:cycles exposed_cycles:cycles "
        "hidden_share:fraction exposed_share:fraction io_tiles"
    ),
    "longest_steps": (
        "step run type name cycles:cycles all_cycles:cycles cycles_from:cycles active_tiles "
        "tile_balance:fraction"
    ),
    "steps": (
        "step run name type sync_type program cycles:cycles cycles_from:cycles "
        "cycles_to:cycles cycles_overlapped:cycles active_tiles tile_balance:fraction "
        "active_tile_balance:fraction thread_balance:fraction total_data:bytes "
        "data_balance:fraction"
    ),
    "runs": (
        "run name program first_step end_step cycles_from:cycles cycles:cycles "
        "start_microseconds:µs end_microseconds:µs trace_begin:ns trace_end:ns items batches "
        "stages steps recorded device_microseconds:µs"
    ),
    "main_run": (
        "runs cycles:cycles seconds:s items items_per_second:items/s batches stages "
        "steady_cycles:cycles steady_seconds:s steady_items_per_second:items/s "
        "latency_cycles:cycles latency_seconds:s setup_runs setup_cycles:cycles setup_seconds:s"
    ),
    "other_runs": "name runs cycles:cycles device_microseconds:µs",
    "time_between_runs": (
        "run name gap_microseconds:µs gap_share:fraction run_microseconds:µs device_microseconds:µs"
    ),
    "blocks": (
        "name kind type ipu count total_cycles:cycles mean_cycles:cycles min_cycles:cycles "
        "max_cycles:cycles"
    ),
    "range_by_ipu": (
        "ipu compute:fraction exchange:fraction host_exchange:fraction waiting:fraction "
        "parallel_efficiency:fraction tile_balance:fraction stream_bytes_in:bytes "
        "stream_bytes_out:bytes remote_bytes_in:bytes remote_bytes_out:bytes "
        "global_bytes_in:bytes global_bytes_out:bytes"
    ),
    "range_by_program": (
        "program type name executions cycles:cycles share:fraction bytes:bytes first_step"
    ),
    "step_executions": (
        "program count mean:cycles p50:cycles p95:cycles least:cycles most:cycles longest outliers"
    ),
    "tile_cycles_of_step": "tile ipu cycles:cycles",
    "threads": "pid tid name events depth begin_ns:ns end_ns:ns busy_ns:ns",
    "label_statistics": (
        "label channel count total_ns:ns self_ns:ns mean_ns:ns min_ns:ns p50_ns:ns p90_ns:ns "
        "p99_ns:ns max_ns:ns"
    ),
    "channel_statistics": "channel labels events self_ns:ns longest_ns:ns share:fraction",
    "longest_events": "label channel pid tid begin_ns:ns duration_ns:ns self_ns:ns",
    "requests": (
        "id model version how begin_ns:ns rows batch queue_ns:ns upload_ns:ns execute_ns:ns "
        "download_ns:ns other_ns:ns latency_ns:ns padding:rows cycles:cycles"
    ),
    "batches": (
        "model version batch begin_ns:ns requests rows padding:rows queue_mean_ns:ns "
        "queue_longest_ns:ns upload_ns:ns execute_ns:ns download_ns:ns cycles:cycles fill:fraction"
    ),
    "latency_percentiles": (
        "part mean_ns:ns share:fraction p50_ns:ns p90_ns:ns p95_ns:ns p99_ns:ns max_ns:ns"
    ),
    "latency_by_load": (
        "load:1/s windows requests queue_ns:ns upload_ns:ns execute_ns:ns download_ns:ns "
        "other_ns:ns latency_ns:ns"
    ),
    "batch_what_if": (
        "delay_ns:ns preferred instances dynamic configured requests answered rejected refused "
        "rows batches rows_per_batch pieces fill:fraction padding_rows:rows device_ns:ns "
        "device_share:fraction span_ns:ns requests_per_second:1/s rows_per_second:1/s "
        "queue_mean_ns:ns queue_longest latency_mean_ns:ns latency_p50_ns:ns latency_p90_ns:ns "
        "latency_p95_ns:ns latency_p99_ns:ns latency_p99_9_ns:ns latency_max_ns:ns"
    ),
    "instances": (
        "instance host pid exit_code seconds:s runs cycles:cycles trace_seconds:s graph problems"
    ),
    "equal_graphs": "instance host graph differs table column row value most",
    "stragglers": (
        "instance host straggler cause wait_ns:ns wait_share:fraction explained:fraction steps "
        "last worst_step worst_wait_ns:ns between_ns:ns callback_ns:ns compute_ns:ns basis"
    ),
    "instance_pace": "instance host occurrence begin_ns:ns duration_ns:ns period_ns:ns late_ns:ns",
    "instance_utilisation": (
        "instance host part begin_ns:ns end_ns:ns run:fraction callback:fraction "
        "collective:fraction"
    ),
    "clock_residual": "instance host method offset_ns:ns residual_ns:ns events problem",
}


COLUMNS: dict[str, dict[str, str]] = {
    analysis: dict(_column(word) for word in text.split()) for analysis, text in _TEXTS.items()
}
