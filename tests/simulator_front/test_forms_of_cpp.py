"""Forms in which C++ programs call Poplar and PopLibs, beside those the simulator's own have."""

import io
import json

import numpy as np
import pytest
from value_program import Values

from simulator import poplar, poplin, popops, poputil
from simulator.poplar import FLOAT, HALF, INT, DebugContext, PoplarError, program
from simulator.poplibs.poplin import ConvParams

GRAPH_ERROR = poplar.GraphConnectionError


class Fill(poplar.Vertex):
    """Writes its number."""

    out = poplar.Output(INT)
    number = INT

    def compute(self):
        self.out[0] = self.number


def test_an_initial_value_may_stand_among_a_vertexs_connections():
    values = Values()
    x = values.graph.addVariable(INT, [1], poplar.VariableMappingMethod.LINEAR, "x")
    compute_set = values.graph.addComputeSet("fill")
    vertex = values.graph.addVertex(compute_set, Fill, {"out": x, "number": 7}, tile=0)
    values.graph.setPerfEstimate(vertex, 1)
    values.program.add(program.Execute(compute_set))
    assert values.run().read(x).tolist() == [7]
    with pytest.raises(GRAPH_ERROR, match="no such field; fields are out"):
        values.graph.connect(vertex["number"], x)


class Annotated(Fill):
    """An object with a field that is None."""

    more: poplar.Input(INT)


class Whole(poplar.Vertex):
    """Writes an array where a number stands."""

    limit = poplar.Input(INT)
    out = poplar.Output(poplar.Vector(INT))

    def compute(self):
        self.out[:] = [0, 0]
        self.out[1] = np.repeat(self.limit, 2)


def test_the_fields_of_a_class_that_are_written_wrongly_are_told():
    values = Values()
    x = values.tensor([5, 6], dtype=INT)
    compute_set = values.graph.addComputeSet("wrong")
    vertex = values.graph.addVertex(compute_set, Annotated, tile=0)
    said = "no such field; fields are out; 'more' is only annotated: write more = ..., not more:"
    with pytest.raises(GRAPH_ERROR, match=said):
        values.graph.connect(vertex["more"], x)
    values = Values()
    x = values.tensor([5, 6, 7], dtype=INT)
    compute_set = values.graph.addComputeSet("wrong")
    given = {"limit": x[0], "out": x[1:3]}
    vertex = values.graph.addVertex(compute_set, Whole, given, tile=0)
    values.graph.setPerfEstimate(vertex, 1)
    values.program.add(program.Execute(compute_set))
    with pytest.raises(
        PoplarError, match=r"with a sequence; a field of one value is .* field\[0\]"
    ):
        values.run()


@pytest.mark.parametrize("side", ["LHS", "RHS"])
def test_an_operand_of_a_product_takes_one_type_for_input_and_output(side):
    graph = Values().graph
    make = getattr(poplin, f"createMatMulInput{side}")
    named = make(graph, HALF, [6, 4], [4, 2], "named")
    both = make(graph, HALF, HALF, [6, 4], [4, 2], "both")
    assert named.dtype == both.dtype == HALF
    assert named.shape == both.shape == ((6, 4) if side == "LHS" else (4, 2))
    assert graph.getTileMapping(named) == graph.getTileMapping(both)
    grouped = getattr(poplin, f"createMatMulGroupedInput{side}")
    assert grouped(graph, FLOAT, [3, 6, 4], [3, 4, 2]).dim(0) == 3


def test_a_convolutions_types_may_both_stand_before_its_sizes():
    two = ConvParams(HALF, FLOAT, 1, [8, 8], [3, 3], 2, 4)
    assert two == ConvParams(HALF, 1, [8, 8], [3, 3], 2, 4, outputType=FLOAT)
    assert two.getOutputFieldShape() == (6, 6)


def test_clones_take_their_type_first_too():
    values = Values()
    graph, x = values.graph, values.tensor([[1.5, 2.0]], dtype=HALF)
    graph.setTileMapping(x, 3)
    for made in (graph.clone(FLOAT, x, "c"), graph.clone(x, "c", FLOAT), graph.clone(FLOAT, x)):
        assert (made.dtype, made.shape) == (FLOAT, (1, 2))
        assert graph.getTileMapping(made) == graph.getTileMapping(x)
    for stack in (graph.cloneN(FLOAT, x, 3, "n"), graph.cloneN(x, 3, "n", FLOAT)):
        assert (stack.dtype, stack.shape) == (FLOAT, (3, 1, 2))
        assert graph.getTileMapping(stack[2]) == graph.getTileMapping(x)
    popops.castWithOutput(graph, x, stack[1], values.program)
    assert values.run().read(stack[1]).tolist() == [[1.5, 2.0]]
    with pytest.raises(PoplarError, match="N is 0; at least 1 is needed"):
        graph.cloneN(x, 0)


def test_a_scalar_is_mapped_in_place():
    values = Values()
    x = values.tensor(np.float32(3.0), dtype=FLOAT)
    popops.mapInPlace(values.graph, popops.expr.Square(popops.expr._1), [x], values.program)
    assert values.run().read(x) == 9.0


@pytest.mark.parametrize("data", [[True] * 6, [True, False, True]])
def test_all_true_is_numpys_all(data):
    values = Values()
    x = values.tensor(np.array(data), dtype=poplar.BOOL)
    found = popops.allTrue(values.graph, x, values.program, "check")
    assert found.shape == ()
    assert bool(values.run().read(found)) == np.all(data)
    with pytest.raises(PoplarError, match="check/allTrue: .* bools are needed"):
        popops.allTrue(values.graph, values.tensor([1.0], dtype=FLOAT), values.program, "check")


def test_the_compute_sets_of_a_reduction_may_be_listed():
    values = Values()
    data = np.arange(600, dtype=np.int32).reshape(20, 30) % 77
    x = values.tensor(data, dtype=INT)
    listed: list[poplar.ComputeSet] = []
    rows = popops.reduce(values.graph, x, [1], popops.Operation.MAX, listed, "rows")
    largest = values.tensor([0], dtype=INT)
    popops.reduceWithOutput(values.graph, rows, largest, [0], popops.Operation.MAX, listed, "all")
    for compute_set in listed:
        values.program.add(program.Execute(compute_set))
    assert listed == values.graph.compute_sets
    found = values.run()
    np.testing.assert_array_equal(found.read(rows), data.max(axis=1))
    assert found.read(largest).tolist() == [76]
    with pytest.raises(PoplarError, match="none/Reduce: takes more than compute sets; give a Seq"):
        none = values.tensor(np.zeros((2, 0)), dtype=FLOAT)
        popops.reduce(values.graph, none, [1], popops.Operation.ADD, [], "none")


def test_halves_of_the_host_are_ieees():
    target = Values().graph.target
    numbers = np.array([1.0, -2.5, 1 / 3, 7e4, 6e-8], dtype=np.float32)
    raw, words = bytearray(10), np.zeros(5, dtype=np.uint16)
    poplar.copyFloatToDeviceHalf(target, numbers, raw, 5)
    poplar.copyDoubleToDeviceHalf(target, numbers.astype(float), words, 5)
    with np.errstate(over="ignore"):
        expected = numbers.astype(np.float16)
    assert raw == expected.tobytes() == words.tobytes()
    back = np.zeros(6, dtype=np.float32)
    poplar.copyDeviceHalfToFloat(target, raw, back, 4)
    np.testing.assert_array_equal(back, [*expected[:4].astype(np.float32), 0, 0])
    with pytest.raises(PoplarError, match="copyDeviceHalfToFloat: 6 elements; src has 5"):
        poplar.copyDeviceHalfToFloat(target, raw, back, 6)


def test_a_debug_context_names_what_is_below_it():
    outer = DebugContext("model")
    inner = DebugContext(poplar.DebugInfo(outer, "mine"), "layer")
    assert (inner, DebugContext(outer, ""), DebugContext("", "a")) == ("model/layer", "model", "a")
    graph = Values().graph
    graph.addVariable(FLOAT, [1], inner)
    graph.addComputeSet(poplar.DebugNameAndId(inner, "set"))
    assert graph.variables[-1].name == "model/layer"
    assert graph.compute_sets[-1].name == "model/layer/set"
    assert json.dumps(graph.debug_contexts[-1]["name"]) == '"model/layer/set"'


def test_floating_point_behaviour_takes_a_vertex_on_each_tile_and_changes_no_value(
    capsys, monkeypatch
):
    monkeypatch.setenv("POPLIBS_LOG_LEVEL", "WARN")
    values = Values()
    zero = values.tensor([0.0], dtype=FLOAT)
    behaviour = poplar.FloatingPointBehaviour(nanoo=False)
    poplar.setFloatingPointBehaviour(values.graph, values.program, behaviour, "fp")
    poplar.setStochasticRounding(values.graph, values.program, False)
    traps, rounding = capsys.readouterr().err.splitlines()
    assert traps.endswith(
        "fp/setFloatingPointBehaviour: inv, div0, oflo are on: the model never traps"
    )
    assert rounding.endswith("esr is on: the model rounds to the nearest")
    popops.invInPlace(values.graph, zero, values.program)
    assert [one.name for one in values.graph.compute_sets[:2]] == [
        "fp/setFloatingPointBehaviour",
        "setStochasticRounding",
    ]
    put = values.graph.vertex_groups()[0]
    assert put.codelet.name == "popsys::PutSupervisorCSR"
    assert put.cycles.tolist() == [14] * values.graph.target.num_tiles
    assert np.isinf(values.run().read(zero))


def test_a_summary_without_a_profile_is_refused_in_words():
    for call in (
        poplar.printGraphSummary,
        poplar.printProfileSummary,
        poplar.printExecutionSummary,
    ):
        with pytest.raises(
            PoplarError, match=f"{call.__name__}: graphProfile is NoneType; a graph"
        ):
            call(io.StringIO(), None)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g, x: poplar.compileGraph(g, 5), "programs is 5; a program or a list is needed"),
        (lambda g, x: g.addVariable(INT, [2], "a", "b"), "'b': mapping method is 'a'"),
        (lambda g, x: g.addVariable(INT, [2], 5), "variable: its name is 5; a text is needed"),
        (lambda g, x: g.addHostFunction("f", [5], []), "argument 5; a type and a number"),
        (lambda g, x: DebugContext(5), "debug context: its name is 5; a text is needed"),
        (lambda g, x: poputil.mapTensorLinearlyWithOffset(g, x), "offset is None; a tile from 0"),
        (lambda g, x: poputil.mapTensorLinearlyWithOffset(g, x, True), "offset is True; a tile"),
        (
            lambda g, x: popops.reduce(g, x, [0], popops.Operation.ADD, ()),
            r"prog is \(\); a Sequence or a list is needed",
        ),
    ],
)
def test_what_these_forms_do_not_take_is_told_in_words(call, said):
    values = Values()
    x = values.tensor([1, 2], dtype=INT)
    with pytest.raises(PoplarError, match=said):
        call(values.graph, x)
