"""Listen: HTTP, gRPC and metrics of a repository, until the process is told to end."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pvti
from pva.errors import MissingPackageError, PvaError
from simulator.serving.kserve import grpc_service
from simulator.serving.kserve.http import application, metrics_application
from simulator.serving.server import Server
from simulator.serving.settings import Settings
from simulator.signals import TURN

BODY = 256 << 20  # bytes of a request
IN_MEMORY = 1 << 20  # bytes of a body that is not held in a file while it comes in
THREADS, CONNECTIONS = 64, 1000
# Who opens connections and sends nothing keeps others out for at most the seconds of both.
TIMES = {"channel_timeout": 60, "cleanup_interval": 10}


@dataclass(frozen=True, slots=True)
class Options:
    """What to listen on (-1: not), and what to load."""

    repository: Path
    host: str = "127.0.0.1"
    http: int = 8000
    grpc: int = 8001
    metrics: int = 8002
    mode: str = "none"
    models: tuple[str, ...] = ()
    poll_seconds: float = 15.0
    trace_file: Path | None = None
    trace_rate: int = 1
    trace_count: int = -1
    most_bytes: int = BODY
    threads: int = THREADS
    report: Path | None = None


@dataclass(slots=True)
class Listening:
    """A server that listens; ports by protocol."""

    server: Server
    settings: Settings
    ports: dict[str, int] = field(default_factory=dict)


@contextmanager
def listening(options: Options) -> Iterator[Listening]:
    """Load the models and listen, in a block; raises PvaError."""
    server = Server(options.repository, options.mode, options.report)
    settings = Settings(options.trace_file, options.trace_rate, options.trace_count)
    endpoint = Listening(server, settings)
    with ExitStack() as stack:
        # Ports first: who cannot listen has not loaded models for nothing.
        http = _bound(options.host, options.http, "--http")
        metrics = _bound(options.host, options.metrics, "--metrics")
        for bound in (http, metrics):
            if bound is not None:
                stack.callback(bound.close)
        stack.callback(server.close)
        server.start(options.models, options.poll_seconds)
        if options.grpc >= 0:
            address = f"{_named(options.host)}:{options.grpc}"
            grpc, endpoint.ports["grpc"] = grpc_service.serve(
                server, settings, address, options.most_bytes, options.threads
            )
            stack.callback(lambda: grpc.stop(5).wait())
        for name, bound, app in (
            ("http", http, application(server, settings, options.most_bytes)),
            ("metrics", metrics, metrics_application(server, settings)),
        ):
            if bound is not None:
                endpoint.ports[name] = bound.getsockname()[1]
                threads = options.threads if name == "http" else 2
                stack.callback(_run(app, bound, options.most_bytes, threads, name))
        yield endpoint


def serve(options: Options, announce: Callable[[Listening], None]) -> None:
    """Serve until SIGINT or SIGTERM; write the trace, if one was asked for. Raises PvaError.

    With a report the host trace stands beside it, so that a batch leads to its device.
    """
    if options.report is not None:
        pvti.startTrace(options.report)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with listening(options) as endpoint:
        announce(endpoint)
        while not ended.wait(TURN):
            pass
    endpoint.settings.write_trace()


def _named(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _bound(host: str, port: int, option: str) -> socket.socket | None:
    """Bind a port, any free one for 0; None for -1. Raises PvaError."""
    if port < 0:
        return None
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        text = error.strerror or str(error)
        raise PvaError(f"{option} {_named(host)}:{port}", text, "another port, or 0") from None
    return bound


def _run(
    app: object, bound: socket.socket, most_bytes: int, threads: int, name: str
) -> Callable[[], None]:
    """Run an application in a thread of its own; return what ends it."""
    try:
        import waitress
    except ModuleNotFoundError:
        remedy = "pip install 'tilescope[serving]'"
        raise MissingPackageError("HTTP", "needs the package waitress", remedy) from None
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    server = waitress.create_server(
        app, sockets=[bound], threads=threads, ident=None, connection_limit=CONNECTIONS,
        max_request_body_size=most_bytes, inbuf_overflow=IN_MEMORY, asyncore_use_poll=True,
        clear_untrusted_proxy_headers=True, **TIMES,
    )  # fmt: skip
    thread = threading.Thread(target=server.run, name=name, daemon=True)
    thread.start()

    def end() -> None:
        server.close()
        thread.join(5)

    return end
