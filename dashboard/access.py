"""Who may ask, and what a page may load: headers on every answer, checks on every request.

No URL ever holds a path of the machine: reports are named by their key in the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Flask, Response, request

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


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address is this machine and no other."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def content_security_policy(script_hashes: Sequence[str]) -> str:
    """Write the policy; the hashes are those of the inline scripts that may run."""
    policy = "; ".join(f"{name} {value}" for name, value in _POLICY.items())
    return policy.format(scripts=" ".join(script_hashes))


def protect(server: Flask, script_hashes: Sequence[str], *, loopback_only: bool) -> None:
    """Add the headers to every answer, and refuse what another site made a browser ask.

    With `loopback_only` a request must name this machine in its Host header, so that a foreign name
    which resolves to 127.0.0.1 reads nothing.
    """
    policy = content_security_policy(script_hashes)

    def refuse() -> Response | None:
        host = urlsplit(f"//{request.host}").hostname or ""
        if loopback_only and not is_loopback(host):
            return Response("This dashboard answers to 127.0.0.1 and localhost only.\n", 403)
        if request.method != "GET" and request.headers.get("Sec-Fetch-Site") == "cross-site":
            return Response("This request comes from another site.\n", 403)
        return None

    def add_headers(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers.update(_HEADERS)
        return response

    server.before_request(refuse)
    server.after_request(add_headers)
