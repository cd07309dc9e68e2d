"""Modules of PyTorch on the device give PyTorch's values, by both exporters."""

from __future__ import annotations

import re
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

from simulator import poptorch  # noqa: E402 - asked for behind torch
from tests.poptorch.modules import MODULES, seeded  # noqa: E402

ROOMY = {"debug.allowOutOfMemory": True}


def options(*, trace: bool = False) -> poptorch.Options:
    made = poptorch.Options().setTarget("tiny")
    made._Popart.set("engineOptions", dict(ROOMY))
    made.Jit.traceModel(trace)
    return made


def relative(found: Any, wanted: Any) -> float:
    return float((found - wanted).abs().max() / wanted.abs().max())


@pytest.mark.parametrize("trace", [False, True], ids=["export", "trace"])
@pytest.mark.parametrize("name", MODULES)
def test_values_are_those_of_torch(name: str, trace: bool) -> None:
    if name in ("vit", "bert", "gpt2"):
        pytest.importorskip("transformers")
    module, data = seeded(name)
    with torch.no_grad():
        wanted = module(data)
    found = poptorch.inferenceModel(module, options(trace=trace))(data)
    assert relative(found, wanted) < 1e-5


@pytest.mark.parametrize(
    ("name", "trace"),
    [*((name, name != "gpt2") for name in MODULES), ("mlp", False), ("convolutions", False),
     ("encoder", False)],  # TorchScript writes GPT-2's layer norms with floats among the halves
)  # fmt: skip
def test_halves_are_those_of_torch_as_far_as_halves_go(name: str, trace: bool) -> None:
    if name in ("vit", "bert", "gpt2"):
        pytest.importorskip("transformers")
    module, data = seeded(name)
    with torch.no_grad():
        wanted = module(data)
    halves = data.half() if data.is_floating_point() else data
    found = poptorch.inferenceModel(module.half(), options(trace=trace))(halves)
    assert found.dtype == torch.float16
    assert relative(found.float(), wanted) < 2e-2


def test_a_module_returns_what_it_returns_in_torch() -> None:
    class Several(torch.nn.Module):
        def forward(self, x: Any, scale: float = 1.0) -> dict[str, Any]:
            return {"twice": x * 2 * scale, "none": None, "pair": (x + 1, x.sum())}

    x = torch.arange(6.0).reshape(2, 3)
    found = poptorch.inferenceModel(Several(), options())(x, scale=3.0)
    assert found["none"] is None and list(found) == ["twice", "none", "pair"]
    assert torch.equal(found["twice"], x * 6) and torch.equal(found["pair"][0], x + 1)
    assert found["pair"][1].shape == () and float(found["pair"][1]) == 15


def test_batches_of_a_call_come_back_one_behind_the_other() -> None:
    module, _ = seeded("mlp")
    chosen = options().deviceIterations(3).replicationFactor(2)
    data = torch.randn(12, 8)
    found = poptorch.inferenceModel(module, chosen)(data)
    assert torch.allclose(found, module(data), atol=1e-6)


def test_an_inference_follows_a_change_of_the_modules_weights() -> None:
    module, data = seeded("mlp")
    model = poptorch.inferenceModel(module, options())
    model(data)
    with torch.no_grad():
        module[0].weight.mul_(2)
    model.copyWeightsToDevice()
    assert torch.allclose(model(data), module(data), atol=1e-6)


class Chooses(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x[x > 0].sum()


class Complex(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Hidden()

    def forward(self, x: Any) -> Any:
        return self.part(x)


class Hidden(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.linalg.eigvals(x).real


class Large(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x + torch.tensor([1 << 40, 2])


@pytest.mark.parametrize(
    ("module", "data", "words"),
    [
        (Chooses(), torch.ones(4), ["Chooses", "data", "test_inference_of_modules.py:"]),
        (Complex(), torch.eye(3), ["part", "linalg_eig ", "test_inference_of_modules.py:"]),
        (Large(), torch.tensor([1, 2]), ["Large", "1099511627776", "32 bits"]),
    ],
)
def test_what_cannot_run_is_refused_in_one_line_with_module_and_place(
    module: Any, data: Any, words: list[str]
) -> None:
    with pytest.raises(RuntimeError) as refused:
        poptorch.inferenceModel(module, options())(data)
    text = str(refused.value)
    assert "\n" not in text and len(text) < 400
    assert [word for word in words if word not in text] == []


class Applied(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


class Part(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.part = Applied(function)

    def forward(self, x: Any) -> Any:
        return self.part(x)


FAULTS = {
    "eigvals has no counterpart in ONNX": lambda x: torch.linalg.eigvals(x).real,
    "size depends on the data": lambda x: x[x > 0],
    "custom_op 'Cube'": lambda x: poptorch.custom_op([x], name="Cube"),
    "for_loop: count is -1": lambda x: poptorch.for_loop(-1, lambda y: y, [x]),
    "set_available_memory: 3": lambda x: poptorch.set_available_memory(x @ x, 3),
}


@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize("words", FAULTS)
def test_faults_within_forward_have_the_modules_path_and_the_users_line(
    words: str, trace: bool, capfd: Any
) -> None:
    with pytest.raises(poptorch.Error) as refused:
        poptorch.inferenceModel(Part(FAULTS[words]), options(trace=trace))(torch.eye(3))
    place, _, cause = str(refused.value).partition(": ")
    assert re.fullmatch(r"module 'part' \(\S*test_inference_of_modules\.py:\d+\)", place)
    assert words.replace("eigvals", "") in cause and "\n" not in cause
    assert capfd.readouterr().out == ""


def test_a_trace_tells_where_it_keeps_a_branch_of_its_example(caplog: Any) -> None:
    poptorch.log.logger.propagate = True
    try:
        branch = Part(lambda x: x if x.sum() > 0 else -x)
        poptorch.inferenceModel(branch, options(trace=True))(torch.ones(3))
    finally:
        poptorch.log.logger.propagate = False
    assert re.search(r"test_inference_of_modules\.py:\d+: a trace keeps", caplog.text)


def test_a_weight_of_a_type_that_the_device_has_not_is_refused_by_name() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3).bfloat16())
    with pytest.raises(poptorch.Error, match=r"module '0'.*'0\.weight' is bfloat16"):
        poptorch.inferenceModel(module, options())(torch.ones(3).bfloat16())


INPUTS = {
    "argument 0 has the value 2147483648; the device holds 32 bits": torch.tensor([1, 2**31]),
    "argument 0 has the value -2147483649; the device holds 32 bits": torch.tensor([-(2**31) - 1]),
    "argument 0 is bfloat16; the device has none: use half() or float()": torch.ones(2).bfloat16(),
    "argument 0 is complex64; the device has none: use half() or float()": torch.ones(2) * 1j,
}


@pytest.mark.parametrize("cause", INPUTS)
def test_an_input_that_the_device_cannot_hold_is_refused_before_it_compiles(cause: str) -> None:
    model = poptorch.inferenceModel(Part(lambda x: x + x), options())
    with pytest.raises(poptorch.Error) as refused:
        model(INPUTS[cause])
    place, _, said = str(refused.value).partition(": ")
    assert re.fullmatch(r"module 'part' \(\S*test_inference_of_modules\.py:\d+\)", place)
    assert (said, model.isCompiled()) == (cause, False)


@pytest.mark.parametrize("trace", [True, False])
def test_a_number_that_does_not_fit_is_refused_in_a_later_call_too(trace: bool) -> None:
    model = poptorch.inferenceModel(Part(lambda x: x // 2), options(trace=trace))
    fits = torch.tensor([2**31 - 1, -(2**31)])
    assert torch.equal(model(fits), fits // 2)
    with pytest.raises(poptorch.Error, match=r"module 'part' .*2147483648; the device holds 32"):
        model(fits + 1)


def test_neighbours_are_subtracted_by_a_trace_as_in_torch() -> None:
    class Differences(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.diff(x, n=2), torch.diff(x, dim=0, prepend=x[:1])

    x = torch.randn(3, 5)
    found = poptorch.inferenceModel(Differences(), options(trace=True))(x)
    for mine, wanted in zip(found, Differences()(x), strict=True):
        assert torch.allclose(mine, wanted, atol=1e-6)


def test_another_shape_than_compiled_for_is_refused() -> None:
    module, data = seeded("mlp")
    model = poptorch.inferenceModel(module, options())
    model(data)
    with pytest.raises(poptorch.Error, match=r"compiled for float32 \[3, 8\]"):
        model(torch.randn(2, 8))


def test_report_names_modules_classes_and_lines(tmp_path: Any, monkeypatch: Any) -> None:
    module, data = seeded("convolutions")
    module.train()
    report = poptorch.report(module, data, target="tiny", out=tmp_path / "run")
    assert module.training and module.body[1].training
    contexts = report.frames.debug_contexts()
    rows = contexts[contexts["layer"] == "poptorch"]
    assert {"body.0", "body.1", "fc", "Convolutions"} <= set(rows["name"])
    norm = rows[rows["name"] == "body.1"].iloc[0]
    assert '"class":"torch.nn.modules.batchnorm.BatchNorm2d"' in norm["json"]
    assert norm["file"].endswith("modules.py") and norm["line"] > 0
    assert not str(norm["file"]).startswith("/")
