"""Read Chrome trace JSON beside its floors and its rivals, each in a process of its own.

The floors are a plain read of the bytes and, of a packed file, unpacking them; the rivals make
Python objects or a table of them. Speeds are megabytes of text a second, by the time of the
processor and by the clock, the better of two; memory is what the process took above its imports.

    python -m benchmarks.chrome_speed FILE.json [READER ...]
"""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PART = 1 << 20
Opened = Callable[[Path], object]


def bytes_of() -> Opened:
    """Read the bytes of a file, and unpack those that are packed."""

    def read(path: Path) -> None:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            while stream.read(PART):
                pass

    return read


def tilescope() -> Opened:
    """Read a trace as `pva.openTrace` does."""
    from benchmarks.trace_speed import _imports

    _imports()
    import pva

    return pva.openTrace


def tilescope_pure() -> Opened:
    """Do the same without what is in C."""
    os.environ["PVA_KERNELS"] = "0"
    return tilescope()


def text_of(path: Path) -> bytes:
    """Return the whole text of a file."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def orjson() -> Opened:
    """Make objects with orjson."""
    import orjson as library

    return lambda path: library.loads(text_of(path))


def msgspec() -> Opened:
    """Make objects of the fields that are looked at with msgspec."""
    import msgspec as library

    from pva.formats.traces.chrome_events import Event

    file = library.defstruct("File", [("traceEvents", list[Event])])
    decoder = library.json.Decoder(file)
    return lambda path: decoder.decode(text_of(path))


def pysimdjson() -> Opened:
    """Parse with pysimdjson and make no objects."""
    import simdjson  # type: ignore[import-not-found,unused-ignore]

    parser = simdjson.Parser()
    return lambda path: parser.parse(text_of(path))["traceEvents"][0]["ph"]


def duckdb() -> Opened:
    """Make a table of the events with DuckDB."""
    import duckdb as library

    columns = "STRUCT(ph VARCHAR, ts DOUBLE, dur DOUBLE, pid BIGINT, tid BIGINT, name VARCHAR)[]"

    def read(path: Path) -> Any:
        source = f"read_json('{path}', columns={{traceEvents: '{columns}'}}, "
        source += "maximum_object_size=2000000000)"
        return library.sql(f"SELECT unnest(traceEvents, recursive := true) FROM {source}").arrow()

    return read


READERS = {
    reader.__name__: reader
    for reader in (bytes_of, tilescope, tilescope_pure, msgspec, orjson, pysimdjson, duckdb)
}


def measure(path: Path, name: str) -> None:
    """Print processor seconds, seconds and bytes of one reader."""
    read = READERS[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time(), time.perf_counter()
    kept = read(path)
    took = time.process_time() - began[0], time.perf_counter() - began[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(*took, peak * 1024, len(str(type(kept))))


def _text_size(path: Path) -> int:
    """Count the bytes of the text; what this process holds would count as a reader's own."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        return sum(map(len, iter(lambda: stream.read(PART), b"")))


def main() -> None:
    """Print the table as Markdown."""
    path, *names = Path(sys.argv[1]).resolve(), *sys.argv[2:]
    if names[:1] == ["--one"]:
        measure(path, names[1])
        return
    size = _text_size(path)
    print(f"| {size / 1e6:,.0f} MB of text | MB/s, processor | MB/s, clock | x the text |")
    print("| --- | ---: | ---: | ---: |")
    for name in names or READERS:
        command = [sys.executable, "-m", "benchmarks.chrome_speed", str(path), "--one", name]
        runs = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True) for _ in "12"]
        if any(run.returncode for run in runs):
            reason = runs[0].stderr.strip().rpartition("\n")[2]
            print(f"| {name} | {reason[:60]} |  |  |", flush=True)
            continue
        figures = [[float(figure) for figure in run.stdout.split()] for run in runs]
        processor, clock, peak = (min(some) for some in list(zip(*figures, strict=True))[:3])
        speeds = size / processor / 1e6, size / clock / 1e6
        print(f"| {name} | {speeds[0]:,.0f} | {speeds[1]:,.0f} | {peak / size:.2f} |", flush=True)


if __name__ == "__main__":
    main()
