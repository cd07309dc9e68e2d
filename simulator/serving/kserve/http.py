"""KServe v2 over HTTP, with Triton's extensions, as a WSGI application.

The type of the content is not looked at: clients send none with a request. Sources: KServe, Open
Inference Protocol; Triton, docs/protocol.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import unquote

from google.protobuf import json_format

from pva.errors import PvaError
from pva.version import VERSION
from simulator.serving.kserve.descriptions import model_metadata, statistics_of
from simulator.serving.kserve.http_calls import Call, Environ, Reply, packed, parsed, read_call
from simulator.serving.kserve.http_infer import infer_reply, infer_request
from simulator.serving.kserve.metrics import metrics_text
from simulator.serving.served import RequestError
from simulator.serving.server import EXTENSIONS, NAME, Server
from simulator.serving.settings import SettingError, Settings
from simulator.serving.triton_messages.tensors import TensorError

FAILED = "the server failed here; its log has the details"
_FOREIGN = ("cross-site", "same-site")  # pages of other sites, or of another port of this machine
STATUS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
          405: "Method Not Allowed", 411: "Length Required", 413: "Content Too Large",
          415: "Unsupported Media Type",
          499: "Client Closed Request", 500: "Internal Server Error", 501: "Not Implemented",
          503: "Service Unavailable", 504: "Gateway Timeout"}  # fmt: skip
_MODEL = r"v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?"

Act = Callable[[Server, Settings, Call], Reply]
Route = tuple[re.Pattern[str], tuple[str, ...], Act]
Start = Callable[[str, list[tuple[str, str]]], object]


def application(
    server: Server, settings: Settings, most_bytes: int
) -> Callable[[Environ, Start], Iterable[bytes]]:
    """Return the WSGI application of a server, whose bodies have at most so many bytes."""
    routes = [(re.compile(f"{path}$"), method, act) for path, method, act in ROUTES]

    def answer(environ: Environ, start: Start) -> Iterable[bytes]:
        try:
            reply = _routed(server, settings, routes, environ, most_bytes)
        except RequestError as error:
            reply = _error(str(error), error.status)
        except (TensorError, SettingError, PvaError) as error:
            reply = _error(" ".join(str(error).split()), 400)
        except MemoryError:
            reply = _error("the memory of this machine is not enough", 413)
        except Exception as error:  # of ours: nobody expected it
            logging.getLogger("tilescope").error("the server failed", exc_info=error)
            reply = _error(FAILED, 500)
        headers = [("Content-Type", reply.kind), ("Content-Length", str(len(reply.body)))]
        start(f"{reply.status} {STATUS[reply.status]}", [*headers, *reply.headers])
        return [reply.body]

    return answer


def _routed(
    server: Server, settings: Settings, routes: Sequence[Route], environ: Environ,
    most: int,
) -> Reply:  # fmt: skip
    path = environ.get("PATH_INFO", "").strip("/")
    method, has_route = environ["REQUEST_METHOD"], False
    if environ.get("HTTP_SEC_FETCH_SITE") in _FOREIGN:
        raise RequestError("this request comes from a page of another site", status=403)
    for pattern, methods, act in routes:
        if not (match := pattern.match(path)):
            continue
        has_route = True
        if method in methods:
            names = {key: unquote(value) for key, value in match.groupdict().items() if value}
            return act(server, settings, read_call(environ, most, names))
    if has_route:
        raise RequestError(f"{method} /{path[:80]}: another method is needed", status=405)
    raise RequestError(f"/{path[:80]}: there is no such address", status=404)


def _error(text: str, status: int) -> Reply:
    return Reply(json.dumps({"error": text}).encode(), (), status)


def _json(value: object) -> Reply:
    return Reply(json.dumps(value).encode())


# Health, metadata, repository
def _live(server: Server, settings: Settings, call: Call) -> Reply:
    return Reply()


def _ready(server: Server, settings: Settings, call: Call) -> Reply:
    return Reply(status=200 if server.ready else 400)


def _model_ready(server: Server, settings: Settings, call: Call) -> Reply:
    try:
        server.served(call.model, call.version)
    except RequestError as error:
        return _error(str(error), 400)
    return Reply()


def _server_metadata(server: Server, settings: Settings, call: Call) -> Reply:
    return _json({"name": NAME, "version": VERSION, "extensions": list(EXTENSIONS)})


def _metadata(server: Server, settings: Settings, call: Call) -> Reply:
    return _json(model_metadata(server, server.served(call.model, call.version)))


def _config(server: Server, settings: Settings, call: Call) -> Reply:
    config = server.served(call.model, call.version).settings.config
    fields = json_format.MessageToDict(
        config, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    fields["name"] = call.model
    return _json(_with_numbers(fields))


def _with_numbers(value: object) -> object:
    """Write sizes as numbers, which protobuf writes as texts where they have 64 bits."""
    if isinstance(value, dict):
        return {k: v if k == "string_value" else _with_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_numbers(one) for one in value]
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    return value


def _statistics(server: Server, settings: Settings, call: Call) -> Reply:
    return _json({"model_stats": statistics_of(server, call.model, call.version)})


def _index(server: Server, settings: Settings, call: Call) -> Reply:
    return _json(server.index(parsed(call.body).get("ready") is True))


def _load(server: Server, settings: Settings, call: Call) -> Reply:
    if parsed(call.body).get("parameters"):
        raise RequestError("parameters of load: this server loads the repository's own files")
    server.load(call.model)
    return Reply()


def _unload(server: Server, settings: Settings, call: Call) -> Reply:
    server.unload(call.model)
    return Reply()


def _trace(server: Server, settings: Settings, call: Call) -> Reply:
    if call.model:
        server.served(call.model)
    return _json(settings.trace(parsed(call.body)))


def _logging(server: Server, settings: Settings, call: Call) -> Reply:
    return _json(settings.logging(parsed(call.body)))


def _no_regions(server: Server, settings: Settings, call: Call) -> Reply:
    return Reply(b"[]")


def _unregistered(server: Server, settings: Settings, call: Call) -> Reply:
    return Reply()


def _no_shared_memory(server: Server, settings: Settings, call: Call) -> Reply:
    raise RequestError("this server has no shared memory: send tensors in the body", status=501)


def _metrics(server: Server, settings: Settings, call: Call) -> Reply:
    return Reply(metrics_text(server).encode(), kind="text/plain; version=0.0.4; charset=utf-8")


# Inference
def _infer(server: Server, settings: Settings, call: Call) -> Reply:
    query, output_options = infer_request(server, call)
    with settings.recorded("HTTP", query.id) as record:
        response = server.infer(query)
        record(response)
    return packed(infer_reply(response, output_options), call.accepts)


ROUTES: list[tuple[str, tuple[str, ...], Act]] = [
    ("v2/health/live", ("GET",), _live),
    ("v2/health/ready", ("GET",), _ready),
    ("v2", ("GET",), _server_metadata),
    ("v2/models/stats", ("GET",), _statistics),
    (_MODEL, ("GET",), _metadata),
    (f"{_MODEL}/ready", ("GET",), _model_ready),
    (f"{_MODEL}/config", ("GET",), _config),
    (f"{_MODEL}/stats", ("GET",), _statistics),
    (f"{_MODEL}/infer", ("POST",), _infer),
    ("v2/repository/index", ("POST",), _index),
    (r"v2/repository/models/(?P<model>[^/]+)/load", ("POST",), _load),
    (r"v2/repository/models/(?P<model>[^/]+)/unload", ("POST",), _unload),
    (r"v2(?:/models/(?P<model>[^/]+))?/trace/setting", ("GET", "POST"), _trace),
    ("v2/logging", ("GET", "POST"), _logging),
    (r"v2/(?:system|cuda)sharedmemory(?:/region/[^/]+)?/status", ("GET",), _no_regions),
    (r"v2/(?:system|cuda)sharedmemory(?:/region/[^/]+)?/unregister", ("POST",), _unregistered),
    (r"v2/(?:system|cuda)sharedmemory/region/[^/]+/register", ("POST",), _no_shared_memory),
    ("metrics", ("GET",), _metrics),
]


def metrics_application(
    server: Server, settings: Settings
) -> Callable[[Environ, Start], Iterable[bytes]]:
    """Return the application of the port of metrics, which has nothing else."""
    routes = [(re.compile("metrics$"), ("GET",), _metrics)]

    def answer(environ: Environ, start: Start) -> Iterable[bytes]:
        try:
            reply = _routed(server, settings, routes, environ, 0)
        except RequestError as error:
            reply = _error(str(error), error.status)
        headers = [("Content-Type", reply.kind), ("Content-Length", str(len(reply.body)))]
        start(f"{reply.status} {STATUS[reply.status]}", headers)
        return [reply.body]

    return answer
