"""What is brought as a host trace and is none is told in a line that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pva.errors import UnknownFormatError
from pva.trace import openTrace

EVENTS = '[{"ph": "X", "ts": 1, "dur": 2}]'
UTF_16 = "text in UTF-16; write it as UTF-8"
PACKED = "packed in another way; unpack it or use gzip"
PROTOCOL = "protocol buffers, as those of Perfetto; export it as Chrome trace JSON"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (EVENTS.encode("utf-16"), UTF_16),  # with a byte order mark
        (EVENTS.encode("utf-16-be"), UTF_16),
        (EVENTS.encode("utf-16-le"), UTF_16),
        (b"PK\x03\x04\x14\x00trace.json", PACKED),
        (b"\x28\xb5\x2f\xfd\x04\x00", PACKED),
        # How Chromium's --trace-startup-format=proto begins, and one whose first length is a "[".
        (b"\nc2Z\x10\x03\n\n\x08\x06\x10\x86\x9f\xa1\xad\xbd\x02", PROTOCOL),
        (b"\n[2Z\x10\x03\n\n\x08\x06\x10\x86\x9f\xa1\xad\xbd\x02", PROTOCOL),
        (
            b"null",
            "begins with b'null'; a .pvti file, a trace of Triton, or Chrome trace JSON, packed by"
            " gzip or not",
        ),
    ],
)
def test_what_is_no_trace_says_what_it_is(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "trace").write_bytes(content)
    with pytest.raises(UnknownFormatError) as fault:
        openTrace(tmp_path / "trace")
    assert str(fault.value) == f"{tmp_path / 'trace'}: {told}"


@pytest.mark.parametrize("head", ["\n", "\n\n ", "\ufeff\n"])
def test_a_trace_behind_empty_lines_opens(tmp_path: Path, head: str) -> None:
    (tmp_path / "trace.json").write_text(head + EVENTS, encoding="utf-8")
    assert openTrace(tmp_path / "trace.json").duration_ns == 2000
