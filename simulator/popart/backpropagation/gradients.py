"""Back through the nodes: from the losses to the weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import replace

from simulator.graph.program import Copy, If
from simulator.graph.program import Sequence as Program
from simulator.graph.tensors.tensor import Tensor
from simulator.popart.errors import popart_exception
from simulator.popart.logging import log
from simulator.popart.lowering import Lowering
from simulator.popart.operators.backward import zeros
from simulator.popart.operators.call import Call
from simulator.popart.operators.layer_gradients import GRADIENTS, LACKING
from simulator.popart.operators.layers.losses import through_softmax
from simulator.popart.representation.ir import GRAPHCORE, ONNX, Ir, Node
from simulator.popart.scheduling.outlined import Use, functions_of
from simulator.popart.scheduling.outlined_gradients import comes_again, lower_back
from simulator.popart.scheduling.recompute import Again
from simulator.poplibs import popops

Track = Callable[[Node, str, Tensor, Program], None]
ALL_OUTPUTS = ("GRU", "LSTM", "RNN", "Split")  # whose gradients take those of all outputs
PREFIX = "Gradient___"  # PopART's names of gradients begin so
# What does not change when its input does a little.
FLAT = {(ONNX, name) for name in ("ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "IsInf",
        "IsNaN", "Less", "Not", "RandomNormalLike", "RandomUniformLike", "Round",
        "Xor")}  # fmt: skip
SCATTERS = {(ONNX, name) for name in ("ScatterElements", "ScatterND")}
FLAT |= {(GRAPHCORE, name) for name in ("Detach", "Init", "NearbyInt", "Round")}


# What hands on the gradient of whole numbers as it is: it chooses, moves or adds up elements.
WHOLE = {(ONNX, name) for name in ("Gather", "GatherElements", "Identity", "ReduceSum", "Reshape",
         "Slice", "Squeeze", "TopK", "Transpose", "Unsqueeze")}  # fmt: skip
WHOLE |= {(GRAPHCORE, "IdentityLoss"), (GRAPHCORE, "Reshape"), (GRAPHCORE, "Slice")}


def dependent(ir: Ir, weights: Iterable[str]) -> set[str]:
    """Name the tensors that change with the weights, or with whole numbers that are asked for."""
    names = set(weights)
    for node in ir.nodes:
        moving = [name for name in node.reads if name in names]
        if node.key not in FLAT and any(_is_float(ir, name) for name in moving):
            names.update(name for name in node.outputs if name and _is_float(ir, name))
        elif node.key in WHOLE and node.inputs[0] in moving:
            names.add(node.outputs[0])
    return names


def _is_float(ir: Ir, name: str) -> bool:
    return ir.infos[name].device.numpy.kind == "f"


def _is_handed_on(ir: Ir, name: str) -> bool:
    """Return whether whole numbers reach a loss through nodes alone that hand their gradient on."""
    readers = [node for node in ir.nodes if name in node.reads]
    whole = all(node.key in WHOLE and node.inputs[0] == name for node in readers)
    return whole and all(_is_handed_on(ir, node.outputs[0]) for node in readers)


def asked_for(anchors: Iterable[str]) -> list[str]:
    """Name the tensors whose gradients are anchors."""
    return [name.removeprefix(PREFIX) for name in anchors if name.startswith(PREFIX)]


def check_trainable(
    ir: Ir, losses: Sequence[str], anchors: Sequence[str], trained: Collection[str], subject: str
) -> None:
    """Raise popart_exception for a node between trained weights and losses without a gradient.

    So it is between losses and the tensors whose gradients are asked for, each of which needs one.
    """
    needed = set(losses)
    if not needed & dependent(ir, trained) and not anchors:
        log("session", "WARN", f"{subject}: no loss depends on a weight; there is nothing to train")
    _check_nodes(ir, set(needed), dependent(ir, {*trained, *anchors}), subject)
    gradient_names = {name for node in backward_nodes(ir, losses, anchors) for name in node.outputs}
    for name in anchors:
        if name not in needed and f"{PREFIX}{name}" not in gradient_names:
            raise popart_exception(
                f"Anchor tensor `{PREFIX}{name}' not in Ir Tensors. In {subject} no loss "
                f"depends on {name!r}"
            )
        if not _is_float(ir, name) and not _is_handed_on(ir, name):
            raise popart_exception(
                f"Anchor tensor `{PREFIX}{name}' not in Ir Tensors. In {subject} {name!r} is "
                f"{ir.infos[name]}; only floats have a gradient"
            )


def _check_nodes(ir: Ir, needed: set[str], moving: set[str], subject: str) -> None:
    """Raise popart_exception for a node without a gradient before what is wanted."""
    for node in reversed(ir.nodes):
        if not needed.intersection(node.outputs) or not moving.intersection(node.outputs):
            continue
        joins = node.attributes.get("reduction", "none") if node.key in SCATTERS else "none"
        lost = node.key not in GRADIENTS or joins not in ("none", "add")
        if lost and not node.branches:
            raise popart_exception(
                f"{subject}: {node} has no gradient; without one what is before it has none"
            )
        lacking = LACKING[node.key](node) if node.key in LACKING else ""
        if lacking and (node.operator != "GridSample" or node.inputs[1] in moving):
            raise popart_exception(f"{subject}: {node} has no gradient: {lacking}")
        _check_outputs(ir, node, needed, subject)
        for branch in node.branches:
            _check_nodes(branch, set(branch.outputs), dependent(branch, moving), subject)
        needed.update(node.reads)


def _check_outputs(ir: Ir, node: Node, needed: set[str], subject: str) -> None:
    """Raise popart_exception if a loss depends on an output whose gradient its node leaves out."""
    if node.branches or node.operator in ALL_OUTPUTS:
        return
    for name in needed.intersection(filter(None, node.outputs[1:])):
        if _is_float(ir, name):
            raise popart_exception(
                f"{subject}: {node} has no gradient of its output {name!r}, on which a loss depends"
            )


def seeded(
    lowering: Lowering, losses: Iterable[str], scales: Sequence[Tensor | float], prog: Program
) -> dict[str, Tensor]:
    """Return the gradient of each loss: the loss scaling, on the IPU where the loss is."""
    seeds: dict[str, Tensor] = {}
    for name in losses:
        info, home = lowering.ir.infos[name], lowering.maker_home(name)
        graph, scale, label = lowering.graphs[home], scales[home], f"{PREFIX}{name}"
        if isinstance(scale, Tensor):
            at = lowering.program(home, prog)
            if scale.dtype != info.device:
                scale = popops.cast(graph, scale, info.device, at, label)
            seeds[name] = scale.reshape(info.dims)
        else:
            seeds[name] = graph.addConstant(info.device, info.dims, scale, label)
            graph.setTileMapping(seeds[name], 0)
    return seeds


def direct_ways(ir: Ir, anchors: Container[str]) -> dict[str, str]:
    """Return the input of each softmax that a likelihood alone reads, by the likelihood.

    Their gradients go there at once: nothing is divided by small probabilities. Not those of
    probabilities whose own gradient is asked for.
    """
    readers = Counter(name for node in ir.nodes for name in node.reads)
    makers = {name: node for node in ir.nodes for name in node.outputs}
    sources = {}
    for node in ir.nodes:
        if node.key != (GRAPHCORE, "Nll") or node.attributes.get("inputIsLogProbability", 0):
            continue
        probs = node.inputs[0]
        maker = makers.get(probs)
        if (
            maker is None
            or maker.key != (ONNX, "Softmax")
            or readers[probs] > 1
            or probs in anchors
        ):
            continue
        rank, default = len(ir.infos[probs].dims), 1 if maker.version < 13 else -1
        if int(maker.attributes.get("axis", default)) % rank == rank - 1:  # of whole rows
            sources[node.name] = maker.inputs[0]
    return sources


def _add(
    lowering: Lowering, prog: Program, label: str, gradients: dict[str, Tensor], name: str,
    gradient: Tensor, source: int,
) -> None:  # fmt: skip
    """Add up the gradients that reach a tensor, at the first of their homes.

    Those of the tensor's readers go down a pipeline to it, whose own loss may be there already.
    """
    if name not in gradients:
        gradients[name], lowering.gradient_homes[name] = gradient, source
        return
    sources = lowering.gradient_home(name), source
    home = lowering.gradient_homes[name] = min(sources)
    prog = lowering.program(home, prog)
    first, second = (
        lowering.carried(part, at, home, prog, f"{label}/Grad")
        for part, at in zip((gradients[name], gradient), sources, strict=True)
    )
    gradients[name] = popops.add(lowering.graphs[home], first, second, prog, f"{label}/GradSum")


def lower_backward(
    lowering: Lowering,
    totals: dict[str, Tensor],
    prog: Program,
    changed: Iterable[str],
    direct: Mapping[str, str] | None = None,
    again: Again | None = None,
    track: Track | None = None,
) -> None:
    """Add the gradients of all nodes to a program; `totals` grows by those of all tensors.

    `changed` are the tensors, weights above all, that can change and whose gradients are wanted;
    `direct` is what `direct_ways` gives, `again` what is computed again. `track` is called with
    each node, input and gradient, none of which is in a function then.
    """
    changed = set(changed)
    moving, nodes = dependent(lowering.ir, changed), list(lowering.ir.nodes)
    outlining = functions_of(lowering) if track is None else None
    while nodes:
        use = outlining.ends.get(nodes[-1].name) if outlining else None
        if use and not again and _is_whole(lowering, use, totals, changed, direct or {}, moving):
            label, at, gradients = lower_back(lowering, use, totals, prog, moving, lower_node_back)
            for name, gradient in gradients.items():
                _add(lowering, at, label, totals, name, gradient, lowering.home_of(use.nodes[0]))
            del nodes[-len(use.nodes) :]
        else:
            lower_node_back(lowering, nodes.pop(), totals, prog, moving, direct, again, track)


def _is_whole(
    lowering: Lowering, use: Use, reached: Container[str], changed: Container[str],
    direct: Container[str], moving: Collection[str],
) -> bool:  # fmt: skip
    """Return whether the way back through a call is one: it is reached, and none looks within."""
    outputs = [name for node in use.nodes for name in node.outputs]
    within = any(name in changed for name in outputs)
    jumped = any(node.name in direct for node in use.nodes)
    outlining = functions_of(lowering)
    if within or jumped or outlining is None:
        return False
    return any(n in reached for n in outputs) and comes_again(outlining, use, moving)


def lower_node_back(
    lowering: Lowering,
    node: Node,
    totals: dict[str, Tensor],
    prog: Program,
    moving: Collection[str],
    direct: Mapping[str, str] | None = None,
    again: Again | None = None,
    track: Track | None = None,
) -> None:
    """Add the gradients of a node to a program, if one has reached it; `moving` can change."""
    reached = [name for name in node.outputs if name in totals]
    if not reached or not any(n in moving for n in node.reads) or node.key in FLAT:
        return
    home = lowering.home_of(node)
    at = lowering.program(home, prog)
    begin = len(at.children)
    if again is None:
        call = lowering.calls[node.name]
        call.inputs = lowering.held(home, call.inputs)
    else:
        call = again.call_of(node, at)
    call.prog, call.node = at, replace(node, name=f"{node.name}/Grad")
    (call.saved,) = lowering.held(home, [call.saved])
    call.needed = [name in moving for name in node.inputs]
    with lowering.scope(node):
        way = (direct or {}).get(node.name)
        if way is not None:
            name = node.outputs[0]
            source = lowering.gradient_home(name)
            grad = lowering.carried(totals[name], source, home, call.prog, f"{call.name}/In")
            gradients = [(way, through_softmax(call, grad))]
        elif node.branches:
            gradients = of_branches(lowering, call, node, totals, moving)
        else:
            gradients = _of_node(lowering, call, node, totals, again)
        lowering.load_weights([node], at, begin)
        for name, gradient in gradients:
            if track is not None:
                track(node, name, gradient, call.prog)
            _add(lowering, call.prog, call.name, totals, name, gradient, home)


def _of_node(
    lowering: Lowering, call: Call, node: Node, totals: dict[str, Tensor], again: Again | None
) -> list[tuple[str, Tensor]]:
    """Return the gradients of a node's inputs; an output that nobody uses has one of zeros.

    Only the first output of most operators has one.
    """
    names = [name for name in node.outputs if name]
    home = lowering.home_of(node)
    if again is None:
        outputs = lowering.held(home, [lowering.tensor(name) for name in names])
    else:
        outputs = again.outputs(node, call.prog)
    grads = [
        lowering.carried(
            totals[name], lowering.gradient_home(name), home, call.prog, f"{call.name}/In"
        )
        if name in totals
        else zeros(call, lowering.tensor(name), "NoGrad")
        for place, name in enumerate(names)
        if place == 0 or node.operator in ALL_OUTPUTS
    ]
    input_grads = GRADIENTS[node.key](call, outputs, grads)
    rows = zip(node.inputs, call.needed, input_grads, strict=False)
    return [(name, grad) for name, needed, grad in rows if needed and grad is not None]


def of_branches(
    lowering: Lowering, call: Call, node: Node, totals: dict[str, Tensor], moving: Collection[str]
) -> list[tuple[str, Tensor]]:
    """Return the gradients of what the branches of an If read: of the one that ran, else zero."""
    condition, branches = call.value(0), node.branches
    if condition is not None:
        taken_branch = branches[0 if bool(condition.reshape(-1)[0]) else 1]
        return list(_of_branch(lowering, call, taken_branch, totals, moving, call.prog).items())
    bodies = [Program(name=f"{call.name}/{place}") for place in range(len(branches))]
    branch_gradients = [
        _of_branch(lowering, call, branch, totals, moving, body)
        for branch, body in zip(branches, bodies, strict=True)
    ]
    outs = {}
    for name in dict.fromkeys(name for part in branch_gradients for name in part):
        info = lowering.ir.infos[name]
        outs[name] = call.variable(info.device, info.dims, f"{name}/Grad")
        for part, body in zip(branch_gradients, bodies, strict=True):
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
    totals: dict[str, Tensor],
    moving: Collection[str],
    body: Program,
) -> dict[str, Tensor]:
    """Add the backward pass of a branch; give the gradients of what it reads from around it."""
    inner = lowering.inner[id(branch)]
    inner.gradient_homes.clear()
    inside: dict[str, Tensor] = {}
    for outer, name in zip(call.node.outputs, branch.outputs, strict=True):
        if outer in totals:
            source = lowering.gradient_home(outer)
            near = lowering.carried(totals[outer], source, inner.home, body, f"{call.name}/In")
            before = inside.get(name)
            both = near if before is None else popops.add(call.graph, before, near, body, call.name)
            inside[name] = both
    lower_backward(inner, inside, body, moving)
    return {name: inside[name] for name in branch.captured() if name in inside and name in moving}


def backward_nodes(ir: Ir, losses: Sequence[str], anchors: Iterable[str]) -> list[Node]:
    """Return the nodes of the backward pass as a graph would show them, the last layer's first."""
    moving = dependent(ir, {*ir.weights, *anchors})
    nodes: list[Node] = []
    needed = set(losses)
    for node in reversed(ir.nodes):
        inputs = [name for name in dict.fromkeys(node.reads) if name in moving]
        if not needed.intersection(node.outputs) or not inputs:
            continue
        needed.update(inputs)
        read = tuple(f"{PREFIX}{name}" for name in node.outputs if name)
        gradients = tuple(f"{PREFIX}{name}" for name in inputs)
        nodes.append(
            replace(node, name=f"{node.name}/Grad", operator=f"{node.operator}Grad", inputs=read,
                    outputs=gradients)
        )  # fmt: skip
    return nodes
