"""What a program learns of its place, what sessions take of it, and what they refuse."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from training import model

from cli.info import info
from cli.programs.sdk import importable
from simulator import popart, popdist, poplar
from simulator.compiler.global_exchange import cross_replica_cost
from simulator.graph.machine.target import TARGETS, Target
from simulator.instances.placement import VARIABLE, Placement
from simulator.popdist import calls
from simulator.popdist import popart as popdist_popart
from simulator.popdist.tensorflow import set_ipu_config

FARTHEST = 119  # cycles of the farthest internal exchange, before and behind the links


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Placement(instance=1, instances=2, replicas=8, ipus_per_replica=2, ilds=2)
    monkeypatch.setenv(VARIABLE, place.as_text())


def session(options: popart.SessionOptions, ipus: int) -> popart.TrainingSession:
    device = popart.DeviceManager().createIpuModelDevice({"numIPUs": ipus, "ipuVersion": "tiny"})
    return popart.TrainingSession(
        model(), popart.DataFlow(1, ["y"]), [popart.IdentityLoss("y", "loss")],
        popart.SGD(0.1), device, userOptions=options,
    )  # fmt: skip


def test_a_program_by_itself_is_the_one_instance() -> None:
    assert not popdist.isPopdistEnvSet() and popdist.isBackendInitialized()
    assert (popdist.getNumInstances(), popdist.getNumTotalReplicas()) == (1, 1)
    assert (popdist.getInstanceIndex(), popdist.getReplicaIndexOffset()) == (0, 0)


@pytest.mark.usefixtures("second_of_two")
def test_calls_are_what_poprun_was_asked_for() -> None:
    assert popdist.isPopdistEnvSet() and not popdist.isBackendInitialized()
    assert (popdist.getInstanceIndex(), popdist.getNumInstances()) == (1, 2)
    assert (popdist.getNumTotalReplicas(), popdist.getNumLocalReplicas()) == (8, 4)
    assert popdist.getReplicaIndexOffset() == 4
    assert popdist.getNumIpusPerReplica() == 2
    assert popdist.checkNumIpusPerReplica(2) and not popdist.checkNumIpusPerReplica(4)
    device = popart.DeviceManager().acquireDeviceById(popdist.getDeviceId())
    assert device.numIpus == 8
    device.detach()
    assert popdist_popart.getDevice(1, ipuVersion="tiny").numIpus == 4
    assert popdist_popart.getDevice(ipuVersion="tiny").numIpus == 8


@pytest.mark.usefixtures("second_of_two")
def test_a_configuration_of_tensorflow_learns_instances_and_ipus() -> None:
    def new() -> Any:
        distribution = SimpleNamespace(process_count=1, process_index=0)
        return SimpleNamespace(
            experimental=SimpleNamespace(multi_replica_distribution=distribution)
        )

    config = new()
    assert set_ipu_config(config, ipus_per_replica=1) is config
    assert vars(config.experimental.multi_replica_distribution) == {
        "process_count": 2,
        "process_index": 1,
    }
    device = popart.DeviceManager().acquireDeviceById(config.select_ipus[0])
    assert device.numIpus == 4
    device.detach()
    assert not hasattr(set_ipu_config(new(), 1, configure_device=False), "select_ipus")


@pytest.mark.usefixtures("second_of_two")
def test_options_of_a_session_have_the_replicas_of_all() -> None:
    options = popart.SessionOptions(accumulationAndReplicationReductionType="Mean")
    popdist_popart.configureSessionOptions(options)
    assert (options.replicas, options.total_replicas, options.globalReplicaOffset) == (4, 8, 4)
    assert options.share == 1 / 8


@pytest.mark.usefixtures("second_of_two")
@pytest.mark.parametrize(
    ("total", "first", "said"),
    [(8, 0, "this is instance 1 of 2"), (16, 4, "this is instance 1 of 2"),
     (12, 4, "powers of two are needed"), (8, 2, "powers of two are needed"),
     (8, 8, "powers of two are needed")],
)  # fmt: skip
def test_replicas_that_are_not_those_of_the_run_are_refused(
    total: int, first: int, said: str
) -> None:
    options = popart.SessionOptions(
        enableReplicatedGraphs=True, replicatedGraphCount=4, globalReplicaOffset=first,
        enableDistributedReplicatedGraphs=True, globalReplicationFactor=total,
    )  # fmt: skip
    with pytest.raises(popart.popart_exception, match=said):
        session(options, 4)


def test_replicas_of_others_need_poprun() -> None:
    options = popart.SessionOptions(
        enableDistributedReplicatedGraphs=True, globalReplicationFactor=2
    )
    with pytest.raises(popart.popart_exception, match="1 of 2 replicas are here; start the"):
        session(options, 1)


def two_replicas(target: Target, size: int) -> int:
    """Return the cycles in which two replicas of one IPU swap so many bytes of one tile."""
    one = np.zeros(1, dtype=np.int64)
    cost = cross_replica_cost(target, np.array([1, 0]), one, one, one + size, one)
    return int(cost.cycles[0])


@pytest.mark.parametrize("size", [4, 400_000])
def test_replicas_in_two_link_domains_swap_over_gateway_links(size: int) -> None:
    one_host = TARGETS["mk2"]
    two_hosts = Target.createIPUTarget(1, "mk2", {"ipuLinkDomainSize": 1})
    clock, tile = 1.33e9, math.ceil(size / one_host.exchange_bytes_per_cycle)
    links = math.ceil(8 * size / (4 * 0.85 * 128 * 1024**3) * clock)
    assert two_replicas(one_host, size) == (FARTHEST + math.ceil(15e-9 * clock) + max(links, tile))
    gateways = math.ceil(8 * size / 200e9 * clock)
    assert two_replicas(two_hosts, size) == FARTHEST + math.ceil(2e-6 * clock) + max(gateways, tile)


def test_gateway_links_are_shared_by_four_ipus() -> None:
    target = Target.createIPUTarget(1, "mk2", {"ipuLinkDomainSize": 4})
    size, one = 400_000, np.zeros(1, dtype=np.int64)
    across = np.arange(8) ^ 4
    cost = cross_replica_cost(target, across, one, one, one + size, one)
    busiest = math.ceil(8 * 4 * size / 200e9 * 1.33e9)
    tile = size // target.exchange_bytes_per_cycle
    expected = FARTHEST + math.ceil(2e-6 * 1.33e9) + max(busiest, tile)
    assert int(cost.cycles[0]) == expected
    inside = cross_replica_cost(target, np.arange(8) ^ 1, one, one, one + size, one)
    assert int(inside.cycles[0]) < expected


@pytest.mark.parametrize(("domain", "said"), [(1, True), (2, False)])
def test_info_says_what_links_between_hosts_rest_on(
    domain: int, said: bool, tmp_path: Path
) -> None:
    target = Target.createIPUTarget(2, "tiny", {"ipuLinkDomainSize": domain})
    graph = poplar.Graph(target, 2)
    here, there = (graph.addVariable(poplar.FLOAT, [4], name) for name in ("here", "there"))
    for variable in (here, there):
        graph.setTileMapping(variable, 0)
    swap = poplar.program.CrossReplicaCopy(here, there, {0: 1, 1: 0})
    poplar.Engine(
        graph, swap, {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    )  # fmt: skip
    text = " ".join(CliRunner().invoke(info, [str(tmp_path)]).output.split())
    assert ("links estimate: GW-Links between hosts: 200 Gbit/s for every 4 IPUs" in text) == said


def test_popdist_is_importable_by_its_name() -> None:
    with importable():
        import popdist
        import popdist.popart

        assert popdist.getNumInstances is calls.getNumInstances
        assert popdist.popart.getDevice is popdist_popart.getDevice
