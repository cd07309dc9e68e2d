"""What a variable that is written in parts is live through, as Poplar's WriteUndef documents it."""

import numpy as np
import pytest

from simulator import poplar
from simulator.poplar import FLOAT, program


class Give(poplar.Vertex):
    """Writes one float."""

    out = poplar.Output(FLOAT)

    def compute(self):
        self.out[0] = 1


def writes(graph, name, *elements):
    compute_set = graph.addComputeSet(name)
    for element in elements:
        graph.setPerfEstimate(graph.addVertex(compute_set, Give, {"out": element}, tile=0), 10)
    return program.Execute(compute_set)


def live_at(parts):
    """Run `parts` of a pair, then stream it out; tell at which of their steps the pair is live."""
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice())
    pair = graph.addVariable(FLOAT, [2], "pair")
    graph.setTileMapping(pair, 0)
    out = graph.addDeviceToHostFIFO("out", FLOAT, 2)
    compiled = poplar.compileGraph(
        graph, program.Sequence(*parts(graph, pair), program.Copy(pair, out))
    ).compiled
    live, lowered = compiled.liveness, compiled.lowered
    programs = [lowered.programs[row] for row in live.program]
    names = {one.name: i for i, one in enumerate(programs) if one.type != "StreamCopyEnd"}
    spans = [(b, e) for v, b, e in zip(live.variable, live.begin, live.end, strict=True) if v == 0]
    return [any(b <= names[name] < e for b, e in spans) for name in ("before", "last", "out")]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # In one compute set: dead until then.
        (lambda g, p: [writes(g, "last", p[0], p[1])], [False, True, True]),
        # In two: live from the start, as Poplar keeps account of variables and not of elements.
        (lambda g, p: [writes(g, "first", p[0]), writes(g, "last", p[1])], [True, True, True]),
        # So a program says that what it held is needed no more.
        (
            lambda g, p: [
                program.WriteUndef(p),
                writes(g, "first", p[0]),
                writes(g, "last", p[1]),
            ],
            [False, True, True],
        ),
    ],
)
def test_a_variable_dies_where_one_compute_set_writes_it_all_or_is_undefined(parts, expected):
    def after_another(graph, pair):
        other = graph.addVariable(FLOAT, [1], "other")
        graph.setTileMapping(other, 0)
        return [writes(graph, "before", other), *parts(graph, pair)]

    assert np.array_equal(live_at(after_another), expected)
