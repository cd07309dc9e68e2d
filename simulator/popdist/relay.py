"""Lines of all instances on one screen, each whole, with the prefix that Open MPI gives them."""

from __future__ import annotations

import re
import sys
import threading
from collections import defaultdict, deque
from typing import BinaryIO

LAST_LINES = 10  # of an instance that failed
_TAG = re.compile(rb"\[\d+,(\d+)\]<(stdout|stderr)>:\s?")


class Relay:
    """Shows lines: all, or those of one instance with the errors of the others.

    `failed` is the instance that is known to have ended all.
    """

    def __init__(self, *, tag: bool = False, only: int | None = None) -> None:
        self.failed: int | None = None
        self._tag, self._only = tag, only
        self._last: defaultdict[int | None, deque[bytes]] = defaultdict(
            lambda: deque(maxlen=LAST_LINES)
        )
        self._lock = threading.Lock()
        self._open = True

    def line(self, instance: int | None, stream: str, line: bytes) -> None:
        """Show a line of an instance; without one, of `mpirun`, which names it in a prefix.

        Raises BrokenPipeError once, when the reader of the output has gone.
        """
        if instance is None and (tag := _TAG.match(line)):
            instance, stream, line = int(tag[1]), tag[2].decode(), line[tag.end() :]
        line = line.rstrip(b"\r\n") + b"\n"
        if self._tag and instance is not None:
            line = b"[1,%d]<%b>:%b" % (instance, stream.encode(), line)
        with self._lock:
            self._last[instance].append(line)
            if instance is None or self._only in (None, instance) or stream == "stderr":
                self._write(stream, line)

    def tell_last(self, instance: int | None, words: str) -> None:
        """Write what went wrong, with the last lines of the instance that failed, to stderr."""
        lines = list(self._last.get(instance, ())) if instance is not None else []
        head = f"poprun: {words}; {'its last lines:' if lines else 'it wrote nothing'}\n"
        if instance is None:
            head = f"poprun: {words}\n"
        with self._lock:
            for line in (head.encode(errors="backslashreplace"), *lines):
                self._write("stderr", line)

    def _write(self, stream: str, line: bytes) -> None:
        if not self._open:
            return
        text = sys.stdout if stream == "stdout" else sys.stderr
        binary: BinaryIO = text.buffer
        try:
            binary.write(line)
            binary.flush()
        except BrokenPipeError:
            self._open = False
            raise
