"""The names of PopTorch: each is there, and does what it is called."""

from __future__ import annotations

import inspect
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

import pva  # noqa: E402 - asked for behind torch
import pvti  # noqa: E402
from simulator import popart, poptorch  # noqa: E402
from tests.poptorch.modules import Trained, mlp  # noqa: E402

NAMES = """trainingModel inferenceModel PoplarExecutor load DataLoader DataLoaderMode
    AsynchronousDataAccessor BeginBlock Block BlockFunction PipelinedExecution ShardedExecution
    Stage AutoStage recomputationCheckpoint set_available_memory serializedMatMul MultiConv
    NameScope identity_loss optim.SGD optim.AdamW optim.Adam optim.RMSprop optim.LAMB
    VariableAttributes custom_op ipu_print_tensor for_loop cond CPU nop dynamic_slice
    isRunningOnIpu ipuHardwareIsAvailable ipuHardwareVersion setLogLevel profiling.Channel
    Options OutputMode report""".split()  # noqa: SIM905
X, LABELS = torch.arange(32.0).reshape(4, 8) / 32, torch.tensor([0, 1, 2, 3])


def of(*names: str) -> Callable[[Any], bool]:
    """Return a check that a mapping has these names."""
    return lambda value: set(names) <= set(value)


def no(value: Any) -> bool:
    return value is None


# Each name of an executor: what it is called with, and what it has to return, in this order.
CALLS: tuple[tuple[str, tuple[Any, ...], Callable[[Any], bool]], ...] = (
    ("isCompiled", (), lambda value: value is True),
    ("isAttachedToDevice", (), lambda value: value is True),
    ("compile", (X, LABELS), no),
    ("__call__", (X, LABELS), lambda value: value[0].shape == (4, 4)),
    ("getAnchoredTensor", ("hidden",), lambda value: value.shape == (4, 16)),
    ("getTensorNames", (), of("inner.0.weight")),
    ("state_dict", (), of("inner.0.weight", "inner.2.bias")),
    ("cycleCount", (), lambda value: value > 0),
    ("compilationTime", (), lambda value: value > 0),
    ("getPerfCounters", (), lambda value: len(value) == 4),
    ("getLatency", (), lambda value: 0 < value[0] <= value[2] <= value[1]),
    ("getHostIpuLatency", (), lambda value: value[0] > 0),
    ("getComputeLatency", (), lambda value: value[0] > 0),
    ("getIpuHostLatency", (), lambda value: value[0] > 0),
    ("rng_state", (), lambda value: value == [7]),  # the seed: no random number is drawn
    ("setOptimizer", (torch.optim.SGD([torch.zeros(1)], lr=0.5),), no),
    ("copyWeightsToHost", (), no),
    ("copyWeightsToDevice", (), no),
    ("copyNamedBuffersToDevice", (), no),
    ("detachFromDevice", (), no),
    ("attachToDevice", (), no),
    ("destroy", (), no),
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    owner: Any = poptorch
    for part in name.split("."):
        owner = getattr(owner, part)
    assert owner.__doc__


SIGNATURES = {
    "DataLoader": """options dataset batch_size shuffle num_workers drop_last persistent_workers
        auto_distributed_partitioning mode async_options rebatched_worker_size batch_sampler""",
    "trainingModel": "model options optimizer",
    "inferenceModel": "model options",
    "identity_loss": "x reduction",
}
MEMBERS = {
    "DataLoaderMode": "Sync Async AsyncRebatched",
    "OutputMode": "All Final Sum EveryN",
    "AutoStage": "AutoIncrement SameAsIpu",
    "DataLoader": "combinedBatchSize terminate",
    "PoplarExecutor": "compileAndExport save loadExecutable",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_have_poptorch_s_names_and_order(name: str) -> None:
    wanted = SIGNATURES[name].split()
    assert list(inspect.signature(getattr(poptorch, name)).parameters)[: len(wanted)] == wanted


@pytest.mark.parametrize("name", MEMBERS)
def test_members_have_poptorch_s_names(name: str) -> None:
    assert set(MEMBERS[name].split()) <= set(dir(getattr(poptorch, name)))


@pytest.mark.parametrize(("variable", "version"), [(None, 2), ("ipu1", 1), ("ipu21", 21)])
def test_the_version_is_that_of_the_model(
    variable: str | None, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable:
        monkeypatch.setenv("POPTORCH_IPU_MODEL_VERSION", variable)
    assert poptorch.ipuHardwareVersion() == version
    assert poptorch.ipuHardwareIsAvailable(2) and not poptorch.ipuHardwareIsAvailable(3)


def options() -> Any:
    return poptorch.Options().setTarget("tiny").logCycleCount(True).randomSeed(7)


def trained(chosen: Any, inner: Any = None) -> Any:
    torch.manual_seed(1)
    module = Trained(inner or mlp())
    return poptorch.trainingModel(
        module.train(), chosen, torch.optim.SGD(module.parameters(), lr=0.1)
    )


def test_every_call_of_an_executor_does_what_it_says(tmp_path: Path) -> None:
    chosen = options().enableProfiling(tmp_path)
    model = trained(chosen)
    model.compile(X, LABELS)
    hidden = next(name for name in model.getTensorNames() if "tanh" in name)
    model.destroy()
    chosen.anchorTensor("hidden", hidden)
    model = trained(chosen)
    assert not model.isCompiled()
    model.compile(X, LABELS)
    for name, arguments, is_right in CALLS:
        value = getattr(model, name)
        assert is_right(value(*arguments) if callable(value) else value), name
    assert not model.isCompiled() and not model.isAttachedToDevice()


def test_a_saved_module_goes_on_where_it_was(tmp_path: Path) -> None:
    file = str(tmp_path / "module.poptorch")
    first = trained(options(), torch.nn.Sequential(mlp(), torch.nn.Dropout(0.5)))
    first.compileAndExport(file, X, LABELS)
    first(X, LABELS)
    first.save(file)
    wanted = [float(first(X, LABELS)[1]) for _ in range(3)]
    second = poptorch.load(file, edit_opts_fn=lambda chosen: chosen.useIpuId(1))
    assert [float(second(X, LABELS)[1]) for _ in range(3)] == wanted


def test_a_file_without_the_module_is_data_alone_and_needs_one_that_fits(tmp_path: Path) -> None:
    file = str(tmp_path / "module.poptorch")
    first = trained(options())
    first.compileAndExport(file, X, LABELS, export_model=False)
    assert zipfile.ZipFile(file).namelist() == ["about.json", "model.onnx"]
    assert json.loads(zipfile.ZipFile(file).read("about.json"))["arguments"][0]["shape"] == [4, 8]
    second = trained(options())
    second.loadExecutable(file)
    assert float(second(X, LABELS)[1]) == float(first(X, LABELS)[1])
    refused: tuple[tuple[Any, str], ...] = (
        (lambda: poptorch.load(file), "export_model=False"),
        (
            lambda: trained(options(), torch.nn.Linear(8, 4)).loadExecutable(file),
            "made of another module",
        ),
        (lambda: poptorch.inferenceModel(mlp()).loadExecutable(file), "is of training"),
        (lambda: poptorch.load(__file__), "no file of a compiled module"),
        (lambda: poptorch.load(str(tmp_path / "none")), "No such file"),
    )
    for call, words in refused:
        with pytest.raises(poptorch.Error, match=words):
            call()


def test_states_of_generators_are_put_back() -> None:
    model = trained(options().replicationFactor(2), torch.nn.Sequential(mlp(), torch.nn.Dropout()))
    model.compile(X, LABELS)
    before = model.rng_state
    tiles, workers = 8, 3
    assert len(before) == 1 + 2 * 4 * tiles * workers
    model(X, LABELS)
    assert model.rng_state != before
    model.rng_state = before
    assert model.rng_state == before
    with pytest.raises(popart.popart_exception, match=r"setRNGState: 3 words; .* have 192"):
        model.rng_state = before[:4]


def test_a_trace_has_the_channels_and_labels_of_poptorch(tmp_path: Path) -> None:
    class Rows(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, place: int) -> Any:
            return X[place], LABELS[place]

    pvti.startTrace(tmp_path)
    try:
        model = trained(options())
        for batch in poptorch.DataLoader(options(), Rows(), 4):
            model(*batch)
        model.save(str(tmp_path / "m"))
        with poptorch.profiling.Channel("MyApp").tracepoint("load"):
            model.copyWeightsToHost()
        model.loadExecutable(str(tmp_path / "m"))
        model.destroy()
    finally:
        pvti.closeTrace()
    trace = pva.openTrace(next(tmp_path.glob("*.pvti")))
    events = trace.frames.events()
    pairs = set(zip(events["channel"], events["label"], strict=True))
    own = "poptorch.trainingModel"
    wanted = {
        *((own, f"{own}.{label}") for label in ("modelCompilation", "graphPreprocessing",
          "modelExecution", "saveExecutableToFile", "loadExecutable")),
        *((own, f"poptorch.PoplarExecutor.{name}") for name in ("compile", "copyWeightsToHost",
          "copyWeightsToDevice", "destroy")),
        ("poptorch.DataLoader", "poptorch.DataLoader.__next__"),
        ("dataset", f"{__name__}.{Rows.__qualname__}.__getitem__"),
        ("MyApp", "MyApp.load"),
    }  # fmt: skip
    assert wanted - pairs == set()


def test_an_optimiser_without_a_loss_scaling_has_one() -> None:
    module = Trained(mlp())
    losses = []
    for scaling in (None, 1.0):
        torch.manual_seed(1)
        optimizer = poptorch.optim.AdamW(module.parameters(), lr=0.5, loss_scaling=scaling)
        losses.append(float(poptorch.trainingModel(module, options(), optimizer)(X, LABELS)[1]))
    assert losses[0] == losses[1]
