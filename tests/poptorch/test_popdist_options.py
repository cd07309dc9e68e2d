"""`popdist.poptorch.Options`: replicas of all instances, data divided among them, calls refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")
pytest.importorskip("onnxscript", reason="needs onnxscript: make test-torch")

from simulator import poptorch  # noqa: E402 - asked for behind torch
from simulator.instances.placement import VARIABLE, Placement  # noqa: E402
from simulator.popdist import poptorch as popdist_poptorch  # noqa: E402

PROGRAM = """
import sys
import torch
from simulator import popdist, poptorch
from simulator.popdist import poptorch as popdist_poptorch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x, y):
        out = self.layer(x)
        return out, poptorch.identity_loss(((out - y) ** 2).mean(), reduction="none")


torch.manual_seed(1)
options = popdist_poptorch.Options() if popdist.isPopdistEnvSet() else poptorch.Options()
if not popdist.isPopdistEnvSet():
    options.replicationFactor(2)
options.setTarget("tiny").outputMode(poptorch.OutputMode.All)
data = torch.utils.data.TensorDataset(torch.randn(24, 4), torch.randn(24, 3))
net = Net()
model = poptorch.trainingModel(net, options, torch.optim.SGD(net.parameters(), lr=0.1))
for x, y in poptorch.DataLoader(options, data, batch_size=2):
    model(x, y)
model.copyWeightsToHost()
torch.save(net.state_dict(), sys.argv[1] + str(popdist.getInstanceIndex()))
"""


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, Placement(instance=1, instances=2, replicas=8).as_text())


@pytest.mark.usefixtures("second_of_two")
def test_replicas_and_processes_are_those_of_the_run() -> None:
    options = popdist_poptorch.Options(ipus_per_replica=2)
    assert (options.replication_factor, options.value("totalReplicas")) == (4, 8)
    assert (options.Distributed.processId, options.Distributed.numProcesses) == (1, 2)
    assert options.value("ipus") == 2


@pytest.mark.usefixtures("second_of_two")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [("useIpuId", (1,)), ("replicationFactor", (2,)), ("Distributed.disable", ()),
     ("Distributed.setEnvVarNames", ("A", "B")), ("Distributed.configureProcessId", (0, 2))],
)  # fmt: skip
def test_what_poprun_says_is_refused(name: str, arguments: tuple[object, ...]) -> None:
    owner = popdist_poptorch.Options()
    *group, setter = name.split(".")
    for part in group:
        owner = getattr(owner, part)
    with pytest.raises(poptorch.Error, match=f"Cannot call `{name}` with popdist.poptorch"):
        getattr(owner, setter)(*arguments)


@pytest.mark.usefixtures("second_of_two")
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_loader_has_every_second_combined_batch(shuffle: bool) -> None:
    options = popdist_poptorch.Options().randomSeed(3)
    loader = poptorch.DataLoader(options, torch.arange(50), batch_size=2, shuffle=shuffle)
    every = torch.arange(50)
    if shuffle:
        every = torch.randperm(50, generator=torch.Generator().manual_seed(3))
    assert len(loader) == 3  # of 8 samples each; 16 of both, and 2 samples are left over
    assert [batch.tolist() for batch in loader] == [
        every[begin : begin + 8].tolist() for begin in (8, 24, 40)
    ]


@pytest.mark.usefixtures("second_of_two")
def test_shuffling_needs_a_seed_that_all_share() -> None:
    with pytest.raises(poptorch.Error, match=r"call Options\.randomSeed"):
        poptorch.DataLoader(popdist_poptorch.Options(), torch.arange(50), shuffle=True)


def test_two_instances_train_as_one_of_two_replicas(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    quiet = {"POPLAR_ENGINE_OPTIONS": '{"autoReport.all": "false"}'}
    poprun = [sys.executable, "-c", "from cli.run import poprun; poprun()", "--launcher",
              "processes", "--num-instances", "2", "--timeout", "60",
              "--out", tmp_path]  # fmt: skip
    for start, name in (([sys.executable], "one"), (poprun, "two")):
        subprocess.run(
            [*start, program, tmp_path / name], check=True, env={**os.environ, **quiet}
        )  # fmt: skip
    alone, *both = (torch.load(tmp_path / name) for name in ("one0", "two0", "two1"))
    for name, values in alone.items():
        assert all(torch.equal(values, found[name]) for found in both)
