"""KServe v2 over HTTP, with Triton's extensions, as a WSGI application.

A body is read only when its length is known and allowed; one that is packed is unpacked up to the
same limit. The type of the content is not looked at: clients send none with a request. Sources:
KServe, Open Inference Protocol; Triton, docs/protocol.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from google.protobuf import json_format

from pva.errors import PvaError
from pva.version import VERSION
from simulator.serving import classification
from simulator.serving.metrics import metrics_text
from simulator.serving.served import RequestError, Served
from simulator.serving.server import (
    EXTENSIONS,
    MOST_ELEMENTS,
    NAME,
    InferRequest,
    InferResponse,
    Server,
)
from simulator.serving.settings import SettingError, Settings
from simulator.serving.tensors import (
    DATATYPES,
    Array,
    TensorError,
    elements_of,
    from_bytes,
    from_values,
    to_bytes,
    to_values,
)

JSON_LIMIT = 64 << 20  # bytes of JSON, whose values take many times as much memory
FAILED = "the server failed here; its log has the details"
HEADER = "Inference-Header-Content-Length"
_FOREIGN = ("cross-site", "same-site")  # pages of other sites, or of another port of this machine
STATUS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found",
          405: "Method Not Allowed", 411: "Length Required", 413: "Content Too Large",
          415: "Unsupported Media Type",
          499: "Client Closed Request", 500: "Internal Server Error", 501: "Not Implemented",
          503: "Service Unavailable", 504: "Gateway Timeout"}  # fmt: skip
_MODEL = r"v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?"


@dataclass(frozen=True, slots=True)
class Call:
    """A request of HTTP: what it is for, its body, and what the answer may be."""

    body: bytes
    header_length: int | None
    accepts: str
    model: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of HTTP."""

    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    status: int = 200
    kind: str = "application/json"


Start = Callable[[str, list[tuple[str, str]]], Any]


def application(
    server: Server, settings: Settings, most_bytes: int
) -> Callable[[Mapping[str, Any], Start], Iterable[bytes]]:
    """Return the WSGI application of a server, whose bodies have at most so many bytes."""
    routes = [(re.compile(f"{path}$"), method, act) for path, method, act in ROUTES]

    def answer(environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
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
    server: Server, settings: Settings, routes: Sequence[Any], environ: Mapping[str, Any],
    most: int,
) -> Reply:  # fmt: skip
    path = environ.get("PATH_INFO", "").strip("/")
    method, known = environ["REQUEST_METHOD"], False
    if environ.get("HTTP_SEC_FETCH_SITE") in _FOREIGN:
        raise RequestError("this request comes from a page of another site", status=403)
    for pattern, methods, act in routes:
        if not (match := pattern.match(path)):
            continue
        known = True
        if method in methods:
            names = {key: unquote(value) for key, value in match.groupdict().items() if value}
            reply: Reply = act(server, settings, _call(environ, most, names))
            return reply
    if known:
        raise RequestError(f"{method} /{path[:80]}: another method is needed", status=405)
    raise RequestError(f"/{path[:80]}: there is no such address", status=404)


def _call(environ: Mapping[str, Any], most: int, names: Mapping[str, str]) -> Call:
    given = environ.get("HTTP_INFERENCE_HEADER_CONTENT_LENGTH", "")
    if given and not (given.isdecimal() and len(given) < 16):
        raise RequestError(f"{HEADER}: {given[:20]!r}; a number of bytes")
    body = _body(environ, most)
    length = int(given) if given else None
    return Call(body, length, environ.get("HTTP_ACCEPT_ENCODING", ""), **names)


def _body(environ: Mapping[str, Any], most: int) -> bytes:
    if environ["REQUEST_METHOD"] == "GET":
        return b""
    text = environ.get("CONTENT_LENGTH") or "0"
    if not text.isdecimal() or len(text) > 15:
        raise RequestError("Content-Length: no number of bytes", status=411)
    if int(text) > most:
        raise RequestError(f"a body of {int(text):,} bytes; at most {most:,}", status=413)
    body: bytes = environ["wsgi.input"].read(int(text))
    encoding = environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    return body if encoding in ("", "identity") else unpacked(body, encoding, most)


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """Unpack a body of gzip or deflate; raises RequestError for more than `most` bytes."""
    if encoding not in ("gzip", "deflate"):
        raise RequestError(f"Content-Encoding: {encoding[:20]!r}; gzip or deflate", status=415)
    wrapped = zlib.MAX_WBITS | 16 if encoding == "gzip" else zlib.MAX_WBITS
    inflate = zlib.decompressobj(wrapped)
    try:
        found = inflate.decompress(body, most + 1)
    except zlib.error as error:
        raise RequestError(f"a body that is no {encoding}: {error}") from None
    if len(found) > most:
        raise RequestError(f"a body that unpacks to more than {most:,} bytes", status=413)
    if not inflate.eof:
        raise RequestError(f"a body of {encoding} that is cut short")
    return found


def _error(text: str, status: int) -> Reply:
    return Reply(json.dumps({"error": text}).encode(), (), status)


def _json(value: Any) -> Reply:
    return Reply(json.dumps(value).encode())


def parsed(text: bytes) -> dict[str, Any]:
    """Return the object of a body of JSON; none is an empty one. Raises RequestError."""
    if len(text) > JSON_LIMIT:
        raise RequestError(f"JSON of {len(text):,} bytes; at most {JSON_LIMIT:,}: send tensors "
                           "as raw bytes", status=413)  # fmt: skip
    if not text.strip():
        return {}
    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is no JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise RequestError("the body is no JSON object")
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


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


def model_metadata(server: Server, served: Served) -> dict[str, Any]:
    """Return what clients need to know of a model; -1 is the batch."""
    batch = [-1] if served.settings.config.max_batch_size else []
    versions = [one.number for one in server.all_served() if one.name == served.name]
    inputs, outputs = (
        [{"name": t.name, "datatype": t.datatype, "shape": [*batch, *t.dims]} for t in tensors]
        for tensors in (served.settings.inputs, served.settings.outputs)
    )
    return {"name": served.name, "versions": versions, "platform": "poplar",
            "inputs": inputs, "outputs": outputs}  # fmt: skip


def _config(server: Server, settings: Settings, call: Call) -> Reply:
    config = server.served(call.model, call.version).settings.config
    found = json_format.MessageToDict(
        config, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    found["name"] = call.model
    return _json(_with_numbers(found))


def _with_numbers(value: Any) -> Any:
    """Write sizes as numbers, which protobuf writes as texts where they have 64 bits."""
    if isinstance(value, dict):
        return {k: v if k == "string_value" else _with_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_numbers(one) for one in value]
    is_number = isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value)
    return int(value) if is_number else value


def _statistics(server: Server, settings: Settings, call: Call) -> Reply:
    return _json({"model_stats": statistics_of(server, call.model, call.version)})


def statistics_of(server: Server, model: str, number: str) -> list[dict[str, Any]]:
    """Return the counters of all models, of one, or of one of its versions."""
    if model:
        first = server.served(model, number)
        chosen = [first] if number else [s for s in server.all_served() if s.name == model]
    else:
        chosen = server.all_served()
    return [served.statistics.plain(served.name, served.number) for served in chosen]


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
    asked, wanted = infer_request(server, call)
    with settings.recorded("HTTP", asked.id) as record:
        response = server.infer(asked)
        record(response)
    return _packed(infer_reply(response, wanted), call.accepts)


def infer_request(server: Server, call: Call) -> tuple[InferRequest, Mapping[str, Any]]:
    """Read a request: JSON, then raw tensors in its order; return how outputs are wanted, too."""
    length = len(call.body) if call.header_length is None else call.header_length
    if length > len(call.body):
        raise RequestError(f"{HEADER}: {length:,} of {len(call.body):,} bytes")
    raw = memoryview(call.body)[length:]
    served = server.served(call.model, call.version)
    if not length and call.header_length is not None:
        return _raw_request(served, call, raw), {"binary_data_output": True}
    head = parsed(call.body[:length])
    inputs = _inputs(head.get("inputs"), raw)
    parameters = _object(head, "parameters")
    outputs = _objects(head, "outputs")
    names = [_text(output, "name") for output in outputs]
    wanted: dict[str, Any] = {"binary_data_output": parameters.get("binary_data_output") is True}
    wanted |= {_text(output, "name"): _object(output, "parameters") for output in outputs}
    asked = InferRequest(call.model, call.version, _text(head, "id"), parameters, inputs, names)
    return asked, wanted


def _raw_request(served: Served, call: Call, raw: memoryview) -> InferRequest:
    """Read a body that is nothing but the one input of a model."""
    tensors = served.settings.inputs
    if len(tensors) != 1 or -1 in tensors[0].dims:
        raise RequestError(f"model {served.name!r}: a raw body is one input of known shape")
    (tensor,) = tensors
    shape = [1, *tensor.dims] if served.settings.config.max_batch_size else list(tensor.dims)
    array = from_bytes(tensor.name, tensor.datatype, shape, raw)
    return InferRequest(call.model, call.version, "", {}, {tensor.name: array})


def _inputs(given: Any, raw: memoryview) -> dict[str, Array]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise RequestError("inputs: a list of objects with name, shape, datatype and data")
    inputs: dict[str, Array] = {}
    place = 0
    for one in given:
        name, datatype = _text(one, "name"), _text(one, "datatype")
        if not name or name in inputs:
            raise RequestError(f"inputs: {name!r} twice, or without a name")
        if datatype not in DATATYPES:
            raise RequestError(
                f"input {name!r}: datatype {datatype!r}; one of {', '.join(DATATYPES)}"
            )
        shape = one.get("shape")
        if not isinstance(shape, list):
            raise RequestError(f"input {name!r}: no shape")
        elements_of(name, shape, MOST_ELEMENTS)
        parameters = _object(one, "parameters")
        if any(key.startswith("shared_memory") for key in parameters):
            raise RequestError(f"input {name!r}: this server has no shared memory", status=501)
        size = parameters.get("binary_data_size")
        if size is None:
            inputs[name] = from_values(name, datatype, shape, one.get("data"))
            continue
        if type(size) is not int or not 0 <= size <= len(raw) - place:
            left = len(raw) - place
            raise RequestError(
                f"input {name!r}: binary_data_size {size!r}; {left:,} bytes are left"
            )
        inputs[name] = from_bytes(name, datatype, shape, raw[place : place + size])
        place += size
    if place != len(raw):
        raise RequestError(f"{len(raw) - place:,} bytes behind the last input")
    return inputs


def _text(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key, "")
    if not isinstance(value, str):
        raise RequestError(f"{key}: {str(value)[:40]!r}; a text")
    return value


def _object(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key) or {}
    if not isinstance(value, dict):
        raise RequestError(f"{key}: no object")
    return value


def _objects(holder: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = holder.get(key) or []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise RequestError(f"{key}: no list of objects")
    return value


def infer_reply(response: InferResponse, wanted: Mapping[str, Any]) -> Reply:
    """Write an answer: JSON, and behind it the outputs that are wanted as raw bytes."""
    tensors, raw = [], []
    for tensor, array in response.outputs:
        own = wanted.get(tensor.name, {})
        datatype = tensor.datatype
        if "classification" in own:
            array = classification.classes(response.settings, tensor, array, own["classification"])
            datatype = "BYTES"
        told: dict[str, Any] = {
            "name": tensor.name,
            "datatype": datatype,
            "shape": list(array.shape),
        }
        if own.get("binary_data", wanted["binary_data_output"]):
            raw.append(to_bytes(datatype, array))
            told["parameters"] = {"binary_data_size": len(raw[-1])}
        elif datatype in ("FP16", "BF16"):
            raise RequestError(f"output {tensor.name!r}: {datatype} as JSON; ask for binary_data")
        else:
            told["data"] = to_values(datatype, array)
        tensors.append(told)
    head: dict[str, Any] = {"model_name": response.model, "model_version": response.version}
    head |= {"id": response.id} if response.id else {}
    text = json.dumps(head | {"parameters": dict(response.parameters), "outputs": tensors}).encode()
    if not raw:
        return Reply(text)
    return Reply(
        b"".join([text, *raw]), ((HEADER, str(len(text))),), kind="application/octet-stream"
    )


def _packed(reply: Reply, accepts: str) -> Reply:
    """Pack an answer as the client asked to."""
    names = [part.partition(";")[0].strip().lower() for part in accepts.split(",")]
    for name, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        if name in names:
            headers = (*reply.headers, ("Content-Encoding", name))
            return Reply(pack(reply.body, 1), headers, reply.status, reply.kind)
    return reply


ROUTES: list[tuple[str, tuple[str, ...], Callable[[Server, Settings, Call], Reply]]] = [
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
) -> Callable[[Mapping[str, Any], Start], Iterable[bytes]]:
    """Return the application of the port of metrics, which has nothing else."""
    routes = [(re.compile("metrics$"), ("GET",), _metrics)]

    def answer(environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        try:
            reply = _routed(server, settings, routes, environ, 0)
        except RequestError as error:
            reply = _error(str(error), error.status)
        headers = [("Content-Type", reply.kind), ("Content-Length", str(len(reply.body)))]
        start(f"{reply.status} {STATUS[reply.status]}", headers)
        return [reply.body]

    return answer
