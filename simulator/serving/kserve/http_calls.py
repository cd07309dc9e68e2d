"""A request and an answer of HTTP: bodies read and unpacked up to a limit, JSON up to another.

A body is read only when its length is known and allowed; one that is packed is unpacked up to the
same limit.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.serving.served import RequestError

JSON_LIMIT = 64 << 20  # bytes of JSON, whose values take many times as much memory
Environ = Mapping[str, Any]  # WSGI's: texts, but for the streams of `wsgi.`
HEADER = "Inference-Header-Content-Length"


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


def read_call(environ: Environ, most: int, names: Mapping[str, str]) -> Call:
    """Return a request with its body; raises RequestError."""
    header = environ.get("HTTP_INFERENCE_HEADER_CONTENT_LENGTH", "")
    if header and not (header.isdecimal() and len(header) < 16):
        raise RequestError(f"{HEADER}: {header[:20]!r}; a number of bytes")
    body = _body(environ, most)
    length = int(header) if header else None
    return Call(body, length, environ.get("HTTP_ACCEPT_ENCODING", ""), **names)


def _body(environ: Environ, most: int) -> bytes:
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
        content = inflate.decompress(body, most + 1)
    except zlib.error as error:
        raise RequestError(f"a body that is no {encoding}: {error}") from None
    if len(content) > most:
        raise RequestError(f"a body that unpacks to more than {most:,} bytes", status=413)
    if not inflate.eof:
        raise RequestError(f"a body of {encoding} that is cut short")
    return content


def parsed(text: bytes) -> dict[str, object]:
    """Return the object of a body of JSON; none is an empty one. Raises RequestError."""
    if len(text) > JSON_LIMIT:
        raise RequestError(f"JSON of {len(text):,} bytes; at most {JSON_LIMIT:,}: send tensors "
                           "as raw bytes", status=413)  # fmt: skip
    if not text.strip():
        return {}
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is no JSON: {str(error)[:200]}") from None
    if not isinstance(data, dict):
        raise RequestError("the body is no JSON object")
    return data


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def packed(reply: Reply, accepts: str) -> Reply:
    """Pack an answer as the client asked to."""
    names = [part.partition(";")[0].strip().lower() for part in accepts.split(",")]
    for name, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        if name in names:
            headers = (*reply.headers, ("Content-Encoding", name))
            return Reply(pack(reply.body, 1), headers, reply.status, reply.kind)
    return reply
