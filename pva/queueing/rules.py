"""The rules of Triton's dynamic batcher: which waiting requests make the next batch, and when.

`batch_of` is the one place of the rules: replays and the live server both ask it. Times are
nanoseconds. Source: Triton Inference Server, docs/user_guide/batcher.md, and the comments of
ModelQueuePolicy in its model_config.proto. Where these are silent: a batch that the next request
in order does not fit into cannot grow, and is sent without a wait.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from pva.errors import PvaError


@dataclass(frozen=True, slots=True)
class Policy:
    """How one level of priority queues: `most_waiting` requests, 0 for any number.

    A request that waited `timeout_ns` (0: without end) is rejected, or with `delays` it goes behind
    all others of its level. With `overridable` a request may ask for a shorter timeout.
    """

    most_waiting: int = 0
    timeout_ns: int = 0
    delays: bool = False
    overridable: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """How requests of a model become batches.

    `most_rows` is `max_batch_size`. Without `dynamic` each request is a batch. `levels` counts
    priority levels, 0 for one queue; level 1 goes first. `policies` are by level, `policy` is that
    of the others.
    """

    most_rows: int = 1
    dynamic: bool = False
    preferred: tuple[int, ...] = ()
    delay_ns: int = 0
    levels: int = 0
    default_level: int = 0
    policy: Policy = Policy()
    policies: tuple[tuple[int, Policy], ...] = ()
    in_order: bool = False

    def __post_init__(self) -> None:
        wrong = [size for size in self.preferred if not 0 < size <= max(self.most_rows, 1)]
        if wrong:
            remedy = f"sizes from 1 to max_batch_size, {self.most_rows}"
            raise PvaError("batching", f"preferred size {wrong[0]}", remedy)
        if self.delay_ns < 0 or self.most_rows < 0 or self.levels < 0:
            raise PvaError("batching", "a number below 0", "delays, sizes and levels from 0 on")
        object.__setattr__(self, "preferred", tuple(sorted(set(self.preferred), reverse=True)))

    @property
    def is_plain(self) -> bool:
        """Return whether requests leave in the order of arrival, and none is turned away."""
        return not self.levels and self.policy == Policy() and not self.policies

    def of_level(self, level: int) -> Policy:
        """Return the policy of a level of priority."""
        return dict(self.policies).get(level, self.policy)


def batch_of(
    totals: Sequence[int], rules: Rules, first: int, last: int, base: int
) -> tuple[int, bool]:
    """Return how many waiting requests make the next batch, and whether it is as good as any.

    `totals` are running sums of rows; requests from `first` to before `last` wait, in their order,
    and `base` is the sum before them. The largest preferred size that a number of the first
    requests has exactly is taken, else all that fit. A batch of a preferred or of the maximal size,
    or one into which the next request does not fit, is sent at once; another may be held.
    """
    if not rules.dynamic:
        return 1, True
    most = base + rules.most_rows
    fit = bisect_right(totals, most, first, last)
    for size in rules.preferred:
        at = bisect_left(totals, base + size, first, fit)
        if at < fit and totals[at] == base + size:
            return at + 1 - first, True
    return fit - first, fit < last or totals[fit - 1] == most
