"""The tables of the execution profile."""

from __future__ import annotations

from pva.schema.declaration import (
    BLOCKS_OPTION,
    EXECUTION_OPTION,
    SIZE_LIMIT,
    Column,
    Range,
    Table,
    code,
    fraction,
    text,
    whole,
)
from pva.schema.enums import BLOCK_KINDS, PROFILER_MODES, STEP_TYPES, SYNC_TYPES

_BALANCES = (
    fraction("tile_balance", "fraction", "cycles of all tiles / (cycles * tiles)"),
    fraction("active_tile_balance", "fraction", "the same over the active tiles alone"),
)

_RUN = (
    whole("cycles_from", "cycles", "clock at its begin", optional=True),
    whole("cycles", "cycles", "how long it took on the device", optional=True),
    fraction("start_microseconds", "µs", "begin on the host, since the epoch", "microseconds.start"),
    fraction("end_microseconds", "µs", "end on the host, since the epoch", "microseconds.end"),
    whole("trace_begin", "ns", "begin on the clock of the host trace, -1 without a trace", optional=True),
    whole("trace_end", "ns", "end on the clock of the host trace, -1 without a trace", optional=True),
)  # fmt: skip

EXECUTION_TABLES: tuple[Table, ...] = (
    Table("execution", "execution", "", "object", (
        code("profiler_mode", PROFILER_MODES, "how cycles were found"),
        whole("cycles", "cycles", "from the first to the last cycle of all recorded runs", "simulation.cycles", optional=True),
    ), "the execution as a whole", EXECUTION_OPTION),
    Table("tile_cycles", "execution", "simulation.tileCycles", "object", (
        whole("active_compute", "tile cycles", "compute, idle threads excluded"),
        whole("compute", "tile cycles", "compute, idle threads included"),
        whole("copy_shared_structure", "tile cycles", "copies of shared structures"),
        whole("do_exchange", "tile cycles", "internal exchange"),
        whole("global_exchange", "tile cycles", "exchange between IPUs"),
        whole("stream_copy", "tile cycles", "exchange with the host"),
        whole("sync", "tile cycles", "waiting for and in syncs"),
        whole("idle_at_end", "tile cycles", "from a tile's last step to the end of the run"),
    ), "cycles by activity, tiles counted one by one", EXECUTION_OPTION),
    Table("runs", "execution", "runs", "records", (
        text("name", "name of the run"),
        whole("program", "", "control program that was run: 0, 1, ..."),
        whole("first_step", "", "row of steps of its first step", within=Range(0, rows="steps", end=True)),
        whole("end_step", "", "row after its last step; equal to first_step when the run was not recorded in full", within=Range(0, rows="steps", end=True)),
        *_RUN,
        whole("items", "", "items that all replicas took in, such as images; PopART's sessions and Engine.run(work=...) tell them", optional=True),
        whole("batches", "", "batches that one replica took in one after another", optional=True),
        whole("stages", "", "batches in its pipeline at once when it is full; 1 without one", optional=True),
    ), "calls of Engine.run: those of the model", EXECUTION_OPTION),
    Table("other_runs", "execution", "otherRuns", "records", (
        text("name", "name of the run"),
        whole("program", "", "control program that was run: 0, 1, ..."),
        *_RUN,
    ), "calls of Engine.run while profiling was disabled, such as those that move weights; no other table has them",
    EXECUTION_OPTION),
    Table("steps", "execution", "simulation.steps", "records", (
        code("type", STEP_TYPES, "what was done"),
        Column("sync_type", "code", "", "kind of sync", optional=True, values=SYNC_TYPES),
        whole("program", "", "row of programs", within=Range(rows="programs")),
        whole("run", "", "row of runs", within=Range(rows="runs")),
        whole("cycles", "cycles", "of the longest running tile", optional=True),
        whole("cycles_from", "cycles", "latest clock of any tile before the step", optional=True),
        whole("cycles_to", "cycles", "latest clock of any tile after the step", optional=True),
        whole("cycles_overlapped", "cycles", "of `cycles`, hidden behind earlier steps", optional=True, within=Range(-SIZE_LIMIT, SIZE_LIMIT)),
        whole("active_tiles", "", "tiles that did something", optional=True),
        fraction("tile_balance", "fraction", _BALANCES[0].meaning, optional=True),
        fraction("active_tile_balance", "fraction", _BALANCES[1].meaning, optional=True),
        fraction("thread_balance", "fraction", "how well the threads of the tiles were used", optional=True),
        whole("total_data", "bytes", "half of what all tiles sent and received", optional=True),
        fraction("data_balance", "fraction", "mean / most of the bytes sent and received by a tile", optional=True),
    ), "executed steps of the runs that were recorded in full", EXECUTION_OPTION, wide=True),
    Table("steps_by_ipu", "execution", "simulation.stepsByIpu", "columns", (
        whole("step", "", "row of steps"), whole("ipu", "", "IPU", within=Range(axis="ipu")),
        whole("cycles", "cycles", "of the longest running tile of the IPU"),
        whole("from_min", "cycles", "earliest begin on an active tile"),
        whole("from_max", "cycles", "latest begin on an active tile"),
        whole("to_min", "cycles", "earliest end on an active tile"),
        whole("to_max", "cycles", "latest end on an active tile"),
        whole("all_to_min", "cycles", "earliest clock of any tile of the IPU after the step", optional=True),
        whole("all_to_max", "cycles", "latest clock of any tile of the IPU after the step", optional=True),
        *_BALANCES,
        whole("bytes_in", "bytes", "received by the tiles of the IPU"),
        whole("bytes_out", "bytes", "sent by the tiles of the IPU"),
    ), "the same steps on each IPU", EXECUTION_OPTION, wide=True),
    Table("blocks", "execution", "blocks", "columns", (
        whole("run", "", "row of runs", within=Range(rows="runs")),
        whole("ipu", "", "IPU"),
        whole("tile", "", "tile whose clock was read"),
        whole("program", "", "row of programs, -1 for an overflow", within=Range(rows="programs")),
        code("kind", BLOCK_KINDS, "a block of the program, or what the profiler did"),
        whole("cycles_from", "cycles", "the tile's clock at the begin"),
        whole("cycles_to", "cycles", "the tile's clock at the end"),
    ), "lightweight profiling: begin and end of blocks on one tile an IPU", BLOCKS_OPTION, wide=True),
)  # fmt: skip
