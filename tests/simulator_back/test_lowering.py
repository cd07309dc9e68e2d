"""Lowering on four tiles, worked out by hand: programs, exchanges, copies, accesses."""

import numpy as np
import pytest

from simulator import poplar
from simulator.compiler.compile import compile_graph
from simulator.graph.graph import Graph
from simulator.graph.machine.target import TARGETS
from simulator.graph.vertices.vertex import Codelet, VertexGroup, cut_field
from simulator.poplar import program
from simulator.poplibs.poplin.convolutions.operands import with_edges
from tests.stream_copies import HOST_COPY

PREAMBLE = 14  # rows: the control Sequence, its preamble and the Switch


class Add(poplar.Vertex):
    in_ = poplar.Input(poplar.Vector(poplar.FLOAT))
    out = poplar.Output(poplar.Vector(poplar.FLOAT))

    def compute(self):
        self.out[:] = self.in_.sum()


@pytest.fixture
def graph():
    return Graph(TARGETS["tiny"])


def variable(graph, name, *tiles):
    """Add a variable of one float for each of `tiles`."""
    tensor = graph.addVariable(poplar.FLOAT, [len(tiles)], name)
    for position, tile in enumerate(tiles):
        graph.setTileMapping(tensor[position : position + 1], tile)
    return tensor


def add(graph, source, destination, tile):
    compute_set = graph.addComputeSet("add")
    vertex = graph.addVertex(compute_set, Add, {"in": source, "out": destination}, tile=tile)
    graph.setPerfEstimate(vertex, 20)
    return program.Execute(compute_set)


def compiled(graph, *nodes):
    """Compile; give the executable and (type, name) of the user's programs."""
    executable = compile_graph(graph, [program.Sequence(*nodes)])
    rows = executable.lowered.programs[PREAMBLE + 1 :]
    return executable, [(row.type, row.name) for row in rows]


def accesses(executable, kind, name):
    access, names = executable.lowered.access, executable.variable_names()
    rows = [i for i, p in enumerate(executable.lowered.programs) if (p.type, p.name) == kind]
    chosen = np.isin(access.program, rows) & (access.write == (name == "write"))
    return sorted({names[v] for v in access.variable[chosen]})


def test_the_control_program_begins_as_in_tutorial_4(graph):
    node = add(graph, variable(graph, "a", 0), variable(graph, "b", 0), 0)
    executable = compile_graph(graph, [program.Sequence(node)])
    rows = executable.lowered.programs
    kinds = [row.sync_type if row.type == "Sync" else row.type for row in rows]
    fetch = ["Sequence", *HOST_COPY, *HOST_COPY]
    assert kinds[:PREAMBLE] == [*fetch, "Internal", "DoExchange", "Switch"]
    assert rows[12].name == "switchControlBroadcast1/ExchangePre"
    assert rows[13].children == list(executable.lowered.user_programs) == [PREAMBLE]


def test_inputs_at_hand_need_no_exchange(graph):
    node = add(graph, variable(graph, "a", 2, 2), variable(graph, "b", 2), 2)
    executable, rows = compiled(graph, node)
    assert rows == [("OnTileExecute", "add")]
    assert executable.costs.cycles.tolist() == [[0, 0, 120, 0]]
    assert executable.costs.active_cycles.tolist() == [[0, 0, 20, 0]]


def test_a_partly_remote_input_arrives_whole_in_a_message(graph):
    node = add(graph, variable(graph, "a", 0, 1, 2), variable(graph, "b", 2), 2)
    executable, rows = compiled(graph, node)
    exchange = executable.lowered.exchanges[1]
    assert rows == [("Sync", ""), ("DoExchange", "add/ExchangePre"), ("OnTileExecute", "add")]
    assert exchange.received.tolist() == [0, 0, 12, 0]
    assert exchange.sent.tolist() == [4, 4, 4, 0]
    assert accesses(executable, ("OnTileExecute", "add"), "read") == ["<message:a>"]


@pytest.mark.parametrize(
    ("apart", "message"), [(True, 8), (False, 16)], ids=["two edges", "one row"]
)
def test_of_edges_apart_those_at_hand_are_read_where_they_lie(graph, apart, message):
    # Of two edges of two floats the second is in part on tile 0, so that it arrives whole.
    tensor = variable(graph, "a", 2, 2, 0, 2)
    item = cut_field("in_", "input", tensor, [0], [4])
    item = with_edges(item, np.array([4]), np.array([2]), apart=apart)
    number = graph.addComputeSet("read").id
    group = VertexGroup(number, Codelet("r", None), np.array([2]), {"in_": item}, {}, np.array([9]))
    graph.add_vertices(group)
    executable, _ = compiled(graph, program.Execute(graph.compute_sets[number]))
    sizes = {v.name: v.bytes.tolist() for v in executable.lowered.variables}
    assert sizes["<message:a>"] == [message]
    read = accesses(executable, ("OnTileExecute", "read"), "read")
    assert read == (["<message:a>", "a"] if apart else ["<message:a>"])


def test_an_input_out_of_order_at_hand_is_arranged_before(graph):
    a = variable(graph, "a", 1, 1, 1)
    node = add(graph, poplar.concat([a[2:3], a[0:1]]), variable(graph, "b", 1), 1)
    executable, rows = compiled(graph, node)
    assert rows == [("OnTileExecute", "add/PreArrange-0"), ("OnTileExecute", "add")]
    assert accesses(executable, ("OnTileExecute", "add"), "read") == ["aRearranged"]


def add_twice(graph, source, tile):
    """Add two vertices on a tile that read the same, and run them."""
    node = add(graph, source, variable(graph, "first", tile), tile)
    second = {"in": source, "out": variable(graph, "second", tile)}
    vertex = graph.addVertex(node.compute_set, Add, second, tile=tile)
    graph.setPerfEstimate(vertex, 20)
    return node


def test_what_two_vertices_of_a_tile_read_from_elsewhere_comes_once(graph):
    executable, rows = compiled(graph, add_twice(graph, variable(graph, "a", 0, 1), 3))
    assert ("DoExchange", "add/ExchangePre") in rows
    assert executable.lowered.exchanges[-1].received.tolist() == [0, 0, 0, 8]


def test_two_vertices_that_read_the_same_out_of_order_each_arrange_a_copy(graph):
    # One interval of the arena, but of two variables: not in one row on the tile.
    both = poplar.concat([variable(graph, "a", 1, 1), variable(graph, "b", 1, 1)])
    executable, rows = compiled(graph, add_twice(graph, both, 1))
    assert rows[0] == ("OnTileExecute", "add/PreArrange-0")
    sizes = {v.name: v.bytes.tolist() for v in executable.lowered.variables}
    assert sizes["aRearranged"] == sizes["bRearranged"] == [16]


def test_outputs_elsewhere_are_sent_after(graph):
    node = add(graph, variable(graph, "a", 0), variable(graph, "b", 1, 3), 0)
    executable, rows = compiled(graph, node)
    assert [name for _, name in rows] == ["add", "", "add/ExchangePost"]
    assert executable.lowered.exchanges[1].received.tolist() == [0, 4, 0, 4]
    assert accesses(executable, ("OnTileExecute", "add"), "write") == ["<outputEdge:b>"]


@pytest.mark.parametrize(("size", "received"), [(2, 8), (1, 8)])
def test_a_copy_brings_words_that_a_tile_takes_twice_once_and_puts_them_there(
    graph, size, received
):
    # Two floats are a word, which comes once; one is none, and comes as often as it is taken.
    source = graph.addVariable(poplar.FLOAT, [size], "source")
    target = graph.addVariable(poplar.FLOAT, [2 * size], "target")
    graph.setTileMapping(source, 0)
    graph.setTileMapping(target, 1)
    executable, rows = compiled(graph, program.Copy(source.broadcast(2, 0), target))
    assert executable.lowered.exchanges[-1].received.tolist() == [0, received, 0, 0]
    assert any("OnTileCopy" in name for _, name in rows) == (size == 2)


def test_a_copy_moves_by_exchange_what_is_elsewhere_and_by_vertices_the_rest(graph):
    copy = program.Copy(variable(graph, "a", 0, 1), variable(graph, "b", 0, 3))
    executable, rows = compiled(graph, copy)
    assert [kind for kind, _ in rows] == ["Sync", "DoExchange", "OnTileExecute"]
    assert [name.rpartition("/")[2] for _, name in rows[1:]] == ["ExchangePre", "OnTileCopy-0"]
    assert executable.lowered.exchanges[1].sent.tolist() == [0, 4, 0, 0]
    assert [group.codelet.name for group in executable.lowered.groups] == ["poplar_rt::ShortMemcpy"]
    assert executable.costs.cycles[0].tolist() == [432, 0, 0, 0]


def test_a_stream_copy_is_three_phases_between_an_external_and_an_internal_sync(graph):
    stream = graph.addHostToDeviceFIFO("s", poplar.FLOAT, 2)
    executable, _ = compiled(graph, program.Copy(stream, variable(graph, "a", 1, 2)))
    rows = executable.lowered.programs[PREAMBLE + 1 :]
    kinds = [row.sync_type if row.type == "Sync" else row.type for row in rows]
    assert kinds == HOST_COPY
    assert executable.lowered.host_exchanges[2].received.tolist() == [0, 4, 4, 0]


def test_each_node_of_the_user_is_carried_by_one_program(graph):
    a, b = variable(graph, "a", 0, 1), variable(graph, "b", 2, 2)
    nodes = [add(graph, a, b, 2), program.Copy(b, a), program.PrintTensor("t", a)]
    executable, _ = compiled(graph, *nodes)
    carried = [row.action for row in executable.lowered.programs if row.action is not None]
    assert carried == nodes


def test_undefining_a_part_of_a_variable_keeps_the_rest_alive(graph):
    a, b = variable(graph, "a", 0, 0), variable(graph, "b", 0)
    one, other = add(graph, b, a, 0), add(graph, a[1:2], b, 0)
    executable, _ = compiled(graph, one, program.WriteUndef(a[0:1]), other)
    rows = [executable.lowered.programs[row].type for row in executable.liveness.program]
    own = executable.liveness.variable == 0
    alive = set()
    for begin, end in zip(
        executable.liveness.begin[own], executable.liveness.end[own], strict=True
    ):
        alive |= set(range(begin, end))
    assert rows.index("WriteUndef") in alive


def test_a_broadcast_from_elsewhere_arrives_once_and_each_vertex_has_a_row_of_its_own(graph):
    # Two vertices of tile 3 read a float of tile 0 three times, a third one reads it once.
    source = variable(graph, "a", 0)
    node = add_twice(graph, source.broadcast(3, 0), 3)
    once = {"in": source, "out": variable(graph, "third", 3)}
    graph.setPerfEstimate(graph.addVertex(node.compute_set, Add, once, tile=3), 20)
    executable, rows = compiled(graph, node)
    assert executable.lowered.exchanges[-1].received.tolist() == [0, 0, 0, 4 + 4]
    assert rows[2:] == [("OnTileExecute", "add/PreArrange-0"), ("OnTileExecute", "add")]
    sizes = [(v.name, v.bytes.tolist()) for v in executable.lowered.variables]
    messages = [("<message:a>", [4]), ("<message:a>", [4])]
    assert sizes[-3:] == [*messages, ("aRearranged", [2 * 3 * 4])]


@pytest.mark.parametrize(
    ("order", "gathered"),
    [
        ([1, 0, 3, 2], True),  # four fragments of two rows
        ([1, 0, 2, 3], False),  # three fragments
        ([2, 3, 0, 1], False),  # none is short
    ],
)
def test_short_fragments_come_in_the_order_of_their_rows_where_that_halves_them(
    graph, order, gathered
):
    both = poplar.concat([variable(graph, "a", 0, 0), variable(graph, "b", 1, 1)])
    source = poplar.concat([both[place : place + 1] for place in order])
    executable, rows = compiled(graph, add(graph, source, variable(graph, "out", 3), 3))
    exchange = executable.lowered.exchanges[-1]
    assert exchange.received.tolist() == [0, 0, 0, 16]
    assert (("OnTileExecute", "add/PreArrange-0") in rows) == gathered
    read = ["<message:a>", "<message:b>"]
    held = ["aRearranged", "bRearranged"] if gathered else read
    assert accesses(executable, ("OnTileExecute", "add"), "read") == held
