"""The bytes of a PopEF file: blobs one after another, each a frame, a structure and a payload.

Every size is held against the length of the file before memory is taken.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pva.errors import DamagedFileError, NewerVersionError, PvaError, UnknownFormatError
from pva.plain_file import opened
from simulator.popef.declaration import (
    ALIGNMENT,
    BLOBS,
    COMPRESSED,
    FORMAT_VERSION,
    FRAME,
    MAGIC,
    BlobType,
)

FORMAT = "a PopEF file of tilescope"
FOREIGN = "PopEF of Graphcore's SDK: its layout is not public"
RATIO = 1100  # zlib's best is 1,032 bytes of content in one
LEVEL = 1  # of zlib: the others take several times as long for a tenth less


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or bytes in its stead, of which parts are read when they are asked for."""

    path: Path | str
    size: int
    content: memoryview | None = None

    @classmethod
    def of_file(cls, path: Path) -> Source:
        """Return a file as a source; raises PvaError where there is none."""
        with opened(path, FORMAT) as stream:
            return cls(path, os.fstat(stream.fileno()).st_size)

    def read(self, start: int, size: int) -> memoryview:
        """Read some bytes, fewer at the end; raises PvaError."""
        size = max(0, min(size, self.size - start))
        if self.content is not None:
            return self.content[start : start + size]
        with opened(Path(self.path), FORMAT) as stream:
            stream.seek(start)
            return memoryview(stream.read(size))


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob as it stands in a file: its place and its structure; its payload is not yet read.

    `start`, `begin` (of the payload) and `end` are bytes from the file's begin.
    """

    source: Source
    type: BlobType
    start: int
    end: int
    structure: dict[str, Any]
    structure_bytes: int
    compressed: bool
    begin: int
    stored: int
    check: int

    @property
    def place(self) -> str:
        """Name the blob in an error."""
        return f"{BLOBS[self.type][0]} at byte {self.start:,}"

    def payload(self, size: int, check: bool = True) -> memoryview:
        """Return the payload, of so many bytes; raises DamagedFileError.

        Whoever knows a better hash of it may leave its checksum out.
        """
        stored = self.source.read(self.begin, self.stored)
        if check and zlib.crc32(stored) != self.check:
            raise self.damaged("its bytes do not have their checksum")
        if not self.compressed:
            return stored
        unpack = zlib.decompressobj()
        try:
            content = unpack.decompress(stored, size + 1)
        except zlib.error as error:
            raise self.damaged(str(error)) from None
        if len(content) != size or not unpack.eof:
            raise self.damaged(f"unpacked it has not the {size:,} bytes that it should")
        return memoryview(content)

    def check_size(self, size: int) -> None:
        """Raise DamagedFileError when a payload of this size cannot stand here."""
        fits = size <= self.stored * RATIO if self.compressed else size == self.stored
        if not fits:
            raise self.damaged(f"{self.stored:,} bytes", f"{size:,} are needed")

    def damaged(self, fault: str, expected: str = "") -> DamagedFileError:
        """Return the error of this blob."""
        return DamagedFileError(self.source.path, fault, expected, place=self.place)


def blobs_of(source: Source) -> Iterator[Blob]:
    """Read the frames and structures of a file's blobs; raises PvaError."""
    if not source.size:
        raise DamagedFileError(source.path, "empty", f"{FORMAT} is needed")
    if source.read(0, len(MAGIC)) != MAGIC:
        raise UnknownFormatError(source.path, FOREIGN, f"{FORMAT} is needed")
    start = 0
    while start < source.size:
        blob = _blob(source, start)
        yield blob
        start = blob.end


def _blob(source: Source, start: int) -> Blob:
    path, place, bytes_left = source.path, f"byte {start:,}", source.size - start
    head = source.read(start, FRAME.size)
    if len(head) < FRAME.size:
        raise DamagedFileError(path, "the file ends inside a blob", place=place)
    magic, version, kind, flags, length, check, size, stored, payload_check, zero = FRAME.unpack(
        head
    )
    if magic != MAGIC:
        raise DamagedFileError(path, "no blob begins here", place=place)
    if version > FORMAT_VERSION:
        fault = f"format version {version}"
        raise NewerVersionError(path, fault, f"up to {FORMAT_VERSION} is known", place=place)
    content_bytes = FRAME.size + length + stored
    if size != padded(content_bytes) or size > bytes_left or length % ALIGNMENT:
        fault = f"a blob of {size:,} bytes; {bytes_left:,} are left"
        raise DamagedFileError(path, fault, place=place)
    structure = bytes(source.read(start + FRAME.size, length))
    plain = FRAME.pack(magic, version, kind, flags, length, 0, size, stored, payload_check, 0)
    if zlib.crc32(structure, zlib.crc32(plain)) != check or zero or flags & ~COMPRESSED:
        raise DamagedFileError(path, "its head does not have its checksum", place=place)
    if kind not in BLOBS:
        raise DamagedFileError(path, f"a blob of type {kind}", place=place)
    return Blob(
        source, BlobType(kind), start, start + size, _structure(structure, path, place), length,
        bool(flags & COMPRESSED), start + FRAME.size + length, stored, payload_check,
    )  # fmt: skip


def _structure(text: bytes, path: Path | str, place: str) -> dict[str, object]:
    try:
        structure = json.loads(text)
    except (ValueError, RecursionError):
        structure = None
    if not isinstance(structure, dict):
        raise DamagedFileError(path, "its structure is no JSON object", place=place)
    return structure


def framed(kind: BlobType, structure: dict[str, object], payload: bytes, flags: int) -> list[bytes]:
    """Return the bytes of a blob, in parts; raises PvaError for a structure that is too large."""
    text = json.dumps(structure, separators=(",", ":")).encode()
    text += b" " * (padded(len(text)) - len(text))
    if len(text) >= 1 << 32:
        raise PvaError(
            "popef", f"a structure of {len(text):,} bytes", "less than 4 GB are possible"
        )
    content_bytes = FRAME.size + len(text) + len(payload)
    size = padded(content_bytes)
    numbers = [MAGIC, FORMAT_VERSION, kind, flags, len(text), 0, size, len(payload)]
    numbers += [zlib.crc32(payload), 0]
    numbers[5] = zlib.crc32(text, zlib.crc32(FRAME.pack(*numbers)))
    return [FRAME.pack(*numbers), text, payload, bytes(size - content_bytes)]


def padded(size: int) -> int:
    """Return a size with what is added up to the next multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT
