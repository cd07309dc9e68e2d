"""Serve the dashboard on this machine: waitress, the next free port when one is taken."""

from __future__ import annotations

import ctypes
import logging
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import waitress

from dashboard import warm_up
from dashboard.app import application
from dashboard.requests.access import TOKEN, is_loopback
from dashboard.requests.turns import dispatcher
from dashboard.store import Store

PORTS_TRIED = 100
THREADS = 3
# A thread that reads lets others go first at every row, and then waits so long for each of them
# (5 ms by itself: with two that compute, a second of reading took 40).
SWITCH_SECONDS = 0.0005
# Who opens connections and sends nothing keeps others out for at most the seconds of both.
CONNECTIONS = {"connection_limit": 500, "channel_timeout": 30, "cleanup_interval": 10}


def free_socket(host: str, port: int) -> socket.socket:
    """Bind the port, or the next free one of a hundred; raises OSError when none is."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last: OSError | None = None
    for candidate in range(port, port + PORTS_TRIED) if port else [0]:
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, candidate))
        except OSError as problem:
            bound.close()
            last = problem
            continue
        return bound
    raise OSError(f"{host}: no free port from {port} to {port + PORTS_TRIED - 1}") from last


def give_memory_back() -> None:
    """Configure glibc to return freed large arrays to the system, and to share arenas.

    By itself it keeps an arena a thread, and after the first large one it keeps freed arrays up to
    32 MB there (mallopt(3): M_MMAP_THRESHOLD, M_ARENA_MAX). Below 4 MB an array is taken from an
    arena: one that is mapped anew costs a page fault every 4 kB. Elsewhere this does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    for parameter, value in ((-3, 4 << 20), (-8, 2)):
        mallopt(parameter, value)


def serve(
    paths: Sequence[Path | str],
    host: str = "127.0.0.1",
    port: int = 8050,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the reports at these paths until interrupted; `announce` is told the URL.

    Another host than this machine is served to those alone who have the token of the URL.
    """
    give_memory_back()
    token = "" if is_loopback(host) else secrets.token_urlsafe(24)
    store = Store([Path(path) for path in paths])
    app = application(store, host=host, token=token)
    bound = free_socket(host, port)
    # A browser asks for more at once than there are threads; that it waits is no news.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    sys.setswitchinterval(SWITCH_SECONDS)
    settings = {"_dispatcher": dispatcher(THREADS), "ident": None, **CONNECTIONS}
    server = waitress.create_server(app.server, sockets=[bound], **settings)
    name = f"[{host}]" if ":" in host else host
    link = f"http://{name}:{bound.getsockname()[1]}/"
    announce(f"{link}?{TOKEN}={token}" if token else link)
    with warm_up.ready(app, store):
        try:
            server.run()
        finally:
            server.close()
