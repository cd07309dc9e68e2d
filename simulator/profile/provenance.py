"""How far each table and array of a report can be trusted, and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from simulator.codelets.catalogue import source_of
from simulator.graph.machine.target import Target
from simulator.graph.vertices.vertex import Codelet

EXACT, ESTIMATE, MEASURED = "exact", "estimate", "measured"


class Trust(NamedTuple):
    """A quality, its reason, and the tables and arrays that it holds for."""

    quality: str
    reason: str
    items: str


TRUST = (
    Trust(
        EXACT,
        "as the program made and mapped it, and as this compiler lowers it",
        "optimization_info graph io_tiles vertex_types compute_sets compute_set_vertices programs "
        "program_children control_programs function_programs written_programs written_results "
        "variables variable_pieces variable_intervals access vertex_count_by_tile "
        "exchange_bytes_received exchange_bytes_sent external_exchange_bytes_received "
        "external_exchange_bytes_sent host_exchange_bytes_received host_exchange_bytes_sent "
        "exchange_flows external_exchange_flows",
    ),
    Trust(
        EXACT,
        "from what each program reads and writes, for this compiler's lowering",
        "liveness liveness_steps liveness_bytes_by_ipu not_always_live_max_bytes",
    ),
    Trust(
        ESTIMATE,
        "data is exact for this compiler; code, stack, vertex state and headers are modelled",
        "memory_by_tile memory_by_category always_live_bytes always_live_variables",
    ),
    Trust(ESTIMATE, "fitted to the user guide's sample", "control_code"),
    Trust(
        ESTIMATE,
        "sizes of vertices and of their code are modelled",
        "memory_by_compute_set_code memory_by_compute_set_copy_pointers "
        "memory_by_compute_set_descriptors memory_by_compute_set_edge_pointers "
        "memory_by_compute_set_padding memory_by_compute_set_vertex_data "
        "memory_by_compute_set_total memory_by_vertex_type_code "
        "memory_by_vertex_type_copy_pointers memory_by_vertex_type_descriptors "
        "memory_by_vertex_type_edge_pointers memory_by_vertex_type_padding "
        "memory_by_vertex_type_vertex_data memory_by_vertex_type_total",
    ),
    Trust(
        ESTIMATE,
        "latency and code of an exchange are fitted to three published figures",
        "exchange_cycles exchange_code_bytes exchange_instructions",
    ),
    Trust(
        ESTIMATE,
        "the IPU-Link constraints that PopLibs gives to the IPU Model; the latency is a guess",
        "external_exchange_cycles external_exchange_code_bytes",
    ),
    Trust(
        ESTIMATE,
        "a link of 8 GB/s, fitted to published runs; for remote buffers what PCIe Gen4 x8 carries",
        "host_exchange_cycles host_exchange_code_bytes",
    ),
    Trust(
        ESTIMATE,
        "sizes and clock are published; sync delays of single tiles and their places are not",
        "target relative_sync_delay physical_tile",
    ),
    Trust(
        ESTIMATE,
        "the clock model replays the user guide's sample; the durations are estimates",
        "execution tile_cycles steps steps_by_ipu tile_clock",
    ),
    Trust(
        ESTIMATE,
        "counted by the model as the hardware would: the durations of the model and the estimated "
        "cycles of the counters themselves",
        "measured_compute_set_cycles_by_tile measured_compute_set_cycles "
        "measured_compute_set_cycles_by_ipu measured_vertex_cycles "
        "measured_external_exchange_cycles measured_host_exchange_cycles",
    ),
    Trust(
        ESTIMATE,
        "the clock of the model on one tile of each IPU; what recording costs, its cycles, buffer "
        "and code, is estimated",
        "blocks",
    ),
    Trust(EXACT, "as the vertices of the graph", "vertex_compute_set vertex_vertex_type"),
    Trust(MEASURED, "times of the host; cycles are those of the steps", "runs other_runs"),
)
VERTEX_CYCLES = (
    "compute_set_active_cycles_by_tile",
    "compute_set_active_cycles_by_vertex_type",
    "compute_set_cycles_by_tile",
)
OF_TARGET = ("target", "relative_sync_delay", "physical_tile")
HELD = "weights, inputs and outputs alone, spread over the tiles, and nothing is computed"


def between_domains(target: Target) -> str:
    """Return the reason for cycles between IPUs of several link domains; empty for one."""
    if target.num_ipus <= target.link_domain_size:
        return ""
    rate, late = target.gateway_bits_per_second / 1e9, target.gateway_nanoseconds / 1e3
    return (
        f"GW-Links between hosts: {rate:g} Gbit/s for every {target.gateway_ipus} IPUs, as "
        f"published, all of it used, and {late:g} us, which is a guess; IPU-Links as PopLibs gives "
        "them to the IPU Model"
    )


def provenance(
    vertex_types: Sequence[Codelet],
    target: Target,
    absent: Collection[str] = (),
    unplanned: str = "",
) -> dict[str, list[object]]:
    """Make the table, without what is `absent` from the report.

    The reason for cycles of vertices names the sources of those in use. Of a program that is
    `unplanned`, why it has no plan, nothing but the target is more than an estimate.
    """
    names = {codelet.name.partition("<")[0] for codelet in vertex_types}
    origins = {source_of(name) for name in names}
    sources = sorted(
        source.removeprefix("PopLibs ") for source in origins if source.startswith("PopLibs ")
    )
    formulas = f"; formulas of PopLibs: {', '.join(sources)}" if sources else ""
    guessed = sorted({codelet.name for codelet in vertex_types if codelet.guessed})
    estimated = f"; of {', '.join(guessed)} guessed from compute" if guessed else ""
    cycles = f"estimates given with the program's own codelets{estimated}{formulas}"
    rows = [(item, trust.quality, trust.reason) for trust in TRUST for item in trust.items.split()]
    rows += [(item, ESTIMATE, cycles) for item in VERTEX_CYCLES]
    if reason := between_domains(target):
        rows = [(i, q, reason if i == "external_exchange_cycles" else why) for i, q, why in rows]
    if unplanned:
        reason = f"no plan exists: {unplanned}; {HELD}"
        rows = [row if row[0] in OF_TARGET else (row[0], ESTIMATE, reason) for row in rows]
    rows = [row for row in rows if row[0] not in absent]
    return {name: [r[i] for r in rows] for i, name in enumerate(("item", "quality", "reason"))}
