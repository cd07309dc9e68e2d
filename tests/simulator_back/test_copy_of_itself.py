"""A copy that reads what it overwrites needs the old values until its last part is done."""

from __future__ import annotations

from simulator import poplar
from simulator.compiler.compile import compile_graph
from simulator.graph.machine.target import make_target
from simulator.poplar import program
from tests.poisoned_run import live_variables


def graph_with(**sizes: int) -> tuple[poplar.Graph, dict[str, poplar.Tensor]]:
    graph = poplar.Graph(make_target("tiny"))
    tensors = {name: graph.addVariable(poplar.INT, [size], name) for name, size in sizes.items()}
    for tile, tensor in enumerate(tensors.values()):
        graph.setTileMapping(tensor, tile)
    return graph, tensors


def live_at(graph: poplar.Graph, main: program.Program, step: str) -> set[str]:
    """Name the variables that are live at the first step of a name."""
    executable = compile_graph(graph, [main])
    rows = executable.liveness.program.tolist()
    names = [executable.lowered.programs[row].name for row in rows]
    live = live_variables(executable)[names.index(step)]
    return {name for name, found in zip(executable.variable_names(), live, strict=False) if found}


def test_a_copy_in_two_parts_keeps_what_the_second_one_reads() -> None:
    graph, at = graph_with(x=6, y=3, z=6, w=6)
    parts = poplar.concat(at["y"], at["x"][:3])
    main = program.Sequence(
        program.Copy(at["z"], at["x"]),
        program.Copy(at["z"], at["w"], "between"),
        program.Copy(parts, at["x"]),  # y comes by exchange, then x[:3] is copied on its tile
    )
    graph.createHostRead("x", at["x"])
    assert "x" in live_at(graph, main, "between/ExchangePre")


class Ones(poplar.Vertex):
    out = poplar.Output(poplar.Vector(poplar.INT))

    def compute(self) -> None:
        self.out[:] = 1  # type: ignore[index]


def test_of_what_is_arranged_and_exchanged_only_the_first_part_begins_a_new_life() -> None:
    graph, at = graph_with(x=6)
    x, compute_set = at["x"], graph.addComputeSet("ones")
    graph.setTileMapping(x[4:], 1)
    # One vertex writes at hand but not in a row, the other one on another tile.
    for tile, out in ((0, poplar.concat(x[2:4], x[:2])), (2, x[4:])):
        vertex = graph.addVertex(compute_set, Ones, {"out": out}, tile=tile)
        graph.setPerfEstimate(vertex, 5)
    lowered = compile_graph(graph, [program.Execute(compute_set)]).lowered
    of_x = (lowered.access.variable == 0) & lowered.access.write
    rows = lowered.access.program[of_x]
    assert [lowered.programs[row].name for row in rows] == [
        "ones/PostArrange-0",
        "ones/ExchangePost",
    ]
    assert lowered.access.whole[of_x].tolist() == [True, False]
