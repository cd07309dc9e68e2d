"""Who may ask, and what a page may load: headers on every answer, checks on every request.

A request must name the address served in its Host header. Where that is another than this machine,
it must also bring the token: once in the link that the command printed, then in a cookie. No URL
ever holds a path of the machine: reports are named by their key in the store. What goes wrong is
answered in a line, which a browser that asked for a page gets below a heading; the log has the
details.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from html import escape
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from dash.exceptions import CallbackException, DependencyException
from flask import Flask, Response, redirect, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

# Plotly, Mantine and AG Grid write style elements as they run; scripts come from here alone.
_POLICY = {
    "default-src": "'self'",
    "script-src": "'self' {scripts}",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{heading} · tilescope</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 sans-serif; }}
main {{ max-width: 40em; margin: 3em auto; padding: 0 1em; overflow-wrap: anywhere; }}
</style>
</head>
<body><main><h1>{heading}</h1><p>{line}</p>{way}</main></body>
</html>
"""
_WAY = '<p><a href="/">All reports and traces</a></p>'
_CLOSED = (401, 403)  # to whom no page is open

TOKEN = "token"  # the key in the link that the command prints
CALLBACKS = "/_dash-update-component"
_FOREIGN = ("cross-site", "same-site")  # the second: another port of this machine
_ANY = ("0.0.0.0", "::")
MAX_BYTES = 4_000_000  # of a request


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine and no other."""
    if host == "localhost":
        return True
    return _is_address(host) and ip_address(host.strip("[]")).is_loopback


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def is_served(named: str, host: str) -> bool:
    """Return whether the Host header of a request names the address that is served.

    A foreign name that was made to lead here reads nothing (DNS rebinding). The port may be
    another: a tunnel changes it.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?", named):
        return False
    name = (urlsplit(f"//{named}").hostname or "").rstrip(".").lower()
    if is_loopback(host):
        return is_loopback(name)
    if host in _ANY:
        hostnames = {socket.gethostname().lower(), socket.getfqdn().lower()}
        return _is_address(name) or name in hostnames or is_loopback(name)
    return name == host.strip("[]").lower()


def content_security_policy(script_hashes: Sequence[str]) -> str:
    """Write the policy; the hashes are those of the inline scripts that may run."""
    policy = "; ".join(f"{name} {value}" for name, value in _POLICY.items())
    return policy.format(scripts=" ".join(script_hashes))


_NO_REQUEST = "This is no request of a page."


def _line(text: str, status: int) -> Response:
    return Response(f"{text}\n", status, mimetype="text/plain")


def _show_as_page(response: Response) -> None:
    """Write the line that refuses a browser's page as a page, with where to go on."""
    refused = response.status_code >= 400 and response.mimetype == "text/plain"
    if not refused or request.accept_mimetypes.best != "text/html":
        return
    status = HTTPStatus(response.status_code)
    line = escape(response.get_data(as_text=True).strip())
    way = "" if status in _CLOSED else _WAY
    response.set_data(_PAGE.format(heading=status.phrase, line=line, way=way))
    response.mimetype = "text/html"


def protect(server: Flask, script_hashes: Sequence[str], *, host: str, token: str = "") -> None:
    """Add the headers to every answer; refuse foreign names, other sites, and who has no token.

    Raises ValueError when another address than this machine's is served without a token.
    """
    if not (token or is_loopback(host)):
        raise ValueError(f"{host}: serving other machines needs a token")
    policy = content_security_policy(script_hashes)

    def refuse() -> AnyResponse | None:
        if not is_served(request.host or "", host):
            served = "127.0.0.1 and localhost" if is_loopback(host) else host
            return _line(f"This dashboard answers to {served} only.", 403)
        if request.method != "GET" and request.headers.get("Sec-Fetch-Site") in _FOREIGN:
            return _line("This request comes from another site.", 403)
        return _without_token(token) if token else None

    def add_headers(response: Response) -> Response:
        _show_as_page(response)
        response.headers["Content-Security-Policy"] = policy
        response.headers.setdefault("Cache-Control", "no-store")  # files have their own
        response.headers.update(_HEADERS)
        return response

    server.config["MAX_CONTENT_LENGTH"] = MAX_BYTES
    server.before_request_funcs.setdefault(None, []).insert(0, refuse)
    server.after_request(add_headers)
    server.register_error_handler(Exception, _failed)


def only_callbacks(server: Flask, callbacks: Mapping[str, Mapping[str, object]]) -> None:
    """Refuse what no page asks of Dash, which would fail on it; `callbacks` are those it has."""

    def refuse() -> Response | None:
        if request.path != CALLBACKS or request.method != "POST":
            return None
        with suppress(RecursionError):  # of lists in lists in lists
            if _is_call(request.get_json(silent=True), callbacks):
                return None
        return _line(_NO_REQUEST, 400)

    server.before_request(refuse)


def _is_call(call: object, callbacks: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether a request has the outputs, inputs and states of a callback of the server."""
    if not isinstance(call, dict) or not isinstance(call.get("output"), str):
        return False
    callback, changed = callbacks.get(call["output"], {}), call.get("changedPropIds", [])
    if "callback" not in callback or not isinstance(changed, list):
        return False
    multi_output = call["output"].startswith("..")
    outputs = call.get("outputs")
    count = len(call["output"].strip(".").split("...")) if multi_output else 1
    listed = outputs if multi_output else [outputs]
    pattern = "{" in call["output"]  # of several elements, whose outputs are lists
    if (
        not isinstance(listed, list)
        or len(listed) != count
        or not all(_is_named(part) and (pattern or isinstance(part, dict)) for part in listed)
    ):
        return False
    return all(isinstance(part, str) for part in changed) and all(
        _fits(call.get(key, []), callback[declared])
        for key, declared in (("inputs", "inputs"), ("state", "state"))
    )


def _is_named(part: object) -> bool:
    """Return whether a part of a request has an id and a property; of a pattern, each of a list."""
    if isinstance(part, list):
        return all(isinstance(item, dict) and _is_named(item) for item in part)
    if not isinstance(part, dict) or not isinstance(part.get("property"), str):
        return False
    return isinstance(part.get("id"), str | dict)


def _fits(parts: object, declared: Sequence[Mapping[str, object]]) -> bool:
    """Return whether parts of a request are those that a callback declares, in their order."""
    if not isinstance(parts, list) or len(parts) != len(declared):
        return False
    return all(map(_is_named, parts)) and all(
        item["property"] == one["property"]
        for part, one in zip(parts, declared, strict=True)
        for item in (part if isinstance(part, list) else [part])
    )


def _cookie(token: str) -> str:
    """Name the cookie after its token: cookies do not tell ports, and each server has its own."""
    return f"tilescope-{hashlib.sha256(token.encode()).hexdigest()[:8]}"


def _without_token(token: str) -> AnyResponse | None:
    """Refuse who does not know the token; who brings it in the link gets it as a cookie."""
    link_token = request.args.get(TOKEN, "")
    if request.method == "GET" and hmac.compare_digest(link_token.encode(), token.encode()):
        query = urlencode([pair for pair in request.args.items(multi=True) if pair[0] != TOKEN])
        # Browsers drop tabs and turn backslashes: quoted, no path becomes another host.
        place = quote(request.path.lstrip("/"))
        answer = redirect(f"/{place}" + (f"?{query}" if query else ""))
        answer.set_cookie(_cookie(token), token, httponly=True, samesite="Strict")
        return answer
    cookie = request.cookies.get(_cookie(token), "")
    if hmac.compare_digest(cookie.encode(), token.encode()):
        return None
    return _line("Open the address that `tilescope serve` printed, with its token.", 401)


def _failed(problem: Exception) -> Response:
    """Answer what nobody expected with a line, never with a stack trace."""
    if isinstance(problem, HTTPException):
        return _line(f"{problem.code} {problem.name}", problem.code or 500)
    if isinstance(problem, DependencyException):  # Dash's word for a file that it does not have
        return _line("404 Not Found", 404)
    if type(problem) is CallbackException:  # outputs that are not those of the callback
        return _line(_NO_REQUEST, 400)
    logging.getLogger("tilescope").error("the dashboard failed", exc_info=problem)
    return _line("the dashboard failed here; its log has the details", 500)
