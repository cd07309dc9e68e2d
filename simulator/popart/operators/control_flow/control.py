"""Operators that decide or show something while the program runs."""

from __future__ import annotations

from simulator.graph.program import Abort, AbortOnCondition, Copy, If, PrintTensor
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.operators.call import Call
from simulator.popart.representation.ir import Ir


def conditional(call: Call) -> list[Tensor]:
    """Run one of two graphs; both leave their outputs in the same variables."""
    names = ("then_branch", "else_branch")
    condition = call.value(0)
    if condition is not None:
        taken_branch: Ir = call.attribute(names[0] if bool(condition.reshape(-1)[0]) else names[1])
        return call.lower_graph(taken_branch, call.prog)
    outputs = [
        call.variable(info.device, info.dims, f"output{place}")
        for place, info in enumerate(call.outputs)
    ]
    bodies = []
    for name in names:
        body = Program(name=f"{call.name}/{name}")
        results = call.lower_graph(call.attribute(name), body)
        for tensor, output in zip(results, outputs, strict=True):
            body.add(Copy(tensor, output, name=f"{call.name}/{name}"))
        bodies.append(body)
    call.prog.add(If(call.scalar(0), bodies[0], bodies[1], call.name))
    return outputs


def aborted(call: Call) -> list[Tensor]:
    """End the run with an error, if there is a condition where it is not zero (ai.graphcore)."""
    message = f"Abort Program: {call.name}"
    if call.inputs:
        call.prog.add(AbortOnCondition(call.scalar(0), message, call.name))
    else:
        call.prog.add(Abort(message, call.name))
    return []


def printed(call: Call) -> Tensor:
    """Print the tensor on the host when it is made (ai.graphcore)."""
    if call.attribute("print_gradient", 0) or call.attribute("print_self", 1):
        call.prog.add(PrintTensor(call.attribute("title", call.name), call[0]))
    return call[0]
