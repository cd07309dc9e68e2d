"""Requests that wait, by level of priority: what a live server holds, and what a replay steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pva.queueing.rules import Rules, batch_of

NEVER = 1 << 62  # ns


@dataclass(slots=True, eq=False)
class Request:
    """One request: its rows, when it arrived, how long it may wait (0: its policy says)."""

    rows: int
    arrived_ns: int
    level: int = 0
    timeout_ns: int = 0
    content: Any = None
    expires_ns: int = NEVER


@dataclass(slots=True)
class Level:
    """One level: those in order of arrival, and behind them those whose timeout passed."""

    fresh: deque[Request] = field(default_factory=deque)
    late: deque[Request] = field(default_factory=deque)


def _expiry(request: Request) -> int:
    return request.expires_ns


class Waiting:
    """The queue of a model. It has no clock: each call brings the time, which never goes back."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.rows = self.count = 0
        numbers = range(1, rules.levels + 1) if rules.levels else (0,)
        # Fewer rows than these are held whatever they are, as no batch of them is as good as any.
        self._smallest_whole = min(rules.preferred, default=rules.most_rows) if rules.dynamic else 0
        self._levels = {number: Level() for number in numbers}
        self._earliest = NEVER  # no timeout passes before, though who has it may have left

    def add(self, request: Request) -> bool:
        """Take a request in, or return False where its queue is full."""
        rules = self.rules
        if rules.levels and not 1 <= request.level <= rules.levels:
            request.level = rules.default_level or (rules.levels + 1) // 2
        request.level = request.level if rules.levels else 0
        level, policy = self._levels[request.level], rules.of_level(request.level)
        if policy.most_waiting and len(level.fresh) + len(level.late) >= policy.most_waiting:
            return False
        timeout = policy.timeout_ns
        if policy.overridable and request.timeout_ns:
            timeout = min(timeout or NEVER, request.timeout_ns)
        if timeout:
            request.expires_ns = request.arrived_ns + timeout
            self._earliest = min(self._earliest, request.expires_ns)
        level.fresh.append(request)
        self.rows, self.count = self.rows + request.rows, self.count + 1
        return True

    def expire(self, now: int) -> list[Request]:
        """Take out the requests whose timeout has passed, and put those behind that only lose."""
        if now < self._earliest:
            return []
        expired: list[Request] = []
        for number, level in self._levels.items():
            passed = [request for request in level.fresh if request.expires_ns <= now]
            if passed:
                level.fresh = deque(one for one in level.fresh if one.expires_ns > now)
                behind = self.rules.of_level(number).delays
                (level.late if behind else expired).extend(sorted(passed, key=_expiry))
        ends = (one.expires_ns for level in self._levels.values() for one in level.fresh)
        self._earliest = min(ends, default=NEVER)
        self._leave(expired)
        return expired

    def take(self, now: int) -> tuple[list[Request], int]:
        """Take out the requests of the next batch; or none, and when to ask again unless one comes.

        That is when a delay ends, or a timeout does; NEVER where nothing waits.
        """
        group, due = self._next(now)
        for request in group:
            level = self._levels[request.level]
            (level.fresh if level.fresh and level.fresh[0] is request else level.late).popleft()
        self._leave(group)
        return group, min(due, self._earliest)

    def remove(self, request: Request) -> bool:
        """Take out a request that nobody waits for any more; return whether it was there."""
        level = self._levels[request.level]
        for part in (level.fresh, level.late):
            if request in part:
                part.remove(request)
                self._leave([request])
                return True
        return False

    def _next(self, now: int) -> tuple[list[Request], int]:
        """Return the next batch, or none and when it is due."""
        rules = self.rules
        if self.rows < self._smallest_whole and now < (due := self._oldest() + rules.delay_ns):
            return [], due
        front, totals = self._front()
        if not front:
            return [], NEVER
        count, is_full = batch_of(totals, rules, 0, len(totals), 0)
        if not is_full and rules.delay_ns:
            due = min(one.arrived_ns for one in front[:count]) + rules.delay_ns
            if now < due:
                return [], due
        return front[:count], now

    def _oldest(self) -> int:
        """Return when the one came that waits longest; NEVER for none."""
        fresh = (level.fresh[0].arrived_ns for level in self._levels.values() if level.fresh)
        late = (one.arrived_ns for level in self._levels.values() for one in level.late)
        return min(min(fresh, default=NEVER), min(late, default=NEVER))

    def _front(self) -> tuple[list[Request], list[int]]:
        """Return the first requests up to one that does not fit, and running sums of their rows."""
        front, totals, rows = [], [], 0
        for request in self._in_order():
            rows += request.rows
            front.append(request)
            totals.append(rows)
            if rows > self.rules.most_rows or not self.rules.dynamic:
                break
        return front, totals

    def _in_order(self) -> Iterator[Request]:
        return chain.from_iterable(
            part for level in self._levels.values() for part in (level.fresh, level.late)
        )

    def _leave(self, requests: list[Request]) -> None:
        self.count -= len(requests)
        self.rows -= sum(request.rows for request in requests)
