"""Walk files in processes of their own: what was wrong, how long it took, how much memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the walk of a file found. `faults` are raised exceptions that are no PvaError."""

    faults: list[str]
    seconds: float
    peak: int  # bytes resident
    opened: bool = False
    messages: list[str] = field(default_factory=list)  # the first of PvaErrors


class Isolated:
    """A process that forks for each file; see `tests.fuzz.zygote`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.zygote"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            # Arrow's own allocator gives back what is free after a while: then memory is chance.
            env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"},
        )  # fmt: skip
        self.cases = 0

    def walk(self, path: Path) -> Verdict:
        """Walk a file or a directory; what is beside it must be as it was."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = _contents(path.parent)
        print(json.dumps(str(path)), file=self._process.stdin, flush=True)
        verdict = Verdict(**json.loads(self._process.stdout.readline()))
        self.cases += 1
        if _contents(path.parent) != before:
            verdict.faults.append(f"something was written beside {path}")
        return verdict

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _contents(directory: Path) -> dict[str, int]:
    return {str(file): file.stat().st_mtime_ns for file in directory.rglob("*")}
