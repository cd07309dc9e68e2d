"""Spoil a PopEF file: its bytes, or a structure with lengths and a checksum that fit.

`fault(body)` reads all of it and tells what was wrong, which is nothing when it is read or refused
by one line.
"""

from __future__ import annotations

import io
import json
import tempfile
import traceback
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from pva.errors import PvaError
from simulator import popef
from simulator.popef.container import Blob, framed
from simulator.popef.dump import lines_of
from simulator.popef.facts import anchors, fits, space
from simulator.poplar import PoplarError
from tests.fuzz.executables import HOSTILE, Pick
from tests.popef.files import session

HOSTILE_TEXTS = (*HOSTILE, "-1", "1e3", "99999999999999999999", "9223372036854775807", "f99", "0")


@cache
def seed() -> bytes:
    """Write a session, its executable compressed, with a feed behind it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.popef"
        session().saveExecutable(path, compress=True)
        with popef.FileWriter(path, popef.Mode.APPEND) as writer:
            info = popef.TensorInfo(shape=[2], dataType=popef.DataType.S16)
            feed = popef.FeedDataInfo(name="x", tensorInfo=info, numTensors=3)
            writer.createFeedData(feed).write(bytes(12))
        return path.read_bytes()


@cache
def blobs() -> list[Blob]:
    """List the blobs of the seed."""
    reader = popef.Reader()
    reader.parseStream(io.BytesIO(seed()))
    return reader.blobs


def spoilt(pick: Pick) -> bytes:
    """Spoil the seed in one of the ways, as `pick` chooses."""
    if not pick(4):
        body = bytearray(seed())
        for _ in range(1 + pick(8)):
            body[pick(len(body))] = pick(256)
        return bytes(body[: pick(len(body))] if pick(2) else body)
    chosen = pick(len(blobs()))
    parts = []
    for number, blob in enumerate(blobs()):
        if number == chosen:
            structure = deepcopy(blob.structure)
            for _ in range(1 + pick(3)):
                _change(structure, pick)
            stored = bytes(blob.source.read(blob.begin, blob.stored))
            parts += framed(blob.type, structure, stored, int(blob.compressed))
        else:
            parts.append(seed()[blob.start : blob.end])
    return b"".join(parts)


def fault(body: bytes) -> str:
    """Read a file, its contents and its executables; give what was raised that is no one line."""
    try:
        reader = popef.Reader()
        reader.parseStream(io.BytesIO(body))
        list(lines_of(reader, everything=True))
        json.dumps([anchors(reader), space(reader)])
        for executable in reader.executables():
            fits(executable)
            executable.load()
        popef.ModelBuilder(reader).createModel()
    except (PvaError, PoplarError) as error:
        return "" if "\n" not in str(error) else f"several lines: {error}"
    except Exception:
        return traceback.format_exc()
    return ""


def _change(structure: dict[str, Any], pick: Pick) -> None:
    """Put something else in some place of a structure."""
    place: Any = structure
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[pick(len(keys))]
        if isinstance(place[key], dict | list) and pick(4):
            place = place[key]
            continue
        if not pick(5) and isinstance(place, dict):
            del place[key]
        else:
            place[key] = deepcopy(HOSTILE_TEXTS[pick(len(HOSTILE_TEXTS))])
        return
