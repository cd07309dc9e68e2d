"""Arguments of the wrong kind give one line that names the call and the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator import poplar, popops
from simulator.graph.arguments import _fault
from simulator.poplar import program


def setting() -> tuple[poplar.Graph, poplar.Tensor]:
    graph = poplar.Graph(poplar.IPUModel("tiny").createDevice().getTarget())
    tensor = graph.addVariable(poplar.FLOAT, [2, 3], "data")
    graph.setTileMapping(tensor, 0)
    return graph, tensor


CALLS: list[tuple[Callable[[Any, Any], object], str]] = [
    (lambda g, t: program.CrossReplicaCopy([1], t, {}), "CrossReplicaCopy: src is [1]; Tensor is"),
    (lambda g, t: program.Sequence(3), "Sequence: cannot take children=(3,): TypeError: 'int'"),
    (lambda g, t: t.intersectsWith(2), "ElementView.intersectsWith: other is 2; ElementView is"),
    (lambda g, t: poplar.concat([t, 3]), "concat: cannot take tensors=[Tensor(data: float[2, 3])"),
    (lambda g, t: g.getTileMapping({}), "Graph.getTileMapping: tensor is {}; Tensor is needed"),
    (lambda g, t: g.clone(None), "Graph.clone: tensor is None; Tensor is needed"),
    (
        lambda g, t: popops.add(g, t, None, program.Sequence()),
        "popops.add: b is None; Tensor or float is",
    ),
    (lambda g, t: popops.neg(g, t, [2]), "popops.neg: prog is [2]; Sequence is needed"),
    (
        lambda g, t: popops.add(g, t, t, program.Sequence(), {"x": 1}),
        "Op/Add: its debug context is {'x': 1}; a text",
    ),
    (
        lambda g, t: popops.reduce(g, t, [0.5], popops.Operation.ADD, program.Sequence()),
        "popops.reduce: cannot take A=Tensor(data: float[2, 3]), dims=[0.5], params=",
    ),
    (lambda g, t: g.createHostRead(3, t), "host read 3: a name is needed"),
    (
        lambda g, t: program.Switch(t[0, 0].reinterpret(poplar.INT), [(2**31, program.Sequence())]),
        "Switch: case: value 2147483648 at element 0; int holds whole numbers",
    ),
    (lambda g, t: poplar.Engine([1], []), "Engine: graph is [1]; Graph or Executable is needed"),
    (lambda g, t: poplar.Engine(g, None), "Engine: a graph needs programs"),
    (lambda g, t: poplar.IPUModel({}), "IPUModel: no part {}; known are mk1"),
    (lambda g, t: poplar.OptionFlags(3), "OptionFlags: cannot take given=3: TypeError"),
    (lambda g, t: g.getTarget().getTypeSize("x"), "Target.getTypeSize: type_ is 'x'; Type is"),
    (lambda g, t: t.reshape(np.zeros((2, 2))), "reshape: shape is array([[0., 0.], [0., 0.]]); a"),
]


@pytest.mark.parametrize(("call", "said"), CALLS, ids=[said[:30] for _, said in CALLS])
def test_an_argument_of_the_wrong_kind_is_named(
    call: Callable[[Any, Any], object], said: str
) -> None:
    with pytest.raises(poplar.PoplarError) as caught:
        call(*setting())
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


HUGE = 1 << 62


def endless(graph: poplar.Graph, tensor: poplar.Tensor) -> None:
    engine = poplar.Engine(graph, program.Repeat(HUGE, program.Copy(tensor[0], tensor[1])))
    engine.load(poplar.IPUModel("tiny").createDevice())
    engine.run()


def calls_of_calls(graph: poplar.Graph, tensor: poplar.Tensor) -> None:
    function = graph.addFunction(program.Copy(tensor[0], tensor[1]), "copy")
    for _ in range(20):
        call = program.Call(function)
        function = graph.addFunction(program.Sequence(call, call), "twice")
    poplar.Engine(graph, program.Call(function))


SIZES: list[tuple[Callable[[Any, Any], object], str]] = [
    (
        lambda g, t: g.addVariable(t.dtype, [HUGE], "x"),
        "variable 'x': 18,446,744,073,709,551,616 b",
    ),
    (lambda g, t: t.broadcast(HUGE, 0), "Tensor(data: float[2, 3]): broadcast: count of 4,611,6"),
    (lambda g, t: t.upsample(1 << 31, 0), "Tensor(data: float[2, 3]): upsample: scale of 2,147"),
    (lambda g, t: poplar.IPUModel("tiny", tilesPerIPU=1 << 31), "IPUModel: tilesPerIPU is 2147"),
    (
        lambda g, t: setattr(poplar.IPUModel("tiny"), "globalExchangeConstraints", [None]),
        "IPUModel: globalExchangeConstraints: None; GlobalExchangeConstraints are",
    ),
    (calls_of_calls, "Sequence '': with all calls of functions written out the programs are more "),
    (endless, "Repeat '': 4,611,686,018,427,387,904 turns of 1 program(s); a run of the"),
]


@pytest.mark.parametrize(("call", "said"), SIZES, ids=[said[:30] for _, said in SIZES])
def test_what_no_machine_holds_is_refused(call: Callable[[Any, Any], object], said: str) -> None:
    with pytest.raises(poplar.PoplarError) as caught:
        call(*setting())
    assert str(caught.value).startswith(said)


def test_where_memory_ends_no_argument_is_to_blame() -> None:
    _, tensor = setting()
    for given in (np.array([1, 0]), [1, 0]):
        said = _fault(poplar.Tensor.taken, (tensor, given, 1), {}, MemoryError("9 GB"))
        assert said == "the host has not enough memory. 9 GB"


def test_an_array_is_no_wrong_argument_where_arrays_are_taken() -> None:
    _, tensor = setting()
    error = IndexError("index 9")
    said = _fault(poplar.Tensor.taken, (tensor, np.array([9]), 1), {}, error)
    assert said == "cannot take numbers=array([9]), axis=1: IndexError: index 9"
    said = _fault(poplar.Tensor.taken, (tensor, [9], 1), {}, error)
    assert said == "numbers is [9]; IntArray is needed"


def test_a_wrong_number_of_arguments_is_a_type_error() -> None:
    graph, tensor = setting()
    calls: list[Any] = [graph.addVariable, tensor.expand, program.Copy, popops.add]
    for call in calls:
        with pytest.raises(TypeError, match="missing"):
            call()


def test_what_a_program_itself_raises_stays_what_it_is() -> None:
    graph, _ = setting()

    def body(count: poplar.Tensor) -> program.Program:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        popops.countedLoop(graph, 3, body)


PROGRAMS: list[tuple[Callable[[Any, Any], Any], str]] = [
    (
        lambda g, t: program.Copy(setting()[0].addHostToDeviceFIFO("far", t.dtype, 6), t),
        "stream 'far': is not of this graph",
    ),
    (
        lambda g, t: program.Copy(t, setting()[0].addRemoteBuffer("far", t.dtype, 6)),
        "remote buffer 'far': is not of this graph",
    ),
    (
        lambda g, t: program.Call(g.addFunction(3, "f")),
        "function 'f': a program is needed, not 3",
    ),
    (
        lambda g, t: program.WriteUndef(g.addVariable(t.dtype, [2], "lost")),
        "variable 'lost': element 0 of 2 is not mapped",
    ),
    (
        lambda g, t: (g.addComputeSet("sum"), program.Execute(setting()[0].addComputeSet("sum")))[
            1
        ],
        "Execute: compute set 'sum' is not of this graph",
    ),
    (lambda g, t: program.WriteUndef(setting()[1]), "Engine: Tensor(data: float[2, 3]) is not of"),
    (lambda g, t: program.Repeat(2, program.Sequence(), 7), "Repeat: its name is 7; a text"),
    (lambda g, t: g.addVariable(t.dtype, [1], b"x"), "variable: its name is b'x'"),
    (lambda g, t: g.addFunction(program.Sequence(), [1]), "function: its name is [1]; a text"),
]


@pytest.mark.parametrize(("make", "said"), PROGRAMS, ids=[said[:30] for _, said in PROGRAMS])
def test_a_program_that_no_engine_can_have_is_refused(
    make: Callable[[Any, Any], Any], said: str
) -> None:
    graph, tensor = setting()
    with pytest.raises(poplar.PoplarError) as caught:
        poplar.Engine(graph, make(graph, tensor))
    assert str(caught.value).startswith(said)
