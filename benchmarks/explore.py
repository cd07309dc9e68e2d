"""Explore 64 points of ResNet-50 and a transformer block: one worker, two, and a shell loop.

    python -m benchmarks.explore [POINTS]

Two workers should take at most 1 / 1.8 of the time of one. The loop runs `tilescope simulate` for
every eighth point, one after another, and is told by the point.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.light_models import light_model
from benchmarks.transformer_models import Size, transformer
from simulator.explore.engine import Processes
from simulator.explore.explore import Exploration, Plan
from simulator.explore.levers import Point, Space

POINTS = 64
WANTED = 1.8
EVERY = 8  # points of the shell loop
BLOCK = Size(1, 256, 4, 64, 1_000)
BOTH = {"precision": ("float", "half"), "partials": ("float", "half")}
RESNET = {"memory-proportion": ("0.2", "0.4", "0.6"), **BOTH}
TRANSFORMER = {
    "memory-proportion": tuple(f"{share / 20:g}" for share in range(2, 15)),
    **BOTH,
}  # 12 and 52 points


def spaces(folder: Path) -> list[Space]:
    """Write both models, and return their spaces."""
    models = {"resnet50": light_model("resnet50"), "block": transformer(BLOCK, stored=False)}
    for name, model in models.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    levers = {"resnet50": RESNET, "block": TRANSFORMER}
    return [Space(str(folder / f"{name}.onnx"), (), levers[name]) for name in models]


Chosen = list[tuple[Space, list[Point]]]


def explored(points: Chosen, out: Path, workers: int) -> tuple[float, int]:
    """Return the seconds that the points took, and how many have figures."""
    from pva.many.points import FIGURES, ranked

    plan = Plan(tuple(FIGURES), lambda rows: ranked(rows, "cycles"), {"cycles": -1}, keep=0)
    began, good = time.monotonic(), 0
    for number, (space, chosen) in enumerate(points):
        folder = out / str(number)
        folder.mkdir(parents=True)
        exploration = Exploration(space, folder, Processes(workers), plan)
        exploration.read()
        exploration.points(chosen)
        exploration.close()
        good += sum(not row["error"] for row in exploration.rows.values())
    return time.monotonic() - began, good


def looped(points: list[Point], out: Path) -> float:
    """Return the seconds of a loop over `tilescope simulate`."""
    began = time.monotonic()
    for point in points:
        program, *more = point.arguments
        command = [sys.executable, "-m", "cli.main", "simulate", program]
        run = [*command, "--out", str(out / point.key), *more]
        subprocess.run(run, capture_output=True, check=False)
    return time.monotonic() - began


def main(count: int) -> None:
    """Print a line for each way to run the points."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step = POINTS // count
        points = [(space, list(space.points())[::step]) for space in spaces(folder)]
        total = sum(len(chosen) for _, chosen in points)
        seconds = {}
        for workers in (1, 2):
            seconds[workers], good = explored(points, folder / f"of{workers}", workers)
            each = seconds[workers] / total
            told = f"{total} points, {good} with figures, {seconds[workers]:.1f} s"
            print(f"{workers} worker(s): {told}, {each:.2f} s a point")
        some = [point for _, chosen in points for point in chosen][::EVERY]
        loop = looped(some, folder / "loop") / len(some)
        ratio = seconds[1] / seconds[2]
        print(f"shell loop: {len(some)} points, {loop:.2f} s a point")
        print(f"{'pass' if ratio >= WANTED else 'FAIL'}: two workers {ratio:.2f} times one")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else POINTS)
