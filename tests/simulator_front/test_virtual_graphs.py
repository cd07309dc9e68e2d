"""Virtual graphs: views of some tiles, by every form of createVirtualGraph."""

import numpy as np
import pytest

from simulator import poplar, popops
from simulator.poplar import program


class Copy(poplar.Vertex):
    in_ = poplar.Input(poplar.Vector(poplar.FLOAT))
    out = poplar.Output(poplar.Vector(poplar.FLOAT))

    def compute(self):
        self.out[:] = self.in_


def graph_of(ipus=2, tiles=8):
    model = poplar.IPUModel("mk2", numIPUs=ipus, tilesPerIPU=tiles)
    return poplar.Graph(model.createDevice().getTarget())


def tiles_of(graph, tensor):
    return [tile for tile, parts in enumerate(graph.getTileMapping(tensor)) if parts]


@pytest.mark.parametrize(
    ("arguments", "ipus", "tiles"),
    [
        ((3,), 2, [0, 1, 2, 8, 9, 10]),
        ((2, 5), 1, [2, 3, 4]),
        ((8, 16), 1, [8, 9, 10, 11, 12, 13, 14, 15]),
        ((0, 16), 2, list(range(16))),
        (([1, 5, 3],), 2, [1, 5, 3, 9, 13, 11]),
    ],
)
def test_a_virtual_graph_has_the_tiles_of_its_form(arguments, ipus, tiles):
    graph = graph_of()
    view = graph.createVirtualGraph(*arguments)
    target = view.getTarget()
    assert (target.getNumIPUs(), target.getNumTiles()) == (ipus, len(tiles))
    data = view.addVariable(poplar.FLOAT, [len(tiles)], "data")
    for number in range(len(tiles)):
        view.setTileMapping(data[number], number)
    assert tiles_of(view, data) == list(range(len(tiles)))
    order = {position: tile for tile, parts in enumerate(graph.getTileMapping(data))
             for position, _ in parts}  # fmt: skip
    assert [order[position] for position in range(len(tiles))] == tiles


def test_what_a_view_adds_is_in_its_parent_and_runs_there():
    graph = graph_of()
    view = graph.createVirtualGraph(8, 12).createVirtualGraph([3, 1])
    source, result = (view.addVariable(poplar.FLOAT, [4], name) for name in "ab")
    view.setTileMapping(source, 0)
    view.setTileMapping(result, 1)
    compute_set = view.addComputeSet("copy")
    vertex = view.addVertex(compute_set, Copy, {"in": source, "out": result}, tile=0)
    view.setPerfEstimate(vertex, 10)
    (group,) = graph.vertex_groups()
    assert group.tile.tolist() == [11]
    assert tiles_of(graph, source) == [11]
    assert tiles_of(graph, result) == [9]
    assert view.getTopLevelGraph() is graph


def test_a_view_sees_of_a_parents_variable_what_lies_on_its_tiles():
    graph = graph_of()
    data = graph.addVariable(poplar.FLOAT, [16], "data")
    for tile in range(16):
        graph.setTileMapping(data[tile], tile)
    mapping = graph.createVirtualGraph(6, 8).getTileMapping(data)
    assert mapping == [[(6, 7)], [(7, 8)]]


def test_library_operations_stay_on_the_tiles_of_the_view():
    graph = graph_of()
    view = graph.createVirtualGraph(8, 16)
    data = view.addVariable(poplar.FLOAT, [64], "data")
    view.setTileMapping(data, [[(8 * tile, 8 * tile + 8)] for tile in range(8)])
    prog = program.Sequence()
    result = popops.add(view, data, data, prog)
    graph.createHostWrite("data", data)
    graph.createHostRead("result", result)
    engine = poplar.Engine(view, prog)
    engine.load(poplar.IPUModel("mk2", numIPUs=2, tilesPerIPU=8).createDevice())
    engine.writeTensor("data", np.arange(64, dtype=np.float32))
    engine.run()
    assert np.array_equal(engine.readTensor("result"), 2 * np.arange(64))
    assert {tile for group in graph.vertex_groups() for tile in group.tile.tolist()} == {
        *range(8, 16)
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((9,), "9 tiles of each IPU; an IPU has 8"),
        ((4, 4), "tiles [4, 4)"),
        ((4, 17), "the graph has tiles 0 to 15"),
        ((4, 10), "as many of each are needed"),
        (([0, 0],), "different tiles"),
        (([0, 8],), "tile 8"),
        (([],), "different tiles"),
    ],
)
def test_tiles_that_make_no_view_are_refused(arguments, message):
    with pytest.raises(poplar.TileMappingError) as error:
        graph_of().createVirtualGraph(*arguments)
    assert message in str(error.value)


def test_a_tile_outside_the_view_is_refused():
    graph = graph_of()
    view = graph.createVirtualGraph(2)
    data = view.addVariable(poplar.FLOAT, [1], "data")
    with pytest.raises(poplar.TileMappingError, match="tile 4; the target has tiles 0 to 3"):
        view.setTileMapping(data, 4)
