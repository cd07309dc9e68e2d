"""`python -m tests.fuzz.zygote`: walk one file after another, each in a process of its own.

Reads the path of a file or directory a line and answers with a line of JSON (see `Verdict` in
`tests.fuzz.isolated`). All modules are loaded once; each file is walked in a fork of this process,
under limits of memory (RLIMIT_AS) and time (an alarm), with warnings turned into errors.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

SECONDS = 10  # of the processor, so that a busy machine does not matter
LEAST_BYTES, TIMES_THE_FILE = 256 << 20, 4
PATIENCE = 60  # seconds on the wall, after which a process that waits is killed


class OutOfTime(BaseException):
    """The walk took too long."""


def main() -> None:
    """Answer the paths on standard input."""
    from tests.fuzz.walk import walk

    _load_modules()
    gc.freeze()
    for line in sys.stdin:
        path = Path(json.loads(line))
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _child(path, walk, writer)
        os.close(writer)
        answer = _answer(reader, child)
        print(json.dumps(answer), flush=True)
    os._exit(0)  # without what duckdb says at the end of a process


def _load_modules() -> None:
    """Load what readers and views import when they are first asked."""
    from importlib import import_module

    for name in ("cbor2", "msgspec", "orjson", "pandas", "pva.query"):
        import_module(name)
    import numpy as np
    import pandas as pd

    pd.DataFrame({"a": pd.Categorical.from_codes([0], categories=["x"]), "b": ["x"]}).groupby("b")
    np.random.default_rng(0)


def _child(path: Path, walk: Any, writer: int) -> None:
    """Walk and answer; never returns."""
    answer: dict[str, Any] = {"faults": [], "messages": []}
    began = time.process_time()
    try:
        warnings.simplefilter("error")
        _limit(path)
        found = walk(path, _lift if _size(path) % 4 == 0 else None)
        answer |= {"faults": found.faults, "messages": found.messages[:3], "opened": found.opened}
    except OutOfTime as late:
        answer["faults"] = [f"over {SECONDS} s: {late}"]
    except BaseException as error:
        answer["faults"] = [f"{type(error).__name__}: {error}"]
    signal.setitimer(signal.ITIMER_PROF, 0)
    answer["seconds"] = time.process_time() - began
    answer["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    text = json.dumps(answer).encode()
    while text:
        text = text[os.write(writer, text) :]
    os._exit(0)


def _limit(path: Path) -> None:
    def late(_: int, frame: Any) -> None:
        raise OutOfTime(f"{frame.f_code.co_filename}:{frame.f_lineno}")

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + max(LEAST_BYTES, TIMES_THE_FILE * _size(path))
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]))


def _lift() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _answer(reader: int, child: int) -> dict[str, Any]:
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(PATIENCE)
    with os.fdopen(reader) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    if not text:
        return {"faults": [f"ended with status {status}"], "seconds": 0.0, "peak": 0}
    answer: dict[str, Any] = json.loads(text)
    return answer


if __name__ == "__main__":
    main()
