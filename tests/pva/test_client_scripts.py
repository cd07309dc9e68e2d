"""Scripts in the style of public ones run unmodified; their numbers are found here another way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pva
from pva import schema
from pva.data.dataset import Dataset
from pva.formats import registry

SAMPLE = Path(__file__).parents[2] / "sample_reports" / "mlp_digits_tiny"
SCRIPTS = Path(__file__).parent / "client_scripts"
PROFILE, DEBUG = str(SAMPLE / "profile.pop"), str(SAMPLE / "debug.cbor")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return registry.read(SAMPLE)


def printed(script: str, *arguments: str) -> Any:
    """Run a script in a fresh process, and read what it prints."""
    command = [sys.executable, "-W", "error", str(SCRIPTS / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def live_by_step(data: Dataset, tile: int | None = None) -> npt.NDArray[np.int64]:
    """Count the bytes of variables at each liveness step, the always-live left out."""
    pieces, lives = data.table("variable_pieces"), data.table("variable_intervals")
    here = np.ones(len(pieces["tile"]), bool) if tile is None else pieces["tile"] == tile
    sizes = np.bincount(pieces["variable"][here], pieces["bytes"][here], data.length("variables"))
    steps = np.arange(data.length("liveness_steps"))
    alive = (lives["begin"][:, None] <= steps) & (steps < lives["end"][:, None])
    found: npt.NDArray[np.int64] = (alive * sizes[lives["variable"], None]).sum(axis=0)
    return found.astype(np.int64)


def operation_names(data: Dataset) -> list[str]:
    """Name the outermost call of a library around each program, where there is one."""
    columns = (data.column("debug_contexts", c).tolist() for c in ("id", "parent", "name", "layer"))
    contexts = {number: more for number, *more in zip(*columns, strict=True)}
    names = []
    for number in data.column("programs", "debug_context").tolist():
        name = contexts[number][1] if number in contexts else ""
        while number in contexts:
            parent, own, layer = contexts[number]
            name, number = own if layer != "poplar" else name, parent
        names.append(name)
    return names


def test_liveness_by_layer(data: Dataset) -> None:
    names, at = operation_names(data), data.column("liveness_steps", "program").tolist()
    live, peaks = live_by_step(data), {}
    for name in {name for name in names if name.startswith("Layer")}:
        steps = [step for step, program in enumerate(at) if names[program] == name]
        layer = name.removeprefix("Layer").partition("/")[0]
        peak = int(live[min(steps) : max(steps) + 1].max())
        peaks[layer] = max(peaks.get(layer, 0), peak)
    assert printed("liveness_by_layer.py", PROFILE, DEBUG) == peaks
    assert len(peaks) == 5


def test_cycles_by_type_of_program(data: Dataset) -> None:
    cycles, step = (data.column("steps_by_ipu", name) for name in ("cycles", "step"))
    types = data.texts("steps", "type")[step]
    kinds = {"OnTileExecute": "compute", "DoExchange": "exchange", "StreamCopy": "host"}
    kind = np.array([kinds.get(name, "other") for name in types])
    totals = {name: int(cycles[kind == name].sum()) for name in ("compute", "exchange", "host")}
    spans = data.column("steps_by_ipu", "from_max") != data.column("steps_by_ipu", "to_max")
    balance = data.column("steps_by_ipu", "tile_balance")[(kind != "other") & spans].mean()
    assert printed("cycles_by_type.py", PROFILE) == totals | {
        "other": int(cycles.sum()) - sum(totals.values()),
        "balance": f"{balance:.4f}",
    }


def test_memory_by_category(data: Dataset) -> None:
    found = printed("memory_by_category.py", PROFILE)
    sizes = data.array("memory_by_category").sum(axis=(1, 2, 3))
    needed = data.column("memory_by_tile", "total_including_gaps")
    vertices = data.array("memory_by_vertex_type_code").sum()
    assert found.pop("largest tile") == needed.max()
    assert found.pop("share") == f"{100 * needed.sum() / data.value('target', 'total_memory'):.2f}%"
    assert found.pop("vertices") == vertices == found["vertexCode"]
    assert found == {name: sizes[schema.CATEGORIES.index(name)] for name in found}
    assert found["variable"] > 0


def test_variables_at_steps_and_code_of_operations(data: Dataset) -> None:
    found = printed("variables_at_steps.py", PROFILE, DEBUG)
    pieces, tiles = data.table("variable_pieces"), data.value("target", "num_tiles")
    always = data.column("variables", "always_live")[pieces["variable"]]
    kept = np.bincount(pieces["tile"][always], pieces["bytes"][always], tiles)
    assert found["peaks"] == [live_by_step(data, t).max() + kept[t] for t in range(tiles)]

    mine = [row for row, name in enumerate(operation_names(data)) if name]
    types = data.texts("programs", "type")
    exchanges = [data.column("programs", "exchange")[r] for r in mine if types[r] == "DoExchange"]
    assert found["exchange"] == data.array("exchange_code_bytes")[exchanges].sum(axis=0).tolist()
    stretches = zip(
        *(column.tolist() for column in data.table("control_code").values()), strict=True
    )
    control = np.zeros(tiles, dtype=np.int64)
    for program, tile, end, size in stretches:
        control[tile:end] += size * (program in mine)
    assert found["control"] == control.tolist()
    assert min(found["control"]) > 0
    vertices = int(np.sum(list(found["vertices"].values())))
    sets = [data.column("programs", "compute_set")[r] for r in mine if types[r] == "OnTileExecute"]
    counts = data.table("compute_set_vertices")
    assert vertices == sum(counts["count"][counts["compute_set"] == row].sum() for row in sets)


def test_walk_of_a_trace() -> None:
    trace = pva.openTrace(SAMPLE)
    found: dict[str, list[int]] = {}
    for thread in trace.threads:
        columns = thread.columns
        for label, duration in zip(
            columns.label.tolist(), columns.duration_ns.tolist(), strict=True
        ):
            entry = found.setdefault(trace.labels[label], [0, 0])
            entry[0] += 1
            entry[1] += duration // 1000
    assert printed("trace_walk.py", str(SAMPLE / "host.pvti")) == found
    assert sum(count for count, _ in found.values()) > 10
