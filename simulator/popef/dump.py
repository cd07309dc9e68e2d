"""What `popef_dump` prints: the blobs of a file in the form of the log of Graphcore's tool."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np

from simulator.graph.types import Array
from simulator.popef.container import Blob
from simulator.popef.declaration import BLOBS, FORMAT_VERSION, FRAME, BlobType
from simulator.popef.reader import (
    ExecutableReader,
    FeedReader,
    MetadataReader,
    OpaqueReader,
    Reader,
    TensorReader,
)
from simulator.popef.structures import Metadata

INDENT = " " * 4
SHORT = ("name", "uncompressedSize")  # what Graphcore's log has of an executable
Part = ExecutableReader | FeedReader | MetadataReader | OpaqueReader | TensorReader


def lines_of(reader: Reader, *, everything: bool = False) -> Iterator[str]:
    """Write each blob of a file; with `everything` its content is read, too. Raises PvaError."""
    parts = {id(part.blob): part for part in _parts(reader)}
    for blob in reader.blobs:
        for line in _lines(blob, parts[id(blob)], everything):
            yield f"[{_now()}] [popef:cpp] [debug] {line}"


def metadata_lines(reader: Reader) -> Iterator[str]:
    """Write the metadata of a file alone."""
    for metadata in reader.metadata():
        yield metadata_text(metadata)


def metadata_text(metadata: Metadata) -> str:
    """Return metadata as JSON, a line a field, and of an anchor too."""
    fields = metadata.values()
    texts = _texts(fields)
    if fields["anchors"]:
        begin = "\n" + INDENT * 2
        rows = (_object(_texts(anchor), INDENT * 3) for anchor in fields["anchors"])
        texts["anchors"] = f"[{begin}{f',{begin}'.join(rows)} ]"
    return _object(texts, INDENT)


def _texts(values: dict[str, object]) -> dict[str, str]:
    """Return values as JSON, each for itself."""
    return {name: json.dumps(value) for name, value in values.items()}


def _object(texts: dict[str, str], indent: str) -> str:
    """Return an object of JSON, a line a field."""
    members = [f'"{name}": {text}' for name, text in texts.items()]
    return "{ " + f",\n{indent}".join(members) + " }"


def _parts(reader: Reader) -> Iterator[Part]:
    yield from reader.metadataReaders()
    yield from reader.executables()
    yield from reader.tensors()
    yield from reader.feeds()
    yield from reader.opaqueBlobs()


def _lines(blob: Blob, part: Part, everything: bool) -> Iterator[str]:
    kind, size = BLOBS[blob.type][0], blob.end - blob.start
    head = {"version": str(FORMAT_VERSION), "type": kind, "size": str(size)}
    yield f"Read header: {json.dumps(head)}"
    yield f"start end: {blob.start} {blob.end}"
    yield _structure(blob, part, everything)
    if everything and not isinstance(part, MetadataReader):
        yield f"Read content: {json.dumps(_content(part))}"


def _structure(blob: Blob, part: Part, everything: bool) -> str:
    head = FRAME.size + blob.structure_bytes
    values = part.info.values()
    if isinstance(part, MetadataReader):
        return f"Read Metadata: {metadata_text(part.info)}"
    if isinstance(part, OpaqueReader):
        return f"Read OpaqueBlob: {json.dumps(values)} Structure size: {head}"
    if isinstance(part, ExecutableReader):
        shown = values if everything else {name: values[name] for name in SHORT}
        return f"Read Executable: {json.dumps(shown)} header size: {head}"
    name = "TensorData" if blob.type is BlobType.DATA_TENSOR else "FeedData"
    return f"Read {name}: {json.dumps(values)} header size: {head}"


def _content(part: Part) -> dict[str, str]:
    """Read a content, which checks it; tell its bytes, and the extremes of numbers."""
    if isinstance(part, ExecutableReader):
        return {"bytes": str(len(part.executable()))}
    assert not isinstance(part, MetadataReader)
    data = part.data()
    if isinstance(data, bytes):
        return {"bytes": str(len(data))}
    return {"bytes": str(data.nbytes), **_extremes(data)}


def _extremes(values: Array) -> dict[str, str]:
    if not values.size:
        return {}
    with np.errstate(invalid="ignore"):
        return {"least": str(values.min()), "most": str(values.max())}


def _now() -> str:
    """Return the time of day, of SOURCE_DATE_EPOCH if it is set."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if epoch.isdigit():
        return datetime.fromtimestamp(int(epoch), UTC).strftime("%H:%M:%S.000")
    now = time.time()
    return f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now * 1000) % 1000:03d}"
