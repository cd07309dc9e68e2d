"""Measure how soon a kept ResNet-50 runs: seconds from the start of `tilescope simulate --cache`.

    python -m benchmarks.kept_start [RUNS]

The model is onnx's, with random weights in its file (102 MB). The first process compiles it; those
after take it from the folder. A run begins with the host's trace of `Engine::run`, whose clock the
report keeps as well.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx

from benchmarks.light_models import light_model
from pva import openReport


def seconds(model: Path, out: Path) -> tuple[float, float, float]:
    """Simulate a model; return when weights are loaded, when it runs and when the process ends."""
    options = ("--no-values", "--cache", str(model.parent / "kept"), "--out", str(out))
    begin = time.time()
    subprocess.run(["tilescope", "simulate", str(model), *options], check=True, capture_output=True)
    end, data = time.time(), openReport(out).dataset
    moments = [float(data.table(n)["start_microseconds"][0]) / 1e6 for n in ("other_runs", "runs")]
    load, run = (moment - begin for moment in moments)
    return load, run, end - begin


def main(runs: int) -> None:
    """Print a line for the process that compiles, then one for each that does not."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "resnet50.onnx")
        onnx.save(light_model("resnet50"), model)
        for number in range(runs + 1):
            load, run, end = seconds(model, Path(folder, f"report{number}"))
            print(f"first Engine::run {load:.2f} s, the model's {run:.2f} s, end {end:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
