"""What every command prints of hand-made input: the calls that it declares, in `tests/golden/cli`.

    python -m tests.cli.golden_calls        writes the files again

The reports are those of `tests.builders`, the trace is made here row by row, so that nothing of it
depends on the simulator, the machine or the day.
"""

from __future__ import annotations

import os
import re
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from cli.main import DECLARED, tilescope
from pva.formats import registry
from tests.builders import small_report, write_report, write_trace_rows

GOLDEN = Path(__file__).parents[1] / "golden" / "cli"
BUDGETS = 'largest_tile = "1 kB"\ntotal_cycles = 1024\ntile_balance = {min = "40 %"}\n'

CONFIG = """backend: "poplar"
max_batch_size: 8
input { name: "image" data_type: TYPE_FP32 dims: 64 }
output { name: "scores" data_type: TYPE_FP32 dims: 10 }
dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 500 }
parameters { key: "synchronous_execution" value { string_value: "1" } }
"""

# Sizes of files are those of the formats, which have tests of their own.
_SIZE = re.compile(r"(\.(?:pop|json|cbor|html):?) [\d.]+ [kM]?B")
MASK = r"\1 SIZE"
CALLS = {declared.name: declared.calls for declared in DECLARED if declared.calls}


def answers(command: str) -> str:
    """Return all calls of a command with what they print, as a terminal session."""
    return "\n".join(_answer(call) for call in CALLS[command])


def _answer(call: str) -> str:
    import shlex

    result = CliRunner().invoke(tilescope, shlex.split(call))
    code = f"[exit code {result.exit_code}]\n" if result.exit_code else ""
    return f"$ tilescope {call}\n{_SIZE.sub(MASK, result.stdout + result.stderr)}{code}"


@contextmanager
def inputs(folder: Path) -> Iterator[None]:
    """Make the input of the calls in a folder, and work there."""
    write_report(folder / "run")
    variables = dict(small_report().table("variables"))
    variables["name"] = ["letter" if name == "message" else name for name in variables["name"]]
    write_report(folder / "changed", small_report(variables=variables))
    registry.write(small_report().select("graph"), folder / "graph.json")
    total = small_report().column("memory_by_tile", "total").copy()
    total[3] += 1
    tiles = dict(small_report().table("memory_by_tile")) | {"total": total}
    registry.write(small_report(memory_by_tile=tiles), folder / "broken.pop")
    (folder / "budgets.toml").write_text(BUDGETS)
    (folder / "idle.py").write_text('print("a program without an Engine")\n')
    write_trace(folder / "host.pvti")
    (folder / "models" / "digits").mkdir(parents=True)
    (folder / "models" / "digits" / "config.pbtxt").write_text(CONFIG)
    (folder / "intervals.txt").write_text("100\n" * 12 + "900\n" * 12)
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def write_trace(path: Path) -> None:
    """Write a trace: `step` for 100 us with two times `load <x>` inside, and a series."""
    records = b"".join(
        struct.pack("<QII", begin, took, label)
        for begin, took, label in ((1_010_000, 20_000, 2), (1_050_000, 30_000, 2),
                                   (1_000_000, 100_000, 1))
    )  # fmt: skip
    chunk = (1, 1, 3, 1_000_000, 1_100_000, zlib.crc32(records), records)
    rows: dict[str, list[tuple[object, ...]]] = {
        "processes": [(1, 4711, "model.py", 1_000_000, 1_600_000_000_000_000_000, 1_120_000, 1, 0)],
        "threads": [(1, 1, 8, "MainThread")],
        "channels": [(1, "model")],
        "labels": [(1, 1, "step"), (2, 1, "load <x>")],
        "event_chunks": [chunk],
        "series": [(1, "Loss", "", "train")],
        "series_points": [(1, 1_060_000, 0.5), (1, 1_090_000, 0.25)],
    }
    write_trace_rows(path, rows)


def main() -> None:
    """Write the golden files again."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for command in CALLS:
        with tempfile.TemporaryDirectory() as folder, inputs(Path(folder)):
            (GOLDEN / f"{command}.txt").write_text(answers(command), encoding="utf-8")


if __name__ == "__main__":
    main()
