"""What every command prints of hand-made input: the calls behind `tests/golden/cli`.

    python -m tests.cli.golden_calls        writes the files again

The reports are those of `tests.builders`, the trace is made here row by row, so that nothing of it
depends on the simulator, the machine or the day.
"""

from __future__ import annotations

import os
import re
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from cli.main import tilescope
from pva.formats import registry
from pvti.schema import create_statements, insert_statement
from tests.builders import small_report, write_report

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
CALLS: dict[str, tuple[str, ...]] = {
    "info": (
        "info run", "info graph.json", "info host.pvti", "info run --tables --limit 4",
    ),
    "show": (
        "show fullest_tiles run --count 3", "show memory_overview run",
        "show why_idle run", "show waits run --limit 3", "show critical_path run --json",
        "show cycles_by_layer run --where 'share > 10 %' --sort -cycles",
        "show table.steps run --where type=OnTileExecute --sort cycles --limit 2 --format csv",
        "show runs run --format json", "show fullest_tiles run --limit 1 --json",
        "show labels host.pvti", "show label_statistics host.pvti",
        "show fullest_tiles run --where 'byte > 3'", "show vertex_typs run",
        "show cycles_by_layer graph.json",
    ),
    "run": (
        "run --launcher processes --host localhost --num-instances 2 --num-replicas 4"
        " --out launched --print-topology --tag-output --only-output-from-instance 1"
        " --vipu-partition p echo hello",
        "run --num-instances 2 --num-replicas 3 true",
    ),
    "fleet": (
        "fleet add fleet run changed run --tag nightly --workers 1 --table runs",
        "fleet show trend total_cycles fleet", "fleet show trend total_cycle fleet",
        "fleet sql fleet 'select tag, count(*) as runs from runs join reports using (report)"
        " group by tag'", "fleet map fullest_tile fleet", "fleet sql run 'select 1'",
    ),
    "compare": (
        "compare run changed", "compare run changed --by variables",
        "compare run graph.json", "compare run changed --by layers --format csv",
        "compare run changed --by categories --limit 1 --json",
        "compare run changed --format markdown",
        "compare run changed --format markdown --budget budgets.toml",
    ),
    "check": (
        "check run", "check run --budget budgets.toml", "check broken.pop",
        "check run --budget budgets.toml --json",
    ),
    # What it finds in a repository is in test_bisect_command.py.
    "bisect": ("bisect --good a --bad b", "bisect --good a --bad b --figure cycles -- true",
        "bisect --good a --bad b --figure steps --budget budgets.toml -- true"),
    "sql": (
        "sql run 'select name, bytes from variables where bytes > 40 order by bytes desc'",
        "sql run 'select nam from variables'",
    ),
    "convert": ("convert run -o new.json", "convert run -o new.json", "convert run new.xml",
        "convert run -o - --to xml", "convert run"),
    "export": ("export run -o run.html", "export run -o run.html", "export nowhere -o new.html",
        "export run"),
    "trace": (
        "trace info host.pvti", "trace show host.pvti", "trace convert host.pvti -o - --to chrome",
        "trace convert host.pvti -o host.json", "trace info run",
    ),
    # What these print of a program that runs depends on the simulator, or goes on for ever: real
    # processes show that (test_processes.py, test_simulated.py, tests/wheel).
    "simulate": ("simulate idle.py", "simulate missing.py", "simulate idle.py --target mk3"),
    "explore": (
        "explore idle.py --out space", "explore missing.py --vary ipus=1,2 --out space",
        "explore idle.py --vary target=mk3 --out space",
        "explore idle.py --vary ipus=1,2 --objective speed --out space",
    ),
    "fit": (
        "fit missing.onnx", "fit idle.py --ipus 4..1", "fit idle.py --target mk3",
    ),
    "serve-model": (
        "serve-model replay models --arrivals intervals.txt --batch-time 400us"
        " --compiled-batch 4 --what-if delay=0,1ms --what-if instances=1,2",
        "serve-model replay models --arrivals intervals.txt --batch-time 400us --requests 2 --json",
        "serve-model replay models --arrivals intervals.txt --what-if speed=2",
        "serve-model replay models --arrivals intervals.txt",
        "serve-model live nowhere", "serve-model live models --http 99999",
    ),
    "demo": ("demo --port 99999", "demo now"),
    # What it answers is in tests/agent.
    "mcp": ("mcp nowhere", "mcp run --time-limit 0"),
    "serve": ("serve nowhere", "serve run --port 99999"),
}  # fmt: skip


def answers(command: str) -> str:
    """Give all calls of a command with what they print, as a terminal session."""
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
    connection = sqlite3.connect(path)
    with connection:
        for statement in create_statements():
            connection.execute(statement)
        for table, values in rows.items():
            connection.executemany(insert_statement(table), values)
    connection.close()


def main() -> None:
    """Write the golden files again."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for command in CALLS:
        with tempfile.TemporaryDirectory() as folder, inputs(Path(folder)):
            (GOLDEN / f"{command}.txt").write_text(answers(command), encoding="utf-8")


if __name__ == "__main__":
    main()
