"""Spoil what a server reads: traces of Triton, configurations, and calls of HTTP.

`KINDS` has a way to spoil each, as a choice function `below` says, and what then reads it and
tells what was wrong: nothing when it is read, or refused by one line.
"""

from __future__ import annotations

import atexit
import gzip
import io
import json
import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pva.analysis import requests
from pva.errors import PvaError
from pva.trace import openTrace
from simulator.serving.kserve.http import FAILED, application
from simulator.serving.model_config import read_settings
from simulator.serving.server import Server
from simulator.serving.settings import Settings
from tests.fuzz.mutations import (
    Below,
    flipped,
    json_changed,
    json_text_changed,
    one_of,
    spliced,
    truncated,
)
from tests.serving.small_models import compile_linear, write_model

MOST = 1 << 16  # bytes of a body
TRACE = Path(__file__).parents[1] / "traces" / "served.json"
CONFIG = """name: "lin" backend: "poplar" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2, 4 ] reshape: { shape: [ 8 ] } } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "l" } ]
version_policy { specific { versions: [ 1, 2 ] } }
instance_group [ { kind: KIND_CPU count: 2 } ]
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 500
  priority_levels: 2 default_priority_level: 1 preserve_ordering: true
  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 9 max_queue_size: 5 }
  priority_queue_policy { key: 2 value { allow_timeout_override: true } } }
parameters { key: "timeout_ns" value { string_value: "500000" } }
model_warmup { name: "w" batch_size: 4 inputs { key: "x"
  value { data_type: TYPE_FP32 dims: [ 2, 4 ] zero_data: true } } }
"""
WORDS = ("-1", "0", "1", "99999999999", "1e999", "nan", '"\\377"', "true", "KIND_GPU", "TYPE_BF16",
         "{", "}", "[", "]", "<", ":", "input {" * 200, "# ", '"', "sequence_batching { }",
         "\0", "\u2028")  # fmt: skip
PATHS = ("v2/models/lin/infer", "v2/models/lin/versions/1/infer", "v2/models/other/infer",
         "v2/repository/index", "v2/models/lin/trace/setting", "v2/logging", "v2/models/stats",
         "v2/repository/models/lin/load", "v2/models/lin/config", "../%00", "v2//infer",
         )  # fmt: skip
HEADERS = {
    "REQUEST_METHOD": ("GET", "PUT"),
    "HTTP_INFERENCE_HEADER_CONTENT_LENGTH": ("0", "1", "-1", "99999", "1" * 20, "\u0663", "x"),
    "CONTENT_LENGTH": ("0", "1", "-1", "99999999999", "x", ""),
    "HTTP_CONTENT_ENCODING": ("gzip", "deflate", "br", "GZIP , gzip"),
    "HTTP_ACCEPT_ENCODING": ("gzip", "deflate;q=0", "\0"),
    "HTTP_SEC_FETCH_SITE": ("cross-site", "none"),
}


def _text(content: bytes, below: Below) -> bytes:
    """Change bytes anywhere."""
    return one_of(below, (truncated, flipped, spliced))(content, below)


def _json(content: bytes, below: Below) -> bytes:
    """Change a value of a document, or bytes of it."""
    for _ in range(1 + below(3)):
        content = one_of(below, (json_changed, json_changed, json_text_changed, _text))(
            content, below
        )
    return content


@cache
def _few() -> bytes:
    """Return the entries of a few requests of a trace."""
    return json.dumps(json.loads(TRACE.read_bytes())[:12]).encode()


def spoilt_trace(below: Below) -> bytes:
    """Spoil a trace of Triton."""
    return _json(_few(), below)


def read_trace(content: bytes) -> str:
    """Read a trace, and its requests."""

    def read(folder: Path) -> None:
        (folder / "t.json").write_bytes(content)
        requests(openTrace(folder / "t.json"))

    return _problem(read)


def spoilt_config(below: Below) -> bytes:
    """Spoil a configuration: words of it, or bytes."""
    words = CONFIG.split(" ")
    for _ in range(1 + below(4)):
        at = below(len(words))
        words[at : at + below(2)] = [one_of(below, (*WORDS, *words))]
    content = " ".join(words).encode()
    return _text(content, below) if not below(4) else content


def read_config(content: bytes) -> str:
    """Read a configuration, and check it."""

    def read(folder: Path) -> None:
        (folder / "lin").mkdir()
        (folder / "lin" / "config.pbtxt").write_bytes(content)
        read_settings(folder / "lin")

    return _problem(read)


def _problem(read: Callable[[Path], None]) -> str:
    """Return what was raised that is no one line."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            read(Path(folder))
        except PvaError as error:
            return f"several lines: {error}" if "\n" in str(error) else ""
        except Exception:
            return traceback.format_exc()
    return ""


Call = dict[str, Any]


def _bodies() -> tuple[tuple[bytes, bytes], ...]:
    """Return heads of JSON, each with what stands behind it."""
    x = np.ones((3, 8), np.float32)
    one: Call = {"name": "x", "shape": [3, 8], "datatype": "FP32"}
    raw = one | {"parameters": {"binary_data_size": x.nbytes}}
    outputs = [{"name": "y", "parameters": {"classification": 2}}, {"name": "y"}]
    return (
        (json.dumps({"id": "7", "inputs": [one | {"data": x.tolist()}]}).encode(), b""),
        (json.dumps({"inputs": [raw], "outputs": outputs[:1],
                     "parameters": {"priority": 1, "timeout": 5}}).encode(), x.tobytes()),
        (b'{"trace_rate": "1", "trace_level": ["TIMESTAMPS"], "log_verbose_level": 1}', b""),
        (b"", x[0].tobytes()),
    )  # fmt: skip


def spoilt_call(below: Below) -> Call:
    """Spoil a call: its body, its headers, or where it goes."""
    head, raw = one_of(below, _bodies())
    if below(4):
        head = _json(head, below)
    if not below(4):
        raw = _text(raw, below)
    call: Call = {"REQUEST_METHOD": "POST", "PATH_INFO": f"/{PATHS[below(2)]}"}
    if raw:
        call["HTTP_INFERENCE_HEADER_CONTENT_LENGTH"] = str(len(head))
    body = head + raw
    if not below(6):
        body = gzip.compress(body) if below(2) else gzip.compress(bytes(MOST * 4))
        call["HTTP_CONTENT_ENCODING"] = "gzip"
    call |= {"CONTENT_LENGTH": str(len(body)), "wsgi.input": body}
    if not below(3):
        name = one_of(below, list(HEADERS))
        call[name] = one_of(below, HEADERS[name])
    if not below(4):
        call["PATH_INFO"] = f"/{one_of(below, PATHS)}"
    return call


@cache
def _server() -> Server:
    """Serve one small model, for as long as the process lives."""
    place = tempfile.TemporaryDirectory()
    compile_linear(write_model(Path(place.name), "lin") / "1")
    server = Server(Path(place.name))
    server.start()
    atexit.register(place.cleanup)
    atexit.register(server.close)  # which comes first
    return server


@contextmanager
def _silent() -> Iterator[None]:
    """Keep what the server logs of a failure off the screen: it is told anyway."""
    logger = logging.getLogger("tilescope")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def answer_call(call: Call) -> str:
    """Answer a call; every answer but a good one is JSON with an error of one line."""
    environ = {**call, "wsgi.input": io.BytesIO(call["wsgi.input"])}
    told: list[Any] = []
    try:
        with _silent():
            parts = application(_server(), Settings(), MOST)(
                environ, lambda *start: told.extend(start)
            )
        status, body = int(told[0].split()[0]), b"".join(parts)
    except Exception:
        return traceback.format_exc()
    if status == 200:
        return ""
    error = json.loads(body)["error"] if body else ""
    bad = error == FAILED or "\n" in error or len(error) > 1000
    return f"{status}: {error[:300]!r} of {call}" if bad else ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to spoil, and a way to read that tells what was wrong."""

    spoilt: Callable[[Below], Any]
    fault: Callable[[Any], str]


KINDS = {
    "trace": Kind(spoilt_trace, read_trace),
    "config": Kind(spoilt_config, read_config),
    "call": Kind(spoilt_call, answer_call),
}
