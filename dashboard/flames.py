"""A flame graph as links: a frame is as wide as what it stands for, what it holds lies below it.

A click zooms to a frame, whose path stands in the address under `frame`, and opens its drawer.
Frames are sorted by size, and those too narrow to be seen are left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from dash import dcc, html

from dashboard import address
from dashboard.address import Address
from dashboard.details.objects import VARIABLE
from dashboard.elements import components
from dashboard.elements.components import OBJECT, Element
from pva import units
from pva.array_types import Integers

KEY = "frame"
HUES = 12  # series colours that frames take, by the words of their name
HEIGHT = 24  # pixels of a row
NARROWEST = 0.0015  # of the width: about two pixels
LEGIBLE = 0.02  # of the width: room for a few letters; a narrower frame has a title alone
MOST = 500  # frames drawn, the widest first
NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Flame:
    """A tree of frames; parents stand before what is in them.

    paths     unique, as they stand in the address
    names     what is written on each
    parent    [frame] -1 for the outermost
    total     [frame] with what is in it
    write     how a total is written
    objects   [frame] the object that it is (details/objects.py), "" for none; none known: empty
    """

    paths: Sequence[str]
    names: Sequence[str]
    parent: Integers
    total: Integers
    write: Callable[[float], str]
    objects: Sequence[str] = ()

    @property
    def whole(self) -> int:
        """Return the total of all outermost frames."""
        return int(self.total[self.parent < 0].sum())

    def find(self, path: str) -> int:
        """Return the frame of a path, -1 for all where there is none."""
        return self.paths.index(path) if path in self.paths else NOWHERE

    def around(self, frame: int) -> list[int]:
        """List the frames that one lies in, the outermost first, and itself."""
        path = []
        while frame >= 0:
            path.append(frame)
            frame = int(self.parent[frame])
        return path[::-1]

    def inside(self, frame: int) -> Integers:
        """Return the frames directly in one, or the outermost, the largest first."""
        rows = np.flatnonzero(self.parent == frame)
        return rows[np.argsort(-self.total[rows], kind="stable")]

    def object_of(self, frame: int) -> str:
        """Return the object that a frame is, "" for none."""
        return self.objects[frame] if frame >= 0 and self.objects else ""

    def size(self, frame: int) -> int:
        """Return the total of a frame, or of all."""
        return int(self.total[frame]) if frame >= 0 else self.whole


def placed(flame: Flame, root: int) -> list[tuple[int, int, float, float]]:
    """Lay out what is seen: frame, row, left and width as parts of the whole width.

    The frames around the root lie above it at full width.
    """
    above = flame.around(root)
    shown = [(frame, row, 0.0, 1.0) for row, frame in enumerate(above)]
    scale = 1 / max(flame.size(root), 1)
    open_: list[tuple[int, int, float]] = [(root, len(above), 0.0)]
    while open_:
        frame, row, left = open_.pop()
        for inner in flame.inside(frame).tolist():
            width = float(flame.total[inner] * scale)
            if width < NARROWEST:
                break  # those that follow are smaller
            shown.append((inner, row, left, width))
            open_.append((inner, row + 1, left))
            left += width
    return sorted(shown, key=lambda one: -one[3])[:MOST]


def matching(flame: Flame, text: str) -> set[int]:
    """Return the frames whose names have a text in them, in small letters or large."""
    needle = text.lower()
    return {number for number, name in enumerate(flame.names) if needle in name.lower()}


def outermost(flame: Flame, frames: set[int]) -> list[int]:
    """Return those of some frames that lie in none of the others."""
    return [frame for frame in frames if not frames.intersection(flame.around(frame)[:-1])]


def drawn(flame: Flame, state: Address, text: str) -> Element:
    """Draw the graph, zoomed as the address says, and mark what a text finds."""
    root = flame.find(state.text(KEY))
    shown = placed(flame, root)
    matched = matching(flame, text) if text else set()
    links = [
        _frame(flame, state, one, root, matched if text else None)
        for one in sorted(shown, key=lambda one: (one[1], one[2]))
    ]
    rows = 1 + max((row for _, row, _, _ in shown), default=0)
    return html.Div(links, className="flame", style={"height": f"{rows * HEIGHT}px"})


def _frame(
    flame: Flame,
    base: Address,
    place: tuple[int, int, float, float],
    root: int,
    matched: set[int] | None,
) -> Element:
    frame, row, left, width = place
    name = components.prose(flame.names[frame])
    hue = zlib.crc32(name.encode()) % HUES
    state = "" if matched is None else " match" if frame in matched else " other"
    around = " around" if root >= 0 and frame in flame.around(root)[:-1] else ""
    style = {
        "left": f"{100 * left:.4f}%",
        "width": f"{100 * width:.4f}%",
        "top": f"{row * HEIGHT}px",
        "--hue": f"var(--series-{hue})",
    }
    return dcc.Link(
        name if width > LEGIBLE else "",
        href=link_to(base, flame, NOWHERE if frame == root else frame),
        title=f"{flame.names[frame]}: {describe(flame, frame)}",
        className=f"frame{state}{around}",
        style=style,
    )


def link_to(state: Address, flame: Flame, frame: int) -> str:
    """Return the link that zooms to a frame, or to all, and opens the drawer of what it is."""
    options = tuple(pair for pair in state.options if pair[0] not in (KEY, OBJECT, VARIABLE))
    own, text = ((KEY, flame.paths[frame]),) if frame >= 0 else (), flame.object_of(frame)
    zoom = ((OBJECT, text),) if text else ()
    return address.write(replace(state, options=tuple(sorted((*options, *own, *zoom)))))


def describe(flame: Flame, frame: int) -> str:
    """Return what a frame takes, as a part of all and of the frame around it."""
    size, parent = flame.size(frame), int(flame.parent[frame])
    of_all = units.share(size / max(flame.whole, 1))
    text = f"{flame.write(size)}, {of_all} of all"
    if parent < 0:
        return text
    return f"{text}, {units.share(size / max(flame.size(parent), 1))} of {flame.names[parent]}"
