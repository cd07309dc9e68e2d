"""Answers as the browser gets them: written as JSON once, where that takes longer than making them.

Of a page with its plots Dash looks at every element and number each time that it is asked for.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from dash._utils import to_json
from orjson import Fragment

MAX_BYTES = 12_000_000  # of texts that are kept


class Written:
    """The last answers by what they depend on. May be asked from several threads."""

    def __init__(self) -> None:
        self._texts: OrderedDict[Hashable, str] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, entry: Hashable) -> Fragment | None:
        """Return the answer under this entry, None where it is not kept."""
        with self._lock:
            if entry not in self._texts:
                return None
            self._texts.move_to_end(entry)
            return Fragment(self._texts[entry])

    def keep(self, entry: Hashable, answer: object) -> Fragment:
        """Write an answer, keep it, and drop those used longest ago above `MAX_BYTES`."""
        text = to_json(answer)
        with self._lock:
            self._size += len(text) - len(self._texts.pop(entry, ""))
            self._texts[entry] = text
            while self._size > MAX_BYTES:
                self._size -= len(self._texts.popitem(last=False)[1])
        return Fragment(text)
