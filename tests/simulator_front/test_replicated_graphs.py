"""Replicas, both ways: a view of a graph that adds everything several times, and a whole graph."""

import io

import numpy as np
import pytest

from simulator import poplar, popops
from simulator.poplar import program

REPLICAS, TILES = 2, 4


class Add(poplar.Vertex):
    left = poplar.Input(poplar.Vector(poplar.FLOAT))
    right = poplar.Input(poplar.Vector(poplar.FLOAT))
    out = poplar.Output(poplar.Vector(poplar.FLOAT))

    def compute(self):
        self.out[:] = self.left + self.right


def device_of(ipus=REPLICAS):
    return poplar.IPUModel("mk2", numIPUs=ipus, tilesPerIPU=TILES).createDevice()


@pytest.fixture(params=["a view of a graph", "a graph from its start"])
def replicated(request):
    """Return a device, the graph of its replicas and the graph for the engine."""
    device = device_of()
    if request.param == "a view of a graph":
        whole = poplar.Graph(device.getTarget())
        return device, whole.createReplicatedGraph(REPLICAS), whole
    whole = poplar.Graph(device.getTarget(), poplar.replication_factor(REPLICAS))
    return device, whole, whole


def variable(graph, name, size=3, tile=1):
    tensor = graph.addVariable(poplar.FLOAT, [size], name)
    graph.setTileMapping(tensor, tile)
    return tensor


def session(device, graph, prog, **options):
    engine = poplar.Engine(graph, prog, options)
    engine.load(device)
    return engine


def test_every_replica_computes_with_values_of_its_own(replicated):
    device, graph, whole = replicated
    left, right, out = (variable(graph, name) for name in ("left", "right", "out"))
    compute_set = graph.addComputeSet("add")
    vertex = graph.addVertex(compute_set, Add, {"left": left, "right": right, "out": out}, tile=2)
    graph.setPerfEstimate(vertex, 10)
    graph.createHostWrite("left", left)
    graph.createHostRead("out", out)
    prog = program.Sequence(program.Copy(left, right), program.Execute(compute_set))
    engine = session(device, whole, prog)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    engine.writeTensor("left", values)
    engine.run()
    assert np.array_equal(engine.readTensor("out"), values * 2)
    assert graph.getReplicationFactor() == REPLICAS


def test_library_operations_work_on_every_replica(replicated):
    device, graph, whole = replicated
    data = variable(graph, "data")
    prog = program.Sequence()
    total = popops.add(graph, data, data, prog)
    graph.createHostWrite("data", data)
    graph.createHostRead("total", total)
    engine = session(device, whole, prog)
    engine.writeTensor("data", np.arange(6, dtype=np.float32))
    engine.run()
    assert engine.readTensor("total").tolist() == [[0, 2, 4], [6, 8, 10]]


def test_a_stream_gives_each_replica_data_of_its_own_or_all_the_same(replicated):
    device, graph, whole = replicated
    modes = poplar.ReplicatedStreamMode
    read = {}
    for mode in (modes.REPLICATE, modes.BROADCAST):
        data = variable(graph, mode.name)
        stream = graph.addHostToDeviceFIFO(f"{mode.name} in", poplar.FLOAT, 3, mode)
        graph.createHostRead(mode.name, data)
        read[mode.name] = program.Copy(stream, data)
    engine = session(device, whole, program.Sequence(*read.values()))
    for mode in read:
        engine.connectStream(f"{mode} in", np.arange(6, dtype=np.float32))
    engine.run()
    assert engine.readTensor("REPLICATE").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert engine.readTensor("BROADCAST").tolist() == [[0, 1, 2], [0, 1, 2]]
    engine.run()
    assert engine.readTensor("BROADCAST").tolist() == [[3, 4, 5], [3, 4, 5]]


def test_streams_to_the_host_and_remote_buffers_are_kept_apart(replicated):
    device, graph, whole = replicated
    data, back = variable(graph, "data"), variable(graph, "back")
    buffer = graph.addRemoteBuffer("rows", poplar.FLOAT, 3)
    out = graph.addDeviceToHostFIFO("out", poplar.FLOAT, 3)
    graph.createHostWrite("data", data)
    steps = program.Copy(data, buffer), program.Copy(buffer, back), program.Copy(back, out)
    engine = session(device, whole, program.Sequence(*steps))
    received = np.zeros(6, dtype=np.float32)
    engine.connectStream("out", received)
    engine.writeTensor("data", np.arange(6, dtype=np.float32))
    engine.run()
    assert received.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_copy_between_replicas_follows_its_map(replicated):
    device, graph, whole = replicated
    data, other = variable(graph, "data"), variable(graph, "other")
    graph.createHostWrite("data", data)
    graph.createHostRead("other", other)
    engine = session(device, whole, program.CrossReplicaCopy(data, other, {0: 1, 1: 0}))
    engine.writeTensor("data", np.arange(6, dtype=np.float32))
    engine.run()
    assert engine.readTensor("other").tolist() == [[3, 4, 5], [0, 1, 2]]


@pytest.mark.parametrize("wrong", [{0: 1}, {0: 0, 1: 0}, {0: 1, 1: 2}])
def test_a_replica_map_that_leaves_one_out_is_refused(replicated, wrong):
    _, graph, _ = replicated
    data, other = variable(graph, "data"), variable(graph, "other")
    with pytest.raises(poplar.PoplarError, match="each of the replicas 0 to 1 must stand once"):
        program.CrossReplicaCopy(data, other, wrong)


def test_replicas_of_a_whole_graph_decide_for_themselves():
    device = device_of()
    graph = poplar.Graph(device.getTarget(), poplar.replication_factor(REPLICAS))
    data, flag = variable(graph, "data", 1), variable(graph, "flag", 1)
    graph.createHostWrite("flag", flag)
    graph.createHostRead("data", data)
    prog = program.Sequence()
    popops.addInPlace(graph, data, flag, prog)
    engine = session(device, graph, program.If(flag, program.Repeat(3, prog)))
    engine.writeTensor("flag", np.array([0, 5], dtype=np.float32))
    engine.run()
    assert engine.readTensor("data").tolist() == [[0], [15]]


def test_replicas_that_miss_one_another_at_a_copy_are_reported():
    device = device_of()
    graph = poplar.Graph(device.getTarget(), poplar.replication_factor(REPLICAS))
    data, other, flag = (variable(graph, name, 1) for name in ("data", "other", "flag"))
    graph.createHostWrite("flag", flag)
    copy = program.CrossReplicaCopy(data, other, {0: 1, 1: 0}, "swap")
    engine = session(device, graph, program.If(flag, copy))
    engine.writeTensor("flag", np.array([0, 1], dtype=np.float32))
    with pytest.raises(poplar.PoplarError, match="'swap': not all replicas came to it"):
        engine.run()


def test_a_parent_sees_the_replicas_as_one_tensor_and_adds_to_one_alone():
    device = device_of()
    whole = poplar.Graph(device.getTarget())
    part = whole.createReplicatedGraph(REPLICAS)
    data = variable(part, "data", tile=3)
    joined = part.getNonReplicatedTensor(data)
    assert joined.shape == (2, 3)
    assert whole.getTileMapping(joined)[3] == [(0, 3)]
    assert whole.getTileMapping(joined)[7] == [(3, 6)]
    only = variable(whole, "only", tile=7)
    whole.createHostRead("only", only)
    whole.createHostWrite("data", joined)
    engine = session(device, whole, program.Copy(joined[1], only))
    engine.writeTensor("data", np.arange(6, dtype=np.float32))
    engine.run()
    assert engine.readTensor("only").tolist() == [3, 4, 5]


def test_a_graph_replicated_from_its_start_has_no_parent():
    graph = poplar.Graph(device_of().getTarget(), poplar.replication_factor(REPLICAS))
    data = variable(graph, "data")
    for ask in (graph.getTopLevelGraph, lambda: graph.getNonReplicatedTensor(data)):
        with pytest.raises(poplar.PoplarError, match="replicated from its start has no parent"):
            ask()


def test_what_a_replica_has_not_is_refused():
    whole = poplar.Graph(device_of().getTarget())
    part = whole.createReplicatedGraph(REPLICAS)
    alone, data = variable(whole, "alone"), variable(part, "data")
    with pytest.raises(poplar.PoplarError, match=r"'alone'.*has 1 replica"):
        popops.add(part, data, alone, program.Sequence())
    with pytest.raises(poplar.PoplarError, match="is a replica already"):
        part.createReplicatedGraph(1)
    with pytest.raises(poplar.PoplarError, match="3 replicas of 2 IPUs"):
        whole.createReplicatedGraph(3)
    with pytest.raises(poplar.PoplarError, match="3 replicas of 2 IPUs"):
        poplar.Graph(whole.getTarget(), poplar.replication_factor(3))


def test_views_of_a_replica_add_to_one_compute_set():
    device = device_of()
    whole = poplar.Graph(device.getTarget())
    part = whole.createReplicatedGraph(REPLICAS)
    data, out = variable(part, "data", 2), variable(part, "out", 2)
    compute_set = part.addComputeSet("add")
    for graph, tile, at in ((part.createVirtualGraph([1]), 0, 0), (part, 3, 1)):
        fields = {"left": data[at : at + 1], "right": data[at : at + 1], "out": out[at : at + 1]}
        vertex = graph.addVertex(compute_set, Add, fields, tile=tile)
        graph.setPerfEstimate(vertex, 10)
    assert sorted(tile for g in whole.vertex_groups() for tile in g.tile.tolist()) == [1, 3, 5, 7]


def test_printing_shows_every_replica(replicated):
    device, graph, whole = replicated
    data = variable(graph, "data", 1)
    graph.createHostWrite("data", data)
    engine = session(device, whole, program.PrintTensor("data", data))
    seen = io.StringIO()
    engine.setPrintStream(seen)
    engine.writeTensor("data", np.array([1, 2], dtype=np.float32))
    engine.run()
    assert [text for text in "12" if text in seen.getvalue()] == ["1", "2"]


def test_every_replica_knows_its_number(replicated):
    device, graph, whole = replicated
    number = graph.addReplicationIndexConstant()
    graph.setTileMapping(number, 1)
    graph.createHostRead("number", number)
    engine = session(device, whole, program.Sequence())
    assert engine.readTensor("number").tolist() == [0, 1]


def test_the_clocks_are_those_of_the_replica_that_is_profiled():
    cycles = []
    for replica in range(REPLICAS):
        device = device_of()
        graph = poplar.Graph(device.getTarget(), poplar.replication_factor(REPLICAS))
        number = graph.addReplicationIndexConstant()
        graph.setTileMapping(number, 1)
        body = program.Sequence()
        popops.addInPlace(graph, variable(graph, "a"), variable(graph, "b"), body)
        prog = program.If(number, program.Repeat(3, body))
        engine = session(device, graph, prog, **{"profiler.replicaToProfile": replica})
        engine.run()
        profile = engine.getExecutionProfile()["simulation"]
        cycles.append(
            (profile["cycles"], [s["type"] for s in profile["steps"]].count("OnTileExecute"))
        )
    assert [executed for _, executed in cycles] == [0, 3]
    assert cycles[0][0] < cycles[1][0]


def test_a_replica_that_is_not_there_cannot_be_profiled():
    graph = poplar.Graph(device_of().getTarget(), poplar.replication_factor(REPLICAS))
    with pytest.raises(poplar.PoplarError, match="replicaToProfile is 2; .* replicas 0 to 1"):
        poplar.Engine(graph, program.Sequence(), {"profiler.replicaToProfile": 2})


@pytest.mark.parametrize("decide", [program.If, program.Switch])
def test_replicas_in_one_program_that_disagree_are_reported(decide):
    device = device_of()
    whole = poplar.Graph(device.getTarget())
    part = whole.createReplicatedGraph(REPLICAS)
    flag = part.addVariable(poplar.INT, [1], "flag")
    part.setTileMapping(flag, 0)
    part.createHostWrite("flag", flag)
    body = [program.Sequence()] if decide is program.If else []
    engine = session(device, whole, decide(flag, *body))
    engine.writeTensor("flag", [3, 3])
    engine.run()
    engine.writeTensor("flag", [0, 3])
    found = r"flag.*replicas (disagree|hold \[0, 3\])"
    with pytest.raises(poplar.PoplarError, match=found):
        engine.run()


@pytest.mark.parametrize("how", ["library", "vertex"])
def test_the_whole_graph_does_not_use_one_replica_of_a_tensor(how):
    whole = poplar.Graph(device_of().getTarget())
    data = variable(whole.createReplicatedGraph(REPLICAS), "data")
    with pytest.raises(poplar.PoplarError, match="'data' has 2 replica.* uses it 1; see getNonRep"):
        if how == "library":
            popops.mul(whole, data, 2.0, program.Sequence())
        else:
            whole.addVertex(whole.addComputeSet("add"), Add, {"left": data})
