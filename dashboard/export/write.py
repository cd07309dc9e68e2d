"""The file: pages, timelines, scripts and styles in one HTML document of bounded size."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from dashboard import scripts
from dashboard.app import application
from dashboard.export import packed
from dashboard.export.pages import Kept, exported_pages, page_document
from dashboard.export.timelines import timeline_bytes
from dashboard.store import Store
from dashboard.timeline.endpoint import timeline
from pva.errors import NotRecordedError
from pva.plot import theme
from pva.plot.lanes import Timeline
from pva.trace import Trace

ASSETS = Path(__file__).parent / "assets"
LIMIT = 10_000_000  # bytes of the file
MAX_EVENTS = 1_500_000  # of all timelines together: more rectangles take a browser too long
FEWEST = 20_000  # rectangles of a timeline, however little room is left
TRIES = 5
# Scripts of the dashboard that need its server or Dash; the others are the same here.
SERVED_ONLY = ("timeline_start.js",)
# Nothing may be fetched: what a page of a report holds stays in it.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
SOURCES = {"/execution": "device", "/trace": "host"}  # the timeline of a page

Progress = Callable[[str], None]


def html_of(paths: Sequence[Path], progress: Progress = lambda _: None) -> bytes:
    """Return the HTML of reports and traces; raises PvaError where none of them can be shown."""
    store = Store(list(paths))
    app = application(store)
    archive = Kept()
    sources: list[dict[str, Any]] = []
    wholes: list[tuple[Timeline, Trace | None]] = []
    for key in store.keys:
        pages = []
        timelines: dict[str, int] = {}
        for page in exported_pages(app, store, key):
            progress(f"{key}: {page.TITLE}")
            pages.append(page_document(app, store, page, key, archive))
            source = SOURCES.get(page.PATH)
            if source:
                timelines[source] = len(wholes)
                trace = store.trace(key) if source == "host" else None
                wholes.append((timeline(store, source, key), trace))
        if pages:
            sources.append({"key": key, "pages": pages, "timelines": timelines})
    if not sources:
        raise NotRecordedError(paths[0], "nothing that a page shows", "give a report or a trace")
    data = {"pages": packed.document(_document(sources, archive))}
    document = _written(sources, {**data, "plotly": (scripts.VENDOR / scripts.PLOTLY).read_bytes()})
    progress("timelines")
    return document.replace(b"<!--timelines-->", _timelines(wholes, LIMIT - len(document)))


def _document(sources: list[dict[str, object]], archive: Kept) -> dict[str, object]:
    import orjson

    lists = {
        name: [orjson.Fragment(part) for part in getattr(archive, name)]
        for name in ("parts", "figures", "tables")
    }
    return {"sources": sources, "made": _made(), **lists}


def _made() -> str:
    """Return when the file is made, which SOURCE_DATE_EPOCH fixes."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    zone = datetime.UTC
    moment = (
        datetime.datetime.fromtimestamp(int(fixed), zone)
        if fixed.isdecimal()
        else datetime.datetime.now(zone)
    )
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _timelines(wholes: list[tuple[Timeline, Trace | None]], room: int) -> bytes:
    """Pack the timelines so that they fit, of more events the more of them put together."""
    if not wholes:
        return b""
    events = sum(len(page_timeline.tracks.begin) for page_timeline, _ in wholes)
    limit = min(events, MAX_EVENTS)
    for _ in range(TRIES):
        texts = [
            packed.text_of(
                timeline_bytes(page_timeline, _share(page_timeline, limit, events), trace)
            )
            for page_timeline, trace in wholes
        ]
        size = sum(map(len, texts)) + 100 * len(texts)
        if size <= room or limit <= FEWEST:
            break
        limit = max(int(0.9 * limit * room / size), FEWEST) if room > 0 else FEWEST
    return b"\n".join(
        _data(f"timeline-{number}", text).encode() for number, text in enumerate(texts)
    )


def _share(page_timeline: Timeline, limit: int, events: int) -> int:
    return max(int(limit * len(page_timeline.tracks.begin) / max(events, 1)), 1)


def _data(name: str, text: str) -> str:
    return f'<script type="text/plain" id="data-{name}">{text}</script>'


def _written(sources: list[dict[str, Any]], data: dict[str, bytes]) -> bytes:
    """Write all but the timelines, whose place is marked."""
    names = ", ".join(source["key"] for source in sources)
    style = "\n".join(
        path.read_text() for path in [*scripts.together("css"), ASSETS / "export.css"]
    )
    first = [ASSETS / "address.js"]
    shared = [
        path
        for path in scripts.together("js")
        if path.name.startswith("timeline") and path.name not in SERVED_ONLY
    ]
    page_files = [ASSETS / name for name in ("data.js", "tracks.js", "source.js", "chosen.js",
                                      "table.js", "page.js")]  # fmt: skip
    code = "\n".join(path.read_text() for path in [*first, *shared, *page_files])
    parts = [
        '<!doctype html>\n<html lang="en" data-mantine-color-scheme="light">\n<head>',
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="generator" content="tilescope export">',
        f"<title>{escape(names)} – tilescope</title>",
        f"<style>{theme.css()}\n{style}</style>",
        '</head>\n<body><div id="exported"></div><noscript>This page needs JavaScript.</noscript>',
        *(_data(name, packed.text_of(content)) for name, content in data.items()),
        "<!--timelines-->",
        f"<script>{code}</script>",
        "</body>\n</html>\n",
    ]
    return "\n".join(parts).encode(errors="replace")
