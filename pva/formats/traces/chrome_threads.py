"""The threads and processes of Chrome trace JSON, whose identifiers may be numbers or texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from pva.formats.builders import Codes, Numbers, looked_up, used

PROCESS = 1  # number of the first row


class Threads:
    """Rows of `threads` and `processes`, made for what is used; texts get the least numbers."""

    def __init__(self, lanes: Numbers, names: dict[tuple[str, object], str]) -> None:
        self._lanes = list(lanes)
        self._names = names
        self._rows: dict[tuple[Any, Any, bool], int] = {}
        self._row_of = np.zeros((2, len(self._lanes)), np.int32)  # [whether crossing][lane]
        self._pids = Numbers()
        self._substitutes = Numbers()
        self._least = min((number for lane in self._lanes for number in lane if _fits(number)),
                          default=0)  # fmt: skip

    def of(self, lane: Codes, crossing: bool = False) -> Codes:
        """Return the row of `threads` of each event."""
        self.see([lane], crossing)
        return looked_up(self._row_of[int(crossing)], lane)

    def see(self, lanes: Iterable[Codes], crossing: bool = False) -> None:
        """Make the rows of these lanes that have none."""
        rows = self._row_of[int(crossing)]
        new = used(lanes, len(rows))
        for number in new[rows[new] == 0].tolist():
            self._rows[*self._lanes[number], crossing] = rows[number] = len(self._rows) + 1

    def known(self, lane: Codes) -> npt.NDArray[np.bool_]:
        """Return which threads have a row."""
        return looked_up(self._row_of[0], lane) > 0

    def crossing(self, lane: Codes) -> Codes:
        """Return the row of the thread that asynchronous events of each thread stand on."""
        return self.of(lane, crossing=True)

    def process(self, pid: object) -> int:
        """Return the row of a process."""
        return self._pids[pid] + PROCESS

    def rows(self) -> tuple[list[int], list[int], list[str]]:
        """Return process, identifier and name of each thread."""
        owners, tids, names = [], [], []
        for pid, tid, crossing in self._rows:
            thread_name = self._names.get(("thread_name", (pid, tid)))
            name = thread_name or _text(tid)
            owners.append(self.process(pid))
            tids.append(self._number(tid))
            names.append(f"{name or tid}, asynchronous" if crossing else name)
        return owners, tids, names

    def processes(self) -> tuple[list[int], list[str]]:
        """Return identifier and name of each process."""
        for pid, _, _ in self._rows:
            self.process(pid)
        numbers = [self._number(pid) for pid in self._pids]
        recorded_names = [self._names.get(("process_name", pid)) for pid in self._pids]
        names = [name or _text(pid) for name, pid in zip(recorded_names, self._pids, strict=True)]
        return numbers, names

    def _number(self, name: Any) -> int:
        return int(name) if _fits(name) else min(self._least, 0) - 1 - self._substitutes[name]


def _fits(name: object) -> bool:
    return isinstance(name, int) and abs(name) < 1 << 61


def _text(identifier: object) -> str:
    """Return an identifier that is a text."""
    return "" if identifier is None or isinstance(identifier, int | float) else str(identifier)
