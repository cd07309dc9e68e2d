"""A run in three small pictures: a strip of its tiles, a bar of its phases, a curve of liveness.

Each is a plain SVG element, [tag, properties, node, ...], as `elements.static_elements` takes it.
"""

from __future__ import annotations

from pva import units
from pva.json_types import Json
from pva.lazy import pandas as pd

Node = Json  # text, or [tag, properties, node, ...]
HEIGHT = 30  # units of a picture; its width is that of its values
PHASE_COLOURS = {
    "compute": "step-OnTileExecute",
    "exchange": "step-DoExchange",
    "host exchange": "step-StreamCopy",
    "sync": "step-Sync",
}


def sketch(frame: pd.DataFrame) -> list[Node]:
    """Draw the parts of a report that `frame` (of `report_sketch`) has, each with its words."""
    return [
        draw(frame[frame["part"] == part])
        for part, draw in (("memory", _tiles), ("phase", _phases), ("liveness", _steps))
        if (frame["part"] == part).any()
    ]


def _picture(words: str, note: str, width: float, *shapes: Node) -> Node:
    box = {"viewBox": f"0 0 {width:g} {HEIGHT}", "preserveAspectRatio": "none", "role": "img"}
    picture: Node = ["svg", box | {"aria-label": note}, ["title", {}, note], *shapes]
    return ["div", {"className": "sketch"}, ["span", {"className": "note"}, words], picture]


def _rect(x: float, width: float, height: float, colour: str) -> Node:
    place = {"x": f"{x:g}", "y": f"{HEIGHT - height:g}", "width": f"{width:g}"}
    return ["rect", place | {"height": f"{height:g}", "fill": f"var(--{colour})"}]


def _tiles(part: pd.DataFrame) -> Node:
    """Draw a bar for each tile; where one has more than the memory of a tile, it is marked."""
    shares, amounts = part["share"].tolist(), part["amount"].tolist()
    top = max(*shares, 1.0)
    bars = [
        _rect(place, 0.86, HEIGHT * share / top, "bad" if share > 1 else "memory")
        for place, share in enumerate(shares)
    ]
    limit = f"M0 {HEIGHT - HEIGHT / top:g}H{len(bars)}"
    style = {"stroke": "var(--quiet)", "strokeDasharray": "3 3", "fill": "none"}
    line: Node = ["path", {"d": limit, "vectorEffect": "non-scaling-stroke", **style}]
    note = f"The fullest tile needs {units.size(max(amounts))}, {units.share(max(shares))} of it"
    return _picture("Tiles", note, len(bars), *bars, line)


def _phases(part: pd.DataFrame) -> Node:
    """Draw the phases beside each other, as wide as their cycles."""
    names, shares = part["name"].tolist(), part["share"].tolist()
    ends = part["share"].cumsum().tolist()
    bars = [
        _rect(1000 * (end - share), 1000 * share, HEIGHT, PHASE_COLOURS.get(name, "idle"))
        for name, share, end in zip(names, shares, ends, strict=True)
    ]
    pairs = zip(names, shares, strict=True)
    note = ", ".join(f"{units.share(share)} {name}" for name, share in pairs)
    return _picture("Cycles", note[:1].upper() + note[1:], 1000, *bars)


def _steps(part: pd.DataFrame) -> Node:
    """Draw what is live as steps."""
    heights = [HEIGHT * (1 - 0.94 * share) for share in part["share"].tolist()]
    path = "".join(f"V{y:g}H{end}" for end, y in enumerate(heights, 1))
    curve: Node = ["path", {"d": f"M0 {HEIGHT}{path}V{HEIGHT}Z", "fill": "var(--not-always-live)"}]
    note = f"At most {units.size(int(part['amount'].max()))} are live at once"
    return _picture("Liveness", note, len(heights), curve)
