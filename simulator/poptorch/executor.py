"""Modules on the device: inferenceModel and trainingModel return one of these."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as trees

from simulator import popart
from simulator.heap import reused_memory
from simulator.poptorch import arguments, files
from simulator.poptorch.errors import Error
from simulator.poptorch.exporting.export import (
    COUNTED,
    check_inputs,
    export,
    norms_of,
    to_numpy,
    values_of,
)
from simulator.poptorch.exporting.exported import Exported, place_of
from simulator.poptorch.log import logger
from simulator.poptorch.optimizers import to_popart, weights_of
from simulator.poptorch.options import Options
from simulator.poptorch.profiling import Channel
from simulator.poptorch.sessions import anchor_name, session_of
from simulator.poptorch.timing import Timing

if TYPE_CHECKING:
    from torch.nn.modules.module import _IncompatibleKeys

    from pva.report import Report

# How often the weights of a module have come back from a device, and who trains it. Modules share
# weights: a program trains one with a loss around it, and then runs it without.
_generation: weakref.WeakKeyDictionary[torch.nn.Module, int] = weakref.WeakKeyDictionary()
_trainers: weakref.WeakKeyDictionary[torch.nn.Module, Any] = weakref.WeakKeyDictionary()


class PoplarExecutor:
    """A module that runs on the device; it is compiled when it is called for the first time."""

    def __init__(
        self,
        model: torch.nn.Module,
        options: Options | None = None,
        training: bool = False,
        optimizer: torch.optim.Optimizer | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise Error(f"model is {type(model).__name__}; a torch.nn.Module is needed")
        self._user_model = model
        self._options = (options or Options()).clone()
        if name is not None:
            self._options.modelName(name)
        self._training = training
        if training and optimizer is None:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        self._optimizer = optimizer
        self._names = {id(tensor): name for name, tensor in reversed(
            [*model.named_parameters(remove_duplicate=False)])}  # fmt: skip
        self._what = type(model).__name__
        self._session: popart.InferenceSession | None = None
        self._exported: Exported | None = None
        self._like: list[Any] = []
        self._loss = ""
        self._anchors: dict[str, Any] = {}
        self._dirty, self._seen, self._batches = False, 0, 0
        self._attached = False
        self._compilation_time = 0.0
        self._timing = Timing()
        kind = "training" if training else "inference"
        self._channel = Channel(f"poptorch.{kind}Model")
        if training:
            _trainers[model] = weakref.ref(self)

    def _method(self, name: str) -> AbstractContextManager[object]:
        """Return an event of a method in the trace, labelled module.Class.method."""
        return self._channel.event(f"poptorch.PoplarExecutor.{name}")

    # Compiling
    def compile(self, *args: object, **kwargs: object) -> None:
        """Export and compile the module for inputs like these, without running it."""
        with self._method("compile"), self._channel.tracepoint("modelCompilation"):
            begin = time.monotonic()
            self._compile(*arguments.bound(self._user_model, args, kwargs))
            self._compilation_time = time.monotonic() - begin

    def _compile(self, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        options, model = self._options, self._user_model
        count = options.micro_batches(training=self._training)
        leaves, structure = trees.tree_flatten((args, kwargs))
        self._like = arguments.micro_batch(leaves, count, self._what)
        one, named = trees.tree_unflatten(self._like, structure)
        with self._channel.tracepoint("graphPreprocessing"):
            exported = export(model, one, named, trace=bool(options.Jit.value("trace")))
            check_inputs(model, exported, leaves)
        self._take(exported)

    def _take(self, exported: Exported) -> None:
        """Compile an exported module, and put its weights on the device."""
        options, model = self._options, self._user_model
        optimizer = to_popart(self._optimizer, self._names) if self._optimizer else None
        fixed = self._fixed(exported)
        self._session, self._loss = session_of(exported, model, options, optimizer, fixed)
        self._exported = exported
        self._session.prepareDevice()
        self._attached = True
        self.copyWeightsToDevice()
        if options.value("randomSeed") is not None:
            self._session.setRandomSeed(options.value("randomSeed"))

    def compileAndExport(
        self, filename: str, *args: object, export_model: bool = True, **kwargs: object
    ) -> None:
        """Compile the module for inputs like these and save it; see save."""
        with self._channel.tracepoint("compileAndExport"):
            if self._session is None:
                self.compile(*args, **kwargs)
            self.save(filename, export_model=export_model)

    def save(self, filename: str, export_model: bool = True, save_rng_state: bool = True) -> None:
        """Write the exported module to a file, for loadExecutable, and the module for load.

        The file has no code of the device: who loads it compiles again, without an export.
        """
        self._compiled("save")
        assert self._exported is not None
        if self._dirty:
            self.copyWeightsToHost()
        compiled = files.Compiled(self._exported, self._like, self._training)
        content = {"model": self._user_model, "options": self._options,
                "training": self._training, "optimizer": self._optimizer,
                "rng_state": self.rng_state if save_rng_state else None}  # fmt: skip
        with self._channel.tracepoint("saveExecutableToFile"):
            files.write_file(str(filename), compiled, content if export_model else None)

    def loadExecutable(self, filename: str) -> None:
        """Compile what a file of save has, in place of an export of the module."""
        with self._channel.tracepoint("loadExecutable"):
            begin = time.monotonic()
            compiled = files.read_file(str(filename))
            if compiled.training != self._training:
                kinds = ("inference", "training")
                raise Error(
                    f"loadExecutable: {filename} is of {kinds[compiled.training]}; this is a model"
                    f" of {kinds[self._training]}"
                )
            files.check_fits(str(filename), compiled, values_of(self._user_model))
            self._like = compiled.like
            self._take(compiled.exported)
            self._compilation_time = time.monotonic() - begin

    def _fixed(self, exported: Exported) -> set[str]:
        """Name the weights that are not trained: buffers, constants, those without a gradient."""
        trained: set[str] = set()
        if self._optimizer is not None:
            values = values_of(self._user_model)
            weights = weights_of(self._optimizer, self._names)
            trained = {name for name in weights if values[name].requires_grad}
            missing = sorted(trained & exported.read - set(exported.weights.values()))
            if missing:
                path = missing[0].rpartition(".")[0]
                place = place_of(self._user_model, path, exported.origins)
                raise Error(
                    f"{place}: the weight {missing[0]!r} is folded away by the exporter, and would"
                    " not be trained; set Jit.traceModel the other way"
                )
        stored = {tensor.name for tensor in exported.model.graph.initializer}
        return {name for name in stored if exported.weights.get(name) not in trained}

    def _compiled(self, subject: str) -> popart.InferenceSession:
        if self._session is None:
            raise Error(f"{subject}: the module is not compiled; call it or compile() first")
        return self._session

    def isCompiled(self) -> bool:
        """Return whether the module has been compiled."""
        return self._session is not None

    @property
    def compilationTime(self) -> float | None:
        """Return the seconds that export and compilation took, None before."""
        return self._compilation_time or None

    # Running
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Run a call's micro-batches; compile the module first where it is not."""
        args, kwargs = arguments.bound(self._user_model, args, kwargs)
        if self._session is None:
            self.compile(*args, **kwargs)
        elif not self._attached:
            self.attachToDevice()
        self._follow_training()
        session, exported = self._compiled("call"), self._exported
        assert exported is not None
        count = self._options.micro_batches(training=self._training)
        leaves = trees.tree_leaves((args, kwargs))
        check_inputs(self._user_model, exported, leaves)
        inputs = arguments.fed(exported, leaves, self._like, count, self._what)
        anchors = session.initAnchorArrays()
        with self._channel.tracepoint("modelExecution"), reused_memory():
            session.run(popart.PyStepIO(inputs, anchors))
        self._anchors = anchors
        self._batches += count // self._options.replication_factor
        self._dirty = self._training
        if self._optimizer is not None:  # schedules of rates look for it: the device steps
            self._optimizer._opt_called = True
        self._timing.note(session)
        if self._options.value("logCycleCount"):
            logger.info(f"Total number of IPU cycles: {session.getCycleCount()}")
        dims = {name: session.getInfo(name).dims for name in anchors}
        return arguments.returned(exported, anchors, dims)

    def _follow_training(self) -> None:
        """Take the weights of a training of the same module, once it has changed them."""
        if self._training:
            return
        for trained, trainer in list(_trainers.items()):
            executor = trainer()
            if executor is not None and executor._dirty and _share(trained, self._user_model):
                executor.copyWeightsToHost()
        if _generation_of(self._user_model) != self._seen:
            self.copyWeightsToDevice()

    # Weights
    def copyWeightsToHost(self) -> None:
        """Copy the weights, and the statistics of batch norms, into the module."""
        session, exported = self._compiled("copyWeightsToHost"), self._exported
        assert exported is not None
        with self._method("copyWeightsToHost"), torch.no_grad():
            session.weightsToHost()
            tensors = values_of(self._user_model)
            for name, key in exported.weights.items():
                values = session._weights.get(name)
                if values is not None:
                    tensors[key].copy_(torch.from_numpy(values).to(tensors[key].dtype))
            self._count_batches(tensors)
        self._dirty = False
        _generation[self._user_model] = _generation.get(self._user_model, 0) + 1
        self._seen = _generation_of(self._user_model)

    def _count_batches(self, tensors: dict[str, torch.Tensor]) -> None:
        """Count the batches that batch norms in training have seen, as PyTorch does."""
        assert self._exported is not None
        for node in norms_of(self._exported.model) if self._training else ():
            name = f"{node.input[3].rpartition('.')[0]}.{COUNTED}"
            trained = any(a.name == "training_mode" and a.i for a in node.attribute)
            if trained and name in tensors:
                tensors[name] += self._batches
        self._batches = 0

    def copyWeightsToDevice(self) -> None:
        """Copy the weights and buffers of the module to the device."""
        session, exported = self._compiled("copyWeightsToDevice"), self._exported
        assert exported is not None
        with self._method("copyWeightsToDevice"):
            tensors = values_of(self._user_model)
            self._write({name: tensors[key] for name, key in exported.weights.items()})
            session.weightsFromHost()
        self._dirty, self._seen = False, _generation_of(self._user_model)

    def _write(self, tensors: Mapping[str, torch.Tensor]) -> None:
        session = self._compiled("copyWeightsToDevice")
        arrays = {n: to_numpy(t) for n, t in tensors.items() if n in session._weights}
        session.writeWeights(popart.PyWeightsIO(arrays))

    def copyNamedBuffersToDevice(self) -> None:
        """Copy the buffers that Options.updatableNamedBuffers names to the device."""
        session, names = self._compiled("copyNamedBuffersToDevice"), self._options.value("buffers")
        assert self._exported is not None
        tensors, weights = values_of(self._user_model), self._exported.weights
        wrong = [name for name in names if name not in weights.values()]
        if wrong:
            raise Error(f"copyNamedBuffersToDevice: no buffer {wrong[0]!r} is on the device")
        if self._dirty:
            session.weightsToHost()  # so that nothing else is put back
        self._write({name: tensors[key] for name, key in weights.items() if key in names})
        session.weightsFromHost()

    def state_dict(self, *args: object, **kwargs: object) -> dict[str, torch.Tensor]:
        """Return the module's state, with the weights that the device has."""
        if self._dirty:
            self.copyWeightsToHost()
        state: dict[str, torch.Tensor] = self._user_model.state_dict(*args, **kwargs)
        return state

    def load_state_dict(
        self, state: Mapping[str, object], strict: bool = True
    ) -> _IncompatibleKeys:
        """Take weights into the module, and to the device where there is one."""
        result = self._user_model.load_state_dict(state, strict=strict)
        if self._session is not None:
            self.copyWeightsToDevice()
        return result

    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Take other values of the optimiser; what it is made of cannot change."""
        if not self._training:
            raise Error("setOptimizer: an inference has no optimiser")
        with self._method("setOptimizer"):
            popart_optimizer = to_popart(optimizer, self._names)
            if self._session is not None:
                self._session.updateOptimizerFromHost(popart_optimizer)
        self._optimizer = optimizer

    @property
    def rng_state(self) -> list[int]:
        """Return the seed, and then the states of the generators of random numbers."""
        session = self._compiled("rng_state")
        return [session.getRandomSeed(), *session.getRNGState()]

    @rng_state.setter
    def rng_state(self, state: Sequence[int]) -> None:
        """Set the generators to a state that was returned before."""
        session = self._compiled("rng_state")
        if not state:
            raise Error("rng_state: []; the seed and the states of the generators are needed")
        session.setRandomSeed(int(state[0]))
        session.setRNGState(state[1:])

    # The device
    def attachToDevice(self) -> None:
        """Take the device again, with the weights of the module."""
        session = self._compiled("attachToDevice")
        if self._attached:
            raise Error("attachToDevice: the device is attached")
        self._attached = True
        session.prepareDevice()
        self.copyWeightsToDevice()

    def detachFromDevice(self) -> None:
        """Release the device, after its weights are copied into the module."""
        self._compiled("detachFromDevice")
        if not self._attached:
            raise Error("detachFromDevice: the device is not attached")
        if self._dirty:
            self.copyWeightsToHost()
        self._attached = False

    def isAttachedToDevice(self) -> bool:
        """Return whether the module is on the device."""
        return self._attached

    def destroy(self) -> None:
        """Let go of the compiled module and the device."""
        with self._method("destroy"):
            self._session, self._exported, self._attached = None, None, False

    # Looking
    def getAnchoredTensor(self, short_name: str) -> torch.Tensor:
        """Return the tensor that Options.anchorTensor has named so, of the last call."""
        anchors = self._options.value("anchors")
        if short_name not in anchors:
            names = ", ".join(map(repr, anchors)) or "none"
            raise Error(f"getAnchoredTensor: no anchor {short_name!r}; there are {names}")
        assert self._exported is not None
        name = anchor_name(anchors[short_name][0], self._exported)
        if name not in self._anchors:
            raise Error(f"getAnchoredTensor: {short_name!r}: nothing has run yet")
        dims = self._compiled("getAnchoredTensor").getInfo(name).dims
        return arguments.joined(self._anchors[name], dims)

    def getTensorNames(self) -> list[str]:
        """Name the tensors of the exported model, which anchorTensor takes."""
        return sorted(self._compiled("getTensorNames")._ir.infos)

    def cycleCount(self) -> int:
        """Return the cycles of the last call on the first replica; needs logCycleCount."""
        return self._compiled("cycleCount").getCycleCount()

    def getPerfCounters(self) -> tuple[list[list[float]], ...]:
        """Return the seconds at which inputs began and ended and outputs began and ended."""
        return self._timing.counters()

    def getHostIpuLatency(self) -> tuple[float, float, float]:
        """Return least, most and mean seconds from the host's inputs to the device."""
        return self._timing.latency("host to IPU")

    def getComputeLatency(self) -> tuple[float, float, float]:
        """Return least, most and mean seconds that the device computed."""
        return self._timing.latency("compute")

    def getIpuHostLatency(self) -> tuple[float, float, float]:
        """Return least, most and mean seconds from the device to the host."""
        return self._timing.latency("IPU to host")

    def getLatency(self) -> tuple[float, float, float]:
        """Return least, most and mean seconds from a batch's inputs to its outputs."""
        return self._timing.latency("round trip")

    def getReport(self) -> Report:
        """Return the report of the module, as pva reads it."""
        report: Report = self._compiled("getReport").getReport()
        return report

    @property
    def options(self) -> Options:
        return self._options

    @property
    def model(self) -> torch.nn.Module:
        """Return the module that was given."""
        return self._user_model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._user_model, name)


def _share(one: torch.nn.Module, second: torch.nn.Module) -> bool:
    """Return whether two modules have a parameter or buffer in common."""
    mine = {id(tensor) for tensor in values_of(one).values()}
    return any(id(tensor) in mine for tensor in values_of(second).values())


def _generation_of(module: torch.nn.Module) -> int:
    """Count how often weights have come back into a module, by itself or another with the same."""
    return sum(n for trained, n in list(_generation.items()) if _share(trained, module))


def inferenceModel(
    model: torch.nn.Module | PoplarExecutor, options: Options | None = None
) -> PoplarExecutor:
    """Return a module that runs on the device, as it is: call model.eval() first.

    >>> import torch
    >>> from simulator import poptorch
    >>> model = poptorch.inferenceModel(torch.nn.ReLU().eval())
    >>> model(torch.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    module = model.model if isinstance(model, PoplarExecutor) else model
    return PoplarExecutor(module, options)


def trainingModel(
    model: torch.nn.Module | PoplarExecutor,
    options: Options | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> PoplarExecutor:
    """Return a module whose every call trains it by the loss that it returns last.

    >>> import torch
    >>> from simulator import poptorch
    >>> class Trained(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(2, 1, bias=False)
    ...     def forward(self, x, labels):
    ...         y = self.layer(x)
    ...         return y, torch.nn.functional.l1_loss(y, labels)
    >>> module = Trained()
    >>> module.layer.weight.data = torch.tensor([[3.0, 4.0]])
    >>> sgd = poptorch.optim.SGD(module.parameters(), lr=0.5)
    >>> model = poptorch.trainingModel(module, optimizer=sgd)
    >>> y, loss = model(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0]]))
    >>> y.item(), loss.item()  # 1 * 3 + 2 * 4, less 0
    (11.0, 11.0)
    >>> model.copyWeightsToHost()
    >>> module.layer.weight.tolist()  # less 0.5 times x
    [[2.5, 3.0]]
    """
    module = model.model if isinstance(model, PoplarExecutor) else model
    return PoplarExecutor(module, options, training=True, optimizer=optimizer)


def load(filename: str, edit_opts_fn: Callable[[Options], object] | None = None) -> PoplarExecutor:
    """Return the module of a file of save, compiled; `edit_opts_fn` may change its options first.

    This runs code of the file, as torch.load does: load only what you trust.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import torch
    >>> from simulator import poptorch
    >>> path = str(Path(tempfile.mkdtemp()) / "relu.poptorch")
    >>> model = poptorch.inferenceModel(torch.nn.ReLU().eval())
    >>> model.compileAndExport(path, torch.tensor([-1.0, 2.0]))
    >>> poptorch.load(path)(torch.tensor([-3.0, 4.0])).tolist()
    [0.0, 4.0]
    """
    content = files.read_module(str(filename))
    if edit_opts_fn is not None:
        edit_opts_fn(content["options"])
    model = PoplarExecutor(
        content["model"], content["options"], content["training"], content["optimizer"]
    )
    model.loadExecutable(filename)
    if content["rng_state"] is not None:
        model.rng_state = content["rng_state"]
    return model
