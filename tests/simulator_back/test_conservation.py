"""Conservation in whole compiled programs, and in the reports of their runs."""

import numpy as np
import pytest

from pva.check import check
from pva.formats import registry
from simulator import poplar
from simulator.compiler.compile import compile_graph
from simulator.examples import matmul_chain, mlp_digits
from simulator.graph.graph import Graph
from simulator.graph.machine.target import make_target
from simulator.poplar import program


@pytest.fixture(scope="module", params=["matmul_chain", "mlp_digits"])
def executable(request):
    graph = Graph(make_target("mk1", tiles_per_ipu=64))
    if request.param == "matmul_chain":
        return compile_graph(graph, [matmul_chain.build(graph, [(40, 30), (30, 50), (50, 20)])])
    return compile_graph(graph, mlp_digits.build(graph, mlp_digits.load_digits()))


def test_no_exchange_receives_less_than_was_sent(executable):
    for exchange in executable.lowered.exchanges:
        assert 0 < exchange.sent.sum() <= exchange.received.sum()


def test_cycles_by_tile_add_up_to_cycles_by_vertex_type(executable):
    costs = executable.costs
    np.testing.assert_array_equal(costs.active_cycles.sum(axis=1), costs.active_by_type.sum(axis=1))
    assert (costs.active_cycles <= costs.cycles).all()


def test_memory_of_vertices_is_the_same_by_compute_set_and_by_type(executable):
    for part in ("vertex_data", "edge_pointers", "copy_pointers", "descriptors", "padding"):
        by_set = executable.memory.by_compute_set[part].sum(axis=0)
        by_type = executable.memory.by_vertex_type[part].sum(axis=0)
        np.testing.assert_array_equal(by_set, by_type)


def test_what_is_live_at_the_peak_fits_into_what_was_allocated(executable):
    peak = executable.memory.always_live + executable.liveness.max_bytes_by_tile
    assert (peak <= executable.memory.by_tile["total"]).all()


def test_no_two_variables_live_together_share_an_address(executable):
    live, pieces, allocation = executable.liveness, executable.pieces, executable.allocation
    number = len(live.always_live) + 1
    at = np.zeros((number, len(live.program)), dtype=bool)
    for variable, begin, end in zip(live.variable, live.begin, live.end, strict=True):
        at[variable, begin:end] = True
    at[np.append(live.always_live, True)] = True
    for step in range(len(live.program)):
        rows = np.flatnonzero(at[pieces.variable, step])
        order = rows[np.lexsort((allocation.address[rows], pieces.tile[rows]))]
        end = (allocation.address + pieces.bytes)[order][:-1]
        same = pieces.tile[order][1:] == pieces.tile[order][:-1]
        assert (allocation.address[order][1:][same] >= end[same]).all()


class Increment(poplar.Vertex):
    x = poplar.InOut(poplar.Vector(poplar.FLOAT))

    def compute(self):
        self.x[:] += 1


def test_a_report_of_a_long_loop_keeps_every_law(tmp_path):
    device = poplar.IPUModel("tiny").createDevice()
    graph = poplar.Graph(device.getTarget())
    x = graph.addVariable(poplar.FLOAT, [2], "x")
    graph.setTileMapping(x, 3)
    compute_set = graph.addComputeSet("increment")
    vertex = graph.addVertex(compute_set, Increment, {"x": x}, tile=1)
    graph.setPerfEstimate(vertex, 10)
    loop = program.Repeat(600, program.Execute(compute_set))
    options = {"autoReport.all": True, "autoReport.directory": tmp_path}
    engine = poplar.Engine(graph, loop, options)
    engine.load(device)
    engine.run()
    data = registry.read(tmp_path)
    # A turn: sync, exchange in, compute, sync, exchange out; 1,024 steps from snapshot to snapshot.
    assert data.length("steps") == 12 + 5 * 600
    assert len(data.array("tile_clock")) == 3
    assert [str(violation) for violation in check(data)] == []
