"""The data of a view as a file: /download/NAME.csv and /download/NAME.parquet, by its address.

A page offers what it shows, and puts `controls.exports(NAME)` beside the view; the link carries the
address of the view, so that the file holds what is chosen and filtered there:

    register:  downloads.offer(app, "memory-by-tile", frame)   # frame(store, state) -> DataFrame
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from typing import Any

from dash import Dash
from flask import Flask, Response, request

from dashboard import address
from dashboard.address import Address
from dashboard.elements.components import EXPECTED, FAILED, Frame
from dashboard.store import Store

MakeFrame = Callable[[Store, Address], Frame]
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
LONGEST_PART = 60  # letters of the name of a report in that of a file
_OFFERED = "tilescope-downloads"


def offer(app: Dash, name: str, make: MakeFrame) -> None:
    """Offer the frame of a view under a name."""
    app.server.extensions.setdefault(_OFFERED, {})[name] = make


def offered(server: Flask) -> dict[str, MakeFrame]:
    """Return what the pages offer, by name."""
    offers: dict[str, MakeFrame] = server.extensions.get(_OFFERED, {})
    return offers


def csv(frame: Frame) -> bytes:
    """Write a frame as CSV that spreadsheets take for data.

    They calculate what begins as a formula: names of a report that do so get an apostrophe before.
    Parquet, and `tilescope show` with --format csv, have every name as it is.
    """
    frame = frame.reset_index(drop=True)
    for name in frame.select_dtypes(["object", "string", "category"]):
        column = frame[name].astype(object)
        texts = column[[isinstance(value, str) for value in column]]
        formulas = texts[texts.str.startswith(FORMULAS).astype(bool)]
        if len(formulas):
            column.loc[formulas.index] = "'" + formulas
            frame = frame.assign(**{str(name): column})
    text: str = frame.to_csv(index=False)
    return text.encode(errors="replace")


def _parquet(frame: Frame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


KINDS: dict[str, tuple[Callable[[Frame], bytes], str]] = {
    "csv": (csv, "text/csv; charset=utf-8"),
    "parquet": (_parquet, "application/vnd.apache.parquet"),
}


def file_name(name: str, *reports: str) -> str:
    """Name a file after the reports that it is of, in letters that every system takes."""
    parts = [re.sub(r"[^A-Za-z0-9._-]+", "_", report) for report in reports if report]
    return "-".join([*(part[:LONGEST_PART].strip("._") for part in parts), name])


def _fault(text: str, status: int) -> Response:
    return Response(f"{text}\n", status, mimetype="text/plain")


def register(server: Flask, store: Store) -> None:
    """Add the address to the server."""

    def download(name: str, kind: str) -> Response:
        make, chosen_kind = offered(server).get(name), KINDS.get(kind)
        if make is None or chosen_kind is None:
            return _fault(f"{name}.{kind}: no such download", 404)
        encode, mimetype = chosen_kind
        try:
            state = address.parse("/", request.query_string.decode("utf-8", "replace"))
            body = encode(make(store, state))
        except EXPECTED as problem:
            return _fault(str(problem), 404)
        except ImportError:
            return _fault("Parquet needs pyarrow: pip install 'tilescope[parquet]'", 501)
        except Exception:
            logging.getLogger("tilescope").exception("the dashboard failed")
            return _fault(FAILED, 500)
        answer = Response(body, mimetype=mimetype)
        saved_as = file_name(f"{name}.{kind}", state.report, state.against)
        answer.headers["Content-Disposition"] = f'attachment; filename="{saved_as}"'
        return answer

    rule: Any = "/download/<name>.<kind>"
    server.add_url_rule(rule, "download", download)
