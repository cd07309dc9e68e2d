"""Measure popsolver on a model as large as a convolution's plan.

Eight choices from 30 numbers of parts each, of which at most 1,216 tiles can work at the same time,
are priced by two functions of arrays, the first of some forty operations. Goal: half a second.
"""

from __future__ import annotations

import resource
import time
import tracemalloc

import numpy as np
from numpy.typing import NDArray

from simulator.poplibs import popsolver

TILES = 1216
SIZES = (64, 56, 56, 256, 3, 3, 128, 16)
PARTS = (*range(1, 17), 18, 20, 24, 28, 32, 36, 40, 48, 56, 64, 96, 128, 256, 512)
Columns = list[NDArray[np.int64]]


def ceildiv(a: NDArray[np.int64], b: NDArray[np.int64] | int) -> NDArray[np.int64]:
    return -(-a // b)


def cycles(columns: Columns) -> NDArray[np.int64]:
    """Price rows by what a convolution is made of: 40 operations of NumPy."""
    batch, height, width, inputs, kernel_height, kernel_width, outputs, groups = columns
    field = (height + kernel_height - 1) * (width + kernel_width - 1)
    received = 2 * batch * groups * field * inputs
    weights = 2 * groups * inputs * outputs * kernel_height * kernel_width
    passes = ceildiv(inputs, 16) * ceildiv(outputs, 8) * kernel_height * kernel_width
    worker = ceildiv(batch * height, 6) * (width * 4 + 20) + 50
    computed = groups * passes * (worker + 8 * 16)
    partial = 4 * batch * groups * height * width * outputs
    exchange = ceildiv(received, 4) + ceildiv(weights, 4) + ceildiv(partial, 8)
    reduced = ceildiv(partial * (1 + inputs // 32), 32) + np.maximum(height, width) * 2
    return computed + exchange + reduced


def model() -> tuple[popsolver.Model, popsolver.Variable, popsolver.Variable]:
    """Declare the choices, the tiles in use, the size of a part, its cycles and its memory."""
    made = popsolver.Model()
    splits = [made.addVariable(1, 512, f"split{i}", among=PARTS) for i in range(len(SIZES))]
    tiles = splits[0]
    for split, size in zip(splits, SIZES, strict=True):
        made.lessOrEqual(split, max(size, 30))
    for split in splits[1:]:
        tiles = made.product([tiles, split])
    made.lessOrEqual(tiles, TILES)
    parts = [made.ceildiv(size, split) for size, split in zip(SIZES, splits, strict=True)]
    cost = made.call(parts, cycles, "cycles")
    memory = made.call(parts, lambda columns: columns[3] * columns[6] + columns[1])
    return made, cost, memory


def main() -> None:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        made, cost, memory = model()
        solution = made.minimize([cost, memory])
        times.append(time.perf_counter() - begin)
    tracemalloc.start()
    model()[0].minimize([cost, memory])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rows = (
        ("least time of five", f"{min(times):.3f} s", "0.5 s"),
        ("longest time of five", f"{max(times):.3f} s", ""),
        ("peak memory of the search", f"{peak / 1e6:.1f} MB", "100 MB"),
        ("peak memory of the process", f"{process / 1e6:.0f} MB", ""),
        ("cycles of the best plan", f"{solution[cost]:,}", ""),
    )
    for name, measured, goal in rows:
        print(f"{name:<28}{measured:>16}" + (f"   goal {goal}" if goal else ""))


if __name__ == "__main__":
    main()
