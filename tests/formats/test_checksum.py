"""Checksums are those of zlib, whether the processor folds them or not."""

from __future__ import annotations

import random
import zlib

import pytest

from pva.formats import checksum
from pva.formats.checksum import crc32
from pva.kernels import compiled

# On both sides of where folding begins, of its steps of 64 and 16 bytes, and of a chunk.
SIZES = [0, 1, *range(1008, 1105), 4095, 4096, (1 << 20) - 1, (1 << 20) + 17]


@pytest.mark.parametrize("size", SIZES)
def test_a_checksum_is_that_of_zlib(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert crc32(data) == zlib.crc32(data)
    assert crc32(bytes(size)) == zlib.crc32(bytes(size))


def test_each_bit_of_some_bytes_counts() -> None:
    data = bytearray(random.Random(0).randbytes(1200))
    whole = crc32(bytes(data))
    for bit in range(0, 8 * len(data), 7):
        data[bit // 8] ^= 1 << bit % 8
        assert crc32(bytes(data)) == zlib.crc32(data) != whole
        data[bit // 8] ^= 1 << bit % 8


def test_without_the_kernel_it_is_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksum, "compiled", None)
    assert crc32(b"tile" * 1000) == zlib.crc32(b"tile" * 1000)


@pytest.mark.skipif(compiled is None, reason="no compiler was here")
def test_short_bytes_are_left_to_zlib_and_what_is_no_bytes_is_refused() -> None:
    assert compiled.crc32(bytes(1023)) is None
    with pytest.raises(TypeError):
        compiled.crc32("text")
