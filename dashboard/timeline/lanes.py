"""A timeline: rows of rectangles in lanes, with the labels and colours that they index."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pva.analysis.level_of_detail import Track


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a lane; `overview` rows stand in the strip above, `layer` rows can be hidden."""

    lane: str
    name: str
    track: Track
    overview: bool = False
    layer: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """All rows in one unit, with the labels and colours that their tracks index."""

    unit: str
    clock: float
    rows: tuple[Row, ...]
    labels: list[str]
    colours: list[tuple[str, str]]

    @property
    def extent(self) -> tuple[int, int]:
        """Give where the first rectangle begins and the last one ends; (0, 1) without any."""
        begins = [int(row.track.begin[0]) for row in self.rows if len(row.track.begin)]
        ends = [int(row.track.end[-1]) for row in self.rows if len(row.track.end)]
        begin = min(begins, default=0)
        return begin, max(max(ends, default=1), begin + 1)

    def without_layers(self) -> Timeline:
        """Leave out the rows of layers."""
        return replace(self, rows=tuple(row for row in self.rows if not row.layer))


class Labels:
    """Texts of one timeline, each once."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._places: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Give the number of a text, a new one when it was not seen before."""
        if text not in self._places:
            self._places[text] = len(self.texts)
            self.texts.append(text)
        return self._places[text]
