"""What is moved between tiles, between IPUs and to and from the host, and how fast.

A report holds, for each exchange, the bytes that every tile receives and sends, and by groups of
tiles who sends to whom. Of one without the latter what follows from the sums is given, and bounds
where it does not follow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pva.analysis.attribution import (
    EXCHANGES,
    OPERANDS,
    elapsed,
    executions_of_rows,
    labels,
    moved_by_exchange,
    moved_bytes,
    summed,
)
from pva.analysis.columns import analysis
from pva.analysis.memory.code import code_of_exchanges
from pva.analysis.selection import tile_count
from pva.analysis.table import Columns, arrays_of, largest_first, rows_of
from pva.array_types import Integers, Texts, Values

if TYPE_CHECKING:
    from pva.report import Report


ORDER = 330  # of its analyses in the catalogue
KINDS = {"DoExchange": "internal", "GlobalExchange": "between IPUs", "StreamCopy": "host"}


@analysis(
    "kind exchange name bytes_received:bytes bytes_sent:bytes cycles:cycles "
    "bytes_per_cycle:bytes/cycle code_bytes:bytes",
    name="debug name of the program that runs it",
    kind="on an IPU, between IPUs, or with the host",
    bytes_received="bytes that all tiles receive in one execution",
    bytes_sent="bytes that all tiles send in one execution",
    cycles="cycles of the slowest tile in one execution",
)
def largest_exchanges(report: Report) -> Columns:
    """List the exchanges: bytes and cycles of one execution, the most bytes first.

    `kind` is internal (on an IPU), between IPUs, or host; `exchange` the row among its kind. More
    bytes are received than sent where a tile sends to several at once. `cycles` are those of the
    slowest tile; `bytes_per_cycle` is what the tile that receives or sends most gets through: of
    an internal exchange at most 4 a cycle (Poplar's Target::getExchangeBytesPerCycle), or 8 where
    two tiles that share a bus receive the same. `code_bytes` are of all tiles, -1 where not told.
    Raises NotRecordedError without a graph profile.
    """
    columns = _of_all_kinds(report, _sizes)
    most = np.maximum(columns["bytes_received"], columns["bytes_sent"])
    return rows_of(columns, np.argsort(-most, kind="stable"))


@analysis(
    "kind exchange name fan_out receivers busiest_receiver busiest_receiver_bytes:bytes "
    "receive_balance:fraction senders busiest_sender busiest_sender_bytes:bytes "
    "send_balance:fraction"
)
def exchange_spread(report: Report) -> Columns:
    """Return how even each exchange is over the tiles: senders, receivers, the busiest of each.

    `fan_out` is bytes received / bytes sent: to how many tiles a byte goes on average (0 for data
    from or to the host). `receive_balance` and `send_balance` are mean / most over the tiles that
    receive or send; tiles that stand out are hot spots. One execution each, that of the busiest
    tile first; -1 is no tile. Raises NotRecordedError.
    """
    columns = _of_all_kinds(report, _spread)
    most = np.maximum(columns["busiest_receiver_bytes"], columns["busiest_sender_bytes"])
    return rows_of(columns, np.argsort(-most, kind="stable"))


def _of_all_kinds(
    report: Report, describe: Callable[[Report, str], dict[str, object]]
) -> dict[str, Values]:
    """Describe the exchanges of each kind; those that no program runs have no name."""
    parts = []
    for tag in EXCHANGES:
        count = len(moved_by_exchange(report, tag)[0])
        head = {
            "kind": np.full(count, KINDS[tag], dtype=object),
            "exchange": np.arange(count),
            "name": exchange_names(report, tag, count),
        }
        parts.append(arrays_of(head | describe(report, tag)))
    some = [part for part in parts if len(part["kind"])] or parts[:1]
    return {name: np.concatenate([part[name] for part in some]) for name in some[0]}


def exchange_names(report: Report, tag: str, count: int) -> Texts:
    """Name each exchange after the first program that runs it."""
    data = report.dataset
    programs = np.flatnonzero(data.texts("programs", "type") == tag)
    operand = data.column("programs", OPERANDS[tag][0])[programs]
    valid = (operand >= 0) & (operand < count)
    rows, first = np.unique(operand[valid], return_index=True)
    names = np.full(count, "", dtype=object)
    names[rows] = labels(report, programs[valid][first])
    return names


def _sizes(report: Report, tag: str) -> dict[str, object]:
    data, name = report.dataset, OPERANDS[tag][1]
    received, sent = moved_by_exchange(report, tag)
    cycles = np.zeros(0, dtype=np.int64)
    if len(received):
        cycles = data.row_maxima(f"{name}_cycles")
    most = np.maximum(*moved_by_exchange(report, tag, most=True))
    return {
        "bytes_received": received,
        "bytes_sent": sent,
        "cycles": cycles,
        "bytes_per_cycle": most / np.maximum(cycles, 1),
        "code_bytes": code_of_exchanges(report, tag)[: len(received)],
    }


def _spread(report: Report, tag: str) -> dict[str, object]:
    received, sent = moved_bytes(report, tag)
    # What comes from the host or goes to it has no tile at its other end.
    of_tiles = np.full(len(sent), tag != "StreamCopy")
    columns = {"fan_out": of_tiles * received.sum(axis=1) / np.maximum(sent.sum(axis=1), 1)}
    for word, short, moved in (("receiver", "receive", received), ("sender", "send", sent)):
        tiles = (moved > 0).sum(axis=1)
        most = moved.max(axis=1, initial=0)
        busiest = moved.argmax(axis=1) if moved.size else np.zeros(len(moved), dtype=np.int64)
        columns |= {
            f"{word}s": tiles,
            f"busiest_{word}": np.where(tiles > 0, busiest, -1),
            f"busiest_{word}_bytes": most,
            f"{short}_balance": moved.sum(axis=1) / np.maximum(tiles * most, 1),
        }
    return columns


@analysis("from_ipu to_ipu bytes_at_least:bytes bytes_at_most:bytes exact share:fraction")
def exchange_matrix(report: Report) -> Columns:
    """Return how many bytes went from which IPU to which in the recorded runs, the most first.

    Where the report does not tell who sends to whom (`exchange_flows`), it follows from what the
    tiles of each receive and send in each exchange, up to bounds: `bytes_at_least` and
    `bytes_at_most`, equal where `exact`. Bytes are as received: one that is sent to several tiles
    counts for each. With replicas, an IPU is that of any replica, so that it may send to its like.
    `share` is that of `bytes_at_most` in all bytes received. Raises NotRecordedError.
    """
    data = report.dataset
    ipus = max(int(data.of_replica("num_ipus")), 1)
    inside = _on_ipus(moved_bytes(report, "DoExchange")[0], ipus).sum(axis=2)
    within = np.diag(executions_of_rows(report, "DoExchange", len(inside)) @ inside)
    between, _ = moved_bytes(report, "GlobalExchange")
    counts = executions_of_rows(report, "GlobalExchange", len(between))
    begin = np.arange(ipus) * (tile_count(report) // ipus)
    recorded = recorded_flows(report, "GlobalExchange", begin, counts)
    if recorded is None:
        low, high = _between(report, ipus)
        least, most = (within + np.tensordot(counts, bound, axes=1) for bound in (low, high))
    else:
        least = most = within + recorded
    total = int(within.sum() + (counts @ between).sum())
    source, target = np.nonzero(most)
    columns = {
        "from_ipu": source,
        "to_ipu": target,
        "bytes_at_least": least[source, target],
        "bytes_at_most": most[source, target],
        "exact": (least == most)[source, target],
        "share": most[source, target] / max(total, 1),
    }
    return largest_first(columns, "bytes_at_most")


FLOWS = {"DoExchange": "exchange_flows", "GlobalExchange": "external_exchange_flows"}


def recorded_flows(report: Report, tag: str, begin: Integers, counts: Integers) -> Integers | None:
    """Return the bytes between groups of all executions as the report tells them, a row a sender.

    Groups begin at these tiles; `counts` are the executions of each exchange. None where the report
    does not tell, or where the groups cut those that it tells of.
    """
    data, table = report.dataset, FLOWS[tag]
    if not data.has(table):
        return None
    names = ("exchange", "from_tile", "from_end", "to_tile", "to_end", "bytes")
    exchange, source, source_end, to, to_end, moved = (data.column(table, name) for name in names)
    tiles = np.stack([source, source_end - 1, to, to_end - 1])
    first, last, to_first, to_last = np.searchsorted(begin, tiles, side="right") - 1
    if (first != last).any() or (to_first != to_last).any():
        return None
    valid = exchange < len(counts)
    total = np.zeros((len(begin), len(begin)), dtype=np.int64)
    np.add.at(total, (first[valid], to_first[valid]), moved[valid] * counts[exchange[valid]])
    return total


def _on_ipus(by_tile: Integers, ipus: int) -> Integers:
    """Return an array by [exchange][tile] by [exchange][IPU][tile of the IPU]."""
    per_ipu = by_tile.shape[1] // ipus
    return by_tile[:, : ipus * per_ipu].reshape(len(by_tile), ipus, per_ipu)


def _between(report: Report, ipus: int) -> tuple[Integers, Integers]:
    """Bound what each IPU gets from each in one execution: [exchange][from][to], least and most.

    An IPU gets no more from another than that sends, to as many tiles as receive, and no less than
    what all others together cannot have sent.
    """
    by_tile, by_sender = (_on_ipus(of, ipus) for of in moved_bytes(report, "GlobalExchange"))
    received, sent = by_tile.sum(axis=2), by_sender.sum(axis=2)
    copied = (sent.sum(axis=1) < received.sum(axis=1))[:, None]
    copies = np.where(copied, np.maximum((by_tile > 0).sum(axis=2), 1), 1)
    most = np.minimum(sent[:, :, None] * copies[:, None, :], received[:, None, :])
    if int(report.dataset.value("target", "num_replicas")) <= 1:
        most = most * (1 - np.eye(ipus, dtype=np.int64))
    from_others = most.sum(axis=1, keepdims=True) - most
    return np.minimum(np.maximum(received[:, None, :] - from_others, 0), most), most


@analysis(
    "tile ipu bytes:bytes received:bytes sent:bytes global_received:bytes global_sent:bytes "
    "from_host:bytes to_host:bytes"
)
def traffic_by_tile(report: Report) -> Columns:
    """Return which tiles receive and send the most bytes in the recorded runs, the most first.

    `received` and `sent` in exchanges on an IPU, `global_received` and `global_sent` between IPUs,
    `from_host` and `to_host`; `bytes` is the sum of all. Raises NotRecordedError.
    """
    data = report.dataset
    names = {
        "DoExchange": ("received", "sent"),
        "GlobalExchange": ("global_received", "global_sent"),
        "StreamCopy": ("from_host", "to_host"),
    }
    moved: dict[str, Integers] = {}
    for tag, columns in names.items():
        for column, by_tile in zip(columns, moved_bytes(report, tag), strict=True):
            counts = executions_of_rows(report, tag, len(by_tile))
            moved[column] = (
                counts @ by_tile if len(by_tile) else np.zeros(tile_count(report), np.int64)
            )
    tiles = np.arange(tile_count(report))
    table = {
        "tile": tiles,
        "ipu": tiles // max(int(data.value("target", "tiles_per_ipu")), 1),
        "bytes": sum(moved.values()),
        **moved,
    }
    return largest_first(table, "bytes")


@analysis(
    "program name total:bytes delay:bytes exchange:bytes other:bytes receive_address:bytes "
    "receive_format:bytes receive_mux:bytes send:bytes send_with_put_address:bytes "
    "send_with_put_format:bytes send_with_put_mux:bytes"
)
def exchange_code(report: Report) -> Columns:
    """Return the code of each exchange: bytes by kind of instruction, largest first.

    All tiles together. Many `receive_mux` are many sources a tile; `delay` waits for the other
    tiles. Raises NotRecordedError.
    """
    table = report.dataset.table("exchange_instructions")
    programs = table.pop("program")
    columns = {
        "program": programs,
        "name": labels(report, programs),
        "total": table.pop("total"),
        **table,
    }
    return largest_first(columns, "total")


def exchange_code_sums(report: Report) -> dict[str, int]:
    """Return the bytes of all exchanges by kind of instruction, and in all: `total`.

    Raises NotRecordedError.
    """
    table = report.dataset.table("exchange_instructions")
    return {name: int(values.sum()) for name, values in table.items() if name != "program"}


@analysis(
    "name executions bytes_in:bytes bytes_out:bytes cycles:cycles exposed_cycles:cycles "
    "bytes_per_second:bytes/s",
    name="name of the stream",
)
def stream_bandwidth(report: Report) -> Columns:
    """Return how fast each stream moves data to and from the host, the most cycles first.

    By name, over the recorded runs, for one replica: `bytes_in` to the device and `bytes_out` of
    it; `cycles` of its steps, of which `exposed_cycles` made the runs longer; and
    `bytes_per_second` in these cycles, by the clock of the tiles. Raises NotRecordedError.
    """
    data = report.dataset
    received, sent = moved_bytes(report, "StreamCopy")
    steps = np.flatnonzero(data.texts("steps", "type") == "StreamCopy")
    programs = data.column("steps", "program")[steps]
    exchanges = np.append(data.column("programs", "exchange"), -1)
    rows = exchanges[np.where(programs < len(exchanges), programs, -1)]
    clock = float(data.value("target", "clock_frequency"))
    names, place = np.unique(labels(report, programs).astype(str), return_inverse=True)
    values = {
        "bytes_in": _of_rows(received, rows),
        "bytes_out": _of_rows(sent, rows),
        "cycles": np.maximum(data.column("steps", "cycles")[steps], 0),
        "exposed_cycles": elapsed(report)[steps],
    }
    sums = {name: summed(place, weights, len(names)) for name, weights in values.items()}
    moved = sums["bytes_in"] + sums["bytes_out"]
    columns = {
        "name": names.astype(object),
        "executions": np.bincount(place, minlength=len(names)),
        **sums,
        "bytes_per_second": moved * clock / np.maximum(sums["cycles"], 1),
    }
    return largest_first(columns, "cycles")


def _of_rows(array: Integers, rows: Integers) -> Integers:
    """Sum up each row over the tiles; 0 for a row that is not there."""
    totals = np.append(array.sum(axis=1), 0)
    last = len(totals) - 1
    return totals[np.where((rows >= 0) & (rows < last), rows, last)]
