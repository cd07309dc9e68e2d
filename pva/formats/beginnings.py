"""How the files of each format begin."""

from __future__ import annotations

JSON_MARK = b"\xef\xbb\xbf"  # a byte order mark, which editors put before UTF-8
SELF_DESCRIBED = b"\xd9\xd9\xf7"  # CBOR: a tag without meaning (RFC 8949, section 3.4.6)
GZIP = b"\x1f\x8b"
PARQUET, PARQUET_SUFFIX = b"PAR1", ".parquet"
