"""Options by PopTorch's names: what counts, what has no effect, what is refused by name."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

import pva  # noqa: E402 - asked for behind torch
from simulator import popart, poptorch  # noqa: E402
from tests.poptorch.modules import Trained, mlp  # noqa: E402

NAMES = """_Popart.set deviceIterations replicationFactor setExecutionStrategy
    Training.gradientAccumulation outputMode Precision.setPartialsType randomSeed autoRoundNumIPUs
    setAvailableMemoryProportion enableExecutableCaching Precision.enableStochasticRounding
    TensorLocations.setOptimizerLocation Training.accumulationAndReplicationReductionType
    enableSyntheticData anchorTensor Training.setAutomaticLossScaling useOfflineIpuTarget
    useIpuModel enableProfiling logCycleCount modelName logDir connectionType syncPattern
    Jit.traceModel loadFromFile updatableNamedBuffers sourceLocationExcludes clone toDict""".split()  # noqa: SIM905


def owner_of(options: Any, name: str) -> tuple[Any, str]:
    *path, setter = name.split(".")
    for part in path:
        options = getattr(options, part)
    return options, setter


@pytest.mark.parametrize("name", NAMES)
def test_every_option_has_its_method(name: str) -> None:
    owner, setter = owner_of(poptorch.Options(), name)
    assert callable(getattr(owner, setter))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Precision.enableStochasticRounding", True),
        ("Training.setAutomaticLossScaling", True),
        ("Distributed.configureProcessId", (0, 2)),
        ("TensorLocations.setWeightLocation",
         poptorch.TensorLocationSettings().useOnChipStorage(False)),
        ("deviceIterations", 0),
        ("outputMode", poptorch.OutputMode.EveryN),
        ("setAvailableMemoryProportion", {"IPU0": 1.5}),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(name: str, value: Any) -> None:
    owner, setter = owner_of(poptorch.Options(), name)
    with pytest.raises(poptorch.Error, match=setter):
        getattr(owner, setter)(*(value if isinstance(value, tuple) else (value,)))


def test_what_is_off_anyway_is_taken() -> None:
    options = poptorch.Options()
    assert options.Precision.enableStochasticRounding(False) is options.Precision


def test_what_only_tunes_the_compiler_is_taken_with_one_log_line() -> None:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("poptorch::python")
    logger.addHandler(handler)
    poptorch.setLogLevel("INFO")
    try:
        poptorch.Options().syncPattern("full")
    finally:
        poptorch.setLogLevel("WARN")
        logger.removeHandler(handler)
    assert lines == ["Options.syncPattern('full'): has no effect here"]


def test_a_module_is_compiled_once_into_its_cache_and_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []
    session, built = popart.InferenceSession, popart.InferenceSession._built
    monkeypatch.setattr(session, "_built", lambda self: compiled.append(self) or built(self))
    torch.manual_seed(1)
    module, inputs = mlp(), torch.randn(4, 8)
    found = []
    for _ in range(2):
        options = poptorch.Options().setTarget("tiny").enableExecutableCaching(tmp_path)
        found.append(poptorch.inferenceModel(module, options)(inputs))
    assert (len(compiled), len(list(tmp_path.glob("*.popef")))) == (1, 1)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    torch.testing.assert_close(found[1], module(inputs))


def test_the_cache_is_that_of_the_environment_unless_one_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POPTORCH_CACHE_DIR", "of-all")
    assert poptorch.Options().value("cache") == "of-all"
    assert poptorch.Options().enableExecutableCaching("own").value("cache") == "own"
    assert poptorch.Options().enableExecutableCaching(None).value("cache") == ""


def test_a_misspelt_option_is_told() -> None:
    with pytest.raises(AttributeError, match="did you mean deviceIterations"):
        poptorch.Options().deviceIteration(2)


def test_a_clone_is_apart_and_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "options.txt"
    file.write_text("# of the run\ndeviceIterations(4)\nTraining.gradientAccumulation(2)\n")
    first = poptorch.Options().loadFromFile(str(file))
    second = first.clone().deviceIterations(1)
    assert (first.device_iterations, second.device_iterations) == (4, 1)
    assert first.toDict()["Training"]["gradientAccumulation"] == 2


def test_output_modes_choose_what_comes_back() -> None:
    data = torch.randn(8, 8)
    wanted = mlp()
    whole = wanted(data)
    rows = {
        poptorch.OutputMode.All: whole,
        poptorch.OutputMode.Final: whole[6:],
        poptorch.OutputMode.Sum: whole.reshape(4, 2, 4).sum(0),
    }
    for mode, expected in rows.items():
        options = poptorch.Options().setTarget("tiny").deviceIterations(4).outputMode(mode)
        found = poptorch.inferenceModel(wanted, options)(data)
        assert torch.allclose(found, expected, atol=1e-5), mode


def test_reports_latencies_and_names_follow_from_a_run(tmp_path: Path) -> None:
    options = poptorch.Options().setTarget("tiny").deviceIterations(2).enableProfiling(tmp_path)
    options.logCycleCount(True)
    module = Trained(mlp())
    training = poptorch.trainingModel(module, options)
    inference = poptorch.inferenceModel(module, options)
    training(torch.randn(8, 8), torch.randint(0, 4, (8,)))
    inference(torch.randn(8, 8))
    for name in ("training", "inference"):
        assert pva.openReport(tmp_path / name / "profile.pop").execution.runs
    report = pva.openReport(tmp_path / "inference")
    run, clock = report.execution.runs[-1], report.compilation.target.clockFrequency
    least, most, mean = inference.getLatency()
    assert 0 < least <= mean <= most <= inference.cycleCount() / clock
    assert inference.cycleCount() < run.cycles  # which also has the begin of the program
    parts = [inference.getHostIpuLatency(), inference.getComputeLatency()]
    parts.append(inference.getIpuHostLatency())
    assert sum(part[2] for part in parts) == pytest.approx(mean, rel=1e-6)
    assert [len(times) for row in inference.getPerfCounters() for times in row] == [2] * 4


def test_marks_of_forward_reach_the_program(capfd: Any) -> None:
    class Marked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            with poptorch.NameScope("first"):
                y = poptorch.set_available_memory(self.a(x), 0.3)
            y = poptorch.recomputationCheckpoint(y)
            with poptorch.Block("second", ipu_id=1):
                return poptorch.ipu_print_tensor(self.b(y), "out")

    x = torch.ones(2, 8)
    module = Marked()
    model = poptorch.inferenceModel(
        module, poptorch.Options().setTarget("tiny").deviceIterations(1)
    )
    assert torch.allclose(model(x), module(x), atol=1e-6)
    assert "out" in capfd.readouterr().err
    nodes = {node.name: node for node in model._session._ir.nodes}
    kinds = {node.operator: node for node in nodes.values()}
    assert "PrintTensor" in kinds
    gemms = [node for node in nodes.values() if node.operator == "Gemm"]
    assert gemms[0].attributes["__available_memory"] == pytest.approx(0.3)
    assert gemms[1].attributes["__ipu_number"] == 1
    assert gemms[0].origin.module == "a.first"


@pytest.mark.parametrize("make", [poptorch.CPU, poptorch.custom_op, poptorch.SerialPhasedExecution])
def test_what_needs_other_hardware_is_refused(make: Any) -> None:
    with pytest.raises(poptorch.Error):
        make()


def test_a_block_that_a_strategy_does_not_know_is_refused() -> None:
    module = mlp()
    poptorch.BeginBlock(module[2], "last")
    options = poptorch.Options().setTarget("tiny")
    options.setExecutionStrategy(poptorch.PipelinedExecution("frist", "last"))
    with pytest.raises(poptorch.Error, match="no block is called 'frist'"):
        poptorch.inferenceModel(module, options)(torch.randn(2, 8))


def test_matrices_in_parts_and_loops_are_torchs() -> None:
    class Parts(torch.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            modes = poptorch.MatMulSerializationMode
            rows = [poptorch.serializedMatMul(a, b, mode, 2) for mode in list(modes)[:3]]
            return poptorch.for_loop(3, lambda x: x * 2, [sum(rows)])[0]

    a, b = torch.randn(4, 6), torch.randn(6, 8)
    found = poptorch.inferenceModel(Parts(), poptorch.Options().setTarget("tiny"))(a, b)
    assert torch.allclose(found, (a @ b) * 24, rtol=1e-4, atol=1e-4)


def test_conditions_take_one_of_two_ways() -> None:
    class Chooses(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return poptorch.cond(x.sum() > 0, lambda y: y + 1, [x], lambda y: y - 1, [x])

    model = poptorch.inferenceModel(Chooses(), poptorch.Options().setTarget("tiny"))
    assert torch.equal(model(torch.ones(3)), torch.full((3,), 2.0))
    assert torch.equal(model(-torch.ones(3)), torch.full((3,), -2.0))


def test_choices_that_popart_has_are_popart_s() -> None:
    assert poptorch.SyncPattern is popart.SyncPattern
    assert poptorch.ReductionType is popart.ReductionType
    assert poptorch.ConnectionType is popart.DeviceConnectionType
    assert poptorch.MeanReductionStrategy is popart.MeanReductionStrategy
