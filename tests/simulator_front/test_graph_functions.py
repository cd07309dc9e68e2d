"""Functions on tensors are built once and applied to several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pva.check import check
from pva.formats import registry
from simulator import popops, poputil
from simulator.poplar import FLOAT, HALF, Engine, Graph, IPUModel, program
from simulator.poplibs.poputil import graphfn


class Run:
    """A graph of 4 tiles with two variables that the host writes."""

    def __init__(self) -> None:
        self.device = IPUModel("tiny").createDevice()
        self.graph, self.prog = Graph(self.device.getTarget()), program.Sequence()
        self.values = {"a": np.arange(40, dtype=np.float32), "b": np.ones(40, np.float32) * 3}
        self.tensors = {name: self.variable(name) for name in self.values}

    def variable(self, name: str) -> Any:
        tensor = self.graph.addVariable(FLOAT, [40], name)
        poputil.mapTensorLinearly(self.graph, tensor)
        self.graph.createHostWrite(name, tensor)
        return tensor

    def read(self, outputs: dict[str, Any], directory: Path | None = None) -> dict[str, Any]:
        for name, tensor in outputs.items():
            self.graph.createHostRead(name, tensor)
        options = {"autoReport.all": True, "autoReport.directory": str(directory)}
        engine = Engine(self.graph, self.prog, options if directory else {})
        engine.load(self.device)
        for name, values in self.values.items():
            engine.writeTensor(name, values)
        engine.run(0)
        return {name: engine.readTensor(name) for name in outputs}


@pytest.mark.parametrize("inlined", [True, False])
def test_a_tensor_function_is_applied_to_several(tmp_path: Path, inlined: bool) -> None:
    run = Run()
    graph = run.graph
    double = graphfn.TensorFunction(
        graph,
        [graphfn.input(run.tensors["a"], "x")],
        lambda args, prog: popops.add(graph, args[0], args[0], prog, "double"),
        inlined,
    )
    outputs = {f"2{name}": double([tensor], run.prog) for name, tensor in run.tensors.items()}
    assert len(graph.compute_sets) == 1
    found = run.read(outputs, tmp_path)
    for name, values in run.values.items():
        np.testing.assert_array_equal(found[f"2{name}"], 2 * values)
    assert [str(violation) for violation in check(registry.read(tmp_path))] == []


def test_arguments_go_in_out_and_are_created() -> None:
    run = Run()
    graph, a, b = run.graph, run.tensors["a"], run.tensors["b"]

    def body(args: list[Any], prog: program.Sequence) -> None:
        x, y, z, _ = args
        popops.addInPlace(graph, y, x, prog)
        prog.add(program.Copy(popops.square(graph, y, prog), z))
        args[3] = popops.neg(graph, x, prog)

    signature = [graphfn.input(a), graphfn.inout(b, "sum"), graphfn.output(a), graphfn.created()]
    function = graphfn.VoidFunction(graph, signature, body, False)
    squares = graph.clone(a, "squares")
    args = [a, b, squares, None]
    function(args, run.prog)
    found = run.read({"sum": b, "squares": squares, "negative": args[3]})
    expected = run.values["a"] + run.values["b"]
    np.testing.assert_array_equal(found["sum"], expected)
    np.testing.assert_array_equal(found["squares"], expected**2)
    np.testing.assert_array_equal(found["negative"], -run.values["a"])


def test_a_program_function_gives_the_program_of_a_call() -> None:
    run = Run()
    graph = run.graph

    def body(args: list[Any]) -> program.Program:
        prog = program.Sequence()
        popops.mulInPlace(graph, args[0], 2.0, prog)
        return prog

    function = graphfn.ProgramFunction(graph, [graphfn.inout(run.tensors["a"])], body, False)
    run.prog.add(program.Repeat(3, function([run.tensors["a"]])))
    found = run.read({"out": run.tensors["a"]})["out"]
    np.testing.assert_array_equal(found, 8 * run.values["a"])


def test_wrong_arguments_are_refused() -> None:
    run = Run()
    a = run.tensors["a"]
    function = graphfn.VoidFunction(run.graph, [graphfn.input(a, "x")], lambda args, prog: None)
    with pytest.raises(poputil.poplibs_error, match="2 arguments; the function takes 1"):
        function([a, a], run.prog)
    with pytest.raises(poputil.poplibs_error, match="argument 'x': .* does not fit"):
        function([a[:3]], run.prog)
    with pytest.raises(poputil.poplibs_error, match="argument 0 is None after the function"):
        graphfn.VoidFunction(run.graph, [graphfn.created()], lambda args, prog: None)


def test_names_of_vertex_types_have_their_templates() -> None:
    assert poputil.templateVertex("popops::Fill", HALF) == "popops::Fill<half>"
    assert poputil.templateVertex("A", FLOAT, True, 3, "ADD") == "A<float,true,3,ADD>"
    assert poputil.templateVertex("A") == "A"
