"""The icons of the menu: lines on a grid of 16 by 16, in the colour of the text beside them."""

from __future__ import annotations

from dashboard.elements.static_elements import StaticElements

# Paths of SVG by what a button does; a page declares its own.
PATHS: dict[str, str] = {
    "reload": "M13 2.8v3.7H9.3m3.7 0A5.3 5.3 0 1 0 13.2 9.6",
    "fold": "M2.5 3v10M10.5 4l-4 4 4 4",
}


def icon(path: str) -> StaticElements:
    """Draw a path of SVG as an icon that screen readers pass over."""
    drawn = {"viewBox": "0 0 16 16", "className": "icon", "aria-hidden": "true"}
    return StaticElements([["svg", drawn, ["path", {"d": path}]]])
