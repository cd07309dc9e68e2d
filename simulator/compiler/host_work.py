"""What the host's own work adds to a stream copy: it fills the buffer, or takes it.

Without anything ahead it does so while the device waits: the copy takes as much longer. With
prefetch it fills the next buffer while the device works on what it has got, and with several
buffers (bufferingDepth) it takes one while the device goes on; then no copy is faster than the
slower of link and host, which is what remains where the work between is long enough. Source:
programming guide, 2.6.2 "Optimising host data transfers". By default the host takes no time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.compiler.exchange import HOST_LATENCY
from simulator.compiler.executable import Exchange
from simulator.graph.host.streams import Stream
from simulator.graph.machine.target import Target


def with_host_work(target: Target, stream: Stream, prefetch: bool, cost: Exchange) -> Exchange:
    """Return the cost of a copy with what the host's work adds; `prefetch` says if it may be ahead.

    Of the buffers of a stream to the device it is ahead with prefetch alone, whatever their number;
    of those from it where there are several.
    """
    rate = target.host_fill_bytes_per_second
    if not rate:
        return cost
    moved = int((cost.sent + cost.received).sum())
    fill = -(-moved * target.clock_frequency // rate)
    ahead = prefetch if stream.direction == "in" else stream.bufferingDepth > 1
    link = cost.cycles - HOST_LATENCY
    cycles = np.maximum(link, fill) if ahead else link + fill
    return replace(cost, cycles=np.where(cost.cycles > 0, cycles + HOST_LATENCY, 0))
