"""An executable in a file: a line that says what made it, then a table of objects and their arrays.

The line is JSON: the format, the version of the simulator, the bytes of both parts and a checksum.
See `object_file` for the parts.
"""

from __future__ import annotations

import io
import json
import zlib
from typing import BinaryIO

from pva.version import VERSION
from simulator.graph.errors import PoplarError, one_line
from simulator.object_file import packed, unpacked

KIND = "simulator executable"
# 1 was a pickle; in 2 a tensor listed its intervals one by one; 3 had no I/O tiles; in 4
# instrumentation stood in another module; 5 had no host order; in 6 arrays had one form; 7 had no
# graph profile; 8 did not say whose cycles are guessed.
FORMAT = 10
LONGEST_HEADER = 1000  # bytes
STEP = 1 << 20  # bytes that are asked for at once


def write(stream: BinaryIO, executable: object) -> None:
    """Write an executable; raises PoplarError when something of it cannot be kept."""
    try:
        table, data = packed(executable)
    except RecursionError:
        raise PoplarError("executable: its tuples are nested too deeply to be kept") from None
    check = zlib.crc32(data, zlib.crc32(table))
    header = {**_made_by(), "table": len(table), "arrays": len(data), "crc32": check}
    try:
        stream.write(json.dumps(header).encode() + b"\n" + table + data)
    except (TypeError, AttributeError):
        raise PoplarError(f"executable: {stream!r} is no binary file to write to") from None


def read(stream: BinaryIO) -> object:
    """Read what `write` wrote, from where the stream stands; raises PoplarError."""
    header = _header(stream)
    sizes = _checked_sizes(header)
    table, data = (_bytes(stream, size) for size in sizes)
    length, needed = len(table) + len(data), sum(sizes)
    if length != needed or zlib.crc32(data, zlib.crc32(table)) != header["crc32"]:
        raise PoplarError(f"executable: the file is damaged; {length:,} of {needed:,} bytes")
    return _unpacked(table, data)


def read_content(content: memoryview) -> object:
    """Read what `write` wrote of bytes that are known to be those; raises PoplarError."""
    line = bytes(content[:LONGEST_HEADER]).partition(b"\n")[0] + b"\n"
    first, second = _checked_sizes(_header(io.BytesIO(line)))
    begin = len(line)
    if begin + first + second != len(content):
        raise PoplarError(f"executable: the file is damaged; it has {len(content):,} bytes")
    return _unpacked(content[begin : begin + first], content[begin + first :])


def _checked_sizes(header: dict[str, object]) -> list[int]:
    """Return the bytes of the two parts of a file that is of the versions here."""
    for key, ours in _made_by().items():
        theirs = header.get(key, 1)
        if key != "kind" and theirs != ours:
            raise PoplarError(
                f"executable: made with {key} {one_line(str(theirs))}, this is {ours}; "
                "compile it anew"
            )
    sizes = [size for part in ("table", "arrays") if type(size := header.get(part)) is int]
    if len(sizes) < 2 or min(sizes) < 0:
        raise PoplarError("executable: the file is damaged; its first line has no sizes")
    return sizes


def _unpacked(table: bytes | memoryview, data: bytes | memoryview) -> object:
    try:
        return unpacked(bytes(table), data)
    except PoplarError:
        raise
    except Exception as error:
        raise PoplarError(f"executable: it cannot be read: {one_line(str(error))}") from error


def versions() -> str:
    """Return what a file must have been made by: the versions of simulator and format."""
    origin = _made_by()
    return f"{origin['version']}/{origin['format']}"


def _header(stream: BinaryIO) -> dict[str, object]:
    try:
        header = json.loads(stream.readline(LONGEST_HEADER))
    except (TypeError, AttributeError, ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("kind") != KIND or "crc32" not in header:
        raise PoplarError("executable: this is no file of an executable")
    return header


def _bytes(stream: BinaryIO, size: int) -> bytes:
    """Read so many bytes, or as many as there are: a size in a file takes no memory by itself."""
    parts = []
    while size > 0 and (part := stream.read(min(size, STEP))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _made_by() -> dict[str, str | int]:
    return {"kind": KIND, "format": FORMAT, "version": VERSION}
