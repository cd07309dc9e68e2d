"""Back through the nodes: from the losses to the weights."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from simulator.graph.program import Copy, If
from simulator.graph.program import Sequence as Program
from simulator.graph.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.ir import ONNX, Ir, Node
from simulator.popart.losses import Loss, NllLoss, lower_loss, node_of
from simulator.popart.lowering import Lowering
from simulator.popart.operators.backward import zeros
from simulator.popart.operators.call import Call
from simulator.popart.operators.layer_gradients import GRADIENTS
from simulator.poplibs import popops

ALL_OUTPUTS = ("LSTM", "Split")  # whose gradients take those of all outputs
PREFIX = "Gradient___"  # PopART's names of gradients begin so
# What does not change when its input does a little.
FLAT = {(ONNX, name) for name in ("ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "IsInf",
        "IsNaN", "Less", "Not", "OneHot", "Round", "Sign", "Xor")}  # fmt: skip


def dependent(ir: Ir, weights: Iterable[str]) -> set[str]:
    """Name the tensors that change with the weights."""
    found = set(weights)
    for node in ir.nodes:
        if node.key not in FLAT and any(name in found for name in node.reads):
            found.update(filter(None, node.outputs))
    return found


def asked_for(anchors: Iterable[str]) -> list[str]:
    """Name the tensors whose gradients are anchors."""
    return [name.removeprefix(PREFIX) for name in anchors if name.startswith(PREFIX)]


def check_trainable(ir: Ir, losses: Sequence[Loss], asked: Iterable[str], what: str) -> None:
    """Raise popart_exception for a node between weights and losses that has no gradient.

    So it is between losses and the tensors whose gradients are asked for, each of which needs one.
    """
    wanted = {loss.inputs[0] for loss in losses}
    if not wanted & dependent(ir, ir.weights):
        raise popart_exception(f"{what}: no loss depends on a weight; there is nothing to train")
    _check_nodes(ir, set(wanted), dependent(ir, {*ir.weights, *asked}), what)
    made = {name for node in backward_nodes(ir, losses, asked) for name in node.outputs}
    for name in asked:
        if name not in wanted and f"{PREFIX}{name}" not in made:
            raise popart_exception(f"{what}: anchor {PREFIX + name!r}: no loss depends on {name!r}")
        if ir.infos[name].device.numpy.kind != "f":
            raise popart_exception(
                f"{what}: anchor {PREFIX + name!r}: {name!r} is {ir.infos[name]}; only floats have "
                "a gradient"
            )


def _check_nodes(ir: Ir, wanted: set[str], moving: set[str], what: str) -> None:
    """Raise popart_exception for a node without a gradient before what is wanted."""
    for node in reversed(ir.nodes):
        if not wanted.intersection(node.outputs) or not moving.intersection(node.outputs):
            continue
        if node.key not in GRADIENTS and not node.branches:
            raise popart_exception(
                f"{what}: {node} has no gradient; without one what is before it has none"
            )
        _check_outputs(ir, node, wanted, what)
        for branch in node.branches:
            _check_nodes(branch, set(branch.outputs), dependent(branch, moving), what)
        wanted.update(node.reads)


def _check_outputs(ir: Ir, node: Node, wanted: set[str], what: str) -> None:
    """Raise popart_exception if a loss depends on an output whose gradient its node leaves out."""
    if node.branches or node.operator in ALL_OUTPUTS:
        return
    for name in wanted.intersection(filter(None, node.outputs[1:])):
        if ir.infos[name].device.numpy.kind == "f":
            raise popart_exception(
                f"{what}: {node} has no gradient of its output {name!r}, on which a loss depends"
            )


def lower_losses(
    lowering: Lowering,
    losses: Sequence[Loss],
    prog: Program,
    *,
    direct: bool = True,
    asked: Container[str] = (),
) -> list[tuple[Call, str, Tensor]]:
    """Add the losses to a program; give the gradient of what each reads, with its call.

    Where a softmax alone makes the probabilities, the gradient is that of its input, when `direct`:
    nothing is divided by small probabilities, unless their gradient is asked for.
    """
    found = []
    for loss in losses:
        node = node_of(loss)
        with lowering.scope(node):
            call = lowering.loss_call(node, prog)
            total, gradient, below = lower_loss(call, loss)
        lowering.made[loss.name] = total.reshape([])
        short = direct and loss.inputs[0] not in asked
        softmax = _softmax_alone(lowering.ir, loss) if short else None
        if softmax is not None and below is not None:
            found.append((call, softmax.inputs[0], below))
        else:
            found.append((call, loss.inputs[0], gradient))
    return found


def joined_gradients(
    lowering: Lowering, parts: Iterable[tuple[Call, str, Tensor]]
) -> dict[str, Tensor]:
    """Give the gradient of each tensor that losses read, once the way back has begun."""
    found: dict[str, Tensor] = {}
    for call, name, gradient in parts:
        _add(lowering, call, found, name, gradient)
    return found


def _softmax_alone(ir: Ir, loss: Loss) -> Node | None:
    """Give the softmax whose output a likelihood, and nothing else, reads; of whole rows."""
    if not isinstance(loss, NllLoss) or loss.probs in {name for n in ir.nodes for name in n.inputs}:
        return None
    for node in ir.nodes:
        if loss.probs in node.outputs and node.key == (ONNX, "Softmax"):
            rank = len(ir.infos[loss.probs].dims)
            default = 1 if node.version < 13 else -1
            axis = int(node.attributes.get("axis", default)) % rank
            return node if axis == rank - 1 else None
    return None


def _add(
    lowering: Lowering, call: Call, found: dict[str, Tensor], name: str, gradient: Tensor
) -> None:
    """Add up the gradients that reach a tensor, on the lower of their IPUs.

    Those of the tensor's readers go down a pipeline to it, whose own loss may be there already.
    """
    if name not in found:
        found[name] = gradient
        return
    both = found[name], gradient
    ipu = min(map(lowering.ipu_with, both))
    prog, label = lowering.program(ipu, call.prog), f"{call.name}/Grad"
    first, second = (lowering.carried(part, ipu, prog, label) for part in both)
    found[name] = popops.add(lowering.graphs[ipu], first, second, prog, f"{call.name}/GradSum")


def lower_backward(
    lowering: Lowering, found: dict[str, Tensor], prog: Program, changed: Iterable[str]
) -> None:
    """Add the gradients of all nodes to a program; `found` grows by those of all tensors.

    `changed` are the tensors, weights above all, that can change and whose gradients are wanted.
    """
    moving = dependent(lowering.ir, changed)
    for node in reversed(lowering.ir.nodes):
        reached = [name for name in node.outputs if name in found]
        if not reached or not moving.intersection(node.reads) or node.key in FLAT:
            continue
        call = lowering.calls[node.name]
        ipu = lowering.ipu_of(node)
        call.prog, call.node = lowering.program(ipu, prog), replace(node, name=f"{node.name}/Grad")
        call.inputs, (call.saved,) = (
            lowering.held(ipu, call.inputs),
            lowering.held(ipu, [call.saved]),
        )
        call.needed = [name in moving for name in node.inputs]
        with lowering.scope(node):
            if node.branches:
                gradients = of_branches(lowering, call, node, found, moving)
            else:
                gradients = _of_node(lowering, call, node, found)
            for name, gradient in gradients:
                _add(lowering, call, found, name, gradient)


def _of_node(
    lowering: Lowering, call: Call, node: Node, found: dict[str, Tensor]
) -> list[tuple[str, Tensor]]:
    """Give the gradients of a node's inputs; an output that nobody uses has one of zeros.

    Only the first output of most operators has one.
    """
    names = [name for name in node.outputs if name]
    ipu = lowering.ipu_of(node)
    outputs = lowering.held(ipu, [lowering.tensor(name) for name in names])
    grads = [
        lowering.carried(found[name], ipu, call.prog, f"{call.name}/In")
        if name in found
        else zeros(call, lowering.tensor(name), "NoGrad")
        for place, name in enumerate(names)
        if place == 0 or node.operator in ALL_OUTPUTS
    ]
    made = GRADIENTS[node.key](call, outputs, grads)
    rows = zip(node.inputs, call.needed, made, strict=False)
    return [(name, grad) for name, needed, grad in rows if needed and grad is not None]


def of_branches(
    lowering: Lowering, call: Call, node: Node, found: dict[str, Tensor], moving: set[str]
) -> list[tuple[str, Tensor]]:
    """Give the gradients of what the branches of an If read: of the one that ran, else zero."""
    known, branches = call.value(0), node.branches
    if known is not None:
        chosen = branches[0 if bool(known.reshape(-1)[0]) else 1]
        return list(_of_branch(lowering, call, chosen, found, moving, call.prog).items())
    bodies = [Program(name=f"{call.name}/{place}") for place in range(len(branches))]
    made = [
        _of_branch(lowering, call, branch, found, moving, body)
        for branch, body in zip(branches, bodies, strict=True)
    ]
    outs = {}
    for name in dict.fromkeys(name for part in made for name in part):
        info = lowering.ir.infos[name]
        outs[name] = call.variable(info.device, info.dims, f"{name}/Grad")
        for part, body in zip(made, bodies, strict=True):
            if name in part:
                body.add(Copy(part[name], outs[name], name=f"{call.name}/{name}"))
            else:
                popops.zero(call.graph, outs[name], body, f"{call.name}/{name}")
    call.prog.add(If(call.scalar(0), bodies[0], bodies[1], call.name))
    return list(outs.items())


def _of_branch(
    lowering: Lowering,
    call: Call,
    branch: Ir,
    found: dict[str, Tensor],
    moving: set[str],
    body: Program,
) -> dict[str, Tensor]:
    """Add the backward pass of a branch; give the gradients of what it reads from around it."""
    inner, ipu = lowering.inner[id(branch)], lowering.graphs.index(call.graph)
    inside: dict[str, Tensor] = {}
    for outer, name in zip(call.node.outputs, branch.outputs, strict=True):
        if outer in found:
            near = lowering.carried(found[outer], ipu, body, f"{call.name}/In")
            before = inside.get(name)
            both = near if before is None else popops.add(call.graph, before, near, body, call.name)
            inside[name] = both
    lower_backward(inner, inside, body, moving)
    return {name: inside[name] for name in branch.captured() if name in inside and name in moving}


def backward_nodes(ir: Ir, losses: Sequence[Loss], asked: Iterable[str]) -> list[Node]:
    """Give the nodes of the backward pass as a graph would show them, the last layer's first."""
    moving = dependent(ir, {*ir.weights, *asked})
    found = [node_of(loss) for loss in losses]
    wanted = {loss.inputs[0] for loss in losses}
    for node in reversed(ir.nodes):
        inputs = [name for name in dict.fromkeys(node.reads) if name in moving]
        if not wanted.intersection(node.outputs) or not inputs:
            continue
        wanted.update(inputs)
        read = tuple(f"{PREFIX}{name}" for name in node.outputs if name)
        made = tuple(f"{PREFIX}{name}" for name in inputs)
        found.append(
            replace(node, name=f"{node.name}/Grad", operator=f"{node.operator}Grad", inputs=read,
                    outputs=made)
        )  # fmt: skip
    return found
