"""Who sends how much to whom, by groups of tiles: as recorded, or an estimate and its bounds.

A report holds what each tile sends and receives in each exchange, and by groups of tiles who sends
to whom. One without that, or where groups are asked for that cut those recorded, gives estimates:
what a group receives is shared out among the groups that send in the same exchange, by what these
send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import executions_of_rows, moved_bytes
from pva.analysis.columns import analysis
from pva.analysis.execution.exchanges import KINDS, recorded_flows
from pva.analysis.selection import SelectionError, chosen, rows_wanted, tile_count
from pva.analysis.table import Columns, largest_first
from pva.array_types import Floats, Integers
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.report import Report

ORDER = 340  # of its analyses in the catalogue
TAGS = {words: tag for tag, words in KINDS.items() if tag != "StreamCopy"}
TOGETHER = 256  # exchanges whose bounds are worked out at once


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of neighbouring tiles: first tile and end of each, and its IPU."""

    begin: Integers
    end: Integers
    ipu: Integers


@analysis(
    "from_tile from_last from_ipu to_tile to_last to_ipu bytes:bytes bytes_at_least:bytes "
    "bytes_at_most:bytes exact share:fraction"
)
def exchange_flows(
    report: Report, *, groups: int = 32, kind: str = "", exchange: int | None = None
) -> Columns:
    """Return how many bytes go from which tiles to which in the recorded runs, the most first.

    At most `groups` groups of neighbouring tiles, at least one for each IPU: with 1, IPU by IPU. Of
    all exchanges on an IPU and between IPUs, those of one `kind` (internal, or between IPUs), or
    one `exchange` of a kind, as `largest_exchanges` numbers it: then of one execution. `bytes` is
    as received, `exact` where the report tells who sends to whom (`exchange_flows`) or it follows;
    elsewhere an estimate, from `bytes_at_least` to `bytes_at_most`. All rows together are what was
    received. Raises SelectionError, NotRecordedError.
    """
    cut = groups_of(report, groups)
    count = len(cut.begin)
    sums = np.zeros((3, count, count))
    for tag in _tags(kind):
        received, sent = moved_bytes(report, tag)
        counts = executions_of_rows(report, tag, len(received))
        if exchange is not None:
            row = chosen("exchange", exchange, len(received))
            counts = np.zeros_like(counts)
            counts[row] = 1
        recorded = recorded_flows(report, tag, cut.begin, counts)
        if recorded is not None:
            sums += recorded  # estimate, least and most alike
            continue
        ran = np.flatnonzero(counts)
        sums += _flows(report, tag, cut, (received[ran], sent[ran], counts[ran]))
    estimate, least, most = sums
    source, target = np.nonzero(most)
    columns = {
        "from_tile": cut.begin[source],
        "from_last": cut.end[source] - 1,
        "from_ipu": cut.ipu[source],
        "to_tile": cut.begin[target],
        "to_last": cut.end[target] - 1,
        "to_ipu": cut.ipu[target],
        "bytes": estimate[source, target],
        "bytes_at_least": least[source, target].astype(np.int64),
        "bytes_at_most": most[source, target].astype(np.int64),
        "exact": (least == most)[source, target],
        "share": estimate[source, target] / max(float(estimate.sum()), 1.0),
    }
    return largest_first(columns, "bytes")


def groups_of(report: Report, most: int) -> Groups:
    """Cut the tiles of each IPU into as many groups, of at most `most` together if IPUs allow."""
    tiles = tile_count(report)
    per_ipu = max(int(report.dataset.value("target", "tiles_per_ipu")), 1)
    ipus = -(-tiles // per_ipu)
    of_ipu = min(max(rows_wanted(most) // max(ipus, 1), 1), per_ipu)
    begin = (np.arange(ipus)[:, None] * per_ipu + np.arange(of_ipu) * per_ipu // of_ipu).ravel()
    begin = begin[begin < tiles].astype(np.int64)
    return Groups(begin, np.append(begin[1:], tiles)[: len(begin)], begin // per_ipu)


def _tags(kind: str) -> list[str]:
    if kind and kind not in TAGS:
        raise SelectionError(f"kind {kind}", "not there", f"known: {', '.join(TAGS)}")
    return [TAGS[kind]] if kind else list(TAGS.values())


def _flows(
    report: Report, tag: str, cut: Groups, moved: tuple[Integers, Integers, Integers]
) -> Floats:
    """Return estimate, least and most by [from group][to group], over all executions."""
    received, sent, counts = moved
    count = len(cut.begin)
    total = np.zeros((3, count, count))
    if not len(received) or not count:
        return total
    replicated = int(report.dataset.value("target", "num_replicas")) > 1
    same = cut.ipu[:, None] == cut.ipu
    may = same if tag == "DoExchange" else np.ones_like(same) if replicated else ~same
    receivers = np.add.reduceat(received > 0, cut.begin, axis=1)
    into, out = (np.add.reduceat(of, cut.begin, axis=1) for of in (received, sent))
    for first in range(0, len(received), TOGETHER):
        part = slice(first, first + TOGETHER)
        total += np.tensordot(
            counts[part], _of_exchanges(into[part], out[part], receivers[part], may), axes=1
        )
    return total


def _of_exchanges(into: Integers, out: Integers, receivers: Integers, may: Integers) -> Floats:
    """Return estimate, least and most of one execution by [exchange][which][from][to]."""
    sent = out[:, :, None] * may  # what a sender could send to each
    every = sent.sum(axis=1, keepdims=True)
    estimate = np.divide(into[:, None, :] * sent, every, out=np.zeros(sent.shape), where=every > 0)
    # A byte that is sent once may reach each receiving tile of a group.
    copied = (every < into[:, None, :]) | (out.sum(axis=1) < into.sum(axis=1))[:, None, None]
    copies = np.where(copied, np.maximum(receivers, 1)[:, None, :], 1)
    most = np.minimum(sent * copies, into[:, None, :])
    least = np.maximum(into[:, None, :] - (most.sum(axis=1, keepdims=True) - most), 0)
    return np.stack([estimate, np.minimum(least, most), most], axis=1)


@dataclass(frozen=True, slots=True)
class FlowTotals:
    """The bytes of flows inside IPUs and between them, and the share of them that is exact."""

    inside: float
    between: float
    exact: float


def flow_totals(flows: pd.DataFrame) -> FlowTotals:
    """Sum up the rows of `exchange_flows`."""
    sizes = flows["bytes"]
    on_one = flows["from_ipu"] == flows["to_ipu"]
    inside, between = float(sizes[on_one].sum()), float(sizes[~on_one].sum())
    exact = float(sizes[flows["exact"]].sum()) / max(inside + between, 1.0)
    return FlowTotals(inside, between, exact)
