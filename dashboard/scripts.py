"""Which scripts the browser loads, and when: none that no page needs, the large ones when one does.

Dash puts the scripts of all its packages into every page. Of these, its own table is left out, and
AG Grid waits until a table is shown or the browser is idle, as does plotly.js where no plot is
(assets/early.js, assets/parts.js). Two take the place of larger ones; both are files of an npm
package, as published: of plotly.js (4.8 MB) its part for plots with x and y (1.5 MB, a third of the
time to run; plotly.js-cartesian-dist-min 4.1.1), and of the polyfill for old browsers what Dash's
components call in new ones, too (regenerator-runtime 0.14.1).

The scripts and styles in `assets` are sent as one file each, and the large scripts with a line that
has Chromium compile them as a whole beside the page, not function by function as they are called.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dash import Dash
from flask import Response, request, send_from_directory

ASSETS = Path(__file__).parent / "assets"
VENDOR = Path(__file__).parent / "vendor"
PLOTLY_URL = "/_dash-component-suites/plotly/package_data/plotly.min.js"  # where Dash looks for it
PLOTLY, REGENERATOR = "plotly-cartesian.min.js", "regenerator-runtime.js"
PLOTTED = ("/memory", "/liveness", "/insights", "/graph")  # pages that begin with a plot
# Before all other scripts: it takes longest to compile. Where it stands assets/early.js runs it.
PLOTLY_FIRST = f'<link rel="preload" as="script" fetchpriority="high" href="{PLOTLY_URL}">'
# What stands in a script's place, by a part of its address.
PLACES = {
    "/deps/polyfill@": f'<script src="/vendor/{REGENERATOR}"></script>\n',
    "/dash_table/": "",
    "/dash_ag_grid/": "",
}
MANTINE = '<script src="/_dash-component-suites/dash_mantine_components/'  # ours go before it
TOGETHER = {"assets.js": "text/javascript", "assets.css": "text/css"}
ALONE = ("early.js",)  # runs before all others
WHOLE = b"//# allFunctionsCalledOnLoad\n"  # https://v8.dev/blog/explicit-compile-hints
COMPILED_WHOLE = re.compile(
    r"/(react-dom@|dash_renderer|dash_mantine_components|dash_core_components)[^/]*\.js$"
)
KEPT_SECONDS = 3600  # in the browser: these addresses do not change with what they lead to

_SCRIPT = re.compile(r'<script src="([^"]+)"></script>\n?')


class Application(Dash):  # type: ignore[misc]  # Dash has no types
    """Dash, with the scripts that the pages need."""

    def interpolate_index(self, **parts: Any) -> str:
        """Write the first answer to a browser."""
        scripts = parts["scripts"]
        grid = next((url for url in _SCRIPT.findall(scripts) if "/dash_ag_grid/" in url), "")
        parts["metas"] += f'<meta name="tilescope-grid" content="{grid}">'
        parts["metas"] += PLOTLY_FIRST if request.path in PLOTTED else ""
        react, mantine, tail = _SCRIPT.sub(_needed, scripts).partition(MANTINE)
        parts["scripts"] = f'{react}<script src="{link("js")}"></script>\n{mantine}{tail}'
        parts["css"] += f'<link rel="stylesheet" href="{link("css")}">'
        return str(super().interpolate_index(**parts))


def _needed(match: re.Match[str]) -> str:
    return next((place for part, place in PLACES.items() if part in match[1]), match[0])


def together(kind: str) -> list[Path]:
    """List the files of a kind in `assets` that are sent as one."""
    return sorted(path for path in ASSETS.glob(f"*.{kind}") if path.name not in ALONE)


def link(kind: str) -> str:
    """Return the address of the scripts (`js`) or styles (`css`) as they are now."""
    newest = max(path.stat().st_mtime_ns for path in together(kind))
    return f"/vendor/assets.{kind}?m={newest}"


def _sent(name: str) -> Response:
    if name not in TOGETHER:
        return send_from_directory(VENDOR, name, max_age=KEPT_SECONDS)
    files = together(name.rpartition(".")[2])
    sent = Response(b"\n".join(path.read_bytes() for path in files), mimetype=TOGETHER[name])
    sent.cache_control.max_age = KEPT_SECONDS
    return sent


def _plotly() -> Response:
    sent = Response(WHOLE + (VENDOR / PLOTLY).read_bytes(), mimetype="text/javascript")
    sent.cache_control.max_age = KEPT_SECONDS
    return sent


def _compiled_whole(response: Response) -> Response:
    """Mark a script of Dash's that is used from end to end."""
    if response.status_code == 200 and COMPILED_WHOLE.search(request.path):
        response.set_data(WHOLE + response.get_data())
    return response


def register(app: Dash) -> None:
    """Serve the scripts that take the place of others, and have the browser keep all."""
    app.server.config["SEND_FILE_MAX_AGE_DEFAULT"] = KEPT_SECONDS
    app.server.add_url_rule(PLOTLY_URL, "plotly", _plotly)
    app.server.add_url_rule("/vendor/<name>", "vendor", _sent)
    app.server.after_request(_compiled_whole)
