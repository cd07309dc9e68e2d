"""Modules train on the device as in PyTorch: losses, weights and the statistics of batch norms."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

from simulator import poptorch  # noqa: E402 - asked for behind torch
from simulator.poptorch.exporting import export as exporting  # noqa: E402
from simulator.poptorch.exporting.exported import Exported  # noqa: E402
from tests.poptorch.modules import Convolutions, Trained, encoder, mlp  # noqa: E402

STEPS = 20
Optimizers = dict[str, Callable[[Any], Any]]
OPTIMIZERS: Optimizers = {
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=1e-3),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5),
    "lamb": lambda p: poptorch.optim.LAMB(p, lr=1e-2, weight_decay=0.1),
}


def options(*, trace: bool = False) -> poptorch.Options:
    made = poptorch.Options().setTarget("tiny")
    made.Jit.traceModel(trace)
    return made


def batches(count: int, size: int, *shape: int, classes: int = 4) -> list[tuple[Any, Any]]:
    torch.manual_seed(2)
    return [(torch.randn(size, *shape), torch.randint(0, classes, (size,))) for _ in range(count)]


def torch_losses(
    module: Any, optimizer: Any, data: list[tuple[Any, Any]], parts: int = 1
) -> list[float]:
    """Train in PyTorch; a step adds up the gradients of `parts` micro-batches, as their mean."""
    losses = []
    for x, labels in data:
        optimizer.zero_grad()
        for a, b in zip(x.chunk(parts), labels.chunk(parts), strict=True):
            loss = module(a, b)[1]
            (loss / parts).backward()
        losses.append(float(loss.detach()))
        optimizer.step()
    return losses


def compare(
    module: Any, make: Callable[[Any], Any], data: Any, chosen: Any, parts: int = 1
) -> tuple[Any, Any]:
    """Train in both ways; return both modules after the losses were found equal."""
    torch.manual_seed(3)
    mine, theirs = copy.deepcopy(module), copy.deepcopy(module)
    model = poptorch.trainingModel(mine, chosen, make(mine.parameters()))
    found = [float(model(x, labels)[1].reshape(-1)[-1]) for x, labels in data]
    wanted = torch_losses(theirs, make(theirs.parameters()), data, parts)
    assert found == pytest.approx(wanted, rel=1e-4)
    model.copyWeightsToHost()
    return mine, theirs


def assert_same_state(mine: Any, theirs: Any, within: float = 1e-4) -> None:
    for name, wanted in theirs.state_dict().items():
        found = mine.state_dict()[name]
        assert torch.allclose(found, wanted, rtol=within, atol=within), name


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_and_weights_are_those_of_torch(name: str) -> None:
    torch.manual_seed(1)
    data = batches(STEPS, 6, 8)
    assert_same_state(*compare(Trained(mlp()), OPTIMIZERS[name], data, options()))


@pytest.mark.parametrize("trace", [False, True], ids=["export", "trace"])
def test_batch_norms_train_and_their_statistics_come_back(trace: bool) -> None:
    torch.manual_seed(1)
    data = batches(STEPS, 6, 3, 8, 8)
    made = compare(Trained(Convolutions()), OPTIMIZERS["momentum"], data, options(trace=trace))
    assert_same_state(*made)
    assert int(made[0].inner.body[1].num_batches_tracked) == STEPS


def test_a_frozen_batch_norm_keeps_its_statistics() -> None:
    torch.manual_seed(1)
    module = Trained(Convolutions())
    module.inner.body[1].eval()
    mine, theirs = compare(module, OPTIMIZERS["momentum"], batches(5, 6, 3, 8, 8), options())
    assert_same_state(mine, theirs)
    assert int(mine.inner.body[1].num_batches_tracked) == 0


def test_a_transformer_trains_as_in_torch() -> None:
    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = encoder(), torch.nn.Linear(16, 4)

        def forward(self, x: Any) -> Any:
            return self.head(self.encoder(x).mean(1))

    torch.manual_seed(1)
    data = batches(STEPS, 2, 5, 16)
    # Losses alone: the gradient of a key's bias is 0 but for rounding, which Adam makes large.
    compare(Trained(Classifier()), OPTIMIZERS["adamw"], data, options())


def test_micro_batches_make_one_change() -> None:
    torch.manual_seed(1)
    chosen = options()
    chosen.Training.gradientAccumulation(4)
    data = batches(STEPS, 8, 8)
    assert_same_state(*compare(Trained(mlp()), OPTIMIZERS["momentum"], data, chosen, parts=4))


def test_replicas_make_one_change() -> None:
    torch.manual_seed(1)
    chosen = options().replicationFactor(2)
    data = batches(STEPS, 8, 8)
    assert_same_state(*compare(Trained(mlp()), OPTIMIZERS["adam"], data, chosen, parts=2))


def test_a_pipeline_of_two_ipus_trains_as_its_schedule_does_in_torch() -> None:
    torch.manual_seed(1)
    module = Trained(mlp())
    module.inner[2] = poptorch.BeginBlock(module.inner[2], "second", ipu_id=1)
    chosen = options()
    chosen.Training.gradientAccumulation(4)
    data = batches(STEPS, 8, 8)
    mine, theirs = compare(module, OPTIMIZERS["momentum"], data, chosen, parts=4)
    assert_same_state(mine, theirs)


STRATEGIES = {
    "named": [
        poptorch.Stage("first").ipu(0),
        poptorch.Stage("middle").ipu(1),
        poptorch.Stage("last").ipu(0),
    ],
    "counted": [poptorch.AutoStage.AutoIncrement],
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_first_and_last_stage_share_an_ipu_and_a_weight(name: str) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(8, 8) / 3)
            self.middle = torch.nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            with poptorch.Block("first", ipu_id=0):
                x = torch.tanh(x @ self.weight)
            with poptorch.Block("middle", ipu_id=1):
                x = torch.tanh(self.middle(x))
            with poptorch.Block("last", ipu_id=0):
                return x @ self.weight.T

    torch.manual_seed(1)
    chosen = options()
    chosen.Training.gradientAccumulation(4)
    chosen.setExecutionStrategy(poptorch.PipelinedExecution(*STRATEGIES[name]))
    data = batches(STEPS, 8, 8)
    assert_same_state(*compare(Trained(Tied()), OPTIMIZERS["momentum"], data, chosen, parts=4))


def test_what_is_not_given_to_the_optimiser_or_wants_no_gradient_stays() -> None:
    torch.manual_seed(1)
    module = Trained(mlp())
    module.inner[0].bias.requires_grad_(False)
    before = copy.deepcopy(module.state_dict())
    optimizer = torch.optim.SGD([module.inner[0].bias, module.inner[0].weight], lr=0.5)
    model = poptorch.trainingModel(module, options(), optimizer)
    for x, labels in batches(2, 4, 8):
        model(x, labels)
    model.copyWeightsToHost()
    changed = {n for n, t in module.state_dict().items() if not torch.equal(t, before[n])}
    assert changed == {"inner.0.weight"}


def test_groups_have_values_of_their_own_and_a_rate_can_change() -> None:
    torch.manual_seed(1)
    module = Trained(mlp())
    theirs = copy.deepcopy(module)

    def made(owner: Any, factor: float = 1.0) -> Any:
        first, last = owner.inner[0].parameters(), owner.inner[2].parameters()
        groups = [{"params": first}, {"params": last, "lr": 0.5 * factor}]
        return torch.optim.SGD(groups, lr=0.1 * factor)

    data = batches(6, 4, 8)
    model = poptorch.trainingModel(module, options(), made(module))
    found = [float(model(x, labels)[1]) for x, labels in data[:3]]
    model.setOptimizer(made(module, 0.1))
    found += [float(model(x, labels)[1]) for x, labels in data[3:]]
    wanted = torch_losses(theirs, made(theirs), data[:3])
    wanted += torch_losses(theirs, made(theirs, 0.1), data[3:])
    assert found == pytest.approx(wanted, rel=1e-4)


def test_inference_follows_the_training_of_the_same_module() -> None:
    torch.manual_seed(1)
    module = Trained(mlp())
    training = poptorch.trainingModel(module, options(), OPTIMIZERS["adam"](module.parameters()))
    inference = poptorch.inferenceModel(module, options())
    (x, labels), *_ = batches(1, 4, 8)
    before = inference(x)
    training(x, labels)
    after = inference(x)
    assert not torch.allclose(before, after)
    assert torch.allclose(after, module(x), atol=1e-6)


def test_a_norm_that_the_exporter_fuses_is_refused(monkeypatch: Any) -> None:
    real = exporting.export_program

    def fused(*given: Any) -> Exported:
        made = real(*given)
        nodes = [node for node in made.model.graph.node if node.op_type != "BatchNormalization"]
        del made.model.graph.node[:]
        made.model.graph.node.extend(nodes)
        return made

    monkeypatch.setattr(exporting, "export_program", fused)
    module = Trained(Convolutions())
    (x, labels), *_ = batches(1, 4, 3, 8, 8)
    with pytest.raises(
        poptorch.Error, match=r"1 batch norms run and 0 are exported.*inner\.body\.1"
    ):
        poptorch.trainingModel(module, options())(x, labels)


def test_a_weight_that_the_exporter_folds_away_is_refused_by_name(monkeypatch: Any) -> None:
    real = exporting.export_program

    def folded(*given: Any) -> Exported:
        made = real(*given)
        del made.weights["inner.0.weight"]
        return made

    monkeypatch.setattr(exporting, "export_program", folded)
    (x, labels), *_ = batches(1, 4, 8)
    with pytest.raises(poptorch.Error, match=r"the weight 'inner\.0\.weight' is folded away"):
        poptorch.trainingModel(Trained(mlp()), options())(x, labels)


def test_a_buffer_that_forward_changes_is_refused_by_name() -> None:
    class Counts(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1))
            self.fc = torch.nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            self.seen += 1
            return self.fc(x)

    (x, labels), *_ = batches(1, 4, 8)
    with pytest.raises(poptorch.Error, match=r"buffer 'inner\.seen'"):
        poptorch.trainingModel(Trained(Counts()), options())(x, labels)


def test_a_module_without_a_loss_is_refused() -> None:
    with pytest.raises(poptorch.Error, match="no loss to train by"):
        poptorch.trainingModel(mlp(), options())(torch.randn(2, 8))
