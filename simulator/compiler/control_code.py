"""Control code: what each tile keeps of every program, and what counts cycles there.

Estimates. CONTROL_BASE and CONTROL_BYTES fit the 356 to 1,216 bytes a tile of control code in the
user guide's profile sample. There a stream copy is one program: the code of its three phases is
counted in the middle one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.compiler.executable import Lowered
from simulator.compiler.instrument import COUNTER_CODE_BYTES, counting_on, vertices_run
from simulator.compiler.instrumentation import Instrumentation
from simulator.graph.machine.target import Target
from simulator.graph.types import IntArray

CONTROL_BASE, CONTROL_BYTES = 60, 8
WAITS = ("StreamCopyBegin", "StreamCopyEnd")


def control_code(
    target: Target, lowered: Lowered, instrumentation: Instrumentation
) -> Iterator[int | IntArray]:
    """Return the bytes of each program's own control code, by tile or one number for all tiles.

    A tile keeps the programs in which it takes part; all take part in syncs and containers. The
    first program, which is around all others, has the base too. A compute set is counted in every
    program that runs it, an exchange in the first that makes it.
    """
    runs = vertices_run(target, lowered)
    counting = counting_on(instrumentation, target, lowered)
    exchanges = {
        "DoExchange": (lowered.exchanges, False),
        "GlobalExchange": (lowered.global_exchanges, instrumentation.external_exchange),
        "StreamCopy": (lowered.host_exchanges, instrumentation.host_exchange),
    }
    counted = set()
    for row, program in enumerate(lowered.programs):
        code: int | IntArray = 0 if program.type in WAITS else CONTROL_BYTES
        if program.type == "OnTileExecute":
            code = CONTROL_BYTES * runs[program.compute_set]
            code += COUNTER_CODE_BYTES * counting[program.compute_set]
        elif program.type in exchanges:
            costs, counts = exchanges[program.type]
            key = (program.type, program.exchange)
            counter = COUNTER_CODE_BYTES * (counts and key not in counted)
            counted.update([key] if counts else [])
            code = (CONTROL_BYTES + counter) * (costs[program.exchange].cycles > 0).astype(np.int64)
        yield code + CONTROL_BASE * (row == 0)


def control_stretches(
    target: Target, lowered: Lowered, instrumentation: Instrumentation
) -> dict[str, IntArray]:
    """Return the same as stretches of tiles with as many bytes: the table `control_code`."""
    rows: list[IntArray] = []
    for program, code in enumerate(control_code(target, lowered, instrumentation)):
        begins, ends, sizes = _stretches(code, target.num_tiles)
        rows.append(np.stack((np.full_like(begins, program), begins, ends, sizes)))
    names = ("program", "tile", "end_tile", "bytes")
    return dict(zip(names, np.concatenate(rows, axis=1), strict=True))


def _stretches(code: int | IntArray, tiles: int) -> tuple[IntArray, ...]:
    """Return begins, ends and bytes of the stretches of tiles that have some."""
    if isinstance(code, int):
        begin, end = np.array([[0], [tiles]])[:, : code > 0]
        return begin, end, np.full_like(begin, code)
    begins = np.flatnonzero(np.diff(code, prepend=-1))
    ends = np.append(begins[1:], len(code))
    kept = code[begins] > 0
    return begins[kept], ends[kept], code[begins[kept]]
