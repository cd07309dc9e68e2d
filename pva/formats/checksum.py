"""Checksums of what chunks hold."""

from __future__ import annotations

import zlib

from pva.kernels import compiled


def crc32(data: bytes) -> int:
    """Compute the CRC-32 of some bytes, as zlib does, in vectors where the processor has them."""
    found: int | None = compiled.crc32(data) if compiled else None
    return zlib.crc32(data) if found is None else found
