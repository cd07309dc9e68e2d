"""The demo reports, made in a process of its own when somebody asks for it on the Start page."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from dashboard.store import Store

COMMAND = ("-m", "cli.main", "demo", "--no-serve", "--out")
NAME = "demo-report"


class Demo:
    """The one demo report of a server: not yet asked for, being made, there, or failed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._path = Path()
        self.key = ""
        self.against = ""  # the report beside it: the same program, changed

    def start(self) -> None:
        """Begin to make it, unless that has begun."""
        with self._lock:
            if self._process is not None and self._process.poll() in (None, 0):
                return
            folder = tempfile.mkdtemp(prefix="tilescope-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            self._path = Path(folder) / NAME
            command = [sys.executable, *COMMAND, str(self._path)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, cwd=folder,
            )  # fmt: skip

    def wait(self) -> None:
        """Wait until it is made."""
        if self._process is not None:
            self._process.wait()

    def state(self) -> str:
        """Return `idle`, `running`, `done` or `failed`.

        Once done, the store has it as `key`, and the one beside it as `against`.
        """
        with self._lock:
            if self._process is None:
                return "idle"
            if (code := self._process.poll()) is None:
                return "running"
            if code:
                return "failed"
            if not self.key:
                self.key = self._store.give(self._path)
                siblings = (path for path in self._path.parent.iterdir() if path != self._path)
                self.against = "".join(map(self._store.give, sorted(siblings)[:1]))
            return "done"
