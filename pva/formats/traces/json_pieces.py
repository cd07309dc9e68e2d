"""Read a long JSON array some whole elements at a time, from a file that may be packed or cut off.

The array stands alone, or under a key of the object that is the file. Where an element ends is told
by the quotes and brackets alone, which NumPy finds many at a time; what is in it is for the caller.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pva import kernels
from pva.array_types import Values
from pva.errors import DamagedFileError, UnknownFormatError
from pva.formats.beginnings import GZIP, JSON_MARK
from pva.progress import reading, tell

Integers = npt.NDArray[np.int32]

READ = 1 << 20  # bytes at a time
ELEMENT_LIMIT = 4 << 20  # bytes
HEAD_LIMIT = 16 << 20  # of what stands before the array, and behind it
VALUE_NEAR = 1024  # at most so far behind its key
KEYS_TRIED = 1000  # places where the key seems to stand
# A packed file holds at most so much text: as a share of its size, and at least.
RATIO, PACKED_LEAST = 40, 64 << 20
_BLANK = b" \t\r\n"

_QUOTE, _ESCAPE, _OPEN, _CLOSE = 1, 2, 3, 4
_KIND = np.zeros(256, np.uint8)
for _kind, _letters in ((_QUOTE, b'"'), (_ESCAPE, b"\\"), (_OPEN, b"{["), (_CLOSE, b"}]")):
    _KIND[list(_letters)] = _kind


class Piece(NamedTuple):
    """Some whole elements with what separates them, and where each ends."""

    text: bytes
    ends: Integers

    def as_array(self) -> bytes:
        """Return the text of an array of them."""
        return b"[" + self.text.lstrip(_BLANK + b",") + b"]"

    def elements(self) -> Iterator[bytes]:
        """Return the text of each."""
        first = 0
        for end in self.ends.tolist():
            yield self.text[first:end].strip(_BLANK + b",")
            first = end


class Scan(NamedTuple):
    """Where elements end, one behind the last of them, and where the array does (-1: not here)."""

    ends: Integers
    closed: int


class Text:
    """The text of a file, unpacked while it is read."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        self._path = path
        self._stream = stream
        head = stream.read(len(GZIP))
        stream.seek(0)
        self._packed = head == GZIP
        self._unpack: Any = None
        self._size = os.fstat(stream.fileno()).st_size
        self._limit = max(PACKED_LEAST, RATIO * self._size)
        self._given = 0
        self.cut = False  # the packed text ends too early, or is damaged

    def read(self, size: int) -> bytes:
        """Return more text, up to about `size` bytes; nothing at its end."""
        tell(reading(self._path), self._stream.tell(), self._size)
        if not self._packed:
            return self._stream.read(size)
        piece = b""
        while not piece and not self.cut:
            piece, ended = self._unpacked(size)
            if ended:
                break
        self._given += len(piece)
        if self._given > self._limit:
            remedy = "unpack it first: a text is read in parts"
            raise DamagedFileError(
                self._path, f"unpacks to more than {self._limit >> 20} MB", remedy
            )
        return piece

    def _unpacked(self, size: int) -> tuple[bytes, bool]:
        """Return some text, and whether the file ends."""
        pending = self._unpack.unconsumed_tail or self._unpack.unused_data if self._unpack else b""
        packed = pending or self._stream.read(size >> 2)
        if self._unpack is None or (self._unpack.eof and packed):
            self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        if not packed:
            remainder = b"" if self._unpack.eof else self._unpack.flush()
            self.cut = not self._unpack.eof
            return remainder, True
        try:
            return self._unpack.decompress(packed, size), False
        except zlib.error:
            self.cut = True
            return b"", True


class Array:
    """The array of a file: iterate over its pieces, then see what stood around it.

    Raises UnknownFormatError for a file without one.
    """

    def __init__(self, path: Path, stream: BinaryIO, key: str) -> None:
        self._path = path
        self._text = Text(path, stream)
        self._key = key
        self._held = self._begin()
        self.closed = False
        self.cut_off = 0  # bytes of an element without its end
        self.endless = False  # an element longer than any should be: nothing was read behind it
        self.after: dict[str, Any] = {}  # what stands behind the array, by key
        self.more_after = False  # something that was not read stands there

    def _begin(self) -> bytes:
        """Read up to the array; give what was read of it."""
        self.before: dict[str, Any] = {}
        text = self._text.read(READ).removeprefix(JSON_MARK).lstrip(_BLANK)
        self.in_object = text.startswith(b"{")
        if text.startswith(b"["):
            return text[1:]
        if not self.in_object:
            raise self._unknown(f"begins with {text[:8]!r}" if text else "holds no text")
        sign = b'"' + self._key.encode() + b'"'
        place, tried, added = -1, 0, text
        while tried < KEYS_TRIED and len(text) < HEAD_LIMIT:
            place = text.find(sign, place + 1)
            near_end = place < 0 or len(text) - place < len(sign) + VALUE_NEAR
            if near_end and added:
                added = self._text.read(READ)
                text += added
                place = max(len(text) - len(added) - len(sign) - VALUE_NEAR, 0) - 1
                continue
            if place < 0:
                break
            array_text = self._after_key(text, place, sign)
            if array_text is not None:
                return array_text
            tried += 1
        raise self._unknown(f"no array {self._key!r}")

    def _after_key(self, text: bytes, place: int, sign: bytes) -> bytes | None:
        """Return the text of the array if its key is here, at the top level."""
        value = text[place + len(sign) :].lstrip(_BLANK)
        if not value.startswith(b":") or not value[1:].lstrip(_BLANK).startswith(b"["):
            return None
        # Whole is what stands before only when the key belongs to the outermost object.
        before = _object(text[:place] + sign + b":null}")
        if before is None:
            return None
        self.before = before
        return value[1:].lstrip(_BLANK)[1:]

    def _unknown(self, problem: str) -> UnknownFormatError:
        remedy = f"an array, or an object with an array {self._key}"
        return UnknownFormatError(self._path, problem, remedy)

    def __iter__(self) -> Iterator[Piece]:
        text, size, has_more = self._held, READ, True
        self._held = b""
        while has_more:
            scanned = scan(text)
            if len(scanned.ends):
                stop = int(scanned.ends[-1])
                yield Piece(text[:stop], scanned.ends)
            if scanned.closed >= 0:
                self.closed = True
                self._finish(text[scanned.closed + 1 :])
                return
            if len(scanned.ends):
                text, size = text[stop:], READ
            elif len(text) > ELEMENT_LIMIT:
                self.endless = True
                return
            # An element longer than what was read is looked at again: twice as much each time.
            added = self._text.read(size)
            size *= 2
            has_more, text = bool(added), text + added
        self.cut_off = len(text.strip(_BLANK + b","))

    def _finish(self, remainder: bytes) -> None:
        """Read what stands behind the array."""
        while len(remainder) <= HEAD_LIMIT and (added := self._text.read(READ)):
            remainder += added
        if not self.in_object:
            self.more_after = bool(remainder.strip(_BLANK))
            return
        fields = _object(b'{"":null' + remainder) if len(remainder) <= HEAD_LIMIT else None
        self.more_after = fields is None
        self.after = fields or {}

    @property
    def damaged(self) -> bool:
        """Whether the packed text ends too early."""
        return self._text.cut


def _object(text: bytes) -> dict[str, Any] | None:
    """Decode an object whose values stay as they are; None when it is none."""
    try:
        return msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def scan(text: bytes) -> Scan:
    """Scan an array for the ends of its elements that are objects or arrays, and for its end."""
    if kernels.compiled:
        ends, closed = kernels.compiled.scan(text)
        return Scan(np.frombuffer(ends, np.int32), closed)
    kinds = _KIND[np.frombuffer(text, np.uint8)]
    places = np.flatnonzero(kinds).astype(np.int32)
    kinds = kinds[places]
    if (kinds == _ESCAPE).any():
        places, kinds = _without_escapes(places, kinds)
    outside = np.cumsum(kinds == _QUOTE, dtype=np.int32) & 1 == 0
    step = ((kinds == _OPEN).astype(np.int8) - (kinds == _CLOSE)) * outside
    depth = np.cumsum(step, dtype=np.int32)
    beyond = np.flatnonzero(depth < 0)
    closed = -1
    if len(beyond):
        closed = int(places[beyond[0]])
        places, depth, step = (part[: beyond[0]] for part in (places, depth, step))
    return Scan(places[(depth == 0) & (step < 0)] + 1, closed)


def _without_escapes(places: Integers, kinds: Values) -> tuple[Integers, Any]:
    """Leave out backslashes and the quotes behind an odd number of them."""
    escapes = places[kinds == _ESCAPE]
    begins = np.flatnonzero(np.diff(escapes, prepend=-2) != 1)
    lengths = np.diff(begins, append=len(escapes))
    escaped = (escapes[begins] + lengths)[lengths % 2 == 1]
    at = np.searchsorted(escaped, places)
    at = np.minimum(at, max(len(escaped) - 1, 0))
    bad = escaped[at] == places if len(escaped) else np.zeros(len(places), np.bool_)
    unescaped = (kinds != _ESCAPE) & ~(bad & (kinds == _QUOTE))
    return places[unescaped], kinds[unescaped]
