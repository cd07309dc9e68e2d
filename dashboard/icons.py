"""The icons of the menu: lines on a grid of 16 by 16, in the colour of the text beside them."""

from __future__ import annotations

from dashboard.still import Still

# Paths of SVG by the address of a page, or by what a button does.
PATHS: dict[str, str] = {
    "/": "M2.5 7.5 8 2.8l5.5 4.7M4 6.6v6.6h8V6.6",
    "/summary": "M3.5 2.5h9v11h-9zM6 5.5h4M6 8h4M6 10.5h2.5",
    "/insights": "M6.3 11.5h3.4M7 13.7h2M6.3 11.5c0-2-2-2.6-2-5a3.7 3.7 0 0 1 7.4 0c0 2.4-2 3-2 5",
    "/memory": "M4.5 4.5h7v7h-7zM6.5 2v2.5m3-2.5v2.5m-3 7V14m3-2.5V14M2 6.5h2.5M2 9.5h2.5m7-3H14"
    "m-2.5 3H14",
    "/liveness": "M2.5 2.5v11h11M5 11l2-3 1.7 1 1.8-4.5 2.5 5",
    "/programs": "M2.5 3.5h4m-2 0v9H8M4.5 8H8m2.5 0h3m-3 4.5h3",
    "/operations": "M2.5 3.5h11m-11 3h8m-8 3h5.5m-5.5 3h3",
    "/graph": "M6 4a2 2 0 1 1-4 0 2 2 0 0 1 4 0zm8 4a2 2 0 1 1-4 0 2 2 0 0 1 4 0zm-8 4a2 2 0 1 1-4 "
    "0 2 2 0 0 1 4 0zM5.8 4.9l4.4 2.2m-4.4 4 4.4-2.2",
    "/execution": "M2.5 3h11v3.3h-11zm0 3.3h5v3.4h-5zm7.5 0h3.5v3.4H10zM4 9.7h3V13H4z",
    "/exchange": "M2.5 2.5h11v11h-11zM2.5 6.2h11M2.5 9.8h11M6.2 2.5v11M9.8 2.5v11",
    "/flames": "M2.5 2.5h11v2.6h-11zm0 4.2h7v2.6h-7zm0 4.2h3.5v2.6H2.5zm8.500-4.2h2.5v2.600h-2.5z",
    "/compare": "M5 13V3M2.5 5.5 5 3l2.5 2.5M11 3v10m-2.5-2.5L11 13l2.5-2.5",
    "/trace": "M2.5 3h11v8h-11zM6 13.5h4M8 11v2.5M4.5 7.5h2l1-2 1.5 3 1-1h1.5",
    "/together": "M2.5 3.5h6v3h-6zm5 6h6v3h-6zm-2-3v4.5h2",
    "/instances": "M2.5 2.5h11v3h-11zm0 4h7v3h-7zm0 4h9v3h-9z",
    "/serving": "M2.5 4h3.500v8H2.500zM8 8h5.500m-2.200-2.500L13.500 8l-2.200 2.500M8 4h1m-1 8h1",
    "/explore": "M2.5 2.5v11h11M5.2 11h.1M6.6 7.7h.1m3.1-.4h.1M12 4.2h.1M9.3 10.6h.1",
    "/documentation": "M8 4C6.5 3 4.5 2.8 2.5 3v9.5c2-.2 4 0 5.5 1 1.5-1 3.5-1.2 "
    "5.5-1V3c-2-.2-4 0-5.5 1zm0 0v9.5",
    "reload": "M13 2.8v3.7H9.3m3.7 0A5.3 5.3 0 1 0 13.2 9.6",
    "fold": "M2.5 3v10M10.5 4l-4 4 4 4",
}  # fmt: skip
ANY = "M3.5 3.5h9v9h-9z"


def icon(name: str) -> Still:
    """Draw an icon; what reads the page aloud passes over it."""
    drawn = {"viewBox": "0 0 16 16", "className": "icon", "aria-hidden": "true"}
    return Still([["svg", drawn, ["path", {"d": PATHS.get(name, ANY)}]]])
