"""The executed steps of a made report, by the clock model: each tile has its own clock.

Steps are found without a loop over them. After a sync each tile's clock is the time T of the sync
controller plus the way back, so what happens until the next sync is the same, relative to T, each
time that a segment is run. One pass through the body is worked out, and repeated by adding T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.synthetic.graph import TYPE, body_leaves, leaf_types, operands
from benchmarks.synthetic.size import CLOCK, Columns, Size, Values
from pva import schema

EXCHANGES = {
    "DoExchange": "exchange",
    "GlobalExchange": "external_exchange",
    "StreamCopy": "host_exchange",
}
ACTIVITIES = {"OnTileExecute": "compute", "DoExchange": "do_exchange", "StreamCopy": "stream_copy",
              "GlobalExchange": "global_exchange", "Sync": "sync"}  # fmt: skip
STEP_TYPE = {tag: code for code, tag in enumerate(schema.STEP_TYPES)}
LATE = 1 << 60


@dataclass(frozen=True, slots=True)
class Body:
    """One pass; a row behind the last is the first sync again, as a run begins with it.

    types     [row] codes of program types
    begin     [row][tile] clock before the step, relative to T of its segment
    cycles    [row][tile] how long the step takes
    gaps      [row] T of a sync less T of the sync before (less the clock at the run's begin)
    sent, received, active   [row][tile]
    idle      tile cycles from the end of a tile's last step to that of all
    end       latest clock at the end, relative to T of the last segment
    """

    types: Values
    begin: Values
    cycles: Values
    gaps: Values
    sent: Values
    received: Values
    active: Values
    idle: int
    end: int


def contents(size: Size, arrays: dict[str, Values]) -> tuple[dict[str, Columns], dict[str, Values]]:
    """Return the tables and arrays of the execution of a graph with `arrays`."""
    body = _body(size, arrays)
    in_run = np.tile(np.arange(size.body_steps), size.iterations)
    in_run[0] = size.body_steps
    row = np.tile(in_run, size.runs)
    run = np.repeat(np.arange(size.runs), len(in_run))
    time = np.cumsum(body.gaps[in_run])
    cycles = int(time[-1]) + body.end
    time = time + cycles * np.arange(size.runs)[:, None]
    time = time.reshape(-1)
    program = np.append(body_leaves(size), body_leaves(size)[0])
    tables: dict[str, Columns] = {
        "execution": {"profiler_mode": [schema.PROFILER_MODES.index("IPU_MODEL")],
                      "cycles": [cycles * size.runs]},
        "tile_cycles": _tile_cycles(body, row, size),
        "runs": _runs(size, len(in_run), cycles),
        "steps": _steps(body, row, time) | {"run": run, "program": program[row]},
        "steps_by_ipu": _steps_by_ipu(body, row, time, size),
    }  # fmt: skip
    at = np.arange(0, len(row), schema.CLOCK_INTERVAL)
    return tables, {"tile_clock": time[at][:, None] + body.begin[row[at]]}


def _body(size: Size, arrays: dict[str, Values]) -> Body:
    types = leaf_types(size.body_steps)
    compute_set, exchange = operands(types, size)
    is_sync = types == TYPE["Sync"]
    parts = {name: np.zeros((len(types) + 1, size.tiles), dtype=np.int64)
             for name in ("cycles", "sent", "received", "active")}  # fmt: skip
    here = np.flatnonzero(compute_set >= 0)
    parts["cycles"][here] = arrays["compute_set_cycles_by_tile"][compute_set[here]]
    parts["active"][here] = arrays["compute_set_active_cycles_by_tile"][compute_set[here]]
    for tag, name in EXCHANGES.items():
        here = np.flatnonzero(types == TYPE[tag])
        for part, what in (("cycles", "cycles"), ("sent", "bytes_sent"),
                           ("received", "bytes_received")):  # fmt: skip
            parts[part][here] = arrays[f"{name}_{what}"][exchange[here]]
    delay = np.tile(78 + arrays["relative_sync_delay"], size.ipus)
    request, release = (delay + 1) // 2, delay // 2
    cycles = parts["cycles"]
    # The clock before each step and, a row further, after it; cycles of syncs are still 0.
    clock = np.cumsum(np.vstack((release[None], cycles[:-1])), axis=0)
    first = np.flatnonzero(is_sync)
    begin = clock - (clock[first] - release)[np.append(np.cumsum(is_sync) - 1, -1)]
    last = np.append(first[1:], len(types)) - 1
    ends = begin[last] + cycles[last]
    before = np.vstack((ends[-1:], ends[:-1], np.zeros_like(ends[:1])))
    syncs = np.append(first, len(types))
    gaps = np.zeros(len(types) + 1, dtype=np.int64)
    gaps[syncs] = (before + request).max(axis=1)
    begin[syncs] = before - gaps[syncs][:, None]
    cycles[syncs] = release - begin[syncs]
    end = int(ends[-1].max())
    idle = int((end - ends[-1]).sum())
    return Body(np.append(types, TYPE["Sync"]), begin, gaps=gaps, idle=idle, end=end, **parts)


def _steps(body: Body, row: Values, time: Values) -> Columns:
    names = [schema.PROGRAM_TYPES[code] for code in body.types]
    step_types = np.array([STEP_TYPE[name] for name in names])
    longest, spent = body.cycles.max(axis=1), body.cycles.sum(axis=1)
    used = (body.cycles > 0).sum(axis=1)
    begin, end = body.begin.max(axis=1), (body.begin + body.cycles).max(axis=1)
    data = body.sent + body.received
    moves, runs = data.any(axis=1), body.active.any(axis=1)
    nothing = np.full(len(longest), np.nan)
    relative: dict[str, Values] = {
        "type": step_types,
        "sync_type": np.where(step_types == STEP_TYPE["Sync"], 2, 0),
        "cycles": longest,
        "cycles_overlapped": longest - (end - begin),
        "active_tiles": used,
        "tile_balance": spent / (longest * body.cycles.shape[1]),
        "active_tile_balance": spent / (longest * used),
        "thread_balance": np.divide(body.active.sum(axis=1), spent, out=nothing.copy(), where=runs),
        "total_data": np.where(moves, data.sum(axis=1) // 2, -1),
        "data_balance": np.divide(data.mean(axis=1), data.max(axis=1), out=nothing, where=moves),
    }
    columns: Columns = {name: values[row] for name, values in relative.items()}
    return columns | {"cycles_from": time + begin[row], "cycles_to": time + end[row]}


def _steps_by_ipu(body: Body, row: Values, time: Values, size: Size) -> Columns:
    def by_ipu(values: Values) -> Values:
        return values.reshape(len(values), size.ipus, size.tiles_per_ipu)

    cycles, begin = by_ipu(body.cycles), by_ipu(body.begin)
    end, used = begin + cycles, cycles > 0
    longest, spent = cycles.max(axis=2), cycles.sum(axis=2)
    times = {
        "from_min": np.where(used, begin, LATE).min(axis=2),
        "from_max": np.where(used, begin, -LATE).max(axis=2),
        "to_min": np.where(used, end, LATE).min(axis=2),
        "to_max": np.where(used, end, -LATE).max(axis=2),
        "all_to_min": end.min(axis=2),
        "all_to_max": end.max(axis=2),
    }
    rest = {
        "cycles": longest,
        "tile_balance": spent / (longest * size.tiles_per_ipu),
        "active_tile_balance": spent / (longest * used.sum(axis=2)),
        "bytes_in": by_ipu(body.received).sum(axis=2),
        "bytes_out": by_ipu(body.sent).sum(axis=2),
    }
    columns: Columns = {
        "step": np.repeat(np.arange(len(row)), size.ipus),
        "ipu": np.tile(np.arange(size.ipus), len(row)),
    }
    columns |= {name: values[row].reshape(-1) for name, values in rest.items()}
    return columns | {
        name: (time[:, None] + values[row]).reshape(-1) for name, values in times.items()
    }


def _tile_cycles(body: Body, row: Values, size: Size) -> Columns:
    times = np.bincount(row, minlength=len(body.types))
    spent = body.cycles.sum(axis=1) * times
    found = dict.fromkeys((c.name for c in schema.TABLE["tile_cycles"].columns), 0)
    for tag, name in ACTIVITIES.items():
        found[name] = int(spent[body.types == TYPE[tag]].sum())
    found["active_compute"] = int((body.active.sum(axis=1) * times).sum())
    found["idle_at_end"] = body.idle * size.runs
    return {name: [value] for name, value in found.items()}


def _runs(size: Size, steps: int, cycles: int) -> Columns:
    run = np.arange(size.runs)
    start = 1_767_225_600e6 + 1e6 * run
    return {
        "name": ["train"] * size.runs, "program": 0 * run, "first_step": steps * run,
        "end_step": steps * (run + 1), "cycles_from": cycles * run, "cycles": 0 * run + cycles,
        "start_microseconds": start, "end_microseconds": start + cycles / CLOCK * 1e6,
    }  # fmt: skip
