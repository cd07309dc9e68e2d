"""Measure the demo: compile time, a training step, the whole command, its memory and report.

Goals on two cores: compile under 5 s, a step under 50 ms, the command under 60 s and 1 GB, the
report under 20 MB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from simulator import poplar
from simulator.examples import mlp_digits


def compile_seconds() -> float:
    """Build the demo's network and time its compilation, for the demo's target."""
    device = poplar.IPUModel("mk2", compileIPUCode=True).createDevice()
    graph = poplar.Graph(device.getTarget())
    programs = mlp_digits.build(graph, mlp_digits.load_digits())
    begin = time.perf_counter()
    poplar.Engine(graph, programs)
    return time.perf_counter() - begin


def step_seconds(epochs: int = 10) -> float:
    """Train without and with more epochs; give what a further step costs."""

    def training(count: int) -> float:
        begin = time.perf_counter()
        mlp_digits.train(epochs=count)
        return time.perf_counter() - begin

    training(1)
    steps = mlp_digits.load_digits().batches * (epochs - 1)
    return (training(epochs) - training(1)) / steps


def demo(out: Path) -> tuple[float, int, int]:
    """Run the command; give its seconds, its peak memory and the report's size in bytes."""
    command = [sys.executable, "-m", "cli.main", "demo", "--no-serve", "--out", str(out)]
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return seconds, peak, sum(file.stat().st_size for file in out.iterdir())


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, peak, size = demo(Path(folder) / "report")
    rows = (
        ("compile the network", f"{compile_seconds():.2f} s", "5 s"),
        ("a training step", f"{1e3 * step_seconds():.2f} ms", "50 ms"),
        ("tilescope demo --no-serve", f"{seconds:.1f} s", "60 s"),
        ("  its peak memory", f"{peak / 1e6:.0f} MB", "1000 MB"),
        ("  its report", f"{size / 1e6:.2f} MB", "20 MB"),
    )
    for name, measured, goal in rows:
        print(f"{name:<28}{measured:>12}   goal {goal}")


if __name__ == "__main__":
    main()
