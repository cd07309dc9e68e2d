"""The server without a protocol: which models there are, and what becomes of a request.

Models are loaded as the control mode says: `none` loads all at the start and keeps them, `poll`
looks for changes of files, `explicit` loads what is asked for. Source: Triton,
docs/user_guide/model_management.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from pva.errors import PvaError
from pva.queueing.waiting import Request
from simulator.graph.errors import PoplarError
from simulator.graph.types import Array
from simulator.model_runtime.spans import span
from simulator.serving import warmup
from simulator.serving.model_config import Settings, Tensor
from simulator.serving.repository import Model, model_names, read_model
from simulator.serving.served import Pending, RequestError, Result, Served
from simulator.serving.triton_messages.tensors import DATATYPES, TensorError

NAME = "tilescope"
EXTENSIONS = ("classification", "model_repository", "schedule_policy", "model_configuration",
              "binary_tensor_data", "parameters", "statistics", "trace", "logging")  # fmt: skip
MODES = ("none", "poll", "explicit")
MAX_ELEMENTS = 1 << 28  # of a tensor of a request
LONGEST_WAIT = 3600.0  # seconds
Watch = Callable[[Callable[[], object]], object]
TIMES = ("queue_ns", "upload_ns", "execute_ns", "download_ns")  # of a request, in its span


@dataclass(frozen=True, slots=True)
class InferRequest:
    """What a client asks: arrays by the names of inputs, and which outputs it wants (none: all)."""

    model: str
    version: str
    id: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Array]
    outputs: Sequence[str] = ()
    datatypes: Mapping[str, str] = field(default_factory=dict)  # that the client named


@dataclass(frozen=True, slots=True)
class InferResponse:
    """The answer: tensors in the order asked for, and parameters that tell of device and host."""

    model: str
    version: str
    id: str
    outputs: Sequence[tuple[Tensor, Array]]
    parameters: Mapping[str, Any]
    result: Result
    settings: Settings


@dataclass(slots=True)
class Loaded:
    """A model of the repository: the versions that are served, or why there are none."""

    served: dict[str, Served] = field(default_factory=dict)
    error: Exception | None = None
    reason: str = ""
    stamp: tuple[Any, ...] = ()


class Server:
    """The models of a repository.

    With a directory `report` the device of the one model that is loaded first writes there.
    """

    def __init__(self, repository: Path, mode: str = "none", report: Path | None = None) -> None:
        self.repository, self.mode, self._report = repository, mode, report
        self._models: dict[str, Loaded] = {}
        self._changing, self._ended = Lock(), Event()
        self.ready = False

    def start(self, models: Iterable[str] = (), poll_seconds: float = 15.0) -> None:
        """Load the models that the mode asks for; raises PvaError for the first that is wrong."""
        names = model_names(self.repository)
        selection = list(models) if self.mode == "explicit" else names
        if self.mode == "none" and not names:
            raise PvaError(self.repository, "no model", "a folder a model, with its config.pbtxt")
        if self._report is not None and len(selection) != 1:
            remedy = "a report is of one: --model-control-mode explicit --load-model NAME"
            raise PvaError(self.repository, f"{len(selection)} models", remedy)
        for name in selection:
            self._load(name)
            if (error := self._models[name].error) and self.mode != "poll":
                raise error
        self.ready = True
        if self.mode == "poll":
            Thread(target=self._poll, args=(poll_seconds,), name="poll", daemon=True).start()

    def close(self) -> None:
        """Answer what waits, then let all models go."""
        self.ready = False
        self._ended.set()
        for name in list(self._models):
            self._drop(name, "the server ends")

    # Models
    def load(self, name: str) -> None:
        """Load a model, or load it again; raises RequestError."""
        self._check_explicit("load")
        self._load(name)
        if reason := self._models[name].reason:
            raise RequestError(f"failed to load {name!r}: {reason}")

    def unload(self, name: str) -> None:
        """Let a model go once its requests are answered; raises RequestError."""
        self._check_explicit("unload")
        if name not in self._models:
            raise RequestError(f"failed to unload {name!r}: no such model is loaded")
        self._drop(name, "unloaded")

    def served(self, name: str, version: str = "") -> Served:
        """Return a version of a model, the highest if none is named; raises RequestError."""
        loaded = self._models.get(name)
        versions = dict(loaded.served) if loaded else {}
        if not versions:
            raise RequestError(f"unknown model {name!r}, or it is not ready", status=404)
        if not version:
            return versions[max(versions, key=int)]
        if version not in versions:
            available = ", ".join(versions)
            raise RequestError(f"model {name!r} has no version {version!r}; it serves {available}",
                               status=404)  # fmt: skip
        return versions[version]

    def all_served(self) -> list[Served]:
        """List the versions of all models."""
        return [one for loaded in list(self._models.values()) for one in loaded.served.values()]

    def index(self, ready_only: bool = False) -> list[dict[str, str]]:
        """List what the repository has: name, version, state and reason."""
        rows = []
        for name in sorted({*model_names(self.repository), *self._models}):
            loaded = self._models.get(name, Loaded())
            rows += [{"name": name, "version": version, "state": "READY", "reason": ""}
                     for version in loaded.served]  # fmt: skip
            if not loaded.served and not ready_only:
                state = "UNAVAILABLE" if loaded.reason else ""
                rows.append({"name": name, "version": "", "state": state, "reason": loaded.reason})
        return rows

    def _check_explicit(self, act: str) -> None:
        if self.mode != "explicit":
            raise RequestError(
                f"a model cannot be asked to {act}: start with --model-control-mode explicit"
            )

    def _load(self, name: str) -> None:
        """Load a model; what was served of it before goes on until the new one is ready."""
        with self._changing:
            stamp = _stamp(self.repository / name)
            try:
                report, self._report = self._report, None  # a model that is loaded again has none
                served = _started(read_model(self.repository, name), report)
            except (PvaError, PoplarError, OSError) as error:
                before = self._models.get(name)
                self._models[name] = Loaded(
                    before.served if before else {}, error, " ".join(str(error).split()), stamp
                )
                return
            before = self._models.get(name)
            self._models[name] = Loaded(served, None, "", stamp)
        for old in before.served.values() if before else ():
            old.close()

    def _drop(self, name: str, reason: str) -> None:
        with self._changing:
            before = self._models[name]
            self._models[name] = Loaded({}, None, reason, before.stamp)
        for old in before.served.values():
            old.close()

    def _poll(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            names = model_names(self.repository) if self.repository.is_dir() else []
            for name in sorted({*names, *self._models}):
                model = self._models.get(name)
                if name not in names:
                    if model and model.served:
                        self._drop(name, "its folder is gone")
                elif model is None or model.stamp != _stamp(self.repository / name):
                    self._load(name)

    # Requests
    def infer(self, query: InferRequest, watch: Watch | None = None) -> InferResponse:
        """Answer a request; raises RequestError.

        `watch` is handed what withdraws the request while it waits, for clients that go away.
        """
        tags: dict[str, Any] = {"id": query.id, "model": query.model}
        with span("request", tags):
            return self._infer(query, tags, watch)

    def _infer(
        self, query: InferRequest, tags: dict[str, object], watch: Watch | None
    ) -> InferResponse:
        begin = time.perf_counter_ns()
        served = self.served(query.model, query.version)
        try:
            request = self.submitted(served, query)
            pending = request.content
            if watch is not None:
                watch(partial(served.withdraw, request))
            if pending.begun is not None:
                with span("queue"):
                    pending.begun.wait(LONGEST_WAIT)
            result = pending.future.result(LONGEST_WAIT)
        except RequestError as error:
            served.statistics.failed(error.reason, time.perf_counter_ns() - begin)
            tags["error"] = error.reason
            raise
        except (TimeoutError, CancelledError):
            served.statistics.failed("OTHER", time.perf_counter_ns() - begin)
            raise RequestError("the request took longer than an hour", status=504) from None
        response = self.answer(served, query, result, begin)
        tags |= {"version": served.number, "rows": result.rows, "batch": result.batch,
                 "padding": result.padding, "cycles": result.cycles, "instance": result.instance,
                 **dict(zip(TIMES, result.parts, strict=True))}  # fmt: skip
        return response

    def submitted(self, served: Served, query: InferRequest) -> Request:
        """Check a request and let it wait for its turn; raises RequestError."""
        rows = checked(served.settings, query)
        try:
            inputs = served.programs[0].held(query.inputs)
        except TensorError as error:
            raise RequestError(str(error)) from None
        level = _number(query.parameters, "priority")
        timeout_ns = 1000 * _number(query.parameters, "timeout")
        return served.submit(Pending(inputs), rows, level, timeout_ns)

    def answer(
        self, served: Served, query: InferRequest, result: Result, begin: int
    ) -> InferResponse:
        """Count a request as answered; return the answer."""
        total = time.perf_counter_ns() - begin
        served.statistics.answered(total, result.parts)
        names = query.outputs or [tensor.name for tensor in served.settings.outputs]
        declared = {tensor.name: tensor for tensor in served.settings.outputs}
        clock = served.clock
        parameters = {
            "device_cycles": result.cycles,
            "device_us": round(result.cycles / clock * 1e6, 3),
            "host_us": round(total / 1000, 3),
            "batch": result.batch,
            "batch_rows": result.batch_rows,
            "padding_rows": result.padding,
        }
        outputs = [(declared[name], result.outputs[name]) for name in names]
        return InferResponse(
            query.model, served.number, query.id, outputs, parameters, result, served.settings
        )


def _started(model: Model, report: Path | None) -> dict[str, Served]:
    """Load the versions of a model and run its warm-up; raises PvaError."""
    started: dict[str, Served] = {}
    try:
        for version in model.versions:
            place = report if version is model.newest else None
            served = started[str(version.number)] = Served(model, version, place)
            warmup.run(served)
            served.start()
    except BaseException:
        for served in started.values():
            served.close()
        raise
    return started


def checked(settings: Settings, query: InferRequest) -> int:
    """Return the rows of a request whose inputs are those of a model; raises RequestError."""
    for name in ("sequence_id", "sequence_start", "sequence_end"):
        if query.parameters.get(name):
            raise RequestError(f"parameter {name!r}: this server has no sequence batching")
    declared = {tensor.name: tensor for tensor in settings.inputs}
    _check_names(query.inputs, declared, "input", settings.name)
    outputs = {tensor.name: tensor for tensor in settings.outputs}
    _check_names({**outputs, **dict.fromkeys(query.outputs)}, outputs, "output", settings.name)
    for name, tensor in declared.items():
        _check_type(tensor, query.inputs[name], query.datatypes.get(name, tensor.datatype))
    batched = settings.config.max_batch_size > 0
    rows = {_rows(settings, declared[name], array, batched) for name, array in query.inputs.items()}
    if len(rows) > 1:
        raise RequestError(
            f"inputs of {settings.name!r} have different batch sizes: {sorted(rows)}"
        )
    count = rows.pop() if rows else 1
    if count > settings.rules.most_rows:
        most = settings.rules.most_rows
        raise RequestError(f"batch size {count} of {settings.name!r}; at most {most}")
    return count


def _check_names(names: Iterable[str], expected: Iterable[str], kind: str, model: str) -> None:
    missing = [name for name in expected if name not in set(names)]
    unknown = [name for name in names if name not in set(expected)]
    if missing:
        raise RequestError(f"model {model!r}: {kind} {missing[0]!r} is missing")
    if unknown:
        listing = ", ".join(expected)
        raise RequestError(f"model {model!r} has no {kind} {unknown[0]!r}; there are {listing}")


def _check_type(tensor: Tensor, array: Array, datatype: str) -> None:
    """Raise RequestError for another type: a batch of several requests has one."""
    if datatype != tensor.datatype or array.dtype != DATATYPES[datatype][1]:
        found = datatype if datatype != tensor.datatype else array.dtype
        raise RequestError(f"input {tensor.name!r} is {found}; {tensor.datatype} is needed")


def _rows(settings: Settings, tensor: Tensor, array: Array, batched: bool) -> int:
    shape = array.shape[1:] if batched else array.shape
    same = len(shape) == len(tensor.dims) and all(
        dim in (-1, size) for dim, size in zip(tensor.dims, shape, strict=True)
    )
    if not same or (batched and (not array.ndim or not len(array))):
        expected = [-1, *tensor.dims] if batched else list(tensor.dims)
        raise RequestError(
            f"model {settings.name!r}: input {tensor.name!r} is {list(array.shape)}; {expected}"
        )
    return len(array) if batched else 1


def _number(parameters: Mapping[str, object], name: str) -> int:
    value = parameters.get(name, 0)
    if type(value) is str and value.isdecimal() and len(value) < 19:
        value = int(value)
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise RequestError(f"parameter {name!r}: {str(value)[:40]}; a whole number")
    return value


def _stamp(folder: Path) -> tuple[object, ...]:
    """Return what tells whether files of a model have changed: names, sizes and times."""
    stamps = []
    for path in sorted(folder.rglob("*")):
        try:
            stat = path.stat()
        except OSError:
            continue
        stamps.append((str(path.relative_to(folder)), stat.st_size, stat.st_mtime_ns))
    return tuple(stamps)
