"""Laws about who sends how much to whom in exchanges, by groups of tiles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pva.array_types import Values
from pva.check.law import Laws, Violation, at_most, equal
from pva.data.dataset import Dataset

LAWS = Laws()
EXCHANGES = ("exchange", "external_exchange")


@LAWS.needing("exchange_flows", "exchange_bytes_received")
def flows_of_an_exchange_sum_to_what_is_received(data: Dataset) -> Iterator[Violation]:
    """What groups of tiles receive of all others is what their tiles receive, in each exchange."""
    for name in _recorded(data, "received"):
        received = data.array(f"{name}_bytes_received")
        exchange, moved = (data.column(f"{name}_flows", of) for of in ("exchange", "bytes"))
        table = f"{name}_flows"
        yield from at_most(exchange, len(received) - 1, f"{table}.exchange", "row")
        valid = exchange < len(received)
        sums = np.bincount(exchange[valid], weights=moved[valid], minlength=len(received))
        yield from equal(sums, received.sum(axis=1), f"bytes of {table}", "exchange")
        yield from _on_tiles(data, name, "to", received)
        mine, of_tiles = _of_groups(data, name, "to", received)
        yield from equal(mine, of_tiles, f"bytes of {table} to a group", "group")


@LAWS.needing("exchange_flows", "exchange_bytes_received", "exchange_bytes_sent")
def flows_of_an_exchange_are_what_is_sent(data: Dataset) -> Iterator[Violation]:
    """What a group of tiles sends to all is what its tiles send, or more if it goes to several."""
    for name in _recorded(data, "received", "sent"):
        received, sent = (data.array(f"{name}_bytes_{way}") for way in ("received", "sent"))
        subject = f"bytes of {name}_flows from a group"
        yield from _on_tiles(data, name, "from", sent)
        mine, of_tiles = _of_groups(data, name, "from", sent)
        yield from at_most(of_tiles, mine, subject, "group", "no less than its tiles send")
        copies = np.where(received.sum(axis=1) > sent.sum(axis=1), (received > 0).sum(axis=1), 1)
        _, most = _of_groups(data, name, "from", sent * copies[:, None])
        yield from at_most(mine, most, subject, "group", "no more than its tiles can have sent")


def _recorded(data: Dataset, *ways: str) -> Iterator[str]:
    """Yield the exchanges whose flows and bytes by tile are there: of IPUs, between IPUs."""
    for name in EXCHANGES:
        if all(data.has(f"{name}_{part}") for part in ("flows", *(f"bytes_{way}" for way in ways))):
            yield name


def _on_tiles(data: Dataset, name: str, end: str, by_tile: Values) -> Iterator[Violation]:
    """Yield groups that end behind the last tile."""
    column = f"{end}_end"
    ends = data.column(f"{name}_flows", column)
    yield from at_most(ends, by_tile.shape[1], f"{name}_flows.{column}", "row")


def _of_groups(data: Dataset, name: str, end: str, by_tile: Values) -> tuple[Values, Values]:
    """Return of each group at one end of flows the bytes of these, and of its tiles."""
    columns = ("exchange", f"{end}_tile", f"{end}_end")
    rows = np.stack([data.column(f"{name}_flows", column) for column in columns])
    valid = (rows[0] < len(by_tile)) & (rows[1:] <= by_tile.shape[1]).all(axis=0)
    groups, place = np.unique(rows[:, valid], axis=1, return_inverse=True)
    moved = data.column(f"{name}_flows", "bytes")[valid]
    mine = np.bincount(place.ravel(), weights=moved, minlength=groups.shape[1])
    sums = np.cumsum(np.pad(by_tile, ((0, 0), (1, 0))), axis=1)
    exchange, first, end_tile = groups
    return mine.astype(np.int64), sums[exchange, end_tile] - sums[exchange, first]
