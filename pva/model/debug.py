"""Debug contexts: where in a program something was made, layer by layer."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pva.data.dataset import Dataset
from pva.model.show import Shown
from pva.model.views import Item

TABLE = "debug_contexts"


@dataclass(frozen=True, slots=True, repr=False)
class SourceLocation(Shown):
    """A line of source; 0 and empty texts when it is not known."""

    _figures = ("fileName", "lineNumber")

    fileName: str
    lineNumber: int
    functionName: str


class DebugContext(Item):
    """A named place of one software layer; `parents` are the places that it was made in."""

    __slots__ = ()
    _figures = ("id", "file=location.fileName", "line=location.lineNumber")

    @property
    def id(self) -> int:
        """Number of the context, which programs and variables refer to."""
        return int(self._value(TABLE, "id"))

    @property
    def name(self) -> str:
        """Name given by the layer."""
        return self._text(TABLE, "name")

    @property
    def layer(self) -> str:
        """The layer as libpva gives it: a JSON object with the key `layer`."""
        return json.dumps({"layer": self._text(TABLE, "layer")})

    @property
    def json(self) -> str:
        """The layer's own keys, as a JSON object."""
        return self._text(TABLE, "json") or "{}"

    @property
    def parents(self) -> list[DebugContext]:
        """The context around this one; none around the outermost."""
        parent = context(self._data, int(self._value(TABLE, "parent")))
        return [] if parent is None else [parent]

    @property
    def location(self) -> SourceLocation:
        """Where it was made."""
        file, function = (self._text(TABLE, name) for name in ("file", "function"))
        return SourceLocation(file, max(int(self._value(TABLE, "line")), 0), function)


def context(data: Dataset, number: int) -> DebugContext | None:
    """Return a context by its id; None for an id that is not there.

    Raises NotRecordedError when the report has no debug information.
    """
    rows = data.rows_where(TABLE, "id", number)
    return DebugContext(data, int(rows[0])) if len(rows) and number >= 0 else None
