"""Which scripts the browser loads, and when: none that no page needs, the large ones when one does.

Dash puts the scripts of all its packages into every page. Of these, its own table is left out, and
AG Grid waits until a table is shown or the browser is idle, as does plotly.js where no plot is
(assets/early.js, assets/parts.js). Two take the place of larger ones; both are files of an npm
package, as published: of plotly.js (4.8 MB) its part for plots with x and y (1.5 MB, a third of the
time to run; plotly.js-cartesian-dist-min 4.1.1), and of the polyfill for old browsers what Dash's
components call in new ones, too (regenerator-runtime 0.14.1).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dash import Dash
from flask import Response, send_from_directory

VENDOR = Path(__file__).parent / "vendor"
PLOTLY_URL = "/_dash-component-suites/plotly/package_data/plotly.min.js"  # where Dash looks for it
PLOTLY, REGENERATOR = "plotly-cartesian.min.js", "regenerator-runtime.js"
# What stands in a script's place, by a part of its address.
PLACES = {
    "/deps/polyfill@": f'<script src="/vendor/{REGENERATOR}"></script>\n',
    "/dash_table/": "",
    "/dash_ag_grid/": "",
}
KEPT_SECONDS = 3600  # in the browser: these addresses do not change with what they lead to

_SCRIPT = re.compile(r'<script src="([^"]+)"></script>\n?')


class Application(Dash):  # type: ignore[misc]  # Dash has no types
    """Dash, with the scripts that the pages need."""

    def interpolate_index(self, **parts: Any) -> str:
        """Write the first answer to a browser."""
        scripts = parts["scripts"]
        grid = next((url for url in _SCRIPT.findall(scripts) if "/dash_ag_grid/" in url), "")
        parts["metas"] += f'<meta name="tilescope-grid" content="{grid}">'
        parts["scripts"] = _SCRIPT.sub(_needed, scripts)
        return str(super().interpolate_index(**parts))


def _needed(found: re.Match[str]) -> str:
    return next((place for part, place in PLACES.items() if part in found[1]), found[0])


def _vendored(name: str) -> Response:
    return send_from_directory(VENDOR, name, max_age=KEPT_SECONDS)


def register(app: Dash) -> None:
    """Serve the scripts that take the place of others, and have the browser keep all."""
    app.server.config["SEND_FILE_MAX_AGE_DEFAULT"] = KEPT_SECONDS
    app.server.add_url_rule(PLOTLY_URL, "plotly", lambda: _vendored(PLOTLY))
    app.server.add_url_rule("/vendor/<name>", "vendor", _vendored)
