"""`python -m tests.fuzz.large [MB] [NAME ...]`: read hostile files of every kind, 100 MB each.

Each is made, read whole in a process of its own (every table and array; of a trace every frame) and
deleted. Prints what came of it, the memory above that of the process with all modules loaded
(VmHWM), and the time of the processor. Of a table that is refused as a whole the columns are read
one by one, when the time has been taken: their memory counts. NAME is a part of the names in
`tests.fuzz.bombs.KINDS`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.bombs import KINDS

ROOT = Path(__file__).parents[2]
LEAST_BYTES, TIMES_THE_FILE, SECONDS = 256 << 20, 4, 10
READ = """
import json, re, resource, sys, time
import cbor2, msgspec, orjson, pandas, pyarrow.parquet, pva, pva.frames, pva.trace
from pva import schema
from pva.errors import PvaError
from pva.formats import registry
from pva.trace_frames import NAMES
pandas.DataFrame({"a": pandas.Categorical.from_codes([0], categories=["x"]), "b": ["x"]})
told = []
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
def memory(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
def attempt(action, *arguments):
    try:
        return action(*arguments)
    except PvaError as error:
        told.append(str(error))
path = sys.argv[1]
is_trace = path.endswith((".pvti", ".trace", ".gz"))
open("/proc/self/clear_refs", "w").write("5")
refused = []
before, began = memory("VmRSS"), time.process_time()
found = attempt(pva.openTrace if is_trace else pva.openReport, path)
if found is not None and is_trace:
    for name in NAMES:
        attempt(getattr(found.frames, name))
elif found is not None:
    tables = found.dataset.tables
    refused = [table for table in tables if attempt(found.dataset.table, table) is None]
    for array in found.dataset.arrays:
        attempt(found.dataset.array, array)
seconds = time.process_time() - began
for table in refused:
    for column in schema.TABLE[table].columns:
        attempt(found.dataset.column, table, column.name)
print(json.dumps([memory("VmHWM") - before, seconds, told[:1]]))
"""


def size_of(path: Path) -> int:
    """Add up the bytes of a file, or of all in a directory."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def measured(path: Path) -> tuple[str, bool]:
    """Read a file: a row of the table, and whether it kept within the bounds."""
    size = size_of(path)
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{size >> 20} | | | {(done.stderr or str(done.returncode))[-200:]} | FAIL", False
    peak, seconds, told = json.loads(done.stdout)
    most = max(LEAST_BYTES, TIMES_THE_FILE * size)
    holds = peak <= most and seconds <= SECONDS
    what = told[0].removeprefix(f"{path}: ")[:70].replace("|", "/") if told else "read"
    figures = f"{size >> 20} | {peak >> 20} of {most >> 20} | {seconds:.1f}"
    return f"{figures} | {what} | {'pass' if holds else 'FAIL'}", holds


def main(megabytes: int, names: list[str]) -> int:
    """Print the table; give how many files cost too much."""
    failed = 0
    print("| kind | MB | memory, MB | processor, s | what came of it | |")
    print("| --- | ---: | ---: | ---: | --- | --- |")
    for name, write in KINDS.items():
        if names and not any(part in name for part in names):
            continue
        directory = Path(tempfile.mkdtemp())
        try:
            write(directory / name, megabytes << 20)
            row, holds = measured(directory / name)
        finally:
            shutil.rmtree(directory)
        failed += not holds
        print(f"| {name} | {row} |", flush=True)
    print(f"{failed} too much")
    return failed


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(bool(main(int(given[0]) if given else 100, given[1:])))
