"""One model: written, imported, run without values for its speed, and with values for theirs.

Everything is done by `tilescope simulate`, in processes of their own.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.zoo.model import Model
from benchmarks.zoo.sources import models
from pva import openReport
from pva.analysis.execution.main_runs import main_run

SIMULATE = (sys.executable, "-c", "from cli.main import main; main()", "simulate")
TARGET = ("--target", "mk2")
SEED = 7
IDS = 100  # tokens, bytes and classes are below
MAX_WEIGHTS = 30_000_000  # of models whose values are compared
LEAST = 1e-3  # onnxruntime's Sigmoid has steps of 6e-8: all smaller outputs count as this large
NO = "no"
DOES_NOT_FIT = "memory: does not fit"


@dataclass(slots=True)
class Figures:
    """What is written of a model; texts that are "" and numbers that are NaN are not known.

    seconds of the processor and peak bytes are of `simulate --no-values` with its report, items a
    second of its run, error is the largest difference of an output from the evaluator's, over the
    largest value of that output.
    """

    nodes: int = 0
    weights: int = 0
    imported: str = ""
    runs: str = ""
    values: str = ""
    seconds: float = np.nan
    peak: float = np.nan
    items: float = np.nan
    error: float = np.nan


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, None when it was stopped, its lines, its cost."""

    code: int | None
    lines: list[str]
    seconds: float
    peak: float


def in_a_process(model: Model, limit: float, keep: Path | None) -> Figures:
    """Measure a model in a process of its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=_measure, args=(model.name, limit, keep, queue))
    process.start()
    process.join()
    if queue.empty():
        return Figures(imported=f"{NO}: the process that writes it ended with {process.exitcode}")
    figures: Figures = queue.get()
    return figures


def _measure(
    name: str, limit: float, keep: Path | None, queue: multiprocessing.SimpleQueue[Figures]
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if keep:
            folder = keep / re.sub(r"\W+", "_", name)
            folder.mkdir(parents=True, exist_ok=True)
        model = models()[name]
        try:
            path = model.write(folder)
        except Exception as error:  # whatever an exporter raises
            queue.put(Figures(imported=f"not exported: {_cause(error)}"))
            return
        queue.put(measure(model, path, limit))


def _cause(error: BaseException) -> str:
    """Return the kind and the first line of what an error began with; exporters wrap it."""
    while error.__cause__ is not None:
        error = error.__cause__
    line = "".join(re.sub(r"\x1b\[\d*m", "", str(error)).strip().splitlines()[:1])
    return f"{type(error).__name__}: {line[:100]}"


def measure(model: Model, path: Path, limit: float) -> Figures:
    """Try the file of a model; each command has `limit` seconds."""
    figures = _sizes(path)
    command = (*SIMULATE, str(path), *TARGET, *model.options)
    listed = ended((*command, "--list-unsupported"), limit)
    figures.imported = "yes" if listed.code == 0 else f"{NO}: {_reason(listed, path)}"
    if listed.code != 0:
        return figures
    report = path.parent / "report"
    run = ended((*command, "--no-values", "--out", str(report)), limit)
    figures.runs = "yes" if run.code == 0 else f"{NO}: {_reason(run, path)}"
    figures.seconds, figures.peak = run.seconds, run.peak
    if (report / "profile.pop").exists():
        opened = openReport(report)
        if len(opened.execution.runs):
            figures.items = main_run(opened).items_per_second
    if run.code == 0:
        _compare(model, path, command, figures, limit)
    return figures


def ended(command: tuple[str, ...], limit: float) -> Ended:
    """Run a command to its end, or until its time is over."""
    stopped = threading.Event()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        timer = threading.Timer(limit, lambda: (stopped.set(), process.kill()))
        timer.start()
        assert process.stdout is not None
        lines = [line.strip() for line in process.stdout if line.strip()]
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    code = None if stopped.is_set() else process.returncode
    seconds = used.ru_utime + used.ru_stime
    return Ended(code, lines, seconds, 1024.0 * used.ru_maxrss)


def _reason(result: Ended, path: Path) -> str:
    if result.code is None:
        return "not within the time"
    lines = [line for line in result.lines if line.startswith(DOES_NOT_FIT)] or result.lines[-1:]
    return "".join(lines).replace(str(path), "").removeprefix("tilescope: ").lstrip(": ")


def _sizes(path: Path) -> Figures:
    """Count nodes and weights; some exporters write weights as Constant nodes."""
    graph = onnx.load(path).graph
    tensors = [*graph.initializer, *(one.t for node in graph.node for one in node.attribute)]
    weights = sum(int(np.prod(tensor.dims)) for tensor in tensors if tensor.data_type)
    return Figures(nodes=len(graph.node), weights=weights)


def _compare(
    model: Model, path: Path, command: tuple[str, ...], figures: Figures, limit: float
) -> None:
    """Run a model with random data, and compare what comes out with the evaluator's."""
    if figures.weights > MAX_WEIGHTS:
        figures.values = f"not compared: {figures.weights / 1e6:,.0f} million weights"
        return
    fed = inputs(path, model.options)
    np.savez(path.parent / "fed.npz", **_left_open(fed, model.options))
    out = path.parent / "out.npz"
    files = ("--values", str(path.parent / "fed.npz"), "--save-outputs", str(out))
    run = ended((*command, *files, "--out", str(path.parent / "values")), limit)
    if run.code != 0:
        figures.values = f"{NO}: {_reason(run, path)}"
        return
    try:
        expected = evaluated(path, fed)
    except Exception as error:  # whatever the evaluator raises, of onnx or onnxruntime
        line = str(error).strip().splitlines()[:1]
        figures.values = f"not compared: the evaluator fails: {''.join(line)[:80]}"
        return
    with np.load(out) as computed:
        figures.error = max(_error(computed[name], value) for name, value in expected.items())
    figures.values = "yes"


def _error(computed: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    if computed.shape != expected.shape or not np.isfinite(expected).all():
        return np.inf
    largest = np.abs(expected).max(initial=LEAST)
    return float(np.abs(computed.astype(np.float64) - expected).max(initial=0) / largest)


def inputs(path: Path, options: tuple[str, ...]) -> dict[str, np.ndarray[Any, Any]]:
    """Return random data for each input, of the shape and value that the options name."""
    graph = onnx.load(path).graph
    pairs = list(zip(options[::2], options[1::2], strict=True))
    shapes = {
        name: tuple(map(int, shape.split("x")))
        for kind, text in pairs if kind == "--shape"
        for name, _, shape in [text.partition("=")]
    }  # fmt: skip
    values = dict(text.split("=") for kind, text in pairs if kind == "--input")
    stored = {tensor.name for tensor in graph.initializer}
    random = np.random.default_rng(SEED)
    fed = {}
    for value in graph.input:
        if value.name in stored:
            continue
        kind = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        shape = shapes.get(value.name, tuple(dim.dim_value for dim in kind.shape.dim))
        if value.name in values:
            fed[value.name] = np.array(values[value.name], dtype)
        elif np.issubdtype(dtype, np.integer):
            fed[value.name] = random.integers(0, IDS, shape).astype(dtype)
        else:
            fed[value.name] = random.normal(size=shape).astype(dtype)
    return fed


def _left_open(
    fed: dict[str, np.ndarray[Any, Any]], options: tuple[str, ...]
) -> dict[str, np.ndarray[Any, Any]]:
    """Leave out the inputs whose values are options."""
    given = {text.partition("=")[0] for text in options if "x" not in text.partition("=")[2]}
    return {name: data for name, data in fed.items() if name not in given}


def evaluated(path: Path, fed: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Return the outputs by onnxruntime where it is installed, else by onnx's evaluator."""
    names = [output.name for output in onnx.load(path).graph.output]
    if importlib.util.find_spec("onnxruntime"):
        import onnxruntime

        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return dict(zip(names, session.run(names, fed), strict=True))
    from onnx.reference import ReferenceEvaluator

    return dict(zip(names, ReferenceEvaluator(str(path)).run(names, fed), strict=True))
